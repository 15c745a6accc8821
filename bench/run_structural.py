# SPDX-License-Identifier: Apache-2.0
"""Operations on whole values (structural, copy, JSON, graphs), this tree beside the reference.

    python bench/run_structural.py [--rounds 5] [--repetitions 20]

Every round starts one process of each implementation, in turns; a row is the best CPU time of all
its runs. Writes bench/results/structural.md.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "python"))
import run_python
import setup_peers as build

# Time as a multiple of the reference's: what each kind of row is held to.
TARGETS = {"structural": 1.0, "deep copy": 1.0, "JSON": 0.5}


def target(title: str) -> str:
    return next((f"{bound:g}" for start, bound in TARGETS.items() if title.startswith(start)), "")


def best_times(
    peers: dict[str, build.Peer], rounds: int, repetitions: int
) -> dict[str, dict[str, float]]:
    """Return {peer: {row: seconds}}."""
    times: dict[str, dict[str, float]] = {name: {} for name in peers}
    for number in range(rounds):
        for name, peer in peers.items():
            run_python.progress(f"{name}, {number + 1} of {rounds}")
            for row, seconds in build.ask(peer, "structural.py", repetitions).items():
                times[name][row] = min(seconds, times[name].get(row, seconds))
    return times


def report(peers: dict[str, build.Peer], times: dict[str, dict[str, float]]) -> str:
    lines = ["# Whole values: ours beside the reference release", ""]
    lines += run_python.heading(run_python.circumstances(peers, {}))
    lines += [
        "",
        "CPU time in milliseconds, the best of all runs; trees of 10^5 nodes, documents of 10 MB.",
        "",
        "| operation | ours | reference | ratio | target |",
        "|---|---:|---:|---:|---:|",
    ]
    for row, own in times["ours"].items():
        other = times["reference"][row]
        numbers = f"{1e3 * own:.2f} | {1e3 * other:.2f} | {own / other:.2f}"
        lines.append(f"| {row} | {numbers} | {target(row)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repetitions", type=int, default=20)
    options = parser.parse_args()
    ready, missing = build.prepare(["ours", "reference"])
    if missing:
        sys.exit("; ".join(f"{name}: {why}" for name, why in missing.items()))
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    text = report(ready, best_times(ready, options.rounds, options.repetitions))
    (run_python.RESULTS / "structural.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
