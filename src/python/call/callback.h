// SPDX-License-Identifier: Apache-2.0
// Python callables that C++ calls.
#ifndef TETHER_PYTHON_CALL_CALLBACK_H_
#define TETHER_PYTHON_CALL_CALLBACK_H_

#include <tvm/ffi/function.h>

#include "python/convert/convert.h"

namespace tether_py {

// A function object around a Python callable; with an API tensors arrive as that framework's.
// Throws C++ exceptions.
ffi::Function MakeCallback(PyObject* callable, const DLPackExchangeAPI* api = nullptr);
// The wrapper of such a function. NULL with an error set.
PyObject* WrapCallable(PyObject* callable, const DLPackExchangeAPI* api = nullptr);
// The Python callable inside a function made by this frontend, borrowed, or NULL.
PyObject* CallableOf(TVMFFIObject* function);
// Keeps a callback that nobody uses any more, for the next one. False if it is something else.
bool RecycleCallback(TVMFFIObject* function);
void DropSpareCallbacks();
// At the end of a call that has succeeded, with no exception pending and this thread attached: lets
// go of what the call kept. That is nothing, or else most often one callback.
void LetGoOfKept(CallArguments* args);
inline void LetGoAfterSuccess(CallArguments* args) {
  if (TVM_FFI_PREDICT_FALSE(args->HoldsSomething())) LetGoOfKept(args);
}
// The setter of Python callables.
bool SetCallable(PyObject* obj, TVMFFIAny* out, Arguments* args);

int InitCallbacks(PyObject* module);

}  // namespace tether_py
#endif  // TETHER_PYTHON_CALL_CALLBACK_H_
