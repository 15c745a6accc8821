# SPDX-License-Identifier: Apache-2.0
"""Importing the package, converting values, errors: this tree beside the reference release.

    python bench/run_package.py [--rounds 9] [--seconds N]

Every measurement is a fresh process; the two take turns. Writes bench/results/package.md and
package.json.
"""

from __future__ import annotations

import os
import resource
import statistics
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent / "python"))
import report
import setup_peers as build
from report import progress

PREPARE = """
import tvm_ffi, traceback
from tvm_ffi.core import TypeSchema
numbers = list(range(100_000))
of_ints = tvm_ffi.get_global_func("testing.schema_id_arr_int")
schema = TypeSchema("Array", (TypeSchema("int"),))
table = TypeSchema.from_annotation(dict[str, list[int]])
value = {"a": [1, 2, 3], "b": [4]}
apply = tvm_ffi.get_global_func("testing.apply")
raise_ = tvm_ffi.get_global_func("testing.test_raise_error")
def fail():
    raise ValueError("x")
def catch(function, *arguments):
    try:
        function(*arguments)
    except ValueError:
        pass
"""
# Statement and how often it runs in one measurement; none: the import.
ROWS = {
    "import tvm_ffi": ("", 1),
    "list of 10^5 ints to a function of Array<int>": ("of_ints(numbers)", 20),
    "convert(list of 10^5 ints)": ("tvm_ffi.convert(numbers)", 20),
    "Array(list of 10^5 ints)": ("tvm_ffi.Array(numbers)", 20),
    "TypeSchema Array[int], list of 10^5 ints": ("schema.convert(numbers)", 3),
    "TypeSchema Dict[str, List[int]], small dict": ("table.convert(value)", 2000),
    "error raised in C++, caught in Python": ("catch(raise_, 'ValueError', 'x')", 500),
    "exception through C++, caught in Python": ("catch(apply, fail)", 500),
}
TIME = """
import timeit
timer = timeit.Timer({statement!r}, globals=globals())
timer.timeit(1)
print(min(timer.repeat(5, {count})) / {count} * 1e6)
"""
LOADED = "import sys, tvm_ffi; print(len(sys.modules), *{'numpy', 'torch'} & set(sys.modules))"


def python(peer: build.Peer, program: str) -> str:
    return build.run(peer.python, "-c", program, env={**os.environ, **peer.environment})


def cpu_us(peer: build.Peer, program: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    python(peer, program)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime) * 1e6


def measure(peer: build.Peer, statement: str, count: int) -> float:
    """Return the microseconds one run of the statement takes."""
    if not statement:
        return cpu_us(peer, "import tvm_ffi") - cpu_us(peer, "pass")
    return float(python(peer, PREPARE + TIME.format(statement=statement, count=count)))


def modules(peer: build.Peer) -> dict[str, Any]:
    number, *heavy = python(peer, LOADED).split()
    return {"modules": int(number), "numpy or torch": heavy}


def measure_all(peers: list[build.Peer], rounds: int, budget: report.Budget) -> dict[str, Any]:
    """Return {row: best microseconds of both, median ratio}."""
    pairs: dict[str, list[list[float]]] = {title: [] for title in ROWS}
    for number in budget.rounds("package", rounds):
        progress(f"package, round {number + 1} of {rounds}")
        for title, (statement, count) in ROWS.items():
            pairs[title].append([measure(peer, statement, count) for peer in peers])
    result = {}
    for title, found in pairs.items():
        own, other = (min(side) for side in zip(*found, strict=True))
        ratio = statistics.median(a / b for a, b in found)
        result[title] = {"ours": own, "reference": other, "ratio": ratio}
    return result


def page(data: dict[str, Any]) -> str:
    loaded = data["loaded"]
    heavy = {name: ", ".join(about["numpy or torch"]) or "none" for name, about in loaded.items()}
    lines = [
        "# The package: import, conversion, errors",
        "",
        *report.heading(data),
        "",
        "Best times in microseconds and the median ratio of neighbouring measurements; import: CPU",
        "time of a process that imports, less that of one that does not.",
        "",
        "| | ours | reference | ratio |",
        "|---|---:|---:|---:|",
    ]
    for title, row in data["rows"].items():
        lines.append(
            f"| {title} | {row['ours']:.1f} | {row['reference']:.1f} | {row['ratio']:.2f} |"
        )
    ours, reference = (loaded[name]["modules"] for name in ("ours", "reference"))
    lines.append(
        f"| modules loaded by the import | {ours} | {reference} | {ours / reference:.2f} |"
    )
    lines.append(f"| numpy, torch among them | {heavy['ours']} | {heavy['reference']} | |")
    return "\n".join(lines) + "\n"


def main() -> None:
    options, budget = report.arguments(("--rounds", {"type": int, "default": 9}))
    ready, missing = build.prepare(["ours", "reference"])
    if missing:
        progress(f"import and conversion are not compared: {missing}")
        return
    data = report.circumstances(ready, missing)
    data["shortened"] = budget.shortened
    data["loaded"] = {name: modules(peer) for name, peer in ready.items()}
    report.one_core()
    data["rows"] = measure_all([ready["ours"], ready["reference"]], options.rounds, budget)
    report.write("package", data, page(data))


if __name__ == "__main__":
    main()
