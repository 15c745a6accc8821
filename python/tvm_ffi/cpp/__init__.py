# SPDX-License-Identifier: Apache-2.0
"""Compile C++, C and CUDA sources and load them as modules.

    import tvm_ffi.cpp

    module = tvm_ffi.cpp.load_inline(
        name="hello",
        cpp_sources="int64_t add(int64_t a, int64_t b) { return a + b; }",
        functions="add",
    )
    assert module.add(1, 2) == 3

Results are kept in ``~/.cache/tvm-ffi`` (or ``$TVM_FFI_CACHE_DIR``) and used again while the
sources, the headers, the flags and the compiler stay the same.
"""

from .dtype import to_cpp_dtype
from .extension import build, build_inline, load, load_inline

__all__ = ["build", "build_inline", "load", "load_inline", "to_cpp_dtype"]
