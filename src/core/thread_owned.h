// SPDX-License-Identifier: Apache-2.0
// A value that each thread makes for itself and that dies with the thread.
//
//   struct TraceText { using Type = std::string; };
//   ThreadOwned<TraceText>::Get().append("line");
//
// Destructors that run late in a thread may ask for it again and get a new one.
#ifndef TETHER_CORE_THREAD_OWNED_H_
#define TETHER_CORE_THREAD_OWNED_H_

#include <tvm/ffi/base_detail.h>

#include <memory>
#include <new>
#include <type_traits>

#include "core/thread_end.h"

namespace tvm {
namespace ffi {
namespace tether {

template <typename Tag>
class ThreadOwned {
 public:
  using Type = typename Tag::Type;

  // Needs no memory: it is the way to an error that says so.
  static Type& Get() noexcept { return TVM_FFI_PREDICT_TRUE(has_value_) ? *Value() : Make(); }

 private:
  static_assert(std::is_nothrow_default_constructible_v<Type>);

  static Type* Value() { return std::launder(reinterpret_cast<Type*>(storage_)); }
  TVM_FFI_NO_INLINE static Type& Make() {
    ThreadEnd<Destroy>::Arm();
    has_value_ = true;
    return *new (storage_) Type();
  }
  static void Destroy() {
    if (!has_value_) return;
    has_value_ = false;
    std::destroy_at(Value());
  }

  // Zeros, so that they take no part in the set-up of a thread.
  static inline thread_local bool has_value_ = false;
  alignas(Type) static inline thread_local unsigned char storage_[sizeof(Type)] = {};
};

}  // namespace tether
}  // namespace ffi
}  // namespace tvm

#endif  // TETHER_CORE_THREAD_OWNED_H_
