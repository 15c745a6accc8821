// SPDX-License-Identifier: Apache-2.0
// Map and Dict.
#ifndef TETHER_PYTHON_DATA_MAPS_H_
#define TETHER_PYTHON_DATA_MAPS_H_

#include "python/base/compat.h"

namespace tether_py {

int InitMapTypes(PyObject* module);

}  // namespace tether_py
#endif  // TETHER_PYTHON_DATA_MAPS_H_
