# SPDX-License-Identifier: Apache-2.0
"""P8: the promises hold with threads racing on the same objects.

On a build with the GIL these run with the shortest switch interval; on a free-threaded build the
same code races for real.
"""

from __future__ import annotations

import copy
import gc
import pickle
import random
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import tvm_ffi
from support import (
    FREE_THREADED,
    NativeClient,
    Stateful,
    collect,
    make_edges,
    make_holder,
    run_python,
    run_threads,
    scaled,
    wait_until,
)
from tvm_ffi import core, testing, tying
from tvm_ffi.dataclasses import py_class

pytestmark = pytest.mark.usefixtures("fast_switching")
ITERATIONS = scaled(20_000 if FREE_THREADED else 2000)
THREADS = [2, 4, 8]


@pytest.mark.parametrize("threads", [2, 4, 8, 16])
def test_p8_fetch_and_drop_of_one_object(threads: int) -> None:
    holder = make_holder(testing.TestObjectBase(123))

    def body(_: int) -> None:
        for _ in range(ITERATIONS):
            first = holder.value
            second = holder.value
            assert first is second
            assert first.v_i64 == 123
            del first, second

    run_threads(threads, body)
    watcher = weakref.ref(holder.value)
    assert watcher() is holder.value


@pytest.mark.parametrize("threads", THREADS)
def test_p8_state_survives_racing_drops(threads: int) -> None:
    obj = Stateful(1)
    obj.note = "kept"
    holder = make_holder(obj)
    del obj

    def body(_: int) -> None:
        for _ in range(ITERATIONS):
            assert holder.value.note == "kept"

    run_threads(threads, body)
    assert type(holder.value) is Stateful


@pytest.mark.parametrize("threads", THREADS)
def test_p8_elements_of_one_container(threads: int) -> None:
    box = tvm_ffi.Array([testing.TestIntPair(i, -i) for i in range(7)])

    def body(seed: int) -> None:
        order = random.Random(seed)
        for _ in range(ITERATIONS):
            i = order.randrange(7)
            pair = box[i]
            assert pair is box[i]
            assert (pair.a, pair.b) == (i, -i)

    run_threads(threads, body)


@pytest.mark.parametrize("threads", THREADS)
def test_p8_weak_use_races_with_drops(threads: int) -> None:
    holder = make_holder(testing.TestObjectBase(5))
    watcher = weakref.ref(holder.value)
    answered = [0] * threads

    def body(i: int) -> None:
        for step in range(ITERATIONS):
            if (step + i) % 2:
                obj = watcher()
                if obj is None:
                    assert FREE_THREADED, "with the GIL the reference always answers"
                    continue
                answered[i] += 1
            else:
                obj = holder.value
            assert obj.v_i64 == 5
            assert obj is holder.value

    run_threads(threads, body)
    assert min(answered) > 0


@pytest.mark.parametrize("threads", THREADS)
def test_p8_stores_race_with_fetches(threads: int) -> None:
    holder = make_holder(testing.TestObjectBase(0))

    def body(i: int) -> None:
        for step in range(ITERATIONS // 2):
            if i % 2:
                holder.value = testing.TestObjectBase(step)
            else:
                value = holder.value
                assert value.v_i64 >= 0
                assert type(value) is testing.TestObjectBase

    run_threads(threads, body)


@pytest.mark.parametrize("threads", THREADS)
def test_p8_moves_race_with_fetches(threads: int) -> None:
    box = tvm_ffi.Array([testing.TestIntPair(1, 2)])

    def body(i: int) -> None:
        for _ in range(ITERATIONS // 2):
            pair = box[0]
            if i % 2 == 0:
                assert pair.same_as(pair)
                continue
            try:
                assert testing.echo(pair._move()).b == 2
            except (ValueError, ReferenceError):
                continue  # another thread moved the object out of the shared wrapper first

    run_threads(threads, body)
    assert box[0].a == 1
    assert box[0] is box[0]


@pytest.mark.parametrize("threads", THREADS)
def test_p8_construction_is_independent(threads: int) -> None:
    def body(i: int) -> None:
        for step in range(ITERATIONS):
            pair = testing.TestIntPair(i, step)
            assert testing.echo(pair) is pair
            assert (pair.a, pair.b) == (i, step)

    run_threads(threads, body)


@pytest.mark.parametrize("threads", THREADS)
def test_p8_callbacks(threads: int) -> None:
    callback = tvm_ffi.convert(lambda x: x)

    def body(i: int) -> None:
        for _ in range(ITERATIONS // 2):
            pair = testing.TestIntPair(i, i)
            assert testing.apply(callback, pair) is pair

    run_threads(threads, body)


def test_p8_the_collector_races_with_everything() -> None:
    stop = threading.Event()
    obj = Stateful(1)
    obj.me = obj
    holder = make_edges(obj, make_holder(testing.TestObjectBase(2)))
    del obj

    def body(i: int) -> None:
        if i == 0:
            while not stop.is_set():
                gc.collect()
            return
        try:
            for _ in range(ITERATIONS // 4):
                assert holder.v_any.me is holder.v_any
                assert holder.v_obj.value.v_i64 == 2
                ring = Stateful()
                ring.link = tvm_ffi.Array([ring])
                del ring
        finally:
            if i == 1:
                stop.set()

    run_threads(4, body)
    assert holder.v_any.me is holder.v_any


@pytest.mark.parametrize("threads", THREADS)
def test_p8_cpp_drops_race_with_python_drops(threads: int, client: NativeClient) -> None:
    before = tying.stats()
    assert client.library.start_releasing() == 0
    try:

        def body(i: int) -> None:
            for step in range(ITERATIONS // 4):
                pair = testing.TestIntPair(i, step)
                client.hold(pair)
                watcher = weakref.ref(pair)
                assert pair.b == step
                del pair
                promoted = watcher()
                if promoted is not None:
                    try:
                        assert promoted.b == step
                    except ReferenceError:
                        pass  # its object died on the other thread before the first use

        run_threads(threads, body)
    finally:
        assert client.library.stop_releasing() == 0
        client.release_all()
    collect()
    assert wait_until(lambda: tying.stats()["live"] <= before["live"] + 2)
    assert wait_until(lambda: tying.stats()["dormant"] <= before["dormant"])


@pytest.mark.parametrize("threads", THREADS)
def test_p8_list_mutation_keeps_the_list_whole(threads: int) -> None:
    items = tvm_ffi.List()

    def body(i: int) -> None:
        for step in range(ITERATIONS // 4):
            items.append(i)
            if step % 3 == 0:
                items.pop()
            assert all(0 <= item < threads for item in items[:3])

    run_threads(threads, body)
    rounds = ITERATIONS // 4
    assert len(items) == threads * (rounds - (rounds + 2) // 3)


@pytest.mark.parametrize("threads", THREADS)
def test_p8_dict_mutation_keeps_the_dict_whole(threads: int) -> None:
    table = tvm_ffi.Dict({-1: -1})

    def body(i: int) -> None:
        for step in range(max(16, ITERATIONS // 16)):
            key = i + threads * step
            table[key] = testing.TestIntPair(key, i)
            assert table[key].a == key
            assert -1 in table
            if step % 8 == 0:
                assert all(isinstance(known, int) for known in table)
            if step >= 8:
                del table[key - 8 * threads]

    run_threads(threads, body)
    assert len(table) == 1 + 8 * threads


@py_class("test_tying_p8.Key")
class Key(tvm_ffi.Object):
    """A key whose hooks let other threads run in the middle of a search."""

    x: int

    def __any_hash__(self) -> int:
        return self.x % 16

    def __any_equal__(self, other: Key) -> bool:
        return self.x == other.x


@pytest.mark.parametrize("key", [int, Key], ids=["plain keys", "keys with hooks"])
def test_p8_all_threads_get_one_default(key: Callable[[int], Any]) -> None:
    for _ in range(4):
        table = tvm_ffi.Dict()
        seen: list[list[int]] = [[] for _ in range(4)]

        def body(i: int, table: Any = table, seen: Any = seen) -> None:
            seen[i] = [table.setdefault(key(n), i) for n in range(ITERATIONS // 16)]

        run_threads(4, body)
        assert seen == [list(table.values())] * 4


@pytest.mark.parametrize("key", [int, Key], ids=["plain keys", "keys with hooks"])
def test_p8_items_are_taken_until_none_is_left(key: Callable[[int], Any]) -> None:
    count = ITERATIONS // 8
    table = tvm_ffi.Dict({key(n): n for n in range(count)})
    taken: list[int] = []

    def body(_: int) -> None:
        with pytest.raises(KeyError, match="this Dict is empty"):
            while True:
                taken.append(table.popitem()[1])
        assert len(table) == 0

    run_threads(4, body)
    assert sorted(taken) == list(range(count))


@pytest.mark.parametrize(
    "look",
    [
        repr,
        pickle.dumps,
        copy.deepcopy,
        hash,
        tvm_ffi.structural_hash,
        lambda box: tvm_ffi.structural_equal(box, box),
        lambda box: tvm_ffi.serialization.to_json_graph_str(box),
    ],
    ids=["repr", "pickle", "deepcopy", "hash", "structural hash", "structural equal", "JSON"],
)
def test_p8_looking_into_a_container_that_changes(look: Callable[[Any], object]) -> None:
    """What walks a structure in C++ keeps the changes of other threads out."""
    items, table = tvm_ffi.List(), tvm_ffi.Dict()

    def body(i: int) -> None:
        for step in range(scaled(1000)):
            if i % 2:
                look(items)
                look(table)
                continue
            for key in range(50):
                items.append(f"text {key} of thread {i}, long enough for a string of its own")
                table[key] = f"text {step} of thread {i}, long enough for a string of its own"
            items.clear()
            table.clear()

    run_threads(4, body)


@pytest.mark.parametrize("threads", THREADS)
def test_p8_an_iterator_shared_by_threads(threads: int) -> None:
    count = scaled(2000)
    for box in (
        tvm_ffi.Array([testing.TestIntPair(i, i) for i in range(count)]),
        tvm_ffi.List([testing.TestIntPair(i, i) for i in range(count)]),
        tvm_ffi.Map({i: testing.TestIntPair(i, i) for i in range(count)}).values(),
        tvm_ffi.Dict({i: testing.TestIntPair(i, i) for i in range(count)}).values(),
    ):
        shared = iter(box)
        seen: list[int] = []
        run_threads(threads, lambda _, s=shared, seen=seen: seen.extend(p.a for p in s))
        assert sorted(seen) == list(range(count))


@pytest.mark.parametrize("threads", THREADS)
def test_p8_a_field_is_never_torn(threads: int) -> None:
    holder = make_edges("first text, long enough for a string of its own", None)

    def body(i: int) -> None:
        for step in range(ITERATIONS // 8):
            if i % 2:
                holder.v_any = f"text {step} of thread {i}, long enough for a string of its own"
            else:
                assert holder.v_any.endswith("long enough for a string of its own")

    run_threads(threads, body)


@pytest.mark.parametrize("threads", THREADS)
def test_p8_handles_move_while_others_use_them(threads: int) -> None:
    """One wrapper, emptied and filled again, under the hands of threads that use its object."""
    shared = testing.TestIntPair(1, 2)

    def body(i: int) -> None:
        for _ in range(ITERATIONS // 4):
            try:
                if i == 0:
                    spare = testing.TestIntPair.__new__(testing.TestIntPair)
                    spare.__move_handle_from__(shared)
                    shared.__move_handle_from__(spare)
                elif i % 2:
                    assert testing.echo(shared).b == 2
                else:
                    assert shared.a == 1
                    assert tvm_ffi.Array([shared])[0].b == 2
            except ValueError as error:
                assert "moved from" in str(error)

    run_threads(threads, body)


@pytest.mark.parametrize("threads", THREADS)
def test_p8_a_function_moves_while_others_call_it(threads: int) -> None:
    shared = tvm_ffi.convert(lambda x: x + 1)

    def body(i: int) -> None:
        for _ in range(ITERATIONS // 8):
            try:
                if i == 0:
                    spare = tvm_ffi.Function.__new__(tvm_ffi.Function)
                    spare.__move_handle_from__(shared)
                    shared.__move_handle_from__(spare)
                else:
                    assert shared(1) == 2
            except ValueError as error:
                assert "moved from" in str(error)

    run_threads(threads, body)


def test_p8_first_fetch_of_a_new_object_by_many_threads() -> None:
    for _ in range(scaled(200)):
        box = tvm_ffi.convert([[1, 2], [3]])
        seen: list[object] = []
        run_threads(4, lambda _, box=box, seen=seen: seen.append(box[0]))
        assert all(obj is seen[0] for obj in seen)


def test_p8_first_object_of_a_new_type_by_many_threads() -> None:
    """In a fresh process each time: the class is made at most once in the life of one."""
    code = """
import sys
from support import run_threads
from tvm_ffi import testing
sys.setswitchinterval(1e-6)
seen = []
run_threads(8, lambda _: seen.append(testing.make_unregistered_object()))
assert [obj.v1 for obj in seen] == [41] * 8
print(len({type(obj) for obj in seen}))
"""
    for _ in range(5):
        assert run_python(code) == "1\n"


def test_p8_global_functions_by_many_threads() -> None:
    def body(i: int) -> None:
        for step in range(scaled(200)):
            name = f"tests.p8.{i}.{step}"
            function = tvm_ffi.register_global_func(name, lambda x: x)
            assert tvm_ffi.get_global_func(name) is function
            tvm_ffi.remove_global_func(name)
            assert tvm_ffi.get_global_func(name, allow_missing=True) is None

    run_threads(4, body)


def test_p8_free_threading_is_declared() -> None:
    if not FREE_THREADED:
        pytest.skip("this interpreter has a GIL")
    assert not sys._is_gil_enabled()


@pytest.mark.parametrize("threads", THREADS)
def test_p8_texts_of_shared_descriptors(threads: int) -> None:
    pair = testing.TestIntPair
    field = core.FFIProperty(pair.__dict__["a"].fget, None, True)
    function = tvm_ffi.convert(lambda: None)
    # FieldGetter and FFIProperty have a docstring, a function has a name. A property takes that of
    # its getter when it is initialised.
    shared = [(field, "__doc__"), (field.fget, "__doc__"), (function, "__name__")]
    before = field.fget.__doc__

    def body(thread: int) -> None:
        for i in range(ITERATIONS):
            for obj, name in shared:
                setattr(obj, name, f"text {thread} {i}")
                assert getattr(obj, name).startswith(("text ", "Field "))
            if i % 50 == 0:
                function.__dict__ = {"__name__": "text of another dict"}
                field.__init__(pair.__dict__["a" if thread % 2 else "b"].fget, None, True)

    try:
        run_threads(threads, body)
    finally:
        field.fget.__doc__ = pair.__dict__["a"].fget.__doc__ = before


@pytest.mark.parametrize("threads", THREADS)
def test_p8_referents_during_collections(threads: int) -> None:
    element = testing.TestObjectBase(1)
    objects = tvm_ffi.List([element, tvm_ffi.List([element]), tvm_ffi.Dict({"a": element})])
    keep = [make_edges(objects), tvm_ffi.List([testing.TestObjectBase(2)]), objects, *objects]

    def body(thread: int) -> None:
        for i in range(ITERATIONS // 20):
            if thread == 0 and i % 4 == 0:
                edges = make_edges()
                edges.v_any = tvm_ffi.convert(lambda held=edges: held)
                del edges
                gc.collect()
            for obj in keep:
                assert gc.get_referents(obj)

    run_threads(threads, body)
