# SPDX-License-Identifier: Apache-2.0
"""Core benchmarks side by side with the newest reference release.

One source (core_bench.cc) is compiled with the same flags against our headers and library and
against the peer's; the two programs run in turns, so that whatever else the machine does hits both.
The table gives the best of all repetitions, the instructions per iteration (callgrind) and the
ratios ours / peer: below 1 is better. Also: compiling and linking a minimal client.

    python bench/run_core.py [--repetitions 10] [--filter REGEX] [--seconds N]

Writes bench/results/core.md and core.json.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent / "python"))
import report
import run_python
import setup_peers
from report import progress
from setup_peers import ROOT, run

BUILD = ROOT / "build" / "bench"
PEER_RELEASE = setup_peers.REFERENCE.split("==")[1]
FLAGS = ["-std=c++17", "-O2", "-DNDEBUG", "-fPIC"]
SIDES = ("ours", "peer")
LENGTHS = (200, 1200)  # iterations, when instructions are counted


def directories() -> dict[str, tuple[Path, Path]]:
    """Include and library directory of each side."""
    fetch = ROOT / "tests" / "skew" / "fetch_headers.py"
    peer = Path(run(sys.executable, fetch, PEER_RELEASE))
    # The library that the package of the other tables has.
    return {
        "ours": (ROOT / "include", setup_peers.BUILD / "lib"),
        "peer": (peer / "include", peer / "lib"),
    }


def link_flags(lib_dir: Path) -> list[str]:
    return [f"-L{lib_dir}", "-ltvm_ffi", f"-Wl,-rpath,{lib_dir}"]


def build_programs(sides: dict[str, tuple[Path, Path]]) -> dict[str, Path]:
    programs = {}
    for side, (include, lib) in sides.items():
        progress(f"compiling core_bench.cc for {side}")
        programs[side] = BUILD / f"core_bench_{side}"
        source = ROOT / "bench" / "core_bench.cc"
        flags = [*FLAGS, f"-I{include}", *link_flags(lib), "-lbenchmark", "-pthread"]
        run("g++", source, "-o", programs[side], *flags)
    return programs


def measure(programs: dict[str, Path], rounds: Any, pattern: str) -> dict[str, dict[str, float]]:
    """Best nanoseconds: {benchmark: {side: ns}}, in source order."""
    times: dict[str, dict[str, list[float]]] = {}
    for repetition in rounds:
        progress(f"core, repetition {repetition + 1}")
        # Alternate who goes first, so that neither always finds a warmer machine.
        for side in SIDES if repetition % 2 == 0 else reversed(SIDES):
            options = ["--benchmark_format=json", "--benchmark_min_time=0.03"]
            output = run(programs[side], *options, f"--benchmark_filter={pattern}")
            for entry in json.loads(output)["benchmarks"]:
                found = times.setdefault(entry["name"], {s: [] for s in SIDES})
                found[side].append(entry["cpu_time"])
    return {name: {side: min(all_) for side, all_ in ns.items()} for name, ns in times.items()}


def count(program: Path, pattern: str) -> dict[str, float]:
    """Instructions per iteration: {benchmark: count}."""
    with tempfile.TemporaryDirectory() as folder:
        for length in LENGTHS:
            output = f"--callgrind-out-file={folder}/callgrind.{length}"
            command = ["valgrind", "--tool=callgrind", output, program]
            variables = {**os.environ, "BENCH_ITERATIONS": str(length)}
            run(*command, f"--benchmark_filter={pattern}", env=variables)
        return run_python.read_dumps(Path(folder))


def compile_client(sides: dict[str, tuple[Path, Path]], rounds: int = 3) -> dict[str, dict]:
    """CPU seconds (median), object and library size of one_file_client.cc, for each side."""
    source = ROOT / "bench" / "one_file_client.cc"
    seconds: dict[str, list[float]] = {side: [] for side in SIDES}
    for number in range(rounds):
        progress(f"compiling one_file_client.cc, round {number + 1} of {rounds}")
        for side in SIDES:
            include, _ = sides[side]
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            run("g++", "-c", source, "-o", BUILD / f"client_{side}.o", *FLAGS, f"-I{include}")
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            used = (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)
            seconds[side].append(used)
    result = {}
    for side in SIDES:
        library = BUILD / f"client_{side}.so"
        linking = link_flags(sides[side][1])
        run("g++", "-shared", "-s", BUILD / f"client_{side}.o", "-o", library, *linking)
        result[side] = {
            "compile, CPU seconds": statistics.median(seconds[side]),
            "object file, bytes": float((BUILD / f"client_{side}.o").stat().st_size),
            "stripped library, bytes": float(library.stat().st_size),
        }
    return result


def cells(pair: dict[str, float] | None, digits: int) -> str:
    if not pair:
        return "- | - | -"
    ours, peer = pair["ours"], pair["peer"]
    return f"{ours:.{digits}f} | {peer:.{digits}f} | {ours / peer:.2f}"


def page(data: dict[str, Any]) -> str:
    lines = [
        "# Core: ours and the reference release side by side",
        "",
        *report.heading(data),
        "",
        f"Best times of alternating runs, `{' '.join(FLAGS)}`; instructions by callgrind, which do",
        "not depend on what else the machine does. Ratio below 1: ours is faster or smaller.",
        "",
        "Copying a value with an object in it (AnyCopyObject, ArrayIndexObject) takes what the two",
        "locked instructions on its counter take, on both sides. AnyCopyInt copies 16 bytes in two",
        "halves: one instruction more than in one go, but a value that was just written need not",
        "wait until both halves of it are in memory (AnyMakeAndCopyInt).",
        "",
        "| benchmark | ours, ns | peer, ns | ratio | ours, instructions | peer | ratio |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name, ns in data["time"].items():
        counted = data["instructions"].get(name)
        lines.append(f"| {name} | {cells(ns, 2)} | {cells(counted, 1)} |")
    lines += ["", "| one-file client | ours | peer | ratio |", "|---|---:|---:|---:|"]
    for name, pair in data["client"].items():
        lines.append(f"| {name} | {cells(pair, 2 if 'seconds' in name else 0)} |")
    return "\n".join(lines) + "\n"


def by_name(sides: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    """Turn {side: {name: number}} around."""
    return {name: {side: sides[side][name] for side in SIDES} for name in sides["ours"]}


def main() -> None:
    options, budget = report.arguments(
        ("--repetitions", {"type": int, "default": 10}), ("--filter", {"default": "."})
    )
    BUILD.mkdir(parents=True, exist_ok=True)
    ready, missing = setup_peers.prepare(["ours"])
    if missing:
        sys.exit(f"ours cannot be built: {missing['ours']}")
    try:
        sides = directories()
        programs = build_programs(sides)
    except setup_peers.Unavailable as reason:
        progress(f"the core is not compared: {reason}")
        return
    data = report.circumstances(ready, {})
    data["peers"]["peer"] = setup_peers.REFERENCE
    data["shortened"] = budget.shortened
    data["instructions"] = {}
    if shutil.which("valgrind"):
        progress("core, instructions")
        data["instructions"] = by_name({s: count(programs[s], options.filter) for s in SIDES})
    report.one_core()
    data["client"] = by_name(compile_client(sides))
    rounds = budget.rounds("core", options.repetitions, least=3)
    data["time"] = measure(programs, rounds, options.filter)
    report.write("core", data, page(data))


if __name__ == "__main__":
    main()
