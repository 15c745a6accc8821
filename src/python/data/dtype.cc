// SPDX-License-Identifier: Apache-2.0
// DataType, and the text class tvm_ffi.dtype that data types become in Python.
//
// Shared state:
//   dtype_table                        lock-free; entries are added and never removed, and a table
//                                      that is replaced is never freed.
//   data_type_type, create_data_type,
//   dtype_slot_name                    set at import, constant afterwards.
#include <tvm/ffi/dtype.h>
#include <tvm/ffi/string.h>

#include "python/base/entry.h"
#include "python/base/python_api.h"
#include "python/convert/convert.h"
#include "python/convert/errors.h"
#include "python/data/dtype.h"
#include "python/wrap/python_hooks.h"

namespace tether_py {

using ffi::TypeIndex;

namespace {

struct DataTypeObject {
  PyObject_HEAD DLDataType dtype;
};

DLDataType& ValueOf(PyObject* obj) { return reinterpret_cast<DataTypeObject*>(obj)->dtype; }

// Lanes are signed: a negative number says "times the vector length of the machine".
int16_t LanesOf(DLDataType dtype) { return static_cast<int16_t>(dtype.lanes); }

uint32_t KeyOf(DLDataType dtype) {
  return dtype.code | (uint32_t{dtype.bits} << 8) | (uint32_t{dtype.lanes} << 16);
}

PyTypeObject* data_type_type = nullptr;
PyObject* create_data_type = nullptr;
PyObject* dtype_slot_name = nullptr;

PyObject* MakeDataType(PyTypeObject* cls, DLDataType dtype) {
  PyObject* self = cls->tp_alloc(cls, 0);
  if (self != nullptr) ValueOf(self) = dtype;
  return self;
}

// ---- text

PyObject* TextOf(DLDataType dtype) {
  return Guarded([&] {
    ffi::String text = ffi::DLDataTypeToString(dtype);
    return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
  });
}

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

// ---- the type

PyObject* NewDataType(PyTypeObject* cls, PyObject*, PyObject*) {
  return MakeDataType(cls, DLDataType{kDLOpaqueHandle, 0, 0});  // void
}

int InitDataTypeObject(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"dtype_str", nullptr};
  PyObject* text;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "U:DataType", const_cast<char**>(names), &text)) {
    return -1;
  }
  return Parse(text, &ValueOf(self)) ? 0 : -1;
}

void DeallocDataType(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* GetTypeCode(PyObject* self, void*) { return PyLong_FromLong(ValueOf(self).code); }
PyObject* GetBits(PyObject* self, void*) { return PyLong_FromLong(ValueOf(self).bits); }
PyObject* GetLanes(PyObject* self, void*) { return PyLong_FromLong(LanesOf(ValueOf(self))); }

PyObject* GetItemSize(PyObject* self, void*) {
  DLDataType dtype = ValueOf(self);
  if (LanesOf(dtype) < 0) {
    PyErr_SetString(PyExc_ValueError, "Cannot determine itemsize for scalable vector types");
    return nullptr;
  }
  return PyLong_FromLong((long{dtype.bits} * LanesOf(dtype) + 7) / 8);
}

PyObject* StrDataType(PyObject* self) { return TextOf(ValueOf(self)); }

PyObject* ReprDataType(PyObject* self) {
  Ref text = Ref::Steal(TextOf(ValueOf(self)));
  return text ? PyUnicode_FromFormat("DataType(%R)", text.get()) : nullptr;
}

PyObject* CompareDataType(PyObject* self, PyObject* other, int op) {
  if ((op != Py_EQ && op != Py_NE) || !PyObject_TypeCheck(other, data_type_type)) {
    Py_RETURN_NOTIMPLEMENTED;
  }
  bool equal = KeyOf(ValueOf(self)) == KeyOf(ValueOf(other));
  return PyBool_FromLong(equal == (op == Py_EQ));
}

Py_hash_t HashDataType(PyObject* self) {
  DLDataType dtype = ValueOf(self);
  Ref triple = Ref::Steal(Py_BuildValue("(iii)", dtype.code, dtype.bits, LanesOf(dtype)));
  return triple ? PyObject_Hash(triple.get()) : -1;
}

PyObject* ReduceDataType(PyObject* self, PyObject*) {
  DLDataType dtype = ValueOf(self);
  return Py_BuildValue("O(Oiii)", create_data_type, Py_TYPE(self), dtype.code, dtype.bits,
                       LanesOf(dtype));
}

// The three numbers of a data type. False with an error set that names the wrong one.
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

// ---- from C++: instances of the text class, which cannot change and are shared

// The class in use and its instances made so far.
struct DTypeTable {
  static constexpr size_t kEntries = 64;
  struct Entry {
    uint32_t key;
    PyObject* dtype;
  };
  explicit DTypeTable(PyTypeObject* c) : cls(c) {}
  PyTypeObject* const cls;
  std::atomic<Entry*> entries[kEntries] = {};
};

std::atomic<DTypeTable*> dtype_table{nullptr};

Ref MakeDType(PyTypeObject* cls, DLDataType dtype) {
  Ref value = Ref::Steal(MakeDataType(data_type_type, dtype));
  if (!value || cls == nullptr) return value;
  Ref text = Ref::Steal(TextOf(dtype));
  Ref args = text ? Ref::Steal(PyTuple_Pack(1, text.get())) : Ref();
  if (!args) return nullptr;
  Ref self = Ref::Steal(PyUnicode_Type.tp_new(cls, args.get(), nullptr));
  if (!self || PyObject_SetAttr(self.get(), dtype_slot_name, value.get()) < 0) return nullptr;
  return self;
}

TVM_FFI_NO_INLINE PyObject* AddDType(DTypeTable* table, std::atomic<DTypeTable::Entry*>* place,
                                     DLDataType dtype) {
  Ref made = MakeDType(table->cls, dtype);
  if (!made) return nullptr;
  auto* entry = new (std::nothrow) DTypeTable::Entry{KeyOf(dtype), made.get()};
  if (entry == nullptr) return made.release();
  DTypeTable::Entry* none = nullptr;
  // The rare types that share a place with another one are made anew each time.
  if (place->compare_exchange_strong(none, entry)) {
    Py_INCREF(made.get());  // the table's
  } else {
    delete entry;
  }
  return made.release();
}

PyObject* SetClassDType(PyObject* module, PyObject* cls) {
  if (!PyType_Check(cls) ||
      !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cls), &PyUnicode_Type)) {
    return PyErr_Format(PyExc_TypeError, "expected a subclass of str, got %R", cls);
  }
  dtype_table.store(new DTypeTable(reinterpret_cast<PyTypeObject*>(Py_NewRef(cls))));
  if (PyModule_AddObjectRef(module, "_CLASS_DTYPE", cls) < 0) return nullptr;
  Py_RETURN_NONE;
}

// ---- setters

bool StoreDataType(DLDataType dtype, TVMFFIAny* out) {
  out->type_index = TypeIndex::kTVMFFIDataType;
  out->zero_padding = 0;
  out->v_int64 = 0;
  out->v_dtype = dtype;
  return true;
}

// `hook` raises KeyError for types it does not know.
bool SetForeignDType(PyObject* obj, PyObject* hook, const char* library, TVMFFIAny* out) {
  Ref dtype = Ref::Steal(PyObject_CallOneArg(hook, obj));
  if (dtype) return SetDataType(dtype.get(), out, nullptr);
  if (PyErr_ExceptionMatches(PyExc_KeyError)) {
    PyErr_Clear();
    PyErr_Format(PyExc_ValueError, "Unsupported %s dtype: %S", library, obj);
  }
  return false;
}

PyObject* ParseDataType(PyObject*, PyObject* text) {
  DLDataType dtype;
  if (!PyUnicode_Check(text)) {
    return PyErr_Format(PyExc_TypeError, "expected a str, got %s", Py_TYPE(text)->tp_name);
  }
  return Parse(text, &dtype) ? MakeDataType(data_type_type, dtype) : nullptr;
}

PyMethodDef data_type_functions[] = {
    {"_parse_data_type", Entry<ParseDataType>, METH_O, "As DataType(text), quicker."},
    {"_create_cdtype_from_tuple", Entry<CreateDataTypeFromTuple>, METH_VARARGS,
     "A data type of the given class from its three numbers."},
    {"_set_class_dtype", Entry<SetClassDType>, METH_O,
     "Choose the class of data types that come from C++."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

PyObject* FromDataType(DLDataType dtype) {
  DTypeTable* table = dtype_table.load(std::memory_order_acquire);
  if (table == nullptr) return MakeDataType(data_type_type, dtype);
  uint32_t key = KeyOf(dtype);
  auto* place = &table->entries[(key ^ (key >> 8) * 5 ^ (key >> 16) * 7) % DTypeTable::kEntries];
  DTypeTable::Entry* entry = place->load(std::memory_order_acquire);
  if (TVM_FFI_PREDICT_TRUE(entry != nullptr && entry->key == key)) return Py_NewRef(entry->dtype);
  return AddDType(table, place, dtype);
}

bool DataTypeOf(PyObject* obj, DLDataType* out) {
  if (PyObject_TypeCheck(obj, data_type_type)) {
    *out = ValueOf(obj);
    return true;
  }
  Ref value = Ref::Steal(PyObject_GetAttr(obj, dtype_slot_name));
  if (!value) return false;
  if (!PyObject_TypeCheck(value.get(), data_type_type)) {
    PyErr_Format(PyExc_TypeError, "_tvm_ffi_dtype of %s must be a DataType, got %s",
                 Py_TYPE(obj)->tp_name, Py_TYPE(value.get())->tp_name);
    return false;
  }
  *out = ValueOf(value.get());
  return true;
}

bool IsDataType(PyObject* obj) {
  if (PyObject_TypeCheck(obj, data_type_type)) return true;
  DTypeTable* table = dtype_table.load();
  return table != nullptr && PyObject_TypeCheck(obj, table->cls);
}

bool SetDataType(PyObject* obj, TVMFFIAny* out, Arguments*) {
  DLDataType dtype;
  return DataTypeOf(obj, &dtype) && StoreDataType(dtype, out);
}

bool SetTorchDType(PyObject* obj, TVMFFIAny* out, Arguments*) {
  return SetForeignDType(obj, hooks.dtype_of_torch, "torch", out);
}

bool SetNumpyDType(PyObject* obj, TVMFFIAny* out, Arguments*) {
  return SetForeignDType(obj, hooks.dtype_of_numpy, "numpy or ml_dtypes", out);
}

bool SetDTypeProtocol(PyObject* obj, TVMFFIAny* out, Arguments*) {
  Ref triple = Ref::Steal(PyObject_CallMethod(obj, "__dlpack_data_type__", nullptr));
  if (!triple) return false;
  if (!PyTuple_Check(triple.get()) || PyTuple_GET_SIZE(triple.get()) != 3) {
    PyErr_Format(PyExc_TypeError,
                 "__dlpack_data_type__() of %s must return a tuple of three, got %R",
                 Py_TYPE(obj)->tp_name, triple.get());
    return false;
  }
  PyObject* t = triple.get();
  DLDataType dtype;
  return FromNumbers(PyTuple_GET_ITEM(t, 0), PyTuple_GET_ITEM(t, 1), PyTuple_GET_ITEM(t, 2),
                     &dtype) &&
         StoreDataType(dtype, out);
}

int InitDataType(PyObject* module) {
  dtype_slot_name = PyUnicode_InternFromString("_tvm_ffi_dtype");
  data_type_type = AddType(module, &data_type_spec, nullptr);
  if (dtype_slot_name == nullptr || data_type_type == nullptr) return -1;
  if (PyModule_AddFunctions(module, data_type_functions) < 0) return -1;
  create_data_type = PyObject_GetAttrString(module, "_create_cdtype_from_tuple");
  if (create_data_type == nullptr) return -1;
  // Until the package defines the text class.
  return PyModule_AddObjectRef(module, "_CLASS_DTYPE", reinterpret_cast<PyObject*>(data_type_type));
}

}  // namespace tether_py
