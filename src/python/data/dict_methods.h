// SPDX-License-Identifier: Apache-2.0
// What changes a Dict.
#ifndef TETHER_PYTHON_DATA_DICT_METHODS_H_
#define TETHER_PYTHON_DATA_DICT_METHODS_H_

#include "python/base/compat.h"

namespace tether_py {

// self[key] = value, or without a value: del self[key].
int DictAssign(PyObject* self, PyObject* key, PyObject* value);
// setdefault(key[, default]), of which only one of several threads stores its default. A default
// that is not needed is not converted.
PyObject* DictSetDefault(PyObject* self, PyObject* args);
// Takes the first entry out of a Dict, which asks no key for anything.
PyObject* DictPopItem(PyObject* self, PyObject*);
// pop(key[, default]). What is removed is what is returned, whatever other code does meanwhile.
PyObject* DictPop(PyObject* self, PyObject* args);

}  // namespace tether_py
#endif  // TETHER_PYTHON_DATA_DICT_METHODS_H_
