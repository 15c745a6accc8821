# SPDX-License-Identifier: Apache-2.0
"""The figures of README.md and docs/ are those of bench/results."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
import write_tables


def test_tables_are_those_of_the_results() -> None:
    command = [sys.executable, write_tables.__file__, "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + "to mend it: python bench/write_tables.py"


def test_every_block_is_on_a_page() -> None:
    pages = "".join((write_tables.ROOT / n).read_text(encoding="utf-8") for n in write_tables.PAGES)
    for name in write_tables.BLOCKS:
        assert pages.count(f"<!-- bench: {name} -->") == 1, name
    assert pages.count("<!-- /bench -->") == len(write_tables.BLOCKS)


def test_a_changed_figure_is_noticed() -> None:
    for name in write_tables.PAGES:
        page = (write_tables.ROOT / name).read_text(encoding="utf-8")
        assert write_tables.filled(page) == page
        changed = page.replace(" |\n<!-- /bench -->", "1 |\n<!-- /bench -->")
        assert changed != page
        assert write_tables.filled(changed) == page


def test_peers_that_could_not_be_measured_leave_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    data = write_tables.read("python")
    for part in ("peers", "time", "instructions"):
        data[part].pop("nanobind", None)
    data["missing"]["nanobind"] = "pip: no network"
    monkeypatch.setattr(write_tables, "read", lambda name: data)
    text = "\n".join([*write_tables.summary(), *write_tables.ranges()])
    assert "pip: no network" in text
    assert "| - |" in text
