# SPDX-License-Identifier: Apache-2.0
"""Exceptions across the language border: which class stands for which kind, and one traceback.

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

import re
import types

from . import core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["TracebackManager", "register_error"]

_FRAME_LINE = re.compile(r'File "(.+?)", line (\d+), in (.+)')


def register_error(
    name_or_cls: str | type[Exception] | None = None, cls: type[Exception] | None = None
) -> Any:
    """Make a class the exception of the error kind that bears its name, or the name given.

    Usable as ``@register_error``, ``@register_error("Name")`` and ``register_error("Name", Cls)``.
    """
    if isinstance(name_or_cls, type):
        cls, name_or_cls = name_or_cls, name_or_cls.__name__

    def register(error_class: type[Exception]) -> type[Exception]:
        if not (isinstance(error_class, type) and issubclass(error_class, BaseException)):
            raise TypeError(f"register_error expects an exception class, got {error_class!r}")
        name = name_or_cls if isinstance(name_or_cls, str) else error_class.__name__
        core.ERROR_NAME_TO_TYPE[name] = error_class
        core.ERROR_TYPE_TO_NAME[error_class] = name
        return error_class

    if name_or_cls is not None and not isinstance(name_or_cls, str):
        raise TypeError("register_error expects a name or an exception class")
    return register if cls is None else register(cls)


def _parse_backtrace(backtrace: str) -> list[tuple[str, int, str]]:
    """Return (file, line, function) of each frame, in the order of the text."""
    found = (_FRAME_LINE.match(line.strip()) for line in backtrace.splitlines())
    return [(m.group(1), int(m.group(2)), m.group(3)) for m in found if m is not None]


def _frame_template() -> Any:
    yield


_MAX_PLACES = 4096


class TracebackManager:
    """Makes traceback entries for places that are not in Python code.

    >>> from tvm_ffi.error import TracebackManager
    >>> entry = TracebackManager().append_traceback(None, "solver.cc", 12, "Solve")
    >>> entry.tb_lineno, entry.tb_frame.f_code.co_name
    (12, 'Solve')
    """

    def __init__(self) -> None:
        """Start without any known place."""
        # Functions, not their code alone: free-threaded 3.13 never frees a function.
        self._functions: dict[tuple[str, int, str], types.FunctionType] = {}

    def _function_at(self, filename: str, lineno: int, func: str) -> types.FunctionType:
        key = (filename, lineno, func)
        function = self._functions.get(key)
        if function is None:
            places: dict[str, Any] = {
                "co_filename": filename,
                "co_name": func,
                "co_firstlineno": lineno,
            }
            if hasattr(types.CodeType, "co_qualname"):
                places["co_qualname"] = func
            code = _frame_template.__code__.replace(**places)
            if len(self._functions) >= _MAX_PLACES:  # of generated code there is no end
                self._functions.clear()
            function = self._functions[key] = types.FunctionType(code, {})
        return function

    def append_traceback(
        self, tb: types.TracebackType | None, filename: str, lineno: int, func: str
    ) -> types.TracebackType:
        """Return an entry for the given place, in front of `tb`.

        Its frame belongs to a generator that never ran: such a frame has no caller, so a traceback
        holding it keeps nobody's locals alive.
        """
        frame = self._function_at(filename, lineno, func)().gi_frame
        return types.TracebackType(tb, frame, -1, lineno)


_TRACEBACK_MANAGER = TracebackManager()


def _with_append_backtrace(py_error: BaseException, backtrace: str) -> BaseException:
    """Put the frames of `backtrace`, most recent call first, around the exception's traceback."""
    traceback = py_error.__traceback__
    for filename, lineno, function in _parse_backtrace(backtrace):
        traceback = _TRACEBACK_MANAGER.append_traceback(traceback, filename, lineno, function)
    return py_error.with_traceback(traceback)


def _traceback_to_backtrace_str(traceback: types.TracebackType | None) -> str:
    """Return the frames of a traceback as text, most recent call first."""
    lines = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        lines.append(
            f'  File "{code.co_filename}", line {traceback.tb_lineno}, in {code.co_name}\n'
        )
        traceback = traceback.tb_next
    return "".join(reversed(lines))


core._WITH_APPEND_BACKTRACE = _with_append_backtrace
core._TRACEBACK_TO_BACKTRACE_STR = _traceback_to_backtrace_str

for _builtin in (
    RuntimeError,
    ValueError,
    TypeError,
    AttributeError,
    KeyError,
    IndexError,
    AssertionError,
    MemoryError,
):
    register_error(_builtin)
