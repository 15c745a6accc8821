// SPDX-License-Identifier: Apache-2.0
// Library modules: modules whose functions are symbols of a loaded or statically linked library.
//
//   Module module = MakeLibraryModule(OpenSharedLibrary("build/add_one.so"));
#ifndef TVM_FFI_SRC_EXTRA_LIBRARY_H_
#define TVM_FFI_SRC_EXTRA_LIBRARY_H_

#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/string.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#ifdef _MSC_VER
#define TETHER_HIDDEN
#else
#define TETHER_HIDDEN __attribute__((visibility("hidden")))
#endif

namespace tvm {
namespace ffi {

// The members of ModuleObj that only the runtime touches. Hidden, unlike the class around it.
struct TETHER_HIDDEN ModuleObj::InternalUnsafe {
  static Array<Any>* Imports(ModuleObj* module) { return &module->imports_; }
  static Map<String, Function>* LookupCache(ModuleObj* module) {
    return &module->import_lookup_cache_;
  }
  static void RegisterReflection();
};

namespace tether {

// A source of symbols.
class Library {
 public:
  virtual ~Library() = default;

  // Address of the symbol `<role><name>`, where role is empty or a prefix of namespace symbol;
  // nullptr when there is none.
  virtual void* FindSymbol(std::string_view role, std::string_view name) = 0;
  // How many bytes from `address` on are known to belong to the symbol there.
  virtual size_t ReadableBytes(const void* /*address*/) const { return SIZE_MAX; }
  // Whether the address would become invalid when the library is unloaded.
  virtual bool Contains(const void* /*address*/) const { return false; }
  // From now on something outside may depend on the library: never unload it.
  virtual void KeepLoaded() {}
  // For messages.
  virtual std::string Name() const = 0;
};

// Opens a shared library; failure is an error that names the path and the reason.
std::unique_ptr<Library> OpenSharedLibrary(const String& path);

// Writes the context symbols, decodes embedded modules if there are any, and returns the root
// module.
Module MakeLibraryModule(std::unique_ptr<Library> library);

// Whether a registered function, type or attribute refers to code of the library.
bool IsRegistered(const Library& library);

// Whether the system library's symbol table refers to it.
bool HasSystemLibSymbolIn(const Library& library);

}  // namespace tether
}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_SRC_EXTRA_LIBRARY_H_
