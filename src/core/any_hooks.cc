// SPDX-License-Identifier: Apache-2.0
#include "any_hooks.h"

#include <tvm/ffi/error.h>
#include <tvm/ffi/function.h>

#include <cstdint>

namespace tvm {
namespace ffi {
namespace tether {

std::atomic<IsOldCode> is_old_code{nullptr};

namespace {

// A view of an argument that callers hold as an Any, or of one that lives during the call.
const Any& ArgumentAsAny(const AnyView& argument) { return reinterpret_cast<const Any&>(argument); }

void RequireArguments(const char* name, int32_t expected, int32_t actual) {
  if (expected == actual) return;
  TVM_FFI_THROW(TypeError) << name << " takes " << expected << " arguments, got " << actual;
}

class HashHook {
 public:
  explicit HashHook(void* hook) : hook_(hook) {}
  // Only moved while the function that holds it is made.
  HashHook(HashHook&& other) noexcept : hook_(other.hook_) {}

  void operator()(const AnyView* args, int32_t num_args, Any* result) const {
    RequireArguments("__any_hash__", 1, num_args);
    *result = static_cast<int64_t>(Call(ArgumentAsAny(args[0])));
  }

 private:
  enum Form : int { kUnknown, kOld, kNew };

  uint64_t Call(const Any& value) const {
    if (form_.load(std::memory_order_relaxed) == kOld) return CallOldHash(hook_, value);
    TVMFFIAny result = reinterpret_cast<TVMFFIAny (*)(const Any&)>(hook_)(value);
    const uint64_t first = FirstWord(result);
    const bool looks_new = first == TypeIndex::kTVMFFIInt || first == TypeIndex::kTVMFFIError;
    if (!looks_new || IsOld()) {
      form_.store(kOld, std::memory_order_relaxed);
      return first;
    }
    if (first == TypeIndex::kTVMFFIError) ThrowOwnedError(result);
    return result.v_uint64;
  }

  // An old hook may have a hash that looks like the result of a new one. So the file is asked,
  // once; where it says nothing, the hook counts as new.
  bool IsOld() const {
    if (form_.load(std::memory_order_relaxed) == kNew) return false;
    IsOldCode is_old = is_old_code.load(std::memory_order_acquire);
    if (is_old != nullptr && is_old(hook_)) return true;
    form_.store(kNew, std::memory_order_relaxed);
    return false;
  }

  void* hook_;
  mutable std::atomic<Form> form_{kUnknown};
};

Function WrapHash(void* hook) { return Function::FromPacked(HashHook(hook)); }

Function WrapEqual(void* hook) {
  return Function::FromPacked([hook](const AnyView* args, int32_t num_args, Any* result) {
    RequireArguments("__any_equal__", 2, num_args);
    *result = CallEqualPointer(hook, ArgumentAsAny(args[0]), ArgumentAsAny(args[1]));
  });
}

}  // namespace

Any WithoutRawPointer(std::string_view name, Any value) {
  if (value.type_index() != TypeIndex::kTVMFFIOpaquePtr) return value;
  void* hook = value.cast<void*>();
  if (hook == nullptr) return value;
  if (name == "__any_hash__") return WrapHash(hook);
  if (name == "__any_equal__") return WrapEqual(hook);
  return value;
}

}  // namespace tether
}  // namespace ffi
}  // namespace tvm
