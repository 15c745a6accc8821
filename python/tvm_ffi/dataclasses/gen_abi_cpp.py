# SPDX-License-Identifier: Apache-2.0
"""C++ structs for registered types, so that C++ code can read objects defined elsewhere.

>>> import tvm_ffi
>>> from tvm_ffi.dataclasses import gen_abi_cpp, py_class
>>> @py_class("doc.gen_abi.Point")
... class Point(tvm_ffi.Object):
...     x: int
...     y: float
>>> header = gen_abi_cpp("doc.gen_abi.Point")
>>> [line.strip() for line in header.splitlines() if "offset=" in line]
['int64_t x;  // offset=24, size=8, align=8', 'double y;  // offset=32, size=8, align=8']
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from itertools import chain, groupby
from typing import Any, NamedTuple

from .. import core
from .._dunder import _chain_fields
from ..registry import get_registered_type_keys

__all__ = ["gen_abi_cpp"]

_OBJECT_BEGIN = core._abi.kTVMFFIStaticObjectBegin
_DYNAMIC_BEGIN = core._abi.kTVMFFIDynObjectBegin

_FFI = "::tvm::ffi::"
_OBJECT_CLASS = {
    "ffi.Object": f"{_FFI}Object",
    "ffi.String": f"{_FFI}detail::StringObj",
    "ffi.Bytes": f"{_FFI}detail::BytesObj",
    **{
        f"ffi.{name}": f"{_FFI}{name}Obj"
        for name in (
            "Error",
            "Function",
            "Shape",
            "Tensor",
            "Array",
            "Map",
            "Module",
            "List",
            "Dict",
            "VisitInterrupt",
        )
    },
}
# Schemas name the built-in types in a short way.
_KEY_OF_ORIGIN = {
    "Object": "ffi.Object",
    "Callable": "ffi.Function",
    "Tensor": "ffi.Tensor",
    "Array": "ffi.Array",
    "tuple": "ffi.Array",
    "list": "ffi.List",
    "List": "ffi.List",
    "Map": "ffi.Map",
    "dict": "ffi.Dict",
    "Dict": "ffi.Dict",
}


class _Carrier(NamedTuple):
    """The C++ type of a member and its layout."""

    cpp_type: str
    size: int
    alignment: int


_PLAIN = {
    "int": _Carrier("int64_t", 8, 8),
    "float": _Carrier("double", 8, 8),
    "bool": _Carrier("bool", 1, 1),
    "ctypes.c_void_p": _Carrier("void*", 8, 8),
    "dtype": _Carrier("DLDataType", 4, 2),
    "Device": _Carrier("DLDevice", 8, 4),
    "Any": _Carrier(f"{_FFI}Any", 16, 8),
    "str": _Carrier(f"{_FFI}String", 16, 8),
    "bytes": _Carrier(f"{_FFI}Bytes", 16, 8),
}
_BY_STATIC_INDEX = {
    core._ORIGIN_TO_TYPE_INDEX[origin]: origin
    for origin in ("Any", "int", "bool", "float", "ctypes.c_void_p", "dtype", "Device")
}
# The spelling in a native field's metadata of a type that owns what it holds.
_OWNING_SPELLINGS = {
    "ctypes.c_void_p": ("void*",),
    "dtype": ("DataType",),
    "str": ("ffi.String", "ffi.SmallStr"),
    "bytes": ("ffi.Bytes", "ffi.SmallBytes"),
    "Callable": ("ffi.Function",),
    "Tensor": ("ffi.Tensor",),
    "Array": ("ffi.Array",),
    "List": ("ffi.List",),
    "Map": ("ffi.Map",),
    "Dict": ("ffi.Dict",),
    "tuple": ("Tuple",),
    "Union": ("Variant",),
    "Object": ("ffi.Object",),
}


def gen_abi_cpp(type_keys: str | Sequence[str]) -> str:
    """Return a C++17 header that declares the named types, and all they derive from, as structs.

    A selector may be a pattern such as ``"my_project.*"``. Types that are only mentioned by a field
    are declared without their members. The text depends on nothing but the types.

    >>> from tvm_ffi.dataclasses import gen_abi_cpp
    >>> gen_abi_cpp("ffi.Function").splitlines()[0]
    '#pragma once'
    """
    selectors = [type_keys] if isinstance(type_keys, str) else list(type_keys)
    return _Generator(_select(selectors)).generate()


# ---- which types --------------------------------------------------------------------------------


def _select(selectors: Iterable[str]) -> list[core.TypeInfo]:
    known = [str(key) for key in get_registered_type_keys()]
    chosen: dict[str, core.TypeInfo] = {}
    for selector in selectors:
        matches = [key for key in known if fnmatchcase(key, selector)]
        if not matches:
            raise ValueError(f"Type-key selector {selector!r} did not match any registered type")
        indices = {key: core._object_type_key_to_index(key) or 0 for key in matches}
        objects = [key for key, index in indices.items() if index >= _OBJECT_BEGIN]
        if not objects:
            raise ValueError(
                f"Type-key selector {selector!r} did not match any registered object type"
            )
        for key in objects:
            chosen[key] = core._lookup_or_register_type_info_from_type_key(key)
    return list(chosen.values())


def _is_builtin(info: core.TypeInfo) -> bool:
    return info.type_index < _DYNAMIC_BEGIN or info.type_key in _OBJECT_CLASS


def _emitted(selected: Iterable[core.TypeInfo]) -> list[core.TypeInfo]:
    """Return the dynamic types of a selection with their dynamic ancestors, parents first."""
    found: dict[str, core.TypeInfo] = {}
    for info in selected:
        if _is_builtin(info):
            if info.type_key not in _OBJECT_CLASS:
                raise ValueError(f"Static TVM-FFI type {info.type_key!r} is not supported")
            continue
        current = info
        while not _is_builtin(current):
            found[current.type_key] = current
            parent = current.parent_type_info
            if parent is None:
                raise ValueError(
                    f"Object type {current.type_key!r} does not expose its parent type"
                )
            if _is_builtin(parent) and parent.type_key not in _OBJECT_CLASS:
                raise ValueError(
                    f"Parent type {parent.type_key!r} of {current.type_key!r} is not supported"
                )
            current = parent
    return sorted(found.values(), key=lambda info: (len(info.type_ancestors), info.type_key))


# ---- names --------------------------------------------------------------------------------------


def _identifier(part: str) -> str:
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", part) and not part.startswith("__ffi_escape_"):
        return part
    return "__ffi_escape_" + part.encode().hex()


def _namespace(type_key: str) -> tuple[str, ...]:
    return tuple(_identifier(part) for part in type_key.split(".")[:-1])


def _struct_name(type_key: str) -> str:
    return _identifier(type_key.rpartition(".")[2]) + "Obj"


def _qualified(type_key: str) -> str:
    return "::" + "::".join([*_namespace(type_key), _struct_name(type_key)])


def _literal(type_key: str) -> str:
    def escaped(byte: int) -> str:
        if byte in b'"\\':
            return "\\" + chr(byte)
        return chr(byte) if 0x20 <= byte <= 0x7E else f"\\{byte:03o}"

    return "".join(escaped(byte) for byte in type_key.encode())


def _by_declaration(type_key: str) -> tuple[tuple[str, ...], str, str]:
    return (_namespace(type_key), _struct_name(type_key), type_key)


# ---- text ---------------------------------------------------------------------------------------


class _Generator:
    """Writes the header for a list of types; `_lower_field` finds the C++ type of one member."""

    def __init__(self, infos: Iterable[core.TypeInfo]) -> None:
        self._emitted = _emitted(infos)
        self._mentioned: set[str] = {info.type_key for info in self._emitted}

    def generate(self) -> str:
        """Return the whole header."""
        classes = {info.type_key: self._class_lines(info) for info in self._emitted}
        declared = sorted(self._mentioned, key=_by_declaration)
        lines = ["#pragma once", "", "#include <tvm/ffi/tvm_ffi.h>", ""]
        lines += _blocks(declared, lambda key: [f"struct {_struct_name(key)};"])
        for key in declared:
            lines += [
                "template <>",
                f"inline constexpr bool tvm::ffi::is_object_subclass_v<{_qualified(key)}> = true;",
            ]
        lines.append("")
        lines += _blocks([key for key in declared if key not in classes], _opaque_lines)
        lines += _PROLOGUE
        lines += _blocks(list(classes), classes.__getitem__)
        lines += _EPILOGUE
        return "\n".join(lines) + "\n"

    def _class_lines(self, info: core.TypeInfo) -> list[str]:
        key = info.type_key
        if info.fields is None:
            raise ValueError(f"The fields of {key!r} are not known yet")
        if not hasattr(info, "_decorator_args") and not info._has_type_metadata:
            raise ValueError(f"Native type {key!r} does not expose fixed total-size metadata")
        name = _struct_name(key)
        members = []
        for field in sorted(info.fields, key=lambda field: field.offset):
            members.append((_identifier(field.name), field, self._lower_field(field, info)))
        alignment = max([8, *(field.alignment for field in _chain_fields(info))])
        lines = [
            f"struct alignas({alignment}) {name} : public {_base_of(info)} {{",
            f"  {_lookup_macro(info)}",
        ]
        if members:
            lines.append("")
        lines += [_member_line(member, field, carrier) for member, field, carrier in members]
        lines += [
            "};",
            "",
            f"static_assert(sizeof({name}) == {info.total_size});",
            f"static_assert(alignof({name}) == {alignment});",
        ]
        for member, field, _ in members:
            lines += [
                f"static_assert(sizeof(decltype({name}::{member})) == {field.size});",
                f"static_assert(alignof(decltype({name}::{member})) == {field.alignment});",
                f"static_assert(offsetof({name}, {member}) == {field.offset});",
            ]
        return lines

    # ---- the C++ type of a member ---------------------------------------------------------------

    def _lower_field(self, field: Any, owner: Any) -> _Carrier:
        where = f"{owner.type_key}.{field.name}"
        actual = (field.size, field.alignment)
        is_native = not hasattr(owner, "_decorator_args")
        schema = field.ty
        if schema is None:
            carrier = self._carrier_without_schema(field, where)
        elif is_native:
            _check_owning(field, where)
            carrier = self._native_carrier(schema, actual, where)
        elif schema.origin in ("Optional", "Union"):
            carrier = _PLAIN["Any"]
        else:
            carrier = self._carrier(schema, field.size)
        expected = (carrier.size, carrier.alignment)
        if expected == actual:
            return carrier
        key = _builtin_key(schema) if schema is not None else None
        if actual == (8, 8) and key is not None:
            return _Carrier(f"{_FFI}Arc<{_OBJECT_CLASS[key]}>", 8, 8)
        raise ValueError(
            f"Carrier {carrier.cpp_type} for {where} has layout {expected}, "
            f"but reflection reports {actual} at offset {field.offset}"
        )

    def _carrier_without_schema(self, field: Any, where: str) -> _Carrier:
        index = field.field_static_type_index
        if index in _BY_STATIC_INDEX:
            return _PLAIN[_BY_STATIC_INDEX[index]]
        if index >= _OBJECT_BEGIN:
            return _Carrier(f"{_FFI}ObjectPtr<{_FFI}Object>", 8, 8)
        raise ValueError(f"Cannot determine carrier for {where} of static type index {index}")

    def _native_carrier(self, schema: Any, actual: tuple[int, int], where: str) -> _Carrier:
        if schema.origin == "Optional":
            (inner,) = schema.args
            if inner.origin in ("str", "bytes") and actual == (16, 8):
                return _PLAIN[inner.origin]
            if _is_object(inner) and actual == (16, 8):
                return _Carrier(f"{_FFI}Optional<{self._carrier(inner).cpp_type}>", 16, 8)
            if _is_object(inner) and actual == (8, 8):
                return _Carrier(f"{_FFI}ObjectPtr<{self._object_class(inner)}>", 8, 8)
            raise ValueError(f"Ambiguous native Optional carrier for {where} with layout {actual}")
        if schema.origin == "Union":
            if all(_is_object(choice) for choice in schema.args) and actual == (8, 8):
                return _Carrier(f"{_FFI}Arc<{_FFI}Object>", 8, 8)
            raise ValueError(f"Ambiguous native Union carrier for {where} with layout {actual}")
        return self._carrier(schema, actual[0])

    def _carrier(self, schema: Any, size: int = 8) -> _Carrier:
        origin = schema.origin
        if origin in _PLAIN:
            return _PLAIN[origin]
        if origin in ("Callable", "Tensor"):
            name = "Function" if origin == "Callable" else origin
            return _Carrier(f"{_FFI}{name}", 8, 8)
        if origin in ("Array", "List", "list", "Map", "Dict", "dict", "tuple"):
            name = "Tuple" if origin == "tuple" else origin.capitalize()
            if origin == "tuple" and schema.args is None:
                return _Carrier(f"{_FFI}Array<{_FFI}Any>", 8, 8)  # of no particular length
            elements = ", ".join(self._element(argument) for argument in schema.args)
            return _Carrier(f"{_FFI}{name}<{elements}>", 8, 8)
        if origin == "ffi.Shape":
            return _Carrier(f"{_FFI}Shape", 8, 8)
        if origin == "ffi.Error":
            return _Carrier(f"{_FFI}Error", size, 8)
        if _is_object(schema):
            return _Carrier(f"{_FFI}Arc<{self._object_class(schema)}>", 8, 8)
        raise ValueError(f"Unsupported TVM-FFI type schema {schema!r}")

    def _element(self, schema: Any) -> str:
        if schema.origin == "Optional":
            (inner,) = schema.args
            if not _is_object(inner):
                return f"{_FFI}Any"
            return f"{_FFI}ObjectPtr<{self._object_class(inner)}>"
        if schema.origin == "Union":
            only_objects = all(_is_object(choice) for choice in schema.args)
            return f"{_FFI}Arc<{_FFI}Object>" if only_objects else f"{_FFI}Any"
        return self._carrier(schema).cpp_type

    def _object_class(self, schema: Any) -> str:
        builtin = _builtin_key(schema)
        if builtin is not None:
            return _OBJECT_CLASS[builtin]
        self._mentioned.add(schema.origin)
        return _qualified(schema.origin)


def _builtin_key(schema: Any) -> str | None:
    key = _KEY_OF_ORIGIN.get(schema.origin, schema.origin)
    return key if key in _OBJECT_CLASS else None


def _is_object(schema: Any) -> bool:
    """Say whether every value of the schema is an object; short strings are not."""
    if _builtin_key(schema) is not None:
        return True
    return schema.origin not in _PLAIN and schema.origin_type_index >= _DYNAMIC_BEGIN


def _check_owning(field: Any, where: str) -> None:
    """Reject native members that only refer to what something else owns."""
    if not hasattr(field, "metadata"):
        return
    raw = field.metadata.get("type_schema")
    if raw is None:
        raise ValueError(f"Missing raw type schema for {where}")
    if isinstance(raw, str):
        try:
            raw = json.loads(raw)
        except ValueError as error:
            raise ValueError(f"Invalid raw type schema for {where}: {error}") from error
    _check_spelling(raw, where)


def _check_spelling(raw: Any, where: str) -> None:
    if not isinstance(raw, dict) or not isinstance(raw.get("type"), str):
        raise ValueError(f"Invalid raw type schema for {where}: {raw!r}")
    name = raw["type"]
    origin = core.TypeSchema.from_json_obj({"type": name, "args": _placeholders(name)}).origin
    if name != origin and name not in _OWNING_SPELLINGS.get(origin, ()):
        raise ValueError(
            f"{where}: native schema origin {name!r} normalizes to {origin!r} "
            "but does not have the canonical owning representation"
        )
    groups = (raw.get("named_args") or {}).values()
    for argument in chain(raw.get("args") or (), *groups):
        _check_spelling(argument, where)


def _placeholders(name: str) -> list[dict[str, str]]:
    """Return arguments that make a schema of that name well-formed; only its name matters here."""
    count = {"Optional": 1, "std::optional": 1, "Union": 2, "Variant": 2, "std::variant": 2}
    return [{"type": "Any"}] * count.get(name, 0)


def _base_of(info: core.TypeInfo) -> str:
    parent = info.parent_type_info
    assert parent is not None
    return _OBJECT_CLASS.get(parent.type_key) or _qualified(parent.type_key)


def _lookup_macro(info: core.TypeInfo) -> str:
    depth = len(info.type_ancestors)
    return f'TVM_FFI_DECLARE_OBJECT_INFO_LOOKUP("{_literal(info.type_key)}", {depth});'


def _opaque_lines(type_key: str) -> list[str]:
    info = core._lookup_or_register_type_info_from_type_key(type_key)
    return [
        f"struct {_struct_name(type_key)} : public {_FFI}Object {{",
        f"  {_lookup_macro(info)}",
        "};",
    ]


def _member_line(member: str, field: Any, carrier: _Carrier) -> str:
    line = (
        f"  {carrier.cpp_type} {member};  "
        f"// offset={field.offset}, size={field.size}, align={field.alignment}"
    )
    return line if member == field.name else f"{line}, reflected name={field.name!r}"


def _blocks(type_keys: Sequence[str], lines_of: Callable[[str], list[str]]) -> list[str]:
    """Put the text of each type into its namespace; neighbours of one namespace share a block."""
    lines: list[str] = []
    for namespace, keys in groupby(type_keys, key=_namespace):
        body: list[str] = []
        for key in keys:
            body += ["", *lines_of(key)] if body else lines_of(key)
        if namespace:
            lines += [*(f"namespace {name} {{" for name in namespace), ""]
            body += ["", *(f"}}  // namespace {name}" for name in reversed(namespace))]
        lines += [*body, ""]
    return lines


_PROLOGUE = [
    "static_assert(sizeof(::tvm::ffi::Object) == 24);",
    "static_assert(alignof(::tvm::ffi::Object) == 8);",
    "",
    "#if defined(__clang__) || defined(__GNUC__)",
    "#pragma GCC diagnostic push",
    '#pragma GCC diagnostic ignored "-Winvalid-offsetof"',
    "#elif defined(_MSC_VER)",
    "#pragma warning(push)",
    "#pragma warning(disable : 4749)",
    "#endif",
    "",
]
_EPILOGUE = [
    "#if defined(__clang__) || defined(__GNUC__)",
    "#pragma GCC diagnostic pop",
    "#elif defined(_MSC_VER)",
    "#pragma warning(pop)",
    "#endif",
]
