// SPDX-License-Identifier: Apache-2.0
// Wrappers: the Python objects that stand for C++ objects, and the way from one to the other.
//
//   PyObject* w = WrapOwned(h);            // h's one wrapper; takes over a strong reference
//   TVMFFIObject* h = UseHandle(w);        // its object, or NULL with an error set
//
// Lifecycle. Four slots of the base type do everything and are inherited by every Python class:
//   tp_finalize   last Python reference gone: hand W over to H (Drop), or let go of H
//   tp_traverse   the collector sees W and H as one node (collector.cc)
//   tp_clear      break a cycle: let go of H
//   tp_dealloc    the memory
// A class that adds nothing to a wrapper gets a tp_dealloc of ours (InstallDealloc in drop.cc),
// which calls Drop itself and skips tp_finalize, unless the class has a finaliser of its own.
// What a wrapper is: wrapper_object.h. How the tie uses CPython: runtime.h.
#ifndef TETHER_PYTHON_WRAP_WRAPPER_H_
#define TETHER_PYTHON_WRAP_WRAPPER_H_

#include <tvm/ffi/any.h>
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/object.h>

#include "python/base/locks.h"
#include "python/base/ref.h"
#include "python/wrap/class_table.h"
#include "python/wrap/runtime.h"

namespace tether_py {

// ---- going to Python ----

// A wrapper with an empty handle. The collector knows it, unless it is for a leaf.
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
// Something else keeps h alive meanwhile.
PyObject* WrapBorrowedSlow(TVMFFIObject* h);
inline PyObject* WrapBorrowed(TVMFFIObject* h) {
  Wrapper* w = Engine::FetchLive(h);
  return TVM_FFI_PREDICT_TRUE(w != nullptr) ? AsObject(w) : WrapBorrowedSlow(h);
}

// Binds a wrapper to the object h that a constructor made, whose reference it takes over; what the
// wrapper had before is let go. If h already has another wrapper, `w` gets a reference of its own
// but is not handed out again. False with an error set.
bool BindNew(Wrapper* w, TVMFFIObject* h);
// The same for a wrapper that AllocateWrapper has just made, which nobody else knows.
inline void BindFresh(Wrapper* w, TVMFFIObject* h) {
  Engine::Attach(w, h, Engine::FindOrAdopt(h));
  if (TVM_FFI_PREDICT_FALSE(IsOfLeafClass(w))) TrackLeaf(w);
}

// Before an object is constructed for `w` again: takes out what it had, so that a construction that
// fails leaves it empty. The caller holds the old object until the new exists: they never share an
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

// Moves the object of one wrapper to another, which must be empty; the first is empty then. If
// there is none, nothing happens. False with an error set; throws as TakeHandle does.
bool MoveHandle(Wrapper* from, Wrapper* to);

// The address of W's object, 0 if there is none. Wakes a dormant wrapper.
inline uintptr_t ObjectAddressOf(Wrapper* w) {
  TVMFFIObject* h = Engine::Use(w);
  return reinterpret_cast<uintptr_t>(h);
}

// ---- shared variables of this folder, and what protects them ----
// clang-format off
//
//   types, sentinels, module_of_function, allocator,   written at import, read only afterwards
//     subtracting_visitor, learning, sentinel,
//     uses_rule_b, gc_module, layouts (edges_of_type.cc)
//   hooks                              written by _set_hooks, which the package calls at import
//   Runtime::adopted_table             written at import, and when recording starts or stops (recorder.cc)
//   counters.dormant                   the GIL; in a free-threaded build 64 atomics, each for one
//                                      thread or a few
//   class_counts                       the GIL; in a free-threaded build 8 rows of atomics, each for
//                                      several threads, and a ShortLock for what does not fit there
//   class_table, first_classes         read without a lock: a table that grew stays for its readers;
//                                      written with class_table_lock
//   tp_dealloc of a class              written by InstallDealloc with class_table_lock, read without
//                                      a lock: the old and the new function can free any instance
//   Runtime::collecting, guarding      written by the collecting thread; in a free-threaded build the
//                                      others are stopped, or read them as atomics
//   dormant_limit, hides_at_once,      the GIL; not used in a free-threaded build
//     young_rings, wants_full,
//     WrapperMemory
//   patience                           the GIL; in a free-threaded build the collecting thread counts
//                                      wrappers in it, and nobody reads it
//   pending_releases                   a lock-free list: any thread pushes, an attached one empties it
//   num_pending_releases,              atomics
//     interpreter_ended, NotesOf::count_
//   note_table, guards                 a ShortLock each; no Python code runs while it is held
//   collection, hidden, shown          the GIL; in a free-threaded build the collecting thread alone
//                                      (MayUseCollection)
//   the list of calls (CallArguments)  the GIL; not used in a free-threaded build
//   CallArguments::num_detached_       as counters.dormant; used in a free-threaded build only
//   name (object_class.cc)             an atomic, set on first use (FindOnce)
//   edges_of_type, owning_fields       atomics; every thread finds the same answer
//   records, recent_classes            see class_records.cc
//   recorder                           see recorder.cc
//
// clang-format on
//
// ---- where user code may run ----
//
// Python code may run nearly anywhere: where an argument is converted, in hooks and callbacks of a
// callee, where something dies, in a collection that an allocation sets off, and on other threads.
// It may move the object out of any wrapper or initialise it again. One rule makes that safe:
//   - An object leaves a wrapper that Python can reach through TakeHandle or MoveHandle alone. (The
//     collector clears garbage only, which no call has as an argument.)
//   - A call borrows the objects of its arguments, and is on the list of calls from before the
//     first of them is converted until it is over (CallArguments). TakeHandle and MoveHandle give
//     each call that borrowed the object a reference of its own (KeepWhatCallsUse).
//   - What is used outside of a call while Python code may run is held: Using, HoldHandle.
// In a free-threaded build nothing is borrowed: the arguments of a call hold what they refer to.

}  // namespace tether_py
#endif  // TETHER_PYTHON_WRAP_WRAPPER_H_
