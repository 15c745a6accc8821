# SPDX-License-Identifier: Apache-2.0
"""Complain about trailing spaces, tabs, carriage returns, and a missing or doubled last newline.

    python3 scripts/check_whitespace.py FILE ...

Exit status 1 when something was found. Files that are not text are left alone.
"""

from __future__ import annotations

import sys
from pathlib import Path

MAY_HAVE_TABS = {"Makefile", "Makefile.in", ".gitmodules"}


def problems(path: Path) -> list[str]:
    content = path.read_bytes()
    if not content or b"\0" in content:
        return []
    found = []
    for number, line in enumerate(content.split(b"\n"), 1):
        if line != line.rstrip():
            found.append(f"{path}:{number}: space at the end of the line")
        if b"\t" in line and path.name not in MAY_HAVE_TABS:
            found.append(f"{path}:{number}: tab")
    if not content.endswith(b"\n"):
        found.append(f"{path}: no newline at the end")
    elif content.endswith(b"\n\n"):
        found.append(f"{path}: empty line at the end")
    return found


def main() -> None:
    found = [line for name in sys.argv[1:] for line in problems(Path(name))]
    print("\n".join(found), end="\n" if found else "")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
