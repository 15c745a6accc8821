# SPDX-License-Identifier: Apache-2.0
"""Python classes of the types in the testing library."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from .. import _ffi_api
from ..core import Object
from ..dataclasses import IntEnum, StrEnum, c_class, entry
from ..registry import get_global_func
from ..utils import FileLock

__all__ = [
    "IntEnum",
    "Object",
    "StrEnum",
    "TestCompare",
    "TestCustomCompare",
    "TestCustomHash",
    "TestEqWithoutHash",
    "TestFrozenCxx",
    "TestHash",
    "TestIntPair",
    "TestNonCopyable",
    "TestObjectBase",
    "TestObjectDerived",
    "TestObjectPtrHolder",
    "add_one",
    "c_class",
    "create_object",
    "entry",
    "get_global_func",
    "make_unregistered_object",
    "run_with_gpu_lock",
]

_T = TypeVar("_T")


def _requires_python(*version: int) -> Any:
    """Make a mark that skips a test on older Pythons; it does nothing without pytest."""
    try:
        import pytest
    except ImportError:
        return lambda test: test
    name = ".".join(map(str, version))
    return pytest.mark.skipif(sys.version_info < version, reason=f"requires Python {name}+")


def __getattr__(name: str) -> Any:
    # Made on first use, so that programs that use this module do not need pytest.
    if name.startswith("requires_py3") and name[len("requires_py3") :].isdigit():
        return _requires_python(3, int(name[len("requires_py3") :]))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def create_object(type_key: str, **kwargs: Any) -> Any:
    """Make an object of any type from the values of its fields.

    >>> from tvm_ffi.testing import create_object
    >>> create_object("testing.TestIntPair", a=1, b=2).sum()
    3
    """
    packed = [item for pair in kwargs.items() for item in pair]
    return _ffi_api.MakeObjectFromPackedArgs(type_key, *packed)


def make_unregistered_object() -> Any:
    """Make an object of a type that has no Python class."""
    return get_global_func("testing.make_unregistered_object")()


def add_one(x: int) -> int:
    """Add one in C++."""
    return get_global_func("testing.add_one")(x)


@functools.cache
def _gpu_lock_path() -> str:
    import getpass
    import tempfile

    try:
        user: Any = getpass.getuser()
    except (ImportError, KeyError, OSError):
        user = os.getuid() if hasattr(os, "getuid") else "unknown"
    default = Path(tempfile.gettempdir()) / f"tvm-ffi-test-locks-{user}"
    directory = Path(os.environ.get("TVM_FFI_TEST_LOCK_DIR") or default).expanduser()
    directory.mkdir(parents=True, exist_ok=True)
    return str(directory / "gpu.lock")


def run_with_gpu_lock(func: Callable[..., _T], /, *args: Any, **kwargs: Any) -> _T:
    """Call `func` while no other process of this user is in such a call.

    >>> from tvm_ffi.testing import run_with_gpu_lock
    >>> run_with_gpu_lock(max, 1, 2)
    2
    """
    with FileLock(_gpu_lock_path()):
        return func(*args, **kwargs)


@c_class("testing.TestObjectBase")
class TestObjectBase(Object):
    """Three fields with defaults, one of them read-only, and a method."""

    __test__ = False

    v_i64: int
    v_f64: float
    v_str: str


@c_class("testing.TestObjectDerived")
class TestObjectDerived(TestObjectBase):
    """Adds containers to its base."""

    __test__ = False

    v_map: Mapping[Any, Any]
    v_array: Sequence[Any]


@c_class("testing.TestObjectPtrHolder")
class TestObjectPtrHolder(Object):
    """Holds one object that must be there and one that may be."""

    __test__ = False

    value: TestObjectBase
    optional_value: TestObjectBase | None


@c_class("testing.TestIntPair")
class TestIntPair(Object):
    """Two read-only integers and their sum."""

    __test__ = False

    a: int
    b: int


@c_class("testing.TestFrozenCxx", frozen=True)
class TestFrozenCxx(Object):
    """A type without reflection."""

    __test__ = False

    value: int
    tag: str


@c_class("testing.TestNonCopyable")
class TestNonCopyable(Object):
    """A type that cannot be copied."""

    __test__ = False

    value: int


@c_class("testing.TestCompare")
class TestCompare(Object):
    """A field that comparison ignores."""

    __test__ = False

    key: int
    name: str
    ignored_field: int


@c_class("testing.TestHash")
class TestHash(Object):
    """A field that hashing ignores."""

    __test__ = False

    key: int
    name: str
    hash_ignored: int


@c_class("testing.TestCustomHash")
class TestCustomHash(Object):
    """Hashes by its key alone."""

    __test__ = False

    key: int
    label: str


@c_class("testing.TestCustomCompare")
class TestCustomCompare(Object):
    """Compares and hashes by its key alone."""

    __test__ = False

    key: int
    label: str


@c_class("testing.TestEqWithoutHash")
class TestEqWithoutHash(Object):
    """Compares by its key and cannot be hashed."""

    __test__ = False

    key: int
    label: str


@c_class("testing.SchemaAllTypes")
class _SchemaAllTypes:
    """One field of every kind; the class is not a wrapper, so objects have another one."""

    v_bool: bool
    v_int: int
    v_float: float
    v_device: Any
    v_dtype: Any
    v_string: str
    v_bytes: bytes
    v_opt_int: int | None
    v_opt_str: str | None
    v_arr_int: Sequence[int]
    v_arr_str: Sequence[str]
    v_map_str_int: Mapping[str, int]
    v_map_str_arr_int: Mapping[str, Sequence[int]]
    v_variant: str | Sequence[int] | Mapping[str, int]
    v_opt_arr_variant: Sequence[int | str] | None


@c_class("testing.TestCxxClassBase")
class _TestCxxClassBase(Object):
    not_field_1 = 1
    not_field_2: ClassVar[int] = 2

    v_i64: int
    v_i32: int

    def __init__(self, v_i64: int, v_i32: int) -> None:
        self.__ffi_init__(v_i64 + 1, v_i32 + 2)


@c_class("testing.TestCxxClassDerived", eq=True, order=True, unsafe_hash=True)
class _TestCxxClassDerived(_TestCxxClassBase):
    v_f64: float
    v_f32: float


@c_class("testing.TestCxxClassDerivedDerived")
class _TestCxxClassDerivedDerived(_TestCxxClassDerived):
    v_str: str
    v_bool: bool


class _TestCxxIntEnum(IntEnum, type_key="testing.TestCxxIntEnum"):  # type: ignore[call-arg]
    low = entry(value=10)
    high = entry(value=20)


class _TestCxxStrEnum(StrEnum, type_key="testing.TestCxxStrEnum"):  # type: ignore[call-arg]
    add = entry(value="+")
    mul = entry(value="*")


@c_class("testing.TestCxxEnumHolder")
class _TestCxxEnumHolder(Object):
    priority: _TestCxxIntEnum
    opcode: _TestCxxStrEnum


@c_class("testing.TestCxxInitSubset")
class _TestCxxInitSubset(Object):
    required_field: int
    optional_field: int
    note: str


@c_class("testing.TestCxxKwOnly")
class _TestCxxKwOnly(Object):
    x: int
    y: int
    z: int
    w: int


@c_class("testing.TestCxxAutoInit")
class _TestCxxAutoInit(Object):
    a: int
    b: int
    c: int
    d: int


@c_class("testing.TestCxxAutoInitSimple")
class _TestCxxAutoInitSimple(Object):
    x: int
    y: int


@c_class("testing.TestCxxAutoInitAllInitOff")
class _TestCxxAutoInitAllInitOff(Object):
    x: int
    y: int
    z: int


@c_class("testing.TestCxxAutoInitKwOnlyDefaults")
class _TestCxxAutoInitKwOnlyDefaults(Object):
    p_required: int
    p_default: int
    k_required: int
    k_default: int
    hidden: int


@c_class("testing.TestCxxNoAutoInit", init=False)
class _TestCxxNoAutoInit(Object):
    x: int
    y: int


@c_class("testing.TestCxxAutoInitParent")
class _TestCxxAutoInitParent(Object):
    parent_required: int
    parent_default: int


@c_class("testing.TestCxxAutoInitChild")
class _TestCxxAutoInitChild(_TestCxxAutoInitParent):
    child_required: int
    child_kw_only: int
