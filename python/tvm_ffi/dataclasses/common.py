# SPDX-License-Identifier: Apache-2.0
"""Functions over instances and classes of `c_class` and `py_class`.

>>> from tvm_ffi import testing
>>> from tvm_ffi.dataclasses import asdict
>>> asdict(testing.TestIntPair(1, 2))
{'a': 1, 'b': 2}
"""

from __future__ import annotations

import copy
import inspect
from collections import namedtuple
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from .. import core
from .._dunder import _chain_fields
from ..container import Array, Dict, List, Map

if TYPE_CHECKING:
    from .field import Field

__all__ = ["asdict", "astuple", "fields", "is_dataclass", "replace"]

_T = TypeVar("_T")
_ATOMIC = frozenset(
    {bool, bytes, complex, float, int, str, type(None), type(Ellipsis), type(NotImplemented)}
)


def is_dataclass(obj: Any) -> bool:
    """Say whether `obj` is a class made by `c_class` or `py_class`, or an instance of one.

    >>> from tvm_ffi import testing
    >>> is_dataclass(testing.TestIntPair), is_dataclass(testing.TestIntPair(1, 2)), is_dataclass(3)
    (True, True, False)
    """
    cls = obj if isinstance(obj, type) else type(obj)
    return getattr(cls, "__ffi_is_dataclass__", False) is True


def fields(obj_or_cls: Any) -> tuple[Field, ...]:
    """Return the fields of a class or of an instance's class, ancestors' first.

    >>> from tvm_ffi import testing
    >>> [f.name for f in fields(testing.TestIntPair)]
    ['a', 'b']
    """
    if not is_dataclass(obj_or_cls):
        kind = type(obj_or_cls).__name__
        raise TypeError(
            f"fields() argument must be a c_class or py_class type or instance, got {kind}"
        )
    cls: Any = obj_or_cls if isinstance(obj_or_cls, type) else type(obj_or_cls)
    found = _chain_fields(cls.__tvm_ffi_type_info__)
    return tuple(f.dataclass_field for f in found if f.dataclass_field is not None)


def replace(obj: _T, /, **changes: Any) -> _T:
    """Return a shallow copy of `obj` with some fields changed, read-only ones included.

    >>> from tvm_ffi import testing
    >>> replace(testing.TestIntPair(1, 2), b=5).sum()
    6
    """
    if isinstance(obj, type) or not hasattr(obj, "__replace__"):
        raise TypeError("replace() should be called on c_class / py_class instances")
    return obj.__replace__(**changes)


def asdict(obj: Any, *, dict_factory: Callable[[list[tuple[Any, Any]]], Any] = dict) -> Any:
    """Return the fields of an instance as a dict; what is nested in it is converted too.

    >>> from tvm_ffi import testing
    >>> pair = testing.TestIntPair(1, 2)
    >>> asdict(testing.TestObjectDerived({"k": pair}, [pair])).get("v_array")
    [{'a': 1, 'b': 2}]
    """
    if isinstance(obj, type) or not is_dataclass(obj):
        raise TypeError("asdict() should be called on c_class / py_class instances")
    return _asdict_inner(obj, dict_factory)


def astuple(obj: Any, *, tuple_factory: Callable[[list[Any]], Any] = tuple) -> Any:
    """Return the values of the fields as a tuple; what is nested in them is converted too.

    >>> from tvm_ffi import testing
    >>> astuple(testing.TestIntPair(1, 2))
    (1, 2)
    """
    if isinstance(obj, type) or not is_dataclass(obj):
        raise TypeError("astuple() should be called on c_class / py_class instances")
    return _astuple_inner(obj, tuple_factory)


def _field_values(obj: Any) -> list[tuple[str, Any]]:
    return [(f.name, getattr(obj, f.name)) for f in fields(obj)]  # type: ignore[misc, arg-type]


def _asdict_inner(obj: Any, dict_factory: Callable[[list[tuple[Any, Any]]], Any]) -> Any:
    def convert(value: Any) -> Any:
        return _asdict_inner(value, dict_factory)

    if isinstance(obj, (Map, Dict)):
        return dict_factory([(convert(k), convert(v)) for k, v in obj.items()])
    if isinstance(obj, core.CObject) and is_dataclass(obj):
        return dict_factory([(name, convert(value)) for name, value in _field_values(obj)])
    return _convert_plain(obj, convert)


def _astuple_inner(obj: Any, tuple_factory: Callable[[list[Any]], Any]) -> Any:
    def convert(value: Any) -> Any:
        return _astuple_inner(value, tuple_factory)

    if isinstance(obj, (Map, Dict)):
        return {convert(k): convert(v) for k, v in obj.items()}
    if isinstance(obj, core.CObject) and is_dataclass(obj):
        return tuple_factory([convert(value) for _, value in _field_values(obj)])
    return _convert_plain(obj, convert)


def _convert_plain(obj: Any, convert: Callable[[Any], Any]) -> Any:
    """Copy a value that is neither an FFI dataclass nor an FFI map."""
    cls = type(obj)
    if cls in _ATOMIC:
        return obj
    if isinstance(obj, (Array, List)):
        return [convert(item) for item in obj]
    # A Shape is a tuple that only its own constructor can make; it is immutable anyway.
    if isinstance(obj, core.PyNativeObject):
        return copy.deepcopy(obj)
    if isinstance(obj, (list, tuple)):
        if hasattr(cls, "_fields"):
            return cls(*[convert(item) for item in obj])
        return cls([convert(item) for item in obj])  # type: ignore[call-arg]
    if isinstance(obj, dict):
        return _convert_dict(obj, convert)
    return copy.deepcopy(obj)


def _convert_dict(obj: Any, convert: Callable[[Any], Any]) -> Any:
    cls = type(obj)
    pairs = [(convert(k), convert(v)) for k, v in obj.items()]
    if not hasattr(cls, "default_factory"):
        return cls(pairs)
    result = cls(obj.default_factory)
    result.update(pairs)
    return result


def _make_namedtuple(typename: str, fields: Iterable[Any]) -> type[tuple[Any, ...]]:
    """Make a named tuple whose values are converted by the schemas of its fields.

    A field is a `Field`, a field of a type, or a pair of a name and an annotation or schema. Every
    value must be given.
    """
    schemas = dict(map(_name_and_schema, fields))
    make_class: Any = namedtuple  # for type checkers: the fields are not known to them
    cls = make_class(typename, schemas)
    plain_new, plain_make = cls.__new__, cls._make.__func__

    def convert(values: Any) -> Any:
        converted = []
        for value, (name, schema) in zip(values, schemas.items(), strict=True):
            try:
                converted.append(core._to_py_class_value(schema.convert(value)))
            except TypeError as error:
                raise TypeError(f"{typename}.{name}: {error}") from error
        return tuple.__new__(type(values), converted)

    def __new__(_cls: Any, /, *args: Any, **kwargs: Any) -> Any:
        return convert(plain_new(_cls, *args, **kwargs))

    def _make(_cls: Any, values: Iterable[Any]) -> Any:
        return convert(plain_make(_cls, values))

    __new__.__signature__ = inspect.signature(plain_new)  # type: ignore[attr-defined]
    cls.__new__ = __new__
    cls._make = classmethod(_make)  # _replace calls it
    return cls


def _name_and_schema(described: Any) -> tuple[str, core.TypeSchema]:
    if isinstance(described, tuple):
        name, schema = described
    else:
        name = described.name
        schema = getattr(described, "_ty_schema", None) or getattr(described, "ty", None)
        if schema is None:
            schema = described.type
    if not isinstance(schema, core.TypeSchema):
        schema = core.TypeSchema.from_annotation(schema)
    return name, schema
