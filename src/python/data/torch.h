// SPDX-License-Identifier: Apache-2.0
// The exchange API of torch, and what stands in for it where torch has none.
#ifndef TETHER_PYTHON_DATA_TORCH_H_
#define TETHER_PYTHON_DATA_TORCH_H_

#include <atomic>
#include <initializer_list>

#include "python/convert/convert.h"

namespace tether_py {

// The attribute `path` of torch, such as {"utils", "dlpack", "to_dlpack"}. NULL with an error set.
Ref TorchFunction(std::initializer_list<const char*> path);

// ---- exchange APIs of torch

// Before the API of a class is asked for: when this is the first tensor of torch, the package may
// give torch a faster one, or one where it has none. False with an error set.
bool PrepareTorch(PyObject* obj);
// The API of our add-on, if that is in use. What it says about a tensor needs no check: torch has
// made the tensor, and the add-on refuses those without memory and those with lazy signs.
extern std::atomic<const DLPackExchangeAPI*> addon_api;

// ---- torch without an exchange API

// The setter of such tensors.
bool SetTorchTensor(PyObject* obj, TVMFFIAny* out, Arguments* args);

}  // namespace tether_py
#endif  // TETHER_PYTHON_DATA_TORCH_H_
