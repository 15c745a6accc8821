# SPDX-License-Identifier: Apache-2.0
"""What the runners share: progress, time limits, circumstances of a measurement, result files.

scripts/bench.sh tells every runner how many seconds it has (`--seconds`); a runner that needs more
makes fewer rounds, and both its output and its tables say so. Without a limit all rounds are made.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import sys
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent / "python"))
import setup_peers as build

RESULTS = build.ROOT / "bench" / "results"
TITLES = {"adopted": "ours, old client", "pyo3": "PyO3", "cython": "Cython", "slots": "pure Python"}
BEGIN = float(os.environ.get("BENCH_BEGIN", time.time()))  # of the whole run


def label(name: str) -> str:
    return TITLES.get(name, name)


def progress(text: str) -> None:
    print(f"[{time.time() - BEGIN:5.0f} s] {text}", file=sys.stderr, flush=True)


class Budget:
    """The time of one runner, and what had to be left out to stay within it."""

    def __init__(self, seconds: float | None) -> None:
        self.end = time.monotonic() + (seconds if seconds is not None else float("inf"))
        self.shortened: list[str] = []

    def left(self) -> float:
        return max(0.0, self.end - time.monotonic())

    def rounds(self, what: str, wanted: int, share: float = 1.0, least: int = 1) -> Iterator[int]:
        """Yield round numbers: the least in any case, more while they fit into the share left."""
        begin = time.monotonic()
        limit = self.left() * share
        for number in range(wanted):
            used = time.monotonic() - begin
            if number >= least and used + used / number > limit:
                self.leave_out(f"{what}: {number} of {wanted} rounds")
                return
            yield number

    def leave_out(self, what: str) -> None:
        self.shortened.append(what)
        progress(f"shortened, time is up: {what}")


def arguments(*extra: tuple[str, dict[str, Any]]) -> tuple[argparse.Namespace, Budget]:
    """Parse --seconds and the runner's own options."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float)
    for name, options in extra:
        parser.add_argument(name, **options)
    parsed = parser.parse_args()
    return parsed, Budget(parsed.seconds)


def one_core() -> None:
    """Stay on one core: moving between cores costs more than what is measured."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def cpu_name() -> str:
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    found = re.search(r"model name\s*:\s*(.*)", text)
    return found.group(1) if found else platform.machine()


def circumstances(ready: dict[str, build.Peer], missing: dict[str, str]) -> dict[str, Any]:
    """Return what a reader must know to judge the figures."""
    python = next(iter(ready.values())).python
    version = "import sys; print(sys.version.split(' (')[0])"
    return {
        "date": date.today().isoformat(),
        "python": build.run(python, "-c", version),
        "compiler": build.run("g++", "-dumpfullversion"),
        "cpu": f"{cpu_name()}, {os.cpu_count()} cores",
        "peers": {name: peer.version for name, peer in ready.items()},
        "missing": missing,
    }


def columns(data: dict[str, Any], *without: str) -> list[str]:
    """Return the peers of a table; those that could not be measured have gaps in it."""
    known = {**data["peers"], **data["missing"]}
    return [name for name in build.PREPARE if name in known and name not in without]


def heading(data: dict[str, Any]) -> list[str]:
    lines = [
        f"{data['date']}, CPython {data['python']}, g++ {data['compiler']}, {data['cpu']}.",
        "Made by `make bench`.",
        "",
    ]
    lines += [f"- {label(name)}: {version}" for name, version in data["peers"].items()]
    lines += [f"- {label(name)}: not measured ({why})" for name, why in data["missing"].items()]
    lines += [f"- shortened to stay within the time: {text}" for text in data["shortened"]]
    return lines


def write(name: str, data: dict[str, Any], text: str) -> None:
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.md").write_text(text, encoding="utf-8")
    (RESULTS / f"{name}.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    print(text)


def read(name: str) -> dict[str, Any] | None:
    file = RESULTS / f"{name}.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else None
