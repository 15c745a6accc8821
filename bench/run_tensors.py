# SPDX-License-Identifier: Apache-2.0
"""Tensors across the boundary, this tree beside the reference release, in turns.

    python bench/run_tensors.py --reference FOLDER [--rounds 31]

FOLDER is where pip installed the reference release (``pip install --target FOLDER``); both run in
the interpreter that runs this script, in a process each, and take turns row by row and round by
round. The rows with torch appear where it is installed. Prints a table and writes
bench/results/tensors.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
OURS = ROOT / "build" / "release" / "package"
RESULTS = ROOT / "bench" / "results" / "tensors.md"

# Statement, and what must be installed for it.
ROWS = {
    "numpy array to a function of a tensor view": ("view(a)", "numpy"),
    "numpy array of 4 dimensions, strided": ("view(a4)", "numpy"),
    "torch tensor to a function of a tensor view": ("view(t)", "torch"),
    "torch tensor, returned": ("echo(t)", "torch"),
    "Tensor to a function of a tensor view": ("view(x)", "numpy"),
    "Tensor, returned": ("echo(x)", "numpy"),
    "from_dlpack(numpy array)": ("from_dlpack(a)", "numpy"),
    "from_dlpack(torch tensor)": ("from_dlpack(t)", "torch"),
    "numpy.from_dlpack(Tensor)": ("numpy.from_dlpack(x)", "numpy"),
    "torch.from_dlpack(Tensor)": ("torch.from_dlpack(x)", "torch"),
    "Tensor.shape": ("x.shape", "numpy"),
    "Tensor.dtype": ("x.dtype", "numpy"),
    "Tensor.device": ("x.device", "numpy"),
    'dtype("float32")': ('dtype("float32")', "numpy"),
    'device("cuda:1")': ('device("cuda:1")', "numpy"),
}

WORKER = r"""
import json, sys, time, timeit
import numpy
try:
    import torch
except ImportError:
    torch = None
import tvm_ffi
names = {"numpy": numpy, "torch": torch, "from_dlpack": tvm_ffi.from_dlpack}
names.update(dtype=tvm_ffi.dtype, device=tvm_ffi.device)
names["view"] = tvm_ffi.get_global_func("testing.schema_tensor_view_input")
names["echo"] = tvm_ffi.get_global_func("testing.echo")
names["a"] = numpy.zeros((3, 4), "float32")
names["a4"] = numpy.zeros((4, 4, 4, 4), "float32")[::2, :, ::2]
names["x"] = tvm_ffi.from_dlpack(names["a"])
if torch is not None:
    names["t"] = torch.zeros(3, 4)
print(json.dumps({"torch": torch is not None, "version": tvm_ffi.__version__}), flush=True)
timers = {}
for line in sys.stdin:
    statement, count = json.loads(line)
    if statement not in timers:
        timers[statement] = timeit.Timer(statement, globals=names)
        timers[statement].timeit(200)
    print(timers[statement].timeit(count) / count * 1e9, flush=True)
"""


class Worker:
    """A process that times statements with one of the two packages."""

    def __init__(self, package: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(package)},
        )
        self.about = self.read()

    def read(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("a worker died; its message is above")
        return json.loads(line)

    def time(self, statement: str, count: int) -> float:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([statement, count]) + "\n")
        self.process.stdin.flush()
        return self.read()

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(timeout=60)


def compare(ours: Worker, reference: Worker, statement: str, rounds: int) -> tuple[float, ...]:
    """Return the best time of both and the median ratio of neighbouring measurements."""
    pairs = []
    for _ in range(rounds):
        pairs.append((ours.time(statement, 4000), reference.time(statement, 4000)))
    ratio = statistics.median(own / other for own, other in pairs)
    return min(own for own, _ in pairs), min(other for _, other in pairs), ratio


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=31)
    options = parser.parse_args()
    ours, reference = Worker(OURS), Worker(options.reference)
    lines = [
        f"Tensors across the boundary: CPython {platform.python_version()}, reference release "
        f"{reference.about['version']}. Best times in nanoseconds, median ratio of "
        f"{options.rounds} pairs of measurements.",
        "",
        "| statement | ours | reference | ratio |",
        "|---|---|---|---|",
    ]
    for title, (statement, needs) in ROWS.items():
        if needs == "torch" and not ours.about["torch"]:
            lines.append(f"| {title} | torch is not installed | | |")
            continue
        own, other, ratio = compare(ours, reference, statement, options.rounds)
        lines.append(f"| {title} | {own:.0f} | {other:.0f} | {ratio:.2f} |")
        print(lines[-1], file=sys.stderr, flush=True)
    ours.close()
    reference.close()
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
