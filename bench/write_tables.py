# SPDX-License-Identifier: Apache-2.0
"""Writes the figures of bench/results/*.json into README.md and docs/speed.md.

    python bench/write_tables.py            between the marker comments of both files
    python bench/write_tables.py --check    only say whether they are up to date

A block begins with `<!-- bench: NAME -->` and ends with `<!-- /bench -->`; BLOCKS has the names.
Standard library only.
"""

from __future__ import annotations

import json
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent / "python"))
import rows

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results"
PAGES = ("README.md", "docs/speed.md")

# The promises of README, with the probes of bench/python/behaviour.py that stand for each.
PROMISES = {
    "the same Python object each time: `a.x is a.x`, `f(x) is x`": "p1_",
    "`id()` survives drop and refetch": "p2_",
    "so do attributes and the Python subclass": "p3_",
    "a weak reference lives as long as the C++ object": "p4_",
    "nothing leaks over 10^5 objects": "p5_",
    "a reference cycle through Python and C++ is collected, but not while C++ uses it": "p6_",
    "a C++ thread never waits for Python to drop an object": "p9_",
}
PROMISED = {"ours": "Tether", "nanobind": "nanobind", "pybind11": "pybind11", "pyo3": "PyO3"}
PROMISED |= {"reference": "apache-tvm-ffi"}
PEERS = {"nanobind": "nanobind", "pybind11": "pybind11", "cython": "Cython", "pyo3": "PyO3"}
PEERS |= {"reference": "apache-tvm-ffi"}
CLOSE = 0.95  # of our time: what is nearer counts as equal

OTHERS = {"nanobind": "nanobind", "reference": "apache-tvm-ffi"}
GROUPS = {  # of docs/speed.md
    "a call": ("add", "add_released", "identity", "callback"),
    "a field": ("int_get", "int_set", "object_live", "object_refetch", "object_set"),
    "construction": ("construct", "factory"),
    "a container": ("index", "iterate", "lookup"),
    "text": ("string",),
}


def read(name: str) -> dict[str, Any]:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def times_ours(data: dict[str, Any], peer: str, key: str) -> float | None:
    """How many times the CPU time of ours the peer takes."""
    ratio = [data["time"].get(name, {}).get(key, {}).get("ratio") for name in (peer, "ours")]
    return ratio[0] / ratio[1] if all(ratio) else None


def paragraph(text: str) -> list[str]:
    return textwrap.wrap(text, 110, break_long_words=False, break_on_hyphens=False)


def number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def when(data: dict[str, Any]) -> str:
    return f"{data['date']}, CPython {data['python']}, g++ {data['compiler']}, {data['cpu']}"


def summary() -> list[str]:
    data = read("python")
    counts, known = data["instructions"], dict(data["peers"])
    known.update({n: f"{n}: not measured ({why})" for n, why in data["missing"].items()})
    others = "; ".join(known[name] for name in OTHERS if name in known)
    heads = ["Tether, instructions", *OTHERS.values()]
    heads += [f"time of {name}" for name in OTHERS.values()]
    about = (
        f"{when(data)}; {others}. Instructions per operation, and how many times "
        "the CPU time of Tether the others take (nanobind is ahead where the figure is below 1.0):"
    )
    lines = [
        *paragraph(about),
        "",
        f"| operation | {' | '.join(heads)} |",
        "|---|" + "---:|" * len(heads),
    ]
    for row in rows.ROWS:
        cells = [number(counts.get(n, {}).get(row.key), ".0f") for n in ("ours", *OTHERS)]
        factors = [times_ours(data, name, row.key) for name in OTHERS]
        cells += ["-" if factor is None else f"{factor:.1f}x" for factor in factors]
        lines.append(f"| {row.title} | {' | '.join(cells)} |")
    return lines


def scale_lines() -> list[str]:
    data = read("scale")
    million, exits, flat = data["million"], data["exit"], data["flat"]
    names = [name for name in ("ours", "adopted", "nanobind", "reference") if name in million]
    titles = {"ours": "Tether", "adopted": "Tether, old client", **OTHERS}
    lines = [
        f"A million objects, fetched and dropped ({data['date']}):",
        "",
        f"| | {' | '.join(titles.get(name, name) for name in names)} |",
        "|---|" + "---:|" * len(names),
    ]
    for title, key, digits in (
        ("bytes of a live wrapper", "live wrapper", 0),
        ("first fetch, ns", "first fetch", 0),
        ("fetch, live, ns", "fetch, live", 0),
        ("refetch + drop, ns", "refetch + drop", 0),
        ("full collection, all live, ms", "collection, all live", 0),
    ):
        cells = [number(million[name].get(key), f".{digits}f") for name in names]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    for title, key in (("dropped", "dropped"), ("live", "live")):
        found = [exits.get(name, {}).get(key) for name in names]
        cells = ["-" if seconds is None else f"{seconds * 1e3:.0f}" for seconds in found]
        lines.append(f"| interpreter exit with all of them {title}, ms | {' | '.join(cells)} |")
    sizes = flat.get("ours", {})
    if len(sizes) > 1:
        first, *more = sizes
        last = more[-1]
        worst = max(
            sizes[size][key] / sizes[first][key]
            for size in more
            for key in sizes[first]
            if "random" not in key
        )
        exponents = [len(size) - 1 for size in (first, last)]
        flatness = (
            f"From 10^{exponents[0]} to 10^{exponents[1]} live objects no operation on a working "
            f"set, and no pass over all of them in turn, takes more than {worst:.2f} times as long."
        )
        lines += ["", *paragraph(flatness)]
    return lines


def ranges() -> list[str]:
    data = read("python")
    lines = [
        *paragraph(f"How many times the CPU time of Tether the others take ({when(data)}):"),
        "",
        f"| | {' | '.join(data['peers'].get(name, name) for name in OTHERS)} |",
        "|---|" + "---:|" * len(OTHERS),
    ]
    for title, keys in GROUPS.items():
        cells = []
        for name in OTHERS:
            found = [f for f in (times_ours(data, name, key) for key in keys) if f is not None]
            low, high = (f"{min(found):.1f}", f"{max(found):.1f}") if found else ("-", "-")
            cells.append(low if low == high else f"{low} to {high}")
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return lines


def package_lines() -> list[str]:
    data = read("package")
    row, loaded = data["rows"]["import tvm_ffi"], data["loaded"]
    heavy = ", ".join(loaded["ours"]["numpy or torch"]) or "neither numpy nor torch"
    return paragraph(
        f"`import tvm_ffi` takes {row['ours'] / 1e3:.0f} ms of CPU time, {row['ratio']:.2f} times "
        f"that of apache-tvm-ffi, and loads {loaded['ours']['modules']} modules instead of "
        f"{loaded['reference']['modules']}; {heavy} is among them ({data['date']})."
    )


def kept(answers: dict[str, str] | None, prefix: str) -> str:
    """Say whether a peer keeps a promise: all of its probes, some of them, none."""
    found = [a for probe, a in (answers or {}).items() if probe.startswith(prefix)]
    if not found:
        return "-"
    good = sum(answer == "yes" for answer in found)
    return "yes" if good == len(found) else "partly" if good else "no"


def promises() -> list[str]:
    behaviour = read("python")["behaviour"]
    lines = [f"| | {' | '.join(PROMISED.values())} |", "|---|" + ":---:|" * len(PROMISED)]
    for title, prefix in PROMISES.items():
        cells = [kept(behaviour.get(name), prefix) for name in PROMISED]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return lines


def rows_behind() -> list[tuple[str, str, float]]:
    """Every row in which a peer takes less time than ours: the fastest, and its time over ours."""
    data = read("python")
    found = []
    for row in rows.ROWS:
        times = {PEERS[name]: times_ours(data, name, row.key) for name in PEERS}
        ahead = {name: factor for name, factor in times.items() if factor and factor < CLOSE}
        if ahead:
            best = min(ahead, key=lambda name: ahead[name])
            found.append((row.title, best, ahead[best]))
    return found


def behind() -> list[str]:
    lines = ["| operation | the fastest peer | its CPU time, ours is 1 |", "|---|---|---:|"]
    lines += [f"| {title} | {best} | {factor:.2f} |" for title, best, factor in rows_behind()]
    return lines


def behind_in_a_line() -> list[str]:
    cells = [f"{title} ({best} {factor:.2f})" for title, best, factor in rows_behind()]
    return paragraph(
        "**Where another binding is faster** (its CPU time relative to ours): "
        + "; ".join(cells)
        + "."
    )


BLOCKS = {
    "promises": promises,
    "behind": behind,
    "behind_in_a_line": behind_in_a_line,
    "summary": summary,
    "scale": scale_lines,
    "ranges": ranges,
    "package": package_lines,
}


def filled(text: str) -> str:
    def block(match: re.Match[str]) -> str:
        try:
            lines = BLOCKS[match[1]]()
        except FileNotFoundError as error:
            print(f"block '{match[1]}' is left as it is: {error}", file=sys.stderr)
            return match[0]
        return "\n".join([f"<!-- bench: {match[1]} -->", *lines, "<!-- /bench -->"])

    return re.sub(r"<!-- bench: (\w+) -->\n.*?<!-- /bench -->", block, text, flags=re.DOTALL)


def main() -> int:
    stale = []
    for name in PAGES:
        page = ROOT / name
        before = page.read_text(encoding="utf-8")
        after = filled(before)
        if after != before:
            stale.append(name)
            if "--check" not in sys.argv:
                page.write_text(after, encoding="utf-8")
    if "--check" not in sys.argv:
        print("written: " + (", ".join(stale) or "nothing new"))
        return 0
    if stale:
        print(f"not the figures of bench/results: {', '.join(stale)}", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
