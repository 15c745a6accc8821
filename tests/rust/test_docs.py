# SPDX-License-Identifier: Apache-2.0
"""What docs/rust.md shows does what it says."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import tvm_ffi
from crates import HERE, cargo_environment

ROOT = HERE.parents[1]
PAGE = (ROOT / "docs" / "rust.md").read_text(encoding="utf-8")

if shutil.which("cargo") is None:
    pytest.skip("no cargo: the code in the page cannot be built", allow_module_level=True)


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def output_of(command: list[str], folder: Path, environment: dict[str, str]) -> str:
    run = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_from_cargo_new_to_python(tmp_path: Path) -> None:
    """Run the session as it is written; lines after `cat >` are its input, others are output."""
    session = blocks("console")[0]
    script: list[str] = []
    expected: list[str] = []
    for part in re.split(r"^\$ ", session, flags=re.MULTILINE)[1:]:
        command, _, rest = part.partition("\n")
        if command.startswith("cat >"):
            script.append(f"{command} <<'END'\n{rest}END")
        else:
            script.append(command)
            expected += rest.splitlines()
    # The only thing that a reader has to fill in.
    text = "\n".join(script).replace("/path/to/tether", str(ROOT))
    assert expected == ["3"]
    assert len(session.splitlines()) - len(expected) <= 10, "the page promises ten lines"
    environment = cargo_environment("docs", tmp_path)
    # The package is found as it is where it is installed.
    for name in ("CARGO_TARGET_DIR", "TVM_FFI_LIBDIR"):
        environment.pop(name)
    (tmp_path / "python").symlink_to(sys.executable)
    environment["PYTHONPATH"] = str(Path(tvm_ffi.__file__).parents[1])
    output = output_of(["bash", "-euo", "pipefail", "-c", text], tmp_path, environment)
    assert output.splitlines() == expected


def test_the_other_blocks_run(tmp_path: Path) -> None:
    """Build a program of the blocks of Rust, each a function that is given a function to call."""
    found = blocks("rust")
    assert found
    modules = []
    for number, block in enumerate(found):
        names = "#[allow(unused_imports, unused_variables, dead_code)]\n"
        body = f"use tvm_ffi::*;\npub fn run(func: Function) -> Result<()> {{\n{block}Ok(())\n}}\n"
        modules.append(f"{names}mod block_{number} {{\n{body}}}\n")
    calls = "".join(f"    block_{i}::run(add.clone())?;\n" for i in range(len(found)))
    add = "|x: i64, y: i64| -> Result<i64> { Ok(x + y) }"
    main = f"    let add = Function::from_typed({add});\n{calls}    Ok(())\n"
    program = "use tvm_ffi::*;\n\nfn main() -> Result<()> {\n" + main + "}\n"
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main.rs").write_text("".join(modules) + program, encoding="utf-8")
    (tmp_path / "Cargo.toml").write_text(
        f"""[package]
name = "page"
version = "0.1.0"
edition = "2021"

[dependencies]
tvm-ffi = {{ path = "{ROOT}/rust/tvm-ffi" }}

[workspace]
""",
        encoding="utf-8",
    )
    environment = cargo_environment("docs", tmp_path)
    environment["LD_LIBRARY_PATH"] = environment["TVM_FFI_LIBDIR"]
    output_of(["cargo", "run", "--quiet"], tmp_path, environment)
