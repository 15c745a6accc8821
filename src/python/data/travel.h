// SPDX-License-Identifier: Apache-2.0
// What pickling needs of the interpreter: which objects have a part in Python, and to hear when it
// fails.
#ifndef TETHER_PYTHON_DATA_TRAVEL_H_
#define TETHER_PYTHON_DATA_TRAVEL_H_

#include "python/base/compat.h"

namespace tether_py {

int InitTravel(PyObject* module);

}  // namespace tether_py
#endif  // TETHER_PYTHON_DATA_TRAVEL_H_
