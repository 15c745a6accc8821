// SPDX-License-Identifier: Apache-2.0
// Exceptions of Python become errors of C++.
#ifndef TETHER_PYTHON_CONVERT_EXCEPTIONS_H_
#define TETHER_PYTHON_CONVERT_EXCEPTIONS_H_

#include <tvm/ffi/error.h>

#include "python/wrap/wrapper_object.h"

namespace tether_py {

// The pending Python exception as an FFI error, which is then raised in this thread's slot.
void RaiseToCaller();
// An FFI error for an exception object that is not being raised.
ffi::Error ErrorFromException(PyObject* exc);

int InitExceptions(PyObject* module);

}  // namespace tether_py
#endif  // TETHER_PYTHON_CONVERT_EXCEPTIONS_H_
