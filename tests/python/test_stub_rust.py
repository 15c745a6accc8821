# SPDX-License-Identifier: Apache-2.0
"""`tvm-ffi-stubgen --target rust`, and the layouts it is based on."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tvm_ffi.core import TypeSchema
from tvm_ffi.stub import cli
from tvm_ffi.stub.consts import RUST_SYNTAX
from tvm_ffi.stub.file_utils import CodeBlock
from tvm_ffi.stub.layout import ByteRange, align_up, classify, write_coverage_report
from tvm_ffi.stub.lib_state import object_info_from_type_key
from tvm_ffi.stub.rust_generator import RustGenerator, codegen
from tvm_ffi.stub.rust_generator.consts import RUST_TY_MAP_DEFAULTS
from tvm_ffi.stub.rust_generator.directives import EnumSpec
from tvm_ffi.stub.rust_generator.utils import (
    Directives,
    RustImports,
    RustUse,
    builtin_mirror_name,
    check_tokens,
    render_rust_type,
    rust_ident,
    rust_module_path,
)
from tvm_ffi.stub.utils import InitConfig, NamedTypeSchema, ObjectInfo, Options

MARK = "// tvm-ffi-stubgen"
ROOT = ObjectInfo([], [], "ffi.Object", total_size=24)
INT, STR = TypeSchema("int"), TypeSchema("str")


def item(name: str, offset: int, size: int, schema: Any = INT, align: int = 0) -> NamedTypeSchema:
    return NamedTypeSchema(name, schema, offset=offset, size=size, alignment=align or min(size, 8))


def a_type(
    key: str, size: int | None, *fields: NamedTypeSchema, above: tuple[ObjectInfo, ...] = (ROOT,)
) -> ObjectInfo:
    return ObjectInfo(
        list(fields),
        [],
        key,
        above[-1].type_key,
        ancestors=[str(info.type_key) for info in above],
        total_size=size,
    )


# ---- layouts --------------------------------------------------------------------------------


def verdict(*infos: ObjectInfo, **options: Any) -> Any:
    return classify([*infos, ROOT], **options)[str(infos[-1].type_key)]


@pytest.mark.parametrize(
    ("size", "fields", "reason", "detail"),
    [
        (40, [item("b", 32, 8), item("a", 24, 8)], None, "reflected fields fill [24, 40) exactly"),
        (
            *(40, [item("a", 24, 4), item("b", 32, 8)], None),
            "reflected fields fill [24, 40) exactly (alignment padding [28, 32))",
        ),
        (
            *(32, [item("a", 24, 4)], None),
            "reflected fields fill [24, 32) exactly (alignment padding [28, 32))",
        ),
        (
            *(48, [item("a", 24, 8), item("b", 40, 8)], "uncovered-bytes"),
            "bytes [32, 40) of [24, 48) are not accounted for by reflected fields",
        ),
        (
            *(40, [item("a", 24, 4), item("b", 31, 1)], "uncovered-bytes"),
            "bytes [28, 31), [32, 40) of [24, 40) are not accounted for by reflected fields",
        ),
        (None, [], "layout-unknown", "no metadata of its own: total_size is unknown"),
        (
            *(32, [NamedTypeSchema("a", INT)], "layout-unknown"),
            "field 'a' carries no native layout facts",
        ),
        (
            *(40, [item("a", 24, 8), item("b", 28, 8)], "field-overlap"),
            "field 'b' at [28, 36) starts before byte 32",
        ),
        (
            *(28, [item("a", 24, 8)], "field-overlap"),
            "fields extend to byte 32, past total_size 28",
        ),
    ],
)
def test_layouts(size: int | None, fields: Any, reason: str | None, detail: str) -> None:
    found = verdict(a_type("t.A", size, *fields))
    assert (found.reason, found.detail) == (reason, detail)
    assert found.is_complete == (reason is None)
    offsets = [field.offset for field in found.fields]
    assert offsets == sorted(offsets)


def test_layouts_of_children() -> None:
    parent = a_type("t.A", 48, item("a", 32, 16, align=16))
    child = a_type("t.B", 64, item("b", 48, 8), above=(ROOT, parent))
    found = classify([child, parent, ROOT])
    assert found["ffi.Object"].detail == "object header [0, 24): owned by the C ABI"
    assert [found[key].alignment for key in ("ffi.Object", "t.A", "t.B")] == [8, 16, 16]
    assert found["t.B"].own_bytes == ByteRange(48, 64)
    assert found["t.B"].padding == [ByteRange(56, 64)] and align_up(41, 16) == 48
    assert str(ByteRange(1, 2)) == "[1, 2)"
    found = classify([child, parent, ROOT], unmirrored={"t.A"})
    assert found["t.A"].reason == "no-mirror" and found["t.A"].fields == []
    assert found["t.B"].detail == "parent 't.A' is opaque (no-mirror)"
    with pytest.raises(KeyError, match="Ancestor 't.A' is not among the types to classify"):
        classify([child, ROOT])


def test_what_can_be_rendered_is_asked_for_known_bytes_only() -> None:
    asked: list[str] = []

    def renderable(field: NamedTypeSchema) -> bool:
        asked.append(field.name)
        return field.name != "b"

    info = a_type("t.A", 40, item("a", 32, 8), item("b", 24, 8))
    found = verdict(info, field_renderable=renderable, forced_opaque={"t.A"})
    assert found.detail == "field 'b' (int) has no native mirror" and asked == ["a", "b"]
    found = verdict(info, forced_opaque={"t.A"})
    assert found.detail == "vetoed by directive although the layout is reproducible"
    hidden = a_type("t.H", 48, item("a", 24, 8))
    assert verdict(hidden, forced_opaque={"t.H"}).reason == "uncovered-bytes"


def test_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.json"
    write_coverage_report(path, classify([a_type("t.A", 32, item("a", 24, 8)), ROOT]))
    entry = json.loads(path.read_text())["t.A"]
    assert list(entry) == [
        *("verdict", "reason", "detail", "parent", "ancestors", "total_size", "is_final"),
        *("own_bytes", "fields", "uncovered", "padding"),
    ]
    assert entry["own_bytes"] == [24, 32]
    monkeypatch.setattr(sys, "argv", ["stubgen", "--coverage-out", str(path)])
    assert cli.__main__() == 0
    report = json.loads(path.read_text())
    assert list(report) == sorted(report)
    assert report["testing.TestCxxClassDerivedDerived"]["verdict"] == "complete"
    assert report["testing.TestCxxClassHiddenField"]["reason"] == "uncovered-bytes"
    assert report["testing.TestCxxClassPolymorphic"]["reason"] == "uncovered-bytes"
    assert report["ffi.Module"]["reason"] == "uncovered-bytes"
    assert report["ffi.Function"]["reason"] == "layout-unknown"


# ---- names ----------------------------------------------------------------------------------


def test_uses() -> None:
    assert RustUse("ffi.String").path == "tvm_ffi::String"
    assert RustUse("ffi2.String").path == "ffi2::String"
    assert RustUse("a::b.c").path == "a::b.c" and RustUse("i64").as_use_line() == ""
    assert RustUse("a.b.C").as_use_line() == "use a::b::C;" and RustUse("a.b.C").leaf == "C"
    imports = RustImports(reserved={"Mine"})
    assert [imports.record(name) for name in ("i64", "a::B", "a.B", "c::B", "d::Mine")] == [
        *("i64", "B", "B", "c::B", "d::Mine")
    ]
    assert imports.items == [RustUse("a::B")]
    assert imports.record_builtin_base(["ffi.Enum", "ffi.IntEnum"]) == "FfiIntEnumObj"
    assert imports.builtin_mirrors == {"ffi.Enum": "Object", "ffi.IntEnum": "FfiEnumObj"}
    assert builtin_mirror_name("ffi.reflection.AccessPath") == "Ffi_reflectionAccessPathObj"


@pytest.mark.parametrize(
    ("name", "ident"),
    [
        *(("a", "a"), ("type", "r#type"), ("type_", "r#type"), ("a__", "a__"), ("_", "_")),
        *(("__x__", "x"), ("____", "____"), ("self", "self_"), ("base", "base_"), ("gen", "r#gen")),
        *(("__init__", "init"), ("Self", "Self_")),
    ],
)
def test_identifiers(name: str, ident: str) -> None:
    assert rust_ident(name) == ident


def test_types() -> None:
    def render(schema: TypeSchema) -> str | None:
        return render_rust_type(schema, lambda origin, key: RUST_TY_MAP_DEFAULTS.get(origin))

    nested = TypeSchema("Map", (STR, TypeSchema("Array", (TypeSchema("Optional", (INT,)),))))
    assert render(nested) == "tvm_ffi::Map<tvm_ffi::String, tvm_ffi::Array<Option<i64>>>"
    assert render(TypeSchema("Callable", (INT, INT))) == "tvm_ffi::Function"
    assert render(TypeSchema("List")) == "tvm_ffi::List<tvm_ffi::Any>"
    for origin in ("Dict", "Union", "tuple"):
        schema = TypeSchema(origin, (INT, STR))
        assert render(schema) is None and render(TypeSchema("Array", (schema,))) is None
    assert render(TypeSchema("ctypes.c_void_p")) is None


def test_module_paths(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is in no Cargo crate: no `Cargo.toml` above it"):
        rust_module_path(tmp_path / "src" / "a.rs")
    rust_module_path.cache_clear()
    (tmp_path / "Cargo.toml").touch()
    for name, module in [
        ("lib.rs", ()),
        ("main.rs", ()),
        ("mod.rs", ()),
        ("a/mod.rs", ("a",)),
        ("a/type.rs", ("a", "r#type")),
        ("a/lib.rs", ("a", "lib")),
    ]:
        assert rust_module_path(tmp_path / "src" / name) == ("crate", *module)
    with pytest.raises(ValueError, match="so it is in no module of the crate"):
        rust_module_path(tmp_path / "tests" / "a.rs")


def test_spelling_does_not_count_and_definitions_do() -> None:
    text = ["use a::B;", "// remark", "fn f(a: crate::ir::A, b: i64) -> ::core::mem::X {", "}"]
    same = ["fn f(", "  a: super::super::A,", "  b: i64,", ") -> X {}"]
    assert check_tokens(text) == check_tokens(same)
    for other in ("fn f(a: A, b: i32) -> X {}", "fn g(a: A, b: i64) -> X {}"):
        assert check_tokens([other]) != check_tokens(same)
    assert check_tokens(["a; // said"]) != check_tokens(["a;"]) and check_tokens([]) == []


# ---- directives -----------------------------------------------------------------------------


def test_directives() -> None:
    found = Directives()
    for name, payload in [
        ("field", "a.B.c -> x::Y"),
        ("field", "a.B.d -> Map<K, V>"),
        ("nullable", "a.B.c"),
        ("enum", "a.B.k -> Kind(u8) { A = 0, B=-1, }"),
        ("enum", "a.B.m -> Bare(i32)"),
        ("opaque", "a.B"),
        ("upcast", "a.B -> One"),
        ("upcast", "a.B -> Two"),
        ("custom-new", "a.B"),
    ]:
        found.add(name, payload, 1)
    assert found.field_types == {"a.B.c": "x::Y", "a.B.d": "Map<K, V>"}
    assert found.enums["a.B.k"] == EnumSpec("Kind", "u8", (("A", 0), ("B", -1)))
    assert found.enums["a.B.m"].members == () and found.nullable == {"a.B.c"}
    assert found.upcasts == {"a.B": ["One", "Two"]}
    assert found.opaque == found.custom_new == {"a.B"}


@pytest.mark.parametrize(
    ("name", "payload", "form"),
    [
        ("field", "a.B", "<type_key>.<field> -> <RustType>"),
        ("field", "ab -> X", "<type_key>.<field> -> <RustType>"),
        ("field", "a. b -> X", "<type_key>.<field> -> <RustType>"),
        ("field", "a.b -> ", "<type_key>.<field> -> <RustType>"),
        ("field", "a.b -> c -> d", "<type_key>.<field> -> <RustType>"),
        ("nullable", "a", "<type_key>.<field>"),
        ("nullable", "a.b c", "<type_key>.<field>"),
        ("opaque", "", "<type_key>"),
        ("custom-new", "a b", "<type_key>"),
        ("upcast", "a.B", "<type_key> -> <RustType>"),
        ("enum", "a.B.k -> Kind(f32)", "<type_key>.<field> -> Name(i32) { A=0, B=1 }"),
        ("enum", "a.B.k -> Kind(i32) { A }", "<type_key>.<field> -> Name(i32) { A=0, B=1 }"),
    ],
)
def test_wrong_directives(name: str, payload: str, form: str) -> None:
    with pytest.raises(ValueError) as raised:
        Directives().add(name, payload, 3)
    assert str(raised.value) == f"Invalid `{name}` directive at line 3. Expected `{form}`"
    with pytest.raises(ValueError, match="Unknown directive `x` at line 3"):
        Directives().add("x", "", 3)


# ---- objects --------------------------------------------------------------------------------


def generate(
    monkeypatch: pytest.MonkeyPatch,
    *infos: ObjectInfo,
    directives: tuple[tuple[str, str], ...] = (),
    ty_map: dict[str, str] | None = None,
    declared: dict[str, tuple[str, ...]] | None = None,
) -> tuple[list[str], RustImports]:
    """Return the lines of the last type, whose ancestors are the others."""
    known = {info.type_key: info for info in (ROOT, *infos)}
    monkeypatch.setattr(codegen, "object_info_from_type_key", known.__getitem__)
    imports = RustImports()
    for name, payload in directives:
        imports.directives.add(name, payload, 1)
    code = CodeBlock("object", infos[-1].type_key, 5, 6, ["begin", "end"])
    everywhere = {str(info.type_key): ("crate", "m") for info in infos}
    codegen.generate_rust_object(
        code,
        {**RUST_TY_MAP_DEFAULTS, **(ty_map or {})},
        imports,
        Options(),
        infos[-1],
        everywhere if declared is None else declared,
    )
    return code.lines[1:-1], imports


OPAQUE = """\
/// Opaque: bytes [32, 40) of [24, 40) are not accounted for by reflected fields. Fields are read \
through the C ABI getters.
#[repr(C)]
#[derive(tvm_ffi::derive::Object)]
#[type_key = "t.A"]
pub struct AObj {
    base: Object,
}

#[repr(C)]
#[derive(tvm_ffi::derive::ObjectRef, Clone)]
pub struct A {
    base: ObjectArc<AObj>,
}

impl Deref for A {
    type Target = AObj;
    fn deref(&self) -> &AObj {
        &self.base
    }
}

impl AObj {
    #[allow(non_snake_case)]
    pub fn X(&self) -> Result<Any> {
        FieldGetter::new(Self::type_index(), "X")?.get_any(self)
    }
}"""


def test_an_opaque_type(monkeypatch: pytest.MonkeyPatch) -> None:
    union = TypeSchema("Union", (INT, STR))
    lines, imports = generate(monkeypatch, a_type("t.A", 40, item("X", 24, 8, union)))
    assert "\n".join(lines) == OPAQUE
    assert {use.path for use in imports.items} == {
        *("std::ops::Deref", "tvm_ffi::ObjectArc", "tvm_ffi::Object", "tvm_ffi::ObjectCore"),
        *("tvm_ffi::FieldGetter", "tvm_ffi::Result", "tvm_ffi::Any"),
    }
    lines, _ = generate(monkeypatch, a_type("t.A", None))
    assert not any(line.startswith("impl AObj") for line in lines)


COMPLETE = """\
/// Complete: reflected fields fill [32, 56) exactly.
#[repr(C)]
#[derive(tvm_ffi::derive::Object)]
#[type_key = "t.B"]
pub struct BObj {
    base: AObj,
    pub kind: Kind,
    pub name: String,
}

const _: () = {
    assert!(::core::mem::size_of::<BObj>() == 56);
    assert!(::core::mem::align_of::<BObj>() == 8);
};
"""


def family() -> tuple[ObjectInfo, ObjectInfo]:
    parent = a_type("t.A", 32, item("a", 24, 8))
    child = a_type(
        "t.B", 56, item("name", 40, 16, STR, 8), item("kind", 32, 8), above=(ROOT, parent)
    )
    return parent, child


def test_a_complete_type(monkeypatch: pytest.MonkeyPatch) -> None:
    lines, imports = generate(
        monkeypatch,
        *family(),
        directives=(
            ("enum", "t.B.kind -> Kind(i64) { One=1 }"),
            ("custom-new", "t.B"),
            ("upcast", "t.B -> other::C"),
        ),
    )
    text = "\n".join(lines)
    assert COMPLETE in text and "    pub const One: Self = Self(1);" in text
    assert "    pub fn new(a: i64, kind: Kind, name: String) -> Self {" in text
    assert "        let base = AObj::new(a);" in text
    into = "a: i64, kind: impl Into<Kind>, name: impl Into<String>"
    assert f"    pub fn from_fields({into}) -> Self {{" in text
    assert "        let obj = BObj::new(a, kind.into(), name.into());" in text
    assert "impl ShallowCopy for BObj {" in text
    assert lines[-1] == "tvm_ffi::impl_object_upcast!(B => A, B => C);"
    assert "impl Deref for BObj {\n    type Target = AObj;" in text
    assert RustUse("tvm_ffi::VALUE_ERROR") in imports.items


def test_a_final_type_and_a_narrower_field(monkeypatch: pytest.MonkeyPatch) -> None:
    parent, child = family()
    child.is_final = True
    lines, _ = generate(monkeypatch, parent, child, directives=(("field", "t.B.a -> x::Narrow"),))
    assert "#[type_final]" in lines
    assert "    pub(crate) fn new(a: Narrow, kind: i64, name: String) -> Self {" in lines
    assert "        let base = AObj::new(a.into());" in lines
    assert not any("ShallowCopy" in line for line in lines)


def test_optional_and_other_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    def optional(schema: TypeSchema) -> TypeSchema:
        return TypeSchema("Optional", (schema,))

    own = TypeSchema("t.A")
    fields = [
        item("a", 24, 16, optional(INT), 8),
        item("b", 40, 8, optional(own)),
        item("c", 48, 8, TypeSchema("Array", (own,))),
        item("d", 56, 8, TypeSchema("Object")),
        item("e", 64, 4, TypeSchema("float")),
        item("f", 68, 1, TypeSchema("bool")),
        item("g", 72, 8, TypeSchema("Device"), 4),
    ]
    directives = (("nullable", "t.A.d"), ("nullable", "t.A.b"))
    lines, _ = generate(monkeypatch, a_type("t.A", 80, *fields), directives=directives)
    assert lines[lines.index("    base: Object,") + 1 :][:7] == [
        "    pub a: Optional<i64>,",
        "    pub b: Option<A>,",
        "    pub c: Array<A>,",
        "    pub d: Option<ObjectRef>,",
        "    pub e: f32,",
        "    pub f: bool,",
        "    pub g: DLDevice,",
    ]
    for schema in (optional(TypeSchema("Any")), TypeSchema("ctypes.c_void_p"), own):
        size = 24 if schema is own else 16  # an object is a pointer: 24 bytes cannot be one
        info = a_type("t.A", 24 + size, item("x", 24, size, schema, 8))
        if schema is own:
            continue
        assert generate(monkeypatch, info)[0][0].startswith("/// Opaque: field 'x' (")


@pytest.mark.parametrize(
    ("directive", "message"),
    [
        (("field", "t.A.x -> i32"), "Directive on `t.A.x` maps a 16-byte field to `i32` (4 bytes)"),
        (("enum", "t.A.x -> K(u8)"), "Directive on `t.A.x` maps a 16-byte field to `K` (1 bytes)"),
        (
            ("nullable", "t.A.x"),
            "`nullable` directive on `t.A.x`: the field is 16 bytes, "
            "not a pointer-sized object reference",
        ),
    ],
)
def test_widths(monkeypatch: pytest.MonkeyPatch, directive: Any, message: str) -> None:
    with pytest.raises(ValueError) as raised:
        generate(monkeypatch, a_type("t.A", 40, item("x", 24, 16, STR)), directives=(directive,))
    assert str(raised.value) == message


def test_types_that_nothing_provides(monkeypatch: pytest.MonkeyPatch) -> None:
    parent, child = family()
    child.fields.append(item("z", 56, 8, TypeSchema("x.Z")))
    child.total_size = 64
    with pytest.raises(ValueError) as raised:
        generate(monkeypatch, parent, child, declared={"t.B": ("crate",)})
    assert str(raised.value) == (
        "`t.B` (line 5) depends on `t.A`, `x.Z`, which this run does not ask for: "
        "add an `object/<key>` block or a `ty-map` directive for each"
    )
    lines, imports = generate(
        monkeypatch,
        parent,
        child,
        ty_map={"t.A": "other::A", "x.Z": "crate::m::Z"},
        declared={"t.B": ("crate", "m")},
    )
    assert "    base: AObj," in lines and "    pub z: Z," in lines
    assert RustUse("other::AObj") in imports.items
    assert RustUse("crate::m::Z") not in imports.items  # the block's own module
    assert not any("ShallowCopy" in line for line in lines)


def test_parents_in_other_modules_and_of_the_same_name(monkeypatch: pytest.MonkeyPatch) -> None:
    parent = a_type("s.B", 24)
    child = a_type("t.B", 24, above=(ROOT, parent))
    declared = {"s.B": ("crate", "s"), "t.B": ("crate", "t")}
    lines, _ = generate(monkeypatch, parent, child, declared=declared)
    assert "    base: crate::s::BObj," in lines
    assert lines[-1] == "tvm_ffi::impl_object_upcast!(B => crate::s::B);"


def test_parents_of_the_crate_have_stand_ins() -> None:
    code = CodeBlock("object", "testing.TestCxxIntEnum", 1, 2, ["    begin", "    end"])
    info = object_info_from_type_key("testing.TestCxxIntEnum")
    imports = RustImports()
    codegen.generate_rust_object(code, RUST_TY_MAP_DEFAULTS, imports, Options(), info, {})
    assert "        base: FfiIntEnumObj," in code.lines
    section = CodeBlock("import-section", "", 1, 2, ["begin", "end"])
    codegen.generate_rust_import_section(section, imports, Options(), {"tvm_ffi::Object"})
    text = "\n".join(section.lines)
    assert "struct FfiIntEnumObj {\n    base: FfiEnumObj,\n}" in text
    assert "use tvm_ffi::Object;" not in text and "use tvm_ffi::ObjectArc;" in text


def test_long_lines_are_broken_at_100_columns() -> None:
    items = ["a" * 30, "b" * 30]
    wide = 100 - len("    fn f(") - 62 - len(") {")
    assert len(codegen._call_lines(4, "fn f(", [*items, "c" * (wide - 2)], ") {")) == 1
    assert codegen._call_lines(4, "fn f(", [*items, "c" * (wide - 1)], ") {") == [
        "    fn f(",
        *(f"        {text}," for text in [*items, "c" * (wide - 1)]),
        "    ) {",
    ]
    moved = codegen._call_lines(8, "let obj = f(", ["x" * 82], ");")
    assert moved == ["        let obj =", "            f(" + "x" * 82 + ");"]
    assert codegen._call_lines(8, "Self { ", ["x" * 90, "y"], " }") == [
        "        Self {",
        "            " + "x" * 90 + ",",
        "            y,",
        "        }",
    ]


# ---- files and the command ------------------------------------------------------------------


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> int:
    monkeypatch.setattr(sys, "argv", ["x", *map(str, arguments), "--target", "rust"])
    return cli.__main__()


@pytest.fixture
def crate(tmp_path: Path) -> Path:
    """The folder for generated modules of a crate."""
    (tmp_path / "Cargo.toml").touch()
    generated = tmp_path / "src" / "generated"
    generated.mkdir(parents=True)
    rust_module_path.cache_clear()
    return generated


def test_a_new_module_tree(crate: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    arguments = ["--init-pypkg", "p", "--init-lib", "l", "--init-prefix", "testing"]
    assert run(monkeypatch, crate, *arguments) == 0
    assert (crate / "mod.rs").read_text() == "pub mod testing;\n"
    path = crate / "testing" / "mod.rs"
    text = path.read_text()
    assert text.startswith("#![allow(dead_code, unused_imports)]\n\n//! FFI bindings for `testing`")
    assert "pub struct TestCxxClassDerivedDerivedObj {" in text
    assert run(monkeypatch, crate, *arguments) == 0 and path.read_text() == text
    assert run(monkeypatch, crate, "--check") == 0
    path.write_text(text.replace("use tvm_ffi::Object;\n", "").replace("(v_i64, ", "(\n v_i64,"))
    assert run(monkeypatch, crate, "--check") == 0  # only spelled in another way
    path.write_text(text.replace("pub v_i64: i64", "pub v_i64: i32"))
    assert run(monkeypatch, crate, "--check") == 1
    assert f"[Stale] {path}" in capsys.readouterr().out
    assert run(monkeypatch, crate) == 0 and path.read_text() == text
    (crate.parents[1] / "Cargo.toml").unlink()
    rust_module_path.cache_clear()
    assert run(monkeypatch, crate) == 2


def test_prefixes_and_files_of_a_run(crate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (crate / "base.rs").write_text(
        f"{MARK}(begin): import-section\n{MARK}(end)\n"
        f"{MARK}(begin): object/testing.TestCxxClassBase\n{MARK}(end)\n"
    )
    (crate / "rest.rs").write_text(f"{MARK}(prefix): testing\n")
    (crate / "ffi.rs").write_text(f"{MARK}(prefix): ffi\n")
    assert run(monkeypatch, crate, "--check") == 1
    assert run(monkeypatch, crate) == 0
    text = (crate / "rest.rs").read_text()
    assert "use crate::generated::base::TestCxxClassBaseObj;" in text
    assert "object/testing.TestCxxClassBase\n" not in text
    assert "object/ffi" not in (crate / "ffi.rs").read_text()
    assert run(monkeypatch, crate, "--check") == 0
    (crate / "bad.rs").write_text(f"{MARK}(unknown): x\n")
    assert run(monkeypatch, crate, "--check") == 2


class TestNames:
    """Types and prefixes whose names mean something in Rust."""

    @pytest.fixture(autouse=True)
    def types(self) -> None:
        from tvm_ffi import Object
        from tvm_ffi.dataclasses import py_class
        from tvm_ffi.registry import get_registered_type_keys

        names = [
            "Abc",
            "Object",
            "String",
            "match",
            "Self",
            "a-b",
            "type.Foo",
            "mod.Baz",
            "d-d.Bar",
        ]
        names += ["str", "i32", "tvm_ffi", "Abc.Nested", "Abc.deep.Nested"]
        for name in [*names, "self.X", "Option", "both.Pair", "both.PairObj"]:
            key = f"testing_rust_names.{name}"
            if key not in get_registered_type_keys():
                py_class(key)(
                    type("T", (Object,), {"__annotations__": {"s": str, "t": str | None}})
                )

    def test_names_are_made_free_or_left_out(
        self, crate: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
    ) -> None:
        prefix = "testing_rust_names"
        arguments = ["--init-pypkg", "p", "--init-lib", "l", "--init-prefix", prefix]
        assert run(monkeypatch, crate, *arguments) == 2
        out = capsys.readouterr().out
        for name in ("d-d", "mod", "self"):
            assert f"[Skipped] `{prefix}.{name}` cannot be the name of a module in rust" in out
        for name in ("a-b", "str", "i32", "tvm_ffi"):
            assert f"[Skipped] `{prefix}.{name}` cannot be the name of a type in rust" in out
        for name in ("Abc", "Abc.deep"):  # a module beside the struct
            text = f"[Skipped] `{prefix}.{name}`: in rust `{prefix}.Abc` is already a type"
            assert text in out
        assert f"`{prefix}.both.Pair` and `{prefix}.both.PairObj` both define `PairObj`" in out
        text = (crate / prefix / "mod.rs").read_text()
        assert "use tvm_ffi::Object;" not in text and "use tvm_ffi::String;" not in text
        assert "    base: tvm_ffi::Object,\n    pub s: tvm_ffi::String,\n" in text
        for line in ("struct r#match {", "struct matchObj {", "struct Self_ {", "struct SelfObj {"):
            assert f"pub {line}" in text
        assert "::core::option::Option<" in text or "tvm_ffi::Optional" in text
        assert not any(" Option<" in line for line in text.splitlines())
        assert text.endswith("pub mod both;\npub mod r#type;\n")
        assert run(monkeypatch, crate / prefix / "type") == 0
        asked = crate / "asked.rs"
        asked.write_text(f"{MARK}(begin): object/{prefix}.i32\n{MARK}(end)\n")
        assert run(monkeypatch, asked) == 2
        assert f"`{prefix}.i32` cannot be the name of a type in rust" in capsys.readouterr().out


def test_module_declarations_are_added_once(tmp_path: Path) -> None:
    (tmp_path / "mod.rs").write_text("pub mod b;\n// mine")
    for _ in range(2):
        codegen.finalize_rust_module_tree(tmp_path, ["b", "c.type", "a"])
        assert (
            tmp_path / "mod.rs"
        ).read_text() == "pub mod b;\n// mine\n\npub mod a;\npub mod c;\n"
        assert (tmp_path / "c" / "mod.rs").read_text() == "pub mod r#type;\n"


def test_what_a_file_lacks() -> None:
    config = InitConfig("p", "l", "t")
    text = codegen.generate_rust_api_file([], {}, "t", [ROOT], config, True, RUST_SYNTAX)
    assert text.endswith(
        f"{MARK}(begin): import-section\n{MARK}(end)\n\n"
        f"{MARK}(begin): object/ffi.Object\n{MARK}(end)\n\n"
    )
    blocks = [
        CodeBlock("import-section", "", 1, 2, []),
        CodeBlock("object", "ffi.Object", 1, 2, []),
    ]
    again = codegen.generate_rust_api_file(blocks, {}, "t", [ROOT], config, True, RUST_SYNTAX)
    assert again == ""


def test_the_generator() -> None:
    generator = RustGenerator()
    imports = generator.new_imports()
    generator.add_directive(imports, "import-object", "a::B;False;x", 1)
    generator.add_directive(imports, "opaque", "t.A", 1)
    assert imports.items == [RustUse("a::B")] and imports.directives.opaque == {"t.A"}
    assert generator.is_builtin("ffi.X") and not generator.is_builtin("ffix.X")
    assert generator.canonical_type_name("ffi.X") == "tvm_ffi::X"
    assert (
        generator.extra_export_names(imports)
        == set()
        == set(generator.generate_init_file([], "", ""))
    )
