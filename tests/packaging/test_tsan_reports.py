# SPDX-License-Identifier: Apache-2.0
"""Which reports of the thread sanitizer count: scripts/tsan_reports.py."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "tsan_reports.py"
OURS = "../../src/python/wrap/wrapper.cc:1 (core.cpython-313t-x86_64-linux-gnu.so+0x1)"
INTERPRETER = "Objects/unicodeobject.c:1 (python3.13t+0x1)"
RUNTIME = "interceptors.cpp:1 (libtsan.so.2+0x1)"


def report(first: list[str], second: list[str], kind: str = "data race") -> str:
    def stack(frames: list[str]) -> str:
        return "".join(f"    #{i} f {frame}\n" for i, frame in enumerate(frames))

    return (
        f"{'=' * 18}\nWARNING: ThreadSanitizer: {kind} (pid=1)\n"
        f"  Write of size 8 at 0x1 by main thread:\n{stack(first)}\n"
        f"  Previous atomic read of size 8 at 0x1 by thread T1:\n{stack(second)}\n"
        f"SUMMARY: ThreadSanitizer: {kind} a.c:1 in f\n{'=' * 18}\n"
    )


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (report([INTERPRETER, OURS], [INTERPRETER]), 0),
        (report([OURS], [INTERPRETER]), 1),
        (report([INTERPRETER], [OURS, INTERPRETER]), 1),
        (report([INTERPRETER], [RUNTIME, OURS]), 1),
        (report([INTERPRETER], [RUNTIME, INTERPRETER, OURS]), 0),
        (report([INTERPRETER], []), 1),  # a stack that could not be restored may be ours
        (report([INTERPRETER, OURS], [INTERPRETER], "lock-order-inversion"), 1),
        (report([INTERPRETER], [INTERPRETER]) + report([OURS], [OURS]), 1),
    ],
)
def test_reports_about_this_project_fail(tmp_path: Path, text: str, status: int) -> None:
    (tmp_path / "report.1").write_text(text)
    command = [sys.executable, SCRIPT, tmp_path]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == status, done.stdout
    assert f"{text.count('WARNING')} in all" in done.stdout


def test_no_report(tmp_path: Path) -> None:
    subprocess.run([sys.executable, SCRIPT, tmp_path], check=True)
