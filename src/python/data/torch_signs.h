// SPDX-License-Identifier: Apache-2.0
// Lazy signs: torch negates and conjugates by setting a bit. The memory still has the values from
// before, and neither the exchange API nor the method for old capsules says so.
#ifndef TETHER_PYTHON_DATA_TORCH_SIGNS_H_
#define TETHER_PYTHON_DATA_TORCH_SIGNS_H_

#include "python/base/ref.h"

namespace tether_py {

// Whether tensors of this class may have such a bit.
bool HasLazySigns(PyTypeObject* type);
// Whether the bits of tensors of this class can be looked at: true for those of torch, unless its
// tensors have another layout than expected. Then MayHaveSigns says whether one has a bit set.
bool KnowsSignBits(PyTypeObject* type);
bool MayHaveSigns(PyObject* tensor);
// `obj`, or a copy of it whose memory has the values that it stands for. NULL with an error set.
Ref ResolveSigns(PyObject* obj);
// For callers that need the memory itself, not a copy. False with an error set.
bool CheckNoLazySigns(PyObject* obj);

int InitTorchSigns();

}  // namespace tether_py
#endif  // TETHER_PYTHON_DATA_TORCH_SIGNS_H_
