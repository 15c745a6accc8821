// SPDX-License-Identifier: Apache-2.0
// What is particular to torch: lazy signs, and releases without an exchange API.
#ifndef TETHER_PYTHON_DATA_TORCH_H_
#define TETHER_PYTHON_DATA_TORCH_H_

#include "python/convert/convert.h"

namespace tether_py {

// ---- lazy signs
//
// torch negates and conjugates by setting a bit. The memory still has the values from before, and
// neither the exchange API nor the method for old capsules says so.

// Whether tensors of this class may have such a bit.
bool HasLazySigns(PyTypeObject* type);
// `obj`, or a copy of it whose memory has the values that it stands for. NULL with an error set.
Ref ResolveSigns(PyObject* obj);
// For those who want the memory itself and no copy. False with an error set.
bool CheckNoLazySigns(PyObject* obj);

// ---- torch without an exchange API

// The setter of such tensors.
bool SetTorchTensor(PyObject* obj, TVMFFIAny* out, Arguments* args);

int InitTorch();

}  // namespace tether_py
#endif  // TETHER_PYTHON_DATA_TORCH_H_
