// SPDX-License-Identifier: Apache-2.0
// What the wrappers of Array, List, Map and Dict share.
//
// Shared state:
//   a container              in a free-threaded build it is read and changed in the critical
//                            section of its wrapper.
//   an iterator              moves on in its own critical section, so threads that share one get
//                            each element whole.
//   the types of iterators   set at import, constant afterwards.
#ifndef TETHER_PYTHON_DATA_CONTAINER_BASE_H_
#define TETHER_PYTHON_DATA_CONTAINER_BASE_H_

#include "python/convert/convert.h"
#include "python/data/fields.h"
#include "python/wrap/notes.h"

namespace tether_py {

constexpr unsigned int kContainerFlags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;

// h if it is of one of two types. NULL with an error set; h may be NULL with one.
inline TVMFFIObject* CheckIs(PyObject* self, TVMFFIObject* h, int32_t index, int32_t other_index) {
  if (h == nullptr) return nullptr;
  if (TVM_FFI_PREDICT_FALSE(h->type_index != index && h->type_index != other_index)) {
    PyErr_Format(PyExc_TypeError, "%s object holds a `%s`", Py_TYPE(self)->tp_name,
                 TVMFFIGetTypeInfo(h->type_index)->type_key.data);
    return nullptr;
  }
  return h;
}

// The object behind a wrapper of a container class, to be used in its critical section. NULL with
// an error set when it is of another kind. One that wakes up may run Python code before: what is
// borrowed meanwhile has to be held.
inline TVMFFIObject* UseAs(PyObject* self, int32_t index, int32_t other_index) {
  return CheckIs(self, UseHandle(AsWrapper(self)), index, other_index);
}

// The framework whose tensors a container hands out, or NULL.
inline const DLPackExchangeAPI* TagOf(PyObject* self) {
  return Notes::Get<const DLPackExchangeAPI>(self);
}

inline ffi::ObjectPtr<ffi::Object> Hold(TVMFFIObject* h) {
  return ffi::details::ObjectUnsafe::ObjectPtrFromUnowned<ffi::Object>(h);
}

inline const TVMFFIAny& CellOf(const ffi::Any& any) {
  return *ffi::details::AnyUnsafe::TVMFFIAnyPtrFromAny(any);
}

// An element that is held while other code may change its container. Dropping it may run any code,
// so an exception is set aside for that.
class HeldElement {
 public:
  HeldElement() = default;
  HeldElement(const HeldElement&) = delete;
  HeldElement& operator=(const HeldElement&) = delete;
  ~HeldElement() {
    if (TVM_FFI_PREDICT_TRUE(PyErr_Occurred() == nullptr)) return;
    ErrorAside failure;
    value_.reset();
  }
  void Hold(const ffi::Any& value) { value_ = value; }
  bool Is(const ffi::Any& other) const { return value_.same_as(other); }
  PyObject* ToPython(PyObject* container) const {
    return FromBorrowedAny(CellOf(value_), TagOf(container));
  }

 private:
  ffi::Any value_;
};

// What is put into a container: an element or a value, a key, or a list of elements.
enum class Put { kElement, kKey, kList };

TVM_FFI_NO_INLINE inline PyObject* ConvertElement(const Field* field, Put put, PyObject* value) {
  return PyObject_CallFunction(field->convert_element, "iO", static_cast<int>(put), value);
}

// `value` as the container takes it, which is nearly always as it is. `owner` keeps a converted
// one. False with an error set.
inline bool FitElement(PyObject* self, Put put, PyObject** value, Ref* owner) {
  const auto* field = ElementNotes::Get<const Field>(self);
  if (TVM_FFI_PREDICT_TRUE(field == nullptr)) return true;
  if (put == Put::kElement && Py_TYPE(*value) == field->element_class) return true;
  *owner = Ref::Steal(ConvertElement(field, put, *value));
  *value = owner->get();
  return *value != nullptr;
}

// The base class and those below it.
int InitContainerTypes(PyObject* module);

}  // namespace tether_py
#endif  // TETHER_PYTHON_DATA_CONTAINER_BASE_H_
