# SPDX-License-Identifier: Apache-2.0
"""The CMake functions for other projects, from a wheel, an install tree and the source tree."""

from __future__ import annotations

import platform
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

PROJECT = """
cmake_minimum_required(VERSION 3.18)
project(consumer LANGUAGES C CXX)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})

# The name is a common one: a function of the project is left alone.
function(add_sanitizer_address target)
  set_property(GLOBAL PROPERTY asked_for_sanitizer ${target})
endfunction()
find_package(tvm_ffi CONFIG REQUIRED)
add_sanitizer_address(its_own)
get_property(asked GLOBAL PROPERTY asked_for_sanitizer)
message(STATUS "sanitizer asked for ${asked}")

tvm_ffi_detect_target_triple(triple)
message(STATUS "compiles for ${triple}")

add_library(part OBJECT part.cc)
target_link_libraries(part PRIVATE tvm_ffi::header)
set_target_properties(part PROPERTIES POSITION_INDEPENDENT_CODE ON)
tvm_ffi_add_cxx_warning(part)
tvm_ffi_add_object_copy(part_copy part copied/part.o)

add_executable(tests tests.cc)
target_link_libraries(tests PRIVATE tvm_ffi::shared part)
tvm_ffi_add_cxx_warning(tests)
tvm_ffi_add_libbacktrace(tests)
tvm_ffi_add_gtest(tests)

add_library(unclean OBJECT EXCLUDE_FROM_ALL unclean.cc)
tvm_ffi_add_cxx_warning(unclean)
"""

SANITIZED = """
cmake_minimum_required(VERSION 3.18)
project(sanitized LANGUAGES CXX)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
find_package(tvm_ffi CONFIG REQUIRED)
add_executable(wrong wrong.cc)
target_link_libraries(wrong PRIVATE tvm_ffi::shared)
add_sanitizer_address(wrong)
"""

SOURCES = {
    "part.cc": """
#include <tvm/ffi/function.h>
int64_t Answer() { return tvm::ffi::Function::FromTyped([] { return 42; })().cast<int64_t>(); }
""",
    "tests.cc": """
#include <gtest/gtest.h>
#include <cstdint>
#if TVM_FFI_USE_LIBBACKTRACE
#include <backtrace.h>
#endif
int64_t Answer();
TEST(Consumer, Answer) { EXPECT_EQ(Answer(), 42); }
#if TVM_FFI_USE_LIBBACKTRACE
TEST(Consumer, Libbacktrace) {
  EXPECT_NE(backtrace_create_state(nullptr, 1, nullptr, nullptr), nullptr);
}
#endif
""",
    "unclean.cc": "int Unclean() { int unused = 1; return 2; }\n",
    "wrong.cc": """
int main(int argc, char**) {
  int* freed = new int[3]();
  delete[] freed;
  return freed[argc];
}
""",
}


def run(*command: str | Path, status: int | None = 0) -> str:
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False
    )
    text = done.stdout + done.stderr
    assert status is None or done.returncode == status, text
    return text


@pytest.fixture(params=["wheel", "install tree", "source tree"])
def options(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return what a project says to find the package."""
    if request.param == "source tree":
        return [f"-Dtvm_ffi_ROOT={ROOT / 'cmake'}", f"-Dtvm_ffi_BUILD_DIR={ROOT}/build/release"]
    if request.param == "install tree":
        return [f"-Dtvm_ffi_ROOT={request.getfixturevalue('prefix')}"]
    site = tmp_path_factory.mktemp("site")
    zipfile.ZipFile(request.getfixturevalue("wheel")).extractall(site)
    return [f"-DCMAKE_PREFIX_PATH={site}"]


def configure(folder: Path, text: str, options: list[str]) -> str:
    (folder / "CMakeLists.txt").write_text(text)
    for name, source in SOURCES.items():
        (folder / name).write_text(source)
    python = [f"-DPython_EXECUTABLE={sys.executable}"]
    return run("cmake", "-S", folder, "-B", folder / "build", "-G", "Ninja", *python, *options)


def test_helper_functions(tmp_path: Path, options: list[str]) -> None:
    said = configure(tmp_path, PROJECT, options)
    assert "sanitizer asked for its_own" in said
    assert f"compiles for {platform.machine()}-" in said
    build = tmp_path / "build"
    run("cmake", "--build", build, "--target", "all", "part_copy")
    (part,) = build.glob("CMakeFiles/part.dir/*.o")
    assert (build / "copied" / "part.o").read_bytes() == part.read_bytes()
    said = run("ctest", "--test-dir", build, "--output-on-failure", "--no-tests=error")
    assert "Consumer.Answer" in said and "100% tests passed" in said
    said = run("cmake", "--build", build, "--target", "unclean", status=1)
    assert "unused" in said


def test_the_address_sanitizer(tmp_path: Path, options: list[str]) -> None:
    configure(tmp_path, SANITIZED, options)
    run("cmake", "--build", tmp_path / "build")
    assert "heap-use-after-free" in run(tmp_path / "build" / "wrong", status=1)
