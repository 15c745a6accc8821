// SPDX-License-Identifier: Apache-2.0
// Data that only a few wrappers have.
#ifndef TETHER_PYTHON_WRAP_NOTES_H_
#define TETHER_PYTHON_WRAP_NOTES_H_

#include <tvm/ffi/base_detail.h>

#include "python/base/locks.h"

namespace tether_py {

// A pointer associated with a wrapper, stored outside it so that every wrapper stays small.
template <int kKind>
class NotesOf {
 public:
  template <typename T>
  static T* Get(PyObject* wrapper) {
    bool are_any = count_.load(std::memory_order_relaxed) != 0;
    return TVM_FFI_PREDICT_FALSE(are_any) ? static_cast<T*>(Find(wrapper)) : nullptr;
  }
  static bool Set(PyObject* wrapper, const void* note);  // false with MemoryError set
  static void Forget(PyObject* wrapper) {
    if (TVM_FFI_PREDICT_FALSE(count_.load(std::memory_order_relaxed) != 0)) Erase(wrapper);
  }

 private:
  static void* Find(PyObject* wrapper);
  static void Erase(PyObject* wrapper);
  static inline std::atomic<size_t> count_{0};
};

// For a container the framework whose tensors it hands out, for a tensor that C++ lends to a
// callback that tensor.
using Notes = NotesOf<0>;
// For a container the field it was read from, if that says what its elements are.
using ElementNotes = NotesOf<1>;

}  // namespace tether_py
#endif  // TETHER_PYTHON_WRAP_NOTES_H_
