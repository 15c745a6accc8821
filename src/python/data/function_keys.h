// SPDX-License-Identifier: Apache-2.0
// Functions as keys of a Map or Dict.
#ifndef TETHER_PYTHON_DATA_FUNCTION_KEYS_H_
#define TETHER_PYTHON_DATA_FUNCTION_KEYS_H_

#include "python/base/compat.h"

namespace tether_py {

int RegisterFunctionKeys();  // at import: -1 with an error set

}  // namespace tether_py
#endif  // TETHER_PYTHON_DATA_FUNCTION_KEYS_H_
