# SPDX-License-Identifier: Apache-2.0
"""How one peer scales over threads on a free-threaded interpreter.

    threads.py PEER FOLDER

Every thread runs the same statement on a core of its own, on objects that all share or on its own.
Rounds with different numbers of threads alternate; a round in which a thread lost its core to other
work, or in which they did not run at the same time, does not count. Prints {row: {threads:
operations per second, or null if there were too few undisturbed rounds}}.
"""

from __future__ import annotations

import gc
import json
import os
import statistics
import sys
import threading
from pathlib import Path
from time import perf_counter_ns, thread_time_ns
from typing import Any

import peers
import rows

TARGET_NS = 1_000_000  # short: all threads must keep their cores for that long
PATIENCE_NS = 100_000_000  # waiting for the others to be on theirs
LIMIT_NS = 5_000_000_000  # per row
WANTED, ENOUGH = 25, 3  # undisturbed rounds
CORES = sorted(os.sched_getaffinity(0))
STATEMENTS = {
    "int_get": "int field",
    "object_live": "fetch, live",
    "object_refetch": "drop + refetch",
    "identity": "identity",
    "construct": "construct + destroy",
}


def thread_numbers() -> list[int]:
    numbers = [1]
    while numbers[-1] * 2 <= len(CORES):
        numbers.append(numbers[-1] * 2)
    return numbers


def rate(loops: list[Any], n: int) -> float | None:
    """Operations per second of one thread per loop, each running n times, started together.

    None if a thread lost its core meanwhile, or if they did not run side by side.
    """
    spans = [(0, 0)] * len(loops)
    ran = [False] * len(loops)
    ready = [False] * len(loops)

    def work(number: int) -> None:
        loop = loops[number]
        os.sched_setaffinity(0, {CORES[number]})
        loop(1)
        ready[number] = True
        patience = perf_counter_ns() + PATIENCE_NS
        # Not a barrier: a thread that sleeps is late when it is woken.
        while not all(ready) and perf_counter_ns() < patience:
            pass
        cpu, begin = thread_time_ns(), perf_counter_ns()
        loop(n)
        end = perf_counter_ns()
        spans[number] = (begin, end)
        ran[number] = all(ready) and thread_time_ns() - cpu > 0.95 * (end - begin)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(loops))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wall = max(end for _, end in spans) - min(begin for begin, _ in spans)
    together = min(end for _, end in spans) - max(begin for begin, _ in spans)
    if not all(ran) or together < 0.9 * wall:
        return None
    return len(loops) * n * rows.UNROLL / wall * 1e9


def measure(loops: list[Any]) -> dict[str, float | None]:
    """The median of undisturbed runs, by number of threads; None if there were too few."""
    begin = thread_time_ns()
    loops[0](200)
    n = max(1, int(TARGET_NS / ((thread_time_ns() - begin) / 200)))
    found: dict[int, list[float]] = {number: [] for number in thread_numbers()}
    deadline = perf_counter_ns() + LIMIT_NS
    while perf_counter_ns() < deadline and min(map(len, found.values())) < WANTED:
        for number, rates in found.items():
            one = rate(loops[:number], n)
            if one is not None:
                rates.append(one)
    return {
        str(number): statistics.median(rates) if len(rates) >= ENOUGH else None
        for number, rates in found.items()
    }


def main() -> None:
    peer = peers.load(sys.argv[1], Path(sys.argv[2]))
    if getattr(sys, "_is_gil_enabled", lambda: True)():
        sys.exit("the interpreter lock is on: not a free-threaded build, or the peer turned it on")
    gc.disable()
    most = thread_numbers()[-1]
    known = [rows.names(peer) for _ in range(most)]
    result = {}
    for row in rows.ROWS:
        if row.key in STATEMENTS:
            title = STATEMENTS[row.key]
            own = [rows.loop(row, known[number]) for number in range(most)]
            result[f"{title}, distinct"] = measure(own)
            if row.key != "construct":
                shared = [rows.loop(row, known[0]) for _ in range(most)]
                result[f"{title}, shared"] = measure(shared)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
