# SPDX-License-Identifier: Apache-2.0
"""The Python frontend side by side with its peers.

The same small library (a Node with an int field, an object field and children; a few functions) is
built for every peer. Which promises each one keeps is tried out. Each row of the other tables is
one Python statement, measured as time relative to the floor, in one process and in turns with it,
and as instructions per run of the statement (callgrind).

    python bench/run_python.py [--peers floor,ours,nanobind] [--rounds 25] [--no-count]

Writes bench/results/python.md and python.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import sys
import tempfile
from datetime import date
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent / "python"))
import behaviour
import rows
import setup_peers as build

RESULTS = build.ROOT / "bench" / "results"
TITLES = {"adopted": "ours, old client", "pyo3": "PyO3", "cython": "Cython", "slots": "pure Python"}


def label(name: str) -> str:
    return TITLES.get(name, name)


def progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def measure(peer: build.Peer, mode: str, *arguments: object, prefix: tuple[str, ...] = ()) -> Any:
    return build.ask(peer, "measure.py", mode, *arguments, prefix=prefix)


def times(peer: build.Peer, rounds: int) -> dict[str, dict[str, float]]:
    """Return, for each row, the best nanoseconds of peer and floor, and their ratio.

    The best of many short runs in turns is what the machine does when it is left alone.
    """
    result = {}
    for key, samples in measure(peer, "time", rounds).items():
        own = min(own for own, _ in samples)
        floor = min(floor for _, floor in samples)
        result[key] = {"ns": own, "floor_ns": floor, "ratio": own / floor}
    return result


def read_counts(folder: Path) -> dict[str, float]:
    """Instructions per operation: the difference of two runs, divided by that of their lengths."""
    totals: dict[str, dict[int, int]] = {}
    for file in folder.glob("callgrind.*"):
        text = file.read_text(encoding="utf-8")
        mark = re.search(r"Client Request: (\w+) (\d+)", text)
        total = re.search(r"^(?:summary|totals): (\d+)", text, re.MULTILINE)
        if mark and total:
            totals.setdefault(mark[1], {})[int(mark[2])] = int(total[1])
    counts = {}
    for row in rows.ROWS:
        if row.key in totals:
            (n1, short), (n2, long) = sorted(totals[row.key].items())
            counts[row.key] = (long - short) / (n2 - n1) / rows.UNROLL / row.per
    return counts


def instructions(peer: build.Peer) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        output = f"--callgrind-out-file={folder}/callgrind.out"
        measure(peer, "count", prefix=("valgrind", "--tool=callgrind", output))
        return read_counts(Path(folder))


def cpu_name() -> str:
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    found = re.search(r"model name\s*:\s*(.*)", text)
    return found.group(1) if found else platform.machine()


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


def behaviour_table(answers: dict[str, dict[str, str]]) -> list[str]:
    lines = [
        "",
        f"| behaviour | {' | '.join(map(label, answers))} |",
        "|---|" + "---|" * len(answers),
    ]
    for probe in behaviour.PROBES:
        cells = [answers[name].get(probe.__name__, "-") for name in answers]
        lines.append(f"| {(probe.__doc__ or '').rstrip('.')} | {' | '.join(cells)} |")
    return lines


def circumstances(ready: dict[str, build.Peer], missing: dict[str, str]) -> dict[str, Any]:
    """Return what a reader must know to judge the figures."""
    python = next(iter(ready.values())).python
    version = "import sys; print(sys.version.split(' (')[0])"
    return {
        "date": date.today().isoformat(),
        "python": build.run(python, "-c", version),
        "compiler": build.run("g++", "-dumpfullversion"),
        "cpu": cpu_name(),
        "peers": {name: peer.version for name, peer in ready.items()},
        "missing": missing,
    }


def heading(data: dict[str, Any]) -> list[str]:
    lines = [
        f"{data['date']}, CPython {data['python']}, g++ {data['compiler']}, {data['cpu']}.",
        "Made by `make bench`; every peer exports the same small library.",
        "",
    ]
    lines += [f"- {label(name)}: {version}" for name, version in data["peers"].items()]
    lines += [f"- {label(name)}: not measured ({why})" for name, why in data["missing"].items()]
    return lines


def write_results(name: str, data: dict[str, Any], text: str) -> None:
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.md").write_text(text, encoding="utf-8")
    (RESULTS / f"{name}.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    print(text)


def summary(data: dict[str, Any]) -> list[str]:
    """The table of the README: ours beside nanobind and the reference release."""
    counts, others = data["instructions"], ("nanobind", "reference")
    if any(name not in counts for name in ("ours", *others)):
        return []
    heads = ["ours, instructions", *others, *(f"time of {name}" for name in others)]
    lines = ["", "Instructions, and how many times the CPU time of ours the others take.", ""]
    lines += [f"| operation | {' | '.join(heads)} |", "|---|" + "---:|" * len(heads)]
    for row in rows.ROWS:
        ratio = {name: data["time"][name][row.key]["ratio"] for name in ("ours", *others)}
        cells = [f"{counts[name][row.key]:.0f}" for name in ("ours", *others)]
        cells += [f"{ratio[name] / ratio['ours']:.1f}x" for name in others]
        lines.append(f"| {row.title} | {' | '.join(cells)} |")
    return lines


def report(data: dict[str, Any]) -> str:
    lines = ["# Python: ours and its peers side by side", "", *heading(data)]
    lines += summary(data)
    lines += ["", "Promises, tried out with each peer's defaults."]
    lines += behaviour_table(data["behaviour"])
    timed = [name for name in data["peers"] if name != "floor"]
    lines += ["", "CPU time as a multiple of the floor's, measured in turns in one process."]
    lines += table(
        "operation", timed, lambda p, k: data["time"].get(p, {}).get(k, {}).get("ratio"), True
    )
    if data["instructions"]:
        lines += ["", "Instructions per operation."]
        lines += table(
            "operation",
            list(data["peers"]),
            lambda p, k: data["instructions"].get(p, {}).get(k),
            False,
        )
    return "\n".join(lines) + "\n"


def measure_peer(peer: build.Peer, data: dict[str, Any], rounds: int, count: bool) -> None:
    if peer.name != "floor":
        progress(f"trying and timing {peer.name}")
        data["behaviour"][peer.name] = build.ask(peer, "behaviour.py")
        data["time"][peer.name] = times(peer, rounds)
    if count:
        progress(f"counting instructions of {peer.name}")
        data["instructions"][peer.name] = instructions(peer)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--peers", default=",".join(build.PREPARE))
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--no-count", action="store_true", help="skip callgrind")
    options = parser.parse_args()
    ready, missing = build.prepare(list(dict.fromkeys(["floor", *options.peers.split(",")])))
    if "floor" not in ready:
        sys.exit(f"the floor cannot be built: {missing['floor']}")
    python = ready["floor"].python
    build.extension(python, "bench_marks", build.HERE / "marks.c", compiler="gcc")
    data = circumstances(ready, missing)
    data.update(behaviour={}, time={}, instructions={})
    # One core for everything: moving between cores costs more than what is measured.
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    count = not options.no_count and shutil.which("valgrind") is not None
    if not count:
        progress("instructions are not counted" + ("" if options.no_count else ": no valgrind"))
    for name, peer in ready.items():
        try:
            measure_peer(peer, data, options.rounds, count)
        except build.Unavailable as reason:
            data["missing"][name] = str(reason)
            progress(f"  not measured: {reason}")
    data["peers"] = {name: text for name, text in data["peers"].items() if name not in missing}
    write_results("python", data, report(data))


if __name__ == "__main__":
    main()
