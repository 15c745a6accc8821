# SPDX-License-Identifier: Apache-2.0
"""P4: a weak reference follows the object, not the wrapper."""

from __future__ import annotations

import gc
import weakref

import pytest
import tvm_ffi
from support import (
    WAYS,
    NativeClient,
    Payload,
    Stateful,
    collect,
    make_edges,
    make_holder,
    run_threads,
    use_count,
    wait_until,
    watch_death,
)
from tvm_ffi import testing, tying


@pytest.mark.parametrize("way", WAYS)
def test_p4_alive_exactly_as_long_as_the_object(way: str) -> None:
    keep, _ = WAYS[way]
    fired: list[object] = []
    obj = testing.TestObjectBase(9)
    holder = keep(obj)
    watcher = weakref.ref(obj, fired.append)
    del obj
    collect()
    assert watcher() is not None
    assert fired == []
    del holder
    collect()
    assert watcher() is None
    assert fired == [watcher]


def test_p4_death_is_immediate_without_the_collector(no_gc: None) -> None:
    fired: list[object] = []
    holder = make_holder(testing.TestObjectBase())
    watcher = weakref.ref(holder.value, fired.append)
    assert fired == []
    del holder
    assert fired == [watcher]


def test_p4_the_object_dies_when_its_only_wrapper_is_dropped(no_gc: None) -> None:
    fired: list[object] = []
    obj = testing.TestObjectBase()
    watcher = weakref.ref(obj, fired.append)
    del obj
    assert watcher() is None
    assert len(fired) == 1


def test_p4_a_wrapper_reached_through_a_weak_reference_works() -> None:
    holder = make_holder(testing.TestObjectBase(5, 2.5, "text"))
    watcher = weakref.ref(holder.value)
    collect()
    promoted = watcher()
    assert tying.state(promoted) == "dormant"
    assert (promoted.v_i64, promoted.v_f64, promoted.v_str) == (5, 2.5, "text")
    assert tying.state(promoted) == "active"
    assert promoted is holder.value


def test_p4_first_use_pins_the_object() -> None:
    holder = make_holder(testing.TestObjectBase(5))
    watcher = weakref.ref(holder.value)
    promoted = watcher()
    assert promoted.v_i64 == 5
    del holder
    collect()
    assert promoted.v_i64 == 5
    assert use_count(promoted) == 1
    del promoted
    assert watcher() is None


def test_p4_reference_error_when_the_object_died_before_first_use() -> None:
    holder = make_holder(testing.TestObjectBase(5))
    promoted = weakref.ref(holder.value)()
    assert tying.state(promoted) == "dormant"
    del holder
    collect()
    with pytest.raises(ReferenceError, match="TestObjectBase"):
        _ = promoted.v_i64
    assert tying.state(promoted) == "gone"


@pytest.mark.parametrize(
    "use",
    [
        lambda o: o.v_i64,
        lambda o: o.add_i64(1),
        testing.echo,
        lambda o: tvm_ffi.Array([o]),
        lambda o: tvm_ffi.Dict({"a": o}),
        make_holder,
        testing.object_use_count,
        lambda o: setattr(o, "v_i64", 3),
        lambda o: testing.apply(lambda x: x, o),
        lambda o: testing.echo(o._move()),
    ],
    ids="field method argument array dict constructor count set callback move".split(),
)
def test_p4_every_use_of_a_dead_object_is_a_reference_error(use: object) -> None:
    holder = make_holder(testing.TestObjectBase(5))
    promoted = weakref.ref(holder.value)()
    del holder
    collect()
    with pytest.raises(ReferenceError, match="TestObjectBase"):
        use(promoted)


def test_p4_a_dead_wrapper_can_be_printed_compared_hashed_and_dropped() -> None:
    holder = make_holder(testing.TestObjectBase(5))
    promoted = weakref.ref(holder.value)()
    del holder
    collect()
    assert isinstance(repr(promoted), str)
    assert promoted == promoted
    assert isinstance(hash(promoted), int)
    watcher = weakref.ref(promoted)
    del promoted
    assert watcher() is None


def test_p4_callback_sees_a_dead_reference_and_may_use_the_ffi() -> None:
    seen: list[object] = []

    def callback(reference: weakref.ref) -> None:
        seen.append(reference())
        seen.append(testing.echo(tvm_ffi.Array([1]))[0])

    holder = make_holder(testing.TestObjectBase())
    watcher = weakref.ref(holder.value, callback)
    del holder
    collect()
    assert seen == [None, 1]
    assert watcher() is None


def test_p4_callback_of_a_reference_to_state_fires_with_the_object() -> None:
    obj = Stateful()
    obj.payload = Payload()
    deaths = watch_death(obj.payload)
    holder = make_holder(obj)
    del obj
    collect()
    assert deaths == []
    del holder
    collect()
    assert deaths == [True]


def test_p4_finalize_runs_once_when_the_object_dies() -> None:
    holder = make_holder(testing.TestObjectBase())
    deaths = watch_death(holder.value)
    for _ in range(5):
        assert holder.value.v_i64 == 10
        gc.collect()
    assert deaths == []
    del holder
    collect()
    assert deaths == [True]


def test_p4_every_kind_of_wrapper_can_be_referenced_weakly() -> None:
    for obj in (
        testing.TestIntPair(1, 2),
        tvm_ffi.Array([]),
        tvm_ffi.List([]),
        tvm_ffi.Map({}),
        tvm_ffi.Dict({}),
        tvm_ffi.convert(lambda: 1),
        testing.make_unregistered_object(),
        tvm_ffi.core.Error("ValueError", "", ""),
    ):
        assert weakref.ref(obj)() is obj


def test_p4_a_slot_for_weak_references_may_still_be_asked_for() -> None:
    class WithSlot(testing.TestObjectBase):
        __slots__ = ("__weakref__", "note")

    obj = WithSlot()
    obj.note = 1
    assert weakref.ref(obj)() is obj


def test_p4_a_proxy_follows_the_object() -> None:
    holder = make_holder(testing.TestObjectBase(4))
    proxy = weakref.proxy(holder.value)
    collect()
    assert proxy.v_i64 == 4
    del holder
    collect()
    with pytest.raises(ReferenceError):
        _ = proxy.v_i64


def test_p4_weak_value_dictionary_keeps_what_lives_in_c() -> None:
    box = tvm_ffi.Array([testing.TestIntPair(i, i) for i in range(5)])
    cache = weakref.WeakValueDictionary(dict(enumerate(box)))
    collect()
    assert sorted(cache) == [0, 1, 2, 3, 4]
    assert all(cache[i] is box[i] for i in range(5))
    del box
    collect()
    assert len(cache) == 0


def test_p4_the_referent_moves_between_holders() -> None:
    watched = testing.TestIntPair(1, 2)
    watcher = weakref.ref(watched)
    first = tvm_ffi.List([watched])
    second = tvm_ffi.List()
    del watched
    second.append(first.pop())
    collect()
    assert watcher() is second[0]
    second.clear()
    collect()
    assert watcher() is None


def test_p4_held_by_c_alone(client: NativeClient) -> None:
    fired: list[object] = []
    obj = testing.TestIntPair(1, 2)
    watcher = weakref.ref(obj, fired.append)
    client.hold(obj)
    del obj
    collect()
    assert watcher() is not None
    assert watcher().a == 1
    assert fired == []
    assert client.release_all() == 1
    assert wait_until(lambda: bool(fired))
    assert watcher() is None


def test_p4_cpp_weak_references_do_not_keep_the_python_one_alive(client: NativeClient) -> None:
    page = client.page_new(tvm_ffi.Array([1]))
    watcher = weakref.ref(page)
    box = tvm_ffi.Array([page])
    del page
    collect()
    assert watcher() is box[0]
    del box
    collect()
    assert watcher() is None


def test_p4_dying_together_with_what_it_refers_to() -> None:
    inner = testing.TestObjectBase()
    middle = make_edges(inner)
    outer = make_edges(middle)
    watchers = [weakref.ref(obj) for obj in (inner, middle, outer)]
    del inner, middle
    collect()
    assert all(watcher() is not None for watcher in watchers)
    del outer
    collect()
    assert all(watcher() is None for watcher in watchers)


def test_p4_what_dies_in_a_call_that_releases_the_gil_is_dead_after_it() -> None:
    """Also in a thread that CPython tells of no pending calls."""
    clear = tvm_ffi.get_global_func("ffi.ListClear")
    assert not clear.release_gil
    clear.release_gil = True
    dead: list[object] = []
    called: list[object] = []

    def work(_: int) -> None:
        for _ in range(20):
            held = tvm_ffi.List([tvm_ffi.List([1]), Payload()])
            watchers = [weakref.ref(value, called.append) for value in held]
            clear(held)
            dead.extend(watcher() for watcher in watchers)

    try:
        run_threads(1, work)
        work(0)
    finally:
        clear.release_gil = False
    assert dead == [None] * 80 and len(called) == 80
