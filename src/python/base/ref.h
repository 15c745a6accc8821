// SPDX-License-Identifier: Apache-2.0
// References to Python objects.
#ifndef TETHER_PYTHON_BASE_REF_H_
#define TETHER_PYTHON_BASE_REF_H_

#include <atomic>
#include <cstddef>

#include "python/base/compat.h"

namespace tether_py {

// An owned reference.
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}  // NOLINT(*)
  static Ref Steal(PyObject* obj) {
    Ref ref;
    ref.obj_ = obj;
    return ref;
  }
  static Ref Borrow(PyObject* obj) { return Steal(Py_XNewRef(obj)); }
  Ref(Ref&& other) noexcept : obj_(other.obj_) { other.obj_ = nullptr; }
  Ref(const Ref& other) : obj_(Py_XNewRef(other.obj_)) {}
  Ref& operator=(Ref other) noexcept {
    PyObject* old = obj_;
    obj_ = other.obj_;
    other.obj_ = old;
    return *this;
  }
  ~Ref() { Py_XDECREF(obj_); }
  PyObject* get() const { return obj_; }
  PyObject* release() {
    PyObject* obj = obj_;
    obj_ = nullptr;
    return obj;
  }
  explicit operator bool() const { return obj_ != nullptr; }

 private:
  PyObject* obj_ = nullptr;
};

// A Python object looked up on first use and kept for good. find() returns a new reference, or NULL
// with an error set. FindOnce itself returns a borrowed one.
template <typename Find>
PyObject* FindOnce(std::atomic<PyObject*>* cache, Find&& find) {
  PyObject* found = cache->load(std::memory_order_acquire);
  if (found != nullptr) return found;
  PyObject* made = find();
  if (made == nullptr) return nullptr;
  if (cache->compare_exchange_strong(found, made, std::memory_order_acq_rel)) return made;
  Py_DECREF(made);  // another thread was faster
  return found;
}

}  // namespace tether_py
#endif  // TETHER_PYTHON_BASE_REF_H_
