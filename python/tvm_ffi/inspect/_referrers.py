# SPDX-License-Identifier: Apache-2.0
"""Who refers to a Python object, and by what name. No code of the objects runs."""

from __future__ import annotations

import collections
import contextvars
import gc
import itertools
import sys
import sysconfig
import types
from collections.abc import Iterable, Iterator
from typing import Any

from .. import core
from . import _quiet
from ._world import CO_OPTIMIZED, PACKAGE, is_wrapper, variables_of

FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))

_FRAME_OF = {
    types.GeneratorType: "gi_frame",
    types.CoroutineType: "cr_frame",
    types.AsyncGeneratorType: "ag_frame",
}
_OF_EXCEPTION = [
    (name, BaseException.__dict__[name].__get__)
    for name in ("args", "__traceback__", "__cause__", "__context__")
]


def locals_of(frame: types.FrameType) -> list[tuple[str, Any]]:
    """Return the local variables of a frame by name.

    Variables that a nested function captures are in cells, which are objects of their own: they are
    left out here.
    """
    code = frame.f_code
    found = variables_of(frame)
    if code.co_flags & CO_OPTIMIZED:
        captured = {*code.co_cellvars, *code.co_freevars}
        found = [(name, value) for name, value in found if name not in captured]
    return found


def captured_of(frame: types.FrameType) -> list[tuple[str, Any]]:
    """Return the local variables of a frame that `locals_of` leaves out."""
    code = frame.f_code
    captured = {*code.co_cellvars, *code.co_freevars}
    if not captured or not code.co_flags & CO_OPTIMIZED:
        return []
    return [(name, value) for name, value in variables_of(frame) if name in captured]


def frame_of(holder: Any) -> types.FrameType | None:
    """The frame of a generator or coroutine that has not ended."""
    return getattr(holder, _FRAME_OF[type(holder)]) if _is_suspendable(holder) else None


def _is_suspendable(obj: Any) -> bool:
    return _quiet.is_exactly(obj, _FRAME_OF)


def module_of_namespace() -> dict[int, str]:
    """The names of modules by the `id` of their `__dict__`."""
    found = {}
    for name, module in list(sys.modules.items()):
        if _quiet.is_a(module, types.ModuleType):
            found[id(_quiet.namespace(module))] = _quiet.text(name)
    return found


def places(holder: Any, ids: set[int]) -> list[tuple[int, str]]:
    """Return (id, where) for each reference of `holder` to one of `ids` that has a name."""
    return [(id(obj), place) for place, obj in _parts(holder) if id(obj) in ids]


def _parts(holder: Any) -> Iterator[tuple[str, Any]]:
    """Yield what an object refers to, as far as that has a name."""
    kind = type(holder)
    if kind is types.CellType:
        yield from (("captured variable", obj) for obj in gc.get_referents(holder))
    elif kind is types.FrameType:
        yield from ((f"variable {name!r}", value) for name, value in locals_of(holder))
    elif kind is types.FunctionType:
        for attribute in ("__closure__", "__defaults__", "__kwdefaults__", "__dict__"):
            yield attribute, getattr(holder, attribute)
    elif kind is types.MethodType:
        yield "self", holder.__self__
        yield "function", holder.__func__
    elif kind is types.TracebackType:
        yield "frame", holder.tb_frame
        yield "next traceback", holder.tb_next
    elif _is_suspendable(holder):
        frame = frame_of(holder)
        if sys.version_info < (3, 11):  # there the frame is an object of its own
            yield "frame", frame
        elif frame is not None:
            yield from ((f"variable {name!r}", value) for name, value in locals_of(frame))
    elif is_of_context(holder):
        for value, key in itertools.pairwise(gc.get_referents(holder)):
            if type(key) is contextvars.ContextVar:
                yield f"context variable {_quiet.text(key.name)!r}", value
    else:
        yield from _items(holder)
        if not _quiet.is_exactly(holder, _WITHOUT_ATTRIBUTES):
            yield from ((f".{name}", value) for name, value in _quiet.attributes(holder))


_WITHOUT_ATTRIBUTES = (dict, list, tuple, set, frozenset)


def _items(holder: Any) -> Iterator[tuple[str, Any]]:
    """Yield the items of a container, also of a class that is derived from one."""
    kind = type(holder)
    if issubclass(kind, dict):
        # A copy of the items would refer to them, too; keys cannot be looked up by identity.
        for key, value in dict.items(holder):
            yield (f"[{key!r:.60}]" if _is_plain(key) else "a value"), value
            yield "a key", key
    elif issubclass(kind, tuple):
        names = _quiet.member(kind, "_fields")  # of a namedtuple
        names = names if type(names) is tuple else ()
        for i, item in enumerate(tuple.__iter__(holder)):
            has_name = i < len(names) and type(names[i]) is str
            yield (f".{names[i]}" if has_name else f"[{i}]"), item
    elif issubclass(kind, BaseException):
        yield from ((f".{name}", get(holder)) for name, get in _OF_EXCEPTION)
    for sequence in (list, collections.deque):
        if issubclass(kind, sequence):
            yield from ((f"[{i}]", item) for i, item in enumerate(sequence.__iter__(holder)))
    for collection in (set, frozenset):
        if issubclass(kind, collection):
            yield from (("an element", item) for item in collection.__iter__(holder))


def is_of_context(obj: Any) -> bool:
    """Say whether an object is a part of what a `contextvars.Context` is made of."""
    return _quiet.full_name(type(obj)).startswith("builtins.hamt")


def _is_plain(key: Any) -> bool:
    return _quiet.is_exactly(key, (str, int, float, bool, bytes, type(None)))


def referents(holder: Any) -> list[Any]:
    """What the collector sees that a Python object refers to; of a wrapper without what its C++
    object refers to."""
    return core._inspect_own_referents(holder) if is_wrapper(holder) else gc.get_referents(holder)


def references(holder: Any, ids: set[int]) -> list[tuple[int, str]]:
    """Return one (id, where) for each reference of `holder` to one of `ids` that the collector
    sees, with its name if it has one."""
    counts: dict[int, int] = {}
    for obj in referents(holder):
        if id(obj) in ids:
            counts[id(obj)] = counts.get(id(obj), 0) + 1
    found = []
    for key, place in places(holder, ids) if counts else ():
        if counts.get(key, 0) > 0:
            counts[key] -= 1
            found.append((key, place))
    for key, count in counts.items():
        found += [(key, "a reference")] * count
    return found


def referrers(
    objects: dict[int, Any], ids: Iterable[int], unlisted: Iterable[int] = ()
) -> list[Any]:
    """Return what refers to some of `objects`, but for that dict itself and this package.

    `unlisted` are ids of objects that the collector does not list and that may be among them.
    """
    wanted = tuple([objects[key] for key in ids])  # passed on as it is, so it can be told apart
    found = who_refers_to(wanted)
    known = set(ids)
    for key in unlisted:
        if not known.isdisjoint(map(id, referents(objects[key]))):
            found.append(objects[key])
    own = {id(objects), id(wanted), id(found), id(sys._getframe())}
    return [obj for obj in found if id(obj) not in own and not _is_own(obj)]


_FEW = 32
_CHUNK = 512


def who_refers_to(wanted: tuple[Any, ...]) -> list[Any]:
    """Do what `gc.get_referrers` does, which compares each reference with each wanted object, in a
    time that does not depend on how many are wanted."""
    if len(wanted) <= _FEW:
        return gc.get_referrers(*wanted)
    ids = set(map(id, wanted))
    found = []
    listed = gc.get_objects()
    for begin in range(0, len(listed), _CHUNK):
        chunk = listed[begin : begin + _CHUNK]
        if not ids.isdisjoint(map(id, gc.get_referents(*chunk))):
            found += [obj for obj in chunk if not ids.isdisjoint(map(id, gc.get_referents(obj)))]
    return [obj for obj in found if obj is not wanted]


def classes_without_collector() -> list[type]:
    """Return the classes that the collector does not list.

    The free-threaded CPython 3.13 makes classes immortal as soon as a thread was started.
    """
    found: dict[int, type] = {}
    pending: list[type] = [object]
    while FREE_THREADED and pending:
        below: list[type] = type.__subclasses__(pending.pop())
        for cls in below:
            if id(cls) not in found:
                found[id(cls)] = cls
                pending.append(cls)
    return [cls for cls in found.values() if not gc.is_tracked(cls)]


def _is_own(obj: Any) -> bool:
    return type(obj) is types.FrameType and obj.f_code.co_filename.startswith(PACKAGE)


_CONTAINERS = (dict, list, tuple, set, frozenset, collections.deque)


def describe(obj: Any) -> str:
    """Name a Python object for people."""
    kind = type(obj)
    if kind is types.FunctionType:
        return f"function {_quiet.text(obj.__qualname__)} ({_place_of(obj.__code__)})"
    if kind is types.FrameType:
        name = obj.f_code.co_name
        return f"{name}() at {obj.f_code.co_filename}:{obj.f_lineno}"
    if kind is types.MethodType:
        function = obj.__func__
        is_plain = type(function) is types.FunctionType
        return f"method {_quiet.text(function.__qualname__)}" if is_plain else "method"
    if _is_suspendable(obj):
        return f"{kind.__name__} {_quiet.text(obj.__qualname__)}"
    if kind is types.CellType:
        return "cell"
    if is_of_context(obj):
        return "a part of a context"
    if kind is types.TracebackType:
        code = obj.tb_frame.f_code
        return f"traceback of {code.co_name}() at {code.co_filename}:{obj.tb_lineno}"
    for container in _CONTAINERS:
        if issubclass(kind, container):
            name = _quiet.full_name(kind).removeprefix("builtins.")
            return f"{name} of {container.__len__(obj)}"
    if issubclass(kind, type):
        return f"class {_quiet.full_name(obj)}"
    if issubclass(kind, BaseException):
        return f"exception {_quiet.name(kind)}"
    if issubclass(kind, types.ModuleType):
        return f"module {_quiet.text(_quiet.namespace(obj).get('__name__'))}"
    name = _quiet.name(kind) if is_wrapper(obj) else _quiet.full_name(kind)
    return f"{name} object at {id(obj):#x}"


def _place_of(code: types.CodeType) -> str:
    return f"{code.co_filename}:{code.co_firstlineno}"


# ---- the other direction ----

_NOT_FOLLOWED = (
    str,
    bytes,
    int,
    float,
    complex,
    bool,
    type(None),
    type,
    types.ModuleType,
    types.CodeType,
    types.BuiltinFunctionType,
    types.FrameType,
    types.TracebackType,
)


def may_lead_on(obj: Any) -> bool:
    """Say whether an object may refer to objects of C++ in a way that is worth showing."""
    return not issubclass(type(obj), _NOT_FOLLOWED)


def state_of(obj: Any) -> list[tuple[str, Any]]:
    """Attributes in slots and in `__dict__`, by name."""
    return [(name, value) for name, value in _quiet.attributes(obj) if name != "__dict__"]


def parts_of(obj: Any) -> list[tuple[str, Any]]:
    """What a Python object refers to, by name."""
    kind = type(obj)
    if kind is types.FunctionType:
        found = []
        for name, cell in zip(obj.__code__.co_freevars, obj.__closure__ or (), strict=False):
            found += [(name, value) for value in gc.get_referents(cell)]
        for defaults in (obj.__defaults__, obj.__kwdefaults__):
            found += [("default", value) for _, value in _items(defaults)]
        return found
    if kind is types.MethodType:
        return [("self", obj.__self__), ("function", obj.__func__)]
    if is_wrapper(obj):
        return []
    named = [(place, value) for place, value in _parts(obj) if place != ".__dict__"]
    known = {id(value) for _, value in named}
    return named + [("", value) for value in gc.get_referents(obj) if id(value) not in known]
