# SPDX-License-Identifier: Apache-2.0
"""The guard of the instruction counts, fed with counts instead of running callgrind."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any
from xml.etree import ElementTree

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
import guard

TOOLCHAIN = {"interpreter": "CPython 3.0.0", "compiler": "g++ 1.0", "C library": "glibc 1"}
RECORDED = {"int_get": 200.0, "add": 400.0}


@pytest.fixture
def check(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Run `guard.py check` with these counts; return exit status and the cases of its report."""
    record = tmp_path / "instructions.json"
    record.write_text(json.dumps({"toolchain": TOOLCHAIN, "instructions": RECORDED}))
    monkeypatch.setattr(guard, "RECORD", record)
    monkeypatch.setattr(guard, "toolchain", lambda: dict(TOOLCHAIN))
    monkeypatch.setattr(guard.shutil, "which", lambda name: f"/bin/{name}")

    def run(
        found: dict[str, float] | None, elsewhere: Mapping[str, float] = MappingProxyType({})
    ) -> tuple[int, dict[str, str]]:
        def count(package: Path, rows: list[str] | None = None, pad: int = 0) -> dict[str, float]:
            assert found is not None, "counted where the counts mean nothing"
            if rows is None:
                return dict(found)
            return {key: elsewhere.get(key, found[key]) for key in rows}

        monkeypatch.setattr(guard, "count", count)
        junit = tmp_path / "report" / "instructions.xml"
        status = guard.check(tmp_path, junit)
        cases = ElementTree.parse(junit).getroot()
        return status, {
            str(case.get("name")): f"{case[0].tag}: {case[0].get('message')}" if len(case) else "ok"
            for case in cases
        }

    return run


def test_counts_within_a_tenth_pass(check: Any, capsys: pytest.CaptureFixture[str]) -> None:
    status, cases = check({"int_get": 219.9, "add": 100.0})
    assert status == 0
    assert cases == {"int_get": "ok", "add": "ok"}
    assert "TOO MANY" not in capsys.readouterr().out


def test_a_count_that_grew_only_at_these_addresses_passes(check: Any) -> None:
    status, cases = check({"int_get": 260.0, "add": 400.0}, elsewhere={"int_get": 201.0})
    assert status == 0
    assert cases == {"int_get": "ok", "add": "ok"}


def test_a_count_that_grew_by_more_fails(check: Any, capsys: pytest.CaptureFixture[str]) -> None:
    status, cases = check({"int_get": 221.0, "add": 400.0})
    assert status == 1
    message = "int_get: 221 instructions, recorded 200 (+10 %)"
    assert cases == {"int_get": f"failure: {message}", "add": "ok"}
    printed = capsys.readouterr()
    assert message in printed.err
    assert "guard.py record" in printed.err
    assert printed.out.count("TOO MANY") == 1


def test_a_row_that_nobody_recorded_fails(check: Any) -> None:
    status, cases = check({**RECORDED, "lookup": 300.0})
    assert status == 1
    assert cases["lookup"] == "failure: lookup: 300 instructions, not recorded yet"


def test_a_row_that_vanished_fails(check: Any) -> None:
    status, cases = check({"int_get": 200.0})
    assert status == 1
    assert cases == {"int_get": "ok", "add": "failure: add: recorded, but no longer a row"}


@pytest.mark.parametrize("part", TOOLCHAIN)
def test_another_toolchain_is_not_compared(
    check: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], part: str
) -> None:
    monkeypatch.setattr(guard, "toolchain", lambda: {**TOOLCHAIN, part: "another"})
    status, cases = check(None)
    assert status == 0
    reason = f"{part}: 'another', recorded {TOOLCHAIN[part]!r}"
    assert cases == {key: f"skipped: {reason}" for key in RECORDED}
    assert f"instruction counts are not compared: {reason}" in capsys.readouterr().out


def test_without_valgrind_nothing_is_compared(
    check: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(guard.shutil, "which", lambda name: None)
    status, cases = check(None)
    assert status == 0
    assert set(cases.values()) == {"skipped: no valgrind"}
    assert "not compared: no valgrind" in capsys.readouterr().out


def test_what_is_recorded_passes(check: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "count", lambda package: {"int_get": 500.04})
    assert guard.record(Path()) == 0
    assert json.loads(guard.RECORD.read_text())["toolchain"] == TOOLCHAIN
    assert check({"int_get": 549.0}) == (0, {"int_get": "ok"})
    assert check({"int_get": 551.0})[0] == 1


def test_the_record_of_this_tree_has_every_row() -> None:
    record = json.loads(guard.RECORD.read_text(encoding="utf-8"))
    assert list(record["instructions"]) == [row.key for row in guard.run_python.rows.ROWS]
    assert record["toolchain"].keys() == guard.toolchain().keys()
