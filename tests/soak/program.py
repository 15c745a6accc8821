# SPDX-License-Identifier: Apache-2.0
"""Random programs on one thread, and the model they are held against.

A program is a list of steps ``(name, a, b, c)``. Every step means something whatever was done
before it, so any part of a program is a program: that is what makes them shrinkable. The machine
has a few registers for each kind of object; a step that finds its register empty makes an object.

Beside the real objects stands a model: one `Node` per object, with the values it should contain,
the state that Python stored on it, and the identity of its wrapper. The order matters, because
weak-reference callbacks and hooks run steps of their own: the model is changed *before* the real
object, as if every change were complete before anything that it drops dies.

The oracle: what is read is what the model says, and it is the very wrapper (P1, P2) with its class
and state (P3); at a `check` every weak reference is alive exactly if the model reaches the object
(P4, and P6 after a collection); at the end nothing is left (P5).

User code in the middle of an operation may leave more than one right answer to which object is
where. If what is found then fits two objects of the model, the program ends there: `Unclear`.
"""

from __future__ import annotations

import copy
import gc
import os
import pickle
import random
import signal
import threading
import time
import traceback
import weakref
from collections.abc import Callable
from typing import Any

import tvm_ffi
from objects import (
    FREE_THREADED,
    STATEFUL,
    Base,
    BaseDel,
    BaseDict,
    BaseSlots,
    Broken,
    Callback,
    ChildEnds,
    Converted,
    DictDict,
    Edges,
    Holder,
    Hook,
    Key,
    ListDict,
    Payload,
    PyNode,
    PyNodeDel,
    PyNodeDict,
    PyNodeSlots,
    Unclear,
    compare_stats,
    make_edges,
    nothing,
    plain,
)
from tvm_ffi import serialization, testing, tying

try:
    import numpy
except ImportError:
    numpy = None

Array, Dict, List, Map = tvm_ffi.Array, tvm_ffi.Dict, tvm_ffi.List, tvm_ffi.Map
echo, apply = testing.echo, testing.apply
Step = tuple[str, int, int, int]

# Kinds of objects, and the registers of each.
LIST, DICT, PY, CPP, FIXED, FUNC, OPAQUE, KEY, TENSOR, PAGE, ANY, HUSK = range(12)
BANKS = {
    LIST: range(0, 4),
    DICT: range(4, 8),
    PY: range(8, 14),
    CPP: range(14, 18),
    FIXED: range(18, 20),  # Array and Map
    FUNC: range(20, 22),
    OPAQUE: range(22, 24),
    KEY: range(24, 27),
    TENSOR: range(27, 28),
    PAGE: range(28, 30),  # objects of a C library that never heard of tying
    ANY: range(30, 34),
}
REGISTERS = 34
# What C++ owns: not looked into by the collector when more than one holds it (docs/tying.md).
SHARED_BY_CPP = {LIST, DICT, CPP, FIXED, PAGE}
MAX_ITEMS = 8

SCALARS = [
    None,
    True,
    False,
    0,
    -1,
    2**62,
    0.5,
    -1e300,
    "",
    "short",
    "seven77",
    "eight888",
    "a string that is kept on the heap",
    "grüße",
    b"",
    b"bytes",
    b"bytes that are kept on the heap",
]
KEYS = ["a", "b", "c", "key of more than seven bytes", 0, 1, 2, 77]


class Node:
    """One object of the model."""

    __slots__ = (
        "cls",
        "count",
        "fuzzy",
        "items",
        "keys",
        "kind",
        "loose",
        "mark",
        "pid",
        "state",
        "wrs",
    )

    def __init__(self, kind: int, cls: Any, pid: int | None, items: Any) -> None:
        self.kind = kind
        self.cls = cls
        self.pid = pid  # id() of the wrapper; None while nobody has fetched it
        self.items = items  # list, or dict of the values by field or key
        self.keys: dict[Any, Node] | None = None  # of a Dict: the keys that are objects
        self.state: dict[str, Any] | None = None  # what Python stored on the wrapper
        self.wrs: list[weakref.ref] = []
        self.loose = cls in (PyNodeDel, BaseDel)  # has a finaliser: identity is not kept
        self.fuzzy = False  # contents unknown until somebody looks
        self.mark = 0
        self.count = 0

    def is_known_dead(self) -> bool:
        """Whether a weak reference says so."""
        return bool(self.wrs) and not self.loose and self.wrs[0]() is None

    def children(self) -> list[Node]:
        items = self.items
        if items:
            found = [
                v
                for v in (items if items.__class__ is list else items.values())
                if v.__class__ is Node
            ]
        else:
            found = []
        if self.state:
            found += self.state_children()
        if self.keys:
            found += self.keys.values()
        return found

    def state_children(self) -> list[Node]:
        return [v for v in self.state.values() if v.__class__ is Node] if self.state else []

    def __repr__(self) -> str:
        return f"<{getattr(self.cls, '__name__', self.cls)} of the model>"


STEPS: dict[str, tuple[Callable[..., None], float, str]] = {}


def step(weight: float, group: str = "core") -> Callable[[Any], Any]:
    """Register a method as a step."""

    def register(function: Any) -> Any:
        STEPS[function.__name__] = (function, weight, group)
        return function

    return register


class Machine:
    """Runs the steps of one program."""

    def __init__(self, groups: set[str], client: Any = None, auto_gc: bool = False) -> None:
        self.groups = groups
        self.client = client
        self.auto_gc = auto_gc
        self.R: list[Any] = [None] * REGISTERS
        self.M: list[Node | None] = [None] * REGISTERS
        self.nodes: list[Node] = []
        self.knots: list[tuple[Any, Node]] = []  # rings that C++ cannot free: cut at the end
        self.held: list[Node] = []  # by the C library
        self.watchers: list[tuple[weakref.ref, Node]] = []
        self.tag = 100
        self.epoch = 0
        self.depth = 0
        self.armed: list[Step] = []
        self.open = False  # hooks may run steps now
        self.ran_nested = 0
        self.failure: BaseException | None = None
        self.fired = 0
        self.expect_fired = 0
        self.steps = 0
        self.before = tying.stats()

    # ---- running

    def run(self, steps: list[Step]) -> None:
        gc.collect()
        self.before = tying.stats()
        Hook.run = self.hook
        name, a, b, c = "finish", 0, 0, 0
        try:
            for name, a, b, c in steps:
                STEPS[name][0](self, a, b, c)
                self.steps += 1
                if self.failure is not None:
                    raise self.failure
            name = "finish"
            self.finish()
        except Unclear:
            self.abandon()
            raise
        except Exception as error:
            text = (
                str(error)
                if isinstance(error, Broken)
                else f"unexpected {type(error).__name__}: {error}"
            )
            raise Broken(f"{text}\nin step {self.steps}: {name, a, b, c}") from error
        finally:
            Hook.run = nothing

    def abandon(self) -> None:
        """Let go of everything; callbacks find nothing to do."""
        self.depth = 9
        self.armed.clear()
        self.M[:] = self.R[:] = [None] * REGISTERS
        self.knots.clear()
        if self.held:
            self.held.clear()
            self.client.release_all()

    def nested(self, todo: Step) -> None:
        """Run a step inside another one; what it finds is raised when that is over."""
        if self.depth >= 2:
            return
        self.depth += 1
        self.ran_nested += 1
        opened, self.open = self.open, False
        try:
            name, a, b, c = todo
            STEPS[name][0](self, a, b, c)
        except BaseException as error:
            if self.failure is None:
                self.failure = error
        finally:
            self.depth -= 1
            self.open = opened

    def hook(self) -> None:
        """Called by `Key` and `Converted`; most steps expect nothing to happen in them."""
        if self.armed and self.open:
            self.nested(self.armed.pop())

    def finish(self) -> None:
        """Drop everything; nothing may be left."""
        self.armed.clear()
        self.auto_gc = False
        self.collect_all()
        R, M = self.R, self.M
        for i in range(REGISTERS):
            M[i] = None
            R[i] = None
        while self.knots:
            real, node = self.knots.pop()
            self.cut(real, node)
            del real, node
        if self.held:
            self.release(1, 0, 0)
        for _ in range(3):
            gc.collect()
            if self.M != [None] * REGISTERS:  # callbacks that made new objects
                self.M[:] = [None] * REGISTERS
                self.R[:] = [None] * REGISTERS
            while self.knots:
                real, node = self.knots.pop()
                self.cut(real, node)
                del real, node
        gc.collect()
        self.armed.clear()
        if self.failure is not None:
            raise self.failure
        alive = [node for wr, node in self.watchers if wr() is not None]
        if alive:
            raise Broken(f"P5: {len(alive)} objects alive at the end: {alive[:4]}")
        if self.fired != self.expect_fired:
            raise Broken(f"P4: {self.fired} of {self.expect_fired} weak-reference callbacks ran")
        compare_stats(self.before, tying.stats())

    def cut(self, real: Any, node: Node) -> None:
        kind = node.kind
        if kind in (LIST, DICT):
            node.items.clear()
            node.keys = None
            real.clear()
        elif kind == PY:
            node.fuzzy = True
            real.f = real.g = real.o = None
            real.xs = []
            real.d = {}
        elif kind == CPP and type(real) is Edges:
            real.v_any = real.v_obj = None
        if node.state and node.state.pop("link", None) is not None:
            del real.link

    # ---- the model

    def new_node(self, kind: int, cls: Any, real: Any, items: Any) -> Node:
        node = Node(kind, cls, None if real is None else id(real), items)
        self.nodes.append(node)
        return node

    def reach(self, surely: bool = False) -> int:
        """Mark what the registers reach; `surely`: not by what a fuzzy object contains."""
        self.epoch += 1
        e = self.epoch
        stack = [m for m in self.M if m is not None]
        stack += [node for _, node in self.knots]
        stack += self.held
        for node in stack:
            node.mark = e
        while stack:
            node = stack.pop()
            for child in node.state_children() if surely and node.fuzzy else node.children():
                if child.mark != e:
                    child.mark = e
                    stack.append(child)
        return e

    def reaches(self, node: Node) -> bool:
        epoch = self.reach()
        return node.mark == epoch

    def broken(self, text: str) -> None:
        raise Broken(text)

    def same(self, got: Any, want: Any) -> None:
        """What was read is what the model says."""
        if want.__class__ is Node:
            pid = want.pid
            if pid is None:
                want.pid = id(got)
                if type(got) is not want.cls:
                    raise Broken(f"value: a {want} is read as {type(got)}")
            elif pid != id(got):
                if want.loose:
                    return
                raise Broken(f"P1/P2: {type(got)} at {id(got):#x} instead of {want} at {pid:#x}")
            elif type(got) is not want.cls:
                if want.loose:
                    return
                raise Broken(f"P3: class {type(got)} instead of {want.cls}")
            if want.state:
                self.same_state(got, want)
        elif got != want or got.__class__ is not want.__class__:
            if got == want and isinstance(got, type(want)) and not isinstance(got, int | float):
                return  # long strings and bytes are subclasses of str and bytes
            raise Broken(f"value: {got!r} instead of {want!r}")

    def same_state(self, got: Any, want: Node) -> None:
        state = want.state
        if "note" in state and getattr(got, "note", None) != state["note"]:
            raise Broken(f"P3: note {getattr(got, 'note', None)!r} instead of {state['note']!r}")
        link = state.get("link")
        if link is not None and not link.loose and id(getattr(got, "link", None)) != link.pid:
            raise Broken(f"P3: link {getattr(got, 'link', None)!r} instead of {link}")

    def value(self, b: int) -> tuple[Any, Any]:
        """A value to store: a number never seen before, another scalar, an object."""
        kind = b & 7
        if kind < 2:
            self.tag += 1
            return self.tag, self.tag
        if kind == 2:
            scalar = SCALARS[(b >> 3) % len(SCALARS)]
            return scalar, scalar
        i = (b >> 3) % REGISTERS
        node = self.M[i]
        if node is None or node.kind == HUSK:
            return i, i
        return self.R[i], node

    def get(self, kind: int, a: int) -> int:
        """The register of a kind; an object is made if there is none."""
        bank = BANKS[kind]
        i = bank[a % len(bank)]
        node = self.M[i]
        if node is None or node.kind != kind:
            # What dies here runs no steps: the caller has other registers in its hands.
            self.depth += 9
            try:
                MAKERS[kind](self, a, a >> 3, a >> 5)
            finally:
                self.depth -= 9
            node = self.M[i]
        if node.fuzzy:
            self.resync(self.R[i], node)
        return i

    def bind(self, real: Any, node: Node, c: int) -> None:
        """Put an object into a register of its kind, or of no kind."""
        if c & 1:
            i = 30 + (c >> 1) % 4
        else:
            bank = BANKS[node.kind]
            i = bank[(c >> 1) % len(bank)]
        self.M[i] = node
        self.R[i] = real

    def fresh(self, kind: int, a: int, real: Any, node: Node) -> None:
        bank = BANKS[kind]
        i = bank[a % len(bank)]
        self.M[i] = node
        self.R[i] = real

    def link(self, real: Any, node: Node, value: Any, child: Any) -> None:
        """Before `node` refers to `child`: a ring that need not be collected gets a name.

        Rings of C++ objects alone are a leak by design, and so are those through an object of C++
        that more than one holds.
        """
        if child.__class__ is not Node:
            return
        below = child.children()
        if not below:
            if child is node:
                self.knot(real, node)
            return
        self.epoch += 1
        e = self.epoch
        child.mark = e
        order = [child]
        in_ring = False
        for n in order:
            for c in n.children():
                if c.mark != e:
                    c.mark = e
                    order.append(c)
                elif c is child:
                    in_ring = True
        if node.mark != e:
            if in_ring and child.kind in SHARED_BY_CPP:
                self.knot(value, child)
            return
        if not self.collectable(order, node, child):
            self.knot(real, node)

    def share(self, value: Any, child: Any) -> None:
        """Before a new object refers to `child`."""
        if child.__class__ is Node and child.kind in SHARED_BY_CPP and child.items:
            self.link(None, NOBODY, value, child)

    def knot(self, real: Any, node: Node) -> None:
        self.knots.append((real, node))

    def collectable(self, order: list[Node], node: Node, child: Node) -> bool:
        """Say whether P6 promises that the ring closed by node -> child goes away."""
        groups = self.groups
        if "rings" not in groups:
            return False
        members = {node}
        grown = True
        while grown:
            grown = False
            for n in reversed(order):
                if n not in members and any(c in members for c in n.children()):
                    members.add(n)
                    grown = True
        owners = dict.fromkeys(members, 0)
        python = dict.fromkeys(members, 0)
        for n in self.nodes:
            for c in n.children():
                if c in owners:
                    owners[c] += 1
            for c in n.state_children():
                if c in owners:
                    owners[c] -= 1
                    python[c] = 1
        owners[child] += 1
        breakable = False
        for n in members:
            if n.loose or n.kind == HUSK or n.fuzzy:
                return False
            if n.state and any(v.__class__ is Node and v in members for v in n.state.values()):
                if "callback-rings" not in groups:
                    return False
                breakable = True
            if n.kind in (PY, KEY):
                breakable = True
            elif n.kind in SHARED_BY_CPP:
                if "container-rings" not in groups or n.kind == PAGE:
                    return False
                if owners[n] + python[n] > 1:
                    return False
        return breakable

    def split(self, node: Node, wrapper_stays: bool) -> Node:
        """Part the wrapper of `node` from its object, which stays `node`.

        Returns the node of the wrapper, with its identity, state and weak references. What Python
        refers to is the wrapper.
        """
        other = Node(node.kind if wrapper_stays else HUSK, node.cls, node.pid, [])
        other.state, node.state = node.state, None
        other.wrs, node.wrs = node.wrs, []
        other.loose = node.loose
        self.nodes.append(other)
        node.pid = None
        node.cls = plain(node.cls)
        node.loose = False
        for n in self.nodes:
            if n.state:
                for name, v in n.state.items():
                    if v is node:
                        n.state[name] = other
        self.M[:] = [other if m is node else m for m in self.M]
        self.knots[:] = [(r, other if n is node else n) for r, n in self.knots]
        self.watchers[:] = [(wr, other if n is node else n) for wr, n in self.watchers]
        return other

    def resync(self, real: Any, node: Node) -> None:
        """Take over what a container really has, after user code changed it in the middle.

        Only what the program ever stored may be there.
        """
        node.fuzzy = True  # it may contain itself
        likely = node.children()
        self.reach()
        if node.kind == LIST:
            values = list(real)
            node.items = found = [self.adopt(v, likely) for v in values]
        elif node.kind == DICT:
            entries = list(real.items())
            values = [value for _, value in entries]
            found = [self.adopt(v, likely) for v in values]
            node.items, node.keys = {}, None
            for (key, _), child in zip(entries, found, strict=True):
                if isinstance(key, Key):
                    name: Any = ("Key", key.x)
                    node.keys = node.keys or {}
                    node.keys[name] = self.adopt(key, likely)
                else:
                    name = key
                node.items[name] = child
            if len(node.items) != len(entries):
                raise Broken(f"value: {len(entries)} entries, {len(node.items)} different keys")
        else:
            values = [getattr(real, name) for name in node.items]
            found = [self.adopt(v, likely) for v in values]
            node.items = dict(zip(node.items, found, strict=True))
        # The user code may have closed a ring with what came to be here only after it.
        for value, child in zip(values, found, strict=True):
            if not any(n is node for _, n in self.knots):
                self.link(real, node, value, child)
        node.fuzzy = False

    def adopt(self, got: Any, likely: list[Node]) -> Any:
        """Find what the model has for a value that was read; `likely` was there before."""
        if got is None or isinstance(got, int | float | str | bytes):
            if type(got) is int and (0 <= got <= REGISTERS or 100 <= got <= self.tag):
                return got
            for scalar in SCALARS:  # not `got` itself: long text keeps an object of C++
                if got == scalar and isinstance(got, type(scalar)):
                    return scalar
            raise Broken(f"value: {got!r} was never stored")
        place = id(got)
        found = [n for n in self.nodes if n.pid == place and type(got) is n.cls]
        for n in found:
            if n.mark == self.epoch and not n.loose:
                return n
        # Dead wrappers may have had the same place (a loose object outlives its wrapper), and an
        # object that nobody fetched has none.
        found += [n for n in self.nodes if n.pid is None or n.loose]
        found = [n for n in dict.fromkeys(found) if self.fits(got, n)]
        found = [n for n in found if n in likely] or found
        if not found:
            raise Broken(f"value: {type(got)} at {place:#x} was never stored")
        if len(found) > 1:
            raise Unclear
        node = found[0]
        if node.pid is None:
            node.pid = place
            node.fuzzy = node.kind in (LIST, DICT, PY)
        return node

    def fits(self, got: Any, node: Node) -> bool:
        """Say whether `got` may be the object of `node`: its class, and its scalars."""
        if node.kind == HUSK or node.is_known_dead():
            return False
        if type(got) is not node.cls and not (node.loose and type(got) is plain(node.cls)):
            return False
        if node.fuzzy or node.kind in (FUNC, OPAQUE, TENSOR, PAGE):
            return True
        items = node.items
        if node.kind in (LIST, DICT, FIXED):
            if len(got) != len(items):
                return False
            if items.__class__ is list:
                return all(w.__class__ is Node or g == w for g, w in zip(got, items, strict=True))
            return all(
                w.__class__ is Node or name.__class__ is tuple or got.get(name) == w
                for name, w in items.items()
            )
        return all(w.__class__ is Node or getattr(got, name) == w for name, w in items.items())

    # ---- looking

    @step(3)
    def check(self, a: int, b: int, c: int, collected: bool = False) -> None:
        """Hold every weak reference against the model."""
        if self.depth:
            return
        fuzzy = any(n.fuzzy for n in self.nodes)
        if fuzzy:
            e = self.reach(surely=True)
            surely = {n for n in self.nodes if n.mark == e}
        e = self.reach()
        rest = []
        for n in self.nodes:
            if n.mark != e:
                rest.append(n)
                n.count = 0
        dead = []
        if rest:
            for n in rest:
                for child in n.children():
                    if child.mark != e:
                        child.count += 1
            dead = [n for n in rest if n.count == 0]
            for n in dead:
                n.mark = -1
                for child in n.children():
                    if child.mark != e:
                        child.count -= 1
                        if child.count == 0:
                            dead.append(child)
        exact = not FREE_THREADED or collected
        for n in self.nodes:
            if not n.wrs or n.loose:
                continue
            alive = n.wrs[0]() is not None
            if n.mark == e:
                if not alive and (not fuzzy or n in surely):
                    raise Broken(f"P4: the weak reference to a reachable {n} is dead")
            elif not alive or fuzzy:
                pass
            elif n.mark == -1:
                if exact:
                    raise Broken(f"P4/P5: {n} is unreachable and alive")
            elif collected:
                raise Broken(f"P6: {n} of a garbage ring is alive after a collection")
            for wr in n.wrs:
                if (wr() is not None) != alive:
                    raise Broken(f"P4: weak references to one {n} differ")
        if fuzzy:
            return
        if collected:
            self.nodes = [n for n in self.nodes if n.mark == e]
        elif dead:
            self.nodes = [n for n in self.nodes if n.mark != -1]

    @step(0.1 if FREE_THREADED else 0.6)  # stops the world there, and takes a millisecond
    def collect(self, a: int, b: int, c: int) -> None:
        if a % 3 == 2:
            self.collect_all()
        else:
            gc.collect(a % 3)

    def collect_all(self) -> None:
        """Collect until no callback of a dying object drops others, then check (P6)."""
        before = None
        while before != self.ran_nested:
            before = self.ran_nested
            gc.collect()
        self.check(0, 0, 0, collected=True)

    @step(3)
    def look(self, a: int, b: int, c: int) -> None:
        """Compare all of a container or object."""
        kind = (LIST, DICT, PY, CPP, FIXED)[a % 5]
        i = self.get(kind, b)
        self.compare(self.R[i], self.M[i])

    def compare(self, real: Any, node: Node) -> None:
        kind, items, same = node.kind, node.items, self.same
        if kind == LIST or (kind == FIXED and items.__class__ is list):
            if len(real) != len(items):
                raise Broken(f"value: length {len(real)} instead of {len(items)}")
            for got, want in zip(real, list(items), strict=True):
                same(got, want)
        elif kind in (DICT, FIXED):
            if len(real) != len(items):
                raise Broken(f"value: length {len(real)} instead of {len(items)}")
            for key, got in list(real.items()):
                name = ("Key", key.x) if isinstance(key, Key) else key
                if name not in items:
                    raise Broken(f"value: a key {key!r} that was never stored")
                same(got, items[name])
                if node.keys and name in node.keys:
                    same(key, node.keys[name])
        else:
            for name, want in list(items.items()):
                same(getattr(real, name), want)

    # ---- making

    @step(2)
    def new_list(self, a: int, b: int, c: int) -> None:
        cls = ListDict if b & 3 == 0 and "state" in self.groups else List
        v, mv = self.value(c)
        self.share(v, mv)
        real = cls([v]) if b & 4 else cls()
        self.fresh(LIST, a, real, self.new_node(LIST, cls, real, [mv] if b & 4 else []))

    @step(2)
    def new_dict(self, a: int, b: int, c: int) -> None:
        cls = DictDict if b & 3 == 0 and "state" in self.groups else Dict
        v, mv = self.value(c)
        key = KEYS[b % len(KEYS)]
        self.share(v, mv)
        real = cls({key: v}) if b & 4 else cls()
        self.fresh(DICT, a, real, self.new_node(DICT, cls, real, {key: mv} if b & 4 else {}))

    @step(3)
    def new_py(self, a: int, b: int, c: int) -> None:
        cls = (PyNode, PyNodeDict, PyNodeSlots, PyNodeDel, PyNode)[b % 5]
        if "state" not in self.groups:
            cls = PyNode
        v, mv = self.value(c)
        self.share(v, mv)
        self.tag += 1
        real = cls(self.tag, v)
        items = {
            "x": self.tag,
            "f": mv,
            "g": None,
            "xs": self.new_node(LIST, List, None, []),
            "d": self.new_node(DICT, Dict, None, {}),
            "o": None,
        }
        self.fresh(PY, a, real, self.new_node(PY, cls, real, items))

    @step(2)
    def new_cpp(self, a: int, b: int, c: int) -> None:
        which = b % 6
        if which < 2:
            v, mv = self.value(c)
            self.share(v, mv)
            real = make_edges(v)
            node = self.new_node(CPP, Edges, real, {"v_any": mv, "v_obj": None})
        elif which == 2:
            self.tag += 1
            inner = Base(self.tag)
            child = self.new_node(CPP, Base, inner, {"v_i64": self.tag})
            real = Holder(inner)
            node = self.new_node(CPP, Holder, real, {"value": child, "optional_value": None})
        else:
            cls = (BaseDict, BaseSlots, BaseDel)[which - 3] if "state" in self.groups else Base
            self.tag += 1
            real = cls(self.tag)
            node = self.new_node(CPP, cls, real, {"v_i64": self.tag})
        self.fresh(CPP, a, real, node)

    @step(2)
    def new_fixed(self, a: int, b: int, c: int) -> None:
        values = [self.value(b), self.value(c)]
        for v, mv in values:
            self.share(v, mv)
        if b & 64:
            real: Any = Array([v for v, _ in values])
            node = self.new_node(FIXED, Array, real, [mv for _, mv in values])
        else:
            names = ("p", 5)
            real = Map({name: v for name, (v, _) in zip(names, values, strict=True)})
            node = self.new_node(
                FIXED, Map, real, {n: mv for n, (_, mv) in zip(names, values, strict=True)}
            )
        self.fresh(FIXED, a, real, node)

    @step(1, "callbacks")
    def new_func(self, a: int, b: int, c: int) -> None:
        v, mv = self.value(c)
        self.share(v, mv)
        real = tvm_ffi.convert(Callback(v))
        node = self.new_node(FUNC, tvm_ffi.Function, real, [])
        node.state = {"kept": mv}
        self.fresh(FUNC, a, real, node)

    @step(1, "opaque")
    def new_opaque(self, a: int, b: int, c: int) -> None:
        v, mv = self.value(c)
        if mv.__class__ is not Node:
            v = mv = None
        self.share(v, mv)
        real = Payload(v)
        node = self.new_node(OPAQUE, Payload, real, [])
        node.state = {} if mv is None else {"link": mv}
        self.fresh(OPAQUE, a, real, node)

    @step(1, "hooks")
    def new_key(self, a: int, b: int, c: int) -> None:
        x = b % 7
        real = Key(x)
        self.fresh(KEY, a, real, self.new_node(KEY, Key, real, {"x": x}))

    @step(0.5, "tensors")
    def new_tensor(self, a: int, b: int, c: int) -> None:
        if numpy is None:
            real: Any = Payload()
            self.fresh(OPAQUE, a, real, self.new_node(OPAQUE, Payload, real, []))
            return
        array = numpy.full((1 + b % 3, 2), c, dtype="int64")
        real = tvm_ffi.from_dlpack(array)
        self.fresh(
            TENSOR, a, real, self.new_node(TENSOR, type(real), real, {"shape": tuple(array.shape)})
        )

    @step(0.7, "native")
    def new_page(self, a: int, b: int, c: int) -> None:
        v, mv = self.value(c)
        if mv.__class__ is not Node or mv.kind == OPAQUE:
            v = mv = None
        self.share(v, mv)
        real = self.client.page_new(v)
        self.fresh(PAGE, a, real, self.new_node(PAGE, type(real), real, [mv]))

    # ---- lists

    @step(5)
    def append(self, a: int, b: int, c: int) -> None:
        i = self.get(LIST, a)
        real, node = self.R[i], self.M[i]
        if len(node.items) >= MAX_ITEMS:
            node.items.clear()
            real.clear()
            return
        v, mv = self.value(b)
        self.link(real, node, v, mv)
        node.items.append(mv)
        real.append(v)

    @step(2)
    def insert(self, a: int, b: int, c: int) -> None:
        i = self.get(LIST, a)
        real, node = self.R[i], self.M[i]
        if len(node.items) >= MAX_ITEMS:
            return
        v, mv = self.value(b)
        self.link(real, node, v, mv)
        where = c % 12 - 6
        node.items.insert(where, mv)
        real.insert(where, v)

    @step(4)
    def set_item(self, a: int, b: int, c: int) -> None:
        i = self.get(LIST, a)
        real, node = self.R[i], self.M[i]
        v, mv = self.value(b)
        size = len(node.items)
        where = c % 12 - 6
        if not -size <= where < size:
            self.raises(IndexError, real.__setitem__, where, v)
            return
        self.link(real, node, v, mv)
        node.items[where] = mv
        real[where] = v

    @step(6)
    def get_item(self, a: int, b: int, c: int) -> None:
        i = self.get(LIST, a)
        real, node = self.R[i], self.M[i]
        size = len(node.items)
        if not size:
            self.raises(IndexError, real.__getitem__, b % 3)
            return
        want = node.items[b % size]
        got = real[b % size]
        self.same(got, want)
        if want.__class__ is Node and c & 1:
            self.bind(got, want, c >> 1)

    @step(2)
    def pop_item(self, a: int, b: int, c: int) -> None:
        i = self.get(LIST, a)
        real, node = self.R[i], self.M[i]
        size = len(node.items)
        if not size:
            self.raises(IndexError, real.pop)
            return
        want = node.items.pop(b % size)
        got = real.pop(b % size)
        self.same(got, want)
        if want.__class__ is Node and c & 1:
            self.bind(got, want, c >> 1)

    @step(2)
    def del_slice(self, a: int, b: int, c: int) -> None:
        i = self.get(LIST, a)
        real, node = self.R[i], self.M[i]
        part = slice(b % 5, b % 5 + c % 4, 1 + (c >> 4) % 2)
        del node.items[part]
        del real[part]

    @step(2)
    def set_slice(self, a: int, b: int, c: int) -> None:
        i = self.get(LIST, a)
        real, node = self.R[i], self.M[i]
        if len(node.items) >= MAX_ITEMS:
            return
        values = [self.value(b), self.value(c)]
        for v, mv in values:
            self.link(real, node, v, mv)
        part = slice(b % 5, b % 5 + c % 3)
        node.items[part] = [mv for _, mv in values]
        real[part] = [v for v, _ in values]

    @step(1)
    def extend(self, a: int, b: int, c: int) -> None:
        i, j = self.get(LIST, a), self.get(LIST, b)
        real, node = self.R[i], self.M[i]
        other, items = self.R[j], list(self.M[j].items)
        if len(node.items) + len(items) > MAX_ITEMS:
            return
        for k, mv in enumerate(items):
            if mv.__class__ is Node:
                self.link(real, node, other[k], mv)
        node.items += items
        if c & 1:
            real.extend(other)
        else:
            real.extend(list(other))

    @step(1)
    def clear_list(self, a: int, b: int, c: int) -> None:
        i = self.get(LIST, a)
        self.M[i].items.clear()
        self.R[i].clear()

    @step(1)
    def reverse(self, a: int, b: int, c: int) -> None:
        i = self.get(LIST, a)
        self.M[i].items.reverse()
        self.R[i].reverse()

    @step(1)
    def find(self, a: int, b: int, c: int) -> None:
        """`in`, index and count of a scalar."""
        i = self.get((LIST, FIXED)[c & 1], a)
        real, node = self.R[i], self.M[i]
        if node.items.__class__ is not list:
            return
        number = self.tag - b % 8
        want = [v for v in node.items if v.__class__ is int and v == number]
        if (number in real) != bool(want):
            raise Broken(f"value: {number} in {real!r} is {number in real}")
        if real.count(number) != len(want):
            raise Broken("value: count")

    # ---- dicts

    @step(5)
    def set_key(self, a: int, b: int, c: int) -> None:
        i = self.get(DICT, a)
        real, node = self.R[i], self.M[i]
        v, mv = self.value(b)
        key = KEYS[c % len(KEYS)]
        self.link(real, node, v, mv)
        node.items[key] = mv
        if c & 256:
            real.update({key: v})
        else:
            real[key] = v

    @step(6)
    def get_key(self, a: int, b: int, c: int) -> None:
        i = self.get(DICT, a)
        real, node = self.R[i], self.M[i]
        key = KEYS[b % len(KEYS)]
        if key not in node.items:
            if key in real or real.get(key, "nothing") != "nothing":
                raise Broken(f"value: a key {key!r} that is not there")
            self.raises(KeyError, real.__getitem__, key)
            return
        want = node.items[key]
        got = real[key] if b & 64 else real.get(key)
        self.same(got, want)
        if want.__class__ is Node and c & 1:
            self.bind(got, want, c >> 1)

    @step(2)
    def del_key(self, a: int, b: int, c: int) -> None:
        i = self.get(DICT, a)
        real, node = self.R[i], self.M[i]
        key = KEYS[b % len(KEYS)]
        if key not in node.items:
            self.raises(KeyError, real.pop, key)
            return
        want = node.items.pop(key)
        if c & 1:
            got = real.pop(key)
            self.same(got, want)
        else:
            del want
            del real[key]

    @step(1)
    def clear_dict(self, a: int, b: int, c: int) -> None:
        i = self.get(DICT, a)
        node = self.M[i]
        node.items.clear()
        node.keys = None
        del node
        self.R[i].clear()

    @step(1)
    def set_default(self, a: int, b: int, c: int) -> None:
        i = self.get(DICT, a)
        real, node = self.R[i], self.M[i]
        key = KEYS[c % len(KEYS)]
        v, mv = self.value(b)
        if key not in node.items:
            self.link(real, node, v, mv)
            node.items[key] = mv
        self.same(real.setdefault(key, v), node.items[key])

    # ---- fields

    @step(6)
    def set_field(self, a: int, b: int, c: int) -> None:
        i = self.get(PY, a)
        real, node = self.R[i], self.M[i]
        v, mv = self.value(b)
        name = ("f", "g", "f", "g", "o", "xs", "d", "x")[c & 7]
        if name == "x":
            self.tag += 1
            v = mv = self.tag
        elif name == "o":
            if mv.__class__ is not Node or mv.kind == OPAQUE:
                v = mv = None
        elif name == "xs":
            if mv.__class__ is not Node or mv.kind != LIST:
                v = [self.tag]
                mv = self.new_node(LIST, List, None, [self.tag])
        elif name == "d" and (
            mv.__class__ is not Node or mv.kind != DICT or not self.text_keys(mv)
        ):
            v = {"k": self.tag}
            mv = self.new_node(DICT, Dict, None, {"k": self.tag})
        self.link(real, node, v, mv)
        node.items[name] = mv
        setattr(real, name, v)

    def text_keys(self, node: Node) -> bool:
        """Say whether a field of `dict[str, Any]` takes this Dict; it keeps the one it is given."""
        return (
            "schema-identity" in self.groups
            and not node.fuzzy
            and all(type(key) is str for key in node.items)
            and bool(node.items)
        )

    @step(7)
    def get_field(self, a: int, b: int, c: int) -> None:
        i = self.get(PY, a)
        real, node = self.R[i], self.M[i]
        name = ("x", "f", "g", "xs", "d", "o", "f", "g")[b & 7]
        want = node.items[name]
        got = getattr(real, name)
        self.same(got, want)
        if want.__class__ is Node and c & 1:
            self.bind(got, want, c >> 1)

    @step(3)
    def cpp_field(self, a: int, b: int, c: int) -> None:
        """Set and get a field of an object of C++."""
        i = self.get(CPP, a)
        real, node = self.R[i], self.M[i]
        cls = plain(node.cls)
        v, mv = self.value(b)
        is_object = mv.__class__ is Node and mv.kind != OPAQUE
        if cls is Edges:
            name = "v_obj" if c & 1 and is_object else "v_any"
        elif cls is Holder:
            if not is_object or mv.kind != CPP or not issubclass(mv.cls, Base):
                if c & 31 == 0:
                    self.raises(TypeError, setattr, real, "value", v)
                return
            name = ("value", "optional_value")[c & 1]
        else:
            self.tag += 1
            v = mv = self.tag
            name = "v_i64"
        self.link(real, node, v, mv)
        node.items[name] = mv
        wrapper = node.pid
        setattr(real, name, v)
        del v
        if node.pid != wrapper:  # what died with the old value moved the object away
            return
        want = node.items.get(name)
        got = getattr(real, name)
        self.same(got, want)
        if want.__class__ is Node and c & 2:
            self.bind(got, want, c >> 2)

    @step(3)
    def get_fixed(self, a: int, b: int, c: int) -> None:
        i = self.get(FIXED, a)
        real, node = self.R[i], self.M[i]
        where: Any = b & 1
        if node.items.__class__ is dict:
            where = ("p", 5)[where]
        want = node.items[where]
        got = real[where]
        self.same(got, want)
        if want.__class__ is Node and c & 1:
            self.bind(got, want, c >> 1)

    @step(1, "native")
    def get_page(self, a: int, b: int, c: int) -> None:
        i = self.get(PAGE, a)
        want = self.M[i].items[0]
        got = self.client.page_child(self.R[i])
        self.same(got, want)
        if want.__class__ is Node and c & 1:
            self.bind(got, want, c >> 1)

    # ---- names, state, weak references

    @step(10)
    def drop(self, a: int, b: int, c: int) -> None:
        i = a % REGISTERS
        self.M[i] = None
        self.R[i] = None

    @step(2)
    def drop_all(self, a: int, b: int, c: int) -> None:
        if a & 7:
            return
        self.M[:] = [None] * REGISTERS
        self.R[:] = [None] * REGISTERS

    @step(2)
    def dup(self, a: int, b: int, c: int) -> None:
        i, j = a % REGISTERS, 30 + b % 4
        self.M[j] = self.M[i]
        self.R[j] = self.R[i]

    @step(4, "state")
    def set_state(self, a: int, b: int, c: int) -> None:
        i = a % REGISTERS
        real, node = self.R[i], self.M[i]
        if node is None or not (node.cls in STATEFUL or node.kind in (FUNC, OPAQUE)):
            return
        state = dict(node.state or ())
        if c & 1:
            self.tag += 1
            state["note"] = self.tag
            node.state = state
            real.note = self.tag
            return
        v, mv = self.value(b)
        if mv.__class__ is not Node:
            if state.pop("link", None) is not None:
                node.state = state
                del real.link
            return
        self.link(real, node, v, mv)
        state = dict(node.state or ())
        state["link"] = mv
        node.state = state
        real.link = v

    @step(2, "state")
    def get_state(self, a: int, b: int, c: int) -> None:
        i = a % REGISTERS
        real, node = self.R[i], self.M[i]
        if node is None or not node.state:
            return
        self.same_state(real, node)
        want = node.state.get("link")
        if want is not None and want.kind != HUSK and c & 1:
            self.bind(real.link, want, c >> 1)

    @step(4, "weakrefs")
    def watch(self, a: int, b: int, c: int) -> None:
        """Make a weak reference; its callback may run a step."""
        i = a % REGISTERS
        real, node = self.R[i], self.M[i]
        if node is None or node.loose or len(node.wrs) > 3:
            return
        if c & 3 == 0:
            wr = weakref.ref(real)
        elif c & 4 or self.auto_gc or "weakref-callbacks" not in self.groups:
            wr = weakref.ref(real, self.on_death)
            self.expect_fired += 1
        else:
            todo = NESTED[(c >> 3) % len(NESTED)], b, c >> 5, b >> 5
            if STEPS[todo[0]][2] not in self.groups:
                todo = "append", *todo[1:]
            wr = weakref.ref(real, lambda _, todo=todo: self.on_death_run(todo))
            self.expect_fired += 1
        node.wrs.append(wr)
        self.watchers.append((wr, node))

    def on_death(self, _: Any) -> None:
        self.fired += 1

    def on_death_run(self, todo: Step) -> None:
        self.fired += 1
        self.nested(todo)

    @step(2, "weakrefs")
    def use_watcher(self, a: int, b: int, c: int) -> None:
        if not self.watchers:
            return
        wr, node = self.watchers[a % len(self.watchers)]
        got = wr()
        if got is None:
            if not self.depth and node.mark != -1 and not any(n.fuzzy for n in self.nodes):
                if self.reaches(node):
                    raise Broken(f"P4: the weak reference to a reachable {node} is dead")
            return
        if node.kind == HUSK or node.loose:
            return
        if self.depth or any(n.fuzzy for n in self.nodes):
            return  # it may be dying
        if node not in self.nodes:
            if FREE_THREADED:
                return
            raise Broken(f"P4: {node} came back from the dead")
        if node.kind == PY and got.x != node.items["x"]:
            raise Broken("value: x through a weak reference")
        if node.kind == LIST and len(got) != len(node.items):
            raise Broken("value: length through a weak reference")
        self.same(echo(got), node)
        if c & 1:
            self.bind(got, node, c >> 1)

    # ---- calls

    @step(3)
    def call(self, a: int, b: int, c: int) -> None:
        """Through C++ and back."""
        v, mv = self.value(b)
        if c & 1:
            self.same(echo(v), mv)
        else:
            self.same(apply(Callback(None), v), mv)

    @step(2, "callbacks")
    def call_func(self, a: int, b: int, c: int) -> None:
        i = self.get(FUNC, a)
        real, node = self.R[i], self.M[i]
        if node.state is None:
            return
        want = node.state["kept"]
        if want.__class__ is Node and want.kind == HUSK:
            self.raises(ValueError, real)
            return
        self.same(real(), want)
        v, mv = self.value(b)
        self.same(real(v), mv)

    @step(2, "callbacks")
    def call_nested(self, a: int, b: int, c: int) -> None:
        """A callback that changes things while C++ waits for it."""
        todo = NESTED[c % len(NESTED)], a, b, c >> 4
        if STEPS[todo[0]][2] not in self.groups:
            return
        v, mv = self.value(b)

        def run(arg: Any) -> Any:
            self.nested(todo)
            return arg

        try:
            got = apply(run, v)
        except ValueError:
            if tying.state(v) != "empty":
                raise
            return  # moved meanwhile
        if mv.__class__ is not Node or mv.pid == id(v):
            self.same(got, mv)

    @step(0.1, "errors")  # slow: each has a backtrace
    def throw(self, a: int, b: int, c: int) -> None:
        """An exception through C++ is the same exception."""
        which = a % 3
        if which == 0:
            error = (ValueError, KeyError, ZeroDivisionError)[b % 3](b)

            def fail() -> None:
                raise error

            try:
                apply(fail)
            except type(error) as caught:
                if caught is not error:
                    raise Broken("value: another exception came back") from caught
            else:
                raise Broken("value: the exception was lost")
            finally:
                error.__traceback__ = None
                del error, fail
            return
        if which == 1:
            self.raises(ValueError, testing.test_raise_error, "ValueError", "text")
        else:
            i = self.get(PY, b)
            self.raises(TypeError, setattr, self.R[i], "x", "no number")

    def raises(self, kind: type[BaseException], function: Any, *args: Any) -> None:
        try:
            function(*args)
        except kind:
            return
        raise Broken(f"value: no {kind.__name__} from {function}")

    # ---- walks and copies

    @step(1.5, "walks")
    def walk(self, a: int, b: int, c: int) -> None:
        i = a % REGISTERS
        real, node = self.R[i], self.M[i]
        if node is None or node.kind == HUSK:
            return
        which = b % 5
        before = self.ran_nested
        self.open = not self.depth
        try:
            if which == 0:
                repr(real)
            elif which == 1:
                if hash(real) != hash(real):
                    raise Broken("value: a hash differs from itself")
            elif which == 2:
                if "structural-hash" not in self.groups:
                    return
                if tvm_ffi.structural_hash(real) != tvm_ffi.structural_hash(real):
                    raise Broken("value: a structural hash differs from itself")
            elif which == 3:
                if not tvm_ffi.structural_equal(real, real):
                    raise Broken("value: an object is not structurally equal to itself")
            elif real != real:
                raise Broken("value: an object is not equal to itself")
        except (TypeError, ValueError, RuntimeError):
            if which == 0 and self.ran_nested == before:
                raise
        except Broken:
            if self.ran_nested == before:
                raise
        finally:
            self.open = False

    @step(1, "copies")
    def duplicate(self, a: int, b: int, c: int) -> None:
        """copy, deepcopy, pickle, JSON: the values are those of the model."""
        kind = (PY, LIST, DICT, CPP, FIXED)[a % 5]
        i = self.get(kind, a >> 3)
        real, node = self.R[i], self.M[i]
        if self.reaches_knot(node):
            return  # nobody could cut the copy of the ring
        which = b % 4
        before = self.ran_nested
        self.open = not self.depth
        try:
            if which == 0:
                other = copy.copy(real)
            elif which == 1:
                other = copy.deepcopy(real)
            elif which == 2:
                other = pickle.loads(pickle.dumps(real))
            else:
                other = serialization.from_json_graph_str(serialization.to_json_graph_str(real))
        except (TypeError, ValueError, RuntimeError, pickle.PicklingError, AttributeError):
            return  # rings, functions, opaque objects, hooks that changed something
        finally:
            self.open = False
        if self.ran_nested != before:
            return
        if plain(type(other)) is not plain(type(real)):
            raise Broken(f"value: a copy of {type(real)} is a {type(other)}")
        self.match(other, node, set())

    def reaches_knot(self, node: Node) -> bool:
        knots = {n for _, n in self.knots}
        if not knots:
            return False
        seen = {node}
        stack = [node]
        while stack:
            n = stack.pop()
            if n in knots:
                return True
            for child in n.children():
                if child not in seen:
                    seen.add(child)
                    stack.append(child)
        return False

    def match(self, got: Any, want: Any, seen: set[Node]) -> None:
        """Compare a copy with the model by value."""
        if want.__class__ is not Node:
            if got != want:
                raise Broken(f"value: {got!r} instead of {want!r} in a copy")
            return
        if want in seen or want.fuzzy or want.kind in (OPAQUE, FUNC, TENSOR, HUSK, PAGE):
            return
        seen.add(want)
        items = want.items
        if plain(type(got)) is not plain(want.cls):
            raise Broken(f"value: {type(got)} instead of {want.cls} in a copy")
        if items.__class__ is list or want.kind in (DICT, FIXED):
            if len(got) != len(items):
                raise Broken(f"value: length {len(got)} instead of {len(items)} in a copy")
            if items.__class__ is list:
                for g, w in zip(got, items, strict=True):
                    self.match(g, w, seen)
            elif not want.keys:
                for name, w in items.items():
                    self.match(got[name], w, seen)
        else:
            for name, w in items.items():
                self.match(getattr(got, name), w, seen)

    # ---- moves, second initialisation

    @step(1.5, "moves")
    def move(self, a: int, b: int, c: int) -> None:
        i = a % REGISTERS
        real, node = self.R[i], self.M[i]
        if node is None or node.kind in (HUSK, OPAQUE, FUNC, TENSOR, PAGE):
            return
        husk = self.split(node, wrapper_stays=False)
        moved = echo(real._move())
        if moved is real:
            raise Broken("value: moved, and still the same wrapper")
        if tying.state(real) != "empty":
            raise Broken(f"value: {tying.state(real)} after a move")
        self.same(moved, node)
        self.knots += [(moved, node) for _, n in self.knots if n is husk]
        self.bind(moved, node, c)
        if b & 1:
            self.raises(ValueError, echo, real)
        if b & 2:
            j = 30 + b % 4
            self.M[j] = husk
            self.R[j] = real

    @step(1, "reinit")
    def init_again(self, a: int, b: int, c: int) -> None:
        """A second __init__: the wrapper stands for another object from then on."""
        i = self.get((LIST, DICT)[a & 1], a >> 1)
        real, node = self.R[i], self.M[i]
        if any(n is node for _, n in self.knots):
            return  # nobody could cut the ring any more
        v, mv = self.value(b)
        if mv is node or c & 1:
            v = mv = self.tag
        self.share(v, mv)
        other = self.split(node, wrapper_stays=True)
        self.link(real, other, v, mv)
        if a & 1:
            other.items = {"a": mv}
            real.__init__({"a": v})
        else:
            other.items = [mv]
            real.__init__([v])
        if self.R[i] is real and self.M[i].kind == node.kind:  # a callback may have done it again
            self.compare(real, self.M[i])

    # ---- user code in the middle of an operation

    @step(3, "hooks")
    def arm(self, a: int, b: int, c: int) -> None:
        """The next hook runs this step."""
        name = NESTED[c % len(NESTED)]
        if STEPS[name][2] in self.groups:
            self.armed.append((name, a, b, c >> 4))

    @step(1, "hooks")
    def arm_self(self, a: int, b: int, c: int) -> None:
        """Search a Dict with a key whose hook changes that very Dict."""
        i = self.get(DICT, a)
        bank = BANKS[DICT]
        same = bank.index(i)
        name = ("clear_dict", "set_key", "del_key", "move_dict", "set_hooked", "grow_dict")[b % 6]
        if STEPS[name][2] not in self.groups:
            return
        self.armed.append((name, same, b >> 3, c >> 2))
        (self.set_hooked, self.get_hooked, self.del_hooked, self.get_hooked)[c & 3](
            same, b >> 2, c >> 2
        )

    @step(0.2)
    def grow_dict(self, a: int, b: int, c: int) -> None:
        """Enough entries for another table."""
        i = self.get(DICT, a)
        real, node = self.R[i], self.M[i]
        for k in range(24):
            node.items[f"k{k}"] = k
            real[f"k{k}"] = k

    @step(0.2, "moves")
    def move_dict(self, a: int, b: int, c: int) -> None:
        self.move(self.get(DICT, a), b, c)

    def hooked(self, i: int, operation: Callable[[], Any]) -> tuple[bool, Any]:
        """Run an operation on register `i` that calls hooks.

        Returns whether the model may go on as if there were none, and the result. A changed
        container raises RuntimeError; a moved one ValueError.
        """
        real, node = self.R[i], self.M[i]
        before = self.ran_nested
        result = None
        opened, self.open = self.open, True
        try:
            result = operation()
        except (RuntimeError, ValueError) as error:
            if self.ran_nested == before:
                raise Broken(f"unexpected {type(error).__name__}: {error}") from error
        except KeyError:
            result = KeyError
        finally:
            self.open = opened
        if self.ran_nested == before:
            return True, result
        self.resync_after(real, node, i)
        return False, result

    def resync_after(self, real: Any, node: Node, i: int) -> None:
        """After user code ran: the object may have another wrapper, the wrapper another object.

        If neither a register nor `real`, its wrapper from before, has the object any more, nor
        what a register has, and something else may hold it, nobody can look what it refers to now.
        """
        node.fuzzy = True
        for k in range(REGISTERS):
            other = self.M[k]
            if other is not None and other.kind == node.kind and (other is node or k == i):
                self.resync(self.R[k], other)
        if node.fuzzy and node.pid == id(real) and tying.state(real) == "active":
            self.resync(real, node)
        if node.fuzzy and self.reaches(node):
            found = self.fetch(node)
            if found is None:
                raise Unclear
            self.resync(found, node)

    def fetch(self, node: Node) -> Any:
        """Read an object from a container or field that a register has; None if there is none."""
        for real, parent in zip(self.R, self.M, strict=True):
            if parent is None or parent.fuzzy or parent.kind not in (LIST, DICT, PY):
                continue
            items = parent.items
            for name, child in enumerate(items) if parent.kind == LIST else items.items():
                if child is node and not isinstance(name, tuple):  # a tuple stands for a hooked key
                    found = getattr(real, name) if parent.kind == PY else real[name]
                    self.same(found, node)
                    return found
        return None

    @step(2, "hooks")
    def set_hooked(self, a: int, b: int, c: int) -> None:
        i, k = self.get(DICT, a), self.get(KEY, b)
        real, node, key, knode = self.R[i], self.M[i], self.R[k], self.M[k]
        v, mv = self.value(c)
        self.link(real, node, v, mv)
        plainly, _ = self.hooked(i, lambda: real.__setitem__(key, v))
        if plainly:
            name = "Key", knode.items["x"]
            node.keys = node.keys or {}
            node.keys.setdefault(name, knode)
            node.items[name] = mv

    @step(2, "hooks")
    def get_hooked(self, a: int, b: int, c: int) -> None:
        i = self.get(DICT, a)
        real, node = self.R[i], self.M[i]
        x = b % 7
        want = node.items.get(("Key", x), KeyError)
        method = real.__getitem__ if c & 1 else real.get
        before = self.ran_nested
        plainly, got = self.hooked(i, lambda: method(Key(x)))
        if got is None and not c & 1 and want is KeyError:
            return
        if plainly:
            if want is KeyError or got is KeyError:
                if got is not want:
                    raise Broken(f"value: {got!r} instead of {want!r} for a key with hooks")
            else:
                self.same(got, want)
        elif got is not None and got is not KeyError:
            # Another key's value is never right.
            if self.ran_nested == before + 1 and want is KeyError and ("Key", x) not in node.items:
                raise Broken(f"value: {got!r} for a key that was never there")

    @step(1, "hooks")
    def del_hooked(self, a: int, b: int, c: int) -> None:
        i = self.get(DICT, a)
        real, node = self.R[i], self.M[i]
        x = b % 7
        want = node.items.get(("Key", x), KeyError)
        plainly, got = self.hooked(i, lambda: real.pop(Key(x)))
        if not plainly:
            return
        if (got is KeyError) != (want is KeyError):
            raise Broken(f"value: pop gave {got!r} instead of {want!r}")
        if got is not KeyError:
            self.same(got, want)
            del node.items["Key", x], node.keys["Key", x]

    @step(2, "converters")
    def convert_argument(self, a: int, b: int, c: int) -> None:
        """An argument whose conversion runs code, which may change the other arguments."""
        i = self.get(LIST, a)
        real, node = self.R[i], self.M[i]
        name = NESTED[(c >> 3) % len(NESTED)]
        todo = name, (a if b & 1 else b >> 1), b >> 2, c >> 6
        if STEPS[name][2] not in self.groups or len(node.items) >= MAX_ITEMS:
            return
        if b & 1 and name == "move":
            todo = name, i, b >> 2, c >> 6
        self.tag += 1
        value = Converted(self.tag)
        self.armed.append(todo)
        operations: list[Callable[[], Any]] = [
            lambda: real.append(value),
            lambda: real.insert(0, value),
            lambda: real.extend([value, 1]),
            lambda: value in real,
            lambda: FFI_ARRAY(real, value)[0],
            lambda: LIST_INSERT(real, 0, value),
        ]
        which = c % 6
        _, got = self.hooked(i, operations[which])
        if which == 4 and got is not None and not self.depth:
            # The very object that was given, whoever stands for it now.
            if got.__class__ is not list and self.M[i] is node and node.pid not in (None, id(got)):
                raise Broken("P1: another object was delivered")
        self.armed.clear()
        self.resync_after(real, node, i)

    # ---- structures

    @step(0.3, "rings")
    def ring(self, a: int, b: int, c: int) -> None:
        """Objects of Python that refer to each other through C++ memory alone."""
        if self.auto_gc and self.depth:
            return
        count = 1 + a % 5
        made = []
        for k in range(count):
            self.tag += 1
            cls = (
                (PyNode, PyNodeDict, PyNodeSlots)[(b >> k) % 3]
                if "state" in self.groups
                else PyNode
            )
            real = cls(self.tag)
            items = {"x": self.tag, "f": None, "g": None, "o": None}
            items["xs"] = self.new_node(LIST, List, None, [])
            items["d"] = self.new_node(DICT, Dict, None, {})
            made.append((real, self.new_node(PY, cls, real, items)))
        for k, (real, node) in enumerate(made):
            value, child = made[(k + 1) % count]
            node.items["f"] = child
            real.f = value
        real, node = made[-1]
        if c & 1:
            node.wrs.append(weakref.ref(real))
            self.watchers.append((node.wrs[-1], node))
        if c & 2:
            self.bind(real, node, c >> 2)

    @step(0.01, "fork")
    def fork(self, a: int, b: int, c: int) -> None:
        """A child goes on with the same objects, and ends in one way or the other."""
        if self.depth:
            return
        child = os.fork()
        if child == 0:
            try:
                for name, *numbers in generate(a, self.groups - {"fork"}, 20)["steps"]:
                    STEPS[name][0](self, *numbers)
                if b & 1:
                    raise ChildEnds
                self.finish()
                os._exit(0)
            except ChildEnds:
                raise
            except Unclear:
                os._exit(0)
            except BaseException:
                traceback.print_exc()
                os._exit(9)
        self.wait(child)

    @step(0.01, "exit")
    def exit(self, a: int, b: int, c: int) -> None:
        """The interpreter ends here, in a child, while threads are at work on the objects."""
        if self.depth:
            return
        child = os.fork()
        if child == 0:
            try:
                leave_with_threads(self, a, b, c)
            except Exception:
                traceback.print_exc()
                os._exit(9)
        self.wait(child)

    def wait(self, child: int) -> None:
        deadline = time.monotonic() + CHILD_SECONDS
        while True:
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > deadline:
                os.kill(child, signal.SIGABRT)
                os.waitpid(child, 0)
                raise Broken("hang: a child did not end")
            time.sleep(0.001)
        if status:
            how = (
                f"signal {os.WTERMSIG(status)}"
                if os.WIFSIGNALED(status)
                else f"status {status >> 8}"
            )
            raise Broken(f"exit: a child ended with {how}")

    @step(0.02, "deep")
    def deep(self, a: int, b: int, c: int) -> None:
        """A long chain, torn down at once."""
        chain: Any = None
        first = None
        for k in range(500 + a % 3000):
            chain = PyNode(k, chain) if b & 1 else Array([chain])
            if first is None:
                first = weakref.ref(chain)
        if c & 1:
            gc.collect()
        if first() is None:
            raise Broken("P4: the end of a chain is dead")
        del chain
        if first() is not None:
            gc.collect()
            if first() is not None:
                raise Broken("P5: the end of a chain is left")

    # ---- references held by C, and given back on a thread that never saw Python

    @step(1, "native")
    def hold(self, a: int, b: int, c: int) -> None:
        v, mv = self.value(b)
        if mv.__class__ is Node and mv.kind != OPAQUE and len(self.held) < 20:
            self.share(v, mv)
            self.held.append(mv)
            self.client.hold(v)

    @step(0.5, "native")
    def release(self, a: int, b: int, c: int) -> None:
        count = len(self.held)
        last = self.held[-1] if count else None
        if last is not None and last.kind != HUSK:
            self.same(self.client.held_last(), last)
        self.held.clear()
        client = self.client
        released = client.release_all_in_thread() if a & 1 else client.release_all()
        if released != count:
            raise Broken(f"value: {released} of {count} references given back")
        Array([])  # the next operation of Python frees the wrappers


def leave_with_threads(machine: Machine, a: int, b: int, c: int) -> None:
    """Start daemon threads that use the FFI, and end the interpreter under them."""
    pairs = zip(machine.R, machine.M, strict=True)
    box = Array([real for real, node in pairs if node is not None and node.kind != HUSK])
    kept = tvm_ffi.List([PyNode(1), "text"])
    table = Dict({Key(k): kept for k in range(4)}) if "hooks" in machine.groups else Dict({1: kept})
    key = Key(3) if "hooks" in machine.groups else 1
    function = tvm_ffi.convert(Callback(None))
    Hook.run = nothing

    def spin(which: int) -> None:
        while True:
            if which == 0:
                for item in box:
                    echo(item)
            elif which == 1:
                function(kept)
                apply(Callback(None), kept)
            elif which == 2:
                kept[0].f = kept[0].x
                table.get(key)
            else:
                weakref.ref(kept[0])()
                copy.copy(kept)

    for k in range(1 + a % 4):
        threading.Thread(target=spin, args=((b >> 2 * k) % 4,), daemon=True).start()
    time.sleep((c % 16) / 1000)
    raise ChildEnds


CHILD_SECONDS = 60
NOBODY = Node(HUSK, None, None, [])
FFI_ARRAY = tvm_ffi.get_global_func("ffi.Array")
LIST_INSERT = tvm_ffi.get_global_func("ffi.ListInsert")
MAKERS = {
    LIST: Machine.new_list,
    DICT: Machine.new_dict,
    PY: Machine.new_py,
    CPP: Machine.new_cpp,
    FIXED: Machine.new_fixed,
    FUNC: Machine.new_func,
    OPAQUE: Machine.new_opaque,
    KEY: Machine.new_key,
    TENSOR: Machine.new_tensor,
    PAGE: Machine.new_page,
}
# What hooks and callbacks do.
NESTED = [
    "append",
    "clear_list",
    "set_key",
    "clear_dict",
    "drop",
    "set_field",
    "set_item",
    "del_slice",
    "move",
    "init_again",
    "collect",
    "get_field",
    "new_list",
    "pop_item",
    "grow_dict",
    "set_slice",
]
# Parts of steps that can be switched off by themselves.
PARTS = {
    "callback-rings",
    "container-rings",
    "schema-identity",
    "structural-hash",
    "weakref-callbacks",
}
GROUPS = sorted({group for _, _, group in STEPS.values()} | PARTS)
unclear: list[int] = []  # seeds of programs that ended early


def generate(seed: int, groups: set[str], length: int) -> dict[str, Any]:
    """Make the program of a seed."""
    rng = random.Random(seed)
    names, weights = [], []
    for name, (_, weight, group) in STEPS.items():
        if group in groups:
            names.append(name)
            # Each program likes some steps more than others.
            weights.append(weight * rng.choice((0.2, 1.0, 1.0, 3.0)))
    chosen = rng.choices(names, weights, k=length)
    numbers = memoryview(rng.randbytes(6 * length)).cast("H").tolist()
    steps = list(zip(chosen, numbers[::3], numbers[1::3], numbers[2::3], strict=True))
    return {"kind": "plain", "seed": seed, "auto_gc": rng.random() < 0.15, "steps": steps}


def run(program: dict[str, Any], groups: set[str], client: Any = None) -> int:
    """Run a program; returns the number of steps, raises Broken."""
    machine = Machine(groups, client, program["auto_gc"])
    if program["auto_gc"]:
        gc.set_threshold(20, 2, 2)
        gc.enable()
    else:
        gc.disable()
    try:
        machine.run([tuple(s) for s in program["steps"]])
    except Unclear:
        unclear.append(program["seed"])
    finally:
        gc.disable()
    return machine.steps + machine.ran_nested
