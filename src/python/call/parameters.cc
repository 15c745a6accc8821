// SPDX-License-Identifier: Apache-2.0
// Where the arguments of a call go when parameters have names.
#include "python/call/parameters.h"

#include <algorithm>

#include "python/wrap/sentinels.h"

namespace tether_py {

namespace {

// The place of a name in a tuple of interned names, or -1. From the end: a parameter of a method
// may be called as the object, which comes first and has no keyword then.
Py_ssize_t PlaceOf(PyObject* name, PyObject* names) {
  Py_ssize_t count = PyTuple_GET_SIZE(names);
  for (Py_ssize_t i = count - 1; i >= 0; --i) {
    if (PyTuple_GET_ITEM(names, i) == name) return i;
  }
  if (PyUnicode_CHECK_INTERNED(name) != 0) return -1;
  for (Py_ssize_t i = count - 1; i >= 0; --i) {
    if (PyUnicode_Compare(PyTuple_GET_ITEM(names, i), name) == 0) return i;
  }
  return -1;
}

}  // namespace

Misfit Place(PyObject* names, PyObject* defaults, PyObject* const* args, Py_ssize_t nargs,
             PyObject* kwnames, std::vector<PyObject*>* placed) {
  Py_ssize_t nkw = kwnames != nullptr ? PyTuple_GET_SIZE(kwnames) : 0;
  Py_ssize_t count = PyTuple_GET_SIZE(names);
  Py_ssize_t num_defaults = PyTuple_GET_SIZE(defaults);
  placed->reserve(std::max(nargs, count));
  placed->assign(args, args + nargs);
  if (nargs < count) placed->resize(count, nullptr);
  Py_ssize_t size = std::max(nargs, num_defaults);
  for (Py_ssize_t i = 0; i < nkw; ++i) {
    PyObject* name = PyTuple_GET_ITEM(kwnames, i);
    Py_ssize_t place = PlaceOf(name, names);
    if (place < 0) return {Misfit::kUnexpected, name};
    if ((*placed)[place] != nullptr) return {Misfit::kTwice, name};
    if (args[nargs + i] == sentinels.missing) continue;
    (*placed)[place] = args[nargs + i];
    size = std::max(size, place + 1);
  }
  for (Py_ssize_t i = nargs; i < size; ++i) {
    PyObject*& value = (*placed)[i];
    if (value == nullptr && i < num_defaults) value = PyTuple_GET_ITEM(defaults, i);
    if (value == nullptr || value == sentinels.missing) {
      return {Misfit::kMissing, PyTuple_GET_ITEM(names, i)};
    }
  }
  placed->resize(size);
  return {};
}

}  // namespace tether_py
