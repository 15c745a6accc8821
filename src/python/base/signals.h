// SPDX-License-Identifier: Apache-2.0
// Signals, such as that of Ctrl-C, while C++ runs.
#ifndef TETHER_PYTHON_BASE_SIGNALS_H_
#define TETHER_PYTHON_BASE_SIGNALS_H_

#include "python/base/compat.h"

namespace tether_py {

int InitSignals(PyObject* module);

}  // namespace tether_py
#endif  // TETHER_PYTHON_BASE_SIGNALS_H_
