# SPDX-License-Identifier: Apache-2.0
"""What classes say about their pickles, picklers that take turns, and copies that share."""

from __future__ import annotations

import copy
import copyreg
import gc
import io
import itertools
import pickle
import random
import weakref
from typing import Any

import numpy
import pytest
import tvm_ffi
from support import scaled
from tvm_ffi import core, testing, travel
from tvm_ffi.dataclasses import py_class

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


@py_class("tests.hooks.Node")
class Node(tvm_ffi.Object):
    """A graph can be built of it."""

    value: Any = None
    child: tvm_ffi.Object | None = None


class Plain(Node):
    """Carries attributes, without a hook."""

    __slots__ = ("__dict__",)


class ByState(Node):
    """Adds to the state of the base class."""

    __slots__ = ("__dict__",)

    def __getstate__(self) -> Any:
        return {**super().__getstate__(), "extra": "added"}

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        self.extra = state["extra"]


class ByOwnState(Node):
    """Has a state of its own, and the base class restores it."""

    __slots__ = ("__dict__",)

    def __getstate__(self) -> Any:
        return {"extra": "added", **self.__dict__}


class BySetState(Node):
    """Looks at the state of the base class when it arrives."""

    __slots__ = ("__dict__",)

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        self.extra = "added"


class ByReduce(Node):
    """Adds to what the base class returns."""

    __slots__ = ("__dict__",)

    def __reduce__(self) -> Any:
        make, arguments, state = super().__reduce__()
        state["dict"] = {**state.get("dict", {}), "extra": "added"}
        return (make, arguments, state)


class ByReduceEx(Node):
    """Adds to what the base class returns."""

    __slots__ = ("__dict__",)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return (add_extra, (super().__reduce_ex__(protocol)[1],))


class ByReduceOfEx(Node):
    """Calls the other of the two methods."""

    __slots__ = ("__dict__",)

    def __reduce_ex__(self, protocol: Any) -> Any:
        make, arguments, state = super().__reduce__()
        state["dict"] = {**state.get("dict", {}), "extra": "added"}
        return (make, arguments, state)


def add_extra(arguments: Any) -> Any:
    made = travel._pick(*arguments)
    made.extra = "added"
    return made


class Made(Node):
    """Is made anew, without the base class."""

    __slots__ = ("__dict__",)

    def __reduce__(self) -> Any:
        return (remake, (self.value, self.child, dict(self.__dict__)))


def remake(value: Any, child: Any, attributes: Any) -> Any:
    made = Made(value, child)
    made.__dict__.update(attributes, extra="added")
    return made


class Registered(Node):
    """Has a function in the table of `copyreg`."""

    __slots__ = ("__dict__",)


def reduce_registered(obj: Any) -> Any:
    return (remake_registered, (obj.value, obj.child, dict(obj.__dict__)))


def remake_registered(value: Any, child: Any, attributes: Any) -> Any:
    made = Registered(value, child)
    made.__dict__.update(attributes, extra="added")
    return made


copyreg.pickle(Registered, reduce_registered)  # type: ignore[arg-type]


@py_class("tests.hooks.Direct")
class Direct(tvm_ffi.Object):
    """A class that C++ gives its objects, with a hook."""

    value: Any = None
    child: tvm_ffi.Object | None = None
    extra: Any = None

    def __getstate__(self) -> Any:
        return {**super().__getstate__(), "extra": "added"}

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        self.extra = state["extra"]


STATE_HOOKS = [ByState, ByOwnState, BySetState, Direct]
REDUCE_HOOKS = [ByReduce, ByReduceEx, ByReduceOfEx, Made, Registered]
HOOKS = [*STATE_HOOKS, *REDUCE_HOOKS]


def again(value: Any, protocol: int = 5) -> Any:
    return pickle.loads(pickle.dumps(value, protocol))


# ---- hooks --------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("cls", HOOKS)
def test_a_hook_keeps_what_is_below(cls: Any, protocol: int) -> None:
    below = Plain(3)
    below.note = "of a part that C++ holds"
    obj = cls(tvm_ffi.from_dlpack(numpy.arange(3.0)), below)
    if cls is not Direct:
        obj.mine = [below]
    loaded, same = again([obj, below], protocol)
    assert type(loaded) is cls
    assert loaded.extra == "added"
    assert loaded.child is same
    assert (type(same), same.note) == (Plain, "of a part that C++ holds")
    assert list(numpy.from_dlpack(loaded.value)) == [0, 1, 2]
    if cls is not Direct:
        assert loaded.mine[0] is same


def instance_in(part: Any) -> Any:
    if isinstance(part, tvm_ffi.Array):
        assert part[0] is part[1]
        return part[0]
    if isinstance(part, tvm_ffi.Map):
        return part["key"]
    if isinstance(part, tvm_ffi.List):
        return part[0].child.child
    return part.child if type(part) is Node else part


@pytest.mark.parametrize("cls", HOOKS)
def test_an_instance_with_a_hook_arrives_once(cls: Any) -> None:
    obj = cls("text")
    through = [
        Node(1, obj),
        tvm_ffi.Array([obj, obj]),
        tvm_ffi.Map({"key": obj}),
        tvm_ffi.List([Node(2, Node(3, obj))]),
    ]
    for order in itertools.permutations([*through, obj], 3):
        for loaded in (again(list(order)), again(tvm_ffi.Array(order))):
            found = set()
            for part in map(instance_in, loaded):
                assert (type(part), part.value, part.extra) == (cls, "text", "added")
                found.add(id(part))
            assert len(found) == 1


def test_instances_that_only_cpp_holds_are_asked() -> None:
    for cls in HOOKS:
        box = tvm_ffi.List([cls(1)])
        gc.collect()
        loaded = again(box)
        assert (type(loaded[0]), loaded[0].extra) == (cls, "added")
    # Also where Python never saw the object.
    make = tvm_ffi.get_global_func("ffi.DeepCopy")
    loaded = again(make(tvm_ffi.Array([Direct(5)])))
    assert (loaded[0].value, loaded[0].extra) == (5, "added")


@pytest.mark.parametrize("cls", HOOKS)
def test_rings_through_an_instance_with_a_hook(cls: Any) -> None:
    obj = cls("ring")
    obj.child = Node(1, obj)
    if cls in (Made, Registered):  # what makes it needs it: as in every pickle
        with pytest.raises(RecursionError):
            pickle.dumps(obj)
        obj.child = None
        return
    for root in (obj, obj.child, [obj.child, obj]):
        loaded = again(root)
        found = loaded[1] if root.__class__ is list else loaded
        found = found if type(found) is cls else found.child
        assert (type(found), found.extra) == (cls, "added")
        assert found.child.child is found
        died = weakref.ref(found)
        found.child = None
        del loaded, found
        gc.collect()
        assert died() is None
    obj.child = None


@pytest.mark.parametrize("cls", STATE_HOOKS)
def test_rings_of_instances_with_a_hook(cls: Any) -> None:
    first, second = cls(1), cls(2)
    first.child, second.child = second, first
    loaded = again(first)
    assert (loaded.extra, loaded.child.extra) == ("added", "added")
    assert loaded.child.child is loaded
    loaded.child = first.child = None


@pytest.mark.parametrize("cls", STATE_HOOKS)
def test_a_long_chain_of_instances_with_a_hook(cls: Any) -> None:
    head = None
    for i in range(scaled(20_000)):
        head = cls(i, head)
    loaded = again(head)
    assert (loaded.value, loaded.child.extra) == (head.value, "added")


class Nothing(Node):
    """Has no state of its own."""

    __slots__ = ("__dict__",)

    def __getstate__(self) -> Any:
        return None


class NothingReduced(Nothing):
    """The same by the other way."""

    def __reduce__(self) -> Any:
        return super().__reduce__()


@pytest.mark.parametrize("cls", [Nothing, NothingReduced])
def test_a_state_that_is_none(cls: Any) -> None:
    obj = cls(1, Node(2))
    obj.note = "left behind"
    loaded, below = again([obj, obj.child])
    assert (type(loaded), loaded.value) == (cls, 1)
    assert loaded.child is below
    assert not hasattr(loaded, "note")
    assert copy.deepcopy(obj).child.value == 2


class Refuses(Node):
    """Cannot be pickled."""

    def __reduce__(self) -> Any:
        raise TypeError("a class that refuses")


class HoldsFunction(Node):
    """Its hook leaves out what cannot travel."""

    def __reduce__(self) -> Any:
        return (HoldsFunction, (self.value,))


def test_hooks_that_raise_or_leave_out() -> None:
    for value in (Refuses(1), Node(1, Refuses(1)), tvm_ffi.Array([Refuses(1)])):
        with pytest.raises(TypeError, match="a class that refuses"):
            pickle.dumps(value)
    assert again(Node(1, HoldsFunction(2, tvm_ffi.convert(lambda: 1)))).child.value == 2


def test_the_state_of_the_base_class_is_text_for_people() -> None:
    node = Node(1, Node(2))
    state = node.__getstate__()
    assert isinstance(state["handle"], str)
    made = core._new_object(Node)
    made.__setstate__(state)
    assert made.child.value == 2
    made = core._new_object(Node)
    made.__setstate__({"handle": str(state["handle"])})
    assert made.child.value == 2
    # Where there is no text, pickles work all the same.
    obj = ByReduce(1, tvm_ffi.get_global_func("testing.echo"))
    assert again(obj).child is obj.child


def test_the_state_of_one_instance_for_another() -> None:
    node = Node(1, Node(2))
    plain = Plain(1, node)
    plain.note = "note"
    state, same = again([plain.__getstate__(), plain])
    assert (type(same), same.note, same.child.value) == (Plain, "note", 1)
    made = core._new_object(Plain)
    made.__setstate__(state)
    assert (made.note, made.child.child.value) == ("note", 2)
    state, again_ = again([node.__getstate__(), node.__getstate__()])
    first, second = core._new_object(Node), core._new_object(Node)
    first.__setstate__(state)
    second.__setstate__(again_)
    assert first.child.value == second.child.value == 2


def test_errors_arrive_once() -> None:
    error = testing.echo(core.Error("ValueError", "what", "where"))
    first, second = again([error, tvm_ffi.Array([error])])
    assert (first.kind, first.message, first.backtrace) == ("ValueError", "what", "where")
    assert first.same_as(second[0])


# ---- classes that do not fit --------------------------------------------------------------------


def test_a_class_that_does_not_fit() -> None:
    data = pickle.dumps(Plain(1))
    name = b"test_travel_hooks"
    assert data.count(b"Plain") == 1
    for other in (b"Wrong", b"Wrung"):
        with pytest.raises(TypeError, match="is for type `.*`, not `tests.hooks.Node`"):
            pickle.loads(data.replace(b"Plain", other))
    assert name in data
    text = Node(1).__getstate__()["handle"]
    for cls in (testing.TestIntPair, tvm_ffi.Array, Direct):
        made = core._new_object(cls)
        with pytest.raises(TypeError, match="is for type `.*`, not `tests.hooks.Node`"):
            made.__setstate__({"handle": str(text)})
        assert made.__chandle__() == 0
    made = core._new_object(tvm_ffi.Object)  # a class above does
    made.__setstate__({"handle": str(text)})
    assert made.__chandle__() != 0


class Wrong(testing.TestIntPair):
    """Another type."""


class Wrung(tvm_ffi.Array):
    """Another type, one of C++."""


# ---- picklers in turns --------------------------------------------------------------------------


def test_picklers_in_turns() -> None:
    rng = random.Random(11)
    for count in (2, 3, 5):
        nodes: list[Any] = [Plain(0)]
        for i in range(1, 12):
            nodes.append(Plain(i, rng.choice(nodes)))
            nodes[-1].note = rng.choice(nodes)
        files = [io.BytesIO() for _ in range(count)]
        picklers = [
            (pickle.Pickler if i % 2 else pickle._Pickler)(file, 5)  # type: ignore[attr-defined]
            for i, file in enumerate(files)
        ]
        dumped: list[list[int]] = [[] for _ in range(count)]
        for _ in range(scaled(60)):
            i, k = rng.randrange(count), rng.randrange(len(nodes))
            picklers[i].dump([nodes[k], nodes[k].child])
            dumped[i].append(k)
            if rng.randrange(10) == 0:
                again(rng.choice(nodes))  # and another that ends
        for file, numbers in zip(files, dumped, strict=True):
            unpickler = pickle.Unpickler(io.BytesIO(file.getvalue()))
            seen: dict[int, Any] = {}
            for k in numbers:
                loaded, child = unpickler.load()
                assert (loaded.value, loaded.child is child) == (k, True)
                todo = [loaded]
                while todo:
                    node = todo.pop()
                    if node is None:
                        continue
                    assert seen.setdefault(node.value, node) is node
                    todo.append(node.child)
                    if node.value:
                        assert seen.setdefault(node.note.value, node.note) is node.note
                        assert node.note.value == nodes[node.value].note.value


def test_picklers_in_turns_inside_one_dump() -> None:
    shared = Node("shared")
    inner_file = io.BytesIO()
    inner = pickle.Pickler(inner_file, 5)

    class Between:
        def __reduce__(self) -> Any:
            inner.dump([shared, Node(1, shared)])
            return (int, (1,))

    loaded = again([shared, Between(), Node(2, shared), Between(), shared, Node(3, shared)])
    assert loaded[2].child is loaded[0] is loaded[4] is loaded[5].child
    unpickler = pickle.Unpickler(io.BytesIO(inner_file.getvalue()))
    first, second = unpickler.load(), unpickler.load()
    assert first[0] is first[1].child is second[0] is second[1].child


def test_a_pickler_with_a_cleared_memo_writes_anew() -> None:
    node = Node(1)
    file = io.BytesIO()
    pickler = pickle.Pickler(file, 5)
    for i in range(3):
        node.value = i
        pickler.dump([node, Node(9, node)])
        pickler.clear_memo()
    file.seek(0)
    for i in range(3):
        first, second = pickle.load(file)
        assert (first.value, second.child is first) == (i, True)


def test_nothing_is_left_of_a_pickle() -> None:
    def alive() -> int:
        return sum(known() is not None for known in travel._writers.recent)

    gc.collect()
    before = alive()
    node = Plain(1)
    for _ in range(3):
        pickle.dumps(node)
        with pytest.raises(TypeError):
            pickle.dumps([node, Node(1, node), weakref.ref(node)])
    node.__reduce_ex__(5)
    gc.collect()
    assert travel._writers.first_guess(travel._Part(node)).writer.graph is not None
    assert alive() <= before + 1
    died = weakref.ref(node)
    del node
    gc.collect()
    assert died() is None


# ---- copies -------------------------------------------------------------------------------------


def test_deep_copies_in_one_call_share_what_they_shared() -> None:
    shared = Plain("shared")
    shared.note = ["text"]
    ring = Node("ring")
    ring.child = ring
    first, second, both = Node(1, shared), Plain(2, shared), tvm_ffi.List([shared, ring])
    second.note = shared
    a, b, c, d, e = copy.deepcopy([first, second, both, shared, ring])
    assert a.child is b.child is b.note is c[0] is d
    assert d is not shared
    assert c[1] is e is e.child
    assert (d.value, d.note) == ("shared", ["text"])
    assert d.note is not shared.note
    ring.child = e.child = None
    # Each call is a copy of its own.
    assert copy.deepcopy(first).child is not a.child


def test_a_deep_copy_that_fails_leaves_the_others() -> None:
    good = Node("good")
    bad = Node(good, tvm_ffi.convert(lambda: 1))
    memo: dict[int, Any] = {}
    before = copy.deepcopy(good, memo)
    for _ in range(2):
        with pytest.raises(RuntimeError):
            copy.deepcopy(bad, memo)
    assert copy.deepcopy(Node(1, good), memo).child is before
    other = Node("other")
    bad = Node(other, tvm_ffi.convert(lambda: 1))
    with pytest.raises(RuntimeError):
        copy.deepcopy(bad, memo)
    first, second = copy.deepcopy([Node(1, other), other], memo)
    assert (first.child is second, second.value) == (True, "other")
