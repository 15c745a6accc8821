# SPDX-License-Identifier: Apache-2.0
"""What the libraries in build/release show to the dynamic linker.

A missing symbol breaks a client at load time; a symbol too many can be merged with a client's own
and then run in its place. Both directions are checked.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LIB_DIR = ROOT / "build" / "release" / "lib"

# Data that clients which derive module classes or throw errors refer to, and the static inside
# ModuleObj that every such client emits as well.
CLASS_DATA = {
    f"_Z{kind}N3tvm3ffi{name}E" for kind in ("TV", "TI", "TS") for name in ("9ModuleObj", "5Error")
}
MODULE_INDEX = "_ZZN3tvm3ffi9ModuleObj27_GetOrAllocRuntimeTypeIndexEvE6tindex"
OPTIONAL_DATA = {MODULE_INDEX, MODULE_INDEX.replace("_ZZ", "_ZGVZ", 1)}
# json::Stringify as clients up to 0.1.12 import it (indent by value).
OLD_FUNCTIONS = {"_ZN3tvm3ffi4json9StringifyERKNS0_3AnyENS0_8OptionalIivEE"}


def dynamic_symbols(library: Path, defined: bool) -> set[str]:
    which = "--defined-only" if defined else "--undefined-only"
    command = ["nm", "-D", "--format=posix", which, str(library)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return {line.split()[0] for line in lines}


def dynamic_section(library: Path, tag: str) -> list[str]:
    text = subprocess.run(
        ["readelf", "-d", str(library)], capture_output=True, text=True, check=True
    ).stdout
    return re.findall(rf"\({tag}\).*\[(.*)\]", text)


@pytest.fixture(scope="module")
def exported() -> set[str]:
    return dynamic_symbols(LIB_DIR / "libtvm_ffi.so", defined=True)


@pytest.fixture(scope="module")
def required() -> set[str]:
    lines = (Path(__file__).parent / "exported_symbols.txt").read_text().splitlines()
    named = {line for line in lines if line and not line.startswith("#")}
    return named | CLASS_DATA | OLD_FUNCTIONS


def test_every_symbol_clients_import_is_exported(exported: set[str], required: set[str]) -> None:
    assert sorted(required - exported) == []


def test_nothing_else_is_exported(exported: set[str], required: set[str]) -> None:
    allowed = required | OPTIONAL_DATA
    assert sorted(exported - allowed) == []


def test_symbols_have_no_versions(exported: set[str]) -> None:
    assert [name for name in exported if "@" in name] == []


def test_library_name_has_no_version() -> None:
    assert dynamic_section(LIB_DIR / "libtvm_ffi.so", "SONAME") == ["libtvm_ffi.so"]
    assert dynamic_section(LIB_DIR / "libtvm_ffi_testing.so", "SONAME") == ["libtvm_ffi_testing.so"]


def test_library_needs_only_the_c_and_cpp_runtime() -> None:
    allowed = {"libstdc++.so.6", "libgcc_s.so.1", "libc.so.6", "libm.so.6", "libdl.so.2"}
    allowed |= {"libpthread.so.0"} | {"ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
    assert set(dynamic_section(LIB_DIR / "libtvm_ffi.so", "NEEDED")) <= allowed


def test_testing_library_exports_its_entry_points() -> None:
    library = LIB_DIR / "libtvm_ffi_testing.so"
    assert "libtvm_ffi.so" in dynamic_section(library, "NEEDED")
    expected = {
        "TVMFFITestingDummyTarget",
        "__tvm_ffi_testing_dll_schema_id_int",
        "__tvm_ffi__metadata_testing_dll_schema_id_int",
        "__tvm_ffi_testing_dll_test_add_with_docstring",
        "__tvm_ffi__metadata_testing_dll_test_add_with_docstring",
        "__tvm_ffi__doc_testing_dll_test_add_with_docstring",
    }
    assert sorted(expected - dynamic_symbols(library, defined=True)) == []


def test_clients_have_no_thread_local_variables() -> None:
    """Those of code that was compiled at run time are gone before its last objects."""
    command = ["readelf", "--program-headers", "--wide", str(LIB_DIR / "libtvm_ffi_testing.so")]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "LOAD" in text
    assert re.findall(r"^ *TLS .*", text, re.MULTILINE) == []


def test_the_code_of_a_function_is_in_the_library_that_made_it(tmp_path: Path) -> None:
    """By its address the runtime knows whose it is; an exported one could be another library's."""
    (tmp_path / "client.cc").write_text(
        """#include <tvm/ffi/tvm_ffi.h>
        int64_t AddOne(int64_t x) { return x + 1; }
        TVM_FFI_STATIC_INIT_BLOCK() {
          tvm::ffi::reflection::GlobalDef().def("testing.abi.add_one", AddOne);
        }
        """
    )
    client = tmp_path / "client.so"
    command = ["c++", "-std=c++17", "-O1", "-shared", "-fPIC", f"-I{ROOT / 'include'}"]
    subprocess.run([*command, str(tmp_path / "client.cc"), "-o", str(client)], check=True)
    command = ["nm", "--demangle", str(client)]
    symbols = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    entries = re.findall(r"^\w+ (\w) .*CallableFunction<.*::SafeCall\(", symbols, re.MULTILINE)
    assert entries and set(entries) == {"t"}, "local symbols"
