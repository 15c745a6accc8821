// SPDX-License-Identifier: Apache-2.0
// The class CObject, the base of every wrapper, as Python sees it.
#ifndef TETHER_PYTHON_WRAP_OBJECT_CLASS_H_
#define TETHER_PYTHON_WRAP_OBJECT_CLASS_H_

#include "python/base/compat.h"

namespace tether_py {

int InitWrapperTypes(PyObject* module);

}  // namespace tether_py
#endif  // TETHER_PYTHON_WRAP_OBJECT_CLASS_H_
