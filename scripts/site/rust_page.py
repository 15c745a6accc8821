# SPDX-License-Identifier: Apache-2.0
"""Prints the page of the Rust reference.

python scripts/site/rust_page.py yes|no    whether cargo has made the reference
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CRATES = ("tvm-ffi", "tvm-ffi-macros", "tvm-ffi-sys")


def about(crate: str) -> str:
    """Return the first sentence of a crate about itself."""
    text = (ROOT / "rust" / crate / "src" / "lib.rs").read_text(encoding="utf-8")
    words = " ".join(re.findall(r"^//! ?(.*)$", text.split("\n\n")[0], re.MULTILINE))
    return re.split(r"(?<=\.)\s", words)[0]


def main() -> None:
    made = sys.argv[1] == "yes"
    print("# Rust\n")
    print("[The guide](../rust.md) shows how to write functions and classes in Rust.")
    if made:
        print("The reference is made by `cargo doc` and has its own search.\n")
    else:
        print("The reference was not made here, because there was no cargo: run `cargo doc --open`")
        print("in `rust/`.\n")
    print("| crate | what it is for |\n|---|---|")
    for crate in CRATES:
        # Not a link of Markdown: mkdocs would look for the page before it is there.
        page = f"../rustdoc/{crate.replace('-', '_')}/index.html"
        link = f'<a href="{page}"><code>{crate}</code></a>'
        print(f"| {link if made else f'`{crate}`'} | {about(crate)} |")


if __name__ == "__main__":
    main()
