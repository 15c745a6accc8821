# SPDX-License-Identifier: Apache-2.0
"""Calls with tensors on a GPU, this tree beside the reference release, in turns.

    python bench/run_gpu.py --ours PACKAGE --reference PACKAGE [--rounds 9] [--out FOLDER]

Needs a GPU of NVIDIA, nvcc, and an interpreter with torch; rows of CuPy and JAX are measured where
they are installed. A PACKAGE is a folder to import tvm_ffi from. `make bench` does not run this:
its machine need not have a GPU. Writes gpu.md and gpu.json.
"""

from __future__ import annotations

import argparse
import datetime
import json
import statistics
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from timing_worker import Worker

HERE = Path(__file__).resolve().parent
ROWS = {
    "call(torch x3)": "nothing(t1, t2, t3)",
    "call(torch x3), GIL kept": "nothing_kept(t1, t2, t3)",
    "call(torch on the CPU x3)": "nothing(c1, c2, c3)",
    "call(own Tensor x3)": "nothing(x1, x2, x3)",
    "call(numpy x3)": "nothing(n1, n2, n3)",
    "call(CuPy x3)": "nothing(p1, p2, p3)",
    "call(JAX x3)": "nothing(j1, j2, j3)",
    "from_dlpack(torch)": "from_dlpack(t1)",
    "torch.from_dlpack(Tensor)": "torch.from_dlpack(x1)",
    "torch.from_dlpack(its capsule)": "torch.from_dlpack(x1.__dlpack__())",
    "kernel launch, three tensors": "launch(t1, t2, t3)",
    "kernel launch, GIL kept": "launch_kept(t1, t2, t3)",
}
FLOORS = {"view": "a view of a tensor", "stream": "the current stream", "launch": "a launch"}
SLOW = ("JAX", "CuPy", "torch.from_dlpack", "launch")


def start(package: str, folder: Path) -> Worker:
    """Compile the functions for one of the packages, and start a process with it."""
    library = folder / f"functions_{Path(package).name}.so"
    compile_functions(package, library)
    environment = {"PYTHONPATH": package, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    return Worker([sys.executable, HERE / "gpu" / "worker.py", library], environment)


def compile_functions(package: str, target: Path) -> None:
    root = Path(package) / "tvm_ffi"
    command = ["nvcc", "-O2", "-std=c++17", "-shared", "-Xcompiler", "-fPIC,-fvisibility=hidden"]
    command += [f"-I{root / 'include'}", f"-I{sysconfig.get_path('include')}"]
    command += [str(HERE / "gpu" / "functions.cu"), "-o", str(target)]
    command += [f"-L{root / 'lib'}", "-ltvm_ffi"]
    subprocess.run(command, check=True)


def measure_all(workers: dict[str, Worker], rounds: int) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, list[Any]]] = {}
    for _ in range(rounds):
        for title, statement in {**ROWS, **{key: key for key in FLOORS}}.items():
            count = 2000 if title.startswith(SLOW) or "x3)" not in title else 20000
            for name, worker in workers.items():
                cell = found.setdefault(title, {}).setdefault(name, [])
                cell.append(worker.time(statement, count))
    result: dict[str, dict[str, Any]] = {}
    for title, row in found.items():
        result[title] = {
            name: min(times) if all(isinstance(t, float) for t in times) else str(times[0])
            for name, times in row.items()
        }
        first, *others = row.values()
        if others and isinstance(first[0], float) and isinstance(others[0][0], float):
            pairs = zip(first, others[0], strict=True)
            result[title]["ratio"] = statistics.median(a / b for a, b in pairs)
    return result


def page(data: dict[str, Any]) -> str:
    names = list(data["packages"])
    lines = [
        "# Tensors on a GPU",
        "",
        f"{data['date']}, {data['device']}, Python {data['python']}, torch {data['torch']}, "
        + ", ".join(data["have"]),
        "",
        "Made by `python bench/run_gpu.py` on a machine that has one. Best times in nanoseconds,",
        "and the median ratio of neighbouring measurements. The called function does nothing;",
        "`launch` starts a kernel.",
        "",
        "| statement | " + " | ".join(names) + " | ratio |",
        "|---|" + "---:|" * (len(names) + 1),
    ]
    for title in ROWS:
        row = data["rows"][title]
        cells = [f"{row[n]:.0f}" if isinstance(row[n], float) else row[n] for n in names]
        ratio = f"{row['ratio']:.2f}" if "ratio" in row else ""
        lines.append(f"| {title} | " + " | ".join(cells) + f" | {ratio} |")
    lines += ["", "What no frontend can do without, from C++:", "", "| | ns |", "|---|---:|"]
    for key, text in FLOORS.items():
        lines.append(f"| {text} | {min(data['rows'][key][n] for n in names):.0f} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--ours", required=True)
    parser.add_argument("--reference", required=True)
    parser.add_argument("--before", help="an older build of this tree")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--out", type=Path, default=HERE / "results")
    options = parser.parse_args()
    packages = {"ours": options.ours, "reference": options.reference}
    if options.before:
        packages["before"] = options.before
    with tempfile.TemporaryDirectory() as folder:
        workers = {name: start(path, Path(folder)) for name, path in packages.items()}
        rows = measure_all(workers, options.rounds)
    about = workers["ours"].about
    data = {
        "date": datetime.date.today().isoformat(),
        "device": about["device"],
        "python": ".".join(map(str, sys.version_info[:3])),
        "torch": about["torch"],
        "have": [name for name in about["have"] if " " in name],
        "packages": {name: worker.about["version"] for name, worker in workers.items()},
        "rows": rows,
    }
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "gpu.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    (options.out / "gpu.md").write_text(page(data), encoding="utf-8")
    print(page(data))


if __name__ == "__main__":
    main()
