# SPDX-License-Identifier: Apache-2.0
"""`find_package(tvm_ffi)` from the package and from the source tree, and what it brings."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import tvm_ffi
from support import ROOT
from tvm_ffi import libinfo

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("cmake", "ninja", "c++"))), reason="no cmake, ninja or compiler"
)

SOURCE = """
#include <tvm/ffi/tvm_ffi.h>
namespace ffi = tvm::ffi;
class PairObj : public ffi::Object {
 public:
  int64_t a;
  explicit PairObj(int64_t a) : a(a) {}
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("cmake_demo.Pair", PairObj, ffi::Object);
};
TVM_FFI_STATIC_INIT_BLOCK() {
  ffi::reflection::ObjectDef<PairObj>()
      .def(ffi::reflection::init<int64_t>())
      .def_ro("a", &PairObj::a);
  ffi::reflection::GlobalDef().def("cmake_demo.add_one", [](int64_t x) { return x + 1; });
}
"""
C_SOURCE = "#include <tvm/ffi/c_api.h>\nint f(void) { return kTVMFFIInt; }\n"


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(tvm_ffi.__file__).parents[1].absolute())}


def cmake(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["cmake", *map(str, arguments)],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )


def configure(
    folder: Path, text: str, *options: str, languages: str = "CXX"
) -> subprocess.CompletedProcess[str]:
    (folder / "CMakeLists.txt").write_text(
        f"cmake_minimum_required(VERSION 3.18)\nproject(p LANGUAGES {languages})\n"
        f"find_package(tvm_ffi CONFIG REQUIRED)\n{text}\n"
    )
    where = () if any("tvm_ffi_ROOT" in o for o in options) else (_root(),)
    python = [f"-DPython3_EXECUTABLE={sys.executable}", f"-DPython_EXECUTABLE={sys.executable}"]
    if any("_EXECUTABLE" in o for o in options):
        python.clear()
    generator = ("-G", "Ninja") if "-G" not in options else ()
    return cmake("-S", folder, "-B", folder / "build", *generator, *where, *python, *options)


def _root() -> str:
    return f"-Dtvm_ffi_ROOT={Path(libinfo.find_cmake_path()).absolute()}"


def test_a_library_with_stubs(tmp_path: Path) -> None:
    (tmp_path / "demo.cc").write_text(SOURCE)
    done = configure(
        tmp_path,
        "add_library(cmake_demo SHARED demo.cc)\n"
        'tvm_ffi_configure_target(cmake_demo STUB_DIR "python" STUB_INIT ON)\n'
        "tvm_ffi_install(cmake_demo DESTINATION .)\n"
        "tvm_ffi_hide_static_linked_lib_symbols(cmake_demo)\n"
        "add_library(objects OBJECT demo.cc)\n"
        "tvm_ffi_add_target_from_obj(mine objects)\n"
        "target_sources(mine_testing PRIVATE demo.cc)\n"
        "foreach(t mine_static mine::shared mine_testing)\n"
        '  if(NOT TARGET ${t})\n    message(FATAL_ERROR "${t}")\n  endif()\n'
        "endforeach()\n",
        "-DCMAKE_CXX_FLAGS=-O0",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    done = cmake("--build", tmp_path / "build", "--target", "cmake_demo", "-v")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"-ffile-prefix-map={tmp_path}/=" in done.stdout
    api = (tmp_path / "python" / "cmake_demo" / "_ffi_api.py").read_text()
    assert 'LIB = _FFI_LOAD_LIB("cmake_demo", "cmake_demo")' in api
    assert "    def add_one(_0: int, /) -> int: ..." in api and "class Pair(_ffi_Object):" in api


def test_a_project_in_c_only(tmp_path: Path) -> None:
    (tmp_path / "f.c").write_text(C_SOURCE)
    text = "add_library(f SHARED f.c)\ntvm_ffi_configure_target(f)\n"
    done = configure(tmp_path, text, languages="C")
    assert done.returncode == 0, done.stdout + done.stderr
    done = cmake("--build", tmp_path / "build")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_source_tree(tmp_path: Path) -> None:
    (tmp_path / "f.c").write_text(C_SOURCE)
    text = "add_library(f SHARED f.c)\ntarget_link_libraries(f PRIVATE tvm_ffi::shared)\n"
    root = f"-Dtvm_ffi_ROOT={ROOT / 'cmake'}"
    done = configure(tmp_path, text, root, languages="C")
    assert done.returncode == 0, done.stdout + done.stderr
    assert cmake("--build", tmp_path / "build").returncode == 0
    done = configure(tmp_path, text, root, "-Dtvm_ffi_BUILD_DIR=/nowhere", languages="C")
    assert done.returncode != 0
    assert "set tvm_ffi_BUILD_DIR to a build folder" in " ".join(done.stderr.split())


def test_wrong_arguments(tmp_path: Path) -> None:
    """Each error is raised in a configuration of its own, which try_compile would not be."""
    cases = {
        "tvm_ffi_configure_target()": "missing target name",
        "tvm_ffi_configure_target(no)": "'no' is not an existing CMake target.",
        "tvm_ffi_configure_target(f STUB_INIT ON)": "STUB_INIT is ON, but STUB_DIR is not set",
        "tvm_ffi_configure_target(f STUB_PKG x)": "STUB_PKG is set, but STUB_DIR is not",
        "tvm_ffi_configure_target(f STUB_DIR d STUB_PREFIX x)": "STUB_INIT is not ON",
        "tvm_ffi_configure_target(f NONSENSE)": "unknown arguments: NONSENSE",
        "tvm_ffi_configure_target(f STUB_DIR)": "no value for: STUB_DIR",
        "tvm_ffi_configure_target(f STUB_TARGET rust)": "STUB_TARGET is set, but STUB_DIR is not",
        "tvm_ffi_configure_target(f STUB_DIR d STUB_TARGET C)": "is python or rust, not 'C'",
        "target_sources(f INTERFACE a.c)\ntvm_ffi_embed_bin_into(f SYMBOL x)": "are needed",
        "add_custom_target(g SOURCES a.c a.h b.cc)\n"
        "tvm_ffi_embed_bin_into(g SYMBOL x BIN y)": "may have one source, and has 2: a.c",
        "tvm_ffi_embed_bin_into(f SYMBOL x)": "BIN <file> are needed",
        "add_tvm_ffi_cubin(f)": "CUDA <file> is missing",
    }
    for call, message in cases.items():
        text = f"add_library(f INTERFACE)\n{call}\n"
        done = configure(tmp_path, text, languages="NONE")
        assert done.returncode != 0, call
        assert message in " ".join(done.stderr.split()), (call, done.stderr)


@pytest.mark.skipif(shutil.which("objcopy") is None, reason="no objcopy")
@pytest.mark.parametrize("generator", ["Ninja", "Unix Makefiles"])
def test_a_binary_is_embedded(generator: str, tmp_path: Path) -> None:
    if generator == "Unix Makefiles" and shutil.which("make") is None:
        pytest.skip("no make")
    (tmp_path / "f.c").write_text(
        "extern const char __tvm_ffi__cubin_j[], __tvm_ffi__cubin_k[];\n"
        "int f(void) { return __tvm_ffi__cubin_k[0]; }\n"
        "int g(void) { return __tvm_ffi__cubin_j[0]; }\n"
    )
    (tmp_path / "f.h").touch()
    for name in "jk":
        (tmp_path / f"{name}.cubin").write_bytes(b"\x2a" * 100)
    done = configure(
        tmp_path,
        "add_library(f SHARED f.c f.h)\n"
        "set_property(TARGET f APPEND PROPERTY LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/again)\n"
        "tvm_ffi_embed_bin_into(f SYMBOL j BIN ${CMAKE_CURRENT_SOURCE_DIR}/j.cubin)\n"
        "tvm_ffi_embed_bin_into(f SYMBOL k BIN ${CMAKE_CURRENT_SOURCE_DIR}/k.cubin)\n",
        *("-G", generator),
        languages="C",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    built = tmp_path / "build" / "libf.so"

    def values(name: str) -> tuple[int, int]:
        """Build and return what the library has; a new time makes its inputs newer than it is."""
        (tmp_path / name).touch()
        if built.exists():
            now = built.stat().st_mtime + 2
            os.utime(tmp_path / name, (now, now))
        done = cmake("--build", tmp_path / "build")
        assert done.returncode == 0, done.stdout + done.stderr
        os.utime(built, (built.stat().st_mtime + 4,) * 2)
        shutil.copy(built, copy := tmp_path / f"copy{len(list(tmp_path.iterdir()))}.so")
        library = ctypes.CDLL(str(copy))
        return library.f(), library.g()

    assert values("again") == (42, 42)
    size = built.stat().st_size
    assert values("again") == (42, 42) and built.stat().st_size == size
    (tmp_path / "k.cubin").write_bytes(b"\x2b" * 100)
    assert values("k.cubin") == (43, 42) and built.stat().st_size == size
    (tmp_path / "j.cubin").write_bytes(b"\x2c" * 100)
    assert values("j.cubin") == (43, 44) and built.stat().st_size == size


def test_one_variable_names_the_interpreter(tmp_path: Path) -> None:
    """Who says Python_EXECUTABLE gets no other interpreter for the stubs, and the reverse."""
    text = (
        "add_library(f INTERFACE a.c)\n"
        "function(tvm_ffi_add_prefix_map)\nendfunction()\n"
        "function(find_package name)\n  message(FATAL_ERROR looked for ${name})\nendfunction()\n"
        "function(add_custom_command)\n  message(STATUS ${ARGV})\nendfunction()\n"
        "tvm_ffi_configure_target(f LINK_SHARED OFF LINK_HEADER OFF STUB_DIR d)\n"
        "tvm_ffi_embed_bin_into(f SYMBOL x BIN y)\n"
    )
    (tmp_path / "a.c").touch()
    for name in ("Python", "Python3"):
        shutil.rmtree(tmp_path / "build", ignore_errors=True)
        done = configure(tmp_path, text, f"-D{name}_EXECUTABLE={sys.executable}", languages="NONE")
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.count(f"COMMAND{sys.executable}-m") == 2
