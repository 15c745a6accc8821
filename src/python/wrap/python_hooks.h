// SPDX-License-Identifier: Apache-2.0
// What C++ uses of the part that is written in Python (python/tvm_ffi/_impl).
#ifndef TETHER_PYTHON_WRAP_PYTHON_HOOKS_H_
#define TETHER_PYTHON_WRAP_PYTHON_HOOKS_H_

#include "python/base/compat.h"

namespace tether_py {

// The Python part calls core._set_hooks once, at the end of its import, with exactly these names.
// Until then they are stand-ins that raise, except for object_class, bytes_class and
// convert_error_class, which are CObject, bytes and TypeError, and make_class, which is NULL: the
// objects that initialisation makes are plain CObjects. All are owned and stay for the life of the
// process.
struct PythonHooks {
  // Classes.
  PyObject* object_class;         // Object, the base of all registered classes
  PyObject* native_object_class;  // PyNativeObject: a Python value with its FFI object beside it
  PyObject* bytes_class;          // Bytes, which byte strings from C++ become
  PyObject* convertible_class;    // ObjectConvertible: instances make their FFI object themselves
  PyObject* convert_error_class;  // raised when a value does not fit a type schema

  // Objects and types.
  PyObject* make_class;          // (type_index) -> class of a type for which none is registered
  PyObject* type_info_of_class;  // (class) -> TypeInfo or None
  PyObject* object_repr;         // (object) -> str
  PyObject* describe;            // (function or method, name of an attribute) -> its value

  // Errors.
  PyObject* error_kinds;    // dict: exception class -> the kind that it has in C++
  PyObject* error_classes;  // dict: kind -> exception class
  // (kind, message, classes of the arguments, [field, type]) -> (exception class, message)
  PyObject* class_and_text;
  PyObject* known_places;    // dict: backtrace -> what find_places said
  PyObject* find_places;     // (backtrace) -> ((frame, line), ...), most recent call first
  PyObject* release_frames;  // (exception, backtrace): its frames no longer hold their locals

  // Other libraries.
  PyObject* dtype_of_torch;  // (torch.dtype) -> dtype, or KeyError
  PyObject* dtype_of_numpy;  // (numpy.dtype) -> dtype, or KeyError
  PyObject* prepare_torch;   // (): improve a loaded torch; the address of the add-on's API or None
};
extern PythonHooks hooks;

// After the wrapper types.
int InitPythonHooks(PyObject* module);

}  // namespace tether_py
#endif  // TETHER_PYTHON_WRAP_PYTHON_HOOKS_H_
