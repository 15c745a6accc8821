// SPDX-License-Identifier: Apache-2.0
// Array, List, Map and Dict as Python classes.
#ifndef TETHER_PYTHON_DATA_CONTAINERS_H_
#define TETHER_PYTHON_DATA_CONTAINERS_H_

#include "python/base/compat.h"

namespace tether_py {

int InitContainerTypes(PyObject* module);

}  // namespace tether_py
#endif  // TETHER_PYTHON_DATA_CONTAINERS_H_
