// SPDX-License-Identifier: Apache-2.0
#include <tvm/ffi/tvm_ffi.h>

#include <algorithm>
#include <string>

TVM_FFI_STATIC_INIT_BLOCK() {
  tvm::ffi::reflection::GlobalDef().def("plugins.filter.reverse", [](tvm::ffi::String text) {
    std::string copy = text;
    std::reverse(copy.begin(), copy.end());
    return tvm::ffi::String(copy);
  });
}
