# SPDX-License-Identifier: Apache-2.0
"""`TypeSchema`: what an annotation or a registered type says about a value, and conversion to it.

Part of ``tvm_ffi.core``; use it from there:

>>> from tvm_ffi.core import TypeSchema
>>> schema = TypeSchema.from_annotation(list[dict[str, int]])
>>> schema
List[Dict[str, int]]
>>> schema.check_value([{"a": "2"}])  # doctest: +ELLIPSIS
Traceback (most recent call last):
TypeError: ...: element [0]: value for key 'a': expected int, got str
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # typing costs a third of the import time, and only checkers need it
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

core: Any = sys.modules["tvm_ffi.core"]

_abi: Any = core._abi

# Type indices of origins that are not types of the table.
_ANY: int = _abi.kTVMFFIAny
_NO_TYPE = -2
_UNKNOWN = -3
_OBJECT_BEGIN: int = _abi.kTVMFFIStaticObjectBegin

_ORIGIN_TO_TYPE_INDEX: dict[str, int] = {
    "None": _abi.kTVMFFINone,
    "int": _abi.kTVMFFIInt,
    "bool": _abi.kTVMFFIBool,
    "float": _abi.kTVMFFIFloat,
    "str": _abi.kTVMFFIStr,
    "bytes": _abi.kTVMFFIBytes,
    "Device": _abi.kTVMFFIDevice,
    "dtype": _abi.kTVMFFIDataType,
    "ctypes.c_void_p": _abi.kTVMFFIOpaquePtr,
    "Tensor": _abi.kTVMFFITensor,
    "Object": _abi.kTVMFFIObject,
    "Callable": _abi.kTVMFFIFunction,
    "Array": _abi.kTVMFFIArray,
    "List": _abi.kTVMFFIList,
    "Map": _abi.kTVMFFIMap,
    "Dict": _abi.kTVMFFIDict,
    "Any": _ANY,
}

# Views and short forms are, for Python, what they are views and short forms of.
_TYPE_INDEX_TO_ORIGIN: dict[int, str] = {
    **{index: origin for origin, index in _ORIGIN_TO_TYPE_INDEX.items()},
    _abi.kTVMFFIDLTensorPtr: "Tensor",
    _abi.kTVMFFIRawStr: "str",
    _abi.kTVMFFIByteArrayPtr: "bytes",
    _abi.kTVMFFIObjectRValueRef: "Object",
    _abi.kTVMFFISmallStr: "str",
    _abi.kTVMFFISmallBytes: "bytes",
    _abi.kTVMFFIBigInt: "int",
}

# Types whose origin does not tell them, so that the schema keeps their key.
_KEPT_TYPE_KEYS: dict[int, str] = {_abi.kTVMFFIBigInt: "ffi.BigInt"}

# Names in JSON schemas, which follow C++, and what Python calls them.
_TYPE_SCHEMA_ORIGIN_CONVERTER: dict[str, str] = {
    "Optional": "Optional",
    "std::optional": "Optional",
    "Variant": "Union",
    "std::variant": "Union",
    "Tuple": "tuple",
    "std::tuple": "tuple",
    "ffi.Function": "Callable",
    "std::function": "Callable",
    "ffi.Array": "Array",
    "std::vector": "Array",
    "ffi.List": "List",
    "ffi.Map": "Map",
    "std::map": "Map",
    "std::unordered_map": "Map",
    "ffi.Dict": "Dict",
    "ffi.OpaquePyObject": "Any",
    "ffi.Object": "Object",
    "ObjectRValueRef": "Object",
    "ffi.Tensor": "Tensor",
    "DLTensor*": "Tensor",
    "void*": "ctypes.c_void_p",
    "TVMFFIByteArray*": "bytes",
    "ffi.SmallBytes": "bytes",
    "ffi.Bytes": "bytes",
    "std::string": "str",
    "const char*": "str",
    "ffi.SmallStr": "str",
    "ffi.String": "str",
    "DataType": "dtype",
    "ffi.BigInt": "int",
}

# (size, alignment, static type index) of a field; any other origin is a pointer to an object.
_ORIGIN_NATIVE_LAYOUT: dict[str, tuple[int, int, int]] = {
    "int": (8, 8, _abi.kTVMFFIInt),
    "float": (8, 8, _abi.kTVMFFIFloat),
    "bool": (1, 1, _abi.kTVMFFIBool),
    "ctypes.c_void_p": (8, 8, _abi.kTVMFFIOpaquePtr),
    "dtype": (4, 2, _abi.kTVMFFIDataType),
    "Device": (8, 4, _abi.kTVMFFIDevice),
    "Any": (16, 8, _ANY),
    "str": (16, 8, _ANY),
    "bytes": (16, 8, _ANY),
    "Optional": (16, 8, _ANY),
    "Union": (16, 8, _ANY),
}

_SEQUENCES = ("list", "Array", "List")
_MAPPINGS = ("dict", "Map", "Dict")
_ACCEPTS_ATTR = "__ffi_convert_type_schema__"


class _ConvertError(Exception):
    """A value does not fit a schema; the text says where and why."""

    @property
    def message(self) -> str:
        """What does not fit."""
        return str(self)


class TypeSchema:
    """The type of a value: an origin such as ``int`` or ``Array`` and the schemas inside it.

    >>> from tvm_ffi.core import TypeSchema
    >>> TypeSchema("Map", (TypeSchema("str"), TypeSchema("int")))
    Map[str, int]
    >>> TypeSchema.from_annotation(int | None).convert(3)
    CAny(int=3)
    """

    origin: str
    args: tuple[TypeSchema, ...] | None = None
    origin_type_index: int = _UNKNOWN
    # What is printed instead of an origin that names no type.
    fallback: TypeSchema | None = None
    # Groups of schemas by name. A Callable has "return" and, if its parameters are known, "params".
    named_args: dict[str, tuple[TypeSchema, ...]] | None = None
    # The type in JSON where the origin does not tell: an `int` that is an ffi.BigInt.
    type_key: str | None = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self,
        origin: str,
        args: Iterable[TypeSchema] | None = None,
        origin_type_index: int = _UNKNOWN,
        fallback: TypeSchema | None = None,
        named_args: Mapping[str, Iterable[TypeSchema]] | None = None,
        type_key: str | None = None,
    ) -> None:
        if not isinstance(origin, str) or not origin:
            raise ValueError("schema type must be a nonempty string")
        self.origin = origin
        self.args = _checked_args(origin, args)
        self.named_args = _checked_groups(named_args)
        if origin == "Callable":
            self.named_args = _groups_of_callable(self.args, self.named_args)
            self.args = ()
        if origin_type_index == _UNKNOWN:
            origin_type_index = _index_of_origin(origin)
        self.origin_type_index = origin_type_index
        self.fallback = fallback
        self.type_key = type_key

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TypeSchema):
            return NotImplemented
        return (
            self.origin == other.origin
            and self.args == other.args
            and self.origin_type_index == other.origin_type_index
            and self.fallback == other.fallback
            and self.named_args == other.named_args
        )

    # ---- from other forms -----------------------------------------------------------------------

    @staticmethod
    def from_json_str(s: str) -> TypeSchema:
        """Return the schema of a JSON text, as registered functions and fields carry it.

        >>> from tvm_ffi.core import TypeSchema
        >>> TypeSchema.from_json_str('{"type": "ffi.Array", "args": [{"type": "int"}]}')
        Array[int]
        """
        import json

        return TypeSchema.from_json_obj(json.loads(s))

    @staticmethod
    def from_json_obj(obj: dict[str, Any]) -> TypeSchema:
        """Return the schema of a parsed JSON object."""
        if not isinstance(obj, dict) or "type" not in obj:
            raise TypeError(f"expected schema dict with 'type' key, got {type(obj).__name__}")
        name = obj["type"]
        if not isinstance(name, str):
            raise TypeError("schema type must be a string")
        origin = _TYPE_SCHEMA_ORIGIN_CONVERTER.get(name, name)
        args: Any = None
        groups = _groups_from_json(obj["named_args"]) if "named_args" in obj else None
        if "args" in obj:
            args = obj["args"] if isinstance(obj["args"], (list, tuple)) else ()
            if origin == "Callable" and len(args) == 2 and isinstance(args[1], list):
                # std::function up to 0.1.14
                groups = _groups_from_json({"return": args[:1], "params": args[1]})
                args = ()
            args = tuple(TypeSchema.from_json_obj(arg) for arg in args if isinstance(arg, dict))
        return TypeSchema(
            origin,
            args,
            fallback=TypeSchema.from_json_obj(obj["fallback"]) if "fallback" in obj else None,
            named_args=groups,
            type_key=name if name in _KEPT_TYPE_KEYS.values() else None,
        )

    @staticmethod
    def _from_maybe_json(value: Any) -> TypeSchema:
        """Return the schema of a schema, a JSON text or a JSON object."""
        if isinstance(value, TypeSchema):
            return value
        if isinstance(value, str):
            return TypeSchema.from_json_str(value)
        if isinstance(value, dict):
            return TypeSchema.from_json_obj(value)
        raise TypeError(
            f"expected TypeSchema, JSON string, or JSON dict, got {type(value).__name__}"
        )

    @staticmethod
    def from_type_index(type_index: int, args: Iterable[TypeSchema] = ()) -> TypeSchema:
        """Return the schema of a type by its index.

        >>> from tvm_ffi.core import TypeSchema
        >>> TypeSchema.from_type_index(71)
        Array[Any]
        """
        origin = _TYPE_INDEX_TO_ORIGIN.get(type_index)
        if origin is None:
            raw = core._raw_type_info(type_index)
            if raw is None:
                raise ValueError(f"type index {type_index} is not registered")
            origin = raw["type_key"]
        return TypeSchema(origin, args, type_index, type_key=_KEPT_TYPE_KEYS.get(type_index))

    @staticmethod
    def from_annotation(annotation: Any) -> TypeSchema:
        """Return the schema of a Python annotation.

        >>> import tvm_ffi
        >>> tvm_ffi.core.TypeSchema.from_annotation(tuple[int, ...])
        Array[int]
        >>> tvm_ffi.core.TypeSchema.from_annotation(tvm_ffi.Map[str, int] | None)
        Map[str, int] | None
        """
        return _from_annotation(annotation)

    # ---- to other forms -------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """Return the schema as a JSON object.

        >>> from tvm_ffi.core import TypeSchema
        >>> TypeSchema("Callable", (TypeSchema("int"), TypeSchema("str"))).to_json()["named_args"]
        {'return': [{'type': 'int'}], 'params': [{'type': 'str'}]}
        """
        result: dict[str, Any] = {"type": self.type_key or self.origin}
        if self.args or (self.origin == "tuple" and self.args is not None):
            result["args"] = [arg.to_json() for arg in self.args]
        if self.named_args is not None:
            result["named_args"] = {
                name: [arg.to_json() for arg in group] for name, group in self.named_args.items()
            }
        if self.fallback is not None:
            result["fallback"] = self.fallback.to_json()
        return result

    def __repr__(self) -> str:
        return self.repr()

    def repr(self, ty_map: Callable[[str], str] | None = None) -> str:
        """Return the schema as an annotation, with `ty_map` applied to every origin."""
        return self._render(ty_map, None)

    def output_repr(self, ty_map: Callable[[str], str] | None = None) -> str:
        """Return the annotation of a value that the FFI returns."""
        return self._render(ty_map, None)

    def input_repr(self, ty_map: Callable[[str], str] | None = None) -> str:
        """Return the annotation of a value that the FFI accepts, with what types convert from."""
        return self._render(ty_map, frozenset())

    def _render(self, ty_map: Callable[[str], str] | None, expanded: frozenset[str] | None) -> str:
        """Render; `expanded` names the types already replaced by what they accept, or is None."""
        if expanded is not None and self.origin not in expanded:
            accepted = self._accepted()
            if accepted is not None:
                return accepted._render(ty_map, expanded | {self.origin})
        if self.fallback is not None and not self._is_known():
            return self.fallback._render(ty_map, expanded)
        name = ty_map(self.origin) if ty_map is not None else self.origin
        args = [arg._render(ty_map, expanded) for arg in self.args or ()]
        if name == "Union":
            return " | ".join(args)
        if name == "Optional":
            return f"{args[0]} | None"
        if name == "Callable":
            return self._render_callable(ty_map, expanded)
        if name == "tuple" and self.args == ():
            return "tuple[()]"
        return f"{name}[{', '.join(args)}]" if args else name

    def _render_callable(
        self, ty_map: Callable[[str], str] | None, expanded: frozenset[str] | None
    ) -> str:
        groups = self.named_args or {"return": self.args[:1] if self.args else ()}
        result = [arg._render(ty_map, expanded) for arg in groups["return"]] or ["Any"]
        if "params" not in groups:
            return f"Callable[..., {result[0]}]"
        params = [arg._render(ty_map, expanded) for arg in groups["params"]]
        return f"Callable[[{', '.join(params)}], {result[0]}]"

    def _is_known(self) -> bool:
        return self.origin in _KIND_OF_ORIGIN or self.origin_type_index >= 0

    def _accepted(self) -> TypeSchema | None:
        """Return what the type says its conversion accepts, or None."""
        if self.origin_type_index < _OBJECT_BEGIN:
            return None
        value = core._lookup_type_attr(self.origin_type_index, _ACCEPTS_ATTR)
        return None if value is None else TypeSchema._from_maybe_json(_plain_json(value))

    def is_subtype_of(self, cls: type) -> bool:
        """Return whether every object of this type is one of the registered class `cls`."""
        info = getattr(cls, "__tvm_ffi_type_info__", None)
        if info is None:
            return cls is core.Object and self.origin_type_index >= _OBJECT_BEGIN
        if self.origin_type_index == info.type_index:
            return True
        raw = core._raw_type_info(self.origin_type_index) if self.origin_type_index >= 0 else None
        return raw is not None and info.type_index in raw["type_ancestors"]

    # ---- values ---------------------------------------------------------------------------------

    @property
    def _converter(self) -> Any:
        # Not a cached_property: before Python 3.12 that has a lock, which a fork may leave taken.
        state = self.__dict__
        found = state.get("_compiled")
        if found is None:
            found = state["_compiled"] = _build_converter(self)
        return found

    def check_value(self, value: Any) -> None:
        """Raise a `TypeError` unless `value` can be converted.

        >>> from tvm_ffi.core import TypeSchema
        >>> TypeSchema("int").check_value("3")
        Traceback (most recent call last):
        TypeError: type check failed for int: expected int, got str
        """
        self._run("check", value)

    def convert(self, value: Any) -> Any:
        """Convert `value`, as a field of this type would; returns the `CAny` that holds the result.

        >>> from tvm_ffi.core import TypeSchema, _to_py_class_value
        >>> _to_py_class_value(TypeSchema("float").convert(1))
        1.0
        """
        return self._run("conversion", value)

    def _run(self, what: str, value: Any) -> Any:
        converter = self._converter
        try:
            return converter.convert(value)
        except _ConvertError as error:
            message = str(error)
        except RecursionError:
            if not _contains_itself(value):
                raise
            message = "the value contains itself"
        raise TypeError(f"type {what} failed for {self!r}: {message}")


def _contains_itself(value: Any) -> bool:
    """Tell whether a value that could not be converted leads back to itself.

    It goes where conversion goes: into lists, tuples and dicts, and to what a value stands for.
    """
    path = [value]
    rest = [_parts(value)]
    on_path = {id(value)}
    seen = {id(value): value}  # holds the values, so that no address is used twice
    while rest:
        for part in rest[-1]:
            if id(part) in on_path:
                return True
            if id(part) not in seen:
                break
        else:
            rest.pop()
            on_path.discard(id(path.pop()))
            continue
        # Values that stand for new ones without end never come back to themselves.
        if len(path) > 2 * sys.getrecursionlimit():
            return False
        path.append(part)
        rest.append(_parts(part))
        on_path.add(id(part))
        seen[id(part)] = part
    return False


def _parts(value: Any) -> Iterator[Any]:
    """Iterate over the values whose conversion is part of the conversion of `value`."""
    if isinstance(value, (list, tuple)):
        return iter(tuple(value))
    if isinstance(value, dict):
        return iter((*value.keys(), *value.values()))
    if hasattr(type(value), "__tvm_ffi_value__") and not isinstance(value, core.CObject):
        try:
            return iter((value.__tvm_ffi_value__(),))
        except Exception:
            pass
    return iter(())


def _groups_from_json(groups: Any) -> dict[str, tuple[TypeSchema, ...]]:
    if not isinstance(groups, dict):
        raise TypeError("named_args must be a map of names to type lists")
    result = {}
    for name, group in groups.items():
        if not isinstance(name, str) or not name or not isinstance(group, list):
            raise TypeError("named_args must map names to type lists")
        if not all(isinstance(arg, dict) for arg in group):
            raise TypeError("named_args lists must contain type schemas")
        result[name] = tuple(TypeSchema.from_json_obj(arg) for arg in group)
    return result


def _checked_groups(
    groups: Mapping[str, Iterable[TypeSchema]] | None,
) -> dict[str, tuple[TypeSchema, ...]] | None:
    if groups is None:
        return None
    if not hasattr(groups, "items"):
        raise TypeError("named_args must be a map of names to type lists")
    checked = {}
    for name, group in groups.items():
        if not isinstance(name, str) or not name:
            raise ValueError("named_args keys must be nonempty strings")
        if not isinstance(group, (list, tuple)):
            raise TypeError("named_args values must be lists of type schemas")
        if not all(isinstance(arg, TypeSchema) for arg in group):
            raise TypeError("named_args values must contain type schemas")
        checked[name] = tuple(group)
    return checked


def _groups_of_callable(
    args: tuple[TypeSchema, ...] | None, groups: dict[str, tuple[TypeSchema, ...]] | None
) -> dict[str, tuple[TypeSchema, ...]] | None:
    """Return the groups of a Callable; None if nothing is known about it.

    In the flat form the first argument is the result; if it is the only one, the parameters are
    unknown.
    """
    if groups is None:
        if not args:
            return None
        return {"return": args[:1], "params": args[1:]} if len(args) > 1 else {"return": args}
    if args or groups.keys() - {"return", "params"}:
        raise ValueError("Callable uses only named return and params groups")
    if len(groups.get("return", ())) != 1:
        raise ValueError("Callable return group must contain exactly one type")
    return groups


def _checked_args(origin: str, args: Iterable[TypeSchema] | None) -> tuple[TypeSchema, ...] | None:
    """Return the arguments of an origin, which must be as many as it takes."""
    if args is None and origin == "tuple":
        return None
    checked = tuple(args) if args is not None else ()
    if not all(isinstance(arg, TypeSchema) for arg in checked):
        raise TypeError("schema arguments must be TypeSchema instances")
    count = len(checked)
    if origin == "Union" and count < 2:
        raise ValueError("Union must have at least two arguments")
    if origin == "Optional" and count != 1:
        raise ValueError("Optional must have exactly one argument")
    if origin in _SEQUENCES:
        if count > 1:
            raise ValueError(f"{origin} must have 0 or 1 argument")
        return checked or (TypeSchema("Any"),)
    if origin in _MAPPINGS:
        if count not in (0, 2):
            raise ValueError(f"{origin} must have 0 or 2 arguments")
        return checked or (TypeSchema("Any"), TypeSchema("Any"))
    return checked


def _index_of_origin(origin: str) -> int:
    if origin in ("Optional", "Union"):
        return _NO_TYPE
    index = _ORIGIN_TO_TYPE_INDEX.get(origin)
    if index is None:
        index = core._object_type_key_to_index(origin)
    return _UNKNOWN if index is None else index


def _plain_json(value: Any) -> Any:
    """Return the Python form of JSON that was stored as a type attribute."""
    if isinstance(value, core.CContainerBase):
        if hasattr(value, "items"):
            return {str(key): _plain_json(item) for key, item in value.items()}
        return [_plain_json(item) for item in value]
    return value


# ---- converters ---------------------------------------------------------------------------------

_KIND_OF_ORIGIN = {
    **{origin: origin for origin in _ORIGIN_TO_TYPE_INDEX},
    "ctypes.c_void_p": "pointer",
    "Object": "object",
    "Union": "Union",
    "Optional": "Optional",
    "tuple": "tuple",
    "list": "List",
    "dict": "Dict",
}
_HINT_OF_ORIGIN = {"list": "List", "dict": "Dict"}


def _build_converter(schema: TypeSchema) -> Any:
    """Compile a schema; an origin that names no type is a `TypeError`."""
    index = schema.origin_type_index
    kind = _KIND_OF_ORIGIN.get(schema.origin)
    if kind is None and 0 <= index < _OBJECT_BEGIN:
        kind = _KIND_OF_ORIGIN.get(_TYPE_INDEX_TO_ORIGIN.get(index, ""))
    if kind is None:
        if index < _OBJECT_BEGIN:
            raise TypeError(f"unknown TypeSchema origin: {schema.origin!r}")
        return _build_object_converter(schema)
    args = None
    if schema.args is not None:
        args = () if kind == "Callable" else tuple(arg._converter for arg in schema.args)
    # An Object passed by rvalue reference has an index of its own, below those of objects.
    return core._TypeConverter(kind, _hint(schema), max(index, _OBJECT_BEGIN), args)


def _hint(schema: TypeSchema) -> str:
    """Return what messages call the type."""
    if schema.origin == "Union":
        return schema.repr()
    if schema.origin == "Optional" and schema.args:
        return _hint(schema.args[0])
    return _HINT_OF_ORIGIN.get(schema.origin, schema.origin)


def _build_object_converter(schema: TypeSchema) -> Any:
    payload = _payload_schema(schema.origin_type_index)
    if payload is None:
        return core._TypeConverter("object", schema.origin, schema.origin_type_index, ())
    index = schema.origin_type_index

    def member(value: Any) -> Any:
        state = core._lookup_type_attr(index, "__ffi_enum__")
        return None if state is None else state.indexes.get(value)

    args = (payload._converter,)
    return core._TypeConverter("object", schema.origin, index, args, member)


def _payload_schema(type_index: int) -> TypeSchema | None:
    """Return the schema of the payload by which members of an enum type are found, or None."""
    enums = sys.modules.get("tvm_ffi.dataclasses.enum")
    info = core._type_index_to_type_info(type_index)
    if enums is None or info is None or info.type_cls is None:
        return None
    for name, payload in (("IntEnum", "int"), ("StrEnum", "str")):
        base = getattr(enums, name, None)
        if base is not None and base in info.type_cls.__mro__:
            return TypeSchema(payload)
    return None


# ---- annotations --------------------------------------------------------------------------------


def _from_annotation(annotation: Any) -> TypeSchema:
    import typing

    if annotation is None or annotation is type(None):
        return TypeSchema("None")
    if annotation is typing.Any:
        return TypeSchema("Any")
    origin = typing.get_origin(annotation)
    if origin is None:
        return _from_class(annotation)
    args = typing.get_args(annotation)
    if _is_union(origin):
        return _from_union(args)
    if origin is list:
        if len(args) > 1:
            raise TypeError(f"list takes at most 1 type argument, got {len(args)}")
        return TypeSchema("List", map(_from_annotation, args))
    if origin is dict:
        if len(args) not in (0, 2):
            raise TypeError(f"dict requires 0 or 2 type arguments, got {len(args)}")
        return TypeSchema("Dict", map(_from_annotation, args))
    if origin is tuple:
        return _from_tuple(annotation, args)
    if _is_callable_origin(origin):
        return _from_callable(annotation, args)
    if isinstance(origin, type) and issubclass(origin, core.CObject):
        return _from_generic_object(annotation, origin, args)
    raise _no_schema(annotation)


def _no_schema(annotation: Any) -> TypeError:
    return TypeError(f"Cannot convert {annotation!r} to TypeSchema")


def _is_union(origin: Any) -> bool:
    import types
    import typing

    return origin is typing.Union or origin is types.UnionType


def _is_callable_origin(origin: Any) -> bool:
    import collections.abc

    return origin is collections.abc.Callable


def _from_class(annotation: Any) -> TypeSchema:
    """Return the schema of an annotation without type arguments."""
    import ctypes
    import typing

    if not isinstance(annotation, type):
        if annotation is typing.Callable or _is_callable_origin(annotation):
            return TypeSchema("Callable")
        raise _no_schema(annotation)
    for cls, origin in (
        (bool, "bool"),
        (int, "int"),
        (float, "float"),
        (str, "str"),
        (bytes, "bytes"),
        (list, "List"),
        (dict, "Dict"),
        (tuple, "tuple"),
        (ctypes.c_void_p, "ctypes.c_void_p"),
    ):
        if annotation is cls:
            return TypeSchema(origin)
    if _is_callable_origin(annotation):
        return TypeSchema("Callable")
    if issubclass(annotation, core.CObject):
        info = _info_of_class(annotation)
        return TypeSchema.from_type_index(info.type_index)
    for name, origin in _CLASSES_OF_VALUES:
        value_cls = getattr(core, name, None)
        if value_cls is not None and issubclass(annotation, value_cls):
            return TypeSchema(origin)
    if hasattr(annotation, "__dlpack__"):
        return TypeSchema("Tensor")
    raise _no_schema(annotation)


_CLASSES_OF_VALUES = (
    ("String", "str"),
    ("Bytes", "bytes"),
    ("DataType", "dtype"),
    ("_CLASS_DTYPE", "dtype"),
    ("Device", "Device"),
)


def _info_of_class(cls: type) -> Any:
    info = core._type_cls_to_type_info(cls)
    if info is None:
        raise TypeError(f"{cls.__qualname__} is not registered as an FFI type")
    return info


def _from_union(args: tuple[Any, ...]) -> TypeSchema:
    members = [_from_annotation(arg) for arg in args if arg is not type(None)]
    result = members[0] if len(members) == 1 else TypeSchema("Union", members)
    return TypeSchema("Optional", (result,)) if len(members) < len(args) else result


def _from_tuple(annotation: Any, args: tuple[Any, ...]) -> TypeSchema:
    import typing

    if annotation is typing.Tuple:  # noqa: UP006
        return TypeSchema("tuple")
    if args == ((),):  # how typing.Tuple[()] shows its arguments on Python 3.10
        args = ()
    if len(args) == 2 and args[1] is Ellipsis:
        return TypeSchema("Array", (_from_annotation(args[0]),))
    return TypeSchema("tuple", map(_from_annotation, args))


def _from_callable(annotation: Any, args: tuple[Any, ...]) -> TypeSchema:
    if not args:
        return TypeSchema("Callable")
    params, result = args[0], args[-1]
    groups: dict[str, tuple[TypeSchema, ...]] = {"return": (_from_annotation(result),)}
    if isinstance(params, list):
        groups["params"] = tuple(map(_from_annotation, params))
    elif params is not Ellipsis:
        raise _no_schema(annotation)
    return TypeSchema("Callable", named_args=groups)


def _from_generic_object(annotation: Any, cls: type, args: tuple[Any, ...]) -> TypeSchema:
    schema = TypeSchema.from_type_index(_info_of_class(cls).type_index)
    wanted = 1 if schema.origin in _SEQUENCES else 2 if schema.origin in _MAPPINGS else None
    if wanted is None:
        raise _no_schema(annotation)
    if len(args) != wanted:
        noun = "argument" if wanted == 1 else "arguments"
        raise TypeError(f"{schema.origin} requires {wanted} type {noun}, got {len(args)}")
    return TypeSchema(schema.origin, map(_from_annotation, args))


EXPORTS = (
    "TypeSchema",
    "_ConvertError",
    "_ORIGIN_NATIVE_LAYOUT",
    "_ORIGIN_TO_TYPE_INDEX",
    "_TYPE_INDEX_TO_ORIGIN",
    "_TYPE_SCHEMA_ORIGIN_CONVERTER",
    "_build_converter",
)
