# SPDX-License-Identifier: Apache-2.0
"""Shape: a tuple that keeps its FFI object."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import tvm_ffi
from tvm_ffi import Shape, core
from tvm_ffi.testing import echo


@pytest.mark.parametrize("content", [(), (3,), (2, 3), (1, -2), (2**63 - 1, -(2**63))])
def test_shapes_are_tuples(content: tuple[int, ...]) -> None:
    shape = Shape(content)
    assert isinstance(shape, tuple) and shape == content
    assert repr(shape) == repr(content) and hash(shape) == hash(content)
    assert len(shape) == len(content) and list(shape) == list(content)
    back = echo(shape)
    assert type(back) is Shape and back == content
    assert back._tvm_ffi_cached_object.same_as(shape._tvm_ffi_cached_object)
    assert core._shape_obj_get_py_tuple(shape._tvm_ffi_cached_object) == content
    assert tvm_ffi.convert(shape) is shape
    for again in (pickle.loads(pickle.dumps(shape)), copy.copy(shape), copy.deepcopy(shape)):
        assert type(again) is Shape and again == content and echo(again) == content


def test_any_iterable_of_integers() -> None:
    numpy = pytest.importorskip("numpy")
    for content in ([2, 3], iter((2, 3)), range(2, 4), tvm_ffi.Array([2, 3]), numpy.array([2, 3])):
        made = Shape(content)
        assert made == (2, 3) and all(type(extent) is int for extent in made)
    assert Shape([True, numpy.int8(4)]) == (1, 4)


@pytest.mark.parametrize(
    ("content", "error", "text"),
    [
        ((1, 2.0), ValueError, "Shape must be a tuple of integers, got 2.0"),
        (("1",), ValueError, "Shape must be a tuple of integers, got '1'"),
        ("12", ValueError, "Shape must be a tuple of integers, got '1'"),
        ((None,), ValueError, "Shape must be a tuple of integers, got None"),
        (((1,),), ValueError, r"Shape must be a tuple of integers, got \(1,\)"),
        (3, TypeError, "not iterable"),
        (None, TypeError, "not iterable"),
        ((1, 2**63), (OverflowError, ValueError), "9223372036854775808|Expect shape"),
    ],
)
def test_bad_shapes_are_named(content: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        Shape(content)
    with pytest.raises(TypeError):
        Shape()  # type: ignore[call-arg]


def test_shapes_from_cpp_and_in_containers() -> None:
    made = tvm_ffi.get_global_func("ffi.Shape")(4, 5)
    assert type(made) is Shape and made == (4, 5)
    box = tvm_ffi.Array([Shape((1, 2)), {"s": Shape((3,))}])
    assert type(box[0]) is Shape and box[0] == (1, 2) and box[1]["s"] == (3,)
    seen = []
    tvm_ffi.convert(lambda s: seen.append((type(s), s)))(Shape((7, 8)))
    assert seen == [(Shape, (7, 8))]
    with pytest.raises(ValueError, match="Expect shape to take list of int arguments"):
        tvm_ffi.get_global_func("ffi.Shape")(1, "2")


def test_an_object_that_is_no_shape() -> None:
    with pytest.raises(TypeError, match="expected an ffi.Shape, got `ffi.Array`"):
        core._shape_obj_get_py_tuple(tvm_ffi.Array([1]))
    with pytest.raises(TypeError, match="expected an ffi.Shape, got tuple"):
        core._shape_obj_get_py_tuple((1, 2))  # type: ignore[arg-type]
    made = Shape.__from_tvm_ffi_object__(Shape, Shape((1, 2))._tvm_ffi_cached_object)
    assert made == (1, 2) and type(made) is Shape
    empty = tuple.__new__(Shape, (1,))
    empty._tvm_ffi_cached_object = None
    with pytest.raises(ValueError, match="_tvm_ffi_cached_object is None for .*Shape"):
        echo(empty)
    with pytest.raises(TypeError, match="subclass of tuple"):
        core._set_class_shape(list)


@pytest.mark.parametrize(
    ("shape", "strides"),
    [((), ()), ((3,), (1,)), ((2, 3, 4), (12, 4, 1)), ((2, 0, 3), (0, 3, 1)), ([1, 1], (1, 1))],
)
def test_strides_of_a_shape(shape: Any, strides: tuple[int, ...]) -> None:
    assert core._make_strides_from_shape(shape) == strides


def test_strides_of_what_is_no_shape() -> None:
    with pytest.raises(TypeError, match="shape extent, got str"):
        core._make_strides_from_shape("ab")  # type: ignore[arg-type]
    with pytest.raises(OverflowError, match="shape extent 9223372036854775808"):
        core._make_strides_from_shape((2**63,))
    with pytest.raises(TypeError):
        core._make_strides_from_shape(3)  # type: ignore[arg-type]
