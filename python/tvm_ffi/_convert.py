# SPDX-License-Identifier: Apache-2.0
"""Explicit conversion of Python values to what the FFI would make of them.

>>> import tvm_ffi
>>> tvm_ffi.convert([1, {"a": 2}])
(1, {"a": 2})
"""

from __future__ import annotations

from . import _dtype, container, core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["convert", "convert_func"]


def _asobject(value: core.ObjectConvertible) -> core.CObject:
    obj = value.asobject()
    if not isinstance(obj, core.CObject):
        owner, got = type(value).__name__, type(obj).__name__
        raise TypeError(f"{owner}.asobject() must return an FFI object, got {got}")
    return obj


def _dtype_by_protocol(value: Any) -> _dtype.dtype:
    return _dtype.dtype.from_dlpack_data_type(value.__dlpack_data_type__())


def _object_by_protocol(value: Any) -> Any:
    return value.__tvm_ffi_object__()


# What `convert` makes of a kind of values. Which kind a value is says the extension, by the table
# that decides it for arguments too; values of the other kinds come back unchanged.
_MAKERS: dict[str, Callable[[Any], Any]] = {
    "Sequence": container.Array,
    "Dict": container.Map,
    "Str": core.String,
    "Bytes": core.Bytes,
    "ByteArray": core.Bytes,
    "Convertible": _asobject,
    "Callable": core._convert_to_ffi_func,
    "DLPack": core.from_dlpack,
    "TorchDType": core._convert_torch_dtype_to_ffi_dtype,
    "NumpyDType": core._convert_numpy_dtype_to_ffi_dtype,
    "DTypeProtocol": _dtype_by_protocol,
    "Exception": core._convert_to_ffi_error,
    "FFIObject": _object_by_protocol,
    "Opaque": core._convert_to_opaque_object,
}


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
    make = _MAKERS.get(core._kind_for_convert(value))
    return value if make is None else make(value)


def convert_func(pyfunc: Callable[..., Any], tensor_cls: type | None = None) -> core.Function:
    """Make an FFI function of a callable; tensors arrive as `tensor_cls` if one is given.

    >>> import tvm_ffi
    >>> tvm_ffi.convert_func(max)(3, 7)
    7
    """
    return core._convert_to_ffi_func(pyfunc, tensor_cls)
