# SPDX-License-Identifier: Apache-2.0
"""What a user of an installed tree gets: the files, and a project that finds and links them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(*command: str | Path, cwd: Path | None = None) -> str:
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_install_tree_is_complete(prefix: Path) -> None:
    expected = [
        "include/tvm/ffi/c_api.h",
        "include/tvm/ffi/tvm_ffi.h",
        "include/dlpack/dlpack.h",
        "lib/libtvm_ffi.so",
        "lib/libtvm_ffi_testing.so",
        "lib/libtvm_ffi_static.a",
        "share/cmake/tvm_ffi/tvm_ffi-config.cmake",
        "share/cmake/tvm_ffi/tvm_ffi-config-version.cmake",
    ]
    helpers = ("Library", "EmbedCubin", "ObjectCopyUtil", "DetectTargetTriple", "AddLibbacktrace")
    helpers += ("AddGoogleTest", "CxxWarning", "Sanitizer")
    expected += [f"share/cmake/tvm_ffi/Utils/{name}.cmake" for name in helpers]
    assert [name for name in expected if not (prefix / name).is_file()] == []


def test_testing_library_finds_its_neighbour(prefix: Path) -> None:
    listing = run("ldd", prefix / "lib" / "libtvm_ffi_testing.so")
    assert f"{prefix}/lib/libtvm_ffi.so" in listing


@pytest.mark.parametrize("flavour", ["shared", "static"])
def test_project_finds_links_and_runs(prefix: Path, tmp_path: Path, flavour: str) -> None:
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.18)\n"
        "project(consumer LANGUAGES CXX)\n"
        "find_package(tvm_ffi CONFIG REQUIRED)\n"
        "add_executable(consumer main.cc)\n"
        f"target_link_libraries(consumer PRIVATE tvm_ffi::{flavour})\n"
    )
    (tmp_path / "main.cc").write_text(
        "#include <tvm/ffi/function.h>\n"
        "#include <cstdio>\n"
        "int main() {\n"
        "  auto f = tvm::ffi::Function::FromTyped([](int a, int b) { return a + b; });\n"
        '  std::printf("%d\\n", f(40, 2).cast<int>());\n'
        "}\n"
    )
    build = tmp_path / "build"
    run("cmake", "-S", tmp_path, "-B", build, "-G", "Ninja", f"-Dtvm_ffi_ROOT={prefix}")
    run("cmake", "--build", build)
    assert run(build / "consumer").strip() == "42"


def test_headers_name_no_machine(prefix: Path) -> None:
    strings = run("strings", "-n", "6", prefix / "lib" / "libtvm_ffi.so")
    assert str(ROOT) + "/" not in strings
