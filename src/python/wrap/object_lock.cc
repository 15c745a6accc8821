// SPDX-License-Identifier: Apache-2.0
// Looking at objects that other threads change.
#include "python/wrap/object_lock.h"

#include <tvm/ffi/function.h>

#include "core/object_lock.h"
#include "python/base/python_api.h"

namespace tether_py {

void LookAtObject::Enter(TVMFFIObject* h, bool may_run_user_code) {
  if (!AttachedHere()) return;
  for (;;) {
    if (may_run_user_code) {
      wrapper_ = AsWrapper(WrapBorrowed(h));
      if (wrapper_ == nullptr) PassOver();
    } else {
      wrapper_ = Engine::FetchLiveOrKeep(h, &kept_);
    }
    if (wrapper_ == nullptr) return;
    section_.emplace(AsObject(wrapper_));
    if (wrapper_->handle.load(std::memory_order_relaxed) == reinterpret_cast<uintptr_t>(h)) return;
    section_.reset();  // moved away meanwhile, perhaps to another wrapper
    Py_DECREF(AsObject(wrapper_));
  }
}

void LookAtObject::Leave() {
  section_.reset();
  Engine::StopKeeping(kept_);
  if (wrapper_ != nullptr) Py_DECREF(AsObject(wrapper_));
}

namespace {

// For walks of the library.
static_assert(sizeof(LookAtObject) <= tie::ObjectLockHooks::kStateSize);

constexpr tie::ObjectLockHooks object_lock_hooks{
    [](TVMFFIObject* h, bool may_run_user_code, void* state) {
      new (state) LookAtObject(h, may_run_user_code);
    },
    [](void* state) { static_cast<LookAtObject*>(state)->~LookAtObject(); }};

}  // namespace

void InstallObjectLock() {
  void* place = ffi::Function::GetGlobalRequired("ffi.tether.ObjectLockHooks")().cast<void*>();
  static_cast<std::atomic<const tie::ObjectLockHooks*>*>(place)->store(&object_lock_hooks,
                                                                       std::memory_order_release);
}

}  // namespace tether_py
