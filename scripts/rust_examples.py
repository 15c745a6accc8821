# SPDX-License-Identifier: Apache-2.0
"""Lists the public items of a Rust crate that have no example.

    python3 scripts/rust_examples.py rust/target/examples/doc/tvm_ffi.json ...

Reads what `rustdoc --output-format json` writes, which leaves out hidden items. Functions, methods,
types, traits, constants and macros need an example each; fields, variants, modules, and methods
that implement a trait do not. For a macro of another crate the place that re-exports it is asked.
The exit status is 1 if an item has none.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

COUNTED = {
    *("function", "struct", "enum", "union", "trait", "macro", "proc_macro", "constant"),
    *("type_alias", "static", "assoc_const"),
}


def children(inner: Any) -> list[int]:
    """The items inside an item: members of a module or trait, blocks of methods of a type."""
    if not isinstance(inner, dict):
        return []
    ids: list[int] = [*inner.get("items", ()), *inner.get("impls", ())]
    return ids


def walk(crate: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Kind, path and record of every public item that needs an example."""
    index = crate["index"]
    seen: set[int] = set()
    stack: list[tuple[int, str, bool]] = [(crate["root"], "", True)]
    while stack:
        number, path, is_public = stack.pop()
        item = index.get(str(number))
        if item is None or number in seen:
            continue
        seen.add(number)
        ((kind, inner),) = item["inner"].items()
        name = f"{path}::{item['name']}" if item["name"] else path
        if kind == "impl":
            if inner["trait"] is None:
                stack += [(child, path, False) for child in inner["items"]]
            continue
        if item["visibility"] != "public" and not is_public:
            continue
        if kind == "use":
            target = index.get(str(inner["id"]))
            if target is None and inner["source"].startswith("tvm_ffi_macros::"):
                yield "macro", f"{path}::{inner['name']}", item
            elif target is not None:
                stack.append((inner["id"], path, True))
            continue
        if kind in COUNTED:
            yield kind, name, item
        # What a trait has is as public as the trait.
        stack += [(child, name, kind == "trait") for child in children(inner)]


def main() -> int:
    """Print the items without an example, and how many there are."""
    total = 0
    missing = []
    for file in sys.argv[1:]:
        for kind, path, item in walk(json.loads(Path(file).read_text(encoding="utf-8"))):
            total += 1
            if "```" not in (item["docs"] or ""):
                span = item["span"] or {"filename": "?", "begin": [0]}
                place = f"{span['filename']}:{span['begin'][0]}"
                missing.append(f"{place}: {kind} {path.removeprefix('::')} has no example")
    for line in sorted(missing):
        print(line)
    print(f"{total} public items, {len(missing)} without an example")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
