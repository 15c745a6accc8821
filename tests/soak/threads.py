# SPDX-License-Identifier: Apache-2.0
"""Random programs of several threads on the same objects.

Nobody knows in which order they come, so there is no model: every value that is read must be one
that some thread may have stored, objects that C++ keeps must keep their identity and state (P1 to
P4), and at the end nothing is left (P5). Crashes and hangs are the rest.

Objects have levels, and containers keep objects of lower ones only: rings of C++ objects would be a
leak by design. Fields of objects of Python refer to each other freely (P6).
"""

from __future__ import annotations

import copy
import gc
import pickle
import random
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import tvm_ffi
from objects import (
    Base,
    BaseDict,
    BaseSlots,
    Broken,
    Callback,
    Converted,
    Hook,
    Key,
    PyNode,
    PyNodeDict,
    compare_stats,
    nothing,
)
from tvm_ffi import serialization, testing, tying

Array, Dict, List = tvm_ffi.Array, tvm_ffi.Dict, tvm_ffi.List
KEYS = ["a", "b", "a longer key than most", 1, 2, 3]
TEXT = ["", "short", "a string that is kept on the heap"]
# Another thread came first; an object was moved away or changed in the middle of an operation.
ALLOWED = (IndexError, KeyError, ValueError, RuntimeError, ReferenceError)
BURST = 2**12  # a step is done 1 + c / BURST times: races need threads that meet
STEPS: dict[str, tuple[Callable[..., None], float, str]] = {}
went_on: Callable[[], None] = nothing  # called before every step


def step(weight: float, group: str = "core") -> Callable[[Any], Any]:
    def register(function: Any) -> Any:
        STEPS[function.__name__] = (function, weight, group)
        return function

    return register


class Shared:
    """What the threads share."""

    def __init__(self, groups: set[str], hot: bool) -> None:
        self.groups = groups
        self.lists = [List(), List([1]), List()]
        self.dicts = [Dict(), Dict({"a": 1})]
        self.nodes = [PyNode(1), PyNodeDict(2), PyNode(3)]
        if hot:
            self.lists[1:] = [self.lists[0]] * 2
            self.dicts[1:] = [self.dicts[0]]
            self.nodes[1:] = [self.nodes[0]] * 2
        self.outer = Array([*self.lists, *self.dicts, Array([self.lists[0]])])
        anchors = [BaseDict(7), BaseSlots(8), PyNodeDict(9), tvm_ffi.convert(Callback(None))]
        for i, anchor in enumerate(anchors):
            anchor.note = i
        # Kept by C++ alone: whoever fetches one gets the very wrapper, with its note.
        self.anchors = Array(anchors)
        self.ids = [id(anchor) for anchor in anchors]
        self.watchers = [weakref.ref(anchor) for anchor in anchors]
        self.failures: list[BaseException] = []

    def legal(self, got: Any) -> None:
        if (
            got is None
            or (type(got) is int and 0 <= got < 2**17)
            or (isinstance(got, str) and got in TEXT)
        ):
            return
        if isinstance(got, PyNode | Base | List | tvm_ffi.Function):
            return
        raise Broken(f"value: {got!r} was never stored")

    def value(self, b: int) -> Any:
        which = b & 7
        if which < 3:
            return b
        if which == 3:
            return TEXT[(b >> 3) % 3]
        if which == 4:
            return self.nodes[(b >> 3) % 3]
        if which == 5:
            return self.anchors[(b >> 3) % 3]
        return PyNode(b) if which == 6 else None

    # ---- steps

    @step(4)
    def anchor(self, a: int, b: int, c: int) -> None:
        i = a & 3
        got = self.anchors[i]
        if id(got) != self.ids[i]:
            raise Broken(f"P1/P2: {type(got)} at another place")
        if got.note != i:
            raise Broken(f"P3: note {got.note!r} instead of {i}")
        if self.watchers[i]() is not got:
            raise Broken("P4: the weak reference to a held object")

    @step(4)
    def append(self, a: int, b: int, c: int) -> None:
        target = self.lists[a % 3]
        if len(target) > 40:
            target.clear()
        target.append(self.value(b))

    @step(2)
    def insert(self, a: int, b: int, c: int) -> None:
        self.lists[a % 3].insert(c % 8 - 4, self.value(b))

    @step(4)
    def get_item(self, a: int, b: int, c: int) -> None:
        self.legal(self.lists[a % 3][b % 8 - 4])

    @step(2)
    def set_item(self, a: int, b: int, c: int) -> None:
        self.lists[a % 3][c % 8 - 4] = self.value(b)

    @step(2)
    def pop(self, a: int, b: int, c: int) -> None:
        self.legal(self.lists[a % 3].pop(b % 4 - 2))

    @step(2)
    def slices(self, a: int, b: int, c: int) -> None:
        target = self.lists[a % 3]
        if b & 1:
            del target[b % 5 : c % 9]
        else:
            target[b % 5 : c % 5] = [self.value(b), self.value(c)]

    @step(2)
    def iterate(self, a: int, b: int, c: int) -> None:
        for got in self.lists[a % 3]:
            self.legal(got)

    @step(0.3)
    def clear(self, a: int, b: int, c: int) -> None:
        if a & 1:
            self.lists[b % 3].clear()
        else:
            self.dicts[b & 1].clear()

    @step(1)
    def find(self, a: int, b: int, c: int) -> None:
        self.value(b) in self.lists[a % 3]  # noqa: B015

    @step(4)
    def set_key(self, a: int, b: int, c: int) -> None:
        value = self.lists[c % 3] if b & 64 else self.value(b)
        key = c if c & 256 else KEYS[c % 6]
        target = self.dicts[a & 1]
        if len(target) > 60:
            target.clear()
        target[key] = value

    @step(4)
    def get_key(self, a: int, b: int, c: int) -> None:
        self.legal(self.dicts[a & 1].get(KEYS[b % 6]))

    @step(2)
    def del_key(self, a: int, b: int, c: int) -> None:
        self.legal(self.dicts[a & 1].pop(KEYS[b % 6]))

    @step(1)
    def iterate_dict(self, a: int, b: int, c: int) -> None:
        for _, got in self.dicts[a & 1].items():
            self.legal(got)

    @step(4)
    def set_field(self, a: int, b: int, c: int) -> None:
        target = self.nodes[a % 3]
        if c & 3 == 0:
            target.x = b
        elif c & 3 == 1:
            target.f = self.value(b)
        elif c & 3 == 2:
            target.xs = [b, TEXT[b % 3]]
        else:
            target.g = [b]

    @step(4)
    def get_field(self, a: int, b: int, c: int) -> None:
        target = self.nodes[a % 3]
        if c & 3 == 0:
            self.legal(target.x)
        elif c & 3 == 1:
            self.legal(target.f)
        elif c & 3 == 2:
            for got in target.xs:
                self.legal(got)
        else:
            for got in target.g or ():
                self.legal(got)

    @step(2)
    def call(self, a: int, b: int, c: int) -> None:
        value = self.value(b)
        got = testing.apply(Callback(None), value) if a & 1 else self.anchors[3](value)
        if got is not value and got != value:
            raise Broken(f"value: {got!r} came back instead of {value!r}")

    @step(1, "errors")
    def throw(self, a: int, b: int, c: int) -> None:
        error = LookupError(b)

        def fail() -> None:
            raise error  # noqa: F821  deleted below, so that nothing keeps it

        try:
            testing.apply(fail)
        except LookupError as caught:
            if caught is not error:
                raise Broken("value: another exception came back") from caught
        finally:
            error.__traceback__ = None
            del error, fail

    @step(2, "weakrefs")
    def weak(self, a: int, b: int, c: int) -> None:
        value = self.lists[a % 3]
        wr = weakref.ref(value)
        if wr() is not value:
            raise Broken("P4: a weak reference to a live object")
        node = PyNode(b, value)
        wr = weakref.ref(node, lambda _: None)
        self.dicts[a & 1]["weak"] = node
        del node
        got = wr()
        if got is not None:
            self.legal(got)
        self.dicts[a & 1].pop("weak", None)

    @step(0.3)
    def collect(self, a: int, b: int, c: int) -> None:
        gc.collect(a % 3)

    @step(4, "walks")
    def walk(self, a: int, b: int, c: int) -> None:
        # Mostly from outside: who walks the structure has not locked what is inside.
        inner = (self.lists[0], self.dicts[0], self.nodes[b % 3])
        target = inner[a & 3] if a % 8 < 3 else self.outer
        which = c % 10
        try:
            if which in (0, 6, 7):
                repr(target)
            elif which in (1, 8, 9):
                hash(target)
            elif which == 2:
                copy.deepcopy(target)
            elif which == 3:
                target == self.outer  # noqa: B015
            elif which == 4:
                pickle.dumps(target)
            else:
                serialization.to_json_graph_str(target)
        except TypeError:
            pass  # functions

    @step(1, "reinit")
    def init_again(self, a: int, b: int, c: int) -> None:
        if a & 1:
            self.lists[b % 3].__init__([b])
        else:
            self.dicts[b & 1].__init__({"a": b})

    @step(1, "moves")
    def move(self, a: int, b: int, c: int) -> None:
        i = a % 3
        moved = testing.echo(self.lists[i]._move())
        self.lists[i] = moved

    @step(1, "hooks")
    def hooked(self, a: int, b: int, c: int) -> None:
        target = self.dicts[a & 1]
        target[Key(b % 9)] = c
        self.legal(target.get(Key(c % 9)))
        target.pop(Key(b % 9), None)

    @step(1, "converters")
    def converted(self, a: int, b: int, c: int) -> None:
        self.lists[a % 3].append(Converted(b))

    @step(0.5, "rings")
    def ring(self, a: int, b: int, c: int) -> None:
        first = PyNode(a)
        second = PyNodeDict(b, first)
        first.f = second
        if c & 1:
            second.me = first

    @step(0.3, "native")
    def hold(self, a: int, b: int, c: int) -> None:
        self.client.hold(self.lists[a % 3], self.anchors[b & 3])
        if c & 1:
            self.client.release_all_in_thread()

    client: Any = None

    def main(self, steps: list[Any], barrier: threading.Barrier) -> None:
        try:
            barrier.wait()
            for name, a, b, c in steps:
                function = STEPS[name][0]
                went_on()
                for k in range(1 + c % 2**16 // BURST):
                    try:
                        function(self, a, b + k, c)
                    except ALLOWED:
                        pass
                if self.failures:
                    return
        except BaseException as error:
            self.failures.append(error)

    def empty(self) -> None:
        for container in (*self.lists, *self.dicts):
            try:
                container.clear()
            except ValueError:
                pass  # moved away
        for node in self.nodes:
            node.f = node.g = None


# Steps that get in each other's way.
THEMES = [
    ("walk", "append", "clear"),
    ("walk", "set_key", "del_key", "clear"),
    ("walk", "slices", "insert", "pop"),
    ("walk", "set_field", "append"),
    ("init_again", "append", "get_item", "walk"),
    ("init_again", "set_key", "get_key", "iterate_dict"),
    ("move", "append", "get_item", "iterate"),
    ("hooked", "set_key", "clear", "get_key"),
    ("anchor", "collect", "weak", "ring"),
    ("append", "pop", "iterate", "clear", "slices"),
    ("set_key", "get_key", "iterate_dict", "clear"),
    ("set_field", "get_field", "walk", "collect"),
    ("anchor", "hold", "call", "throw"),
    ("converted", "move", "init_again", "append"),
]


def generate(seed: int, groups: set[str], length: int) -> dict[str, Any]:
    """Make the program of a seed: two to four lists of steps."""
    rng = random.Random(seed)
    names = [name for name, (_, _, group) in STEPS.items() if group in groups]
    hot = rng.random() < 0.7
    if hot:  # few kinds of steps and one object of each kind, so that threads meet
        chosen = rng.choice(THEMES) if rng.random() < 0.7 else rng.sample(names, min(len(names), 5))
        names = [name for name in chosen if name in names] or names
    weights = [STEPS[name][1] for name in names]
    threads = 2 + rng.randrange(3)
    steps: list[Any] = []
    for thread in range(threads):
        chosen = rng.choices(names, weights, k=length)
        numbers = memoryview(rng.randbytes(6 * length)).cast("H").tolist()
        columns = numbers[::3], numbers[1::3], numbers[2::3]
        steps += zip([thread] * length, chosen, *columns, strict=True)
    return {"kind": "threads", "seed": seed, "threads": threads, "hot": hot, "steps": steps}


def run(program: dict[str, Any], groups: set[str], client: Any = None) -> int:
    """Run a program; returns the number of steps, raises Broken."""
    gc.collect()
    before = tying.stats()
    Hook.run = nothing
    shared = Shared(groups, program["hot"])
    shared.client = client
    count = program["threads"]
    barrier = threading.Barrier(count)
    threads = [
        threading.Thread(
            target=shared.main,
            args=([s[1:] for s in program["steps"] if s[0] == i], barrier),
            daemon=True,
        )
        for i in range(count)
    ]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    if shared.failures:
        error = shared.failures[0]
        if isinstance(error, Broken):
            raise error
        raise Broken(f"unexpected {type(error).__name__}: {error}") from error
    if client is not None:
        client.release_all()
    for i in range(4):
        shared.anchor(i, 0, 0)
    watchers = shared.watchers
    shared.empty()
    del shared, threads
    for _ in range(3):
        gc.collect()
    if any(wr() is not None for wr in watchers):
        raise Broken("P5: objects alive at the end")
    compare_stats(before, tying.stats())
    return sum(1 + s[4] % 2**16 // BURST for s in program["steps"])
