// SPDX-License-Identifier: Apache-2.0
#include "object_lock.h"

#include <tvm/ffi/reflection/registry.h>

namespace tvm {
namespace ffi {
namespace tether {

std::atomic<const ObjectLockHooks*> object_lock_hooks{nullptr};

TVM_FFI_STATIC_INIT_BLOCK() {
  // For the one frontend of a process that has no GIL, which stores its hooks there.
  reflection::GlobalDef().def("ffi.tether.ObjectLockHooks",
                              [] { return static_cast<void*>(&object_lock_hooks); });
}

}  // namespace tether
}  // namespace ffi
}  // namespace tvm
