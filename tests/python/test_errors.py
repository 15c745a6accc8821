# SPDX-License-Identifier: Apache-2.0
"""Exceptions across the border: kinds, messages, one traceback, no cycles."""

from __future__ import annotations

import gc
import traceback
import weakref

import pytest
import tvm_ffi
from support import Payload
from tvm_ffi import core, error, testing

BUILTIN = [
    RuntimeError,
    ValueError,
    TypeError,
    AttributeError,
    KeyError,
    IndexError,
    AssertionError,
    MemoryError,
]


@pytest.mark.parametrize("cls", BUILTIN)
def test_builtin_kinds_both_ways(cls: type[Exception]) -> None:
    with pytest.raises(cls) as caught:
        testing.test_raise_error(cls.__name__, "the message")
    assert type(caught.value) is cls
    assert caught.value.args == ("the message",)

    def fail() -> None:
        raise cls("the message")

    with pytest.raises(cls) as caught:
        testing.apply(fail)
    assert type(caught.value) is cls
    assert "the message" in str(caught.value)
    assert caught.value.__tvm_ffi_error__.kind == cls.__name__


def test_an_unknown_kind_is_a_runtime_error_that_knows_it() -> None:
    with pytest.raises(RuntimeError, match="message") as caught:
        testing.test_raise_error("NobodyKnowsThisError", "message")
    assert caught.value.__tvm_ffi_error__.kind == "NobodyKnowsThisError"
    assert caught.value.__tvm_ffi_error__.message == "message"


@pytest.mark.parametrize(
    "exception",
    [OverflowError("x"), NotImplementedError("x"), StopIteration("x"), ZeroDivisionError("x")],
    ids=lambda e: type(e).__name__,
)
def test_other_exceptions_are_runtime_errors_to_cpp(exception: Exception) -> None:
    def fail() -> None:
        raise exception

    with pytest.raises(type(exception), match="x") as caught:
        testing.apply(fail)
    assert caught.value is exception
    assert caught.value.__tvm_ffi_error__.kind == "RuntimeError"  # type: ignore[attr-defined]


def test_registered_kinds() -> None:
    @tvm_ffi.register_error
    class FirstError(ValueError):
        pass

    @tvm_ffi.register_error("tests.Second")
    class SecondError(RuntimeError):
        pass

    class ThirdError(Exception):
        pass

    tvm_ffi.register_error("tests.Third", ThirdError)
    for name, cls in (
        ("FirstError", FirstError),
        ("tests.Second", SecondError),
        ("tests.Third", ThirdError),
    ):
        with pytest.raises(cls, match="text"):
            testing.test_raise_error(name, "text")

        def fail(cls: type[Exception] = cls) -> None:
            raise cls("text")

        with pytest.raises(cls) as caught:
            testing.apply(fail)
        assert caught.value.__tvm_ffi_error__.kind == name


def test_a_class_that_cannot_be_built_from_a_message_does_not_hide_it() -> None:
    @tvm_ffi.register_error("tests.Picky")
    class PickyError(Exception):
        def __init__(self, first: str, second: str) -> None:
            super().__init__(first, second)

    with pytest.raises(RuntimeError, match=r"tests\.Picky: the message"):
        testing.test_raise_error("tests.Picky", "the message")


def test_error_objects() -> None:
    made = core.Error("ValueError", "text", 'File "a.cc", line 1, in f\n')
    assert (made.kind, made.message, made.extra_context) == ("ValueError", "text", None)
    assert made.backtrace == 'File "a.cc", line 1, in f\n'
    made.update_backtrace("other")
    assert made.backtrace == "other"
    exception = made.py_error()
    assert type(exception) is ValueError
    assert exception.__tvm_ffi_error__ is made


def test_conversion_of_exceptions() -> None:
    converted = tvm_ffi.convert(KeyError("k"))
    assert isinstance(converted, core.Error)
    assert (converted.kind, converted.message) == ("KeyError", "'k'")
    assert converted.backtrace == ""


def test_conversion_of_a_raised_exception_has_its_frames() -> None:
    def fail_in_python() -> None:
        raise ValueError("x")

    try:
        fail_in_python()
    except ValueError as exception:
        converted = tvm_ffi.convert(exception)
        passed = testing.echo(exception)
    assert "fail_in_python" in converted.backtrace
    assert "test_errors.py" in passed.backtrace


def test_an_exception_from_cpp_has_python_frames_only_after_conversion() -> None:
    def call_from_python() -> None:
        testing.test_raise_error("ValueError", "x")

    try:
        call_from_python()
    except ValueError as exception:
        attached = exception.__tvm_ffi_error__
        assert "call_from_python" not in attached.backtrace
        assert tvm_ffi.convert(exception) is attached
        assert "call_from_python" in attached.backtrace


def test_one_error_object_through_any_nesting() -> None:
    recorded: list[object] = []

    def level(n: int) -> None:
        if n == 0:
            testing.test_raise_error("ValueError", "deep")
        try:
            testing.apply(level, n - 1)
        except ValueError as exception:
            recorded.append(exception.__tvm_ffi_error__)
            raise

    with pytest.raises(ValueError, match="deep") as caught:
        testing.apply(level, 5)
    assert len(recorded) == 5
    assert all(one is caught.value.__tvm_ffi_error__ for one in recorded)


# ---- tracebacks ---------------------------------------------------------------------------------


def test_parse_backtrace() -> None:
    text = 'File "a.cc", line 1, in f\n  File "b.py", line 22, in <lambda>\nnonsense\n'
    assert error._parse_backtrace(text) == [("a.cc", 1, "f"), ("b.py", 22, "<lambda>")]
    assert error._parse_backtrace("") == []


def test_backtrace_text_is_most_recent_call_first() -> None:
    def inner() -> None:
        raise ValueError("x")

    def outer() -> None:
        inner()

    try:
        outer()
    except ValueError as exception:
        text = error._traceback_to_backtrace_str(exception.__traceback__)
    names = [name for _, _, name in error._parse_backtrace(text)]
    assert names[:2] == ["inner", "outer"]


def test_the_traceback_reads_from_python_into_cpp() -> None:
    try:
        testing.test_raise_error("ValueError", "x")
    except ValueError as exception:
        frames = traceback.extract_tb(exception.__traceback__)
        printed = "".join(traceback.format_exception(exception))
    assert frames[0].name == "test_the_traceback_reads_from_python_into_cpp"
    assert "TestRaiseError" in frames[-1].name
    assert frames[-1].filename.endswith(".cc")
    assert frames[-1].lineno > 0
    assert "TestRaiseError" in printed


def test_frames_of_a_callback_lie_between_cpp_frames() -> None:
    def raise_in_callback() -> None:
        testing.test_raise_error("ValueError", "x")

    try:
        testing.apply(raise_in_callback)
    except ValueError as exception:
        text = exception.__tvm_ffi_error__.backtrace
        names = [frame.name for frame in traceback.extract_tb(exception.__traceback__)]
    assert text.count("TestRaiseError") == 1
    assert text.count("in raise_in_callback") == 1
    assert text.index("TestRaiseError") < text.index("raise_in_callback") < text.index("TestApply")
    joined = " ".join(names)
    assert joined.index("TestApply") < joined.index("raise_in_callback")
    assert joined.index("raise_in_callback") < joined.index("TestRaiseError")


def test_synthetic_frames_know_their_place_and_nothing_else() -> None:
    exception = core.Error("ValueError", "x", '  File "f.cc", line 7, in Name\n').py_error()
    frame = exception.__traceback__.tb_frame
    assert frame.f_back is None
    assert frame.f_locals == {}
    assert (frame.f_code.co_name, frame.f_code.co_filename) == ("Name", "f.cc")
    assert exception.__traceback__.tb_lineno == 7
    traceback.clear_frames(exception.__traceback__)


def test_no_cycle_keeps_the_callers_locals_alive(no_gc: None) -> None:
    def caller() -> weakref.ref:
        local = Payload()
        watcher = weakref.ref(local)
        try:
            testing.test_raise_error("ValueError", "x")
        except ValueError:
            pass
        return watcher

    assert caller()() is None


def test_no_cycle_keeps_the_arguments_alive(no_gc: None) -> None:
    def caller() -> weakref.ref:
        local = Payload()
        watcher = weakref.ref(local)

        def fail(arg: object) -> None:
            raise ValueError("x")

        try:
            testing.apply(fail, local)
        except ValueError:
            pass
        return watcher

    assert caller()() is None


def test_errors_do_not_accumulate() -> None:
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(200):
        with pytest.raises(ValueError, match="x"):
            testing.test_raise_error("ValueError", "x")
    gc.collect()
    assert len(gc.get_objects()) < before + 400


def test_messages_of_every_alphabet() -> None:
    for text in ("", "\u4e2d\u6587 \U0001f600", "line\nline", "a\0b", "x" * 10_000):
        with pytest.raises(ValueError) as caught:
            testing.test_raise_error("ValueError", text)
        assert str(caught.value) == text

        def fail(text: str = text) -> None:
            raise ValueError(text)

        with pytest.raises(ValueError) as caught:
            testing.apply(fail)
        assert str(caught.value) == text


def test_an_exception_whose_text_fails_still_crosses() -> None:
    class Silent(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    def fail() -> None:
        raise Silent

    with pytest.raises(Silent) as caught:
        testing.apply(fail)
    assert "failed" in caught.value.__tvm_ffi_error__.message  # type: ignore[attr-defined]


def test_an_exception_in_a_callback_of_a_callback() -> None:
    def inner() -> None:
        raise IndexError("inner")

    def outer() -> None:
        try:
            testing.apply(inner)
        except IndexError as exception:
            raise KeyError("outer") from exception

    with pytest.raises(KeyError, match="outer"):
        testing.apply(outer)


def test_the_next_call_after_an_error_works() -> None:
    for _ in range(10):
        with pytest.raises(ValueError, match="x"):
            testing.test_raise_error("ValueError", "x")
        assert testing.echo(1) == 1


def test_registration_needs_an_exception_class() -> None:
    for bad in (3, [1]):
        with pytest.raises(TypeError):
            tvm_ffi.register_error(bad)
    with pytest.raises(TypeError):
        tvm_ffi.register_error("tests.NoClass", 3)
    with pytest.raises(TypeError):
        tvm_ffi.register_error("tests.NoException", int)


def test_frames_of_our_templates_are_not_shown() -> None:
    text = (
        '  File "zoo.cc", line 3, in Bird\n'
        '  File "/usr/include/tvm/ffi/memory.h", line 188, in MakeObject\n'
        '  File "include/tvm/ffi/reflection/registry.h", line 2, in operator()\n'
        '  File "my/tvm/ffi.h", line 7, in mine\n'
    )
    exception = error._with_append_backtrace(ValueError("x"), text)
    shown = [entry.filename for entry in traceback.extract_tb(exception.__traceback__)]
    assert shown == ["my/tvm/ffi.h", "zoo.cc"]
    assert len(error._parse_backtrace(text)) == 4


@pytest.mark.parametrize(
    "cls", [OverflowError, NotImplementedError, ZeroDivisionError, OSError, TimeoutError]
)
def test_a_kind_that_python_has_a_class_for(cls: type[Exception]) -> None:
    with pytest.raises(cls, match="^the message$"):
        testing.test_raise_error(cls.__name__, "the message")


def test_an_unknown_kind_is_part_of_the_text() -> None:
    with pytest.raises(RuntimeError, match="^UnheardOfError: no luck$"):
        testing.test_raise_error("UnheardOfError", "no luck")
    for kind in ("print", "SystemExit", "KeyboardInterrupt", "object"):
        with pytest.raises(RuntimeError, match=f"^{kind}: no luck$"):
            testing.test_raise_error(kind, "no luck")
