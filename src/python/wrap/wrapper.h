// SPDX-License-Identifier: Apache-2.0
// The Python object that stands for a C++ object, and the tying engine as CPython sees it.
//
//   PyObject* w = WrapOwned(h);            // h's one wrapper; takes over a strong reference
//   TVMFFIObject* h = UseHandle(w);        // its object, or NULL with an error set
//
// Lifecycle. Four slots of the base type do everything and are inherited by every Python class:
//   tp_finalize   last Python reference gone: hand W over to H (Drop), or let go of H
//   tp_traverse   the collector sees W and H as one node (collector.cc)
//   tp_clear      break a cycle: let go of H
//   tp_dealloc    the memory
#ifndef TETHER_PYTHON_WRAP_WRAPPER_H_
#define TETHER_PYTHON_WRAP_WRAPPER_H_

#include <tvm/ffi/any.h>
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/object.h>

#include <cstdlib>
#include <type_traits>
#include <vector>

#include "core/block_cache.h"
#include "python/base/compat.h"
#include "python/base/locks.h"
#include "python/base/ref.h"
#include "python/base/threads.h"
#include "python/wrap/class_table.h"
#include "tie/tie.h"

namespace tether_py {

namespace ffi = tvm::ffi;
namespace tie = tvm::ffi::tether;

// What the two fields mean in each state. W is the wrapper, H its C++ object.
// clang-format off
//
//   state     who holds whom          handle (tie/tie_word.h)   weakrefs                 tracked by gc
//   empty     nobody                  kEmpty                    list of weak references  yes
//   active    W holds H               H                         list of weak references  yes
//   dormant   H holds W               H | kDormant              list of weak references  see below
//   hidden    H holds W (dormant)     H | kDormant              index in a list          no
//   gone      nobody, H has died      kGone, or a link of the   list of weak references  yes
//                                     reclaim list
//
// clang-format on
// A dormant wrapper is untracked when neither it nor H can be part of a ring. One that was part of
// a collection, could be part of a ring and has no weak references is hidden: only full collections
// look at it. `weakrefs` is then its place, counted from 1, in the collector's list (collector.cc);
// Unhide() puts things right before anybody else looks at the field. With the GIL only.
struct Wrapper {
  PyObject_HEAD tie::Handle handle;
  PyObject* weakrefs;
};
static_assert(sizeof(Wrapper) == sizeof(PyObject) + 16, "48 bytes with the collector's head");

struct FunctionWrapper {
  Wrapper base;
  PyObject* dict;
  vectorcallfunc vectorcall;
  std::vector<TVMFFIObject*>* parked;  // functions that left this wrapper (TakeHandle), or NULL
  PyObject* origin;                    // what is known of the function (call/metadata.h), or NULL
  PyObject* parameters;                // the same of its parameters
  bool release_gil;                    // other Python threads run during a call
  bool walks;                          // locks its arguments itself (CallKeepingGIL)
};

inline Wrapper* AsWrapper(PyObject* obj) { return reinterpret_cast<Wrapper*>(obj); }
inline PyObject* AsObject(Wrapper* w) { return reinterpret_cast<PyObject*>(w); }

// Acquire: the last one may have just died on another thread, which wrote this list.
inline bool HasWeakRefs(Wrapper* w) {
  return __atomic_load_n(&w->weakrefs, __ATOMIC_ACQUIRE) != nullptr;
}

// The extension's types; set once at import.
struct Types {
  PyTypeObject* object;     // CObject
  PyTypeObject* container;  // CContainerBase
  PyTypeObject* array;
  PyTypeObject* list;
  PyTypeObject* map;
  PyTypeObject* dict;
  PyTypeObject* opaque;
  PyTypeObject* error;
  PyTypeObject* function;
  PyTypeObject* tensor;
  PyTypeObject* string;
  PyTypeObject* rvalue_ref;
  PyTypeObject* field_getter;
  PyTypeObject* field_setter;
  PyTypeObject* converter;
  PyTypeObject* field_property;  // FFIProperty
};
extern Types types;

// Functions alone can be called without a tuple, and so can their Python subclasses.
inline bool IsFunctionClass(PyTypeObject* cls) {
  return cls->tp_vectorcall_offset == offsetof(FunctionWrapper, vectorcall);
}

inline bool IsWrapper(PyObject* obj) { return PyObject_TypeCheck(obj, types.object); }

// How many wrappers there are, for tying.stats().
struct Counters {
  SharedCount dormant;
};
extern Counters counters;

// CPython as the engine sees it.
struct Runtime : public tie::NoHooks {
  using Wrapper = tether_py::Wrapper;
  static constexpr bool kFreeThreaded = tether_py::kFreeThreaded;
  static constexpr tie::Mutation kMutation = tie::Mutation::kNone;
  static constexpr int kMaxAttempts = 1000;

  static const tie::AdoptedTable& Table() { return *adopted_table; }
  static tie::Handle& HandleOf(Wrapper* w) { return w->handle; }
  static void IncRef(Wrapper* w) { Py_INCREF(AsObject(w)); }
  static void DecRef(Wrapper* w) {
    UnwindStop stop;  // C++ lets go of an object, and Python code runs
    Py_DECREF(AsObject(w));
  }
  static bool TryIncRef(Wrapper* w) {
    if (!tether_py::TryIncRef(AsObject(w))) return false;
    if (TVM_FFI_PREDICT_FALSE(guarding.load(std::memory_order_relaxed))) Guard(w);
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
  // In wrapper.cc, which alone lets go of wrappers.
  static inline void OnDormant(Wrapper* w);
  static inline void OnGone(Wrapper* w);
  static void* AllocateSpace(size_t n) { return tie::BlockCache::Allocate(n); }
  static void FreeSpace(void* p) { tie::BlockCache::Release(p); }

  static const tie::AdoptedTable* adopted_table;
  // A collection runs, and the collector does not know what C++ holds (collector.cc, rule B).
  static inline std::atomic<bool> guarding{false};
  // A collection runs.
  static inline std::atomic<bool> collecting{false};
  // One is due when more wrappers than this are dormant: see CollectNow.
  static inline int64_t dormant_limit = INT64_MAX;
  static inline bool hides_at_once = false;
};

using Engine = tie::Tie<Runtime>;

// ---- going to Python ----

// Lets instances of a class that adds nothing to a wrapper die without the detour through CPython's
// general way for Python classes. With the lock of the class table held.
void InstallDealloc(PyTypeObject* cls);

// A wrapper with an empty handle.
Wrapper* AllocateWrapper(PyTypeObject* cls);

inline Wrapper* MakeWrapper(TVMFFIObject* h) {
  PyTypeObject* cls = ClassOfIndex(h->type_index);
  return cls != nullptr ? AllocateWrapper(cls) : nullptr;
}

// A live wrapper is found without a call.
PyObject* WrapOwnedSlow(TVMFFIObject* h);
TVM_FFI_INLINE PyObject* WrapOwned(TVMFFIObject* h) {
  Wrapper* w = Engine::FetchLive(h);
  if (TVM_FFI_PREDICT_FALSE(w == nullptr)) return WrapOwnedSlow(h);
  Engine::DropStrong(h);
  return AsObject(w);
}
// h is kept alive by somebody else meanwhile.
PyObject* WrapBorrowedSlow(TVMFFIObject* h);
inline PyObject* WrapBorrowed(TVMFFIObject* h) {
  Wrapper* w = Engine::FetchLive(h);
  return TVM_FFI_PREDICT_TRUE(w != nullptr) ? AsObject(w) : WrapBorrowedSlow(h);
}

// Binds a wrapper to the object h that a constructor made, whose reference it takes over; what the
// wrapper had before is let go. If h already has another wrapper, `w` gets a reference of its own
// but is not handed out again. False with an error set.
bool BindNew(Wrapper* w, TVMFFIObject* h);

// Before an object is constructed for `w` again: takes out what it had, so that a construction that
// fails leaves it empty. That is to live until the new object exists: the two never have one
// address.
ffi::ObjectPtr<ffi::Object> TakeBefore(Wrapper* w);

// ---- coming from Python ----

// NULL with an error set when the wrapper is empty (moved from, never initialised) or its object is
// dead.
TVMFFIObject* SetNoHandleError(Wrapper* w);
TVMFFIObject* UseDormant(Wrapper* w);

// To be used before any Python code may run; see "where user code may run" below.
inline TVMFFIObject* UseHandle(Wrapper* w) {
  uintptr_t handle = w->handle.load(std::memory_order_relaxed);
  if (TVM_FFI_PREDICT_TRUE(tie::IsUsable(handle))) {
    if (handle == 0) TVM_FFI_UNREACHABLE();  // "no object" has a tag
    return reinterpret_cast<TVMFFIObject*>(handle);
  }
  return UseDormant(w);
}

// W's object with a strong reference of the caller's own, or NULL with an error set.
inline TVMFFIObject* HoldHandle(Wrapper* w) {
  CriticalSection section(AsObject(w));
  TVMFFIObject* h = UseHandle(w);
  if (h != nullptr) Engine::AddStrong(h);
  return h;
}

// W's object for the length of a scope in which anything may happen to W.
class Using {
 public:
  explicit Using(Wrapper* w) : object_(HoldHandle(w)) {}
  ~Using() {
    if (object_ != nullptr) Engine::DropStrong(object_);
  }
  Using(const Using&) = delete;
  Using& operator=(const Using&) = delete;
  TVMFFIObject* get() const { return object_; }  // NULL with an error set

 private:
  TVMFFIObject* object_;
};

// Takes W's strong reference out of it; NULL when it has none. In W's critical section. Calls that
// borrowed the object get a reference. A function's wrapper keeps one more until it dies, because
// calls through it hold none. Throws bad_alloc, and has then done nothing.
TVMFFIObject* TakeHandle(Wrapper* w);

// The handle for display: 0 when there is none.
inline uintptr_t PeekHandle(Wrapper* w) {
  TVMFFIObject* h = Engine::Use(w);
  return reinterpret_cast<uintptr_t>(h);
}

// ---- shared variables of this folder, and what protects them ----
// clang-format off
//
//   types, hooks, sentinels            written at import, read only afterwards
//   counters.dormant, class_counts     one cell per thread; plain with the GIL
//   class_table                        read without a lock: a table that grew stays for its readers;
//                                      written with class_table_lock
//   Runtime::collecting, guarding      written by the collecting thread; without the GIL the others
//                                      are stopped, or read them as atomics
//   dormant_limit, hides_at_once       the GIL; not used without it
//   pending_releases                   a lock-free list: any thread pushes, an attached one empties it
//   note_table, watches, guards,       a ShortLock each; no Python code runs while it is held
//     known_fields
//   collection, hidden                 the GIL; without it, the collecting thread alone
//   the list of calls (CallArguments)  the GIL; not used without it
//   can_be_emptied                     atomics; every thread finds the same answer
//
// clang-format on
//
// ---- where user code may run ----
//
// Python code may run nearly anywhere: where an argument is converted, in hooks and callbacks of a
// callee, where something dies, in a collection that an allocation sets off, and on other threads.
// It may move the object out of any wrapper or initialise it again. One rule makes that safe:
//   - An object leaves a living wrapper through TakeHandle alone.
//   - A call borrows the objects of its arguments, and is on the list of calls from before the
//     first of them is converted until it is over (CallArguments). TakeHandle gives each call that
//     borrowed the object a reference of its own.
//   - What is used outside of a call while Python code may run is held: Using, HoldHandle.
// Without the GIL nothing is borrowed: the arguments of a call hold what they refer to.

// Whether objects of the type may be emptied to break a ring of garbage.
// Asked whenever a wrapper becomes dormant, so the answers are kept: 0 for a type not asked about
// yet, 1 yes, 2 no.
inline constexpr size_t kMaxEmptiable = 1 << 14;
extern std::atomic<uint8_t> can_be_emptied[kMaxEmptiable];
bool LearnCanBeEmptied(int32_t type_index);
inline bool CanBeEmptied(int32_t type_index) {
  if (TVM_FFI_PREDICT_FALSE(static_cast<size_t>(type_index) >= kMaxEmptiable)) return false;
  uint8_t answer = can_be_emptied[type_index].load(std::memory_order_relaxed);
  return TVM_FFI_PREDICT_TRUE(answer != 0) ? answer == 1 : LearnCanBeEmptied(type_index);
}
// A dormant wrapper without weak references that only full collections look at, and the end of
// that; the latter may be called for any wrapper. Not for free-threaded builds.
bool IsHidable(Wrapper* w);
void Hide(Wrapper* w);
void HideAtOnce(Wrapper* w);  // not by a collection
void UnhideSlow(Wrapper* w);
inline void Unhide(Wrapper* w) {
  if (kFreeThreaded) return;
  bool is_hidden = w->weakrefs != nullptr && !IsTracked(AsObject(w));
  bool collecting = Runtime::collecting.load(std::memory_order_relaxed);
  if (TVM_FFI_PREDICT_FALSE(is_hidden || collecting)) UnhideSlow(w);
}
inline void Runtime::OnActive(Wrapper* w) {
  counters.dormant.Add(-1);
  Unhide(w);
  if (!IsTracked(AsObject(w))) PyObject_GC_Track(AsObject(w));
  if (TVM_FFI_PREDICT_FALSE(guarding.load(std::memory_order_relaxed))) Guard(w);
}

int InitWrapperTypes(PyObject* module);
int InitTying(PyObject* module);

}  // namespace tether_py
#endif  // TETHER_PYTHON_WRAP_WRAPPER_H_
