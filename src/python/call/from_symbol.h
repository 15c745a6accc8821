// SPDX-License-Identifier: Apache-2.0
// Functions made from the address of a C function.
#ifndef TETHER_PYTHON_CALL_FROM_SYMBOL_H_
#define TETHER_PYTHON_CALL_FROM_SYMBOL_H_

#include <tvm/ffi/c_api.h>

#include "python/base/compat.h"

namespace tether_py {

// The static methods __from_extern_c__ and __from_mlir_packed_safe_call__ of Function.
PyObject* FromExternC(PyObject*, PyObject* args, PyObject* kwargs);
PyObject* FromMLIR(PyObject*, PyObject* args, PyObject* kwargs);
// The keep_alive_object of such a function, borrowed, or NULL.
PyObject* KeptBy(TVMFFIObject* function);

}  // namespace tether_py
#endif  // TETHER_PYTHON_CALL_FROM_SYMBOL_H_
