// SPDX-License-Identifier: Apache-2.0
// Tensors of other libraries as arguments: which way they take.
#ifndef TETHER_PYTHON_DATA_EXCHANGE_H_
#define TETHER_PYTHON_DATA_EXCHANGE_H_

#include "python/convert/convert.h"

namespace tether_py {

// Setters of types that have an exchange API, of tensors of torch, of types with __dlpack__: three
// places in the order of kinds/. 0, with *out left as it is for other types, or -1 with an error
// set.
int ResolveExchangeAPI(PyObject* obj, Setter* out);
int ResolveTorchTensor(PyObject* obj, Setter* out);
int ResolveDLPack(PyObject* obj, Setter* out);

int InitExchange(PyObject* module);

}  // namespace tether_py
#endif  // TETHER_PYTHON_DATA_EXCHANGE_H_
