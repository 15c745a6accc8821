# SPDX-License-Identifier: Apache-2.0
"""Fields of types defined in Python: their place in the object and how values are stored.

Offsets follow the C++ rules of the platform, so a struct with the same members has the same layout.
"""

from __future__ import annotations

import json
import os

from .. import core
from .type_members import (
    COMPARE_OFF,
    DEFAULT_FROM_FACTORY,
    HAS_DEFAULT,
    HASH_OFF,
    INIT_OFF,
    KW_ONLY,
    REPR_OFF,
    STRUCTURAL_FLAGS,
    TypeField,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .type_info import TypeInfo

_HEADER_SIZE = core._abi.sizeof_TVMFFIObject
_OBJECT_LAYOUT = (8, 8, core._abi.kTVMFFIObject)
_STRUCTURAL_FLAGS = {
    **STRUCTURAL_FLAGS,
    None: 0,
    "def": STRUCTURAL_FLAGS["def-pattern"],
}


def _start_offset(parent: TypeInfo | None) -> int:
    """Return where a child's fields begin: after the parent's last byte, or after its padding."""
    if os.name == "nt":
        return parent.total_size if parent is not None else _HEADER_SIZE
    end = _HEADER_SIZE
    info = parent
    while info is not None:
        for field in info.fields or ():
            end = max(end, field.offset + field.size)
        info = info.parent_type_info
    # More than padding behind the last field: members that are not reflected.
    if parent is not None and parent.total_size > _round_up(end, 8):
        return parent.total_size
    return end


def _round_up(value: int, alignment: int) -> int:
    return (value + alignment - 1) // alignment * alignment


def _flags(field: Any) -> int:
    flags = _STRUCTURAL_FLAGS[field.structural_eq]
    for attribute, bit in (
        ("init", INIT_OFF),
        ("repr", REPR_OFF),
        ("hash", HASH_OFF),
        ("compare", COMPARE_OFF),
    ):
        if not getattr(field, attribute):
            flags |= bit
    if field.kw_only:
        flags |= KW_ONLY
    if field.default_factory is not core.MISSING:
        flags |= HAS_DEFAULT | DEFAULT_FROM_FACTORY
    elif field.default is not core.MISSING:
        flags |= HAS_DEFAULT
    return flags


class _Placed:
    """A field with its place in the object."""

    def __init__(self, field: Any, offset: int, layout: tuple[int, int, int]) -> None:
        self.field = field
        self.offset = offset
        self.size, self.alignment, self.static_index = layout
        self.metadata = {"type_schema": field._ty_schema.to_json()}
        from_factory = field.default_factory is not core.MISSING
        self.default = field.default_factory if from_factory else field.default
        self.flags = _flags(field)
        self.converter = field._ty_schema._converter  # raises for a type that does not exist

    def register(self, type_index: int) -> TypeField:
        field = self.field
        getter, setter = core._register_field(
            type_index,
            field.name,
            field.doc or "",
            json.dumps(self.metadata),
            self.flags,
            self.size,
            self.alignment,
            self.offset,
            self.static_index,
            self.default,
            self.converter,
        )
        return TypeField(
            name=field.name,
            doc=field.doc or None,
            size=self.size,
            alignment=self.alignment,
            offset=self.offset,
            field_static_type_index=self.static_index,
            frozen=field.frozen,
            metadata=self.metadata,
            getter=getter,
            setter=setter,
            ty=field._ty_schema,
            c_init=field.init,
            c_kw_only=bool(field.kw_only),
            c_has_default=bool(self.flags & HAS_DEFAULT),
            c_default=field.default,
            c_default_factory=field.default_factory,
            c_repr=field.repr,
            c_compare=field.compare,
            c_hash=bool(field.hash),
            c_structural_eq=field.structural_eq,
        )


def register_fields(
    type_info: TypeInfo, fields: Sequence[Any], structure_kind: int | None
) -> list[TypeField]:
    """Place the fields behind those of the parent and enter them in the type table."""
    end = _start_offset(type_info.parent_type_info)
    placed = []
    for field in fields:
        layout = core._ORIGIN_NATIVE_LAYOUT.get(field._ty_schema.origin, _OBJECT_LAYOUT)
        size, alignment, _ = layout
        offset = _round_up(end, alignment)
        placed.append(_Placed(field, offset, layout))
        end = offset + size
    total_size = _round_up(end, 8)
    registered = [place.register(type_info.type_index) for place in placed]
    core._get_global_func("ffi._PyClassRegisterTypeAttrColumns", False)(
        type_info.type_index, total_size
    )
    type_info._total_size = total_size
    if structure_kind:
        core._register_type_metadata(type_info.type_index, structure_kind, total_size)
    # Again, now that it can be seen whether its objects may be part of a ring.
    core._set_class_of_index(type_info.type_index, type_info.type_cls, True)
    return registered
