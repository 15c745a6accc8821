// SPDX-License-Identifier: Apache-2.0
// Setters of None, numbers, text and bytes.
#include <tvm/ffi/big_int.h>
#include <tvm/ffi/string.h>

#include <cstring>

#include "python/kinds/setters.h"
#include "python/kinds/store.h"

namespace tether_py {

using ffi::TypeIndex;

namespace {

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

TVM_FFI_NO_INLINE bool StoreLongText(const char* data, size_t size, TVMFFIAny* out,
                                     Arguments* args) {
  return Try([&] { return StoreOwned(ffi::String(data, size), out, args); });
}

bool StoreText(const char* data, size_t size, TVMFFIAny* out, Arguments* args) {
  if (size >= sizeof(out->v_bytes)) return StoreLongText(data, size, out, args);
  Store(out, TypeIndex::kTVMFFISmallStr, 0);
  out->small_str_len = static_cast<uint32_t>(size);
  std::memcpy(out->v_bytes, data, size);
  return true;
}

bool StoreBytes(const char* data, Py_ssize_t size, TVMFFIAny* out, Arguments* args) {
  return Try([&] { return StoreOwned(ffi::Bytes(data, static_cast<size_t>(size)), out, args); });
}

}  // namespace

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
  return data != nullptr && StoreText(data, static_cast<size_t>(size), out, args);
}

bool SetBytes(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  return StoreBytes(PyBytes_AS_STRING(obj), PyBytes_GET_SIZE(obj), out, args);
}

bool SetByteArray(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  return StoreBytes(PyByteArray_AS_STRING(obj), PyByteArray_GET_SIZE(obj), out, args);
}

bool SetIntProtocol(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  Ref number = Ref::Steal(PyObject_CallMethod(obj, "__tvm_ffi_int__", nullptr));
  return number && SetIntegral(number.get(), out, args);
}

bool SetFloatProtocol(PyObject* obj, TVMFFIAny* out, Arguments*) {
  Ref number = Ref::Steal(PyObject_CallMethod(obj, "__tvm_ffi_float__", nullptr));
  return number && StoreFloat(PyFloat_AsDouble(number.get()), out);
}

}  // namespace tether_py
