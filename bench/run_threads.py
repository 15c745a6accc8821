# SPDX-License-Identifier: Apache-2.0
"""Threads without the interpreter lock: ours and its peers on a free-threaded interpreter.

    python bench/run_threads.py [--rounds 200]

Uses the interpreter of scripts/freethreaded_python.sh (which builds it, once). Writes
bench/results/threads.md and threads.json.
"""

from __future__ import annotations

import argparse
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
            cells = [f"{int(number) / rates[number] * 1e9:.1f}" for number in numbers]
            scaling = rates[numbers[-1]] / rates["1"]
            lines.append(f"| {key} | {' | '.join(cells)} | {scaling:.2f} |")
    return lines


def report(run_python: Any, data: dict[str, Any]) -> str:
    lines = [
        "# Threads, without the interpreter lock",
        "",
        *run_python.heading(data),
        "",
        "Nanoseconds of one thread per operation, the best of many short runs that take turns;",
        "scaling is the rate of all threads together over that of one. *Shared*: on one object.",
        *thread_tables(run_python, data["threads"]),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=200)
    options = parser.parse_args()
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
            rates[name] = build.ask(peer, "threads.py", options.rounds)
        except build.Unavailable as reason:
            missing[name] = str(reason)
            del ready[name]
            run_python.progress(f"  not measured: {reason}")
    data = run_python.circumstances(ready, missing)
    data["threads"] = rates
    run_python.write_results("threads", data, report(run_python, data))


if __name__ == "__main__":
    main()
