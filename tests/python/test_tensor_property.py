# SPDX-License-Identifier: Apache-2.0
"""Whatever numpy makes, the tensor over it shows the same elements; dtype texts round trip."""

from __future__ import annotations

from typing import Any

import foreign
import pytest
import tvm_ffi
from support import assert_same_strides, scaled
from tvm_ffi import core, dtype, from_dlpack
from tvm_ffi.testing import echo

numpy = pytest.importorskip("numpy")
pytest.importorskip("hypothesis")
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

KINDS = ["bool", "int8", "uint16", "int32", "uint64", "float16", "float32", "float64", "complex128"]


@st.composite
def arrays(draw: st.DrawFn) -> Any:
    """An array with gaps, steps backwards, repeated and missing elements, axes in any order."""
    shape = draw(st.lists(st.integers(0, 4), max_size=5))
    base = numpy.arange(int(numpy.prod(shape))).reshape(shape).astype(draw(st.sampled_from(KINDS)))
    steps = st.sampled_from([-3, -2, -1, 1, 2, 3])
    slices = tuple(
        slice(
            draw(st.none() | st.integers(-4, 4)), draw(st.none() | st.integers(-4, 4)), draw(steps)
        )
        for _ in shape
    )
    array = base[(*slices, ...)]  # the dots keep an array of no dimensions one
    array = array.transpose(draw(st.permutations(range(array.ndim))))
    if draw(st.booleans()):
        array = array[..., None]
    return array


def elements(tensor: Any, array: Any) -> Any:
    """The elements at the tensor's address, shape and strides."""
    return numpy.lib.stride_tricks.as_strided(
        numpy.from_dlpack(tensor), tensor.shape, [s * array.itemsize for s in tensor.strides]
    )


@settings(max_examples=scaled(300), deadline=None)
@given(arrays())
def test_tensors_show_what_numpy_shows(array: Any) -> None:
    for tensor in (
        echo(array),
        from_dlpack(array),
        echo([array])[0],
        from_dlpack(array.__dlpack__()),
    ):
        assert tensor.shape == array.shape and tensor.ndim == array.ndim
        assert_same_strides(tensor, array)
        assert tensor.numel() == array.size
        assert tensor.data_ptr() == array.__array_interface__["data"][0]
        assert numpy.array_equal(elements(tensor, array), array)
        assert tensor.is_contiguous() or not array.flags.c_contiguous
        again = from_dlpack(tensor.__dlpack__(max_version=(1, 0)))
        assert (again.shape, again.strides) == (tensor.shape, tensor.strides)


@settings(max_examples=scaled(500), deadline=None)
@given(
    st.integers(0, 17).filter(lambda code: code not in (3, 5)),
    st.integers(1, 255),
    st.integers(-(2**15) + 1, 2**15 - 1),
)
def test_numbers_of_element_types_round_trip(code: int, bits: int, lanes: int) -> None:
    if code >= 7:
        bits = 8 if code < 15 else 6 if code < 17 else 4
        lanes = abs(lanes)  # narrow floats have no scalable form
    made = dtype.from_dlpack_data_type((code, bits, lanes))
    lanes = lanes if abs(lanes) > 1 else 1
    assert (made.type_code, made.bits) == (code, bits)
    again = dtype(str(made))
    assert (again.type_code, again.bits, again.lanes) == (code, bits, lanes)
    assert echo(again) == again == str(core.DataType(again))


@settings(max_examples=scaled(500), deadline=None)
@given(st.text(max_size=20) | st.from_regex(r"(u?int|float|bf|f|x|_|\d|e|m|fn)+", fullmatch=True))
def test_any_text_is_a_dtype_or_a_value_error(text: str) -> None:
    assert dtype.is_dtype(text) in (True, False)
    try:
        made = dtype(text)
    except ValueError as error:
        assert str(error)
    else:
        assert dtype(str(made._tvm_ffi_dtype))._tvm_ffi_dtype == made._tvm_ffi_dtype


@settings(max_examples=scaled(500), deadline=None)
@given(st.text(max_size=12) | st.from_regex(r"(cpu|cuda|vpi|:|\d| |-)+", fullmatch=True))
def test_any_text_is_a_device_or_an_error(text: str) -> None:
    try:
        made = tvm_ffi.device(text)
    except (ValueError, OverflowError) as error:
        assert str(error)
    else:
        assert echo(made) == made == tvm_ffi.device(str(made))


@settings(max_examples=scaled(300), deadline=None)
@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=8))
def test_shapes_round_trip(extents: list[int]) -> None:
    assert echo(tvm_ffi.Shape(extents)) == tuple(extents)


take_view = tvm_ffi.get_global_func("testing.schema_tensor_view_input")
# What a quick look at a tensor may let pass ends at 2**25, what fits in 64 bits much later.
NUMBERS = st.integers(-1, 4) | st.builds(
    lambda power, more, sign: sign * (2**power + more),
    st.integers(20, 62),
    st.integers(-1, 1),
    st.sampled_from([1, 1, 1, -1]),
)


@settings(max_examples=scaled(2000), deadline=None)
@given(
    st.lists(st.tuples(NUMBERS, NUMBERS), max_size=8),
    st.sampled_from([1, 4, 64, 128, 255]),
    st.sampled_from([1, 2, 3, 65535]),
    st.booleans(),
)
def test_tensors_of_a_framework_are_checked_exactly(
    dimensions: list[tuple[int, int]], bits: int, lanes: int, has_memory: bool
) -> None:
    shape = tuple(extent for extent, _ in dimensions)
    tensor = foreign.ViewTensor(shape, dtype=(2, bits, lanes))
    tensor.strides = tuple(stride for _, stride in dimensions)
    tensor.address = tensor.address if has_memory else 0
    elements, reach = 1, 1
    for extent, stride in dimensions:
        elements *= extent
        reach += abs(stride) * (extent - 1)
    fits = max(elements, reach) * bits * lanes < 2**64
    if min(shape, default=1) >= 0 and (0 in shape or (fits and has_memory)):
        take_view(tensor)
    else:
        with pytest.raises(ValueError, match=r"negative|overflows|has no memory"):
            take_view(tensor)
