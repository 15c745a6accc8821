// SPDX-License-Identifier: Apache-2.0
// CObject: the base of every wrapper, and the engine's runtime.
#include "python/wrap/wrapper.h"
#include "python/base/entry.h"

#include <unistd.h>

#include <vector>

#include "python/base/python_api.h"
#include "python/wrap/arguments.h"
#include "python/wrap/class_counts.h"
#include "python/wrap/collector.h"
#include "python/wrap/notes.h"
#include "python/wrap/python_hooks.h"
#include "python/wrap/release_queue.h"
#include "python/wrap/upper_layers.h"
#include "python/wrap/wrapper_memory.h"

namespace tether_py {

Types types{};
Counters counters;
const tie::AdoptedTable* Runtime::adopted_table = nullptr;

// ---- the engine's runtime ----

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

void DeallocWrapper(PyObject* self);

// Then it has no state either.
bool UsesFastDealloc(PyTypeObject* cls) {
  return cls->tp_dealloc == DeallocWrapper && !IsFunctionClass(cls);
}

int DrainFromPendingCall(void*) {
  Engine::list().DrainRequested();
  DrainReleases();
  return 0;
}

}  // namespace

// DeallocWrapper itself is their tp_dealloc. Subclasses find it there as their base's. The lock:
// threads that make the first object of a type may come here with one class.
void InstallDealloc(PyTypeObject* cls) {
  if (cls->tp_dealloc == DeallocWrapper) return;
  bool by_cpython = (cls->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0 && cls->tp_finalize != nullptr;
  if (by_cpython && !IsFunctionClass(cls) && !HasState(cls)) cls->tp_dealloc = DeallocWrapper;
}

bool Runtime::RequestDrain() { return Py_AddPendingCall(DrainFromPendingCall, nullptr) == 0; }

void Runtime::Pause(int attempt) {
  // Detached, so that a stop-the-world request does not wait for this thread.
  PyThreadState* state = SaveThread();
  if (attempt > 16) usleep(attempt < 100 ? 1 : 50);
  RestoreThread(state);
}

// A dormant wrapper that has no state, and whose object cannot be part of a ring, costs the
// collector nothing and gc.get_objects() does not show it. Others wait for the next collection.
// Debug builds of CPython assert that an object is tracked when CPython's own dealloc finds it
// resurrected.
inline void Runtime::OnDormant(Wrapper* w) {
  counters.dormant.Add(1);
  PyTypeObject* type = Py_TYPE(AsObject(w));
  if (HasWeakRefs(w) || (!UsesFastDealloc(type) && (kIsDebugBuild || HasState(type)))) return;
  TVMFFIObject* h = tie::ObjectOf(w->handle.load(std::memory_order_relaxed));
  if (TVM_FFI_PREDICT_TRUE(!CanBeEmptied(h->type_index))) {
    PyObject_GC_UnTrack(AsObject(w));
  } else if (TVM_FFI_PREDICT_FALSE(hides_at_once) && UsesFastDealloc(type)) {
    HideAtOnce(w);
  }
}

bool IsHidable(Wrapper* w) {
#ifdef Py_DEBUG
  (void)w;
  return false;
#else
  return !kFreeThreaded && !HasWeakRefs(w) && UsesFastDealloc(Py_TYPE(AsObject(w)));
#endif
}

inline void Runtime::OnGone(Wrapper* w) {
  Unhide(w);
  // CPython goes on to destroy it and takes it for tracked.
  if (!IsTracked(AsObject(w))) PyObject_GC_Track(AsObject(w));
}

namespace {

// Classes whose instances are a wrapper and nothing else share their memory.
bool IsPlain(PyTypeObject* cls) {
  return UsesFastDealloc(cls) && cls->tp_basicsize == static_cast<Py_ssize_t>(sizeof(Wrapper));
}

}  // namespace

Wrapper* AllocateWrapper(PyTypeObject* cls) {
  PyObject* obj = IsPlain(cls) ? WrapperMemory::Take(cls, sizeof(Wrapper)) : nullptr;
  bool is_tracked = obj == nullptr;
  if (obj == nullptr) {
    bool is_due = !kFreeThreaded && counters.dormant.Get() > Runtime::dormant_limit;
    if (TVM_FFI_PREDICT_FALSE(is_due)) CollectNow();
    obj = cls->tp_alloc(cls, 0);
  }
  if (obj == nullptr) return nullptr;
  Wrapper* w = AsWrapper(obj);
  new (&w->handle) tie::Handle(tie::kEmpty);
  if (!is_tracked) PyObject_GC_Track(obj);
  class_counts.Add(cls, 1);
  if (IsFunctionClass(cls)) upper_layers.init_function(reinterpret_cast<FunctionWrapper*>(w));
  return w;
}

PyObject* WrapBorrowedSlow(TVMFFIObject* h) {
  Engine::AddStrong(h);
  return AsObject(Engine::Fetch(h, MakeWrapper));
}

PyObject* WrapOwnedSlow(TVMFFIObject* h) { return AsObject(Engine::Fetch(h, MakeWrapper)); }

namespace {

// `w` is about to lose h. Calls that borrowed it as an argument, or run it, get a reference.
void KeepWhatCallsUse(Wrapper* w, TVMFFIObject* h) {
  CallArguments::HoldForAll(h);
  if (!IsFunctionClass(Py_TYPE(AsObject(w)))) return;
  auto* function = reinterpret_cast<FunctionWrapper*>(w);
  if (function->parked == nullptr) function->parked = new std::vector<TVMFFIObject*>();
  function->parked->push_back(h);
  Engine::AddStrong(h);
}

}  // namespace

TVMFFIObject* TakeHandle(Wrapper* w) {
  TVMFFIObject* h = Engine::Use(w);
  if (h == nullptr) return nullptr;
  KeepWhatCallsUse(w, h);
  return Engine::Take(w);
}

ffi::ObjectPtr<ffi::Object> TakeBefore(Wrapper* w) {
  CriticalSection section(AsObject(w));
  return ffi::details::ObjectUnsafe::ObjectPtrFromOwned<ffi::Object>(TakeHandle(w));
}

bool BindNew(Wrapper* w, TVMFFIObject* h) {
  ffi::ObjectPtr<ffi::Object> old;  // dropped last: that may run Python code
  {
    CriticalSection section(AsObject(w));
    if (TVM_FFI_PREDICT_FALSE(w->handle.load(std::memory_order_relaxed) != tie::kEmpty)) {
      try {
        old = ffi::details::ObjectUnsafe::ObjectPtrFromOwned<ffi::Object>(TakeHandle(w));
      } catch (const std::bad_alloc&) {
        Engine::DropStrong(h);
        PyErr_NoMemory();
        return false;
      }
    }
    if (TVM_FFI_PREDICT_TRUE(w->handle.load(std::memory_order_relaxed) == tie::kEmpty)) {
      Engine::Attach(w, h, Engine::FindOrAdopt(h));
      return true;
    }
  }
  // A dead wrapper may still be on the reclaim list, linked through its handle.
  Engine::DropStrong(h);
  SetNoHandleError(w);
  return false;
}

TVMFFIObject* SetNoHandleError(Wrapper* w) {
  uintptr_t handle = w->handle.load(std::memory_order_relaxed);
  const char* name = Py_TYPE(AsObject(w))->tp_name;
  // Usable again: another thread has moved an object into it since we looked.
  if (handle == tie::kEmpty || tie::IsUsable(handle)) {
    PyErr_Format(PyExc_ValueError,
                 "%s object has no C++ object: it was moved from, or never initialised", name);
  } else {
    PyErr_Format(PyExc_ReferenceError, "the C++ object of this %s is gone", name);
  }
  return nullptr;
}

TVMFFIObject* UseDormant(Wrapper* w) {
  TVMFFIObject* h = Engine::Promote(w);
  return h != nullptr ? h : SetNoHandleError(w);
}

// ---- slots of CObject ----

namespace {

// Lets object.__new__ say which methods are missing.
TVM_FFI_NO_INLINE PyObject* RefuseAbstract(PyTypeObject* cls) {
  Ref no_args = Ref::Steal(PyTuple_New(0));
  return no_args ? PyBaseObject_Type.tp_new(cls, no_args.get(), nullptr) : nullptr;
}

// For calls of a class. Objects that come from C++ get a wrapper of whatever class is registered.
PyObject* NewWrapper(PyTypeObject* cls, PyObject*, PyObject*) {
  if (TVM_FFI_PREDICT_FALSE((cls->tp_flags & Py_TPFLAGS_IS_ABSTRACT) != 0)) {
    return RefuseAbstract(cls);
  }
  return AsObject(AllocateWrapper(cls));
}

void FinalizeWrapper(PyObject* self) {
  // From the collector the mark is already set, from dealloc it is set afterwards.
  if (PyObject_GC_IsFinalized(self)) {
    if (!kCountsMayDip) EndCounting();
    Engine::DropFromCollector(AsWrapper(self));
  } else {
    Engine::Drop(AsWrapper(self));
  }
}

void ClearFunctionWrapper(FunctionWrapper* w) {
  Py_CLEAR(w->dict);
  Py_CLEAR(w->origin);
  Py_CLEAR(w->parameters);
  if (w->parked == nullptr) return;
  for (TVMFFIObject* h : *w->parked) Engine::DropStrong(h);
  delete w->parked;
}

int ClearWrapper(PyObject* self) {
  if (IsFunctionClass(Py_TYPE(self))) Py_CLEAR(reinterpret_cast<FunctionWrapper*>(self)->dict);
  BreakRing(self);
  Engine::Discard(AsWrapper(self));
  return 0;
}

// The finaliser of an instance that dies by hand, unless its class has one of its own (__del__).
// True if it lives on: it is dormant, or __del__ kept it.
bool LivesOn(PyObject* self) {
  if (TVM_FFI_PREDICT_FALSE(Py_TYPE(self)->tp_finalize != FinalizeWrapper)) {
    return PyObject_CallFinalizerFromDealloc(self) < 0;
  }
  return FinalizeFromDealloc(self, [self] { Engine::Drop(AsWrapper(self)); });
}

void DeallocWrapper(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  Wrapper* w = AsWrapper(self);
  // For other classes CPython has called the finaliser already.
  if (type->tp_dealloc == DeallocWrapper && LivesOn(self)) return;
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

PyObject* GetCHandle(PyObject* self, PyObject*) {
  return PyLong_FromSize_t(PeekHandle(AsWrapper(self)));
}
PyObject* GetId(PyObject* self, void*) { return GetCHandle(self, nullptr); }

}  // namespace

namespace {

PyObject* GetCtypesHandle(PyObject* self, PyObject*) {
  PyObject* c_void_p = CVoidP();
  if (c_void_p == nullptr) return nullptr;
  uintptr_t handle = PeekHandle(AsWrapper(self));
  if (handle == 0) return PyObject_CallFunction(c_void_p, "O", Py_None);
  return PyObject_CallFunction(c_void_p, "K", static_cast<unsigned long long>(handle));
}

bool SameHandle(PyObject* self, PyObject* other) {
  return self == other ||
         (IsWrapper(other) && PeekHandle(AsWrapper(self)) == PeekHandle(AsWrapper(other)));
}

PyObject* SameAs(PyObject* self, PyObject* other) {
  return PyBool_FromLong(SameHandle(self, other));
}

PyObject* CompareWrapper(PyObject* self, PyObject* other, int op) {
  if (op == Py_EQ) return PyBool_FromLong(SameHandle(self, other));
  if (op == Py_NE) return PyBool_FromLong(!SameHandle(self, other));
  Py_RETURN_NOTIMPLEMENTED;
}

Py_hash_t HashWrapper(PyObject* self) {
  auto hash = static_cast<Py_hash_t>(PeekHandle(AsWrapper(self)));
  return hash == -1 ? -2 : hash;
}

PyObject* ReprWrapper(PyObject* self) { return PyObject_CallOneArg(hooks.object_repr, self); }

PyObject* MoveHandleFrom(PyObject* self, PyObject* other) {
  if (!IsWrapper(other)) {
    return PyErr_Format(PyExc_TypeError, "__move_handle_from__ expects a CObject, got %s",
                        Py_TYPE(other)->tp_name);
  }
  if (self == other) Py_RETURN_NONE;
  Wrapper* from = AsWrapper(other);
  CriticalSection2 sections(self, other);
  // A source without object leaves the target empty too.
  TVMFFIObject* h = Engine::Use(from);
  if (h == nullptr) Py_RETURN_NONE;
  KeepWhatCallsUse(from, h);
  if (!Engine::Rebind(from, AsWrapper(self))) {
    return PyErr_Format(PyExc_ValueError, "%s object already has a C++ object",
                        Py_TYPE(self)->tp_name);
  }
  Py_RETURN_NONE;
}

PyObject* InitHandleByConstructor(PyObject* self, PyObject* const* args, Py_ssize_t nargs) {
  return upper_layers.init_handle_by_constructor(self, args, nargs);
}

PyMethodDef object_methods[] = {
    {"__chandle__", Entry<GetCHandle>, METH_NOARGS,
     "Address of the C++ object, 0 when there is none."},
    {"__ctypes_handle__", Entry<GetCtypesHandle>, METH_NOARGS, "The address as a ctypes.c_void_p."},
    {"same_as", Entry<SameAs>, METH_O, "Whether both stand for the same C++ object."},
    {"is_", Entry<SameAs>, METH_O, "Whether both stand for the same C++ object."},
    {"__move_handle_from__", Entry<MoveHandleFrom>, METH_O,
     "Take over the C++ object of another wrapper, which becomes empty."},
    {"__init_handle_by_constructor__", EntryOfAnyKind<InitHandleByConstructor>(), METH_FASTCALL,
     "Call an FFI function and become the wrapper of the object it returns."},
    {nullptr, nullptr, 0, nullptr}};

PyGetSetDef object_getset[] = {
    {"id_", Entry<GetId>, nullptr, "Address of the C++ object, 0 when there is none.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyMemberDef object_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Wrapper, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

PyType_Slot object_slots[] = {
    {Py_tp_doc, const_cast<char*>("Base of every Python object that stands for a C++ object.")},
    {Py_tp_new, Slot<NewWrapper>()},
    {Py_tp_dealloc, reinterpret_cast<void*>(DeallocWrapper)},
    {Py_tp_finalize, reinterpret_cast<void*>(FinalizeWrapper)},
    {Py_tp_traverse, reinterpret_cast<void*>(TraverseWrapper)},
    {Py_tp_clear, reinterpret_cast<void*>(ClearWrapper)},
    {Py_tp_repr, Slot<ReprWrapper>()},
    {Py_tp_hash, Slot<HashWrapper>()},
    {Py_tp_richcompare, Slot<CompareWrapper>()},
    {Py_tp_methods, object_methods},
    {Py_tp_getset, object_getset},
    {Py_tp_members, object_members},
    {0, nullptr}};

PyType_Spec object_spec = {"tvm_ffi.core.CObject", sizeof(Wrapper), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
                           object_slots};

}  // namespace

int InitWrapperTypes(PyObject* module) {
  types.object = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&object_spec));
  if (types.object == nullptr) return -1;
  return PyModule_AddType(module, types.object);
}

}  // namespace tether_py
