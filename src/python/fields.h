// SPDX-License-Identifier: Apache-2.0
// A reflected field as the frontend keeps it. Lives for ever, like the type it belongs to.
#ifndef TETHER_PYTHON_FIELDS_H_
#define TETHER_PYTHON_FIELDS_H_

#include <atomic>
#include <string>

#include "wrapper.h"

namespace tether_py {

// How a field is read: from memory that says what it holds, or by its getter.
enum class FieldKind : uint8_t { kGetter, kInt64, kInt, kBool, kFloat64, kFloat32, kAny, kObject };

struct Field {
  TVMFFIFieldInfo info;
  int32_t type_index;  // the type that declares it
  std::string name;
  std::string type_key;
  FieldKind kind = FieldKind::kGetter;  // set by MakeFieldGetter
  // Exact ints, floats and bools are stored in place, as the setter would.
  bool plain_write = false;
  bool sets_object = false;  // by a plain C function; set by MakeFieldSetter
  // The class of the last object seen, known to be a wrapper. Owned: a class that died could come
  // back as another one at the same address.
  mutable std::atomic<PyTypeObject*> last_class{nullptr};
};

PyObject* MakeFieldGetter(Field* field);
PyObject* MakeFieldSetter(Field* field);
// Lets the attributes of a class of wrappers be looked up by the functions of fields.cc.
void InstallFieldAccess(PyTypeObject* cls);

}  // namespace tether_py
#endif  // TETHER_PYTHON_FIELDS_H_
