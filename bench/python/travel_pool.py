# SPDX-License-Identifier: Apache-2.0
"""A tensor of 100 MB as the argument of a task in another process. Worker of bench/run_travel.py.

The best time in seconds of each way, as JSON: with the tensor in shared memory, the copy into that
memory alone, and with the same numpy array in the pickle.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy
import tvm_ffi  # noqa: F401
from tvm_ffi import travel

SIZE = 100_000_000


def first(array: Any) -> int:
    """Look at one element."""
    return array.shape[0]


def best(run: Any, repetitions: int) -> float:
    times = []
    for _ in range(repetitions):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return min(times)


def main() -> None:
    repetitions = int(sys.argv[1])
    array = numpy.ones(SIZE // 8)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as pool:
        pool.submit(first, array[:1]).result()
        shared = travel.share(array)
        found = {
            "numpy array in the pickle": best(
                lambda: pool.submit(first, array).result(), repetitions
            ),
            "copied into shared memory, then sent": best(
                lambda: pool.submit(first, travel.share(array)).result(), repetitions
            ),
            "the copy alone (`share`)": best(lambda: travel.share(array), repetitions),
            "sent from shared memory": best(
                lambda: pool.submit(first, shared).result(), repetitions
            ),
        }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
