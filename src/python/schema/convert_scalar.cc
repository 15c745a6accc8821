// SPDX-License-Identifier: Apache-2.0
// Conversion by schema: numbers, text, devices, data types and pointers.
#include <tvm/ffi/dtype.h>
#include <tvm/ffi/string.h>

#include "python/base/python_api.h"
#include "python/data/device.h"
#include "python/kinds/kinds.h"
#include "python/schema/convert_value.h"

namespace tether_py::schema {

using ffi::TypeIndex;

namespace {

Outcome ConvertNumber(const Node* node, PyObject* value, Result* result) {
  bool is_int = node->origin == Origin::kInt;
  Ref number = Ref::Steal(is_int ? PyNumber_Long(value) : PyNumber_Float(value));
  if (!number) return CallFailed(is_int ? "int()" : "float()", value, result);
  if (!is_int) return Done(PyFloat_AS_DOUBLE(number.get()), result);
  int overflow = 0;
  long long converted = PyLong_AsLongLongAndOverflow(number.get(), &overflow);
  if (overflow == 0) return Done(static_cast<int64_t>(converted), result);
  Ref text = TextOfInt(number.get());
  if (!text) return Outcome::kRaised;
  return Mismatch(result, {"integer ", TextOf(text.get()),
                           " out of int64 range [-9223372036854775808, 9223372036854775807]"});
}

// A number from the method of a class that provides one.
Outcome ConvertByMethod(const Node* node, PyObject* value, const char* method, Result* result) {
  Ref number = Ref::Steal(PyObject_CallMethod(value, method, nullptr));
  if (number && node->origin == Origin::kInt) {
    number = Ref::Steal(PyNumber_Index(number.get()));
  } else if (number && !PyFloat_Check(number.get())) {
    double converted = PyFloat_AsDouble(number.get());
    bool failed = converted == -1.0 && PyErr_Occurred();
    number = failed ? Ref() : Ref::Steal(PyFloat_FromDouble(converted));
  }
  return number ? ConvertNumber(node, number.get(), result) : PackingFailed(node, value, result);
}

// From a value of the number's kind, or by the protocol for such numbers.
Outcome ConvertToNumber(const Node* node, PyObject* value, ValueKind kind, ValueKind protocol,
                        const char* method, Result* result) {
  int is = PyLong_Check(value) ? 1 : IsOfKind(value, {kind});
  if (is > 0) return ConvertNumber(node, value, result);
  if (is == 0) is = IsOfKind(value, {protocol});
  if (is < 0) return Outcome::kRaised;
  return is > 0 ? ConvertByMethod(node, value, method, result) : Unexpected(node, value, result);
}

}  // namespace

Outcome ConvertInt(const Node* node, PyObject* value, Result* result) {
  if (TVM_FFI_PREDICT_TRUE(PyLong_CheckExact(value))) {
    int overflow = 0;
    long long converted = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow == 0) return Done(static_cast<int64_t>(converted), result);
  }
  return ConvertToNumber(node, value, ValueKind::kIntegral, ValueKind::kIntProtocol,
                         "__tvm_ffi_int__", result);
}

Outcome ConvertFloat(const Node* node, PyObject* value, Result* result) {
  if (PyFloat_Check(value)) return Done(PyFloat_AS_DOUBLE(value), result);
  return ConvertToNumber(node, value, ValueKind::kReal, ValueKind::kFloatProtocol,
                         "__tvm_ffi_float__", result);
}

Outcome ConvertBool(const Node* node, PyObject* value, Result* result) {
  if (PyBool_Check(value)) return Done(value == Py_True, result);
  int is = PyLong_Check(value) ? 1 : IsOfKind(value, {ValueKind::kIntegral});
  if (is == 0) is = IsInstanceOfLoaded(value, "numpy", "bool_");  // not a number to Python
  if (is < 0) return Outcome::kRaised;
  if (is == 0) return Unexpected(node, value, result);
  int truth = PyObject_IsTrue(value);
  return truth < 0 ? CallFailed("bool()", value, result) : Done(truth != 0, result);
}

Outcome ConvertText(const Node* node, PyObject* value, Result* result) {
  bool fits = node->origin == Origin::kStr ? PyUnicode_Check(value) != 0
                                           : PyBytes_Check(value) || PyByteArray_Check(value);
  if (!fits) return Unexpected(node, value, result);
  // Text that cannot be encoded in UTF-8 is an error of its own, not a mismatch of types.
  if (!ToOwnedAny(value, &result->value)) return Outcome::kRaised;
  int32_t index = result->value.type_index();
  if (node->origin != Origin::kStr || index == TypeIndex::kTVMFFISmallStr ||
      index == TypeIndex::kTVMFFIStr) {
    return Outcome::kDone;
  }
  // A str that crosses as something else, such as a dtype. Here it is wanted as text.
  Ref text = Ref::Steal(PyUnicode_FromObject(value));
  return text && ToOwnedAny(text.get(), &result->value) ? Outcome::kDone : Outcome::kRaised;
}

Outcome ConvertDevice(const Node* node, PyObject* value, Result* result) {
  if (!PyUnicode_Check(value)) {
    // A tensor has a device but is not one.
    int is = IsOfKind(value, {ValueKind::kDevice, ValueKind::kDeviceProtocol});
    int is_tensor = is > 0 ? IsOfKind(value, {ValueKind::kDLPack}) : 0;
    if (is < 0 || is_tensor < 0) return Outcome::kRaised;
    if (is == 0 || is_tensor > 0) return Unexpected(node, value, result);
    return PackAs(node, value, TypeIndex::kTVMFFIDevice, result);
  }
  Ref device = Ref::Steal(PyObject_CallOneArg(DeviceClass(), value));
  if (device) return PackAs(node, device.get(), TypeIndex::kTVMFFIDevice, result);
  if (!IsOrdinaryError()) return Outcome::kRaised;
  PyErr_Clear();
  return Mismatch(result, {"expected Device, got invalid device string ", ReprOf(value)});
}

Outcome ConvertDataType(const Node* node, PyObject* value, Result* result) {
  int is = IsOfKind(value, {ValueKind::kDataType, ValueKind::kDTypeProtocol, ValueKind::kNumpyDType,
                            ValueKind::kTorchDType});
  if (is < 0) return Outcome::kRaised;
  if (is > 0) return PackAs(node, value, TypeIndex::kTVMFFIDataType, result);
  if (!PyUnicode_Check(value)) return Unexpected(node, value, result);
  try {
    Py_ssize_t size;
    const char* data = PyUnicode_AsUTF8AndSize(value, &size);
    if (data == nullptr) return Outcome::kRaised;
    return Done(ffi::StringToDLDataType(ffi::String(data, static_cast<size_t>(size))), result);
  } catch (const ffi::Error&) {
    return Mismatch(result, {"expected dtype, got invalid dtype string ", ReprOf(value)});
  }
}

Outcome ConvertPointer(const Node* node, PyObject* value, Result* result) {
  if (value == Py_None) return Done(static_cast<void*>(nullptr), result);
  int is = IsOfKind(value, {ValueKind::kOpaquePointer, ValueKind::kPointerHandler,
                            ValueKind::kCudaStream, ValueKind::kVoidPointer});
  if (is < 0) return Outcome::kRaised;
  if (is == 0) return Unexpected(node, value, result);
  return PackAs(node, value, TypeIndex::kTVMFFIOpaquePtr, result);
}

}  // namespace tether_py::schema
