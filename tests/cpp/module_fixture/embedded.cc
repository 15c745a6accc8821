// SPDX-License-Identifier: Apache-2.0
// A library with room for embedded modules: module_test.cc overwrites the placeholder in copies of
// it.
#include <tvm/ffi/function.h>

extern "C" {
TVM_FFI_DLL_EXPORT extern const char __tvm_ffi__library_bin[2048];
const char __tvm_ffi__library_bin[2048] = "PLACEHOLDER OF THE EMBEDDED MODULES";
TVM_FFI_DLL_EXPORT void* __tvm_ffi__library_ctx = nullptr;
}

namespace {

int64_t Answer() { return 42; }
void* LibraryContext() { return __tvm_ffi__library_ctx; }

}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(answer, Answer)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(library_context, LibraryContext)
