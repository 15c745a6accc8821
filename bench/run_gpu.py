# SPDX-License-Identifier: Apache-2.0
"""Calls with tensors on a GPU, this tree beside the reference release, in turns.

    python bench/run_gpu.py --ours PACKAGE --reference PACKAGE [--rounds 9] [--out FOLDER] [--addon]

Needs a GPU of NVIDIA, nvcc, and an interpreter with torch; rows of CuPy and JAX are measured where
they are installed. A PACKAGE is a folder to import tvm_ffi from. Two more columns are measured in
the process of the first package: the same functions written by hand for CPython and torch, which is
the floor, and through pybind11, as extensions of torch are. `make bench` does not run this: its
machine need not have a GPU. Writes gpu.md and gpu.json; with --addon, which says that the torch
add-on is installed, gpu_addon.md and gpu_addon.json.
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
    "CuPy's own __dlpack__, x3": "p1.__dlpack__(), p2.__dlpack__(), p3.__dlpack__()",
    "JAX's own __dlpack__, x3": "j1.__dlpack__(), j2.__dlpack__(), j3.__dlpack__()",
    "from_dlpack(torch)": "from_dlpack(t1)",
    "torch.from_dlpack(Tensor)": "torch.from_dlpack(x1)",
    "torch.from_dlpack(its capsule)": "torch.from_dlpack(x1.__dlpack__())",
    "kernel launch, three tensors": "launch(t1, t2, t3)",
    "kernel launch, GIL kept": "launch_kept(t1, t2, t3)",
}
# Column and row of what is compared besides: both keep the GIL.
PEERS = ("by hand", "pybind11")
PEER_ROWS = {"call(torch x3), GIL kept": "nothing", "kernel launch, GIL kept": "launch"}
FLOORS = {"view": "a view of a tensor", "stream": "the current stream", "launch": "a launch"}
INSTALL_ADDON = "python -m tvm_ffi.utils._build_optional_torch_c_dlpack --install"
SLOW = ("JAX", "CuPy", "torch.from_dlpack", "launch")


def start(name: str, package: str, folder: Path, *peers: Path) -> Worker:
    """Compile the functions for one of the packages, and start a process with it."""
    library = folder / f"functions_{name}.so"
    compile_functions(package, library)
    environment = {"PYTHONPATH": package, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    return Worker([sys.executable, HERE / "gpu" / "worker.py", library, *peers], environment)


def compile_peers(folder: Path) -> Path:
    """Compile what does the same without an FFI, as torch compiles its extensions."""
    from torch.utils import cpp_extension

    sources = [str(HERE / "gpu" / name) for name in ("peers.cc", "launch.cu")]
    cpp_extension.load("gpu_peers", sources, extra_cflags=["-O2"], build_directory=str(folder))
    return folder / "gpu_peers.so"


def compile_functions(package: str, target: Path) -> None:
    root = Path(package) / "tvm_ffi"
    command = ["nvcc", "-O2", "-std=c++17", "-shared", "-Xcompiler", "-fPIC,-fvisibility=hidden"]
    command += [f"-I{root / 'include'}", f"-I{sysconfig.get_path('include')}"]
    command += [str(HERE / "gpu" / "functions.cu"), "-o", str(target)]
    command += [f"-L{root / 'lib'}", "-ltvm_ffi"]
    subprocess.run(command, check=True)


def measure_all(workers: dict[str, Worker], rounds: int) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, list[Any]]] = {}
    first_worker = next(iter(workers.values()))
    for _ in range(rounds):
        for title, statement in {**ROWS, **{key: key for key in FLOORS}}.items():
            count = 2000 if title.startswith(SLOW) or "x3)" not in title else 20000
            row = found.setdefault(title, {})
            for name, worker in workers.items():
                row.setdefault(name, []).append(worker.time(statement, count))
            for name in PEERS if title in PEER_ROWS else ():
                function = f"{PEER_ROWS[title]}_{name.replace(' ', '_')}"
                time = first_worker.time(f"{function}(t1, t2, t3)", count)
                row.setdefault(name, []).append(time)
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


def cell_of(row: dict[str, Any], name: str) -> str:
    value = row.get(name, "")
    return f"{value:.0f}" if isinstance(value, float) else value


def page(data: dict[str, Any]) -> str:
    names = list(data["packages"])
    addon = data["addon"]
    lines = [
        "# Tensors on a GPU" + (", with the torch add-on" if addon else ""),
        "",
        f"{data['date']}, {data['device']}, Python {data['python']}, torch {data['torch']}, "
        + ", ".join(data["have"]),
        "",
        "Made by `python bench/run_gpu.py` on a machine that has one"
        + (f", after\n`{INSTALL_ADDON}`" if addon else "")
        + ". Best times in nanoseconds,",
        "and the median ratio of neighbouring measurements, ours to the reference. The called",
        "function does nothing; `launch` starts a kernel. By hand, the floor: a function of",
        "CPython's API that reads torch's tensors itself.",
        "",
        "| statement | " + " | ".join([*names, "ratio", *PEERS]) + " |",
        "|---|" + "---:|" * (len(names) + 1 + len(PEERS)),
    ]
    for title in ROWS:
        row = data["rows"][title]
        cells = [cell_of(row, name) for name in names]
        ratio = f"{row['ratio']:.2f}" if "ratio" in row else ""
        cells += [ratio, *(cell_of(row, name) for name in PEERS)]
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    lines += ["", "What no frontend can do without, from C++:", "", "| | ns |", "|---|---:|"]
    least = {key: min(data["rows"][key][n] for n in names) for key in FLOORS}
    for key, text in FLOORS.items():
        lines.append(f"| {text} | {least[key]:.0f} |")
    lines.append(
        f"| three views and the current stream | {3 * least['view'] + least['stream']:.0f} |"
    )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--ours", required=True)
    parser.add_argument("--reference", required=True)
    parser.add_argument("--before", help="an older build of this tree")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--out", type=Path, default=HERE / "results")
    parser.add_argument("--addon", action="store_true", help="the torch add-on is installed")
    options = parser.parse_args()
    packages = {"ours": options.ours, "reference": options.reference}
    if options.before:
        packages["before"] = options.before
    with tempfile.TemporaryDirectory() as folder:
        peers = compile_peers(Path(folder))
        workers = {
            name: start(name, path, Path(folder), *([peers] if name == "ours" else []))
            for name, path in packages.items()
        }
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
        "addon": options.addon,
    }
    options.out.mkdir(parents=True, exist_ok=True)
    name = "gpu_addon" if options.addon else "gpu"
    (options.out / f"{name}.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    (options.out / f"{name}.md").write_text(page(data), encoding="utf-8")
    print(page(data))


if __name__ == "__main__":
    main()
