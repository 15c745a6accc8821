# SPDX-License-Identifier: Apache-2.0
"""Functions: calls, arguments and results of every kind, callbacks, functions from C symbols."""

from __future__ import annotations

import ctypes
import enum
import fractions
import gc
import os
import signal
import sys
import threading
import time
import weakref

import pytest
import tvm_ffi
from support import Payload, run_python
from tvm_ffi import core, testing

echo = testing.echo

# ---- values there and back ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        False,
        0,
        -1,
        2**63 - 1,
        -(2**63),
        0.0,
        -1.5,
        float("inf"),
        1e-300,
        "",
        "seven77",
        "eight888",
        "a string with \0 inside",
        "\u00e9\u4e2d\U0001f600",
        "x" * 100_000,
        b"",
        b"seven77",
        b"eight888",
        b"\0\xff" * 50_000,
    ],
    ids=repr,
)
def test_values_come_back_equal_and_of_the_same_kind(value: object) -> None:
    result = echo(value)
    assert result == value
    assert isinstance(result, type(value))


def test_nan_comes_back() -> None:
    assert echo(float("nan")) != echo(float("nan"))


def test_short_and_long_text_have_their_classes() -> None:
    assert type(echo("1234567")) is str
    assert type(echo("12345678")) is core.String
    assert type(echo(b"1234567")) is bytes
    assert type(echo(b"12345678")) is core.Bytes
    assert type(echo("\u4e2d\u4e2d")) is str
    assert type(echo("\u4e2d\u4e2d\u4e2d")) is core.String


def test_bool_and_int_stay_apart() -> None:
    assert echo(True) is True
    assert type(echo(1)) is int


class Colour(enum.IntEnum):
    RED = 3


class IntSubclass(int):
    pass


class FloatSubclass(float):
    pass


class StrSubclass(str):
    pass


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Colour.RED, 3),
        (IntSubclass(5), 5),
        (FloatSubclass(1.5), 1.5),
        (StrSubclass("text"), "text"),
        (fractions.Fraction(1, 2), 0.5),
        (bytearray(b"abc"), b"abc"),
        (bytearray(b"a long byte array"), b"a long byte array"),
    ],
)
def test_relatives_of_plain_values(value: object, expected: object) -> None:
    result = echo(value)
    assert result == expected
    assert type(result) in (type(expected), core.String, core.Bytes)


def test_sequences_and_mappings_become_containers() -> None:
    class Table(dict):
        pass

    for value in ([1, 2], (1, 2)):
        result = echo(value)
        assert type(result) is tvm_ffi.Array
        assert list(result) == [1, 2]
    for value in ({"a": 1}, Table(a=1)):
        result = echo(value)
        assert type(result) is tvm_ffi.Map
        assert dict(result.items()) == {"a": 1}
    nested = echo([1, [2, {"k": (3, "x")}], None])
    assert nested[1][1]["k"][1] == "x"


def test_pointers() -> None:
    assert echo(ctypes.c_void_p(0x1234)).value == 0x1234
    assert echo(ctypes.c_void_p(None)).value is None


@pytest.mark.parametrize(
    "value",
    [{1, 2}, 1 + 2j, range(3), memoryview(b"x"), KeyboardInterrupt(), object(), slice(1, 2), ...],
    ids=lambda value: type(value).__name__,
)
def test_anything_else_is_carried_as_it_is(value: object) -> None:
    assert echo(value) is value
    assert echo([value])[0] is value
    assert echo({"k": value})["k"] is value


def test_exceptions_become_errors() -> None:
    result = echo(ValueError("text"))
    assert isinstance(result, core.Error)
    assert (result.kind, result.message) == ("ValueError", "text")


def test_callables_become_functions() -> None:
    for value in (lambda x: x, print, int, Payload().__class__, "text".upper):
        assert isinstance(echo(value), tvm_ffi.Function)
    assert echo(int)("5") == 5


def test_protocols() -> None:
    class AsInt:
        def __tvm_ffi_int__(self) -> int:
            return 7

    class AsFloat:
        def __tvm_ffi_float__(self) -> int:
            return 10

    class AsPointer:
        def __tvm_ffi_opaque_ptr__(self) -> int:
            return 0x10

    class AsStream:
        def __cuda_stream__(self) -> tuple[str, int]:
            return ("anything", 1)

    class AsObject:
        def __tvm_ffi_object__(self) -> object:
            return tvm_ffi.Array([1])

    class AsValue:
        def __init__(self, value: object) -> None:
            self.value = value

        def __tvm_ffi_value__(self) -> object:
            return self.value

    class Convertible(core.ObjectConvertible):
        def asobject(self) -> object:
            return tvm_ffi.Array([2])

    assert echo(AsInt()) == 7
    assert isinstance(echo(AsFloat()), float)
    assert echo(AsFloat()) == 10.0
    assert echo(AsPointer()).value == 0x10
    assert echo(AsStream()).value == 1
    assert list(echo(AsObject())) == [1]
    assert list(echo(Convertible())) == [2]
    assert echo(AsValue(AsValue(AsValue(3)))) == 3
    assert list(echo([AsValue(1), AsValue("x")])) == [1, "x"]
    assert echo(AsValue(None)) is None


def test_the_object_of_a_protocol_is_itself() -> None:
    array = tvm_ffi.Array([1])

    class AsObject:
        def __tvm_ffi_object__(self) -> object:
            return array

    assert echo(AsObject()) is array
    assert echo((AsObject(),))[0] is array


# ---- calls --------------------------------------------------------------------------------------


def test_keyword_arguments_are_refused_and_an_empty_dict_is_not() -> None:
    with pytest.raises(TypeError, match=r"__call__\(\) got an unexpected keyword argument 'a'"):
        echo(1, a=1)
    assert echo(1, **{}) == 1


def test_hundreds_of_arguments() -> None:
    function = tvm_ffi.convert(lambda *args: list(args))
    assert list(function(*range(300))) == list(range(300))
    assert list(function(*["a long enough string"] * 300)) == ["a long enough string"] * 300
    assert len(tvm_ffi.Array(range(10_000))) == 10_000


def test_no_arguments_and_no_result() -> None:
    assert tvm_ffi.convert(lambda: None)() is None
    assert testing.nop() is None
    assert testing.nop(1, "x", [2]) is None


def test_argument_errors_name_function_and_argument() -> None:
    with pytest.raises(
        TypeError,
        match=r"Mismatched type on argument #0 when calling: `testing.add_one\(0: int\) -> int`. "
        r"Expected `int` but got `ffi.OpaquePyObject`",
    ):
        tvm_ffi.get_global_func("testing.add_one")(object())
    with pytest.raises(TypeError, match="Expected 1 but got 2 arguments"):
        tvm_ffi.get_global_func("testing.add_one")(1, 2)


def test_release_gil_is_a_property() -> None:
    function = tvm_ffi.convert(lambda: 1)
    assert function.release_gil is True
    function.release_gil = False
    assert function.release_gil is False
    assert function() == 1
    function.release_gil = 1
    assert function.release_gil is True


def test_release_gil_default_comes_from_the_environment() -> None:
    code = "import tvm_ffi; print(tvm_ffi.convert(lambda: 1).release_gil)"
    before = os.environ.get("TVM_FFI_RELEASE_GIL_BY_DEFAULT")
    os.environ["TVM_FFI_RELEASE_GIL_BY_DEFAULT"] = "0"
    try:
        assert run_python(code) == "False\n"
    finally:
        del os.environ["TVM_FFI_RELEASE_GIL_BY_DEFAULT"]
        if before is not None:
            os.environ["TVM_FFI_RELEASE_GIL_BY_DEFAULT"] = before


def test_other_threads_run_during_a_call() -> None:
    ran = threading.Event()
    thread = threading.Thread(target=ran.set)

    def callback() -> bool:
        thread.start()
        return ran.wait(10)

    assert testing.apply(tvm_ffi.convert(callback)) is True
    thread.join()


def test_functions_carry_attributes() -> None:
    function = tvm_ffi.convert(lambda: 1)
    function.note = "text"
    function.__name__ = "name"
    assert (function.note, function.__name__) == ("text", "name")
    assert function.__dict__ == {"note": "text", "__name__": "name"}
    with pytest.raises(AttributeError):
        _ = function.nothing


# ---- callbacks ----------------------------------------------------------------------------------


def test_callbacks_nest() -> None:
    def down(n: int) -> int:
        return 0 if n == 0 else 1 + testing.apply(down, n - 1)

    assert testing.apply(down, 50) == 50


def test_callback_arguments_have_their_classes() -> None:
    seen: list[object] = []

    def callback(*args: object) -> None:
        seen.extend(args)

    pair = testing.TestIntPair(1, 2)
    testing.apply(callback, 1, 1.5, True, None, "short", "a long string", b"x", pair, [1])
    assert [type(arg) for arg in seen] == [
        int,
        float,
        bool,
        type(None),
        str,
        core.String,
        bytes,
        testing.TestIntPair,
        tvm_ffi.Array,
    ]


def test_callback_results_of_every_kind() -> None:
    for value in (None, 1, 1.5, "a long string that is", b"bytes", bytearray(b"bytes"), True):
        assert testing.apply(lambda value=value: value) == value
    payload = Payload()
    assert testing.apply(lambda: payload) is payload
    assert list(testing.apply(lambda: [1, 2])) == [1, 2]
    assert testing.apply(lambda: lambda x: x + 1)(1) == 2


def test_a_callback_may_drop_its_own_function() -> None:
    box = [tvm_ffi.convert(lambda: box.clear())]
    box[0]()
    assert box == []


@pytest.mark.parametrize("is_function", [True, False])
def test_a_callback_may_drop_the_last_reference_to_itself(is_function: bool) -> None:
    class Callable:
        def __call__(self) -> int:
            api.TVMFFIObjectDecRef(handle)
            alive.append(wr() is not None)
            return 7

    api = ctypes.PyDLL(tvm_ffi.libinfo.find_libtvm_ffi())
    callable_ = (lambda: Callable.__call__(None)) if is_function else Callable()
    alive: list[bool] = []
    wr = weakref.ref(callable_)
    function = tvm_ffi.convert(callable_)
    handle = ctypes.c_void_p(function.__chandle__())
    api.TVMFFIObjectIncRef(handle)
    del callable_, function  # the count that was just added is the last one
    result = (ctypes.c_int64 * 2)()
    assert api.TVMFFIFunctionCall(handle, None, 0, result) == 0
    assert result[1] == 7
    assert alive == [True]
    assert wr() is None


def test_what_is_made_for_a_callable_lives_as_long_as_something_has_it() -> None:
    wrappers: list[weakref.ref[tvm_ffi.Function]] = []
    kept = tvm_ffi.List([])

    def look(function: tvm_ffi.Function, keep: bool) -> None:
        wrappers.append(weakref.ref(function))
        if keep:
            kept.append(function)

    callables = [lambda: 1, lambda: 2]
    testing.apply(look, callables[0], True)
    testing.apply(look, callables[1], False)
    assert [testing.apply(lambda n=n: n) for n in range(5)] == list(range(5))
    assert wrappers[0]() is kept[0]
    assert kept[0]() == 1
    assert wrappers[1]() is None
    references = [weakref.ref(item) for item in callables]
    del callables
    assert references[0]() is not None
    assert references[1]() is None


def test_a_callback_may_be_called_from_another_thread() -> None:
    function = tvm_ffi.convert(lambda x: x + 1)
    results: list[int] = []
    threads = [threading.Thread(target=lambda: results.append(function(1))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [2] * 8


def test_a_bound_method_and_a_callable_object() -> None:
    class Counter:
        def __init__(self) -> None:
            self.count = 0

        def add(self, n: int) -> int:
            self.count += n
            return self.count

        def __call__(self, n: int) -> int:
            return -n

    counter = Counter()
    add = tvm_ffi.convert(counter.add)
    assert [add(1), add(2)] == [1, 3]
    assert tvm_ffi.convert(counter)(5) == -5


# ---- functions from C symbols -------------------------------------------------------------------


def test_from_extern_c() -> None:
    function = tvm_ffi.Function.__from_extern_c__(testing.get_add_one_c_symbol())
    assert function(1) == 2
    with pytest.raises(TypeError):
        function("x")


def test_from_mlir_packed_safe_call() -> None:
    function = tvm_ffi.Function.__from_mlir_packed_safe_call__(testing.get_mlir_add_one_c_symbol())
    assert function(1) == 2
    with pytest.raises(TypeError):
        function("x")


@pytest.mark.parametrize(
    ("make", "symbol"),
    [
        (tvm_ffi.Function.__from_extern_c__, testing.get_add_one_c_symbol),
        (tvm_ffi.Function.__from_mlir_packed_safe_call__, testing.get_mlir_add_one_c_symbol),
    ],
)
def test_the_kept_object_is_held_once(make: object, symbol: object) -> None:
    payload = Payload()
    before = sys.getrefcount(payload)
    function = make(symbol(), keep_alive_object=payload)
    assert sys.getrefcount(payload) == before + 1
    watcher = weakref.ref(payload)
    del payload
    gc.collect()
    assert watcher() is not None
    assert function(1) == 2
    del function
    assert watcher() is None


# ---- signals ------------------------------------------------------------------------------------


def test_a_signal_ends_a_long_call() -> None:
    class Interrupted(Exception):
        pass

    def handler(*_: object) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGALRM, handler)
    try:
        begin = time.monotonic()
        with pytest.raises(Interrupted):
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            testing.run_check_signal(20)
        assert time.monotonic() - begin < 15
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_debug_info_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    core._print_debug_info()
    sys.stdout.flush()
    assert "TVMFFIPyGetArgDispatchMapSize" in capfd.readouterr().out


def test_a_registration_can_ask_to_keep_the_gil() -> None:
    short = tvm_ffi.get_global_func("testing.add_one_short")
    assert short(1) == 2 and short.release_gil is False
    assert tvm_ffi.get_global_func("testing.add_one").release_gil is True
    # The attribute belongs to the function from then on: asking again changes nothing.
    short.release_gil = True
    assert tvm_ffi.get_global_func("testing.add_one_short").release_gil is True
    short.release_gil = False


class _Bytes(ctypes.Structure):
    _fields_ = (("data", ctypes.c_char_p), ("size", ctypes.c_size_t))


class _MethodInfo(ctypes.Structure):
    _fields_ = (
        ("name", _Bytes),
        ("doc", _Bytes),
        ("metadata", _Bytes),
        ("flags", ctypes.c_int64),
        ("type_index", ctypes.c_int32),
        ("padding", ctypes.c_uint32),
        ("object", ctypes.c_void_p),
    )


_SAFE_CALL = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p
)
_return_none = _SAFE_CALL(lambda *_: 0)


def _register_with_metadata(name: str, metadata: str) -> core.Function:
    """A new global function, registered as a C++ library does it."""
    lib = ctypes.CDLL(tvm_ffi.libinfo.find_libtvm_ffi())
    handle = ctypes.c_void_p()
    assert lib.TVMFFIFunctionCreate(None, _return_none, None, ctypes.byref(handle)) == 0
    texts = [_Bytes(t.encode(), len(t.encode())) for t in (name, "", metadata)]
    info = _MethodInfo(*texts, 0, 68, 0, handle)
    assert lib.TVMFFIFunctionSetGlobalFromMethodInfo(ctypes.byref(info), 1) == 0
    lib.TVMFFIObjectDecRef(handle)
    function = tvm_ffi.get_global_func(name)
    tvm_ffi.registry.remove_global_func(name)
    return function


@pytest.mark.parametrize(
    ("metadata", "release_gil"),
    [
        ('{"release_gil":false}', False),
        ('{"release_gil" : 0, "x": 1}', False),
        ('{"x": [1, {"y": 2}], "release_gil": false}', False),
        ('{"release_gil":true}', True),
        ('{"release_gil":1}', True),
        # It is about the function only at the top level and as a key.
        ('{"x": {"release_gil": false}}', True),
        ('{"x": "\\"release_gil\\": false"}', True),
        ('["release_gil", false]', True),
        ('{"release_gil": null}', True),
        ('{"release_gil": "no"}', True),
        # What cannot be read says nothing.
        ('{"release_gil":false', True),
        ('{"release_gil":', True),
        ('"release_gil":false', True),
        ("release_gil", True),
        ("", True),
    ],
)
def test_the_metadata_of_a_function_is_read_as_json(metadata: str, release_gil: bool) -> None:
    function = _register_with_metadata("testing.with_metadata", metadata)
    assert function.release_gil is release_gil
    assert function() is None


def test_moves_of_a_function_do_not_pile_up() -> None:
    """A function that leaves its wrapper is kept for calls in progress, once."""
    function, other = (tvm_ffi.convert(lambda: 1) for _ in range(2))
    before = testing.object_use_count(function)
    for _ in range(100):
        with pytest.raises(ValueError, match="already has"):
            other.__move_handle_from__(function)
    assert testing.object_use_count(function) == before
    for _ in range(100):
        empty = core._new_object(tvm_ffi.Function)
        empty.__move_handle_from__(function)
        function.__move_handle_from__(empty)
        del empty
    assert testing.object_use_count(function) <= before + 1
