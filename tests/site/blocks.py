# SPDX-License-Identifier: Apache-2.0
"""The blocks of code of a page, and how each is run.

A page is run in a folder of its own, from top to bottom:

    ```cpp title="zoo.cc"       any language with a title: the block is written to that file
    ```bash                     a script, run in the folder
    ```python                   the blocks of a page without a title are one program, run at the end
    ```cpp                      compiled, with the usual headers and names in front
    ```rust                     read by rustfmt, which refuses what is not Rust
    ```text title="output"      what the script or the program before it prints

Blocks with `>>>` are run by tests/python/test_docs.py. Other blocks without a language, and those
in text, console, json and the like, show something that is not code.

Comments of Markdown, which readers do not see, say the rest:

    <!-- not run: REASON -->    the next block is not run
    <!-- after: FILE -->        this file of the repository comes before the next block of C++
    <!-- run: COMMAND -->       a command that is run here
    <!-- needs: COMMAND -->     the rest of the page is only run where this command succeeds
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

CODE = ("bash", "c", "cmake", "cpp", "cuda", "python", "rust", "toml")


@dataclass
class Block:
    """One block of code, or a comment that speaks to the tests."""

    line: int
    language: str  # of a comment: its first word
    title: str
    text: str
    comments: dict[str, str]  # those right before it

    @property
    def skipped(self) -> str | None:
        return self.comments.get("not run")

    @property
    def is_interactive(self) -> bool:
        return self.language == "python" and self.text.lstrip().startswith(">>>")


def parse(page: Path) -> list[Block]:
    blocks: list[Block] = []
    comments: dict[str, str] = {}
    lines = page.read_text(encoding="utf-8").splitlines()
    at = 0
    while at < len(lines):
        line, number = lines[at], at + 1
        at += 1
        comment = re.match(r"<!-- (not run|after|run|needs): (.*) -->$", line)
        if comment is not None and comment[1] in ("run", "needs"):
            blocks.append(Block(number, f"<{comment[1]}>", "", comment[2], {}))
        elif comment is not None:
            comments[comment[1]] = comment[2]
        elif line.startswith("```"):
            fence = re.match(r'(`{3,})(\S*)(?: title="([^"]*)")?$', line)
            assert fence is not None, f"{page}:{number}: not understood: {line}"
            body = []
            while lines[at] != fence[1]:
                body.append(lines[at])
                at += 1
            at += 1
            text = "\n".join(body) + "\n"
            blocks.append(Block(number, fence[2], fence[3] or "", text, comments))
            comments = {}
        elif line.strip() and comments:
            raise AssertionError(f"{page}:{number}: no block after {comments}")
    return blocks
