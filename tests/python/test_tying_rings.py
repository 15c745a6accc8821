# SPDX-License-Identifier: Apache-2.0
"""P6: rings of every kind go away, also without gc.collect(), and nothing else does.

A ring is garbage once Python holds none of it: what keeps its members are fields of Python-defined
classes, containers, functions, tensors and Python objects that refer to each other.
"""

from __future__ import annotations

import collections
import gc
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import foreign
import pytest
import tvm_ffi
from support import (
    FREE_THREADED,
    RULE_B,
    NativeClient,
    Payload,
    collect,
    make_edges,
    run_python,
    run_threads,
    scaled,
)
from tvm_ffi import testing, tying
from tvm_ffi.dataclasses import py_class

pytestmark = pytest.mark.skipif(RULE_B, reason="such rings need a collector that was learned")


@py_class("tests.rings.Node")
class Node(tvm_ffi.Object):
    """Anything may be stored in it."""

    x: int = 0
    a: Any = None
    b: Any = None


class NotedNode(Node):
    __slots__ = ("__dict__",)


class NotedList(tvm_ffi.List):
    __slots__ = ("__dict__",)


class NotedDict(tvm_ffi.Dict):
    __slots__ = ("__dict__",)


class NotedArray(tvm_ffi.Array):
    __slots__ = ("__dict__",)


class NotedObject(testing.TestObjectDerived):
    __slots__ = ("__dict__",)


def two_objects(node: Any) -> None:
    node.a = Node(1, node)


def itself(node: Any) -> None:
    node.a = node


def four_objects_across(node: Any) -> None:
    node.a = Node(1, node)
    node.b = Node(2, node.a, node)
    node.a.b = node.b


def callback_never_read(node: Any) -> None:
    node.a = lambda: node.x


def callback_called(node: Any) -> None:
    node.a = lambda: node.x
    assert node.a() == 0


def callback_converted(node: Any) -> None:
    node.a = tvm_ffi.convert(lambda: node.x)


def callback_held_twice(node: Any) -> None:
    node.a = node.b = tvm_ffi.convert(lambda: node.x)


def callback_with_state(node: Any) -> None:
    node.a = tvm_ffi.convert(len)
    node.a.note = node


def bound_method(node: Any) -> None:
    node.a = Payload(node).__eq__
    node.a(None)


def callback_in_a_list(node: Any) -> None:
    node.a = tvm_ffi.List([lambda: node])
    node.a[0]()


def callback_in_a_dict(node: Any) -> None:
    node.a = tvm_ffi.Dict({"f": lambda: node})
    node.a["f"]()


def callback_in_an_array_in_a_map(node: Any) -> None:
    node.a = tvm_ffi.Map({"k": tvm_ffi.Array([lambda: node])})
    node.a["k"][0]()


def list_that_holds_its_callback(node: Any) -> None:
    items = tvm_ffi.List([node])
    items.append(lambda: items)
    items[1]()
    node.a = items


def list_with_attributes(node: Any) -> None:
    node.a = NotedList([node])


def dict_with_attributes(node: Any) -> None:
    node.a = NotedDict({"k": node})


def dict_with_attributes_by_key(node: Any) -> None:
    node.a = NotedDict({node: 1})


def array_with_attributes(node: Any) -> None:
    node.a = NotedArray([1, [node]])


def reflected_object_with_attributes(node: Any) -> None:
    node.a = NotedObject({}, [node])


def list_of_two_owners(node: Any) -> None:
    node.a = tvm_ffi.List([node])
    node.b = node.a


def list_of_two_objects(node: Any) -> None:
    items = tvm_ffi.List([node])
    node.a = items
    node.b = Node(1, items, node)


def list_that_python_shares(node: Any) -> None:
    items = tvm_ffi.List([])
    outer = tvm_ffi.List([items])
    items.append(lambda: (items, outer, node))
    node.a = outer


def lists_in_each_other(node: Any) -> None:
    inner = tvm_ffi.List([node])
    node.a = NotedList([inner, node])
    node.a.note = inner


def reflected_fields(node: Any) -> None:
    node.a = make_edges(node)


def weak_reference_to_an_inner_object(node: Any) -> None:
    node.a = Node(1, node)
    node.b = weakref.ref(node.a)


def opaque_object(node: Any) -> None:
    node.a = Payload(node)


def opaque_object_read(node: Any) -> None:
    node.a = Payload(node)
    assert node.a.tag is node


def opaque_object_in_a_list(node: Any) -> None:
    node.a = tvm_ffi.List([Payload(node)])
    assert node.a[0].tag is node


def tensor(node: Any) -> None:
    memory = foreign.ViewTensor((2,))
    memory.owner = node
    node.a = memory
    foreign.calls.clear()  # what it was asked for, tensors too
    assert isinstance(node.a, tvm_ffi.Tensor)


def kept_by_a_function(node: Any) -> None:
    make = tvm_ffi.Function.__from_extern_c__
    node.a = make(testing.get_add_one_c_symbol(), keep_alive_object=node)
    assert node.a(1) == 2


def kept_by_a_function_of_mlir(node: Any) -> None:
    make = tvm_ffi.Function.__from_mlir_packed_safe_call__
    node.a = make(testing.get_mlir_add_one_c_symbol(), keep_alive_object=node)
    assert node.a(1) == 2


LINKS: list[Callable[[Any], None]] = [
    two_objects,
    itself,
    four_objects_across,
    callback_never_read,
    callback_called,
    callback_converted,
    callback_held_twice,
    callback_with_state,
    bound_method,
    callback_in_a_list,
    callback_in_a_dict,
    callback_in_an_array_in_a_map,
    list_that_holds_its_callback,
    list_with_attributes,
    dict_with_attributes,
    dict_with_attributes_by_key,
    array_with_attributes,
    reflected_object_with_attributes,
    list_of_two_owners,
    list_of_two_objects,
    list_that_python_shares,
    lists_in_each_other,
    reflected_fields,
    weak_reference_to_an_inner_object,
    opaque_object,
    opaque_object_read,
    opaque_object_in_a_list,
    tensor,
    kept_by_a_function,
    kept_by_a_function_of_mlir,
]


@pytest.fixture(params=LINKS, ids=lambda link: link.__name__)
def link(request: pytest.FixtureRequest) -> Callable[[Any], None]:
    return request.param


def wrappers() -> int:
    stats = tying.stats()
    return stats["live"] + stats["dormant"]


@pytest.mark.parametrize("make", [Node, NotedNode])
def test_a_ring_is_collected(link: Callable[[Any], None], make: type) -> None:
    link(make())
    gc.collect()
    before = wrappers()
    watchers = []
    for i in range(20):
        node = make(i * 0)
        link(node)
        if i < 10:  # a watched wrapper takes another way to sleep
            watchers.append(weakref.ref(node))
        del node
    gc.collect()
    assert [watcher() for watcher in watchers] == [None] * 10
    assert wrappers() <= before


@pytest.mark.parametrize("make", [Node, NotedNode])
def test_a_ring_that_python_holds_stays(link: Callable[[Any], None], make: type) -> None:
    node = make()
    link(node)
    part = node.a
    del node
    collect()
    again = make()
    link(again)
    kept = again
    collect()
    assert kept.a is again.a
    assert type(part) is type(kept.a)
    repr(part)


def assert_kept_until_c_lets_go(watcher: weakref.ref[Any], client: NativeClient) -> None:
    collect()
    assert watcher() is not None
    assert watcher().note == ["kept"]
    assert watcher().a is not None
    assert client.release_all() == 1
    collect()
    assert watcher() is None


def test_a_ring_that_c_holds_stays(link: Callable[[Any], None], client: NativeClient) -> None:
    node = NotedNode(5)
    node.note = ["kept"]
    node.x = 0
    link(node)
    watcher = weakref.ref(node)
    client.hold(node)
    del node
    assert_kept_until_c_lets_go(watcher, client)


def test_a_ring_whose_inner_object_c_holds_stays(
    link: Callable[[Any], None], client: NativeClient
) -> None:
    node = NotedNode()
    node.note = ["kept"]
    link(node)
    if not isinstance(node.a, tvm_ffi.Object):
        return  # an opaque object: C++ holds what stands for it, not the object itself
    watcher = weakref.ref(node)
    client.hold(node.a)
    del node
    assert_kept_until_c_lets_go(watcher, client)


def test_what_hangs_off_a_held_list_stays() -> None:
    """All owners of a list are known, and one of them is alive."""
    items = NotedList([Node(1), lambda: 2])
    items.note = [3]
    alive = Node(0, items)
    dead = Node(0, items)
    dead.b = dead
    del items, dead
    collect()
    assert alive.a[0].x == 1
    assert alive.a[1]() == 2
    assert alive.a.note == [3]


def test_what_hangs_off_a_frozen_wrapper_stays() -> None:
    """A wrapper that collections do not visit does not tell them what its list refers to."""
    run_python(
        """
import gc, weakref
from typing import Any
import tvm_ffi
from tvm_ffi.dataclasses import py_class
@py_class("tests.rings.Frozen")
class Frozen(tvm_ffi.Object):
    x: int = 0
    a: Any = None
items = tvm_ffi.List([])
gc.collect()
gc.freeze()
child = Frozen(7)
items.append(child)
watcher = weakref.ref(child)
owner = Frozen(0, items)
owner.a.append(owner)
del owner, child
gc.collect()
assert watcher() is items[0]
assert items[0].x == 7
items.pop()
for i in range(3):
    gc.collect()
"""
    )


def test_a_wrapper_that_is_not_the_tied_one_does_not_count_twice() -> None:
    node = Node(1, Node(2))
    make_same = tvm_ffi.convert(lambda: node)
    second = Node.__new__(Node)
    second.__init_handle_by_constructor__(make_same)
    assert second.same_as(node)
    watcher = weakref.ref(node.a)
    kept = tvm_ffi.List([node.a])
    collect()
    assert kept[0] is watcher()
    assert kept[0].x == 2


# ---- without gc.collect() -----------------------------------------------------------------------


class Collections:
    """Counts the collections of all generations that begin."""

    def __init__(self) -> None:
        self.full = 0
        self.all = 0

    def __call__(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self.all += 1
            self.full += info["generation"] == 2


@pytest.fixture
def begun() -> Iterator[Collections]:
    gc.collect()
    counter = Collections()
    gc.callbacks.append(counter)
    yield counter
    gc.callbacks.remove(counter)


def bound_of(total: int) -> float:
    """How many of `total` wrappers in rings may wait for a collection.

    A full collection is due when as many wait as there are objects of other kinds, about
    (Patience in full_collections.h): the more a process has, the fewer collections it gets.
    """
    bound = max(total / 2, sys.getallocatedblocks() / 12)
    if bound > total * 0.9:
        pytest.skip("too many objects in this process to tell")
    return bound


@py_class("tests.rings.Keeping")
class Keeping(tvm_ffi.Object):
    """Has a hook that keeps its visitor."""

    kept: ClassVar[list[Any]] = []

    @staticmethod
    def __s_visit__(visitor: Any, value: Any) -> None:
        Keeping.kept.append(visitor)


def test_a_visitor_that_was_kept_has_let_go_of_the_callbacks() -> None:
    payload = Payload()
    watcher = weakref.ref(payload)

    def callback(value: Any, visitor: Any, payload: Payload = payload) -> None:
        Keeping.kept.append(visitor)

    tvm_ffi.structural_visit([1], (tvm_ffi.Array, callback))
    tvm_ffi.structural_walk([Keeping()], (int, lambda value, payload=payload: None))
    assert len(Keeping.kept) == 2
    for visitor in Keeping.kept:
        with pytest.raises(RuntimeError, match="only until the call that made it returns"):
            visitor.visit(1)
    del payload, callback
    gc.collect()
    assert watcher() is None
    Keeping.kept.clear()


def test_a_program_that_makes_rings_for_ever_is_bounded(link: Callable[[Any], None]) -> None:
    collect()
    before, most, total = wrappers(), 0, scaled(40_000)
    if total < 40_000:
        pytest.skip("too few to tell")
    link(Node(0))
    per_ring = wrappers() - before
    for i in range(total):
        link(Node(0))
        if i % 500 == 0:
            most = max(most, wrappers() - before)
    assert most < bound_of(total * per_ring)


def test_rings_that_die_old_are_bounded() -> None:
    """Trees with parents, of which only the youngest are held."""
    collect()
    before, most, total = wrappers(), 0, scaled(6_000)
    if total < 6_000:
        pytest.skip("too few to tell")
    window: collections.deque[Any] = collections.deque(maxlen=100)
    for i in range(total):
        root = Node(i, tvm_ffi.List([]))
        root.a.extend([Node(j, tvm_ffi.List([]), root) for j in range(5)])
        for child in root.a:
            child.a.extend([Node(j, None, child) for j in range(2)])
        window.append(root)
        if i % 100 == 0:
            most = max(most, wrappers() - before)
    assert most < bound_of(total * 16)


def test_rings_made_on_a_thread_are_bounded() -> None:
    collect()
    before, total = wrappers(), scaled(40_000)

    def body(_: int) -> None:
        for _ in range(total):
            two_objects(Node(0))

    run_threads(1, body)
    assert wrappers() - before < max(bound_of(total * 2), 1000)


def test_rings_made_in_a_callback_are_bounded() -> None:
    collect()
    before, total = wrappers(), scaled(40_000)
    most = 0

    def callback(_: Any) -> None:
        nonlocal most
        for i in range(total):
            two_objects(Node(0))
            if i % 500 == 0:
                most = max(most, wrappers() - before)

    testing.apply(tvm_ffi.convert(callback), 1)
    assert most < max(bound_of(total * 2), 1000)


def test_rings_are_collected_in_a_callback() -> None:
    """The call that waits for the callback does not work on anything meanwhile."""
    watchers = []

    def callback(_: Any) -> None:
        node = Node()
        list_with_attributes(node)
        watchers.append(weakref.ref(node))
        del node
        gc.collect()

    testing.apply(tvm_ffi.convert(callback), 1)
    assert watchers[0]() is None


def test_no_ring_is_collected_while_another_thread_is_in_a_call() -> None:
    """It may be changing what the collector would read."""
    node = Node()
    list_with_attributes(node)
    watcher = weakref.ref(node)
    del node
    inside, leave = threading.Event(), threading.Event()

    def callback(_: Any) -> None:
        inside.set()
        leave.wait(60)

    thread = threading.Thread(target=lambda: testing.apply(tvm_ffi.convert(callback), 1))
    thread.start()
    assert inside.wait(60)
    gc.collect()
    assert watcher() is not None
    leave.set()
    thread.join()
    gc.collect()
    assert watcher() is None


@pytest.mark.skipif(FREE_THREADED, reason="without the GIL every collection is a full one")
def test_a_program_without_rings_gets_no_full_collections(begun: Collections) -> None:
    kept = [Node(i, tvm_ffi.List([Node(i)])) for i in range(scaled(15_000))]
    chain = Node(-1)
    for i in range(scaled(15_000)):
        chain = Node(i, chain)
    kept.append(chain)
    assert begun.full <= 1  # CPython's own
    while chain is not None:  # not by recursion
        chain.a, chain = None, chain.a


@pytest.mark.parametrize("how", ["disabled", "threshold"])
def test_nothing_is_collected_where_the_program_wants_none(how: str, begun: Collections) -> None:
    thresholds = gc.get_threshold()
    gc.disable() if how == "disabled" else gc.set_threshold(0)
    try:
        for i in range(scaled(30_000)):
            list_with_attributes(Node(i))
        assert begun.all == 0
        gc.collect(0)
        for i in range(100):
            list_with_attributes(Node(i))
        assert begun.all == 1
    finally:
        gc.enable()
        gc.set_threshold(*thresholds)
    collect()


@pytest.mark.skipif(FREE_THREADED, reason="without the GIL every collection is a full one")
def test_young_rings_need_no_full_collection(begun: Collections) -> None:
    for _ in range(scaled(20_000)):
        two_objects(Node(0))
    assert begun.all > begun.full
    assert begun.full <= 1
