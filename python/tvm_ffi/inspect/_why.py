# SPDX-License-Identifier: Apache-2.0
"""Why an object is alive."""

from __future__ import annotations

import contextvars
import gc
import sys
import threading
import types
from dataclasses import dataclass, field
from typing import Any

from .. import tying
from . import _quiet, _referrers, _statics
from ._held import Held, Key
from ._world import World, is_wrapper, running_frames


@dataclass
class Holder:
    """One reference to an object.

    `kind` is "C++" (a field or container), "Python", "variable" (of a module or of a running
    function), "call" (in progress), "registry" (of global functions), "static" (a static or
    thread-local variable of a library), or "wrapper" (a wrapper that is not handed out any more).
    """

    kind: str
    place: str  # where in the holder, such as ".left" or "[3]"
    description: str  # the holder
    is_root: bool = False
    key: Key | None = None
    holders: list[Holder] = field(default_factory=list)
    is_repeated: bool = False  # what holds it is shown elsewhere in the tree
    unseen_cpp: int = 0
    is_open: bool = False  # the search ended here
    is_garbage: bool = False  # nothing uses it; it waits for the garbage collector

    def __str__(self) -> str:
        return _quiet.printable(
            f"{self.place} of {self.description}" if self.place else self.description
        )


# Objects that Python never frees have a count beyond any that could be true.
_MOST_REFERENCES = 1 << 28


@dataclass
class Why:
    """The answer of `why`. `str()` of it is for people; the fields are for programs."""

    description: str
    state: str  # of the tie; "" for an object that is not of C++
    python_references: int
    cpp_references: int
    weak_references: int
    holders: list[Holder]
    unseen_python: int  # references of Python whose holder was not found
    unseen_cpp: int  # strong references of C++ code that cannot be inspected
    paths: list[list[str]]  # from a root to the object; the shortest first
    notes: list[str] = field(default_factory=list)

    @property
    def is_immortal(self) -> bool:
        """Whether Python does not count references to it, so `python_references` is no count."""
        return self.python_references > _MOST_REFERENCES

    @property
    def shortest_path(self) -> list[str]:
        """The shortest of `paths`; empty if no root was found."""
        return self.paths[0] if self.paths else []

    def __str__(self) -> str:
        lines = [self.description]
        count = "not counted, it is immortal" if self.is_immortal else self.python_references
        counts = f"  Python references: {count}"
        if self.state:
            own = " (one is its wrapper's)" if self.state == "active" else ""
            counts += f", C++ references: {self.cpp_references}{own}"
            if self.weak_references:
                counts += f", C++ weak references: {self.weak_references}"
        lines += [counts, *(f"  {note}" for note in self.notes)]
        entries: list[Holder | str] = list(self.holders)
        if self.unseen_cpp:
            entries.append(_unseen_text(self.unseen_cpp))
        if self.unseen_python:
            entries.append(f"{_references(self.unseen_python)} from Python without a name")
        lines.append("  held by" if entries else "  nothing was found that holds it")
        _draw(entries, "  ", lines)
        if self.shortest_path:
            lines.append("  shortest path: " + " -> ".join(self.shortest_path))
        return "\n".join(map(_quiet.printable, lines))

    __repr__ = __str__


def _references(count: int) -> str:
    return f"{count} reference" + ("s" if count != 1 else "")


def _unseen_text(count: int) -> str:
    return f"{_references(count)} from C++ code that cannot be inspected"


def _draw(entries: list[Holder | str], indent: str, lines: list[str], most: int = 12) -> None:
    shown = entries[:most]
    more = len(entries) - len(shown)
    tail: list[Holder | str] = [*shown, f"... and {more} more"] if more else shown
    for i, entry in enumerate(tail):
        last = i == len(tail) - 1
        text = str(entry)
        below: list[Holder | str] = []
        if isinstance(entry, Holder):
            if entry.is_root:
                text += "   <- root"
            elif entry.is_garbage:
                text += "   (garbage that waits for the collector)"
            elif entry.is_repeated:
                text += "   (shown above)"
            elif entry.is_open:
                text += "   ..."
            below = list(entry.holders)
            if entry.unseen_cpp:
                below.append(_unseen_text(entry.unseen_cpp))
        lines.append(f"{indent}{'└─ ' if last else '├─ '}{text}")
        _draw(below, indent + ("   " if last else "│  "), lines, most)


def _count(obj: Any) -> int:
    return sys.getrefcount(obj)


def _count_as_parameter(obj: Any) -> int:
    return _count(obj)


def _overhead() -> int:
    """How many references `_count` sees of its caller's parameter, beside those of others."""
    probe = object()
    return _count_as_parameter(probe) - 1


def why(obj: Any, *, depth: int = 12, limit: int = 2000) -> Why:
    """Say who keeps an object alive, in Python and in C++.

    `obj` is an object of C++, or anything that C++ may hold, such as a callback. `depth` is how far
    from it holders are looked for, `limit` how many are looked at.

    >>> import tvm_ffi
    >>> from tvm_ffi.inspect import why
    >>> inner = tvm_ffi.List([])
    >>> outer = tvm_ffi.Array([inner])
    >>> answer = why(inner)
    >>> answer.cpp_references, answer.unseen_cpp
    (2, 0)
    >>> [str(holder).split(" at ")[0] for holder in answer.holders if holder.kind == "C++"]
    ['[0] of Array']
    """
    python_references = _count(obj) - _overhead()
    collects = gc.isenabled()
    gc.disable()  # garbage has holders, too
    try:
        search = _Search(obj)
        del obj
        try:
            return search.run(python_references, depth, limit)
        finally:
            search.close()
    finally:
        if collects:
            gc.enable()


def explain(addresses: list[int]) -> dict[int, Why]:
    """The answers of `why` for C++ objects, by address; for those that were found."""
    search = _Search(None)
    try:
        index_of = {node.address: i for i, node in enumerate(search.world.nodes)}
        answers = {}
        for address in addresses:
            if address in index_of:
                answers[address] = search.explain_node(index_of[address])
        return answers
    finally:
        search.close()


class _Search:
    """A breadth-first walk from an object to what holds it."""

    def __init__(self, obj: Any) -> None:
        self.state = tying.state(obj) if is_wrapper(obj) else ""
        self.world = World([obj])
        self.objects = self.world.objects  # the one dict that refers to Python objects
        self.objects[id(obj)] = obj
        self.target_id = id(obj)
        self.is_dead = self.state in ("empty", "gone")
        self.unlisted = self.world.add_unlisted()
        self.node_of_tied = {
            node.wrapper_id: i for i, node in enumerate(self.world.nodes) if node.wrapper_id
        }
        self.modules = _referrers.module_of_namespace()
        self.frames: set[int] = set()
        self.context = _parts_of_context()
        self._variables: dict[int, list[_statics.Variable]] | None = None

    def close(self) -> None:
        self.world.close()

    def explain_node(self, index: int) -> Why:
        node = self.world.nodes[index]
        self.state = node.state
        references = self.world.python_references(index) if node.wrapper_id else 0
        return self.run(references, 12, 500, ("cpp", index))

    def key_of(self, object_id: int) -> Key:
        node = self.node_of_tied.get(object_id)
        return ("cpp", node) if node is not None else ("python", object_id)

    def python_id(self, key: Key) -> int:
        """The `id` of the Python object of a key, 0 if there is none to look for."""
        if key[0] == "python":
            return key[1]
        wrapper_id = self.world.nodes[key[1]].wrapper_id
        if wrapper_id and wrapper_id not in self.objects:
            wrapper = self.world.wrapper(key[1])
            if id(wrapper) != wrapper_id:
                return 0
            self.objects[wrapper_id] = wrapper
        return wrapper_id

    def variables(self, index: int) -> list[_statics.Variable]:
        """The static and thread-local variables that have the address of a node.

        Only asked for nodes with a reference that nothing else explains.
        """
        if not self.world.unseen(index):
            return []
        if self._variables is None:
            self._variables = _statics.variables({node.address for node in self.world.nodes})
        return self._variables.get(self.world.nodes[index].address, [])

    def is_certain(self, index: int) -> bool:
        """Whether each of the variables must be a reference, not just an address."""
        count = len(self.variables(index))
        return count <= self.world.unseen(index) and not self.world.nodes[index].weak

    def unseen(self, index: int) -> int:
        known = len(self.variables(index)) if self.is_certain(index) else 0
        return self.world.unseen(index) - known

    # ---- one step up ----

    def cpp_holders(self, key: Key) -> list[Holder]:
        found = []
        world = self.world
        if key[0] == "python":
            edges = world.python_holders.get(key[1], [])
        else:
            node = world.nodes[key[1]]
            edges = world.holders.get(key[1], [])
            found += [Holder("registry", "", name, True) for name in world.roots.get(key[1], ())]
            found += [Holder("call", "argument", "a call in progress", True)] * node.held_by_calls
            if node.is_argument and not node.held_by_calls:
                found.append(Holder("call", "borrowed argument", "a call in progress", True))
            for variable in self.variables(key[1]):
                place = str(variable) if self.is_certain(key[1]) else f"perhaps {variable}"
                found.append(Holder("static", place, variable.library, True))
            for wrapper_id in world.untied.get(key[1], ()):
                text = f"a second wrapper at {wrapper_id:#x}"
                found.append(Holder("wrapper", "", text, key=("python", wrapper_id)))
        for source, place in edges:
            text = world.describe(source)
            found.append(Holder("C++", place, text, key=("cpp", source)))
        return found

    def python_holders(self, keys: list[Key]) -> dict[Key, list[Holder]]:
        """The Python references to the objects of several keys."""
        keys_of = {self.python_id(key): key for key in keys}
        keys_of.pop(0, None)
        ids = set(keys_of)
        found: dict[Key, list[Holder]] = {key: [] for key in keys}
        if not ids:
            return found
        self.add_variables(ids, keys_of, found)
        referrers = _referrers.referrers(self.objects, ids, self.unlisted)
        owners = self.owners(referrers, ids)
        for referrer in referrers:
            if any(id(referrer) in seen for seen in (self.modules, self.frames, self.context)):
                continue  # seen as variables
            named = self.places(referrer, ids)
            if not named:
                continue
            holder = owners.get(id(referrer), referrer)
            self.objects[id(holder)] = holder
            text = self.describe_holder(holder)
            for object_id, where in named:
                place = where if holder is referrer else _place_in_owner(holder, where)
                kind = "variable" if place.startswith("variable ") else "Python"
                entry = Holder(kind, place, text, key=self.key_of(id(holder)))
                found[keys_of[object_id]].append(entry)
        del referrers, owners
        return found

    def places(self, holder: Any, ids: set[int]) -> list[tuple[int, str]]:
        """One (id, where) for each reference of a holder that the collector sees."""
        found = _referrers.references(holder, ids)
        frame = _referrers.frame_of(holder)
        if frame is not None and id(frame) in self.frames:  # a generator that is running
            return [entry for entry in found if not entry[1].startswith("variable ")]
        return found

    def add_variables(
        self, ids: set[int], keys_of: dict[int, Key], found: dict[Key, list[Holder]]
    ) -> None:
        def add(object_id: int, place: str, text: str) -> None:
            found[keys_of[object_id]].append(Holder("variable", place, text, True))

        for module in list(sys.modules.values()):
            namespace = _quiet.namespace(module)
            for object_id, place in _referrers.places(namespace, ids):
                variable = place[2:-2] if place.startswith("['") else place
                add(object_id, f"variable {variable!r}", f"module {self.modules[id(namespace)]}")
        cells = self.cells(ids)
        for thread, frame in running_frames():
            self.frames.add(id(frame))
            if id(frame.f_locals) in self.modules:
                continue
            variables = _referrers.locals_of(frame)
            places = [(id(value), name) for name, value in variables if id(value) in ids]
            del variables
            if cells:
                captured = _referrers.captured_of(frame)
                places += [(cells[id(v)], name) for name, v in captured if id(v) in cells]
                del captured
            for object_id, name in places:
                text = _referrers.describe(frame) + _thread_name(thread)
                add(object_id, f"variable {name!r}", text)
        for context_variable, value in contextvars.copy_context().items():
            if id(value) in ids:
                name = _quiet.text(context_variable.name)
                add(id(value), f"context variable {name!r}", "the current context")

    def cells(self, ids: set[int]) -> dict[int, int]:
        """The cells among the objects with some ids, by the `id` of what is in them."""
        found: dict[int, int] = {}
        for key in ids:
            if type(self.objects[key]) is types.CellType:
                found.update((id(obj), key) for obj in gc.get_referents(self.objects[key]))
        return found

    def owners(self, referrers: list[Any], ids: set[int]) -> dict[int, Any]:
        """The owners of those referrers that are the `__dict__` of an instance or the closure of a
        function, by the `id` of the referrer."""
        parts = {id(obj) for obj in referrers if type(obj) is dict and id(obj) not in self.modules}
        cells = {key for key in ids if type(self.objects[key]) is types.CellType}
        if cells:
            parts.update(id(obj) for obj in referrers if type(obj) is tuple)
        if not parts:
            return {}
        wanted = tuple([obj for obj in referrers if id(obj) in parts])
        candidates = _referrers.who_refers_to(wanted) + _referrers.classes_without_collector()
        own = {id(referrers), id(wanted), id(candidates), id(self.objects)}
        owners = {}
        for candidate in candidates:
            if id(candidate) in own or _quiet.is_exactly(candidate, _NO_OWNERS):
                continue
            for object_id, place in _referrers.places(candidate, parts):
                if place in (".__dict__", "__dict__", "__closure__"):
                    owners[object_id] = candidate
            if _quiet.is_a(candidate, type):
                owners.update(
                    (id(obj), candidate)
                    for obj in gc.get_referents(candidate)
                    if id(obj) in parts and type(obj) is dict
                )
        return owners

    def describe_holder(self, holder: Any) -> str:
        node = self.node_of_tied.get(id(holder))
        return self.world.describe(node) if node is not None else _referrers.describe(holder)

    # ---- the walk ----

    def run(self, python_references: int, depth: int, limit: int, target: Key | None = None) -> Why:
        if target is None:
            target = self.key_of(self.target_id)
            end = self.describe_holder(self.objects[self.target_id])
        else:
            end = self.world.describe(target[1])
        direct: list[Holder] = []
        seen = {target}
        level: list[tuple[Key, list[Holder]]] = [(target, direct)]
        trails: dict[int, tuple[Holder, int]] = {}  # by id of a list: the holder it belongs to
        roots: list[Holder] = []
        looked_at = 0
        not_followed: list[tuple[Key, list[Holder]]] = []
        for _ in range(depth):
            # A level takes half of what is left, so that many holders do not hide what is above.
            left = max(limit - looked_at, 0)
            most = max(left // 2, min(left, _FEW))
            not_followed += level[most:]
            level = level[:most]
            if not level:
                break
            looked_at += len(level)
            of_python = self.python_holders([key for key, _ in level])
            following: list[tuple[Key, list[Holder]]] = []
            for key, children in level:
                children.extend(self.cpp_holders(key) + of_python[key])
                if id(children) in trails and key[0] == "cpp":
                    trails[id(children)][0].unseen_cpp = self.unseen(key[1])
                for holder in children:
                    trails[id(holder.holders)] = (holder, id(children))
                    if holder.is_root or holder.key is None:
                        if len(roots) < 20:
                            roots.append(holder)
                        continue
                    if holder.key in seen:
                        holder.is_repeated = True
                        continue
                    seen.add(holder.key)
                    following.append((holder.key, holder.holders))
            level = following
        not_followed += level
        for _, children in not_followed:
            if id(children) in trails:
                trails[id(children)][0].is_open = True
        self.name_cells(direct)
        self.mark_garbage(direct)
        paths = [self.path(holder, trails, end) for holder in roots]
        answer = self.answer(target, direct, paths, python_references, end)
        if not_followed:
            answer.notes.append(
                f"{len(not_followed)} holders were not followed: more than depth or limit allows"
            )
        return answer

    def mark_garbage(self, direct: list[Holder]) -> None:
        """Mark the holders that nothing uses, and that the collector has not freed yet."""
        lost = [holder for holder in direct[:_MOST_LOST] if holder.key and not _has_end(holder)]
        if lost:
            in_use = Held(self.world).in_use([holder.key for holder in lost if holder.key])
            for holder in lost:
                holder.is_garbage = holder.key not in in_use

    def name_cells(self, holders: list[Holder]) -> None:
        """Name captured variables, whose names are known one step further up."""
        pending = list(holders)
        while pending:
            holder = pending.pop()
            pending += holder.holders
            if holder.place == "captured variable":
                names = {above.place.partition("variable ")[2] for above in holder.holders}
                holder.place = " ".join([holder.place, *sorted(names - {""})[:1]])

    def path(self, holder: Holder, trails: dict[int, tuple[Holder, int]], end: str) -> list[str]:
        steps = [str(holder)]
        place = trails[id(holder.holders)][1]
        while place in trails:
            holder, place = trails[place]
            steps.append(str(holder))
        return [*steps, end]

    def answer(
        self,
        target: Key,
        direct: list[Holder],
        paths: list[list[str]],
        python_references: int,
        end: str,
    ) -> Why:
        notes = []
        strong = weak = unseen = 0
        found = sum(1 for holder in direct if holder.kind in ("Python", "variable"))
        if target[0] == "cpp":
            node = self.world.nodes[target[1]]
            strong, weak, unseen = node.strong, node.weak, self.unseen(target[1])
            if self.state == "dormant":
                found += 1  # the tie word
            line = self.world.line_of(target[1])
            if line is not None:
                notes.append(f"made or first fetched at {line[0]}:{line[1]} in {line[2]}()")
        else:
            found += len(self.world.python_holders.get(self.target_id, ()))
            if self.target_id in self.world.node_of_wrapper:
                node = self.world.nodes[self.world.node_of_wrapper[self.target_id]]
                strong = node.strong
        if self.is_dead:
            notes.append(f"it has no C++ object: the wrapper is {self.state}")
        unseen_python = (
            0 if python_references > _MOST_REFERENCES else max(0, python_references - found)
        )
        frozen = gc.get_freeze_count()
        if frozen and (unseen_python or not paths):
            notes.append(f"{frozen} objects were not searched: gc.freeze() hides them")
        return Why(
            description=end,
            state=self.state,
            python_references=python_references,
            cpp_references=strong,
            weak_references=weak,
            holders=direct,
            unseen_python=unseen_python,
            unseen_cpp=unseen,
            paths=paths,
            notes=notes,
        )


_NO_OWNERS = (dict, list, tuple, types.FrameType)
_FEW = 50
_MOST_LOST = 100


def _has_end(holder: Holder) -> bool:
    """Whether a root leads to a holder, or something that was not looked at."""
    pending = [holder]
    while pending:
        holder = pending.pop()
        is_end = holder.is_root or holder.is_open or holder.unseen_cpp or not holder.holders
        if is_end and not holder.is_repeated:
            return True
        pending += holder.holders
    return False


def _place_in_owner(owner: Any, place: str) -> str:
    """Where something is that was found in the `__dict__` or the closure of an owner."""
    if type(owner) is types.FunctionType and place[1:-1].isdecimal():
        return f"captured variable {owner.__code__.co_freevars[int(place[1:-1])]!r}"
    return f".{place[2:-2]}" if place.startswith("['") else place


def _parts_of_context() -> set[int]:
    """The ids of the objects that the current context is made of."""
    pending: list[Any] = [contextvars.copy_context()]
    found = set()
    while pending:
        for part in gc.get_referents(pending.pop()):
            if _referrers.is_of_context(part) and id(part) not in found:
                found.add(id(part))
                pending.append(part)
    return found


def _thread_name(thread: int) -> str:
    if thread == threading.main_thread().ident:
        return ""
    # The class of a thread may have a `name` of its own.
    known = threading._active.get(thread)  # type: ignore[attr-defined]
    name = dict(_quiet.attributes(known)).get("_name")
    return f" in thread {_quiet.text(name)!r}" if name is not None else f" in thread {thread}"
