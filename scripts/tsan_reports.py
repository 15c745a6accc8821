# SPDX-License-Identifier: Apache-2.0
"""Read the reports of the thread sanitizer and fail if one of them is about this project.

    python3 scripts/tsan_reports.py FOLDER

A data race is ours if one of its two accesses is made by our code. Two accesses that are both made
by the interpreter are its own affair (3.13 has several, in interning and at exit, which come and go
from run to run); they are counted, and shown in one line each. Any other kind of report is ours if
our code is on a stack of it.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

OURS = re.compile(r"\((core\.cpython-|libtvm_ffi|native_client|libtied)")
# What a racing access may go through.
RUNTIME = re.compile(r"\((libtsan|libstdc\+\+|libc\.|libgcc)")
ACCESS = re.compile(r"^  (Previous )?(atomic )?(read|write) of size", re.IGNORECASE)


def is_ours(report: str) -> bool:
    if "ThreadSanitizer: data race" not in report:
        return OURS.search(report) is not None
    lines = report.splitlines()
    for start, line in enumerate(lines):
        if not ACCESS.match(line):
            continue
        frames = []
        for frame in lines[start + 1 :]:
            if not frame.strip().startswith("#"):
                break
            frames.append(frame)
        made_by = next((frame for frame in frames if not RUNTIME.search(frame)), "")
        if OURS.search(made_by) or not frames:
            return True
    return False


def main() -> None:
    reports = [
        part
        for file in sorted(Path(sys.argv[1]).iterdir())
        for part in file.read_text(encoding="utf-8", errors="replace").split("=" * 18)
        if "WARNING: ThreadSanitizer" in part
    ]
    ours = [report for report in reports if is_ours(report)]
    for report in reports:
        summary = re.search(r"SUMMARY: (.*)", report)
        whose = "ours" if report in ours else "the interpreter's own"
        print(f"{whose}: {re.sub(r'/[^ ]*/', '', summary.group(1)) if summary else 'no summary'}")
    for report in ours:
        print(report, file=sys.stderr)
    print(f"thread sanitizer: {len(ours)} reports about this project, {len(reports)} in all")
    sys.exit(1 if ours else 0)


if __name__ == "__main__":
    main()
