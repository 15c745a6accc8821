// SPDX-License-Identifier: Apache-2.0
// The class DataType: a data type as three numbers.
#ifndef TETHER_PYTHON_DATA_DATA_TYPE_H_
#define TETHER_PYTHON_DATA_DATA_TYPE_H_

#include <tvm/ffi/c_api.h>

#include "python/base/compat.h"

namespace tether_py {

struct DataTypeObject {
  PyObject_HEAD DLDataType dtype;
};

inline DLDataType& DataTypeValue(PyObject* obj) {
  return reinterpret_cast<DataTypeObject*>(obj)->dtype;
}

// Lanes are signed: a negative number says "times the vector length of the machine".
inline int16_t LanesOf(DLDataType dtype) { return static_cast<int16_t>(dtype.lanes); }

inline uint32_t KeyOf(DLDataType dtype) {
  return dtype.code | (uint32_t{dtype.bits} << 8) | (uint32_t{dtype.lanes} << 16);
}

// Set at import.
extern PyTypeObject* data_type_type;

// Each: NULL or false with an error set.
PyObject* MakeDataType(PyTypeObject* cls, DLDataType dtype);
PyObject* DataTypeText(DLDataType dtype);
// From code, bits and lanes. The error names the one that is wrong.
bool FromNumbers(PyObject* code, PyObject* bits, PyObject* lanes, DLDataType* out);

int InitDataType(PyObject* module);

}  // namespace tether_py
#endif  // TETHER_PYTHON_DATA_DATA_TYPE_H_
