// SPDX-License-Identifier: Apache-2.0
// Reading and writing fields of C++ objects.
//
// Shared state: none of its own. The memory of an object is read and written in the critical
// section of its wrapper; in a GIL build the GIL is enough.
#include "python/data/field_access.h"
#include "python/base/entry.h"

#include "core/kept_value.h"
#include "python/base/python_api.h"
#include "python/convert/errors.h"
#include "python/data/tensor.h"
#include "python/wrap/class_records.h"
#include "python/wrap/notes.h"

namespace tether_py {

using ffi::TypeIndex;

namespace {

// Whether `obj` is a wrapper, of a class not seen last time. False with an error set.
TVM_FFI_NO_INLINE bool LearnClass(const Field& field, PyObject* obj) {
  if (!IsWrapper(obj)) {
    PyErr_Format(PyExc_TypeError, "field `%s` belongs to `%s`, not to %s", field.name.c_str(),
                 field.type_key.c_str(), Py_TYPE(obj)->tp_name);
    return false;
  }
  // In a free-threaded build threads with different classes would keep overwriting it.
  if (!kFreeThreaded && RecordOf(Py_TYPE(obj)) != nullptr) {
    field.last_class.store(Py_TYPE(obj), std::memory_order_relaxed);
  }
  return true;
}

// The wrapper's class does not vouch for the object: any object may have been moved into it.
TVM_FFI_NO_INLINE bool CheckType(const Field& field, TVMFFIObject* h) {
  if (ffi::details::RuntimeTypeIndexMatch(h->type_index, field.type_index)) return true;
  const TVMFFIByteArray& key = TVMFFIGetTypeInfo(h->type_index)->type_key;
  PyErr_Format(PyExc_TypeError, "field `%s` belongs to `%s`, not to `%s`", field.name.c_str(),
               field.type_key.c_str(), key.data);
  return false;
}

// Address of the field in the object of `obj`, which must be of the type that declares it. In the
// critical section of `obj`. NULL with an error set.
inline char* FieldAddress(const Field& field, PyObject* obj) {
  PyTypeObject* last = field.last_class.load(std::memory_order_relaxed);
  if (TVM_FFI_PREDICT_FALSE(Py_TYPE(obj) != last) && !LearnClass(field, obj)) return nullptr;
  TVMFFIObject* h = UseHandle(AsWrapper(obj));
  if (TVM_FFI_PREDICT_FALSE(h == nullptr)) return nullptr;
  if (TVM_FFI_PREDICT_FALSE(h->type_index != field.type_index) && !CheckType(field, h)) {
    return nullptr;
  }
  return reinterpret_cast<char*>(h) + field.info.offset;
}

template <typename Signed, typename Unsigned>
int64_t LoadNarrow(const char* address, bool is_unsigned) {
  if (is_unsigned) return Load<Unsigned>(address);
  return Load<Signed>(address);
}

int64_t LoadInt(const Field& field, const char* address) {
  bool is_unsigned = (field.info.flags & kTVMFFIFieldFlagBitMaskPlainUnsigned) != 0;
  switch (field.info.size) {
    case 1:
      return LoadNarrow<int8_t, uint8_t>(address, is_unsigned);
    case 2:
      return LoadNarrow<int16_t, uint16_t>(address, is_unsigned);
    case 4:
      return LoadNarrow<int32_t, uint32_t>(address, is_unsigned);
    default:
      return Load<int64_t>(address);
  }
}

TVM_FFI_NO_INLINE PyObject* ReadByGetter(const Field& field, char* address);

// A container that remembers which field it is from.
TVM_FFI_NO_INLINE PyObject* ReadContainer(const Field& field, char* address) {
  Ref made = Ref::Steal(field.is_pointer ? ReadObject(address) : ReadByGetter(field, address));
  if (!made || !IsWrapper(made.get())) return made.release();
  if (ElementNotes::Get<const Field>(made.get()) == nullptr &&
      !ElementNotes::Set(made.get(), &field)) {
    return nullptr;
  }
  return made.release();
}

TVM_FFI_NO_INLINE PyObject* ReadByGetter(const Field& field, char* address) {
  TVMFFIAny value;
  tie::StoreNone(&value);
  if (int code = field.info.getter(address, &value)) return RaiseFromCall(code);
  return FromOwnedAny(value);
}

TVM_FFI_NO_INLINE int RaiseOutOfRange(const Field& field, const TVMFFIAny& value) {
  PyErr_Format(PyExc_OverflowError, "field `%s` of `%s`: integer value %s", field.name.c_str(),
               field.type_key.c_str(), ffi::tether::OutOfFieldText(field.info, value).c_str());
  return -1;
}

int WriteBySetter(const Field& field, PyObject* obj, PyObject* value) {
  CallArguments args;
  args.AddPointer(nullptr);  // the field's address; not known yet
  if (!args.Add(value)) return -1;
  TVMFFIAny* converted = args.data();
  // Only now: the conversion may have run Python code that moved the object. What is assigned, and
  // what that lets go of, may run more.
  ffi::ObjectPtr<ffi::Object> held;
  CriticalSection section(obj);
  char* address = FieldAddress(field, obj);
  if (address == nullptr) return -1;
  held = ffi::details::ObjectUnsafe::ObjectPtrFromUnowned<ffi::Object>(UseHandle(AsWrapper(obj)));
  if (TVM_FFI_PREDICT_FALSE(!ffi::tether::FitsField(field.info, converted[1]))) {
    return RaiseOutOfRange(field, converted[1]);
  }
  if (ffi::tether::WouldKeepLent(field.info, converted[1])) {
    RefuseLent();
    return -1;
  }
  // A setter that is a function object has a message of its own.
  if (TVM_FFI_PREDICT_FALSE(converted[1].type_index == TypeIndex::kTVMFFIBigInt) &&
      field.info.field_static_type_index == TypeIndex::kTVMFFIInt &&
      (field.info.flags & kTVMFFIFieldFlagBitSetterIsFunctionObj) == 0) {
    PyErr_Format(PyExc_OverflowError, "field `%s` of `%s`: %R does not fit in int64",
                 field.name.c_str(), field.type_key.c_str(), value);
    return -1;
  }
  int code;
  if ((field.info.flags & kTVMFFIFieldFlagBitSetterIsFunctionObj) != 0) {
    converted[0].v_ptr = address;
    TVMFFIAny result;
    tie::StoreNone(&result);
    code = TVMFFIFunctionCall(field.info.setter, converted, 2, &result);
  } else {
    code = reinterpret_cast<TVMFFIFieldSetter>(field.info.setter)(address, &converted[1]);
  }
  return code == 0 ? 0 : RaiseFromSetter(code, field, value);
}

// An exact int that fits the field, written in place. False: leave it to WriteBySetter and its
// message.
bool WriteIntInPlace(const Field& field, char* address, PyObject* value) {
  if (!PyLong_CheckExact(value)) return false;
  int64_t number;
  if (TVM_FFI_PREDICT_FALSE(!LoadCompactInt(value, &number))) {
    int overflow = 0;
    number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow != 0) return false;
  }
  if (TVM_FFI_PREDICT_TRUE(field.kind == FieldKind::kInt64)) {
    std::memcpy(address, &number, sizeof(number));
  } else {
    TVMFFIAny given;
    given.type_index = TypeIndex::kTVMFFIInt;
    given.v_int64 = number;
    if (TVM_FFI_PREDICT_FALSE(!ffi::tether::FitsField(field.info, given))) return false;
    // Little-endian: the low bytes are the value.
    std::memcpy(address, &number, static_cast<size_t>(field.info.size));
  }
  return true;
}

// A value that is stored as it is: 1 when that is done, 0 to leave it to the setter, -1 with an
// error set.
int WriteInPlace(const Field& field, PyObject* obj, PyObject* value) {
  CriticalSection section(obj);
  char* address = FieldAddress(field, obj);
  if (TVM_FFI_PREDICT_FALSE(address == nullptr)) return -1;
  if (!field.plain_write) return 0;
  switch (field.kind) {
    case FieldKind::kInt64:
    case FieldKind::kInt:
      return TVM_FFI_LITTLE_ENDIAN && WriteIntInPlace(field, address, value) ? 1 : 0;
    case FieldKind::kBool:
      if (!PyBool_Check(value)) return 0;
      *address = value == Py_True;
      return 1;
    case FieldKind::kFloat64:
      if (!PyFloat_CheckExact(value)) return 0;
      std::memcpy(address, &reinterpret_cast<PyFloatObject*>(value)->ob_fval, sizeof(double));
      return 1;
    default:
      return 0;
  }
}

}  // namespace

TVM_FFI_NO_INLINE int RaiseFromSetter(int code, const Field& field, PyObject* value) {
  RaiseForField(code, field.name, field.type_key, value);
  return -1;
}

PyObject* ReadObject(const char* address) {
  auto* child = Load<TVMFFIObject*>(address);
  if (child == nullptr) Py_RETURN_NONE;
  TVMFFIAny value;
  tie::StoreObject(child, &value);
  return FromBorrowedAny(value);
}

PyObject* ReadField(const Field& field, PyObject* obj) {
  CriticalSection section(obj);
  char* address = FieldAddress(field, obj);
  if (TVM_FFI_PREDICT_FALSE(address == nullptr)) return nullptr;
  switch (field.kind) {
    case FieldKind::kObject:
      return ReadObject(address);
    case FieldKind::kInt64:
      return IntFromInt64(Load<int64_t>(address));
    case FieldKind::kInt:
      return IntFromInt64(LoadInt(field, address));
    case FieldKind::kBool:
      return PyBool_FromLong(Load<uint8_t>(address) != 0);
    case FieldKind::kFloat64:
      return PyFloat_FromDouble(Load<double>(address));
    case FieldKind::kFloat32:
      return PyFloat_FromDouble(static_cast<double>(Load<float>(address)));
    case FieldKind::kAny:
      return FromBorrowedAny(*reinterpret_cast<TVMFFIAny*>(address));
    default:
      if (field.convert_element != nullptr) return ReadContainer(field, address);
      return ReadByGetter(field, address);
  }
}

int WriteField(const Field& field, PyObject* obj, PyObject* value) {
  int done = WriteInPlace(field, obj, value);
  if (done != 0) return done > 0 ? 0 : -1;
  if (field.info.setter == nullptr) {
    PyErr_Format(PyExc_AttributeError, "field `%s` of `%s` has no setter", field.name.c_str(),
                 field.type_key.c_str());
    return -1;
  }
  return Entry<WriteBySetter>(field, obj, value);  // the conversion may throw
}

}  // namespace tether_py
