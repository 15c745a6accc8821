// SPDX-License-Identifier: Apache-2.0
// The class Function: what Python sees of a function besides calls.
#ifndef TETHER_PYTHON_CALL_FUNCTION_CLASS_H_
#define TETHER_PYTHON_CALL_FUNCTION_CLASS_H_

#include "python/base/compat.h"

namespace tether_py {

// An attribute of a function or method that the Python part finds (_impl/signatures.py).
PyObject* Describe(PyObject* described, const char* attribute);

int InitFunctionType(PyObject* module);

}  // namespace tether_py
#endif  // TETHER_PYTHON_CALL_FUNCTION_CLASS_H_
