# SPDX-License-Identifier: Apache-2.0
"""`pip wheel .` gives a wheel with the libraries, headers and CMake package inside tvm_ffi/."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import audit_wheel
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation"]
    command += ["--disable-pip-version-check", "--wheel-dir", str(target)]
    # In the folder of the tests, where everything is compiled already, with the same options.
    command += ["--config-settings=build-dir=build/release"]
    command += ["--config-settings=cmake.define.TETHER_BUILD_TESTS=ON", str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = target.glob("tether_ffi-*.whl")
    return built


def test_wheel_has_the_documented_layout(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    expected = {
        "tvm_ffi/lib/libtvm_ffi.so",
        "tvm_ffi/lib/libtvm_ffi_testing.so",
        "tvm_ffi/include/tvm/ffi/c_api.h",
        "tvm_ffi/include/dlpack/dlpack.h",
        "tvm_ffi/include/tvm_ffi_python_helpers.h",
        "tvm_ffi/src/core/object.cc",
        "tvm_ffi/core.pyi",
        "tvm_ffi/py.typed",
        "tvm_ffi/share/cmake/tvm_ffi/tvm_ffi-config.cmake",
        "tvm_ffi/share/cmake/tvm_ffi/Utils/Library.cmake",
        "tvm_ffi/cpp/extension.py",
        "tvm_ffi/stub/cli.py",
        f"tvm_ffi/core{sysconfig.get_config_var('EXT_SUFFIX')}",
    }
    assert expected - names == set()


def test_installed_wheel_works(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path)
    code = "import tvm_ffi; a = tvm_ffi.Array([tvm_ffi.Array([])]); assert a[0] is a[0]"
    command = [
        sys.executable,
        "-S",
        "-c",
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {code}",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_wheel_is_tagged_and_linked_right(wheel: Path) -> None:
    assert audit_wheel.problems(wheel) == []


def test_wheel_has_the_console_scripts(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (name,) = (n for n in archive.namelist() if n.endswith("entry_points.txt"))
    lines = archive.read(name).decode().replace(" ", "").splitlines()
    assert "tvm-ffi-config=tvm_ffi.config:__main__" in lines
    assert "tvm-ffi-stubgen=tvm_ffi.stub.cli:__main__" in lines


def test_wheel_contains_nothing_else(wheel: Path) -> None:
    outside = [
        name
        for name in zipfile.ZipFile(wheel).namelist()
        if not name.startswith("tvm_ffi/") and ".dist-info/" not in name
    ]
    assert outside == []
    assert not [name for name in zipfile.ZipFile(wheel).namelist() if name.endswith(".a")]
