// SPDX-License-Identifier: Apache-2.0
// ObjectRValueRef: an argument whose object the callee may take over.
//
// Shared state: none.
#include "python/call/rvalue_ref.h"

#include "python/base/entry.h"
#include "python/base/python_api.h"
#include "python/wrap/wrapper_object.h"

namespace tether_py {

namespace {

struct RValueRefObject {
  PyObject_HEAD PyObject* obj;
};

int InitRValueRef(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"obj", nullptr};
  PyObject* obj;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O", const_cast<char**>(names), &obj)) return -1;
  Py_XSETREF(reinterpret_cast<RValueRefObject*>(self)->obj, Py_NewRef(obj));
  return 0;
}

int TraverseRValueRef(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(reinterpret_cast<RValueRefObject*>(self)->obj);
  return 0;
}

int ClearRValueRef(PyObject* self) {
  Py_CLEAR(reinterpret_cast<RValueRefObject*>(self)->obj);
  return 0;
}

void DeallocRValueRef(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  ClearRValueRef(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyMemberDef rvalue_members[] = {
    {"obj", T_OBJECT, offsetof(RValueRefObject, obj), 0, "The wrapper whose object is given away."},
    {nullptr, 0, 0, 0, nullptr}};

PyType_Slot rvalue_slots[] = {
    {Py_tp_doc, const_cast<char*>("An argument whose object the callee may take over.")},
    {Py_tp_init, Slot<InitRValueRef>()},
    {Py_tp_traverse, reinterpret_cast<void*>(TraverseRValueRef)},
    {Py_tp_clear, reinterpret_cast<void*>(ClearRValueRef)},
    {Py_tp_dealloc, reinterpret_cast<void*>(DeallocRValueRef)},
    {Py_tp_members, rvalue_members},
    {0, nullptr}};

PyType_Spec rvalue_spec = {"tvm_ffi.core.ObjectRValueRef", sizeof(RValueRefObject), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
                           rvalue_slots};

}  // namespace

int InitRValueRefType(PyObject* module) {
  types.rvalue_ref = AddType(module, &rvalue_spec, nullptr);
  return types.rvalue_ref != nullptr ? 0 : -1;
}

}  // namespace tether_py
