// SPDX-License-Identifier: Apache-2.0
// Caches keyed by a class borrow it, so that no class lives longer for having been seen. What keeps
// them right is one weak reference per class: when the class dies, every cache forgets it before
// its address can belong to another one.
//
// A cache calls WatchClass before it remembers a class, and is on the list in upper_layers.h. (How
// many wrappers a class has is counted by address and needs neither: class_counts.h.)
#ifndef TETHER_PYTHON_WRAP_CLASS_WATCH_H_
#define TETHER_PYTHON_WRAP_CLASS_WATCH_H_

#include "python/base/compat.h"

namespace tether_py {

// Whether a class may be remembered: it never dies, or the caches will be told when it does. The
// caller has a reference to it, or to an instance. No error is left behind. May run a collection.
bool WatchClass(PyTypeObject* cls);

}  // namespace tether_py
#endif  // TETHER_PYTHON_WRAP_CLASS_WATCH_H_
