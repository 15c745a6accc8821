// SPDX-License-Identifier: Apache-2.0
// Map and Dict.
#ifndef TETHER_PYTHON_DATA_MAPS_H_
#define TETHER_PYTHON_DATA_MAPS_H_

#include "python/base/compat.h"

namespace tether_py {

// With the error of a failed conversion set: whether the value is one that no container can hold,
// an integer out of range or a collection with one inside. Such a value is simply not there; the
// error is cleared.
bool CannotBeElement(PyObject* value);
// The value of a key. NULL if there is none, or with an error set.
PyObject* FindInMap(PyObject* self, PyObject* key);

int InitMapTypes(PyObject* module);

}  // namespace tether_py
#endif  // TETHER_PYTHON_DATA_MAPS_H_
