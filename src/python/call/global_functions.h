// SPDX-License-Identifier: Apache-2.0
// Global functions: found and registered by name.
#ifndef TETHER_PYTHON_CALL_GLOBAL_FUNCTIONS_H_
#define TETHER_PYTHON_CALL_GLOBAL_FUNCTIONS_H_

#include "python/base/compat.h"

namespace tether_py {

int InitGlobalFunctions(PyObject* module);

}  // namespace tether_py
#endif  // TETHER_PYTHON_CALL_GLOBAL_FUNCTIONS_H_
