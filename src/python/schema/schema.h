// SPDX-License-Identifier: Apache-2.0
// Type schemas, the conversion of values by schema, and reflection.
#ifndef TETHER_PYTHON_SCHEMA_SCHEMA_H_
#define TETHER_PYTHON_SCHEMA_SCHEMA_H_

#include "python/convert/convert.h"

namespace tether_py {

// ---- shared variables of this folder, and what protects each ----
//
// nodes of a converter (node.h)      constant once made.
// the value in a CAny (c_any.cc)     constant once made.
// types.converter, any_type          set at import, before another thread can see the module.
// make_getter, make_setter           initialised once by C++; that runs no Python code, so a thread
//   (py_class.cc)                    that waits for it cannot block the one that does it.
// The type table belongs to libtvm_ffi, which has its own locks.

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
