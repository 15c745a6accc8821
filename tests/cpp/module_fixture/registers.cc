// SPDX-License-Identifier: Apache-2.0
// A library that registers a global function when it is loaded, and so must not be unloaded. Copies
// of it, with another text in place of kWhat, register a class too, or throw.
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include <cstring>

namespace {

namespace ffi = tvm::ffi;

extern "C" {
TVM_FFI_DLL_EXPORT extern const char test_module_what[32];
const char test_module_what[32] = "WHAT TO DO WHEN LOADED";
}

class ThingObj : public ffi::Object {
 public:
  int64_t x = 1;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test_module.Thing", ThingObj, ffi::Object);
};

void RegisterThing() {
  // The names differ from library to library; the class does not.
  static std::string name = std::string("test_module.") + test_module_what;
  ffi::reflection::GlobalDef().def(name.c_str(), [] { return 7; });
  ffi::reflection::ObjectDef<ThingObj>().def_ro("x", &ThingObj::x).def("file", [](const ThingObj*) {
    return std::string(test_module_what);
  });
}

TVM_FFI_STATIC_INIT_BLOCK() {
  const char* volatile what = test_module_what;
  if (std::strncmp(what, "class", 5) == 0) return RegisterThing();
  if (std::strcmp(what, "throw number") == 0) throw 42;
  if (std::strcmp(what, "throw error") == 0) TVM_FFI_THROW(ValueError) << "not today";
  ffi::reflection::GlobalDef().def("test_module.from_library", [](int64_t x) { return x * 3; });
}

}  // namespace
