// SPDX-License-Identifier: Apache-2.0
// Python -> Any: the setter of a type.
#ifndef TETHER_PYTHON_KINDS_TO_ANY_H_
#define TETHER_PYTHON_KINDS_TO_ANY_H_

#include "python/wrap/class_records.h"

namespace tether_py {

// The setter of a class nobody has seen: finds the right one, records it and uses it.
bool FindSetter(PyObject* obj, TVMFFIAny* out, Arguments* args);

int InitKinds(PyObject* module);

}  // namespace tether_py
#endif  // TETHER_PYTHON_KINDS_TO_ANY_H_
