# SPDX-License-Identifier: Apache-2.0
"""The classes and the small helpers that random programs are made of."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path
from typing import Any

import tvm_ffi
from tvm_ffi import testing
from tvm_ffi.dataclasses import field, py_class

FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


class Broken(Exception):
    """A promise or a value that does not hold: the finding of a program."""


class Unclear(Exception):
    """The model cannot tell which of two objects it has in front of it: nothing is wrong."""


class ChildEnds(BaseException):
    """In a child: leave all that runs and end the interpreter as any program does."""


@py_class("soak.Node")
class PyNode(tvm_ffi.Object):
    """A class defined in Python with one field of each kind."""

    x: int
    f: Any = None
    g: Any = None
    xs: list[Any] = field(default_factory=list)
    d: dict[str, Any] = field(default_factory=dict)
    o: tvm_ffi.Object | None = None


class PyNodeDict(PyNode):
    """The same with attributes."""

    __slots__ = ("__dict__",)


class PyNodeSlots(PyNode):
    """The same with slots."""

    __slots__ = ("link", "note")


class PyNodeDel(PyNode):
    """The same with a finaliser: freed at the last Python reference."""

    __slots__ = ()

    def __del__(self) -> None:
        return None


class ListDict(tvm_ffi.List):
    """A List with attributes."""

    __slots__ = ("__dict__",)


class DictDict(tvm_ffi.Dict):
    """A Dict with attributes."""

    __slots__ = ("__dict__",)


class BaseDict(testing.TestObjectBase):
    """An object of C++ with attributes."""

    __slots__ = ("__dict__",)


class BaseSlots(testing.TestObjectBase):
    """An object of C++ with slots."""

    __slots__ = ("link", "note")


class BaseDel(testing.TestObjectBase):
    """An object of C++ with a finaliser."""

    __slots__ = ()

    def __del__(self) -> None:
        return None


class Payload:
    """A plain Python object, opaque to C++."""

    def __init__(self, link: Any = None) -> None:
        if link is not None:
            self.link = link


class Callback:
    """What functions are made of: gives back what it was called with, or what it keeps."""

    __slots__ = ("kept",)

    def __init__(self, kept: Any) -> None:
        self.kept = kept

    def __call__(self, *args: Any) -> Any:
        return args[0] if args else self.kept


def nothing() -> None:
    """Stand in for the code that a hook runs."""


class Hook:
    """What user code runs when C++ calls it: set by the program that runs."""

    run: Any = staticmethod(nothing)


@py_class("soak.Key")
class Key(tvm_ffi.Object):
    """A key with hooks; few hashes, so that keys are compared."""

    x: int

    def __any_hash__(self) -> int:
        """Hash, after whatever the program wants to happen here."""
        Hook.run()
        return self.x % 3

    def __any_equal__(self, other: Any) -> bool:
        """Compare, after whatever the program wants to happen here."""
        Hook.run()
        return isinstance(other, Key) and self.x == other.x


class Converted:
    """A value whose conversion runs Python code."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __tvm_ffi_value__(self) -> Any:
        Hook.run()
        return self.value


def make_edges(v_any: Any = None, v_obj: Any = None) -> Any:
    """An object of C++ with one field of any value and one of any object."""
    return testing.create_object("testing.TestDeepCopyEdges", v_any=v_any, v_obj=v_obj)


Edges = type(make_edges())
Holder = testing.TestObjectPtrHolder
Base = testing.TestObjectBase
STATEFUL = {PyNodeDict, PyNodeSlots, ListDict, DictDict, BaseDict, BaseSlots}

# The class that C++ itself would hand out.
PLAIN = {
    PyNodeDict: PyNode,
    PyNodeSlots: PyNode,
    PyNodeDel: PyNode,
    ListDict: tvm_ffi.List,
    DictDict: tvm_ffi.Dict,
    BaseDict: Base,
    BaseSlots: Base,
    BaseDel: Base,
}


def plain(cls: type) -> type:
    """Return the class that C++ itself would hand out for objects of `cls`."""
    return PLAIN.get(cls, cls)


def compare_stats(before: dict[str, Any], after: dict[str, Any]) -> None:
    """P5: nothing was lost, nothing is kept."""
    if before == after:
        return
    kept = {
        getattr(key, "__name__", key): now - before["by_type"].get(key, 0)
        for key, now in after["by_type"].items()
        if now != before["by_type"].get(key, 0)
    }
    counts = {
        key: (before[key], after[key])
        for key in before
        if key != "by_type" and before[key] != after[key]
    }
    raise Broken(f"P5: left by a program: {kept}, {counts}")


def load_client(path: str | None) -> Any:
    """Load the C library that holds references, if it was built."""
    if path is None:
        return None
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
    from support import NativeClient

    return NativeClient(path)
