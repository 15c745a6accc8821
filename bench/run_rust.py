# SPDX-License-Identifier: Apache-2.0
"""The Rust crates beside the released ones, in one process: time and instructions of each row.

    python bench/run_rust.py [--package build/release/package]

Builds bench/rust with cargo; the libraries are those of the package, for both sides. Instructions
are counted under callgrind, as the difference of two runs of different lengths. Writes
bench/results/rust.md and rust.json. Exits with 1 where ours takes more instructions.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path
from typing import Any

import report
import setup_peers as build

SHORT, LONG = 200, 1200
CRATE = build.ROOT / "bench" / "rust"


def environment(libraries: Path, scratch: Path) -> dict[str, str]:
    # The released crates ask this command; ours also take the variable.
    config = scratch / "tvm-ffi-config"
    config.write_text(f"#!/bin/sh\necho '{libraries}'\n", encoding="utf-8")
    config.chmod(0o755)
    return {
        **os.environ,
        "PATH": f"{scratch}{os.pathsep}{os.environ['PATH']}",
        "TVM_FFI_LIBDIR": str(libraries),
        "LD_LIBRARY_PATH": str(libraries),
    }


def instructions(command: list[str], side: str, row: str, env: dict[str, str]) -> float:
    totals = []
    for count in (SHORT, LONG):
        with tempfile.NamedTemporaryFile() as out:
            tool = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out.name}"]
            counted = [*tool, *command, side, row, str(count)]
            run = subprocess.run(counted, check=True, capture_output=True, text=True, env=env)
        found = re.search(r"Collected : (\d+)", run.stderr)
        assert found is not None, run.stderr
        totals.append(int(found[1]))
    return (totals[1] - totals[0]) / (LONG - SHORT)


def page(data: dict[str, Any]) -> str:
    lines = [
        "# Rust crates",
        "",
        f"{data['date']}, {data['rustc']}, {data['cpu']}. Made by `bench/run_rust.py`:",
        f"our crates and the released ones ({data['released']}) in one process, with our library.",
        "The machine was busy with other work: instructions say more than times.",
        "",
        "| operation | ns, ours | ns, released | instructions, ours | instructions, released |",
        "|---|---:|---:|---:|---:|",
    ]
    for row, cells in data["rows"].items():
        times = f"{cells['ns'][0]:.1f} | {cells['ns'][1]:.1f}"
        counts = f"{cells['instructions'][0]:.0f} | {cells['instructions'][1]:.0f}"
        lines.append(f"| {row} | {times} | {counts} |")
    lines += [
        "",
        "The released crates never release the elements of an array; the benchmark does it.",
        "At one of 16 positions of the stack ours checks how deep it is: 50 instructions more",
        "for an object that holds others; a long chain uses up the stack of the released crates.",
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    options, _ = report.arguments(("--package", {"default": "build/release/package"}))
    libraries = (build.ROOT / options.package / "tvm_ffi" / "lib").resolve()
    with tempfile.TemporaryDirectory() as scratch:
        env = environment(libraries, Path(scratch))
        report.progress("build")
        manifest = str(CRATE / "Cargo.toml")
        subprocess.run(
            ["cargo", "build", "--quiet", "--release", "--manifest-path", manifest],
            check=True,
            env=env,
        )
    command = [str(CRATE / "target" / "release" / "rust-bench")]
    report.progress("times")
    listing = subprocess.run(command, check=True, capture_output=True, text=True, env=env).stdout
    rows = {}
    for line in listing.splitlines()[2:]:
        row, *times = (cell.strip() for cell in line.strip("|").split("|"))
        rows[row] = {"ns": [float(time) for time in times]}
    for row, cells in rows.items():
        report.progress(f"instructions: {row}")
        cells["instructions"] = [
            instructions(command, side, row, env) for side in ("ours", "reference")
        ]
    released = re.search(r'reference = .*version = "=([^"]+)"', Path(manifest).read_text("utf-8"))
    assert released is not None
    data = {
        "date": date.today().isoformat(),
        "rustc": build.run("rustc", "--version"),
        "cpu": f"{report.cpu_name()}, {os.cpu_count()} cores",
        "released": f"tvm-ffi {released[1]}",
        "rows": rows,
    }
    report.write("rust", data, page(data))
    worse = [
        row
        for row, cells in rows.items()
        if cells["instructions"][0] > cells["instructions"][1] + 0.5
    ]
    if worse:
        print(f"more instructions than the released crates: {', '.join(worse)}")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
