// SPDX-License-Identifier: Apache-2.0
// The Error attached to a Python exception, which describes it.
#ifndef TETHER_PYTHON_CONVERT_ATTACHED_ERROR_H_
#define TETHER_PYTHON_CONVERT_ATTACHED_ERROR_H_

#include "python/base/ref.h"
#include "python/convert/raised_exception.h"

namespace tether_py {

// The Error attached to an exception, or null. No error is left set.
Ref AttachedTo(PyObject* exc);

// Without asking the class: a __setattr__ of its own may refuse. No error is left set.
void Attach(PyObject* exc, PyObject* error);

// What an error has attached to it, or null. Errors of old binaries may have a shorter cell, whose
// end is not read.
ffi::ObjectPtr<ffi::Object> ExtraContextOf(const TVMFFIErrorCell* cell);

// An exception that came from an FFI error keeps the kind, message and context of that.
Account AccountOf(PyObject* exc, PyObject* attached);

// Brings the error attached to the exception up to date, or attaches one. An exception without it
// is still the exception, so failures pass.
void UpdateAttached(PyObject* exc, RaisedException* raised);

}  // namespace tether_py
#endif  // TETHER_PYTHON_CONVERT_ATTACHED_ERROR_H_
