// SPDX-License-Identifier: Apache-2.0
// Shapes as Python values: tuples that keep their FFI object.
#ifndef TETHER_PYTHON_DATA_SHAPE_H_
#define TETHER_PYTHON_DATA_SHAPE_H_

#include "python/wrap/wrapper.h"

namespace tether_py {

// Takes over h. NULL with an error set.
PyObject* FromShape(TVMFFIObject* h);

// Extents and strides as a tuple. NULL with an error set.
PyObject* TupleOf(const int64_t* values, Py_ssize_t n);
// The strides of a row-major tensor without gaps.
PyObject* RowMajorStrides(const int64_t* shape, Py_ssize_t n);

int InitShape(PyObject* module);

}  // namespace tether_py
#endif  // TETHER_PYTHON_DATA_SHAPE_H_
