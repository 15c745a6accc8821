# SPDX-License-Identifier: Apache-2.0
"""The scripts: a step ends at its first command that fails, and every page is in the site."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

FUNCTIONS = """
source scripts/common.sh
fine() { true; made=yes; }
middle() { false; echo went on; }
nested() { middle; echo went on; }
piped() { false | cat; echo went on; }
unset_variable() { echo "$no_such_variable"; echo went on; }
python_fails() { python3 -c 'import sys; sys.exit(3)'; echo went on; }
"""


def bash(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", FUNCTIONS + program], cwd=ROOT, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    "command", ["false", "middle", "nested", "piped", "unset_variable", "python_fails"]
)
def test_a_step_ends_at_its_first_failure(command: str) -> None:
    done = bash(f"step 'the title' {command}; echo went on")
    assert done.returncode != 0
    assert "went on" not in done.stdout
    assert "error: step 'the title' failed" in done.stderr


def test_a_step_that_passes_says_nothing_of_failures_and_keeps_variables() -> None:
    done = bash('step "the title" fine; echo "$made"')
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r"\n== the title\n-- the title: \d+ s\nyes\n", done.stdout)


def test_a_failure_after_a_step_is_not_that_step() -> None:
    done = bash("step 'the title' fine; false")
    assert (done.returncode, done.stderr) == (1, "")


def test_a_step_of_which_the_caller_asks() -> None:
    """As in scripts/bench.sh: only for single commands, because bash ignores `set -e` in there."""
    done = bash(
        "failed=(); (step one false) || failed+=(one); (step two true) || failed+=(two)\n"
        'echo "${failed[*]}"'
    )
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == "one"
    assert "error: step 'one' failed" in done.stderr


def test_every_page_is_in_the_navigation_of_the_site(tmp_path: Path) -> None:
    (tmp_path / "reference").mkdir()
    for name in ("python", "cpp", "c"):  # generated before
        (tmp_path / f"reference/{name}.md").touch()
    command = [sys.executable, str(ROOT / "scripts/site/stage.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
