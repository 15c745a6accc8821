// SPDX-License-Identifier: Apache-2.0
// The module __main__ at exit.
#ifndef TETHER_PYTHON_CALL_MAIN_MODULE_H_
#define TETHER_PYTHON_CALL_MAIN_MODULE_H_

#include "python/base/compat.h"

namespace tether_py {

int InitMainModule(PyObject* module);

}  // namespace tether_py
#endif  // TETHER_PYTHON_CALL_MAIN_MODULE_H_
