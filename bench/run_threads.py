# SPDX-License-Identifier: Apache-2.0
"""Two threads and more: ours and its peers, with the interpreter lock and without.

    python bench/run_threads.py free|gil [--seconds N] [--prepare]

`free` uses the interpreter of scripts/freethreaded_python.sh (which builds it, once). Writes
bench/results/threads.md and threads.json, or threads_gil.md and threads_gil.json.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).resolve().parents[1] / "scripts" / "freethreaded_python.sh"
PEERS = {
    "free": ("floor", "ours", "adopted", "nanobind"),
    "gil": ("floor", "ours", "adopted", "nanobind", "reference"),
}
MEASURED = 12  # rows of threads.py
MOST_SECONDS = 5.0  # for one row
ABOUT = {
    "free": [
        "Nanoseconds of one thread per operation, the median of short runs that take turns and in",
        "which every thread kept a core of its own (-: the machine was too busy for three such);",
        "scaling is the rate of all threads together over that of one. *Shared*: on one object.",
    ],
    "gil": [
        "CPU nanoseconds of the process per operation. The threads take turns, so nothing can be",
        "gained; the last column is the rate of all threads together over that of one, less than 1",
        "by what handing the lock over costs. *Shared*: on one object.",
    ],
}


def free_threaded() -> str | None:
    """Return the path of a free-threaded interpreter, built if need be."""
    found = subprocess.run([SCRIPT], stdout=subprocess.PIPE, text=True, check=False)
    return found.stdout.split()[-1] if found.returncode == 0 else None


def thread_tables(label: Any, threads: dict[str, Any], mode: str) -> list[str]:
    lines: list[str] = []
    for name, table in threads.items():
        numbers = list(next(iter(table.values())))
        heads = [f"ns, {number} thread{'s' * (number != '1')}" for number in numbers]
        lines += [
            "",
            f"| {label(name)} | {' | '.join(heads)} | scaling |",
            "|---|" + "---:|" * (len(heads) + 1),
        ]
        for key, rates in table.items():
            side_by_side = {n: int(n) if mode == "free" else 1 for n in numbers}
            cells = [
                f"{side_by_side[n] / rates[n] * 1e9:.1f}" if rates[n] else "-" for n in numbers
            ]
            most = max((n for n in numbers if rates[n]), key=int, default="1")
            scaling = f"{rates[most] / rates['1']:.2f}" if most != "1" and rates["1"] else "-"
            cells.append(scaling + (f" ({most})" if len(numbers) > 2 and scaling != "-" else ""))
            lines.append(f"| {key} | {' | '.join(cells)} |")
    return lines


def measure(mode: str) -> None:
    import report

    options, budget = report.arguments(
        ("mode", {"choices": ("free", "gil")}), ("--prepare", {"action": "store_true"})
    )
    build = report.build
    ready, missing = build.prepare(list(PEERS[mode]))
    if options.prepare:
        return
    limit = min(MOST_SECONDS, budget.left() / MEASURED / max(1, len(ready)))
    rates: dict[str, Any] = {}
    for name, peer in list(ready.items()):
        report.progress(f"threads, {mode}: {name}")
        try:
            rates[name] = build.ask(peer, "threads.py", mode, limit)
        except build.Unavailable as reason:
            missing[name] = str(reason)
            del ready[name]
            report.progress(f"  not measured: {reason}")
    data = report.circumstances(ready, missing)
    data["shortened"] = budget.shortened
    data["threads"] = rates
    title = "without the interpreter lock" if mode == "free" else "with the interpreter lock"
    lines = [f"# Threads, {title}", "", *report.heading(data), "", *ABOUT[mode]]
    lines += thread_tables(report.label, rates, mode)
    name = "threads" if mode == "free" else "threads_gil"
    report.write(name, data, "\n".join(lines) + "\n")


def main() -> None:
    mode = sys.argv[1]
    if mode == "free":
        interpreter = free_threaded()
        if interpreter is None:
            print("not measured: no free-threaded interpreter, see above", file=sys.stderr)
            return
        # Read by the modules imported later: everything is built for that interpreter.
        os.environ["BENCH_PYTHON"] = interpreter
    measure(mode)


if __name__ == "__main__":
    main()
