// SPDX-License-Identifier: Apache-2.0
// CAny: a Python object that holds one value as the FFI holds it.
#include "python/base/entry.h"
#include "python/base/python_api.h"
#include "python/convert/convert.h"
#include "python/schema/schema.h"
#include "python/wrap/python_hooks.h"

namespace tether_py {

using ffi::TypeIndex;

namespace {

struct AnyHolder {
  PyObject_HEAD ffi::Any value;
};

PyTypeObject* any_type = nullptr;  // set at import

PyObject* NewHolder(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"value", nullptr};
  PyObject* value = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O", const_cast<char**>(names), &value)) {
    return nullptr;
  }
  ffi::Any converted;
  if (!ToOwnedAny(value, &converted)) return nullptr;
  return MakeCAny(std::move(converted));
}

void DeallocHolder(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  reinterpret_cast<AnyHolder*>(self)->value.~Any();
  type->tp_free(self);
  Py_DECREF(type);
}

const TVMFFIAny& HeldCell(PyObject* self) {
  return *ffi::details::AnyUnsafe::TVMFFIAnyPtrFromAny(reinterpret_cast<AnyHolder*>(self)->value);
}

PyObject* HolderTypeIndex(PyObject* self, void*) {
  return PyLong_FromLong(HeldCell(self).type_index);
}

PyObject* HolderRepr(PyObject* self) {
  const TVMFFIAny& cell = HeldCell(self);
  switch (cell.type_index) {
    case TypeIndex::kTVMFFINone:
      return PyUnicode_FromString("CAny(None)");
    case TypeIndex::kTVMFFIInt:
      return PyUnicode_FromFormat("CAny(int=%lld)", static_cast<long long>(cell.v_int64));
    case TypeIndex::kTVMFFIBool:
      return PyUnicode_FromString(cell.v_int64 != 0 ? "CAny(bool=True)" : "CAny(bool=False)");
    case TypeIndex::kTVMFFIFloat: {
      Ref number = Ref::Steal(PyFloat_FromDouble(cell.v_float64));
      return number ? PyUnicode_FromFormat("CAny(float=%R)", number.get()) : nullptr;
    }
    default:
      return PyUnicode_FromFormat(cell.type_index >= TypeIndex::kTVMFFIStaticObjectBegin
                                      ? "CAny(object, type_index=%d)"
                                      : "CAny(type_index=%d)",
                                  cell.type_index);
  }
}

PyGetSetDef any_getset[] = {
    {"type_index", Entry<HolderTypeIndex>, nullptr, "Type index of the value.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot any_slots[] = {{Py_tp_doc, const_cast<char*>("One value as the FFI holds it.")},
                           {Py_tp_new, Slot<NewHolder>()},
                           {Py_tp_dealloc, reinterpret_cast<void*>(DeallocHolder)},
                           {Py_tp_repr, Slot<HolderRepr>()},
                           {Py_tp_getset, any_getset},
                           {0, nullptr}};
PyType_Spec any_spec = {"tvm_ffi.core.CAny", sizeof(AnyHolder), 0, Py_TPFLAGS_DEFAULT, any_slots};

// Text up to seven bytes has no FFI object to remember; it still comes back as String or Bytes.
PyObject* ToPyClassValue(PyObject*, PyObject* holder) {
  if (!PyObject_TypeCheck(holder, any_type)) {
    return PyErr_Format(PyExc_TypeError, "expected tvm_ffi.core.CAny, got %s",
                        Py_TYPE(holder)->tp_name);
  }
  const TVMFFIAny& cell = HeldCell(holder);
  Ref value = Ref::Steal(FromBorrowedAny(cell));
  if (!value) return nullptr;
  bool small_str = cell.type_index == TypeIndex::kTVMFFISmallStr;
  if (!small_str && cell.type_index != TypeIndex::kTVMFFISmallBytes) return value.release();
  PyObject* cls = small_str ? reinterpret_cast<PyObject*>(types.string) : hooks.bytes_class;
  return PyObject_CallOneArg(cls, value.get());
}

PyMethodDef any_functions[] = {
    {"_to_py_class_value", Entry<ToPyClassValue>, METH_O, "The Python value of a CAny."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

PyObject* MakeCAny(ffi::Any value) {
  auto* holder = reinterpret_cast<AnyHolder*>(any_type->tp_alloc(any_type, 0));
  if (holder == nullptr) return nullptr;
  new (&holder->value) ffi::Any(std::move(value));
  return reinterpret_cast<PyObject*>(holder);
}

int InitCAny(PyObject* module) {
  any_type = AddType(module, &any_spec, nullptr);
  return any_type != nullptr ? PyModule_AddFunctions(module, any_functions) : -1;
}

}  // namespace tether_py
