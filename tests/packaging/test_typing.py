# SPDX-License-Identifier: Apache-2.0
"""What a type checker makes of the package's own types."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy", reason="no mypy")
ROOT = Path(__file__).resolve().parents[2]

# An expression, and the type that a checker must find for it.
EXPRESSIONS = {
    "array[0]": "int",
    "array[0:1]": "list[int]",
    "[x for x in array]": "list[int]",
    "array + [3]": "tvm_ffi.container.Array[int]",
    "tvm_ffi.List([1.0])": "tvm_ffi.container.List[float]",
    "tvm_ffi.List([1.0]).pop()": "float",
    'mapping["a"]': "int",
    "[key for key in mapping]": "list[str]",
    "mapping.items()": "tvm_ffi.container.ItemsView[str, int]",
    'mapping.get("a")': "int | None",
    'mapping.get("a", 1.5)': "int | float",
    "tvm_ffi.Dict({1: 'x'}).pop(1)": "str",
    'tvm_ffi.get_global_func("f")': "tvm_ffi.core.Function",
    'tvm_ffi.get_global_func("f", allow_missing=True)': "tvm_ffi.core.Function | None",
    'tvm_ffi.register_object("a.B")(B)': "type[program.B]",
}
PROGRAM = """
import tvm_ffi
class B(tvm_ffi.Object): ...
array: tvm_ffi.Array[int] = tvm_ffi.Array([1, 2])
mapping: tvm_ffi.Map[str, int] = tvm_ffi.Map({"a": 1})
"""
MISTAKES = ["tvm_ffi.List([1]).append('x')", "tvm_ffi.Dict({'a': 1})[2] = 3", "array[0] = 1"]


def check(tmp_path: Path, lines: list[str]) -> list[str]:
    """Return what mypy says about the lines, after the program."""
    source = tmp_path / "program.py"
    source.write_text(PROGRAM + "\n".join(lines) + "\n")
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--config-file=", "program.py"]
    command += ["--cache-dir", str(tmp_path / "cache"), "--no-color-output"]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={"MYPYPATH": str(ROOT / "python"), "PATH": "/usr/bin:/bin"},
    )
    assert not done.stderr, done.stderr
    return [line for line in done.stdout.splitlines() if line.startswith("program.py:")]


def test_types_of_elements_are_known_and_mistakes_are_found(tmp_path: Path) -> None:
    lines = [f"reveal_type({text})" for text in EXPRESSIONS] + MISTAKES
    said = check(tmp_path, lines)
    first = PROGRAM.count("\n") + 1
    for line, expected in enumerate(EXPRESSIONS.values(), first):
        assert f'program.py:{line}: note: Revealed type is "{expected}"' in said
    for line in range(first + len(EXPRESSIONS), first + len(lines)):
        assert any(text.startswith(f"program.py:{line}: error:") for text in said), lines
