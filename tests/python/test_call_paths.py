# SPDX-License-Identifier: Apache-2.0
"""Calls that take a short way give what the long way gives."""

from __future__ import annotations

import threading
import weakref
from typing import Any

import pytest
import tvm_ffi
from tvm_ffi import testing
from tvm_ffi.testing import TestIntPair


def echo(*args: Any) -> Any:
    return tvm_ffi.Array(args)


@pytest.mark.parametrize("count", [0, 1, 2, 4, 5, 8, 9, 40])
@pytest.mark.parametrize("last", [7, -7, 2**40, 2**70, True, None, "text", 1.5])
@pytest.mark.parametrize("release_gil", [False, True])
def test_integers_and_what_follows_them_arrive(count: int, last: Any, release_gil: bool) -> None:
    function = tvm_ffi.convert(echo)
    function.release_gil = release_gil
    args = [*range(count), last]
    got = list(function(*args))
    assert got == args
    assert [type(value) for value in got[:-1]] == [int] * count


def test_a_failed_call_of_integers_raises_what_was_raised() -> None:
    def fail(*args: int) -> None:
        raise KeyError(args)

    function = tvm_ffi.convert(fail)
    function.release_gil = False
    with pytest.raises(KeyError) as caught:
        function(1, 2)
    assert caught.value.args == ((1, 2),)


def test_release_gil_takes_effect_at_once() -> None:
    function = tvm_ffi.convert(lambda n: n + 1)
    for flag in (True, False, True, False):
        function.release_gil = flag
        assert function.release_gil is flag
        assert function(1) == 2


@pytest.mark.parametrize("count", [0, 1, 6, 7, 8, 30])
def test_a_method_gets_its_object_and_any_number_of_arguments(count: int) -> None:
    method = tvm_ffi.core._make_method(TestIntPair, "echo", tvm_ffi.convert(echo), object())
    pair = TestIntPair(1, 2)
    args = [index if index % 2 else str(index) for index in range(count)]
    for _ in range(3):  # the first call learns what the class is
        got = method(pair, *args)
        assert got[0] is pair
        assert list(got)[1:] == args


def test_a_method_accepts_only_its_class_before_and_after_it_was_learned() -> None:
    method = tvm_ffi.core._make_method(TestIntPair, "echo", tvm_ffi.convert(echo), object())
    for _ in range(3):
        with pytest.raises(TypeError, match="must be called on an instance"):
            method(tvm_ffi.Array([1]))
        with pytest.raises(TypeError, match="needs an argument"):
            method()
        assert len(method(TestIntPair(1, 2))) == 1


def test_a_method_whose_object_was_moved_away_says_so() -> None:
    method = tvm_ffi.core._make_method(TestIntPair, "echo", tvm_ffi.convert(echo), object())
    pair = TestIntPair(1, 2)
    method(pair)
    tvm_ffi.convert(lambda x: None)(pair._move())
    with pytest.raises(ValueError, match="moved from"):
        method(pair)


@pytest.mark.parametrize("args", [(), (1,), ("text", 2)])
def test_a_method_wakes_its_object_up(args: tuple[Any, ...]) -> None:
    method = tvm_ffi.core._make_method(TestIntPair, "echo", tvm_ffi.convert(echo), object())
    pair = TestIntPair(1, 2)
    method(pair)
    holder = tvm_ffi.Array([pair])
    wr = weakref.ref(pair)
    del pair
    assert tvm_ffi.tying.state(wr()) == "dormant"
    got = method(wr(), *args)
    assert got[0] is holder[0]
    assert list(got)[1:] == list(args)


@pytest.mark.parametrize("value", [-7, -6, -5, -1, 0, 1, 255, 256, 257, 258, 2**63 - 1, -(2**63)])
def test_ints_are_those_of_python_whichever_way_they_come(value: int) -> None:
    keeping = tvm_ffi.convert(lambda x, _=None: x)
    keeping.release_gil = False
    seen: list[int] = []
    testing.apply(seen.append, value)
    ways = [
        testing.echo(value),
        keeping(value),
        keeping(value, "text"),
        tvm_ffi.convert(lambda x: x)(value),
        TestIntPair(value, 0).a,
        tvm_ffi.Array([value])[0],
        tvm_ffi.Shape([abs(value) // 2])[0] * 2 + abs(value) % 2,
        *seen,
    ]
    assert ways == [value] * 6 + [abs(value), value]
    if -5 <= value <= 256:
        assert all(got is int(str(got)) for got in ways)


def test_release_gil_changes_while_others_call() -> None:
    function = tvm_ffi.convert(lambda n: n)
    stop = threading.Event()
    failures: list[int] = []

    def call() -> None:
        while not stop.is_set():
            if function(5) != 5:
                failures.append(1)

    threads = [threading.Thread(target=call) for _ in range(2)]
    for thread in threads:
        thread.start()
    for index in range(300):
        function.release_gil = index % 2 == 0
    stop.set()
    for thread in threads:
        thread.join()
    assert not failures
