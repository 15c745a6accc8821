# SPDX-License-Identifier: Apache-2.0
"""Errors from C++ as Python exceptions: which class stands for which kind.

>>> from tvm_ffi import core
>>> core.ERROR_NAME_TO_TYPE["ValueError"]
<class 'ValueError'>
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # typing costs a third of the import time, and only checkers need it
if TYPE_CHECKING:
    from typing import Any

# Half initialised at this point: its C types and functions exist.
core: Any = sys.modules["tvm_ffi.core"]


ERROR_NAME_TO_TYPE: dict[str, type[Exception]] = {}
ERROR_TYPE_TO_NAME: dict[type[Exception], str] = {}


def _py_error(error: Any) -> BaseException:
    """Make the Python exception for an FFI error, with the error's frames as its traceback."""
    cls = ERROR_NAME_TO_TYPE.get(error.kind, RuntimeError)
    exception: Any
    try:
        exception = cls(error.message)
    except Exception:
        exception = None
    if not isinstance(exception, BaseException):
        # A registered class that cannot be built from one message must not hide the message.
        exception = RuntimeError(f"{error.kind}: {error.message}")
    if core._WITH_APPEND_BACKTRACE is not None:  # clients may assign to it
        exception = core._WITH_APPEND_BACKTRACE(exception, error.backtrace)
    object.__setattr__(exception, "__tvm_ffi_error__", error)
    try:
        return exception
    finally:
        del exception  # this frame may end up in a traceback; it must not hold the exception


EXPORTS = (
    "ERROR_NAME_TO_TYPE",
    "ERROR_TYPE_TO_NAME",
    "_py_error",
)
