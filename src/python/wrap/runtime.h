// SPDX-License-Identifier: Apache-2.0
// CPython as the tie sees it.
#ifndef TETHER_PYTHON_WRAP_RUNTIME_H_
#define TETHER_PYTHON_WRAP_RUNTIME_H_

#include <atomic>
#include <cstdint>

#include "core/block_cache.h"
#include "python/base/compat.h"
#include "python/base/locks.h"
#include "python/base/threads.h"
#include "python/wrap/wrapper_object.h"
#include "tie/tie.h"

namespace tether_py {

// How many wrappers are dormant: for tying.stats(), and to tell when a collection is due.
struct Counters {
  SharedCount dormant;
};
extern Counters counters;

// What Engine, the tie for Python, is made with. tie.h says what each member does.
struct Runtime : public tie::NoHooks {
  using Wrapper = tether_py::Wrapper;
  static constexpr bool kFreeThreaded = tether_py::kFreeThreaded;
  static constexpr tie::Mutation kMutation = tie::Mutation::kNone;
  static constexpr int kMaxAttempts = 1000;

  static const tie::AdoptedTable& Table() { return *adopted_table.load(std::memory_order_acquire); }
  static tie::Handle& HandleOf(Wrapper* w) { return w->handle; }
  static void IncRef(Wrapper* w) { Py_INCREF(AsObject(w)); }
  static void DecRef(Wrapper* w) {
    UnwindStop stop;  // C++ lets go of an object, and Python code runs
    Py_DECREF(AsObject(w));
  }
  static bool TryIncRef(Wrapper* w) {
    if (!tether_py::TryIncRef(AsObject(w))) return false;
    if (TVM_FFI_PREDICT_FALSE(guarding.IsSet())) Guard(w);
    return true;
  }
  static void EnableTryIncRef(Wrapper* w) { tether_py::EnableTryIncRef(AsObject(w)); }
  static bool IsResurrectionOver(Wrapper* w) { return tether_py::IsResurrectionOver(AsObject(w)); }
  static void ClearFinalized(Wrapper* w) { tether_py::ClearFinalized(AsObject(w)); }
  static bool IsGuarded(Wrapper* w);
  static void Guard(Wrapper* w);
  static bool AttachedHere() { return tether_py::AttachedHere(); }
  static bool OneThread() { return tether_py::OneThread(); }
  static bool RequestDrain();
  static void Relax() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
  }
  static void Pause(int attempt);
  static void OnActive(Wrapper* w);
  // In drop.cc, which alone lets go of wrappers.
  static inline void OnDormant(Wrapper* w);
  static inline void OnGone(Wrapper* w);
  static void* AllocateSpace(size_t n) { return tie::BlockCache::Allocate(n); }
  static void FreeSpace(void* p) { tie::BlockCache::Release(p); }

  // Another one while objects are recorded (recorder.cc); any thread reads it.
  static std::atomic<const tie::AdoptedTable*> adopted_table;
  // A collection runs, and the collector does not know what C++ holds (guard_list.cc).
  static inline SharedFlag guarding;
  // A collection runs.
  static inline std::atomic<bool> collecting{false};
  // A collection is due when more wrappers than this are dormant: see CollectNow.
  static inline int64_t dormant_limit = INT64_MAX;
  // New dormant wrappers are hidden without waiting for a collection: see YoungRings.
  static inline bool hides_at_once = false;
};

using Engine = tie::Tie<Runtime>;

// ---- what the collector is told when a wrapper becomes active (drop.cc) ----

// The tp_dealloc of a class that adds nothing to a wrapper (InstallDealloc) and whose objects have
// plain values in their fields, and of no other.
void DeallocLeaf(PyObject* self);
inline bool IsOfLeafClass(Wrapper* w) { return Py_TYPE(AsObject(w))->tp_dealloc == DeallocLeaf; }
// For an active wrapper of such a class. It is a leaf, and the collector need not know it, unless
// its object is of another type or its class is no longer the one that is registered for the type:
// a class that nobody keeps may be part of a ring with its instances.
void TrackLeaf(Wrapper* w);

// For a wrapper that may be hidden (hidden.h), in any state.
void UnhideSlow(Wrapper* w);  // hidden.cc
inline bool IsHidden(Wrapper* w) { return (reinterpret_cast<uintptr_t>(w->weakrefs) & 1) != 0; }
inline void Unhide(Wrapper* w) {
  if (kFreeThreaded) return;
  bool is_hidden = IsHidden(w);
  bool collecting = Runtime::collecting.load(std::memory_order_relaxed);
  if (TVM_FFI_PREDICT_FALSE(is_hidden || collecting)) UnhideSlow(w);
}
inline void Runtime::OnActive(Wrapper* w) {
  counters.dormant.Add(-1);
  Unhide(w);
  if (TVM_FFI_PREDICT_FALSE(IsOfLeafClass(w))) {
    TrackLeaf(w);
  } else if (!IsTracked(AsObject(w))) {
    PyObject_GC_Track(AsObject(w));
  }
  if (TVM_FFI_PREDICT_FALSE(guarding.IsSet())) Guard(w);
}

}  // namespace tether_py
#endif  // TETHER_PYTHON_WRAP_RUNTIME_H_
