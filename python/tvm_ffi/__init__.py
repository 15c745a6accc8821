# SPDX-License-Identifier: Apache-2.0
"""Tether: the TVM FFI interface with one Python object for one C++ object.

>>> import tvm_ffi
>>> box = tvm_ffi.Array([tvm_ffi.Map({"a": 1})])
>>> box[0] is box[0]
True
"""

from __future__ import annotations

import sys
from itertools import pairwise

from ._version import __tether_version__ as __tether_version__
from ._version import __version__, __version_tuple__


def _is_config_mode() -> bool:  # type: ignore[valid-type]  # the dtype of that name is below
    """Whether this process only reports on the package, and must do so even if it is broken."""
    if sys.argv and sys.argv[0].endswith("tvm-ffi-config"):
        return True
    started = [program for option, program in pairwise(sys.orig_argv) if option == "-m"]
    return started[:1] in (["tvm_ffi.config"], ["tvm_ffi.doctor"])


__all__ = ["__version__", "__version_tuple__"]


def __getattr__(name: str) -> object:
    """Load parts on first use: importing `dataclasses` takes longer than everything else."""
    if name in ("cpp", "dataclasses", "travel"):
        from importlib import import_module

        return import_module(f"{__name__}.{name}")
    if name == "method":
        from .dataclasses.py_class import method

        return method
    if name == "requires_library":
        from .travel import requires_library

        return requires_library
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


if not _is_config_mode():
    from . import libinfo
    from ._impl import conflicts as _conflicts

    # Loaded first and for the whole process: client libraries expect to find its symbols there.
    LIB = libinfo.load_lib_ctypes("apache-tvm-ffi", "tvm_ffi", "RTLD_GLOBAL")
    _conflicts.warn_if_both_installed()

    try:
        from . import core as core
    except ImportError as error:
        raise ImportError(f"{error}.{_conflicts.explanation()}") from error
    from . import (
        access_path,
        serialization,
        structural,
        tying,
    )
    from ._convert import convert, convert_func
    from ._dtype import bfloat16 as bfloat16
    from ._dtype import bool as bool
    from ._dtype import dtype
    from ._dtype import float4_e2m1fn as float4_e2m1fn
    from ._dtype import float4_e2m1fnx2 as float4_e2m1fnx2
    from ._dtype import float6_e2m3fn as float6_e2m3fn
    from ._dtype import float6_e3m2fn as float6_e3m2fn
    from ._dtype import float8_e3m4 as float8_e3m4
    from ._dtype import float8_e4m3 as float8_e4m3
    from ._dtype import float8_e4m3b11fnuz as float8_e4m3b11fnuz
    from ._dtype import float8_e4m3fn as float8_e4m3fn
    from ._dtype import float8_e4m3fnuz as float8_e4m3fnuz
    from ._dtype import float8_e5m2 as float8_e5m2
    from ._dtype import float8_e5m2fnuz as float8_e5m2fnuz
    from ._dtype import float8_e8m0fnu as float8_e8m0fnu
    from ._dtype import float16 as float16
    from ._dtype import float32 as float32
    from ._dtype import float64 as float64
    from ._dtype import int8 as int8
    from ._dtype import int16 as int16
    from ._dtype import int32 as int32
    from ._dtype import int64 as int64
    from ._dtype import uint8 as uint8
    from ._dtype import uint16 as uint16
    from ._dtype import uint32 as uint32
    from ._dtype import uint64 as uint64
    from ._tensor import Device, DLDeviceType, Shape, Tensor, device, from_dlpack
    from .container import Array, Dict, List, Map
    from .core import CAny as CAny
    from .core import CContainerBase as CContainerBase
    from .core import Function, Object, ObjectConvertible
    from .error import register_error
    from .module import Module, load_module, system_lib
    from .registry import (
        get_global_func,
        get_global_func_metadata,
        init_ffi_api,
        register_global_func,
        register_object,
        remove_global_func,
    )
    from .stream import StreamContext, get_raw_stream, use_raw_stream, use_torch_stream
    from .structural import (
        DefRegionKind,
        InplaceMode,
        StructuralKey,
        StructuralMutator,
        StructuralVisitor,
        VisitInterrupt,
        WalkOrder,
        WalkResult,
        get_first_structural_mismatch,
        structural_equal,
        structural_hash,
        structural_map,
        structural_mutate,
        structural_visit,
        structural_walk,
    )

    if "torch" in sys.modules:
        from ._optional_torch_c_dlpack import patch_torch_cuda_stream_protocol

        patch_torch_cuda_stream_protocol()

    __all__ += [
        "LIB",
        "Array",
        "DLDeviceType",
        "DefRegionKind",
        "Device",
        "Dict",
        "Function",
        "InplaceMode",
        "List",
        "Map",
        "Module",
        "Object",
        "ObjectConvertible",
        "Shape",
        "StreamContext",
        "StructuralKey",
        "StructuralMutator",
        "StructuralVisitor",
        "Tensor",
        "VisitInterrupt",
        "WalkOrder",
        "WalkResult",
        "access_path",
        "convert",
        "convert_func",
        "cpp",
        "dataclasses",
        "device",
        "dtype",
        "from_dlpack",
        "get_first_structural_mismatch",
        "get_global_func",
        "get_global_func_metadata",
        "get_raw_stream",
        "init_ffi_api",
        "load_module",
        "method",
        "register_error",
        "register_global_func",
        "register_object",
        "remove_global_func",
        "requires_library",
        "serialization",
        "structural",
        "structural_equal",
        "structural_hash",
        "structural_map",
        "structural_mutate",
        "structural_visit",
        "structural_walk",
        "system_lib",
        "travel",
        "tying",
        "use_raw_stream",
        "use_torch_stream",
    ]
