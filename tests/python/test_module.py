# SPDX-License-Identifier: Apache-2.0
"""Modules: libraries loaded at run time, and the functions linked into the process."""

from __future__ import annotations

import gc
import os
import shlex
import subprocess
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tvm_ffi
from tvm_ffi import libinfo
from tvm_ffi.module import Module, ModulePropertyMask

TESTING_LIBRARY = libinfo._find_library_by_basename("apache-tvm-ffi", "tvm_ffi_testing")


@pytest.fixture
def library() -> Module:
    return tvm_ffi.load_module(TESTING_LIBRARY)


def test_system_library() -> None:
    module = tvm_ffi.system_lib("testing.")
    assert module["add_one"](10) == 11
    assert module.add_one(10) == 11
    assert module.get_function("add_one")(10) == 11
    assert tvm_ffi.system_lib("testing.") is module


def test_a_module_that_was_moved_away_can_be_printed() -> None:
    module = tvm_ffi.load_module(TESTING_LIBRARY)
    tvm_ffi.convert(lambda x: None)(module._move())
    assert "chandle=None" in repr(module)


def test_load_module(library: Module) -> None:
    assert library.kind == "library"
    assert library["testing_dll_schema_id_int"](5) == 5
    assert library.testing_dll_test_add_with_docstring(2, 3) == 5
    assert library.implements_function("testing_dll_schema_id_int")
    assert not library.implements_function("nothing")
    assert tvm_ffi.load_module(str(TESTING_LIBRARY)).kind == "library"


def test_attributes_are_cached(library: Module) -> None:
    function = library.testing_dll_schema_id_int
    assert library.testing_dll_schema_id_int is function
    assert "testing_dll_schema_id_int" in library.__dict__


def test_missing_functions(library: Module) -> None:
    for get in (
        lambda: library.nothing,
        lambda: library["nothing"],
        lambda: library.get_function("nothing"),
    ):
        with pytest.raises(AttributeError, match="Module has no function 'nothing'"):
            get()
    with pytest.raises(ValueError, match="Can only take string as function name"):
        library[1]
    with pytest.raises(AttributeError, match="Module has no function 'main'"):
        library(1)
    assert not hasattr(library, "nothing")


def test_metadata_and_docs(library: Module) -> None:
    assert "type_schema" in library.get_function_metadata("testing_dll_schema_id_int")
    doc = library.get_function_doc("testing_dll_test_add_with_docstring")
    assert doc.startswith("Add two integers and return the sum.\n\nParameters\n")
    assert library.get_function_doc("testing_dll_schema_id_int") is None
    assert library.get_function_metadata("nothing") is None


def test_imports(library: Module) -> None:
    other = tvm_ffi.system_lib("testing.")
    library.import_module(other)
    try:
        assert library.imports[0] is other
        assert library.implements_function("add_one", query_imports=True)
        assert not library.implements_function("add_one")
        assert library.get_function("add_one", query_imports=True)(1) == 2
    finally:
        library.clear_imports()
    assert len(library.imports) == 0


def test_properties(library: Module) -> None:
    mask = library.get_property_mask()
    assert library.is_runnable() == bool(mask & ModulePropertyMask.RUNNABLE)
    assert library.is_runnable()
    assert library.is_binary_serializable() == bool(mask & 1)
    assert library.is_compilation_exportable() == bool(mask & 4)
    assert list(library.get_write_formats()) == []
    assert Module.entry_name == "main"


def test_errors_of_loading(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="nowhere.so"):
        tvm_ffi.load_module("/nowhere.so")
    bad = tmp_path / "bad.so"
    bad.write_bytes(b"this is no library")
    with pytest.raises(RuntimeError, match="bad.so"):
        tvm_ffi.load_module(bad)
    with pytest.raises(TypeError):
        tvm_ffi.load_module(3)
    with pytest.raises(RuntimeError):
        tvm_ffi.load_module(tmp_path / "no_suffix")


def test_a_file_that_is_cut_off_is_an_error(adder: str, tmp_path: Path) -> None:
    """The loader would map it, and the process would end by SIGBUS."""
    whole = Path(adder).read_bytes()
    cut = tmp_path / "cut.so"
    sizes = [100, 1000, 4096, 8192, 12288]
    for size in sizes:
        cut.write_bytes(whole[:size])
        with pytest.raises(RuntimeError, match=f"{cut}.*(cut off|too short|cannot read)") as caught:
            tvm_ffi.load_module(cut)
        if size >= 4096:
            assert f"it has {size} bytes, and its headers speak of " in str(caught.value)
    cut.write_bytes(whole)
    assert tvm_ffi.load_module(cut, keep_module_alive=False).add(1, 2) == 3


def test_a_library_that_was_built_again_is_reported(adder: str, tmp_path: Path) -> None:
    path = tmp_path / "again.so"
    path.write_bytes(Path(adder).read_bytes())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        module = tvm_ffi.load_module(path, keep_module_alive=False)
        assert tvm_ffi.load_module(path).add(1, 2) == 3
    new = tmp_path / "new.so"
    new.write_bytes(Path(adder).read_bytes())
    new.replace(path)
    with pytest.warns(RuntimeWarning, match=f"{path} has changed") as found:
        tvm_ffi.load_module(path)
    assert found[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        path.rename(new)
        assert tvm_ffi.load_module(new).add(1, 2) == 3
    del module


def test_a_library_that_was_unloaded_is_loaded_anew(adder: str, tmp_path: Path) -> None:
    path = tmp_path / "unloaded.so"
    for _ in range(3):
        new = tmp_path / "new.so"
        new.write_bytes(Path(adder).read_bytes())
        new.replace(path)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            module = tvm_ffi.load_module(path, keep_module_alive=False)
        assert module["add"](1, 2) == 3
        del module
        assert not is_mapped(str(path))


def test_functions_outlive_the_module_object() -> None:
    module = tvm_ffi.load_module(TESTING_LIBRARY, keep_module_alive=False)
    function = module.get_function("testing_dll_schema_id_int")
    watcher = weakref.ref(module)
    del module
    gc.collect()
    assert function(7) == 7
    del function
    gc.collect()
    assert watcher() is None


ADDER = """
#include <tvm/ffi/c_api.h>
int __tvm_ffi_add(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self, (void)num_args;
  result->type_index = kTVMFFIInt;
  result->v_int64 = args[0].v_int64 + args[1].v_int64;
  return 0;
}
"""


@pytest.fixture(scope="module")
def adder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the path of a library that nothing keeps loaded."""
    folder = tmp_path_factory.mktemp("adder")
    (folder / "adder.c").write_text(ADDER, encoding="utf-8")
    command = [*shlex.split(os.environ.get("CC", "cc")), "-shared", "-fPIC"]
    command += [f"-I{libinfo.find_include_path()}", "adder.c", "-o", "adder.so"]
    subprocess.run(command, cwd=folder, check=True)
    return str(folder / "adder.so")


def is_mapped(path: str) -> bool:
    return path in Path("/proc/self/maps").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "use",
    [
        lambda m: m["add"],
        lambda m: m.get_function("add"),
        lambda m: m.add,
        lambda m: [m.add, setattr(m, "note", m)][0],
        lambda m: [m.add, setattr(m.add, "note", m)][0],
    ],
    ids=["item", "get_function", "attribute", "attribute and state", "state of the function"],
)
def test_a_module_that_nothing_holds_is_unloaded(adder: str, use: Callable[[Any], Any]) -> None:
    module = tvm_ffi.load_module(adder, keep_module_alive=False)
    watcher = weakref.ref(module)
    assert use(module)(1, 2) == 3
    assert is_mapped(adder)
    del module
    gc.collect()
    assert watcher() is None
    assert not is_mapped(adder)


def test_a_function_that_was_read_keeps_its_module(adder: str) -> None:
    module = tvm_ffi.load_module(adder, keep_module_alive=False)
    module.note = "kept"
    watcher = weakref.ref(module)
    function = module.add
    del module
    gc.collect()
    assert function(1, 2) == 3
    assert watcher().note == "kept"
    assert watcher().add is function
    del function
    gc.collect()
    assert watcher() is None


def test_a_ring_that_holds_a_module_is_collected(adder: str) -> None:
    ring = {"module": tvm_ffi.load_module(adder, keep_module_alive=False)}
    ring["ring"] = ring
    assert ring["module"].add(1, 2) == 3
    watcher = weakref.ref(ring["module"])
    del ring
    gc.collect()
    assert watcher() is None
    assert not is_mapped(adder)


def test_load_lib_module() -> None:
    module = libinfo.load_lib_module("apache-tvm-ffi", "tvm_ffi_testing")
    assert module["testing_dll_schema_id_int"](5) == 5
