// SPDX-License-Identifier: Apache-2.0
//
// Whether a thread's native stack is nearly used up. Code that recurses through user code asks
// first: a limit that suits the main thread is too large for a thread with a small stack.
#ifndef TETHER_CORE_STACK_ROOM_H_
#define TETHER_CORE_STACK_ROOM_H_

#include <tvm/ffi/memory.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#if defined(__linux__) || defined(__APPLE__)
#include <pthread.h>
#endif

namespace tvm {
namespace ffi {
namespace tether {

/*! \brief The last part of a thread's stack, kept for what runs between two questions. */
struct StackReserve {
  uintptr_t lowest;  // 0: not looked up yet
  uintptr_t size;    // 0: the bounds of the stack are not known here
};
inline thread_local StackReserve stack_reserve = {0, 0};

/*! \brief The stack of the calling thread; size 0 where that is not known. */
struct StackBounds {
  uintptr_t lowest;
  size_t size;
};
inline StackBounds FindStackBounds() {
  void* lowest = nullptr;
  size_t size = 0;
#if defined(__linux__)
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return {0, 0};
  if (pthread_attr_getstack(&attributes, &lowest, &size) != 0) size = 0;
  pthread_attr_destroy(&attributes);
#elif defined(__APPLE__)
  size = pthread_get_stacksize_np(pthread_self());
  lowest = static_cast<char*>(pthread_get_stackaddr_np(pthread_self())) - size;
#endif
  return {reinterpret_cast<uintptr_t>(lowest), size};
}

TVM_FFI_NO_INLINE inline StackReserve FindStackReserve() {
  constexpr size_t kReserve = 128 * 1024;
  StackBounds stack = FindStackBounds();
  if (stack.size == 0) return {1, 0};
  return {stack.lowest, std::min(kReserve, stack.size / 2)};
}

/*! \brief Never true on a stack that is not the thread's own, such as a coroutine's. */
inline bool IsStackLow() {
  StackReserve& reserve = stack_reserve;
  if (TVM_FFI_PREDICT_FALSE(reserve.lowest == 0)) reserve = FindStackReserve();
  return StackAddress() - reserve.lowest < reserve.size;
}

}  // namespace tether
}  // namespace ffi
}  // namespace tvm

#endif  // TETHER_CORE_STACK_ROOM_H_
