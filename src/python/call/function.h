// SPDX-License-Identifier: Apache-2.0
// Functions of C++ that Python calls: function.cc, and function_class.cc for the class.
#ifndef TETHER_PYTHON_CALL_FUNCTION_H_
#define TETHER_PYTHON_CALL_FUNCTION_H_

#include "python/convert/errors.h"
#include "python/wrap/arguments.h"

namespace tether_py {

// Makes a new wrapper of a function ready to be called.
void InitFunctionWrapper(FunctionWrapper* w);
// Sets whether other Python threads run during a call.
void SetReleaseGil(FunctionWrapper* w, bool value);
// Gives a function names and defaults for its parameters, unless it has them (metadata.h). Takes
// over the reference.
void SetParameters(FunctionWrapper* w, PyObject* parameters);
// TVMFFIFunctionCall without the call into the library.
inline int CallDirectly(TVMFFIObject* func, Arguments* args, TVMFFIAny* result) {
  return TVMFFIFunctionGetCellPtr(func)->safe_call(func, args->data(), args->size(), result);
}
// Says that a wrapper of the class Function was given another object. Always returns NULL.
PyObject* RaiseNoFunction(PyObject* wrapper);
// CallConstructor where tensors among the arguments bring their stream and allocator.
bool CallInContext(TVMFFIObject* func, PyObject* const* args, CallArguments* converted,
                   TVMFFIAny* result);
// Calls a constructor and keeps the GIL. `args` is what Python gave. False with an error set.
inline bool CallConstructor(TVMFFIObject* func, PyObject* const* args, CallArguments* converted,
                            TVMFFIAny* result) {
  if (TVM_FFI_PREDICT_FALSE(converted->context() != nullptr)) {
    return CallInContext(func, args, converted, result);
  }
  if (int code = CallDirectly(func, converted, result)) {
    RaiseFromCall(code, args, converted->size());
    return false;
  }
  AfterSuccess();
  return true;
}
// The method __init_handle_by_constructor__ of every wrapper.
PyObject* InitHandleByConstructor(PyObject* self, PyObject* const* args, Py_ssize_t nargs);

// An attribute of a function or method that the Python part finds (_impl/signatures.py).
PyObject* Describe(PyObject* described, const char* attribute);

// For descriptors that a class stores: __get__, and pickling as an attribute of the class.
PyObject* GetBound(PyObject* self, PyObject* obj, PyObject* cls);
PyObject* ReduceToAttribute(PyTypeObject* cls, PyObject* name);

int InitRValueRefType(PyObject* module);  // rvalue_ref.cc
int InitFunctionType(PyObject* module);
int InitMethods(PyObject* module);  // method.cc
int InitConstructors(PyObject* module);
int InitInitializers(PyObject* module);  // initializer.cc
int InitMainModule(PyObject* module);    // main_module.cc

}  // namespace tether_py
#endif  // TETHER_PYTHON_CALL_FUNCTION_H_
