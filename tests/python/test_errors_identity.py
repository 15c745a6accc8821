# SPDX-License-Identifier: Apache-2.0
"""A Python exception that crosses C++ is the same exception on the other side."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
import traceback
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import tvm_ffi
from support import Payload, grows_every_time, run_threads, scaled
from tvm_ffi import Array, core, testing

throw_error = tvm_ffi.get_global_func("testing.throw_error")


class Custom(ValueError):
    """Has state that no message carries."""

    def __init__(self, code: int, detail: str) -> None:
        super().__init__(code, detail)
        self.code = code


def cross(raiser: Any, *args: Any) -> BaseException:
    """Return what arrives when `raiser` fails behind C++."""
    try:
        testing.apply(raiser, *args)
    except BaseException as exception:
        return exception
    raise AssertionError("nothing was raised")


# ---- the instance ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "exception",
    [
        ValueError("x"),
        KeyError("k"),
        Custom(3, "x"),
        OSError(2, "no such file"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
        StopIteration(3),
        KeyboardInterrupt(),
        SystemExit(2),
        GeneratorExit(),
    ],
    ids=lambda e: type(e).__name__,
)
def test_the_instance_arrives_itself(exception: BaseException) -> None:
    def fail() -> None:
        raise exception

    assert cross(fail) is exception
    assert cross(lambda: testing.apply(fail)) is exception


def test_causes_and_contexts_arrive() -> None:
    def fail() -> None:
        try:
            raise KeyError("first")
        except KeyError as cause:
            raise Custom(7, "second") from cause

    arrived = cross(fail)
    assert isinstance(arrived, Custom)
    assert arrived.code == 7
    assert isinstance(arrived.__cause__, KeyError)
    assert arrived.__context__ is arrived.__cause__

    def handle() -> None:
        try:
            testing.apply(fail)
        except Custom as inner:
            raise RuntimeError("outer") from inner

    arrived = cross(handle)
    assert isinstance(arrived, RuntimeError)
    assert isinstance(arrived.__cause__, Custom)
    assert isinstance(arrived.__cause__.__cause__, KeyError)


def test_notes_arrive() -> None:
    if sys.version_info < (3, 11):
        pytest.skip("exceptions have no notes before Python 3.11")

    def fail() -> None:
        error = ValueError("x")
        error.add_note("look here")
        raise error

    assert cross(fail).__notes__ == ["look here"]


def test_one_ffi_error_all_the_way() -> None:
    seen = []

    def inner() -> None:
        testing.test_raise_error("ValueError", "from C++")

    def middle() -> None:
        try:
            testing.apply(inner)
        except ValueError as exception:
            seen.append((exception, exception.__tvm_ffi_error__))  # type: ignore[attr-defined]
            raise

    arrived: Any = cross(middle)
    (exception, ffi_error), *rest = seen
    assert not rest
    assert arrived is exception
    assert arrived.__tvm_ffi_error__ is ffi_error
    assert (ffi_error.kind, ffi_error.message) == ("ValueError", "from C++")
    assert ffi_error.extra_context is None


def test_an_exception_can_cross_again_and_again() -> None:
    error = ValueError("x")

    def fail() -> None:
        raise error

    for _ in range(5):
        error.__traceback__ = None
        assert cross(fail) is error


# ---- the traceback --------------------------------------------------------------------------


def names(exception: BaseException) -> list[str]:
    """Return the functions of the traceback, outermost first, without C++ signatures."""
    found = traceback.extract_tb(exception.__traceback__)
    return [frame.name.split("(")[0].rsplit("::", 1)[-1] for frame in found]


def test_one_traceback_through_both_languages() -> None:
    def inner() -> None:
        raise Custom(1, "x")

    def middle() -> None:
        testing.apply(inner)

    arrived = cross(middle)
    assert names(arrived) == ["cross", "TestApply", "middle", "TestApply", "inner"]
    places = traceback.extract_tb(arrived.__traceback__)
    assert places[1].filename.endswith(".cc")
    assert (places[1].lineno or 0) > 0


def test_an_error_of_cpp_has_its_frames_last() -> None:
    arrived = cross(lambda: testing.test_raise_error("ValueError", "x"))
    assert names(arrived) == ["cross", "TestApply", "<lambda>", "TestRaiseError"]


def test_the_text_is_the_traceback_backwards() -> None:
    def inner() -> None:
        raise ValueError("x")

    arrived: Any = cross(lambda: testing.apply(inner))
    text = arrived.__tvm_ffi_error__.backtrace
    order = [text.index(name) for name in ("in inner", "TestApply", "in <lambda>")]
    assert order == sorted(order)
    assert text.count("TestApply") == 2
    assert "tether_py" not in text
    assert "ceval" not in text


def test_no_frame_of_the_machinery_shows() -> None:
    arrived = cross(lambda: testing.create_object("testing.TestIntPair", a="x"))
    for frame in traceback.extract_tb(arrived.__traceback__):
        assert "src/python/" not in frame.filename
        assert "ffi/reflection/" not in frame.filename
        assert "Python/" not in frame.filename


def test_frames_do_not_pile_up_when_one_exception_is_raised_often() -> None:
    error = ValueError("x")

    def fail() -> None:
        raise error.with_traceback(None)

    lengths = {len(names(cross(fail))) for _ in range(10)}
    assert lengths == {3}


# ---- nothing is kept alive ------------------------------------------------------------------


def test_arguments_and_locals_die_with_the_handler(no_gc: None) -> None:
    died = []

    def fail(argument: Any) -> None:
        local = Payload()
        died.append(weakref.ref(local))
        raise Custom(1, "x")

    def caller() -> None:
        argument = Payload()
        died.append(weakref.ref(argument))
        try:
            testing.apply(lambda x: testing.apply(fail, x), argument)
        except Custom:
            pass

    caller()
    assert len(died) == 2
    assert [ref() for ref in died] == [None, None]


def test_an_exception_nobody_in_python_sees_dies_with_its_error(no_gc: None) -> None:
    """C++ that swallows an error frees the exception, and what its frames hold."""
    died = []

    class Own(Exception):
        pass

    def fail() -> None:
        local = Payload()
        error = Own()
        died.extend([weakref.ref(local), weakref.ref(error)])
        try:
            raise error
        finally:
            del error

    function = tvm_ffi.convert(fail)
    library = tvm_ffi.LIB
    result = (ctypes.c_int64 * 2)()
    for _ in range(3):
        died.clear()
        code = library.TVMFFIFunctionCall(
            ctypes.c_void_p(function.__chandle__()), None, 0, ctypes.byref(result)
        )
        assert code == -1
        raised = ctypes.c_void_p()
        library.TVMFFIErrorMoveFromRaised(ctypes.byref(raised))
        assert died[1]() is not None
        library.TVMFFIObjectDecRef(raised)
        assert [ref() for ref in died] == [None, None]


def test_an_exception_that_comes_from_the_ffi_dies_too(no_gc: None) -> None:
    """The exception refers to its error, so the error must not refer back."""
    died = []

    class Own(Exception):
        pass

    def fail() -> None:
        raise Own

    def again() -> None:
        try:
            testing.apply(fail)
        except Own as error:
            died.append(weakref.ref(error))
            raise

    for _ in range(3):
        try:
            testing.apply(again)
        except Own:
            pass
        assert died.pop()() is None


def test_errors_leave_no_memory_behind() -> None:
    def fail() -> None:
        raise Custom(1, "x" * 1000)

    def repeat() -> None:
        for _ in range(scaled(2000)):
            cross(fail)

    assert not grows_every_time(repeat, slack=200_000)


def test_threads_raise_at_once() -> None:
    def body(i: int) -> None:
        error = Custom(i, "x")

        def fail() -> None:
            raise error.with_traceback(None)

        for _ in range(scaled(300)):
            assert cross(fail) is error

    run_threads(4, body)


# ---- signals --------------------------------------------------------------------------------


def interrupt_soon(seconds: float = 0.1) -> threading.Timer:
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    return timer


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Python's own handler: a process started in the background has Ctrl-C ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_ends_a_long_call(ctrl_c: None) -> None:
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        timer = interrupt_soon()
        tvm_ffi.get_global_func("testing.run_check_signal")(30)
    timer.join()
    assert time.monotonic() - started < 20
    assert tvm_ffi.get_global_func("testing.add_one")(1) == 2


def test_ctrl_c_inside_a_callback_arrives(ctrl_c: None) -> None:
    def loop() -> None:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            pass

    with pytest.raises(KeyboardInterrupt):
        timer = interrupt_soon()
        testing.apply(loop)
    timer.join()


def test_a_signal_handler_may_raise_anything() -> None:
    class Alarm(Exception):
        pass

    def on_signal(number: int, frame: Any) -> None:
        raise Alarm

    before = signal.signal(signal.SIGINT, on_signal)
    try:
        with pytest.raises(Alarm):
            timer = interrupt_soon()
            tvm_ffi.get_global_func("testing.run_check_signal")(30)
        timer.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert core.Error("A", "b", "c").kind == "A"


# ---- the exception that is being handled --------------------------------------------------------


def caught(function: Callable[[], Any]) -> Any:
    try:
        function()
    except Exception as error:
        return error


def raised_while_handling(handled: BaseException, function: Callable[[], Any]) -> Any:
    try:
        raise handled
    except LookupError:
        return caught(function)


def fail_with_context() -> None:
    try:
        raise KeyError("inner")
    except KeyError:
        int("x")


RAISERS: dict[str, Callable[[], Any]] = {
    "a function": lambda: testing.test_raise_error("ValueError", "second"),
    "wrong arguments": lambda: testing.add_one("x"),
    "a constructor": lambda: testing.TestIntPair("a", 1),
    "an __init__": lambda: testing.TestIntPair.__init__(
        testing.TestIntPair.__new__(testing.TestIntPair), "a", 1
    ),
    "a field": lambda: setattr(testing.TestIntPair(1, 2), "a", "x"),
    "json": lambda: tvm_ffi.get_global_func("ffi.json.Parse")("["),
    "a callback": lambda: testing.apply(int, "x"),
    "an error of C++": lambda: throw_error(core.Error("ValueError", "made", "")),
    "an index": lambda: Array([])[3],
}


@pytest.mark.parametrize("way", RAISERS)
def test_what_is_raised_in_a_handler_has_its_exception_as_context(way: str) -> None:
    handled = LookupError("first")
    error = raised_while_handling(handled, RAISERS[way])
    assert error is not handled and error.__context__ is handled
    assert error.__cause__ is None and not error.__suppress_context__
    assert caught(RAISERS[way]).__context__ is None


def test_an_exception_that_is_on_its_way_keeps_its_context() -> None:
    handled = LookupError("first")
    error = raised_while_handling(handled, lambda: testing.apply(fail_with_context))
    assert isinstance(error.__context__, KeyError) and error.__context__.__context__ is handled

    def without_context() -> None:
        try:
            fail_with_context()
        except ValueError as inner:
            inner.__context__ = None
            raise

    assert (
        raised_while_handling(handled, lambda: testing.apply(without_context)).__context__ is None
    )


@pytest.mark.parametrize("fail", [lambda: int("x"), fail_with_context])
def test_a_kept_error_is_raised_anew_each_time(fail: Callable[[], Any]) -> None:
    """As `raise kept` in Python: the context is that of this time, and chains have no cycles."""
    kept = tvm_ffi.get_global_func("testing.catch_error")(fail)
    first, second = LookupError("first"), LookupError("second")
    error = raised_while_handling(first, lambda: throw_error(kept))
    assert error.__context__ is first
    assert raised_while_handling(second, lambda: throw_error(kept)) is error
    assert error.__context__ is second and first.__context__ is None

    def in_its_own_handler() -> None:
        try:
            throw_error(kept)
        except ValueError as inner:
            assert inner is error
            throw_error(kept)

    assert raised_while_handling(first, in_its_own_handler) is error
    assert error.__context__ is first

    def in_a_handler_of_its_consequence() -> None:
        try:
            throw_error(kept)
        except ValueError:
            try:
                raise LookupError("consequence")
            except LookupError:
                throw_error(kept)

    assert caught(in_a_handler_of_its_consequence) is error
    assert error.__context__.args == ("consequence",)
    assert error.__context__.__context__ is None
