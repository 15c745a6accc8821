# SPDX-License-Identifier: Apache-2.0
"""Which promises a peer keeps, found out by trying.

    behaviour.py PEER FOLDER

Prints one JSON object: {probe: "yes", "no", or why it could not be tried}. Every probe is one
function; its docstring is the line of the table. Classes are used as the peer's defaults make them.
"""

from __future__ import annotations

import ctypes
import gc
import json
import sys
import weakref
from pathlib import Path
from typing import Any

import peers

CHURN = 100_000
LEAK_BYTES = 16  # per object: less than any object or wrapper has


def resident() -> int:
    """Return the bytes of memory in use, after the allocator has given back what it can."""
    ctypes.CDLL(None).malloc_trim(0)
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise OSError("no VmRSS in /proc/self/status")


def subclass(base: Any) -> Any:
    """Return a Python subclass whose instances can have attributes and weak references."""
    for slots in ({}, {"__slots__": ("__dict__", "__weakref__")}, {"__slots__": ("__dict__",)}):
        try:
            kind = type("Annotated", (base,), slots)
        except TypeError:
            continue
        if kind.__dictoffset__ != 0 and kind.__weakrefoffset__ != 0:
            break
    return kind


def call_back_to(box: Any) -> None:
    """Put a callback into the box that refers to it."""
    box.value = lambda: box


def holder_of(peer: Any, node: Any) -> Any:
    holder = peer.make_node(0)
    holder.next = node
    return holder


def fill_the_gap(peer: Any) -> list[Any]:
    """Make nodes, so that no wrapper made later gets the address of one just freed."""
    return [peer.make_node(i) for i in range(1000)]


def p1_attribute(peer: Any) -> bool:
    """P1 `a.x is a.x`."""
    holder = holder_of(peer, peer.make_node(1))
    return holder.next is holder.next


def p1_call(peer: Any) -> bool:
    """P1 `f(x) is x`."""
    node = peer.make_node(1)
    return peer.identity(node) is node


def p1_element(peer: Any) -> bool:
    """P1 `c[i] is c[i]`, and the one put in."""
    node = peer.make_node(1)
    array = peer.make_array([node])
    return array[0] is node and array[0] is array[0]


def p1_callback(peer: Any) -> bool:
    """P1 a callback gets the caller's object."""
    node = peer.make_node(1)
    seen: list[bool] = []
    peer.call(lambda got: seen.append(got is node), node)
    return seen == [True]


def p2_identity(peer: Any) -> bool:
    """P2 `id` after drop + refetch."""
    node = peer.make_node(1)
    before, holder = id(node), holder_of(peer, node)
    del node
    others = fill_the_gap(peer)
    return id(holder.next) == before and bool(others)


def p3_subclass(peer: Any) -> bool:
    """P3 Python subclass after drop + refetch."""
    kind = subclass(peer.Node)
    holder = holder_of(peer, kind(1))
    gc.collect()
    return type(holder.next) is kind


def p3_attribute(peer: Any) -> bool:
    """P3 attributes after drop + refetch."""
    node = subclass(peer.Node)(1)
    node.note = "mine"
    holder = holder_of(peer, node)
    del node
    gc.collect()
    return getattr(holder.next, "note", None) == "mine"


def p4_weak_lives(peer: Any) -> bool:
    """P4 weak reference lives after the last Python reference."""
    node = subclass(peer.Node)(1)
    weak, holder = weakref.ref(node), holder_of(peer, node)
    del node
    gc.collect()
    return weak() is not None and weak() is holder.next


def p4_weak_dies(peer: Any) -> bool:
    """P4 its callback runs when the native object dies, not before."""
    calls: list[Any] = []
    node = subclass(peer.Node)(1)
    weak, holder = weakref.ref(node, calls.append), holder_of(peer, node)
    del node
    before = len(calls)
    holder.next = None
    return before == 0 and len(calls) == 1 and weak() is None


def p5_memory(peer: Any) -> bool:
    """P5 memory flat over 10^5 objects made, stored, fetched, dropped."""
    kind = subclass(peer.Node)

    def churn() -> None:
        holder = peer.make_node(0)
        for i in range(CHURN):
            node = kind(i)
            node.note = i
            holder.next = node
            del node
            holder.next.value  # noqa: B018

    churn()
    gc.collect()
    before = resident()
    churn()
    gc.collect()
    return resident() - before < CHURN * LEAK_BYTES


def p6_callback_cycle(peer: Any) -> bool:
    """P6 cycle Python object -> native object -> callback -> Python object is collected."""
    box = subclass(peer.Box)()
    call_back_to(box)
    weak = weakref.ref(box)
    del box
    gc.collect()
    return weak() is None


def p6_attribute_cycle(peer: Any) -> bool:
    """P6 cycle through an attribute of the wrapper is collected."""
    node = subclass(peer.Node)(1)
    node.me = [node]
    weak = weakref.ref(node)
    del node
    gc.collect()
    return weak() is None


def p6_shared_survives(peer: Any) -> bool:
    """P6 such a cycle stays, state and all, while native code holds the object."""
    node = subclass(peer.Node)(1)
    node.me = [node]
    weak, holder = weakref.ref(node), holder_of(peer, node)
    del node
    gc.collect()
    return weak() is not None and getattr(holder.next, "me", [None])[0] is weak()


def p9_thread(peer: Any) -> bool:
    """P9 a native thread drops the last reference without waiting for Python."""
    holder = holder_of(peer, peer.make_node(1))
    holder.next.value  # noqa: B018
    return bool(peer.drop_on_thread(holder))


PROBES = (
    p1_attribute,
    p1_call,
    p1_element,
    p1_callback,
    p2_identity,
    p3_subclass,
    p3_attribute,
    p4_weak_lives,
    p4_weak_dies,
    p5_memory,
    p6_callback_cycle,
    p6_attribute_cycle,
    p6_shared_survives,
    p9_thread,
)


def answer(probe: Any, peer: Any) -> str:
    needs_native = probe is p9_thread
    if needs_native and not hasattr(peer, "drop_on_thread"):
        return "no native code"
    try:
        return "yes" if probe(peer) else "no"
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def main() -> None:
    peer = peers.load(sys.argv[1], Path(sys.argv[2]))
    print(json.dumps({probe.__name__: answer(probe, peer) for probe in PROBES}), flush=True)


if __name__ == "__main__":
    main()
