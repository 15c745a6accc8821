// SPDX-License-Identifier: Apache-2.0
// FFIProperty: a field as a property of a class.
//
// Shared state: none of its own. References in a property are read and written in its critical
// section. The rest changes only in __init__, and threads may read either value meanwhile.
#include "python/data/field_property.h"

#include "python/base/entry.h"
#include "python/base/locks.h"
#include "python/base/python_api.h"
#include "python/data/attribute_cache.h"
#include "python/data/field_access.h"
#include "python/data/field_accessors.h"

namespace tether_py {

namespace {

Ref ReadMember(PyObject* self, PyObject* PropertyExtra::*member) {
  CriticalSection section(self);
  return Ref::Borrow(ExtraOf(self)->*member);
}

void WriteMember(PyObject* self, PyObject* PropertyExtra::*member, PyObject* value) {
  Ref old;  // dropped after the section
  CriticalSection section(self);
  old = Ref::Steal(ExtraOf(self)->*member);
  ExtraOf(self)->*member = Py_XNewRef(value);
}

PyObject* PropertyGet(PyObject* self, PyObject* obj, PyObject* cls) {
  if (obj == nullptr || obj == Py_None) return Py_NewRef(self);
  Field* field = ExtraOf(self)->field;
  if (field != nullptr) {
    bool known = Py_TYPE(obj) == field->last_class.load(std::memory_order_relaxed);
    return TVM_FFI_PREDICT_TRUE(known) ? ReadQuickly(*field, obj) : ReadField(*field, obj);
  }
  return PyProperty_Type.tp_descr_get(self, obj, cls);
}

// Writes even where assignment is not allowed.
int PropertyWrite(PyObject* self, PyObject* obj, PyObject* value) {
  Ref write = ReadMember(self, &PropertyExtra::write);  // it may change the property
  if (!write) {
    PyErr_SetString(PyExc_AttributeError, "this field has no setter");
    return -1;
  }
  if (Py_TYPE(write.get()) == types.field_setter) {
    return WriteField(*FieldOf(write.get()), obj, value);
  }
  Ref done = Ref::Steal(PyObject_CallFunctionObjArgs(write.get(), obj, value, nullptr));
  return done ? 0 : -1;
}

int PropertySet(PyObject* self, PyObject* obj, PyObject* value) {
  const Field* field = ExtraOf(self)->field;
  if (field == nullptr) return PyProperty_Type.tp_descr_set(self, obj, value);
  bool is_known = Py_TYPE(obj) == field->last_class.load(std::memory_order_relaxed);
  if (!kFreeThreaded && is_known && value != nullptr && ExtraOf(self)->assigns_field) {
    return WriteQuickly(*field, obj, value);
  }
  if (value == nullptr) {
    PyErr_Format(PyExc_AttributeError, "field `%s` of `%s` cannot be deleted", field->name.c_str(),
                 field->type_key.c_str());
    return -1;
  }
  if (!ExtraOf(self)->writable) {
    PyErr_Format(PyExc_AttributeError, "field `%s` of `%s` is read-only", field->name.c_str(),
                 field->type_key.c_str());
    return -1;
  }
  return PropertyWrite(self, obj, value);
}

PyObject* ReprProperty(PyObject* self) {
  const Field* field = ExtraOf(self)->field;
  if (field == nullptr) return PyUnicode_FromFormat("<%s object>", Py_TYPE(self)->tp_name);
  return PyUnicode_FromFormat("<field '%s' of '%s'>", field->name.c_str(), field->type_key.c_str());
}

PyObject* PropertyForceSet(PyObject* self, PyObject* args) {
  PyObject *obj, *value;
  if (!PyArg_ParseTuple(args, "OO", &obj, &value)) return nullptr;
  if (PropertyWrite(self, obj, value) < 0) return nullptr;
  Py_RETURN_NONE;
}

int InitProperty(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"fget", "fset", "frozen", "fdel", "doc", nullptr};
  PyObject *getter, *setter, *deleter = Py_None, *doc = Py_None;
  int frozen;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOp|OO", const_cast<char**>(names), &getter,
                                   &setter, &frozen, &deleter, &doc)) {
    return -1;
  }
  Ref base_args = Ref::Steal(PyTuple_Pack(4, getter, frozen != 0 ? Py_None : setter, deleter, doc));
  if (!base_args || PyProperty_Type.tp_init(self, base_args.get(), nullptr) < 0) return -1;
  PropertyExtra* extra = ExtraOf(self);
  if (extra->field != nullptr) ForgetKnownAttributes();
  extra->field = Py_TYPE(getter) == types.field_getter ? FieldOf(getter) : nullptr;
  extra->writable = frozen == 0 && setter != Py_None;
  extra->assigns_field = extra->writable && extra->field != nullptr &&
                         Py_TYPE(setter) == types.field_setter && FieldOf(setter) == extra->field;
  WriteMember(self, &PropertyExtra::write, setter == Py_None ? nullptr : setter);
  if (doc != Py_None) WriteMember(self, &PropertyExtra::doc, doc);
  return 0;
}

PyObject* PropertyName(PyObject* self, void*) {
  Field* field = ExtraOf(self)->field;
  if (field != nullptr) return PyUnicode_FromString(field->name.c_str());
  Ref getter = Ref::Steal(PyObject_GetAttrString(self, "fget"));
  // The getter may be a property again, even this one.
  if (!getter || Py_EnterRecursiveCall(" while looking for the name of a property")) return nullptr;
  PyObject* name = PyObject_GetAttrString(getter.get(), "__name__");
  Py_LeaveRecursiveCall();
  return name;
}

PyObject* PropertyDoc(PyObject* self, void*) {
  Ref doc = ReadMember(self, &PropertyExtra::doc);
  if (doc) return doc.release();
  Py_RETURN_NONE;
}

int SetPropertyDoc(PyObject* self, PyObject* doc, void*) {
  WriteMember(self, &PropertyExtra::doc, doc);
  return 0;
}

int TraverseProperty(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(ExtraOf(self)->write);
  Py_VISIT(ExtraOf(self)->doc);
  return PyProperty_Type.tp_traverse(self, visit, arg);
}

int ClearProperty(PyObject* self) {
  Py_CLEAR(ExtraOf(self)->write);
  Py_CLEAR(ExtraOf(self)->doc);
  return PyProperty_Type.tp_clear != nullptr ? PyProperty_Type.tp_clear(self) : 0;
}

void DeallocProperty(PyObject* self) {
  Ref type = Ref::Steal(reinterpret_cast<PyObject*>(Py_TYPE(self)));
  // Let go of last: what dies may start a collection, which must not find this object. The base's
  // function takes it away from the collector.
  Ref write = Ref::Steal(ExtraOf(self)->write), doc = Ref::Steal(ExtraOf(self)->doc);
  PyProperty_Type.tp_dealloc(self);
}

PyMethodDef property_methods[] = {{"set", Entry<PropertyForceSet>, METH_VARARGS,
                                   "Write the field, whether or not it is read-only."},
                                  {nullptr, nullptr, 0, nullptr}};

PyGetSetDef property_getset[] = {
    {"__name__", Entry<PropertyName>, nullptr, nullptr, nullptr},
    {"__doc__", Entry<PropertyDoc>, Entry<SetPropertyDoc>, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyType_Slot property_slots[] = {{Py_tp_repr, Slot<ReprProperty>()},
                                {Py_tp_descr_get, Slot<PropertyGet>()},
                                {Py_tp_descr_set, Slot<PropertySet>()},
                                {Py_tp_init, Slot<InitProperty>()},
                                {Py_tp_traverse, reinterpret_cast<void*>(TraverseProperty)},
                                {Py_tp_clear, reinterpret_cast<void*>(ClearProperty)},
                                {Py_tp_dealloc, reinterpret_cast<void*>(DeallocProperty)},
                                {Py_tp_methods, property_methods},
                                {Py_tp_getset, property_getset},
                                {0, nullptr}};

// _share_for_good(property): for a property of a registered class. It is never freed, because its
// type is not, and every access counts a reference to it.
PyObject* PyShareForGood(PyObject*, PyObject* obj) {
  if (PyObject_TypeCheck(obj, types.field_property)) ShareForGood(obj);
  Py_RETURN_NONE;
}

PyMethodDef property_functions[] = {{"_share_for_good", Entry<PyShareForGood>, METH_O, nullptr},
                                    {nullptr, nullptr, 0, nullptr}};

}  // namespace

int InitFieldProperty(PyObject* module) {
  PyType_Spec property_spec = {
      "tvm_ffi.core.FFIProperty",
      static_cast<int>(PyProperty_Type.tp_basicsize + sizeof(PropertyExtra)), 0,
      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, property_slots};
  types.field_property = AddType(module, &property_spec, &PyProperty_Type);
  if (types.field_property == nullptr) return -1;
  return PyModule_AddFunctions(module, property_functions);
}

}  // namespace tether_py
