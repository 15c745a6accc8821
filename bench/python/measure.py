# SPDX-License-Identifier: Apache-2.0
"""Measures one peer in this process; the driver starts it once per peer.

    measure.py PEER FOLDER time [ROUNDS]      ratios to the floor, in turns with it
    measure.py PEER FOLDER count              under callgrind: counts, cut out by bench_marks

Prints one JSON object: nanoseconds {row: [ours, floor] per round}, or the rows counted.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from pathlib import Path
from time import thread_time_ns
from typing import Any

import peers
import rows

PAD = [object() for _ in range(int(os.environ.get("BENCH_PAD", "0")))]  # moves what comes after it
TARGET_NS = 2_000_000  # one timed run of a loop
COUNTS = (20, 60)


def selected() -> list[rows.Row]:
    wanted = os.environ.get("BENCH_ROWS", "").split()
    return [row for row in rows.ROWS if not wanted or row.key in wanted]


def timed(run: Any, n: int) -> float:
    """CPU time: on a machine with other work to do, the clock on the wall measures that work."""
    begin = thread_time_ns()
    run(n)
    return (thread_time_ns() - begin) / n


def time_rows(
    wanted: list[rows.Row], peer_names: dict[str, Any], floor_names: dict[str, Any], rounds: int
) -> dict[str, list[tuple[float, float]]]:
    """Return nanoseconds per operation of peer and floor, round by round."""
    result: dict[str, list[tuple[float, float]]] = {}
    for row in wanted:
        runs = [rows.loop(row, peer_names), rows.loop(row, floor_names)]
        counts = []
        for run in runs:
            fastest = min(timed(run, 50) for _ in range(5))
            counts.append(max(1, int(TARGET_NS / fastest)))
        per = rows.UNROLL * row.per
        gc.collect()
        gc.disable()
        samples = []
        for number in range(rounds):
            order = (0, 1) if number % 2 == 0 else (1, 0)
            pair = [0.0, 0.0]
            for side in order:
                pair[side] = timed(runs[side], counts[side]) / per
            samples.append((pair[0], pair[1]))
        gc.enable()
        result[row.key] = samples
    return result


def count_rows(peer: Any) -> list[str]:
    """Run every row two times, of different length, and let callgrind write what each cost."""
    import bench_marks

    known = rows.names(peer)
    gc.disable()
    for row in selected():
        run = rows.loop(row, known)
        run(COUNTS[0])  # lets the interpreter specialise
        bench_marks.zero()
        for n in COUNTS:
            run(n)
            bench_marks.dump(f"{row.key} {n}")
    return [row.key for row in selected()]


def main() -> None:
    name, folder, mode = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    peer = peers.load(name, folder)
    if mode == "count":
        print(json.dumps(count_rows(peer)))
        return
    floor = peers.load("floor", folder)
    print(
        json.dumps(
            time_rows(
                selected(),
                rows.names(peer),
                rows.names(floor),
                int(sys.argv[4]) if len(sys.argv) > 4 else 25,
            )
        )
    )


if __name__ == "__main__":
    main()
