// SPDX-License-Identifier: Apache-2.0
// Caches keyed by a class borrow it, so that no class lives longer for having been seen. What keeps
// them right is one weak reference per class: when the class dies, every cache forgets it before
// its address can belong to another one.
//
// A cache calls WatchClass before it remembers a class, and has a function in class_watch.cc's
// list. (How many wrappers a class has is counted by address and needs none: wrapper.cc.)
#ifndef TETHER_PYTHON_CLASS_WATCH_H_
#define TETHER_PYTHON_CLASS_WATCH_H_

#include "compat.h"

namespace tether_py {

// Whether a class may be remembered: it never dies, or the caches will be told when it does. The
// caller has a reference to it, or to an instance. No error is left behind. May run a collection.
bool WatchClass(PyTypeObject* cls);

// Of the caches: `cls` is dead or dying.
void ForgetSetter(PyTypeObject* cls);       // to_any.cc
void ForgetExchangeAPI(PyTypeObject* cls);  // dlpack.cc
void ForgetInFields(PyTypeObject* cls);     // fields.cc

}  // namespace tether_py
#endif  // TETHER_PYTHON_CLASS_WATCH_H_
