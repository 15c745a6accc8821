# SPDX-License-Identifier: Apache-2.0
"""Guards the fast paths: instructions per operation must not grow unnoticed.

    python bench/guard.py check --package build/release/package --junit FILE
    python bench/guard.py record --package build/release/package

Counts the rows of bench/python/rows.py with callgrind, on the interpreter that runs this and the
package given, and compares with bench/instructions.json. A row that grew by more than a tenth
fails; so does one that nobody has recorded. Counts say nothing about another toolchain: where the
interpreter, the compiler or the C library differ, every row is skipped and the reason printed.
"""

from __future__ import annotations

import argparse
import functools
import json
import platform
import shlex
import shutil
import sys
import sysconfig
from pathlib import Path
from xml.etree import ElementTree

sys.path.insert(0, str(Path(__file__).resolve().parent / "python"))
import run_python
import setup_peers as build

RECORD = build.ROOT / "bench" / "instructions.json"
ALLOWED = 1.10
PADS = (1_001, 2_503)  # objects
build.PEERS = build.ROOT / "build" / "guard"  # libraries of another interpreter than the tables'


def configuration() -> str:
    """Return the options that change the interpreter's code, without folders and libraries."""
    options = shlex.split(sysconfig.get_config_var("CONFIG_ARGS") or "")
    telling = ("--enable-", "--disable-", "--with-", "--without-")
    chosen = [text for text in options if text.startswith(telling) and "/" not in text]
    return " ".join([*sorted(chosen), sysconfig.get_config_var("OPT") or ""])


def toolchain() -> dict[str, str]:
    """What instruction counts depend on besides this repository."""
    return {
        "interpreter": f"{platform.python_implementation()} {platform.python_version()}",
        "interpreter built by": platform.python_compiler(),
        "interpreter configured with": configuration(),
        "compiler": "g++ " + build.run("g++", "-dumpfullversion"),
        "C library": " ".join(platform.libc_ver()),
        "machine": platform.machine(),
    }


@functools.cache
def prepare(package: Path) -> None:
    """Build the benchmark's library against the package's libtvm_ffi."""
    build.PEERS.mkdir(parents=True, exist_ok=True)
    build.extension(Path(sys.executable), "bench_marks", build.HERE / "marks.c", compiler="gcc")
    build.ffi_library("ours", build.ROOT / "include", package / "tvm_ffi" / "lib")


def count(package: Path, rows: list[str] | None = None, pad: int = 0) -> dict[str, float]:
    """Count every row, or some; `pad` objects are made first, so that others lie elsewhere."""
    prepare(package)
    environment = {"PYTHONPATH": str(package), "BENCH_PAD": str(pad)}
    if rows is not None:
        environment["BENCH_ROWS"] = " ".join(rows)
    return run_python.instructions(build.Peer("ours", Path(sys.executable), environment, ""))


def count_elsewhere(package: Path, found: dict[str, float], grown: list[str]) -> None:
    """Count what seems to have grown again, with objects at other addresses, and keep the least.

    The caches of the interpreter are chosen by address. Where two names that one row uses share an
    entry, the row costs more, whatever the code: such a row is cheap elsewhere.
    """
    for pad in PADS:
        for key, number in count(package, grown, pad).items() if grown else ():
            print(f"{key:16}{number:8.0f}  with other addresses, after {found[key]:.0f}")
            found[key] = min(found[key], number)


def differences(recorded: dict[str, str]) -> list[str]:
    here = toolchain()
    return [
        f"{key}: {here[key]!r}, recorded {recorded.get(key)!r}"
        for key in here
        if here[key] != recorded.get(key)
    ]


def verdict(key: str, found: float, recorded: dict[str, float]) -> str:
    """Return why the row fails, or nothing."""
    if key not in recorded:
        return f"{key}: {found:.0f} instructions, not recorded yet"
    if found > recorded[key] * ALLOWED:
        growth = (found / recorded[key] - 1) * 100
        return f"{key}: {found:.0f} instructions, recorded {recorded[key]:.0f} (+{growth:.0f} %)"
    return ""


def write_junit(path: Path, keys: list[str], failed: dict[str, str], skipped: str) -> None:
    suite = ElementTree.Element("testsuite", name="instructions")
    for key in keys:
        case = ElementTree.SubElement(suite, "testcase", classname="instructions", name=key)
        if skipped:
            ElementTree.SubElement(case, "skipped", message=skipped)
        elif failed.get(key):
            ElementTree.SubElement(case, "failure", message=failed[key])
    path.parent.mkdir(parents=True, exist_ok=True)
    ElementTree.ElementTree(suite).write(path, encoding="unicode")


def check(package: Path, junit: Path | None) -> int:
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    recorded, reasons = record["instructions"], differences(record["toolchain"])
    if shutil.which("valgrind") is None:
        reasons.append("no valgrind")
    failed: dict[str, str] = {}
    found: dict[str, float] = {}
    if not reasons:
        found = count(package)
        grown = [key for key, number in found.items() if verdict(key, number, recorded)]
        count_elsewhere(package, found, [key for key in grown if key in recorded])
    for key, number in found.items():
        failed[key] = verdict(key, number, recorded)
        was = recorded.get(key, number)
        print(f"{key:16}{number:8.0f}  recorded {was:6.0f}  {'TOO MANY' if failed[key] else 'ok'}")
    for key in recorded.keys() - found.keys() if found else ():
        failed[key] = f"{key}: recorded, but no longer a row"
    if reasons:
        print("instruction counts are not compared: " + "; ".join(reasons))
    if junit is not None:
        write_junit(junit, sorted({*recorded, *found}), failed, "; ".join(reasons))
    complaints = [text for text in failed.values() if text]
    for text in complaints:
        print(text, file=sys.stderr)
    if complaints:
        print("if that is meant: python bench/guard.py record --package ...", file=sys.stderr)
    return 1 if complaints else 0


def record(package: Path) -> int:
    numbers = {key: round(value, 1) for key, value in count(package).items()}
    data = {"toolchain": toolchain(), "instructions": numbers}
    RECORD.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(data, indent=1))
    return 0


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("action", choices=("check", "record"))
    parser.add_argument("--package", type=Path, required=True)
    parser.add_argument("--junit", type=Path)
    options = parser.parse_args()
    if options.action == "record":
        return record(options.package.resolve())
    return check(options.package.resolve(), options.junit)


if __name__ == "__main__":
    sys.exit(main())
