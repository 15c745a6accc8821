// SPDX-License-Identifier: Apache-2.0
#include "object_lock.h"

#include <tvm/ffi/reflection/registry.h>

namespace tvm {
namespace ffi {
namespace tether {

std::atomic<const ObjectLockHooks*> object_lock_hooks{nullptr};

TVM_FFI_STATIC_INIT_BLOCK() {
  // For the one frontend of a process that has no GIL.
  reflection::GlobalDef().def("ffi.tether.SetObjectLock", [](void* hooks) {
    object_lock_hooks.store(static_cast<const ObjectLockHooks*>(hooks), std::memory_order_release);
  });
}

}  // namespace tether
}  // namespace ffi
}  // namespace tvm
