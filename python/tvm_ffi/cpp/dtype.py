# SPDX-License-Identifier: Apache-2.0
"""Names of data types in C++.

>>> from tvm_ffi.cpp import to_cpp_dtype
>>> to_cpp_dtype("float32"), to_cpp_dtype("int8")
('float', 'int8_t')
"""

from __future__ import annotations

import functools
from typing import Any

__all__ = ["to_cpp_dtype"]

_CPU = {
    **{f"{kind}{bits}": f"{kind}{bits}_t" for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
    "float32": "float",
    "float64": "double",
    "bool": "bool",
}
_BY_BACKEND = {
    "cpu": _CPU,
    "cuda": {
        **_CPU,
        "float16": "__half",
        "bfloat16": "__nv_bfloat16",
        "float8_e4m3fn": "__nv_fp8_e4m3",
        "float8_e5m2": "__nv_fp8_e5m2",
        "float8_e8m0fnu": "__nv_fp8_e8m0",
        "float4_e2m1": "__nv_fp4_e2m1",
        "float4_e2m1fn_x2": "__nv_fp4x2_e2m1",
    },
    "rocm": {
        **_CPU,
        "float16": "__half",
        "bfloat16": "__hip_bfloat16",
        "float8_e4m3fn": "__hip_fp8_e4m3",
        "float8_e4m3fnuz": "__hip_fp8_e4m3_fnuz",
        "float8_e5m2": "__hip_fp8_e5m2",
        "float8_e5m2fnuz": "__hip_fp8_e5m2_fnuz",
        "float4_e2m1": "__hip_fp4_e2m1",
        "float4_e2m1fn_x2": "__hip_fp4x2_e2m1",
    },
}


@functools.cache
def _backend() -> str:
    """Return the kind of GPU that torch uses, or "cpu"."""
    try:
        import torch  # type: ignore[import-not-found]
    except ImportError:
        return "cpu"
    if not torch.cuda.is_available():
        return "cpu"
    return "rocm" if torch.version.hip is not None else "cuda"


def to_cpp_dtype(dtype_str: str | Any) -> str:
    """Return the C++ type of a data type, given by name or as a ``torch.dtype``.

    >>> from tvm_ffi.cpp import to_cpp_dtype
    >>> to_cpp_dtype("torch.int64")
    'int64_t'
    >>> to_cpp_dtype("string")
    Traceback (most recent call last):
    ValueError: Unsupported dtype string: string for backend = 'cpu'
    """
    name = str(dtype_str).removeprefix("torch.")
    backend = _backend()
    found = _BY_BACKEND[backend].get(name)
    if found is None:
        raise ValueError(f"Unsupported dtype string: {name} for backend = '{backend}'")
    return found
