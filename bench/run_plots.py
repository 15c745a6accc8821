# SPDX-License-Identifier: Apache-2.0
"""Pictures of the tables: reads bench/results/*.json, writes SVG files beside them.

Runs in an environment with matplotlib; `python bench/run_plots.py` makes it (.cache/bench/plots)
and starts itself there; with `--prepare` it only makes it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent / "python"))
import rows

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"

RANDOM = "all at random"
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


def caption(data: dict[str, Any], peers: list[str]) -> str:
    """Date and versions, in lines that fit under a picture."""
    where = f"{data['date']}, CPython {data['python']}, g++ {data['compiler']}, {data['cpu']}"
    versions = [data["peers"][name].split(",")[0] for name in peers if name in data["peers"]]
    lines = [where, *(["; ".join(versions)] if versions else [])]
    return "\n".join(line for text in lines for line in textwrap.wrap(text, 110))


def save(figure: Any, name: str) -> None:
    # No date and fixed ids: the same figures give the same file. The background is drawn, so that
    # the picture can be read on dark pages as well.
    figure.savefig(
        RESULTS / f"{name}.svg",
        metadata={"Date": None},
        bbox_inches="tight",
        facecolor="white",
        pad_inches=0.2,
    )
    print(f"bench/results/{name}.svg")


def finish(figure: Any, axes: Any, data: dict[str, Any], title: str, below: str, name: str) -> None:
    """Title, legend under it, date and versions at the bottom."""
    handles, labels = axes.get_legend_handles_labels()
    axes.set_title(title, fontsize=13, pad=34)
    axes.legend(
        handles,
        labels,
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        ncols=len(labels),
        fontsize=9,
        frameon=False,
        columnspacing=1.2,
        handlelength=1.2,
    )
    axes.set_xlabel(below, fontsize=10)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    peers = [peer for peer in SHOWN[1:] if peer in data["peers"]]
    # The same distance below the axes, however high the picture is.
    low = -0.62 / (figure.get_size_inches()[1] * axes.get_position().height)
    axes.text(
        0.5,
        low,
        caption(data, peers),
        transform=axes.transAxes,
        ha="center",
        va="top",
        fontsize=8,
        color="#444444",
    )
    save(figure, name)


def plain(axes: Any) -> None:
    """Numbers instead of powers on a logarithmic axis."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_axisbelow(True)
    axes.grid(axis="x", which="major", alpha=0.3)


def dots(plt: Any, data: dict[str, Any], numbers: Any, title: str, unit: str, name: str) -> None:
    """A dot with its value for every peer, a group per row; numbers(peer, row key) may be None.

    Not bars: on a logarithmic axis their length means nothing.
    """
    peers = [peer for peer in SHOWN if peer in data["peers"]]
    keys = [row for row in rows.ROWS if numbers("ours", row.key) is not None]
    figure, axes = plt.subplots(figsize=(9.5, 0.85 * len(keys) + 1))
    height = 0.84 / len(peers)
    for position, peer in enumerate(peers):
        found = [
            (line + position * height, numbers(peer, row.key)) for line, row in enumerate(keys)
        ]
        known = [(place, value) for place, value in found if value is not None]
        places, values = [place for place, _ in known], [value for _, value in known]
        axes.plot(
            values, places, "o", label=NAMES.get(peer, peer), color=COLOURS[peer], markersize=5
        )
        for place, value in known:
            text = f"{value:.0f}" if value >= 20 else f"{value:.2f}"
            axes.annotate(
                text,
                (value, place),
                (6, 0),
                textcoords="offset points",
                va="center",
                fontsize=7,
                color=COLOURS[peer],
            )
    for line in range(1, len(keys)):
        axes.axhline(line - height, color="#dddddd", linewidth=0.6, zorder=0)
    middle = (len(peers) - 1) * height / 2
    axes.set_yticks([line + middle for line in range(len(keys))])
    axes.set_yticklabels([row.title.replace("`", "") for row in keys], fontsize=10)
    axes.set_ylim(len(keys) - 0.1, -0.3)
    plain(axes)
    if name == "time":
        axes.axvline(1, color="black", linewidth=0.8, zorder=0)
    finish(figure, axes, data, title, unit, name)


def plot_rows(plt: Any, data: dict[str, Any]) -> None:
    def ratio(peer: str, key: str) -> float | None:
        return data["time"].get(peer, {}).get(key, {}).get("ratio")

    unit = "CPU time, multiple of a hand-written C extension (= 1); less is better"
    dots(plt, data, ratio, "Time of one operation from Python", unit, "time")
    counts = data["instructions"]
    if counts:
        title = "Instructions of one operation from Python"
        unit = "instructions (callgrind); fewer is better"
        dots(
            plt, data, lambda peer, key: counts.get(peer, {}).get(key), title, unit, "instructions"
        )


def plot_flat(plt: Any, data: dict[str, Any]) -> None:
    """Left, what stays flat: growth over 10^3 objects. Right, what the caches of the machine do."""
    sizes = data["flat"].get("ours")
    if not sizes:
        return
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4.2), layout="constrained")
    first = next(iter(sizes))
    numbers = [int(size) for size in sizes]
    for key in sizes[first]:
        if key != RANDOM:
            growth = [sizes[size][key] / sizes[first][key] for size in sizes]
            left.plot(numbers, growth, "o-", label=key.replace("`", ""), markersize=4)
    left.axhline(1.5, color="black", linewidth=0.8, linestyle=":")
    left.set_ylim(0, 2.6)
    left.set_ylabel(f"time per operation, multiple of that at {int(first)}")
    left.set_title("Tether: a working set, and all in turn", fontsize=11)
    for peer in ("ours", "adopted", "floor", "nanobind", "reference"):
        found = data["flat"].get(peer, {})
        times = [found[size].get(RANDOM) if size in found else None for size in sizes]
        if all(times):
            label = NAMES.get(peer, peer)
            right.plot(numbers, times, "o-", label=label, color=COLOURS[peer], markersize=4)
    right.set_ylim(bottom=0)
    right.set_ylabel("ns per fetch")
    right.set_title("c[i] at random: cache misses of the machine", fontsize=11)
    for axes in (left, right):
        axes.set_xscale("log")
        axes.set_xticks(numbers, [f"$10^{len(size) - 1}$" for size in sizes])
        axes.minorticks_off()
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8, loc="upper left", ncols=2 if axes is left else 1, frameon=False)
        axes.set_xlabel("live objects and wrappers")
    figure.supxlabel(caption(data, []), fontsize=8, color="#444444")
    save(figure, "flat")


def plot_threads(plt: Any, data: dict[str, Any]) -> None:
    tables = {name: table for name, table in data["threads"].items() if table}
    if not tables:
        return
    keys = list(next(iter(tables.values())))
    figure, axes = plt.subplots(figsize=(9.5, 0.5 * len(keys) + 1))
    height = 0.8 / len(tables)
    for position, (peer, table) in enumerate(tables.items()):
        last = list(table[keys[0]])[-1]
        pairs = [(table[key][last], table[key]["1"]) for key in keys]
        values = [many / one if many and one else 0 for many, one in pairs]
        places = [line + position * height for line in range(len(keys))]
        axes.barh(places, values, height, label=NAMES.get(peer, peer), color=COLOURS[peer])
        for place, value in zip(places, values, strict=True):
            if not value:  # too few undisturbed rounds
                axes.text(0.01, place, "not measured", va="center", fontsize=6, color=COLOURS[peer])
    axes.set_yticks([line + 0.4 - height / 2 for line in range(len(keys))])
    axes.set_yticklabels(keys, fontsize=10)
    axes.invert_yaxis()
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.grid(axis="x", alpha=0.3)
    unit = f"operations per second of {last} threads over those of one ({last} is ideal)"
    finish(figure, axes, data, "Threads without the interpreter lock", unit, "threads")


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
    if "--prepare" in sys.argv:
        return
    sys.exit(subprocess.run([python, __file__, "--here"], check=False).returncode)


if __name__ == "__main__":
    main()
