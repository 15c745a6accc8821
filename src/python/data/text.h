// SPDX-License-Identifier: Apache-2.0
// Strings of the FFI that remember the object they came from.
#ifndef TETHER_PYTHON_DATA_TEXT_H_
#define TETHER_PYTHON_DATA_TEXT_H_

#include "python/wrap/wrapper.h"

namespace tether_py {

// The text of a string object, whose reference it takes over. NULL with an error set.
PyObject* FromText(TVMFFIObject* h);
bool IsText(PyObject* obj);
// The string object that a String came with, borrowed, or NULL: ask for its cached object.
TVMFFIObject* HeldString(PyObject* obj);
int InitText(PyObject* module);

}  // namespace tether_py
#endif  // TETHER_PYTHON_DATA_TEXT_H_
