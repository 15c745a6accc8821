# SPDX-License-Identifier: Apache-2.0
"""A program may end while other threads use the FFI: a few processes of tests/exit/run.py."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
import tvm_ffi
from support import ROOT, scaled

sys.path.insert(0, str(ROOT / "tests" / "exit"))
import run as exit_run

if shutil.which("c++") is None:
    pytest.skip("no C++ compiler: the client cannot be built", allow_module_level=True)


def test_no_process_dies_while_its_threads_use_the_ffi(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = str(Path(tvm_ffi.__file__).parents[1])
    monkeypatch.setitem(os.environ, "PYTHONPATH", package)
    client = exit_run.build_client(tmp_path)
    failures = exit_run.run(scaled(60), exit_run.all_names(), client)
    assert not failures, "\n".join(failures)
