// SPDX-License-Identifier: Apache-2.0
// Attributes of wrappers: what a name means to a class, remembered.
#ifndef TETHER_PYTHON_DATA_ATTRIBUTE_CACHE_H_
#define TETHER_PYTHON_DATA_ATTRIBUTE_CACHE_H_

#include "python/base/compat.h"

namespace tether_py {

// Lets the attributes of a new class of wrappers be looked up by the functions of this cache.
void InstallFieldAccess(PyTypeObject* cls, bool is_python_defined);
// A property was given another field.
void ForgetKnownAttributes();

int InitAttributeCache(PyObject* module);

}  // namespace tether_py
#endif  // TETHER_PYTHON_DATA_ATTRIBUTE_CACHE_H_
