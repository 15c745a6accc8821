# SPDX-License-Identifier: Apache-2.0
"""Times statements with one of the packages, on request of bench/run_gpu.py."""

from __future__ import annotations

import ctypes
import importlib.util
import json
import sys
import timeit
from typing import Any

import numpy
import torch
import tvm_ffi

library = sys.argv[1]
module = tvm_ffi.load_module(library)
names: dict[str, Any] = {"torch": torch, "from_dlpack": tvm_ffi.from_dlpack}
kept = tvm_ffi.load_module(library)
for name in ("nothing", "launch"):
    names[name], names[f"{name}_kept"] = module[name], kept[name]
    if hasattr(kept[name], "release_gil"):
        names[f"{name}_kept"].release_gil = False
cuda = [torch.ones(32, device="cuda") for _ in range(3)]
names["t1"], names["t2"], names["t3"] = cuda
names["c1"], names["c2"], names["c3"] = (torch.ones(32) for _ in range(3))
names["x1"], names["x2"], names["x3"] = (tvm_ffi.from_dlpack(tensor) for tensor in cuda)
names["n1"], names["n2"], names["n3"] = (numpy.ones(32, "float32") for _ in range(3))
have = ["numpy", "torch"]
try:
    import cupy

    names["p1"], names["p2"], names["p3"] = (cupy.ones(32, "float32") for _ in range(3))
    have.append(f"cupy {cupy.__version__}")
except ImportError:
    pass
try:
    import jax

    names["j1"], names["j2"], names["j3"] = (jax.numpy.ones(32) for _ in range(3))
    have.append(f"jax {jax.__version__}")
except ImportError:
    pass

for path in sys.argv[2:]:
    spec = importlib.util.spec_from_file_location("gpu_peers", path)
    assert spec is not None and spec.loader is not None
    peers = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(peers)
    names.update(vars(peers))

floor = ctypes.PyDLL(library)
floor.time_view.restype = floor.time_stream.restype = floor.time_launch.restype = ctypes.c_double


def exchange_api() -> ctypes.c_void_p:
    """The address behind torch's capsule."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.c_void_p(get(torch.Tensor.__dlpack_c_exchange_api__, b"dlpack_exchange_api"))


def own_view(count: int) -> float:
    """Nanoseconds of torch's own function for a view."""
    return floor.time_view(exchange_api(), ctypes.py_object(cuda[0]), count)


def own_stream(count: int) -> float:
    """Nanoseconds of torch's own function for the stream."""
    return floor.time_stream(exchange_api(), count)


def own_launch(count: int) -> float:
    """Nanoseconds of a launch from C++."""
    result = floor.time_launch(ctypes.c_void_p(cuda[0].data_ptr()), count)
    torch.cuda.synchronize()
    return result


OWN = {"view": own_view, "stream": own_stream, "launch": own_launch}
about = {"have": have, "version": tvm_ffi.__version__, "torch": torch.__version__}
about["device"] = torch.cuda.get_device_name(0)
print(json.dumps(about), flush=True)
timers: dict[str, timeit.Timer] = {}
for line in sys.stdin:
    statement, count = json.loads(line)
    if statement in OWN:
        print(OWN[statement](count), flush=True)
        continue
    try:
        if statement not in timers:
            timers[statement] = timeit.Timer(statement, globals=names)
            timers[statement].timeit(200)
        spent = timers[statement].timeit(count) / count * 1e9
        torch.cuda.synchronize()
        print(spent, flush=True)
    except Exception as error:
        print(json.dumps(f"{type(error).__name__}: {error}"), flush=True)
