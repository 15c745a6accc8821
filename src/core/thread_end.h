// SPDX-License-Identifier: Apache-2.0
// What a thread does when it ends.
//
//   void FreeTable() { delete table; table = nullptr; }
//   ThreadEnd<FreeTable>::Arm();  // after `table` was set
//
// The destructor of a thread_local variable would do, but to register one takes memory, and where
// there is none the C library ends the process. This takes none if few libraries came before: the
// first 32 keys of a process have their place in every thread. Others may find none, and then what
// the thread had is leaked.
//
// A thread does this after the destructors of its thread_local variables, and again for what was
// armed meanwhile. The thread that ends the process does not: what it has is reachable to the end.
#ifndef TETHER_CORE_THREAD_END_H_
#define TETHER_CORE_THREAD_END_H_

#include <pthread.h>
#include <tvm/ffi/base_detail.h>

namespace tvm {
namespace ffi {
namespace tether {

template <void (*run)()>
class ThreadEnd {
 public:
  static void Arm() {
    if (TVM_FFI_PREDICT_FALSE(!is_armed_)) ArmSlow();
  }

 private:
  TVM_FFI_NO_INLINE static void ArmSlow() {
    static Key key;
    is_armed_ = has_key_ && pthread_setspecific(key.number, &key) == 0;
  }
  static void Run(void*) {
    is_armed_ = false;
    run();
  }

  struct Key {
    pthread_key_t number{};
    Key() { has_key_ = pthread_key_create(&number, Run) == 0; }
    // The library may be unmapped now, or the program ends, and destructors may raise errors yet.
    ~Key() {
      if (has_key_) pthread_key_delete(number);
      has_key_ = false;
    }
    Key(const Key&) = delete;
    Key& operator=(const Key&) = delete;
  };
  static inline bool has_key_ = false;
  static inline thread_local bool is_armed_ = false;
};

}  // namespace tether
}  // namespace ffi
}  // namespace tvm
#endif  // TETHER_CORE_THREAD_END_H_
