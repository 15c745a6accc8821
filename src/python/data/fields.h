// SPDX-License-Identifier: Apache-2.0
// A reflected field as the frontend keeps it: one for each field of a type, for ever like the type.
#ifndef TETHER_PYTHON_DATA_FIELDS_H_
#define TETHER_PYTHON_DATA_FIELDS_H_

#include <atomic>
#include <string>

#include "python/wrap/wrapper.h"

namespace tether_py {

// How a field is read: from memory that says what it holds, or by its getter.
enum class FieldKind : uint8_t { kGetter, kInt64, kInt, kBool, kFloat64, kFloat32, kAny, kObject };

struct Field {
  TVMFFIFieldInfo info;
  int32_t type_index;  // the type that declares it
  std::string name;
  std::string type_key;
  FieldKind kind;
  // Exact ints, floats and bools are stored in place, as the setter would.
  bool plain_write;
  bool sets_object;  // by a plain C function
  // The class of the last object seen, known to be a wrapper. Borrowed (class_watch.h).
  mutable std::atomic<PyTypeObject*> last_class;
  const Field* next;  // of all fields
};

// The i-th field that a type declares.
Field* FieldOfType(const TVMFFITypeInfo* type, int32_t i);
PyObject* MakeFieldGetter(Field* field);
PyObject* MakeFieldSetter(Field* field);
int InitFieldTypes(PyObject* module);
void ForgetInFields(PyTypeObject* cls);  // which is dead or dying
// Lets the attributes of a class of wrappers be looked up by the functions of fields.cc.
void InstallFieldAccess(PyTypeObject* cls, bool is_python_defined);

}  // namespace tether_py
#endif  // TETHER_PYTHON_DATA_FIELDS_H_
