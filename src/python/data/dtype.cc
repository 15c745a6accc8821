// SPDX-License-Identifier: Apache-2.0
// Data types going to Python, as instances of the text class tvm_ffi.dtype, and coming from it.
//
// Shared state:
//   dtype_table       lock-free; entries are added and never removed, and a table that is replaced
//                     is never freed.
//   dtype_slot_name   set at import, constant afterwards.
#include "python/data/dtype.h"
#include "python/base/entry.h"

#include <atomic>
#include <new>

#include "python/data/data_type.h"
#include "python/wrap/python_hooks.h"

namespace tether_py {

using ffi::TypeIndex;

namespace {

PyObject* dtype_slot_name = nullptr;

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
  Ref text = Ref::Steal(DataTypeText(dtype));
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

PyMethodDef dtype_functions[] = {{"_set_class_dtype", Entry<SetClassDType>, METH_O,
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
    *out = DataTypeValue(obj);
    return true;
  }
  Ref value = Ref::Steal(PyObject_GetAttr(obj, dtype_slot_name));
  if (!value) return false;
  if (!PyObject_TypeCheck(value.get(), data_type_type)) {
    PyErr_Format(PyExc_TypeError, "_tvm_ffi_dtype of %s must be a DataType, got %s",
                 Py_TYPE(obj)->tp_name, Py_TYPE(value.get())->tp_name);
    return false;
  }
  *out = DataTypeValue(value.get());
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

int InitDType(PyObject* module) {
  dtype_slot_name = PyUnicode_InternFromString("_tvm_ffi_dtype");
  if (dtype_slot_name == nullptr || PyModule_AddFunctions(module, dtype_functions) < 0) return -1;
  // Until the package defines the text class.
  return PyModule_AddObjectRef(module, "_CLASS_DTYPE", reinterpret_cast<PyObject*>(data_type_type));
}

}  // namespace tether_py
