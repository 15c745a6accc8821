// SPDX-License-Identifier: Apache-2.0
// Rule B, for a collector that is none of those known.
#ifndef TETHER_PYTHON_WRAP_GUARD_LIST_H_
#define TETHER_PYTHON_WRAP_GUARD_LIST_H_

#include "python/base/compat.h"

namespace tether_py {

// The collector is none of those known.
extern bool uses_rule_b;

// Lets go of what rule B guards; at the end of a collection.
void ReleaseGuards();

}  // namespace tether_py
#endif  // TETHER_PYTHON_WRAP_GUARD_LIST_H_
