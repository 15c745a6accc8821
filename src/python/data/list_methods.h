// SPDX-License-Identifier: Apache-2.0
// What changes a List.
#ifndef TETHER_PYTHON_DATA_LIST_METHODS_H_
#define TETHER_PYTHON_DATA_LIST_METHODS_H_

#include "python/base/compat.h"

namespace tether_py {

extern PyMethodDef list_methods[];

}  // namespace tether_py
#endif  // TETHER_PYTHON_DATA_LIST_METHODS_H_
