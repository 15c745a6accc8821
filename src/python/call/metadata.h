// SPDX-License-Identifier: Apache-2.0
// Global functions, and what is known about a function besides its code.
#ifndef TETHER_PYTHON_CALL_METADATA_H_
#define TETHER_PYTHON_CALL_METADATA_H_

#include "python/wrap/wrapper.h"

namespace tether_py {

// Sets what a registration's metadata says about a function. What cannot be read says nothing.
void ApplyMetadata(PyObject* function, const TVMFFIByteArray& metadata);

int InitGlobalFunctions(PyObject* module);

}  // namespace tether_py
#endif  // TETHER_PYTHON_CALL_METADATA_H_
