# SPDX-License-Identifier: Apache-2.0
"""docs/architecture.md names files, folders and functions that exist, and leaves no file out."""

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


NAME = r"[A-Z][a-zA-Z]+(?:::[A-Z]\w+)*"


def section(title: str) -> str:
    """Return what stands between a heading and the next one of its level."""
    return PAGE.split(f"\n## {title}", 1)[1].split("\n## ", 1)[0]


def names(page: str = PAGE) -> list[str]:
    """Return what stands between backticks, outside of blocks of code."""
    text = re.sub(r"^```.*?^```", "", page, flags=re.DOTALL | re.MULTILINE)
    return sorted(set(re.findall(r"`([^`]+)`", text)))


def files_beside(page: str) -> list[tuple[str, Path]]:
    """Return functions and types, each with the file named after it."""
    beside = re.findall(rf"`({NAME})`,?\s+\(?`(\w+/[\w/]+\.(?:h|cc))`", page)
    roots = (ROOT, FRONTEND)
    return [(name, next(r / file for r in roots if (r / file).exists())) for name, file in beside]


def has(path: Path, name: str) -> bool:
    """Whether a file has a function or type: a header its declaration, others the code.

    The code of a function begins in the first column; that of a member, in the third.
    """
    name = name.rsplit("::", 1)[-1]
    lines = re.findall(rf"^(?:  )?(?![ /#]).*\b{name}\b.*$", path.read_text(), re.MULTILINE)
    if path.suffix == ".h":
        return bool(lines)
    return any(not line.endswith(";") for line in lines)


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


def test_functions_are_in_the_file_named_beside_them() -> None:
    beside = files_beside(PAGE)
    assert len(beside) > 50
    for name, path in beside:
        assert has(path, name), f"{name} is not in {path.relative_to(ROOT)}"


def test_the_walks_say_where_each_function_is() -> None:
    walks = section("Five walks")
    known = {name for name, _ in files_beside(walks)}
    tie = "\n".join(path.read_text() for path in (ROOT / "src" / "tie").glob("*.h"))
    for name in names(walks):
        if not re.fullmatch(NAME, name) or name in known:
            continue
        # Engine is the tie, as the walks say; some names are of classes that Python has.
        is_of_tie = name.startswith("Engine::") and re.search(rf" {name[8:]}\(", tie)
        is_explained = name in ("Engine", "Tie", "Runtime", "Tensor")
        assert is_of_tie or is_explained, f"no file stands beside {name}"


def test_the_list_of_files_is_complete() -> None:
    block = section("The files of `src/python`").split("```")[1]
    listed = []
    folder = ""
    for line in block.splitlines():
        if match := re.match(r"(\w+/)?\s+(\w+)\s", line):
            folder = match[1] or folder
            listed.append(folder + match[2])
    there = {
        path.relative_to(FRONTEND).with_suffix("").as_posix()
        for path in SOURCES
        if FRONTEND in path.parents and path.parent != FRONTEND
    }
    assert sorted(listed) == sorted(there)


def test_a_header_declares_what_its_source_defines() -> None:
    """The page names the headers that declare functions of several files."""
    function = r"^\w[\w:<>*& ]*?[ *&](\w+)\([^;{}]*?\)(?: noexcept)?"
    defined: dict[str, set[str]] = {}
    for path in FRONTEND.rglob("*.cc"):
        stem = path.relative_to(FRONTEND).with_suffix("").as_posix()
        for name in re.findall(function + r" \{", path.read_text(), re.MULTILINE):
            defined.setdefault(name, set()).add(stem)
    named = section("The layers of `src/python`")
    for path in FRONTEND.rglob("*.h"):
        header = path.relative_to(FRONTEND)
        stem = header.with_suffix("").as_posix()
        code = re.sub("//.*", "", path.read_text())
        for name in re.findall(function + ";", code, re.MULTILINE):
            files = defined.get(name, {stem})
            assert stem in files or f"`{header}`" in named, f"{header}: {name} is in {files}"


def test_files_say_what_they_are_about() -> None:
    for path in SOURCES:
        if FRONTEND not in path.parents:
            continue
        where, lines = path.relative_to(ROOT), path.read_text().splitlines()
        assert re.match(r"// (?!Shared state)[A-Z_]", lines[1]), f"{where}: {lines[1]}"
        assert len(lines) <= 400, f"{where} is long: has it more than one subject?"
