// SPDX-License-Identifier: Apache-2.0
// Tensors over the memory of a Python object, which they keep alive.
#ifndef TETHER_PYTHON_DATA_PYTHON_TENSOR_H_
#define TETHER_PYTHON_DATA_PYTHON_TENSOR_H_

#include "python/wrap/wrapper.h"

namespace tether_py {

// A tensor as `prototype` describes it, whose shape and strides are copied. NULL with an error set.
TVMFFIObject* TensorOver(PyObject* owner, const DLTensor& prototype);
// Keeps a tensor of TensorOver that nobody else has for the next one. Takes over the reference;
// false if it is not such a tensor.
bool RecycleTensor(TVMFFIObject* tensor);
void DropSpareTensors();
// The Python object whose memory a tensor shows and keeps, borrowed, or NULL.
PyObject* MemoryOwnerOf(TVMFFIObject* tensor);

}  // namespace tether_py
#endif  // TETHER_PYTHON_DATA_PYTHON_TENSOR_H_
