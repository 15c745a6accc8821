# SPDX-License-Identifier: Apache-2.0
"""Random sequences of create, fetch, store, drop, move, weakref and collect against a small model.

The model knows, for every C++ object, where it is stored and which wrapper stands for it; for every
wrapper, what state it carries and which Python names hold it. After every step each weak reference
must answer exactly if the model says its wrapper lives, and every fetch must give the very wrapper
the model names.
"""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

pytest.importorskip("hypothesis", reason="hypothesis is not installed")

import tvm_ffi
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from support import SCALE, Slotted, Stateful, make_edges, use_count
from tvm_ffi import testing, tying

CLASSES = {"plain": testing.TestObjectBase, "dict": Stateful, "slots": Slotted}
NUM_PLACES = 6


class ObjectModel:
    """A C++ object: how many places hold it, and the wrapper that stands for it."""

    def __init__(self, tag: int) -> None:
        self.tag = tag
        self.stored = 0
        self.wrapper: WrapperModel | None = None


class WrapperModel:
    """A wrapper: its object (None once moved from), class, state, and how many names hold it."""

    def __init__(self, obj: ObjectModel, cls: type) -> None:
        self.obj: ObjectModel | None = obj
        self.cls = cls
        self.note: Any = None
        self.names = 0
        self.knotted = False

    def alive(self) -> bool:
        return self.names > 0 or (self.obj is not None and self.obj.stored > 0)


class Place:
    """Somewhere in C++ that holds one object; each kind stores in another way."""

    def __init__(self, kind: int) -> None:
        self.kind = kind % 4
        self.content: ObjectModel | None = None
        self.holder: Any = [tvm_ffi.List, tvm_ffi.Dict, make_edges, make_edges][self.kind]()

    def put(self, value: Any) -> None:
        if self.kind == 0:
            self.holder[:] = [value]
        elif self.kind == 1:
            self.holder["k"] = value
        elif self.kind == 2:
            self.holder.v_any = value
        else:
            self.holder.v_any = [{"k": value}]

    def get(self) -> Any:
        if self.kind == 0:
            return self.holder[0]
        if self.kind == 1:
            return self.holder["k"]
        return self.holder.v_any if self.kind == 2 else self.holder.v_any[0]["k"]

    def empty(self) -> None:
        if self.kind == 0:
            self.holder.clear()
        elif self.kind == 1:
            del self.holder["k"]
        else:
            self.holder.v_any = None


index = st.integers(0, 1000)


class TyingMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.places = [Place(kind) for kind in range(NUM_PLACES)]
        self.names: list[tuple[Any, WrapperModel]] = []
        self.watchers: list[tuple[weakref.ref, WrapperModel]] = []
        self.counter = 0

    # ---- helpers

    def pick(self, i: int) -> tuple[Any, WrapperModel]:
        return self.names[i % len(self.names)]

    def filled(self) -> list[Place]:
        return [place for place in self.places if place.content is not None]

    def bind(self, value: Any, wrapper: WrapperModel) -> None:
        wrapper.names += 1
        self.names.append((value, wrapper))

    def fetched(self, value: Any, obj: ObjectModel) -> WrapperModel:
        """Check what came back for `obj`, and give it a model if it is new."""
        wrapper = obj.wrapper
        if wrapper is None:
            wrapper = obj.wrapper = WrapperModel(obj, testing.TestObjectBase)
        held = [other for other, model in self.names if model is wrapper]
        assert all(other is value for other in held)
        assert type(value) is wrapper.cls
        assert value.v_i64 == obj.tag
        if wrapper.cls is Stateful:
            assert value.__dict__.get("note") == wrapper.note
        if wrapper.cls is Slotted:
            assert getattr(value, "label", None) == wrapper.note
        for watcher, model in self.watchers:
            assert (watcher() is value) == (model is wrapper) or not model.alive()
        return wrapper

    # ---- steps

    @rule(kind=st.sampled_from(sorted(CLASSES)))
    def create(self, kind: str) -> None:
        self.counter += 1
        obj = ObjectModel(self.counter)
        obj.wrapper = WrapperModel(obj, CLASSES[kind])
        self.bind(CLASSES[kind](self.counter), obj.wrapper)

    @precondition(lambda self: self.names)
    @rule(i=index, where=index)
    def store(self, i: int, where: int) -> None:
        value, wrapper = self.pick(i)
        place = self.places[where % NUM_PLACES]
        if wrapper.obj is None:
            with pytest.raises(ValueError, match="moved from"):
                place.put(value)
            return
        place.put(value)
        if place.content is not None:
            place.content.stored -= 1
        place.content = wrapper.obj
        wrapper.obj.stored += 1

    @precondition(lambda self: self.filled())
    @rule(where=index)
    def remove(self, where: int) -> None:
        place = self.filled()[where % len(self.filled())]
        place.empty()
        place.content.stored -= 1
        place.content = None

    @precondition(lambda self: self.filled())
    @rule(where=index, keep=st.booleans())
    def fetch(self, where: int, keep: bool) -> None:
        place = self.filled()[where % len(self.filled())]
        value = place.get()
        wrapper = self.fetched(value, place.content)
        if keep:
            self.bind(value, wrapper)

    @precondition(lambda self: self.names)
    @rule(i=index)
    def pass_through_a_callback(self, i: int) -> None:
        value, wrapper = self.pick(i)
        if wrapper.obj is not None:
            assert testing.apply(lambda arg: arg, value) is value

    @precondition(lambda self: self.names)
    @rule(i=index)
    def drop(self, i: int) -> None:
        _, wrapper = self.names.pop(i % len(self.names))
        wrapper.names -= 1

    @precondition(lambda self: self.names)
    @rule(i=index)
    def watch(self, i: int) -> None:
        value, wrapper = self.pick(i)
        self.watchers.append((weakref.ref(value), wrapper))

    @precondition(lambda self: self.watchers)
    @rule(i=index, keep=st.booleans())
    def use_through_a_watcher(self, i: int, keep: bool) -> None:
        watcher, wrapper = self.watchers[i % len(self.watchers)]
        value = watcher()
        if value is None:
            assert not wrapper.alive()
            return
        if wrapper.obj is not None and wrapper.alive():
            assert value.v_i64 == wrapper.obj.tag
            assert self.fetched(value, wrapper.obj) is wrapper
            if keep:
                self.bind(value, wrapper)

    @precondition(lambda self: self.names)
    @rule(i=index, note=st.integers(0, 99))
    def write_state(self, i: int, note: int) -> None:
        value, wrapper = self.pick(i)
        if wrapper.cls is Stateful:
            value.note = note
        elif wrapper.cls is Slotted:
            value.label = note
        else:
            return
        wrapper.note = note

    @precondition(lambda self: self.names)
    @rule(i=index)
    def tie_a_knot(self, i: int) -> None:
        value, wrapper = self.pick(i)
        if wrapper.cls is Stateful:
            value.me = value
            wrapper.knotted = True

    @precondition(lambda self: self.names)
    @rule(i=index)
    def move(self, i: int) -> None:
        value, wrapper = self.pick(i)
        if wrapper.obj is None:
            with pytest.raises(ValueError, match="moved from"):
                testing.echo(value._move())
            return
        obj = wrapper.obj
        moved = testing.echo(value._move())
        assert moved is not value
        assert tying.state(value) == "empty"
        # The old wrapper is an ordinary Python object from here on.
        wrapper.obj, obj.wrapper = None, None
        self.bind(moved, self.fetched(moved, obj))

    @precondition(lambda self: self.names)
    @rule(i=index)
    def take_the_handle(self, i: int) -> None:
        value, wrapper = self.pick(i)
        if wrapper.obj is None:
            return
        obj = wrapper.obj
        taker = Stateful.__new__(Stateful)
        taker.__move_handle_from__(value)
        assert tying.state(value) == "empty"
        wrapper.obj = None
        obj.wrapper = WrapperModel(obj, Stateful)
        self.bind(taker, self.fetched(taker, obj) and obj.wrapper)

    @rule(generation=st.integers(0, 2))
    def collect(self, generation: int) -> None:
        gc.collect(generation)

    # ---- what must always hold

    @invariant()
    def watchers_answer_as_the_model_says(self) -> None:
        if any(wrapper.knotted and not wrapper.alive() for _, wrapper in self.watchers):
            gc.collect()
        for watcher, wrapper in self.watchers:
            assert (watcher() is not None) == wrapper.alive()

    @invariant()
    def names_of_one_object_are_one_wrapper(self) -> None:
        first: dict[int, Any] = {}
        for value, wrapper in self.names:
            assert first.setdefault(id(wrapper), value) is value
            assert tying.state(value) == ("empty" if wrapper.obj is None else "active")

    @invariant()
    def counts_are_exact(self) -> None:
        for value, wrapper in self.names:
            if wrapper.obj is not None:
                assert use_count(value) == 1 + wrapper.obj.stored

    def teardown(self) -> None:
        watchers = [watcher for watcher, _ in self.watchers]
        self.names.clear()
        self.places.clear()
        gc.collect()
        assert [watcher() for watcher in watchers] == [None] * len(watchers)


TestTying = TyingMachine.TestCase
TestTying.settings = settings(
    max_examples=max(10, int(100 * SCALE)),
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
