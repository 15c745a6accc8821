// SPDX-License-Identifier: Apache-2.0
// Functions of C++ that Python calls.
#ifndef TETHER_PYTHON_CALL_FUNCTION_H_
#define TETHER_PYTHON_CALL_FUNCTION_H_

#include <tvm/ffi/function.h>

#include "python/convert/convert.h"

namespace tether_py {

void InitFunctionWrapper(FunctionWrapper* w);
// Sets what a registration's metadata says about a function.
void ApplyMetadata(PyObject* function, const TVMFFIByteArray& metadata);
// As TVMFFIFunctionCall does, without the detour through the library.
inline int CallDirectly(TVMFFIObject* func, Arguments* args, TVMFFIAny* result) {
  return TVMFFIFunctionGetCellPtr(func)->safe_call(func, args->data(), args->size(), result);
}
// The Python callable inside a function made by this frontend, borrowed, or NULL.
PyObject* CallableOf(TVMFFIObject* function);
// Keeps a callback that nobody has any more, for the next one. False if it is something else.
bool RecycleCallback(TVMFFIObject* function);
// A function object around a Python callable. NULL object with an error set.
ffi::Function MakeCallback(PyObject* callable, const DLPackExchangeAPI* api = nullptr);
PyObject* InitHandleByConstructor(PyObject* self, PyObject* const* args, Py_ssize_t nargs);

// The setter of Python callables.
bool SetCallable(PyObject* obj, TVMFFIAny* out, Arguments* args);
int InitFunctionType(PyObject* module);
int InitConstructors(PyObject* module);

}  // namespace tether_py
#endif  // TETHER_PYTHON_CALL_FUNCTION_H_
