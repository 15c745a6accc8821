// SPDX-License-Identifier: Apache-2.0
// Methods of classes.
#ifndef TETHER_PYTHON_CALL_METHOD_H_
#define TETHER_PYTHON_CALL_METHOD_H_

#include "python/base/compat.h"

namespace tether_py {

// For descriptors that a class stores: __get__, and pickling as an attribute of the class.
PyObject* GetBound(PyObject* self, PyObject* obj, PyObject* cls);
PyObject* ReduceToAttribute(PyTypeObject* cls, PyObject* name);

int InitMethods(PyObject* module);

}  // namespace tether_py
#endif  // TETHER_PYTHON_CALL_METHOD_H_
