// SPDX-License-Identifier: Apache-2.0
// FFIProperty: a field as a property of a class.
#ifndef TETHER_PYTHON_DATA_FIELD_PROPERTY_H_
#define TETHER_PYTHON_DATA_FIELD_PROPERTY_H_

#include "python/data/fields.h"

namespace tether_py {

// FFIProperty: a `property` whose field, when it has one, is read and written without calling fget
// and fset. What it adds to a property lies behind it.
struct PropertyExtra {
  Field* field;     // NULL for a property that Python code made
  PyObject* write;  // writes the field whether or not it is read-only; NULL if nothing can
  PyObject* doc;
  bool writable;       // by assignment
  bool assigns_field;  // and that writes the field and does nothing else
};

inline PropertyExtra* ExtraOf(PyObject* self) {
  return reinterpret_cast<PropertyExtra*>(reinterpret_cast<char*>(self) +
                                          PyProperty_Type.tp_basicsize);
}

int InitFieldProperty(PyObject* module);

}  // namespace tether_py
#endif  // TETHER_PYTHON_DATA_FIELD_PROPERTY_H_
