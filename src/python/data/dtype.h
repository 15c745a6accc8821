// SPDX-License-Identifier: Apache-2.0
// Data types as Python values.
#ifndef TETHER_PYTHON_DATA_DTYPE_H_
#define TETHER_PYTHON_DATA_DTYPE_H_

#include "python/convert/convert.h"

namespace tether_py {

int InitDataType(PyObject* module);
PyObject* FromDataType(DLDataType dtype);
// Of a core.DataType or a tvm_ffi.dtype. False with an error set.
bool DataTypeOf(PyObject* obj, DLDataType* out);
// Resolve* give the setter of a type and leave *out alone for types that are something else.
// -1 with an error set, else 0.
int ResolveDataType(PyObject* obj, Setter* out);
// The types that come late in the order: of torch, of numpy, by protocol.
int ResolveForeignDataType(PyObject* obj, Setter* out);

}  // namespace tether_py
#endif  // TETHER_PYTHON_DATA_DTYPE_H_
