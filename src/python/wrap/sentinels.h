// SPDX-License-Identifier: Apache-2.0
// The objects MISSING and KWARGS.
#ifndef TETHER_PYTHON_WRAP_SENTINELS_H_
#define TETHER_PYTHON_WRAP_SENTINELS_H_

#include "python/base/compat.h"

namespace tether_py {

// Objects that stand for "no value" (core.MISSING) and "keyword arguments follow" (core.KWARGS).
// They are made as soon as the class Object exists; owned for the life of the process.
struct Sentinels {
  PyObject* missing;
  PyObject* kwargs;
};
extern Sentinels sentinels;

int InitSentinels(PyObject* module);

}  // namespace tether_py
#endif  // TETHER_PYTHON_WRAP_SENTINELS_H_
