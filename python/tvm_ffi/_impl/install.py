# SPDX-License-Identifier: Apache-2.0
"""Completes ``tvm_ffi.core``: adds the names that are written in Python and tells C++ what it uses.

The extension imports this module at the end of its own initialisation and calls `install`.

>>> import tvm_ffi
>>> tvm_ffi.core.object_repr.__module__
'tvm_ffi.core'
"""

from __future__ import annotations

import sys

from .. import _type_schema
from . import (
    device_types,
    errors,
    fallback_classes,
    libraries,
    objects,
    signatures,
    text,
    tracebacks,
    type_info,
    type_members,
    type_registration,
)

TYPE_CHECKING = False  # typing costs a third of the import time, and only checkers need it
if TYPE_CHECKING:
    from typing import Any

core: Any = sys.modules["tvm_ffi.core"]

_MODULES = (
    objects,
    text,
    type_members,
    type_info,
    type_registration,
    _type_schema,
    errors,
    device_types,
    libraries,
)

# What C++ uses; src/python/wrap/python_hooks.h says what each of them is for.
HOOKS = {
    "object_class": objects.Object,
    "native_object_class": text.PyNativeObject,
    "bytes_class": text.Bytes,
    "convertible_class": objects.ObjectConvertible,
    "convert_error_class": _type_schema._ConvertError,
    "make_class": fallback_classes.fallback_class,
    "type_info_of_class": type_info._type_cls_to_type_info,
    "object_repr": objects.object_repr,
    "error_kinds": errors.ERROR_TYPE_TO_NAME,
    "describe": signatures.describe,
    "error_classes": errors.ERROR_NAME_TO_TYPE,
    "class_and_text": errors.class_and_text,
    "known_places": tracebacks.KNOWN_PLACES,
    "find_places": tracebacks.find_places,
    "release_frames": tracebacks.release_frames,
    "dtype_of_torch": libraries._convert_torch_dtype_to_ffi_dtype,
    "dtype_of_numpy": libraries._convert_numpy_dtype_to_ffi_dtype,
    "prepare_torch": libraries.prepare_torch,
}


def install(core_module: Any) -> None:
    """Add what is written in Python to the extension and register the classes of the core."""
    if core_module is not core:
        raise ImportError("tvm_ffi._impl was loaded for another instance of tvm_ffi.core")
    for module in _MODULES:
        for name in module.EXPORTS:
            value = getattr(module, name)
            setattr(core, name, value)
            if hasattr(value, "__qualname__"):
                value.__module__ = core.__name__
    core._WITH_APPEND_BACKTRACE = core._with_append_backtrace
    core._TRACEBACK_TO_BACKTRACE_STR = core._traceback_text
    objects.install()
    libraries.install()
    signatures.install()
    core._set_hooks(**HOOKS)
    abi = core._abi
    for type_index, cls in (
        (abi.kTVMFFIDataType, core.DataType),
        (abi.kTVMFFIDevice, core.Device),
        (abi.kTVMFFIObject, core.Object),
        (abi.kTVMFFIStr, core.String),
        (abi.kTVMFFIBytes, core.Bytes),
        (abi.kTVMFFIError, core.Error),
        (abi.kTVMFFIFunction, core.Function),
        (abi.kTVMFFITensor, core.Tensor),
    ):
        core._register_object_by_index(type_index, cls)
    core._set_class_of_index(abi.kTVMFFIOpaquePyObject, core.OpaquePyObject)
