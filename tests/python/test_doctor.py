# SPDX-License-Identifier: Apache-2.0
"""python -m tvm_ffi.doctor."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import tvm_ffi
from support import FREE_THREADED, NativeClient
from tvm_ffi import doctor, libinfo

PACKAGE = Path(tvm_ffi.__file__).parent


def run_doctor(
    *arguments: str, extra_path: Path | None = None, package: Path = PACKAGE
) -> subprocess.CompletedProcess[str]:
    paths = [str(package.parent), *([str(extra_path)] if extra_path else [])]
    return subprocess.run(
        [sys.executable, "-m", "tvm_ffi.doctor", *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_sound_installation() -> None:
    done = run_doctor("--json")
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["ok"] is True and found["errors"] == [] and found["warnings"] == []
    assert found["versions"] == {
        "interface": tvm_ffi.__version__,
        "tether": tvm_ffi.__tether_version__,
    }
    assert found["interpreter"]["free_threaded_build"] is FREE_THREADED
    assert found["paths"]["library"] == libinfo.find_libtvm_ffi()
    assert found["tying"] == {
        "enabled": True,
        **dict.fromkeys(["P1", "P2", "P3", "P4", "P7"], "ok"),
    }
    assert found["runtimes"] == [libinfo.find_libtvm_ffi()]


def test_plain_text() -> None:
    done = run_doctor()
    assert done.returncode == 0
    assert (
        f"tether      {tvm_ffi.__tether_version__}, interface {tvm_ffi.__version__}" in done.stdout
    )
    assert "tying       on" in done.stdout
    assert "nothing is wrong" in done.stdout


def test_a_library_named_on_the_command_line(client_path: str) -> None:
    found = json.loads(run_doctor("--json", client_path).stdout)
    (client,) = found["clients"]
    assert client["path"] == client_path and client["by_note"] is True
    assert client["built_with"].startswith(tvm_ffi.__version__)
    assert client["loaded"] is False


def test_what_is_no_library_is_named(client_path: str, tmp_path: Path) -> None:
    """Nothing that was asked for is passed over."""
    (tmp_path / "text.txt").write_text("some text, longer than the header of a library" * 5)
    (tmp_path / "garbage.so").write_bytes(b"\x7fELF" + bytes(100))
    library = Path(client_path).read_bytes()
    (tmp_path / "cut.so").write_bytes(library[:4096])
    (tmp_path / "empty").mkdir()
    names = ["missing.so", "text.txt", "garbage.so", "cut.so", "empty"]
    done = run_doctor("--json", *(str(tmp_path / name) for name in names))
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert found["errors"] == [
        f"{tmp_path}/missing.so: No such file or directory",
        f"{tmp_path}/text.txt: it is not a shared library",
        f"{tmp_path}/garbage.so: it is not a shared library for this machine",
        found["errors"][3],
        f"{tmp_path}/empty: there is no library in this folder",
    ]
    cut = f"{tmp_path}/cut.so: the file is cut off: it has 4096 bytes, and its headers speak of "
    assert found["errors"][3].startswith(cut)
    for name in ("", "a b", "1abc"):  # neither a module nor a file
        assert run_doctor(name).stdout.endswith(f"error: {name}: No such file or directory\n")


def test_a_folder_stands_for_the_libraries_in_it(client_path: str, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "client.so").write_bytes(Path(client_path).read_bytes())
    math = next(path for path in doctor._mapped_files() if "libc.so" in path)
    done = run_doctor(str(tmp_path), math)
    assert done.returncode == 0
    assert f"not loaded: {tmp_path}/sub/client.so" in done.stdout
    assert f"does not use the interface: {math}" in done.stdout


@pytest.mark.parametrize("version", ["bad version!", "", "1.2-3", "../1", "1.0\n"])
def test_a_stand_in_needs_a_version(version: str, tmp_path: Path) -> None:
    done = run_doctor("--stand-in", str(tmp_path), "--stand-in-version", version)
    assert done.returncode == 2
    assert f"{version!r} is not a version such as" in done.stderr
    assert not list(tmp_path.iterdir())
    for good in ("0.1.15.post2", "1!2", "0.1.0a1.dev3+local.1"):
        assert doctor.write_stand_in(tmp_path, good).exists()


def test_a_stand_in_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = run_doctor("--stand-in", str(tmp_path / "file"))
    assert done.returncode == 1
    assert done.stderr == f"cannot write to {tmp_path}/file: File exists\n"


def test_loaded_clients_of_this_process(client: NativeClient) -> None:
    found = doctor.report()
    (mine,) = [entry for entry in found["clients"] if entry["path"] == client.path]
    assert mine["loaded"] is True and mine["problem"] == ""


def test_a_module_that_crashes_is_reported(tmp_path: Path) -> None:
    (tmp_path / "crashing.py").write_text(
        "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n"
    )
    done = run_doctor("crashing", extra_path=tmp_path)
    assert done.returncode == 1
    assert "error: a process that imports tvm_ffi, crashing was ended by SIGSEGV" in done.stdout


def test_a_module_that_cannot_be_imported_is_reported() -> None:
    done = run_doctor("--json", "no_such_module_anywhere")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert found["ok"] is False and "No module named" in found["errors"][0]


def test_a_module_that_brings_a_second_runtime(tmp_path: Path) -> None:
    copy = tmp_path / "libtvm_ffi.so"
    copy.write_bytes(Path(libinfo.find_libtvm_ffi()).read_bytes())
    (tmp_path / "second.py").write_text(f"import ctypes\nctypes.CDLL({str(copy)!r})\n")
    done = run_doctor("second", extra_path=tmp_path)
    assert done.returncode == 1
    assert "error: a process that imports tvm_ffi, second was ended by SIGABRT" in done.stdout
    own = libinfo.find_libtvm_ffi()
    assert f"a second runtime, {copy}, is being loaded beside {own}" in done.stdout


def test_what_is_left_when_the_other_package_was_removed(tmp_path: Path) -> None:
    rest = tmp_path / "tvm_ffi"
    rest.mkdir()
    for name in ("doctor.py", "_impl", "tying.py"):
        (rest / name).symlink_to(PACKAGE / name)
    done = run_doctor(package=rest)
    assert done.returncode == 1
    assert f"error: {rest / '__init__.py'} is missing" in done.stdout
    assert "Install tether-ffi again: pip install --force-reinstall" in done.stdout


def test_the_version_of_a_stand_in_can_be_chosen(tmp_path: Path) -> None:
    done = run_doctor("--stand-in", str(tmp_path), "--stand-in-version", "0.1.12")
    assert done.stdout.strip() == str(tmp_path / "apache_tvm_ffi-0.1.12-py3-none-any.whl")


@pytest.mark.skipif(importlib.util.find_spec("pip") is None, reason="no pip in this environment")
def test_the_stand_in_satisfies_pip(tmp_path: Path) -> None:
    done = run_doctor("--stand-in", str(tmp_path / "wheels"))
    wheel = Path(done.stdout.strip())
    assert wheel.name == f"apache_tvm_ffi-{tvm_ffi.__version__}-py3-none-any.whl"
    site = tmp_path / "site"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    command += ["--disable-pip-version-check", "--target", str(site), str(wheel)]
    subprocess.run(command, check=True)
    question = (
        "from importlib import metadata; d = metadata.distribution('apache-tvm-ffi');"
        "print(d.version, d.requires, [f for f in d.files if 'dist-info' not in str(f)])"
    )
    answer = subprocess.run(
        [sys.executable, "-c", question],
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert answer.strip() == f"{tvm_ffi.__version__} ['tether-ffi'] []"
