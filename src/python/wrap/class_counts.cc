// SPDX-License-Identifier: Apache-2.0
// How many wrappers there are, by class.
#include "python/wrap/class_counts.h"

namespace tether_py {

ClassCounts& class_counts = *new ClassCounts();  // outlives the last wrapper

}  // namespace tether_py
