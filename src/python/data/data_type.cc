// SPDX-License-Identifier: Apache-2.0
// The class DataType: a data type as three numbers.
//
// Shared state: data_type_type, create_data_type: set at import, constant afterwards.
#include "python/data/data_type.h"
#include "python/base/entry.h"

#include <tvm/ffi/dtype.h>
#include <tvm/ffi/string.h>

#include "python/base/python_api.h"
#include "python/convert/errors.h"
#include "python/wrap/wrapper_object.h"

namespace tether_py {

PyTypeObject* data_type_type = nullptr;

PyObject* MakeDataType(PyTypeObject* cls, DLDataType dtype) {
  PyObject* self = cls->tp_alloc(cls, 0);
  if (self != nullptr) DataTypeValue(self) = dtype;
  return self;
}

PyObject* DataTypeText(DLDataType dtype) {
  return Guarded([&] {
    ffi::String text = ffi::DLDataTypeToString(dtype);
    return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
  });
}

bool FromNumbers(PyObject* code, PyObject* bits, PyObject* lanes, DLDataType* out) {
  long long code_value, bits_value, lanes_value;
  if (!IntegerInRange(code, 0, UINT8_MAX, "dtype type code", &code_value) ||
      !IntegerInRange(bits, 0, UINT8_MAX, "dtype bits", &bits_value) ||
      !IntegerInRange(lanes, INT16_MIN, UINT16_MAX, "dtype lanes", &lanes_value)) {
    return false;
  }
  *out = DLDataType{static_cast<uint8_t>(code_value), static_cast<uint8_t>(bits_value),
                    static_cast<uint16_t>(lanes_value)};
  return true;
}

namespace {

PyObject* create_data_type = nullptr;

bool Parse(PyObject* text, DLDataType* out) {
  Py_ssize_t size;
  const char* data = PyUnicode_AsUTF8AndSize(text, &size);
  if (data == nullptr) {
    PyErr_Clear();
    PyErr_Format(PyExc_ValueError, "unknown dtype %R", text);
    return false;
  }
  TVMFFIByteArray bytes{data, static_cast<size_t>(size)};
  if (int code = TVMFFIDataTypeFromString(&bytes, out)) {
    RaiseFromCall(code);
    return false;
  }
  return true;
}

PyObject* NewDataType(PyTypeObject* cls, PyObject*, PyObject*) {
  return MakeDataType(cls, DLDataType{kDLOpaqueHandle, 0, 0});  // void
}

int InitDataTypeObject(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"dtype_str", nullptr};
  PyObject* text;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "U:DataType", const_cast<char**>(names), &text)) {
    return -1;
  }
  return Parse(text, &DataTypeValue(self)) ? 0 : -1;
}

void DeallocDataType(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* GetTypeCode(PyObject* self, void*) { return PyLong_FromLong(DataTypeValue(self).code); }
PyObject* GetBits(PyObject* self, void*) { return PyLong_FromLong(DataTypeValue(self).bits); }
PyObject* GetLanes(PyObject* self, void*) { return PyLong_FromLong(LanesOf(DataTypeValue(self))); }

PyObject* GetItemSize(PyObject* self, void*) {
  DLDataType dtype = DataTypeValue(self);
  if (LanesOf(dtype) < 0) {
    PyErr_SetString(PyExc_ValueError, "Cannot determine itemsize for scalable vector types");
    return nullptr;
  }
  return PyLong_FromLong((long{dtype.bits} * LanesOf(dtype) + 7) / 8);
}

PyObject* StrDataType(PyObject* self) { return DataTypeText(DataTypeValue(self)); }

PyObject* ReprDataType(PyObject* self) {
  Ref text = Ref::Steal(DataTypeText(DataTypeValue(self)));
  return text ? PyUnicode_FromFormat("DataType(%R)", text.get()) : nullptr;
}

PyObject* CompareDataType(PyObject* self, PyObject* other, int op) {
  if ((op != Py_EQ && op != Py_NE) || !PyObject_TypeCheck(other, data_type_type)) {
    Py_RETURN_NOTIMPLEMENTED;
  }
  bool equal = KeyOf(DataTypeValue(self)) == KeyOf(DataTypeValue(other));
  return PyBool_FromLong(equal == (op == Py_EQ));
}

Py_hash_t HashDataType(PyObject* self) {
  DLDataType dtype = DataTypeValue(self);
  Ref triple = Ref::Steal(Py_BuildValue("(iii)", dtype.code, dtype.bits, LanesOf(dtype)));
  return triple ? PyObject_Hash(triple.get()) : -1;
}

PyObject* ReduceDataType(PyObject* self, PyObject*) {
  DLDataType dtype = DataTypeValue(self);
  return Py_BuildValue("O(Oiii)", create_data_type, Py_TYPE(self), dtype.code, dtype.bits,
                       LanesOf(dtype));
}

PyObject* CreateDataTypeFromTuple(PyObject*, PyObject* args) {
  PyObject *cls, *code, *bits, *lanes;
  DLDataType dtype;
  if (!PyArg_ParseTuple(args, "OOOO:_create_cdtype_from_tuple", &cls, &code, &bits, &lanes)) {
    return nullptr;
  }
  if (!PyType_Check(cls) ||
      !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cls), data_type_type)) {
    return PyErr_Format(PyExc_TypeError, "expected a subclass of DataType, got %R", cls);
  }
  if (!FromNumbers(code, bits, lanes, &dtype)) return nullptr;
  return MakeDataType(reinterpret_cast<PyTypeObject*>(cls), dtype);
}

PyMethodDef data_type_methods[] = {{"__reduce__", Entry<ReduceDataType>, METH_NOARGS, nullptr},
                                   {nullptr, nullptr, 0, nullptr}};

PyGetSetDef data_type_getset[] = {
    {"type_code", Entry<GetTypeCode>, nullptr, "The kind of number, as DLPack numbers them.",
     nullptr},
    {"bits", Entry<GetBits>, nullptr, "Bits of one number.", nullptr},
    {"lanes", Entry<GetLanes>, nullptr, "Numbers per element; negative for scalable vectors.",
     nullptr},
    {"itemsize", Entry<GetItemSize>, nullptr, "Bytes of one element, rounded up.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyType_Slot data_type_slots[] = {
    {Py_tp_doc, const_cast<char*>("The type of tensor elements, as three numbers.\n\n"
                                  ">>> from tvm_ffi.core import DataType\n"
                                  ">>> x = DataType(\"f32x4\")\n"
                                  ">>> x.type_code, x.bits, x.lanes, x.itemsize, str(x)\n"
                                  "(2, 32, 4, 16, 'float32x4')\n")},
    {Py_tp_new, Slot<NewDataType>()},
    {Py_tp_init, Slot<InitDataTypeObject>()},
    {Py_tp_dealloc, reinterpret_cast<void*>(DeallocDataType)},
    {Py_tp_repr, Slot<ReprDataType>()},
    {Py_tp_str, Slot<StrDataType>()},
    {Py_tp_hash, Slot<HashDataType>()},
    {Py_tp_richcompare, Slot<CompareDataType>()},
    {Py_tp_methods, data_type_methods},
    {Py_tp_getset, data_type_getset},
    {0, nullptr}};

PyType_Spec data_type_spec = {"tvm_ffi.core.DataType", sizeof(DataTypeObject), 0,
                              Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, data_type_slots};

PyObject* ParseDataType(PyObject*, PyObject* text) {
  DLDataType dtype;
  if (!PyUnicode_Check(text)) {
    return PyErr_Format(PyExc_TypeError, "expected a str, got %s", Py_TYPE(text)->tp_name);
  }
  return Parse(text, &dtype) ? MakeDataType(data_type_type, dtype) : nullptr;
}

PyMethodDef data_type_functions[] = {
    {"_parse_data_type", Entry<ParseDataType>, METH_O, "Like DataType(text), but faster."},
    {"_create_cdtype_from_tuple", Entry<CreateDataTypeFromTuple>, METH_VARARGS,
     "A data type of the given class from its three numbers."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

int InitDataType(PyObject* module) {
  data_type_type = AddType(module, &data_type_spec, nullptr);
  if (data_type_type == nullptr) return -1;
  if (PyModule_AddFunctions(module, data_type_functions) < 0) return -1;
  create_data_type = PyObject_GetAttrString(module, "_create_cdtype_from_tuple");
  return create_data_type != nullptr ? 0 : -1;
}

}  // namespace tether_py
