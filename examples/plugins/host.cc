// SPDX-License-Identifier: Apache-2.0
// The host knows its plugins only by name: each one registers `plugins.filter.NAME` when it is
// loaded.
#include <tvm/ffi/tvm_ffi.h>

#include <string>

namespace plugins {

namespace ffi = tvm::ffi;

ffi::String Apply(ffi::String name, ffi::String text) {
  ffi::Optional<ffi::Function> filter =
      ffi::Function::GetGlobal("plugins.filter." + std::string(name));
  TVM_FFI_CHECK(filter.has_value(), KeyError) << "no plugin is called " << name;
  return filter.value()(text).cast<ffi::String>();
}

TVM_FFI_STATIC_INIT_BLOCK() { tvm::ffi::reflection::GlobalDef().def("plugins.apply", Apply); }

}  // namespace plugins
