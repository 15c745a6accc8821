// SPDX-License-Identifier: Apache-2.0
// Small helpers over CPython's API. They know nothing of wrappers.
#ifndef TETHER_PYTHON_BASE_PYTHON_API_H_
#define TETHER_PYTHON_BASE_PYTHON_API_H_

#include <tvm/ffi/c_api.h>

#include "core/stack_room.h"
#include "python/base/ref.h"

namespace tether_py {

// Py_EnterRecursiveCall, true on success, also where the interpreter counts on a larger stack than
// the thread has.
inline bool EnterRecursion(const char* where) {
  if (tvm::ffi::tether::IsStackLow()) {
    PyErr_Format(PyExc_RecursionError, "maximum recursion depth exceeded%s", where);
    return false;
  }
  return Py_EnterRecursiveCall(where) == 0;
}

// False without an error when the class has no such attribute.
bool HasMethod(PyTypeObject* type, const char* name);
// The digits of an int, also of one that Python refuses to print. NULL with an error set.
Ref TextOfInt(PyObject* number);
// An integer of a C type. False with OverflowError or TypeError set that names `what`.
bool IntegerInRange(PyObject* obj, long long lowest, long long highest, const char* what,
                    long long* out);
// Keyword arguments of a fast call, by the order of `names`; those that are not given keep their
// value. False with an error set.
bool ReadKeywords(const char* function, PyObject* const* values, PyObject* kwnames,
                  PyObject* const* names, size_t count, PyObject** out);
// A module that is loaded already, else NULL without an error.
Ref LoadedModule(const char* name);
// 1 or 0, or -1 with an error set. A library that is not loaded has no instances.
int IsInstanceOfLoaded(PyObject* obj, const char* module, const char* name);

// The text of a str, borrowed from it. False with an error set.
inline bool Utf8(PyObject* text, TVMFFIByteArray* out) {
  Py_ssize_t size;
  const char* data = PyUnicode_AsUTF8AndSize(text, &size);
  if (data == nullptr) return false;
  *out = TVMFFIByteArray{data, static_cast<size_t>(size)};
  return true;
}

// A type of the module deriving from `base`. Borrowed by types.*, owned by the module.
PyTypeObject* AddType(PyObject* module, PyType_Spec* spec, PyTypeObject* base);

// Lets `hook` run when the program ends, before what was registered earlier. False with an error
// set.
bool CallAtExit(PyObject* hook);

// ctypes.c_void_p, borrowed, or NULL with an error set.
PyObject* CVoidP();

}  // namespace tether_py
#endif  // TETHER_PYTHON_BASE_PYTHON_API_H_
