// SPDX-License-Identifier: Apache-2.0
// Edges and types as text, for tvm_ffi.inspect.
#ifndef TETHER_PYTHON_WRAP_EDGE_TEXT_H_
#define TETHER_PYTHON_WRAP_EDGE_TEXT_H_

#include <string>

#include "python/wrap/edges.h"

namespace tether_py {

std::string TypeKey(int32_t type_index);
// Where an edge was found, such as ".field" or "[3]".
std::string TextOf(const EdgePlace& place);

}  // namespace tether_py
#endif  // TETHER_PYTHON_WRAP_EDGE_TEXT_H_
