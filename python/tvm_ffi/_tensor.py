# SPDX-License-Identifier: Apache-2.0
"""Tensors, devices and shapes.

>>> import tvm_ffi
>>> tvm_ffi.Shape((2, 3)), tvm_ffi.device("cuda:1")
((2, 3), device(type='cuda', index=1))
"""

from __future__ import annotations

import numbers
import sys

from . import _ffi_api, core, registry
from .core import Device, DLDeviceType, Tensor, from_dlpack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

__all__ = ["DLDeviceType", "Device", "Shape", "Tensor", "device", "from_dlpack"]


@registry.register_object("ffi.Shape")
class Shape(tuple, core.PyNativeObject):
    """The extents of a tensor: a tuple of integers that keeps its FFI object beside it.

    >>> import tvm_ffi
    >>> from tvm_ffi.testing import echo
    >>> s = tvm_ffi.Shape([2, 3])
    >>> s == (2, 3), echo(s) == s, type(echo(s)).__name__
    (True, True, 'Shape')
    """

    # A tuple has variable size and admits no slots: the cached object is an instance attribute.
    _tvm_ffi_cached_object: Any

    def __new__(cls, content: Iterable[int]) -> Shape:
        items = tuple(content)
        for item in items:
            if not isinstance(item, numbers.Integral):
                raise ValueError(f"Shape must be a tuple of integers, got {item!r}")
        self = tuple.__new__(cls, map(int, items))
        self.__init_cached_object_by_constructor__(_ffi_api.Shape, *self)
        return self

    @staticmethod
    def __from_tvm_ffi_object__(shape_cls: type[Shape], obj: Any) -> Shape:
        """Make a shape from its FFI object `obj`."""
        self = tuple.__new__(shape_cls, core._shape_obj_get_py_tuple(obj))
        self._tvm_ffi_cached_object = obj
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (tuple(self),))


core._set_class_shape(Shape)

# Names of devices that the interface dropped in 0.1.13, and what they meant.
_DROPPED_NAMES = {"llvm": "cpu", "c": "cpu", "test": "cpu", "nvptx": "cuda", "cl": "opencl"}


def _dropped_name(device_type: Any) -> str | None:
    """Return what a dropped name meant, if the process has a package that still uses it."""
    if not isinstance(device_type, str):
        return None
    # apache-tvm 0.25 was made for 0.1.12: its compiler asks for the device `llvm`.
    version = getattr(sys.modules.get("tvm"), "__version__", "")
    if not isinstance(version, str) or not version.startswith("0.25."):
        return None
    return _DROPPED_NAMES.get(device_type)


def device(device_type: str | int | DLDeviceType, index: int | None = None) -> Device:
    """Return a device, of the class that devices from C++ have too.

    >>> import tvm_ffi
    >>> tvm_ffi.device("cuda", 1) == tvm_ffi.device("cuda:1")
    True
    """
    try:
        return core._CLASS_DEVICE(device_type, index)
    except ValueError:
        name = _dropped_name(device_type)
        if name is None:
            raise
        return core._CLASS_DEVICE(name, index)
