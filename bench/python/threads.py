# SPDX-License-Identifier: Apache-2.0
"""How one peer scales over threads.

    threads.py PEER FOLDER free|gil SECONDS

Every thread runs the same statement, on objects that all share or on its own. Rounds with different
numbers of threads alternate. Without the interpreter lock (free) each thread has a core of its own,
and a round in which one lost it to other work, or in which they did not run at the same time, does
not count. With the lock (gil) they take turns, so what counts is the CPU time of all of them. No
row takes longer than SECONDS. Prints {row: {threads: operations per second, or null if there were
too few undisturbed rounds}}.
"""

from __future__ import annotations

import gc
import json
import os
import statistics
import sys
import threading
from pathlib import Path
from time import perf_counter_ns, process_time_ns, thread_time_ns
from typing import Any

import peers
import rows

TARGET_NS = 1_000_000  # short: all threads must keep their cores for that long
PATIENCE_NS = 100_000_000  # waiting for the others to be on theirs
SWITCHES_NS = 40_000_000  # with the lock: long enough for it to change hands a few times
WANTED, ENOUGH = 25, 3  # undisturbed rounds
WANTED_WITH_LOCK, ENOUGH_WITH_LOCK = 7, 1  # CPU time is hardly disturbed
CORES = sorted(os.sched_getaffinity(0))
STATEMENTS = {
    "int_get": "int field",
    "object_live": "fetch, live",
    "object_refetch": "drop + refetch",
    "identity": "identity",
    "construct": "construct + destroy",
    "add": "add(1, 2), lock kept",
    "add_released": "add(1, 2), lock released",
}
ALONE = ("construct", "add", "add_released")  # work on no object that could be shared


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


def rate_with_lock(loops: list[Any], n: int) -> float:
    """Operations per second of CPU time, of all threads and of handing the lock over."""
    threads = [threading.Thread(target=loop, args=(n,)) for loop in loops]
    begin = process_time_ns()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(loops) * n * rows.UNROLL / (process_time_ns() - begin) * 1e9


def measure(
    loops: list[Any], rate: Any, target_ns: int, wanted: int, enough: int, limit: float
) -> dict[str, float | None]:
    """The median of undisturbed runs, by number of threads; None if there were too few."""
    begin = thread_time_ns()
    loops[0](200)
    n = max(1, int(target_ns / ((thread_time_ns() - begin) / 200)))
    found: dict[int, list[float]] = {number: [] for number in thread_numbers()}
    deadline = perf_counter_ns() + limit * 1e9
    while perf_counter_ns() < deadline and min(map(len, found.values())) < wanted:
        for number, rates in found.items():
            one = rate(loops[:number], n)
            if one is not None:
                rates.append(one)
    return {
        str(number): statistics.median(rates) if len(rates) >= enough else None
        for number, rates in found.items()
    }


def main() -> None:
    peer = peers.load(sys.argv[1], Path(sys.argv[2]))
    mode, limit = sys.argv[3], float(sys.argv[4])
    locked = getattr(sys, "_is_gil_enabled", lambda: True)()
    if locked and mode == "free":
        sys.exit("the interpreter lock is on: not a free-threaded build, or the peer turned it on")
    how: tuple[Any, ...] = (rate, TARGET_NS, WANTED, ENOUGH, limit)
    if locked:
        how = (rate_with_lock, SWITCHES_NS, WANTED_WITH_LOCK, ENOUGH_WITH_LOCK, limit)
    gc.disable()
    most = thread_numbers()[-1]
    known = [rows.names(peer) for _ in range(most)]
    result = {}
    for row in rows.ROWS:
        if row.key in STATEMENTS:
            title = STATEMENTS[row.key]
            own = [rows.loop(row, known[number]) for number in range(most)]
            alone = row.key in ALONE
            result[title if alone else f"{title}, distinct"] = measure(own, *how)
            if not alone:
                shared = [rows.loop(row, known[0]) for _ in range(most)]
                result[f"{title}, shared"] = measure(shared, *how)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
