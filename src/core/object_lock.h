// SPDX-License-Identifier: Apache-2.0
//
// How a walk through C++ objects looks at one that Python threads may be changing.
//
// With the GIL, the walking thread holds it, and no other thread changes anything. Without one, a
// frontend says here how to keep its threads away from an object: while an ObjectLock lives, none
// of them changes the object. Under it a walk copies, with references, what it is going to look at,
// and does nothing else: no user code, nothing that waits or may drop a last reference.
//
// C++ threads that are not attached to Python lock nothing: as in any C++ program, no other thread
// may change what they walk through.
#ifndef TETHER_CORE_OBJECT_LOCK_H_
#define TETHER_CORE_OBJECT_LOCK_H_

#include <tvm/ffi/container/dict.h>
#include <tvm/ffi/container/list.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/memory.h>
#include <tvm/ffi/object.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <unordered_map>

namespace tvm {
namespace ffi {
namespace tether {

/*!
 * \brief What a frontend without a GIL stores in object_lock_hooks, whose address the global
 * function ffi.tether.ObjectLockHooks returns.
 */
struct ObjectLockHooks {
  static constexpr size_t kStateSize = 64;
  /*! \brief The caller keeps the object alive, and passes the same kStateSize bytes to leave. */
  void (*enter)(TVMFFIObject* object, bool may_run_user_code, void* state);
  void (*leave)(void* state);
};
extern std::atomic<const ObjectLockHooks*> object_lock_hooks;

/*! \brief Whether objects may change while a walk is looking. */
inline bool MayChangeAnyTime() {
  return TVM_FFI_PREDICT_FALSE(object_lock_hooks.load(std::memory_order_acquire) != nullptr);
}

class ObjectLock {
 public:
  /*!
   * \brief For places where user code may run under the lock after all: slower, and released while
   * such code waits for something.
   */
  explicit ObjectLock(const Object* object, bool may_run_user_code = false)
      : hooks_(object_lock_hooks.load(std::memory_order_acquire)) {
    if (TVM_FFI_PREDICT_TRUE(hooks_ == nullptr)) return;
    hooks_->enter(details::ObjectUnsafe::GetHeader(object), may_run_user_code, state_);
  }
  ~ObjectLock() {
    if (TVM_FFI_PREDICT_FALSE(hooks_ != nullptr)) hooks_->leave(state_);
  }
  ObjectLock(const ObjectLock&) = delete;
  ObjectLock& operator=(const ObjectLock&) = delete;

 private:
  const ObjectLockHooks* hooks_;
  alignas(std::max_align_t) unsigned char state_[ObjectLockHooks::kStateSize];
};

/*!
 * \brief The contents of the containers that a walk meets: one view of each for the whole walk.
 *
 * Where containers may change at any time, that of a List or a Dict is a copy, which lives as long
 * as this; else it is the container itself.
 */
class Views {
 public:
  const SeqBaseObj* Of(const SeqBaseObj* seq) {
    if (!MayChangeAnyTime() || seq->type_index() != TypeIndex::kTVMFFIList) return seq;
    return static_cast<const SeqBaseObj*>(
        Find(seq, [seq] { return ObjectRef(List<Any>(seq->begin(), seq->end())); }));
  }
  const MapBaseObj* Of(const MapBaseObj* map) {
    if (!MayChangeAnyTime() || map->type_index() != TypeIndex::kTVMFFIDict) return map;
    return static_cast<const MapBaseObj*>(
        Find(map, [map] { return ObjectRef(MapOps::Copy(map)); }));
  }

 private:
  struct View {
    ObjectRef container;  // held, so that its address is not reused
    ObjectRef copy;
  };

  template <typename Copy>
  TVM_FFI_NO_INLINE const Object* Find(const Object* container, Copy&& copy) {
    if (views_ == nullptr) views_ = std::make_unique<std::unordered_map<const Object*, View>>();
    View& view = (*views_)[container];
    if (!view.copy.defined()) {
      view.container = ObjectRef(
          details::ObjectUnsafe::ObjectPtrFromUnowned<Object>(const_cast<Object*>(container)));
      ObjectLock lock(container);
      view.copy = copy();
    }
    return view.copy.get();
  }

  std::unique_ptr<std::unordered_map<const Object*, View>> views_;  // NULL with the GIL
};

}  // namespace tether
}  // namespace ffi
}  // namespace tvm

#endif  // TETHER_CORE_OBJECT_LOCK_H_
