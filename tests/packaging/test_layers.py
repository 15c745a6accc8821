# SPDX-License-Identifier: Apache-2.0
"""Which folder of src/ may include which.

MAY_INCLUDE has one row per folder: its own files and those of the folders named are fair game,
everything else in src/ is not. Rows list direct includes; a lower folder never names a higher one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src"
INCLUDE = ROOT / "include"

MAY_INCLUDE: dict[str, set[str]] = {
    "core": set(),
    "extra": {"core"},
    "tie": set(),
    # The frontend, in layers. Each row adds one to those below it.
    "python/base": {"core"},
    "python/wrap": {"core", "tie", "python/base"},
}
_LAYERS = [
    "python/convert",
    "python/data",
    "python/call",
    "python/kinds",
    "python/schema",
    "python",
]
for _layer in _LAYERS:
    MAY_INCLUDE[_layer] = {folder for folder in MAY_INCLUDE if folder != "extra"}

INCLUDE_LINE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def includes(path: Path) -> Iterator[tuple[str, Path | None]]:
    """Each include of a file, with the file of this tree that it means.

    The compiler looks for "x.h" beside the file that includes it, then in src/ and in include/.
    A name in <> is not looked for beside the file. None: a header of the system.
    """
    for bracket, name in INCLUDE_LINE.findall(path.read_text(encoding="utf-8")):
        places = [path.parent] if bracket == '"' else []
        found = (folder / name for folder in (*places, SRC, INCLUDE))
        yield name, next((file.resolve() for file in found if file.is_file()), None)


def folder_of(path: Path) -> str:
    """The folder below src/, such as "core" or "python/base"."""
    return path.parent.relative_to(SRC).as_posix()


def violations(folder: str, allowed: set[str]) -> Iterator[str]:
    for path in sorted((SRC / folder).glob("*.*")):
        if path.suffix not in {".h", ".cc"}:
            continue
        for name, target in includes(path):
            where = path.relative_to(ROOT)
            if target is None:
                if name.startswith("tvm/ffi/") or name.startswith("."):
                    yield f"{where} includes {name}, which does not exist"
            elif target.is_relative_to(SRC) and folder_of(target) not in allowed | {folder}:
                yield f"{where} includes {name} of src/{folder_of(target)}"


@pytest.mark.parametrize("folder", MAY_INCLUDE)
def test_a_folder_includes_only_those_below_it(folder: str) -> None:
    assert (SRC / folder).is_dir()
    assert list(violations(folder, MAY_INCLUDE[folder])) == []


def test_public_headers_include_nothing_of_src() -> None:
    for path in sorted(INCLUDE.rglob("*.h")):
        for name, target in includes(path):
            assert target is None or target.is_relative_to(INCLUDE), f"{path}: {name}"


def test_the_table_has_no_cycle() -> None:
    below: dict[str, set[str]] = {}

    def reach(folder: str, path: tuple[str, ...]) -> set[str]:
        assert folder not in path, " -> ".join((*path, folder))
        if folder not in below:
            direct = MAY_INCLUDE[folder]
            below[folder] = direct.union(*(reach(name, (*path, folder)) for name in direct))
        return below[folder]

    for folder in MAY_INCLUDE:
        reach(folder, ())


@pytest.mark.parametrize(
    "line",
    ['#include "../extra/json.h"', '#include "extra/json.h"', "#  include <extra/json.h>"],
)
def test_an_include_of_a_higher_folder_is_noticed(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("core", "extra"):
        (tmp_path / "src" / folder).mkdir(parents=True)
    (tmp_path / "src/extra/json.h").touch()
    (tmp_path / "src/core/object.cc").write_text(line + "\n", encoding="utf-8")
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    monkeypatch.setitem(globals(), "SRC", tmp_path / "src")
    assert len(list(violations("core", set()))) == 1
    assert list(violations("core", {"extra"})) == []
