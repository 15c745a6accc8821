# SPDX-License-Identifier: Apache-2.0
"""What Python knows about types: one `TypeInfo` for each type that it has seen.

>>> from tvm_ffi import core
>>> info = core._lookup_or_register_type_info_from_type_key("ffi.Array")
>>> core._type_index_to_type_info(info.type_index) is info
True
"""

from __future__ import annotations

import sys

from .type_members import STATIC_METHOD, Record, TypeField, TypeMethod

TYPE_CHECKING = False  # typing costs a third of the import time, and only checkers need it
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

# Half initialised at this point: its C types and functions exist.
core: Any = sys.modules["tvm_ffi.core"]

_abi = core._abi


class TypeInfo(Record):
    """What the type table knows about one type, and the Python class that stands for it.

    >>> import tvm_ffi
    >>> info = tvm_ffi.core._type_cls_to_type_info(tvm_ffi.Array)
    >>> info.type_key, info.parent_type_info.type_key
    ('ffi.Array', 'ffi.Object')
    """

    def __init__(
        self,
        type_cls: type | None,
        type_index: int,
        type_key: str,
        type_ancestors: list[int],
        fields: list[TypeField] | None,
        methods: list[TypeMethod],
        parent_type_info: TypeInfo | None = None,
    ) -> None:
        self.type_cls = type_cls
        self.type_index = type_index
        self.type_key = type_key
        self.type_ancestors = type_ancestors
        self.fields = fields
        self.methods = methods
        if parent_type_info is None and type_ancestors:
            parent_type_info = info_of_index(type_ancestors[-1])
        self.parent_type_info = parent_type_info
        self._check_field_names()

    def _check_field_names(self) -> None:
        own: set[str] = set()
        inherited = {f.name for info in self._ancestor_infos() for f in info.fields or ()}
        for field in self.fields or ():
            assert field.name not in own, (
                f"duplicate field name {field.name!r} in TypeInfo for {self.type_key!r}; "
                "a type registers each of its fields once"
            )
            own.add(field.name)
            if field.name in inherited:
                import warnings

                warnings.warn(
                    f"Field {field.name!r} in {self.type_key!r} duplicates an ancestor field. "
                    "Child types should not re-register inherited fields.",
                    stacklevel=3,
                )

    def _ancestor_infos(self) -> Iterable[TypeInfo]:
        info = self.parent_type_info
        while info is not None:
            yield info
            info = info.parent_type_info

    def _raw(self) -> Mapping[str, Any]:
        raw = core._raw_type_info(self.type_index)
        if raw is None:
            raise ValueError(f"type index {self.type_index} ({self.type_key}) is not registered")
        return raw

    @property
    def total_size(self) -> int:
        """Size of an object of this type in bytes."""
        cached = self.__dict__.get("_total_size")
        if cached is None:
            cached = self._total_size = self._raw()["total_size"] or self._size_from_fields()
        return cached

    def _size_from_fields(self) -> int:
        parent = self.parent_type_info
        end = parent.total_size if parent is not None else _abi.sizeof_TVMFFIObject
        for field in self.fields or ():
            end = max(end, field.offset + field.size)
        return (end + 7) & ~7

    @property
    def _has_type_metadata(self) -> bool:
        return bool(self._raw()["has_metadata"])

    def _register_fields(self, fields: Sequence[Any], structure_kind: int | None = None) -> None:
        """Give a type defined in Python its fields; once only."""
        assert self.fields is None, f"_register_fields already called for {self.type_key!r}"
        self.fields = _register_fields(self, fields, structure_kind)
        self._read_back_methods()

    def _register_py_methods(
        self,
        py_methods: Sequence[tuple[str, Any, bool, str | None]] | None = None,
        type_attr_names: frozenset[str] = frozenset(),
    ) -> None:
        """Register hooks as type attributes and everything else as methods."""
        for name, value, is_static, metadata in py_methods or ():
            if name in type_attr_names:
                core._register_type_attr(0, name, None)  # makes the column
                core._register_type_attr(self.type_index, name, value)
            else:
                flags = STATIC_METHOD if is_static else 0
                core._register_type_method(self.type_index, name, value, flags, metadata or "")
        self._read_back_methods()

    def _read_back_methods(self) -> None:
        self.methods = [TypeMethod._from_raw(raw) for raw in self._raw()["methods"]]


# ---- three tables; the fourth, from an index to its class, is in C++ -----------------------------

index_to_info: dict[int, TypeInfo] = {}
cls_to_info: dict[type, TypeInfo] = {}
key_to_info: dict[str, TypeInfo] = {}
# Types defined in Python, also those whose class failed: C++ does not own their keys.
python_indices: set[int] = set()


def _type_cls_to_type_info(type_cls: type) -> TypeInfo | None:
    """Return the info of a registered class, or None."""
    return cls_to_info.get(type_cls)


def _type_index_to_type_info(type_index: int) -> TypeInfo | None:
    """Return the info that Python holds for a type index, or None."""
    return index_to_info.get(type_index)


def build_info(type_index: int, type_cls: type | None) -> TypeInfo:
    raw = core._raw_type_info(type_index)
    if raw is None:
        raise ValueError(f"type index {type_index} is not registered")
    return TypeInfo(
        type_cls=type_cls,
        type_index=type_index,
        type_key=raw["type_key"],
        type_ancestors=list(raw["type_ancestors"]),
        fields=[TypeField._from_raw(field) for field in raw["fields"]],
        methods=[TypeMethod._from_raw(method) for method in raw["methods"]],
    )


def store_info(info: TypeInfo) -> TypeInfo:
    index_to_info[info.type_index] = info
    key_to_info[info.type_key] = info
    return info


def info_of_index(type_index: int) -> TypeInfo:
    info = index_to_info.get(type_index)
    return info if info is not None else store_info(build_info(type_index, None))


def _lookup_or_register_type_info_from_type_key(type_key: str) -> TypeInfo:
    """Return the info of a type, reading it from the type table if Python has not seen it yet."""
    info = key_to_info.get(type_key)
    if info is not None:
        return info
    type_index = core._object_type_key_to_index(type_key)
    if type_index is None:
        raise ValueError(f"Cannot find type key: {type_key}")
    return info_of_index(type_index)


def _register_fields(
    type_info: TypeInfo, fields: Sequence[Any], structure_kind: int | None = None
) -> list[TypeField]:
    """Lay out the fields of a type defined in Python and enter them in the type table."""
    from .field_layout import register_fields

    return register_fields(type_info, fields, structure_kind)


EXPORTS = (
    "TypeInfo",
    "_lookup_or_register_type_info_from_type_key",
    "_register_fields",
    "_type_cls_to_type_info",
    "_type_index_to_type_info",
)
