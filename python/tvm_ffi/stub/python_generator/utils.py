# SPDX-License-Identifier: Apache-2.0
"""Imports and signatures."""

from __future__ import annotations

import keyword
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from ..utils import FuncInfo, InitFieldInfo, ObjectInfo, TypeSchema, function_types
from .consts import MOD_MAP

__all__ = [
    "FuncInfo",
    "ImportItem",
    "ObjectInfo",
    "PythonImports",
    "render_func_signature",
    "render_object_ffi_init",
    "render_object_fields",
    "render_object_init",
    "render_object_methods",
]

TyMap = Callable[[str], str]
_NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(init=False, frozen=True)
class ImportItem:
    """``from mod import name as alias``, perhaps only for type checkers."""

    mod: str
    name: str
    type_checking_only: bool = False
    alias: str | None = None

    def __init__(
        self, name: str, type_checking_only: bool = False, alias: str | None = None
    ) -> None:
        module, _, leaf = name.rpartition(".")
        head, dot, rest = module.partition(".")
        object.__setattr__(self, "mod", MOD_MAP.get(head, head) + dot + rest)
        object.__setattr__(self, "name", leaf)
        object.__setattr__(self, "type_checking_only", type_checking_only)
        object.__setattr__(self, "alias", alias)

    @property
    def name_with_alias(self) -> str:
        """What stands after ``import``."""
        return f"{self.name} as {self.alias}" if self.alias else self.name

    @property
    def full_name(self) -> str:
        """Module and name."""
        return f"{self.mod}.{self.name}" if self.mod else self.name

    def __str__(self) -> str:
        start = f"from {self.mod} " if self.mod else ""
        return f"{start}import {self.name_with_alias}"


class ImportItems(list[ImportItem]):
    """Imports, and the names of the file that hide others."""

    def __init__(
        self, items: Iterable[ImportItem] = (), hidden: Mapping[str, str] = _NOTHING
    ) -> None:
        super().__init__(items)
        # What the names mean: classes by module and name; empty for functions.
        self.hidden = dict(hidden)


def hidden_in(imports: list[ImportItem]) -> Mapping[str, str]:
    """Return the names of the file that hide others; a plain list knows none."""
    return imports.hidden if isinstance(imports, ImportItems) else _NOTHING


@dataclass
class PythonImports:
    """The imports of a file."""

    items: list[ImportItem] = field(default_factory=ImportItems)
    has_lib_load: bool = False


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def is_name(text: str) -> bool:
    """Return whether Python can use a name that was registered: some are not identifiers."""
    return text.isidentifier() and not keyword.iskeyword(text)


def _numbered(types: Iterable[TypeSchema], first: int, ty_map: TyMap) -> list[str]:
    return [f"_{i}: {schema.input_repr(ty_map)}" for i, schema in enumerate(types, first)]


def _can_be_parameters(names: Sequence[str]) -> bool:
    return len(set(names)) == len(names) and all(map(is_name, names))


def _parameters(func: FuncInfo, types: Sequence[TypeSchema], accepts: TyMap) -> list[str]:
    """Return the parameters with their names or, if these cannot be used, with numbers."""
    shown = _numbered(types, 0, accepts)
    names = func.names or ()
    if func.is_member and names:
        names = ("self", *names[1:])
    is_named = len(names) == len(shown) and _can_be_parameters(names)
    if is_named:
        texts = (item.partition(": ")[2] for item in shown)
        shown = [f"{name}: {text}" for name, text in zip(names, texts, strict=True)]
    for i in range(len(shown) - func.defaults, len(shown)):
        shown[i] += " = ..."
    return shown if is_named or not shown else [*shown, "/"]


def render_func_signature(
    func: FuncInfo, ty_map: TyMap, indent: int, input_ty_map: TyMap | None = None
) -> str:
    """Return the ``def`` line of a function or method."""
    schema = func.schema
    if schema.origin != "Callable":
        raise ValueError(f"Expected Callable type schema, but got: {schema}")
    accepts = input_ty_map or ty_map
    start = f"{' ' * indent}def {_last(schema.name)}"
    result, parameters = function_types(schema)
    if result is None:
        anything = ty_map("Any")
        return f"{start}(*args: {anything}) -> {anything}: ..."
    returned = result.output_repr(ty_map)
    if parameters is None:
        return f"{start}(*args: {ty_map('Any')}) -> {returned}: ..."
    shown = _parameters(func, parameters, accepts)
    if shown and func.is_member:
        shown[0] = "self"
    return f"{start}({', '.join(shown)}) -> {returned}: ..."


def render_object_fields(info: ObjectInfo, ty_map: TyMap, indent: int) -> list[str]:
    """Return a line per field."""
    fields = [item for item in info.fields if is_name(item.name)]
    return [f"{' ' * indent}{item.name}: {item.output_repr(ty_map)}" for item in fields]


def _ffi_init_signature(method: FuncInfo, ty_map: TyMap, accepts: TyMap, indent: int) -> str:
    """Return the ``def`` line of ``__ffi_init__``, a function that makes an object."""
    _, parameters = function_types(method.schema)
    if parameters is None:
        shown = ["self", f"*args: {ty_map('Any')}"]
    elif parameters:
        shown = ["self", *_numbered(parameters, 0, accepts), "/"]
    else:
        shown = ["self"]
    return f"{' ' * indent}def __ffi_init__({', '.join(shown)}) -> None: ..."


def render_object_methods(
    info: ObjectInfo, ty_map: TyMap, indent: int, input_ty_map: TyMap | None = None
) -> list[str]:
    """Return the ``def`` lines of all methods, with decorators."""
    groups: dict[tuple[str, bool], list[FuncInfo]] = {}
    for method in info.methods:
        groups.setdefault((method.schema.name, method.is_member), []).append(method)
    blanks = " " * indent
    lines: list[str] = []
    for (name, is_member), methods in groups.items():
        if not is_name(_last(name)):
            continue
        is_init = _last(name) == "__ffi_init__"
        for method in methods:
            if len(methods) > 1:
                lines.append(f"{blanks}@overload")
            if is_init:
                accepts = input_ty_map or ty_map
                lines.append(_ffi_init_signature(method, ty_map, accepts, indent))
                continue
            if not is_member:
                lines.append(f"{blanks}@staticmethod")
            lines.append(render_func_signature(method, ty_map, indent, input_ty_map))
    return lines


def _init_parameters(fields: list[InitFieldInfo], ty_map: TyMap) -> str:
    if not _can_be_parameters(["self", *(item.name for item in fields)]):
        anything = ty_map("Any")
        return f"self, *args: {anything}, **kwargs: {anything}"

    def shown(kw_only: bool) -> list[str]:
        chosen = [item for item in fields if item.kw_only == kw_only]
        chosen.sort(key=lambda item: item.has_default)
        return [
            f"{item.name}: {item.schema.input_repr(ty_map)}{' = ...' if item.has_default else ''}"
            for item in chosen
        ]

    keywords = shown(True)
    return ", ".join(["self", *shown(False), *(["*", *keywords] if keywords else [])])


def render_object_init(
    info: ObjectInfo, ty_map: TyMap, indent: int, input_ty_map: TyMap | None = None
) -> list[str]:
    """Return the ``def`` line of ``__init__``, if the type can be constructed."""
    if not info.has_init:
        return []
    accepts = input_ty_map or ty_map
    types = None if info.init is None else function_types(info.init.schema)[1]
    if info.init is None or types is None:
        parameters = _init_parameters(info.init_fields, accepts)
    else:
        names = info.init.names
        is_clear = names is not None and "self" not in names
        init = info.init if is_clear else replace(info.init, names=None)
        parameters = ", ".join(["self", *_parameters(init, types, accepts)])
    return [f"{' ' * indent}def __init__({parameters}) -> None: ..."]


def render_object_ffi_init(
    info: ObjectInfo, ty_map: TyMap, indent: int, input_ty_map: TyMap | None = None
) -> list[str]:
    """Return the ``def`` line of ``__ffi_init__``, if it is not one of the methods."""
    if not info.has_init or any(_last(m.schema.name) == "__ffi_init__" for m in info.methods):
        return []
    parameters = _init_parameters(info.init_fields, input_ty_map or ty_map)
    return [f"{' ' * indent}def __ffi_init__({parameters}) -> None: ..."]
