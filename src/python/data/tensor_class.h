// SPDX-License-Identifier: Apache-2.0
// The class Tensor.
#ifndef TETHER_PYTHON_DATA_TENSOR_CLASS_H_
#define TETHER_PYTHON_DATA_TENSOR_CLASS_H_

#include "python/base/compat.h"

namespace tether_py {

int InitTensor(PyObject* module);

}  // namespace tether_py
#endif  // TETHER_PYTHON_DATA_TENSOR_CLASS_H_
