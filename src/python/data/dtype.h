// SPDX-License-Identifier: Apache-2.0
// Data types as Python values.
#ifndef TETHER_PYTHON_DATA_DTYPE_H_
#define TETHER_PYTHON_DATA_DTYPE_H_

#include "python/convert/convert.h"

namespace tether_py {

int InitDType(PyObject* module);
PyObject* FromDataType(DLDataType dtype);
// Of a core.DataType or a tvm_ffi.dtype. False with an error set.
bool DataTypeOf(PyObject* obj, DLDataType* out);
// Whether it is one of those two.
bool IsDataType(PyObject* obj);

// The setters of those two, of torch.dtype, of numpy.dtype, and by __dlpack_data_type__().
bool SetDataType(PyObject* obj, TVMFFIAny* out, Arguments* args);
bool SetTorchDType(PyObject* obj, TVMFFIAny* out, Arguments* args);
bool SetNumpyDType(PyObject* obj, TVMFFIAny* out, Arguments* args);
bool SetDTypeProtocol(PyObject* obj, TVMFFIAny* out, Arguments* args);

}  // namespace tether_py
#endif  // TETHER_PYTHON_DATA_DTYPE_H_
