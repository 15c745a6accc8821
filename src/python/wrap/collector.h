// SPDX-License-Identifier: Apache-2.0
// What the garbage collector is told about wrappers (collector.cc).
#ifndef TETHER_PYTHON_WRAP_COLLECTOR_H_
#define TETHER_PYTHON_WRAP_COLLECTOR_H_

#include "python/wrap/wrapper.h"

namespace tether_py {

int TraverseWrapper(PyObject* self, visitproc visit, void* arg);
// For the tp_traverse of something else than a wrapper that has a strong reference to an object.
int VisitHeld(TVMFFIObject* held, visitproc visit, void* arg);
// A visitor that appends to a list. It is shown what a wrapper itself refers to: its class and its
// Python state, not what its C++ object refers to.
int VisitOwnReference(PyObject* obj, void* list);

// From the collector: the wrapper is garbage, and so is its object.
void BreakRing(PyObject* self);

}  // namespace tether_py
#endif  // TETHER_PYTHON_WRAP_COLLECTOR_H_
