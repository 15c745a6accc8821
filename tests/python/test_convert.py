# SPDX-License-Identifier: Apache-2.0
"""convert and convert_func."""

from __future__ import annotations

import ctypes

import pytest
import tvm_ffi
from support import Payload
from tvm_ffi import core, testing


@pytest.mark.parametrize(
    "value", [None, True, 1, 1.5, 1 + 2j, ctypes.c_void_p(1)], ids=lambda v: type(v).__name__
)
def test_plain_values_come_back_unchanged(value: object) -> None:
    assert tvm_ffi.convert(value) is value


def test_objects_come_back_unchanged() -> None:
    for value in (
        tvm_ffi.Array([1]),
        testing.TestIntPair(1, 2),
        core.String("x"),
        core.Bytes(b"x"),
        core.MISSING,
        tvm_ffi.convert(lambda: 1),
        tvm_ffi.convert(ValueError("x")),
        tvm_ffi.convert(Payload()),
    ):
        assert tvm_ffi.convert(value) is value


@pytest.mark.parametrize(
    ("value", "cls"),
    [
        ([1], tvm_ffi.Array),
        ((1,), tvm_ffi.Array),
        ({"a": 1}, tvm_ffi.Map),
        ("text", core.String),
        (b"bytes", core.Bytes),
        (bytearray(b"bytes"), core.Bytes),
        (len, tvm_ffi.Function),
        (ValueError("x"), core.Error),
        ({1, 2}, core.OpaquePyObject),
        (object(), core.OpaquePyObject),
        (KeyboardInterrupt(), core.OpaquePyObject),
    ],
    ids=lambda v: getattr(v, "__name__", type(v).__name__),
)
def test_each_kind_has_its_class(value: object, cls: type) -> None:
    assert type(tvm_ffi.convert(value)) is cls


def test_nested_values() -> None:
    made = tvm_ffi.convert([1, {"a": (2, [None])}, "x"])
    assert made[1]["a"][1][0] is None
    assert made[2] == "x"


def test_convertible_objects() -> None:
    class Convertible(tvm_ffi.ObjectConvertible):
        def __init__(self, value: object) -> None:
            self.value = value

        def asobject(self) -> object:
            return self.value

    array = tvm_ffi.Array([1])
    assert tvm_ffi.convert(Convertible(array)) is array
    assert testing.echo(Convertible(array)) is array
    with pytest.raises(TypeError, match="asobject"):
        tvm_ffi.convert(Convertible(3))
    with pytest.raises(NotImplementedError):
        tvm_ffi.ObjectConvertible().asobject()


def test_protocol_objects() -> None:
    class AsInt:
        def __tvm_ffi_int__(self) -> int:
            return 1

    class AsObject:
        def __tvm_ffi_object__(self) -> object:
            return array

    array = tvm_ffi.Array([1])
    value = AsInt()
    assert tvm_ffi.convert(value) is value
    assert tvm_ffi.convert(AsObject()) is array


def test_convert_func() -> None:
    function = tvm_ffi.convert_func(lambda a, b: a + b)
    assert function(1, 2) == 3
    with pytest.raises(TypeError, match="must expose __dlpack_c_exchange_api__"):
        tvm_ffi.convert_func(lambda: 1, tensor_cls=int)

    def fail() -> None:
        raise IndexError("text")

    with pytest.raises(IndexError, match="text"):
        tvm_ffi.convert_func(fail)()


def test_native_objects_keep_an_object_beside_them() -> None:
    class Pair(tuple, core.PyNativeObject):
        def __new__(cls, *values: object) -> Pair:
            self = tuple.__new__(cls, values)
            self.__init_cached_object_by_constructor__(
                tvm_ffi.get_global_func("ffi.Array"), *values
            )
            return self

    pair = Pair(1, 2)
    assert testing.echo(pair) is pair._tvm_ffi_cached_object
    assert tvm_ffi.get_global_func("ffi.ArraySize")(pair) == 2
    assert tvm_ffi.convert(pair) is pair


def test_a_value_of_more_than_one_kind() -> None:
    """Arguments and `convert` ask in different orders; `convert` also looks at the value itself."""

    class Elements(list):
        def __tvm_ffi_object__(self) -> object:
            return array

    class Action:
        def __call__(self) -> int:
            return 1

        def __dlpack__(self, **_: object) -> object:
            raise BufferError("not a tensor")

    class Plain:
        pass

    array = tvm_ffi.Array([1])
    assert testing.echo(Elements([2])) is array
    assert list(tvm_ffi.convert(Elements([2]))) == [2]
    assert tvm_ffi.convert(Action())() == 1
    with pytest.raises(BufferError):
        testing.echo(Action())
    plain = Plain()
    assert type(tvm_ffi.convert(plain)) is core.OpaquePyObject
    plain.__tvm_ffi_int__ = lambda: 1  # type: ignore[attr-defined]
    assert tvm_ffi.convert(plain) is plain
    assert testing.echo(plain) is plain


def test_an_attribute_that_fails_is_reported() -> None:
    class Fails:
        @property
        def __dlpack__(self) -> object:
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        tvm_ffi.convert(Fails())
