# SPDX-License-Identifier: Apache-2.0
"""Files as lists of blocks: plain lines, one-line directives, and regions between markers."""

from __future__ import annotations

import codecs
import difflib
import os
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from . import consts as C

_KINDS = get_args(C.STUB_BLOCK_KINDS)
_KINDS_WITH_TEXT = ("global", "object", "export")
_KINDS_ALONE = ("import-section", "__all__")


class MarkerError(ValueError):
    """A marker that cannot be read."""

    def __init__(self, message: str, lineno: int) -> None:
        super().__init__(message)
        self.lineno = lineno


def text_of(error: Exception) -> str:
    """Return what to print: the message of a mistake in a file, all of what is not expected."""
    if isinstance(error, (ValueError, OSError)):
        return str(error)
    return "".join(traceback.format_exception(error))


def syntax_for(path: Path) -> C.MarkerSyntax:
    """Return how markers look in a file; unknown files are taken for Python."""
    return C.SYNTAX_BY_EXT.get(Path(path).suffix.lower(), C.PYTHON_SYNTAX)


@dataclass
class CodeBlock:
    """Consecutive lines of a file that belong together."""

    kind: C.STUB_BLOCK_KINDS
    param: Any
    lineno_start: int
    lineno_end: int | None
    lines: list[str]

    def __post_init__(self) -> None:
        assert self.kind in _KINDS, f"not a kind of block: {self.kind!r}"

    @property
    def indent(self) -> int:
        """How many blanks the first line begins with."""
        return len(self.lines[0]) - len(self.lines[0].lstrip()) if self.lines else 0

    @staticmethod
    def from_begin_line(lineno: int, line: str, syntax: C.MarkerSyntax) -> CodeBlock:
        """Return the block that a stripped marker line begins, or is."""
        if line.startswith(syntax.begin):
            text = line[len(syntax.begin) :].strip()
            kind, slash, param = text.partition("/")
            if slash and kind in _KINDS_WITH_TEXT:
                value: Any = param.strip()
                if kind == "global":
                    prefix, _, module = value.partition("@")
                    value = (prefix, module)
                return CodeBlock(kind, value, lineno, None, [])  # type: ignore[arg-type]
            if text in _KINDS_ALONE:
                return CodeBlock(text, "", lineno, None, [])  # type: ignore[arg-type]
            raise MarkerError(f"Unknown stub type `{text}` at line {lineno}", lineno)
        name, separator, payload = line[len(syntax.prefix) :].partition("):")
        if not separator or not name.replace("-", "_").isidentifier():
            raise MarkerError(f"Unknown stub type at line {lineno}: {line}", lineno)
        return CodeBlock("directive", (name, payload.strip()), lineno, lineno, [])


def blocks_of(lines: Iterable[str], syntax: C.MarkerSyntax) -> Iterator[CodeBlock]:
    """Yield the regions, the directives and the lines in between."""
    inside: CodeBlock | None = None
    for lineno, line in enumerate(lines, 1):
        text = line.strip()
        if text.startswith(syntax.begin) and "\t" in line[: len(line) - len(line.lstrip())]:
            message = f"The marker at line {lineno} is indented with a tab; use blanks"
            raise MarkerError(message, lineno)
        if not text.startswith(syntax.prefix):
            if inside is None:
                yield CodeBlock(None, "", lineno, lineno, [line])
            else:
                inside.lines.append(line)
        elif text.startswith(syntax.begin):
            if inside is not None:
                raise MarkerError(f"Nested stub not permitted at line {lineno}", lineno)
            inside = CodeBlock.from_begin_line(lineno, text, syntax)
            inside.lines.append(line)
        elif text.startswith(syntax.end):
            if inside is None:
                raise MarkerError(f"Unmatched `{syntax.end}` found at line {lineno}", lineno)
            inside.lines.append(line)
            inside.lineno_end = lineno
            yield inside
            inside = None
        else:
            # Inside a region it would be overwritten, so it stands before the region from now on.
            block = CodeBlock.from_begin_line(lineno, text, syntax)
            block.lines.append(line)
            yield block
    if inside is not None:
        raise MarkerError("Unclosed stub block at end of file", inside.lineno_start)


@dataclass
class FileInfo:
    """A file with markers."""

    path: Path
    lines: tuple[str, ...]
    code_blocks: list[CodeBlock]
    syntax: C.MarkerSyntax
    newline: str = "\n"
    encoding: str = "utf-8"

    @staticmethod
    def from_file(
        path: Path, include_empty: bool = False, syntax: C.MarkerSyntax | None = None
    ) -> FileInfo | None:
        """Read a file; None if it asks to be skipped or, unless `include_empty`, has no marker."""
        path = Path(path).resolve()
        syntax = syntax or syntax_for(path)
        # Only at the ends of lines: a form feed, for one, is part of the text.
        data = path.read_bytes()
        encoding = "utf-8-sig" if data.startswith(codecs.BOM_UTF8) else "utf-8"
        lines = data.decode(encoding).split("\n")
        newline = "\r\n" if lines[0].endswith("\r") else "\n"
        if newline == "\r\n":
            lines = [line.removesuffix("\r") for line in lines]
        if lines[-1] == "":
            lines.pop()
        markers = [text for line in lines if (text := line.strip()).startswith(syntax.prefix)]
        if any(text.startswith(syntax.skip_file) for text in markers):
            return None
        if not markers and not include_empty:
            return None
        blocks = list(blocks_of(lines, syntax))
        return FileInfo(path, tuple(lines), blocks, syntax, newline, encoding)

    def update(self, verbose: bool, dry_run: bool) -> bool:
        """Write the blocks back if they differ from the lines; returns whether they do."""
        new = tuple(line for block in self.code_blocks for line in block.lines)
        if new == self.lines:
            if verbose:
                print(f"{C.TERM_CYAN}-----> Unchanged{C.TERM_RESET}")
            return False
        if verbose:
            _print_difference(self.lines, new)
        if not dry_run:
            text = self.newline.join(new) + self.newline
            self.path.write_bytes(text.encode(self.encoding))
        self.lines = new
        return True

    def reload(self) -> None:
        """Read the blocks again after something was appended; `lines` stay as they were."""
        fresh = FileInfo.from_file(self.path, include_empty=True, syntax=self.syntax)
        assert fresh is not None, f"now skipped: {self.path}"
        self.code_blocks = fresh.code_blocks


def _print_difference(old: tuple[str, ...], new: tuple[str, ...]) -> None:
    colours = {"-": C.TERM_RED, "+": C.TERM_GREEN, "?": C.TERM_YELLOW}
    for line in difflib.unified_diff(old, new, lineterm=""):
        if line.startswith(("---", "+++")):
            continue
        colour = colours.get(line[:1], "")
        print(f"{colour}{line}{C.TERM_RESET if colour else ''}")


def path_walk(
    p: Path,
    *,
    top_down: bool = True,
    on_error: Callable[[OSError], object] | None = None,
    follow_symlinks: bool = False,
) -> Iterator[tuple[Path, list[str], list[str]]]:
    """Walk a folder as `Path.walk` does, which Python has since 3.12."""
    for root, folders, files in os.walk(p, top_down, on_error, follow_symlinks):
        yield Path(root), folders, files


def collect_files(paths: Iterable[Path], source_exts: Collection[str]) -> list[FileInfo]:
    """Read the files among `paths`, and those in folders that have one of the extensions.

    A file that cannot be parsed is reported and left out.
    """
    return read_files(paths, source_exts)[0]


def read_files(paths: Iterable[Path], source_exts: Collection[str]) -> tuple[list[FileInfo], int]:
    """Do as `collect_files`, and count the files that are missing or were left out."""
    failures = 0
    found: list[Path] = []
    for path in map(Path, paths):
        if path.is_dir():
            for root, _, files in path_walk(path):
                names = (name for name in files if Path(name).suffix.lower() in source_exts)
                found += [root / name for name in names]
        elif path.is_file():
            found.append(path)
        else:
            print(f"{C.TERM_RED}[Error] no such file or folder: {path}{C.TERM_RESET}")
            failures += 1
    infos: dict[Path, FileInfo] = {}
    for path in found:
        try:
            info = FileInfo.from_file(path)
        except Exception as error:
            line = getattr(error, "lineno", None)
            where = f'File "{path}"' + ("" if line is None else f", line {line}")
            print(f"{C.TERM_RED}[Error] {where}: {text_of(error)}{C.TERM_RESET}")
            failures += 1
            continue
        if info is not None:
            infos[info.path] = info
    return [infos[path] for path in sorted(infos, key=str)], failures
