# SPDX-License-Identifier: Apache-2.0
"""P3: the wrapper's state outlives the last Python reference too."""

from __future__ import annotations

import gc
import weakref

import pytest
import tvm_ffi
from support import (
    RULE_B,
    WAYS,
    Payload,
    Slotted,
    Stateful,
    collect,
    make_edges,
    make_holder,
    scaled,
)
from tvm_ffi import testing


@pytest.mark.parametrize("way", WAYS)
def test_p3_instance_dict_survives(way: str) -> None:
    keep, fetch = WAYS[way]
    obj = Stateful(1)
    obj.note = ["kept"]
    note = obj.note
    holder = keep(obj)
    del obj
    collect()
    again = fetch(holder)
    assert type(again) is Stateful
    assert again.note is note


@pytest.mark.parametrize("way", WAYS)
def test_p3_slots_survive(way: str) -> None:
    keep, fetch = WAYS[way]
    obj = Slotted(1)
    obj.label, obj.link = "kept", Payload("link")
    link = weakref.ref(obj.link)
    holder = keep(obj)
    del obj
    collect()
    again = fetch(holder)
    assert type(again) is Slotted
    assert again.label == "kept"
    assert again.link is link()


def test_p3_weak_references_survive() -> None:
    holder = make_holder(Stateful())
    first, second = weakref.ref(holder.value), weakref.ref(holder.value, lambda _: None)
    collect()
    assert first() is second() is holder.value
    assert weakref.getweakrefcount(holder.value) == 2


def test_p3_weak_dictionaries_keyed_by_wrappers_survive() -> None:
    holder = make_holder(testing.TestObjectBase())
    notes = weakref.WeakKeyDictionary({holder.value: "note"})
    collect()
    assert notes[holder.value] == "note"
    del holder
    collect()
    assert len(notes) == 0


def test_p3_attributes_of_a_function_survive() -> None:
    box = tvm_ffi.convert([lambda x: x])
    box[0].note = "kept"
    box[0].release_gil = False
    collect()
    assert box[0].note == "kept"
    assert box[0].release_gil is False


def test_p3_attributes_of_a_global_function_survive() -> None:
    tvm_ffi.register_global_func("tests.p3.function", lambda: 1)
    try:
        tvm_ffi.get_global_func("tests.p3.function").note = "kept"
        collect()
        assert tvm_ffi.get_global_func("tests.p3.function").note == "kept"
    finally:
        tvm_ffi.remove_global_func("tests.p3.function")


def test_p3_attributes_of_a_container_subclass_survive() -> None:
    class Tagged(tvm_ffi.Array):
        __slots__ = ("tag",)

    tagged = Tagged([1, 2])
    tagged.tag = "kept"
    box = tvm_ffi.Array([tagged])
    del tagged
    collect()
    assert type(box[0]) is Tagged
    assert box[0].tag == "kept"
    assert list(box[0]) == [1, 2]


def test_p3_state_may_be_changed_between_sleeps() -> None:
    holder = make_holder(Stateful())
    wrapper = Stateful(2)
    wrapper.count = 0
    holder.value = wrapper
    del wrapper
    for i in range(scaled(300)):
        assert holder.value.count == i
        holder.value.count = i + 1
        if i % 10 == 0:
            gc.collect()


def test_p3_state_that_is_the_only_reference_to_something_keeps_it() -> None:
    payload = Payload()
    alive = weakref.ref(payload)
    obj = Stateful()
    obj.payload = payload
    holder = make_holder(obj)
    del obj, payload
    collect()
    assert alive() is holder.value.payload
    del holder
    collect()
    assert alive() is None


def test_p3_state_that_refers_to_the_wrapper_itself() -> None:
    obj = Stateful()
    obj.me = obj
    holder = make_holder(obj)
    watcher = weakref.ref(obj)
    del obj
    collect()
    assert holder.value.me is holder.value
    assert watcher() is (None if RULE_B else holder.value)
    del holder
    collect()
    assert watcher() is None


def test_p3_state_that_refers_to_other_sleeping_wrappers() -> None:
    parent, child = Stateful(1), Stateful(2)
    parent.child, child.parent = child, parent
    holder = make_edges(parent, child)
    watchers = weakref.ref(parent), weakref.ref(child)
    del parent, child
    collect()
    assert holder.v_any.child is holder.v_obj
    assert holder.v_obj.parent is holder.v_any
    del holder
    collect()
    assert [watcher() for watcher in watchers] == [None, None]


def test_p3_an_attribute_deleted_stays_deleted() -> None:
    obj = Stateful()
    obj.note = 1
    holder = make_holder(obj)
    del obj
    del holder.value.note
    collect()
    with pytest.raises(AttributeError):
        _ = holder.value.note


def test_p3_dict_identity_survives() -> None:
    obj = Stateful()
    state = obj.__dict__
    state["note"] = 1
    holder = make_holder(obj)
    del obj
    collect()
    assert holder.value.__dict__ is state


def test_p3_a_class_changed_by_assignment_survives() -> None:
    class Other(testing.TestObjectBase):
        __slots__ = ("__dict__",)

    obj = Stateful()
    obj.__class__ = Other
    holder = make_holder(obj)
    del obj
    collect()
    assert type(holder.value) is Other


def test_p3_without_opting_in_there_is_no_state() -> None:
    pair = testing.TestIntPair(1, 2)
    with pytest.raises(AttributeError):
        pair.note = 1


def test_p3_state_is_not_shared_between_objects() -> None:
    first, second = Stateful(), Stateful()
    holder = make_edges(first, second)
    first.note, second.note = 1, 2
    del first, second
    collect()
    assert (holder.v_any.note, holder.v_obj.note) == (1, 2)
