// SPDX-License-Identifier: Apache-2.0
// Memory of dead wrappers, for the next ones.
#ifndef TETHER_PYTHON_WRAP_WRAPPER_MEMORY_H_
#define TETHER_PYTHON_WRAP_WRAPPER_MEMORY_H_

#include "python/base/compat.h"

namespace tether_py {

// Blocks of one size, with the collector's header in front. The collector counts them as alive
// meanwhile, as it does CPython's own free lists. In GIL builds only.
class WrapperMemory {
 public:
  static constexpr bool kEnabled = !kFreeThreaded;

  // An object of class `cls` that the collector does not know yet; NULL if there is no memory kept.
  static PyObject* Take(PyTypeObject* cls, size_t size) {
    PyObject* obj = first_;
    if (!kEnabled || obj == nullptr) return nullptr;
    first_ = Next(obj);
    --length_;
    __builtin_memset(reinterpret_cast<void**>(obj) - 2, 0, 2 * sizeof(void*) + size);
    return PyObject_Init(obj, cls);
  }
  // False if the caller must free it.
  static bool Give(PyObject* obj) {
    if (!kEnabled || length_ == kMaxLength) return false;
    Next(obj) = first_;
    first_ = obj;
    ++length_;
    return true;
  }

 private:
  static constexpr int kMaxLength = 256;
  static PyObject*& Next(PyObject* obj) { return *reinterpret_cast<PyObject**>(obj); }
  static inline PyObject* first_ = nullptr;
  static inline int length_ = 0;
};

}  // namespace tether_py
#endif  // TETHER_PYTHON_WRAP_WRAPPER_MEMORY_H_
