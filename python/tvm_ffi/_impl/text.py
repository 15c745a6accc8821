# SPDX-License-Identifier: Apache-2.0
"""Text and bytes: values that compare by ``==`` and are never tied to their C++ object.

>>> from tvm_ffi.core import Bytes, String
>>> String("a") == "a", Bytes(b"a") == b"a"
(True, True)
"""

from __future__ import annotations

import sys

from .objects import required_function

TYPE_CHECKING = False  # typing costs a third of the import time, and only checkers need it
if TYPE_CHECKING:
    from typing import Any

# Half initialised at this point: its C types and functions exist.
core: Any = sys.modules["tvm_ffi.core"]


class PyNativeObject:
    """Mixin of classes that are a native Python value and may keep its FFI object beside it."""

    __slots__: list[str] = []
    _tvm_ffi_cached_object: Any

    def __init_cached_object_by_constructor__(self, fconstructor: Any, *args: Any) -> None:
        """Build the FFI object with `fconstructor` and keep it in ``_tvm_ffi_cached_object``."""
        cached = core._CLASS_OBJECT.__new__(core._CLASS_OBJECT)
        cached.__init_handle_by_constructor__(fconstructor, *args)
        self._tvm_ffi_cached_object = cached


String: Any = core._make_string_type(PyNativeObject)
String.__slots__ = ["_tvm_ffi_cached_object"]


def _string_from_object(string_cls: Any, obj: Any) -> Any:
    """Make a string from its FFI object `obj`."""
    self = str.__new__(string_cls, required_function("ffi.String")(obj))
    self._tvm_ffi_cached_object = obj
    return self


def _string_reduce(self: Any, protocol: Any) -> tuple[type[str], tuple[str]]:
    return (str, (str(self),))


String.__from_tvm_ffi_object__ = staticmethod(_string_from_object)
String.__reduce_ex__ = _string_reduce


class Bytes(bytes, PyNativeObject):
    """A `bytes` that remembers the FFI object it came from.

    >>> from tvm_ffi.core import Bytes
    >>> Bytes(b"hello").find(b"l"), Bytes(b"hello") == b"hello"
    (2, True)
    """

    # bytes has variable size and admits no slots, so the cached object is an instance attribute.

    def __new__(cls, value: Any = b"") -> Bytes:
        self = bytes.__new__(cls, value)
        self._tvm_ffi_cached_object = None
        return self

    @staticmethod
    def __from_tvm_ffi_object__(bytes_cls: type[Bytes], obj: Any) -> Bytes:
        """Make a byte string from its FFI object `obj`."""
        self = bytes.__new__(bytes_cls, required_function("ffi.Bytes")(obj))
        self._tvm_ffi_cached_object = obj
        return self

    def __reduce_ex__(self, protocol: Any) -> tuple[type[bytes], tuple[bytes]]:
        return (bytes, (bytes(self),))


class ByteArrayArg:
    """Bytes on their way into a C function; to the FFI they are the bytes.

    >>> import tvm_ffi
    >>> tvm_ffi.testing.echo(tvm_ffi.core.ByteArrayArg(b"abc"))
    b'abc'
    """

    __slots__ = ("_data",)

    def __init__(self, data: bytes) -> None:
        if not isinstance(data, bytes):
            raise TypeError(f"expected bytes, {type(data).__name__} found")
        self._data = data

    def __tvm_ffi_value__(self) -> bytes:
        """Return the bytes."""
        return self._data


EXPORTS = (
    "ByteArrayArg",
    "Bytes",
    "PyNativeObject",
    "String",
)
