// SPDX-License-Identifier: Apache-2.0
// A reflected field as the frontend keeps it: one for each field of a type. Like types, they are
// never freed.
#ifndef TETHER_PYTHON_DATA_FIELDS_H_
#define TETHER_PYTHON_DATA_FIELDS_H_

#include <atomic>
#include <string>

#include "core/field_kind.h"
#include "python/wrap/wrapper.h"

namespace tether_py {

using ffi::tether::FieldKind;

struct Field {
  TVMFFIFieldInfo info;
  int32_t type_index;  // the type that declares it
  std::string name;
  std::string type_key;
  FieldKind kind;
  // Exact ints, floats and bools are stored in place, as the setter would.
  bool plain_write;
  bool sets_object;  // of kind kObject, with a setter that is a C function
  // The class of the last object seen, known to be a wrapper. Borrowed (class_records.h).
  mutable std::atomic<PyTypeObject*> last_class;
  const Field* next;  // of all fields
  // Of a container whose elements have a type, written before any object is read: a function of
  // Python that converts what is put into the container. `kind` is then kGetter.
  PyObject* convert_element = nullptr;
  PyTypeObject* element_class = nullptr;  // whose instances need no conversion; may be NULL
  bool is_pointer = false;                // of such a field, read in place
};

// The i-th field that a type declares. `keeps_plain_values`: its setter is a function object, but
// need not be called for exact ints, floats and bools, which it stores unchanged.
Field* FieldOfType(const TVMFFITypeInfo* type, int32_t i, bool keeps_plain_values = false);
void ForgetInFields(PyTypeObject* cls);  // which is dead or dying

}  // namespace tether_py
#endif  // TETHER_PYTHON_DATA_FIELDS_H_
