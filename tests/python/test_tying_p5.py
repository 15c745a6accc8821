# SPDX-License-Identifier: Apache-2.0
"""P5: nothing is lost, nothing is kept.

Constructor and destructor tallies stand beside weak references, so a failure says which half died:
a Python payload held by a C++ field dies with the C++ object, a weak reference with the wrapper.
TETHER_TEST_SCALE scales the repetitions.
"""

from __future__ import annotations

import gc
import sys
import weakref

import pytest
import tvm_ffi
from support import (
    CLASSES_DIE,
    NativeClient,
    Payload,
    Slotted,
    Stateful,
    collect,
    grows_every_time,
    make_edges,
    make_holder,
    scaled,
    use_count,
    wait_until,
    watch_death,
)
from tvm_ffi import core, testing, tying

MILLION = scaled(1_000_000)
ROUNDS = 6
SLACK = 64 * 1024  # a leak of one byte per object shows as more than this per round


def churn_fields(n: int) -> None:
    holder = make_holder(testing.TestObjectBase())
    for _ in range(n):
        _ = holder.value


def churn_construct(n: int) -> None:
    for i in range(n):
        testing.TestIntPair(i, i)


def churn_construct_and_hand_over(n: int) -> None:
    holder = make_holder(testing.TestObjectBase())
    for i in range(n):
        holder.value = testing.TestObjectBase(i)


def churn_sleeping(n: int) -> None:
    for i in range(n // 10):
        box = tvm_ffi.Array([testing.TestIntPair(i, i)])
        for _ in range(8):
            _ = box[0]


def churn_state(n: int) -> None:
    for i in range(n // 4):
        obj = Stateful()
        obj.note = i
        holder = make_holder(obj)
        del obj
        assert holder.value.note == i


def churn_slots(n: int) -> None:
    for i in range(n // 4):
        obj = Slotted()
        obj.label = i
        holder = make_holder(obj)
        del obj
        assert holder.value.label == i


def churn_weak(n: int) -> None:
    for _ in range(n // 4):
        holder = make_holder(testing.TestObjectBase())
        watcher = weakref.ref(holder.value)
        assert watcher() is holder.value


def churn_containers(n: int) -> None:
    for i in range(n // 10):
        outer = tvm_ffi.convert([{"k": [i, str(i), None]}])
        assert outer[0]["k"][0] == i


def churn_list(n: int) -> None:
    items = tvm_ffi.List()
    for i in range(n // 4):
        items.append(testing.TestIntPair(i, i))
        if len(items) > 10:
            items.pop(0)


def churn_dict(n: int) -> None:
    items = tvm_ffi.Dict()
    for i in range(n // 4):
        items[i % 17] = testing.TestIntPair(i, i)
        if i % 5 == 0:
            del items[i % 17]


def churn_callbacks(n: int) -> None:
    for i in range(n // 4):
        assert tvm_ffi.convert(lambda x: x)(i) == i


def churn_callback_objects(n: int) -> None:
    callback = tvm_ffi.convert(lambda x: x)
    for i in range(n // 4):
        assert testing.apply(callback, testing.TestIntPair(i, i)).a == i


def churn_opaque(n: int) -> None:
    for _ in range(n // 4):
        payload = Payload()
        assert testing.echo(payload) is payload


def churn_strings(n: int) -> None:
    for i in range(n // 4):
        text = f"a string that is not short {i}"
        assert testing.echo(text) == text
        assert testing.echo(b"bytes that are not short") == b"bytes that are not short"


def churn_errors(n: int) -> None:
    for _ in range(n // 100):
        with pytest.raises(ValueError, match="boom"):
            testing.test_raise_error("ValueError", "boom")


def churn_bad_arguments(n: int) -> None:
    for _ in range(n // 100):
        with pytest.raises(TypeError):
            testing.add_one("text that is not a number")


def churn_moves(n: int) -> None:
    for i in range(n // 10):
        pair = testing.TestIntPair(i, i)
        moved = testing.echo(pair._move())
        assert moved.a == i


def churn_global_functions(n: int) -> None:
    for _ in range(n // 10):
        assert tvm_ffi.get_global_func("testing.add_one")(1) == 2


def churn_cycles(n: int) -> None:
    for _ in range(n // 100):
        obj = Stateful()
        obj.callback = tvm_ffi.convert(lambda obj=obj: obj)
        del obj
    gc.collect()


def churn_iteration(n: int) -> None:
    items = tvm_ffi.Array([testing.TestIntPair(i, i) for i in range(100)])
    for _ in range(n // 1000):
        assert sum(pair.a for pair in items) == 4950


def churn_map_iteration(n: int) -> None:
    items = tvm_ffi.Dict({i: testing.TestIntPair(i, i) for i in range(100)})
    for _ in range(n // 1000):
        assert sum(pair.a for _, pair in items.items()) == 4950


CHURNS = [value for name, value in list(globals().items()) if name.startswith("churn_")]


@pytest.mark.parametrize("churn", CHURNS, ids=lambda f: f.__name__.removeprefix("churn_"))
def test_p5_memory_stays_flat(churn: object) -> None:
    per_round = MILLION // ROUNDS
    before = tying.stats()
    growth = grows_every_time(lambda: churn(per_round), SLACK, ROUNDS)
    assert growth == [], f"resident memory grew in every round: {growth}"
    collect()
    after = tying.stats()
    for key in ("live", "dormant", "adopted"):
        assert abs(after[key] - before[key]) <= 2, (key, before, after)


def test_p5_memory_stays_flat_is_a_measure_that_sees_a_leak() -> None:
    kept: list[object] = []

    # More than earlier tests can have left for reuse.
    def leak() -> None:
        kept.extend(testing.TestIntPair(i, i) for i in range(200_000))

    assert grows_every_time(leak, SLACK, 3) != []


def test_p5_dropping_a_wrapper_gives_back_its_reference() -> None:
    inner = testing.TestObjectBase()
    holder = make_holder(inner)
    other = tvm_ffi.Array([holder])
    assert use_count(inner) == 2
    assert use_count(holder) == 2
    del inner
    assert use_count(holder.value) == 2  # the field and the argument's wrapper
    del holder
    assert use_count(other[0]) == 2


def test_p5_reading_a_field_never_changes_a_count() -> None:
    inner = testing.TestObjectBase()
    holder = make_holder(inner)
    for _ in range(100):
        _ = holder.value
        assert use_count(inner) == 2
    read = [holder.value for _ in range(100)]
    assert use_count(inner) == 2
    del read
    assert use_count(inner) == 2


def test_p5_both_halves_die_when_the_last_wrapper_goes(no_gc: None) -> None:
    payload = Payload()
    obj = make_edges(payload)
    native, wrapper = watch_death(payload), watch_death(obj)
    del payload
    assert (native, wrapper) == ([], [])
    del obj
    assert (native, wrapper) == ([True], [True])


def test_p5_both_halves_die_when_the_last_holder_goes(no_gc: None) -> None:
    payload = Payload()
    obj = make_edges(payload)
    native, wrapper = watch_death(payload), watch_death(obj)
    box = tvm_ffi.Array([obj])
    del payload, obj
    assert (native, wrapper) == ([], [])
    del box
    assert (native, wrapper) == ([True], [True])


def test_p5_both_halves_die_when_c_gives_back_the_last_reference(client: NativeClient) -> None:
    payload = Payload()
    obj = make_edges(payload)
    native, wrapper = watch_death(payload), watch_death(obj)
    client.hold(obj)
    del payload, obj
    collect()
    assert (native, wrapper) == ([], [])
    client.release_all()
    assert wait_until(lambda: (native, wrapper) == ([True], [True]))


def test_p5_objects_without_a_wrapper_die_too(no_gc: None) -> None:
    payload = Payload()
    deaths = watch_death(payload)
    box = tvm_ffi.Array([[[payload]]])
    del payload
    assert deaths == []
    del box
    assert deaths == [True]


def test_p5_tallies_of_native_objects(client: NativeClient) -> None:
    before = client.pages()
    count = scaled(2000)
    for i in range(count):
        page = client.page_new(i)
        box = tvm_ffi.Array([page])
        del page
        assert client.page_child(box[0]) == i
        del box
    collect()
    after = client.pages()
    assert after["made"] - before["made"] == count
    assert after["destroyed"] - before["destroyed"] == count
    assert after["freed"] - before["freed"] == count


def test_p5_the_table_of_adopted_objects_does_not_grow(client: NativeClient) -> None:
    before = tying.stats()["adopted"]
    for _ in range(100):
        pages = [client.page_new() for _ in range(50)]
        assert tying.stats()["adopted"] >= before + 50
        del pages
    collect()
    assert tying.stats()["adopted"] == before


def test_p5_exact_counts_of_an_opaque_value() -> None:
    payload = Payload()
    count = sys.getrefcount(payload)
    opaque = tvm_ffi.convert(payload)
    assert isinstance(opaque, core.OpaquePyObject)
    assert sys.getrefcount(payload) == count + 1
    assert use_count(opaque) == 1
    box = tvm_ffi.Array([opaque, opaque])
    assert sys.getrefcount(payload) == count + 1
    del opaque, box
    assert sys.getrefcount(payload) == count


def test_p5_arguments_are_given_back_after_a_call_and_after_a_failed_one() -> None:
    payload = Payload()
    count = sys.getrefcount(payload)
    testing.echo(payload)
    assert sys.getrefcount(payload) == count
    with pytest.raises(TypeError):
        testing.add_one(payload)
    assert sys.getrefcount(payload) == count
    result = testing.echo(payload)
    assert sys.getrefcount(payload) == count + 1
    del result
    assert sys.getrefcount(payload) == count


def test_p5_exact_counts_of_nested_conversion() -> None:
    obj = tvm_ffi.convert((1, 2, 3))
    result = testing.echo([obj, {"a": 1, "b": obj}])
    assert use_count(result) == 1
    assert use_count(obj) == 3
    inner = result[1]
    assert use_count(inner) == 2


def test_p5_a_wrapper_that_sleeps_is_not_pinned_by_the_collector() -> None:
    kept = [make_holder(testing.TestObjectBase(i)) for i in range(scaled(1000))]
    collect()
    before = sum(isinstance(obj, testing.TestObjectBase) for obj in gc.get_objects())
    for holder in kept:
        assert holder.value is not None
    collect()
    after = sum(isinstance(obj, testing.TestObjectBase) for obj in gc.get_objects())
    assert after == before


def test_p5_weakly_referenced_payloads_all_die() -> None:
    payloads = [Payload(i) for i in range(50)]
    watchers = [weakref.ref(payload) for payload in payloads]
    box = tvm_ffi.Array(payloads)
    del payloads
    collect()
    assert all(watcher() is not None for watcher in watchers)
    del box
    collect()
    assert all(watcher() is None for watcher in watchers)


def test_p5_a_callable_dies_with_its_function(no_gc: None) -> None:
    def make() -> tuple[object, list[bool]]:
        payload = Payload()
        deaths = watch_death(payload)
        return tvm_ffi.convert(lambda: payload), deaths

    function, deaths = make()
    assert deaths == []
    del function
    assert deaths == [True]


def test_p5_a_kept_alive_object_dies_with_its_function(no_gc: None) -> None:
    payload = Payload()
    deaths = watch_death(payload)
    function = tvm_ffi.Function.__from_extern_c__(
        testing.get_add_one_c_symbol(), keep_alive_object=payload
    )
    del payload
    assert deaths == []
    assert function(1) == 2
    del function
    assert deaths == [True]


def test_p5_stats_count_what_there_is() -> None:
    collect()
    before = tying.stats()
    pairs = [testing.TestIntPair(i, i) for i in range(10)]
    assert tying.stats()["live"] == before["live"] + 10
    box = tvm_ffi.Array(pairs)
    del pairs
    now = tying.stats()
    assert now["dormant"] == before["dormant"] + 10
    assert now["live"] == before["live"] + 1
    del box
    after = tying.stats()
    assert after["live"] == before["live"]
    assert after["dormant"] == before["dormant"]


def test_p5_deep_structures_die_without_recursion() -> None:
    payload = Payload()
    deaths = watch_death(payload)
    chain = tvm_ffi.Array([payload])
    del payload
    for _ in range(scaled(20_000)):
        chain = tvm_ffi.Array([chain])
    del chain
    collect()
    assert deaths == [True]


def test_p5_deep_structures_with_state_die_without_recursion() -> None:
    payload = Payload()
    deaths = watch_death(payload)
    head = Stateful()
    head.next = payload
    del payload
    for _ in range(scaled(5_000)):
        node = Stateful()
        node.next = tvm_ffi.Array([head])
        head = node
    del head, node
    collect()
    assert deaths == [True]


def test_p5_stats_count_by_type() -> None:
    def count(cls: type) -> int:
        return tying.stats()["by_type"].get(cls, 0)

    collect()  # what earlier tests left
    before = count(testing.TestIntPair), count(Stateful)
    kept = [testing.TestIntPair(i, i) for i in range(5)]
    holder = make_holder(Stateful(1))
    assert count(testing.TestIntPair) == before[0] + 5
    assert count(Stateful) == before[1] + 1, "dormant ones count, too"
    del kept, holder
    collect()
    assert (count(testing.TestIntPair), count(Stateful)) == before
    stats = tying.stats()
    assert sum(stats["by_type"].values()) == stats["live"] + stats["dormant"]


def test_p5_stats_follow_an_object_to_another_class() -> None:
    class First(testing.TestIntPair):
        __slots__ = ()

    class Second(testing.TestIntPair):
        __slots__ = ()

    def counts() -> tuple[int, ...]:
        by_type = tying.stats()["by_type"]
        return tuple(by_type.get(cls, 0) for cls in (First, Second, testing.TestIntPair))

    others = counts()[2]
    made = First(1, 2)
    assert made.__class__ is First and counts() == (1, 0, others)
    made.__class__ = Second
    assert type(made) is Second and counts() == (0, 1, others)
    for wrong in (int, Stateful, 7):
        with pytest.raises(TypeError):
            made.__class__ = wrong  # type: ignore[assignment]
    with pytest.raises(TypeError):
        del made.__class__
    assert counts() == (0, 1, others)
    made.__class__ = testing.TestIntPair  # type: ignore[assignment]
    assert counts() == (0, 0, others + 1)
    del made
    assert counts() == (0, 0, others)


def test_p5_an_object_that_got_another_class_is_freed_with_it() -> None:
    """The registered class needs no collector; one that nobody keeps may be part of a ring."""

    class Own(testing.TestIntPair):
        __slots__ = ()

    made = testing.TestIntPair(1, 2)
    made.__class__ = Own  # type: ignore[assignment]
    Own.instance = made  # type: ignore[attr-defined]
    dead = weakref.ref(Own)
    del Own, made
    collect()
    assert dead() is None or not CLASSES_DIE


def test_p5_stats_count_what_waits(client: NativeClient) -> None:
    for i in range(7):
        client.hold(testing.TestIntPair(i, i))
    before = tying.stats()["waiting"]
    assert client.release_all_in_thread() == 7
    assert tying.stats()["waiting"] - before in (0, 7), "none is freed alone"
    assert wait_until(lambda: tying.stats()["waiting"] == 0)
