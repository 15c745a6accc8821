# SPDX-License-Identifier: Apache-2.0
"""Every block of code on every page is run, or says why not: see blocks.py."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import blocks
import pytest
import tvm_ffi

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = str(Path(tvm_ffi.__file__).absolute().parents[1])
PAGES = [ROOT / "README.md", ROOT / "examples/README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# In front of every block of C++ without a title.
USUAL = """\
#include <tvm/ffi/tvm_ffi.h>
#include <tvm/ffi/extra/c_env_api.h>
namespace ffi = tvm::ffi;
namespace refl = tvm::ffi::reflection;
"""
COMMANDS = {
    "python": "",
    "tvm-ffi-config": "-m tvm_ffi.config",
    "tvm-ffi-stubgen": "-m tvm_ffi.stub.cli",
}
MARK = "---- what was printed before"
NOT_CODE = {"", "text", "console", "json", "mermaid"}


class Run:
    """A page that is being run in a folder."""

    def __init__(self, page: Path, folder: Path, tools: Path) -> None:
        self.page, self.folder = page, folder
        self.program: list[str] = []
        self.output = ""
        path = os.pathsep.join([str(tools), os.environ["PATH"]])
        self.environment = {
            **os.environ,
            "PATH": path,
            "PYTHONPATH": PACKAGE,
            "PYTHONDONTWRITEBYTECODE": "1",
            "TVM_FFI_CACHE_DIR": str(folder / "cache"),
            "ROOT": str(ROOT),
            "PEERS": str(ROOT / ".cache/site/bin/python"),
            "REFERENCE": str(ROOT / ".cache/site-reference/bin/python"),
            # Rust crates are downloaded and compiled once.
            "CARGO_TARGET_DIR": str(ROOT / ".cache/site-cargo"),
        }

    @property
    def unfinished(self) -> bool:
        """Whether there are blocks of Python that were not run yet."""
        return bool(self.program) and not self.program[-1].startswith(f"print({MARK!r}")

    def call(self, block: blocks.Block, *command: str) -> str:
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
            check=False,
        )
        where = f"{self.page.relative_to(ROOT)}:{block.line}"
        assert done.returncode == 0, f"{where} failed\n{done.stdout}"
        return done.stdout

    def missing(self, block: blocks.Block) -> str:
        """Return why the rest of the page cannot be run here, or nothing."""
        done = subprocess.run(
            ["bash", "-c", block.text],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return (done.stdout.strip().splitlines() or ["no output"])[-1] if done.returncode else ""

    def block(self, block: blocks.Block) -> None:
        where = f"{self.page.relative_to(ROOT)}:{block.line}"
        if block.title == "output":
            if self.unfinished:
                self.end(block)
            assert block.text.strip() == self.output.strip(), f"{where}: printed\n{self.output}"
            self.output = ""
        elif block.title:
            file = self.folder / block.title
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text, encoding="utf-8")
        elif block.language in ("bash", "<run>"):
            self.output = self.call(block, "bash", "-euo", "pipefail", "-c", block.text)
        elif block.language == "python":
            self.program.append(block.text)
        elif block.language == "cpp":
            before = block.comments.get("after")
            front = (ROOT / before).read_text(encoding="utf-8") if before else USUAL
            source = self.folder / "block.cc"
            source.write_text(f'{front}\n#line {block.line + 1} "{self.page}"\n{block.text}')
            flags = ["-std=c++17", "-fsyntax-only", f"-I{ROOT / 'include'}"]
            self.call(block, *shlex.split(os.environ.get("CXX", "c++")), *flags, str(source))
        elif block.language == "rust":
            source = self.folder / "block.rs"
            source.write_text(f"fn block() {{\n{block.text}}}\n", encoding="utf-8")
            if shutil.which("rustfmt") is not None:
                self.call(block, "rustfmt", "--edition", "2021", "--emit", "stdout", str(source))
        else:
            raise AssertionError(f"{where}: nothing runs a block of {block.language!r}")

    def end(self, block: blocks.Block) -> None:
        """Run the blocks of Python so far as one program; keep what the new ones print."""
        script = self.folder / "page.py"
        script.write_text("\n\n".join(self.program), encoding="utf-8")
        self.program.append(f"print({MARK!r})")
        self.output = self.call(block, sys.executable, str(script)).split(f"{MARK}\n")[-1]


@pytest.fixture(scope="session")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the commands that installing the package would make."""
    folder = tmp_path_factory.mktemp("tools")
    for name, arguments in COMMANDS.items():
        (folder / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n')
        (folder / name).chmod(0o755)
    return folder


def to_run(page: Path) -> list[blocks.Block]:
    found = [b for b in blocks.parse(page) if not b.skipped and not b.is_interactive]
    return [b for b in found if b.title or b.language not in NOT_CODE]


WITH_CODE = [page for page in PAGES if to_run(page)]


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_blocks_run(page: Path, tmp_path: Path, tools: Path) -> None:
    found = to_run(page)
    if any("numpy" in b.text for b in found):
        pytest.importorskip("numpy")
    run = Run(page, tmp_path, tools)
    for block in found:
        if block.language == "<needs>":
            missing = run.missing(block)
            if missing:
                pytest.skip(f"from line {block.line} on: {missing}")
            continue
        run.block(block)
    if run.unfinished:
        run.end(found[-1])


def test_blocks_that_are_not_run_say_why() -> None:
    for page in PAGES:
        for block in blocks.parse(page):
            assert block.skipped is None or len(block.skipped.split()) > 2, f"{page}:{block.line}"


def test_a_language_that_nothing_runs_is_noticed(tmp_path: Path, tools: Path) -> None:
    page = ROOT / "README.md"
    block = blocks.Block(1, "cobol", "", "STOP RUN.", {})
    with pytest.raises(AssertionError, match="nothing runs a block of 'cobol'"):
        Run(page, tmp_path, tools).block(block)
