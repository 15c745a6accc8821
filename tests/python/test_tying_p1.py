# SPDX-License-Identifier: Apache-2.0
"""P1: one live wrapper per object, always."""

from __future__ import annotations

import copy
import pickle
import threading

import pytest
import tvm_ffi
from support import WAYS, Payload, Slotted, Stateful, make_edges, make_holder
from tvm_ffi import core, testing


def kinds() -> dict[str, object]:
    """One object of every kind that a wrapper can stand for."""
    return {
        "registered class": testing.TestIntPair(1, 2),
        "base class": testing.TestObjectBase(),
        "derived class": testing.TestObjectDerived({}, []),
        "subclass with __dict__": Stateful(),
        "subclass with slots": Slotted(),
        "unregistered class": testing.make_unregistered_object(),
        "array": tvm_ffi.Array([1]),
        "list": tvm_ffi.List([1]),
        "map": tvm_ffi.Map({"a": 1}),
        "dict": tvm_ffi.Dict({"a": 1}),
        "function made in C++": tvm_ffi.get_global_func("testing.add_one"),
        "function made in Python": tvm_ffi.convert(lambda x: x),
        "error": core.Error("ValueError", "text", ""),
        "module": tvm_ffi.system_lib("testing."),
    }


@pytest.mark.parametrize("way", WAYS)
def test_p1_every_way_back_gives_the_held_wrapper(way: str) -> None:
    keep, fetch = WAYS[way]
    obj = testing.TestObjectBase()
    holder = keep(obj)
    for _ in range(3):
        assert fetch(holder) is obj


@pytest.mark.parametrize("way", WAYS)
def test_p1_an_object_first_seen_through_a_holder_has_one_wrapper(way: str) -> None:
    keep, fetch = WAYS[way]
    holder = keep(testing.TestObjectBase())
    first = fetch(holder)
    assert fetch(holder) is first
    assert len({id(fetch(holder)) for _ in range(100)}) == 1


@pytest.mark.parametrize("kind", kinds())
def test_p1_every_kind_of_object_comes_back_as_itself(kind: str) -> None:
    obj = kinds()[kind]
    assert testing.echo(obj) is obj
    assert tvm_ffi.convert(lambda x: x)(obj) is obj
    assert tvm_ffi.Array([obj])[0] is obj
    assert tvm_ffi.Dict({"k": obj})["k"] is obj
    assert make_edges(obj).v_any is obj
    assert tvm_ffi.convert(obj) is obj


def test_p1_different_objects_have_different_wrappers() -> None:
    box = tvm_ffi.Array([testing.TestIntPair(1, 1), testing.TestIntPair(1, 1)])
    assert box[0] is not box[1]
    assert box[0] is box[0]
    assert box[1] is box[1]


def test_p1_a_callback_gets_the_callers_wrapper_and_its_result_is_it() -> None:
    seen: list[object] = []
    pair = testing.TestIntPair(1, 2)

    def callback(arg: object) -> object:
        seen.append(arg)
        return arg

    assert testing.apply(tvm_ffi.convert(callback), pair) is pair
    assert seen[0] is pair


def test_p1_a_callback_called_twice_with_a_new_object_sees_one_wrapper() -> None:
    seen: list[object] = []
    box = tvm_ffi.Array([tvm_ffi.Array([testing.TestIntPair(1, 2)])])
    callback = tvm_ffi.convert(seen.append)
    testing.apply(callback, box[0][0])
    testing.apply(callback, box[0][0])
    assert seen[0] is seen[1]


def test_p1_global_functions() -> None:
    assert tvm_ffi.get_global_func("testing.add_one") is tvm_ffi.get_global_func("testing.add_one")

    @tvm_ffi.register_global_func("tests.p1.registered")
    def registered(x: int) -> int:
        return x

    try:
        assert tvm_ffi.get_global_func("tests.p1.registered") is registered
        assert testing.echo(registered) is registered
    finally:
        tvm_ffi.remove_global_func("tests.p1.registered")


def test_p1_functions_inside_containers_and_fields() -> None:
    box = tvm_ffi.convert([lambda x: x])
    assert box[0] is box[0]
    edges = make_edges(lambda x: x)
    assert edges.v_any is edges.v_any


def test_p1_errors_inside_containers() -> None:
    box = tvm_ffi.Array([core.Error("ValueError", "boom", "")])
    assert isinstance(box[0], core.Error)
    assert box[0] is box[0]


def test_p1_the_error_of_an_exception_keeps_its_identity_through_nesting() -> None:
    seen: list[object] = []

    def inner() -> None:
        try:
            testing.test_raise_error("ValueError", "boom")
        except ValueError as error:
            seen.append(error.__tvm_ffi_error__)
            raise

    with pytest.raises(ValueError, match="boom") as caught:
        tvm_ffi.convert(inner)()
    assert caught.value.__tvm_ffi_error__ is seen[0]


def test_p1_opaque_objects_are_themselves() -> None:
    payload = Payload()
    assert testing.echo(payload) is payload
    assert tvm_ffi.Array([payload])[0] is payload
    assert make_edges(payload).v_any is payload
    assert tvm_ffi.convert(payload).pyobject() is payload
    assert testing.apply(lambda x: x, payload) is payload


def test_p1_system_library_and_singletons() -> None:
    assert tvm_ffi.system_lib("testing.") is tvm_ffi.system_lib("testing.")
    assert tvm_ffi.get_global_func("ffi.GetInvalidObject")() is core.MISSING
    assert tvm_ffi.get_global_func("ffi.GetKwargsObject")() is core.KWARGS


def test_p1_a_python_subclass_instance_comes_back_with_its_class() -> None:
    obj = Stateful()
    obj.note = "mine"
    holder = make_holder(obj)
    assert type(holder.value) is Stateful
    assert holder.value is obj
    assert holder.value.note == "mine"


def test_p1_assignment_replaces_the_wrapper_a_field_gives() -> None:
    first, second = testing.TestObjectBase(1), testing.TestObjectBase(2)
    holder = make_holder(first)
    assert holder.value is first
    holder.value = second
    assert holder.value is second
    assert holder.value is not first
    assert first.v_i64 == 1


def test_p1_containers_give_one_wrapper_to_every_reader() -> None:
    shared = tvm_ffi.List([1])
    outer = tvm_ffi.Map({"a": shared, "b": tvm_ffi.Array([shared])})
    outer["a"].append(2)
    assert outer["b"][0] is outer["a"] is shared
    assert list(shared) == [1, 2]


def test_p1_a_taker_of_a_handle_becomes_the_wrapper() -> None:
    taker = core.Object.__new__(core.Object)
    taker.__move_handle_from__(tvm_ffi.Array([9]))
    assert testing.echo(taker) is taker


def test_p1_an_unpickled_object_is_tied() -> None:
    box = pickle.loads(pickle.dumps(tvm_ffi.Array([tvm_ffi.Array([1])])))
    assert box[0] is box[0]
    assert testing.echo(box) is box


def test_p1_a_copied_object_is_another_object() -> None:
    pair = testing.TestIntPair(1, 2)
    clone = copy.copy(pair)
    assert clone is not pair
    assert not clone.same_as(pair)
    assert testing.echo(clone) is clone


def test_p1_holds_across_threads() -> None:
    box = tvm_ffi.Array([testing.TestIntPair(1, 2)])
    seen: list[object] = []
    threads = [threading.Thread(target=lambda: seen.append(box[0])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(obj is seen[0] for obj in seen)
    assert seen[0] is box[0]


def test_p1_strings_are_values() -> None:
    text = tvm_ffi.Array(["a string that is long enough"])[0]
    assert text == "a string that is long enough"
    assert isinstance(text, core.String)
    assert hash(text) == hash("a string that is long enough")
