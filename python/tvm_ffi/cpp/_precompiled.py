# SPDX-License-Identifier: Apache-2.0
"""The headers of inline sources, compiled once.

Most of the time of a small inline source goes into parsing the same headers. A precompiled header
halves it, but takes as long as two builds to make and 70 MB of disk. So it is made when a cache has
missed `_MISSES` times with the same compiler and flags: who compiles three times goes on compiling.
``TVM_FFI_CPP_PRECOMPILED_HEADER`` = 1 makes it the first time, 0 never.

It is only a matter of speed: without it, and whenever something about it fails, the sources are
compiled as they stand, since they include the same headers themselves.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

from ..utils.lockfile import FileLock
from . import _steps, _toolchain

_MISSES = 3
_COUNT = "misses"
# What these read is read before the precompiled header, which must be the first.
_FIRST = ("-include", "-imacros")


def _misses_wanted() -> int | None:
    choice = os.environ.get("TVM_FFI_CPP_PRECOMPILED_HEADER", "")
    return {"0": None, "1": 1}.get(choice, _MISSES)


def _count_miss(directory: Path) -> int:
    counter = directory / _COUNT
    with counter.open("ab") as file:
        file.write(b".")
        return file.tell()


def hints_for(root: Path, compiler: list[str], flags: list[str], prelude: str) -> _steps.Hints:
    """Return how to use the precompiled header in the cache `root`; makes it if it is time to."""
    wanted = _misses_wanted()
    if wanted is None:
        return _steps.Hints()
    if any(flag.startswith(_FIRST) for flag in flags):
        return _steps.Hints()
    parts = json.dumps([_toolchain.identity(compiler), flags, prelude])
    key = hashlib.sha256(parts.encode()).hexdigest()[:16]
    directory = root / f"precompiled_{key}"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if _count_miss(directory) < wanted:
            return _steps.Hints()
        style, _ = _toolchain.style_of(compiler)
        if not style:
            return _steps.Hints()
        return _make(directory, compiler, flags, prelude, style)
    except (OSError, _steps.BuildError):
        return _steps.Hints()


def _make(
    directory: Path, compiler: list[str], flags: list[str], prelude: str, style: str
) -> _steps.Hints:
    header = directory / "prelude.h"
    output = directory / ("prelude.h.gch" if style == "gcc" else "prelude.pch")
    command = [*compiler, *flags, "-MD", "-MF", "prelude.d", "-x", "c++-header", str(header)]
    command += ["-o", _steps.TEMPORARY]
    named = _steps.files_in(flags, directory)
    step = _steps.Step(output, command, [header], directory / "prelude.d", named=named)
    if not _steps.all_done(directory, [step]):
        with FileLock(str(directory / "lock")):
            _steps.replace_text(header, prelude)
            with _steps.progress("tvm_ffi.cpp: precompiling the headers, once for these flags"):
                _steps.run_steps(directory, [[step]])
    use = ["-include", str(header)] if style == "gcc" else ["-include-pch", str(output)]
    # The compiler names only the precompiled header; what counts is what went into it.
    inputs = [path for path in _steps.inputs_of(directory, output.name) if path != header]
    return _steps.Hints(use, inputs, directory)
