// SPDX-License-Identifier: Apache-2.0
// The functions that tvm_ffi.inspect calls.
#ifndef TETHER_PYTHON_WRAP_INSPECT_H_
#define TETHER_PYTHON_WRAP_INSPECT_H_

#include "python/base/compat.h"

namespace tether_py {

int InitInspect(PyObject* module);

}  // namespace tether_py
#endif  // TETHER_PYTHON_WRAP_INSPECT_H_
