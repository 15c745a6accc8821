# SPDX-License-Identifier: Apache-2.0
"""Operations on whole values and on a class defined in Python, for ours or the reference.

    structural.py PEER FOLDER [REPETITIONS]

Prints one JSON object: values {row: best CPU seconds}, with trees of 10^5 nodes and documents of
about 10 MB; classes {row: [best nanoseconds, those of the floor, target ratio]}; integers {row:
[best nanoseconds, those of Python's own ints, target ratio]}.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from time import thread_time
from typing import Any

import measure
import peers
import tvm_ffi
from rows import Row
from tvm_ffi import serialization
from tvm_ffi.dataclasses import py_class

NODES = 100_000
FANOUT = 4
MEGABYTES = 10
CLASS_ROWS = [
    Row("construct", "construct + destroy", "Node(1)", 5),
    Row("int_get", "int field, get", "node.value", 1.5),
    Row("int_set", "int field, set", "node.value = 7", 2),
]
INT, FLOAT = 1, 3  # type indices
SLOW = 0.05  # seconds; what takes longer is repeated less often


@py_class("bench.PyNode", structural_eq="tree")
class PyNode(tvm_ffi.Object):
    """A node of a tree, defined in Python."""

    value: int
    children: Any = None


def tree(leaf: Callable[[int], Any], inner: Callable[[int, list[Any]], Any]) -> Any:
    """Return a tree of NODES nodes, FANOUT children each, numbered."""
    count = NODES * (FANOUT - 1) // FANOUT
    level = [leaf(i) for i in range(count)]
    while len(level) > 1:
        parts = [level[i : i + FANOUT] for i in range(0, len(level), FANOUT)]
        level = []
        for part in parts:
            level.append(inner(count, part))
            count += 1
    return level[0]


def trees(node: Any) -> dict[str, Callable[[], Any]]:
    """Return how to make the trees, by what they are made of."""

    def with_children(i: int, children: list[Any]) -> Any:
        result = node(i)
        result.children = tvm_ffi.Array(children)
        return result

    return {
        "arrays": lambda: tree(
            lambda i: tvm_ffi.Array([i]), lambda _, children: tvm_ffi.Array(children)
        ),
        "reflected objects": lambda: tree(node, with_children),
        "objects defined in Python": lambda: tree(
            PyNode, lambda i, children: PyNode(i, tvm_ffi.Array(children))
        ),
        "maps": lambda: tree(
            lambda i: tvm_ffi.Map({"value": i}),
            lambda _, children: tvm_ffi.Map({f"k{i}": c for i, c in enumerate(children)}),
        ),
        "dicts": lambda: tree(
            lambda i: tvm_ffi.Dict({"value": i}),
            lambda _, children: tvm_ffi.Dict({f"k{i}": c for i, c in enumerate(children)}),
        ),
    }


def document(item: Callable[[int], Any]) -> str:
    """Return a JSON array of items, of about the size asked for."""
    sample = len(json.dumps([item(i) for i in range(1000)])) / 1000
    return json.dumps([item(i) for i in range(int(MEGABYTES * 1e6 / sample))])


def nested(i: int) -> Any:
    value: Any = i
    for level in range(12):
        value = {f"level {level}": value, "flag": level % 2 == 0}
    return value


DOCUMENTS = {
    "mixed": lambda i: {
        "id": i,
        "name": f"item {i}",
        "v": [1.5 * i, True, None, "\u00e9\n"],
        "nest": {"a": {"b": i}},
    },
    "integers": lambda i: [i, -i, i * 1_000_003, i % 10],
    "floats": lambda i: [i / 7, -i * 1e-9, i * 1.5e20, i + 0.25],
    "plain strings": lambda i: [f"the quick brown fox {i} jumps over the lazy dog", "ab", ""],
    "strings with escapes": lambda i: f'line {i}\n\ttab "quoted" \\path\\ \u00e9 \u4f60 \U0001f600',
    "nested objects": nested,
}


def best(run: Callable[[], Any], repetitions: int) -> float:
    """CPU time, of the fastest run: what the machine does when it is left alone."""
    found = float("inf")
    for number in range(repetitions):
        begin = thread_time()
        result = run()
        found = min(found, thread_time() - begin)
        del result
        if found > SLOW and number >= repetitions // 5:
            break
    return found


def rows(peer: Any) -> dict[str, Callable[[], Callable[[], Any]]]:
    """Return, for every row, what makes its values and returns what is to be timed."""
    equal = tvm_ffi.get_global_func("ffi.StructuralEqual")
    digest = tvm_ffi.get_global_func("ffi.StructuralHash")
    copy = tvm_ffi.get_global_func("ffi.DeepCopy")
    parse = tvm_ffi.get_global_func("ffi.json.Parse")
    write = tvm_ffi.get_global_func("ffi.json.Stringify")
    map_ = tvm_ffi.get_global_func("ffi.StructuralMap")
    mutate = tvm_ffi.get_global_func("ffi.StructuralMutate")
    add_one = tvm_ffi.get_global_func("testing.add_one")
    add_to_int = tvm_ffi.get_global_func("bench.add_to_int")
    result: dict[str, Callable[[], Callable[[], Any]]] = {}

    def add(title: str, make: Callable[[], Any], run: Callable[[Any], Any]) -> None:
        def prepare() -> Callable[[], Any]:
            value = make()
            return lambda: run(value)

        result[title] = prepare

    for kind, make in trees(peer.Node).items():
        pair = lambda make=make: (make(), make())  # noqa: E731
        add(f"structural equal, {kind}", pair, lambda two: equal(*two, False, False))
        add(f"structural hash, {kind}", make, lambda one: digest(one, False, False))
        add(f"deep copy, {kind}", make, copy)
        # Every int becomes another, by a callback in C++; then a callback that fits nothing.
        add(f"map, {kind}", make, lambda one: map_(one, [(INT, add_one)], [], 1))
        add(f"mutate, {kind}", make, lambda one: mutate(one, [(INT, add_to_int, False)]))
        add(f"map of nothing, {kind}", make, lambda one: map_(one, [(FLOAT, add_one)], [], 1))
        add(
            f"graph written and read, {kind}",
            make,
            lambda one: serialization.from_json_graph_str(serialization.to_json_graph_str(one)),
        )
    for kind, item in DOCUMENTS.items():
        text = lambda item=item: document(item)  # noqa: E731
        add(f"JSON parsed and written, {kind}", text, lambda one: write(parse(one), None))
    return result


def class_times(floor: Any, rounds: int) -> dict[str, list[float]]:
    own_names = {"Node": PyNode, "node": PyNode(1)}
    floor_names = {"Node": floor.Node, "node": floor.Node(1)}
    samples = measure.time_rows(CLASS_ROWS, own_names, floor_names, rounds)
    return {
        row.title: [*(min(side) for side in zip(*samples[row.key], strict=True)), row.target or 0]
        for row in CLASS_ROWS
    }


def integer_times(repetitions: int) -> dict[str, list[float]]:
    """Return the times of arithmetic on big integers, and those of Python's own."""
    sums = tvm_ffi.get_global_func("bench.big_sums")
    products = tvm_ffi.get_global_func("bench.big_products")
    take = tvm_ffi.get_global_func("bench.take")
    found = {}

    def row(title: str, own: Any, python: Any, count: int, target: float) -> None:
        times = [1e9 * best(run, repetitions) / count for run in (own, python)]
        found[title] = [*times, target]

    for bits, count in ((10**3, 10**4), (10**5, 100)):
        a, b = 2**bits - 12345, 2**bits // 3
        title = f"10^{len(str(bits)) - 1} bits"

        def python(a: int = a, b: int = b, count: int = count) -> None:
            for _ in range(count):
                a + b

        def python_products(a: int = a, b: int = b, count: int = count) -> None:
            for _ in range(count):
                a * b

        row(f"add, {title}", lambda a=a, b=b, n=count: sums(a, b, n), python, count, 3)
        own = lambda a=a, b=b, n=count: products(a, b, n)  # noqa: E731
        row(f"multiply, {title}", own, python_products, count, 10)
    big, count = 2**10**4 - 12345, 10**4

    def pass_(value: int = big) -> None:
        for _ in range(count):
            take(value)

    def to_bytes(value: int = big) -> None:
        for _ in range(count):
            value.to_bytes(1256, "little", signed=True)

    row("pass an int of 10^4 bits; int.to_bytes", pass_, to_bytes, count, 2)
    return found


def value_times(peer: Any, repetitions: int) -> dict[str, float]:
    times = {}
    for title, prepare in rows(peer).items():
        if os.environ.get("BENCH_ROWS", "") not in title:
            continue
        run = prepare()
        run()
        gc.collect()
        gc.disable()
        times[title] = best(run, repetitions)
        gc.enable()
    return times


def main() -> None:
    name, folder = sys.argv[1], Path(sys.argv[2])
    repetitions = int(sys.argv[3]) if len(sys.argv) > 3 else 20
    found = {
        "classes": class_times(peers.load("floor", folder), repetitions),
        "values": value_times(peers.load(name, folder), repetitions),
    }
    found["integers"] = integer_times(repetitions)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
