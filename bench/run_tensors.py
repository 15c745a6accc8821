# SPDX-License-Identifier: Apache-2.0
"""Tensors across the boundary, this tree beside the reference release, in turns.

    python bench/run_tensors.py [--rounds 31] [--seconds N] [--torch VERSION]

Both run in an environment with numpy, in a process each, and take turns row by row and round by
round. torch is a large download, so its rows are measured only on request. Writes
bench/results/tensors.md and tensors.json.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent / "python"))
import report
import setup_peers as build
from report import progress
from timing_worker import Worker

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


def measure_all(workers: list[Worker], rounds: int, budget: report.Budget) -> dict[str, Any]:
    """Return {row: best nanoseconds of both, median ratio}, or why a row was not measured."""
    torch = workers[0].about["torch"]
    result: dict[str, Any] = {}
    pairs: dict[str, list[list[float]]] = {}
    for number in budget.rounds("tensors", rounds):
        if number % 10 == 0:
            progress(f"tensors, round {number + 1} of {rounds}")
        for title, (statement, needs) in ROWS.items():
            if needs != "torch" or torch:
                found = [worker.time(statement, 4000) for worker in workers]
                pairs.setdefault(title, []).append(found)
    for title in ROWS:
        if title in pairs:
            own, other = (min(side) for side in zip(*pairs[title], strict=True))
            ratio = statistics.median(a / b for a, b in pairs[title])
            result[title] = {"ours": own, "reference": other, "ratio": ratio}
    return result


def page(data: dict[str, Any]) -> str:
    lines = [
        "# Tensors across the boundary",
        "",
        *report.heading(data),
        "",
        "Best times in nanoseconds and the median ratio of neighbouring measurements.",
        *(
            []
            if data["torch"]
            else ["Rows with torch: `python bench/run_tensors.py --torch VERSION`."]
        ),
        "",
        "| statement | ours | reference | ratio |",
        "|---|---:|---:|---:|",
    ]
    for title, row in data["rows"].items():
        cells = f"{row['ours']:.0f} | {row['reference']:.0f} | {row['ratio']:.2f}"
        lines.append(f"| {title} | {cells} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    options, budget = report.arguments(
        ("--rounds", {"type": int, "default": 31}), ("--torch", {"default": ""})
    )
    ready, missing = build.prepare(["ours", "reference"])
    wanted = [build.NUMPY, *([f"torch=={options.torch}"] if options.torch else [])]
    try:
        python = build.environment("tensors", *wanted)
    except build.Unavailable as reason:
        missing["numpy"] = str(reason)
    if missing:
        progress(f"tensors are not compared: {missing}")
        return
    data = report.circumstances(ready, missing)
    data["shortened"] = budget.shortened
    data["peers"].update({text.partition("==")[0]: text for text in wanted})
    folder = build.config(ready["reference"].python, "sysconfig.get_path('purelib')")
    report.one_core()
    workers = [
        Worker([python, "-c", WORKER], {"PYTHONPATH": path})
        for path in (ready["ours"].environment["PYTHONPATH"], folder)
    ]
    data["torch"] = workers[0].about["torch"]
    data["rows"] = measure_all(workers, options.rounds, budget)
    for worker in workers:
        worker.close()
    report.write("tensors", data, page(data))


if __name__ == "__main__":
    main()
