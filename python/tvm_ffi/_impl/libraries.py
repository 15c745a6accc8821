# SPDX-License-Identifier: Apache-2.0
"""Other array libraries and their element types; no library is imported before it is needed.

>>> from tvm_ffi import core
>>> import numpy
>>> core._convert_numpy_dtype_to_ffi_dtype(numpy.dtype("float32"))
dtype('float32')
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

core: Any = sys.modules["tvm_ffi.core"]
_abi = core._abi

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

Numbers = tuple[int, int, int]


def _numbers() -> dict[str, Numbers]:
    """Return the types that numpy and torch have both, by name."""
    codes = {"int": _abi.kDLInt, "uint": _abi.kDLUInt, "float": _abi.kDLFloat}
    return {
        f"{kind}{bits}": (code, bits, 1)
        for kind, code in codes.items()
        for bits in (8, 16, 32, 64)
        if (kind, bits) != ("float", 8)
    }


def _small_floats() -> dict[str, Numbers]:
    """Return the types of eight bits and less, and bfloat16, by name."""
    return {
        "bfloat16": (_abi.kDLBfloat, 16, 1),
        "float8_e3m4": (_abi.kDLFloat8_e3m4, 8, 1),
        "float8_e4m3": (_abi.kDLFloat8_e4m3, 8, 1),
        "float8_e4m3b11fnuz": (_abi.kDLFloat8_e4m3b11fnuz, 8, 1),
        "float8_e4m3fn": (_abi.kDLFloat8_e4m3fn, 8, 1),
        "float8_e4m3fnuz": (_abi.kDLFloat8_e4m3fnuz, 8, 1),
        "float8_e5m2": (_abi.kDLFloat8_e5m2, 8, 1),
        "float8_e5m2fnuz": (_abi.kDLFloat8_e5m2fnuz, 8, 1),
        "float8_e8m0fnu": (_abi.kDLFloat8_e8m0fnu, 8, 1),
        "float6_e2m3fn": (_abi.kDLFloat6_e2m3fn, 6, 1),
        "float6_e3m2fn": (_abi.kDLFloat6_e3m2fn, 6, 1),
        "float4_e2m1fn": (_abi.kDLFloat4_e2m1fn, 4, 1),
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
    names = {**_numbers(), **_small_floats()}
    names["bool"] = (_abi.kDLBool, 8, 1)
    names["float4_e2m1fn_x2"] = (_abi.kDLFloat4_e2m1fn, 4, 2)
    return _dtypes_by_name(torch, names)


def _numpy_table() -> dict[Any, Any]:
    numpy, ml_dtypes = core.numpy, core.ml_dtypes
    if numpy is None:
        raise ValueError("numpy not found")
    scalars = _dtypes_by_name(numpy, _numbers())
    if ml_dtypes is not None:
        names = _small_floats()
        for bits in (2, 4):
            names[f"int{bits}"] = (_abi.kDLInt, bits, 1)
            names[f"uint{bits}"] = (_abi.kDLUInt, bits, 1)
        scalars.update(_dtypes_by_name(ml_dtypes, names))
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


def prepare_torch() -> int | None:
    """Give a torch that is loaded the protocols that it lacks, and faster ones.

    Returns the address of the add-on's exchange API if that is in use now.
    """
    from .._optional_torch_c_dlpack import _prepare_loaded_torch

    return _prepare_loaded_torch()


EXPORTS = ("_convert_numpy_dtype_to_ffi_dtype", "_convert_torch_dtype_to_ffi_dtype")


def install() -> None:
    """Let ``tvm_ffi.core`` have the libraries as attributes."""
    core.__getattr__ = _core_getattr
