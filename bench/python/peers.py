# SPDX-License-Identifier: Apache-2.0
"""The same small library, as each peer offers it to Python.

A peer is a namespace with: Node, Counter, Pair, make_node, identity, add, add_released, call,
echo_str, fail, make_array(list of nodes), make_map(dict of nodes); for the other probes, where the
peer has a native side: Box (holds any Python object), make_many(n) nodes that Python has not seen,
keep(array) until the process ends, drop_on_thread(node).
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

# Peers whose library is an extension module of its own.
MODULES = {
    "floor": "bench_floor",
    "nanobind": "bench_nanobind",
    "pybind11": "bench_pybind11",
    "cython": "bench_cython",
    "pyo3": "bench_pyo3",
    "slots": "bench_slots",
}
# Implementations of the FFI interface, and whose headers their library was compiled against.
# "adopted" is ours with a library that has never heard of it.
FFI = {"ours": "ours", "adopted": "reference", "reference": "reference"}


def _ffi(folder: Path, name: str) -> Any:
    """Load the library for an implementation of the FFI interface: ours or the reference's."""
    import ctypes

    import tvm_ffi

    ctypes.CDLL(str(folder / f"libbench_{FFI[name]}.so"), ctypes.RTLD_GLOBAL)

    @tvm_ffi.register_object("bench.Node")
    class Node(tvm_ffi.Object):
        pass

    @tvm_ffi.register_object("bench.Box")
    class Box(tvm_ffi.Object):
        pass

    @tvm_ffi.register_object("bench.Counter")
    class Counter(tvm_ffi.Object):
        pass

    @tvm_ffi.register_object("bench.Pair")
    class Pair(tvm_ffi.Object):
        pass

    def function(short: str, release_gil: bool = False) -> Any:
        found = tvm_ffi.get_global_func(f"bench.{short}")
        found.release_gil = release_gil
        return found

    return SimpleNamespace(
        Node=Node,
        Box=Box,
        Counter=Counter,
        Pair=Pair,
        fail=function("fail"),
        make_many=function("make_many"),
        keep=function("keep"),
        drop_on_thread=function("drop_on_thread"),
        make_node=function("make_node"),
        identity=function("identity"),
        add=function("add"),
        add_released=function("add_released", release_gil=True),
        call=function("call"),
        echo_str=function("echo_str"),
        make_array=tvm_ffi.Array,
        make_map=tvm_ffi.Map,
        version=tvm_ffi.__version__,
    )


def _filled_map(nodes: dict[str, Any]) -> Any:
    """Stand in for the constructor that pybind11's maps do not have."""
    import bench_pybind11

    result = bench_pybind11.Map()
    for key, node in nodes.items():
        result[key] = node
    return result


def load(name: str, folder: Path) -> Any:
    """Return the peer `name`, whose compiled parts are in `folder`."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    if name in FFI:
        return _ffi(folder, name)
    module = __import__(MODULES[name])
    if not hasattr(module, "make_array"):
        module.make_array = module.Array
        module.make_map = _filled_map if name == "pybind11" else module.Map
    return module
