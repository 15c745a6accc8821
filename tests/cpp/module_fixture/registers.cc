// SPDX-License-Identifier: Apache-2.0
// A library that registers a global function when it is loaded, and so must not be unloaded.
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

TVM_FFI_STATIC_INIT_BLOCK() {
  tvm::ffi::reflection::GlobalDef().def("test_module.from_library",
                                        [](int64_t x) { return x * 3; });
}
