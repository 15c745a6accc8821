# SPDX-License-Identifier: Apache-2.0
"""Python classes of the types in the testing library."""

from __future__ import annotations

from .. import _dunder, _ffi_api, core
from .. import registry as _registry
from . import _ffi_api as _testing_api

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, ClassVar

__all__ = [
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
    "create_object",
    "make_unregistered_object",
]

_HOOKS = (
    "__ffi_hash__",
    "__ffi_eq__",
    "__ffi_compare__",
    "__ffi_repr__",
    "__ffi_convert__",
)


def _cxx_class(
    type_key: str,
    *,
    init: bool = True,
    eq: bool = False,
    order: bool = False,
    unsafe_hash: bool = False,
) -> Callable[[Any], Any]:
    """Make a class the view of a C++ type, with constructor, comparison and copies."""

    def decorate(cls: Any) -> Any:
        cls = _registry.register_object(type_key, init=False)(cls)
        _registry._add_class_attrs(cls, cls.__tvm_ffi_type_info__, _HOOKS)
        _dunder._install_dataclass_dunders(
            cls, init=init, repr=True, eq=eq, order=order, unsafe_hash=unsafe_hash
        )
        return cls

    return decorate


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
    return _testing_api.make_unregistered_object()


def add_one(x: int) -> int:
    """Add one in C++."""
    return _testing_api.add_one(x)


@_cxx_class("testing.TestObjectBase")
class TestObjectBase(core.Object):
    """Three fields with defaults, one of them read-only, and a method."""

    __test__ = False

    v_i64: int
    v_f64: float
    v_str: str


@_cxx_class("testing.TestObjectDerived")
class TestObjectDerived(TestObjectBase):
    """Adds containers to its base."""

    __test__ = False

    v_map: Mapping[Any, Any]
    v_array: Sequence[Any]


@_cxx_class("testing.TestObjectPtrHolder")
class TestObjectPtrHolder(core.Object):
    """Holds one object that must be there and one that may be."""

    __test__ = False

    value: TestObjectBase
    optional_value: TestObjectBase | None


@_cxx_class("testing.TestIntPair")
class TestIntPair(core.Object):
    """Two read-only integers and their sum."""

    __test__ = False

    a: int
    b: int


@_cxx_class("testing.TestFrozenCxx")
class TestFrozenCxx(core.Object):
    """A type without reflection."""

    __test__ = False

    value: int
    tag: str


@_cxx_class("testing.TestNonCopyable")
class TestNonCopyable(core.Object):
    """A type that cannot be copied."""

    __test__ = False

    value: int


@_cxx_class("testing.TestCompare")
class TestCompare(core.Object):
    """A field that comparison ignores."""

    __test__ = False

    key: int
    name: str
    ignored_field: int


@_cxx_class("testing.TestHash")
class TestHash(core.Object):
    """A field that hashing ignores."""

    __test__ = False

    key: int
    name: str
    hash_ignored: int


@_cxx_class("testing.TestCustomHash")
class TestCustomHash(core.Object):
    """Hashes by its key alone."""

    __test__ = False

    key: int
    label: str


@_cxx_class("testing.TestCustomCompare")
class TestCustomCompare(core.Object):
    """Compares and hashes by its key alone."""

    __test__ = False

    key: int
    label: str


@_cxx_class("testing.TestEqWithoutHash")
class TestEqWithoutHash(core.Object):
    """Compares by its key and cannot be hashed."""

    __test__ = False

    key: int
    label: str


@_cxx_class("testing.SchemaAllTypes")
class _SchemaAllTypes:
    """One field of every kind; the class is no wrapper, so objects come back as another one."""

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


@_cxx_class("testing.TestCxxClassBase")
class _TestCxxClassBase(core.Object):
    not_field_1 = 1
    not_field_2: ClassVar[int] = 2

    v_i64: int
    v_i32: int

    def __init__(self, v_i64: int, v_i32: int) -> None:
        self.__ffi_init__(v_i64 + 1, v_i32 + 2)


@_cxx_class("testing.TestCxxClassDerived", eq=True, order=True, unsafe_hash=True)
class _TestCxxClassDerived(_TestCxxClassBase):
    v_f64: float
    v_f32: float


@_cxx_class("testing.TestCxxClassDerivedDerived")
class _TestCxxClassDerivedDerived(_TestCxxClassDerived):
    v_str: str
    v_bool: bool


@_cxx_class("testing.TestCxxInitSubset")
class _TestCxxInitSubset(core.Object):
    required_field: int
    optional_field: int
    note: str


@_cxx_class("testing.TestCxxKwOnly")
class _TestCxxKwOnly(core.Object):
    x: int
    y: int
    z: int
    w: int


@_cxx_class("testing.TestCxxAutoInit")
class _TestCxxAutoInit(core.Object):
    a: int
    b: int
    c: int
    d: int


@_cxx_class("testing.TestCxxAutoInitSimple")
class _TestCxxAutoInitSimple(core.Object):
    x: int
    y: int


@_cxx_class("testing.TestCxxAutoInitAllInitOff")
class _TestCxxAutoInitAllInitOff(core.Object):
    x: int
    y: int
    z: int


@_cxx_class("testing.TestCxxAutoInitKwOnlyDefaults")
class _TestCxxAutoInitKwOnlyDefaults(core.Object):
    p_required: int
    p_default: int
    k_required: int
    k_default: int
    hidden: int


@_cxx_class("testing.TestCxxNoAutoInit", init=False)
class _TestCxxNoAutoInit(core.Object):
    x: int
    y: int


@_cxx_class("testing.TestCxxAutoInitParent")
class _TestCxxAutoInitParent(core.Object):
    parent_required: int
    parent_default: int


@_cxx_class("testing.TestCxxAutoInitChild")
class _TestCxxAutoInitChild(_TestCxxAutoInitParent):
    child_required: int
    child_kw_only: int
