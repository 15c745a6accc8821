# SPDX-License-Identifier: Apache-2.0
"""dtype and DataType: parsing, printing, predicates, and what other libraries call them."""

from __future__ import annotations

import pickle
import sys
from typing import Any

import pytest
import tvm_ffi
from support import run_python
from tvm_ffi import core, dtype
from tvm_ffi._dtype import DataTypeCode
from tvm_ffi.testing import echo

FLOAT8 = {
    "e3m4": 7,
    "e4m3": 8,
    "e4m3b11fnuz": 9,
    "e4m3fn": 10,
    "e4m3fnuz": 11,
    "e5m2": 12,
    "e5m2fnuz": 13,
    "e8m0fnu": 14,
}
# text -> (code, bits, lanes), canonical text
PARSED: dict[str, tuple[tuple[int, int, int], str]] = {
    "": ((3, 0, 0), ""),
    "void": ((3, 0, 0), ""),
    "handle": ((3, 64, 1), "handle"),
    "bool": ((6, 8, 1), "bool"),
    "boolx4": ((6, 8, 4), "boolx4"),
    "int": ((0, 32, 1), "int32"),
    "int1": ((0, 1, 1), "int1"),
    "intx4": ((0, 32, 4), "int32x4"),
    "float8": ((2, 8, 1), "float8"),
    "f4": ((2, 4, 1), "float4"),
    "bf16": ((4, 16, 1), "bfloat16"),
    "bfloat16x2": ((4, 16, 2), "bfloat16x2"),
    "int32xvscalex4": ((0, 32, -4), "int32xvscalex4"),
    "float4_e2m1fn": ((17, 4, 1), "float4_e2m1fn"),
    "f4_e2m1fn": ((17, 4, 1), "float4_e2m1fn"),
    "fp4_e2m1fn": ((17, 4, 1), "float4_e2m1fn"),
    "float4_e2m1fn_x2": ((17, 4, 2), "float4_e2m1fnx2"),
    "f4_e2m1fn_x2": ((17, 4, 2), "float4_e2m1fnx2"),
    "fp4_e2m1fn_x2": ((17, 4, 2), "float4_e2m1fnx2"),
    "float6_e2m3fn": ((15, 6, 1), "float6_e2m3fn"),
    "f6_e3m2fn": ((16, 6, 1), "float6_e3m2fn"),
    "fp6_e3m2fnx4": ((16, 6, 4), "float6_e3m2fnx4"),
}
for _bits in (8, 16, 32, 64):
    PARSED[f"int{_bits}"] = PARSED[f"i{_bits}"] = ((0, _bits, 1), f"int{_bits}")
    PARSED[f"uint{_bits}"] = PARSED[f"u{_bits}"] = ((1, _bits, 1), f"uint{_bits}")
for _bits in (16, 32, 64):
    PARSED[f"float{_bits}"] = PARSED[f"f{_bits}"] = ((2, _bits, 1), f"float{_bits}")
    PARSED[f"f{_bits}x3"] = ((2, _bits, 3), f"float{_bits}x3")
for _name, _code in FLOAT8.items():
    for _prefix in ("float8_", "f8_", "fp8_"):
        PARSED[_prefix + _name] = ((_code, 8, 1), f"float8_{_name}")
        PARSED[f"{_prefix}{_name}x4"] = ((_code, 8, 4), f"float8_{_name}x4")

MALFORMED: dict[str, str] = {
    "foo": "unknown dtype `foo`",
    "3": "unknown dtype `3`",
    "Float32": "unknown dtype `Float32`",
    " float32": "unknown dtype ` float32`",
    "float32 ": "unknown dtype `float32 `",
    "float32\0": "unknown dtype",
    "float32x": "Invalid lanes specification in dtype 'float32x'",
    "float32x0": "Invalid lanes specification in dtype 'float32x0'",
    "float32x-4": "Invalid lanes specification in dtype 'float32x-4'",
    "float32x4x4": "unknown dtype `float32x4x4`",
    "float32x65536": "Lanes value 65536 is out of range",
    "float32x32768": "Lanes value 32768 is out of range for int16_t",
    "float32xvscalex40000": "Lanes value -40000 is out of range for int16_t",
    "int256": "Bits value 256 is out of range",
    "int99999999999": "'99999999999' is out of range",
    "float32x99999999999": "'99999999999' is out of range",
    "float8_e4m3x": "Invalid lanes specification",
    "float8_e9m9": "unknown float8 type `float8_e9m9`",
    "fp8_": "unknown float8 type `float8_`",
    "float6_e1m1": "unknown float6 type `float6_e1m1`",
    "float4_e1m1": "unknown float4 type `float4_e1m1`",
    "float8_e4m3fn_x2": "unknown float8 type",
    "float4_e2m1fn__x2": "unknown dtype",
    "complex64": "unknown dtype `complex64`",
    "fp32": "unknown dtype `fp32`",
    "i": "unknown dtype `i`",
    "u": "unknown dtype `u`",
    "bf": "unknown dtype `bf`",
    "int32,int32": "unknown dtype `int32,int32`",
    "handlex": "Invalid lanes specification",
    "custom[": "expected closing brace after 'custom' type incustom[",
    "custom": "expected opening brace",
    "custom[x]": "Function dtype.get_custom_type_code not found",
    "float32\N{SNOWMAN}": "unknown dtype `float32\N{SNOWMAN}`",
    "\ud800": "unknown dtype",
    "int32xvscalex0": "Invalid lanes specification",
    "i8_8": "unknown dtype `int8_8`",
    "-int8": "unknown dtype `-int8`",
}


@pytest.mark.parametrize("text", PARSED)
def test_text_gives_its_numbers_and_is_kept(text: str) -> None:
    numbers, canonical = PARSED[text]
    x = dtype(text)
    assert (x.type_code, x.bits, x.lanes) == numbers
    assert str(x) == text and x == text and hash(x) == hash(text)
    assert repr(x) == f"dtype('{text}')"
    assert str(x._tvm_ffi_dtype) == canonical
    assert echo(x) == canonical and type(echo(x)) is dtype
    assert echo(core.DataType(text)) == canonical
    again = pickle.loads(pickle.dumps(x))
    assert type(again) is dtype and str(again) == text
    assert again._tvm_ffi_dtype == x._tvm_ffi_dtype


@pytest.mark.parametrize("text", MALFORMED)
def test_malformed_text_is_named(text: str) -> None:
    for make in (dtype, core.DataType):
        with pytest.raises(ValueError, match="(?s)") as caught:
            make(text)
        assert MALFORMED[text] in str(caught.value)
    assert not dtype.is_dtype(text)


@pytest.mark.parametrize(
    ("numbers", "error", "culprit"),
    [
        ((256, 32, 1), OverflowError, "type code 256"),
        ((-1, 32, 1), OverflowError, "type code -1"),
        ((2, 256, 1), OverflowError, "bits 256"),
        ((2, -1, 1), OverflowError, "bits -1"),
        ((2, 32, 65536), OverflowError, "lanes 65536"),
        ((2, 32, -32769), OverflowError, "lanes -32769"),
        ((2, 32, 2**80), OverflowError, "lanes 1208925819614629174706176"),
        (("2", 32, 1), TypeError, "type code, got str"),
        ((2, 32.0, 1), TypeError, "bits, got float"),
        ((2, 32, None), TypeError, "lanes, got NoneType"),
        ((99, 32, 1), ValueError, "type_code=99"),
        ((2, 32), ValueError, r"\(2, 32\)"),
        ((2, 32, 1, 1), ValueError, r"\(2, 32, 1, 1\)"),
    ],
)
def test_malformed_numbers_are_named(numbers: Any, error: type[Exception], culprit: str) -> None:
    with pytest.raises(error, match=culprit):
        dtype.from_dlpack_data_type(numbers)


@pytest.mark.parametrize("value", [None, 3.5, b"int8", object(), ["int8"], Ellipsis])
def test_other_values_are_not_dtypes(value: object) -> None:
    with pytest.raises(ValueError, match="unknown dtype"):
        dtype(value)
    with pytest.raises(TypeError):
        core.DataType(value)  # type: ignore[arg-type]
    assert not dtype.is_dtype(value)  # type: ignore[arg-type]


def test_spellings_are_different_strings_of_one_type() -> None:
    assert dtype("f32") != "float32" and dtype("f32") != dtype("float32")
    assert dtype("f32")._tvm_ffi_dtype == dtype("float32")._tvm_ffi_dtype
    assert {dtype("f32"): 1}["f32"] == 1


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("float32x4", 16),
        ("float8_e5m2x4", 4),
        ("float6_e2m3fnx4", 3),
        ("float4_e2m1fnx4", 2),
        ("bool", 1),
        ("int1", 1),
        ("int4x3", 2),
        ("", 0),
    ],
)
def test_itemsize_rounds_up(text: str, size: int) -> None:
    assert dtype(text).itemsize == size == core.DataType(text).itemsize


def test_scalable_vectors_have_no_itemsize() -> None:
    for x in (dtype("int32xvscalex4"), core.DataType("int32xvscalex4")):
        with pytest.raises(ValueError, match="Cannot determine itemsize for scalable vector types"):
            _ = x.itemsize


def test_predicates_follow_the_type_code() -> None:
    for text in PARSED:
        x = dtype(text)
        assert x.is_bool == (x.type_code == 6)
        assert x.is_integer == (x.type_code in (0, 1))
        assert x.is_float == (x.type_code in (2, 4, *range(7, 18)))
        assert x.is_handle == (x.type_code == 3)
        assert all(isinstance(p, bool) for p in (x.is_bool, x.is_integer, x.is_float, x.is_handle))


def test_codes_have_names() -> None:
    assert DataTypeCode.BFLOAT == 4 and DataTypeCode.Float4E2M1FN == 17
    assert [code.value for code in DataTypeCode] == [0, 1, 2, 3, 4, *range(6, 18)]


def test_with_lanes_is_canonical() -> None:
    assert dtype("bool").with_lanes(4) == "boolx4"
    assert dtype("f16").with_lanes(1) == "float16"
    assert dtype("int8").with_lanes(-4) == "int8xvscalex4"
    assert type(dtype("int8").with_lanes(2)) is dtype
    for lanes in (2**15, -(2**15) - 1, 2**70):
        with pytest.raises(OverflowError, match=f"lanes {lanes}"):
            dtype("int8").with_lanes(lanes)
    with pytest.raises(TypeError):
        dtype("int8").with_lanes("4")  # type: ignore[arg-type]


def test_literals_of_the_package() -> None:
    names = (
        "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float64 float32 float16 bfloat16"
    )
    names += " float6_e2m3fn float6_e3m2fn float4_e2m1fn float4_e2m1fnx2"
    for name in [*names.split(), *(f"float8_{x}" for x in FLOAT8)]:
        value = getattr(tvm_ffi, name)
        assert type(value) is dtype and value == name
    assert tvm_ffi._dtype.float4_e2m1fn_x2 == "float4_e2m1fnx2"


def test_c_data_type_is_a_value() -> None:
    a, b = core.DataType("f32x4"), core.DataType("float32x4")
    assert a == b and hash(a) == hash(b) == hash((2, 32, 4)) and str(a) == "float32x4"
    assert a != core.DataType("f32") and a != "float32x4" and (a == 1) is False
    assert pickle.loads(pickle.dumps(a)) == a
    assert repr(a) == "DataType('float32x4')"

    class Sub(core.DataType):
        pass

    made = core._create_cdtype_from_tuple(Sub, 2, 32, 4)
    assert type(made) is Sub and made == a and echo(made) == "float32x4"
    with pytest.raises(TypeError, match="subclass of DataType"):
        core._create_cdtype_from_tuple(int, 2, 32, 4)  # type: ignore[arg-type]


def test_values_from_cpp_are_shared() -> None:
    assert echo(dtype("f32")) is echo(core.DataType("float32"))
    # More than the table holds.
    for lanes in range(2, 400):
        assert echo(dtype(f"int8x{lanes}")).lanes == lanes


def test_the_class_can_be_replaced() -> None:
    class Mine(str):
        __slots__ = ("_tvm_ffi_dtype",)

    assert core._CLASS_DTYPE is dtype
    core._set_class_dtype(Mine)
    try:
        assert core._CLASS_DTYPE is Mine
        got = echo(core.DataType("f16"))
        assert type(got) is Mine and got == "float16" and echo(got) == "float16"
    finally:
        core._set_class_dtype(dtype)
    assert type(echo(core.DataType("f16"))) is dtype
    with pytest.raises(TypeError, match="subclass of str"):
        core._set_class_dtype(int)


def test_a_dtype_without_numbers_is_refused() -> None:
    broken = str.__new__(dtype, "float32")
    with pytest.raises(AttributeError, match="_tvm_ffi_dtype"):
        echo(broken)
    broken._tvm_ffi_dtype = "float32"  # type: ignore[assignment]
    with pytest.raises(TypeError, match="must be a DataType, got str"):
        echo(broken)


class ByProtocol:
    def __init__(self, value: object) -> None:
        self.value = value

    def __dlpack_data_type__(self) -> object:
        return self.value


def test_the_protocol_of_element_types() -> None:
    assert echo(ByProtocol((2, 32, 1))) == "float32" and type(echo(ByProtocol((2, 32, 1)))) is dtype
    assert tvm_ffi.convert(ByProtocol((0, 8, 4))) == "int8x4"
    for wrong in ([2, 32, 1], (2, 32), None, "float32"):
        with pytest.raises(TypeError, match="ByProtocol must return a tuple of three"):
            echo(ByProtocol(wrong))
    with pytest.raises(OverflowError, match="bits 500"):
        echo(ByProtocol((2, 500, 1)))


# ---- other libraries ----------------------------------------------------------------------------

NUMPY = {
    **{f"int{bits}": (0, bits, 1) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": (1, bits, 1) for bits in (8, 16, 32, 64)},
    **{f"float{bits}": (2, bits, 1) for bits in (16, 32, 64)},
}
ML_DTYPES = {
    "int2": (0, 2, 1),
    "uint2": (1, 2, 1),
    "int4": (0, 4, 1),
    "uint4": (1, 4, 1),
    "bfloat16": (4, 16, 1),
    **{f"float8_{name}": (code, 8, 1) for name, code in FLOAT8.items()},
    "float6_e2m3fn": (15, 6, 1),
    "float6_e3m2fn": (16, 6, 1),
    "float4_e2m1fn": (17, 4, 1),
}


def numbers_of(x: Any) -> tuple[int, int, int]:
    assert type(x) is dtype
    return (x.type_code, x.bits, x.lanes)


@pytest.mark.parametrize("name", NUMPY)
def test_numpy_types(name: str) -> None:
    numpy = pytest.importorskip("numpy")
    given = numpy.dtype(name)
    assert numbers_of(echo(given)) == NUMPY[name]
    assert numbers_of(tvm_ffi.convert(given)) == NUMPY[name]
    assert core._convert_numpy_dtype_to_ffi_dtype(given) == name
    assert dtype(given) == name
    assert dtype._NUMPY_DTYPE_TO_STR[given] == name
    assert numpy.zeros(3, dtype=dtype(name)).dtype == given


@pytest.mark.parametrize("name", ML_DTYPES)
def test_ml_dtypes_types(name: str) -> None:
    numpy = pytest.importorskip("numpy")
    ml_dtypes = pytest.importorskip("ml_dtypes")
    if not hasattr(ml_dtypes, name):
        pytest.skip(f"this ml_dtypes has no {name}")
    given = numpy.dtype(getattr(ml_dtypes, name))
    assert numbers_of(echo(given)) == ML_DTYPES[name]
    assert numbers_of(tvm_ffi.convert(given)) == ML_DTYPES[name]


def test_numpy_types_without_counterpart() -> None:
    numpy = pytest.importorskip("numpy")
    for name in ("bool", "complex64", "S4", "datetime64"):
        with pytest.raises(ValueError, match=f"Unsupported numpy or ml_dtypes dtype: .?{name}"):
            echo(numpy.dtype(name))
        with pytest.raises(KeyError):
            core._convert_numpy_dtype_to_ffi_dtype(numpy.dtype(name))
    assert dtype._NUMPY_DTYPE_TO_STR[numpy.dtype("bool")] == "bool"


def test_torch_types() -> None:
    torch = pytest.importorskip("torch")
    expected = {**NUMPY, "bfloat16": (4, 16, 1), "bool": (6, 8, 1)}
    expected.update({f"float8_{x}": (FLOAT8[x], 8, 1) for x in ("e4m3fn", "e5m2", "e8m0fnu")})
    expected["float4_e2m1fn_x2"] = (17, 4, 2)
    for alias in ("short", "int", "long", "half", "float", "double"):
        given = getattr(torch, alias)
        expected[alias] = expected[str(given).removeprefix("torch.")]
    for name, numbers in expected.items():
        if hasattr(torch, name):
            given = getattr(torch, name)
            assert numbers_of(echo(given)) == numbers, name
            assert numbers_of(tvm_ffi.convert(given)) == numbers
            assert numbers_of(core._convert_torch_dtype_to_ffi_dtype(given)) == numbers
    with pytest.raises(ValueError, match="Unsupported torch dtype: torch.complex64"):
        echo(torch.complex64)
    with pytest.raises(KeyError):
        tvm_ffi.convert(torch.complex64)


def test_libraries_are_imported_when_they_are_used() -> None:
    pytest.importorskip("numpy")
    program = """
import sys, tvm_ffi
from tvm_ffi.testing import echo
tvm_ffi.dtype("float32"), echo([1, "x"]), tvm_ffi.convert(print), tvm_ffi.device("cuda:1")
print(sorted({"numpy", "torch", "ml_dtypes"} & set(sys.modules)))
tvm_ffi.dtype._NUMPY_DTYPE_TO_STR
print("numpy" in sys.modules, "torch" in sys.modules)
"""
    assert run_python(program) == "[]\nTrue False\n"


def test_a_missing_library_is_named() -> None:
    program = """
import sys
sys.modules.update(torch=None, numpy=None, ml_dtypes=None)
import tvm_ffi
from tvm_ffi import core
assert core.torch is None and core.numpy is None
for convert, name in ((core._convert_torch_dtype_to_ffi_dtype, "torch"),
                      (core._convert_numpy_dtype_to_ffi_dtype, "numpy")):
    try:
        convert(1)
    except ValueError as error:
        print(error)
print(tvm_ffi.dtype._NUMPY_DTYPE_TO_STR)
"""
    assert run_python(program) == "torch not found\nnumpy not found\n{}\n"


def test_core_names_the_libraries() -> None:
    assert core.cuda_driver is None or "cuda.bindings.driver" in sys.modules
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = core.nothing


def test_lanes_are_not_lost() -> None:
    for lanes, text in ((1, "int8"), (2, "int8x2"), (-1, "int8xvscalex1"), (-4, "int8xvscalex4")):
        for of in ("int8", "int8x3", "i8xvscalex2"):
            made = dtype(of).with_lanes(lanes)
            assert (made, made.lanes) == (text, lanes)
    with pytest.raises(ValueError, match="at least one lane"):
        dtype("int8").with_lanes(0)
