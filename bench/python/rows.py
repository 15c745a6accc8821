# SPDX-License-Identifier: Apache-2.0
"""What is measured: one statement per row, the same for every peer.

A row's statement runs on names that `names(peer)` provides. It is compiled ten times in a row into
the body of a loop, so that the loop itself hardly counts.
"""

from __future__ import annotations

import re
import textwrap
from typing import Any, NamedTuple

UNROLL = 10
ELEMENTS = 100
TEXT = "a string of 26 characters"  # beyond what fits into a value


class Row(NamedTuple):
    """One line of the tables."""

    key: str
    title: str
    statement: str
    target: float | None = None  # time, as a multiple of the floor's
    per: int = 1  # operations in one run of the statement


ROWS = (
    Row("int_get", "int field, get (class of fields)", "node.value", 1.5),
    Row("int_set", "int field, set (class of fields)", "node.value = 7", 1.5),
    Row("object_live", "object field, live (class of fields)", "node.next", 3),
    Row("object_refetch", "object field, drop + refetch (class of fields)", "lone.next", 5),
    Row("object_set", "object field, set (class of fields)", "node.next = other", 5),
    Row("add", "add(1, 2), GIL kept", "add(1, 2)", 1.8),
    Row("add_released", "add(1, 2), GIL released", "add_released(1, 2)"),
    Row("identity", "identity(obj), GIL kept", "identity(other)", 2.1),
    Row("callback", "callback round trip", "call(callback, other)", 2.1),
    Row("construct", "construct + destroy", "Node(1)", 3),
    Row("factory", "construct + destroy by factory", "make_node(1)"),
    Row("index", "`c[i]`", "array[17]", 1.6),
    Row("iterate", "iterate, per element", "for item in array: pass", 2.5, ELEMENTS),
    Row("lookup", "`m[key]`", "mapping[key]", 1.8),
    Row("string", "str through C++ and back", "echo_str(text)", 4),
    Row("method", "method, no argument", "counter.get()"),
    Row("method_one", "method, one argument", "counter.plus(1)"),
    Row("method_field", "int field, get (class with methods)", "counter.value"),
    Row("static", "static method", "Counter.twice(1)"),
    Row("keywords", "construct with keywords", "Pair(a=1, b=2)"),
    Row("error", "error raised and caught", "try: fail(1)\nexcept ValueError: pass"),
)


def names(peer: Any) -> dict[str, Any]:
    """Return what the statements refer to."""
    node, other, lone = peer.Node(1), peer.Node(2), peer.Node(3)
    node.next = other
    lone.next = peer.make_node(4)  # only the C++ side keeps this one
    nodes = [peer.make_node(i) for i in range(ELEMENTS)]
    return {
        "node": node,
        "other": other,
        "lone": lone,
        "nodes": nodes,
        "Node": peer.Node,
        "make_node": peer.make_node,
        "add": peer.add,
        "add_released": peer.add_released,
        "identity": peer.identity,
        "call": peer.call,
        "callback": lambda x: x,
        "array": peer.make_array(nodes),
        "mapping": peer.make_map({f"key{i}": n for i, n in enumerate(nodes)}),
        "key": "key17",
        "echo_str": peer.echo_str,
        "text": TEXT,
        "counter": peer.Counter(1),
        "Counter": peer.Counter,
        "Pair": peer.Pair,
        "fail": peer.fail,
    }


def loop(row: Row, names: dict[str, Any]) -> Any:
    """Compile a function of n that runs the row's statement n * UNROLL times."""
    used = [name for name in names if re.search(rf"\b{name}\b", row.statement)]
    body = textwrap.indent(f"{row.statement}\n" * UNROLL, " " * 8)
    source = f"def run(n, {', '.join(used)}):\n    for _ in range(n):\n{body}"
    scope: dict[str, Any] = {}
    exec(source, scope)
    values = [names[name] for name in used]
    return lambda n: scope["run"](n, *values)
