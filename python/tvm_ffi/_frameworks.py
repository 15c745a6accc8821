# SPDX-License-Identifier: Apache-2.0
"""What other array libraries call things; none of them is imported before it is needed.

>>> from tvm_ffi import core
>>> import numpy
>>> core._convert_numpy_dtype_to_ffi_dtype(numpy.dtype("float32"))
dtype('float32')
"""

from __future__ import annotations

import os
import sys
from enum import IntEnum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

core: Any = sys.modules["tvm_ffi.core"]


class DLDeviceType(IntEnum):
    """The device types of DLPack.

    >>> from tvm_ffi import Device, DLDeviceType
    >>> Device(DLDeviceType.kDLCUDA, 1)
    device(type='cuda', index=1)
    """

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17
    kDLTrn = 18


# ---- libraries that may be missing --------------------------------------------------------------

_MODULES = {
    "torch": "torch",
    "numpy": "numpy",
    "ml_dtypes": "ml_dtypes",
    "cuda_driver": "cuda.bindings.driver",
}


def _optional_module(name: str) -> ModuleType | None:
    """Import one of the libraries of `_MODULES`; None when it is missing or not wanted."""
    if os.environ.get("TVM_FFI_BUILD_DOCS", "0") != "0":
        return None
    from importlib import import_module

    try:
        return import_module(_MODULES[name])
    except ImportError:
        return None


def _core_getattr(name: str) -> ModuleType | None:
    """Give ``core.torch`` and its like on first use, which is when the library is imported."""
    if name not in _MODULES:
        raise AttributeError(f"module 'tvm_ffi.core' has no attribute {name!r}")
    module = _optional_module(name)
    setattr(core, name, module)
    return module


# ---- element types ------------------------------------------------------------------------------

_INT, _UINT, _FLOAT, _BFLOAT, _BOOL = 0, 1, 2, 4, 6
Numbers = tuple[int, int, int]

_TORCH_NAMES: dict[str, Numbers] = {
    "int8": (_INT, 8, 1),
    "int16": (_INT, 16, 1),
    "int32": (_INT, 32, 1),
    "int64": (_INT, 64, 1),
    "uint8": (_UINT, 8, 1),
    "uint16": (_UINT, 16, 1),
    "uint32": (_UINT, 32, 1),
    "uint64": (_UINT, 64, 1),
    "float16": (_FLOAT, 16, 1),
    "float32": (_FLOAT, 32, 1),
    "float64": (_FLOAT, 64, 1),
    "bfloat16": (_BFLOAT, 16, 1),
    "bool": (_BOOL, 8, 1),
    "float8_e4m3fn": (10, 8, 1),
    "float8_e4m3fnuz": (11, 8, 1),
    "float8_e5m2": (12, 8, 1),
    "float8_e5m2fnuz": (13, 8, 1),
    "float8_e8m0fnu": (14, 8, 1),
    "float4_e2m1fn_x2": (17, 4, 2),
}

_NUMPY_NAMES: dict[str, Numbers] = {
    **{f"int{bits}": (_INT, bits, 1) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": (_UINT, bits, 1) for bits in (8, 16, 32, 64)},
    **{f"float{bits}": (_FLOAT, bits, 1) for bits in (16, 32, 64)},
}

_ML_DTYPES_NAMES: dict[str, Numbers] = {
    "int2": (_INT, 2, 1),
    "int4": (_INT, 4, 1),
    "uint2": (_UINT, 2, 1),
    "uint4": (_UINT, 4, 1),
    "bfloat16": (_BFLOAT, 16, 1),
    "float8_e3m4": (7, 8, 1),
    "float8_e4m3": (8, 8, 1),
    "float8_e4m3b11fnuz": (9, 8, 1),
    "float8_e4m3fn": (10, 8, 1),
    "float8_e4m3fnuz": (11, 8, 1),
    "float8_e5m2": (12, 8, 1),
    "float8_e5m2fnuz": (13, 8, 1),
    "float8_e8m0fnu": (14, 8, 1),
    "float6_e2m3fn": (15, 6, 1),
    "float6_e3m2fn": (16, 6, 1),
    "float4_e2m1fn": (17, 4, 1),
}

_tables: dict[str, dict[Any, Any]] = {}


def _dtypes_by_name(module: ModuleType, names: dict[str, Numbers]) -> dict[Any, Numbers]:
    """Look up those of the `names` that this release of the library has."""
    return {
        getattr(module, name): numbers for name, numbers in names.items() if hasattr(module, name)
    }


def _torch_table() -> dict[Any, Any]:
    torch = core.torch
    if torch is None:
        raise ValueError("torch not found")
    return _dtypes_by_name(torch, _TORCH_NAMES)


def _numpy_table() -> dict[Any, Any]:
    numpy, ml_dtypes = core.numpy, core.ml_dtypes
    if numpy is None:
        raise ValueError("numpy not found")
    scalars = _dtypes_by_name(numpy, _NUMPY_NAMES)
    if ml_dtypes is not None:
        scalars.update(_dtypes_by_name(ml_dtypes, _ML_DTYPES_NAMES))
    return {numpy.dtype(scalar): numbers for scalar, numbers in scalars.items()}


def _convert(library: str, make_table: Any, value: Any) -> Any:
    table = _tables.get(library)
    if table is None:
        cdtype, text = core.DataType, core._CLASS_DTYPE
        table = {
            key: text(str(core._create_cdtype_from_tuple(cdtype, *numbers)))
            for key, numbers in make_table().items()
        }
        _tables[library] = table
    return table[value]


def _convert_torch_dtype_to_ffi_dtype(torch_dtype: Any) -> Any:
    """Return the `dtype` of a `torch.dtype`; KeyError for one that has none."""
    return _convert("torch", _torch_table, torch_dtype)


def _convert_numpy_dtype_to_ffi_dtype(numpy_dtype: Any) -> Any:
    """Return the `dtype` of a `numpy.dtype`, also of ml_dtypes; KeyError for one that has none."""
    return _convert("numpy", _numpy_table, numpy_dtype)


def install() -> None:
    """Put what belongs to ``tvm_ffi.core`` there."""
    for value in (
        DLDeviceType,
        _convert_torch_dtype_to_ffi_dtype,
        _convert_numpy_dtype_to_ffi_dtype,
    ):
        setattr(core, value.__name__, value)
        value.__module__ = core.__name__
    core.__getattr__ = _core_getattr
