// SPDX-License-Identifier: Apache-2.0
// Functions of C++ that Python calls.
#ifndef TETHER_PYTHON_CALL_FUNCTION_H_
#define TETHER_PYTHON_CALL_FUNCTION_H_

#include <cxxabi.h>
#include <tvm/ffi/function.h>

#include "python/wrap/arguments.h"

namespace tether_py {

// Makes a new wrapper of a function ready to be called.
void InitFunctionWrapper(FunctionWrapper* w);
// Sets whether other Python threads run during a call.
void SetReleaseGil(FunctionWrapper* w, bool value);
// Gives a function names and defaults for its parameters, unless it has them (metadata.h). Takes
// over the reference.
void SetParameters(FunctionWrapper* w, PyObject* parameters);
// TVMFFIFunctionCall without the call into the library. No exception leaves it: functions compiled
// with the headers of older releases let out what is not a std::exception, and the thread may have
// let go of the GIL.
inline int CallDirectly(TVMFFIObject* func, const TVMFFIAny* args, int32_t size,
                        TVMFFIAny* result) {
  try {
    return TVMFFIFunctionGetCellPtr(func)->safe_call(func, args, size, result);
#ifdef __GLIBCXX__
  } catch (abi::__forced_unwind&) {  // a thread that ends itself is not an exception
    throw;
#endif
  } catch (...) {
    return ffi::tether::RaiseCaught();
  }
}
inline int CallDirectly(TVMFFIObject* func, Arguments* args, TVMFFIAny* result) {
  return CallDirectly(func, args->data(), args->size(), result);
}
// Says that a wrapper of the class Function was given another object. Always returns NULL.
PyObject* RaiseNoFunction(PyObject* wrapper);

}  // namespace tether_py
#endif  // TETHER_PYTHON_CALL_FUNCTION_H_
