// SPDX-License-Identifier: Apache-2.0
// ObjectRValueRef: an argument whose object the callee may take over.
#ifndef TETHER_PYTHON_CALL_RVALUE_REF_H_
#define TETHER_PYTHON_CALL_RVALUE_REF_H_

#include "python/base/compat.h"

namespace tether_py {

int InitRValueRefType(PyObject* module);

}  // namespace tether_py
#endif  // TETHER_PYTHON_CALL_RVALUE_REF_H_
