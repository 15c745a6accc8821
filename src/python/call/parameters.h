// SPDX-License-Identifier: Apache-2.0
// Where the arguments of a call go when parameters have names.
#ifndef TETHER_PYTHON_CALL_PARAMETERS_H_
#define TETHER_PYTHON_CALL_PARAMETERS_H_

#include <vector>

#include "python/base/compat.h"

namespace tether_py {

// Why a call does not fit its parameters; `name` is the keyword or the parameter it is about.
struct Misfit {
  enum Reason { kNone, kUnexpected, kTwice, kMissing };
  Reason reason = kNone;
  PyObject* name = nullptr;

  explicit operator bool() const { return reason != kNone; }
};

// Puts keywords and defaults into their positions. `names` is a tuple of interned names; `defaults`
// begins like it, with MISSING where there is none, and may be shorter: C++ knows the others, and
// the positions after the last one that is given are left out. A keyword that is MISSING asks for
// the default. More positional arguments than names are kept: the callee knows what to say.
Misfit Place(PyObject* names, PyObject* defaults, PyObject* const* args, Py_ssize_t nargs,
             PyObject* kwnames, std::vector<PyObject*>* placed);

}  // namespace tether_py
#endif  // TETHER_PYTHON_CALL_PARAMETERS_H_
