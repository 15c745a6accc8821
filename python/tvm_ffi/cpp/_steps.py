# SPDX-License-Identifier: Apache-2.0
"""Run the commands of a build, and only those whose result is out of date.

A step is one command that makes one file. What it read and what it made is written down in
``build.json``; a step is done again when its command, a file it read, or the file it made changed.
The record is written last and replaced as a whole, so a build that was killed starts again.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from ..libinfo import find_dlpack_include_path, find_include_path

RECORD = "build.json"
# What compilers and linkers read besides their command line.
_VARIABLES = ("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "COMPILER_PATH")
_LOGGER = logging.getLogger("tvm_ffi.cpp.extension")


TEMPORARY = "<output>"  # in a command: the file that becomes the output once the command is done


@dataclass
class Hints:
    """Flags that only make a step faster: a step is not done again because of them."""

    flags: list[str] = field(default_factory=list)
    inputs: list[Path] = field(default_factory=list)  # read because of the flags; these do count
    directory: Path | None = None  # files in here are read because of the flags and do not count


@dataclass
class Step:
    """One command that makes one file."""

    output: Path
    command: list[str]
    inputs: list[Path]
    depfile: Path | None = None
    hints: Hints = field(default_factory=Hints)
    named: list[Path] = field(default_factory=list)  # files in flags; see `files_in`

    def words(self, with_hints: bool = True) -> list[str]:
        """Return the command line."""
        temporary = str(self.output) + ".tmp"
        words = [temporary if word == TEMPORARY else word for word in self.command]
        return [*words, *self.hints.flags] if with_hints else words


def mark(path: Path | str) -> list[int] | None:
    """Return what changes when a file is written, or None if there is no such file."""
    try:
        # Not Path.stat: this is asked for hundreds of headers each time.
        stat = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return [stat.st_size, stat.st_mtime_ns]


def _read_record(directory: Path) -> dict[str, Any]:
    try:
        record = json.loads((directory / RECORD).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def replace_text(path: Path, text: str) -> None:
    """Write a file, unless it is already so; readers see the old or the new text."""
    data = text.encode("utf-8", "surrogateescape")
    try:
        if path.read_bytes() == data:
            return
    except OSError:
        pass
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    temporary.write_bytes(data)
    temporary.replace(path)


def _environment() -> dict[str, str]:
    return {name: os.environ[name] for name in _VARIABLES if name in os.environ}


def _is_done(step: Step, record: dict[str, Any]) -> bool:
    entry: Any = record.get(step.output.name)
    try:
        return (
            entry["command"] == step.command
            and entry["environment"] == _environment()
            and entry["output"] is not None
            and entry["output"] == mark(step.output)
            and all(mark(path) == old for path, old in entry["inputs"].items())
            and all(str(path) in entry["inputs"] for path in step.inputs)
        )
    except (TypeError, KeyError, AttributeError):
        return False


def has_record(directory: Path) -> bool:
    """Return whether a build has begun in the folder."""
    return (directory / RECORD).exists()


def begin_record(directory: Path) -> None:
    """Say that the folder is one of ours, before anything is written to it."""
    if not has_record(directory):
        replace_text(directory / RECORD, "{}")


def all_done(directory: Path, steps: Iterable[Step]) -> bool:
    """Return whether nothing has to be run. Needs no lock and writes nothing."""
    record = _read_record(directory)
    return bool(record) and all(_is_done(step, record) for step in steps)


def inputs_of(directory: Path, output: str) -> list[Path]:
    """Return what the step that made `output` has read."""
    entry = _read_record(directory).get(output)
    return [Path(path) for path in entry["inputs"]] if isinstance(entry, dict) else []


# Blanks and # in names have a backslash before them, and backslashes before that are doubled.
_DEPFILE_NAME = re.compile(r"(?:\\[ \t]|[^ \t])+")
_DEPFILE_ESCAPE = re.compile(r"(\\*)\\([ \t#])")


def _names_in_depfile(text: str) -> Iterator[str]:
    """Yield the prerequisites in a make rule as compilers write it."""
    rule = text.replace("\\\n", " ").split("\n", 1)[0]
    _, _, names = rule.partition(": ")
    for match in _DEPFILE_NAME.finditer(names):
        name = _DEPFILE_ESCAPE.sub(lambda m: "\\" * (len(m[1]) // 2) + m[2], match[0])
        yield name.replace("$$", "$")


_Done = tuple[str, subprocess.CompletedProcess[str]]


def _run(step: Step, directory: Path) -> _Done:
    line, done = _run_words(step.words(), directory)
    if done.returncode != 0 and step.hints.flags:
        # Perhaps only what makes it faster is broken; if not, these messages are the better ones.
        line, done = _run_words(step.words(with_hints=False), directory)
    return line, done


def _run_words(words: list[str], directory: Path) -> _Done:
    try:
        done = subprocess.run(
            words, cwd=directory, capture_output=True, text=True, errors="replace", check=False
        )
    except OSError as error:
        if not directory.is_dir():
            raise
        raise BuildError(
            f"{words[0]} cannot be run: {error.strerror}; "
            "CXX, CC and CUDA_HOME or ROCM_HOME say which compilers are used"
        ) from error
    line = shlex.join(words)
    if os.environ.get("TVM_FFI_CPP_EXTENSION_LOG_BUILD", "") in ("1", "stdout", "stderr"):
        _LOGGER.info("%s\n%s%s", line, done.stdout, done.stderr)
    return line, done


# Options and variables that name folders of headers, in the order in which they are searched.
_FOLDERS = (
    (("-iquote",), ()),
    (("-I", "--include-directory=", "--include-directory"), ("CPATH",)),
    (("-isystem",), ("C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH")),
    (("-idirafter",), ()),
)
_SYSTEM_FOLDERS = (Path("/usr/local/include"), Path("/usr/include"))


def values_of(words: list[str], *options: str) -> list[str]:
    """Return the values of options that are written as one word or as two."""
    values = []
    for word, following in pairwise([*words, ""]):
        option = next((option for option in options if word.startswith(option)), None)
        if option is not None:
            values.append(word[len(option) :] or following)
    return values


def files_in(words: list[str], directory: Path) -> list[Path]:
    """Return the files that flags name: objects, archives, ``@file``, ``-Wl,--option=file``...

    Only paths with a slash: a bare name, as after ``-soname``, is rarely a file of the user.
    """
    found = []
    for word in words:
        for part in {word, *word.replace("=", ",").split(",")}:
            path = directory / part.removeprefix("@")
            try:
                if "/" in part and path.is_file():
                    found.append(path)
            except (OSError, ValueError):  # too long for a path, or has a NUL
                continue
    return sorted(set(found))


def folders_of(variable: str) -> list[Path]:
    """Return the folders that a variable of the compiler names."""
    text = os.environ.get(variable, "")
    return [Path(folder) for folder in text.split(os.pathsep) if folder]


def _for_the_linker(words: list[str]) -> list[str]:
    """Return flags without what hands them on to the linker: ``-Wl,-L,x`` is ``-L x``."""
    found: list[str] = []
    for word in words:
        if word.startswith("-Wl,"):
            found += word.split(",")[1:]
        elif word != "-Xlinker":
            found.append(word)
    return found


def libraries_in(words: list[str], directory: Path) -> list[Path]:
    """Return where ``-l`` looks in the folders of ``-L``; a file that is not there may come."""
    words = _for_the_linker(words)
    folders = [directory / f for f in values_of(words, "-L", "--library-path=", "--library-path")]
    folders += [directory / folder for folder in folders_of("LIBRARY_PATH")]
    names: list[str] = []
    for name in values_of(words, "-l", "--library="):
        names += [name[1:]] if name.startswith(":") else [f"lib{name}.so", f"lib{name}.a"]
    return [folder / name for folder in folders for name in names]


def _search_path(step: Step, directory: Path) -> list[Path]:
    folders = [path.parent for path in step.inputs]
    for options, variables in _FOLDERS:
        folders += [directory / folder for folder in values_of(step.command, *options)]
        folders += [directory / folder for name in variables for folder in folders_of(name)]
    return list(dict.fromkeys(folders))


def _hidden_names(step: Step, headers: list[Path], directory: Path) -> list[Path]:
    """Return the files that do not exist, but would be read instead of a header if they did.

    A header that was found in a folder of the search path would be hidden by one of the same name
    in a folder before it.
    """
    folders = _search_path(step, directory)
    hidden: dict[Path, None] = {}
    for header in headers:
        text = str(header)
        for index, folder in enumerate(folders):
            if text.startswith(f"{folder}/"):
                name = text[len(str(folder)) + 1 :]
                hidden |= dict.fromkeys(earlier / name for earlier in folders[:index])
    return [path for path in hidden if not path.exists()]


_HAS_INCLUDE = re.compile(r"""__has_include(?:_next)?\s*\(\s*["<]([^">\n]+)[">]""")
_INCBIN = re.compile(r"""\.incbin\s+\\?"([^"\\\n]+)\\?\"""")


def _mentioned_names(step: Step, headers: list[Path], directory: Path) -> list[Path]:
    """Return the files that the user's own texts ask for and that no dependency file names.

    These are ``__has_include``, where also a file that is not there counts, and ``.incbin``.
    """
    others = ("/usr/", f"{find_include_path()}/", f"{find_dlpack_include_path()}/")
    found: dict[Path, None] = {}
    for path in dict.fromkeys([*step.inputs, *headers]):
        if str(path).startswith(others):
            continue
        try:
            text = path.read_text("utf-8", "surrogateescape")
        except OSError:
            continue
        folders = [path.parent, *_search_path(step, directory)]
        for name in _HAS_INCLUDE.findall(text):
            for folder in (*folders, *_SYSTEM_FOLDERS):
                found[folder / name] = None
                if (folder / name).exists():
                    break
        for name in _INCBIN.findall(text):
            found |= {folder / name: None for folder in (directory, *folders)}
    return list(found)


def _entry(step: Step, directory: Path, before: dict[str, Any]) -> dict[str, Any]:
    names: list[Path] = []
    if step.depfile is not None:
        try:
            text = step.depfile.read_text("utf-8", "surrogateescape")
        except OSError:
            text = ""
        names += [directory / name for name in _names_in_depfile(text)]
        names = [path for path in names if path.parent != step.hints.directory]
        names += step.hints.inputs
        names += [
            *_hidden_names(step, names, directory),
            *_mentioned_names(step, names, directory),
        ]
    # A source that changes while the compiler runs differs from `before` and is compiled again.
    # Not so the files in flags: some are written by the command, as with -Wl,-Map=file.
    names += step.named
    marks = {**{str(path): mark(path) for path in names}, **before}
    return {
        "command": step.command,
        "environment": _environment(),
        "inputs": marks,
        "output": mark(step.output),
    }


def jobs() -> int:
    """Return how many commands may run at once: ``$MAX_JOBS`` or the number of processors."""
    text = os.environ.get("MAX_JOBS")
    if not text:
        return os.cpu_count() or 1
    if not re.fullmatch(r"\s*0*[1-9][0-9]{0,8}\s*", text, re.ASCII):
        raise ValueError(f"MAX_JOBS must be a positive number, got {text!r}")
    return int(text)


class BuildError(RuntimeError):
    """A command of a build failed; the text has what it printed."""


def failure(program: str, status: int, stdout: str, stderr: str, line: str = "") -> BuildError:
    """Return the error for a command that failed."""
    parts = [f"{program} exited with status {status}"]
    if line:
        parts.append(f"command:\n{line}")
    if stdout:
        parts.append(f"stdout:\n{stdout}")
    if stderr:
        parts.append(f"stderr:\n{stderr}")
    return BuildError("\n".join(parts))


def run_steps(directory: Path, waves: list[list[Step]]) -> None:
    """Run what is out of date. Steps of one wave run side by side; the caller holds the lock."""
    record = _read_record(directory)
    for wave in waves:
        todo = [step for step in wave if not _is_done(step, record)]
        if not todo:
            continue
        before = [{str(p): mark(p) for p in step.inputs} for step in todo]
        with ThreadPoolExecutor(min(jobs(), len(todo))) as pool:
            results = list(pool.map(lambda step: _run(step, directory), todo))
        for step, marks, (line, done) in zip(todo, before, results, strict=True):
            temporary = Path(str(step.output) + ".tmp")
            if done.returncode != 0:
                temporary.unlink(missing_ok=True)
                program = Path(step.command[0]).name
                raise failure(program, done.returncode, done.stdout, done.stderr, line)
            try:
                temporary.replace(step.output)
            except FileNotFoundError:
                raise BuildError(
                    f"{Path(step.command[0]).name} succeeded but did not write {step.output.name}; "
                    f"is it a compiler?\ncommand:\n{line}"
                ) from None
            record[step.output.name] = _entry(step, directory, marks)
        replace_text(directory / RECORD, json.dumps(record))


@contextmanager
def progress(text: str) -> Iterator[None]:
    """Say on a terminal what is going on and, at the end, how long it took."""
    stream = sys.stderr
    if stream is None or not stream.isatty():
        yield
        return
    begin = time.monotonic()
    stream.write(f"{text} ...")
    stream.flush()
    word = "failed"
    try:
        yield
        word = "done"
    finally:
        stream.write(f" {word} in {time.monotonic() - begin:.1f} s\n")
        stream.flush()
