// SPDX-License-Identifier: Apache-2.0
// The system library: symbols that are linked into the process and announce themselves by name.
#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/reflection/registry.h>

#include <iostream>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "core/locks.h"
#include "library.h"

namespace tvm {
namespace ffi {
namespace tether {
namespace {

class SystemSymbols {
 public:
  void Register(const char* name, void* address) {
    std::lock_guard<std::mutex> lock(locks.system_symbols);
    auto [it, is_new] = table_.emplace(name, address);
    if (is_new || it->second == address) return;
    std::cerr << "Warning:SystemLib symbol " << name << " get overriden to a different address "
              << address << "->" << it->second << std::endl;
    it->second = address;
  }

  void* Find(const std::string& name) {
    std::lock_guard<std::mutex> lock(locks.system_symbols);
    auto it = table_.find(name);
    return it != table_.end() ? it->second : nullptr;
  }

  bool HasSymbolIn(const Library& library) {
    std::lock_guard<std::mutex> lock(locks.system_symbols);
    for (const auto& entry : table_) {
      if (library.Contains(entry.second)) return true;
    }
    return false;
  }

  // Never destroyed: static destructors may still look symbols up.
  static SystemSymbols* Global() {
    static auto* symbols = new SystemSymbols();
    return symbols;
  }

 private:
  std::unordered_map<std::string, void*> table_;
};

// The symbols that begin with a prefix, which callers leave out.
class SystemLibrary final : public Library {
 public:
  explicit SystemLibrary(std::string prefix) : prefix_(std::move(prefix)) {}

  void* FindSymbol(std::string_view role, std::string_view name) final {
    std::string full = std::string(role).append(prefix_).append(name);
    if (void* address = SystemSymbols::Global()->Find(full)) return address;
    return SystemSymbols::Global()->Find(std::string(role).append(name));
  }

  std::string Name() const final { return "the system library `" + prefix_ + "`"; }

 private:
  std::string prefix_;
};

// One module per prefix, never released.
class SystemModules {
 public:
  Module Get(const String& prefix) {
    // Held while loaders of embedded modules run: a second module for the prefix, made meanwhile,
    // would leave its address behind in the library context. Loaders may ask for other prefixes.
    std::lock_guard<std::recursive_mutex> lock(locks.system_modules);
    std::string key = prefix;
    auto it = modules_.find(key);
    if (it != modules_.end()) return it->second;
    Module made = MakeLibraryModule(std::make_unique<SystemLibrary>(key));
    return modules_.emplace(std::move(key), std::move(made)).first->second;
  }

  static SystemModules* Global() {
    static auto* modules = new SystemModules();
    return modules;
  }

 private:
  std::unordered_map<std::string, Module> modules_;
};

void GetSystemLib(PackedArgs args, Any* result) {
  if (args.size() > 1) {
    TVM_FFI_THROW(TypeError) << "ffi.SystemLib takes at most 1 argument, but " << args.size()
                             << " were given";
  }
  *result = SystemModules::Global()->Get(args.size() == 1 ? args[0].cast<String>() : String());
}

}  // namespace

bool HasSystemLibSymbolIn(const Library& library) {
  return SystemSymbols::Global()->HasSymbolIn(library);
}

}  // namespace tether

TVM_FFI_STATIC_INIT_BLOCK() {
  reflection::GlobalDef().def_packed("ffi.SystemLib", tether::GetSystemLib);
}

}  // namespace ffi
}  // namespace tvm

int TVMFFIEnvModRegisterSystemLibSymbol(const char* name, void* symbol) {
  TVM_FFI_SAFE_CALL_BEGIN();
  if (name == nullptr) TVM_FFI_THROW(ValueError) << "Name of a system library symbol is NULL";
  tvm::ffi::tether::SystemSymbols::Global()->Register(name, symbol);
  TVM_FFI_SAFE_CALL_END();
}
