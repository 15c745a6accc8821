# SPDX-License-Identifier: Apache-2.0
"""Pickling: content, class, sharing and identity inside the graph; clear errors for the rest."""

from __future__ import annotations

import copy
import gc
import pickle
from typing import Any

import pytest
import tvm_ffi
from support import Slotted, Stateful, make_edges, run_python
from tvm_ffi import _ffi_api, testing
from tvm_ffi.dataclasses import Enum, entry, field, py_class


@py_class("tests.pickle.Node", eq=True)
class Node(tvm_ffi.Object):
    """A graph can be built of it."""

    value: int = 0
    child: tvm_ffi.Object | None = None
    items: list[Any] = field(default_factory=list)
    table: dict[str, Any] = field(default_factory=dict)


class Sub(Node):
    """Not registered itself."""

    __slots__ = ("note",)


class Mode(Enum, type_key="tests.pickle.Mode"):
    """Shared members."""

    on = entry()
    off = entry()


def again(value: Any) -> Any:
    results = [pickle.loads(pickle.dumps(value, p)) for p in range(pickle.HIGHEST_PROTOCOL + 1)]
    return results[-1]


@pytest.mark.parametrize(
    "value",
    [
        testing.TestIntPair(1, 2),
        testing.TestObjectBase(v_i64=3, v_str="text of some length"),
        testing.TestObjectDerived({"k": [1, 2]}, ["a", 2.5, None, True]),
        testing._TestCxxClassDerived(1, 2, 3.0),
        testing._TestCxxEnumHolder(10, "+"),
        Node(1, Node(2), [1, "a"], {"k": 2.5}),
        tvm_ffi.Array([1, [2, {"k": b"bytes"}]]),
        tvm_ffi.List([1, 2]),
        tvm_ffi.Map({1: "one"}),
        tvm_ffi.Dict({"a": 1}),
    ],
)
def test_content_and_class_come_back(value: Any) -> None:
    loaded = again(value)
    assert type(loaded) is type(value)
    assert _ffi_api.RecursiveEq(loaded, value)
    assert not loaded.same_as(value)


def test_sharing_inside_the_graph_is_kept() -> None:
    shared = Node(5)
    loaded = again(Node(1, shared, [shared, [shared]], {"k": shared}))
    assert loaded.child is loaded.items[0]
    assert loaded.items[1][0] is loaded.child
    assert loaded.table["k"] is loaded.child
    loaded.child.value = 6
    assert loaded.table["k"].value == 6


def test_members_of_enums_are_the_registered_ones() -> None:
    assert again(Mode.on) is Mode.on
    assert again(Node(items=[Mode.off])).items[0] is Mode.off
    assert copy.copy(Mode.on) is not Mode.on


def test_an_unregistered_subclass_keeps_its_class_and_its_slots() -> None:
    made = Sub(4)
    assert not hasattr(again(made), "note")
    made.note = "python side"
    loaded = again(made)
    assert (type(loaded), loaded.value, loaded.note) == (Sub, 4, "python side")
    assert tvm_ffi.Array([loaded])[0] is loaded


@pytest.mark.parametrize("cls", [Stateful, Slotted, Sub])
@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy, again])
def test_copies_keep_the_class_and_the_python_state(cls: Any, make: Any) -> None:
    made = cls()
    name = "label" if cls is Slotted else "note"
    setattr(made, name, ["state"])
    copied = make(made)
    assert type(copied) is cls
    assert not copied.same_as(made)
    assert getattr(copied, name) == ["state"]
    assert (getattr(copied, name) is getattr(made, name)) is (make is copy.copy)
    assert tvm_ffi.Array([copied])[0] is copied


@pytest.mark.parametrize("make", [copy.deepcopy, again])
def test_state_that_refers_to_its_owner(make: Any) -> None:
    made = Stateful()
    made.me = made
    copied = make(made)
    assert copied.me is copied


def test_a_shallow_copy_shares_what_the_object_refers_to() -> None:
    inner = testing.TestObjectBase()
    for made in (
        tvm_ffi.Array([inner]),
        tvm_ffi.List([inner]),
        tvm_ffi.Map({0: inner}),
        tvm_ffi.Dict({0: inner}),
    ):
        copied = copy.copy(made)
        assert type(copied) is type(made)
        assert not copied.same_as(made)
        assert copied[0] is inner
        assert copy.deepcopy(made)[0] is not inner
    holder = testing.TestObjectPtrHolder(inner)
    assert copy.copy(holder).value is inner
    # What cannot be written as JSON can be copied.
    edges = make_edges(v_any=lambda: 1)
    assert copy.copy(edges).v_any is edges.v_any


def test_a_class_without_default_constructor_is_made_by_its_constructor() -> None:
    loaded = again(testing.TestNonCopyable(7))
    assert (type(loaded), loaded.value) == (testing.TestNonCopyable, 7)
    with pytest.raises(TypeError, match="`TestNonCopyable` does not support copy"):
        copy.copy(testing.TestNonCopyable(7))


def test_loaded_objects_are_tied() -> None:
    loaded = again(Node(1, Node(2)))
    for _ in range(50):
        before = id(loaded.child)
        gc.collect()
        assert id(loaded.child) == before
        assert loaded.child is loaded.child


def test_a_long_chain() -> None:
    head = None
    for i in range(20_000):
        head = Node(i, head)
    loaded = pickle.loads(pickle.dumps(head))
    assert _ffi_api.RecursiveEq(loaded, head)


def test_what_cannot_be_pickled_is_named() -> None:
    for value, name in (
        (tvm_ffi.Array([lambda: 1]), "ffi.Function"),
        (Node(items=[object()]), "cannot pickle `Node` object: Type `object` "),
    ):
        with pytest.raises((TypeError, RuntimeError), match=name):
            pickle.dumps(value)


def test_a_state_that_is_none_of_ours() -> None:
    for state in ({}, {"handle": 3}, "text", {"handle": "no json"}, {"handle": "{}"}):
        made = Node.__new__(Node)
        with pytest.raises(Exception):  # noqa: B017  any clear exception, no crash
            made.__setstate__(state)
        assert made.__chandle__() == 0


def test_a_type_that_is_not_registered_when_loading() -> None:
    data = pickle.dumps(tvm_ffi.Array([Node(1)]))
    code = (
        "import pickle, sys, tvm_ffi\nsys.modules['test_pickle'] = None\n"
        f"try:\n    pickle.loads({data!r})\n"
        "except Exception as error:\n    print('tests.pickle.Node' in str(error))"
    )
    assert run_python(code) == "True\n"


# ---- what a class says about copies -------------------------------------------------------------


class ByReduce(testing.TestIntPair):
    """Its instances are made anew."""

    def __reduce__(self) -> Any:
        return (ByReduce, (self.a + 100, self.b))


class ByReduceEx(testing.TestIntPair):
    """The same, by protocol."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        return (ByReduceEx, (self.a + 100, self.b))


class ByCopy(testing.TestIntPair):
    """It has methods of its own for copies."""

    def __copy__(self) -> Any:
        return "copied"

    def __deepcopy__(self, memo: Any) -> Any:
        return "deeply copied"


@pytest.mark.parametrize("cls", [ByReduce, ByReduceEx])
def test_copies_respect_reduce(cls: Any) -> None:
    for copied in (
        copy.copy(cls(1, 2)),
        copy.deepcopy(cls(1, 2)),
        pickle.loads(pickle.dumps(cls(1, 2))),
    ):
        assert (type(copied), copied.a, copied.b) == (cls, 101, 2)
    memo: dict[int, Any] = {}
    original = cls(1, 2)
    first, second = copy.deepcopy([original, original], memo)
    assert first is second


def test_copies_respect_copy_and_deepcopy() -> None:
    assert copy.copy(ByCopy(1, 2)) == "copied"
    assert copy.deepcopy(ByCopy(1, 2)) == "deeply copied"


def test_generated_copies_do_not_hide_those_of_a_base() -> None:
    class Mixin(tvm_ffi.Object):
        def __copy__(self) -> Any:
            return "copied"

    @py_class("tests.pickle.Mixed")
    class Mixed(Mixin):
        x: int = 1

    @py_class("tests.pickle.Reduced")
    class Reduced(tvm_ffi.Object):
        x: int = 1

        def __reduce__(self) -> Any:
            return (Reduced, (self.x + 1,))

    @py_class("tests.pickle.Further")
    class Further(Reduced):
        y: int = 5

    assert copy.copy(Mixed()) == "copied"
    assert copy.deepcopy(Mixed()).x == 1
    assert (copy.copy(Reduced()).x, copy.deepcopy(Reduced()).x) == (2, 2)
    assert type(copy.copy(Further())) is Reduced  # as the method says
