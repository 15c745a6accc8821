# SPDX-License-Identifier: Apache-2.0
"""Python classes of types that C++ defines.

>>> import tvm_ffi
>>> from tvm_ffi.dataclasses import c_class
>>> @c_class("testing.TestCxxAutoInitSimple", eq=True)
... class Point(tvm_ffi.Object):
...     x: int
...     y: int
>>> Point(1, y=2) == Point(1, 2)
True
"""

from __future__ import annotations

import typing
from collections.abc import Callable
from typing import Any

from .. import core
from .._dunder import _install_dataclass_dunders
from ..registry import (
    _add_class_attrs,
    _check_is_class,
    _register_class,
    _warn_missing_field_annotations,
)
from .field import Field, _keep_value, dataclass_transform, field

__all__ = ["Field", "c_class", "field"]

_T = typing.TypeVar("_T", bound=type)

# What the type table may hold for a type besides its fields and methods.
_HOOK_NAMES = (
    "__ffi_repr__",
    "__ffi_hash__",
    "__ffi_eq__",
    "__ffi_compare__",
    "__ffi_convert__",
    "__ffi_convert_type_schema__",
    "__any_hash__",
    "__any_equal__",
    "__s_equal__",
    "__s_hash__",
    "__s_visit__",
    "__s_mutate__",
    "__s_maybe_inplace_mutate__",
    "__data_to_json__",
    "__data_from_json__",
)


@dataclass_transform(
    eq_default=False,
    order_default=False,
    field_specifiers=(Field, field),
    converter=_keep_value,  # type: ignore[literal-required]
)
def c_class(
    type_key: str,
    *,
    frozen: bool = False,
    init: bool = True,
    repr: bool = True,
    eq: bool = False,
    order: bool = False,
    unsafe_hash: bool = False,
    match_args: bool = True,
) -> Callable[[_T], _T]:
    """Make the decorated class the class of a type that exists in the type table.

    Fields and methods come from the type table; annotations are for readers and type checkers.
    With `frozen` the fields this type declares cannot be assigned. What the class body defines is
    never replaced.

    >>> import tvm_ffi
    >>> from tvm_ffi.dataclasses import c_class
    >>> @c_class("testing.TestCxxAutoInitSimple", frozen=True)
    ... class Point(tvm_ffi.Object):
    ...     x: int
    ...     y: int
    >>> Point(1, 2).x = 3
    Traceback (most recent call last):
    AttributeError: field `x` of `testing.TestCxxAutoInitSimple` is read-only
    """

    def decorate(cls: Any) -> Any:
        _check_is_class(cls, f"c_class({type_key!r})")
        for name, value in list(vars(cls).items()):
            if isinstance(value, Field):
                delattr(cls, name)
        shadowed = set(vars(cls))
        return _register_class(cls, type_key, lambda cls, info: complete(cls, info, shadowed))

    def complete(cls: Any, info: core.TypeInfo, shadowed: set[str]) -> None:
        _warn_missing_field_annotations(cls, info, stacklevel=6)
        _attach_field_objects(cls, info, frozen=frozen)
        if frozen:
            for type_field in info.fields or ():
                if type_field.name not in shadowed:
                    type_field._install(cls)
        _add_class_attrs(cls, info, _HOOK_NAMES)
        _install_dataclass_dunders(
            cls,
            init=init,
            repr=repr,
            eq=eq,
            order=order,
            unsafe_hash=unsafe_hash,
            match_args=match_args,
        )
        cls.__ffi_is_dataclass__ = True

    return decorate


def _attach_field_objects(cls: Any, type_info: core.TypeInfo, *, frozen: bool = False) -> None:
    """Describe each field that the type itself declares by a `Field`, as `fields` returns it."""
    hints: dict[str, Any]
    try:
        hints = typing.get_type_hints(cls)
    except Exception:
        hints = {}  # annotations may name what only a type checker imports
    for type_field in type_info.fields or ():
        if frozen:
            type_field.frozen = True
        described = Field(
            type_field.name,
            type_field.ty,
            frozen=type_field.frozen,
            init=type_field.c_init,
            repr=type_field.c_repr,
            hash=type_field.c_hash,
            compare=type_field.c_compare,
            kw_only=type_field.c_kw_only,
            structural_eq=type_field.c_structural_eq,
            doc=type_field.doc,
        )
        described.default = type_field.c_default
        described.default_factory = type_field.c_default_factory
        described.type = hints.get(type_field.name)
        type_field.dataclass_field = described
