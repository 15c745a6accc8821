# SPDX-License-Identifier: Apache-2.0
"""The tensors that calls make of arrays are used again: nobody may notice."""

from __future__ import annotations

import gc
import random
import sys
import weakref
from typing import Any

import numpy as np
import pytest
import tvm_ffi

echo = tvm_ffi.get_global_func("testing.echo")


def array_of(dims: int, first: int = 1) -> Any:
    shape = tuple(first + i % 3 for i in range(dims))
    return np.arange(np.prod(shape, dtype=int), dtype="float32").reshape(shape)


def same(tensor: Any, array: Any) -> bool:
    back = np.from_dlpack(tensor)
    return back.shape == array.shape and back.strides == array.strides and (back == array).all()


@pytest.mark.parametrize("dims", range(9))
def test_number_of_dimensions_changes_from_call_to_call(dims: int) -> None:
    for other in (0, 1, 5, 6, 7, dims):
        assert same(echo(array_of(other)), array_of(other))
        array = array_of(dims, 2)
        assert same(echo(array), array)


def test_what_the_callee_keeps_is_not_used_again() -> None:
    random_ = random.Random(1)
    kept = tvm_ffi.List()
    arrays = []
    for _ in range(300):
        array = array_of(random_.randrange(8), random_.randrange(1, 4))
        if random_.random() < 0.5:
            kept.append(array)
            arrays.append(array)
        else:
            assert same(echo(array), array)
        if arrays and random_.random() < 0.2:
            i = random_.randrange(len(arrays))
            kept.pop(i)
            arrays.pop(i)
    assert len(kept) == len(arrays)
    assert all(same(tensor, array) for tensor, array in zip(kept, arrays, strict=True))


def test_what_python_keeps_is_not_used_again() -> None:
    first = array_of(2)
    tensor = echo(first)
    reference = weakref.ref(tensor)
    for dims in range(7):
        echo(array_of(dims))
    assert same(tensor, first) and reference() is tensor
    del tensor
    gc.collect()
    assert reference() is None
    assert same(echo(first), first)


def test_more_tensors_than_are_kept_for_the_next_call() -> None:
    arrays = [array_of(1 + i % 4, 1 + i % 2) for i in range(40)]
    count = [0]

    def check(*tensors: Any) -> int:
        count[0] += 1
        return sum(same(t, a) for t, a in zip(tensors, arrays, strict=True))

    for _ in range(3):
        assert tvm_ffi.convert(check)(*arrays) == len(arrays)
    assert count == [3]


def test_calls_inside_calls() -> None:
    def deeper(tensor: Any, left: int) -> int:
        array = np.from_dlpack(tensor)
        below = function(array[:-1].copy(), left - 1) if left else 0
        assert array.shape == (left + 1,)
        return below + int(array.sum())

    function = tvm_ffi.convert(deeper)
    assert function(np.ones(31), 30) == sum(range(1, 32))


def test_the_array_is_let_go_of() -> None:
    array = array_of(3)
    before = sys.getrefcount(array)
    for _ in range(100):
        echo(array)
    with pytest.raises(Exception):  # noqa: B017
        tvm_ffi.get_global_func("testing.schema_id_int")(array)
    gc.collect()
    assert sys.getrefcount(array) == before
    reference = weakref.ref(array)
    del array
    gc.collect()
    assert reference() is None


def test_array_that_dies_with_the_call_runs_code() -> None:
    """The finalizer of the array calls again, while the tensor goes to those that are kept."""
    seen = []

    class Array(np.ndarray):
        def __del__(self) -> None:
            seen.append(same(echo(array_of(2)), array_of(2)))

    for _ in range(20):
        echo(array_of(2).view(Array))
    gc.collect()
    assert seen and all(seen)
