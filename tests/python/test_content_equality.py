# SPDX-License-Identifier: Apache-2.0
"""`==` of containers and of classes with eq=True: the elements decide, whatever their type."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import tvm_ffi
from tvm_ffi import Array, Dict, List, from_dlpack
from tvm_ffi.dataclasses import py_class

numpy = pytest.importorskip("numpy")


@py_class("test_content_equality.Holder", eq=True, order=True)
class Holder(tvm_ffi.Object):
    item: Any


WAYS: dict[str, Callable[[Any], Any]] = {
    "Array": lambda item: Array([item]),
    "List": lambda item: List([item]),
    "Dict": lambda item: Dict({"key": item}),
    "field": Holder,
    "deep": lambda item: Array([Dict({1: Holder(item)})]),
}
DIFFERENT: dict[str, tuple[Any, Any]] = {
    "functions": (len, max),
    "complex": (1j, 2j),
    "sets": ({1}, {2}),
    "objects": (object(), object()),
    "errors": (
        tvm_ffi.core.Error("ValueError", "a", ""),
        tvm_ffi.core.Error("ValueError", "b", ""),
    ),
    "modules": (tvm_ffi.system_lib("test_eq_a_"), tvm_ffi.system_lib("test_eq_b_")),
}


def tensor(array: Any) -> tvm_ffi.Tensor:
    return from_dlpack(array)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("pair", DIFFERENT.values(), ids=DIFFERENT)
def test_other_content_is_unequal(way: Callable[[Any], Any], pair: tuple[Any, Any]) -> None:
    x, y = pair
    assert way(x) != way(y)
    assert way(x) == way(x) and hash(way(x)) == hash(way(x))
    assert copy.copy(way(x)) == way(x)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_tensors_are_equal_by_type_shape_and_elements(way: Callable[[Any], Any]) -> None:
    base = numpy.arange(24, dtype="int32").reshape(4, 6)
    x = tensor(base)
    equal = [x, tensor(base), tensor(base.copy()), pickle.loads(pickle.dumps(x))]
    for other in equal:
        assert way(x) == way(other) and hash(way(x)) == hash(way(other))
    changed = base.copy()
    changed[3, 5] += 1
    for array in (changed, base.reshape(6, 4), base.astype("uint32"), base[:, :5].copy(), base[:0]):
        assert way(x) != way(tensor(array))


def test_tensors_with_gaps_are_compared_element_by_element() -> None:
    rng = numpy.random.default_rng(5)
    wide = rng.integers(0, 3, (6, 8, 10), dtype="int16")
    views = [
        wide[::2, 1:, ::3],
        wide[3:, :7, 6:],
        wide.transpose(2, 0, 1)[:4],
        wide[:, ::2],
    ]
    for view in views:
        same = view.copy()
        assert Array([tensor(view)]) == Array([tensor(same)])
        assert Array([tensor(same)]) == Array([tensor(view)])
        for _ in range(20):
            other = view.copy()
            position = tuple(rng.integers(0, n) for n in view.shape)
            other[position] += 1
            assert Array([tensor(view)]) != Array([tensor(other)])
            assert Array([tensor(other)]) != Array([tensor(view)])
    empty = wide[:, :0, ::2]
    assert Array([tensor(empty)]) == Array([tensor(empty.copy())])


def test_random_strides_beside_numpy() -> None:
    """Also negative ones, and zeros in one tensor or in both."""
    rng = numpy.random.default_rng(6)
    strided = numpy.lib.stride_tricks.as_strided
    answers = {True: 0, False: 0}
    for _ in range(2000):
        shape = rng.integers(1, 4, rng.integers(0, 4))
        views = []
        common = rng.integers(0, 2, 80, dtype="int16")
        for _ in range(2):
            block = common if rng.random() < 0.5 else rng.integers(0, 2, 80, dtype="int16")
            steps = rng.choice([-12, -6, -2, 0, 0, 2, 4, 6, 12], shape.size)
            views.append(strided(block[40:], shape, steps))
        expected = numpy.array_equal(*views)
        answers[expected] += 1
        x, y = map(tensor, views)
        assert (Array([x]) == Array([y])) is expected
        assert Array([x]) == Array([tensor(views[0].copy())])
    assert min(answers.values()) > 100


def test_elements_that_are_shown_again_are_compared_once() -> None:
    """The shape says 10^12 elements, the memory holds three."""
    strided, many = numpy.lib.stride_tricks.as_strided, 10**12
    for order in [(0, 1), (1, 0)]:
        x, y, z = (
            strided(numpy.array(row, "int8"), (many, 3), (0, 1)).transpose(order)
            for row in ([1, 2, 3], [1, 2, 3], [1, 2, 4])
        )
        assert Array([tensor(x)]) == Array([tensor(y)])
        assert Array([tensor(x)]) != Array([tensor(z)])


@pytest.mark.parametrize("pair", DIFFERENT.values(), ids=DIFFERENT)
def test_what_has_no_order_is_not_ordered(pair: tuple[Any, Any]) -> None:
    x, y = pair
    with pytest.raises(TypeError, match="Cannot order values of type"):
        assert Holder(x) < Holder(y)
    assert Holder(x) <= Holder(x)


class Stack(List):
    """A List with a constructor of its own."""

    __slots__ = ("__dict__",)

    def __init__(self, name: str, items: Any) -> None:
        super().__init__(items)
        self.name = name


class Row(Array):
    """An Array that counts how often one is made."""

    made = 0

    def __init__(self, items: Any) -> None:
        Row.made += 1
        super().__init__(items)


class Plain(Array):
    """An Array with its constructor."""


def test_comparisons_call_no_constructor_of_a_subclass() -> None:
    stack = Stack("s", [1, [2]])
    assert stack == [1, [2]] and stack != [] and [2] in stack and (9, 9) not in stack
    assert stack.index([2]) == 1 and stack.count([2]) == 1
    assert stack == List([1, [2]]) and List([1, [2]]) == stack
    row = Row([1])
    Row.made = 0
    assert row == [1] and [5] not in row
    assert Row.made == 0


def test_a_sum_is_of_the_class_if_that_has_the_constructor() -> None:
    assert type(Plain([1]) + [2]) is Plain and type([0] + Plain([1])) is Plain
    stack = Stack("s", [1]) + [3]
    assert type(stack) is List and list(stack) == [1, 3]
    assert type([0] + Row([1])) is Array
