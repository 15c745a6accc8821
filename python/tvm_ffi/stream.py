# SPDX-License-Identifier: Apache-2.0
"""The stream that called functions work on, per thread and device.

>>> import tvm_ffi
>>> gpu = tvm_ffi.device("cuda:0")
>>> with tvm_ffi.use_raw_stream(gpu, 0x10):
...     tvm_ffi.get_raw_stream(gpu)
16
>>> tvm_ffi.get_raw_stream(gpu)
0
"""

from __future__ import annotations

from ctypes import c_void_p

from . import core
from ._tensor import device

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from typing import Any

__all__ = ["StreamContext", "device", "get_raw_stream", "use_raw_stream", "use_torch_stream"]


class StreamContext:
    """Makes a stream current on a device for as long as a ``with`` block runs.

    >>> from tvm_ffi import StreamContext, device, get_raw_stream
    >>> with StreamContext(device("cuda:0"), 7) as context:
    ...     context.prev_stream, get_raw_stream(device("cuda:0"))
    (0, 7)
    """

    def __init__(self, device: core.Device, stream: int | c_void_p) -> None:
        self.device_type = device.dlpack_device_type()
        self.device_id = device.index
        self.stream = (stream.value or 0) if isinstance(stream, c_void_p) else stream
        self.prev_stream: int | None = None
        self._outer: list[int] = []  # one for each block that is open, the innermost last

    def __enter__(self) -> StreamContext:
        self.prev_stream = core._env_set_current_stream(
            self.device_type, self.device_id, self.stream
        )
        self._outer.append(self.prev_stream)
        return self

    def __exit__(self, *args: Any) -> None:
        if not self._outer:
            raise RuntimeError("the stream context was not entered")
        core._env_set_current_stream(self.device_type, self.device_id, self._outer.pop())
        if self._outer:
            self.prev_stream = self._outer[-1]


class _TorchStreamContext:
    """Enters a torch context, then makes torch's current stream the one of FFI calls too."""

    def __init__(self, context: AbstractContextManager[Any] | None) -> None:
        self.torch_context = context
        self.ffi_contexts: list[StreamContext] = []  # of the blocks that are open

    def __enter__(self) -> _TorchStreamContext:
        if self.torch_context is not None:
            self.torch_context.__enter__()
        current = core.torch.cuda.current_stream()
        ffi_context = StreamContext(device(str(current.device)), current.cuda_stream)
        self.ffi_contexts.append(ffi_context.__enter__())
        return self

    def __exit__(self, *args: Any) -> None:
        try:
            if self.torch_context is not None:
                self.torch_context.__exit__(*args)
        finally:
            if self.ffi_contexts:
                self.ffi_contexts.pop().__exit__(*args)


def use_torch_stream(context: AbstractContextManager[Any] | None = None) -> Any:
    """Return a context manager that makes torch's current stream the one of FFI calls.

    `context` is entered first if given: ``torch.cuda.stream(..)`` or ``torch.cuda.graph(..)``.
    Raises ImportError where torch is missing.
    """
    if core.torch is None:
        raise ImportError("Cannot import torch")
    return _TorchStreamContext(context)


def use_raw_stream(device: core.Device, stream: int | c_void_p) -> StreamContext:
    """Return a context manager that makes the stream with that address current on `device`.

    >>> import ctypes, tvm_ffi
    >>> gpu = tvm_ffi.device("cuda:0")
    >>> with tvm_ffi.use_raw_stream(gpu, ctypes.c_void_p(3)):
    ...     tvm_ffi.get_raw_stream(gpu)
    3
    """
    if not isinstance(device, core.Device):
        raise TypeError(f"use_raw_stream expects a Device first, got {type(device).__name__}")
    if not isinstance(stream, (int, c_void_p)):
        raise ValueError(
            "use_raw_stream only accepts int or c_void_p as stream input, "
            "try use_torch_stream when using torch.cuda.Stream or torch.cuda.graph"
        )
    return StreamContext(device, stream)


def get_raw_stream(device: core.Device) -> int:
    """Return the address of the stream that is current on `device` in this thread, 0 if none is.

    >>> import tvm_ffi
    >>> tvm_ffi.get_raw_stream(tvm_ffi.device("cuda:0"))
    0
    """
    if not isinstance(device, core.Device):
        raise TypeError(f"get_raw_stream expects a Device, got {type(device).__name__}")
    return core._env_get_current_stream(device.dlpack_device_type(), device.index)
