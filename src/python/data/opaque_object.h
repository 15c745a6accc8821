// SPDX-License-Identifier: Apache-2.0
// OpaquePyObject: a Python object that C++ holds without looking inside.
#ifndef TETHER_PYTHON_DATA_OPAQUE_OBJECT_H_
#define TETHER_PYTHON_DATA_OPAQUE_OBJECT_H_

#include "python/base/compat.h"

namespace tether_py {

int InitOpaqueObject(PyObject* module);

}  // namespace tether_py
#endif  // TETHER_PYTHON_DATA_OPAQUE_OBJECT_H_
