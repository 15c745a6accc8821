// SPDX-License-Identifier: Apache-2.0
// The boundary for C++ exceptions: none may leave a function that CPython calls.
//
//   PyMethodDef methods[] = {{"size", Entry<GetSize>, METH_NOARGS, nullptr}, ...};
//   PyType_Slot slots[] = {{Py_tp_repr, Slot<Repr>()}, ...};
//
// Every function in such a table goes through Entry, even one that does not throw today. The
// exceptions are tp_traverse, tp_clear, tp_finalize and tp_dealloc: CPython lets them report
// nothing, so they do not allocate, or do without what they could not allocate.
#ifndef TETHER_PYTHON_BASE_ENTRY_H_
#define TETHER_PYTHON_BASE_ENTRY_H_

#include <type_traits>

#include "python/base/compat.h"

namespace tether_py {

// Both are defined in convert/errors.cc, which knows what a C++ exception becomes in Python.
// In a catch block: takes what was caught, and says whether it is an FFI error.
bool TakeCaught();
// After the catch block, which has then let go of the error: raises in Python what was taken.
void RaiseTaken(bool is_ffi_error);

template <auto F>
struct EntryOf;

template <typename R, typename... Args, R (*F)(Args...)>
struct EntryOf<F> {
  static R Call(Args... args) {
    bool is_ffi_error;
    try {
      return F(args...);
    } catch (...) {
      is_ffi_error = TakeCaught();
    }
    RaiseTaken(is_ffi_error);
    if constexpr (std::is_pointer_v<R>) {
      return nullptr;
    } else if constexpr (std::is_same_v<R, bool>) {
      return false;
    } else {
      return -1;
    }
  }
};

template <auto F>
inline constexpr auto Entry = &EntryOf<F>::Call;

template <auto F>
void* Slot() {
  return reinterpret_cast<void*>(&EntryOf<F>::Call);
}

// For METH_FASTCALL and METH_KEYWORDS, which have other arguments.
template <auto F>
PyCFunction EntryOfAnyKind() {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&EntryOf<F>::Call));
}

// The same for a part of a function: calls f().
template <typename F>
PyObject* Guarded(F&& f) {
  bool is_ffi_error;
  try {
    return f();
  } catch (...) {
    is_ffi_error = TakeCaught();
  }
  RaiseTaken(is_ffi_error);
  return nullptr;
}

}  // namespace tether_py
#endif  // TETHER_PYTHON_BASE_ENTRY_H_
