# SPDX-License-Identifier: Apache-2.0
"""Pickles: a graph of 10^5 nodes, ours beside dataclasses, the reference, msgpack and orjson.

    python bench/run_travel.py [--rounds 5] [--nodes 100000]

Every round starts one process of each way, in turns; a cell is the best CPU time of all its runs.
msgpack and orjson write an equivalent list of rows, which has no objects: they are there for scale.
Writes bench/results/travel.md and travel.json.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import report
import setup_peers as build

WAYS = {
    "ours": "Tether",
    "dataclasses": "Python dataclasses, pickle",
    "reference": "the reference, pickle (JSON inside)",
    "msgpack": "rows, msgpack",
    "orjson": "rows, orjson",
}
SCRIPTS = Path(__file__).resolve().parent / "python"


def ask(python: Any, package: str, script: str, *arguments: object) -> Any:
    environment = {**os.environ, "PYTHONPATH": package}
    text = build.run(python, SCRIPTS / script, *arguments, env=environment)
    return json.loads(text)


def page(data: dict[str, Any]) -> str:
    lines = ["# Pickles of object graphs, and tensors between processes", ""]
    lines += report.heading(data)
    lines += [
        "",
        f"A graph of {data['nodes']} nodes with a name, an int, a float and one or two inputs;",
        "CPU time in milliseconds, size in bytes. The targets, for both times together: a third of",
        "the dataclasses', a tenth of the reference's, and no more bytes than the dataclasses.",
        "",
        "| way | write | read | both, as a multiple of ours | size |",
        "|---|---:|---:|---:|---:|",
    ]
    own = sum(data["graph"]["ours"][:2])
    for way, (write, read, size) in data["graph"].items():
        times = f"{1e3 * write:.1f} | {1e3 * read:.1f} | {(write + read) / own:.2f}"
        lines.append(f"| {WAYS[way]} | {times} | {size:,.0f} |")
    lines += [
        "",
        "A tensor of 100 MB as the argument of a task of `ProcessPoolExecutor`,",
        "wall time in milliseconds.",
        "",
        "| way | time |",
        "|---|---:|",
    ]
    lines += [f"| {way} | {1e3 * seconds:.1f} |" for way, seconds in data["pool"].items()]
    return "\n".join(lines) + "\n"


def main() -> None:
    options, budget = report.arguments(
        ("--rounds", {"type": int, "default": 5}),
        ("--nodes", {"type": int, "default": 100_000}),
    )
    ready, missing = build.prepare(["ours", "reference"])
    try:
        python = build.environment("travel", build.NUMPY, "msgpack", "orjson")
    except build.Unavailable as reason:
        missing["numpy, msgpack or orjson"] = str(reason)
    if missing:
        report.progress(f"travel is not compared: {missing}")
        return
    own = (python, ready["ours"].environment["PYTHONPATH"])
    data = report.circumstances(ready, missing)
    data.update(shortened=budget.shortened, nodes=options.nodes, graph={})
    places = {
        "ours": own,
        "dataclasses": (python, ""),
        "reference": (ready["reference"].python, ""),
        "msgpack": (python, ""),
        "orjson": (python, ""),
    }
    for number in budget.rounds("pickles", options.rounds):
        for way, place in places.items():
            report.progress(f"pickles, round {number + 1}: {way}")
            found = ask(*place, "travel.py", way, options.nodes, 2 if way == "reference" else 7)
            best = data["graph"].setdefault(way, found)
            data["graph"][way] = [min(best[0], found[0]), min(best[1], found[1]), found[2]]
    report.progress("a tensor through a pool")
    data["pool"] = ask(*own, "travel_pool.py", 5)
    report.write("travel", data, page(data))


if __name__ == "__main__":
    main()
