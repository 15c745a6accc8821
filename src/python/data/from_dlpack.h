// SPDX-License-Identifier: Apache-2.0
// The function from_dlpack.
#ifndef TETHER_PYTHON_DATA_FROM_DLPACK_H_
#define TETHER_PYTHON_DATA_FROM_DLPACK_H_

#include "python/base/compat.h"

namespace tether_py {

int InitFromDLPack(PyObject* module);

}  // namespace tether_py
#endif  // TETHER_PYTHON_DATA_FROM_DLPACK_H_
