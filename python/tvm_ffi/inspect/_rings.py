# SPDX-License-Identifier: Apache-2.0
"""Rings that run through C++ alone, which the garbage collector may not break."""

from __future__ import annotations

import gc
from dataclasses import dataclass, field

from .. import core
from . import _quiet
from ._held import Held
from ._snapshot import _count, _reachable
from ._world import World


@dataclass
class Ring:
    """Objects of C++ that keep each other alive."""

    steps: list[str]  # each object, then the place in it where the next one is
    names: list[str]  # the classes of all objects that take part, also beside this path
    is_garbage: bool  # nothing else refers to them: they are leaked
    can_be_collected: bool  # by `collect_rings`

    def __str__(self) -> str:
        kind = "leaked" if self.is_garbage else "in use"
        text = f"{kind}, {len(self.names)} objects: " + " -> ".join(self.steps)
        return _quiet.printable(text)

    __repr__ = __str__


@dataclass
class Collected:
    """What `collect_rings` did."""

    freed: int
    by_type: dict[str, int]
    rings: list[Ring]  # that were found
    notes: list[str] = field(default_factory=list)  # why rings were left, if any were

    def __str__(self) -> str:
        kinds = ", ".join(f"{count} {name}" for name, count in self.by_type.items())
        text = f"{self.freed} objects were freed" + (f": {kinds}" if kinds else "")
        return _quiet.printable("; ".join([text, *self.notes]))

    __repr__ = __str__


def rings() -> list[Ring]:
    """Find the rings that run through C++ alone; those that are leaked come first.

    Rings that nothing in Python refers to are found if they were made while recording was on.

    >>> import tvm_ffi
    >>> from tvm_ffi.inspect import rings
    >>> items = tvm_ffi.List([])
    >>> items.append(items)
    >>> [ring.is_garbage for ring in rings() if ring.names == ["List"]]
    [False]
    >>> items.clear()
    """
    gc.collect()
    with World() as world:
        return _Rings(world).found()


def collect_rings(*, no_cpp_threads: bool = False) -> Collected:
    """Break the leaked rings made of lists, dicts and fields of classes defined in Python.

    Only the caller can know that no thread of C++ is at work on them, and has to say so with
    `no_cpp_threads=True`. Nothing that is in use is touched.

    >>> import tvm_ffi
    >>> from tvm_ffi.inspect import collect_rings, recording
    >>> with recording():
    ...     items = tvm_ffi.List([])
    ...     items.append(items)
    ...     del items
    ...     collect_rings(no_cpp_threads=True).freed >= 1
    True
    """
    if not no_cpp_threads:
        raise ValueError("collect_rings needs no_cpp_threads=True: see its documentation")
    gc.collect()
    with World() as world:
        found = _Rings(world)
        rings = [ring for ring in found.found() if ring.is_garbage]
        garbage = [i for i in range(len(world.nodes)) if i not in found.in_use]
        names = {i: world.type_name(i) for i in garbage}
        expected = [(i, world.nodes[i].strong, world.python_references(i)) for i in garbage]
        to_break = [i for part in found.parts for i in part if found.can_take_apart(i)]
        to_break = [i for i in to_break if i not in found.in_use]
        world.objects.clear()
        died = core._inspect_take_apart(world._capsule, expected, to_break) if to_break else []
        in_use = len(found.parts) - len(rings)
    notes = []
    left = sum(not ring.can_be_collected for ring in rings)
    if left:
        notes.append(
            f"leaked rings that cannot be broken: {left} (only lists, dicts and fields of classes "
            "defined in Python can be emptied)"
        )
    if died is None:
        notes.append("nothing was changed, because another thread began to use a leaked object")
    elif not died:
        if not rings:
            notes.append("no leaked ring was found")
        if in_use:
            notes.append(f"rings in use: {in_use}")
    gc.collect()
    died = died or []
    return Collected(len(died), _count(names[i] for i in died), rings, notes)


class _Rings:
    def __init__(self, world: World) -> None:
        self.world = world
        self.below: dict[int, list[tuple[int, str]]] = {}
        for source, target, place in world.edges:
            self.below.setdefault(source, []).append((target, place))
        self.parts = self.strongly_connected()
        held = Held(world)
        rings = [("cpp", i) for part in self.parts for i in part]
        in_use = held.in_use(rings) if rings else set()

        def is_held(i: int) -> bool:
            # What does not lead to a ring was not looked for; a wrapper in use counts there.
            if ("cpp", i) in held.seen:
                return ("cpp", i) in in_use
            return held.is_held_by_cpp(i) or held.wrapper_of(i)[1] != 0

        self.in_use = _reachable(world, [i for i in range(len(world.nodes)) if is_held(i)])

    def can_take_apart(self, i: int) -> bool:
        return core._inspect_can_take_apart(self.world.nodes[i].type_index)

    def found(self) -> list[Ring]:
        rings = []
        for part in self.parts:
            part.sort(key=lambda i: (self.world.type_name(i), i))
            is_garbage = not any(i in self.in_use for i in part)
            rings.append(
                Ring(
                    steps=self.path(part),
                    names=[self.world.type_name(i) for i in part],
                    is_garbage=is_garbage,
                    can_be_collected=is_garbage and any(map(self.can_take_apart, part)),
                )
            )
        return sorted(rings, key=lambda ring: (not ring.is_garbage, -len(ring.names)))

    def path(self, part: list[int]) -> list[str]:
        """A shortest ring through the first object of a part."""
        members, first = set(part), part[0]
        came_from: dict[int, tuple[int, str]] = {}
        level, last = [first], None
        while last is None:
            following = []
            for i in level:
                for target, place in self.below.get(i, ()):
                    if target == first:
                        last = (i, place)
                        break
                    if target in members and target not in came_from:
                        came_from[target] = (i, place)
                        following.append(target)
                if last is not None:
                    break
            level = following
        steps = [self.world.describe(first), last[1]]
        current = last[0]
        while current != first:
            steps.append(self.world.describe(current))
            current, place = came_from[current]
            steps.append(place)
        steps.append(self.world.describe(first))
        return steps[::-1]

    def strongly_connected(self) -> list[list[int]]:
        """The sets of nodes that can all reach each other (Tarjan), but for lone ones."""
        number: dict[int, int] = {}
        low: dict[int, int] = {}
        stack: list[int] = []
        on_stack: set[int] = set()
        parts = []
        for start in self.below:
            if start in number:
                continue
            work = [(start, iter(self.below.get(start, ())))]
            number[start] = low[start] = len(number)
            stack.append(start)
            on_stack.add(start)
            while work:
                node, edges = work[-1]
                for target, _ in edges:
                    if target not in number:
                        number[target] = low[target] = len(number)
                        stack.append(target)
                        on_stack.add(target)
                        work.append((target, iter(self.below.get(target, ()))))
                        break
                    if target in on_stack:
                        low[node] = min(low[node], number[target])
                else:
                    work.pop()
                    if work:
                        low[work[-1][0]] = min(low[work[-1][0]], low[node])
                    if low[node] == number[node]:
                        part = []
                        while True:
                            member = stack.pop()
                            on_stack.discard(member)
                            part.append(member)
                            if member == node:
                                break
                        own = any(target == node for target, _ in self.below.get(node, ()))
                        if len(part) > 1 or own:
                            parts.append(part)
        return parts
