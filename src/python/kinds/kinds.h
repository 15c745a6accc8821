// SPDX-License-Identifier: Apache-2.0
// The kinds of Python values. The table in kinds.cc has one line per kind, with its test and its
// setter; the orders in which the tests are tried stand beside it.
#ifndef TETHER_PYTHON_KINDS_KINDS_H_
#define TETHER_PYTHON_KINDS_KINDS_H_

#include <initializer_list>

#include "python/convert/convert.h"

namespace tether_py {

// In the order in which the tests are tried for an argument.
enum class ValueKind : uint8_t {
  kNone,
  kTensor,
  kContainer,
  kWrapper,
  kRValue,
  kFFIObject,  // by __tvm_ffi_object__()
  kExchangeTensor,
  kCudaStream,  // by __cuda_stream__()
  kCudaDriverStream,
  kTorchStream,
  kTorchTensor,
  kDLPack,  // by __dlpack__()
  kBool,
  kInt,
  kFloat,
  kIntegral,  // another class of whole numbers
  kReal,      // another class of real numbers
  kDataType,
  kDevice,
  kText,
  kNative,
  kStr,
  kBytes,
  kByteArray,
  kSequence,
  kDict,
  kVoidPointer,
  kOpaquePointer,   // by __tvm_ffi_opaque_ptr__()
  kPointerHandler,  // by the handler of its class in core._OPAQUE_PTR_HANDLERS
  kCallable,
  kTorchDType,
  kNumpyDType,
  kDTypeProtocol,   // by __dlpack_data_type__()
  kDeviceProtocol,  // by __dlpack_device__()
  kIntProtocol,     // by __tvm_ffi_int__()
  kFloatProtocol,   // by __tvm_ffi_float__()
  kValueProtocol,   // by __tvm_ffi_value__()
  kException,
  kConvertible,  // by asobject()
  kOpaque,       // anything
  // Not for arguments, where these are opaque: other numbers and other mappings.
  kNumber,
  kMapping,
};

// The setter of the first kind whose test `obj` passes, in the order of the table. NULL with an
// error set.
Setter ResolveSetter(PyObject* obj);

// Whether `obj` passes the test of one of the kinds, whatever else it is: 1 or 0, or -1 with an
// error set.
int IsOfKind(PyObject* obj, std::initializer_list<ValueKind> kinds);

// How a value stands for another one in conversion by schema: kFFIObject, kValueProtocol or
// kConvertible. Any other result: it stands for itself. False with an error set.
bool ResolveStandIn(PyObject* obj, ValueKind* out);

// core._kind_for_convert(value): the name of the kind that decides what convert() does.
PyObject* KindForConvert(PyObject* module, PyObject* obj);

}  // namespace tether_py
#endif  // TETHER_PYTHON_KINDS_KINDS_H_
