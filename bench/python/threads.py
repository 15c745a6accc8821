# SPDX-License-Identifier: Apache-2.0
"""How one peer scales over threads on a free-threaded interpreter.

    threads.py PEER FOLDER [ROUNDS]

Every thread runs the same statement, on objects all of them share or on its own. Rounds with
different numbers of threads alternate, and the best of each counts: what a machine with other work
to do can still show. Prints {row: {threads: operations per second}}.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
from pathlib import Path
from time import perf_counter_ns, thread_time_ns
from typing import Any

import peers
import rows

TARGET_NS = 1_000_000  # short: both threads must find a core of their own for that long
STATEMENTS = {
    "int_get": "int field",
    "object_live": "fetch, live",
    "object_refetch": "drop + refetch",
    "identity": "identity",
    "construct": "construct + destroy",
}


def thread_numbers() -> list[int]:
    numbers = [1]
    while numbers[-1] * 2 <= (os.cpu_count() or 1):
        numbers.append(numbers[-1] * 2)
    return numbers


def rate(loops: list[Any], n: int) -> float:
    """Operations per second of one thread per loop, each running n times, started together."""
    spans = [(0, 0)] * len(loops)
    barrier = threading.Barrier(len(loops))

    def work(number: int) -> None:
        loop = loops[number]
        loop(1)
        barrier.wait()
        begin = perf_counter_ns()
        loop(n)
        spans[number] = (begin, perf_counter_ns())

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(loops))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wall = max(end for _, end in spans) - min(begin for begin, _ in spans)
    return len(loops) * n * rows.UNROLL / wall * 1e9


def measure(loops: list[Any], rounds: int) -> dict[str, float]:
    begin = thread_time_ns()
    loops[0](200)
    n = max(1, int(TARGET_NS / ((thread_time_ns() - begin) / 200)))
    best = dict.fromkeys(thread_numbers(), 0.0)
    for _ in range(rounds):
        for number in best:
            best[number] = max(best[number], rate(loops[:number], n))
    return {str(number): value for number, value in best.items()}


def main() -> None:
    peer = peers.load(sys.argv[1], Path(sys.argv[2]))
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 200
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
            result[f"{title}, distinct"] = measure(own, rounds)
            if row.key != "construct":
                shared = [rows.loop(row, known[0]) for _ in range(most)]
                result[f"{title}, shared"] = measure(shared, rounds)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
