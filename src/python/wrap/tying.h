// SPDX-License-Identifier: Apache-2.0
// The functions behind the Python module `tying`, and the start and end of tying.
#ifndef TETHER_PYTHON_WRAP_TYING_H_
#define TETHER_PYTHON_WRAP_TYING_H_

#include "python/base/compat.h"

namespace tether_py {

int InitTying(PyObject* module);

}  // namespace tether_py
#endif  // TETHER_PYTHON_WRAP_TYING_H_
