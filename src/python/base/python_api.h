// SPDX-License-Identifier: Apache-2.0
// Small helpers over CPython's API. They know nothing of wrappers.
#ifndef TETHER_PYTHON_BASE_PYTHON_API_H_
#define TETHER_PYTHON_BASE_PYTHON_API_H_

#include <tvm/ffi/c_api.h>

#include "core/stack_room.h"
#include "python/base/ref.h"

namespace tether_py {

// Py_EnterRecursiveCall, true on success. It also fails when the thread's stack is nearly used up:
// the interpreter may count on a larger stack than the thread has.
inline bool EnterRecursion(const char* where) {
  if (tvm::ffi::tether::IsStackLow()) {
    PyErr_Format(PyExc_RecursionError, "maximum recursion depth exceeded%s", where);
    return false;
  }
  return Py_EnterRecursiveCall(where) == 0;
}

// The ints from -5 to 256: CPython has one object of each, and most ints that cross are among them.
// Set at import, constant afterwards.
inline constexpr int64_t kLeastSmallInt = -5;
inline constexpr uint64_t kNumSmallInts = 262;
extern PyObject* small_ints[kNumSmallInts];
int InitSmallInts(PyObject* module);

// PyLong_FromLongLong, inline for those. From 3.12 on they are immortal and not counted.
inline PyObject* IntFromInt64(int64_t value) {
  uint64_t index = static_cast<uint64_t>(value) - static_cast<uint64_t>(kLeastSmallInt);
  if (index >= kNumSmallInts) return PyLong_FromLongLong(value);
  PyObject* number = small_ints[index];
  return PY_VERSION_HEX >= 0x030C0000 ? number : Py_NewRef(number);
}

// Clears the error, if there is one, when the failed step is optional. Ctrl-C that
// arrived in it is raised again later.
void PassOver();

// Puts the pending exception aside: code that runs meanwhile must neither see nor replace it.
class ErrorAside {
 public:
  ErrorAside() { PyErr_Fetch(&type_, &value_, &traceback_); }
  ErrorAside(const ErrorAside&) = delete;
  ErrorAside& operator=(const ErrorAside&) = delete;
  ~ErrorAside() { PyErr_Restore(type_, value_, traceback_); }

 private:
  PyObject* type_;
  PyObject* value_;
  PyObject* traceback_;
};

// False without an error when the class has no such attribute.
bool HasAttribute(PyTypeObject* type, const char* name);
// The digits of an int, also of one that Python refuses to print. NULL with an error set.
Ref TextOfInt(PyObject* number);
// Integers of C types. False with OverflowError or TypeError set that names `what`.
bool IntegerInRange(PyObject* obj, long long lowest, long long highest, const char* what,
                    long long* out);
bool ToInt32(PyObject* obj, const char* what, int32_t* out);
// Keyword arguments of a fast call, by the order of `names`; those that are not given keep their
// value. The first `num_positional` were given by position. False with an error set.
bool ReadKeywords(const char* function, PyObject* const* values, PyObject* kwnames,
                  PyObject* const* names, size_t count, size_t num_positional, PyObject** out);
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

// What a dict has for a key; null if it has nothing, if it is no dict, or with an error set.
inline Ref FindInDict(PyObject* dict, PyObject* key) {
  if (!PyDict_Check(dict)) return nullptr;
#if PY_VERSION_HEX >= 0x030D0000
  PyObject* found;
  (void)PyDict_GetItemRef(dict, key, &found);
  return Ref::Steal(found);
#else
  return Ref::Borrow(PyDict_GetItemWithError(dict, key));
#endif
}

// What an instance has for a name in its dict, whose place is given; null if it has nothing or no
// dict, or with an error set. Another thread may set it, or replace the dict.
Ref FindInInstance(PyObject* self, PyObject* const* dict, const char* name);
// Sets it, or deletes it where `value` is NULL. -1 with an error set.
int SetInInstance(PyObject* self, const char* name, PyObject* value);

// A type of the module deriving from `base`. Borrowed by types.*, owned by the module.
PyTypeObject* AddType(PyObject* module, PyType_Spec* spec, PyTypeObject* base);

// Lets `hook` run when the program ends, before what was registered earlier. False with an error
// set.
bool CallAtExit(PyObject* hook);

// ctypes.c_void_p, borrowed, or NULL with an error set.
PyObject* CVoidP();

}  // namespace tether_py
#endif  // TETHER_PYTHON_BASE_PYTHON_API_H_
