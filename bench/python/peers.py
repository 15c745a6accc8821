# SPDX-License-Identifier: Apache-2.0
"""The same small library, as each peer offers it to Python.

A peer is a namespace with: Node, make_node, identity, add, add_released, call, echo_str,
make_array(list of nodes), make_map(dict of nodes).
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

# Peers whose library is an extension module of its own.
MODULES = {"floor": "bench_floor", "nanobind": "bench_nanobind"}


def _ffi(folder: Path, name: str) -> Any:
    """Load the library for an implementation of the FFI interface: ours or the reference's."""
    import ctypes

    import tvm_ffi

    ctypes.CDLL(str(folder / f"libbench_{name}.so"), ctypes.RTLD_GLOBAL)

    @tvm_ffi.register_object("bench.Node")
    class Node(tvm_ffi.Object):
        pass

    def function(short: str, release_gil: bool = False) -> Any:
        found = tvm_ffi.get_global_func(f"bench.{short}")
        found.release_gil = release_gil
        return found

    return SimpleNamespace(
        Node=Node,
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


def load(name: str, folder: Path) -> Any:
    """Return the peer `name`, whose compiled parts are in `folder`."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    if name in ("ours", "reference"):
        return _ffi(folder, name)
    module = __import__(MODULES[name])
    if name == "nanobind":
        module.make_array, module.make_map = module.Array, module.Map
    return module
