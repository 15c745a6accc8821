// SPDX-License-Identifier: Apache-2.0
// The class Error of Python: an FFI error with its kind, message and backtrace.
#ifndef TETHER_PYTHON_CONVERT_ERROR_CLASS_H_
#define TETHER_PYTHON_CONVERT_ERROR_CLASS_H_

#include <tvm/ffi/c_api.h>

#include "python/base/compat.h"

namespace tether_py {

// The error cell behind a wrapper, to be used in its critical section. NULL with an error set.
TVMFFIErrorCell* ErrorCellOf(PyObject* self);

int InitErrorClass(PyObject* module);

}  // namespace tether_py
#endif  // TETHER_PYTHON_CONVERT_ERROR_CLASS_H_
