# SPDX-License-Identifier: Apache-2.0
"""Exceptions between Python and C++: which class stands for which kind, and one traceback.

An error raised in C++ arrives as the Python exception of the same kind, with the C++ frames as the
last lines of its traceback; `register_error` adds kinds.

>>> import tvm_ffi
>>> @tvm_ffi.register_error
... class DocError(RuntimeError):
...     '''Raised by my library.'''
>>> try:
...     tvm_ffi.get_global_func("testing.test_raise_error")("DocError", "no luck")
... except DocError as error:
...     print(error)
no luck
"""

from __future__ import annotations

from . import core
from ._impl.tracebacks import (
    TracebackManager,
    _parse_backtrace,  # noqa: F401  # clients use it
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["TracebackManager", "register_error"]

_traceback_to_backtrace_str = core._traceback_text
_with_append_backtrace = core._with_append_backtrace


def register_error(
    name_or_cls: str | type[Exception] | None = None, cls: type[Exception] | None = None
) -> Any:
    """Make a class the exception of the error kind with its name, or with the given name.

    Usable as ``@register_error``, ``@register_error("Name")`` and ``register_error("Name", Cls)``.
    """
    if isinstance(name_or_cls, type):
        cls, name_or_cls = name_or_cls, name_or_cls.__name__

    def register(error_class: type[Exception]) -> type[Exception]:
        if not (isinstance(error_class, type) and issubclass(error_class, BaseException)):
            raise TypeError(f"register_error expects an exception class, got {error_class!r}")
        name = name_or_cls if isinstance(name_or_cls, str) else error_class.__name__
        core.ERROR_TYPE_TO_NAME[error_class] = name
        core.ERROR_NAME_TO_TYPE[name] = error_class
        return error_class

    if name_or_cls is not None and not isinstance(name_or_cls, str):
        raise TypeError("register_error expects a name or an exception class")
    return register if cls is None else register(cls)


for _builtin in (
    RuntimeError,
    ValueError,
    TypeError,
    AttributeError,
    KeyError,
    IndexError,
    AssertionError,
    MemoryError,
    BufferError,
):
    register_error(_builtin)
