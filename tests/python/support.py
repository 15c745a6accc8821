# SPDX-License-Identifier: Apache-2.0
"""What the tests of the Python package share."""

from __future__ import annotations

import ctypes
import gc
import itertools
import os
import shlex
import subprocess
import sys
import sysconfig
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tvm_ffi
from tvm_ffi import libinfo, testing

ROOT = Path(__file__).resolve().parents[2]
FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
# That interpreter makes every class immortal as soon as a second thread has run.
CLASSES_DIE = not FREE_THREADED or sys.version_info >= (3, 14)
# A debug build of CPython.
DEBUG_BUILD = hasattr(sys, "gettotalrefcount")
# The fallback for unknown collectors: weak references into garbage cycles are cleared.
RULE_B = "TETHER_COLLECTOR_RULE_B" in os.environ
# 1.0 is the full size; sanitizer and emulated runs use less.
SCALE = float(os.environ.get("TETHER_TEST_SCALE", "1"))


def scaled(count: int) -> int:
    """Return the number of repetitions for this run."""
    return max(10, int(count * SCALE))


def compile_library(source: Path, target: Path) -> Path:
    """Compile a client of the C++ API."""
    command = ["c++", "-std=c++17", "-O0", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror"]
    command += [f"-I{path}" for path in libinfo.include_paths()]
    command += [str(source), "-o", str(target), libinfo.find_libtvm_ffi()]
    subprocess.run(command, check=True)
    return target


class Stateful(testing.TestObjectBase):
    """A Python subclass that carries an instance `__dict__`."""

    __slots__ = ("__dict__",)


class Slotted(testing.TestObjectBase):
    """A Python subclass with slots of its own."""

    __slots__ = ("label", "link")


class Finalized(testing.TestObjectBase):
    """A class with `__del__`, freed at the last Python reference."""

    deaths: list[int] = []  # noqa: RUF012

    def __del__(self) -> None:
        Finalized.deaths.append(1)


class Payload:
    """A plain Python object; held by C++ its death tells that the C++ holder died."""

    def __init__(self, tag: Any = None) -> None:
        self.tag = tag


def make_edges(v_any: Any = None, v_obj: Any = None) -> Any:
    """An object with one field of any value and one of any object."""
    return testing.create_object("testing.TestDeepCopyEdges", v_any=v_any, v_obj=v_obj)


def make_holder(obj: Any) -> Any:
    return testing.TestObjectPtrHolder(obj)


# Ways to keep an object in C++ and to get it back: name -> (keep(obj) -> holder, fetch(holder)).
Keep = Callable[[Any], Any]
WAYS: dict[str, tuple[Keep, Keep]] = {
    "object field": (make_holder, lambda h: h.value),
    "optional field": (lambda o: testing.TestObjectPtrHolder(o, o), lambda h: h.optional_value),
    "any field": (make_edges, lambda h: h.v_any),
    "object reference field": (lambda o: make_edges(1, o), lambda h: h.v_obj),
    "array item": (lambda o: tvm_ffi.Array([1, o]), lambda h: h[1]),
    "array negative item": (lambda o: tvm_ffi.Array([o, 1]), lambda h: h[-2]),
    "array slice": (lambda o: tvm_ffi.Array([o]), lambda h: h[:][0]),
    "array iteration": (lambda o: tvm_ffi.Array([o]), lambda h: next(iter(h))),
    "array unpacking": (lambda o: tvm_ffi.Array([o]), lambda h: (*h,)[0]),
    "array field": (
        lambda o: testing.TestObjectDerived({}, [o]),
        lambda h: h.v_array[0],
    ),
    "map field": (
        lambda o: testing.TestObjectDerived({"k": o}, []),
        lambda h: h.v_map["k"],
    ),
    "list item": (lambda o: tvm_ffi.List([o]), lambda h: h[0]),
    "list slice": (lambda o: tvm_ffi.List([o]), lambda h: h[0:1][0]),
    "list iteration": (lambda o: tvm_ffi.List([o]), lambda h: next(iter(h))),
    "map value": (lambda o: tvm_ffi.Map({"k": o}), lambda h: h["k"]),
    "map get": (lambda o: tvm_ffi.Map({"k": o}), lambda h: h.get("k")),
    "map values view": (lambda o: tvm_ffi.Map({"k": o}), lambda h: next(iter(h.values()))),
    "map items view": (lambda o: tvm_ffi.Map({"k": o}), lambda h: next(iter(h.items()))[1]),
    "map key": (lambda o: tvm_ffi.Map({o: 1}), lambda h: next(iter(h))),
    "map keys view": (lambda o: tvm_ffi.Map({o: 1}), lambda h: next(iter(h.keys()))),
    "dict value": (lambda o: tvm_ffi.Dict({"k": o}), lambda h: h["k"]),
    "dict get": (lambda o: tvm_ffi.Dict({"k": o}), lambda h: h.get("k")),
    "dict key": (lambda o: tvm_ffi.Dict({o: 1}), lambda h: next(iter(h))),
    "nested containers": (lambda o: tvm_ffi.convert([{"k": [o]}]), lambda h: h[0]["k"][0]),
    "function return": (lambda o: tvm_ffi.Array([o]), lambda h: testing.echo(h[0])),
    "global function": (
        lambda o: tvm_ffi.Array([o]),
        lambda h: tvm_ffi.get_global_func("ffi.ArrayGetItem")(h, 0),
    ),
    "callback argument": (
        lambda o: tvm_ffi.Array([o]),
        lambda h: testing.apply(lambda arg: arg, h[0]),
    ),
}


def use_count(obj: Any) -> int:
    """Strong references to an object; the one a call without the GIL holds meanwhile is no news."""
    return testing.object_use_count(obj) - int(FREE_THREADED)


def collect() -> None:
    """Collect until nothing is left to do."""
    for _ in range(3):
        gc.collect()


def wait_until(condition: Callable[[], bool], seconds: float = 60.0) -> bool:
    """Poll; drains of the reclaim list happen at the next Python operation."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        tvm_ffi.Array([])
        time.sleep(0.001)
    return True


def rss_bytes() -> int:
    """Return the resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def grows_every_time(repeat: Callable[[], None], slack: int, rounds: int = 6) -> list[int]:
    """Return the growth of each round if every round grew by more than `slack`, else nothing."""
    repeat()
    growth = []
    for _ in range(rounds):
        before = rss_bytes()
        repeat()
        gc.collect()
        growth.append(rss_bytes() - before)
    return growth if min(growth) > slack else []


def run_threads(count: int, body: Callable[[int], None]) -> None:
    """Run `body(i)` in fresh threads that start together; the first failure is raised here."""
    barrier = threading.Barrier(count)
    failures: list[BaseException] = []

    def main(i: int) -> None:
        try:
            barrier.wait()
            body(i)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=main, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def run_python(code: str, timeout: float = 120.0, **variables: str) -> str:
    """Run a program in a fresh interpreter; it must exit cleanly. Returns what it printed."""
    environment = {**os.environ, **variables}
    environment["PYTHONPATH"] = os.pathsep.join(
        [str(Path(tvm_ffi.__file__).parents[1]), str(Path(__file__).parent)]
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, (
        f"exit status {done.returncode}\n--- stdout\n{done.stdout}\n--- stderr\n{done.stderr}"
    )
    return done.stdout


def watch_death(obj: Any) -> list[bool]:
    """Return a list that gets one element when `obj` dies."""
    deaths: list[bool] = []
    weakref.finalize(obj, deaths.append, True).atexit = False
    return deaths


class NativeClient:
    """The functions of native_client.c."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.keeping_gil = ctypes.PyDLL(path)
        self.library = ctypes.CDLL(path)
        for name in ("page_new", "page_child", "eternal_get", "hold", "held_last"):
            address = ctypes.cast(getattr(self.library, name), ctypes.c_void_p).value
            function = tvm_ffi.Function.__from_extern_c__(address)
            function.release_gil = False
            setattr(self, name, function)
        self.library.page_count.restype = ctypes.c_int64

    def pages(self) -> dict[str, int]:
        """Count objects made, destroyed and freed."""
        names = ("made", "destroyed", "freed")
        return {name: self.library.page_count(i) for i, name in enumerate(names)}

    def release_all(self) -> int:
        """Give back everything held, on this thread."""
        return self.keeping_gil.release_all()

    def release_all_in_thread(self) -> int:
        """Give back everything held on a new C thread, while this thread keeps the GIL."""
        return self.keeping_gil.release_all_in_thread()


def build_native_client(directory: Path) -> str:
    """Compile native_client.c and return the path of the library."""
    output = directory / "native_client.so"
    library = libinfo.find_libtvm_ffi()
    command = shlex.split(os.environ.get("CC", "cc"))
    command += ["-shared", "-fPIC", "-O1", "-g", "-pthread", "-Wall", "-Wextra", "-Werror"]
    command += [
        f"-I{libinfo.find_include_path()}",
        str(Path(__file__).with_name("native_client.c")),
    ]
    command += ["-o", str(output), library, f"-Wl,-rpath,{Path(library).parent}"]
    subprocess.run(command, check=True)
    return str(output)


_keys = itertools.count()


def fresh_key() -> str:
    """Return a type key that nothing has used."""
    return f"tests.fresh.K{next(_keys)}"


def assert_same_strides(tensor: Any, array: Any) -> None:
    """Compare where they mean anything: elsewhere releases of numpy differ in what they export."""
    assert len(tensor.strides) == array.ndim
    if array.size == 0:
        return
    for ours, theirs, extent in zip(tensor.strides, array.strides, array.shape, strict=True):
        assert extent == 1 or ours == theirs // array.itemsize
