// SPDX-License-Identifier: Apache-2.0
// FieldGetter and FieldSetter: callables that read and write a field.
//
// Shared state: none of its own; a dict, as CPython does it.
#include "python/data/field_accessors.h"

#include "python/base/entry.h"
#include "python/base/python_api.h"
#include "python/data/field_access.h"

namespace tether_py {

namespace {

PyObject* CallGetter(PyObject* self, PyObject* args, PyObject* kwargs) {
  PyObject* obj;
  if (kwargs != nullptr && PyDict_GET_SIZE(kwargs) != 0) {
    return PyErr_Format(PyExc_TypeError, "a field getter takes no keyword arguments");
  }
  if (!PyArg_ParseTuple(args, "O", &obj)) return nullptr;
  return ReadField(*FieldOf(self), obj);
}

PyObject* CallSetter(PyObject* self, PyObject* args, PyObject* kwargs) {
  PyObject *obj, *value;
  if (kwargs != nullptr && PyDict_GET_SIZE(kwargs) != 0) {
    return PyErr_Format(PyExc_TypeError, "a field setter takes no keyword arguments");
  }
  if (!PyArg_ParseTuple(args, "OO", &obj, &value)) return nullptr;
  if (WriteField(*FieldOf(self), obj, value) < 0) return nullptr;
  Py_RETURN_NONE;
}

int TraverseAccessor(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(reinterpret_cast<AccessorObject*>(self)->dict);
  return 0;
}

int ClearAccessor(PyObject* self) {
  Py_CLEAR(reinterpret_cast<AccessorObject*>(self)->dict);
  return 0;
}

void DeallocAccessor(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  ClearAccessor(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* GetDoc(PyObject* self, void*) {
  Ref doc = FindInInstance(self, &reinterpret_cast<AccessorObject*>(self)->dict, "__doc__");
  if (doc || PyErr_Occurred()) return doc.release();
  Py_RETURN_NONE;
}

int SetDoc(PyObject* self, PyObject* value, void*) {
  return SetInInstance(self, "__doc__", value != nullptr ? value : Py_None);
}

PyGetSetDef accessor_getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {"__doc__", Entry<GetDoc>, Entry<SetDoc>, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyMemberDef accessor_members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(AccessorObject, dict), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

#define TETHER_ACCESSOR_SLOTS(call)                                                          \
  {                                                                                          \
    {Py_tp_call, Slot<call>()}, {Py_tp_traverse, reinterpret_cast<void*>(TraverseAccessor)}, \
        {Py_tp_clear, reinterpret_cast<void*>(ClearAccessor)},                               \
        {Py_tp_dealloc, reinterpret_cast<void*>(DeallocAccessor)},                           \
        {Py_tp_getset, accessor_getset}, {Py_tp_members, accessor_members}, {                \
      0, nullptr                                                                             \
    }                                                                                        \
  }
PyType_Slot getter_slots[] = TETHER_ACCESSOR_SLOTS(CallGetter);
PyType_Slot setter_slots[] = TETHER_ACCESSOR_SLOTS(CallSetter);
#undef TETHER_ACCESSOR_SLOTS

PyType_Spec getter_spec = {
    "tvm_ffi.core.FieldGetter", sizeof(AccessorObject), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, getter_slots};
PyType_Spec setter_spec = {
    "tvm_ffi.core.FieldSetter", sizeof(AccessorObject), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, setter_slots};

PyObject* MakeAccessor(PyTypeObject* type, Field* field) {
  auto* accessor = reinterpret_cast<AccessorObject*>(type->tp_alloc(type, 0));
  if (accessor == nullptr) return nullptr;
  accessor->field = field;
  Ref name = Ref::Steal(PyUnicode_FromString(field->name.c_str()));
  PyObject* self = reinterpret_cast<PyObject*>(accessor);
  if (!name || PyObject_SetAttrString(self, "__name__", name.get()) < 0) {
    Py_DECREF(self);
    return nullptr;
  }
  return self;
}

// _convert_elements(getter, function, class or None): the elements of the containers in this field
// have a type. Exact instances of the class need no conversion.
PyObject* PyConvertElements(PyObject*, PyObject* args) {
  PyObject *getter, *function, *exact;
  if (!PyArg_ParseTuple(args, "O!OO", types.field_getter, &getter, &function, &exact)) {
    return nullptr;
  }
  Field* field = FieldOf(getter);
  if (field->convert_element != nullptr) Py_RETURN_NONE;
  field->is_pointer = field->kind == FieldKind::kObject;
  field->kind = FieldKind::kGetter;
  if (PyType_Check(exact)) {
    field->element_class = reinterpret_cast<PyTypeObject*>(Py_NewRef(exact));
  }
  field->convert_element = Py_NewRef(function);
  Py_RETURN_NONE;
}

PyMethodDef accessor_functions[] = {
    {"_convert_elements", Entry<PyConvertElements>, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

PyObject* MakeFieldGetter(Field* field) { return MakeAccessor(types.field_getter, field); }
PyObject* MakeFieldSetter(Field* field) { return MakeAccessor(types.field_setter, field); }

int InitFieldAccessors(PyObject* module) {
  types.field_getter = AddType(module, &getter_spec, nullptr);
  types.field_setter = AddType(module, &setter_spec, nullptr);
  if (types.field_getter == nullptr || types.field_setter == nullptr) return -1;
  return PyModule_AddFunctions(module, accessor_functions);
}

}  // namespace tether_py
