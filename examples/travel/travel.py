# SPDX-License-Identifier: Apache-2.0
"""A model of C++ objects and tensors, as an argument and a result of other processes.

python travel.py           a pool of multiprocessing
python travel.py dask      a local Dask cluster with two workers
"""

from __future__ import annotations

import multiprocessing
import pickle
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

try:
    import numpy
except ImportError:
    sys.exit("skipped: numpy is not installed")
import tvm_ffi
import workers
from tvm_ffi import travel


def make_model(layers: int) -> tvm_ffi.Array:
    weight = tvm_ffi.from_dlpack(numpy.ones(1000))
    first = workers.Layer("input", [], weight)
    rest = [workers.Layer(f"layer {i}", [first], weight) for i in range(1, layers)]
    return tvm_ffi.Array([first, *rest])


def timed(title: str, run: Callable[[], Any]) -> Any:
    begin = time.perf_counter()
    result = run()
    print(f"{title}: {1e3 * (time.perf_counter() - begin):.1f} ms")
    return result


def show(submit: Callable[..., Any]) -> None:
    model = make_model(10_000)
    print(f"the model takes {len(pickle.dumps(model)):,} bytes")
    layers, elements, shared = timed("as an argument", lambda: submit(workers.summary, model))
    print(f"{layers} layers, {elements} elements, sharing kept: {shared}")
    part = timed("as a result", lambda: submit(workers.shrink, model))
    print("in the result,", part[1].name, "refers to", part[2].inputs[0].name)
    print("a C++ function as a task:", submit(tvm_ffi.get_global_func("testing.add_one"), 41))
    large = travel.share(numpy.ones(10_000_000))
    size = timed("80 MB in shared memory", lambda: submit(tvm_ffi.Tensor.numel, large))
    print(size, "elements arrived")


def main() -> None:
    if "dask" in sys.argv[1:]:
        try:
            from dask.distributed import Client, LocalCluster
        except ImportError:
            sys.exit("skipped: distributed is not installed")
        cluster = LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
        )
        with cluster, Client(cluster) as client:
            show(lambda function, *given: client.submit(function, *given, pure=False).result())
    else:
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            show(lambda function, *given: pool.submit(function, *given).result())


if __name__ == "__main__":
    main()
