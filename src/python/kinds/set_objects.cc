// SPDX-License-Identifier: Apache-2.0
// Setters of values that are an FFI object, stand for one, or get one made for them.
#include "python/base/python_api.h"
#include "python/convert/errors.h"
#include "python/convert/exceptions.h"
#include "python/data/exchange_api.h"
#include "python/data/text.h"
#include "python/kinds/setters.h"
#include "python/kinds/store.h"
#include "python/wrap/notes.h"
#include "python/wrap/release_queue.h"

namespace tether_py {

using ffi::TypeIndex;

namespace {

// A wrapper obtained from `obj`, kept for the call.
bool SetWrapperFrom(Ref wrapper, PyObject* obj, const char* how, TVMFFIAny* out, Arguments* args) {
  if (!wrapper) return false;
  if (!IsWrapper(wrapper.get())) {
    PyErr_Format(PyExc_TypeError, "%s of %s must return an FFI object, got %s", how,
                 Py_TYPE(obj)->tp_name, Py_TYPE(wrapper.get())->tp_name);
    return false;
  }
  bool done = SetWrapper(wrapper.get(), out, args);
  args->Keep(std::move(wrapper));
  return done;
}

}  // namespace

bool SetWrapper(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  return StoreWrapper(obj, out, args);
}

bool SetContainer(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  auto* tag = Notes::Get<const DLPackExchangeAPI>(obj);
  return TVM_FFI_PREDICT_TRUE(tag == nullptr) ? SetWrapper(obj, out, args)
                                              : SetTaggedContainer(obj, tag, out, args);
}

bool SetRValue(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  Ref source = Ref::Steal(PyObject_GetAttrString(obj, "obj"));
  if (!source) return false;
  if (!IsWrapper(source.get())) {
    PyErr_Format(PyExc_TypeError, "ObjectRValueRef expects an FFI object, got %s",
                 Py_TYPE(source.get())->tp_name);
    return false;
  }
  TVMFFIObject** slot = args->MoveOut(AsWrapper(source.get()));
  if (slot == nullptr) return false;
  Store(out, TypeIndex::kTVMFFIObjectRValueRef, 0);
  out->v_ptr = slot;
  return true;
}

bool SetFFIObject(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  return SetWrapperFrom(Ref::Steal(PyObject_CallMethod(obj, "__tvm_ffi_object__", nullptr)), obj,
                        "__tvm_ffi_object__()", out, args);
}

bool SetConvertible(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  return SetWrapperFrom(Ref::Steal(PyObject_CallMethod(obj, "asobject", nullptr)), obj,
                        "asobject()", out, args);
}

// String, Bytes, Shape: the FFI object they came with, else their content.
bool SetNative(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  Ref cached = Ref::Steal(PyObject_GetAttrString(obj, "_tvm_ffi_cached_object"));
  if (!cached) return false;
  if (cached.get() != Py_None) {
    return SetWrapperFrom(std::move(cached), obj, "_tvm_ffi_cached_object", out, args);
  }
  if (PyUnicode_Check(obj)) return SetStr(obj, out, args);
  if (PyBytes_Check(obj)) return SetBytes(obj, out, args);
  PyErr_Format(PyExc_ValueError, "_tvm_ffi_cached_object is None for %R", Py_TYPE(obj));
  return false;
}

bool SetText(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  TVMFFIObject* h = HeldString(obj);
  if (h == nullptr) return SetNative(obj, out, args);
  tie::StoreObject(h, out);
  return true;
}

bool SetValueProtocol(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  // A value that returns itself, or a cycle of values, ends in RecursionError.
  if (!EnterRecursion(" in __tvm_ffi_value__()")) return false;
  bool done = Try([&] {
    Ref value = Ref::Steal(PyObject_CallMethod(obj, "__tvm_ffi_value__", nullptr));
    if (!value || !ToAny(value.get(), out, args)) return false;
    args->Keep(std::move(value));
    return true;
  });
  Py_LeaveRecursiveCall();
  return done;
}

bool SetException(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  return Try([&] { return StoreOwned(ErrorFromException(obj), out, args); });
}

bool SetOpaque(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  TVMFFIObjectHandle handle = nullptr;
  Py_INCREF(obj);
  int code = TVMFFIObjectCreateOpaque(obj, TypeIndex::kTVMFFIOpaquePyObject, ReleaseFromAnyThread,
                                      &handle);
  if (code != 0) {
    Py_DECREF(obj);
    RaiseFromCall(code);
    return false;
  }
  tie::StoreObject(static_cast<TVMFFIObject*>(handle), out);
  args->Keep(*out);
  return true;
}

}  // namespace tether_py
