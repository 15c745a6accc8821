# SPDX-License-Identifier: Apache-2.0
"""Turn dataclasses into tuples, as functions of other languages take them.

>>> from dataclasses import dataclass
>>> from tvm_ffi.utils.unpack_dataclass import unpack_dataclass_to_tuple
>>> @dataclass
... class Point:
...     x: int
...     y: int
>>> unpack_dataclass_to_tuple({"points": [Point(1, 2), Point(3, 4)]})
{'points': [(1, 2), (3, 4)]}

For every class a function is compiled once that reads the fields one by one. Which fields need
looking into is decided from the annotations (the schema), where these say it.
"""

from __future__ import annotations

import dataclasses
import keyword
import threading
import types
import typing
import weakref
from collections.abc import Callable
from typing import Any, Literal, Union

__all__ = ["unpack_dataclass_to_tuple"]

# Per field: None is a leaf, a dict a dataclass of that schema, "unpack" is decided at run time.
_Schema = dict[str, Any]
_UNPACK: Literal["unpack"] = "unpack"

_LEAVES = (int, float, str, bool, bytes, complex, type(None), None, Ellipsis)
_CONTAINERS = (tuple, dict, set, frozenset)


class _Converters(threading.local):
    """What was compiled, one table per thread, by the id of the class. A class may go away."""

    def __init__(self) -> None:
        self.by_id: dict[int, tuple[Callable[[Any], Any], weakref.ref[type]]] = {}

    def add(self, cls: type) -> Callable[[Any], Any]:
        """Make the converter of a class, and forget it with the class."""
        converter, table, key = _converter_of(cls), self.by_id, id(cls)
        table[key] = converter, weakref.ref(cls, lambda _: table.pop(key, None))
        return converter


_converters = _Converters()


# ---- schemas ------------------------------------------------------------------------------------


def _is_leaf(annotation: Any) -> bool:
    """Return whether no value of this type contains a dataclass, list or such."""
    if any(annotation is leaf for leaf in _LEAVES):
        return True
    origin = typing.get_origin(annotation)
    arguments = typing.get_args(annotation)
    if origin in _CONTAINERS or origin is Union or isinstance(annotation, types.UnionType):
        return bool(arguments) and all(map(_is_leaf, arguments))
    return False


def _is_dataclass_type(cls: Any) -> bool:
    return isinstance(cls, type) and dataclasses.is_dataclass(cls)


def _extract_dataclass_to_tuple_schema(cls: type, _met: set[type] | None = None) -> dict[str, Any]:
    """Return the schema of a dataclass: what to do with each field."""
    if not _is_dataclass_type(cls):
        raise TypeError(f"Expected a dataclass class, got {cls!r}")
    try:
        hints = typing.get_type_hints(cls)
    except Exception:  # a name that is not there, or not yet
        hints = {}
    met = set() if _met is None else _met
    met.add(cls)
    schema: dict[str, Any] = {}
    for field in dataclasses.fields(cls):
        annotation = hints.get(field.name, field.type)
        if _is_leaf(annotation):
            schema[field.name] = None
        elif _is_dataclass_type(annotation) and annotation not in met:
            schema[field.name] = _extract_dataclass_to_tuple_schema(annotation, met)
        else:
            schema[field.name] = _UNPACK
    return schema


def _validate_dataclass_to_tuple_schema(schema: Any) -> None:
    """Raise unless the fields of a schema are names: they become the text of a function."""
    if not isinstance(schema, dict):
        raise TypeError(f"DataclassToTupleSchema must be a dict, got {type(schema).__name__}")
    for name, value in schema.items():
        if not isinstance(name, str):
            raise TypeError(f"Schema field name must be a string, got {type(name).__name__}")
        if not name.isidentifier():
            raise ValueError(f"Schema field name {name!r} is not a valid Python identifier")
        if keyword.iskeyword(name):
            raise ValueError(f"Schema field name {name!r} is a Python keyword")
        if isinstance(value, dict):
            _validate_dataclass_to_tuple_schema(value)


# ---- conversion ---------------------------------------------------------------------------------


def _compile_converter(cls: type) -> Callable[[Any], tuple[Any, ...]]:
    schema = _extract_dataclass_to_tuple_schema(cls)
    _validate_dataclass_to_tuple_schema(schema)
    # Annotations are a promise that nobody checks: a field with a schema of its own may hold a
    # subclass or None, so it is looked at as well.
    items = [
        f"x.{name}" if value is None else f"unpack(x.{name})" for name, value in schema.items()
    ]
    text = f"def convert(x): return ({''.join(f'{item}, ' for item in items)})"
    scope: dict[str, Any] = {"unpack": unpack_dataclass_to_tuple}
    exec(compile(text, f"<fields of {cls.__name__}>", "exec"), scope)
    return scope["convert"]


def _unpack_items(x: Any) -> Any:
    cls = type(x)
    items = [unpack_dataclass_to_tuple(item) for item in x]
    if hasattr(cls, "_fields"):  # a named tuple takes its items one by one
        return cls(*items)
    return items if cls is list else tuple(items) if cls is tuple else cls(items)


def _unpack_dict(x: Any) -> Any:
    return {key: unpack_dataclass_to_tuple(value) for key, value in x.items()}


def _unchanged(x: Any) -> Any:
    return x


def _converter_of(cls: type) -> Callable[[Any], Any]:
    if dataclasses.is_dataclass(cls):
        return _compile_converter(cls)
    if issubclass(cls, (list, tuple)):
        return _unpack_items
    if issubclass(cls, dict):
        return _unpack_dict
    return _unchanged


_BUILTIN: dict[type, Callable[[Any], Any]] = {
    **dict.fromkeys((int, float, str, bool, bytes, complex, type(None)), _unchanged),
    list: _unpack_items,
    tuple: _unpack_items,
    dict: _unpack_dict,
}


def unpack_dataclass_to_tuple(x: Any) -> Any:
    """Return `x` with every dataclass in it, at any depth, replaced by the tuple of its fields.

    Lists, tuples and dicts are copied; named tuples keep their type. Anything else is returned as
    it is.

    >>> from dataclasses import dataclass
    >>> from tvm_ffi.utils.unpack_dataclass import unpack_dataclass_to_tuple
    >>> @dataclass
    ... class Node:
    ...     value: int
    ...     next: "Node | None" = None
    >>> unpack_dataclass_to_tuple(Node(1, Node(2)))
    (1, (2, None))
    """
    cls = type(x)
    converter = _BUILTIN.get(cls)
    if converter is None:
        found = _converters.by_id.get(id(cls))
        converter = _converters.add(cls) if found is None else found[0]
    return converter(x)
