# SPDX-License-Identifier: Apache-2.0
"""The examples compile, run and pass their own tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import tvm_ffi
from support import ROOT, compile_library

EXAMPLES = ROOT / "examples"


def run(arguments: list[str], **variables: str) -> str:
    environment = {**os.environ, **variables}
    package = str(Path(tvm_ffi.__file__).parents[1])
    paths = [package, environment.pop("MORE_PATHS", "")]
    environment["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    done = subprocess.run(
        [sys.executable, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_graph(tmp_path: Path) -> None:
    library = compile_library(EXAMPLES / "graph" / "graph.cc", tmp_path / "libgraph.so")
    printed = run([str(EXAMPLES / "graph" / "demo.py"), str(library)])
    assert "children[1] of a graph.Node must be a graph.Node, got ffi.String" in printed
    assert "index 7 is not below the number of nodes, 0" in printed


def test_zoo(zoo_library: Path) -> None:
    pytest.importorskip("numpy")
    folder = EXAMPLES / "zoo"
    arguments = ["-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder / "tests")]
    printed = run(arguments, ZOO_LIBRARY=str(zoo_library), MORE_PATHS=str(folder))
    assert " passed" in printed
