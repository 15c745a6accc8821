// SPDX-License-Identifier: Apache-2.0
// Type schemas, the conversion of values by schema, and reflection.
#ifndef TETHER_PYTHON_SCHEMA_SCHEMA_H_
#define TETHER_PYTHON_SCHEMA_SCHEMA_H_

#include "python/convert/convert.h"

namespace tether_py {

// Conversion for a field setter, from any thread; `converter` is a _TypeConverter.
int ConvertForField(void* converter, const TVMFFIAny* in, TVMFFIAny* out);
// Whether a _TypeConverter gives back every value of that type as it is; kTVMFFIAny: every value.
bool KeepsValuesOf(PyObject* converter, int32_t type_index);

// A new CAny. NULL with an error set.
PyObject* MakeCAny(ffi::Any value);

int InitReflection(PyObject* module);
int InitPyClass(PyObject* module);
int InitTypeConverter(PyObject* module);
int InitCAny(PyObject* module);

}  // namespace tether_py
#endif  // TETHER_PYTHON_SCHEMA_SCHEMA_H_
