// SPDX-License-Identifier: Apache-2.0
// Tensors in DLPack's capsules.
#ifndef TETHER_PYTHON_DATA_TENSOR_EXPORT_H_
#define TETHER_PYTHON_DATA_TENSOR_EXPORT_H_

#include "python/base/compat.h"

namespace tether_py {

// Capsules over the memory of a Tensor. NULL with an error set.
PyObject* ToCapsule(PyObject* self);
PyObject* ToVersionedCapsule(PyObject* self);
// A capsule over a copy, which may be written. A tensor that is only lent can be copied too.
PyObject* ToCapsuleOfCopy(PyObject* self, bool versioned);

}  // namespace tether_py
#endif  // TETHER_PYTHON_DATA_TENSOR_EXPORT_H_
