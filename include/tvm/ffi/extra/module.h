// SPDX-License-Identifier: Apache-2.0
// Modules: collections of functions, most often a loaded shared library.
//
//   Module lib = Module::LoadFromFile("build/add_one.so");
//   Function add_one = lib->GetFunction("add_one").value();
//   add_one(x, y);  // a function keeps its library loaded
#ifndef TVM_FFI_EXTRA_MODULE_H_
#define TVM_FFI_EXTRA_MODULE_H_

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/extra/base.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/optional.h>

#include <utility>

namespace tvm {
namespace ffi {

class Module;

// Base of all modules. Subclasses implement `kind` and `GetFunction`; they share this type's
// index and declare none of their own.
//
// The order of the virtual functions is part of the binary interface. ImportModule is the first one
// that is not inline, so the virtual table is emitted once, in libtvm_ffi.
class TVM_FFI_EXTRA_CXX_API ModuleObj : public Object {
 public:
  // Name of the kind of module, for example "library".
  virtual const char* kind() const = 0;
  // OR of Module::ModulePropertyMask.
  virtual int GetPropertyMask() const { return 0; }
  virtual Optional<Function> GetFunction(const String& name) = 0;
  virtual bool ImplementsFunction(const String& name) { return GetFunction(name).has_value(); }
  virtual Optional<String> GetFunctionDoc(const String& /*name*/) { return std::nullopt; }
  // JSON text with at least the key "type_schema".
  virtual Optional<String> GetFunctionMetadata(const String& /*name*/) { return std::nullopt; }
  virtual void WriteToFile(const String& /*file_name*/, const String& /*format*/) const {
    TVM_FFI_THROW(RuntimeError) << "Module[" << kind() << "] does not support WriteToFile";
  }
  virtual Array<String> GetWriteFormats() const { return Array<String>(); }
  // Read back by the global function `ffi.Module.load_from_bytes.<kind>`.
  virtual Bytes SaveToBytes() const {
    TVM_FFI_THROW(RuntimeError) << "Module[" << kind() << "] does not support SaveToBytes";
    TVM_FFI_UNREACHABLE();
  }
  virtual String InspectSource(const String& /*format*/) const { return String(); }
  // Adds a module whose functions this one may call.
  virtual void ImportModule(const Module& other);
  virtual void ClearImports();

  // The same questions, answered by this module or, if asked, by its imports in order.
  Optional<Function> GetFunction(const String& name, bool query_imports);
  bool ImplementsFunction(const String& name, bool query_imports);
  Optional<String> GetFunctionDoc(const String& name, bool query_imports);
  Optional<String> GetFunctionMetadata(const String& name, bool query_imports);

  const Array<Any>& imports() const { return imports_; }

  struct InternalUnsafe;

  static constexpr int32_t _type_index = TypeIndex::kTVMFFIModule;
  static constexpr bool _type_mutable = true;
  [[maybe_unused]] static constexpr bool _type_final = true;
  TVM_FFI_DECLARE_OBJECT_INFO_STATIC(StaticTypeKey::kTVMFFIModule, ModuleObj, Object);

 protected:
  friend struct InternalUnsafe;

  Array<Any> imports_;

 private:
  // Functions returned by TVMFFIEnvModLookupFromImports, which callers hold without a reference.
  Map<String, Function> import_lookup_cache_;
};

static_assert(sizeof(void*) != 8 || sizeof(ModuleObj) == 48,
              "subclasses are compiled into clients");

class Module : public ObjectRef {
 public:
  enum ModulePropertyMask : int {
    kBinarySerializable = 0b001,
    kRunnable = 0b010,
    kCompilationExportable = 0b100,
  };

  explicit Module(const ObjectPtr<ModuleObj>& ptr) : ObjectRef(ptr) {
    TVM_FFI_ICHECK(ptr != nullptr);
  }

  // Loads a file with the loader registered for its extension.
  TVM_FFI_EXTRA_CXX_API static Module LoadFromFile(const String& file_name);
  // Calls back with every symbol of TVMFFIEnvModRegisterContextSymbol.
  TVM_FFI_EXTRA_CXX_API static void VisitContextSymbols(
      const TypedFunction<void(String, void*)>& callback);

  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NOTNULLABLE(Module, ObjectRef, ModuleObj);
};

// Names of the symbols a library may export to the loader.
namespace symbol {

// `__tvm_ffi_<name>` is the function `<name>`.
inline constexpr const char* tvm_ffi_symbol_prefix = "__tvm_ffi_";
// The conventional entry function.
inline constexpr const char* tvm_ffi_main = "__tvm_ffi_main";
// A `void*` that receives the library's module.
inline constexpr const char* tvm_ffi_library_ctx = "__tvm_ffi__library_ctx";
// Modules embedded in the library, as bytes.
inline constexpr const char* tvm_ffi_library_bin = "__tvm_ffi__library_bin";
// `__tvm_ffi__metadata_<name>()` gives the metadata of a function.
inline constexpr const char* tvm_ffi_metadata_prefix = "__tvm_ffi__metadata_";
// `__tvm_ffi__doc_<name>()` gives its doc.
inline constexpr const char* tvm_ffi_doc_prefix = "__tvm_ffi__doc_";

}  // namespace symbol
}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_EXTRA_MODULE_H_
