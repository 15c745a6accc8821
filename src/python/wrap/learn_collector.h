// SPDX-License-Identifier: Apache-2.0
// Which collector this is: learned at import, and checked.
#ifndef TETHER_PYTHON_WRAP_LEARN_COLLECTOR_H_
#define TETHER_PYTHON_WRAP_LEARN_COLLECTOR_H_

#include "python/base/compat.h"

namespace tether_py {

// The collector's visitor that subtracts; NULL while unknown. Learned by the first traversal while
// `learning` is set.
extern visitproc subtracting_visitor;
extern bool learning;

bool LearnCollector();  // at import: false with an error set

}  // namespace tether_py
#endif  // TETHER_PYTHON_WRAP_LEARN_COLLECTOR_H_
