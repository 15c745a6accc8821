# SPDX-License-Identifier: Apache-2.0
"""A filter for doxygen: turns the plain comments of a header into comments that doxygen reads.

`// text` before a declaration becomes `/// text`, behind one it becomes `///< text`, and
`/* text */` at the start of a line becomes `/** text */`. Comments that describe the file, head a
section or speak to a tool are left alone.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

IGNORED = re.compile(r"//\s*(----|NOLINT|clang-format|SPDX|namespace|extern)|/\*\s*(----|SPDX)")


def filtered(source: str) -> str:
    lines = []
    in_head = True
    for line in source.splitlines():
        if not line.startswith(("//", "/*", " *")):
            in_head = in_head and not line.strip()
        if in_head or IGNORED.search(line):
            lines.append(line)
            continue
        text = re.sub(r"^(\s*)//(?=\s|$)", r"\1///", line)
        text = re.sub(r"^(\s*)/\*(?=\s|$)", r"\1/**", text)
        text = re.sub(r"([;,{]\s*)//(?=\s)", r"\1///<", text)
        lines.append(re.sub(r"([;,]\s*)/\*(?=\s)", r"\1/**<", text))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(filtered(Path(sys.argv[1]).read_text(encoding="utf-8")))
