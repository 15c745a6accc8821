# SPDX-License-Identifier: Apache-2.0
"""The C++ objects that can be found, as data."""

from __future__ import annotations

import gc
import sys
import types
from pathlib import Path
from typing import Any, NamedTuple

from .. import core
from . import _quiet

PACKAGE = str(Path(__file__).parent)  # as the names of code objects have it, links and all
CO_OPTIMIZED = 1
NO_WRAPPER = "no wrapper"  # Python never had the object, or its wrapper died


class Node(NamedTuple):
    """A C++ object."""

    address: int
    type_index: int
    strong: int
    weak: int
    wrapper_id: int
    cls: type | None
    state: str
    python_references: int  # with those of whoever asked: see World.python_references
    held_by_calls: int
    is_argument: bool
    is_adopted: bool
    serial: int
    line: int


def is_wrapper(obj: Any) -> bool:
    """Say whether an object stands for a C++ object, without asking the object."""
    return issubclass(type(obj), core.CObject)


def live_wrappers() -> list[Any]:
    """Return the wrappers that Python refers to.

    The collector does not list those that cannot be part of a ring. They are found where something
    refers to them: in what it lists, and in variables of running functions.
    """
    listed = gc.get_objects()
    referred = gc.get_referents(*listed)
    for _, frame in running_frames():
        referred += [value for _, value in variables_of(frame)]
    return [obj for obj in listed if is_wrapper(obj)] + core._inspect_leaves(referred)


def running_frames() -> list[tuple[int, types.FrameType]]:
    """Return the frames of all threads, but for those of this package.

    A frame that refers to itself would keep its variables when it ends, so this is not a generator:
    here the frame of the function itself is met in passing only.
    """
    found = []
    frame: types.FrameType | None
    innermost = sys._current_frames()
    while innermost:
        thread, frame = innermost.popitem()
        while frame is not None:
            if not frame.f_code.co_filename.startswith(PACKAGE):
                found.append((thread, frame))
            frame = frame.f_back
    return found


def _variables_of_function() -> Any:
    return sys._getframe().f_locals


_Variables = type(_variables_of_function())


def variables_of(frame: types.FrameType) -> list[tuple[str, Any]]:
    """Return the local variables of a frame."""
    variables: Any = frame.f_locals
    if issubclass(type(variables), dict):
        found = list(dict.items(variables))
    elif type(variables) is _Variables:
        found = list(variables.items())
    else:  # a class is being defined whose metaclass has made a namespace of its own kind
        found = []
    del variables
    drop_copy(frame)
    return [(_quiet.plain_name(name), value) for name, value in found]


def drop_copy(frame: types.FrameType) -> None:
    """Clear the `f_locals` of a function: before 3.13 it is a copy that the frame keeps, with a
    reference to every variable. Not if somebody else has it, too."""
    if not frame.f_code.co_flags & CO_OPTIMIZED:
        return
    values = frame.f_locals
    if type(values) is dict and sys.getrefcount(values) <= 3:
        values.clear()


class World:
    """Everything that can be found, at one moment.

    It holds the C++ objects until `close`. Python objects that C++ refers to are in `objects` by
    their `id`, and nowhere else: so whoever looks for referrers has one dict to pass over.
    """

    def __init__(self, seeds: list[Any] | None = None, *, everything: bool = True) -> None:
        # Empties the list: it would count as a holder.
        collects = gc.isenabled()
        gc.disable()  # many small objects are made here, and none of them is garbage
        try:
            self._look(seeds if seeds is not None else [], everything)
        finally:
            if collects:
                gc.enable()

    def _look(self, seeds: list[Any], everything: bool) -> None:
        wrappers = [obj for obj in seeds if is_wrapper(obj)]
        seeds.clear()
        if everything:
            wrappers += live_wrappers()
        raw = core._inspect_world(wrappers, everything)
        self._capsule, nodes, edges, roots, node_of, self.type_keys, self.lines = raw
        del raw
        self.node_of_wrapper: dict[int, int] = {}
        # How often the list of wrappers referred to each when references were counted.
        self._given: dict[int, int] = {}
        for wrapper, node in zip(wrappers, node_of, strict=True):
            if node >= 0:
                self.node_of_wrapper[id(wrapper)] = node
                self._given[id(wrapper)] = self._given.get(id(wrapper), 0) + 1
        wrappers.clear()
        self.nodes = list(map(Node._make, nodes))
        self.objects: dict[int, Any] = {}
        # (from, to, place), and (from, id of a Python object, place)
        self.edges: list[tuple[int, int, str]] = []
        self.python_edges: list[tuple[int, int, str]] = []
        for source, target, obj, place in edges:
            if target >= 0:
                self.edges.append((source, target, place))
            else:
                self.objects[id(obj)] = obj
                self.python_edges.append((source, id(obj), place))
        self.roots: dict[int, list[str]] = {}
        for node_index, name in roots:
            self.roots.setdefault(node_index, []).append(name)
        self.untied: dict[int, list[int]] = {}
        for wrapper_id, node_index in self.node_of_wrapper.items():
            if self.nodes[node_index].wrapper_id != wrapper_id:
                self.untied.setdefault(node_index, []).append(wrapper_id)
        self._holders: dict[int, list[tuple[int, str]]] | None = None
        self._python_holders: dict[int, list[tuple[int, str]]] | None = None

    def wrapper(self, index: int) -> Any:
        """The wrapper of a node, or None. It stays as it is: dormant, if it was."""
        return core._inspect_wrapper(self._capsule, index)

    def leave_out(self, wrapper_id: int) -> None:
        """Do not count one of the Python references to a wrapper."""
        self._given[wrapper_id] = self._given.get(wrapper_id, 0) + 1

    def python_references(self, index: int) -> int:
        """Count the Python references to the wrapper of a node."""
        node = self.nodes[index]
        return node.python_references - self._given.get(node.wrapper_id, 0)

    @property
    def holders(self) -> dict[int, list[tuple[int, str]]]:
        """The edges that lead to each node, as (from, place)."""
        if self._holders is None:
            self._holders = {}
            for source, target, place in self.edges:
                self._holders.setdefault(target, []).append((source, place))
        return self._holders

    @property
    def python_holders(self) -> dict[int, list[tuple[int, str]]]:
        """The edges that lead to each Python object by its `id`, as (from, place)."""
        if self._python_holders is None:
            self._python_holders = {}
            for source, target, place in self.python_edges:
                self._python_holders.setdefault(target, []).append((source, place))
        return self._python_holders

    def add_unlisted(self) -> list[int]:
        """Add the wrappers that have a Python state and that the collector does not list to
        `objects`, and return their ids."""
        found = []
        for i, node in enumerate(self.nodes):
            if node.cls is not None and _quiet.has_state(node.cls):
                wrapper = self.wrapper(i)
                if wrapper is not None and not gc.is_tracked(wrapper):
                    self.objects[id(wrapper)] = wrapper
                    found.append(id(wrapper))
        return found

    def unseen(self, index: int) -> int:
        """Count the strong references to a node whose owner was not found."""
        node = self.nodes[index]
        found = len(self.holders.get(index, ())) + len(self.roots.get(index, ()))
        found += node.held_by_calls + len(self.untied.get(index, ()))
        return max(0, node.strong - found - (node.state == "active"))

    def type_name(self, index: int) -> str:
        """Name the class of a node: the Python class where it has one."""
        node = self.nodes[index]
        return _quiet.name(node.cls) if node.cls is not None else self.type_keys[node.type_index]

    def describe(self, index: int) -> str:
        """Name a node for people."""
        node = self.nodes[index]
        state = node.state or NO_WRAPPER
        return f"{self.type_name(index)} at {node.address:#x} ({state})"

    def line_of(self, index: int) -> tuple[str, int, str] | None:
        """The Python line that made or first fetched a node, if that was recorded."""
        return self.lines[self.nodes[index].line]

    def close(self) -> None:
        """Let go of all objects."""
        self.objects.clear()
        self._capsule = None

    def __enter__(self) -> World:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
