// SPDX-License-Identifier: Apache-2.0
// A library for module_test.cc: typed functions with metadata, a library context, a context symbol.
#define TVM_FFI_DLL_EXPORT_INCLUDE_METADATA 1
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/string.h>

namespace ffi = tvm::ffi;

extern "C" {
TVM_FFI_DLL_EXPORT void* __tvm_ffi__library_ctx = nullptr;
TVM_FFI_DLL_EXPORT void* test_module_context_symbol = nullptr;
}

namespace {

int64_t AddOne(int64_t x) { return x + 1; }

void Fail(const ffi::String& kind, const ffi::String& message) {
  throw ffi::Error(kind, message, "");
}

ffi::Array<int64_t> MakeArray(int64_t n) {
  ffi::Array<int64_t> out;
  for (int64_t i = 0; i < n; ++i) out.push_back(i);
  return out;
}

// Calls a function of an imported module by name, as generated code does.
ffi::Any CallImported(const ffi::String& name, int64_t x) {
  TVMFFIObjectHandle handle = nullptr;
  TVM_FFI_CHECK_SAFE_CALL(
      TVMFFIEnvModLookupFromImports(__tvm_ffi__library_ctx, name.c_str(), &handle));
  TVMFFIAny args[1] = {ffi::AnyView(x).CopyToTVMFFIAny()};
  TVMFFIAny result = ffi::AnyView().CopyToTVMFFIAny();
  TVM_FFI_CHECK_SAFE_CALL(TVMFFIFunctionCall(handle, args, 1, &result));
  return ffi::details::AnyUnsafe::MoveTVMFFIAnyToAny(&result);
}

void* ImportedHandle(const ffi::String& name) {
  TVMFFIObjectHandle handle = nullptr;
  TVM_FFI_CHECK_SAFE_CALL(
      TVMFFIEnvModLookupFromImports(__tvm_ffi__library_ctx, name.c_str(), &handle));
  return handle;
}

// An error object whose code is here, as clients of other releases make them.
class OwnErrorObj : public ffi::ErrorObj {
 public:
  OwnErrorObj() {
    kind = TVMFFIByteArray{"ValueError", 10};
    message = TVMFFIByteArray{"made in the library", 19};
    backtrace = TVMFFIByteArray{"", 0};
    update_backtrace = [](TVMFFIObjectHandle, const TVMFFIByteArray*, int32_t) {};
  }
};

void* LibraryContext() { return __tvm_ffi__library_ctx; }
void* ContextSymbol() { return test_module_context_symbol; }

}  // namespace

extern "C" TVM_FFI_DLL_EXPORT int __tvm_ffi_fail_own(void*, const TVMFFIAny*, int32_t, TVMFFIAny*) {
  auto error = ffi::make_object<OwnErrorObj>();
  TVMFFIErrorSetRaised(ffi::details::ObjectUnsafe::TVMFFIObjectPtrFromObjectPtr(error));
  return -1;
}

TVM_FFI_DLL_EXPORT_TYPED_FUNC(add_one, AddOne)
TVM_FFI_DLL_EXPORT_TYPED_FUNC_DOC(add_one, "Adds one to an integer.")
TVM_FFI_DLL_EXPORT_TYPED_FUNC(fail, Fail)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(make_array, MakeArray)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(call_imported, CallImported)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(imported_handle, ImportedHandle)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(library_context, LibraryContext)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(context_symbol, ContextSymbol)
