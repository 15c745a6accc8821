# SPDX-License-Identifier: Apache-2.0
"""Explicit conversion of Python values to what the FFI would make of them.

>>> import tvm_ffi
>>> tvm_ffi.convert([1, {"a": 2}])
(1, {"a": 2})
"""

from __future__ import annotations

import ctypes
import numbers
import sys

from . import _dtype, container, core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["convert", "convert_func"]

_UNCHANGED = (
    core.Object,
    core.PyNativeObject,
    bool,
    numbers.Number,
    ctypes.c_void_p,
    _dtype.dtype,
)
_PASSED_BY_PROTOCOL = (
    "__cuda_stream__",
    "__tvm_ffi_opaque_ptr__",
    "__dlpack_device__",
    "__tvm_ffi_int__",
    "__tvm_ffi_float__",
)


def convert(value: Any) -> Any:
    """Return the FFI value for a Python value; what is one already comes back unchanged.

    Lists and tuples become `Array`, dicts `Map`, `str` and `bytes` their FFI forms, callables
    `Function`, exceptions `core.Error`, tensors of other libraries `Tensor`, their element types
    `dtype`; anything unknown is carried as it is by an opaque object.

    >>> import tvm_ffi
    >>> add = tvm_ffi.convert(lambda a, b: a + b)
    >>> add(1, 2), tvm_ffi.convert(add) is add
    (3, True)
    """
    if value is None or isinstance(value, _UNCHANGED):
        return value
    if isinstance(value, (core.Function, core.Error, core.OpaquePyObject, core.Tensor)):
        return value
    if isinstance(value, (core.Device, core.DataType)):
        return value
    if isinstance(value, (tuple, list)):
        return container.Array(value)
    if isinstance(value, dict):
        return container.Map(value)
    if isinstance(value, str):
        return core.String(value)
    if isinstance(value, (bytes, bytearray)):
        return core.Bytes(value)
    if isinstance(value, core.ObjectConvertible):
        return _asobject(value)
    if callable(value):
        return core._convert_to_ffi_func(value)
    if hasattr(value, "__dlpack__"):
        return core.from_dlpack(value)
    if _is_instance_of_loaded(value, "torch", "dtype"):
        return core._convert_torch_dtype_to_ffi_dtype(value)
    if _is_instance_of_loaded(value, "numpy", "dtype"):
        return core._convert_numpy_dtype_to_ffi_dtype(value)
    if hasattr(value, "__dlpack_data_type__"):
        return _dtype.dtype.from_dlpack_data_type(value.__dlpack_data_type__())
    if isinstance(value, Exception):
        return core._convert_to_ffi_error(value)
    if hasattr(value, "__tvm_ffi_object__"):
        return value.__tvm_ffi_object__()
    if any(hasattr(value, name) for name in _PASSED_BY_PROTOCOL):
        return value
    return core._convert_to_opaque_object(value)


def _is_instance_of_loaded(value: Any, module: str, name: str) -> bool:
    """Tell whether `value` is an instance of a class of a library that somebody has imported."""
    cls = getattr(sys.modules.get(module), name, None)
    return isinstance(cls, type) and isinstance(value, cls)


def _asobject(value: core.ObjectConvertible) -> core.CObject:
    obj = value.asobject()
    if not isinstance(obj, core.CObject):
        owner, got = type(value).__name__, type(obj).__name__
        raise TypeError(f"{owner}.asobject() must return an FFI object, got {got}")
    return obj


def convert_func(pyfunc: Callable[..., Any], tensor_cls: type | None = None) -> core.Function:
    """Make an FFI function of a callable; tensors arrive as `tensor_cls` if one is given.

    >>> import tvm_ffi
    >>> tvm_ffi.convert_func(max)(3, 7)
    7
    """
    return core._convert_to_ffi_func(pyfunc, tensor_cls)
