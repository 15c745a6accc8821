# SPDX-License-Identifier: Apache-2.0
"""`dtype`: the type of tensor elements as text that knows its numbers.

>>> import tvm_ffi
>>> x = tvm_ffi.dtype("float32x4")
>>> x.bits, x.lanes, x.itemsize, x == "float32x4"
(32, 4, 16, True)
"""

from __future__ import annotations

import builtins
from enum import IntEnum

from . import core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class DataTypeCode(IntEnum):
    """The kinds of numbers, as DLPack numbers them."""

    INT = core._abi.kDLInt
    UINT = core._abi.kDLUInt
    FLOAT = core._abi.kDLFloat
    HANDLE = core._abi.kDLOpaqueHandle
    BFLOAT = core._abi.kDLBfloat
    BOOL = core._abi.kDLBool
    Float8E3M4 = core._abi.kDLFloat8_e3m4
    Float8E4M3 = core._abi.kDLFloat8_e4m3
    Float8E4M3B11FNUZ = core._abi.kDLFloat8_e4m3b11fnuz
    Float8E4M3FN = core._abi.kDLFloat8_e4m3fn
    Float8E4M3FNUZ = core._abi.kDLFloat8_e4m3fnuz
    Float8E5M2 = core._abi.kDLFloat8_e5m2
    Float8E5M2FNUZ = core._abi.kDLFloat8_e5m2fnuz
    Float8E8M0FNU = core._abi.kDLFloat8_e8m0fnu
    Float6E2M3FN = core._abi.kDLFloat6_e2m3fn
    Float6E3M2FN = core._abi.kDLFloat6_e3m2fn
    Float4E2M1FN = core._abi.kDLFloat4_e2m1fn


class _NumpyNames:
    """Class attribute that is made on first use, because numpy may never be needed."""

    _names: dict[Any, str] | None = None

    def __get__(self, obj: Any, owner: Any) -> dict[Any, str]:
        if self._names is None:
            self._names = self._make()
        return self._names

    @staticmethod
    def _make() -> dict[Any, str]:
        numpy, ml_dtypes = core.numpy, core.ml_dtypes
        if numpy is None:
            return {}
        names = {numpy.dtype("bool"): "bool"}
        for kind, sizes in (
            ("int", (8, 16, 32, 64)),
            ("uint", (8, 16, 32, 64)),
            ("float", (16, 32, 64)),
        ):
            names.update({numpy.dtype(f"{kind}{bits}"): f"{kind}{bits}" for bits in sizes})
        for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"):
            if hasattr(ml_dtypes, name):
                names[numpy.dtype(getattr(ml_dtypes, name))] = name
        return names


class dtype(str):
    """The type of tensor elements: the text it was made from, and the numbers it stands for.

    The text is kept as it is, so two spellings of one type are different strings; what comes from
    C++ is spelled canonically.

    >>> from tvm_ffi import dtype
    >>> from tvm_ffi.testing import echo
    >>> dtype("f32"), echo(dtype("f32")), dtype("f32") == "float32"
    (dtype('f32'), dtype('float32'), False)
    """

    __slots__ = ("_tvm_ffi_dtype",)

    _tvm_ffi_dtype: core.DataType
    _NUMPY_DTYPE_TO_STR = _NumpyNames()

    def __new__(cls, content: Any) -> dtype:
        text = str(content)
        self = str.__new__(cls, text)
        self._tvm_ffi_dtype = core._parse_data_type(text)
        return self

    @staticmethod
    def from_dlpack_data_type(dltype_data_type: tuple[int, int, int]) -> dtype:
        """Make a dtype from DLPack's type code, bits and lanes.

        >>> from tvm_ffi import dtype
        >>> dtype.from_dlpack_data_type((2, 16, 1))
        dtype('float16')
        """
        if len(dltype_data_type) != 3:
            raise ValueError(f"expected (type code, bits, lanes), got {dltype_data_type!r}")
        return _from_cdtype(core._create_cdtype_from_tuple(core.DataType, *dltype_data_type))

    def __repr__(self) -> str:
        return f"dtype('{self}')"

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (str(self),))

    def with_lanes(self, lanes: int) -> dtype:
        """Return the vector type with that many of these numbers.

        >>> from tvm_ffi import dtype
        >>> dtype("bool").with_lanes(4)
        dtype('boolx4')
        """
        own = self._tvm_ffi_dtype
        if not -(2**15) <= lanes < 2**15:
            raise OverflowError(f"dtype lanes {lanes} is out of range [-32768, 32767]")
        if lanes == 0:
            raise ValueError("a dtype has at least one lane, or a negative number for xvscale")
        if lanes == -1:  # which the canonical text of C++ leaves out
            return dtype(f"{self.with_lanes(1)}xvscalex1")
        return _from_cdtype(
            core._create_cdtype_from_tuple(core.DataType, own.type_code, own.bits, lanes)
        )

    @property
    def type_code(self) -> int:
        """The kind of number, one of `DataTypeCode`."""
        return self._tvm_ffi_dtype.type_code

    @property
    def bits(self) -> int:
        """Bits of one number."""
        return self._tvm_ffi_dtype.bits

    @property
    def lanes(self) -> int:
        """Numbers per element; negative for vectors that scale with the machine."""
        return self._tvm_ffi_dtype.lanes

    @property
    def itemsize(self) -> int:
        """Bytes of one element, rounded up.

        >>> from tvm_ffi import dtype
        >>> dtype("int4").itemsize, dtype("int4x3").itemsize
        (1, 2)
        """
        return self._tvm_ffi_dtype.itemsize

    @property
    def is_bool(self) -> builtins.bool:
        """Whether the numbers are truth values."""
        return self.type_code == DataTypeCode.BOOL

    @property
    def is_integer(self) -> builtins.bool:
        """Whether the numbers are integers, signed or not."""
        return self.type_code in (DataTypeCode.INT, DataTypeCode.UINT)

    @property
    def is_float(self) -> builtins.bool:
        """Whether the numbers are floating point, of any format.

        >>> from tvm_ffi import dtype
        >>> [dtype(x).is_float for x in ("float32", "bfloat16", "float4_e2m1fn", "int8")]
        [True, True, True, False]
        """
        code = self.type_code
        return code in (DataTypeCode.FLOAT, DataTypeCode.BFLOAT) or (
            DataTypeCode.Float8E3M4 <= code <= DataTypeCode.Float4E2M1FN
        )

    @property
    def is_handle(self) -> builtins.bool:
        """Whether the elements are opaque handles."""
        return self.type_code == DataTypeCode.HANDLE

    @staticmethod
    def is_dtype(arg: str | dtype) -> builtins.bool:
        """Tell whether `arg` is a dtype or text that makes one.

        >>> from tvm_ffi import dtype
        >>> dtype.is_dtype("int8"), dtype.is_dtype("integer")
        (True, False)
        """
        if isinstance(arg, dtype):
            return True
        try:
            dtype(arg)
        except ValueError:
            return False
        return True


def _from_cdtype(cdtype: core.DataType) -> dtype:
    self = str.__new__(dtype, str(cdtype))
    self._tvm_ffi_dtype = cdtype
    return self


core._set_class_dtype(dtype)

# The names shadow builtins on purpose: `tvm_ffi.bool`, like `numpy.bool`.
bool = dtype("bool")
int8 = dtype("int8")
int16 = dtype("int16")
int32 = dtype("int32")
int64 = dtype("int64")
uint8 = dtype("uint8")
uint16 = dtype("uint16")
uint32 = dtype("uint32")
uint64 = dtype("uint64")
float64 = dtype("float64")
float32 = dtype("float32")
float16 = dtype("float16")
bfloat16 = dtype("bfloat16")
float8_e3m4 = dtype("float8_e3m4")
float8_e4m3 = dtype("float8_e4m3")
float8_e4m3b11fnuz = dtype("float8_e4m3b11fnuz")
float8_e4m3fn = dtype("float8_e4m3fn")
float8_e4m3fnuz = dtype("float8_e4m3fnuz")
float8_e5m2 = dtype("float8_e5m2")
float8_e5m2fnuz = dtype("float8_e5m2fnuz")
float8_e8m0fnu = dtype("float8_e8m0fnu")
float6_e2m3fn = dtype("float6_e2m3fn")
float6_e3m2fn = dtype("float6_e3m2fn")
float4_e2m1fn = dtype("float4_e2m1fn")
float4_e2m1fnx2 = dtype("float4_e2m1fnx2")
float4_e2m1fn_x2 = float4_e2m1fnx2
