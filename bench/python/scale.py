# SPDX-License-Identifier: Apache-2.0
"""One peer with very many objects.

    scale.py PEER FOLDER memory N     bytes and nanoseconds per object, milliseconds per collection
    scale.py PEER FOLDER flat N       nanoseconds per operation while N objects and wrappers live
    scale.py PEER FOLDER exit N KIND  CPU time when the script ended; the driver sees that of exit

Prints one JSON object. Times are CPU times. Python's collector runs only where it is measured.
"""

from __future__ import annotations

import gc
import json
import random
import sys
import time
from collections import deque
from pathlib import Path
from typing import Any

import behaviour
import peers

WORKING_SET = 100  # objects in use, picked from all of them
REPEAT = 100
ROUNDS = 20  # in one measurement: the clock is too coarse for one
JUMPS = 100_000
left_to_exit: list[Any] = []


def seconds(action: Any) -> float:
    begin = time.thread_time()
    action()
    return time.thread_time() - begin


def repeated(action: Any) -> Any:
    """Return a function that calls `action` as often as the clock needs."""

    def run() -> None:
        for _ in range(ROUNDS):
            action()

    return run


def sweep(array: Any) -> float:
    """Nanoseconds per element to fetch and drop all of them, one by one."""
    begin = time.thread_time()
    deque(array, maxlen=0)
    return (time.thread_time() - begin) / len(array) * 1e9


def collection_ms() -> float:
    return min(seconds(gc.collect) for _ in range(3)) * 1e3


def many(peer: Any, n: int) -> Any:
    """Return an array of n new nodes, made natively where the peer can."""
    if hasattr(peer, "make_many"):
        return peer.make_many(n)
    return peer.make_array([peer.make_node(i) for i in range(n)])


def memory(peer: Any, n: int) -> dict[str, float]:
    """Make n objects natively, fetch all of them, drop all, fetch and drop one by one, destroy."""
    result: dict[str, float] = {"collection, nothing yet": collection_ms()}
    start = behaviour.resident()
    begin = time.thread_time()
    array = peer.make_many(n)
    result["make"] = (time.thread_time() - begin) / n * 1e9
    objects = behaviour.resident()
    begin = time.thread_time()
    live = list(array)
    result["first fetch"] = (time.thread_time() - begin) / n * 1e9
    wrappers = behaviour.resident() - sys.getsizeof(live)
    result["object"] = (objects - start) / n
    result["live wrapper"] = (wrappers - objects) / n
    result["fetch, live"] = sweep(array)
    result["collection, all live"] = collection_ms()
    begin = time.thread_time()
    del live
    result["drop"] = (time.thread_time() - begin) / n * 1e9
    result["dropped wrapper"] = (behaviour.resident() - objects) / n
    result["collection, all dropped"] = collection_ms()
    result["refetch + drop"] = sweep(array)
    begin = time.thread_time()
    del array
    result["destroy"] = (time.thread_time() - begin) / n * 1e9
    result["left"] = (behaviour.resident() - start) / n
    live = [peer.make_node(i) for i in range(n)]
    for node, other in zip(live[::2], live[1::2], strict=True):
        node.next = other
    result["collection, all live, in pairs"] = collection_ms()
    del live, node, other
    live = [peer.Counter(i) for i in range(n)]
    result["collection, all live, of numbers only"] = collection_ms()
    del live
    if hasattr(peer, "keep"):
        keep_dropped(peer, n)
        result["collection, all dropped, kept by native code"] = collection_ms()
    return result


def flat(peer: Any, n: int) -> dict[str, float]:
    array = many(peer, n)
    live = list(array)
    picked = random.Random(1).sample(range(n), 2 * WORKING_SET)
    holders = [live[i] for i in picked[:WORKING_SET]]
    values = [live[i] for i in picked[WORKING_SET:]]
    for holder, value in zip(holders, values, strict=True):
        holder.next = value
    lone = [live[i] for i in random.Random(2).sample(range(n), WORKING_SET)]
    used = {id(node) for node in (*holders, *values)}
    lone = [node for node in lone if id(node) not in used]
    for node in lone:
        node.next = peer.make_node(0)
    operations: dict[str, tuple[int, Any]] = {
        "int field": (len(values), lambda: [node.value for node in values]),
        "object field, live": (len(holders), lambda: [node.next for node in holders]),
        "object field, drop + refetch": (len(lone), lambda: deque((x.next for x in lone), 0)),
        "identity": (len(values), lambda: deque(map(peer.identity, values), 0)),
        "`c[i]`": (WORKING_SET, lambda: deque(map(array.__getitem__, picked[:WORKING_SET]), 0)),
        "construct + destroy": (len(picked), lambda: deque(map(peer.make_node, picked), 0)),
    }
    result = {}
    for name, (count, action) in operations.items():
        result[name] = min(seconds(repeated(action)) for _ in range(REPEAT)) / count / ROUNDS * 1e9
    # The machine's other work hardly matters to a run of many millions.
    result["all in turn"] = min(sweep(array) for _ in range(3 if n <= 1_000_000 else 1))
    result["all at random"] = min(at_random(array, random.Random(seed)) for seed in range(3))
    return result


def at_random(array: Any, source: random.Random) -> float:
    """Nanoseconds per element fetched at random: what the memory of the machine adds.

    The numbers are made in the order in which they are used, so they are in the cache themselves.
    """
    picked = [source.randrange(len(array)) for _ in range(JUMPS)]
    return seconds(lambda: deque(map(array.__getitem__, picked), 0)) / JUMPS * 1e9


def keep_dropped(peer: Any, n: int) -> None:
    """Leave n objects to native code after Python has fetched and dropped each of them."""
    array = peer.make_many(n)
    list(array)
    peer.keep(array)


def leave(peer: Any, n: int, kind: str) -> dict[str, float]:
    """Leave n objects to the end of the process.

    objects: only native code has them, Python has never seen them; dropped: the same, but Python
    has fetched and dropped each; live: a list of Python has all, too.
    """
    if kind == "live":
        array = many(peer, n)
        left_to_exit.extend(array)
        if hasattr(peer, "keep"):
            peer.keep(array)
    elif kind == "objects":
        peer.keep(peer.make_many(n))
    elif kind == "dropped":
        keep_dropped(peer, n)
    return {"ended": time.process_time()}


def main() -> None:
    name, folder, mode, n = sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    peer = peers.load(name, folder)
    gc.disable()
    if mode == "exit":
        result = leave(peer, n, sys.argv[5])
    else:
        result = (memory if mode == "memory" else flat)(peer, n)
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
