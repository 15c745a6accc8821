// SPDX-License-Identifier: Apache-2.0
// Errors of C++ become exceptions of Python.
#ifndef TETHER_PYTHON_CONVERT_ERRORS_H_
#define TETHER_PYTHON_CONVERT_ERRORS_H_

#include <string>

#include "python/base/compat.h"

namespace tether_py {

// Raises in Python what a failed call left behind. Always returns NULL.
PyObject* RaiseFromCall(int code);
// The same where messages can say what Python gave: the arguments of the call, or the value for a
// field of a type.
PyObject* RaiseFromCall(int code, PyObject* const* args, Py_ssize_t nargs);
PyObject* RaiseForField(int code, const std::string& field, const std::string& type_key,
                        PyObject* value);
// The exception for an Error of Python: the one that it carries, or one made for it. NULL with an
// error set.
PyObject* PyErrorOf(PyObject* error);

int InitErrors(PyObject* module);

}  // namespace tether_py
#endif  // TETHER_PYTHON_CONVERT_ERRORS_H_
