# SPDX-License-Identifier: Apache-2.0
"""A graph of nodes to bytes and back, in one of several ways. Worker of bench/run_travel.py.

python travel.py WAY NODES REPETITIONS

The best CPU times of writing and reading, in seconds, and the size in bytes, as JSON. What was read
is dropped outside of the measured time.
"""

from __future__ import annotations

import gc
import json
import pickle
import random
import sys
import time
from dataclasses import dataclass
from typing import Any


@dataclass
class Plain:
    """The node in Python alone."""

    name: str
    value: int
    weight: float
    inputs: list[Any]


def build(cls: Any, count: int) -> list[Any]:
    """Nodes in the order of a compiler's graph: each has one or two inputs among the last fifty."""
    rng = random.Random(1)
    nodes: list[Any] = []
    for i in range(count):
        inputs = [nodes[-1]] if nodes else []
        if i > 2:
            inputs.append(nodes[rng.randrange(max(0, i - 50), i)])
        nodes.append(cls(f"node_{i}_conv", i, i * 0.5, inputs))
    return nodes


def document(count: int) -> list[Any]:
    """The same as a list of rows, with numbers in the place of nodes."""
    rng = random.Random(1)
    rows: list[Any] = []
    for i in range(count):
        inputs = [i - 1] if i else []
        if i > 2:
            inputs.append(rng.randrange(max(0, i - 50), i))
        rows.append({"name": f"node_{i}_conv", "value": i, "weight": i * 0.5, "inputs": inputs})
    return rows


def measure(write: Any, read: Any, repetitions: int) -> list[float]:
    best = [float("inf"), float("inf")]
    data = b""
    for _ in range(repetitions):
        begin = time.process_time()
        data = write()
        middle = time.process_time()
        loaded = read(data)
        end = time.process_time()
        del loaded
        best = [min(best[0], middle - begin), min(best[1], end - middle)]
    return [*best, len(data)]


def main() -> None:
    way, count, repetitions = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    if way in ("msgpack", "orjson"):
        rows = document(count)
        if way == "msgpack":
            import msgpack

            write, read = lambda: msgpack.packb(rows), msgpack.unpackb
        else:
            import orjson

            write, read = lambda: orjson.dumps(rows), orjson.loads
    else:
        value: Any
        if way == "dataclasses":
            sys.setrecursionlimit(10**6)
            value = build(Plain, count)
        else:
            import tvm_ffi
            from tvm_ffi.dataclasses import py_class

            globals()["tvm_ffi"] = tvm_ffi  # where annotations are looked up

            class Node(tvm_ffi.Object):
                name: str
                value: int
                weight: float
                inputs: tvm_ffi.Array[tvm_ffi.Object]

            Node.__qualname__ = "Node"
            sys.modules[Node.__module__].Node = Node  # type: ignore[attr-defined]
            value = tvm_ffi.Array(build(py_class("bench.travel.Node")(Node), count))
        write, read = lambda: pickle.dumps(value, 5), pickle.loads
    gc.collect()
    gc.disable()
    print(json.dumps(measure(write, read, repetitions)))


if __name__ == "__main__":
    main()
