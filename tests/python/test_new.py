# SPDX-License-Identifier: Apache-2.0
"""`python -m tvm_ffi.new`: names, folders, messages. tests/projects builds what it writes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tvm_ffi import new


@pytest.mark.parametrize("name", ["thing", "my-kernels", "k2", "a_b"])
def test_a_project_has_no_placeholder_left(name: str, tmp_path: Path) -> None:
    written = new.create(name, tmp_path / "project")
    module = name.replace("-", "_")
    names = {str(path.relative_to(tmp_path / "project")) for path in written}
    assert {"CMakeLists.txt", "pyproject.toml", f"src/{module}.cc", ".gitignore"} <= names
    assert f"python/{module}/_ffi_api.py" in names
    for path in written:
        text = path.read_text()
        assert "@name@" not in text and "@module@" not in text and "@runtime@" not in text
        assert "NAME" not in path.name
        if path.suffix == ".py":
            compile(text, str(path), "exec")


@pytest.mark.parametrize(
    "name",
    [
        "",
        "1st",
        "a b",
        "Thing",
        "x-",
        "a--b",
        "../x",
        "a'b",
        "class",
        "json",
        "tvm-ffi",
        "é",
        "int",
        "xor",
        "linux",
        "unix",
        "index",
        "help",
        "package",
        "test",
        "all",
        "install",
        "edit-cache",
        "tether-ffi",
        "apache-tvm-ffi",
        "match",
        "numpy",
        "int8-t",
        "size_t",
        "uint",
        "clock",
    ],
)
def test_a_name_that_cannot_work_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be the name of a project"):
        new.create(name, tmp_path / "project")
    assert not (tmp_path / "project").exists()


def test_what_a_name_means_is_said(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"'xor' cannot .* it already means something in C\+\+"):
        new.create("xor", tmp_path / "project")
    with pytest.raises(ValueError, match="'help' cannot .* it already means something in CMake"):
        new.create("help", tmp_path / "project")


def test_the_folder_is_printed_for_a_shell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert new.main(["thing", "--directory", str(tmp_path / "my $HOME")]) == 0
    assert f"cd '{tmp_path}/my $HOME' && make" in capsys.readouterr().out


def test_a_folder_with_files_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    assert new.main(["thing", "--directory", str(tmp_path)]) == 1
    assert "exists already" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_the_command_says_what_to_do_next(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "project"
    arguments = ["thing", "--directory", str(folder), "--runtime", "apache-tvm-ffi"]
    assert new.main(arguments) == 0
    assert "make build && make test && make wheel" in capsys.readouterr().out
    assert 'dependencies = ["apache-tvm-ffi"]' in (folder / "pyproject.toml").read_text()
