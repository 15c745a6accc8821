# SPDX-License-Identifier: Apache-2.0
"""P2: identity outlives the last Python reference.

An id alone proves nothing, because addresses are reused; each test also holds a weak reference,
which only the very same wrapper can answer.
"""

from __future__ import annotations

import gc
import pickle
import weakref

import pytest
import tvm_ffi
from support import WAYS, Finalized, Slotted, Stateful, collect, make_edges, make_holder, scaled
from tvm_ffi import core, testing, tying


@pytest.mark.parametrize("way", WAYS)
def test_p2_a_dropped_wrapper_comes_back(way: str) -> None:
    keep, fetch = WAYS[way]
    obj = testing.TestObjectBase(7)
    holder = keep(obj)
    watcher, address = weakref.ref(obj), id(obj)
    del obj
    again = fetch(holder)
    assert watcher() is again
    assert id(again) == address
    assert again.v_i64 == 7


@pytest.mark.parametrize("make", [testing.TestObjectBase, Stateful, Slotted])
def test_p2_every_kind_of_class(make: type) -> None:
    obj = make(5)
    holder = make_holder(obj)
    watcher = weakref.ref(obj)
    del obj
    collect()
    assert watcher() is holder.value
    assert type(holder.value) is make


@pytest.mark.parametrize(
    "make",
    [
        lambda: tvm_ffi.Array([1]),
        lambda: tvm_ffi.List([1]),
        lambda: tvm_ffi.Map({"a": 1}),
        lambda: tvm_ffi.Dict({"a": 1}),
        lambda: tvm_ffi.convert(lambda: 1),
        lambda: core.Error("ValueError", "x", ""),
        testing.make_unregistered_object,
    ],
    ids=["array", "list", "map", "dict", "function", "error", "unregistered"],
)
def test_p2_containers_functions_errors(make: object) -> None:
    obj = make()
    box = tvm_ffi.Array([obj])
    watcher = weakref.ref(obj)
    del obj
    collect()
    assert watcher() is box[0]


def test_p2_a_global_function_keeps_its_wrapper() -> None:
    @tvm_ffi.register_global_func("tests.p2.function")
    def function(x: int) -> int:
        return x + 1

    try:
        watcher = weakref.ref(function)
        del function
        collect()
        assert watcher() is tvm_ffi.get_global_func("tests.p2.function")
        assert watcher()(1) == 2
    finally:
        tvm_ffi.remove_global_func("tests.p2.function")
    collect()
    assert watcher() is None


def test_p2_thousands_of_rounds_show_one_address() -> None:
    holder = make_holder(testing.TestObjectBase(3))
    watcher = weakref.ref(holder.value)
    addresses = set()
    for _ in range(scaled(2000)):
        obj = holder.value
        addresses.add(id(obj))
        assert watcher() is obj
        del obj
    assert len(addresses) == 1


def test_p2_with_a_collection_between_every_drop_and_fetch() -> None:
    holder = make_holder(testing.TestObjectBase(3))
    watcher = weakref.ref(holder.value)
    for _ in range(scaled(50)):
        gc.collect()
        assert holder.value is watcher()
        assert holder.value.v_i64 == 3


@pytest.mark.parametrize("order", ["forward", "backward"])
def test_p2_many_dormant_at_once(order: str) -> None:
    count = 50
    box = tvm_ffi.Array([testing.TestIntPair(i, -i) for i in range(count)])
    watchers = [weakref.ref(pair) for pair in box]
    collect()
    indices = range(count) if order == "forward" else reversed(range(count))
    for i in indices:
        assert box[i] is watchers[i]()
        assert box[i].a == i


def test_p2_registering_classes_in_between_changes_nothing() -> None:
    holder = make_holder(Stateful(8))
    watcher = weakref.ref(holder.value)
    for i in range(20):
        type(f"Unrelated{i}", (core.Object,), {})
    collect()
    assert holder.value is watcher()


def test_p2_new_class_for_the_type_leaves_existing_wrappers_alone() -> None:
    box = tvm_ffi.Array([testing.make_unregistered_object()])
    watcher = weakref.ref(box[0])
    old_class = type(box[0])
    info = core._type_cls_to_type_info(old_class)
    try:

        @tvm_ffi.register_object(info.type_key)
        class Replacement(core.Object):
            __slots__ = ("extra", "more")

        assert box[0] is watcher()
        assert type(box[0]) is old_class
        assert type(testing.make_unregistered_object()) is Replacement
    finally:
        core._register_object_by_index(info.type_index, old_class)


def test_p2_the_dormant_wrapper_is_awake_after_the_fetch() -> None:
    holder = make_holder(testing.TestObjectBase())
    watcher = weakref.ref(holder.value)
    assert tying.state(watcher()) in {"dormant", "active"}
    obj = holder.value
    assert tying.state(obj) == "active"
    assert watcher() is obj


def test_p2_the_object_is_shared_by_several_holders() -> None:
    obj = testing.TestObjectBase()
    watcher = weakref.ref(obj)
    first, second = make_holder(obj), make_edges(obj, obj)
    del obj
    assert first.value is watcher()
    del first
    collect()
    assert second.v_any is watcher()
    assert second.v_obj is watcher()
    del second
    collect()
    assert watcher() is None


def test_p2_an_unpickled_object_keeps_its_identity() -> None:
    for _ in range(scaled(200)):
        box = pickle.loads(pickle.dumps(tvm_ffi.Array([tvm_ffi.Array([1])])))
        watcher = weakref.ref(box[0])
        assert box[0] is watcher()


def test_p2_new_value_in_a_field_after_drop_and_refetch() -> None:
    holder = make_holder(testing.TestObjectBase(1))
    old = weakref.ref(holder.value)
    replacement = testing.TestObjectBase(2)
    holder.value = replacement
    assert holder.value is replacement
    assert holder.value.v_i64 == 2
    collect()
    assert old() is None


def test_p2_exception_a_class_with_del_is_freed_at_the_last_reference() -> None:
    Finalized.deaths.clear()
    holder = make_holder(Finalized(4))
    assert len(Finalized.deaths) == 1
    for _ in range(5):
        obj = holder.value
        assert holder.value is obj
        assert obj.v_i64 == 4
        del obj
        # What comes back is the registered class, which has no __del__.
        assert len(Finalized.deaths) == 1


def test_p2_exception_del_runs_on_every_drop_of_a_registered_class() -> None:
    deaths: list[int] = []
    info = core._type_cls_to_type_info(testing.TestIntPair)

    class Dying(testing.TestIntPair):
        def __del__(self) -> None:
            deaths.append(1)

    core._register_object_by_index(info.type_index, Dying)
    try:
        box = tvm_ffi.get_global_func("ffi.Array")(
            testing.create_object("testing.TestIntPair", a=1, b=2)
        )
        deaths.clear()
        for _ in range(5):
            pair = box[0]
            assert pair is box[0]
            assert pair.a == 1
            del pair
        assert len(deaths) == 5
    finally:
        core._register_object_by_index(info.type_index, testing.TestIntPair)
