# SPDX-License-Identifier: Apache-2.0
"""The Python frontend side by side with its peers.

The same small library (a Node with an int field, an object field and children; a few functions) is
built for every peer. Which promises each one keeps is tried out. Each row of the other tables is
one Python statement, measured as time relative to the floor, in one process and in turns with it,
and as instructions per run of the statement (callgrind).

    python bench/run_python.py [--peers floor,ours,nanobind] [--rounds 6] [--no-count] [--seconds N]

Writes bench/results/python.md and python.json.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent / "python"))
import behaviour
import report
import rows
import setup_peers as build
from report import label, progress

SAMPLES = 10  # timed runs of a row in one round


def measure(peer: build.Peer, mode: str, *arguments: object, prefix: tuple[str, ...] = ()) -> Any:
    return build.ask(peer, "measure.py", mode, *arguments, prefix=prefix)


def times(samples: dict[str, list[tuple[float, float]]]) -> dict[str, dict[str, float]]:
    """Return, for each row, the best nanoseconds of peer and floor, and their ratio.

    The best of many short runs in turns is what the machine does when it is left alone.
    """
    result = {}
    for key, pairs in samples.items():
        own = min(own for own, _ in pairs)
        floor = min(floor for _, floor in pairs)
        result[key] = {"ns": own, "floor_ns": floor, "ratio": own / floor}
    return result


def read_dumps(folder: Path) -> dict[str, float]:
    """Instructions per run of what was dumped as `NAME LENGTH`, at two lengths each."""
    totals: dict[str, dict[int, int]] = {}
    for file in folder.glob("callgrind.*"):
        text = file.read_text(encoding="utf-8")
        mark = re.search(r"Client Request: (\S+) (\d+)", text)
        total = re.search(r"^(?:summary|totals): (\d+)", text, re.MULTILINE)
        if mark and total:
            totals.setdefault(mark[1], {})[int(mark[2])] = int(total[1])
    counts = {}
    for name, lengths in totals.items():
        (n1, short), (n2, long) = sorted(lengths.items())
        counts[name] = (long - short) / (n2 - n1)
    return counts


def instructions(peer: build.Peer) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        output = f"--callgrind-out-file={folder}/callgrind.out"
        measure(peer, "count", prefix=("valgrind", "--tool=callgrind", output))
        counts = read_dumps(Path(folder))
    return {
        row.key: counts[row.key] / rows.UNROLL / row.per for row in rows.ROWS if row.key in counts
    }


def table(title: str, peers: list[str], cell: Any, targets: bool) -> list[str]:
    """One markdown table, a line per row; cell(peer, key) is a number or None."""
    heads = [*(label(name) for name in peers), *(["target"] if targets else [])]
    lines = ["", f"| {title} | {' | '.join(heads)} |", "|---|" + "---:|" * len(heads)]
    for row in rows.ROWS:
        cells = []
        for name in peers:
            number = cell(name, row.key)
            cells.append("-" if number is None else f"{number:.2f}" if targets else f"{number:.0f}")
        if targets:
            cells.append("" if row.target is None else f"{row.target:g}")
        lines.append(f"| {row.title} | {' | '.join(cells)} |")
    return lines


def behaviour_table(peers: list[str], answers: dict[str, dict[str, str]]) -> list[str]:
    lines = [
        "",
        f"| behaviour | {' | '.join(map(label, peers))} |",
        "|---|" + "---|" * len(peers),
    ]
    for probe in behaviour.PROBES:
        cells = [answers.get(name, {}).get(probe.__name__, "-") for name in peers]
        lines.append(f"| {(probe.__doc__ or '').rstrip('.')} | {' | '.join(cells)} |")
    return lines


def page(data: dict[str, Any]) -> str:
    lines = ["# Python: ours and its peers side by side", "", *report.heading(data)]
    lines += ["", "Promises, tried out with each peer's defaults."]
    timed = report.columns(data, "floor")
    lines += behaviour_table(timed, data["behaviour"])
    lines += ["", "CPU time as a multiple of the floor's, measured in turns in one process."]
    lines += table(
        "operation", timed, lambda p, k: data["time"].get(p, {}).get(k, {}).get("ratio"), True
    )
    if data["instructions"]:
        lines += ["", "Instructions per operation."]
        lines += table(
            "operation",
            report.columns(data),
            lambda p, k: data["instructions"].get(p, {}).get(k),
            False,
        )
    return "\n".join(lines) + "\n"


def measure_all(
    ready: dict[str, build.Peer], rounds: int, data: dict[str, Any], budget: report.Budget
) -> None:
    """Fill in behaviour and times; a peer that fails moves to the missing ones."""
    samples: dict[str, dict[str, list[tuple[float, float]]]] = {name: {} for name in ready}
    for number in budget.rounds("time of an operation", rounds):
        for name, peer in list(ready.items()):
            if name == "floor":
                continue
            progress(f"time of an operation, round {number + 1}: {name}")
            try:
                if number == 0:
                    data["behaviour"][name] = build.ask(peer, "behaviour.py")
                for key, pairs in measure(peer, "time", SAMPLES).items():
                    samples[name].setdefault(key, []).extend(pairs)
            except build.Unavailable as reason:
                data["missing"][name] = str(reason)
                progress(f"  not measured: {reason}")
                del ready[name]
    data["time"] = {name: times(samples[name]) for name in ready if name != "floor"}


def count_all(ready: dict[str, build.Peer], data: dict[str, Any]) -> None:
    """Fill in instructions: on all cores, because counts do not depend on what else runs."""

    def one(name: str) -> None:
        progress(f"instructions per operation: {name}")
        try:
            data["instructions"][name] = instructions(ready[name])
        except build.Unavailable as reason:
            progress(f"  {name} not counted: {reason}")

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(one, ready))
    data["instructions"] = {n: data["instructions"][n] for n in ready if n in data["instructions"]}


def main() -> None:
    options, budget = report.arguments(
        ("--peers", {"default": ",".join(build.PREPARE)}),
        ("--rounds", {"type": int, "default": 6}),
        ("--no-count", {"action": "store_true", "help": "skip callgrind"}),
        ("--prepare", {"action": "store_true", "help": "only build what will be measured"}),
    )
    ready, missing = build.prepare(list(dict.fromkeys(["floor", *options.peers.split(",")])))
    if "floor" not in ready:
        sys.exit(f"the floor cannot be built: {missing['floor']}")
    python = ready["floor"].python
    build.extension(python, "bench_marks", build.HERE / "marks.c", compiler="gcc")
    if options.prepare:
        return
    data = report.circumstances(ready, missing)
    data.update(behaviour={}, time={}, instructions={}, shortened=budget.shortened)
    if options.no_count or shutil.which("valgrind") is None:
        progress("instructions are not counted" + ("" if options.no_count else ": no valgrind"))
    else:
        count_all(ready, data)
    report.one_core()
    measure_all(ready, options.rounds, data, budget)
    data["peers"] = {name: text for name, text in data["peers"].items() if name not in missing}
    report.write("python", data, page(data))


if __name__ == "__main__":
    main()
