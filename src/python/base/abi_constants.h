// SPDX-License-Identifier: Apache-2.0
// The numbers of the C interface, for the part that is written in Python.
#ifndef TETHER_PYTHON_BASE_ABI_CONSTANTS_H_
#define TETHER_PYTHON_BASE_ABI_CONSTANTS_H_

#include "python/base/compat.h"

namespace tether_py {

// Adds the namespace `_abi`, in which every number has its C name: core._abi.kTVMFFIStr.
int AddABIConstants(PyObject* module);

}  // namespace tether_py
#endif  // TETHER_PYTHON_BASE_ABI_CONSTANTS_H_
