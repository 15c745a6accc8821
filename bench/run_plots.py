# SPDX-License-Identifier: Apache-2.0
"""Pictures of the tables: reads bench/results/*.json, writes SVG files beside them.

Runs in an environment with matplotlib; `python bench/run_plots.py` makes it (.cache/bench/plots)
and starts itself there.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent / "python"))
import rows

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"

SHOWN = ("ours", "nanobind", "pybind11", "cython", "pyo3", "reference")
NAMES = {
    "ours": "Tether",
    "adopted": "Tether, old client",
    "cython": "Cython",
    "pyo3": "PyO3",
    "reference": "apache-tvm-ffi",
    "slots": "pure Python",
    "floor": "C floor",
}
COLOURS = {
    "ours": "#d1495b",
    "adopted": "#e8a5ad",
    "nanobind": "#2e6f95",
    "pybind11": "#6aa5c9",
    "cython": "#8d9f47",
    "pyo3": "#c58b3b",
    "reference": "#555555",
    "slots": "#aaaaaa",
    "floor": "#111111",
}


def read(name: str) -> dict[str, Any] | None:
    file = RESULTS / f"{name}.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else None


def caption(data: dict[str, Any]) -> str:
    return f"{data['date']}, CPython {data['python']}, g++ {data['compiler']}, {data['cpu']}"


def save(figure: Any, name: str) -> None:
    # No date and fixed ids: the same figures give the same file.
    figure.savefig(RESULTS / f"{name}.svg", metadata={"Date": None}, bbox_inches="tight")
    print(f"bench/results/{name}.svg")


def bars(plt: Any, data: dict[str, Any], numbers: Any, axis_title: str, name: str) -> None:
    """Horizontal bars, a group per row; numbers(peer, row key) may be None."""
    peers = [peer for peer in SHOWN if peer in data["peers"]]
    keys = [row for row in rows.ROWS if numbers("ours", row.key) is not None]
    figure, axes = plt.subplots(figsize=(9, 0.52 * len(keys) + 1.2))
    height = 0.8 / len(peers)
    for position, peer in enumerate(peers):
        places = [line + position * height for line in range(len(keys))]
        values = [numbers(peer, row.key) or 0 for row in keys]
        axes.barh(places, values, height, label=NAMES.get(peer, peer), color=COLOURS[peer])
    middle = (len(peers) - 1) * height / 2
    axes.set_yticks([line + middle for line in range(len(keys))])
    axes.set_yticklabels([row.title.replace("`", "") for row in keys])
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel(f"{axis_title}\n{caption(data)}", fontsize=8)
    axes.grid(axis="x", which="both", alpha=0.25)
    axes.legend(fontsize=8, loc="lower center", bbox_to_anchor=(0.4, 1), ncols=len(peers))
    save(figure, name)


def plot_rows(plt: Any, data: dict[str, Any]) -> None:
    def ratio(peer: str, key: str) -> float | None:
        return data["time"].get(peer, {}).get(key, {}).get("ratio")

    bars(plt, data, ratio, "CPU time as a multiple of a hand-written C extension's", "time")
    counts = data["instructions"]
    if counts:
        title = "instructions per operation"
        bars(plt, data, lambda peer, key: counts.get(peer, {}).get(key), title, "instructions")


def plot_flat(plt: Any, data: dict[str, Any]) -> None:
    sizes = data["flat"].get("ours")
    if not sizes:
        return
    figure, axes = plt.subplots(figsize=(7, 4))
    for key in next(iter(sizes.values())):
        if not key.startswith("sweep"):
            label = key.replace("`", "")
            axes.plot([int(n) for n in sizes], [sizes[n][key] for n in sizes], "o-", label=label)
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    axes.set_ylabel("ns per operation")
    axes.set_xlabel(f"live objects with live wrappers\n{caption(data)}", fontsize=8)
    axes.grid(alpha=0.25)
    axes.legend(fontsize=8)
    save(figure, "flat")


def plot_threads(plt: Any, data: dict[str, Any]) -> None:
    tables = {name: table for name, table in data["threads"].items() if table}
    if not tables:
        return
    keys = list(next(iter(tables.values())))
    figure, axes = plt.subplots(figsize=(9, 0.5 * len(keys) + 1.2))
    height = 0.8 / len(tables)
    for position, (peer, table) in enumerate(tables.items()):
        last = list(table[keys[0]])[-1]
        pairs = [(table[key][last], table[key]["1"]) for key in keys]
        values = [many / one if many and one else 0 for many, one in pairs]
        places = [line + position * height for line in range(len(keys))]
        axes.barh(places, values, height, label=NAMES.get(peer, peer), color=COLOURS[peer])
    axes.set_yticks([line + 0.4 - height / 2 for line in range(len(keys))])
    axes.set_yticklabels(keys)
    axes.invert_yaxis()
    axes.axvline(1, color="black", linewidth=0.6)
    axes.set_xlabel(f"rate of {last} threads over that of one\n{caption(data)}", fontsize=8)
    axes.grid(axis="x", alpha=0.25)
    axes.legend(fontsize=8, loc="lower center", bbox_to_anchor=(0.4, 1), ncols=len(tables))
    save(figure, "threads")


def draw() -> None:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "bench"
    import matplotlib.pyplot as plt

    for name, plot in (("python", plot_rows), ("scale", plot_flat), ("threads", plot_threads)):
        data = read(name)
        if data is None:
            print(f"no bench/results/{name}.json: not drawn", file=sys.stderr)
        else:
            plot(plt, data)


def main() -> None:
    if "--here" in sys.argv:
        draw()
        return
    import setup_peers as build

    try:
        python = build.environment("plots", "matplotlib==3.11.2")
    except build.Unavailable as reason:
        print(f"no pictures: {reason}", file=sys.stderr)
        return
    sys.exit(subprocess.run([python, __file__, "--here"], check=False).returncode)


if __name__ == "__main__":
    main()
