// SPDX-License-Identifier: Apache-2.0
// What only tests use. Nothing else in the frontend depends on it.
#ifndef TETHER_PYTHON_DATA_TESTING_H_
#define TETHER_PYTHON_DATA_TESTING_H_

#include "python/base/compat.h"

namespace tether_py {

// Adds DLTensorTestWrapper: it stands for the tensor class of another framework.
int InitTestTensor(PyObject* module);

}  // namespace tether_py
#endif  // TETHER_PYTHON_DATA_TESTING_H_
