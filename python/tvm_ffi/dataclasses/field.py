# SPDX-License-Identifier: Apache-2.0
"""What one field of a class says about itself.

>>> from tvm_ffi.dataclasses import field
>>> spec = field(default=3, compare=False)
>>> spec.default, spec.compare, spec.init
(3, False, True)
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ..core import MISSING, TypeSchema

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform

__all__ = ["KW_ONLY", "MISSING", "Field", "TypeSchema", "field", "init_property"]

_T = TypeVar("_T")
_STRUCTURAL_EQ = (None, "def", "def-pattern", "def-simple", "ignore")


def _keep_value(value: Any) -> Any:
    """Return the value unchanged: the `converter` of every field, there for type checkers."""
    return value


class Field:
    """Description of a field; `field` makes one for a class body.

    The defaults are those of the low-level registration, in which a field takes part in comparison
    only if it says so. `metadata` is for the user. Other keyword arguments are kept in
    `extra_kwargs` for a hook of the class, which has to take them out (see `py_class`).

    >>> from tvm_ffi.dataclasses import Field
    >>> Field("x").compare
    False
    """

    __slots__ = (
        "_ty_schema",
        "compare",
        "converter",
        "default",
        "default_factory",
        "doc",
        "extra_kwargs",
        "frozen",
        "hash",
        "init",
        "kw_only",
        "metadata",
        "name",
        "repr",
        "structural_eq",
        "type",
    )

    def __init__(
        self,
        name: str | None = None,
        _ty_schema: Any = None,
        *,
        default: Any = MISSING,
        default_factory: Any = MISSING,
        frozen: bool = False,
        init: bool = True,
        repr: bool = True,
        hash: bool | None = True,
        compare: bool = False,
        kw_only: bool | None = False,
        metadata: Mapping[Any, Any] | None = None,
        structural_eq: str | None = None,
        doc: str | None = None,
        converter: Callable[[Any], Any] = _keep_value,
        **extra_kwargs: Any,
    ) -> None:
        if default is not MISSING and default_factory is not MISSING:
            raise ValueError("cannot specify both default and default_factory")
        if default_factory is not MISSING and not callable(default_factory):
            kind = type(default_factory).__name__
            raise TypeError(f"default_factory must be a callable, got {kind}")
        if structural_eq not in _STRUCTURAL_EQ:
            raise ValueError(
                f"structural_eq must be one of {list(_STRUCTURAL_EQ)}, got {structural_eq!r}"
            )
        self.name = name
        self._ty_schema = _ty_schema
        self.default = default
        self.default_factory = default_factory
        self.frozen = frozen
        self.init = init
        self.repr = repr
        self.hash = hash
        self.compare = compare
        self.kw_only = kw_only
        self.metadata = dict(metadata) if metadata is not None else {}
        self.extra_kwargs = extra_kwargs
        self.structural_eq = structural_eq
        self.doc = doc
        self.converter = converter
        self.type: Any = None

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"Field({shown})"

    def _copy(self) -> Field:
        result = Field.__new__(Field)
        for name in self.__slots__:
            setattr(result, name, getattr(self, name))
        result.metadata = dict(self.metadata)
        result.extra_kwargs = dict(self.extra_kwargs)
        return result

    __copy__ = _copy


def field(
    *,
    default: Any = MISSING,
    default_factory: Any = MISSING,
    frozen: bool = False,
    init: bool = True,
    repr: bool = True,
    hash: bool | None = None,
    compare: bool = True,
    kw_only: bool | None = None,
    metadata: Mapping[Any, Any] | None = None,
    structural_eq: str | None = None,
    doc: str | None = None,
    converter: Callable[[Any], Any] = _keep_value,
    **extra_kwargs: Any,
) -> Any:
    """Say more about a field of a class body than its annotation can.

    `converter` is for type checkers, which take its parameter for the type of the constructor's. It
    is kept and never called: values are converted to the type of the annotation.

    >>> import tvm_ffi
    >>> from tvm_ffi.dataclasses import field, py_class
    >>> @py_class("doc.field.Node")
    ... class Node(tvm_ffi.Object):
    ...     name: str
    ...     children: list[str] = field(default_factory=list, repr=False)
    >>> Node("a")
    doc.field.Node(name="a")
    >>> Node("a").children is Node("a").children
    False
    """
    return Field(
        default=default,
        default_factory=default_factory,
        frozen=frozen,
        init=init,
        repr=repr,
        hash=hash,
        compare=compare,
        kw_only=kw_only,
        metadata=metadata,
        structural_eq=structural_eq,
        doc=doc,
        converter=converter,
        **extra_kwargs,
    )


if not TYPE_CHECKING:

    def dataclass_transform(**kwargs: Any) -> Callable[[_T], _T]:
        """Mark a decorator the way `typing.dataclass_transform` does, on every Python."""

        def mark(decorator: Any) -> Any:
            decorator.__dataclass_transform__ = {
                "eq_default": kwargs.pop("eq_default", True),
                "order_default": kwargs.pop("order_default", False),
                "kw_only_default": kwargs.pop("kw_only_default", False),
                "frozen_default": kwargs.pop("frozen_default", False),
                "field_specifiers": kwargs.pop("field_specifiers", ()),
                "kwargs": kwargs,
            }
            return decorator

        return mark


def _evaluated_annotations(obj: Any) -> dict[str, Any]:
    """Return the annotations of a class or function itself, names that do not exist yet kept."""
    if sys.version_info >= (3, 14):
        import annotationlib

        return dict(annotationlib.get_annotations(obj, format=annotationlib.Format.FORWARDREF))
    return dict(
        vars(obj).get("__annotations__") or {} if isinstance(obj, type) else obj.__annotations__
    )


class init_property(Generic[_T]):
    """A field computed once, when the object is constructed, and stored.

    >>> import tvm_ffi
    >>> from tvm_ffi.dataclasses import init_property, py_class
    >>> @py_class("doc.init_property.Rect")
    ... class Rect(tvm_ffi.Object):
    ...     width: int
    ...     height: int
    ...     @init_property
    ...     def area(self) -> int:
    ...         return self.width * self.height
    >>> Rect(2, 3).area
    6
    """

    def __init__(self, func: Callable[[Any], _T]) -> None:
        self.func = func
        self.name: str | None = None
        self._return_annotation = _evaluated_annotations(func).get("return", Any)
        self.__doc__ = func.__doc__

    def __set_name__(self, owner: Any, name: str) -> None:
        self.name = name
        annotations = _evaluated_annotations(owner)
        annotations.setdefault(name, self._return_annotation)
        owner.__annotations__ = annotations

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self
