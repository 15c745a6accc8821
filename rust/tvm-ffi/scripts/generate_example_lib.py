# SPDX-License-Identifier: Apache-2.0
"""Builds the library that the example load_library loads: FOLDER/add_one_cpu.so."""

from __future__ import annotations

import sys

import tvm_ffi.cpp

SOURCE = """
void add_one_cpu(tvm::ffi::TensorView x, tvm::ffi::TensorView y) {
  TVM_FFI_CHECK(x.numel() == y.numel(), ValueError)
      << "x has " << x.numel() << " elements and y has " << y.numel();
  const float* from = static_cast<const float*>(x.data_ptr());
  float* to = static_cast<float*>(y.data_ptr());
  for (int64_t i = 0; i < x.numel(); ++i) to[i] = from[i] + 1;
}
"""


def main() -> None:
    tvm_ffi.cpp.build_inline(
        name="hello",
        cpp_sources=SOURCE,
        functions=["add_one_cpu"],
        build_directory=sys.argv[1],
        output="add_one_cpu.so",
    )


if __name__ == "__main__":
    main()
