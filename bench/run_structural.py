# SPDX-License-Identifier: Apache-2.0
"""Whole values (structural operations, copies, JSON, graphs) and classes defined in Python.

    python bench/run_structural.py [--rounds 5] [--repetitions 20]

This tree beside the reference release. Every round starts one process of each, in turns; a cell is
the best CPU time of all its runs. Writes bench/results/structural.md and structural.json.

Neither gives memory back to the system between two runs: whether it does depends on which object
happens to be the last one on the heap, and costs more than the operations.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import report
import setup_peers as build

# Time as a multiple of the reference's: what each kind of row is held to.
TARGETS = {"structural": 1.0, "deep copy": 1.0, "map": 1.0, "mutate": 1.0, "JSON": 0.5}


def target(title: str) -> str:
    return next((f"{bound:g}" for start, bound in TARGETS.items() if title.startswith(start)), "")


def keep_best(best: dict[str, Any], found: dict[str, Any]) -> None:
    for row, value in found.items():
        best[row] = min(value, best.get(row, value))


def values_table(times: dict[str, dict[str, float]]) -> list[str]:
    lines = ["| operation | ours | reference | ratio | target |", "|---|---:|---:|---:|---:|"]
    for row, own in times["ours"].items():
        other = times["reference"][row]
        numbers = f"{1e3 * own:.2f} | {1e3 * other:.2f} | {own / other:.2f}"
        lines.append(f"| {row} | {numbers} | {target(row)} |")
    return lines


def classes_table(classes: dict[str, dict[str, list[float]]]) -> list[str]:
    lines = ["| operation | ours | reference | target |", "|---|---:|---:|---:|"]
    for row, (_, _, bound) in classes["ours"].items():
        ratios = [classes[name][row][0] / classes[name][row][1] for name in ("ours", "reference")]
        lines.append(f"| {row} | {ratios[0]:.2f} | {ratios[1]:.2f} | {bound:g} |")
    return lines


def integers_table(integers: dict[str, dict[str, list[float]]]) -> list[str]:
    lines = ["| operation | ours | reference | target |", "|---|---:|---:|---:|"]
    for row, (_, _, bound) in integers["ours"].items():
        ratios = [integers[name][row][0] / integers[name][row][1] for name in ("ours", "reference")]
        lines.append(f"| {row} | {ratios[0]:.2f} | {ratios[1]:.2f} | {bound:g} |")
    return lines


def page(data: dict[str, Any]) -> str:
    lines = ["# Whole values, and classes defined in Python: ours beside the reference release", ""]
    lines += report.heading(data)
    lines += ["", "CPU time in milliseconds; trees of 10^5 nodes, documents of 10 MB.", ""]
    lines += values_table(data["values"])
    lines += [
        "",
        "A class defined in Python, CPU time as a multiple of the hand-written C class's,",
    ]
    lines += ["measured in turns in one process.", ""]
    lines += classes_table(data["classes"])
    lines += [
        "",
        "Integers beyond 64 bits, CPU time as a multiple of that of Python's own ints.",
        "",
    ]
    lines += integers_table(data["integers"])
    return "\n".join(lines) + "\n"


def main() -> None:
    options, budget = report.arguments(
        ("--rounds", {"type": int, "default": 5}), ("--repetitions", {"type": int, "default": 20})
    )
    ready, missing = build.prepare(["floor", "ours", "reference"])
    if missing:
        sys.exit("; ".join(f"{name}: {why}" for name, why in missing.items()))
    report.one_core()
    os.environ["MALLOC_TRIM_THRESHOLD_"] = str(2**30)
    data = report.circumstances(ready, missing)
    data.update(shortened=budget.shortened, values={}, classes={}, integers={})
    for number in budget.rounds("whole values", options.rounds):
        for name in ("ours", "reference"):
            report.progress(f"whole values, round {number + 1}: {name}")
            found = build.ask(ready[name], "structural.py", options.repetitions)
            keep_best(data["values"].setdefault(name, {}), found["values"])
            for section in ("classes", "integers"):
                rows = data[section].setdefault(name, {})
                for row, (own, floor, bound) in found[section].items():
                    best = rows.get(row, [own, floor, bound])
                    rows[row] = [min(own, best[0]), min(floor, best[1]), bound]
    report.write("structural", data, page(data))


if __name__ == "__main__":
    main()
