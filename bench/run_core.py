# SPDX-License-Identifier: Apache-2.0
"""Core benchmarks side by side with the newest reference release.

One source (core_bench.cc) is compiled with the same flags against our headers and library and
against the peer's; the two programs run in turns, so that whatever else the machine does hits both.
The table gives the median of all repetitions and the ratio ours / peer: below 1 is faster.

    python bench/run_core.py [--repetitions 10] [--filter REGEX]

Writes bench/results/core.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import resource
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "bench"
RESULTS = ROOT / "bench" / "results" / "core.md"
PEER_RELEASE = "0.1.15.post1"
FLAGS = ["-std=c++17", "-O2", "-DNDEBUG", "-fPIC"]
SIDES = ("ours", "peer")


def run(command: list[str | Path]) -> str:
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def directories() -> dict[str, tuple[Path, Path]]:
    """Include and library directory of each side."""
    fetch = ROOT / "tests" / "skew" / "fetch_headers.py"
    peer = Path(run([sys.executable, fetch, PEER_RELEASE]).strip())
    return {
        "ours": (ROOT / "include", ROOT / "build" / "release" / "lib"),
        "peer": (peer / "include", peer / "lib"),
    }


def link_flags(lib_dir: Path) -> list[str]:
    return [f"-L{lib_dir}", "-ltvm_ffi", f"-Wl,-rpath,{lib_dir}"]


def build_programs(sides: dict[str, tuple[Path, Path]]) -> dict[str, Path]:
    programs = {}
    for side, (include, lib) in sides.items():
        print(f"compiling core_bench.cc for {side}", file=sys.stderr)
        programs[side] = BUILD / f"core_bench_{side}"
        source = ROOT / "bench" / "core_bench.cc"
        flags = [*FLAGS, f"-I{include}", *link_flags(lib), "-lbenchmark", "-pthread"]
        run(["g++", source, "-o", programs[side], *flags])
    return programs


def measure(programs: dict[str, Path], repetitions: int, pattern: str) -> dict[str, dict]:
    """Nanoseconds of every repetition: {benchmark: {side: [ns, ...]}}, in source order."""
    times: dict[str, dict[str, list[float]]] = {}
    for repetition in range(repetitions):
        print(f"repetition {repetition + 1} of {repetitions}", file=sys.stderr)
        # Alternate who goes first, so that neither always finds a warmer machine.
        for side in SIDES if repetition % 2 == 0 else reversed(SIDES):
            options = ["--benchmark_format=json", "--benchmark_min_time=0.05"]
            output = run([programs[side], *options, f"--benchmark_filter={pattern}"])
            for entry in json.loads(output)["benchmarks"]:
                times.setdefault(entry["name"], {s: [] for s in SIDES})[side].append(
                    entry["cpu_time"]
                )
    return times


def compile_client(sides: dict[str, tuple[Path, Path]], rounds: int = 5) -> dict[str, dict]:
    """CPU seconds (median), object and library size of one_file_client.cc, for each side."""
    source = ROOT / "bench" / "one_file_client.cc"
    seconds: dict[str, list[float]] = {side: [] for side in SIDES}
    for number in range(rounds):
        print(f"compiling one_file_client.cc, round {number + 1} of {rounds}", file=sys.stderr)
        for side in SIDES:
            include, _ = sides[side]
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            run(["g++", "-c", source, "-o", BUILD / f"client_{side}.o", *FLAGS, f"-I{include}"])
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            used = (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)
            seconds[side].append(used)
    result = {}
    for side in SIDES:
        library = BUILD / f"client_{side}.so"
        linking = link_flags(sides[side][1])
        run(["g++", "-shared", "-s", BUILD / f"client_{side}.o", "-o", library, *linking])
        result[side] = {
            "compile, CPU seconds": statistics.median(seconds[side]),
            "object file, bytes": float((BUILD / f"client_{side}.o").stat().st_size),
            "stripped library, bytes": float(library.stat().st_size),
        }
    return result


def row(name: str, ours: float, peer: float, digits: int) -> str:
    return f"| {name} | {ours:.{digits}f} | {peer:.{digits}f} | {ours / peer:.3f} |"


def cpu_name() -> str:
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8") if os.name == "posix" else ""
    found = re.search(r"model name\s*:\s*(.*)", text)
    return found.group(1) if found else platform.machine()


def report(times: dict[str, dict], client: dict[str, dict], repetitions: int) -> str:
    compiler = run(["g++", "-dumpfullversion"]).strip()
    lines = [
        "# Core: ours and the reference release side by side",
        "",
        f"Median of {repetitions} alternating runs, `{' '.join(FLAGS)}`, g++ {compiler},",
        f"{cpu_name()}.",
        f"Peer: apache-tvm-ffi {PEER_RELEASE}. Ratio below 1: ours is faster or smaller.",
        "",
        "| benchmark | ours, ns | peer, ns | ratio |",
        "|---|---|---|---|",
    ]
    for name, sides in times.items():
        lines.append(row(name, *(statistics.median(sides[side]) for side in SIDES), digits=2))
    lines += ["", "| one-file client | ours | peer | ratio |", "|---|---|---|---|"]
    for name in client["ours"]:
        digits = 2 if "seconds" in name else 0
        lines.append(row(name, client["ours"][name], client["peer"][name], digits=digits))
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--filter", default=".")
    options = parser.parse_args()
    BUILD.mkdir(parents=True, exist_ok=True)
    sides = directories()
    programs = build_programs(sides)
    # One core for everything: moving between cores costs more than what is measured.
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    times = measure(programs, options.repetitions, options.filter)
    text = report(times, compile_client(sides), options.repetitions)
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
