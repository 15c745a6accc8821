// SPDX-License-Identifier: Apache-2.0
// What pickling needs of the interpreter: which objects have a part in Python, and to hear when it
// fails.
//
// Shared state: watch_type: set at import, constant afterwards.
#include "python/data/travel.h"

#include <algorithm>

#include "python/base/entry.h"
#include "python/base/python_api.h"
#include "python/wrap/class_table.h"
#include "python/wrap/wrapper.h"

namespace tether_py {

using ffi::TypeIndex;

namespace {

// ---- objects with a part in Python

// As libtvm_ffi knows them (src/extra/graph_writer.cc).
enum class Part : uint8_t { kNone, kNoted, kOutside };

// Whether a class has another method than the base class, and a user wrote it.
bool Overrides(PyTypeObject* cls, const char* name) {
  PyTypeObject* base = PyType_IsSubtype(cls, types.error) ? types.error : types.object;
  Ref own = Ref::Steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(cls), name));
  Ref ours = Ref::Steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(base), name));
  if (!own || !ours) {
    PassOver();
    return false;
  }
  return own.get() != ours.get() && !PyObject_HasAttrString(own.get(), "_is_generated");
}

bool IsInDispatchTable(PyTypeObject* cls) {
  Ref module = Ref::Steal(PyImport_ImportModule("copyreg"));
  Ref table = module ? Ref::Steal(PyObject_GetAttrString(module.get(), "dispatch_table")) : Ref();
  int is = table ? PySequence_Contains(table.get(), reinterpret_cast<PyObject*>(cls)) : 0;
  if (PyErr_Occurred() != nullptr) PassOver();
  return is > 0;
}

// What a class says about pickles of its instances.
Part PartOfClass(PyTypeObject* cls) {
  if (Overrides(cls, "__reduce_ex__") || Overrides(cls, "__reduce__") || IsInDispatchTable(cls)) {
    return Part::kOutside;
  }
  bool has_state = Overrides(cls, "__getstate__") || Overrides(cls, "__setstate__");
  return has_state ? Part::kNoted : Part::kNone;
}

// An instance has another class than objects from C++ get, or room for Python state.
Part PartOfWrapper(PyTypeObject* cls, int32_t type_index) {
  if (cls != FindClassOfIndex(type_index)) return std::max(PartOfClass(cls), Part::kNoted);
  bool has_room =
      cls->tp_dictoffset != 0 || cls->tp_basicsize != static_cast<Py_ssize_t>(sizeof(Wrapper));
  return has_room ? Part::kNoted : Part::kNone;
}

// Called by the walk of a pickle, which holds the object, in a thread that is attached. Without an
// object: what all of that type have, by their class.
Part PartOf(TVMFFIObject* h, int32_t type_index) {
  if (h == nullptr) {
    PyTypeObject* cls = FindClassOfIndex(type_index);
    return cls != nullptr ? PartOfClass(cls) : Part::kNone;
  }
  tie::TieSlot* slot = Engine::FindSlot(h);
  if (slot == nullptr) return Part::kNone;
  uintptr_t word = slot->word.load(std::memory_order_acquire);
  if ((word & ~tie::kWordTags) == 0) return Part::kNone;
  if (!kFreeThreaded) {
    auto* w = reinterpret_cast<Wrapper*>(word & ~tie::kWordTags);
    return PartOfWrapper(Py_TYPE(AsObject(w)), type_index);
  }
  Ref wrapper = Ref::Steal(WrapBorrowed(h));
  if (!wrapper) PassOver();
  return wrapper ? PartOfWrapper(Py_TYPE(wrapper.get()), type_index) : Part::kNone;
}

PyObject* PartFunction(PyObject*, PyObject*) {
  return PyLong_FromVoidPtr(reinterpret_cast<void*>(&PartOf));
}

// What a class says about pickles: 0 nothing, 1 its state, 2 everything.
PyObject* PickleHooks(PyObject*, PyObject* cls) {
  if (!PyType_Check(cls)) {
    return PyErr_Format(PyExc_TypeError, "expected a class, got %s", Py_TYPE(cls)->tp_name);
  }
  return PyLong_FromLong(static_cast<long>(PartOfClass(reinterpret_cast<PyTypeObject*>(cls))));
}

// ---- pickles that fail

// Calls a function if it is dropped while an exception is on its way: what a pickler holds is, when
// pickling fails.
struct ErrorWatch {
  PyObject_HEAD PyObject* callback;
};

PyTypeObject* watch_type = nullptr;

void DeallocWatch(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  Ref callback = Ref::Steal(reinterpret_cast<ErrorWatch*>(self)->callback);
  type->tp_free(self);
  Py_DECREF(type);
  if (PyErr_Occurred() == nullptr) return;
  ErrorAside aside;
  Ref result = Ref::Steal(PyObject_CallNoArgs(callback.get()));
  if (!result) PyErr_WriteUnraisable(callback.get());
}

PyType_Slot watch_slots[] = {
    {Py_tp_doc, const_cast<char*>("Calls a function if it is dropped by an exception.")},
    {Py_tp_dealloc, reinterpret_cast<void*>(DeallocWatch)},
    {0, nullptr}};

PyType_Spec watch_spec = {"tvm_ffi.core._ErrorWatch", sizeof(ErrorWatch), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, watch_slots};

PyObject* WhenDroppedByError(PyObject*, PyObject* callback) {
  auto* watch = PyObject_New(ErrorWatch, watch_type);
  if (watch == nullptr) return nullptr;
  Py_INCREF(callback);
  watch->callback = callback;
  return reinterpret_cast<PyObject*>(watch);
}

PyMethodDef functions[] = {
    {"_part_function", Entry<PartFunction>, METH_NOARGS,
     "Address of the C function that says which part Python has in an object."},
    {"_pickle_hooks", Entry<PickleHooks>, METH_O,
     "What a class says about pickles of its instances: 0 nothing, 1 their state, 2 everything."},
    {"_when_dropped_by_error", Entry<WhenDroppedByError>, METH_O,
     "An object that calls a function if it is dropped while an exception is on its way."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

int InitTravel(PyObject* module) {
  watch_type = AddType(module, &watch_spec, nullptr);
  if (watch_type == nullptr) return -1;
  return PyModule_AddFunctions(module, functions);
}

}  // namespace tether_py
