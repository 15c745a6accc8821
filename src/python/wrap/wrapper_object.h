// SPDX-License-Identifier: Apache-2.0
// The fields of a wrapper, and what they mean in each of its states.
#ifndef TETHER_PYTHON_WRAP_WRAPPER_OBJECT_H_
#define TETHER_PYTHON_WRAP_WRAPPER_OBJECT_H_

#include <tvm/ffi/c_api.h>

#include <cstddef>
#include <vector>

#include "python/base/compat.h"
#include "tie/tie_word.h"

namespace tether_py {

namespace ffi = tvm::ffi;
namespace tie = tvm::ffi::tether;

// What the two fields mean in each state. W is the wrapper, H its C++ object.
// clang-format off
//
//   state     who holds whom          handle (tie/tie_word.h)   weakrefs                 tracked by gc
//   empty     nobody                  kEmpty                    list of weak references  unless of a leaf class
//   active    W holds H               H                         list of weak references  unless a leaf
//   dormant   H holds W               H | kDormant              list of weak references  see below
//   hidden    H holds W (dormant)     H | kDormant              2 * index + 1            no
//   gone      nobody, H has died      kGone, or a link of the   as it was when H died    as it was
//                                     reclaim list
//
// clang-format on
// A leaf (TrackLeaf) refers to nothing but its class, so the collector need not know it. A dormant
// wrapper is untracked when neither it nor H can be part of a ring. One that was part of a
// collection, could be part of a ring and has no weak references is hidden: only full collections
// look at it. `weakrefs` then tells its place in the list of hidden ones (hidden.cc); Unhide()
// restores the field before any other code reads it; for a wrapper that is gone, that is in its
// dealloc. In GIL builds only.
struct Wrapper {
  PyObject_HEAD tie::Handle handle;
  PyObject* weakrefs;
};
static_assert(sizeof(Wrapper) == sizeof(PyObject) + 16, "48 bytes with the collector's head");

struct FunctionWrapper {
  Wrapper base;
  PyObject* dict;
  vectorcallfunc vectorcall;
  vectorcallfunc call_with_self;       // the same for methods, whose args[0] is known to be a plain
                                       // wrapper; the number of arguments has no flag
  std::vector<TVMFFIObject*>* parked;  // functions that left this wrapper (TakeHandle), or NULL
  PyObject* origin;                    // what is known of the function (call/metadata.h), or NULL
  PyObject* parameters;                // the same of its parameters
  bool release_gil;                    // other Python threads run during a call
  bool walks;                          // locks its arguments itself (CallKeepingGIL)
};

inline Wrapper* AsWrapper(PyObject* obj) { return reinterpret_cast<Wrapper*>(obj); }
inline PyObject* AsObject(Wrapper* w) { return reinterpret_cast<PyObject*>(w); }

// Acquire: the last one may have just died on another thread, which wrote this list.
inline bool HasWeakRefs(Wrapper* w) {
  return __atomic_load_n(&w->weakrefs, __ATOMIC_ACQUIRE) != nullptr;
}

// The extension's types (object_class.cc); set once at import.
struct Types {
  PyTypeObject* object;     // CObject
  PyTypeObject* container;  // CContainerBase
  PyTypeObject* array;
  PyTypeObject* list;
  PyTypeObject* map;
  PyTypeObject* dict;
  PyTypeObject* opaque;
  PyTypeObject* error;
  PyTypeObject* function;
  PyTypeObject* tensor;
  PyTypeObject* string;
  PyTypeObject* rvalue_ref;
  PyTypeObject* field_getter;
  PyTypeObject* field_setter;
  PyTypeObject* converter;
  PyTypeObject* field_property;  // FFIProperty
};
extern Types types;

// Of the wrapper classes, only functions and their Python subclasses use the vectorcall protocol.
inline bool IsFunctionClass(PyTypeObject* cls) {
  return cls->tp_vectorcall_offset == offsetof(FunctionWrapper, vectorcall);
}

inline bool IsWrapper(PyObject* obj) { return PyObject_TypeCheck(obj, types.object); }

}  // namespace tether_py
#endif  // TETHER_PYTHON_WRAP_WRAPPER_OBJECT_H_
