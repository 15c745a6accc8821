// SPDX-License-Identifier: Apache-2.0
// The Python class of each C++ type.
#ifndef TETHER_PYTHON_WRAP_CLASS_TABLE_H_
#define TETHER_PYTHON_WRAP_CLASS_TABLE_H_

#include <tvm/ffi/base_detail.h>

#include <atomic>

#include "python/base/compat.h"

namespace tether_py {

// For a type that has no class yet: the Python part makes one (hooks.make_class). Borrowed; NULL
// with an error set.
PyTypeObject* MakeClassOfIndex(int32_t type_index);
// Throws bad_alloc.
void SetClassOfIndex(int32_t type_index, PyTypeObject* cls, bool is_python_defined = false);

// Read without a lock. It grows by copying, and an old table stays for readers that still have it:
// as sizes double, all of them together are no bigger than the last.
struct ClassTable {
  size_t size;
  std::atomic<PyTypeObject*>* classes;
};
extern std::atomic<const ClassTable*> class_table;

// The class of the wrappers of a type. NULL without error when there is none.
inline PyTypeObject* FindClassOfIndex(int32_t type_index) {
  const ClassTable* table = class_table.load(std::memory_order_acquire);
  if (static_cast<size_t>(type_index) >= table->size) return nullptr;  // negative ones too
  return table->classes[type_index].load(std::memory_order_acquire);
}
// The same, made if there is none. NULL with an error set.
inline PyTypeObject* ClassOfIndex(int32_t type_index) {
  PyTypeObject* cls = FindClassOfIndex(type_index);
  return TVM_FFI_PREDICT_TRUE(cls != nullptr) ? cls : MakeClassOfIndex(type_index);
}

int InitClassTable(PyObject* module);

}  // namespace tether_py
#endif  // TETHER_PYTHON_WRAP_CLASS_TABLE_H_
