# SPDX-License-Identifier: Apache-2.0
"""The text of blocks and of new files.

A type becomes an object struct (``FooObj``, the bytes) and a wrapper (``Foo``, the reference). If
all of its bytes are known (`tvm_ffi.stub.layout`), the struct has them as fields and can be made
in Rust; otherwise the struct has only its base, and fields are read through getters.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ...core import TypeSchema
from ..consts import MarkerSyntax
from ..file_utils import CodeBlock
from ..layout import Verdict, classify
from ..lib_state import object_info_from_type_key
from ..utils import InitConfig, NamedTypeSchema, ObjectInfo, Options
from . import consts as C
from .directives import EnumSpec
from .utils import (
    RustImports,
    RustUse,
    builtin_mirror_name,
    is_crate_type_key,
    is_rust_name,
    render_rust_type,
    rust_class,
    rust_ident,
    rust_module,
)

__all__ = [
    "RustImports",
    "Verdict",
    "builtin_mirror_name",
    "classify",
    "finalize_rust_module_tree",
    "generate_rust_api_file",
    "generate_rust_import_section",
    "generate_rust_object",
    "is_crate_type_key",
    "object_info_from_type_key",
    "render_rust_type",
    "rust_ident",
]

_PATH = re.compile(r"(?:r#)?\w+(?:::(?:r#)?\w+)+")


def _fill(code: CodeBlock, body: Iterable[str]) -> None:
    blanks = " " * code.indent
    code.lines[1:-1] = [blanks + line if line else line for line in body]


def _call_lines(indent: int, start: str, items: list[str], end: str) -> list[str]:
    """Return ``start item, item end`` on one line or, if that is too long, an item per line."""
    blanks = " " * indent
    one = f"{blanks}{start}{', '.join(items)}{end}"
    if len(one) <= C.RUST_MAX_WIDTH or not items:
        return [one]
    if start.startswith("let "):
        left, _, call = start.partition(" = ")
        moved = f"{blanks}    {call}{', '.join(items)}{end}"
        if len(moved) <= C.RUST_MAX_WIDTH:
            return [f"{blanks}{left} =", moved]
    lines = [f"{blanks}{start.rstrip()}"]
    lines += [f"{blanks}    {item}," for item in items]
    return [*lines, f"{blanks}{end.lstrip()}"]


def _lint(identifiers: Iterable[str], indent: int) -> list[str]:
    """Return the attribute that names which are not lower case need."""
    if all(name.removeprefix("r#").islower() or name == "_" for name in identifiers):
        return []
    return [f"{' ' * indent}#[allow(non_snake_case)]"]


def _type_lint(type_key: str) -> list[str]:
    """Return the attribute that a type needs whose name is not in camel case."""
    leaf = type_key.rpartition(".")[2].strip("_")
    return [] if re.fullmatch(r"[A-Z][A-Za-z0-9]*", leaf) else ["#[allow(non_camel_case_types)]"]


@dataclass
class _Member:
    """A field, of the type itself or of an ancestor."""

    owner: str
    schema: NamedTypeSchema

    @property
    def target(self) -> str:
        return f"{self.owner}.{self.schema.name}"

    @property
    def ident(self) -> str:
        return rust_ident(self.schema.name)


@dataclass
class _Names:
    """How types are called in one block; collects what nothing provides."""

    ty_map: Mapping[str, str]
    imports: RustImports
    declared: Mapping[str, tuple[str, ...]]
    module: tuple[str, ...] | None
    missing: set[str] = field(default_factory=set)

    def scratch(self) -> _Names:
        """Return a copy that leaves no trace."""
        return _Names(self.ty_map, copy.deepcopy(self.imports), self.declared, self.module, set())

    def mapped(self, type_key: str) -> str | None:
        """Return the path that the user gave to a type."""
        path = self.ty_map.get(type_key)
        if is_crate_type_key(type_key) and path == C.RUST_TY_MAP_DEFAULTS.get(type_key):
            return None
        return path

    def recorded(self, path: str) -> str:
        """Return how to write a path here."""
        use = RustUse(path)
        if self.module is not None and use.path.rpartition("::")[0] == "::".join(self.module):
            return use.leaf
        return self.imports.record(path)

    def generated(self, type_key: str, suffix: str = "") -> str:
        """Return how to write a type that this run generates."""
        leaf = rust_class(type_key, suffix)
        if type_key not in self.declared:
            self.missing.add(type_key)
            return leaf
        module = self.declared[type_key]
        return leaf if module == self.module else self.imports.record("::".join((*module, leaf)))

    def class_of(self, type_key: str, suffix: str = "") -> str:
        """Return how to write a type that is not the crate's, or with a suffix its object."""
        path = self.mapped(type_key)
        if path is not None:
            return self.recorded(path + suffix)
        return self.generated(type_key, suffix)

    def of_schema(self, origin: str, type_key: str | None) -> str | None:
        """Return how to write a type without arguments, or None if Rust has none."""
        path = self.ty_map.get(type_key) if type_key is not None else None
        if path is None:
            path = self.ty_map.get(origin)
        if path is not None:
            return self.recorded(path)
        if "." not in origin or origin.startswith("ctypes.") or is_crate_type_key(origin):
            return None
        return self.generated(origin)

    def written(self, text: str) -> str:
        """Return a type as a directive gives it; a path is imported."""
        return self.recorded(text) if _PATH.fullmatch(text) else text

    # ---- fields ----

    def _given(self, member: _Member) -> str | None:
        """Return the type that a directive gives to a field."""
        directives, size = self.imports.directives, member.schema.size
        enum = directives.enums.get(member.target)
        if enum is not None:
            _check_width(member.target, enum.name, size, C.RUST_SCALAR_WIDTHS[enum.repr])
            return enum.name
        text = directives.field_types.get(member.target)
        if text is None:
            return None
        _check_width(member.target, text, size, C.RUST_SCALAR_WIDTHS.get(text))
        return self.written(text)

    def _maybe_nullable(self, member: _Member, text: str | None) -> str | None:
        if member.target not in self.imports.directives.nullable:
            return text
        size = member.schema.size
        if size is not None and size != C.RUST_POINTER_SIZE:
            raise ValueError(
                f"`nullable` directive on `{member.target}`: the field is {size} bytes, "
                "not a pointer-sized object reference"
            )
        if text is None or text.startswith("Option<"):
            return text
        return f"Option<{text}>"

    def mirror(self, member: _Member) -> str | None:
        """Return the type of a field with the same bytes, or None."""
        text = self._given(member)
        if text is None:
            text = self._mirror_of_schema(member.schema, member.schema.size)
        return self._maybe_nullable(member, text)

    def _mirror_of_schema(self, schema: TypeSchema, size: int | None) -> str | None:
        if schema.origin == "Optional":
            return self._mirror_of_optional(schema, size)
        scalar = C.RUST_SCALAR_BY_SIZE.get((schema.origin, size or 0))
        if scalar is not None:
            return scalar
        if getattr(schema, "type_key", None) is None and schema.origin in ("int", "float"):
            return None  # of a size that no scalar has
        return render_rust_type(schema, self.of_schema)

    def _mirror_of_optional(self, schema: TypeSchema, size: int | None) -> str | None:
        payload = schema.args[0] if schema.args else None
        if payload is None or payload.origin == "Any":
            return None
        text = render_rust_type(payload, self.of_schema)
        if text is None:
            return None
        if payload.origin in (*C.RUST_ANY_BACKED_OPTIONAL_PAYLOADS, "Optional"):
            if size != C.RUST_OPTIONAL_FIELD_SIZE:
                return None
            return f"{self.imports.record(C.RUST_OPTIONAL_PATH)}<{text}>"
        return f"Option<{text}>" if size == C.RUST_OBJECT_OPTIONAL_FIELD_SIZE else None

    def getter(self, member: _Member) -> str | None:
        """Return the type that a field is read as, or None for `Any`."""
        text = self._given(member)
        if text is None:
            schema: TypeSchema = member.schema
            inner = schema.args[0] if schema.origin == "Optional" and schema.args else schema
            if inner.origin != "Any":
                text = render_rust_type(schema, self.of_schema)
        return self._maybe_nullable(member, text)


def _check_width(target: str, text: str, size: int | None, width: int | None) -> None:
    if size is not None and width is not None and size != width:
        raise ValueError(
            f"Directive on `{target}` maps a {size}-byte field to `{text}` ({width} bytes)"
        )


# ---- a type -------------------------------------------------------------------------------------


@dataclass
class _Object:
    """Everything that is known when the text of a type is written."""

    info: ObjectInfo
    names: _Names
    leaf: str
    base: str
    base_is_ours: bool
    verdict: Verdict
    ancestors: list[ObjectInfo]

    @property
    def key(self) -> str:
        return str(self.info.type_key)

    @property
    def obj(self) -> str:
        return rust_class(self.key, "Obj")

    def own(self) -> list[_Member]:
        return [_Member(self.key, item) for item in self.info.fields]

    def own_by_offset(self) -> list[_Member]:
        return sorted(self.own(), key=lambda member: member.schema.offset or 0)

    def inherited(self) -> list[_Member]:
        """Return the fields of the ancestors, root first, each level by offset."""
        return [
            _Member(str(info.type_key), item)
            for info in self.ancestors
            if not is_crate_type_key(str(info.type_key))
            for item in sorted(info.fields, key=lambda item: item.offset or 0)
        ]

    # ---- sections ----

    def enums(self) -> list[list[str]]:
        specs = self.names.imports.directives.enums
        return [_enum_lines(specs[m.target], self.names) for m in self.own() if m.target in specs]

    def struct(self) -> list[str]:
        complete = self.verdict.is_complete
        fields = [(m.ident, self.names.mirror(m)) for m in self.own_by_offset()] if complete else []
        if complete:
            lines = [f"/// Complete: {self.verdict.detail}."]
            lines += _lint((ident for ident, _ in fields), 0)
        else:
            end = "Fields are read through the C ABI getters."
            lines = [f"/// Opaque: {self.verdict.detail}. {end}"]
        lines += _type_lint(self.key)
        lines += ["#[repr(C)]", "#[derive(tvm_ffi::derive::Object)]"]
        lines.append(f'#[type_key = "{self.key}"]')
        if self.info.is_final:
            lines.append("#[type_final]")
        lines += [f"pub struct {self.obj} {{", f"    base: {self.base},"]
        lines += [f"    pub {ident}: {text}," for ident, text in fields]
        return [*lines, "}"]

    def assertion(self) -> list[str]:
        return [
            "const _: () = {",
            f"    assert!(::core::mem::size_of::<{self.obj}>() == {self.verdict.total_size});",
            f"    assert!(::core::mem::align_of::<{self.obj}>() == {self.verdict.alignment});",
            "};",
        ]

    def wrapper(self, arc: str) -> list[str]:
        return [
            *_type_lint(self.key),
            "#[repr(C)]",
            "#[derive(tvm_ffi::derive::ObjectRef, Clone)]",
            f"pub struct {self.leaf} {{",
            f"    base: {arc}<{self.obj}>,",
            "}",
        ]

    def accessors(self) -> list[str]:
        imports = self.names.imports
        core = imports.record("tvm_ffi::ObjectCore")
        index = "Self::type_index()" if "::" not in core else f"<Self as {core}>::type_index()"
        getter = imports.record("tvm_ffi::FieldGetter")
        result = imports.record("tvm_ffi::Result")
        lines = [f"impl {self.obj} {{"]
        for i, member in enumerate(self.own()):
            if i:
                lines.append("")
            lines += _lint([member.ident], 4)
            call = f'{getter}::new({index}, "{member.schema.name}")?'
            enum = imports.directives.enums.get(member.target)
            text = self.names.getter(member)
            if text is None:
                text, call = imports.record("tvm_ffi::Any"), f"{call}.get_any(self)"
            elif enum is None:
                call = f"{call}.get(self)"
            lines.append(f"    pub fn {member.ident}(&self) -> {result}<{text}> {{")
            if enum is None:
                lines.append(f"        {call}")
            else:
                lines.append(f"        let raw: i64 = {call}.get(self)?;")
                lines.append(f"        {enum.name}::try_from(raw)")
            lines.append("    }")
        return [*lines, "}"]

    def _parameters(self) -> list[tuple[_Member, str, bool]]:
        """Return every field with its type, and whether it is narrower than for the parent."""
        directives = self.names.imports.directives
        chain = [*(str(info.type_key) for info in self.ancestors), self.key]
        found = []
        for member in [*self.inherited(), *self.own_by_offset()]:
            below = chain[chain.index(member.owner) + 1 :]
            targets = (f"{key}.{member.schema.name}" for key in reversed(below))
            narrower = next(filter(None, map(directives.field_types.get, targets)), None)
            if narrower is not None:
                own = f"{self.key}.{member.schema.name}" in directives.field_types
                found.append((member, self.names.written(narrower), own))
            else:
                text = self.names.mirror(member)
                assert text is not None, "a complete type has only fields that can be mirrored"
                found.append((member, text, False))
        return found

    def allocator(self) -> list[str]:
        """Return the function that makes the object's bytes."""
        parameters = self._parameters()
        visible = "pub(crate)" if self.info.is_final else "pub"
        own = [member.ident for member in self.own_by_offset()]
        passed = [
            f"{member.ident}.into()" if narrowed else member.ident
            for member, _, narrowed in parameters
            if member.owner != self.key
        ]
        shown = [f"{member.ident}: {text}" for member, text, _ in parameters]
        return [
            f"impl {self.obj} {{",
            *_lint((member.ident for member, _, _ in parameters), 4),
            *_call_lines(4, f"{visible} fn new(", shown, ") -> Self {"),
            *_call_lines(8, f"let base = {self.base}::new(", passed, ");"),
            *_call_lines(8, "Self { ", ["base", *own], " }"),
            "    }",
            "}",
        ]

    def wrapper_allocator(self, arc: str) -> list[str]:
        """Return the function that makes an object."""
        shown, passed = [], []
        parameters = self._parameters()
        for member, text, _ in parameters:
            exact = text in C.RUST_EXACT_PARAMS
            shown.append(f"{member.ident}: {text if exact else f'impl Into<{text}>'}")
            passed.append(member.ident if exact else f"{member.ident}.into()")
        custom = self.key in self.names.imports.directives.custom_new
        return [
            f"impl {self.leaf} {{",
            "    /// Lossless complete-field allocation.",
            *_lint((member.ident for member, _, _ in parameters), 4),
            *_call_lines(4, f"pub fn {'from_fields' if custom else 'new'}(", shown, ") -> Self {"),
            *_call_lines(8, f"let obj = {self.obj}::new(", passed, ");"),
            f"        Self {{ base: {arc}::new(obj) }}",
            "    }",
            "}",
        ]

    def shallow_copy(self) -> list[str]:
        """Return how to copy the object's bytes, if everything below the root is generated here."""
        above = [str(i.type_key) for i in self.ancestors if i.type_key != C.RUST_ROOT_TYPE_KEY]
        ours = all(self.names.mapped(k) is None and k in self.names.declared for k in above)
        if self.info.is_final or not ours:
            return []
        trait = self.names.imports.record("tvm_ffi::ShallowCopy")
        items = [f"base: {trait}::shallow_copy(&self.base)"]
        idents = [member.ident for member in self.own_by_offset()]
        items += [f"{ident}: Clone::clone(&self.{ident})" for ident in idents]
        return [
            f"impl {trait} for {self.obj} {{",
            "    fn shallow_copy(&self) -> Self {",
            *_call_lines(8, "Self { ", items, " }"),
            "    }",
            "}",
        ]

    def upcasts(self) -> list[str]:
        keys = [str(info.type_key) for info in self.ancestors]
        targets = [self.names.class_of(key) for key in keys if not is_crate_type_key(key)]
        given = self.names.imports.directives.upcasts.get(self.key, [])
        targets += [self.names.written(text) for text in given]
        if not targets:
            return []
        pairs = ", ".join(f"{self.leaf} => {target}" for target in targets)
        return [f"tvm_ffi::impl_object_upcast!({pairs});"]


def _deref_lines(deref: str, name: str, target: str) -> list[str]:
    return [
        f"impl {deref} for {name} {{",
        f"    type Target = {target};",
        f"    fn deref(&self) -> &{target} {{",
        "        &self.base",
        "    }",
        "}",
    ]


def _enum_lines(spec: EnumSpec, names: _Names) -> list[str]:
    error = names.imports.record("tvm_ffi::Error")
    kind = names.imports.record("tvm_ffi::VALUE_ERROR")
    result = names.imports.record("tvm_ffi::Result")
    name, raw = spec.name, spec.repr
    members = [f"    pub const {key}: Self = Self({value});" for key, value in spec.members]
    message = f'&format!("{name} value {{value}} does not fit {raw}")'
    return [
        "#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]",
        "#[repr(transparent)]",
        f"pub struct {name}({raw});",
        "",
        "#[allow(non_upper_case_globals)]",
        f"impl {name} {{",
        *members,
        f"    pub const fn from_raw(value: {raw}) -> Self {{",
        "        Self(value)",
        "    }",
        f"    pub const fn as_raw(self) -> {raw} {{",
        "        self.0",
        "    }",
        "}",
        "",
        f"impl TryFrom<i64> for {name} {{",
        f"    type Error = {error};",
        f"    fn try_from(value: i64) -> {result}<Self> {{",
        f"        {raw}::try_from(value).map(Self).map_err(|_| {{",
        f'            {error}::new({kind}, {message}, "")',
        "        })",
        "    }",
        "}",
    ]


def _base_of(info: ObjectInfo, names: _Names) -> tuple[str, bool]:
    """Return the base of the object struct, and whether it is not the crate's."""
    parent = info.parent_type_key
    if parent is None or parent == C.RUST_ROOT_TYPE_KEY:
        return names.imports.record("tvm_ffi::Object"), False
    if is_crate_type_key(parent) and names.mapped(parent) is None:
        chain = [*info.ancestors] or [parent]
        below = [key for key in chain if key != C.RUST_ROOT_TYPE_KEY]
        return names.imports.record_builtin_base(below), False
    return names.class_of(parent, "Obj"), True


def _verdict_of(info: ObjectInfo, ancestors: list[ObjectInfo], names: _Names) -> Verdict:
    scratch = names.scratch()
    owners = {
        id(item): str(level.type_key) for level in (*ancestors, info) for item in level.fields
    }
    builtin = {
        str(level.type_key)
        for level in ancestors
        if is_crate_type_key(str(level.type_key)) and level.type_key != C.RUST_ROOT_TYPE_KEY
    }
    return classify(
        [*ancestors, info],
        forced_opaque=names.imports.directives.opaque,
        unmirrored=builtin,
        field_renderable=lambda item: scratch.mirror(_Member(owners[id(item)], item)) is not None,
    )[str(info.type_key)]


def generate_rust_object(
    code: CodeBlock,
    ty_map: Mapping[str, str],
    imports: RustImports,
    opt: Options,
    obj_info: ObjectInfo,
    declared: Mapping[str, tuple[str, ...]],
) -> None:
    """Write the items of a type. `declared` has the module of every type of the run."""
    key = str(obj_info.type_key)
    leaf = rust_class(key)
    if not is_rust_name(key.rpartition(".")[2]):
        raise ValueError(f"`{key}` (line {code.lineno_start}): its name cannot be written in Rust")
    imports.reserve([key])
    names = _Names(ty_map, imports, declared, declared.get(key))
    deref = imports.record("std::ops::Deref")
    arc = imports.record("tvm_ffi::ObjectArc")
    base, base_is_ours = _base_of(obj_info, names)
    ancestors = [object_info_from_type_key(ancestor) for ancestor in obj_info.ancestors]
    verdict = _verdict_of(obj_info, ancestors, names)
    item = _Object(obj_info, names, leaf, base, base_is_ours, verdict, ancestors)

    sections = [*item.enums(), item.struct()]
    if verdict.is_complete:
        sections.append(item.assertion())
    sections += [item.wrapper(arc), _deref_lines(deref, leaf, item.obj)]
    if base_is_ours:
        sections.append(_deref_lines(deref, item.obj, base))
    if verdict.is_complete:
        sections += [item.allocator(), item.wrapper_allocator(arc), item.shallow_copy()]
    elif obj_info.fields:
        sections.append(item.accessors())
    sections.append(item.upcasts())

    if names.missing:
        keys = ", ".join(f"`{missing}`" for missing in sorted(names.missing))
        raise ValueError(
            f"`{key}` (line {code.lineno_start}) depends on {keys}, which this run does not ask "
            "for: add an `object/<key>` block or a `ty-map` directive for each"
        )
    lines: list[str] = []
    for section in filter(None, sections):
        lines += [*([""] if lines else []), *section]
    for name in imports.reserved & C.RUST_PRELUDE.keys():
        pattern, path = C.RUST_PRELUDE[name]
        lines = [re.sub(pattern, path, line) for line in lines]
    _fill(code, lines)


# ---- files --------------------------------------------------------------------------------------


def generate_rust_import_section(
    code: CodeBlock, imports: RustImports, opt: Options, defined_types: set[str]
) -> None:
    """Write the ``use`` lines, and the stand-ins for built-in parents."""
    uses = {item.as_use_line() for item in imports.items if item.path not in defined_types}
    lines = sorted(filter(None, uses))
    for key, base in imports.builtin_mirrors.items():
        carries = "it only carries the ancestor depth"
        lines += [
            "",
            f"/// Header-only stand-in for the builtin `{key}`; {carries}.",
            "#[allow(dead_code)]",
            "#[repr(C)]",
            "#[derive(tvm_ffi::derive::Object)]",
            f'#[type_key = "{key}"]',
            f"struct {builtin_mirror_name(key)} {{",
            f"    base: {base},",
            "}",
        ]
    _fill(code, lines)


def generate_rust_api_file(
    code_blocks: list[CodeBlock],
    ty_map: Mapping[str, str],
    module_name: str,
    object_infos: list[ObjectInfo],
    init_cfg: InitConfig,
    is_root: bool,
    syntax: MarkerSyntax,
) -> str:
    """Return what the file of a module lacks."""
    text = ""
    if not code_blocks:
        text += "#![allow(dead_code, unused_imports)]\n\n"
        text += f"//! FFI bindings for `{module_name}` (generated by tvm-ffi-stubgen).\n\n"
    if not any(block.kind == "import-section" for block in code_blocks):
        text += f"{syntax.begin} import-section\n{syntax.end}\n\n"
    known = {block.param for block in code_blocks if block.kind == "object"}
    for info in object_infos:
        if info.type_key not in known:
            text += f"{syntax.begin} object/{info.type_key}\n{syntax.end}\n\n"
    return text


def finalize_rust_module_tree(init_path: Path, prefixes: Iterable[str]) -> None:
    """Declare the modules of the prefixes in the ``mod.rs`` above each."""
    wanted: dict[Path, set[str]] = {}
    for prefix in prefixes:
        directory = Path(init_path)
        for part in prefix.split("."):
            wanted.setdefault(directory / "mod.rs", set()).add(part)
            directory /= part
    for path, modules in wanted.items():
        text = path.read_text("utf-8") if path.is_file() else ""
        present = {line.strip() for line in text.splitlines()}
        lines = [
            line
            for module in sorted(modules)
            if (line := f"pub mod {rust_module(module)};") not in present
        ]
        if not lines:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        text = text.rstrip("\n") + "\n\n" if text.strip() else ""
        path.write_text(text + "\n".join(lines) + "\n", "utf-8")
