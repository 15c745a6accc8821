// SPDX-License-Identifier: Apache-2.0
//
// A client that defines a module, for the release whose module functions no other release can call:
// it must be refused before it runs.
#include <tvm/ffi/extra/module.h>

namespace {

class QuietModuleObj : public tvm::ffi::ModuleObj {
 public:
  const char* kind() const final { return "quiet"; }
  tvm::ffi::Optional<tvm::ffi::Function> GetFunction(const tvm::ffi::String&) final {
    return std::nullopt;
  }
};

tvm::ffi::Module MakeModule() { return tvm::ffi::Module(tvm::ffi::make_object<QuietModuleObj>()); }

}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(make_module, MakeModule)
