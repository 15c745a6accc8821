// SPDX-License-Identifier: Apache-2.0
// The memory of tensors as Python buffers, and tensors over buffers.
#ifndef TETHER_PYTHON_DATA_TENSOR_BUFFER_H_
#define TETHER_PYTHON_DATA_TENSOR_BUFFER_H_

#include "python/base/compat.h"

namespace tether_py {

int InitTensorBuffer(PyObject* module);

}  // namespace tether_py
#endif  // TETHER_PYTHON_DATA_TENSOR_BUFFER_H_
