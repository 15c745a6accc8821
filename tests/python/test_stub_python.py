# SPDX-License-Identifier: Apache-2.0
"""`tvm-ffi-stubgen`: markers, signatures, files and exit states of the Python target."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tvm_ffi.testing
from support import compile_library
from tvm_ffi import core, method
from tvm_ffi.core import MISSING, TypeSchema
from tvm_ffi.dataclasses import py_class
from tvm_ffi.stub import cli, consts, file_utils, lib_state
from tvm_ffi.stub.consts import PYTHON_SYNTAX as SYNTAX
from tvm_ffi.stub.consts import RUST_SYNTAX
from tvm_ffi.stub.file_utils import CodeBlock, FileInfo, collect_files
from tvm_ffi.stub.generator import generator_names, get_generator
from tvm_ffi.stub.python_generator import PythonGenerator, bases
from tvm_ffi.stub.python_generator import codegen as gen
from tvm_ffi.stub.python_generator import consts as python_consts
from tvm_ffi.stub.python_generator.utils import ImportItem
from tvm_ffi.stub.utils import (
    FuncInfo,
    InitConfig,
    InitFieldInfo,
    NamedTypeSchema,
    ObjectInfo,
    Options,
)

MARK = "# tvm-ffi-stubgen"
OPTIONS = Options()
INT, STR, ANY = TypeSchema("int"), TypeSchema("str"), TypeSchema("Any")


def function(name: str, *types: TypeSchema, is_member: bool = False) -> FuncInfo:
    return FuncInfo.from_schema(name, TypeSchema("Callable", types), is_member=is_member)


def block(text: str, syntax: Any = SYNTAX) -> CodeBlock:
    """Return the block between a begin marker with this text and its end."""
    begin = f"{syntax.begin} {text.strip()}"
    code = CodeBlock.from_begin_line(1, begin, syntax)
    indent = text[: len(text) - len(text.lstrip())]
    code.lines = [indent + begin, indent + syntax.end]
    return code


def body(code: CodeBlock) -> list[str]:
    return code.lines[1:-1]


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> int:
    monkeypatch.setattr(sys, "argv", ["tvm-ffi-stubgen", *map(str, arguments)])
    return cli.__main__()


def write(path: Path, *lines: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(line + "\n" for line in lines))
    return path


# ---- markers --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kind", "param"),
    [
        ("(begin): global/a.b", "global", ("a.b", "")),
        ("(begin): global/a.b@my.mod", "global", ("a.b", "my.mod")),
        ("(begin): object/a.B", "object", "a.B"),
        ("(begin): export/_ffi_api", "export", "_ffi_api"),
        ("(begin): import-section", "import-section", ""),
        ("(begin): __all__", "__all__", ""),
        ("(ty-map): a.B -> c.D", "directive", ("ty-map", "a.B -> c.D")),
        ("(import-object): a.b;False;c", "directive", ("import-object", "a.b;False;c")),
        ("(anything-else):", "directive", ("anything-else", "")),
    ],
)
def test_marker_lines(text: str, kind: Any, param: Any) -> None:
    code = CodeBlock.from_begin_line(7, MARK + text, SYNTAX)
    assert (code.kind, code.param, code.lineno_start, code.lines) == (kind, param, 7, [])
    assert code.lineno_end == (7 if kind == "directive" else None) and code.indent == 0


def test_names_of_markers() -> None:
    assert SYNTAX.prefix == f"{MARK}(" and SYNTAX.end == f"{MARK}(end)"
    assert SYNTAX.begin == f"{MARK}(begin):" and SYNTAX.ty_map == f"{MARK}(ty-map):"
    assert SYNTAX.import_object == f"{MARK}(import-object):"
    assert SYNTAX.skip_file == f"{MARK}(skip-file)"
    assert RUST_SYNTAX.directive("x") == "// tvm-ffi-stubgen(x):"
    assert file_utils.syntax_for(Path("a.RS")) is RUST_SYNTAX
    assert file_utils.syntax_for(Path("a.txt")) is SYNTAX
    assert consts.PIPELINE_DIRECTIVE_KINDS == {"ty-map", "prefix", "skip"}
    with pytest.raises(AssertionError):
        CodeBlock("ty-map", "", 1, 1, [])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["(begin): __all__", "(begin): __all__"], "Nested stub not permitted at line 2"),
        (["(end)"], r"Unmatched `# tvm-ffi-stubgen\(end\)` found at line 1"),
        (["(begin): __all__"], "Unclosed stub block at end of file"),
        (["(begin): ty-map/a"], "Unknown stub type `ty-map/a` at line 1"),
        (["(begin): object"], "Unknown stub type `object` at line 1"),
        (["(bad name): x"], "Unknown stub type at line 1: # tvm-ffi-stubgen"),
        (["(name"], "Unknown stub type at line 1: # tvm-ffi-stubgen"),
    ],
)
def test_wrong_markers(lines: list[str], message: str, tmp_path: Path) -> None:
    path = write(tmp_path / "a.py", *(MARK + line for line in lines))
    with pytest.raises(ValueError, match=message):
        FileInfo.from_file(path)


def test_files_as_blocks(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.py",
        "first",
        f"  {MARK}(begin): object/a.B",
        "  inside",
        f"    {MARK}(custom): kept as it is ",
        f"  {MARK}(end)",
        "last",
    )
    info = FileInfo.from_file(path)
    assert info is not None and info.path == path.resolve()
    assert [(b.kind, b.lineno_start, b.lineno_end) for b in info.code_blocks] == [
        *((None, 1, 1), ("directive", 4, 4), ("object", 2, 5), (None, 6, 6))
    ]
    assert info.code_blocks[1].lines == [f"    {MARK}(custom): kept as it is "]
    assert info.code_blocks[2].indent == 2 and len(info.code_blocks[2].lines) == 3
    assert info.update(verbose=False, dry_run=True)  # the directive stands before the block now
    plain = write(tmp_path / "plain.py", "x = 1", "// tvm-ffi-stubgen(begin): object/a")
    assert FileInfo.from_file(plain) is None
    assert FileInfo.from_file(plain, include_empty=True) is not None
    skipped = write(tmp_path / "skipped.py", f"{MARK}(skip-file)", f"{MARK}(end)")
    assert FileInfo.from_file(skipped, include_empty=True) is None
    rust = write(tmp_path / "a.rs", "// tvm-ffi-stubgen(prefix): a", f"{MARK}(end)")
    info = FileInfo.from_file(rust)
    assert info is not None and [b.kind for b in info.code_blocks] == ["directive", None]


def test_files_are_found_by_extension(tmp_path: Path, capsys: Any) -> None:
    for name in ("b.py", "a.PYI", "sub/c.py", "d.rs", "e.txt"):
        write(tmp_path / name, f"{MARK}(prefix): x", "// tvm-ffi-stubgen(prefix): x")
    (tmp_path / "link").symlink_to(tmp_path / "sub")
    found = collect_files([tmp_path, tmp_path / "nothing"], {".py", ".pyi"})
    assert [info.path.name for info in found] == ["a.PYI", "b.py", "c.py"]
    assert [info.path.name for info in collect_files([tmp_path], {".rs"})] == ["d.rs"]
    assert len(collect_files([tmp_path / "e.txt"], {".py"})) == 1  # named, so whatever it is
    write(tmp_path / "b.py", f"{MARK}(end)")
    assert len(collect_files([tmp_path / "b.py"], {".py"})) == 0
    out = capsys.readouterr().out
    assert f'[Error] File "{tmp_path / "b.py"}", line 1: Unmatched' in out
    assert "Traceback" not in out


# ---- signatures -----------------------------------------------------------------------------


def shown(info: FuncInfo) -> str:
    return gen.render_func_signature(info, lambda name: name, 0)


def test_signatures() -> None:
    float_ = TypeSchema("float")
    assert shown(function("a.f", INT, STR, INT)) == "def f(_0: str, _1: int, /) -> int: ..."
    assert (
        shown(function("m", STR, INT, float_, is_member=True))
        == "def m(self, _1: float, /) -> str: ..."
    )
    assert shown(function("m", STR, INT, is_member=True)) == "def m(self, /) -> str: ..."
    calls: list[str] = []

    def name_of(name: str) -> str:
        calls.append(name)
        return name

    untyped = FuncInfo.from_schema("f", TypeSchema("Callable"))
    text = gen.render_func_signature(untyped, name_of, 2)
    assert text == "  def f(*args: Any) -> Any: ..." and calls == ["Any"]
    with pytest.raises(ValueError, match="Expected Callable type schema, but got: int"):
        shown(FuncInfo.from_schema("f", INT))
    empty = TypeSchema.from_json_str('{"type":"ffi.Function","args":[{"type":"None"}]}')
    assert shown(FuncInfo.from_schema("f", empty)) in (
        "def f() -> None: ...",
        "def f(*args: Any) -> None: ...",
    )


def test_fields_and_methods() -> None:
    info = ObjectInfo(
        fields=[NamedTypeSchema("a", INT), NamedTypeSchema("b", TypeSchema("Array", (STR,)))],
        methods=[
            function("__ffi_init__", ANY, INT, STR),
            function("get", INT, ANY, is_member=True),
            function("make", ANY, INT),
            function("get", STR, ANY, INT, is_member=True),
            function("make", ANY, STR),
        ],
    )
    same = lambda name: name  # noqa: E731
    assert gen.render_object_fields(info, same, 2) == ["  a: int", "  b: Array[str]"]
    assert info.has_overloaded_methods()
    assert gen.render_object_methods(info, same, 0) == [
        "def __ffi_init__(self, _0: int, _1: str, /) -> None: ...",
        "@overload",
        "def get(self, /) -> int: ...",
        "@overload",
        "def get(self, _1: int, /) -> str: ...",
        "@overload",
        "@staticmethod",
        "def make(_0: int, /) -> Any: ...",
        "@overload",
        "@staticmethod",
        "def make(_0: str, /) -> Any: ...",
    ]
    assert gen.render_object_init(info, same, 0) == []
    assert gen.render_object_ffi_init(info, same, 0) == []
    untyped = ObjectInfo([], [FuncInfo.from_schema("__ffi_init__", TypeSchema("Callable"))])
    assert gen.render_object_methods(untyped, same, 0) == [
        "def __ffi_init__(self, *args: Any) -> None: ..."
    ]


def test_constructors() -> None:
    def parameter(name: str, kw_only: bool, has_default: bool) -> InitFieldInfo:
        schema = NamedTypeSchema(name, TypeSchema("List", (INT,)))
        return InitFieldInfo(name, schema, kw_only, has_default)

    info = ObjectInfo(
        fields=[],
        methods=[],
        has_init=True,
        init_fields=[
            parameter("a", False, True),
            parameter("b", False, False),
            parameter("c", True, True),
            parameter("d", True, False),
        ],
    )
    names = {"List": "Out"}
    inputs = {"List": "In"}
    expected = "(self, b: In[int], a: In[int] = ..., *, d: In[int], c: In[int] = ...) -> None: ..."
    maps = (lambda n: names.get(n, n)), 0, (lambda n: inputs.get(n, n))
    assert gen.render_object_init(info, *maps) == [f"def __init__{expected}"]
    assert gen.render_object_ffi_init(info, *maps) == [f"def __ffi_init__{expected}"]
    empty = ObjectInfo([], [], has_init=True)
    assert gen.render_object_init(empty, *maps) == ["def __init__(self) -> None: ..."]
    # What is given by hand is shown as it is, also beside a method.
    info.methods.append(function("__ffi_init__", ANY, INT))
    assert gen.render_object_init(info, *maps) == [f"def __init__{expected}"]


@pytest.mark.parametrize("names", [("class",), ("self",), ("a", "a"), ("a-b",)])
def test_constructors_with_names_that_cannot_be_parameters(names: tuple[str, ...]) -> None:
    fields = [InitFieldInfo(name, NamedTypeSchema(name, INT), False, False) for name in names]
    info = ObjectInfo([], [], "p.A", has_init=True, init_fields=fields)
    for render in (gen.render_object_init, gen.render_object_ffi_init):
        (line,) = render(info, str, 0)
        assert line.endswith("__(self, *args: Any, **kwargs: Any) -> None: ...")
    method = function("__ffi_init__", ANY, *[INT] * len(names))
    method.names, method.defaults = names, 1
    info.init = method
    types = [f"_{i}: int" for i in range(len(names))]
    expected = f"def __init__(self, {', '.join(types)} = ..., /) -> None: ..."
    assert gen.render_object_init(info, str, 0) == [expected]


# ---- blocks ---------------------------------------------------------------------------------

DEFAULTS = python_consts.TY_MAP_DEFAULTS


def test_blocks_of_functions() -> None:
    imports: list[ImportItem] = []
    array = TypeSchema("List", (TypeSchema("Map", (STR, ANY)),))
    code = block("  global/my.pkg")
    gen.generate_python_global_funcs(code, [], DEFAULTS, imports, OPTIONS)
    assert body(code) == [] and imports == []
    gen.generate_python_global_funcs(
        code, [function("my.pkg.f", array, array)], dict(DEFAULTS), imports, OPTIONS
    )
    assert body(code) == [
        "  # fmt: off",
        '  _FFI_INIT_FUNC("my.pkg", __name__)',
        "  if TYPE_CHECKING:",
        "      def f(_0: Sequence[Mapping[str, Any]], /)"
        " -> MutableSequence[Mapping[str, Any]]: ...",
        "  # fmt: on",
    ]
    assert imports[:2] == [
        ImportItem("tvm_ffi.init_ffi_api", alias="_FFI_INIT_FUNC"),
        ImportItem("typing.TYPE_CHECKING"),
    ]
    assert set(map(str, imports[2:])) == {
        "from collections.abc import MutableSequence",
        "from collections.abc import Sequence",
        "from collections.abc import Mapping",
        "from typing import Any",
    }
    assert all(item.type_checking_only for item in imports[2:])
    imports.clear()
    code = block("global/p@other.mod")
    gen.generate_python_global_funcs(code, [function("p.f", INT, INT)], {}, imports, OPTIONS)
    assert imports[0] == ImportItem("other.mod.init_ffi_api", alias="_FFI_INIT_FUNC")


def test_names_of_types_that_a_function_hides() -> None:
    imports: list[ImportItem] = []
    code = block("global/p")
    pair = TypeSchema("testing.TestIntPair")
    funcs = [function("p.TestIntPair", pair, pair)]
    gen.generate_python_global_funcs(code, funcs, {}, imports, OPTIONS)
    assert "    def TestIntPair(_0: _TestIntPair, /) -> _TestIntPair: ..." in body(code)
    hidden = ImportItem("testing.TestIntPair", type_checking_only=True, alias="_TestIntPair")
    assert hidden in imports and hidden.mod == "tvm_ffi.testing"


def test_names_that_the_file_itself_gives_to_something_else() -> None:
    generator = PythonGenerator()
    imports = generator.new_imports()
    anything, number = TypeSchema("Any"), TypeSchema("int")
    generator.reserve(imports, ["p.Any", "p.int", "p.Other"])
    assert generator.canonical_type_name("p.Other") == "p.Other"
    code, section = block("global/p"), block("import-section")
    funcs = [
        function("p.f", anything, number, TypeSchema("float"), TypeSchema("p.Other")),
        function("p.TYPE_CHECKING", number),
    ]
    generator.generate_global_funcs_block(code, funcs, generator.default_ty_map(), imports, OPTIONS)
    assert body(code)[2:5] == [
        "if _typing.TYPE_CHECKING:",
        "    def f(_0: _int, _1: float, _2: Other, /) -> _Any: ...",
        "    def TYPE_CHECKING(*args: _Any) -> _int: ...",
    ]
    made = block("object/testing.TestIntPair")
    info = lib_state.object_info_from_type_key("testing.TestIntPair")
    generator.generate_object_block(made, generator.default_ty_map(), imports, OPTIONS, info)
    assert "    a: _int" in "\n".join(["", *body(made)]).replace("\n", "\n    ")
    assert "if _typing.TYPE_CHECKING:" in body(made)
    generator.generate_import_section_block(section, imports, OPTIONS, {"p.Other"})
    assert body(section)[3:-2] == [
        "import typing as _typing",
        "from tvm_ffi import init_ffi_api as _FFI_INIT_FUNC",
        "if _typing.TYPE_CHECKING:",
        "    from builtins import int as _int",
        "    from tvm_ffi.testing import TestIntPair",
        "    from typing import Any as _Any",
    ]


def test_what_parameters_accept() -> None:
    def text(ty_map: dict[str, str]) -> str:
        code = block("global/p")
        types = [TypeSchema(name, args) for name, args in [("List", (INT,)), ("Dict", (INT, STR))]]
        gen.generate_python_global_funcs(code, [function("p.f", INT, *types)], ty_map, [], OPTIONS)
        return body(code)[3].strip()

    wide = "def f(_0: Sequence[int], _1: Mapping[int, str], /) -> int: ..."
    assert text(dict(DEFAULTS)) == wide and text({}) == wide
    mine = text({**DEFAULTS, "List": "my.List"})
    assert mine == "def f(_0: List[int], _1: Mapping[int, str], /) -> int: ..."


def test_blocks_of_classes() -> None:
    imports: list[ImportItem] = []
    code = block("    object/a.B")
    info = ObjectInfo([NamedTypeSchema("x", INT)], [])
    gen.generate_python_object(code, {}, imports, OPTIONS, info)
    assert body(code) == ["    # fmt: off", "    x: int", "    # fmt: on"] and imports == []
    info.methods = [function("get", INT, ANY, is_member=True)] * 2
    gen.generate_python_object(code, {}, imports, OPTIONS, info)
    assert body(code)[2:5] == [
        "    if TYPE_CHECKING:",
        "        @overload",
        "        def get(self, /) -> int: ...",
    ]
    assert imports == [
        ImportItem("typing.TYPE_CHECKING"),
        ImportItem("typing.overload", type_checking_only=True),
    ]


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("testing.A", "tvm_ffi.testing"),
        ("testing.sub.A", "tvm_ffi.testing.sub"),
        ("ffi.A", "tvm_ffi"),
        ("ffi2.A", "ffi2"),
        ("testingfoo.A", "testingfoo"),
    ],
)
def test_modules_of_types(name: str, module: str) -> None:
    item = ImportItem(name, alias="B")
    assert item.mod == module and str(item) == f"from {module} import A as B"
    assert item.full_name == f"{module}.A" and item.name_with_alias == "A as B"
    assert {item: 1}[ImportItem(name, alias="B")] == 1
    assert str(ImportItem("os")) == "import os"


def test_import_sections() -> None:
    code = block("import-section")
    gen.generate_python_import_section(code, [], OPTIONS)
    assert body(code) == []
    items = [
        ImportItem("b.y"),
        ImportItem("a.z", alias="w"),
        ImportItem("b.x"),
        ImportItem("b.x"),
        ImportItem("typing.Any", type_checking_only=True),
    ]
    gen.generate_python_import_section(code, items, Options(indent=2))
    assert body(code) == [
        "# fmt: off",
        "# isort: off",
        "from __future__ import annotations",
        "from a import z as w",
        "from b import x, y",
        "from typing import TYPE_CHECKING",
        "if TYPE_CHECKING:",
        "  from typing import Any",
        "# isort: on",
        "# fmt: on",
    ]


def test_lists_of_names_and_exports() -> None:
    code = block("  __all__")
    gen.generate_python_all(code, set(), OPTIONS)
    assert body(code) == []
    gen.generate_python_all(code, {"p.f", "LIB", "p.Bee", "Aye", "_g", "P_q"}, OPTIONS)
    names = [line.strip()[1:-2] for line in body(code)]
    assert names == ["LIB", "Aye", "Bee", "P_q", "_g", "f"] and body(code)[0] == '  "LIB",'
    code = block("export/api")
    gen.generate_python_export(code)
    assert body(code)[2:7] == [
        "from .api import *  # noqa: F403",
        "from .api import __all__ as api__all__",
        'if "__all__" not in globals():',
        "    __all__ = []",
        "__all__.extend(api__all__)",
    ]
    assert gen.generate_python_init([code], "p", "api", SYNTAX) == ""
    text = gen.generate_python_init([], "p", "api", SYNTAX)
    assert text == f'"""Package p."""\n\n{MARK}(begin): export/api\n{MARK}(end)\n'


def test_text_of_new_files() -> None:
    config = InitConfig("my-pkg", "my_lib", "p.")
    text = gen.generate_python_ffi_api([], {}, "p.sub", [], config, False, SYNTAX)
    assert text.startswith('"""FFI API bindings for p.sub."""\n') and "LIB" not in text
    infos = [
        ObjectInfo([], [], "p.A", "ffi.Object"),
        ObjectInfo([], [], "p.B", "p.A"),
        ObjectInfo([], [], "p.C", "other.D"),
    ]
    text = gen.generate_python_ffi_api([], {"other.D": "x.y.D"}, "p", infos, config, True, SYNTAX)
    assert 'LIB = _FFI_LOAD_LIB("my-pkg", "my_lib")' in text
    assert f"{MARK}(import-object): ffi.Object;False;_ffi_Object\n@_FFI_REG_OBJ" in text
    assert "class B(A):" in text and "class C(_x_y_D):" in text
    assert f"{MARK}(import-object): x.y.D;False;_x_y_D" in text


# ---- the registry ---------------------------------------------------------------------------


def test_what_the_registry_says() -> None:
    base, derived, last = (
        lib_state.object_info_from_type_key(f"testing.TestCxxClass{name}")
        for name in ("Base", "Derived", "DerivedDerived")
    )
    assert [info.total_size for info in (base, derived, last)] == [40, 56, 80]
    assert [(f.name, f.offset, f.size) for f in base.fields] == [("v_i64", 24, 8), ("v_i32", 32, 4)]
    assert last.ancestors == ["ffi.Object", base.type_key, derived.type_key]
    assert [f.schema.offset for f in last.init_fields] == [24, 32, 40, 48, 56, 72]
    assert last.has_init and last.parent_type_key == derived.type_key
    assert lib_state.object_info_from_type_key("ffi.Function").total_size is None
    assert lib_state.object_info_from_type_key("ffi.Object").total_size == 24
    ordered = lib_state.toposort_objects([str(last.type_key), str(base.type_key), "ffi.Object"])
    assert [info.type_key for info in ordered] == ["ffi.Object", base.type_key, last.type_key]
    keys = lib_state.collect_type_keys()
    assert keys["testing"] == sorted(keys["testing"]) and "testing.TestIntPair" in keys["testing"]
    # Values have keys, too, but no layout.
    assert {"ffi.SmallStr", "ffi.Unchanged"} <= set(keys["ffi"]) and "" not in keys
    assert lib_state.object_info_from_type_key("ffi.Unchanged").total_size is None
    number = lib_state.object_info_from_type_key("ffi.BigInt")
    assert (number.total_size, number.is_final) == (32, True)
    final = [f"testing.TestCxxClass{name}" for name in ("HiddenField", "Polymorphic")]
    for key in (*final, "ffi.VisitInterrupt"):
        assert lib_state.object_info_from_type_key(key).is_final is True
    with pytest.raises(Exception, match=r"nothing\.There"):
        lib_state.object_info_from_type_key("nothing.There")


def test_schemas_with_a_name() -> None:
    schema = NamedTypeSchema("x", TypeSchema("Array", (INT,)))
    assert schema.name == "x" and repr(schema) == "Array[int]" and schema.default is MISSING
    assert schema.size is None and not schema.frozen
    field = core._lookup_or_register_type_info_from_type_key("testing.TestCxxClassBase").fields[0]
    assert NamedTypeSchema.from_type_field(field).offset == 24


def test_methods_of_python_classes() -> None:
    @py_class("test_stub.WithMethod")
    class WithMethod(core.Object):
        x: int

        @method
        def add(self, y: int) -> int:
            return self.x + y

    info = ObjectInfo.from_type_info(WithMethod.__tvm_ffi_type_info__)  # type: ignore[attr-defined]
    lines = gen.render_object_methods(info, lambda name: name, 0)
    assert "def add(self, _1: int, /) -> int: ..." in lines


def test_generators() -> None:
    assert generator_names() == ["python", "rust"]
    assert isinstance(get_generator("python"), PythonGenerator)
    message = "Unknown stubgen generator: 'c'. Known generators: python, rust"
    with pytest.raises(ValueError, match=message):
        get_generator("c")


# ---- the command ----------------------------------------------------------------------------

INIT = ("--init-pypkg", "p", "--init-lib", "l", "--init-prefix")


def test_a_new_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, tmp_path, *INIT, "testing.", "--dry-run") == 0
    assert list(tmp_path.iterdir()) == []
    assert run(monkeypatch, tmp_path, *INIT, "testing.") == 0
    api = (tmp_path / "testing" / "_ffi_api.py").read_text()
    package = (tmp_path / "testing" / "__init__.py").read_text()
    compile(api, "api", "exec")
    assert "    def add_one(_0: int, /) -> int: ..." in api
    assert "class TestIntPair(_ffi_Object):" in api and '    "LIB",' in api
    assert "        def sum(self, /) -> int: ..." in api
    assert package.startswith('"""Package testing."""') and "from ._ffi_api import *" in package
    capsys.readouterr()
    assert run(monkeypatch, tmp_path, *INIT, "testing.", "--verbose") == 0
    out = capsys.readouterr().out  # other tests register classes under the prefix, too
    assert out.count("-----> Unchanged") == out.count("[File]") >= 2
    assert (tmp_path / "testing" / "_ffi_api.py").read_text() == api
    assert run(monkeypatch, tmp_path, "--check") == 0


def test_check_finds_what_is_out_of_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "a.py", f"{MARK}(begin): object/testing.TestIntPair", f"{MARK}(end)")
    before = path.read_text()
    assert run(monkeypatch, tmp_path, "--check") == 1
    assert f"[Stale] {path}" in capsys.readouterr().out and path.read_text() == before
    assert run(monkeypatch, tmp_path, "--verbose") == 0
    assert f"{consts.TERM_GREEN}+a: int{consts.TERM_RESET}" in capsys.readouterr().out
    assert run(monkeypatch, tmp_path, "--check") == 0


def test_a_file_that_fails_does_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    good = f"{MARK}(begin): object/testing.TestIntPair", "old", f"{MARK}(end)"
    write(tmp_path / "a.py", f"{MARK}(unknown): x")
    write(tmp_path / "b.py", f"{MARK}(ty-map): only one")
    write(tmp_path / "c.py", *good, f"{MARK}(begin): object/not.There", "kept", f"{MARK}(end)")
    write(tmp_path / "d.py", *good)
    assert run(monkeypatch, tmp_path) == 2
    out = capsys.readouterr().out
    assert "Unknown directive `unknown` at line 1" in out
    assert "Invalid ty_map format at line 1. Example: `A.B -> C.D`" in out
    message = "`object/not.There` (line 4): the type is no longer registered; delete the block"
    assert message in out and out.count("[Failed] File") == 3
    for name in ("c.py", "d.py"):
        assert "a: int" in (tmp_path / name).read_text()
    assert "kept" in (tmp_path / "c.py").read_text()
    assert run(monkeypatch, tmp_path, "--check") == 2
    write(tmp_path / "e.py", f"{MARK}(end)")
    assert run(monkeypatch, tmp_path / "e.py") == 2


def test_functions_that_are_gone_leave_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a.py", f"{MARK}(begin): global/gone", "old", f"{MARK}(end)")
    assert run(monkeypatch, path) == 0
    assert "old" not in path.read_text()


def test_all_types_of_a_prefix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(
        tmp_path / "a.py",
        f"{MARK}(prefix): testing.",
        f"{MARK}(skip): testing.TestCompare",
        "",
        f"{MARK}(begin): object/testing.Gone",
        f"{MARK}(end)",
    )
    write(tmp_path / "b.py", f"{MARK}(prefix): testing")
    write(tmp_path / "c.py", f"{MARK}(prefix): a", f"{MARK}(prefix): b")
    write(tmp_path / "d.py", f"{MARK}(prefix): no.such")
    assert run(monkeypatch, tmp_path) == 2
    out, text = capsys.readouterr().out, path.read_text()
    assert "`object/testing.Gone` (line 4): the type is no longer registered" in out
    assert f"prefix `testing` is already declared by {path}" in out
    assert "more than one `prefix` directive (line 2)" in out
    assert "[Skipped] No registered object under prefix `no.such`" in out
    assert text.startswith(f"{MARK}(prefix): testing.\n\n{MARK}(begin): import-section")
    assert "object/testing.TestIntPair" in text and "object/testing.TestCompare\n" not in text
    assert text.index("/testing.TestCxxClassBase") < text.index("/testing.TestCxxClassDerived\n")
    assert run(monkeypatch, path, "--check") == 0
    compile(text, str(path), "exec")
    # The fields are in classes.
    assert '@_FFI_REG_OBJ("testing.TestIntPair")\nclass TestIntPair(_ffi_Object):' in text
    assert "class TestCxxClassDerived(TestCxxClassBase):" in text


def test_names_of_parameters_are_used(shapes: Any) -> None:
    info = lib_state.object_info_from_type_key("methods_client.Shape")
    lines = gen.render_object_methods(info, str, 0)
    named = [m for m in info.methods if m.names is not None]
    assert named
    for item in named:
        assert item.names is not None
        (line,) = (line for line in lines if f"def {item.schema.name}(" in line)
        shown = ["self", *item.names[1:]] if item.is_member else list(item.names)
        if len(set(shown)) < len(shown):
            assert "def add_to(self, _1: int, _2: int = ..., /) -> int: ..." in line
            continue
        assert [part.split(":")[0].strip() for part in split_parameters(line)] == shown
        assert line.count(" = ...") == item.defaults


def split_parameters(line: str) -> list[str]:
    """Return the parameters in a ``def`` line."""
    text = line[line.index("(") + 1 : line.rindex(") ->")]
    depth, parts = 0, [""]
    for character in text:
        depth += (character in "[(") - (character in "])")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part for part in parts if part.strip()]


def test_names_that_python_cannot_write_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    function_names = ["p.good", "p.operator+", "p.class"]
    functions = [function(name, INT) for name in function_names]
    code = block("global/p")
    gen.generate_python_global_funcs(code, functions, {}, [], OPTIONS)
    text = "\n".join(code.lines)
    assert "def good(" in text and "operator" not in text and "def class" not in text
    PythonGenerator().generate_global_funcs_block(
        code, functions, {}, PythonGenerator().new_imports(), OPTIONS
    )
    out = capsys.readouterr().out
    for name in function_names[1:]:
        assert f"[Skipped] `{name}` cannot be the name of a function in python" in out
    info = ObjectInfo([NamedTypeSchema("a-b", INT), NamedTypeSchema("ok", INT)], [])
    assert gen.render_object_fields(info, str, 0) == ["ok: int"]


def test_directives_reach_their_generator(tmp_path: Path) -> None:
    class Mine(PythonGenerator):
        directive_kinds = frozenset({"mine"})
        seen: list[Any] = []  # noqa: RUF012

        def add_directive(self, imports: Any, name: str, payload: str, lineno: int) -> None:
            self.seen.append((name, payload, lineno))

    path = write(tmp_path / "a.py", f"{MARK}(mine): a b")
    info = FileInfo.from_file(path)
    assert info is not None and not cli._stage_3(info, OPTIONS, {}, {}, Mine())
    assert Mine.seen == [("mine", "a b", 1)]
    path = write(
        tmp_path / "b.py",
        f"{MARK}(import-object): tvm_ffi.libinfo.load_lib_module;False;_FFI_LOAD_LIB",
        f"{MARK}(begin): __all__",
        f"{MARK}(end)",
    )
    info = FileInfo.from_file(path)
    assert info is not None
    assert cli._stage_3(info, OPTIONS, {}, {}, get_generator("python"))
    assert '"LIB",' in path.read_text()


def test_stage_2_takes_the_prefix_and_what_is_below(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    types: dict[str, list[str]] = {"p": [], "pq": ["pq.A"], "p.r": ["p.r.B"]}
    monkeypatch.setattr(cli, "collect_type_keys", lambda: types)
    monkeypatch.setattr(
        cli, "toposort_objects", lambda keys: [ObjectInfo([], [], k, "ffi.Object") for k in keys]
    )
    functions = {"p": [function("p.f", INT)]}
    files: list[FileInfo] = []
    config = InitConfig("pkg", "lib", "p.")
    generator = get_generator("python")
    assert cli._stage_2(files, {}, config, tmp_path, functions, generator) == {"p", "p.r"}
    assert "LIB = " in (tmp_path / "p" / "_ffi_api.py").read_text()
    sub = (tmp_path / "p" / "r" / "_ffi_api.py").read_text()
    assert "class B(" in sub and "LIB = " not in sub
    assert not (tmp_path / "pq").exists() and len(files) == 4
    assert cli._stage_2(files, {}, config, tmp_path, functions, generator) == set()


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ([], 1, "usage: tvm-ffi-stubgen"),
        (["--init-lib", "x", "a"], 2, "--init-prefix must be provided together"),
        (["--check", *INIT, "x", "a"], 2, "--check cannot be combined with --init-* flags"),
        (["--target", "c", "a"], 2, "invalid choice: 'c'"),
        (["--indent", "-3", "a"], 2, "--indent must be a positive number, got -3"),
        (["--indent", "0", "a"], 2, "--indent must be a positive number, got 0"),
        (["--init-pypkg", 'a"b', "a"], 2, "--init-pypkg must be a name without quotes"),
        (["--init-lib", "a\\b", "a"], 2, "--init-lib must be a name without quotes and backsl"),
    ],
)
def test_wrong_command_lines(
    arguments: list[str],
    status: int,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        run(monkeypatch, *arguments)
    captured = capsys.readouterr()
    assert ended.value.code == status and message in captured.out + captured.err


def test_modules_and_libraries_are_loaded_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tvm_ffi import libinfo

    write(tmp_path / "my_stub_module.py", "LOADED = True")
    monkeypatch.syspath_prepend(str(tmp_path))
    library = libinfo._find_library_by_basename("apache-tvm-ffi", "tvm_ffi_testing")
    path = write(tmp_path / "a.py", f"{MARK}(prefix): no.such")
    assert run(monkeypatch, path, "--imports", " my_stub_module ;", "--dlls", f"{library};") == 0
    assert sys.modules["my_stub_module"].LOADED
    assert run(monkeypatch, path, "--dlls", "no_such_library.so") == 2


def test_mistakes_of_the_user_take_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "a.py", "x = 1", f"{MARK}(begin): __all__")
    assert run(monkeypatch, path) == 2
    expected = f'[Error] File "{path}", line 2: Unclosed stub block at end of file'
    assert [line for line in capsys.readouterr().out.splitlines() if "[Skipped]" not in line] == [
        f"{consts.TERM_RED}{expected}{consts.TERM_RESET}"
    ]
    for module in ("no_such_module", "tvm_ffi.no_such.module"):
        assert run(monkeypatch, path, "--imports", module) == 2
        out = capsys.readouterr().out
        assert f"[Error] --imports: {module}: No module named" in out and out.count("\n") == 1
    write(path, f"{MARK}(unknown): x")
    assert run(monkeypatch, path) == 2
    out = capsys.readouterr().out
    assert f'[Failed] File "{path}": Unknown directive `unknown` at line 1' in out
    assert "Traceback" not in out


def test_a_prefix_that_nothing_has_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, tmp_path, *INIT, "no.such.") == 0
    assert "nothing is registered under `no.such`" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["import no_such_module", "import sys\nsys.exit(1)", "1 / 0"])
def test_a_module_that_cannot_be_imported_is_not_a_stale_file(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "my_bad_module.py", text)
    monkeypatch.syspath_prepend(str(tmp_path))
    arguments = [tmp_path, "--check", "--imports", "my_bad_module"]
    assert run(monkeypatch, *arguments) == 2
    assert "[Error] --imports: my_bad_module: " in capsys.readouterr().out


def test_a_report_that_cannot_be_written_is_not_a_stale_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "a.py", f"{MARK}(prefix): no.such")
    assert run(monkeypatch, path, "--check", "--coverage-out", tmp_path / "no" / "x.json") == 2
    assert "[Error] --coverage-out: " in capsys.readouterr().out

    def fail() -> Any:
        raise RuntimeError("cannot ask")

    monkeypatch.setattr(cli, "collect_global_funcs", fail)
    assert run(monkeypatch, path, "--check") == 2
    assert "[Error] cannot ask" in capsys.readouterr().out


def test_a_byte_order_mark_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.py", f"{MARK}(begin): object/testing.TestIntPair", f"{MARK}(end)")
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert run(monkeypatch, path) == 0
    assert path.read_bytes().startswith(b"\xef\xbb\xbf# tvm") and b"a: int" in path.read_bytes()
    assert run(monkeypatch, path, "--check") == 0


def test_the_class_of_a_type_that_is_gone_goes_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "a.py", f"{MARK}(prefix): testing")
    assert run(monkeypatch, path) == 0
    text = path.read_text()
    last = text.rindex(f"{MARK}(import-object): ffi.Object;False;_ffi_Object")
    gone = [
        f"{MARK}(import-object): ffi.Object;False;_ffi_Object",
        '@_FFI_REG_OBJ("testing.Gone")',
        "class Gone(_ffi_Object):",
        '    """FFI binding for `testing.Gone`."""',
        "",
        f"    {MARK}(begin): object/testing.Gone",
        "    a: int",
        f"    {MARK}(end)",
        "",
    ]
    # In the middle and at the end.
    for before, after in [(text[:last], text[last:]), (text, "")]:
        path.write_text(before + "\n".join(gone) + "\n" + after)
        assert run(monkeypatch, path, "--check") == 1
        assert run(monkeypatch, path) == 0
        assert "Gone" not in path.read_text()
        assert path.read_text().split() == text.split()
    assert "[Removed]" in capsys.readouterr().out
    # What the user wrote is not thrown away.
    for member in ("    def mine(self): ...", "    mine = 1"):
        path.write_text(text + "\n".join([*gone[:-1], member]) + "\n")
        assert run(monkeypatch, path) == 2
        assert "the type is no longer registered; delete the block" in capsys.readouterr().out
        assert member in path.read_text() and "class Gone" in path.read_text()


def test_our_own_stub_has_every_class_and_function_of_the_extension() -> None:
    import ast

    tree = ast.parse((Path(tvm_ffi.__file__).parent / "core.pyi").read_text())
    named: set[str] = set()
    for node in tree.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            named.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            named.add(node.target.id)
        elif isinstance(node, ast.Assign):
            named |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, (ast.ImportFrom, ast.Import)):
            named |= {alias.asname or alias.name for alias in node.names}
    missing = {name for name in dir(core) if not name.startswith("_")} - named
    assert missing == set()


# ---- the text around the markers ----------------------------------------------------------------


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_text_outside_of_the_markers_stays_to_the_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, newline: str
) -> None:
    before = [b"x = 'a\x0cb\xe2\x80\xa8c\x1cd'", b"\x0c", b"", b"class A:"]
    markers = [
        f"    {MARK}(begin): object/testing.TestIntPair".encode(),
        f"    {MARK}(end)".encode(),
    ]
    path = tmp_path / "a.py"
    path.write_bytes(newline.encode().join([*before, *markers, b"y = 1", b""]))
    assert run(monkeypatch, path) == 0
    lines = path.read_bytes().split(newline.encode())
    assert lines[:4] == before
    assert lines[-2:] == [b"y = 1", b""]
    assert len(lines) > 8
    assert b"\n" not in b"".join(lines)
    assert run(monkeypatch, path, "--check") == 0


def test_a_marker_after_a_tab_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.py"
    text = f"class A:\n\t{MARK}(begin): object/testing.TestIntPair\n\t{MARK}(end)\n"
    path.write_text(text)
    assert run(monkeypatch, path) == 2
    assert path.read_text() == text
    printed = capsys.readouterr().out
    assert str(path) in printed
    assert "indented with a tab" in printed


def test_a_folder_for_new_files_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "new" / "python"
    names = ["--init-pypkg", "pkg", "--init-lib", "lib", "--init-prefix", "testing."]
    assert run(monkeypatch, folder, *names, "--dry-run") == 2 and not folder.exists()
    assert run(monkeypatch, folder, *names) == 0
    assert "class TestIntPair(" in (folder / "testing" / "_ffi_api.py").read_text()
    capsys.readouterr()
    assert run(monkeypatch, folder, "--check") == 0
    assert run(monkeypatch, tmp_path / "no.py", *names) == 2
    assert "no.py" in capsys.readouterr().out and not (tmp_path / "no.py").exists()


def test_what_is_not_there_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, tmp_path / "nothing", "--check") == 2
    assert "no such file or folder" in capsys.readouterr().out
    assert run(monkeypatch, tmp_path, "--check", "--dlls", str(tmp_path / "nothing.so")) == 2
    assert "nothing.so" in capsys.readouterr().out


# ---- packages that can be imported ----------------------------------------------------------

PACKAGE = """\
#include <tvm/ffi/tvm_ffi.h>
namespace ffi = tvm::ffi;
namespace refl = tvm::ffi::reflection;
#define TYPE(NAME, KEY, BASE, ...)                       \\
  struct NAME : BASE {                                   \\
    __VA_ARGS__                                          \\
    TVM_FFI_DECLARE_OBJECT_INFO(KEY, NAME, BASE);        \\
  };                                                     \\
  struct NAME##Ref : ffi::ObjectRef {                    \\
    TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(NAME##Ref, ffi::ObjectRef, NAME); \\
  };
TYPE(A, "stubs.x.A", ffi::Object, int64_t v = 1;)
TYPE(B, "stubs.y.B", ffi::Object)
TYPE(C, "stubs.x.C", B)
TYPE(D, "stubs.y.D", A)
TYPE(Root, "stubs.Root", A)
TYPE(Class, "stubs.class", ffi::Object)
TYPE(OfClass, "stubs.OfClass", Class)
TYPE(NoDots, "stubs_without_dots", ffi::Object)
TYPE(Words, "stubs.Words", ffi::Object, int64_t a = 0; int64_t b = 0;)
TYPE(Keyword, "stubs.Keyword", ffi::Object, int64_t a = 0; int64_t b = 0;)
TYPE(Box, "stubs.Box", ffi::Object, int64_t area = 0; Box(int64_t w, int64_t h) : area(w * h) {})
TYPE(Plain, "stubs.Plain", ffi::Object, int64_t area = 0; Plain(int64_t w, double) : area(w) {})
TYPE(Same, "stubs.Same", ffi::Object, int64_t area = 0; Same(int64_t w) : area(w) {})
TYPE(None, "stubs.NoArgs", ffi::Object, int64_t x = 0;)
TYPE(A0, "zigzag.x.A", ffi::Object)
TYPE(B1, "zigzag.y.B", A0)
TYPE(C2, "zigzag.x.C", B1)
TYPE(D3, "zigzag.y.D", C2)
TVM_FFI_STATIC_INIT_BLOCK() {
  refl::ObjectDef<A>().def_ro("v", &A::v);
  refl::ObjectDef<B>();
  refl::ObjectDef<C>();
  refl::ObjectDef<D>();
  refl::ObjectDef<Root>();
  refl::ObjectDef<Class>();
  refl::ObjectDef<OfClass>();
  refl::ObjectDef<NoDots>();
  refl::ObjectDef<Words>().def_ro("a", &Words::a).def_ro("self", &Words::b);
  refl::ObjectDef<Keyword>().def_ro("a", &Keyword::a).def_ro("class", &Keyword::b);
  refl::ObjectDef<Box>()
      .def(refl::init<int64_t, int64_t>(), refl::arg("width"), refl::arg("height", 1))
      .def_ro("area", &Box::area);
  refl::ObjectDef<Plain>().def(refl::init<int64_t, double>()).def_ro("area", &Plain::area);
  refl::ObjectDef<Same>().def(refl::init<int64_t>()).def_ro("area", &Same::area);
  refl::ObjectDef<None>().def(refl::init<>()).def_ro("x", &None::x);
  refl::ObjectDef<A0>();
  refl::ObjectDef<B1>();
  refl::ObjectDef<C2>();
  refl::ObjectDef<D3>();
  refl::GlobalDef().def("stubs.use", [](ClassRef, NoDotsRef n, ARef) { return n; });
}
"""


@pytest.fixture(scope="module")
def package_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("c++") is None:
        pytest.skip("no C++ compiler: the library cannot be built")
    folder = tmp_path_factory.mktemp("stubs")
    (folder / "stubs.cc").write_text(PACKAGE)
    return compile_library(folder / "stubs.cc", folder / "libstubs.so")


def package(library: Path, folder: Path, prefix: str) -> Any:
    """Make a package in a process of its own; this one does not know its types."""
    names = ["--init-pypkg", "stubs", "--init-lib", "stubs", "--init-prefix", prefix]
    command = [sys.executable, "-m", "tvm_ffi.stub.cli", str(folder), "--dlls", str(library)]
    return subprocess.run([*command, *names], capture_output=True, text=True, check=False)


def test_a_new_package_can_be_imported(package_library: Path, tmp_path: Path) -> None:
    done = package(package_library, tmp_path, "stubs.")
    assert done.returncode == 0, done.stdout + done.stderr
    text = (tmp_path / "stubs" / "_ffi_api.py").read_text()
    paths = os.pathsep.join([str(tmp_path), *sys.path])
    libraries = str(package_library.parent)
    environment = {**os.environ, "PYTHONPATH": paths, "LD_LIBRARY_PATH": libraries}
    for first in ("stubs", "stubs.x", "stubs.y"):
        code = f"""if 1:
            import {first}, stubs.x, stubs.y, inspect
            assert issubclass(stubs.Root, stubs.x.A) and issubclass(stubs.y.D, stubs.x.A)
            assert issubclass(stubs.x.C, stubs.y.B)
            assert stubs.Box(2, height=3).area == 6
            assert list(inspect.signature(stubs.Box).parameters) == ["width", "height"]
            assert getattr(stubs.Keyword(1, **{{"class": 2}}), "class") == 2
            assert list(inspect.signature(stubs.Keyword).parameters) == ["args", "kwargs"]"""
        subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    assert text.index("LIB = ") < text.index("from stubs.x._ffi_api import A as _stubs_x_A")
    assert "def __init__(self, width: int, height: int = ...) -> None: ..." in text
    assert "def __init__(self, _0: int, _1: float, /) -> None: ..." in text
    assert "def __init__(self, area: int) -> None: ..." in text
    begin = text.index("class NoArgs(")
    assert "def __init__(self) -> None: ..." in text[begin : begin + 300]
    for name in ("Words", "Keyword"):
        begin = text.index(f"class {name}(")
        assert "def __init__(self, *args: Any, **kwargs: Any)" in text[begin : begin + 300]
    # A type without a class is an object, as a parameter and as a base.
    assert "def use(_0: Object, _1: Object, _2: A, /) -> Object: ..." in text
    assert "class OfClass(_ffi_Object):" in text
    assert package(package_library, tmp_path, "stubs.").returncode == 0
    assert (tmp_path / "stubs" / "_ffi_api.py").read_text() == text


def test_a_package_that_cannot_be_imported_is_not_written(
    package_library: Path, tmp_path: Path
) -> None:
    done = package(package_library, tmp_path, "zigzag.")
    assert done.returncode == 2 and "Traceback" not in done.stdout + done.stderr
    assert "[Error] No order of imports can define `zigzag." in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_bases_are_imported_where_they_are_needed_only_if_there_is_no_other_way() -> None:
    def info(key: str, parent: str) -> ObjectInfo:
        return ObjectInfo([], [], key, parent)

    simple = {"p": [info("p.A", "ffi.Object")], "p.x": [info("p.x.B", "p.A")]}
    assert bases.arrange(simple, {"p.A", "p.x.B"}, {}, "p") == (simple, set())
    # A class that is added later to a package whose root is there already.
    later = {"p": [info("p.R", "p.x.B")], "p.x": [info("p.x.B", "ffi.Object")]}
    assert bases.arrange(later, {"p.R"}, {}, "p")[1] == {"p.x.B"}
    assert bases.arrange(later, {"p.R"}, {"p.x.B": "q.B"}, "p")[1] == set()
    # Classes that others need come first.
    both = {
        "p.x": [info("p.x.A", "p.y.A"), info("p.x.B", "ffi.Object")],
        "p.y": [info("p.y.A", "ffi.Object"), info("p.y.B", "p.x.B")],
    }
    keys = {str(item.type_key) for items in both.values() for item in items}
    ordered, late = bases.arrange(both, keys, {}, "p")
    assert [item.type_key for item in ordered["p.x"]] == ["p.x.B", "p.x.A"]
    assert late == {"p.y.A", "p.x.B"}
