// SPDX-License-Identifier: Apache-2.0
#include <tvm/ffi/tvm_ffi.h>

#include <cctype>
#include <string>

TVM_FFI_STATIC_INIT_BLOCK() {
  tvm::ffi::reflection::GlobalDef().def("plugins.filter.upper", [](tvm::ffi::String text) {
    std::string copy = text;
    for (char& c : copy) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return tvm::ffi::String(copy);
  });
}
