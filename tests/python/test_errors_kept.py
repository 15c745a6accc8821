# SPDX-License-Identifier: Apache-2.0
"""Errors that C++ keeps: the same exception each time it is thrown, and no frame kept alive."""

from __future__ import annotations

import copy
import dataclasses
import gc
import os
import pickle
import sys
import threading
import traceback
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import tvm_ffi
from support import FREE_THREADED, Payload, run_python, run_threads, scaled, wait_until
from tvm_ffi import core, testing
from tvm_ffi._impl import tracebacks
from tvm_ffi._impl.install import HOOKS

catch_error = tvm_ffi.get_global_func("testing.catch_error")
throw_error = tvm_ffi.get_global_func("testing.throw_error")
keep_and_throw = tvm_ffi.get_global_func("testing.keep_and_throw")
catch_in_thread = tvm_ffi.get_global_func("testing.catch_in_thread")


class Refused(Exception):
    """Has a constructor that no message fits, and slots beside its dict."""

    __slots__ = ("__weakref__", "slot")

    def __init__(self, code: int, *, detail: str) -> None:
        super().__init__(f"refused with {code}")
        self.code = code
        self.detail = detail
        self.slot = code + 1

    def __reduce__(self) -> Any:
        return _make_refused, (self.code, self.detail)


def _make_refused(code: int, detail: str) -> Refused:
    return Refused(code, detail=detail)


class Frozen(Exception):
    """Refuses attributes."""

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"frozen: {name}")


def caught(function: Any, *args: Any) -> Any:
    """Return the exception that the call raises."""
    try:
        function(*args)
    except BaseException as exception:
        return exception
    raise AssertionError("nothing was raised")


def names(exception: BaseException) -> list[str]:
    """Return the functions of the traceback, outermost first, without C++ signatures."""
    found = traceback.extract_tb(exception.__traceback__)
    return [frame.name.split("(")[0].rsplit("::", 1)[-1] for frame in found]


def all_exceptions() -> list[BaseException]:
    """Return exceptions of every make."""
    made: list[BaseException] = [
        ValueError("x"),
        Refused(3, detail="d"),
        Frozen("x"),
        OSError(2, "no such file", "name"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
        StopIteration(3),
        KeyboardInterrupt("x"),
        SystemExit(2),
        GeneratorExit(),
    ]
    if sys.version_info >= (3, 11):
        made.append(ExceptionGroup("group", [ValueError(1), TypeError(2)]))  # noqa: F821
    return made


# ---- thrown again ---------------------------------------------------------------------------


@pytest.mark.parametrize("index", range(len(all_exceptions())))
def test_a_kept_error_throws_the_same_exception_every_time(index: int) -> None:
    exception = all_exceptions()[index]

    def fail() -> None:
        raise exception

    kept = tvm_ffi.List([])
    assert caught(keep_and_throw, kept, fail) is exception
    for _ in range(3):
        assert caught(throw_error, kept[0]) is exception
    assert caught(lambda: testing.apply(lambda: throw_error(kept[0]))) is exception


def test_an_exception_that_only_cpp_has_comes_back_with_its_state() -> None:
    def fail() -> None:
        error = Refused(42, detail="why")
        error.extra = [1]  # type: ignore[attr-defined]
        raise error

    kept = tvm_ffi.List([catch_error(fail)])
    for _ in range(3):
        gc.collect()
        arrived = caught(throw_error, kept[0])
        assert type(arrived) is Refused
        assert (arrived.code, arrived.slot, arrived.extra) == (42, 43, [1])
        del arrived


def test_the_traceback_of_a_kept_error_is_whole_and_does_not_grow() -> None:
    def inner() -> None:
        raise Refused(1, detail="")

    def middle() -> None:
        testing.apply(inner)

    kept = tvm_ffi.List([])
    inside = ["middle", "TestApply", "inner"]
    assert names(caught(keep_and_throw, kept, middle))[-3:] == inside
    lengths = set()
    for _ in range(4):
        arrived = caught(throw_error, kept[0])
        found = names(arrived)
        assert found[0] == "caught"
        assert found[-3:] == inside
        lengths.add(len(found))
    assert len(lengths) == 1


def test_an_error_made_in_cpp_can_be_kept_and_thrown_too() -> None:
    kept = catch_error(lambda: testing.test_raise_error("ValueError", "x"))
    first = caught(throw_error, kept)
    assert type(first) is ValueError
    assert caught(throw_error, kept) is first
    assert (kept.kind, kept.message) == ("ValueError", "x")
    assert kept.py_error() is first


def test_an_exception_raised_in_one_thread_is_thrown_in_another() -> None:
    exception = Refused(1, detail="")

    def fail() -> None:
        raise exception

    kept = tvm_ffi.List([])
    thread = threading.Thread(target=lambda: caught(keep_and_throw, kept, fail))
    thread.start()
    thread.join()
    catch_in_thread(kept, fail)
    for error in kept:
        arrived = caught(throw_error, error)
        assert arrived is exception
        assert names(arrived)[-1] == "fail"


@pytest.mark.skipif(
    FREE_THREADED and sys.version_info < (3, 14),
    reason="threads that raise one exception make CPython free its traceback twice",
)
def test_threads_share_one_exception_and_each_gets_it() -> None:
    shared = Refused(1, detail="")

    def fail() -> None:
        raise shared

    def body(i: int) -> None:
        for _ in range(scaled(100)):
            shared.__traceback__ = None
            assert caught(testing.apply, fail) is shared

    run_threads(4, body)


# ---- nothing is kept alive ------------------------------------------------------------------


class Scene:
    """A call chain whose frames have locals to watch."""

    def __init__(self) -> None:
        self.watched: list[weakref.ref] = []

    def local(self) -> Payload:
        """Return an object that must die."""
        payload = Payload()
        self.watched.append(weakref.ref(payload))
        return payload

    def fail(self) -> None:
        """Raise from another exception, and let a local refer to it."""
        local = self.local()  # noqa: F841
        try:
            try:
                inner = self.local()
                raise KeyError("first")
            finally:
                del inner
        except KeyError:
            error = Refused(1, detail="")
            raise error from self.other()

    def other(self) -> BaseException:
        """Return an exception with a traceback of its own."""

        def deep() -> None:
            held = self.local()  # noqa: F841
            raise TypeError("other")

        return caught(deep)

    def middle(self) -> None:
        """Stand between two C++ frames."""
        local = self.local()  # noqa: F841
        testing.apply(self.fail)

    def alive(self) -> int:
        """Return how many of the locals live."""
        return sum(ref() is not None for ref in self.watched)


def test_an_error_that_cpp_caught_keeps_no_locals(no_gc: None) -> None:
    scene = Scene()
    kept = tvm_ffi.List([catch_error(scene.middle)])
    assert len(scene.watched) == 4
    assert scene.alive() == 0
    arrived = caught(throw_error, kept[0])
    assert names(arrived)[-3:] == ["middle", "TestApply", "fail"]
    assert names(arrived.__context__) == ["fail"]
    assert names(arrived.__cause__)[-1] == "deep"


def test_an_error_that_cpp_keeps_and_throws_keeps_no_locals_below_it(no_gc: None) -> None:
    scene = Scene()
    kept = tvm_ffi.List([])
    arrived = caught(keep_and_throw, kept, scene.middle)
    assert scene.alive() == 0
    assert names(arrived)[-1] == "fail"


def test_locals_above_a_kept_error_go_at_the_next_collection() -> None:
    scene = Scene()
    kept = tvm_ffi.List([catch_error(scene.fail)])

    def handle() -> None:
        above = scene.local()  # noqa: F841
        try:
            throw_error(kept[0])
        except Refused:
            pass

    for _ in range(3):
        handle()
        gc.collect()
        assert scene.alive() == 0
    assert names(caught(throw_error, kept[0]))[-1] == "fail"


def test_an_error_kept_while_another_arrives_keeps_no_locals(no_gc: None) -> None:
    scene = Scene()
    kept = tvm_ffi.List([])

    def swallow_then_fail() -> None:
        kept.append(catch_error(scene.fail))
        raise ValueError("another")

    assert type(caught(testing.apply, swallow_then_fail)) is ValueError
    assert scene.alive() == 0


def test_an_error_of_a_thread_of_cpp_keeps_no_locals() -> None:
    scene = Scene()
    kept = tvm_ffi.List([])
    catch_in_thread(kept, scene.fail)
    assert wait_until(lambda: scene.alive() == 0)
    assert names(caught(throw_error, kept[0]))[-1] == "fail"


def test_an_exception_passed_straight_through_keeps_its_frames_for_a_debugger() -> None:
    def fail() -> None:
        local = "seen"  # noqa: F841
        raise ValueError("x")

    def clean_up() -> None:
        testing.echo(1)

    def with_cleanup() -> None:
        try:
            testing.apply(fail)
        finally:
            testing.apply(clean_up)

    for function in (fail, with_cleanup):
        entry = caught(testing.apply, function).__traceback__
        while entry.tb_next is not None:
            entry = entry.tb_next
        assert entry.tb_frame.f_locals == {"local": "seen"}


def test_the_exception_of_a_freed_error_is_freed() -> None:
    died = []

    def fail() -> None:
        error = Refused(1, detail="")
        died.append(weakref.ref(error))
        try:
            raise error
        finally:
            del error

    for _ in range(3):
        kept = catch_error(fail)
        assert died[-1]() is not None
        caught(throw_error, kept)
        del kept
        gc.collect()  # a frame of the traceback had the error as a local
        assert died.pop()() is None


def test_an_error_object_stored_in_its_own_exception_is_collected() -> None:
    died = []

    def fail() -> None:
        error = Refused(1, detail="")
        died.append(weakref.ref(error))
        raise error

    kept = catch_error(fail)
    kept.py_error().ring = kept  # type: ignore[attr-defined]
    del kept
    gc.collect()
    assert died[0]() is None


def test_errors_kept_until_the_process_ends() -> None:
    run_python(
        """
import tvm_ffi
from tvm_ffi import testing
kept = tvm_ffi.List([])
def fail():
    local = object()
    raise KeyError("x")
kept.append(tvm_ffi.get_global_func("testing.catch_error")(fail))
tvm_ffi.register_global_func("tests.keep", lambda: kept)
tvm_ffi.get_global_func("testing.catch_in_thread")(kept, fail)
"""
    )


# ---- copies ---------------------------------------------------------------------------------


def copies(value: Any) -> list[Any]:
    """Return copies made in every way."""
    return [copy.copy(value), copy.deepcopy(value)] + [
        pickle.loads(pickle.dumps(value, protocol)) for protocol in range(2, 6)
    ]


def test_exceptions_that_crossed_are_copied_as_themselves() -> None:
    for exception in all_exceptions():

        def fail(exception: BaseException = exception) -> None:
            raise exception

        arrived = caught(testing.apply, fail)
        for one in copies(arrived):
            assert type(one) is type(exception)
            assert str(one) == str(exception)
            assert getattr(one, "code", None) == getattr(exception, "code", None)
            assert one.__traceback__ is None

            def again(one: BaseException = one) -> None:
                raise one

            assert caught(testing.apply, again) is one


@dataclasses.dataclass(frozen=True)
class Halted(Exception):
    pass


class Strict(Exception):
    """Knows what its state is."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code

    def __setstate__(self, state: Any) -> None:
        assert set(state) == {"code"}
        self.code = state["code"]


class Logged(Exception):
    """Has a __setattr__ of its own that refuses nothing."""

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)


@pytest.mark.parametrize(
    ("exception", "has_error"),
    [
        (Halted(), False),
        (Strict(7), False),
        (Frozen("x"), False),
        (Logged("x"), True),
        (ValueError("x"), True),
    ],
)
def test_what_is_attached_does_not_hinder_copies(exception: BaseException, has_error: bool) -> None:
    def fail() -> None:
        raise exception

    for _ in range(2):
        arrived = caught(testing.apply, fail)
        assert arrived is exception and hasattr(arrived, "__tvm_ffi_error__") is has_error
        assert "TestApply" in "".join(traceback.format_exception(arrived))
        for one in copies(arrived):
            assert type(one) is type(exception) and one.args == exception.args
            assert getattr(one, "code", None) == getattr(exception, "code", None)
            assert hasattr(one, "__tvm_ffi_error__") is has_error
    kept = catch_error(fail)
    assert caught(throw_error, kept) is exception


def test_exceptions_made_in_cpp_are_copied_with_their_error() -> None:
    arrived = caught(testing.test_raise_error, "NobodyKnowsThisError", "x")
    for one in copies(arrived):
        assert type(one) is RuntimeError
        assert one.args == ("NobodyKnowsThisError: x",)
        error = one.__tvm_ffi_error__
        assert (error.kind, error.message) == ("NobodyKnowsThisError", "x")
        assert "TestRaiseError" in error.backtrace


def test_error_objects_are_copied() -> None:
    made = core.Error("Kind", "a\0b \u4e2d", '  File "f", line 1, in g\n')
    kept = catch_error(Scene().fail)
    for error in (made, kept):
        for one in copies(error):
            assert type(one) is core.Error
            assert (one.kind, one.message, one.backtrace) == (
                error.kind,
                error.message,
                error.backtrace,
            )
    empty = pickle.loads(pickle.dumps(core.Error.__new__(core.Error)))
    assert type(empty) is core.Error and empty.__chandle__() == 0


def test_a_process_pool_survives_an_exception_that_crossed() -> None:
    program = """
import concurrent.futures, multiprocessing
from tvm_ffi import testing
def fail():
    raise KeyError("from the worker")
def work(_):
    testing.apply(fail)
if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        for _ in range(2):
            try:
                list(pool.map(work, [0]))
            except KeyError as error:
                print(error.args[0])
"""
    assert run_python(program).split("\n")[:2] == ["from the worker"] * 2


# ---- odd input ------------------------------------------------------------------------------


def test_line_numbers_of_any_size() -> None:
    for digits in ("2147483647", "2147483648", "9" * 19, "9" * 5000, "0"):
        text = f'  File "a", line {digits}, in f\n'
        exception = core.Error("ValueError", "m", text).py_error()
        assert type(exception) is ValueError
        assert names(exception) == ["f"]
        assert exception.__traceback__.tb_lineno <= 2**31 - 1
        traceback.format_exception(exception)


def test_the_text_grows_with_the_traceback_and_is_renewed_with_it() -> None:
    error = ValueError("x")

    def first() -> None:
        raise error

    def second() -> None:
        raise error.with_traceback(None)

    caught(testing.apply, first)
    arrived = caught(testing.apply, second)
    text = arrived.__tvm_ffi_error__.backtrace
    assert "in second" in text
    assert "in first" not in text

    def again() -> None:
        raise error

    text = caught(testing.apply, again).__tvm_ffi_error__.backtrace
    order = [text.index(f"in {name}\n") for name in ("second", "caught", "again")]
    assert order == sorted(order)
    assert text.count("in second\n") == 1


def test_frames_are_written_once_however_deep_the_nesting(monkeypatch: Any) -> None:
    """The frames parsed do not depend on the level."""
    parsed: list[int] = []
    original = tracebacks._parse_backtrace

    def count(text: str) -> Any:
        places = original(text)
        parsed.append(len(places))
        return places

    monkeypatch.setattr(tracebacks, "_parse_backtrace", count)
    tracebacks.KNOWN_PLACES.clear()

    def level(n: int) -> None:
        if n == 0:
            raise ValueError("x")
        testing.apply(level, n - 1)

    arrived = caught(level, 40)
    assert parsed, "each text is parsed when it comes first"
    assert max(parsed) == min(parsed)
    assert len(names(arrived)) == arrived.__tvm_ffi_error__.backtrace.count("\n") + 2


def test_names_and_files_that_are_not_text_cross() -> None:
    for odd in ("a\udcffb", "a\0b", 'quote"', "line\nbreak", "\u2028", "x" * 100_000):
        code = compile("def fail():\n    raise ValueError(odd)", "file.py", "exec")
        space: dict[str, Any] = {"odd": odd}
        exec(code, space)
        fail = space["fail"]
        fail.__code__ = fail.__code__.replace(co_filename=odd, co_name=odd)
        arrived = caught(testing.apply, fail)
        assert arrived.args == (odd,)
        kept = catch_error(fail)
        assert caught(throw_error, kept).args == (odd,)
        pickle.dumps(kept)


def test_exceptions_at_the_recursion_limit_cross() -> None:
    def deeper() -> None:
        testing.apply(deeper)

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(300)
    try:
        arrived = caught(deeper)
        kept = catch_error(deeper)
    finally:
        sys.setrecursionlimit(limit)
    assert type(arrived) is RecursionError
    assert type(caught(throw_error, kept)) is RecursionError


def test_hooks_of_the_exception_class_do_not_get_in_the_way() -> None:
    class Hostile(Exception):
        def __str__(self) -> str:
            raise MemoryError

        def __repr__(self) -> str:
            raise KeyboardInterrupt

        def __getattribute__(self, name: str) -> Any:
            raise RuntimeError(name)

        def __setattr__(self, name: str, value: Any) -> None:
            raise RuntimeError(name)

        def with_traceback(self, tb: Any) -> Any:
            raise RuntimeError

    exception = Hostile()

    def fail() -> None:
        raise exception

    assert caught(testing.apply, fail) is exception
    kept = catch_error(fail)
    assert caught(throw_error, kept) is exception
    assert "failed" in kept.message


def test_a_registered_class_may_return_anything() -> None:
    class Strange(Exception):
        def __new__(cls, *args: Any) -> Any:
            return 3

    tvm_ffi.register_error("tests.Strange", Strange)
    with pytest.raises(RuntimeError, match=r"tests\.Strange: x"):
        testing.test_raise_error("tests.Strange", "x")


def test_an_error_raised_in_a_finaliser_does_not_disturb_the_one_in_flight() -> None:
    class Late:
        def __del__(self) -> None:
            try:
                testing.apply(fail_late)
            except KeyError:
                finished.append(1)

    def fail_late() -> None:
        raise KeyError("late")

    finished: list[int] = []
    error = ValueError("x")

    def fail() -> None:
        late = Late()
        try:
            raise error
        finally:
            del late

    assert caught(testing.apply, fail) is error
    assert finished == [1]


def test_an_exception_passes_a_visitor_that_adds_its_context_as_itself() -> None:
    exception = Refused(1, detail="")

    def fail(value: int) -> None:
        raise exception

    node = tvm_ffi.Array([tvm_ffi.Array([1]), "x"])
    arrived = caught(testing.apply, lambda: tvm_ffi.structural_walk(node, (int, fail)))
    assert arrived is exception
    visited = arrived.__tvm_ffi_error__.extra_context.reverse_visit_pattern
    assert [len(one) for one in visited] == [1, 2]


@pytest.fixture
def replace_hooks() -> Iterator[Callable[..., None]]:
    """Replace hooks that C++ has of Python, until the end of the test."""
    yield lambda **changed: core._set_hooks(**{**HOOKS, **changed})
    core._set_hooks(**HOOKS)


def test_hooks_replaced_by_anything_do_not_crash(replace_hooks: Callable[..., None]) -> None:
    def fail() -> None:
        raise ValueError("x")

    anything = (None, 3, {}, lambda *args: 1 / 0, lambda *args: ((1, 2),), lambda *args: (3,))
    hooks_of_errors = ("error_kinds", "known_places", "find_places", "release_frames")
    for name in (*hooks_of_errors, "error_classes", "class_and_text"):
        for value in anything:
            replace_hooks(**{"known_places": {}, name: value})
            assert type(caught(testing.apply, fail)) is ValueError
            assert type(caught(throw_error, catch_error(fail))) is ValueError
    for value in (None, 3, (ValueError,)):
        replace_hooks(error_classes={}, class_and_text=lambda *args, value=value: value)
        with pytest.raises(TypeError, match="expected a class and a text"):
            testing.test_raise_error("ValueError", "x")
    for value in (None, int, lambda text: 1 / 0):
        replace_hooks(error_classes={"ValueError": value})
        with pytest.raises(RuntimeError, match="ValueError: x"):
            testing.test_raise_error("ValueError", "x")


def test_hooks_are_set_all_at_once() -> None:
    """What C++ uses of Python is one list; a name that is missing or wrong is told."""
    for name in HOOKS:
        others = {key: value for key, value in HOOKS.items() if key != name}
        with pytest.raises(TypeError, match=f"missing the hook '{name}'"):
            core._set_hooks(**others)
    with pytest.raises(TypeError, match="unknown hooks: .*'wrong': 1"):
        core._set_hooks(**HOOKS, wrong=1)
    with pytest.raises(TypeError, match="keyword arguments"):
        core._set_hooks(1)
    for name in ("object_class", "bytes_class", "convert_error_class"):
        for value in (None, int):
            with pytest.raises(TypeError, match=f"hook '{name}' must be"):
                core._set_hooks(**{**HOOKS, name: value})


@pytest.mark.parametrize("times", [0, 1, 3])
def test_a_ring_through_a_kept_error_is_collected(times: int) -> None:
    def run() -> weakref.ref[Any]:
        exception = Refused(1, detail="in a ring")

        def fail() -> None:
            raise exception

        kept = catch_error(fail)
        for _ in range(times):
            # The frame of `caught` is in the traceback, and has the error among its arguments.
            assert caught(throw_error, kept) is exception
        exception.kept = kept  # type: ignore[attr-defined]
        return weakref.ref(exception)

    dead = [run() for _ in range(20)]
    gc.collect()
    gc.collect()
    assert [ref() for ref in dead] == [None] * 20


KEPT_BY_THREADS = """
import gc, sys, threading
import tvm_ffi
from tvm_ffi import List
keep_and_throw = tvm_ffi.get_global_func("testing.keep_and_throw")
clear = tvm_ffi.get_global_func("ffi.ListClear")
clear.release_gil = True  # the errors die on threads that are not attached
at_once = threading.Barrier(4)

@tvm_ffi.convert
def fail():
    raise ValueError

def keep(number):
    kept = List()
    for _ in range(number):
        try:
            keep_and_throw(kept, fail)
        except ValueError:
            pass
    return kept
"""


def test_threads_that_are_not_attached_drop_kept_errors() -> None:
    """A corrupted list of such errors shows at a collection, which may also report to stderr."""
    rounds, number = scaled(8), scaled(1000)
    program = f"""
def body():
    for _ in range({rounds}):
        kept = keep({number})
        at_once.wait()
        clear(kept)
        at_once.wait()
        gc.collect()
sys.unraisablehook = lambda report: (print("unraisable", report.exc_value), sys.stdout.flush())
threads = [threading.Thread(target=body) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
    assert run_python(KEPT_BY_THREADS + program) == ""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_while_kept_errors_die_elsewhere() -> None:
    program = f"""
import os, signal
ends = False

def body():
    while not ends:
        clear(keep(100))
threads = [threading.Thread(target=body) for _ in range(2)]
for thread in threads: thread.start()
for _ in range({scaled(30)}):
    pid = os.fork()
    if pid == 0:
        signal.alarm(60)
        clear(keep(10))
        gc.collect()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
ends = True
for thread in threads: thread.join()
"""
    assert (
        run_python("import warnings; warnings.simplefilter('ignore')" + KEPT_BY_THREADS + program)
        == ""
    )
