# SPDX-License-Identifier: Apache-2.0
"""The package as a whole: what importing it does, what it exports, where its parts lie."""

from __future__ import annotations

import ctypes
import functools
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
import tvm_ffi
from support import run_python
from tvm_ffi import core, libinfo

PACKAGE = Path(tvm_ffi.__file__).parent


# ---- import ---------------------------------------------------------------------------------


def test_importing_loads_nothing_heavy() -> None:
    heavy = ["dataclasses", "importlib.metadata", "inspect", "json", "numpy", "torch", "typing"]
    loaded = run_python(
        f"import sys, tvm_ffi\nprint([name for name in {heavy!r} if name in sys.modules])"
    )
    assert loaded.strip() == "[]"


def test_every_exported_name_exists() -> None:
    for name in tvm_ffi.__all__:
        assert hasattr(tvm_ffi, name), name
    for name in ("CAny", "CContainerBase", "container", "core", "error", "registry", "stream"):
        assert hasattr(tvm_ffi, name), name


def test_star_import() -> None:
    names: dict[str, object] = {}
    exec("from tvm_ffi import *", names)  # what users write
    assert names["Array"] is tvm_ffi.Array
    assert names["cpp"] is tvm_ffi.cpp and names["dataclasses"] is tvm_ffi.dataclasses


def test_the_library_is_a_ctypes_library() -> None:
    assert isinstance(tvm_ffi.LIB, ctypes.CDLL)
    assert tvm_ffi.LIB.TVMFFIFunctionCall


def test_versions() -> None:
    assert ".".join(map(str, tvm_ffi.__version_tuple__[:3])) == tvm_ffi.__version__


# ---- parts ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("find", "holds"),
    [
        (libinfo.find_include_path, "tvm/ffi/c_api.h"),
        (libinfo.find_dlpack_include_path, "dlpack/dlpack.h"),
        (libinfo.find_python_helper_include_path, "tvm_ffi_python_helpers.h"),
        (libinfo.find_cmake_path, "tvm_ffi-config.cmake"),
        (libinfo.find_source_path, "src"),
    ],
)
def test_folders_hold_what_they_are_for(find, holds: str) -> None:  # type: ignore[no-untyped-def]
    assert (Path(find()) / holds).exists()


def test_include_paths_may_be_extended() -> None:
    paths = libinfo.include_paths()
    assert paths == sorted(set(paths))
    paths.append("mine")
    assert "mine" not in libinfo.include_paths()


def test_library_and_extension_are_files() -> None:
    assert Path(libinfo.find_libtvm_ffi()).is_file()
    assert Path(libinfo.find_cython_lib()).samefile(core.__file__)


def test_a_library_that_is_not_there_is_named() -> None:
    with pytest.raises(RuntimeError, match="libnobody.so"):
        libinfo.load_lib_ctypes("apache-tvm-ffi", "nobody", "RTLD_LOCAL")
    with pytest.raises(TypeError, match=r"extra_lib_paths\[0\] must be a pathlib.Path, got "):
        libinfo._find_library_by_basename("apache-tvm-ffi", "nobody", ["text"])  # type: ignore[list-item]


def test_a_library_can_be_somewhere_else(tmp_path: Path) -> None:
    other = tmp_path / "libelsewhere.so"
    other.symlink_to(libinfo.find_libtvm_ffi())
    found = libinfo._find_library_by_basename("apache-tvm-ffi", "elsewhere", [tmp_path])
    assert Path(found).samefile(other)


# ---- tvm-ffi-config -------------------------------------------------------------------------

FLAGS = {
    "--includedir": libinfo.find_include_path,
    "--dlpack-includedir": libinfo.find_dlpack_include_path,
    "--cmakedir": libinfo.find_cmake_path,
    "--sourcedir": libinfo.find_source_path,
    "--libfiles": libinfo.find_libtvm_ffi,
    "--libdir": lambda: str(Path(libinfo.find_libtvm_ffi()).parent),
    "--libs": lambda: "-ltvm_ffi",
    "--cython-lib-path": libinfo.find_cython_lib,
}


def config(*flags: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    return subprocess.run(
        [sys.executable, "-m", "tvm_ffi.config", *flags],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )


def test_config_answers_one_line_a_flag() -> None:
    done = config(*FLAGS)
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.splitlines()) == sorted(answer() for answer in FLAGS.values())


def test_config_gives_compiler_flags() -> None:
    done = config("--cxxflags", "--cflags", "--ldflags")
    cxxflags, cflags, ldflags = done.stdout.splitlines()
    assert cxxflags.endswith("-std=c++17")
    assert cflags.startswith("-I")
    assert ldflags.startswith("-L")
    assert done.stderr == ""


def test_config_without_a_flag_explains_itself() -> None:
    done = config()
    assert done.returncode == 0
    assert "--includedir" in done.stdout


# ---- environment variables ------------------------------------------------------------------


def test_release_gil_by_default_is_read_at_import() -> None:
    code = "import tvm_ffi; print(tvm_ffi.get_global_func('testing.add_one').release_gil)"
    for value, expected in (("0", "False"), ("1", "True")):
        environment = {
            **os.environ,
            "PYTHONPATH": str(PACKAGE.parent),
            "TVM_FFI_RELEASE_GIL_BY_DEFAULT": value,
        }
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env=environment,
        )
        assert done.stdout.strip() == expected


def test_no_lock_of_the_standard_library_is_left_taken_by_a_fork() -> None:
    """Before Python 3.12 a cached_property has one, for all objects of a class."""
    for name in ("dataclasses", "travel", "inspect", "cpp"):
        importlib.import_module(f"tvm_ffi.{name}")
    modules = [module for name, module in sys.modules.items() if name.split(".")[0] == "tvm_ffi"]
    classes = {value for m in modules for value in vars(m).values() if isinstance(value, type)}
    assert len(classes) > 100
    found = [
        f"{cls.__name__}.{name}"
        for cls in classes
        for name, value in vars(cls).items()
        if cls.__module__.startswith("tvm_ffi") and isinstance(value, functools.cached_property)
    ]
    assert found == []
