# SPDX-License-Identifier: Apache-2.0
"""One traceback for an exception that crosses C++: its frames become entries of Python's.

>>> from tvm_ffi.error import _parse_backtrace
>>> _parse_backtrace('  File "solver.cc", line 12, in Solve')
[('solver.cc', 12, 'Solve')]
"""

from __future__ import annotations

import re
import sys
import types

TYPE_CHECKING = False  # typing costs a third of the import time, and only checkers need it
if TYPE_CHECKING:
    from typing import Any

# Half initialised at this point: its C types and functions exist.
core: Any = sys.modules["tvm_ffi.core"]

_FRAME_LINE = re.compile(r'File "(.+?)", line (\d+), in (.+)')
_MAX_INT = 2**31 - 1  # of C, in which the interpreter counts lines
_MAX_PLACES = 4096
_MAX_TEXTS = 1024
_MAX_TEXT = 4096  # characters


def _parse_backtrace(backtrace: str) -> list[tuple[str, int, str]]:
    """Return (file, line, function) of each frame, in the order of the text."""
    found = (_FRAME_LINE.match(line.strip()) for line in backtrace.split("\n"))
    return [(m.group(1), _line_number(m.group(2)), m.group(3)) for m in found if m is not None]


def _line_number(digits: str) -> int:
    return int(digits) if len(digits) < 20 else _MAX_INT


def _frame_template() -> Any:
    yield


_OWN_HEADER = re.compile(r"(^|[/\\])tvm/ffi/[\w/]+\.h$")


def _is_own(filename: str) -> bool:
    """Whether a frame is of a template of ours that a library has compiled: users skip it."""
    return filename.endswith(".h") and _OWN_HEADER.search(filename) is not None


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
            if len(self._functions) >= _MAX_PLACES:  # generated code may have any number
                self._functions.clear()
            places: dict[str, Any] = {
                # Whoever prints a traceback looks for the file, which no system does with a NUL.
                "co_filename": filename.replace("\0", "\ufffd"),
                "co_name": func,
                "co_firstlineno": lineno,
            }
            if hasattr(types.CodeType, "co_qualname"):
                places["co_qualname"] = func
            code = _frame_template.__code__.replace(**places)
            function = self._functions[key] = types.FunctionType(code, {})
        return function

    def _frame_at(self, filename: str, lineno: int, func: str) -> types.FrameType:
        """Return a frame for the given place.

        It belongs to a generator that never ran: such a frame has no caller, so a traceback that
        holds it keeps no locals alive.
        """
        return self._function_at(filename, lineno, func)().gi_frame

    def append_traceback(
        self,
        tb: types.TracebackType | None,
        filename: str,
        lineno: int,
        func: str,
    ) -> types.TracebackType:
        """Return an entry for the given place, in front of `tb`."""
        lineno = max(0, min(lineno, _MAX_INT))
        return types.TracebackType(tb, self._frame_at(filename, lineno, func), -1, lineno)


_TRACEBACK_MANAGER = TracebackManager()


# From the base class: a subclass may use these names for something else.
_traceback_of = BaseException.__traceback__.__get__  # type: ignore[union-attr]
_set_traceback = BaseException.with_traceback


# What `find_places` said of the texts that came last. C++ looks here first: the errors of one place
# have one text. Their tracebacks share its frames, which are empty.
KNOWN_PLACES: dict[str, tuple[tuple[types.FrameType, int], ...]] = {}


def find_places(backtrace: str) -> tuple[tuple[types.FrameType, int], ...]:
    """Return frame and line of each place that a text names, most recent call first."""
    places = []
    for filename, lineno, func in _parse_backtrace(backtrace):
        if not _is_own(filename):
            line = min(lineno, _MAX_INT)
            places.append((_TRACEBACK_MANAGER._frame_at(filename, line, func), line))
    found = tuple(places)
    if len(backtrace) <= _MAX_TEXT:
        if len(KNOWN_PLACES) >= _MAX_TEXTS:  # generated code may have any number
            KNOWN_PLACES.clear()
        KNOWN_PLACES[backtrace] = found
    return found


def _without_locals(traceback: types.TracebackType | None) -> types.TracebackType | None:
    """Return a traceback of the same places whose frames hold nothing."""
    places = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        places.append((code.co_filename, traceback.tb_lineno or 0, code.co_name))
        traceback = traceback.tb_next
    for place in reversed(places):
        traceback = _TRACEBACK_MANAGER.append_traceback(traceback, *place)
    return traceback


def release_frames(exception: BaseException, backtrace: str) -> None:
    """Replace the frames of an exception that C++ keeps, and of its causes, by bare places."""
    core._with_append_backtrace(_set_traceback(exception, None), backtrace)
    seen = {id(exception)}
    rest = [exception]
    while rest:
        one = rest.pop()
        for other in (one.__cause__, one.__context__, *_members(one)):
            if isinstance(other, BaseException) and id(other) not in seen:
                seen.add(id(other))
                rest.append(other)
                _set_traceback(other, _without_locals(_traceback_of(other)))


def _members(exception: BaseException) -> tuple[Any, ...]:
    members = getattr(exception, "exceptions", ())  # of an exception group
    return members if isinstance(members, tuple) else ()
