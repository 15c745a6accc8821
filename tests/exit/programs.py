# SPDX-License-Identifier: Apache-2.0
"""Programs that end while other threads use the FFI; each starts threads and returns.

programs.py NAME CLIENT
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import tvm_ffi
from tvm_ffi import testing
from tvm_ffi.dataclasses import py_class

PROGRAMS: dict[str, Callable[[], None]] = {}


def program(start: Callable[[], None]) -> Callable[[], None]:
    PROGRAMS[start.__name__] = start
    return start


def client(name: str) -> Any:
    return tvm_ffi.get_global_func(f"exit_client.{name}")


def fail_in_thread(args: Any) -> None:
    """A program whose threads stop early proves nothing."""
    sys.__stderr__.write(f"a thread raised {args.exc_value!r}\n")
    os._exit(97)


threading.excepthook = fail_in_thread


def in_threads(body: Callable[[], Any], count: int = 3) -> None:
    """Repeat `body` for ever in daemon threads."""

    def spin() -> None:
        while True:
            body()

    for _ in range(count):
        threading.Thread(target=spin, daemon=True).start()


class Finalized:
    """Runs Python code when it dies, long enough for the GIL to change hands."""

    def __del__(self) -> None:
        for _ in range(100):
            len("x")


class Stateful(testing.TestObjectBase):
    """A class with state of its own."""

    __slots__ = ("__dict__",)


@py_class("exit.Key")
class Key(tvm_ffi.Object):
    """Compared and hashed by Python code."""

    x: int

    def __any_hash__(self) -> int:
        return self.x % 3

    def __any_equal__(self, other: Any) -> bool:
        return self.x == other.x


@py_class("exit.Node")
class Node(tvm_ffi.Object):
    """Fields that convert, and one that may close a ring."""

    items: list[int]
    next: Any = None


@program
def calls() -> None:
    """Calls without the GIL, elements, callbacks made for one call."""
    box = tvm_ffi.Array([testing.TestIntPair(1, 2)])

    def body() -> None:
        assert box[0] is box[0]
        tvm_ffi.convert(lambda x: x)(box)
        testing.echo("a string that is long enough to be an object")

    in_threads(body)


@program
def callbacks() -> None:
    """Python, C++ of a client, Python, C++ of a client, Python."""
    call = client("call")
    inner = tvm_ffi.convert(lambda x: [x, x])
    in_threads(lambda: call(lambda x: call(inner, x), testing.TestIntPair(1, 2)))


@program
def fields() -> None:
    """Reads and writes of fields, of C++ classes and of classes defined in Python."""
    base = testing.TestObjectDerived(v_map={"k": 1}, v_array=[testing.TestIntPair(1, 2)])
    node = Node([1, 2, 3])
    # The conversion of a list asks Python for its items.
    values = type("Values", (list,), {"__iter__": lambda self: iter([1, 2])})

    def body() -> None:
        base.v_i64 += 1
        assert base.v_array[0].a == 1
        node.items = values([1])
        node.next = {"a": [1, (2, 3)]}
        assert len(node.items) == 2

    in_threads(body)


@program
def hooks() -> None:
    """Searches and iterations of containers whose keys run Python code."""
    keys = [Key(i) for i in range(20)]

    def body() -> None:
        table = tvm_ffi.Dict({key: i for i, key in enumerate(keys)})
        assert table[keys[7]] == 7
        for key, value in table.items():
            assert key.x == value
        tvm_ffi.structural_equal(table, table)
        repr(table)

    in_threads(body)


@program
def cpp_threads() -> None:
    """Threads that C++ started call Python, beside threads of Python."""
    client("start_callers")(lambda x: [x, x], testing.TestIntPair(1, 2), 3)
    in_threads(lambda: testing.add_one(1), 1)


@program
def cpp_threads_deep() -> None:
    """The same, with Python code in between that calls C++ again."""
    call = client("call")
    client("start_callers")(lambda x: call(lambda y: [testing.echo(y)], x), "text", 3)


@program
def signals() -> None:
    """C++ that asks for signals, which takes the GIL."""
    check = client("check_signals")
    in_threads(check)


@program
def errors() -> None:
    """Exceptions that cross C++, raised and caught all the time."""
    call = client("call")

    def fail(x: Any) -> None:
        raise ValueError(x)

    def body() -> None:
        try:
            call(fail, 1)
        except ValueError:
            return
        raise AssertionError("nothing was raised")

    in_threads(body)
    client("start_callers")(lambda x: _swallow(fail, x), 1, 1)


def _swallow(f: Callable[[Any], Any], x: Any) -> None:
    with contextlib.suppress(ValueError):
        tvm_ffi.convert(f)(x)


@program
def deaths() -> None:
    """C++ lets go of objects whose end runs Python code, in threads of both languages."""
    drop = client("drop")

    def make() -> Any:
        obj = Stateful()
        obj.payload = Finalized()
        weakref.finalize(obj, len, "x").atexit = False
        return tvm_ffi.Array([obj, lambda: obj.payload])

    in_threads(lambda: drop(tvm_ffi.core.ObjectRValueRef(make())), 2)
    client("start_droppers")(make, 2)


@program
def collections() -> None:
    """Rings through C++, and collections of them."""

    def body() -> None:
        for _ in range(20):
            node = Node([1])
            node.next = lambda node=node: node
        gc.collect()

    in_threads(body, 2)


@program
def moves() -> None:
    """Objects that change their wrapper while calls are under way."""

    def body() -> None:
        pair = testing.TestIntPair(1, 2)
        testing.echo(tvm_ffi.core.ObjectRValueRef(pair))
        tvm_ffi.List([pair] * 3 if pair.__chandle__() else [])

    in_threads(body)


@program
def at_exit_hooks() -> None:
    """Hooks of the program use the FFI while the threads still run."""
    import atexit

    call = client("call")
    atexit.register(lambda: [call(lambda x: x, i) for i in range(200)])
    callbacks()


def main() -> None:
    name, path = sys.argv[1:]
    module = tvm_ffi.load_module(path)
    sys.setswitchinterval(1e-4)  # many chances to be ended in many places
    PROGRAMS[name]()
    time.sleep(0.05)
    del module


if __name__ == "__main__":
    main()
