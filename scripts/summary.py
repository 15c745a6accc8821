# SPDX-License-Identifier: Apache-2.0
"""Name the failed tests of a run and add up its JUnit files: `N passed, N failed, N skipped`.

    python3 scripts/summary.py build/reports [--failed-step NAME]

GoogleTest, CTest and pytest all write this format. A step that failed without leaving a failing
test case (a compile error, a crash) counts as one failure, so the line never looks better than the
run.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree


def outcome(case: ElementTree.Element) -> str:
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    not_run = case.get("status") in ("notrun", "disabled") or case.get("result") == "skipped"
    return "skipped" if not_run or case.find("skipped") is not None else "passed"


def reason(case: ElementTree.Element) -> str:
    """What a failed case says first, cut to a line."""
    text = ""
    for part in case:
        if part.tag in ("failure", "error"):
            text = (part.get("message") or part.text or "").strip()
    return (text.splitlines() or ["no message"])[0][:200]


def count(reports: Path) -> Counter[str]:
    total: Counter[str] = Counter()
    for report in sorted(reports.glob("*.xml")):
        for case in ElementTree.parse(report).iter("testcase"):
            result = outcome(case)
            total[result] += 1
            if result == "failed":
                name = f"{case.get('classname')} {case.get('name')}"
                print(f"failed: {report.stem}: {name}: {reason(case)}")
    return total


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("reports", type=Path)
    parser.add_argument("--failed-step")
    options = parser.parse_args()
    total = count(options.reports)
    if options.failed_step and not total["failed"]:
        print(f"step '{options.failed_step}' failed")
        total["failed"] += 1
    print(f"{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped")


if __name__ == "__main__":
    main()
