# SPDX-License-Identifier: Apache-2.0
"""Environments for the projects, kept in .cache because packages are downloaded for them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import tvm_ffi

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = str(Path(tvm_ffi.__file__).absolute().parents[1])


def install(python: Path, *packages: str) -> str:
    """Install wheels into an environment; return what pip said if it failed."""
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    command += ["--disable-pip-version-check", "--only-binary", ":all:", *packages]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stderr if done.returncode else ""


@pytest.fixture(scope="session")
def environment() -> Callable[..., Path]:
    """Return a function that gives the interpreter of an environment with these packages."""

    def make(name: str, *packages: str) -> Path:
        folder = ROOT / ".cache" / f"project-{name}"
        python = folder / "bin" / "python"
        stamp = folder / "ready"
        wanted = " ".join(packages)
        if not stamp.exists() or stamp.read_text() != wanted:
            subprocess.run(
                [sys.executable, "-m", "venv", "--clear", "--without-pip", str(folder)], check=True
            )
            problem = install(python, "pip", *packages)
            if problem:
                pytest.skip(f"{wanted} could not be installed: {problem.strip().splitlines()[-1]}")
            stamp.write_text(wanted)
        return python

    return make


@pytest.fixture(scope="session")
def run() -> Callable[..., str]:
    """Return a function that runs a command which must succeed, and gives its output."""

    def call(*command: object, cwd: Path | None = None, **variables: str) -> str:
        done = subprocess.run(
            [str(word) for word in command],
            cwd=cwd,
            env={**os.environ, "PYTHONPATH": PACKAGE, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=600,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    return call
