# SPDX-License-Identifier: Apache-2.0
"""When memory runs out there is a MemoryError, and the process lives.

Each program runs in a child process whose address space is limited, with several limits, so that
memory runs out in many places. What it prints at the end says that it came through.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

resource = pytest.importorskip("resource")

pytestmark = [
    pytest.mark.skipif(
        not Path("/proc/self/statm").exists() or not hasattr(resource, "RLIMIT_AS"),
        reason="the address space cannot be measured and limited here",
    ),
    pytest.mark.skipif(
        "ASAN_OPTIONS" in os.environ or "TSAN_OPTIONS" in os.environ or "LD_PRELOAD" in os.environ,
        reason="sanitizers need more address space than a limit leaves them",
    ),
]

PROLOGUE = """
import copy, gc, pickle, random, resource, sys, weakref
from typing import Any
import tvm_ffi
import tvm_ffi.travel  # a pickle imports it; CPython 3.10 compiles no module without memory
from tvm_ffi import Array, Dict, List, Map, testing, tying
from tvm_ffi.dataclasses import py_class
from tvm_ffi.testing import TestIntPair, apply, echo

@py_class("tests.oom.Node")
class Node(tvm_ffi.Object):
    a: Any = None

class State(Node):
    __slots__ = ("__dict__",)

seed, mib = int(sys.argv[1]), int(sys.argv[2])
keep = []
hard = resource.getrlimit(resource.RLIMIT_AS)[1]

def limit():
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + mib * 2**20, hard))

def fill(make):
    try:
        while True:
            keep.append(make())
    except MemoryError:
        pass
"""

EPILOGUE = """
keep.clear()
print("alive")
"""

PROGRAMS = {
    # A collection starts while there is no memory left.
    "objects": "limit(); fill(lambda: Node(Node()))",
    "rings": """
def ring():
    node = Node()
    node.a = List([node, Dict({1: node}), List([List([Node() for _ in range(50)])])])
    return node
gc.disable()
gc.collect()
before = tying.stats()
alive = [ring() for _ in range(200)]
spare = bytes(2**20)
limit()
fill(lambda: (ring() if seed % 2 else ring().a, ring() and bytes(200)))
gc.collect()  # there is no memory for it
del spare  # for the loop itself
for _ in range(len(keep) // 2):
    keep.pop()
gc.collect()
for node in alive:
    assert node.a[0] is node and node.a[1][1] is node and len(node.a[2][0]) == 50
    assert all(isinstance(leaf, Node) for leaf in node.a[2][0])
del alive, node
keep.clear()
resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
gc.collect(); gc.collect()
after = tying.stats()
assert (before["live"], before["dormant"]) == (after["live"], after["dormant"]), (before, after)
""",
    "full list": """
limit()
items = List([])
fill(lambda: items.append("abcdefghijklmnop" * 50))
gc.collect()
""",
    "containers": """
limit()
fill(lambda: Dict({j: j for j in range(3000)}))
keep.clear()
fill(lambda: copy.deepcopy(List([List(range(100)) for _ in range(100)])))
""",
    "clear": """
gc.disable()
items = List([b"x" * 100 for _ in range(20000)])
limit()
size = 1 << 20
while size > 16:
    try:
        keep.append(bytearray(size))
    except MemoryError:
        size //= 2
items.clear()
""",
    # They copy what they go through, or make a second one.
    "structural": """
items = List(range(3_000_000))
mib = 1
limit()
operations = [
    lambda: tvm_ffi.structural_walk(items, lambda v: None),
    lambda: tvm_ffi.structural_map(items, (int, lambda v: v + 1)),
    lambda: tvm_ffi.structural_mutate(items, (int, lambda v, m: v + 1)),
    lambda: tvm_ffi.structural_visit(items, lambda v, visitor: visitor.default_visit(v)),
]
for operation in operations:
    try:
        operation()
    except MemoryError:
        continue
    raise AssertionError("there was memory")
""",
    # Anything, in any order.
    "mixture": """
r = random.Random(seed)
items, table = List([]), Dict({})
class Key(tvm_ffi.Object): pass
def fails():
    raise KeyError("q")
ops = [
    lambda: Node(Node()), lambda: State(1), lambda: TestIntPair(1, 2),
    lambda: List(range(r.randrange(2000))), lambda: Array(range(r.randrange(2000))),
    lambda: echo("y" * r.randrange(5000)), lambda: tvm_ffi.convert(lambda: 1),
    lambda: weakref.ref(items), lambda: items.append(Node(bytes(100))),
    lambda: items.extend(range(500)), lambda: items.__setitem__(slice(0, 3), [Node()] * 20),
    lambda: table.__setitem__(r.randrange(10**6), Node()), lambda: copy.copy(items),
    lambda: Map({str(i): i for i in range(r.randrange(100))}), lambda: repr(table)[:3],
    lambda: testing.catch_error(lambda: 1 / 0), lambda: apply(lambda: bytes(20000)),
    lambda: table.pop(r.randrange(10**6), None), lambda: apply(fails),
    lambda: tvm_ffi.register_global_func(f"tests.oom.{r.random()}", lambda: 1),
    lambda: pickle.dumps(List(range(50))), lambda: setattr(State(1), "x", 1), gc.collect,
    lambda: echo(lambda *a: a)(*range(30)), lambda: testing.echo(Node()._move()),
]
gc.collect()
limit()
failures = 0
for _ in range(20000):
    try:
        keep.append(r.choice(ops)())
    except MemoryError:
        failures += 1
        if failures > 60:
            break
        if r.random() < 0.3:
            del keep[: r.randrange(1, 200)]
    except (KeyError, OverflowError):
        pass
""",
}
RUNS = [(name, seed) for name in PROGRAMS for seed in range(8 if name == "mixture" else 2)]


@pytest.mark.parametrize(("name", "seed"), RUNS)
def test_process_survives(name: str, seed: int) -> None:
    program = PROLOGUE + PROGRAMS[name] + EPILOGUE
    mib = 3 + 5 * seed if name == "mixture" else 12 + 13 * seed
    done = subprocess.run(
        [sys.executable, "-c", program, str(seed), str(mib)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout.strip().endswith("alive"), (done.returncode, done.stderr[-2000:])
