// SPDX-License-Identifier: Apache-2.0
// The drop: Python lets go of a wrapper, which becomes dormant or dies.
#include "python/wrap/drop.h"

#include <vector>

#include "python/wrap/class_counts.h"
#include "python/wrap/collection.h"
#include "python/wrap/collector.h"
#include "python/wrap/edges_of_type.h"
#include "python/wrap/notes.h"
#include "python/wrap/release_queue.h"
#include "python/wrap/wrapper_memory.h"

namespace tether_py {

// ---- which classes die fast, and who is tracked ----

namespace {

// State that a dormant wrapper must keep visible to the collector: a __dict__, slots of a subclass.
bool HasState(PyTypeObject* type) {
  if (HasInstanceDict(type)) return true;
  PyTypeObject* base = type;
  while ((base->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0 && base->tp_base != nullptr &&
         base->tp_basicsize == base->tp_base->tp_basicsize) {
    base = base->tp_base;
  }
  // The first type that added storage: one of ours, or a class with slots.
  return base != types.object && base != types.container && base != types.function &&
         base != types.tensor;
}

}  // namespace

// Makes DeallocWrapper or DeallocLeaf the tp_dealloc of a class. In a subclass, CPython's own
// dealloc calls it as that of the base. The lock is needed because several threads may come here
// with one class when they make the first objects of a type. Debug builds want tracked objects
// (see OnDormant).
void InstallDealloc(PyTypeObject* cls, int32_t type_index, bool has_fields) {
  bool is_known = cls->tp_dealloc == DeallocWrapper || cls->tp_dealloc == DeallocLeaf;
  bool by_cpython = (cls->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0 && cls->tp_finalize != nullptr;
  if (!is_known && (!by_cpython || IsFunctionClass(cls) || HasState(cls))) return;
  bool is_leaf = !kIsDebugBuild && has_fields && FindEdgesOfType(type_index) == EdgesOfType::kNone;
  // Of a class for several types, no object is a leaf if that is not true of all.
  bool is_only = !is_known || FindClassOfIndex(type_index) == cls;
  destructor dealloc = is_leaf ? DeallocLeaf : DeallocWrapper;
  // Other threads may have objects of the class by now, so the same value is not written again.
  if ((is_only || !is_leaf) && cls->tp_dealloc != dealloc) cls->tp_dealloc = dealloc;
}

void TrackLeaf(Wrapper* w) {
  PyObject* obj = AsObject(w);
  int32_t type_index = tie::ObjectOf(w->handle.load(std::memory_order_relaxed))->type_index;
  bool is_tracked = FindClassOfIndex(type_index) != Py_TYPE(obj);
  if (is_tracked == IsTracked(obj)) return;
  is_tracked ? PyObject_GC_Track(obj) : PyObject_GC_UnTrack(obj);
}

bool IsHidable(Wrapper* w) {
#ifdef Py_DEBUG
  (void)w;
  return false;
#else
  return !kFreeThreaded && !HasWeakRefs(w) && UsesFastDealloc(Py_TYPE(AsObject(w)));
#endif
}

// A dormant wrapper that has no state and a class that is kept, and whose object cannot be part of
// a ring, costs the collector nothing and gc.get_objects() does not show it. Others wait for the
// next collection. Debug builds of CPython assert that an object is tracked when CPython's own
// dealloc finds it resurrected.
inline void Runtime::OnDormant(Wrapper* w) {
  counters.dormant.Add(1);
  PyTypeObject* type = Py_TYPE(AsObject(w));
  TVMFFIObject* h = tie::ObjectOf(w->handle.load(std::memory_order_relaxed));
  if (HasWeakRefs(w)) return;
  if (!UsesFastDealloc(type)) {
    // A class that nobody keeps may be part of a ring with its instances.
    bool is_kept = FindClassOfIndex(h->type_index) == type;
    if (kIsDebugBuild || !is_kept || HasState(type)) return;
  }
  if (TVM_FFI_PREDICT_TRUE(!CanBeEmptied(h->type_index))) {
    PyObject_GC_UnTrack(AsObject(w));
  } else if (TVM_FFI_PREDICT_FALSE(hides_at_once) && UsesFastDealloc(type)) {
    HideAtOnce(w);
  }
}

inline void Runtime::OnGone(Wrapper* w) {
  Unhide(w);
  // CPython goes on to destroy it and takes it for tracked.
  if (!IsTracked(AsObject(w))) PyObject_GC_Track(AsObject(w));
}

// ---- the slots ----

void FinalizeWrapper(PyObject* self) {
  // From the collector the mark is already set, from dealloc it is set afterwards.
  if (PyObject_GC_IsFinalized(self)) {
    if (!kCountsMayDip) EndCounting();
    Engine::DropFromCollector(AsWrapper(self));
  } else {
    Engine::Drop(AsWrapper(self));
  }
}

namespace {

void ClearFunctionWrapper(FunctionWrapper* w) {
  Py_CLEAR(w->dict);
  Py_CLEAR(w->origin);
  Py_CLEAR(w->parameters);
  if (w->parked == nullptr) return;
  for (TVMFFIObject* h : *w->parked) Engine::DropStrong(h);
  delete w->parked;
}

}  // namespace

int ClearWrapper(PyObject* self) {
  if (IsFunctionClass(Py_TYPE(self))) Py_CLEAR(reinterpret_cast<FunctionWrapper*>(self)->dict);
  BreakRing(self);
  Engine::Discard(AsWrapper(self));
  return 0;
}

namespace {

// The finaliser of an instance freed by DeallocWrapper or DeallocLeaf, unless its class has its own
// (__del__). True if it lives on: it is dormant, or __del__ kept it.
bool LivesOn(PyObject* self) {
  if (TVM_FFI_PREDICT_FALSE(Py_TYPE(self)->tp_finalize != FinalizeWrapper)) {
    return PyObject_CallFinalizerFromDealloc(self) < 0;
  }
  return FinalizeFromDealloc(self, [self] { Engine::Drop(AsWrapper(self)); });
}

// All of tp_dealloc but the finaliser.
TVM_FFI_INLINE void FreeWrapper(PyObject* self, PyTypeObject* type) {
  Wrapper* w = AsWrapper(self);
  Unhide(w);
  PyObject_GC_UnTrack(self);
  if (HasWeakRefs(w)) PyObject_ClearWeakRefs(self);
  Engine::Discard(w);
  if (IsFunctionClass(type)) ClearFunctionWrapper(reinterpret_cast<FunctionWrapper*>(self));
  class_counts.Add(type, -1);
  Notes::Forget(self);
  ElementNotes::Forget(self);
  // A handle is gone only if its wrapper was dormant when the object died.
  uintptr_t handle = w->handle.load(std::memory_order_relaxed);
  if (tie::IsDead(handle) && handle != tie::kEmpty) counters.dormant.Add(-1);
  if (!IsPlain(type) || !WrapperMemory::Give(self)) type->tp_free(self);
  Py_DECREF(type);
  Engine::list().Drain();
  DrainReleases();
}

}  // namespace

void DeallocWrapper(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  if (type->tp_dealloc != DeallocWrapper || !LivesOn(self)) FreeWrapper(self, type);
}

void DeallocLeaf(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  if (type->tp_dealloc != DeallocLeaf || !LivesOn(self)) FreeWrapper(self, type);
}

}  // namespace tether_py
