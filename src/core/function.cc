// SPDX-License-Identifier: Apache-2.0
// Function objects and the table of global functions.
#include <tvm/ffi/any.h>
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>
#include <tvm/ffi/string.h>

#include <list>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "library_load.h"
#include "loaded_runtimes.h"
#include "locks.h"

namespace tvm {
namespace ffi {
namespace {

// Functions by name, in order of registration. No user code runs while the lock is held: a
// replaced function is released afterwards.
class GlobalFunctions {
 public:
  struct Entry {
    std::string name;
    std::string doc;
    std::string metadata;
    int64_t flags;
    Function func;
  };

  static GlobalFunctions* Global() {
    // Never destroyed: entries may hold callbacks into an interpreter that is gone by then.
    static GlobalFunctions* table = new GlobalFunctions();
    return table;
  }

  // False when the name is taken and may not be overridden.
  bool Set(Entry entry, bool allow_override) {
    std::unique_lock<std::shared_mutex> lock(tether::locks.functions);
    auto it = by_name_.find(entry.name);
    if (it == by_name_.end()) {
      entries_.push_back(std::move(entry));
      by_name_.emplace(entries_.back().name, std::prev(entries_.end()));
      tether::AddUndo([this, name = entries_.back().name] { Remove(name); });
      return true;
    }
    if (!allow_override) return false;
    tether::AddUndo([this, before = *it->second] { Set(before, true); });
    // The map's key is a view of the kept entry's name, so everything but the name is swapped.
    Entry& kept = *it->second;
    std::swap(kept.doc, entry.doc);
    std::swap(kept.metadata, entry.metadata);
    std::swap(kept.flags, entry.flags);
    std::swap(kept.func, entry.func);
    lock.unlock();
    return true;
  }

  Function Find(std::string_view name) {
    std::shared_lock<std::shared_mutex> lock(tether::locks.functions);
    auto it = by_name_.find(name);
    return it == by_name_.end() ? Function(nullptr) : it->second->func;
  }

  std::optional<String> Metadata(std::string_view name) {
    std::shared_lock<std::shared_mutex> lock(tether::locks.functions);
    auto it = by_name_.find(name);
    if (it == by_name_.end()) return std::nullopt;
    return String(it->second->metadata.data(), it->second->metadata.size());
  }

  std::optional<String> Doc(std::string_view name) {
    std::shared_lock<std::shared_mutex> lock(tether::locks.functions);
    auto it = by_name_.find(name);
    if (it == by_name_.end()) return std::nullopt;
    return String(it->second->doc.data(), it->second->doc.size());
  }

  bool Remove(std::string_view name) {
    std::list<Entry> removed;
    std::unique_lock<std::shared_mutex> lock(tether::locks.functions);
    auto it = by_name_.find(name);
    if (it == by_name_.end()) return false;
    removed.splice(removed.end(), entries_, it->second);
    by_name_.erase(it);
    lock.unlock();
    return true;
  }

  std::vector<String> Names() {
    std::shared_lock<std::shared_mutex> lock(tether::locks.functions);
    std::vector<String> names;
    names.reserve(entries_.size());
    for (const Entry& entry : entries_) names.emplace_back(entry.name);
    return names;
  }

 private:
  std::list<Entry> entries_;
  std::unordered_map<std::string_view, std::list<Entry>::iterator> by_name_;
};

Function BorrowFunction(TVMFFIObjectHandle handle) {
  return Function(
      details::ObjectUnsafe::ObjectPtrFromUnowned<FunctionObj>(static_cast<TVMFFIObject*>(handle)));
}

// A plain object recognised by its address alone.
ObjectRef MakeSentinel() { return ObjectRef(make_object<Object>()); }

TVM_FFI_STATIC_INIT_BLOCK() {
  namespace refl = reflection;
  refl::GlobalDef()
      .def("ffi.GetInvalidObject",
           [] {
             static const ObjectRef* missing = new ObjectRef(MakeSentinel());
             return *missing;
           })
      .def("ffi.GetKwargsObject",
           [] {
             static const ObjectRef* kwargs = new ObjectRef(MakeSentinel());
             return *kwargs;
           })
      .def("ffi.FunctionRemoveGlobal",
           [](const String& name) {
             return GlobalFunctions::Global()->Remove(std::string_view(name.data(), name.size()));
           })
      .def("ffi.FunctionListGlobalNamesFunctor",
           [] {
             return Function::FromTyped(
                 [names = GlobalFunctions::Global()->Names()](int64_t i) -> Any {
                   if (i < 0) return static_cast<int64_t>(names.size());
                   TVM_FFI_CHECK_LT(static_cast<size_t>(i), names.size(), IndexError)
                       << "no such global function name";
                   return names[static_cast<size_t>(i)];
                 });
           })
      .def("ffi.String", [](String value) { return value; })
      .def("ffi.Bytes", [](Bytes value) { return value; })
      .def("ffi.GetGlobalFuncMetadata",
           [](const String& name) {
             std::optional<String> metadata =
                 GlobalFunctions::Global()->Metadata(std::string_view(name.data(), name.size()));
             if (!metadata) TVM_FFI_THROW(RuntimeError) << "Global Function is not found: " << name;
             return *std::move(metadata);
           })
      .def("ffi.GetGlobalFuncDoc",
           [](const String& name) {
             std::optional<String> doc =
                 GlobalFunctions::Global()->Doc(std::string_view(name.data(), name.size()));
             return doc ? *std::move(doc) : String();
           })
      .def("ffi.FunctionFromExternC", [](void* self, void* safe_call, void* deleter) {
        TVM_FFI_CHECK_NOTNULL(safe_call, ValueError);
        return Function::FromExternC(self, reinterpret_cast<TVMFFISafeCallType>(safe_call),
                                     reinterpret_cast<void (*)(void*)>(deleter));
      });
}

}  // namespace
}  // namespace ffi
}  // namespace tvm

using namespace tvm::ffi;

int TVMFFIFunctionCreate(void* self, TVMFFISafeCallType safe_call, void (*deleter)(void* self),
                         TVMFFIObjectHandle* out) {
  TVM_FFI_SAFE_CALL_BEGIN();
  TVM_FFI_CHECK_NOTNULL(safe_call, ValueError);
  *out = details::ObjectUnsafe::MoveObjectRefToTVMFFIObjectPtr(
      Function::FromExternC(self, safe_call, deleter));
  TVM_FFI_SAFE_CALL_END();
}

int TVMFFIFunctionCall(TVMFFIObjectHandle func, TVMFFIAny* args, int32_t num_args,
                       TVMFFIAny* result) {
  return TVMFFIFunctionGetCellPtr(func)->safe_call(func, args, num_args, result);
}

int TVMFFIFunctionSetGlobal(const TVMFFIByteArray* name, TVMFFIObjectHandle f, int allow_override) {
  TVM_FFI_SAFE_CALL_BEGIN();
  TVM_FFI_CHECK_NOTNULL(f, ValueError);
  GlobalFunctions::Entry entry{std::string(ToStringView(*name)), "", "",
                               kTVMFFIFieldFlagBitMaskIsStaticMethod, BorrowFunction(f)};
  if (!GlobalFunctions::Global()->Set(std::move(entry), allow_override != 0)) {
    TVM_FFI_THROW(RuntimeError) << "Global Function `" << ToStringView(*name)
                                << "` is already registered" << tether::SecondRuntimeHint();
  }
  TVM_FFI_SAFE_CALL_END();
}

int TVMFFIFunctionSetGlobalFromMethodInfo(const TVMFFIMethodInfo* method_info, int allow_override) {
  return tether::Register([&] {
    std::string_view name = ToStringView(method_info->name);
    GlobalFunctions::Entry entry{std::string(name), std::string(ToStringView(method_info->doc)),
                                 std::string(ToStringView(method_info->metadata)),
                                 method_info->flags,
                                 AnyView::CopyFromTVMFFIAny(method_info->method).cast<Function>()};
    if (entry.func == nullptr)
      TVM_FFI_THROW(TypeError) << "Cannot convert from type `None` to `ffi.Function`";
    if (GlobalFunctions::Global()->Set(std::move(entry), allow_override != 0)) return;
    Function taken = GlobalFunctions::Global()->Find(name);
    const FunctionObj* owner = static_cast<const FunctionObj*>(taken.get());
    if (owner != nullptr) {
      tether::RefuseTakenName("function", name, reinterpret_cast<const void*>(owner->safe_call));
    }
    TVM_FFI_LOG_AND_THROW(RuntimeError)
        << "Global Function `" << name << "` is already registered, possible causes:\n"
        << "- Two GlobalDef().def registrations for the same function \n"
        << "Please remove the duplicate registration." << tether::SecondRuntimeHint();
  });
}

int TVMFFIFunctionGetGlobal(const TVMFFIByteArray* name, TVMFFIObjectHandle* out) {
  TVM_FFI_SAFE_CALL_BEGIN();
  *out = details::ObjectUnsafe::MoveObjectRefToTVMFFIObjectPtr(
      GlobalFunctions::Global()->Find(ToStringView(*name)));
  TVM_FFI_SAFE_CALL_END();
}

int TVMFFIAnyViewToOwnedAny(const TVMFFIAny* any_view, TVMFFIAny* out) {
  TVM_FFI_SAFE_CALL_BEGIN();
  *out = details::AnyUnsafe::MoveAnyToTVMFFIAny(Any(AnyView::CopyFromTVMFFIAny(*any_view)));
  TVM_FFI_SAFE_CALL_END();
}
