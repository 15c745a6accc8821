// SPDX-License-Identifier: Apache-2.0
// The drop of a wrapper: its slots, and which classes have a fast one.
#ifndef TETHER_PYTHON_WRAP_DROP_H_
#define TETHER_PYTHON_WRAP_DROP_H_

#include "python/wrap/wrapper.h"

namespace tether_py {

// The slots tp_finalize, tp_clear and tp_dealloc of every wrapper.
void FinalizeWrapper(PyObject* self);
int ClearWrapper(PyObject* self);
void DeallocWrapper(PyObject* self);

// Lets instances of a class that adds nothing to a wrapper die without CPython's subtype_dealloc.
// `has_fields` says that the fields of the type are registered. With the lock of the class table
// held.
void InstallDealloc(PyTypeObject* cls, int32_t type_index, bool has_fields);

// Whether instances die without CPython's subtype_dealloc (InstallDealloc). Then the
// class has no state either.
inline bool UsesFastDealloc(PyTypeObject* cls) {
  if (cls->tp_dealloc == DeallocLeaf) return true;
  return cls->tp_dealloc == DeallocWrapper && !IsFunctionClass(cls);
}

// Whether a dormant wrapper can be hidden (hidden.h).
bool IsHidable(Wrapper* w);

// Classes whose instances are a wrapper and nothing else share their memory.
inline bool IsPlain(PyTypeObject* cls) {
  return UsesFastDealloc(cls) && cls->tp_basicsize == static_cast<Py_ssize_t>(sizeof(Wrapper));
}

}  // namespace tether_py
#endif  // TETHER_PYTHON_WRAP_DROP_H_
