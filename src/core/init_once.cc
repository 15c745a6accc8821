// SPDX-License-Identifier: Apache-2.0
// Handles made on first use and torn down once.
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/error.h>

#include <mutex>

#include "locks.h"

int TVMFFIHandleInitOnce(void** handle_addr, int (*init_func)(void** result)) {
  if (__atomic_load_n(handle_addr, __ATOMIC_ACQUIRE) != nullptr) return 0;
  // Recursive, so that initialising one handle may ask for another.
  std::lock_guard<std::recursive_mutex> lock(tvm::ffi::tether::locks.init_once);
  if (__atomic_load_n(handle_addr, __ATOMIC_ACQUIRE) != nullptr) return 0;
  void* result = nullptr;
  if (int code = init_func(&result)) return code;
  if (result == nullptr) {
    TVMFFIErrorSetRaisedFromCStr("RuntimeError", "init_func must return a non-NULL handle");
    return -1;
  }
  __atomic_store_n(handle_addr, result, __ATOMIC_RELEASE);
  return 0;
}

int TVMFFIHandleDeinitOnce(void** handle_addr, int (*deinit_func)(void* handle)) {
  void* handle = __atomic_exchange_n(handle_addr, nullptr, __ATOMIC_ACQ_REL);
  return handle != nullptr ? deinit_func(handle) : 0;
}
