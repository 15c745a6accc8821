# SPDX-License-Identifier: Apache-2.0
"""Pictures and lists of the site are those of the sources."""

from __future__ import annotations

import gc
import re
import subprocess
import sys
import weakref
from pathlib import Path

import lifelines
import pytest
import tvm_ffi
from tvm_ffi import tying

ROOT = Path(__file__).resolve().parents[2]


def test_pictures_are_those_of_the_state_machine() -> None:
    for name, picture in lifelines.pictures().items():
        assert (lifelines.PICTURES / name).read_text(encoding="utf-8") == picture, (
            f"{name} is out of date: python scripts/site/lifelines.py"
        )


def test_a_step_that_the_machine_does_not_take_is_refused() -> None:
    wrong = lifelines.Program("wrong", [lifelines.Step("x", "Inactive", True, "Drop")])
    with pytest.raises(ValueError, match="Detached -> Inactive"):
        lifelines.check(wrong, lifelines.read_machine())


@pytest.mark.parametrize("name", lifelines.PROGRAMS)
def test_statements_lead_to_the_states_of_the_picture(name: str) -> None:
    kept: list[object] = []
    names = {
        "Array": tvm_ffi.Array,
        "weakref": weakref,
        "keep": tvm_ffi.convert(kept.append),
        "parse": tvm_ffi.get_global_func("ffi.json.Parse"),
    }
    watch: weakref.ref[object] | None = None
    moved = None
    for step in lifelines.PROGRAMS[name].steps:
        if "_move" in step.statement:
            moved = names["inner"]
        exec(step.statement, names)
        gc.collect()
        if "inner" in names and watch is None:
            watch = weakref.ref(names["inner"])
        where = f"{name}: {step.statement}"
        assert ("inner" in names) == step.python, where
        if step.state in ("Active", "Inactive"):
            assert watch is not None
            seen = names["inner"] if "inner" in names else watch()
            assert tying.state(seen) == lifelines.PUBLIC[step.state], where
            assert seen is watch(), where
            del seen
        elif step.state == "gone":
            assert watch is not None and watch() is None, where
        elif moved is not None:
            assert tying.state(moved) == "empty", where


def test_every_environment_variable_is_listed() -> None:
    page = (ROOT / "docs/reference/environment.md").read_text(encoding="utf-8")
    read = set()
    for folder, pattern in (
        ("src", r'getenv\("(\w+)"\)'),
        ("python", r'environ(?:\.get\(|\[)"(\w+)"'),
        ("rust", r'env::var(?:_os)?\("(\w+)"\)'),
    ):
        for path in (ROOT / folder).rglob("*"):
            inside = path.relative_to(ROOT).parts
            if path.suffix in (".cc", ".h", ".py", ".rs") and not {"target", "tests"} & set(inside):
                read.update(re.findall(pattern, path.read_text(encoding="utf-8")))
    # What cargo and docs.rs set for a build script is not for users.
    read = {name for name in read if not name.startswith(("CARGO", "DEP_", "DOCS_RS", "OUT_DIR"))}
    missing = sorted(name for name in read if f"`{name}`" not in page)
    assert len(read) > 10 and missing == []


def test_links_of_readme_exist() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for link in re.findall(r'(?:\]\(|src=")([^)"#]+)', text):
        assert "://" in link or (ROOT / link).exists(), link


def test_pictures_are_checked_by_the_script_too() -> None:
    script = [sys.executable, str(ROOT / "scripts/site/lifelines.py"), "--check"]
    assert subprocess.run(script, check=False).returncode == 0
