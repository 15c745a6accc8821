# SPDX-License-Identifier: Apache-2.0
"""Reflected methods on classes, among them operators: ``.def("__eq__", ...)``."""

from __future__ import annotations

import functools
import sys

from .type_members import TypeMethod, _schema_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

core: Any = sys.modules["tvm_ffi.core"]

_COMPARISONS = {"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"}
# Every object has these, so a type that registers one means to replace it.
_REPLACED = {*_COMPARISONS, "__hash__", "__repr__", "__str__", "__format__"}


def may_install(cls: type, name: str) -> bool:
    """Whether a reflected method hides nothing but that of an ancestor, which it overrides."""
    for base in cls.__mro__:
        if name in base.__dict__:
            if base in (object, core.CObject, core.Object):
                return name in _REPLACED
            return base is not cls and _is_reflected(base.__dict__[name])
    return True


def _is_reflected(value: Any) -> bool:
    value = getattr(value, "__func__", value)  # of static and class methods
    if isinstance(value, (core.MethodDescriptor, core.Function)):
        return True
    return value is None or value is object.__ne__ or hasattr(value, "__tvm_ffi_comparison__")


def install_methods(cls: Any, methods: list[Any]) -> None:
    """Put methods on a class; ``__ne__`` and ``__hash__`` follow ``__eq__`` as Python has it."""
    for method in methods:
        function = method.as_callable(cls)
        if method.name in _COMPARISONS and not method.is_static:
            function = _comparison(method, function)
        setattr(cls, method.name, function)
    if any(method.name == "__eq__" for method in methods):
        if "__ne__" not in cls.__dict__:
            cls.__ne__ = object.__ne__  # the opposite of __eq__
        if "__hash__" not in cls.__dict__:
            cls.__hash__ = None


def _comparison(method: TypeMethod, function: Any) -> Any:
    """Let Python go on with the other operand where C++ does not take it."""

    @functools.cache
    def accepted() -> Any:
        schema = _schema_of(method.metadata)
        groups = schema.named_args if schema is not None else None
        parameters = (groups or {}).get("params", ())
        return parameters[1] if len(parameters) == 2 else None  # after the object

    @functools.wraps(function)
    def compare(self: Any, other: Any) -> Any:
        schema = accepted()
        if schema is not None:
            try:
                schema.check_value(other)
            except TypeError:
                return NotImplemented
        return function(self, other)

    compare.__tvm_ffi_comparison__ = True  # type: ignore[attr-defined]
    return compare
