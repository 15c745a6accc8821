# SPDX-License-Identifier: Apache-2.0
"""Puts the pages of the site together for Sphinx, in a folder.

    python scripts/site/stage.py FOLDER

The folder has the generated reference (reference/) already. docs/ is copied into it, and so is
Markdown that lives elsewhere. A link to a file or folder of the repository leads to a page that
shows it. The navigation is NAVIGATION; a page that it does not name is an error, and one that it
names and that does not exist is left out. Standard library only.
"""

from __future__ import annotations

import posixpath
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

NAVIGATION = {
    "Learn": [
        "start",
        "tutorials/class",
        "tutorials/callbacks",
        "tutorials/tensors",
        "tutorials/package",
        "tutorials/threads",
        "tutorials/lifetimes",
        "examples/README",
    ],
    "Coming from": [
        "from/howto",
        "from/pybind11",
        "from/nanobind",
        "from/pyo3",
        "from/apache-tvm-ffi",
    ],
    "Concepts": ["concepts/tie", "concepts/collector", "concepts/old-binaries"],
    "Guides": [
        "tying",
        "functions",
        "errors",
        "tensors",
        "building",
        "inspect",
        "travel",
        "rust",
        "clients",
    ],
    "Reference": [
        "reference/python",
        "reference/cpp",
        "reference/c",
        "reference/rust",
        "reference/commands",
        "reference/environment",
    ],
    "Performance": [
        "speed",
        "bench/results/python",
        "bench/results/scale",
        "bench/results/threads",
        "bench/results/threads_gil",
        "bench/results/threads_16_cores",
        "bench/results/structural",
        "bench/results/package",
        "bench/results/tensors",
        "bench/results/gpu",
        "bench/results/gpu_addon",
        "bench/results/travel",
        "bench/results/core",
        "bench/results/rust",
    ],
    "Project": [
        "missing",
        "CHANGELOG",
        "CONTRIBUTING",
        "architecture",
        "model/README",
        "releasing",
    ],
}
# Markdown outside docs/ has the same place in the site as in the repository.
OUTSIDE = ["CHANGELOG.md", "CONTRIBUTING.md", "examples/README.md", "model/README.md"]
OUTSIDE += sorted(f"bench/results/{p.name}" for p in (ROOT / "bench/results").glob("*.md"))
LANGUAGES = {".cc": "cpp", ".h": "cpp", ".cu": "cuda", ".c": "c", ".py": "python", ".rs": "rust"}
LANGUAGES |= {".toml": "toml", ".txt": "cmake", ".sh": "bash"}
LINK = re.compile(r"(?<=\]\()([^)\s#]+)(#[^)\s]*)?(?=\))")
FENCE = re.compile(r"^( *)```.*?^\1```[ ]*$", re.MULTILINE | re.DOTALL)


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """Apply a function to what is not a block of code."""
    out, at = [], 0
    for block in FENCE.finditer(text):
        out += [change(text[at : block.start()]), block[0]]
        at = block.end()
    return "".join([*out, change(text[at:])])


def page_of(path: str) -> str | None:
    """Return the page or file of the site that shows a file of the repository."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    if path in OUTSIDE or path.startswith("bench/results/"):
        return path
    if path == "README.md":
        return "index.md"
    return f"source/{path}.md" if (ROOT / path).exists() else None


class Stage:
    """The folder that is being filled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.shown: set[str] = set()  # files of the repository that a page links to

    def write(self, uri: str, text: str) -> None:
        path = self.folder / uri
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def add(self, uri: str, where: str) -> None:
        """Add a page that is in the repository at `where`."""

        def target(link: re.Match[str]) -> str:
            if "://" in link[1]:
                return link[0]
            path = posixpath.normpath(posixpath.join(posixpath.dirname(where), link[1]))
            page = page_of(path)
            if page is None:
                # Sphinx reports it, unless it is a generated page.
                return link[0]
            if page.startswith("source/"):
                self.shown.add(path)
            return posixpath.relpath(page, posixpath.dirname(uri) or ".") + (link[2] or "")

        text = (ROOT / where).read_text(encoding="utf-8")
        self.write(uri, shown_by_sphinx(outside_code(text, lambda part: LINK.sub(target, part))))


def shown_by_sphinx(text: str) -> str:
    """Name the languages and titles of blocks as Sphinx wants them; leave comments out."""
    text = outside_code(text, lambda part: re.sub(r"<!--.*?-->\n?", "", part, flags=re.DOTALL))
    text = re.sub(r"^( *)```python(?=\n\1>>>)", r"\1```pycon", text, flags=re.MULTILINE)
    titled = r'^( *)```(\w+) title="([^"]*)"$'
    return re.sub(titled, r"\1```{code-block} \2\n\1:caption: \3\n", text, flags=re.MULTILINE)


def source_page(path: str) -> str:
    """Return a page that shows a file, or the files of a folder."""
    whole = ROOT / path
    files = [whole]
    if whole.is_dir():
        inside = (p for p in whole.rglob("*") if "target" not in p.parts and p.is_file())
        files = sorted(p for p in inside if p.suffix in LANGUAGES)
    out = ["---\norphan: true\n---", f"# `{path}`"]
    for file in files:
        name = file.relative_to(ROOT).as_posix()
        code = file.read_text(encoding="utf-8").rstrip()
        language = LANGUAGES.get(file.suffix, "text")
        out.append(f"````{{code-block}} {language}\n:caption: {name}\n\n{code}\n````")
    return "\n\n".join(out) + "\n"


def toctree(pages: list[str], caption: str = "") -> str:
    options = [":hidden:", *([f":caption: {caption}"] if caption else [])]
    return "\n".join(["```{toctree}", *options, "", *pages, "```"])


def main() -> int:
    stage = Stage(Path(sys.argv[1]))
    for page in sorted((ROOT / "docs").rglob("*.md")):
        uri = page.relative_to(ROOT / "docs").as_posix()
        stage.add(uri, f"docs/{uri}")
    shutil.copytree(ROOT / "docs/pictures", stage.folder / "pictures", dirs_exist_ok=True)
    for uri in OUTSIDE:
        stage.add(uri, uri)
    for picture in (ROOT / "bench/results").glob("*.svg"):
        shutil.copy(picture, stage.folder / "bench/results")
    for path in sorted(stage.shown):
        stage.write(f"source/{path}.md", source_page(path))

    exists = lambda name: (stage.folder / f"{name}.md").exists()  # noqa: E731
    sections = {title: [n for n in names if exists(n)] for title, names in NAVIGATION.items()}
    named = {"index"}.union(*sections.values())
    for name in ("reference/python", "reference/cpp", "reference/c"):
        below = sorted((stage.folder / name).rglob("*.md"))
        pages = [page.relative_to(stage.folder).with_suffix("").as_posix() for page in below]
        named.update(pages)
        with (stage.folder / f"{name}.md").open("a", encoding="utf-8") as index:
            index.write("\n" + toctree([f"/{page}" for page in pages]) + "\n")
    found = {
        p.relative_to(stage.folder).with_suffix("").as_posix() for p in stage.folder.rglob("*.md")
    }
    loose = sorted(name for name in found - named if not name.startswith("source/"))
    if loose:
        print(f"not in NAVIGATION of scripts/site/stage.py: {', '.join(loose)}", file=sys.stderr)
        return 1
    with (stage.folder / "index.md").open("a", encoding="utf-8") as index:
        for title, names in sections.items():
            index.write("\n" + toctree(names, title) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
