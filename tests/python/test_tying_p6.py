# SPDX-License-Identifier: Apache-2.0
"""P6: cycles through C++ are collected, and nothing that C++ still uses is.

A cycle: a Python object, an FFI object it alone owns, a Python callback or value inside that
object, and from there the same Python object again.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable

import pytest
import tvm_ffi
from support import (
    RULE_B,
    NativeClient,
    Payload,
    Slotted,
    Stateful,
    collect,
    make_edges,
    make_holder,
    scaled,
    watch_death,
)
from tvm_ffi import testing, tying


def through_callback(owner: object) -> object:
    return tvm_ffi.convert(lambda: owner)


class Bound:
    """Has a method that keeps `owner` alive; free-threaded 3.13 never frees a local class."""

    def __init__(self, owner: object) -> None:
        self.owner = owner

    def method(self) -> object:
        return self.owner


def through_bound_method(owner: object) -> object:
    return tvm_ffi.convert(Bound(owner).method)


def through_nested_callback(owner: object) -> object:
    inner = tvm_ffi.convert(lambda: owner)
    return tvm_ffi.convert(lambda: inner)


def through(held: object) -> object:
    return tvm_ffi.convert(lambda: held)


def through_generator(owner: object) -> object:
    suspended = (pair for pair in tvm_ffi.Dict({1: owner, 2: owner}).items())
    next(suspended)
    return through(suspended)


def through_map_and_its_iterator(owner: object) -> object:
    both = tvm_ffi.Map({1: owner})
    return through((both, iter(both.values())))


CYCLES: dict[str, Callable[[object], object]] = {
    "callback": through_callback,
    "bound method": through_bound_method,
    "nested callback": through_nested_callback,
    "array": lambda owner: tvm_ffi.Array([owner]),
    "list": lambda owner: tvm_ffi.List([owner]),
    "map value": lambda owner: tvm_ffi.Map({"k": owner}),
    "dict value": lambda owner: tvm_ffi.Dict({"k": owner}),
    "dict key": lambda owner: tvm_ffi.Dict({owner: 1}),
    "nested containers": lambda owner: tvm_ffi.convert([{"k": [[owner]]}]),
    "callback in a container": lambda owner: tvm_ffi.List([lambda: owner]),
    "reflected field": make_edges,
    "reflected object field": lambda owner: make_edges(1, tvm_ffi.Array([owner])),
    "field of a field": lambda owner: make_edges(make_edges(owner)),
    "container in a field": lambda owner: testing.TestObjectDerived({}, [owner]),
    "opaque object": lambda owner: tvm_ffi.convert(owner),
    "iterator of a list": lambda owner: through(iter(tvm_ffi.List([owner]))),
    "iterator of a map": lambda owner: through(iter(tvm_ffi.Map({owner: 1}))),
    "iterator of a dict": lambda owner: through(iter(tvm_ffi.Dict({1: owner}).values())),
    "generator over a dict": through_generator,
}
if not RULE_B:  # which does not look into an object with two owners
    CYCLES["iterator and its map"] = through_map_and_its_iterator


@pytest.mark.parametrize("cycle", CYCLES)
def test_p6_a_cycle_from_a_plain_object(cycle: str) -> None:
    owner = Payload()
    owner.link = CYCLES[cycle](owner)
    watcher = weakref.ref(owner)
    del owner
    assert watcher() is not None
    collect()
    assert watcher() is None


@pytest.mark.parametrize("cycle", CYCLES)
@pytest.mark.parametrize("make", [Stateful, Slotted])
def test_p6_a_cycle_from_a_wrapper_with_state(cycle: str, make: type) -> None:
    if cycle == "opaque object":
        return  # a wrapper is no opaque object: it is passed as itself
    owner = make()
    owner.link = CYCLES[cycle](Payload(owner))
    watcher = weakref.ref(owner)
    del owner
    collect()
    assert watcher() is None


@pytest.mark.parametrize("cycle", CYCLES)
def test_p6_the_cycle_lives_while_somebody_holds_it(cycle: str) -> None:
    owner = Payload()
    owner.link = CYCLES[cycle](owner)
    watcher = weakref.ref(owner)
    link = owner.link
    del owner
    collect()
    assert watcher() is not None
    assert watcher().link is link
    del link
    collect()
    assert watcher() is None


@pytest.mark.parametrize("cycle", CYCLES)
def test_p6_the_cycle_lives_while_c_holds_it(cycle: str, client: NativeClient) -> None:
    owner = Payload()
    owner.link = CYCLES[cycle](owner)
    watcher = weakref.ref(owner)
    client.hold(owner.link)
    del owner
    collect()
    assert watcher() is not None
    assert client.release_all() == 1
    collect()
    assert watcher() is None


def test_p6_a_sleeping_wrapper_with_state_closes_the_cycle() -> None:
    inner = Stateful()
    outer = make_holder(inner)
    inner.back = outer
    watchers = weakref.ref(inner), weakref.ref(outer)
    del inner, outer
    assert watchers[1]() is not None
    collect()
    assert [watcher() for watcher in watchers] == [None, None]


def test_p6_a_sleeping_wrapper_deep_inside_closes_the_cycle() -> None:
    inner = Stateful()
    outer = tvm_ffi.convert([{"k": [make_holder(inner)]}])
    inner.back = outer
    watcher = weakref.ref(inner)
    del inner, outer
    collect()
    assert watcher() is None


def test_p6_two_sleeping_wrappers_refer_to_each_others_owner() -> None:
    first, second = Stateful(), Stateful()
    left, right = tvm_ffi.Array([first]), tvm_ffi.Array([second])
    first.other, second.other = right, left
    watchers = [weakref.ref(obj) for obj in (first, second, left, right)]
    del first, second, left, right
    collect()
    assert [watcher() for watcher in watchers] == [None] * 4


def test_p6_a_callback_that_owns_its_own_function() -> None:
    class Recursive:
        def __call__(self) -> None:
            self.function()

    recursive = Recursive()
    recursive.function = tvm_ffi.convert(recursive)
    watcher = weakref.ref(recursive)
    del recursive
    collect()
    assert watcher() is None


def test_p6_a_dict_that_holds_a_callback_that_holds_the_dict() -> None:
    table = tvm_ffi.Dict()
    table["callback"] = lambda: table  # noqa: F821
    watcher = weakref.ref(table)
    del table
    collect()
    assert watcher() is None


def test_p6_a_function_attribute_that_refers_to_the_function() -> None:
    function = tvm_ffi.convert(lambda: 1)
    function.me = function
    watcher = weakref.ref(function)
    del function
    collect()
    assert watcher() is None


def test_p6_the_native_half_dies_too() -> None:
    payload = Payload()
    deaths = watch_death(payload)
    owner = Payload()
    owner.link = make_edges([payload], tvm_ffi.Array([owner]))
    del owner, payload
    collect()
    assert deaths == [True]


def test_p6_finalizers_in_a_cycle_run_once() -> None:
    finalized: list[str] = []

    class Noisy:
        def __del__(self) -> None:
            finalized.append("done")

    noisy = Noisy()
    noisy.link = tvm_ffi.Array([noisy])
    del noisy
    collect()
    assert finalized == ["done"]


def test_p6_a_finalizer_may_resurrect_its_cycle() -> None:
    saved: list[object] = []

    class Lazarus:
        def __del__(self) -> None:
            saved.append(self)

    lazarus = Lazarus()
    lazarus.link = tvm_ffi.Array([lazarus])
    del lazarus
    collect()
    assert len(saved) == 1
    assert saved[0].link[0] is saved[0]
    saved[0].link = None


def test_p6_weakref_callbacks_of_a_cycle_fire() -> None:
    fired: list[object] = []
    owner = Payload()
    owner.link = tvm_ffi.Array([owner])
    watcher = weakref.ref(owner.link, fired.append)
    del owner
    collect()
    assert watcher() is None
    assert len(fired) == 1


# ---- the collector's matrix: in a cycle, owned by a cycle, state across a collection ----


@pytest.mark.parametrize("collections", [1, 2, 5])
@pytest.mark.parametrize("make", [testing.TestObjectBase, Stateful, Slotted])
def test_p6_a_wrapper_in_a_garbage_cycle_whose_object_c_holds(make: type, collections: int) -> None:
    """The cycle is garbage, the object is not: wrapper, state and weak references stay."""
    fired: list[object] = []
    obj = make(3)
    holder = make_holder(obj)
    watcher = weakref.ref(obj, fired.append)
    if make is not testing.TestObjectBase:
        (obj.__dict__.__setitem__ if make is Stateful else obj.__setattr__)("link", Payload(obj))
    ring = Payload(obj)
    ring.ring = ring
    identity = id(obj)
    del obj, ring
    for _ in range(collections):
        gc.collect()
    assert fired == ([watcher] if RULE_B else [])
    assert watcher() is (None if RULE_B else holder.value)
    assert id(holder.value) == identity
    assert holder.value.v_i64 == 3
    if make is not testing.TestObjectBase:
        assert holder.value.link.tag is holder.value
    del holder
    collect()
    assert watcher() is None
    assert fired == [watcher]


def test_p6_a_wrapper_owned_by_a_garbage_cycle_dies_with_it() -> None:
    obj = testing.TestObjectBase()
    watcher = weakref.ref(obj)
    ring = Payload(obj)
    ring.ring = ring
    del obj, ring
    assert watcher() is not None
    collect()
    assert watcher() is None


def test_p6_a_wrapper_owned_by_a_garbage_cycle_and_shared_survives() -> None:
    obj = Stateful()
    obj.note = "kept"
    watcher = weakref.ref(obj)
    holder = make_holder(obj)
    ring = Payload(obj)
    ring.ring = ring
    del obj, ring
    collect()
    assert watcher() is (None if RULE_B else holder.value)
    assert holder.value.note == "kept"
    assert tying.state(holder.value) == "active"


def test_p6_state_across_many_collections() -> None:
    obj = Stateful()
    obj.me, obj.note = obj, ["kept"]
    holder = make_holder(obj)
    del obj
    for i in range(20):
        gc.collect(i % 3)
        assert holder.value.note == ["kept"]
        assert holder.value.me is holder.value


def test_p6_collection_during_a_callback_leaves_the_arguments_alone() -> None:
    pair = testing.TestIntPair(4, 5)

    def callback(arg: object) -> int:
        gc.collect()
        return arg.a

    assert testing.apply(tvm_ffi.convert(callback), pair) == 4
    assert testing.apply(tvm_ffi.convert(callback), testing.TestIntPair(6, 7)) == 6


def test_p6_collection_during_a_call_does_not_take_what_the_call_uses() -> None:
    def callback(items: object) -> int:
        del items
        gc.collect()
        return 1

    for _ in range(scaled(50)):
        owner = Payload()
        owner.link = tvm_ffi.Array([owner, 1])
        function = tvm_ffi.convert(callback)
        link = owner.link
        del owner
        assert function(link) == 1
        assert link[1] == 1


def test_p6_thousands_of_cycles_are_collected() -> None:
    watchers = []
    for _ in range(scaled(2000)):
        owner = Stateful()
        owner.link = tvm_ffi.Dict({"callback": lambda owner=owner: owner})
        watchers.append(weakref.ref(owner))
        del owner
    collect()
    assert sum(watcher() is not None for watcher in watchers) == 0


def test_p6_the_collector_reports_no_uncollectable_garbage() -> None:
    before = len(gc.garbage)
    owner = Payload()
    owner.link = tvm_ffi.Array([lambda: owner])  # noqa: F821
    del owner
    collect()
    assert len(gc.garbage) == before


def test_p6_an_exception_does_not_keep_its_arguments(no_gc: None) -> None:
    payload = Payload()
    deaths = watch_death(payload)

    def call(value: object) -> None:
        with pytest.raises(TypeError):
            testing.add_one(value)

    call(payload)
    del payload
    assert deaths == [True]
