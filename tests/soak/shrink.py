# SPDX-License-Identifier: Apache-2.0
"""Make a failing program small: leave out parts of it, run each attempt in a child of its own."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from objects import Broken, ChildEnds


def signature(text: str) -> str:
    """What makes two findings the same one: the text without numbers and what varies."""
    return re.sub(r"0x[0-9a-f]+|\d+|<class '[^']*'>|'[^']*'", "_", text.splitlines()[0])[:70]


def run_in_child(run: Callable[[], Any], seconds: float, log: Path | None = None) -> str:
    """Run in a child; returns what it found, or nothing."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        output = os.open(log or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(output, 1)
        os.dup2(output, 2)
        try:
            run()
            os._exit(0)
        except Broken as error:
            traceback.print_exc()
            sys.stderr.flush()
            os.write(writer, str(error).encode()[:4000])
            os._exit(10)
        except ChildEnds:
            raise
        except BaseException as error:
            traceback.print_exc()
            sys.stderr.flush()
            os.write(writer, f"unexpected {type(error).__name__}: {error}".encode()[:4000])
            os._exit(10)
    os.close(writer)
    deadline = time.monotonic() + seconds
    try:
        while True:
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > deadline:
                os.kill(child, signal.SIGABRT)  # faulthandler tells where
                time.sleep(0.2)
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                return "hang"
            time.sleep(0.0005)
        if os.WIFSIGNALED(status):
            return f"crash: {signal.Signals(os.WTERMSIG(status)).name}"
        if status == 0:
            return ""
        return os.read(reader, 4000).decode() or f"crash: exit status {status >> 8}"
    finally:
        os.close(reader)


def minimise(items: list[Any], fails: Callable[[list[Any]], bool], deadline: float) -> list[Any]:
    """Leave out as much as possible while it still fails."""
    size = max(1, len(items) // 2)
    while size >= 1:
        i = 0
        removed = False
        while i < len(items) and time.monotonic() < deadline:
            attempt = items[:i] + items[i + size :]
            if attempt != items and fails(attempt):
                items = attempt
                removed = True
            else:
                i += size
        if time.monotonic() >= deadline:
            break
        if size > 1:
            size = max(1, size // 2)
        elif not removed:
            break
    return items


def shrink(
    programs: list[dict[str, Any]],
    found: str,
    run: Callable[[list[dict[str, Any]]], Any],
    hang_seconds: float,
    seconds: float,
) -> tuple[list[dict[str, Any]], bool]:
    """Shrink the programs that a process ran, the last of which failed.

    Returns what is left of them, and whether it failed again at all.
    """
    deadline = time.monotonic() + seconds
    kind = signature(found)
    crash = kind.startswith(("crash", "hang"))
    racing = programs[-1]["kind"] == "threads"
    tries, repeats = (4, 10) if racing else (2, 1)  # a race needs luck

    def fails(candidate: list[dict[str, Any]]) -> bool:
        for _ in range(tries):
            got = run_in_child(lambda: run(candidate * repeats), hang_seconds)
            # A crash may show in another way the next time.
            if got and (signature(got) == kind or (crash and got.startswith(("crash", "hang")))):
                return True
        return False

    if fails(programs[-1:]):
        programs = programs[-1:]
    elif len(programs) > 1 and not racing and fails(programs):
        programs = minimise(programs, fails, deadline)
    else:
        return programs[-1:], False
    tries = max(1, tries // 2)
    for i in range(len(programs)):

        def with_steps(steps: list[Any], i: int = i, all: Any = programs) -> list[dict[str, Any]]:
            return [*all[:i], {**all[i], "steps": steps}, *all[i + 1 :]]

        steps = minimise(
            programs[i]["steps"], lambda steps, make=with_steps: fails(make(steps)), deadline
        )
        programs = with_steps(steps)
        # Smaller numbers, too.
        for k, s in enumerate(steps):
            for position in range(1, len(s)):
                if not isinstance(s[position], int):
                    continue
                for smaller in (0, s[position] & 1, s[position] & 7, s[position] & 63):
                    if smaller >= s[position] or time.monotonic() > deadline:
                        continue
                    attempt = list(steps)
                    attempt[k] = (*s[:position], smaller, *s[position + 1 :])
                    if fails(with_steps(attempt)):
                        steps = attempt
                        break
        programs = with_steps(steps)
    return programs, True
