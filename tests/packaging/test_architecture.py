# SPDX-License-Identifier: Apache-2.0
"""docs/architecture.md names files, folders and functions that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text()
FRONTEND = ROOT / "src" / "python"
SOURCES = [
    path
    for folder in ("src", "include")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in (".h", ".cc")
]


def names() -> list[str]:
    """Return what stands between backticks, outside of blocks of code."""
    text = re.sub(r"^```.*?^```", "", PAGE, flags=re.DOTALL | re.MULTILINE)
    return sorted(set(re.findall(r"`([^`]+)`", text)))


def test_the_page_names_things() -> None:
    assert len(names()) > 50


def test_files_and_folders_exist() -> None:
    for name in names():
        is_path = "/" in name or name.endswith((".h", ".cc", ".py", ".md"))
        if not is_path or " " in name:
            continue
        found = [*ROOT.glob(name.rstrip("/")), *FRONTEND.glob(name.rstrip("/"))]
        assert found, f"{name} does not exist"


def test_functions_and_types_exist() -> None:
    code = "\n".join(path.read_text() for path in SOURCES)
    words = set(re.findall(r"\w+", code))
    for name in names():
        if re.fullmatch(r"[A-Z][a-zA-Z]+(::[A-Z]\w+)*", name):
            missing = [part for part in name.split("::") if part not in words]
            assert not missing, f"nothing is called {name}"
