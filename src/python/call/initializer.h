// SPDX-License-Identifier: Apache-2.0
// An __init__ that only passes its arguments on to the type's C++ constructor.
#ifndef TETHER_PYTHON_CALL_INITIALIZER_H_
#define TETHER_PYTHON_CALL_INITIALIZER_H_

#include "python/base/compat.h"

namespace tether_py {

int InitInitializers(PyObject* module);

}  // namespace tether_py
#endif  // TETHER_PYTHON_CALL_INITIALIZER_H_
