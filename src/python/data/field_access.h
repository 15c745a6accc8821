// SPDX-License-Identifier: Apache-2.0
// Reading and writing fields of C++ objects. A field whose memory says what it holds is read and
// written in place; any other one goes through its getter and setter.
#ifndef TETHER_PYTHON_DATA_FIELD_ACCESS_H_
#define TETHER_PYTHON_DATA_FIELD_ACCESS_H_

#include <cstring>

#include "python/convert/convert.h"
#include "python/data/fields.h"

namespace tether_py {

// The field of any object. NULL with an error set.
PyObject* ReadField(const Field& field, PyObject* obj);
// -1 with an error set.
int WriteField(const Field& field, PyObject* obj, PyObject* value);

// ---- the frequent cases, inline

template <typename T>
T Load(const char* address) {
  T value;
  std::memcpy(&value, address, sizeof(T));  // NOLINT(bugprone-sizeof-expression): also of pointers
  return value;
}

// After a setter failed. -1 with an error set.
int RaiseFromSetter(int code, const Field& field, PyObject* value);

// What a pointer in a field refers to. NULL with an error set.
PyObject* ReadObject(const char* address);

// ReadField for the two kinds of field that matter most, in the usual case: a
// leaf function, which saves and restores nothing. `obj` is a wrapper. In a free-threaded build
// ReadField takes a critical section.
inline PyObject* ReadQuickly(const Field& field, PyObject* obj) {
  if (kFreeThreaded) return ReadField(field, obj);
  uintptr_t handle = AsWrapper(obj)->handle.load(std::memory_order_relaxed);
  if (TVM_FFI_PREDICT_FALSE(!tie::IsUsable(handle))) return ReadField(field, obj);
  auto* h = reinterpret_cast<TVMFFIObject*>(handle);
  if (h->type_index != field.type_index) return ReadField(field, obj);
  const char* address = reinterpret_cast<char*>(h) + field.info.offset;
  if (field.kind == FieldKind::kInt64) return IntFromInt64(Load<int64_t>(address));
  if (field.kind != FieldKind::kObject) return ReadField(field, obj);
  auto* child = Load<TVMFFIObject*>(address);
  if (child == nullptr || child->type_index < ffi::TypeIndex::kTVMFFIDynObjectBegin) {
    return ReadObject(address);
  }
  Wrapper* w = Engine::FetchLive(child);  // WrapBorrowed, certain to be inlined
  return TVM_FFI_PREDICT_TRUE(w != nullptr) ? AsObject(w) : WrapBorrowedSlow(child);
}

// The setter of a field of objects, for a value whose object is borrowed as it is.
inline int WriteObject(const Field& field, PyObject* obj, char* address, PyObject* value) {
  if (!IsPlainWrapper(value)) return WriteField(field, obj, value);
  uintptr_t handle = AsWrapper(value)->handle.load(std::memory_order_relaxed);
  if (TVM_FFI_PREDICT_FALSE(!tie::IsUsable(handle))) return WriteField(field, obj, value);
  TVMFFIAny converted;
  tie::StoreObject(reinterpret_cast<TVMFFIObject*>(handle), &converted);
  // For the message, in memory: in registers they would cost every call twice as much.
  const Field* volatile kept_field = &field;
  PyObject* volatile kept_value = value;
  int code = reinterpret_cast<TVMFFIFieldSetter>(field.info.setter)(address, &converted);
  if (TVM_FFI_PREDICT_TRUE(code == 0)) return 0;
  return RaiseFromSetter(code, *kept_field, kept_value);
}

// The same for WriteField, of an int or an object. In GIL builds only.
TVM_FFI_INLINE int WriteQuickly(const Field& field, PyObject* obj, PyObject* value) {
  uintptr_t handle = AsWrapper(obj)->handle.load(std::memory_order_relaxed);
  if (TVM_FFI_PREDICT_FALSE(!tie::IsUsable(handle))) return WriteField(field, obj, value);
  auto* h = reinterpret_cast<TVMFFIObject*>(handle);
  if (TVM_FFI_PREDICT_FALSE(h->type_index != field.type_index)) {
    return WriteField(field, obj, value);
  }
  char* address = reinterpret_cast<char*>(h) + field.info.offset;
  int64_t number;
  if (field.kind == FieldKind::kInt64) {
    bool is_plain = field.plain_write && PyLong_CheckExact(value) && LoadCompactInt(value, &number);
    if (TVM_FFI_PREDICT_FALSE(!is_plain)) return WriteField(field, obj, value);
    std::memcpy(address, &number, sizeof(number));
    return 0;
  }
  return field.sets_object ? WriteObject(field, obj, address, value)
                           : WriteField(field, obj, value);
}

}  // namespace tether_py
#endif  // TETHER_PYTHON_DATA_FIELD_ACCESS_H_
