// SPDX-License-Identifier: Apache-2.0
// Values across the boundary: Python -> Any (arguments) and Any -> Python (results).
//
// This is the contract. What the kinds of values are, and in which order a Python value is asked
// what it is, is defined in kinds/, which knows all of them.
#ifndef TETHER_PYTHON_CONVERT_CONVERT_H_
#define TETHER_PYTHON_CONVERT_CONVERT_H_

#include <tvm/ffi/any.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/extra/c_env_api.h>

#include "python/base/python_api.h"
#include "python/wrap/arguments.h"
#include "python/wrap/class_records.h"

namespace tether_py {

// ---- Python -> Any ----

// The setter of wrapper classes that need only their handle.
bool SetWrapper(PyObject* obj, TVMFFIAny* out, Arguments* args);

// Whether `obj` is known to be converted by SetWrapper, so that its handle is all there is to it.
inline bool IsPlainWrapper(PyObject* obj) {
  const ClassRecord* record = FindRecent(Py_TYPE(obj));
  return record != nullptr && record->SetterNow() == SetWrapper;
}

// For a class that is not among the recent ones (class_records.h).
bool ToAnySlow(PyObject* obj, TVMFFIAny* out, Arguments* args);

// One borrowed value; temporaries go to `args`. False with an error set.
inline bool ToAny(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  const ClassRecord* record = FindRecent(Py_TYPE(obj));
  return (TVM_FFI_PREDICT_TRUE(record != nullptr) ? record->SetterNow() : ToAnySlow)(obj, out,
                                                                                     args);
}

// An exact int. False if it is a large one.
inline bool StoreCompactInt(PyObject* obj, TVMFFIAny* out) {
  int64_t value;
  if (!LoadCompactInt(obj, &value)) return false;
  out->type_index = ffi::TypeIndex::kTVMFFIInt;
  out->zero_padding = 0;
  out->v_int64 = value;
  return true;
}

// The most frequent kind of argument. False if it is of another kind.
inline bool ToCompactInt(PyObject* obj, TVMFFIAny* out) {
  return PyLong_CheckExact(obj) && StoreCompactInt(obj, out);
}

// ToAny, with small ints handled inline.
inline bool ToAnyInline(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  return ToCompactInt(obj, out) || ToAny(obj, out, args);
}

// The object of a wrapper. In a GIL build it is borrowed, and TakeHandle protects the borrowing
// call; in a free-threaded one another thread may move it away at any time, so `args` gets a
// reference.
inline bool StoreWrapper(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  TVMFFIObject* h = kFreeThreaded ? HoldHandle(AsWrapper(obj)) : UseHandle(AsWrapper(obj));
  if (TVM_FFI_PREDICT_FALSE(h == nullptr)) return false;
  tie::StoreObject(h, out);
  if (kFreeThreaded) args->Keep(h);
  return true;
}

inline bool Arguments::Add(PyObject* arg) {
  if (TVM_FFI_PREDICT_FALSE(!ToAnyInline(arg, &data_[size_], this))) return false;
  ++size_;
  return true;
}

// The object of an active wrapper, to be borrowed. NULL, and no error, if the wrapper is in another
// state: SetWrapper deals with that. In GIL builds only.
inline TVMFFIObject* ActiveObject(PyObject* obj) {
  uintptr_t handle = AsWrapper(obj)->handle.load(std::memory_order_relaxed);
  if (kFreeThreaded || TVM_FFI_PREDICT_FALSE(!tie::IsUsable(handle))) return nullptr;
  if (handle == 0) TVM_FFI_UNREACHABLE();  // "no object" has a tag
  return reinterpret_cast<TVMFFIObject*>(handle);
}

inline void Arguments::AddSelf(TVMFFIObject* self) {
  tie::StoreObject(self, inline_);
  size_ = 1;
}

template <Py_ssize_t kFirst>
TVM_FFI_INLINE bool Arguments::AddFrom(PyObject* const* args, Py_ssize_t n) {
  if (!Reserve(n)) return false;
  TVMFFIAny* out = data_;
  for (Py_ssize_t i = kFirst; i < n; ++i) {
    if (ToCompactInt(args[i], out + i)) continue;
    const ClassRecord* record = FindRecent(Py_TYPE(args[i]));
    Setter setter = record != nullptr ? record->SetterNow() : ToAnySlow;
    if (setter == SetWrapper) {
      if (TVMFFIObject* h = ActiveObject(args[i])) {
        tie::StoreObject(h, out + i);
        continue;
      }
    }
    size_ = static_cast<int32_t>(i);  // what is there so far must not go away meanwhile
    if (TVM_FFI_PREDICT_FALSE(!setter(args[i], out + i, this))) return false;
  }
  size_ = static_cast<int32_t>(n);
  return true;
}

TVM_FFI_INLINE bool Arguments::AddAll(PyObject* const* args, Py_ssize_t n) {
  return AddFrom<0>(args, n);
}

TVM_FFI_INLINE bool Arguments::AddAllAfterSelf(PyObject* const* args, Py_ssize_t n) {
  return AddFrom<1>(args, n);
}

// The arguments of a call that takes small integers and nothing else. They refer to nothing, so a
// call that keeps the GIL needs no place on the list of calls for them, and lets nothing go.
class IntArguments {
 public:
  // False if there are others, or many.
  TVM_FFI_INLINE bool Load(PyObject* const* args, Py_ssize_t n) {
    return n == 0 || (PyLong_CheckExact(args[0]) && LoadAfterCheck(args, n));
  }
  // The same where the first one is known to be an exact int.
  TVM_FFI_INLINE bool LoadAfterCheck(PyObject* const* args, Py_ssize_t n) {
    if (TVM_FFI_PREDICT_FALSE(n > kMost)) return false;
    for (Py_ssize_t i = 0;;) {
      if (TVM_FFI_PREDICT_FALSE(!StoreCompactInt(args[i], &values_[i]))) return false;
      if (++i == n) return true;
      if (TVM_FFI_PREDICT_FALSE(!PyLong_CheckExact(args[i]))) return false;
    }
  }
  TVMFFIAny* data() { return values_; }

 private:
  static constexpr Py_ssize_t kMost = 4;
  TVMFFIAny values_[kMost];
};

// One owned value. False with an error set. `nested_in`: of a container that is built for a call,
// which learns what the value says about the call's context.
bool ToOwnedAny(PyObject* obj, ffi::Any* out, Arguments* nested_in = nullptr);
// The converted elements of an iterable; `inside` learns what they say about the call's context.
// False with an error set; throws what C++ throws.
bool ArrayFromItems(PyObject* items, ffi::Array<ffi::Any>* out, Arguments* inside);

// ---- Any -> Python ----

// `api`: tensors become tensors of that framework, and containers will hand out such tensors.

// The general case; call the inline functions below instead.
PyObject* FromOwnedAnySlow(const TVMFFIAny& value, const DLPackExchangeAPI* api);
PyObject* FromBorrowedAnySlow(const TVMFFIAny& value, const DLPackExchangeAPI* api);
PyObject* FromArgumentSlow(const TVMFFIAny& value, const DLPackExchangeAPI* api);

// Takes over an owned value. NULL with an error set.
inline PyObject* FromOwnedAny(const TVMFFIAny& value, const DLPackExchangeAPI* api = nullptr) {
  if (value.type_index >= ffi::TypeIndex::kTVMFFIDynObjectBegin) return WrapOwned(value.v_obj);
  if (value.type_index == ffi::TypeIndex::kTVMFFIInt) return IntFromInt64(value.v_int64);
  return FromOwnedAnySlow(value, api);
}
// A value somebody else owns, such as an element of a container.
inline PyObject* FromBorrowedAny(const TVMFFIAny& value, const DLPackExchangeAPI* api = nullptr) {
  if (value.type_index >= ffi::TypeIndex::kTVMFFIDynObjectBegin) return WrapBorrowed(value.v_obj);
  if (value.type_index == ffi::TypeIndex::kTVMFFIInt) return IntFromInt64(value.v_int64);
  return FromBorrowedAnySlow(value, api);
}
// The same of an argument of a callback. It alone may be a tensor that is only lent, because the
// callback takes that back at its end.
inline PyObject* FromArgument(const TVMFFIAny& value, const DLPackExchangeAPI* api = nullptr) {
  if (value.type_index >= ffi::TypeIndex::kTVMFFIDynObjectBegin) return WrapBorrowed(value.v_obj);
  if (value.type_index == ffi::TypeIndex::kTVMFFIInt) return IntFromInt64(value.v_int64);
  return FromArgumentSlow(value, api);
}

}  // namespace tether_py
#endif  // TETHER_PYTHON_CONVERT_CONVERT_H_
