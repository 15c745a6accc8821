// SPDX-License-Identifier: Apache-2.0
// Objects go into wrappers and out of them: the fetch, constructors and moves.
#include "python/wrap/wrapper.h"

#include <new>
#include <vector>

#include "python/base/python_api.h"
#include "python/wrap/arguments.h"
#include "python/wrap/class_counts.h"
#include "python/wrap/collection.h"
#include "python/wrap/drop.h"
#include "python/wrap/upper_layers.h"
#include "python/wrap/wrapper_memory.h"

namespace tether_py {

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
  bool is_leaf = cls->tp_dealloc == DeallocLeaf;
  if (is_tracked == is_leaf) is_leaf ? PyObject_GC_UnTrack(obj) : PyObject_GC_Track(obj);
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
  // One that comes and goes is kept already.
  if (!function->parked->empty() && function->parked->back() == h) return;
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

bool MoveHandle(Wrapper* from, Wrapper* to) {
  CriticalSection2 sections(AsObject(to), AsObject(from));
  // A source without object leaves the target empty too.
  TVMFFIObject* h = Engine::Use(from);
  if (h == nullptr) return true;
  // Asked first: what calls keep would pile up with every move that fails.
  if (to->handle.load(std::memory_order_relaxed) != tie::kEmpty) {
    PyErr_Format(PyExc_ValueError, "%s object already has a C++ object",
                 Py_TYPE(AsObject(to))->tp_name);
    return false;
  }
  KeepWhatCallsUse(from, h);
  Engine::Rebind(from, to);
  if (IsOfLeafClass(to)) TrackLeaf(to);
  return true;
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
      BindFresh(w, h);
      return true;
    }
  }
  // A dead wrapper may still be on the reclaim list, linked through its handle.
  Engine::DropStrong(h);
  SetNoHandleError(w);
  return false;
}

// Whether the class is not registered and has an __init__ written in Python: then that must call
// the one of its base. Runs no code.
static bool NeedsSuperInit(PyTypeObject* cls) {
  Ref init = Ref::Steal(PyUnicode_InternFromString("__init__"));
  Ref info = Ref::Steal(PyUnicode_InternFromString("__tvm_ffi_type_info__"));
  Ref own = init && info ? FindInDict(cls->tp_dict, init.get()) : Ref();
  bool needs = own && PyFunction_Check(own.get()) && !FindInDict(cls->tp_dict, info.get());
  if (PyErr_Occurred()) PassOver();
  return needs;
}

TVMFFIObject* SetNoHandleError(Wrapper* w) {
  uintptr_t handle = w->handle.load(std::memory_order_relaxed);
  const char* name = Py_TYPE(AsObject(w))->tp_name;
  // Usable again: another thread has moved an object into it since we looked.
  if (handle == tie::kEmpty || tie::IsUsable(handle)) {
    PyErr_Format(PyExc_ValueError,
                 "%s object has no C++ object: it was moved from, or never initialised%s", name,
                 NeedsSuperInit(Py_TYPE(AsObject(w)))
                     ? " (an __init__ calls super().__init__() first)"
                     : "");
  } else {
    PyErr_Format(PyExc_ReferenceError, "the C++ object of this %s is gone", name);
  }
  return nullptr;
}

TVMFFIObject* UseDormant(Wrapper* w) {
  TVMFFIObject* h = Engine::Promote(w);
  return h != nullptr ? h : SetNoHandleError(w);
}

}  // namespace tether_py
