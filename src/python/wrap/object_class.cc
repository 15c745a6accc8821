// SPDX-License-Identifier: Apache-2.0
// The class CObject, the base of every wrapper, as Python sees it.
#include "python/wrap/object_class.h"

#include <atomic>

#include "python/base/entry.h"
#include "python/base/python_api.h"
#include "python/wrap/class_counts.h"
#include "python/wrap/collector.h"
#include "python/wrap/drop.h"
#include "python/wrap/python_hooks.h"
#include "python/wrap/upper_layers.h"

namespace tether_py {

Types types{};

namespace {

// Lets object.__new__ say which methods are missing.
TVM_FFI_NO_INLINE PyObject* RefuseAbstract(PyTypeObject* cls) {
  Ref no_args = Ref::Steal(PyTuple_New(0));
  return no_args ? PyBaseObject_Type.tp_new(cls, no_args.get(), nullptr) : nullptr;
}

// For calls of a class. Objects that come from C++ get a wrapper of whatever class is registered.
PyObject* NewWrapper(PyTypeObject* cls, PyObject* args, PyObject* kwargs) {
  // As object.__new__: nobody would look at them.
  bool has_arguments =
      PyTuple_GET_SIZE(args) != 0 || (kwargs != nullptr && PyDict_GET_SIZE(kwargs) != 0);
  if (TVM_FFI_PREDICT_FALSE(has_arguments) && cls->tp_init == PyBaseObject_Type.tp_init) {
    return PyErr_Format(PyExc_TypeError, "%s() takes no arguments", cls->tp_name);
  }
  if (TVM_FFI_PREDICT_FALSE((cls->tp_flags & Py_TPFLAGS_IS_ABSTRACT) != 0)) {
    return RefuseAbstract(cls);
  }
  return AsObject(AllocateWrapper(cls));
}

PyObject* GetCHandle(PyObject* self, PyObject*) {
  return PyLong_FromSize_t(ObjectAddressOf(AsWrapper(self)));
}

PyObject* GetId(PyObject* self, void*) { return GetCHandle(self, nullptr); }

PyObject* GetCtypesHandle(PyObject* self, PyObject*) {
  PyObject* c_void_p = CVoidP();
  if (c_void_p == nullptr) return nullptr;
  uintptr_t handle = ObjectAddressOf(AsWrapper(self));
  if (handle == 0) return PyObject_CallFunction(c_void_p, "O", Py_None);
  return PyObject_CallFunction(c_void_p, "K", static_cast<unsigned long long>(handle));
}

bool SameHandle(PyObject* self, PyObject* other) {
  return self == other || (IsWrapper(other) &&
                           ObjectAddressOf(AsWrapper(self)) == ObjectAddressOf(AsWrapper(other)));
}

PyObject* SameAs(PyObject* self, PyObject* other) {
  return PyBool_FromLong(SameHandle(self, other));
}

PyObject* CompareWrapper(PyObject* self, PyObject* other, int op) {
  if (op == Py_EQ) return PyBool_FromLong(SameHandle(self, other));
  // The opposite of ==, which a subclass may define.
  if (op == Py_NE) return PyBaseObject_Type.tp_richcompare(self, other, op);
  Py_RETURN_NOTIMPLEMENTED;
}

Py_hash_t HashWrapper(PyObject* self) {
  auto hash = static_cast<Py_hash_t>(ObjectAddressOf(AsWrapper(self)));
  return hash == -1 ? -2 : hash;
}

PyObject* GetClass(PyObject* self, void*) {
  return Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(self)));
}

// As `object` does it. The wrapper is counted, and known to the collector, by its class.
int SetClass(PyObject* self, PyObject* cls, void*) {
  static std::atomic<PyObject*> name{nullptr};
  PyObject* found = FindOnce(&name, [] { return PyUnicode_InternFromString("__class__"); });
  PyObject* base = found != nullptr ? _PyType_Lookup(&PyBaseObject_Type, found) : nullptr;
  if (base == nullptr) return -1;
  CriticalSection section(self);
  PyTypeObject* before = Py_TYPE(self);
  Ref kept = Ref::Borrow(reinterpret_cast<PyObject*>(before));  // its count goes first
  if (Py_TYPE(base)->tp_descr_set(base, self, cls) < 0) return -1;
  class_counts.Add(before, -1);
  class_counts.Add(Py_TYPE(self), 1);
  Wrapper* w = AsWrapper(self);
  uintptr_t handle = w->handle.load(std::memory_order_relaxed);
  // A dormant one is looked at when it becomes active.
  if (tie::IsDormant(handle)) return 0;
  if (IsOfLeafClass(w) && tie::IsUsable(handle)) {
    TrackLeaf(w);
  } else if (!IsTracked(self)) {
    PyObject_GC_Track(self);
  }
  return 0;
}

PyObject* ReprWrapper(PyObject* self) { return PyObject_CallOneArg(hooks.object_repr, self); }

PyObject* MoveHandleFrom(PyObject* self, PyObject* other) {
  if (!IsWrapper(other)) {
    return PyErr_Format(PyExc_TypeError, "__move_handle_from__ expects a CObject, got %s",
                        Py_TYPE(other)->tp_name);
  }
  if (self == other) Py_RETURN_NONE;
  if (!MoveHandle(AsWrapper(other), AsWrapper(self))) return nullptr;
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
    {"__class__", Entry<GetClass>, Entry<SetClass>, "the object's class", nullptr},
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
