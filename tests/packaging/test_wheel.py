# SPDX-License-Identifier: Apache-2.0
"""`pip wheel .` gives a wheel with the libraries, headers and CMake package inside tvm_ffi/."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import audit_wheel

ROOT = Path(__file__).resolve().parents[2]


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
        "tvm_ffi/new.py",
        "tvm_ffi/_new/.gitignore.in",
        "tvm_ffi/_new/.github/workflows/ci.yml.in",
        "tvm_ffi/_new/src/NAME.cc.in",
        f"tvm_ffi/core{sysconfig.get_config_var('EXT_SUFFIX')}",
    }
    assert expected - names == set()


def package_files() -> set[str]:
    """Return the files of the package in the source tree."""
    package = ROOT / "python" / "tvm_ffi"
    files = (p.relative_to(package.parent) for p in package.rglob("*") if p.is_file())
    return {p.as_posix() for p in files if "__pycache__" not in p.parts}


def test_wheel_has_every_file_of_the_package(wheel: Path) -> None:
    assert package_files() - set(zipfile.ZipFile(wheel).namelist()) == set()


def test_source_distribution_has_every_file_a_wheel_is_built_from(tmp_path: Path) -> None:
    code = "import sys, scikit_build_core.build as b; print(b.build_sdist(sys.argv[1]))"
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    wanted = {f"python/{name}" for name in package_files()}
    for folder in ("include", "src", "cmake", "docs"):
        files = (p for p in (ROOT / folder).rglob("*") if p.is_file())
        wanted |= {p.relative_to(ROOT).as_posix() for p in files if "__pycache__" not in p.parts}
    assert wanted - names == set()
    left_out = ("tests/", "bench/", "build/", ".cache/", ".venv/", "rust/", "model/")
    assert [name for name in names if name.startswith(left_out)] == []


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


def test_readme_works_in_a_clean_environment_without_a_compiler(
    wheel: Path, tmp_path: Path
) -> None:
    """pip install, then README's Python, with nothing on PATH but the environment."""
    text = (ROOT / "README.md").read_text()
    (tmp_path / "zoo.cc").write_text(re.findall(r"```cpp[^\n]*\n(.*?)```", text, re.S)[0])
    (tmp_path / "zoo.py").write_text(
        "\n".join(re.findall(r"```python[^\n]*\n(.*?)```", text, re.S))
    )
    home = tmp_path / "environment"

    def run(*command: str | Path, **variables: str) -> str:
        done = subprocess.run(
            [str(word) for word in command],
            env={**os.environ, **variables},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run(sys.executable, "-m", "venv", "--without-pip", home)
    pip = [sys.executable, "-m", "pip", "--python", home / "bin" / "python", "install", "-q"]
    run(*pip, "--no-index", "--no-deps", wheel)
    clean = {"PATH": str(home / "bin"), "PYTHONPATH": ""}
    config = [home / "bin" / "tvm-ffi-config", "--cxxflags", "--ldflags", "--libs"]
    flags = run(*config, **clean).split()
    run("c++", "-shared", "-fPIC", "zoo.cc", *flags, "-o", "libzoo.so")  # by somebody else
    run(home / "bin" / "python", "zoo.py", **clean)
