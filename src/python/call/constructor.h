// SPDX-License-Identifier: Apache-2.0
// C++ constructors of classes that Python calls.
#ifndef TETHER_PYTHON_CALL_CONSTRUCTOR_H_
#define TETHER_PYTHON_CALL_CONSTRUCTOR_H_

#include <atomic>

#include "python/wrap/sentinels.h"
#include "python/wrap/wrapper.h"

namespace tether_py {

// Never freed, like its class.
struct Constructor {
  PyTypeObject* cls;
  PyObject* init;       // what __init__ must be: the Initializer
  PyObject* in_python;  // what it stands for
  PyObject* type_info;  // what __tvm_ffi_type_info__ must be, or None
  TVMFFIObject* func;
  bool takes_keywords;  // in the form KWARGS, name, value, ...
  PyObject* names;      // of the positions: a tuple, empty if they have none
  PyObject* defaults;   // as many, MISSING where there is none; or empty: C++ knows them
  Py_ssize_t num_defaults;
  // The version of the class that was last found to be as above; 0 for none.
  std::atomic<unsigned int> version{0};
};

// Interned: __init__ and __tvm_ffi_type_info__.
extern PyObject* init_name;
extern PyObject* info_name;

// From now on calls of the class go to this constructor. Takes it over. Throws.
void AddConstructor(Constructor* constructor);

// Makes the object and binds it to `self`, then returns None; without a `self`, to a new wrapper.
PyObject* ConstructFrom(Constructor* constructor, Wrapper* self, PyObject* const* args,
                        Py_ssize_t nargs);
// The same where keywords and defaults have to be put into their positions first.
TVM_FFI_NO_INLINE PyObject* ConstructSlowly(Constructor* constructor, Wrapper* self,
                                            PyObject* const* args, Py_ssize_t nargs,
                                            PyObject* kwnames);

// Whether the arguments are in C++'s order: no keywords, or keywords that continue the
// positional arguments in order. Not where one of them is MISSING: that asks for the default. A
// name that is found is interned, as the constructor's are; others are left to the slower way.
inline bool AreInOrder(const Constructor* constructor, PyObject* const* args, Py_ssize_t nargs,
                       PyObject* kwnames) {
  if (TVM_FFI_PREDICT_TRUE(kwnames == nullptr)) return nargs >= constructor->num_defaults;
  Py_ssize_t total = nargs + PyTuple_GET_SIZE(kwnames);
  if (total < constructor->num_defaults) return false;
  if (total == nargs) return true;  // no keywords after all
  if (total > PyTuple_GET_SIZE(constructor->names)) return false;
  for (Py_ssize_t i = nargs; i < total; ++i) {
    bool is_here = PyTuple_GET_ITEM(constructor->names, i) == PyTuple_GET_ITEM(kwnames, i - nargs);
    if (!is_here || args[i] == sentinels.missing) return false;
  }
  return true;
}

// The same for any arguments; those in order take the short way.
inline PyObject* ConstructAny(Constructor* constructor, Wrapper* self, PyObject* const* args,
                              Py_ssize_t nargs, PyObject* kwnames) {
  if (TVM_FFI_PREDICT_FALSE(!AreInOrder(constructor, args, nargs, kwnames))) {
    return ConstructSlowly(constructor, self, args, nargs, kwnames);
  }
  if (kwnames != nullptr) nargs += PyTuple_GET_SIZE(kwnames);
  return ConstructFrom(constructor, self, args, nargs);
}

// The method __init_handle_by_constructor__ of every wrapper.
PyObject* InitHandleByConstructor(PyObject* self, PyObject* const* args, Py_ssize_t nargs);

int InitConstructors(PyObject* module);

}  // namespace tether_py
#endif  // TETHER_PYTHON_CALL_CONSTRUCTOR_H_
