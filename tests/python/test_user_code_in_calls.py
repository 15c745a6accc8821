# SPDX-License-Identifier: Apache-2.0
"""Python code that runs in the middle of a call may move or re-initialise anything.

Converting an argument, hooks and callbacks run it. The callee gets the object that was passed, and
keeps it until it returns; whoever comes too late gets a ValueError. Nothing is freed while it is in
use: the junk made meanwhile would take its place.
"""

from __future__ import annotations

import contextlib
import os
import textwrap
import threading
import weakref
from collections.abc import Callable
from typing import Any

import foreign  # type: ignore[import-not-found]
import numpy as np
import pytest
import tvm_ffi
from support import (  # type: ignore[import-not-found]
    NativeClient,
    Stateful,
    run_python,
    use_count,
)
from tvm_ffi.dataclasses import py_class
from tvm_ffi.testing import TestIntPair, apply, echo

TEXT = ["x" * 40] * 6
junk: list[Any] = []


def crowd() -> None:
    """Take the place of whatever was freed just now."""
    junk[:] = [tvm_ffi.List(["y" * 40] * 3) for _ in range(30)]


def move(victim: Any) -> None:
    echo(victim._move())
    crowd()


def move_twice(victim: Any) -> None:
    move(victim)
    victim.__init__(["other"])
    move(victim)


def init_again(victim: Any) -> None:
    victim.__init__([])
    crowd()


def init_and_fail(victim: Any) -> None:
    with pytest.raises(TypeError):
        victim.__init__(7)
    crowd()


TAKES = [move, move_twice, init_again, init_and_fail]


class Evil:
    """Base of arguments whose conversion runs `action`."""

    action: Callable[[], None]

    def __init__(self, action: Callable[[], None]) -> None:
        self.action = action


class ByValue(Evil):
    def __tvm_ffi_value__(self) -> int:
        self.action()
        return 1


class ByInt(Evil):
    def __tvm_ffi_int__(self) -> int:
        self.action()
        return 1


class ByFloat(Evil):
    def __tvm_ffi_float__(self) -> float:
        self.action()
        return 1.0


class ByIntThatIndexes(Evil):
    def __tvm_ffi_int__(self) -> Any:
        outer = self

        class Number:
            def __index__(self) -> int:
                outer.action()
                return 1

        return Number()


class ByObject(Evil):
    def __tvm_ffi_object__(self) -> Any:
        self.action()
        return tvm_ffi.Array([1])


class ByAsObject(tvm_ffi.core.ObjectConvertible):
    def __init__(self, action: Callable[[], None]) -> None:
        self.action = action

    def asobject(self) -> Any:
        self.action()
        return tvm_ffi.Array([1])


class ByPointer(Evil):
    def __tvm_ffi_opaque_ptr__(self) -> int:
        self.action()
        return 0


class ByStream(Evil):
    def __cuda_stream__(self) -> tuple[int, int]:
        self.action()
        return (0, 0)


class ByDLPack(Evil):
    array = np.ones(3)

    def __dlpack__(self, **keywords: Any) -> Any:
        self.action()
        return self.array.__dlpack__()

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


class ByList(list):
    action: Callable[[], None]

    def __iter__(self) -> Any:
        self.action()
        return iter([1])


def by_list(action: Callable[[], None]) -> Any:
    items = ByList()
    items.action = action
    return items


ARGUMENTS = [
    ByValue,
    ByInt,
    ByFloat,
    ByIntThatIndexes,
    ByObject,
    ByAsObject,
    ByPointer,
    ByStream,
    ByDLPack,
    by_list,
    lambda action: [1, [ByValue(action)]],
    lambda action: {"key": ByValue(action)},
]


@pytest.fixture(params=[True, False], ids=["released", "kept"])
def gather(request: pytest.FixtureRequest) -> Any:
    """Return a function that returns its arguments as an Array."""
    function = tvm_ffi.get_global_func("ffi.Array")
    before = function.release_gil
    function.release_gil = request.param
    yield function
    function.release_gil = before


@pytest.mark.parametrize("take", TAKES)
@pytest.mark.parametrize("evil", ARGUMENTS)
def test_the_callee_gets_what_was_passed(gather: Any, evil: Any, take: Any) -> None:
    victim = tvm_ffi.List(TEXT)
    got = gather(victim, 5, evil(lambda: take(victim)), "tail" * 10)
    assert list(got[0]) == TEXT
    assert got[1] == 5
    assert got[3] == "tail" * 10


@pytest.mark.parametrize("evil", ARGUMENTS)
def test_more_arguments_than_fit_on_the_stack(gather: Any, evil: Any) -> None:
    victims = [tvm_ffi.List([i]) for i in range(20)]

    def take() -> None:
        for victim in victims:
            move(victim)

    got = gather(*victims, evil(take))
    assert [item[0] for item in list(got)[:20]] == list(range(20))
    for victim in victims:
        with pytest.raises(ValueError, match="moved from"):
            len(victim)


def test_what_was_moved_before_its_turn_is_refused(gather: Any) -> None:
    victim = tvm_ffi.List(TEXT)
    with pytest.raises(ValueError, match="moved from"):
        gather(ByValue(lambda: move(victim)), victim)


def test_an_object_passed_and_moved_in_one_call(gather: Any) -> None:
    victim = tvm_ffi.List(TEXT)
    got = gather(victim, victim._move())
    assert list(got[0]) == TEXT
    assert got[0] is got[1]


def test_what_a_call_kept_is_let_go_of_when_it_ends(gather: Any) -> None:
    victim = tvm_ffi.List(TEXT)
    moved = []
    gather(victim, ByValue(lambda: moved.append(echo(victim._move()))))
    assert use_count(moved[0]) == use_count(tvm_ffi.List())


def test_a_callback_may_move_an_argument_of_the_call_it_is_in() -> None:
    apply = tvm_ffi.get_global_func("testing.apply")
    for release in (True, False):
        apply.release_gil = release
        victim = tvm_ffi.List(TEXT)

        def callback(item: Any, victim: Any = victim) -> int:
            assert item is victim
            # One reference is the new wrapper's, one the call's that is not over yet.
            return use_count(echo(victim._move()))

        assert apply(callback, victim) >= 2
    apply.release_gil = True


@py_class("testing.user_code.Key")
class Key(tvm_ffi.Object):
    x: int

    def __any_hash__(self) -> int:
        return 1

    def __any_equal__(self, other: Any) -> bool:
        equal = self.x == other.x
        actions = list(armed)
        armed.clear()
        for action in actions:
            action()
        return equal


armed: list[Callable[[], None]] = []


@pytest.mark.parametrize("make", [tvm_ffi.List, tvm_ffi.Array])
@pytest.mark.parametrize("take", [move, move_twice, init_again])
def test_a_hook_may_move_the_sequence_that_is_searched(make: Any, take: Any) -> None:
    victim = make([Key(i) for i in range(9)])
    armed.append(lambda: take(victim))
    assert Key(8) in victim


LOOK: dict[str, Any] = {
    "in": lambda m, k: "v" * 40 if k in m else None,
    "get": lambda m, k: m.get(k),
    "item": lambda m, k: m[k],
}


@pytest.mark.parametrize("how", list(LOOK))
def test_a_hook_may_move_the_map_or_the_key_of_a_lookup(how: str) -> None:
    victim = tvm_ffi.Map({Key(i): "v" * 40 for i in range(9)})
    key = Key(8)

    def take() -> None:
        echo(victim._move())
        echo(key._move())
        junk[:] = [tvm_ffi.Map({Key(i): "OTHER" for i in range(9)}) for _ in range(30)]

    armed.append(take)
    assert LOOK[how](victim, key) == "v" * 40


class Dying:
    def __init__(self, action: Callable[[], None]) -> None:
        self.action = action

    def __del__(self) -> None:
        self.action()


def make_text_object() -> Any:
    """The string object behind a text, which nothing else holds."""
    return echo("k" * 40)._tvm_ffi_cached_object


@pytest.mark.parametrize("make", [lambda: Key(8), make_text_object], ids=["object", "string"])
@pytest.mark.parametrize("how", list(LOOK))
def test_a_map_that_wakes_up_may_move_the_key(client: NativeClient, how: str, make: Any) -> None:
    """What C++ threads let go of is freed then."""
    results: list[Any] = []

    def look() -> Any:
        table = tvm_ffi.Map({**{Key(i): "v" * 40 for i in range(9)}, "k" * 40: "v" * 40})
        holder = tvm_ffi.Array([table])
        weak = weakref.ref(table)
        del table
        key = make()

        def take() -> None:
            echo(key._move())
            junk[:] = [(tvm_ffi.List(["y" * 40]), Key(-1)) for _ in range(50)]

        dying = Stateful(1)
        dying.state = Dying(take)
        client.hold(dying)
        del dying
        client.release_all_in_thread()
        table = weak()
        found = LOOK[how](table, key)
        del holder
        return found

    def work() -> None:
        # CPython runs pending calls, which free it earlier, in the main thread. That waits for this
        # one, but may have just started it.
        for _ in range(1000):
            with contextlib.suppress(ValueError):
                results.append(look())
                break

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert results == ["v" * 40]


class Streams(dict):
    """The streams of a framework that runs Python code when it is asked."""

    action: Callable[[], None]

    def get(self, *_: Any) -> int:
        self.action()
        return 0x111


@pytest.mark.parametrize("take", TAKES)
@pytest.mark.parametrize("where", ["argument", "nested", "result", "element"])
def test_a_framework_may_move_the_container_whose_stream_it_is_asked_for(
    gather: Any, monkeypatch: pytest.MonkeyPatch, take: Any, where: str
) -> None:
    tagged = echo([foreign.Tensor(device=(2, 0)), *TEXT])
    streams = Streams()
    streams.action = lambda: take(tagged)
    monkeypatch.setattr(foreign, "streams", streams)
    if where == "argument":
        got = gather(tagged, 1)[0]
    elif where == "nested":
        got = gather([tagged])[0][0]
    elif where == "result":
        got = apply(lambda: tagged)
    else:
        got = tvm_ffi.List([1])
        got.append(tagged)
        got = got[1]
    assert list(got)[1:] == TEXT


@pytest.mark.parametrize("take", TAKES)
def test_constructors_get_what_was_passed(take: Any) -> None:
    @py_class(f"testing.user_code.Pair.{take.__name__}")
    class Pair(tvm_ffi.Object):
        first: Any
        second: Any

    victim = tvm_ffi.List(TEXT)
    pair = Pair(victim, ByValue(lambda: take(victim)))
    assert list(pair.first) == TEXT
    victim = tvm_ffi.List(TEXT)
    pair.__init__(victim, second=ByValue(lambda: take(victim)))
    assert list(pair.first) == TEXT


@py_class("testing.user_code.Holder")
class Holder(tvm_ffi.Object):
    anything: Any
    number: float = 0.0
    items: list[Any] = ()  # type: ignore[assignment]


def test_a_field_may_be_set_to_what_moves_the_object() -> None:
    for make in (ByValue, by_list, lambda action: [ByValue(action)]):
        for again in (False, True):
            holder = Holder(1)

            def take(holder: Any = holder, again: bool = again) -> None:
                echo(holder._move())
                if again:
                    holder.__init__("new")
                junk[:] = [Holder("junk") for _ in range(30)]

            if again:
                holder.anything = make(take)
                assert holder.anything is not None
            else:
                with pytest.raises(ValueError, match="moved from"):
                    holder.anything = make(take)
    pair = TestIntPair(1, 2)
    with pytest.raises(ValueError, match="moved from"):
        pair.__init__(1, ByInt(lambda: echo(pair._move())))
        len(repr(pair.a))


def test_what_is_assigned_may_be_moved_by_its_conversion() -> None:
    """A schema looks into a container while Python code of its elements runs."""
    holder = Holder(1)
    victim = tvm_ffi.List(TEXT)
    holder.items = victim
    assert list(holder.items) == TEXT

    @py_class("testing.user_code.Typed")
    class Typed(tvm_ffi.Object):
        items: list[float]

    typed = Typed([1.0])
    victim = tvm_ffi.List([1] * 50)
    typed.items = victim
    assert list(typed.items) == [1.0] * 50


def test_what_an_assignment_drops_may_move_the_object() -> None:
    holder = Holder(None)

    def take() -> None:
        echo(holder._move())
        junk[:] = [Holder("junk") for _ in range(30)]

    holder.anything = Dying(take)
    holder.anything = 2
    with pytest.raises(ValueError, match="moved from"):
        repr(holder.anything)


def test_init_of_a_list_whose_items_fill_it_meanwhile() -> None:
    victim = tvm_ffi.List(TEXT)
    victim.__init__([1, ByValue(lambda: victim.__init__([2]))])
    assert list(victim) == [1, 1]
    victim.__init__([1, ByValue(lambda: victim.__init__([2]) or move(victim))])
    assert list(victim) == [1, 1]
    with pytest.raises(ValueError, match="moved from"):
        victim.__init__([ByValue(lambda: victim.append(1))])


def test_a_dead_wrapper_is_not_filled_again() -> None:
    """It may be on its way to the thread that frees it."""
    box = tvm_ffi.List([tvm_ffi.List([1])])
    weak = weakref.ref(box[0])
    dead = weak()
    box.clear()
    if tvm_ffi.tying.state(dead) != "gone":
        pytest.skip("the object is still in use")
    with pytest.raises(ReferenceError):
        dead.__init__([2])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_forgets_the_calls_of_other_threads() -> None:
    """Their stacks are used again by the threads that the child starts."""
    run_python(
        textwrap.dedent("""
        import gc, os, threading, warnings, tvm_ffi
        warnings.simplefilter("ignore")
        apply = tvm_ffi.get_global_func("testing.apply")
        inside, leave = threading.Event(), threading.Event()

        def wait(*args):
            inside.set()
            leave.wait()
            return 0

        other = threading.Thread(target=lambda: apply(wait, tvm_ffi.List([1])))
        other.start()
        inside.wait()

        def in_child(*args):
            pid = os.fork()
            if pid != 0:
                return pid
            def work():
                for i in range(200):
                    victim = tvm_ffi.List([i])
                    tvm_ffi.testing.echo(victim._move())
                    apply(lambda x: 0, tvm_ffi.List([1]))
                gc.collect()
            threads = [threading.Thread(target=work) for _ in range(4)]
            for t in threads: t.start()
            for t in threads: t.join()
            gc.collect()
            return 0

        pid = apply(in_child, tvm_ffi.List([2]))
        if pid == 0:
            os._exit(0)
        leave.set()
        other.join()
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        """)
    )


def test_threads_end_their_calls_in_any_order() -> None:
    """The list of calls is one for all threads."""
    apply = tvm_ffi.get_global_func("testing.apply")
    turns = [threading.Event() for _ in range(6)]
    results: dict[int, Any] = {}

    def work(i: int) -> None:
        victim = tvm_ffi.List(TEXT)

        def callback(item: Any) -> int:
            turns[i].wait()
            results[i] = use_count(echo(victim._move())) >= 2
            return 0

        apply(callback, victim)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for i in (3, 0, 5, 1, 4, 2):
        turns[i].set()
        threads[i].join()
    assert results == dict.fromkeys(range(6), True)
