# SPDX-License-Identifier: Apache-2.0
"""A guard for the fast paths: instructions per operation must not grow by more than a tenth.

Counts, unlike times, are the same on a busy machine. They are those of build/release on the
interpreter of the project's environment, and compared only with a record of the same interpreter,
compiler and valgrind.

    python bench/check_instructions.py            compare, exit status 1 if a row has grown
    python bench/check_instructions.py --record   write bench/results/instructions.json
"""

from __future__ import annotations

import argparse
import json
import platform
import shutil
import sys
from pathlib import Path

import run_python
import setup_peers as build

RECORD = build.ROOT / "bench" / "results" / "instructions.json"
TOLERANCE = 1.10


def toolchain() -> dict[str, str]:
    return {
        "python": platform.python_version(),
        "compiler": f"g++ {build.run('g++', '-dumpfullversion')}",
        "valgrind": build.run("valgrind", "--version"),
        "machine": platform.machine(),
    }


def count() -> dict[str, float]:
    build.PEERS.mkdir(parents=True, exist_ok=True)
    python = Path(sys.executable)
    release = build.ROOT / "build" / "release"
    build.extension(python, "bench_marks", build.HERE / "marks.c", compiler="gcc")
    build.ffi_library("ours", build.ROOT / "include", release / "lib")
    path = {"PYTHONPATH": str(release / "package")}
    return run_python.instructions(build.Peer("ours", python, path, ""))


def compare(counts: dict[str, float], recorded: dict[str, float]) -> list[str]:
    """Print every row; return those that have grown too much, or are in one table only."""
    grown = sorted(counts.keys() ^ recorded.keys())
    for key in sorted(counts.keys() & recorded.keys()):
        change = counts[key] / recorded[key]
        print(f"{key:16}{recorded[key]:9.0f} ->{counts[key]:7.0f}  {change - 1:+7.1%}")
        if change > TOLERANCE:
            grown.append(key)
    return grown


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--record", action="store_true")
    if parser.parse_args().record:
        data = {"toolchain": toolchain(), "instructions": count()}
        RECORD.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
        return
    if shutil.which("valgrind") is None:
        print("not compared: valgrind is not installed")
        return
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    here = toolchain()
    other = {k: (v, here.get(k)) for k, v in record["toolchain"].items() if v != here.get(k)}
    if other:
        print("not compared: the record is of another toolchain")
        for key, (theirs, mine) in other.items():
            print(f"  {key}: recorded {theirs}, here {mine}")
        return
    grown = compare(count(), record["instructions"])
    if grown:
        sys.exit(
            f"instructions per operation grew by more than a tenth: {', '.join(grown)}\n"
            "if that is meant, run bench/check_instructions.py --record and commit the record"
        )


if __name__ == "__main__":
    main()
