// SPDX-License-Identifier: Apache-2.0
// Arrays of numpy, read without a call into numpy.
#ifndef TETHER_PYTHON_DATA_NUMPY_H_
#define TETHER_PYTHON_DATA_NUMPY_H_

#include "python/convert/convert.h"
#include "python/data/capsules.h"

namespace tether_py {

// The type ndarray if numpy is loaded and its arrays have the layout we know. Else NULL without an
// error.
PyTypeObject* FindNumpyArrayType();
// Of an object of exactly that type. A new reference, or NULL with an error set.
TVMFFIObject* ImportArray(PyObject* array, const ImportOptions& options);
// Its setter.
bool SetNumpyArray(PyObject* obj, TVMFFIAny* out, Arguments* args);

}  // namespace tether_py
#endif  // TETHER_PYTHON_DATA_NUMPY_H_
