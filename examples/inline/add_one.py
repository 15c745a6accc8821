# SPDX-License-Identifier: Apache-2.0
"""C++ in a string: compiled when the script first runs, taken from a cache after that."""

import numpy
import tvm_ffi.cpp

SOURCE = """
namespace ffi = tvm::ffi;

void add_one(ffi::TensorView x, ffi::TensorView y) {
  TVM_FFI_CHECK(x.dtype() == (DLDataType{kDLFloat, 32, 1}), TypeError) << "x must be float32";
  TVM_FFI_CHECK(x.dtype() == y.dtype() && x.numel() == y.numel(), ValueError) << "x and y differ";
  TVM_FFI_CHECK(x.IsContiguous() && y.IsContiguous(), ValueError) << "x and y must be contiguous";
  auto* from = static_cast<const float*>(x.data_ptr());
  auto* to = static_cast<float*>(y.data_ptr());
  for (int64_t i = 0; i < x.numel(); ++i) to[i] = from[i] + 1;
}

ffi::String greet(ffi::String name) { return "hello " + std::string(name); }
"""


def main() -> None:
    module = tvm_ffi.cpp.load_inline("add_one", cpp_sources=SOURCE, functions=["add_one", "greet"])
    x = numpy.arange(5, dtype="float32")
    y = numpy.empty_like(x)
    module.add_one(x, y)
    print(y)
    print(module.greet("world"))
    try:
        module.add_one(x.astype("float64"), y)
    except TypeError as error:
        print(f"TypeError: {error}")


if __name__ == "__main__":
    main()
