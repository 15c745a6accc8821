// SPDX-License-Identifier: Apache-2.0
// A value that each thread makes for itself and that dies with the thread.
//
//   struct TraceText { using Type = std::string; };
//   ThreadOwned<TraceText>::Get().append("line");
//
// Static variables, and other variables of the thread, may die later than this one, and their
// destructors may ask for it again. They get a new one, which nobody destroys any more.
#ifndef TETHER_CORE_THREAD_OWNED_H_
#define TETHER_CORE_THREAD_OWNED_H_

#include <tvm/ffi/base_detail.h>

namespace tvm {
namespace ffi {
namespace tether {

template <typename Tag>
class ThreadOwned {
 public:
  using Type = typename Tag::Type;

  static Type& Get() { return TVM_FFI_PREDICT_TRUE(value_ != nullptr) ? *value_ : Make(); }
  // NULL where there is none; one is not made to ask this.
  static Type* Find() { return value_; }

 private:
  struct Owner {
    ~Owner() {
      delete value_;
      value_ = nullptr;
    }
  };
  TVM_FFI_NO_INLINE static Type& Make() {
    static thread_local Owner owner;
    (void)owner;
    value_ = new Type();
    return *value_;
  }

  static inline thread_local Type* value_ = nullptr;
};

}  // namespace tether
}  // namespace ffi
}  // namespace tvm

#endif  // TETHER_CORE_THREAD_OWNED_H_
