# SPDX-License-Identifier: Apache-2.0
"""C++ declarations of registered types."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import tvm_ffi
from support import fresh_key
from tvm_ffi import core, libinfo, testing
from tvm_ffi.dataclasses import gen_abi_cpp, py_class
from tvm_ffi.dataclasses.gen_abi_cpp import _Generator

Object = tvm_ffi.Object
needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")


@py_class("tests.abi.Leaf")
class Leaf(Object):
    """The smallest of all."""

    value: int


@py_class("tests.abi.Other")
class Other(Object):
    """Only mentioned."""

    text: str


@py_class("tests.abi.Mixed")
class Mixed(Object):
    """One member of each kind."""

    b: bool
    i: int
    f: float
    p: ctypes.c_void_p
    t: core.DataType
    d: core.Device
    a: Any
    s: str
    y: bytes
    c: tvm_ffi.Function
    o: Leaf
    arr: tvm_ffi.Array[Leaf]
    lst: list[int]
    m: tvm_ffi.Map[str, Leaf]
    dct: dict[str, Other]
    opt: int | None
    uni: int | float


@py_class("tests.abi.sub.Base")
class Base(Object):
    """Ends with padding."""

    flag: bool
    number: int


@py_class("tests.abi.sub.Child")
class Child(Base):
    """Adds nothing."""


@py_class("tests.abi.Grandchild")
class Grandchild(Child):
    """Elements of all sorts."""

    flag2: bool
    leaf: Leaf
    opts: list[int | None]
    maybe: list[Leaf | None]
    texts: list[str | None]
    either: dict[str, Leaf | Other]
    nums: dict[str, int | float]
    pair: tuple[int, str]
    any_tuple: tuple


def members(text: str) -> dict[str, str]:
    found = {}
    for line in text.splitlines():
        if "// offset=" in line:
            code, _, comment = line.strip().partition(";  // ")
            cpp_type, _, name = code.rpartition(" ")
            found[name] = f"{cpp_type} {comment}"
    return found


def test_the_whole_text_of_a_small_type() -> None:
    assert gen_abi_cpp("tests.abi.Leaf") == (
        "#pragma once\n\n#include <tvm/ffi/tvm_ffi.h>\n\n"
        "namespace tests {\nnamespace abi {\n\nstruct LeafObj;\n\n"
        "}  // namespace abi\n}  // namespace tests\n\n"
        "template <>\n"
        "inline constexpr bool tvm::ffi::is_object_subclass_v<::tests::abi::LeafObj> = true;\n\n"
        "static_assert(sizeof(::tvm::ffi::Object) == 24);\n"
        "static_assert(alignof(::tvm::ffi::Object) == 8);\n\n"
        "#if defined(__clang__) || defined(__GNUC__)\n#pragma GCC diagnostic push\n"
        '#pragma GCC diagnostic ignored "-Winvalid-offsetof"\n'
        "#elif defined(_MSC_VER)\n#pragma warning(push)\n#pragma warning(disable : 4749)\n"
        "#endif\n\n"
        "namespace tests {\nnamespace abi {\n\n"
        "struct alignas(8) LeafObj : public ::tvm::ffi::Object {\n"
        '  TVM_FFI_DECLARE_OBJECT_INFO_LOOKUP("tests.abi.Leaf", 1);\n\n'
        "  int64_t value;  // offset=24, size=8, align=8\n"
        "};\n\n"
        "static_assert(sizeof(LeafObj) == 32);\n"
        "static_assert(alignof(LeafObj) == 8);\n"
        "static_assert(sizeof(decltype(LeafObj::value)) == 8);\n"
        "static_assert(alignof(decltype(LeafObj::value)) == 8);\n"
        "static_assert(offsetof(LeafObj, value) == 24);\n\n"
        "}  // namespace abi\n}  // namespace tests\n\n"
        "#if defined(__clang__) || defined(__GNUC__)\n#pragma GCC diagnostic pop\n"
        "#elif defined(_MSC_VER)\n#pragma warning(pop)\n#endif\n"
    )


def test_members_and_their_offsets() -> None:
    text = gen_abi_cpp("tests.abi.Mixed")
    found = members(text)
    offsets = [int(v.split("offset=")[1].split(",")[0]) for v in found.values()]
    assert offsets == [24, 32, 40, 48, 56, 60, 72, 88, 104, 120, 128, 136, 144, 152, 160, 168, 184]
    assert "static_assert(sizeof(MixedObj) == 200);" in text
    types = {name: value.split(" offset=")[0] for name, value in found.items()}
    ffi = "::tvm::ffi::"
    assert types == {
        "b": "bool",
        "i": "int64_t",
        "f": "double",
        "p": "void*",
        "t": "DLDataType",
        "d": "DLDevice",
        "a": f"{ffi}Any",
        "s": f"{ffi}String",
        "y": f"{ffi}Bytes",
        "c": f"{ffi}Function",
        "o": f"{ffi}Arc<::tests::abi::LeafObj>",
        "arr": f"{ffi}Array<{ffi}Arc<::tests::abi::LeafObj>>",
        "lst": f"{ffi}List<int64_t>",
        "m": f"{ffi}Map<{ffi}String, {ffi}Arc<::tests::abi::LeafObj>>",
        "dct": f"{ffi}Dict<{ffi}String, {ffi}Arc<::tests::abi::OtherObj>>",
        "opt": f"{ffi}Any",
        "uni": f"{ffi}Any",
    }
    # Mentioned types are declared, and defined without their members.
    assert text.count("struct LeafObj;") == 1
    assert "struct OtherObj : public ::tvm::ffi::Object {" in text


def test_ancestors_come_along_in_order() -> None:
    text = gen_abi_cpp("tests.abi.Grandchild")
    positions = [
        text.index(f"struct alignas(8) {name}Obj : public {base} {{")
        for name, base in [
            ("Base", "::tvm::ffi::Object"),
            ("Child", "::tests::abi::sub::BaseObj"),
            ("Grandchild", "::tests::abi::sub::ChildObj"),
        ]
    ]
    assert positions == sorted(positions)
    found = members(text)
    assert found["flag2"].startswith("bool offset=40")
    ffi = "::tvm::ffi::"
    elements = {name: found[name].split(" offset=")[0] for name in found}
    assert elements["opts"] == f"{ffi}List<{ffi}Any>"
    assert elements["maybe"] == f"{ffi}List<{ffi}ObjectPtr<::tests::abi::LeafObj>>"
    assert elements["texts"] == f"{ffi}List<{ffi}Any>"
    assert elements["either"] == f"{ffi}Dict<{ffi}String, {ffi}Arc<{ffi}Object>>"
    assert elements["nums"] == f"{ffi}Dict<{ffi}String, {ffi}Any>"
    assert elements["pair"] == f"{ffi}Tuple<int64_t, {ffi}String>"
    assert elements["any_tuple"] == f"{ffi}Array<{ffi}Any>"


def test_selectors() -> None:
    text = gen_abi_cpp(["ffi.Function", "tests.abi.Leaf", "tests.abi.sub.*"])
    assert text == gen_abi_cpp(["tests.abi.sub.*", "tests.abi.sub.Base", "tests.abi.Lea?"])
    assert gen_abi_cpp("ffi.Function").startswith(
        "#pragma once\n\n#include <tvm/ffi/tvm_ffi.h>\n\n\nstatic_assert("
    )


def test_strange_names_are_escaped() -> None:
    key = "tests.abi.ΔNode"
    namespace = {"__annotations__": {"größe": int}, "__module__": __name__}
    py_class(key)(type(Object)("Delta", (Object,), namespace))
    text = gen_abi_cpp(key)
    assert "struct __ffi_escape_ce944e6f6465Obj;" in text
    assert '"tests.abi.\\316\\224Node"' in text
    assert "reflected name='größe'" in text
    py_class("tests.abi.__ffi_escape_x")(type(Object)("E", (Object,), {}))
    assert "struct __ffi_escape_5f5f" in gen_abi_cpp("tests.abi.__ffi_escape_x")


def test_a_key_without_dots_has_no_namespace() -> None:
    py_class("TestsAbiBare")(type(Object)("Bare", (Object,), {}))
    assert "\n\nstruct TestsAbiBareObj;\n\ntemplate <>\n" in gen_abi_cpp("TestsAbiBare")


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        (
            "tests.abi.nothing",
            "'tests.abi.nothing' did not match any registered type",
        ),
        ("int", "did not match any registered object type"),
        ("ffi.OpaquePyObject", "Static TVM-FFI type 'ffi.OpaquePyObject' is not supported"),
        ("testing.SchemaAllTypes", "Ambiguous native Optional carrier for testing.SchemaAllTypes"),
        ("testing.TestFrozenCxx", "does not expose fixed total-size metadata"),
    ],
)
def test_what_cannot_be_declared(selector: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        gen_abi_cpp(selector)


def lower(ty: Any, size: int, alignment: int = 8, index: int = 128, **extra: Any) -> Any:
    spec = SimpleNamespace(
        name="f",
        size=size,
        alignment=alignment,
        offset=24,
        field_static_type_index=index,
        ty=ty,
        **extra,
    )
    return _Generator([])._lower_field(spec, SimpleNamespace(type_key="tests.abi.Duck"))


def test_single_members_of_native_types() -> None:
    ffi = "::tvm::ffi::"
    leaf = core.TypeSchema("tests.abi.Leaf")
    assert lower(None, 8).cpp_type == f"{ffi}ObjectPtr<{ffi}Object>"
    assert lower(leaf, 8).cpp_type == f"{ffi}Arc<::tests::abi::LeafObj>"
    optional = core.TypeSchema("Optional", (leaf,))
    assert lower(optional, 8).cpp_type == f"{ffi}ObjectPtr<::tests::abi::LeafObj>"
    wide = lower(optional, 16)
    assert (wide.cpp_type, wide.size, wide.alignment) == (
        f"{ffi}Optional<{ffi}Arc<::tests::abi::LeafObj>>",
        16,
        8,
    )
    either = core.TypeSchema("Union", (leaf, core.TypeSchema("tests.abi.Other")))
    assert lower(either, 8).cpp_type == f"{ffi}Arc<{ffi}Object>"
    assert lower(core.TypeSchema("Optional", (core.TypeSchema("str"),)), 16).cpp_type == (
        f"{ffi}String"
    )
    with pytest.raises(ValueError, match="Ambiguous native Optional carrier for tests.abi.Duck.f"):
        lower(core.TypeSchema("Optional", (core.TypeSchema("int"),)), 16)
    with pytest.raises(ValueError, match="Ambiguous native Union carrier"):
        lower(core.TypeSchema("Union", (leaf, core.TypeSchema("int"))), 16)
    with pytest.raises(ValueError, match=r"Carrier int64_t for .* has layout \(8, 8\), but refle"):
        lower(core.TypeSchema("int"), 4, 4, index=1)
    with pytest.raises(ValueError, match=r"'DLTensor\*' normalizes to 'Tensor'"):
        lower(core.TypeSchema("Tensor"), 8, metadata={"type_schema": '{"type": "DLTensor*"}'})
    with pytest.raises(ValueError, match="Missing raw type schema"):
        lower(leaf, 8, metadata={})
    with pytest.raises(ValueError, match="Invalid raw type schema"):
        lower(leaf, 8, metadata={"type_schema": "nonsense"})
    with pytest.raises(ValueError, match="Cannot determine carrier"):
        lower(None, 8, index=9)


@needs_compiler
def test_generated_code_reads_live_objects(tmp_path: Path) -> None:
    (tmp_path / "types.h").write_text(
        gen_abi_cpp(["tests.abi.Mixed", "tests.abi.Grandchild", "tests.abi.Leaf"])
    )
    (tmp_path / "client.cc").write_text(
        """
#include "types.h"
#include <tvm/ffi/function.h>
#include <type_traits>
namespace ffi = tvm::ffi;
using tests::abi::GrandchildObj;
using tests::abi::LeafObj;
using tests::abi::MixedObj;
using tests::abi::sub::BaseObj;
static_assert(std::is_constructible_v<ffi::Arc<BaseObj>, ffi::Arc<GrandchildObj>>);

int64_t Sum(const MixedObj* mixed) {
  int64_t total = mixed->i + static_cast<int64_t>(mixed->f) + mixed->o->value;
  for (const auto& leaf : mixed->arr) total += leaf->value;
  for (int64_t item : mixed->lst) total += item;
  return total + static_cast<int64_t>(mixed->s.size());
}
int64_t Number(ffi::Arc<GrandchildObj> object) {
  ffi::Arc<BaseObj> base = object;
  return static_cast<const void*>(base.get()) == static_cast<const void*>(object.get())
             ? base->number + object->leaf->value
             : -1;
}
int64_t Index() { return LeafObj::RuntimeTypeIndex(); }
TVM_FFI_DLL_EXPORT_TYPED_FUNC(sum, Sum)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(number, Number)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(leaf_index, Index)
"""
    )
    library = libinfo.find_libtvm_ffi()
    command = ["g++", "-std=c++17", "-O0", "-shared", "-fPIC", "-Wall", "-Werror"]
    command += [f"-I{p}" for p in libinfo.include_paths()]
    command += [str(tmp_path / "client.cc"), "-o", str(tmp_path / "client.so"), library]
    subprocess.run(command, check=True)
    client = tvm_ffi.load_module(str(tmp_path / "client.so"))
    leaf = Leaf(5)
    mixed = Mixed(
        True,
        1,
        2.5,
        ctypes.c_void_p(),
        core.DataType("int32"),
        tvm_ffi.Device("cpu", 0),
        None,
        "text",
        b"",
        lambda: 1,
        leaf,
        [leaf, Leaf(6)],
        [7, 8],
        {"k": leaf},
        {},
        None,
        1,
    )
    assert client["sum"](mixed) == 1 + 2 + 5 + 5 + 6 + 7 + 8 + 4
    grandchild = Grandchild(True, 40, False, leaf, [], [], [], {}, {}, (1, "a"), ())
    assert client["number"](grandchild) == 45
    assert client["leaf_index"]() == Leaf.__tvm_ffi_type_info__.type_index
    with pytest.raises(TypeError, match="tests.abi.Mixed"):
        client["sum"](leaf)
    assert fresh_key()
    assert testing.TestIntPair(1, 2).sum() == 3
