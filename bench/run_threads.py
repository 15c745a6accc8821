# SPDX-License-Identifier: Apache-2.0
"""Threads without the interpreter lock: ours and its peers on a free-threaded interpreter.

    python bench/run_threads.py

Uses the interpreter of scripts/freethreaded_python.sh (which builds it, once). Writes
bench/results/threads.md and threads.json.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).resolve().parents[1] / "scripts" / "freethreaded_python.sh"
PEERS = ("floor", "ours", "adopted", "nanobind")


def thread_tables(run_python: Any, threads: dict[str, Any]) -> list[str]:
    lines: list[str] = []
    for name, table in threads.items():
        numbers = list(next(iter(table.values())))
        heads = [f"ns, {number} thread{'s' * (number != '1')}" for number in numbers]
        lines += [
            "",
            f"| {run_python.label(name)} | {' | '.join(heads)} | scaling |",
            "|---|" + "---:|" * (len(heads) + 1),
        ]
        for key, rates in table.items():
            cells = [f"{int(n) / rates[n] * 1e9:.1f}" if rates[n] else "-" for n in numbers]
            both = rates[numbers[-1]] and rates["1"]
            cells.append(f"{rates[numbers[-1]] / rates['1']:.2f}" if both else "-")
            lines.append(f"| {key} | {' | '.join(cells)} |")
    return lines


def report(run_python: Any, data: dict[str, Any]) -> str:
    lines = [
        "# Threads, without the interpreter lock",
        "",
        *run_python.heading(data),
        "",
        "Nanoseconds of one thread per operation, the median of short runs that take turns and in",
        "which every thread kept a core of its own (-: the machine was too busy for three such);",
        "scaling is the rate of all threads together over that of one. *Shared*: on one object.",
        *thread_tables(run_python, data["threads"]),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    found = subprocess.run([SCRIPT], stdout=subprocess.PIPE, text=True, check=False)
    if found.returncode != 0:
        print("threads are not measured: no free-threaded interpreter, see above", file=sys.stderr)
        return
    # Read by the modules below when they are imported: everything is built for that interpreter.
    os.environ["BENCH_PYTHON"] = found.stdout.split()[-1]
    import run_python

    build = run_python.build
    ready, missing = build.prepare(list(PEERS))
    rates: dict[str, Any] = {}
    for name, peer in list(ready.items()):
        run_python.progress(f"threads: {name}")
        try:
            rates[name] = build.ask(peer, "threads.py")
        except build.Unavailable as reason:
            missing[name] = str(reason)
            del ready[name]
            run_python.progress(f"  not measured: {reason}")
    data = run_python.circumstances(ready, missing)
    data["threads"] = rates
    run_python.write_results("threads", data, report(run_python, data))


if __name__ == "__main__":
    main()
