// SPDX-License-Identifier: Apache-2.0
// The exchange API of tvm_ffi.Tensor, by which other frameworks take our tensors.
#ifndef TETHER_PYTHON_DATA_OWN_EXCHANGE_H_
#define TETHER_PYTHON_DATA_OWN_EXCHANGE_H_

#include "python/convert/convert.h"

namespace tether_py {

extern const DLPackExchangeAPI own_exchange_api;
// Whether `api` makes objects of Tensor, so that there is nothing to translate.
bool IsOwnExchangeAPI(const DLPackExchangeAPI* api);
// Gives a class the attribute by which others find the API. -1 with an error set.
int PublishExchangeAPI(PyTypeObject* cls, const DLPackExchangeAPI* api);

}  // namespace tether_py
#endif  // TETHER_PYTHON_DATA_OWN_EXCHANGE_H_
