# SPDX-License-Identifier: Apache-2.0
"""What the generators know about a run, a function and a type."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from ..core import MISSING, TypeInfo, TypeSchema, _lookup_type_attr

__all__ = [
    "MISSING",
    "FuncInfo",
    "InitConfig",
    "InitFieldInfo",
    "NamedTypeSchema",
    "ObjectInfo",
    "Options",
    "TypeInfo",
    "TypeSchema",
]

_COPIED = ("origin", "args", "origin_type_index", "fallback", "named_args", "type_key")


@dataclass
class InitConfig:
    """What new files are made from: distribution, library, and the prefix of the names."""

    pkg: str
    shared_target: str
    prefix: str


@dataclass
class Options:
    """The command line."""

    imports: list[str] = field(default_factory=list)
    dlls: list[str] = field(default_factory=list)
    init: InitConfig | None = None
    indent: int = 4
    files: list[str] = field(default_factory=list)
    verbose: bool = False
    dry_run: bool = False
    check: bool = False
    target: str = "python"
    coverage_out: str | None = None


class NamedTypeSchema(TypeSchema):
    """A schema with a name and, for a field, what is known about its bytes."""

    size: int | None = None
    alignment: int | None = None
    offset: int | None = None
    default: Any = MISSING
    default_is_factory: bool = False
    structural_eq: str | None = None
    frozen: bool = False
    fallback: Any = None
    named_args: Any = None
    type_key: str | None = None

    def __init__(
        self,
        name: str,
        schema: TypeSchema,
        *,
        size: int | None = None,
        alignment: int | None = None,
        offset: int | None = None,
        default: Any = MISSING,
        default_is_factory: bool = False,
        structural_eq: str | None = None,
        frozen: bool = False,
    ) -> None:
        for attribute in _COPIED:
            setattr(self, attribute, getattr(schema, attribute, None))
        self.name = name
        self.size = size
        self.alignment = alignment
        self.offset = offset
        self.default = default
        self.default_is_factory = default_is_factory
        self.structural_eq = structural_eq
        self.frozen = frozen

    @staticmethod
    def from_type_field(type_field: Any) -> NamedTypeSchema:
        """Return the schema of a field of a registered type."""
        factory = getattr(type_field, "c_default_factory", MISSING)
        is_factory = factory is not MISSING and factory is not None
        return NamedTypeSchema(
            type_field.name,
            TypeSchema._from_maybe_json(type_field.metadata["type_schema"]),
            size=type_field.size,
            alignment=type_field.alignment,
            offset=type_field.offset,
            default=factory if is_factory else type_field.c_default,
            default_is_factory=is_factory,
            structural_eq=type_field.c_structural_eq,
            frozen=type_field.frozen,
        )


def function_types(schema: TypeSchema) -> tuple[TypeSchema | None, tuple[TypeSchema, ...] | None]:
    """Return result and parameters of a function's schema; None is what it does not say."""
    groups = getattr(schema, "named_args", None)
    if groups is not None:
        result = groups.get("return")
        parameters = groups.get("params")
        return (result[0] if result else None), (None if parameters is None else tuple(parameters))
    if not schema.args:
        return None, None
    return schema.args[0], tuple(schema.args[1:])


@dataclass
class FuncInfo:
    """A function or method."""

    schema: NamedTypeSchema
    is_member: bool
    names: tuple[str, ...] | None = None  # of the parameters, if the registration gives them
    defaults: int = 0  # how many of the last ones have a default

    @staticmethod
    def from_schema(
        name: str, schema: TypeSchema, *, is_member: bool = False, function: Any = None
    ) -> FuncInfo:
        """Return the function of this name and type; `function` knows names of parameters."""
        names, values = getattr(function, "_parameters", None) or (None, ())
        defaults = sum(value is not MISSING for value in values)
        return FuncInfo(NamedTypeSchema(name, schema), is_member, names, defaults)


@dataclass
class InitFieldInfo:
    """A parameter of a constructor."""

    name: str
    schema: NamedTypeSchema
    kw_only: bool
    has_default: bool


@dataclass
class ObjectInfo:
    """A registered type."""

    fields: list[NamedTypeSchema]
    methods: list[FuncInfo]
    type_key: str | None = None
    parent_type_key: str | None = None
    init_fields: list[InitFieldInfo] = field(default_factory=list)
    has_init: bool = False
    ancestors: list[str] = field(default_factory=list)
    total_size: int | None = None
    is_final: bool | None = None
    init: FuncInfo | None = None  # a constructor of the type's own; `init_fields` do not say it

    def has_overloaded_methods(self) -> bool:
        """Return whether two methods have the same name and kind."""
        names = [(method.schema.name, method.is_member) for method in self.methods]
        return len(set(names)) != len(names)

    @staticmethod
    def from_type_info(type_info: TypeInfo) -> ObjectInfo:
        """Return what the registry says about a type."""
        chain = [type_info]  # from the root to the type
        while chain[0].parent_type_info is not None:
            chain.insert(0, chain[0].parent_type_info)
        methods = [
            FuncInfo.from_schema(
                method.name,
                TypeSchema._from_maybe_json(method.metadata["type_schema"]),
                is_member=not method.is_static,
                function=method.func,
            )
            for method in type_info.methods or ()
            if "type_schema" in (method.metadata or {})
        ]
        parent = type_info.parent_type_info
        init = _lookup_type_attr(type_info.type_index, "__ffi_init__")
        explicit = next((m for m in methods if m.schema.name == "__ffi_init__"), None)
        init_fields = [
            InitFieldInfo(f.name, NamedTypeSchema.from_type_field(f), f.c_kw_only, f.c_has_default)
            for level in chain
            for f in level.fields or ()
            if f.c_init
        ]
        return ObjectInfo(
            fields=[NamedTypeSchema.from_type_field(f) for f in type_info.fields or ()],
            methods=methods,
            type_key=type_info.type_key,
            parent_type_key=None if parent is None else parent.type_key,
            init_fields=init_fields,
            has_init=init is not None or explicit is not None,
            ancestors=[level.type_key for level in chain[:-1]],
            total_size=type_info.total_size if type_info._has_type_metadata else None,
            is_final=_lookup_type_attr(type_info.type_index, "__ffi_type_final__"),
            init=None if explicit is None else _with_names(explicit, init_fields),
        )


def _with_names(init: FuncInfo, fields: list[InitFieldInfo]) -> FuncInfo:
    """Return a constructor with the names that its parameters have at run time.

    If it has none of its own, and there are as many as fields, they are those of the fields.
    """
    _, parameters = function_types(init.schema)
    if init.names is not None or parameters is None or len(parameters) != len(fields):
        return init
    return replace(init, names=tuple(item.name for item in fields))
