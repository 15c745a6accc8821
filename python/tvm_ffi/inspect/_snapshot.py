# SPDX-License-Identifier: Apache-2.0
"""What was made and stayed between two points of a program."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from .. import core, tying
from ..container import Array
from ..registry import get_global_func
from . import _quiet
from ._world import NO_WRAPPER, PACKAGE, World

_PACKAGE_FOLDER = PACKAGE[: -len("inspect")]

# ---- recording ----

_lock = threading.Lock()
_depth = 0
_spare: list[Any] = []


def start_recording() -> None:
    """Remember each C++ object made from now on, and the Python line that made or fetched it.

    Every call needs one of `stop_recording`. Objects cost about 50 bytes and a microsecond more
    meanwhile. Objects of libraries built with headers of other releases are remembered when Python
    fetches them.
    """
    global _depth  # noqa: PLW0603
    with _lock:
        _depth += 1
        if _depth == 1:
            core._inspect_start(_PACKAGE_FOLDER)
            # Callbacks that were made before, and wait to be used again, have no record.
            _spare.append(Array([_nothing] * 16))


def stop_recording() -> None:
    """End what `start_recording` began. The lines are forgotten."""
    global _depth  # noqa: PLW0603
    with _lock:
        if _depth == 0:
            raise RuntimeError("recording is not on")
        _depth -= 1
        if _depth == 0:
            core._inspect_stop()
            _spare.clear()


def is_recording() -> bool:
    """Say whether objects that are made now are remembered.

    >>> from tvm_ffi.inspect import is_recording, recording
    >>> with recording():
    ...     is_recording()
    True
    """
    return core._inspect_is_recording()


@contextmanager
def recording() -> Iterator[None]:
    """Record in a `with` block."""
    start_recording()
    try:
        yield
    finally:
        stop_recording()


def _nothing() -> None:
    pass


# ---- snapshots ----


@dataclass(eq=False)
class Entry:
    """An object of a snapshot."""

    address: int
    name: str  # the class
    state: str
    wrapper_id: int
    serial: int  # greater than 0: the number of its record; less: of its first fetch; 0: none
    line: tuple[str, int, str] | None  # file, number, function

    def __str__(self) -> str:
        place = f", {self.line[0]}:{self.line[1]} in {self.line[2]}()" if self.line else ""
        return _quiet.printable(
            f"{self.name} at {self.address:#x} ({self.state or NO_WRAPPER}{place})"
        )


class Snapshot:
    """What there is at one moment: `entries`, and `wrappers`, the number by class."""

    def __init__(self, world: World) -> None:
        self.entries: dict[tuple[int, str, int], Entry] = {}
        self.num_types = len(_type_keys())
        self.wrappers: dict[type, int] = dict(tying.stats()["by_type"])
        registered = _reachable(world, world.roots)
        self.registered: set[tuple[int, str, int]] = set()
        for i, node in enumerate(world.nodes):
            name = world.type_name(i)
            # A wrapper may come and go: what it stands for has one address and one record.
            key = (node.address, world.type_keys[node.type_index], max(node.serial, 0))
            entry = Entry(
                node.address, name, node.state, node.wrapper_id, node.serial, world.line_of(i)
            )
            self.entries[key] = entry
            if i in registered:
                self.registered.add(key)

    def __repr__(self) -> str:
        return f"<Snapshot of {len(self.entries)} objects>"

    def by_type(self) -> dict[str, int]:
        """Count the objects that were found, by class."""
        return _count(entry.name for entry in self.entries.values())


def _type_keys() -> Any:
    return get_global_func("ffi.GetRegisteredTypeKeys")()


def _reachable(world: World, roots: Any) -> set[int]:
    below: dict[int, list[int]] = {}
    for source, target, _ in world.edges:
        below.setdefault(source, []).append(target)
    seen = set(roots)
    pending = list(seen)
    while pending:
        for target in below.get(pending.pop(), ()):
            if target not in seen:
                seen.add(target)
                pending.append(target)
    return seen


def _count(names: Any) -> dict[str, int]:
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _settle() -> None:
    """Collect, and release what C++ threads have left to be released."""
    for _ in range(3):
        Array([])
        gc.collect()


def snapshot(*, collect: bool = True) -> Snapshot:
    """Take stock of the C++ objects that can be found; first collect garbage, unless told not to.

    >>> import tvm_ffi
    >>> from tvm_ffi.inspect import diff, recording, snapshot
    >>> with recording():
    ...     before = snapshot()
    ...     kept = tvm_ffi.List([tvm_ffi.Array([1])])
    ...     stayed = diff(before)
    >>> stayed.by_type()
    {'Array': 1, 'List': 1}
    """
    if collect:
        _settle()
    with World() as world:
        return Snapshot(world)


@dataclass
class Diff:
    """What is different between two snapshots."""

    stayed: list[Entry]  # made, or found for the first time, in between
    gone: list[Entry]
    wrappers: dict[type, int]  # the growth of their number, where it grew

    def by_type(self) -> dict[str, int]:
        """Count what stayed, by class."""
        return _count(entry.name for entry in self.stayed)

    def __bool__(self) -> bool:
        return bool(self.stayed)

    def __str__(self) -> str:
        if not self.stayed:
            return "nothing stayed"
        lines = []
        for name, count in self.by_type().items():
            lines.append(f"{name}: {count} stayed")
            entries = [entry for entry in self.stayed if entry.name == name]
            by_line = _count(_line_text(entry) for entry in entries)
            lines += [f"  {number} from {place}" for place, number in list(by_line.items())[:10]]
        return "\n".join(map(_quiet.printable, lines))

    __repr__ = __str__


def _line_text(entry: Entry) -> str:
    if entry.line is None:
        return "an unknown line (recording was off, or C++ made it)"
    return f"{entry.line[0]}:{entry.line[1]} in {entry.line[2]}()"


def diff(before: Snapshot, after: Snapshot | None = None) -> Diff:
    """Compare two snapshots; the second is taken now if it is not given."""
    if after is None:
        after = snapshot()
    stayed = [entry for key, entry in after.entries.items() if key not in before.entries]
    gone = [entry for key, entry in before.entries.items() if key not in after.entries]
    growth = {
        cls: count - before.wrappers.get(cls, 0)
        for cls, count in after.wrappers.items()
        if count > before.wrappers.get(cls, 0)
    }
    stayed.sort(key=lambda entry: abs(entry.serial))
    return Diff(stayed, gone, growth)


# ---- leaks ----


class LeakError(AssertionError):
    """Something that was made in a `no_leaks` block is still there. `diff` says what."""

    def __init__(self, message: str, found: Diff) -> None:
        super().__init__(message)
        self.diff = found


def _is_leak(key: tuple[int, str, int], entry: Entry, after: Snapshot) -> bool:
    if key in after.registered:  # a global function, or something that one holds
        return False
    # Made earlier, and only seen for the first time: no business of this block. Functions of C++
    # come up as methods and attributes are used.
    return entry.serial > 0 or (key[1] != "ffi.Function" and entry.state == "active")


@contextmanager
def no_leaks(*, ignore: Callable[[Entry], bool] | None = None) -> Iterator[None]:
    """Fail with `LeakError` if objects made in the block are alive at its end.

    What a variable outside of the block refers to stays, and so do callbacks and containers that
    C++ holds. Global functions that were registered are not counted. `ignore` says of an entry
    whether it may stay.

    >>> import tvm_ffi
    >>> from tvm_ffi.inspect import no_leaks
    >>> with no_leaks():
    ...     items = tvm_ffi.List([1])
    ...     del items
    """
    start_recording()
    try:
        before = snapshot()
        yield
        check(before, ignore)
    finally:
        stop_recording()


def check(before: Snapshot, ignore: Callable[[Entry], bool] | None = None) -> None:
    """Raise `LeakError` if something was made since a snapshot and stayed. Recording must be on."""
    after = snapshot()
    found = diff(before, after)
    keys = {id(entry): key for key, entry in after.entries.items()}
    found.stayed = [e for e in found.stayed if _is_leak(keys[id(e)], e, after)]
    if after.num_types > before.num_types:  # a class was defined, whose functions stay with it
        found.stayed = [e for e in found.stayed if keys[id(e)][1] != "ffi.Function"]
    if ignore is not None:
        found.stayed = [entry for entry in found.stayed if not ignore(entry)]
    if not found.stayed:
        return
    reasons = _reasons(found.stayed)
    found.stayed = [entry for entry in found.stayed if entry.address in reasons]
    if found.stayed:
        texts = [text for text in reasons.values() if text][:3]
        raise LeakError(
            "\n".join([f"{_objects(len(found.stayed))} stayed", str(found), *texts]), found
        )


def _objects(count: int) -> str:
    return f"{count} object" + ("s" if count != 1 else "")


_MOST_REASONS = 10


def _reasons(entries: list[Entry]) -> dict[int, str]:
    """Why each is alive, by address; those that this package keeps for itself are left out."""
    from ._why import explain

    answers = explain([entry.address for entry in entries[:_MOST_REASONS]])
    reasons = {}
    for entry in entries[:_MOST_REASONS]:
        answer = answers.get(entry.address)
        if answer is None:
            reasons[entry.address] = ""
        elif _is_in_frozen_cache(entry, answer):
            continue
        elif not any(_is_of_package(path[0]) for path in answer.paths):
            reasons[entry.address] = str(answer)
    reasons.update((entry.address, "") for entry in entries[_MOST_REASONS:])
    return reasons


def _is_in_frozen_cache(entry: Entry, answer: Any) -> bool:
    """Whether it is a function that Python holds where gc.freeze() hides the holder."""
    is_hidden = gc.get_freeze_count() > 0 and not answer.paths and not answer.unseen_cpp
    return entry.name == "Function" and is_hidden


def _is_of_package(root: str) -> bool:
    return " of module tvm_ffi" in root
