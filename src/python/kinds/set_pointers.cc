// SPDX-License-Identifier: Apache-2.0
// Setters of values that stand for an address: pointers and streams.
#include "python/kinds/setters.h"
#include "python/kinds/store.h"

namespace tether_py {

using ffi::TypeIndex;

namespace {

bool StorePointer(Ref address, TVMFFIAny* out) {
  if (!address) return false;
  Store(out, TypeIndex::kTVMFFIOpaquePtr, 0);
  if (!PyLong_Check(address.get())) {
    PyErr_SetString(PyExc_TypeError, "an integer is required");
    return false;
  }
  out->v_ptr = PyLong_AsVoidPtr(address.get());
  return out->v_ptr != nullptr || !PyErr_Occurred();
}

}  // namespace

bool SetVoidPointer(PyObject* obj, TVMFFIAny* out, Arguments*) {
  Ref address = Ref::Steal(PyObject_GetAttrString(obj, "value"));
  if (address.get() == Py_None) {  // how ctypes shows NULL
    Store(out, TypeIndex::kTVMFFIOpaquePtr, 0);
    return true;
  }
  return StorePointer(std::move(address), out);
}

bool SetOpaquePointer(PyObject* obj, TVMFFIAny* out, Arguments*) {
  return StorePointer(Ref::Steal(PyObject_CallMethod(obj, "__tvm_ffi_opaque_ptr__", nullptr)), out);
}

PyObject* pointer_handlers = nullptr;

int HasPointerHandler(PyObject* obj) {
  return PyDict_Contains(pointer_handlers, reinterpret_cast<PyObject*>(Py_TYPE(obj)));
}

bool SetByPointerHandler(PyObject* obj, TVMFFIAny* out, Arguments*) {
  auto* cls = reinterpret_cast<PyObject*>(Py_TYPE(obj));
  Ref handler = Ref::Steal(PyObject_GetItem(pointer_handlers, cls));  // it may have been removed
  if (!handler) return false;
  return StorePointer(Ref::Steal(PyObject_CallOneArg(handler.get(), obj)), out);
}

bool SetCudaStream(PyObject* obj, TVMFFIAny* out, Arguments*) {
  Ref pair = Ref::Steal(PyObject_CallMethod(obj, "__cuda_stream__", nullptr));
  if (!pair) return false;
  if (!PyTuple_Check(pair.get()) || PyTuple_GET_SIZE(pair.get()) < 2) {
    PyErr_Format(PyExc_TypeError, "__cuda_stream__() of %s must return a tuple of two",
                 Py_TYPE(obj)->tp_name);
    return false;
  }
  return StorePointer(Ref::Borrow(PyTuple_GET_ITEM(pair.get(), 1)), out);
}

// For a torch that has no __cuda_stream__ yet.
bool SetTorchStream(PyObject* obj, TVMFFIAny* out, Arguments*) {
  return StorePointer(Ref::Steal(PyObject_GetAttrString(obj, "cuda_stream")), out);
}

// cuda.bindings.driver.CUstream.
bool SetCudaDriverStream(PyObject* obj, TVMFFIAny* out, Arguments*) {
  return StorePointer(Ref::Steal(PyNumber_Long(obj)), out);
}

}  // namespace tether_py
