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

#include "python/wrap/arguments.h"
#include "python/wrap/class_records.h"

namespace tether_py {

// ---- Python -> Any ----

// For classes of wrappers that need nothing else.
bool SetWrapper(PyObject* obj, TVMFFIAny* out, Arguments* args);

// Whether `obj` is known to be converted by SetWrapper, so that its handle is all there is to it.
inline bool IsPlainWrapper(PyObject* obj) {
  const ClassRecord* record = FindRecent(Py_TYPE(obj));
  return record != nullptr && record->SetterNow() == SetWrapper;
}

// For a class that is not in that table.
bool ToAnySlow(PyObject* obj, TVMFFIAny* out, Arguments* args);

// One borrowed value; temporaries go to `args`. False with an error set.
inline bool ToAny(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  const ClassRecord* record = FindRecent(Py_TYPE(obj));
  return (TVM_FFI_PREDICT_TRUE(record != nullptr) ? record->SetterNow() : ToAnySlow)(obj, out,
                                                                                     args);
}

// The most frequent kind of argument. False if it is of another kind.
inline bool ToCompactInt(PyObject* obj, TVMFFIAny* out) {
  int64_t value;
  if (!PyLong_CheckExact(obj) || !LoadCompactInt(obj, &value)) return false;
  out->type_index = ffi::TypeIndex::kTVMFFIInt;
  out->zero_padding = 0;
  out->v_int64 = value;
  return true;
}

// ToAny with that handled in line.
inline bool ToAnyInline(PyObject* obj, TVMFFIAny* out, Arguments* args) {
  return ToCompactInt(obj, out) || ToAny(obj, out, args);
}

// The object of a wrapper. With the GIL it is borrowed, and TakeHandle protects the borrowing call;
// without it another thread may move it away at any time, so `args` gets a reference.
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

// The same in line, for a wrapper that was in use until now. False if it was not: SetWrapper finds
// out. With the GIL only.
inline bool StoreActive(PyObject* obj, TVMFFIAny* out) {
  uintptr_t handle = AsWrapper(obj)->handle.load(std::memory_order_relaxed);
  if (kFreeThreaded || TVM_FFI_PREDICT_FALSE(!tie::IsUsable(handle))) return false;
  tie::StoreObject(reinterpret_cast<TVMFFIObject*>(handle), out);
  return true;
}

inline bool Arguments::AddSelf(PyObject* self) {
  if (!StoreActive(self, inline_)) return false;
  size_ = 1;
  return true;
}

TVM_FFI_INLINE bool Arguments::AddAll(PyObject* const* args, Py_ssize_t n) {
  Py_ssize_t i = size_;
  if (!Reserve(n)) return false;
  TVMFFIAny* out = data_;
  for (; i < n; ++i) {
    if (ToCompactInt(args[i], out + i)) continue;
    const ClassRecord* record = FindRecent(Py_TYPE(args[i]));
    Setter setter = record != nullptr ? record->SetterNow() : ToAnySlow;
    if (setter == SetWrapper && StoreActive(args[i], out + i)) continue;
    size_ = static_cast<int32_t>(i);  // what is there so far must not go away meanwhile
    if (TVM_FFI_PREDICT_FALSE(!setter(args[i], out + i, this))) return false;
  }
  size_ = static_cast<int32_t>(n);
  return true;
}

// The arguments of a call that takes small integers and nothing else. They refer to nothing, so a
// call that keeps the GIL needs no place on the list of calls for them, and lets nothing go.
class IntArguments {
 public:
  // False if there are others, or many.
  TVM_FFI_INLINE bool Load(PyObject* const* args, Py_ssize_t n) {
    if (TVM_FFI_PREDICT_FALSE(n > kMost)) return false;
    for (Py_ssize_t i = 0; i < n; ++i) {
      if (TVM_FFI_PREDICT_FALSE(!ToCompactInt(args[i], &values_[i]))) return false;
    }
    return true;
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

// Everything that has a conversion of its own; the inline functions below come first.
PyObject* FromOwnedAnySlow(const TVMFFIAny& value, const DLPackExchangeAPI* api);
PyObject* FromBorrowedAnySlow(const TVMFFIAny& value, const DLPackExchangeAPI* api);

// Takes over an owned value. NULL with an error set. The first one is for the path of every call.
TVM_FFI_INLINE PyObject* FromOwnedAnyInline(const TVMFFIAny& value) {
  if (value.type_index >= ffi::TypeIndex::kTVMFFIDynObjectBegin) return WrapOwned(value.v_obj);
  if (value.type_index == ffi::TypeIndex::kTVMFFIInt) return PyLong_FromLongLong(value.v_int64);
  return FromOwnedAnySlow(value, nullptr);
}
inline PyObject* FromOwnedAny(const TVMFFIAny& value, const DLPackExchangeAPI* api = nullptr) {
  if (value.type_index >= ffi::TypeIndex::kTVMFFIDynObjectBegin) return WrapOwned(value.v_obj);
  if (value.type_index == ffi::TypeIndex::kTVMFFIInt) return PyLong_FromLongLong(value.v_int64);
  return FromOwnedAnySlow(value, api);
}
// A value somebody else owns: arguments of a callback, elements of a container.
inline PyObject* FromBorrowedAny(const TVMFFIAny& value, const DLPackExchangeAPI* api = nullptr) {
  if (value.type_index >= ffi::TypeIndex::kTVMFFIDynObjectBegin) return WrapBorrowed(value.v_obj);
  if (value.type_index == ffi::TypeIndex::kTVMFFIInt) return PyLong_FromLongLong(value.v_int64);
  return FromBorrowedAnySlow(value, api);
}

int InitKinds(PyObject* module);
// The setter of a class nobody has seen: finds the right one, records it and uses it.
bool FindSetter(PyObject* obj, TVMFFIAny* out, Arguments* args);

}  // namespace tether_py
#endif  // TETHER_PYTHON_CONVERT_CONVERT_H_
