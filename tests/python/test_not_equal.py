# SPDX-License-Identifier: Apache-2.0
"""``!=`` is the opposite of ``==``, whoever defines that; text is ordered as Python orders it."""

from __future__ import annotations

from typing import Any

import pytest
import tvm_ffi
from tvm_ffi import testing
from tvm_ffi.dataclasses import py_class


@py_class("testing.not_equal.Base", eq=True)
class Base(tvm_ffi.Object):
    a: int


@py_class("testing.not_equal.Plain")
class Plain(tvm_ffi.Object):
    a: int


@py_class("testing.not_equal.Own", eq=True)
class Own(tvm_ffi.Object):
    a: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Own)

    __hash__ = tvm_ffi.Object.__hash__


MAKERS: dict[type, list[tuple[Any, ...]]] = {
    testing.TestIntPair: [(1, 2), (1, 2), (3, 4)],
    Base: [(1,), (1,), (2,)],
    Plain: [(1,), (1,), (2,)],
    Own: [(1,), (1,), (2,)],
    tvm_ffi.Array: [([1],), ([1],), ([2],)],
    tvm_ffi.List: [([1],), ([1],), ([2],)],
    tvm_ffi.Map: [({1: 1},), ({1: 1},), ({},)],
    tvm_ffi.Dict: [({1: 1},), ({1: 1},), ({},)],
}
ANSWERS = {"always": True, "never": False, "elsewhere": NotImplemented}


@pytest.mark.parametrize("base", MAKERS)
def test_of_the_class_itself(base: Any) -> None:
    objects = [base(*arguments) for arguments in MAKERS[base]]
    for x in objects:
        for y in [*objects, 1, None, object()]:
            assert {x == y, x != y} == {y == x, y != x} == {True, False}


@pytest.mark.parametrize("base", MAKERS)
@pytest.mark.parametrize("answer", ANSWERS)
def test_of_a_subclass_that_defines_only_eq(base: Any, answer: str) -> None:
    class Sub(base):
        def __eq__(self, other: object) -> Any:
            return ANSWERS[answer]

        __hash__ = base.__hash__

    class SubSub(Sub):
        pass

    for cls in (Sub, SubSub):
        x, y = (cls(*arguments) for arguments in MAKERS[base][::2])
        equal = answer == "always"
        assert (x == y) is equal and (x != y) is not equal
        assert (x == x) is (answer != "never") and (x != x) is (answer == "never")


def test_an_error_in_eq_is_raised_by_both() -> None:
    class Bad(Plain):
        def __eq__(self, other: object) -> bool:
            raise ZeroDivisionError

        __hash__ = Plain.__hash__

    x = Bad(1)
    for compare in (lambda: x == 1, lambda: x != 1):
        with pytest.raises(ZeroDivisionError):
            compare()


@py_class("testing.not_equal.Ordered", eq=True, order=True)
class Ordered(tvm_ffi.Object):
    a: Any


def test_text_is_ordered_by_code_points() -> None:
    texts = ["", "a", "z", "é", "é" * 20, "z" * 20, "日本", "abc", "ā", "ÿ", "\U0001f600", "\uffff"]
    raw = [b"", b"a", b"\x7f", b"\x80", b"\xff", b"\x80" * 20, b"z" * 20]
    for values in (texts, raw):
        for x in values:
            for y in values:
                assert (Ordered(x) < Ordered(y)) is (x < y)
                assert (Ordered(x) >= Ordered(y)) is (x >= y)
