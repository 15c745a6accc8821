// SPDX-License-Identifier: Apache-2.0
// OpaquePyObject: a Python object that C++ holds without looking inside.
//
// Shared state: none.
#include "python/data/opaque_object.h"
#include "python/base/entry.h"

#include "python/base/python_api.h"
#include "python/wrap/class_table.h"
#include "python/wrap/wrapper.h"

namespace tether_py {

using ffi::TypeIndex;

namespace {

PyObject* GetHeldObject(PyObject* self, PyObject*) {
  Using object(AsWrapper(self));
  TVMFFIObject* h = object.get();
  if (h == nullptr) return nullptr;
  if (h->type_index != TypeIndex::kTVMFFIOpaquePyObject) {
    return PyErr_Format(PyExc_TypeError, "%s object does not hold a Python object",
                        Py_TYPE(self)->tp_name);
  }
  return Py_NewRef(static_cast<PyObject*>(TVMFFIOpaqueObjectGetCellPtr(h)->handle));
}

PyMethodDef opaque_methods[] = {
    {"pyobject", Entry<GetHeldObject>, METH_NOARGS, "The Python object that is held."},
    {nullptr, nullptr, 0, nullptr}};

PyType_Slot opaque_slots[] = {
    {Py_tp_doc, const_cast<char*>("A Python object that C++ holds without looking inside.")},
    {Py_tp_methods, opaque_methods},
    {0, nullptr}};

PyType_Spec opaque_spec = {"tvm_ffi.core.OpaquePyObject", sizeof(Wrapper), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, opaque_slots};

}  // namespace

int InitOpaqueObject(PyObject* module) {
  types.opaque = AddType(module, &opaque_spec, types.object);
  if (types.opaque == nullptr) return -1;
  SetClassOfIndex(TypeIndex::kTVMFFIOpaquePyObject, types.opaque);
  return 0;
}

}  // namespace tether_py
