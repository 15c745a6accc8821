// SPDX-License-Identifier: Apache-2.0
// Modules in general: imports, lookups, loading by file extension, and the module functions of the
// frontends.
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/reflection/registry.h>

#include <cstring>
#include <mutex>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/locks.h"
#include "library.h"

namespace tvm {
namespace ffi {
namespace tether {
namespace {

class ContextSymbols {
 public:
  void Register(const char* name, void* address) {
    std::lock_guard<std::mutex> lock(locks.context_symbols);
    symbols_.emplace_back(name, address);
  }

  std::vector<std::pair<String, void*>> Snapshot() {
    std::lock_guard<std::mutex> lock(locks.context_symbols);
    return symbols_;
  }

  static ContextSymbols* Global() {
    static auto* symbols = new ContextSymbols();
    return symbols;
  }

 private:
  std::vector<std::pair<String, void*>> symbols_;
};

// Modules that stay loaded until they are removed. Never destroyed: at exit the function table may
// still point into their libraries.
class PinnedModules {
 public:
  void Add(const Module& module) {
    std::lock_guard<std::mutex> lock(locks.pinned_modules);
    modules_.insert(module);
  }

  void Remove(const Module& module) {
    // The caller's reference outlives the lock, so no library is closed under it.
    std::lock_guard<std::mutex> lock(locks.pinned_modules);
    modules_.erase(module);
  }

  static PinnedModules* Global() {
    static auto* modules = new PinnedModules();
    return modules;
  }

 private:
  std::unordered_set<ObjectRef, ObjectPtrHash, ObjectPtrEqual> modules_;
};

// First result of `ask` over the module's imports that has a value.
template <typename Result, typename Ask>
Result AskImports(const Array<Any>& imports, Ask ask) {
  for (const Any& import : imports) {
    Result result = ask(import.cast<Module>().get());
    if (result.has_value()) return result;
  }
  return std::nullopt;
}

bool Reaches(const Module& from, const ModuleObj* target) {
  std::vector<Module> pending{from};
  std::unordered_set<const Object*> seen;
  while (!pending.empty()) {
    Module module = std::move(pending.back());
    pending.pop_back();
    if (module.get() == target) return true;
    if (!seen.insert(module.get()).second) continue;
    for (const Any& import : module->imports()) pending.push_back(import.cast<Module>());
  }
  return false;
}

Optional<Function> FindForImporter(ModuleObj* module, const String& name) {
  auto ask = [&](ModuleObj* import) { return import->GetFunction(name, true); };
  Optional<Function> found = AskImports<Optional<Function>>(module->imports(), ask);
  if (found.has_value()) return found;
  if (std::optional<Function> global = Function::GetGlobal(name)) return *global;
  return std::nullopt;
}

// A function that the module's own code may call without owning it. Modules are asked without the
// lock, because they may call back; of two threads the first to store its answer wins, so that
// handles given out before stay valid.
TVMFFIObjectHandle LookupForImporter(ModuleObj* module, const String& name) {
  auto* cache = ModuleObj::InternalUnsafe::LookupCache(module);
  {
    std::lock_guard<std::mutex> lock(locks.import_lookups);
    auto it = cache->find(name);
    if (it != cache->end())
      return details::ObjectUnsafe::TVMFFIObjectPtrFromObjectRef((*it).second);
  }
  Optional<Function> found = FindForImporter(module, name);
  if (!found.has_value()) {
    TVM_FFI_THROW(RuntimeError) << "Cannot find function " << name
                                << " in the imported modules or global registry.";
  }
  std::lock_guard<std::mutex> lock(locks.import_lookups);
  auto it = cache->find(name);
  if (it != cache->end()) return details::ObjectUnsafe::TVMFFIObjectPtrFromObjectRef((*it).second);
  cache->Set(name, *found);
  return details::ObjectUnsafe::TVMFFIObjectPtrFromObjectRef(*found);
}

}  // namespace
}  // namespace tether

void ModuleObj::ImportModule(const Module& other) {
  if (tether::Reaches(other, this)) {
    TVM_FFI_THROW(RuntimeError) << "Cyclic dependency detected during import";
  }
  imports_.push_back(other);
}

void ModuleObj::ClearImports() { imports_.clear(); }

Optional<Function> ModuleObj::GetFunction(const String& name, bool query_imports) {
  Optional<Function> found = GetFunction(name);
  if (found.has_value() || !query_imports) return found;
  return tether::AskImports<Optional<Function>>(
      imports_, [&](ModuleObj* import) { return import->GetFunction(name, true); });
}

bool ModuleObj::ImplementsFunction(const String& name, bool query_imports) {
  if (ImplementsFunction(name)) return true;
  if (!query_imports) return false;
  for (const Any& import : imports_) {
    if (import.cast<Module>()->ImplementsFunction(name, true)) return true;
  }
  return false;
}

Optional<String> ModuleObj::GetFunctionDoc(const String& name, bool query_imports) {
  Optional<String> found = GetFunctionDoc(name);
  if (found.has_value() || !query_imports) return found;
  return tether::AskImports<Optional<String>>(
      imports_, [&](ModuleObj* import) { return import->GetFunctionDoc(name, true); });
}

Optional<String> ModuleObj::GetFunctionMetadata(const String& name, bool query_imports) {
  Optional<String> found = GetFunctionMetadata(name);
  if (found.has_value() || !query_imports) return found;
  return tether::AskImports<Optional<String>>(
      imports_, [&](ModuleObj* import) { return import->GetFunctionMetadata(name, true); });
}

void ModuleObj::InternalUnsafe::RegisterReflection() {
  reflection::ObjectDef<ModuleObj>().def_ro("imports_", &ModuleObj::imports_);
}

Module Module::LoadFromFile(const String& file_name) {
  std::string_view path(file_name.data(), file_name.size());
  size_t dot = path.rfind('.');
  if (dot == std::string_view::npos) {
    TVM_FFI_THROW(RuntimeError) << "Failed to get file format from " << file_name;
  }
  std::string format(path.substr(dot + 1));
  if (format == "dll" || format == "dylib" || format == "dso") format = "so";
  std::string loader_name = "ffi.Module.load_from_file." + format;
  std::optional<Function> load = Function::GetGlobal(loader_name);
  if (!load.has_value()) {
    TVM_FFI_THROW(RuntimeError) << "Loader for `." << format
                                << "` files is not registered, resolved to (" << loader_name
                                << ") in the global registry. Ensure that you have loaded the "
                                   "correct runtime code, and that "
                                   "you are on the correct hardware architecture.";
  }
  return (*load)(file_name, format).cast<Module>();
}

void Module::VisitContextSymbols(const TypedFunction<void(String, void*)>& callback) {
  for (const auto& [name, address] : tether::ContextSymbols::Global()->Snapshot()) {
    callback(name, address);
  }
}

TVM_FFI_STATIC_INIT_BLOCK() {
  ModuleObj::InternalUnsafe::RegisterReflection();
  reflection::GlobalDef()
      .def("ffi.ModuleLoadFromFile", &Module::LoadFromFile)
      .def("ffi.ModuleImplementsFunction",
           [](const Module& module, const String& name, bool query_imports) {
             return module->ImplementsFunction(name, query_imports);
           })
      .def("ffi.ModuleGetFunctionMetadata",
           [](const Module& module, const String& name, bool query_imports) {
             return module->GetFunctionMetadata(name, query_imports);
           })
      .def("ffi.ModuleGetFunctionDoc",
           [](const Module& module, const String& name, bool query_imports) {
             return module->GetFunctionDoc(name, query_imports);
           })
      .def("ffi.ModuleGetFunction",
           [](const Module& module, const String& name, bool query_imports) {
             return module->GetFunction(name, query_imports);
           })
      .def("ffi.ModuleGetPropertyMask",
           [](const Module& module) { return module->GetPropertyMask(); })
      .def("ffi.ModuleInspectSource",
           [](const Module& module, const String& format) { return module->InspectSource(format); })
      .def("ffi.ModuleGetKind", [](const Module& module) { return String(module->kind()); })
      .def("ffi.ModuleGetWriteFormats",
           [](const Module& module) { return module->GetWriteFormats(); })
      .def("ffi.ModuleWriteToFile",
           [](const Module& module, const String& file_name, const String& format) {
             module->WriteToFile(file_name, format);
           })
      .def("ffi.ModuleImportModule",
           [](const Module& module, const Module& other) { module->ImportModule(other); })
      .def("ffi.ModuleClearImports", [](const Module& module) { module->ClearImports(); })
      .def("ffi.ModuleGlobalsAdd",
           [](const Module& module) { tether::PinnedModules::Global()->Add(module); })
      .def("ffi.ModuleGlobalsRemove",
           [](const Module& module) { tether::PinnedModules::Global()->Remove(module); });
}

}  // namespace ffi
}  // namespace tvm

int TVMFFIEnvModLookupFromImports(TVMFFIObjectHandle library_ctx, const char* func_name,
                                  TVMFFIObjectHandle* out) {
  TVM_FFI_SAFE_CALL_BEGIN();
  if (library_ctx == nullptr || func_name == nullptr || out == nullptr) {
    TVM_FFI_THROW(ValueError)
        << "TVMFFIEnvModLookupFromImports: the library context, the name and out must not be NULL";
  }
  *out = tvm::ffi::tether::LookupForImporter(static_cast<tvm::ffi::ModuleObj*>(library_ctx),
                                             func_name);
  TVM_FFI_SAFE_CALL_END();
}

int TVMFFIEnvModRegisterContextSymbol(const char* name, void* symbol) {
  TVM_FFI_SAFE_CALL_BEGIN();
  if (name == nullptr) TVM_FFI_THROW(ValueError) << "Name of a context symbol is NULL";
  tvm::ffi::tether::ContextSymbols::Global()->Register(name, symbol);
  TVM_FFI_SAFE_CALL_END();
}
