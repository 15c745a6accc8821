// SPDX-License-Identifier: Apache-2.0
// FieldGetter and FieldSetter: callables that read and write a field.
#ifndef TETHER_PYTHON_DATA_FIELD_ACCESSORS_H_
#define TETHER_PYTHON_DATA_FIELD_ACCESSORS_H_

#include "python/data/fields.h"

namespace tether_py {

// FieldGetter and FieldSetter: callables that can be named and documented like functions.
struct AccessorObject {
  PyObject_HEAD Field* field;
  PyObject* dict;
};

// Of a FieldGetter or FieldSetter.
inline Field* FieldOf(PyObject* accessor) {
  return reinterpret_cast<AccessorObject*>(accessor)->field;
}

// A FieldGetter and a FieldSetter. NULL with an error set.
PyObject* MakeFieldGetter(Field* field);
PyObject* MakeFieldSetter(Field* field);

int InitFieldAccessors(PyObject* module);

}  // namespace tether_py
#endif  // TETHER_PYTHON_DATA_FIELD_ACCESSORS_H_
