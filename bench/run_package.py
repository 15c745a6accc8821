# SPDX-License-Identifier: Apache-2.0
"""Importing the package and converting values, this tree beside the reference release, in turns.

    python bench/run_package.py --reference FOLDER [--rounds 15]

FOLDER is where pip installed the reference release (``pip install --target FOLDER``). Every
measurement is a fresh process of the interpreter that runs this script; the two take turns. Prints
a table and writes bench/results/package.md.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OURS = ROOT / "build" / "release" / "package"
RESULTS = ROOT / "bench" / "results" / "package.md"

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
# Statement and how often it runs in one measurement; importing runs once in a process.
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
IMPORT = """
import time
begin = time.perf_counter()
import tvm_ffi
print(time.perf_counter() - begin)
"""
TIME = """
import timeit
timer = timeit.Timer({statement!r}, globals=globals())
timer.timeit(1)
print(min(timer.repeat(5, {count})) / {count})
"""


def measure(package: Path, statement: str, count: int) -> float:
    """Return the seconds one run of the statement takes."""
    program = PREPARE + TIME.format(statement=statement, count=count) if statement else IMPORT
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(package)},
    )
    if done.returncode != 0:
        raise SystemExit(f"{package}: {statement}\n{done.stderr}")
    return float(done.stdout)


def main() -> None:
    """Measure every row and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    lines = [
        f"The package: CPython {platform.python_version()}. Best times in microseconds, median "
        f"ratio of {options.rounds} pairs of measurements.",
        "",
        "| | ours | reference | ratio |",
        "|---|---|---|---|",
    ]
    for title, (statement, count) in ROWS.items():
        pairs = [
            (measure(OURS, statement, count), measure(options.reference, statement, count))
            for _ in range(options.rounds)
        ]
        own, other = (min(side) * 1e6 for side in zip(*pairs, strict=True))
        ratio = statistics.median(a / b for a, b in pairs)
        lines.append(f"| {title} | {own:.1f} | {other:.1f} | {ratio:.2f} |")
        print(lines[-1], file=sys.stderr, flush=True)
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
