// SPDX-License-Identifier: Apache-2.0
// The table of kinds. All code that decides what a Python value is uses it: arguments, convert()
// and conversion by schema.
#include "python/kinds/kinds.h"

#include <string_view>

#include "python/base/python_api.h"
#include "python/call/callback.h"
#include "python/data/device.h"
#include "python/data/dtype.h"
#include "python/data/exchange.h"
#include "python/data/tensor.h"
#include "python/data/text.h"
#include "python/kinds/setters.h"
#include "python/wrap/python_hooks.h"

namespace tether_py {

// clang-format off
//
// One line per kind: its name, its setter, its test. The order of the lines is the order for
// arguments: the first test that `obj` passes decides. The result holds for every value of exactly
// that type, and to_any.cc caches it by type.
//   Has(where, "x")        the class has the attribute x
//   IsA(obj, "m", "C")     an instance of m.C; a module that is not loaded has no instances
//   Choose(f, obj)         f chooses the setter, or NULL: it is of another kind after all
#define TETHER_KINDS(X)                                                                            \
  X(kNone,             SetNone,                         obj == Py_None)                            \
  X(kTensor,           SetTensor,                       PyObject_TypeCheck(obj, types.tensor))     \
  X(kContainer,        SetContainer,                    PyObject_TypeCheck(obj, types.container))  \
  X(kWrapper,          SetWrapper,                      IsWrapper(obj))                            \
  X(kRValue,           SetRValue,                       PyObject_TypeCheck(obj, types.rvalue_ref)) \
  X(kFFIObject,        SetFFIObject,                    Has(where, "__tvm_ffi_object__"))          \
  X(kExchangeTensor,   Choose(ResolveExchangeAPI, obj), Has(where, "__dlpack_c_exchange_api__"))   \
  X(kCudaStream,       SetCudaStream,                   Has(where, "__cuda_stream__"))             \
  X(kCudaDriverStream, SetCudaDriverStream,             IsA(obj, "cuda.bindings.driver", "CUstream")) \
  X(kTorchStream,      SetTorchStream,                  IsA(obj, "torch.cuda", "Stream"))          \
  X(kTorchTensor,      Choose(ResolveTorchTensor, obj), IsA(obj, "torch", "Tensor"))               \
  X(kDLPack,           Choose(ResolveDLPack, obj),      Has(where, "__dlpack__"))                  \
  X(kBool,             SetBool,                         PyBool_Check(obj))                         \
  X(kInt,              SetInt,                          PyLong_Check(obj))                         \
  X(kFloat,            SetFloat,                        PyFloat_Check(obj))                        \
  X(kIntegral,         SetIntegral,                     IsA(obj, "numbers", "Integral"))           \
  X(kReal,             SetFloat,                        IsA(obj, "numbers", "Real"))               \
  X(kDataType,         SetDataType,                     IsDataType(obj))                           \
  X(kDevice,           SetDevice,                       IsDevice(obj))                             \
  X(kText,             SetText,                         IsText(obj))                               \
  X(kNative,           SetNative,                       PyObject_IsInstance(obj, hooks.native_object_class)) \
  X(kStr,              SetStr,                          PyUnicode_Check(obj))                      \
  X(kBytes,            SetBytes,                        PyBytes_Check(obj))                        \
  X(kByteArray,        SetByteArray,                    PyByteArray_Check(obj))                    \
  X(kSequence,         SetSequence,                     PyTuple_Check(obj) || PyList_Check(obj))   \
  X(kDict,             SetDict,                         PyDict_Check(obj))                         \
  X(kVoidPointer,      SetVoidPointer,                  IsA(obj, "ctypes", "c_void_p"))            \
  X(kOpaquePointer,    SetOpaquePointer,                Has(where, "__tvm_ffi_opaque_ptr__"))      \
  X(kPointerHandler,   SetByPointerHandler,             HasPointerHandler(obj))                    \
  X(kCallable,         SetCallable,                     PyCallable_Check(obj))                     \
  X(kTorchDType,       SetTorchDType,                   IsA(obj, "torch", "dtype"))                \
  X(kNumpyDType,       SetNumpyDType,                   IsA(obj, "numpy", "dtype"))                \
  X(kDTypeProtocol,    SetDTypeProtocol,                Has(where, "__dlpack_data_type__"))        \
  X(kDeviceProtocol,   SetDeviceProtocol,               Has(where, "__dlpack_device__"))           \
  X(kIntProtocol,      SetIntProtocol,                  Has(where, "__tvm_ffi_int__"))             \
  X(kFloatProtocol,    SetFloatProtocol,                Has(where, "__tvm_ffi_float__"))           \
  X(kValueProtocol,    SetValueProtocol,                Has(where, "__tvm_ffi_value__"))           \
  X(kException,        SetException,                    PyObject_IsInstance(obj, PyExc_Exception)) \
  X(kConvertible,      SetConvertible,                  PyObject_IsInstance(obj, hooks.convertible_class)) \
  X(kOpaque,           SetOpaque,                       1)                                         \
  X(kNumber,           SetOpaque,                       IsA(obj, "numbers", "Number"))             \
  X(kMapping,          SetOpaque,                       IsA(obj, "collections.abc", "Mapping"))
// clang-format on

namespace {

using K = ValueKind;

// The interface requires two other orders. They matter for values that pass more than one test.
//
// convert(): Python containers, text and callables come before the protocols. Attributes are looked
// up on the value itself, not only on its class, so the result cannot be cached by type.
constexpr ValueKind kConvertOrder[] = {
    K::kNone,           K::kWrapper,        K::kBool,        K::kInt,           K::kFloat,
    K::kNative,         K::kNumber,         K::kVoidPointer, K::kDataType,      K::kDevice,
    K::kSequence,       K::kDict,           K::kStr,         K::kBytes,         K::kByteArray,
    K::kConvertible,    K::kCallable,       K::kDLPack,      K::kTorchDType,    K::kNumpyDType,
    K::kDTypeProtocol,  K::kException,      K::kFFIObject,   K::kCudaStream,    K::kOpaquePointer,
    K::kPointerHandler, K::kDeviceProtocol, K::kIntProtocol, K::kFloatProtocol, K::kOpaque,
};

// Conversion by schema: a value that stands for another value is replaced by it first, so
// __tvm_ffi_value__ and asobject come early. After that a schema asks only for the kinds it accepts
// (IsOfKind).
constexpr ValueKind kStandInOrder[] = {
    K::kWrapper,   K::kRValue,        K::kNative,       // for themselves
    K::kFFIObject, K::kValueProtocol, K::kConvertible,  // for what they return
};

// The names, one after another.
constexpr char kNames[] =
#define TETHER_NAME(kind, setter, test) #kind "\0"
    TETHER_KINDS(TETHER_NAME);
#undef TETHER_NAME

constexpr const char* NameOf(ValueKind kind) {
  const char* name = kNames;
  for (int i = 0; i < static_cast<int>(kind); ++i) name += std::string_view(name).size() + 1;
  return name;
}
#define TETHER_CHECK(kind, setter, test) static_assert(std::string_view(NameOf(K::kind)) == #kind);
TETHER_KINDS(TETHER_CHECK)  // the lines stand in the order of ValueKind
#undef TETHER_CHECK

// Looks at a class, where any failure means that it has no such attribute, or on a value, as
// hasattr() does. 1 or 0, or -1 with an error set.
TVM_FFI_NO_INLINE int Has(PyObject* where, const char* name) {
  if (PyType_Check(where)) return HasAttribute(reinterpret_cast<PyTypeObject*>(where), name);
  Ref attribute = Ref::Steal(PyObject_GetAttrString(where, name));
  if (attribute) return 1;
  if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return -1;
  PyErr_Clear();
  return 0;
}

constexpr auto IsA = IsInstanceOfLoaded;

Setter Choose(int (*choose)(PyObject* obj, Setter* out), PyObject* obj) {
  Setter setter = nullptr;
  return choose(obj, &setter) < 0 ? nullptr : setter;
}

// 1 or 0, or -1 with an error set.
int Passes(ValueKind kind, PyObject* obj, PyObject* where) {
  switch (kind) {
#define TETHER_TEST(kind, setter, test) \
  case K::kind:                         \
    return test;
    TETHER_KINDS(TETHER_TEST)
#undef TETHER_TEST
  }
  Py_UNREACHABLE();
}

// NULL: of another kind after all, or an error is set.
Setter SetterOf(ValueKind kind, PyObject* obj) {
  switch (kind) {
#define TETHER_SETTER(kind, setter, test) \
  case K::kind:                           \
    return setter;
    TETHER_KINDS(TETHER_SETTER)  // NOLINT(bugprone-branch-clone): kinds may share a setter
#undef TETHER_SETTER
  }
  Py_UNREACHABLE();
}

// 1 with the setter, or 0, or -1 with an error set.
int Match(ValueKind kind, PyObject* obj, Setter* setter) {
  int is = Passes(kind, obj, reinterpret_cast<PyObject*>(Py_TYPE(obj)));
  if (is <= 0) return is;
  *setter = SetterOf(kind, obj);
  return *setter != nullptr ? 1 : PyErr_Occurred() != nullptr ? -1 : 0;
}

}  // namespace

Setter ResolveSetter(PyObject* obj) {
  Setter setter = nullptr;
  int kind = 0;
  int is;
  while ((is = Match(static_cast<K>(kind), obj, &setter)) == 0) ++kind;  // ends at kOpaque
  return is > 0 ? setter : nullptr;
}

int IsOfKind(PyObject* obj, std::initializer_list<ValueKind> kinds) {
  for (ValueKind kind : kinds) {
    Setter setter;
    int is = Match(kind, obj, &setter);
    if (is != 0) return is;
  }
  return 0;
}

bool ResolveStandIn(PyObject* obj, ValueKind* out) {
  *out = K::kOpaque;
  for (ValueKind kind : kStandInOrder) {
    int is = Passes(kind, obj, reinterpret_cast<PyObject*>(Py_TYPE(obj)));
    if (is < 0) return false;
    if (is == 0) continue;
    *out = kind;
    break;
  }
  return true;
}

PyObject* KindForConvert(PyObject*, PyObject* obj) {
  for (ValueKind kind : kConvertOrder) {
    int is = Passes(kind, obj, obj);
    // Without the leading k.
    if (is != 0) return is > 0 ? PyUnicode_InternFromString(NameOf(kind) + 1) : nullptr;
  }
  Py_UNREACHABLE();  // every value passes kOpaque
}

}  // namespace tether_py
