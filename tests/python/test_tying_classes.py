# SPDX-License-Identifier: Apache-2.0
"""The promises of tying for reflected, Python-defined and derived classes and for enum members."""

from __future__ import annotations

import copy
import gc
import pickle
import random
import threading
import weakref
from typing import Any

import pytest
import tvm_ffi
from support import FREE_THREADED, collect, grows_every_time, run_threads, scaled, watch_death
from tvm_ffi import core, testing
from tvm_ffi.dataclasses import Enum, IntEnum, c_class, entry, field, py_class


@py_class("tests.tying.Node")
class Node(tvm_ffi.Object):
    """Python-defined."""

    value: int = 0
    child: tvm_ffi.Object | None = None
    items: list[Any] = field(default_factory=list)
    anything: Any = None


@py_class("tests.tying.Derived")
class Derived(testing.TestObjectBase):
    """Python-defined, below a C++ class."""

    child: tvm_ffi.Object | None = None


@py_class("tests.tying.Open")
class Open(tvm_ffi.Object):
    """Python-defined, with an instance dict."""

    __slots__ = ("__dict__",)
    value: int = 0
    child: tvm_ffi.Object | None = None


@c_class("testing.TestDeepCopyEdges")
class Edges(tvm_ffi.Object):
    """Reflected."""

    v_any: Any
    v_obj: tvm_ffi.Object


class Member(Enum, type_key="tests.tying.Member"):
    """Members are shared by everybody."""

    a = entry()


class Number(IntEnum, type_key="tests.tying.Number"):
    """Members with payload."""

    one = 1


@pytest.fixture(scope="module", autouse=True)
def give_type_back() -> Any:
    yield
    core._rollback_py_class(Edges.__tvm_ffi_type_info__)


MAKERS = {
    "reflected": lambda: testing.TestObjectBase(),
    "reflected with fields of any kind": lambda: Edges(1, tvm_ffi.Array([])),
    "Python-defined": lambda: Node(3),
    "Python-defined below C++": lambda: Derived(),
    "Python-defined with a dict": lambda: Open(3),
}
HOLDERS = {
    "Python-defined field": (lambda x: Node(child=x), lambda h: h.child),
    "field of any value": (lambda x: Node(anything=x), lambda h: h.anything),
    "list in a field": (lambda x: Node(items=[x]), lambda h: h.items[0]),
    "field below C++": (lambda x: Derived(child=x), lambda h: h.child),
    "reflected field": (lambda x: Edges(x, tvm_ffi.Array([])), lambda h: h.v_any),
    "container": (lambda x: tvm_ffi.Array([x]), lambda h: h[0]),
}


@pytest.fixture(params=MAKERS.values(), ids=list(MAKERS))
def made(request: pytest.FixtureRequest) -> Any:
    return [request.param()]


@pytest.fixture(params=HOLDERS.values(), ids=list(HOLDERS))
def way(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_one_wrapper_per_object(made: list[Any], way: Any) -> None:
    keep, fetch = way
    holder = keep(made[0])
    assert fetch(holder) is made[0]
    assert fetch(holder) is fetch(holder)
    assert testing.echo(fetch(holder)) is made[0]


def test_identity_outlives_the_last_reference(made: list[Any], way: Any) -> None:
    keep, fetch = way
    holder = keep(made[0])
    before, watch = id(made[0]), weakref.ref(made[0])
    made.clear()
    for _ in range(3):
        collect()
        assert id(fetch(holder)) == before
        assert watch() is fetch(holder)


def test_a_weak_reference_follows_the_object(made: list[Any], way: Any) -> None:
    keep, fetch = way
    holder = keep(made[0])
    deaths = watch_death(made[0])
    made.clear()
    collect()
    assert deaths == []
    assert fetch(holder) is not None
    del holder
    collect()
    assert deaths == [True]


def test_state_survives_drop_and_refetch(way: Any) -> None:
    keep, fetch = way
    obj = Open(1)
    obj.note = {"deep": ["state"]}
    holder = keep(obj)
    del obj
    collect()
    fetch(holder).more = 2
    collect()
    assert vars(fetch(holder)) == {"note": {"deep": ["state"]}, "more": 2}
    assert type(fetch(holder)) is Open


@pytest.mark.parametrize("member", [Member.a, Number.one])
def test_enum_members_are_the_same_object_everywhere(member: Any, way: Any) -> None:
    keep, fetch = way
    assert fetch(keep(member)) is member
    assert fetch(copy.deepcopy(keep(member))) is member
    assert fetch(pickle.loads(pickle.dumps(tvm_ffi.Array([keep(member)])))[0]) is member


# ---- cycles -------------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", [Node, Derived, Open])
def test_two_objects_that_refer_to_each_other_are_collected(cls: Any) -> None:
    a, b = cls(), cls()
    deaths = [watch_death(a), watch_death(b)]
    a.child, b.child = b, a
    assert a.child.child is a
    del a, b
    collect()
    assert deaths == [[True], [True]]


def test_an_object_that_refers_to_itself_is_collected() -> None:
    for link in (
        lambda n: setattr(n, "child", n),
        lambda n: setattr(n, "anything", n),
        lambda n: n.items.append(n),
        lambda n: n.items.append(tvm_ffi.Map({"k": n})),
        lambda n: setattr(n, "anything", lambda: n),
        lambda n: setattr(n, "anything", [n]),
    ):
        node = Node()
        deaths = watch_death(node)
        link(node)
        del node
        collect()
        assert deaths == [True]


def test_a_long_ring_is_collected() -> None:
    first = Node(0)
    deaths = watch_death(first)
    last = first
    for i in range(1000):
        last.child = Node(i)
        last = last.child
    last.child = first
    del first, last
    collect()
    assert deaths == [True]


@pytest.mark.skipif(FREE_THREADED, reason="without the GIL every collection is a full one")
def test_dormant_wrappers_that_survive_are_shown_to_full_collections_only() -> None:
    root = Node(child=Node(1, Node(2)))
    assert root.child.child.value == 2
    collect()

    def visible() -> int:
        return sum(type(obj) is Node for obj in gc.get_objects())

    alone = visible()
    kept = [root.child, root.child.child]
    assert visible() == alone + 2
    del kept
    gc.collect(0)  # the first one looks at them
    assert visible() == alone
    gc.collect()
    assert visible() == alone
    assert root.child.child.value == 2


def test_a_ring_through_python_state_is_collected() -> None:
    obj = Open()
    deaths = watch_death(obj)
    obj.holder = tvm_ffi.Array([obj])
    del obj
    collect()
    assert deaths == [True]


def test_a_ring_that_something_holds_stays() -> None:
    a, b = Open(1), Open(2)
    a.child, b.child = b, a
    a.note = "kept"
    deaths = watch_death(a)
    holder = tvm_ffi.Array([b])
    del a, b
    collect()
    assert deaths == []
    assert holder[0].child.note == "kept"
    assert holder[0].child.child is holder[0]
    del holder
    collect()
    assert deaths == [True]


# ---- copies -------------------------------------------------------------------------------------


def test_copies_keep_identity_inside_the_graph() -> None:
    shared = Node(1)
    root = Node(0, shared, [shared, Node(2)], {"k": shared})
    for result in (
        copy.deepcopy(root),
        pickle.loads(pickle.dumps(root)),
    ):
        assert result.child is not shared
        assert result.child is result.items[0]
        assert result.anything["k"] is result.child
        assert result.items[1] is not result.child
    shallow = copy.copy(root)
    assert shallow.child is shared
    assert shallow.items is root.items


def test_a_deep_copy_of_a_ring_is_a_ring() -> None:
    a, b = Node(1), Node(2)
    a.child, b.child = b, a
    result = copy.deepcopy(a)
    assert result is not a
    assert result.child.child is result
    assert [result.value, result.child.value] == [1, 2]
    deaths = watch_death(result)
    del result
    a.child = None
    collect()
    assert deaths == [True]


def test_constructed_objects_use_the_allocator_of_the_frontend() -> None:
    """Their tie lies in front of them: nothing is adopted."""
    before = core._tie_stats()["adopted"]
    kept = [make() for make in MAKERS.values()]
    kept += [copy.copy(obj) for obj in kept]
    kept += [copy.deepcopy(kept[2])]
    assert core._tie_stats()["adopted"] == before


# ---- nothing is kept, nothing torn --------------------------------------------------------------


def test_churn_leaves_memory_flat() -> None:
    def churn() -> None:
        for i in range(scaled(20_000)):
            node = Node(i, Node(i + 1))
            node.child = node if i % 3 == 0 else None
        gc.collect()

    assert grows_every_time(churn, slack=200_000) == []


def test_threads_see_one_wrapper(fast_switching: None) -> None:
    holder = Node(child=Node(123))

    def body(_: int) -> None:
        for _ in range(scaled(2000)):
            a = holder.child
            b = holder.child
            assert a is b
            assert a.value == 123

    run_threads(8, body)


def test_threads_may_define_classes_at_once() -> None:
    made: list[Any] = []
    lock = threading.Lock()

    def body(i: int) -> None:
        for j in range(10):
            namespace = {
                "__annotations__": {"x": int, "other": "Late | None"},
                "__module__": __name__,
            }
            cls = py_class(f"tests.tying.threads.C{i}_{j}")(
                type(tvm_ffi.Object)("Late", (tvm_ffi.Object,), namespace)
            )
            with lock:
                made.append(cls(i, None))

    run_threads(4, body)
    assert len(made) == 40
    assert {obj.x for obj in made} == set(range(4))


def test_assignment_replaces_the_tied_object() -> None:
    outer = Node(child=Node(1))
    before = id(outer.child)
    collect()
    assert id(outer.child) == before
    replacement = Node(2)
    outer.child = replacement
    assert outer.child is replacement
    assert outer.child.value == 2


# ---- random graphs against a model --------------------------------------------------------------


class Graph:
    """Objects in C++ and the same graph in plain Python; only roots are held."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.links: dict[int, dict[str, Any]] = {}
        self.roots: dict[int, Any] = {}
        self.serial = 0

    def add(self) -> None:
        cls = self.random.choice([Node, Node, Open])
        self.serial += 1
        node = cls(self.serial)
        if cls is Open:
            node.tag = self.serial
        self.links[self.serial] = {"child": None}
        self.roots[self.serial] = node

    def reach(self, steps: int) -> Any:
        """Walk from a random root; returns the object and what the model says it is."""
        number = self.random.choice(list(self.roots))
        node = self.roots[number]
        for _ in range(steps):
            if self.links[number]["child"] is None:
                break
            number, node = self.links[number]["child"], node.child
        return number, node

    def link(self) -> None:
        number, node = self.reach(self.random.randrange(4))
        other, target = self.reach(self.random.randrange(4))
        node.child = target
        self.links[number]["child"] = other

    def unlink(self) -> None:
        number, node = self.reach(self.random.randrange(4))
        node.child = None
        self.links[number]["child"] = None

    def drop(self) -> None:
        if len(self.roots) > 2:
            del self.roots[self.random.choice(list(self.roots))]

    def check(self) -> set[int]:
        """Compare everything that can be reached; returns the numbers reached."""
        seen: set[int] = set()
        for start, obj in self.roots.items():
            number, node = start, obj
            while number is not None and number not in seen:
                seen.add(number)
                assert node.value == number
                if type(node) is Open:
                    assert node.tag == number
                number, node = self.links[number]["child"], node.child
                assert (number is None) == (node is None)
        return seen


@pytest.mark.parametrize("seed", range(20))
def test_random_graphs_lose_and_keep_nothing(seed: int) -> None:
    collect()
    before = core._tie_stats()
    graph = Graph(seed)
    graph.add()
    graph.add()
    for _ in range(scaled(600)):
        action = graph.random.choices(
            [graph.add, graph.link, graph.unlink, graph.drop, gc.collect],
            weights=[4, 6, 1, 4, 0.3],
        )[0]
        action()
    collect()
    reached = graph.check()
    del action
    collect()
    now = core._tie_stats()
    wrappers = now["live"] + now["dormant"] - before["live"] - before["dormant"]
    # Lists in fields have no wrapper here: every wrapper left is a node that can be reached.
    assert wrappers == len(reached)
    graph.roots.clear()
    collect()
    now = core._tie_stats()
    assert now["live"] + now["dormant"] == before["live"] + before["dormant"]
