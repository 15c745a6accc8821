# SPDX-License-Identifier: Apache-2.0
"""Which objects are in use, over both languages, when they also refer to each other."""

from __future__ import annotations

import sys

from . import _referrers
from ._world import World, running_frames

Key = tuple[str, int]  # ("cpp", node) or ("python", id)

_MOST = 5_000  # Python objects that are looked at


class Held:
    """Finds what holds some objects, what holds that, and so on, and judges as the collector does.

    An object is held from outside if the references that were found are not all that it has, or if
    a module or a running function refers to it. It is in use if such an object leads to it. Where
    this cannot be told, it is in use.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.node_of_tied = {n.wrapper_id: i for i, n in enumerate(world.nodes) if n.wrapper_id}
        self.roots = set(_referrers.module_of_namespace())
        self.roots.update(id(frame) for _, frame in running_frames())
        self.below: dict[Key, list[Key]] = {}  # from a holder to what it holds
        self.held: set[Key] = set()
        self.seen: set[Key] = set()
        self.unlisted = world.add_unlisted()
        probe = object()
        world.objects[id(probe)] = probe
        self.overhead = self.count(id(probe)) - 1  # the variable
        del world.objects[id(probe)]

    def count(self, object_id: int) -> int:
        return sys.getrefcount(self.world.objects[object_id])

    def in_use(self, starts: list[Key]) -> set[Key]:
        """Those of `starts`, and of what leads to them, that are in use."""
        level = list(dict.fromkeys(starts))
        self.seen.update(level)
        most = len(self.world.objects) + _MOST
        while level:
            if len(self.world.objects) > most:
                self.held.update(level)
                break
            holders = self.holders(level)
            following = []
            for key in level:
                for holder in holders.get(key, ()):
                    self.below.setdefault(holder, []).append(key)
                    if holder not in self.seen:
                        self.seen.add(holder)
                        following.append(holder)
            level = following
        pending, found = list(self.held), set(self.held)
        while pending:
            for key in self.below.get(pending.pop(), ()):
                if key not in found:
                    found.add(key)
                    pending.append(key)
        return found

    def holders(self, level: list[Key]) -> dict[Key, list[Key]]:
        """What holds each; nothing for those that are held from outside, which are noted."""
        world = self.world
        found: dict[Key, list[Key]] = {}
        expected: dict[int, int] = {}  # by id: how many references of Python it has
        key_of: dict[int, Key] = {}
        for key in level:
            if key[0] == "cpp":
                if self.is_held_by_cpp(key[1]):
                    self.held.add(key)
                    continue
                found[key] = [("cpp", source) for source, _ in world.holders.get(key[1], ())]
                object_id, references = self.wrapper_of(key[1])
                if references < 0:
                    self.held.add(key)
                if references <= 0:
                    continue
            else:
                object_id, edges = key[1], world.python_holders.get(key[1], [])
                if object_id in self.roots:
                    self.held.add(key)
                    continue
                found[key] = [("cpp", source) for source, _ in edges]
                # The world refers to it once for each of those edges, too.
                references = self.count(object_id) - self.overhead - 2 * len(edges)
            expected[object_id] = references
            key_of[object_id] = key
        counts = dict.fromkeys(expected, 0)
        if expected:
            self.count_referrers(counts, found, key_of)
        for object_id, references in expected.items():
            if counts[object_id] != references:
                self.held.add(key_of[object_id])
        return {key: holders for key, holders in found.items() if key not in self.held}

    def count_referrers(
        self, counts: dict[int, int], found: dict[Key, list[Key]], key_of: dict[int, Key]
    ) -> None:
        world = self.world
        for referrer in _referrers.referrers(world.objects, counts, self.unlisted):
            node = self.node_of_tied.get(id(referrer))
            key: Key = ("cpp", node) if node is not None else ("python", id(referrer))
            is_holder = False
            for obj in _referrers.referents(referrer):
                if id(obj) in counts:
                    is_holder = True
                    counts[id(obj)] += 1
                    found[key_of[id(obj)]].append(key)
            if is_holder and node is None:
                world.objects[id(referrer)] = referrer

    def is_held_by_cpp(self, index: int) -> bool:
        world, node = self.world, self.world.nodes[index]
        if node.held_by_calls or node.is_argument or index in world.roots or index in world.untied:
            return True
        return node.weak > 0 or world.unseen(index) > 0

    def wrapper_of(self, index: int) -> tuple[int, int]:
        """The `id` of the wrapper of a node, and the number of Python references to it; -1 where
        that cannot be told."""
        world, node = self.world, self.world.nodes[index]
        references = world.python_references(index) - (node.state == "dormant")
        if node.state == "" or references == 0:
            return 0, 0
        if node.wrapper_id not in world.objects:
            wrapper = world.wrapper(index)
            if id(wrapper) != node.wrapper_id:
                return 0, -1
            world.objects[node.wrapper_id] = wrapper
        return node.wrapper_id, references
