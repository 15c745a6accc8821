// SPDX-License-Identifier: Apache-2.0
#include "python/kinds/setters.h"

#include <tvm/ffi/big_int.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/string.h>

#include <cstring>

#include "python/base/python_api.h"
#include "python/convert/errors.h"
#include "python/data/exchange.h"
#include "python/data/text.h"
#include "python/wrap/notes.h"
#include "python/wrap/release_queue.h"

namespace tether_py {

using ffi::TypeIndex;

namespace {

void Store(TVMFFIAny* out, int32_t index, int64_t value) {
  out->type_index = index;
  out->zero_padding = 0;
  out->v_int64 = value;
}

bool StoreOwned(ffi::Any value, TVMFFIAny* out, Arguments* args) {
  *out = ffi::details::AnyUnsafe::MoveAnyToTVMFFIAny(std::move(value));
  args->Keep(*out);
  return true;
}

// Runs a conversion that may throw. False with an error set.
template <typename F>
bool Try(F&& f) {
  Ref ok = Ref::Steal(Guarded([&]() -> PyObject* { return f() ? Py_NewRef(Py_True) : nullptr; }));
  return static_cast<bool>(ok);
}

TVM_FFI_NO_INLINE bool StoreBigInt(PyObject* number, TVMFFIAny* out, Arguments* args) {
  return Try([&] {
    using ffi::details::BigIntUnsafe;
    size_t words = WordsOfInt(number);
    if (words == 0) return false;
    auto object = ffi::make_inplace_array_object<ffi::details::BigIntObj, int64_t>(words, words);
    if (!IntToWords(number, BigIntUnsafe::GetMutableData(object), words)) return false;
    return StoreOwned(ffi::Any(BigIntUnsafe::Normalize(std::move(object))), out, args);
  });
}

bool StoreInt(PyObject* number, TVMFFIAny* out, Arguments* args) {
  int overflow = 0;
  long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
  if (TVM_FFI_PREDICT_FALSE(overflow != 0)) return StoreBigInt(number, out, args);
  if (TVM_FFI_PREDICT_FALSE(value == -1 && PyErr_Occurred())) return false;
  Store(out, TypeIndex::kTVMFFIInt, value);
  return true;
}

bool StoreFloat(double value, TVMFFIAny* out) {
  if (value == -1.0 && PyErr_Occurred()) return false;
  Store(out, TypeIndex::kTVMFFIFloat, 0);
  out->v_float64 = value;
  return true;
}

bool StoreText(const char* data, Py_ssize_t size, TVMFFIAny* out, Arguments* args) {
  if (size < static_cast<Py_ssize_t>(sizeof(out->v_bytes))) {
    Store(out, TypeIndex::kTVMFFISmallStr, 0);
    out->small_str_len = static_cast<uint32_t>(size);
    std::memcpy(out->v_bytes, data, static_cast<size_t>(size));
    return true;
  }
  return Try([&] { return StoreOwned(ffi::String(data, static_cast<size_t>(size)), out, args); });
}

bool StoreBytes(const char* data, Py_ssize_t size, TVMFFIAny* out, Arguments* args) {
  return Try([&] { return StoreOwned(ffi::Bytes(data, static_cast<size_t>(size)), out, args); });
}

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

// The context that the elements of a container give is used where the other arguments give none.
void TakeContext(Arguments* inside, Arguments* args) {
  if (CallContext* found = inside->context()) args->MutableContext()->FillGapsFrom(*found);
}

// Appends the leading elements that are plain small integers and floats, and returns how many. This
// runs no Python code.
Py_ssize_t AppendNumbers(PyObject* const* items, Py_ssize_t n, ffi::ArrayObj* array) {
  for (Py_ssize_t i = 0; i < n; ++i) {
    int64_t value;
    if (PyLong_CheckExact(items[i]) && LoadCompactInt(items[i], &value)) {
      tie::SeqOps::Append(array, value);
    } else if (PyFloat_CheckExact(items[i])) {
      tie::SeqOps::Append(array, PyFloat_AS_DOUBLE(items[i]));
    } else {
      return i;
    }
  }
  return n;
}

// Appends the elements of `items` from `begin` on; `array` has room for all of them.
bool AppendItems(PyObject* items, Py_ssize_t begin, ffi::ArrayObj* array, Arguments* inside) {
  // A copy of the references: converting an element may run Python code that changes the list.
  Ref rest = Ref::Steal(PySequence_GetSlice(items, begin, PY_SSIZE_T_MAX));
  if (!rest) return false;
  Py_ssize_t n = PySequence_Fast_GET_SIZE(rest.get());
  for (Py_ssize_t i = 0; i < n; ++i) {
    ffi::Any value;
    if (!ToOwnedAny(PySequence_Fast_GET_ITEM(rest.get(), i), &value, inside)) return false;
    tie::SeqOps::Append(array, std::move(value));
  }
  return true;
}

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

bool SetWrapper(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  return StoreWrapper(obj, out, args);
}

bool SetNone(PyObject*, TVMFFIAny* out, Arguments*) {
  Store(out, TypeIndex::kTVMFFINone, 0);
  return true;
}

bool SetBool(PyObject* obj, TVMFFIAny* out, Arguments*) {
  Store(out, TypeIndex::kTVMFFIBool, obj == Py_True);
  return true;
}

bool SetInt(PyObject* obj, TVMFFIAny* out, Arguments* args) { return StoreInt(obj, out, args); }

bool SetIntegral(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  Ref number = Ref::Steal(PyNumber_Long(obj));
  return number && StoreInt(number.get(), out, args);
}

bool SetFloat(PyObject* obj, TVMFFIAny* out, Arguments*) {
  return StoreFloat(PyFloat_AsDouble(obj), out);
}

bool SetStr(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  Py_ssize_t size;
  const char* data = PyUnicode_AsUTF8AndSize(obj, &size);
  return data != nullptr && StoreText(data, size, out, args);
}

bool SetBytes(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  return StoreBytes(PyBytes_AS_STRING(obj), PyBytes_GET_SIZE(obj), out, args);
}

bool SetByteArray(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  return StoreBytes(PyByteArray_AS_STRING(obj), PyByteArray_GET_SIZE(obj), out, args);
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

bool SetSequence(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  if (!EnterRecursion(" while converting a sequence to an FFI array")) return false;
  bool done = Try([&] {
    Conversion inside;
    ffi::Array<ffi::Any> array(ffi::UnsafeInit{});
    if (!ArrayFromItems(obj, &array, &inside)) return false;
    TakeContext(&inside, args);
    return StoreOwned(std::move(array), out, args);
  });
  Py_LeaveRecursiveCall();
  return done;
}

bool SetDict(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  if (!EnterRecursion(" while converting a dict to an FFI map")) return false;
  bool done = Try([&] {
    Ref items = Ref::Steal(PyDict_Items(obj));
    if (!items) return false;
    ffi::Map<ffi::Any, ffi::Any> map;
    Conversion inside;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) {
      PyObject* pair = PyList_GET_ITEM(items.get(), i);
      ffi::Any key, value;
      if (!ToOwnedAny(PyTuple_GET_ITEM(pair, 0), &key, &inside)) return false;
      if (!ToOwnedAny(PyTuple_GET_ITEM(pair, 1), &value, &inside)) return false;
      map.Set(key, value);
    }
    TakeContext(&inside, args);
    return StoreOwned(std::move(map), out, args);
  });
  Py_LeaveRecursiveCall();
  return done;
}

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

bool SetIntProtocol(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  Ref number = Ref::Steal(PyObject_CallMethod(obj, "__tvm_ffi_int__", nullptr));
  return number && SetIntegral(number.get(), out, args);
}

bool SetFloatProtocol(PyObject* obj, TVMFFIAny* out, Arguments*) {
  Ref number = Ref::Steal(PyObject_CallMethod(obj, "__tvm_ffi_float__", nullptr));
  return number && StoreFloat(PyFloat_AsDouble(number.get()), out);
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

bool ArrayFromItems(PyObject* items, ffi::Array<ffi::Any>* out, Arguments* inside) {
  // Without the GIL another thread may change a list at any time, so a copy is taken. A subclass
  // may iterate over other elements than those it stores.
  Ref fixed = PyTuple_CheckExact(items) || (PyList_CheckExact(items) && !kFreeThreaded)
                  ? Ref::Borrow(items)
                  : Ref::Steal(PySequence_Tuple(items));
  if (!fixed) return false;
  Py_ssize_t n = PySequence_Fast_GET_SIZE(fixed.get());
  ffi::ObjectPtr<ffi::ArrayObj> array = tie::ArrayOps::Empty(n);
  Py_ssize_t done = AppendNumbers(PySequence_Fast_ITEMS(fixed.get()), n, array.get());
  if (done < n && !AppendItems(fixed.get(), done, array.get(), inside)) return false;
  *out = ffi::Array<ffi::Any>(std::move(array));
  return true;
}

bool ToOwnedAny(PyObject* obj, ffi::Any* out, Arguments* nested_in) {
  Conversion args;
  TVMFFIAny view;
  if (!ToAny(obj, &view, &args)) return false;
  if (TVM_FFI_PREDICT_FALSE(args.context() != nullptr) && nested_in != nullptr) {
    CallContext* context = nested_in->MutableContext();
    if (args.context()->api != nullptr) context->api = args.context()->api;
    context->FillGapsFrom(*args.context());
  }
  return Try([&] {
    *out = ffi::AnyView::CopyFromTVMFFIAny(view);
    return true;
  });
}

}  // namespace tether_py
