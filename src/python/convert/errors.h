// SPDX-License-Identifier: Apache-2.0
// Exceptions across the boundary, both ways.
#ifndef TETHER_PYTHON_CONVERT_ERRORS_H_
#define TETHER_PYTHON_CONVERT_ERRORS_H_

#include <tvm/ffi/error.h>
#include <tvm/ffi/function.h>

#include <string>

#include "python/base/entry.h"
#include "python/wrap/wrapper.h"

namespace tether_py {

// Raises in Python what a failed call left behind. Always returns NULL.
PyObject* RaiseFromCall(int code);
// The same where messages can say what Python gave: the arguments of the call, or the value for a
// field of a type.
PyObject* RaiseFromCall(int code, PyObject* const* args, Py_ssize_t nargs);
PyObject* RaiseForField(int code, const std::string& field, const std::string& type_key,
                        PyObject* value);
// The pending Python exception as an FFI error, which is then raised in this thread's slot.
void RaiseToCaller();
// An FFI error for an exception object that is not being raised.
ffi::Error ErrorFromException(PyObject* exc);
// The Python exception inside a RaisedException, borrowed, or NULL.
PyObject* ExceptionIn(TVMFFIObject* error);

// Whether an exception left Python for C++ in this thread and is not known to have ended. A call
// that succeeds looks here, in three instructions, and then asks SettleDepartures() what C++ keeps.
__attribute__((tls_model("initial-exec"))) inline thread_local bool any_departed = false;
// `arriving`: the error that the call ends with, which is not kept.
void SettleDepartures(TVMFFIObject* arriving = nullptr);
TVM_FFI_INLINE void AfterSuccess() {
  if (TVM_FFI_PREDICT_FALSE(any_departed)) SettleDepartures();
}
// At a collection: exceptions that C++ alone holds need no frames.
void ForgetUnusedFrames();

// Runs f, turning C++ exceptions into Python ones, in code that cannot leave that to Entry.
template <typename F>
PyObject* Guarded(F&& f) {
  bool is_ffi_error;
  try {
    return f();
  } catch (...) {
    is_ffi_error = TakeCaught();
  }
  RaiseTaken(is_ffi_error);
  return nullptr;
}

// The exception for an Error of Python: the one that it carries, or one made for it. NULL with an
// error set.
PyObject* PyErrorOf(PyObject* error);

// The error cell behind a wrapper, to be used in its critical section. NULL with an error set.
TVMFFIErrorCell* ErrorCellOf(PyObject* self);

int InitErrorClass(PyObject* module);
int InitErrors(PyObject* module);

}  // namespace tether_py
#endif  // TETHER_PYTHON_CONVERT_ERRORS_H_
