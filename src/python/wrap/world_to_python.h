// SPDX-License-Identifier: Apache-2.0
// What was found of the C++ objects, as lists and tuples for tvm_ffi.inspect.
#ifndef TETHER_PYTHON_WRAP_WORLD_TO_PYTHON_H_
#define TETHER_PYTHON_WRAP_WORLD_TO_PYTHON_H_

#include <vector>

#include "python/wrap/world.h"

namespace tether_py {

// New lists, or NULL with an error set: nodes by their number, and the lines that were recorded.
PyObject* IndicesToPython(const std::vector<size_t>& nodes);
PyObject* LinesToPython();

}  // namespace tether_py
#endif  // TETHER_PYTHON_WRAP_WORLD_TO_PYTHON_H_
