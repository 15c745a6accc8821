# SPDX-License-Identifier: Apache-2.0
"""Wrappers that refer to nothing are not known to the garbage collector, and keep every promise."""

from __future__ import annotations

import gc
import sysconfig
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import tvm_ffi
from support import FREE_THREADED, collect
from tvm_ffi import inspect, testing
from tvm_ffi.core import Object
from tvm_ffi.dataclasses import py_class

if sysconfig.get_config_var("Py_DEBUG"):
    pytest.skip("debug builds of CPython want every object tracked", allow_module_level=True)


@py_class("tests.leaves.Point")
class Point(Object):
    x: int
    name: str = ""


@py_class("tests.leaves.Holder")
class Holder(Object):
    x: int
    value: Any = None


@py_class("tests.leaves.PointAndHolder")
class PointAndHolder(Point):
    more: Any = None


@py_class("tests.leaves.Late")
class Late(Object):
    x: int
    next: Later | None = None


@py_class("tests.leaves.Later")
class Later(Object):
    x: int


def pair() -> Any:
    return testing.TestIntPair(1, 2)


LEAVES: dict[str, Callable[[], Any]] = {"C++": pair, "Python": lambda: Point(1, "a")}
OTHERS: dict[str, Callable[[], Any]] = {
    "list": lambda: tvm_ffi.List([]),
    "array": lambda: tvm_ffi.Array([1]),
    "function": lambda: tvm_ffi.convert(lambda: None),
    "field of any type": lambda: Holder(1),
    "inherited fields": lambda: PointAndHolder(1),
    "fields resolved later": lambda: Late(1),
    "C++ class with containers": lambda: testing.create_object(
        "testing.TestObjectDerived", v_map={}, v_array=[], v_i64=1, v_f64=1.0, v_str=""
    ),
}


HOLDERS: dict[str, Callable[[Any], Any]] = {
    "itself": lambda obj: obj,
    "list of Python": lambda obj: [obj],
    "List": lambda obj: tvm_ffi.List([obj]),
    "Array": lambda obj: tvm_ffi.Array([obj]),
    "Dict": lambda obj: tvm_ffi.Dict({"key": obj}),
    "field": lambda obj: Holder(1, obj),
}


@pytest.mark.parametrize("make", LEAVES.values(), ids=LEAVES)
def test_the_collector_does_not_know_leaves(make: Callable[[], Any]) -> None:
    made = make()
    assert not gc.is_tracked(made)
    kept = tvm_ffi.Array([made])
    assert not gc.is_tracked(kept[0])
    address = id(made)
    del made
    again = kept[0]
    assert id(again) == address
    assert not gc.is_tracked(again)


@pytest.mark.parametrize("make", OTHERS.values(), ids=OTHERS)
def test_the_collector_knows_all_others(make: Callable[[], Any]) -> None:
    made = make()
    assert gc.is_tracked(made)
    kept = tvm_ffi.Array([made])
    del made
    assert gc.is_tracked(kept[0])


@pytest.mark.parametrize("make", LEAVES.values(), ids=LEAVES)
def test_weak_references_to_leaves(make: Callable[[], Any]) -> None:
    """Their list is in the field that tells where a hidden wrapper is."""
    died: list[Any] = []
    kept = [tvm_ffi.Array([make()]) for _ in range(50)]
    weak = [weakref.ref(array[0], died.append) for array in kept]
    hidden = [tvm_ffi.Array([Holder(i)]) for i in range(50)]
    addresses = [id(array[0]) for array in kept]
    for _ in range(3):
        gc.collect()
        assert [id(ref()) for ref in weak] == addresses
        assert [id(array[0]) for array in kept] == addresses
    live = [ref() for ref in weak]
    kept.clear()
    gc.collect()
    assert all(obj is ref() for obj, ref in zip(live, weak, strict=True))
    live.clear()
    del _
    collect()
    assert len(died) == 50
    assert [array[0].x for array in hidden] == list(range(50))


@pytest.mark.parametrize("make", LEAVES.values(), ids=LEAVES)
@pytest.mark.parametrize("is_shared", [False, True])
def test_leaves_in_garbage(make: Callable[[], Any], is_shared: bool) -> None:
    made = make()
    weak = weakref.ref(made)
    address = id(made)
    kept = tvm_ffi.Array([made]) if is_shared else None
    ring: list[Any] = [made]
    ring.append(ring)
    del made, ring
    gc.collect()
    collect()
    if kept is None:
        assert weak() is None
    else:
        assert id(weak()) == id(kept[0]) == address


@pytest.mark.skipif(FREE_THREADED, reason="CPython 3.13 without the GIL makes classes immortal")
@pytest.mark.parametrize("hold", HOLDERS.values(), ids=HOLDERS)
@pytest.mark.parametrize("base", [type(pair()), Point], ids=["C++", "Python"])
def test_a_class_that_holds_its_own_instance_dies(base: Any, hold: Callable[[Any], Any]) -> None:
    def make() -> Any:
        class Derived(base):
            __slots__ = ()

        Derived.default = hold(Derived(1, "b") if base is Point else Derived(1, 2))  # type: ignore[attr-defined]
        return weakref.ref(Derived)

    dead = [make() for _ in range(10)]
    collect()
    assert [ref() for ref in dead] == [None] * 10


def test_rings_through_state_of_a_subclass() -> None:
    class Stateful(type(pair())):  # type: ignore[misc]
        __slots__ = ("__dict__",)

    made = Stateful(1, 2)
    made.itself = made
    weak = weakref.ref(made)
    del made
    gc.collect()
    assert weak() is None


def test_rings_through_fields_that_came_later() -> None:
    made = Holder(1)
    made.value = tvm_ffi.List([made])
    weak = weakref.ref(made)
    del made
    gc.collect()
    gc.collect()
    collect()
    assert weak() is None


def test_an_object_of_another_type_in_a_leaf_class() -> None:
    cls = type(pair())
    made = cls.__new__(cls)
    made.__init_handle_by_constructor__(tvm_ffi.convert(lambda: Holder(3)))
    assert gc.is_tracked(made)
    target = cls.__new__(cls)
    target.__move_handle_from__(made)
    assert gc.is_tracked(target)
    target = cls.__new__(cls)
    target.__move_handle_from__(pair())
    assert not gc.is_tracked(target)
    assert (target.a, target.b) == (1, 2)


def test_initialised_again_and_moved() -> None:
    made = pair()
    for i in range(5):
        made.__init__(i, 2)
        assert made.a == i
        assert not gc.is_tracked(made)
    testing.echo(made._move())
    with pytest.raises(ValueError, match="moved from"):
        _ = made.a


def test_a_finaliser_that_keeps_a_leaf() -> None:
    kept: list[Any] = []

    class Kept(type(pair())):  # type: ignore[misc]
        __slots__ = ()

        def __del__(self) -> None:
            kept.append(self)

    Kept(1, 2)
    collect()
    assert kept[0].a == 1


def test_inspect_finds_leaves() -> None:
    local = Point(7)
    in_list = [Point(8)]
    in_array = tvm_ffi.Array([Point(9)])
    before = inspect.snapshot()
    more = [Point(10)]
    assert "Point: 1 stayed" in str(inspect.diff(before))
    graph = inspect.graph([local, in_list[0], in_array])
    assert graph.to_text().count("Point") == 3
    assert "variable 'local'" in str(inspect.why(local))
    assert "[0] of list of 1" in str(inspect.why(in_list[0]))
    assert more[0].x == 10
