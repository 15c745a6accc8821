# SPDX-License-Identifier: Apache-2.0
"""Classes over FFI objects, written the way standard dataclasses are.

`py_class` defines a type in Python that C++ can hold, `c_class` gives a type defined in C++ its
Python class.

>>> import tvm_ffi
>>> from tvm_ffi.dataclasses import py_class
>>> @py_class("doc.dataclasses.Point", eq=True)
... class Point(tvm_ffi.Object):
...     x: int
...     y: int = 0
>>> Point(1)
doc.dataclasses.Point(x=1, y=0)
>>> tvm_ffi.Array([Point(1), Point(2, y=3)])[1] == Point(2, 3)
True
"""

from ..core import MISSING, Object
from .c_class import c_class
from .common import asdict, astuple, fields, is_dataclass, replace
from .enum import Enum, EnumAttrMap, EnumState, IntEnum, StrEnum, auto, entry
from .field import KW_ONLY, Field, field, init_property
from .gen_abi_cpp import gen_abi_cpp
from .py_class import py_class

__all__ = [
    "KW_ONLY",
    "MISSING",
    "Enum",
    "EnumAttrMap",
    "EnumState",
    "Field",
    "IntEnum",
    "Object",
    "StrEnum",
    "asdict",
    "astuple",
    "auto",
    "c_class",
    "entry",
    "field",
    "fields",
    "gen_abi_cpp",
    "init_property",
    "is_dataclass",
    "py_class",
    "replace",
]
