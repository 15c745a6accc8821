# SPDX-License-Identifier: Apache-2.0
"""Exceptions that are on their way while something else runs: neither disturbs the other.

CPython drops what a failing frame had while the exception is set. What dies then may be an object
of C++ whose destructor calls Python.
"""

from __future__ import annotations

import ctypes
import gc
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import foreign  # type: ignore[import-not-found]
import pytest
import tvm_ffi
from support import compile_library, fresh_key
from tvm_ffi import core, testing
from tvm_ffi.dataclasses import py_class


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    if shutil.which("c++") is None:
        pytest.skip("no C++ compiler: clients cannot be built")
    source = Path(__file__).with_name("destructor_client.cc")
    return tvm_ffi.load_module(
        str(compile_library(source, tmp_path_factory.mktemp("cpp") / "destructors.so"))
    )


def function(name: str) -> Any:
    return tvm_ffi.get_global_func(f"destructor_client.{name}")


@pytest.fixture
def interrupts() -> Iterator[list[int]]:
    """What arrived as Ctrl-C."""
    seen: list[int] = []
    before = signal.signal(signal.SIGINT, lambda *_: seen.append(1))
    yield seen
    signal.signal(signal.SIGINT, before)


# ---- C++ calls Python while an exception is set -------------------------------------------------


def test_a_destructor_may_call_python_while_an_exception_is_on_its_way(library: Any) -> None:
    at_end, seen = function("call_at_end"), []
    with pytest.raises(ZeroDivisionError) as raised:
        [at_end(lambda: seen.append(sorted([2, 1]))), 1 // 0]
    assert seen == [[1, 2]]
    assert raised.value.__context__ is None


def test_what_such_a_call_raises_does_not_replace_the_exception(library: Any) -> None:
    def fail() -> None:
        raise KeyError("inner")

    with pytest.raises(IndexError, match="outer"):
        [function("call_at_end")(fail), testing.apply(raise_index_error)]


def raise_index_error() -> None:
    raise IndexError("outer")


def test_such_a_call_may_call_c_plus_plus_again(library: Any) -> None:
    seen: list[Any] = []

    def work() -> None:
        with pytest.raises(ValueError, match="inside"):
            testing.apply(lambda x: int("inside"), 1)
        seen.append(testing.apply(lambda *args: list(args), *range(12)))
        seen.append(tvm_ffi.Map({"k": 1})["k"])

    with pytest.raises(ZeroDivisionError):
        [function("call_at_end")(work), 1 // 0]
    assert seen == [list(range(12)), 1]


def test_a_destructor_may_set_a_field_that_converts(library: Any) -> None:
    @py_class(fresh_key())
    class Typed(tvm_ffi.Object):
        items: list[float]

    typed = Typed([1.5])
    with pytest.raises(ZeroDivisionError):
        [function("set_at_end")(typed, "items", [2, 3]), 1 // 0]
    assert list(typed.items) == [2.0, 3.0]
    with pytest.raises(ZeroDivisionError):
        [function("set_at_end")(typed, "items", ["no number"]), 1 // 0]
    assert list(typed.items) == [2.0, 3.0]


def test_handlers_of_signals_wait_for_the_exception_to_arrive(library: Any) -> None:
    seen: list[Any] = []
    before = signal.signal(signal.SIGUSR1, lambda *_: seen.append(sorted([2, 1])))
    try:
        with pytest.raises(ZeroDivisionError):
            [function("check_signals_at_end")(), 1 // 0]
        assert seen == [[1, 2]]
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_an_error_of_an_old_binary_has_no_context(library: Any) -> None:
    """Its cell ends before that."""
    error = function("short_error")()
    assert (error.kind, error.message, error.extra_context) == ("ValueError", "short", None)


# ---- what dies while the collector may look -----------------------------------------------------


class Boom:
    """Starts a collection when it dies."""

    deaths: list[int] = []  # noqa: RUF012

    def __del__(self) -> None:
        gc.collect()
        Boom.deaths.append(1)


def make_property() -> Any:
    return core.FFIProperty(lambda _: 1, Boom(), True, doc=Boom())


def make_derived_property() -> Any:
    made = type("Derived", (core.FFIProperty,), {})(lambda _: 1, Boom(), False)
    made.more = Boom()
    return made


def make_rvalue_ref() -> Any:
    made = core.ObjectRValueRef.__new__(core.ObjectRValueRef)
    made.obj = Boom()
    return made


def make_function() -> Any:
    made = tvm_ffi.convert(lambda _: 1)
    made.boom = Boom()
    return made


def make_iterator() -> Any:
    class Holds(tvm_ffi.List):
        __slots__ = ("boom",)

    items = Holds([1])
    items.boom = Boom()
    return iter(items)


def make_map_iterator() -> Any:
    return iter(tvm_ffi.Dict({"k": tvm_ffi.convert(Boom())}).items())


def make_wrapper() -> Any:
    class Holds(testing.TestIntPair):
        __slots__ = ("__dict__",)

    made = Holds(1, 2)
    made.boom = Boom()
    return made


@pytest.mark.parametrize(
    "make",
    [
        make_property,
        make_derived_property,
        make_rvalue_ref,
        make_function,
        make_iterator,
        make_map_iterator,
        make_wrapper,
    ],
)
def test_what_an_object_lets_go_of_may_start_a_collection(make: Any) -> None:
    for _ in range(20):
        Boom.deaths.clear()
        made = make()
        del made
        gc.collect()
        assert Boom.deaths


# ---- Ctrl-C where errors are passed over --------------------------------------------------------


def interrupt(*_: Any) -> Any:
    raise KeyboardInterrupt


def test_an_interrupt_while_an_exception_is_described_is_not_lost(interrupts: list[int]) -> None:
    class Described(Exception):
        __tvm_ffi_error__ = property(interrupt)
        __str__ = interrupt

    with pytest.raises(Described):
        testing.apply(lambda: (_ for _ in ()).throw(Described()))
    assert interrupts


def test_an_interrupt_in_a_message_is_not_lost(interrupts: list[int]) -> None:
    @py_class(fresh_key())
    class Typed(tvm_ffi.Object):
        table: dict[str, int]

    class Nameless:
        __repr__ = interrupt

    typed = Typed({})
    with pytest.raises(TypeError):
        typed.table = {Nameless(): 1}
    assert interrupts


@pytest.mark.parametrize("name", ["__index__", "item"])
def test_an_interrupt_in_the_index_of_a_device_is_raised(name: str) -> None:
    index = type("Index", (), {name: interrupt})()
    with pytest.raises(KeyboardInterrupt):
        tvm_ffi.Device("cuda", index)
    with pytest.raises(TypeError, match="Invalid device index"):
        tvm_ffi.Device("cuda", object())  # type: ignore[arg-type]


def test_an_interrupt_while_the_stream_is_asked_for_is_not_lost(
    library: Any, interrupts: list[int]
) -> None:
    api = foreign.ExchangeAPI.from_buffer_copy(foreign.api)
    api.stream = function("interrupted_stream")()
    apis.append(api)

    class Interrupted(foreign.Tensor):
        __dlpack_c_exchange_api__ = ctypes.addressof(api)

    assert testing.echo(Interrupted(device=(2, 0))) is not None
    assert interrupts


apis: list[Any] = []  # an API stays for good
