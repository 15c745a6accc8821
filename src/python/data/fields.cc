// SPDX-License-Identifier: Apache-2.0
// Reflected fields. A field whose memory says what it holds is read and written in place; any other
// one goes through its getter and setter.
#include <cstring>
#include <map>
#include <mutex>

#include "python/base/entry.h"
#include "python/base/python_api.h"
#include "python/convert/convert.h"
#include "python/convert/errors.h"
#include "python/data/fields.h"
#include "python/wrap/class_watch.h"
#include "python/wrap/object_lock.h"

namespace tether_py {

using ffi::TypeIndex;

namespace {

struct AllFields {
  ShortLock lock;
  std::map<std::pair<int32_t, int32_t>, Field*> by_place;  // type index, number of the field
  const Field* first = nullptr;
};
AllFields& all_fields = *new AllFields();  // outlives the last class

// ---- reading and writing ----

// Whether `obj` is a wrapper, of a class not seen last time. False with an error set.
TVM_FFI_NO_INLINE bool LearnClass(const Field& field, PyObject* obj) {
  if (!IsWrapper(obj)) {
    PyErr_Format(PyExc_TypeError, "field `%s` belongs to `%s`, not to %s", field.name.c_str(),
                 field.type_key.c_str(), Py_TYPE(obj)->tp_name);
    return false;
  }
  // Without the GIL threads would pass it to and fro.
  if (!kFreeThreaded && WatchClass(Py_TYPE(obj))) {
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

template <typename T>
T Load(const char* address) {
  T value;
  std::memcpy(&value, address, sizeof(T));
  return value;
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

FieldKind KindOf(const TVMFFIFieldInfo& info) {
  if ((info.flags & kTVMFFIFieldFlagBitMaskPlain) == 0) return FieldKind::kGetter;
  switch (info.field_static_type_index) {
    case TypeIndex::kTVMFFIInt:
      return info.size == 8 ? FieldKind::kInt64 : FieldKind::kInt;
    case TypeIndex::kTVMFFIBool:
      return FieldKind::kBool;
    case TypeIndex::kTVMFFIFloat:
      return info.size == 4 ? FieldKind::kFloat32 : FieldKind::kFloat64;
    case TypeIndex::kTVMFFIAny:
      return FieldKind::kAny;
    default:
      return info.field_static_type_index >= TypeIndex::kTVMFFIObject ? FieldKind::kObject
                                                                      : FieldKind::kGetter;
  }
}

TVM_FFI_NO_INLINE PyObject* ReadByGetter(const Field& field, char* address) {
  TVMFFIAny value;
  tie::StoreNone(&value);
  if (int code = field.info.getter(address, &value)) return RaiseFromCall(code);
  return FromOwnedAny(value);
}

PyObject* ReadObject(const char* address) {
  auto* child = Load<TVMFFIObject*>(address);
  if (child == nullptr) Py_RETURN_NONE;
  TVMFFIAny value;
  tie::StoreObject(child, &value);
  return FromBorrowedAny(value);
}

TVM_FFI_NO_INLINE PyObject* Read(const Field& field, PyObject* obj) {
  CriticalSection section(obj);
  char* address = FieldAddress(field, obj);
  if (TVM_FFI_PREDICT_FALSE(address == nullptr)) return nullptr;
  switch (field.kind) {
    case FieldKind::kObject:
      return ReadObject(address);
    case FieldKind::kInt64:
      return PyLong_FromLongLong(Load<int64_t>(address));
    case FieldKind::kInt:
      return PyLong_FromLongLong(LoadInt(field, address));
    case FieldKind::kBool:
      return PyBool_FromLong(Load<uint8_t>(address) != 0);
    case FieldKind::kFloat64:
      return PyFloat_FromDouble(Load<double>(address));
    case FieldKind::kFloat32:
      return PyFloat_FromDouble(static_cast<double>(Load<float>(address)));
    case FieldKind::kAny:
      return FromBorrowedAny(*reinterpret_cast<TVMFFIAny*>(address));
    default:
      return ReadByGetter(field, address);
  }
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
  int code;
  if ((field.info.flags & kTVMFFIFieldFlagBitSetterIsFunctionObj) != 0) {
    converted[0].v_ptr = address;
    TVMFFIAny result;
    tie::StoreNone(&result);
    code = TVMFFIFunctionCall(field.info.setter, converted, 2, &result);
  } else {
    code = reinterpret_cast<TVMFFIFieldSetter>(field.info.setter)(address, &converted[1]);
  }
  if (code == 0) return 0;
  RaiseFromCall(code);
  return -1;
}

// An exact int that fits the field, written in place. False: leave it to the setter and its
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
    // Little-endian: the low bytes are the value, as a C++ assignment would narrow it.
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
  if (field.plain_write) {
    switch (field.info.field_static_type_index) {
      case TypeIndex::kTVMFFIInt:
        if (TVM_FFI_LITTLE_ENDIAN && WriteIntInPlace(field, address, value)) return 1;
        break;
      case TypeIndex::kTVMFFIBool:
        if (!PyBool_Check(value)) break;
        *address = value == Py_True;
        return 1;
      case TypeIndex::kTVMFFIFloat:
        if (!PyFloat_CheckExact(value) || field.info.size != 8) break;
        std::memcpy(address, &reinterpret_cast<PyFloatObject*>(value)->ob_fval, sizeof(double));
        return 1;
      default:
        break;
    }
  }
  return 0;
}

int Write(const Field& field, PyObject* obj, PyObject* value) {
  int done = WriteInPlace(field, obj, value);
  if (done != 0) return done > 0 ? 0 : -1;
  if (field.info.setter == nullptr) {
    PyErr_Format(PyExc_AttributeError, "field `%s` of `%s` has no setter", field.name.c_str(),
                 field.type_key.c_str());
    return -1;
  }
  return Entry<WriteBySetter>(field, obj, value);  // the conversion may throw
}

// The setter of a field of objects, for a value whose object is borrowed without further ado.
inline int WriteObject(const Field& field, PyObject* obj, char* address, PyObject* value) {
  if (!IsPlainWrapper(value)) return Write(field, obj, value);
  uintptr_t handle = AsWrapper(value)->handle.load(std::memory_order_relaxed);
  if (TVM_FFI_PREDICT_FALSE(!tie::IsUsable(handle))) return Write(field, obj, value);
  TVMFFIAny converted;
  tie::StoreObject(reinterpret_cast<TVMFFIObject*>(handle), &converted);
  int code = reinterpret_cast<TVMFFIFieldSetter>(field.info.setter)(address, &converted);
  if (TVM_FFI_PREDICT_TRUE(code == 0)) return 0;
  RaiseFromCall(code);
  return -1;
}

// ---- Python objects ----

// FieldGetter and FieldSetter: callables that can be named and documented like functions.
struct AccessorObject {
  PyObject_HEAD Field* field;
  PyObject* dict;
};

// FFIProperty: a `property` whose field, when it has one, is read and written without calling fget
// and fset. What it adds to a property lies behind it.
struct PropertyExtra {
  Field* field;     // NULL for a property made by hand
  PyObject* write;  // writes the field whether or not it is read-only; NULL if nothing can
  PyObject* doc;
  bool writable;       // by assignment
  bool assigns_field;  // and that means to write the field, without further ado
};

PropertyExtra* ExtraOf(PyObject* self) {
  return reinterpret_cast<PropertyExtra*>(reinterpret_cast<char*>(self) +
                                          PyProperty_Type.tp_basicsize);
}

Field* FieldOf(PyObject* accessor) { return reinterpret_cast<AccessorObject*>(accessor)->field; }

PyObject* CallGetter(PyObject* self, PyObject* args, PyObject* kwargs) {
  PyObject* obj;
  if (kwargs != nullptr && PyDict_GET_SIZE(kwargs) != 0) {
    return PyErr_Format(PyExc_TypeError, "a field getter takes no keyword arguments");
  }
  if (!PyArg_ParseTuple(args, "O", &obj)) return nullptr;
  return Read(*FieldOf(self), obj);
}

PyObject* CallSetter(PyObject* self, PyObject* args, PyObject* kwargs) {
  PyObject *obj, *value;
  if (kwargs != nullptr && PyDict_GET_SIZE(kwargs) != 0) {
    return PyErr_Format(PyExc_TypeError, "a field setter takes no keyword arguments");
  }
  if (!PyArg_ParseTuple(args, "OO", &obj, &value)) return nullptr;
  if (Write(*FieldOf(self), obj, value) < 0) return nullptr;
  Py_RETURN_NONE;
}

int TraverseAccessor(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(reinterpret_cast<AccessorObject*>(self)->dict);
  return 0;
}
int ClearAccessor(PyObject* self) {
  Py_CLEAR(reinterpret_cast<AccessorObject*>(self)->dict);
  return 0;
}
void DeallocAccessor(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  ClearAccessor(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* GetDocNone(PyObject* self, void*) {
  PyObject* dict = reinterpret_cast<AccessorObject*>(self)->dict;
  PyObject* doc = dict != nullptr ? PyDict_GetItemString(dict, "__doc__") : nullptr;
  return Py_NewRef(doc != nullptr ? doc : Py_None);
}
int SetDoc(PyObject* self, PyObject* value, void*) {
  auto* accessor = reinterpret_cast<AccessorObject*>(self);
  if (accessor->dict == nullptr) accessor->dict = PyDict_New();
  if (accessor->dict == nullptr) return -1;
  return PyDict_SetItemString(accessor->dict, "__doc__", value != nullptr ? value : Py_None);
}

PyGetSetDef accessor_getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {"__doc__", Entry<GetDocNone>, Entry<SetDoc>, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMemberDef accessor_members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(AccessorObject, dict), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

#define TETHER_ACCESSOR_SLOTS(call)                                                          \
  {                                                                                          \
    {Py_tp_call, Slot<call>()}, {Py_tp_traverse, reinterpret_cast<void*>(TraverseAccessor)}, \
        {Py_tp_clear, reinterpret_cast<void*>(ClearAccessor)},                               \
        {Py_tp_dealloc, reinterpret_cast<void*>(DeallocAccessor)},                           \
        {Py_tp_getset, accessor_getset}, {Py_tp_members, accessor_members}, {                \
      0, nullptr                                                                             \
    }                                                                                        \
  }
PyType_Slot getter_slots[] = TETHER_ACCESSOR_SLOTS(CallGetter);
PyType_Slot setter_slots[] = TETHER_ACCESSOR_SLOTS(CallSetter);
#undef TETHER_ACCESSOR_SLOTS

#ifdef Py_TPFLAGS_DISALLOW_INSTANTIATION
constexpr unsigned int kNoNew = Py_TPFLAGS_DISALLOW_INSTANTIATION;
#else
constexpr unsigned int kNoNew = 0;
#endif

PyType_Spec getter_spec = {"tvm_ffi.core.FieldGetter", sizeof(AccessorObject), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | kNoNew, getter_slots};
PyType_Spec setter_spec = {"tvm_ffi.core.FieldSetter", sizeof(AccessorObject), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | kNoNew, setter_slots};

// Read of the two kinds of field that matter most, where nothing is out of the ordinary: a leaf
// function, which saves and restores nothing. `obj` is a wrapper. Without the GIL it takes a
// critical section.
inline PyObject* ReadQuickly(const Field& field, PyObject* obj) {
  if (kFreeThreaded) return Read(field, obj);
  uintptr_t handle = AsWrapper(obj)->handle.load(std::memory_order_relaxed);
  if (TVM_FFI_PREDICT_FALSE(!tie::IsUsable(handle))) return Read(field, obj);
  auto* h = reinterpret_cast<TVMFFIObject*>(handle);
  if (h->type_index != field.type_index) return Read(field, obj);
  const char* address = reinterpret_cast<char*>(h) + field.info.offset;
  if (field.kind == FieldKind::kInt64) return PyLong_FromLongLong(Load<int64_t>(address));
  if (field.kind != FieldKind::kObject) return Read(field, obj);
  auto* child = Load<TVMFFIObject*>(address);
  if (child == nullptr || child->type_index < TypeIndex::kTVMFFIDynObjectBegin) {
    return ReadObject(address);
  }
  return WrapBorrowed(child);
}

PyObject* PropertyGet(PyObject* self, PyObject* obj, PyObject* cls) {
  if (obj == nullptr || obj == Py_None) return Py_NewRef(self);
  Field* field = ExtraOf(self)->field;
  if (field != nullptr) {
    bool known = Py_TYPE(obj) == field->last_class.load(std::memory_order_relaxed);
    return TVM_FFI_PREDICT_TRUE(known) ? ReadQuickly(*field, obj) : Read(*field, obj);
  }
  return PyProperty_Type.tp_descr_get(self, obj, cls);
}

// Writes also where assignment is not allowed.
int PropertyWrite(PyObject* self, PyObject* obj, PyObject* value) {
  PyObject* write = ExtraOf(self)->write;
  if (write == nullptr) {
    PyErr_SetString(PyExc_AttributeError, "this field has no setter");
    return -1;
  }
  if (Py_TYPE(write) == types.field_setter) return Write(*FieldOf(write), obj, value);
  Ref done = Ref::Steal(PyObject_CallFunctionObjArgs(write, obj, value, nullptr));
  return done ? 0 : -1;
}

// Write of an int or an object, likewise.
TVM_FFI_INLINE int WriteQuickly(const Field& field, PyObject* obj, PyObject* value) {
  uintptr_t handle = AsWrapper(obj)->handle.load(std::memory_order_relaxed);
  if (TVM_FFI_PREDICT_FALSE(!tie::IsUsable(handle))) return Write(field, obj, value);
  auto* h = reinterpret_cast<TVMFFIObject*>(handle);
  if (TVM_FFI_PREDICT_FALSE(h->type_index != field.type_index)) return Write(field, obj, value);
  char* address = reinterpret_cast<char*>(h) + field.info.offset;
  int64_t number;
  if (field.kind == FieldKind::kInt64) {
    bool is_plain = field.plain_write && PyLong_CheckExact(value) && LoadCompactInt(value, &number);
    if (TVM_FFI_PREDICT_FALSE(!is_plain)) return Write(field, obj, value);
    std::memcpy(address, &number, sizeof(number));
    return 0;
  }
  return field.sets_object ? WriteObject(field, obj, address, value) : Write(field, obj, value);
}

int PropertySet(PyObject* self, PyObject* obj, PyObject* value) {
  const Field* field = ExtraOf(self)->field;
  if (field == nullptr) return PyProperty_Type.tp_descr_set(self, obj, value);
  bool is_known = Py_TYPE(obj) == field->last_class.load(std::memory_order_relaxed);
  if (!kFreeThreaded && is_known && value != nullptr && ExtraOf(self)->assigns_field) {
    return WriteQuickly(*field, obj, value);
  }
  if (value == nullptr) {
    PyErr_Format(PyExc_AttributeError, "field `%s` of `%s` cannot be deleted", field->name.c_str(),
                 field->type_key.c_str());
    return -1;
  }
  if (!ExtraOf(self)->writable) {
    PyErr_Format(PyExc_AttributeError, "field `%s` of `%s` is read-only", field->name.c_str(),
                 field->type_key.c_str());
    return -1;
  }
  return PropertyWrite(self, obj, value);
}

PyObject* PropertyForceSet(PyObject* self, PyObject* args) {
  PyObject *obj, *value;
  if (!PyArg_ParseTuple(args, "OO", &obj, &value)) return nullptr;
  if (PropertyWrite(self, obj, value) < 0) return nullptr;
  Py_RETURN_NONE;
}

// ---- attributes of wrappers ----

// Finding the descriptor of a field costs CPython more than reading the field does, and it has no
// shortcut for descriptors of ours. So the classes that are registered for C++ types look up their
// attributes here: what a name means to a class is remembered until the class changes. CPython has
// shortcuts for methods and whatever else is no field, but for classes with the general functions
// only; a class that is asked for such an attribute therefore gets those back. Only
// object.__setattr__ can tell which of the two a class has (IsBodyEmpty). With the GIL only.
struct KnownField {
  PyTypeObject* cls;
  unsigned int version;  // of the class
  PyObject* name;        // owned: another name may not come to lie at its address
  const Field* read;
  const Field* write;  // NULL if assignment is not allowed, or not our business
};
constexpr size_t kKnownFields = 256;
KnownField known_fields[kKnownFields];

inline KnownField* KnownFieldOf(PyTypeObject* cls, PyObject* name) {
  auto bits = (reinterpret_cast<uintptr_t>(cls) >> 6) + (reinterpret_cast<uintptr_t>(name) >> 4);
  return &known_fields[bits % kKnownFields];
}

inline bool IsCurrent(const KnownField* known, PyTypeObject* cls, PyObject* name) {
  return known->name == name && known->cls == cls && known->version == TypeVersion(cls);
}

bool IsSpecialName(PyObject* name) {
  return PyUnicode_GET_LENGTH(name) > 2 && PyUnicode_READ_CHAR(name, 0) == '_' &&
         PyUnicode_READ_CHAR(name, 1) == '_';
}

// What `name` means to the class, as far as it is known; NULL without error if that is nothing of
// ours. `is_other`: it is an attribute that CPython may have a shortcut for.
TVM_FFI_NO_INLINE const KnownField* LearnField(PyTypeObject* cls, PyObject* name, bool* is_other) {
  *is_other = false;
  if (!PyUnicode_CheckExact(name)) return nullptr;
  PyObject* found = _PyType_Lookup(cls, name);
  if (found == nullptr || Py_TYPE(found) != types.field_property) {
    *is_other = !IsSpecialName(name) && (found != nullptr || HasInstanceDict(cls));
    return nullptr;
  }
  PropertyExtra* extra = ExtraOf(found);
  unsigned int version = TypeVersion(cls);
  if (extra->field == nullptr || version == 0 || !PyUnicode_CHECK_INTERNED(name)) return nullptr;
  bool is_plain = extra->writable && Py_TYPE(extra->write) == types.field_setter;
  KnownField* known = KnownFieldOf(cls, name);
  PyObject* old = known->name;
  *known = {cls, version, Py_NewRef(name), extra->field,
            is_plain ? FieldOf(extra->write) : nullptr};
  Py_XDECREF(old);  // a str: runs no code
  return known;
}

PyObject* GetAttribute(PyObject* self, PyObject* name) {
  PyTypeObject* cls = Py_TYPE(self);
  const KnownField* known = KnownFieldOf(cls, name);
  if (TVM_FFI_PREDICT_TRUE(IsCurrent(known, cls, name))) return ReadQuickly(*known->read, self);
  bool is_other;
  known = LearnField(cls, name, &is_other);
  if (known != nullptr) return ReadQuickly(*known->read, self);
  if (is_other && cls->tp_getattro == GetAttribute) cls->tp_getattro = PyObject_GenericGetAttr;
  return PyObject_GenericGetAttr(self, name);
}

int SetAttribute(PyObject* self, PyObject* name, PyObject* value);

TVM_FFI_NO_INLINE int SetAttributeSlow(PyObject* self, PyObject* name, PyObject* value) {
  PyTypeObject* cls = Py_TYPE(self);
  bool is_other;
  LearnField(cls, name, &is_other);
  if (is_other && cls->tp_setattro == SetAttribute) cls->tp_setattro = PyObject_GenericSetAttr;
  return PyObject_GenericSetAttr(self, name, value);
}

int SetAttribute(PyObject* self, PyObject* name, PyObject* value) {
  PyTypeObject* cls = Py_TYPE(self);
  const KnownField* known = KnownFieldOf(cls, name);
  bool is_known = IsCurrent(known, cls, name) && known->write != nullptr && value != nullptr;
  return TVM_FFI_PREDICT_TRUE(is_known) ? WriteQuickly(*known->write, self, value)
                                        : SetAttributeSlow(self, name, value);
}

// A property was given another field.
void ForgetFields() {
  for (KnownField& known : known_fields) Py_CLEAR(known.name);
}

int InitProperty(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"fget", "fset", "frozen", "fdel", "doc", nullptr};
  PyObject *getter, *setter, *deleter = Py_None, *doc = Py_None;
  int frozen;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOp|OO", const_cast<char**>(names), &getter,
                                   &setter, &frozen, &deleter, &doc)) {
    return -1;
  }
  Ref base_args = Ref::Steal(PyTuple_Pack(4, getter, frozen != 0 ? Py_None : setter, deleter, doc));
  if (!base_args || PyProperty_Type.tp_init(self, base_args.get(), nullptr) < 0) return -1;
  PropertyExtra* extra = ExtraOf(self);
  if (extra->field != nullptr) ForgetFields();
  extra->field = Py_TYPE(getter) == types.field_getter ? FieldOf(getter) : nullptr;
  extra->writable = frozen == 0 && setter != Py_None;
  extra->assigns_field = extra->writable && extra->field != nullptr &&
                         Py_TYPE(setter) == types.field_setter && FieldOf(setter) == extra->field;
  Py_XSETREF(extra->write, setter == Py_None ? nullptr : Py_NewRef(setter));
  if (doc != Py_None) Py_XSETREF(extra->doc, Py_NewRef(doc));
  return 0;
}

PyObject* PropertyName(PyObject* self, void*) {
  Field* field = ExtraOf(self)->field;
  if (field != nullptr) return PyUnicode_FromString(field->name.c_str());
  Ref getter = Ref::Steal(PyObject_GetAttrString(self, "fget"));
  return getter ? PyObject_GetAttrString(getter.get(), "__name__") : nullptr;
}
PyObject* PropertyDoc(PyObject* self, void*) {
  PyObject* doc = ExtraOf(self)->doc;
  return Py_NewRef(doc != nullptr ? doc : Py_None);
}
int SetPropertyDoc(PyObject* self, PyObject* doc, void*) {
  Py_XSETREF(ExtraOf(self)->doc, Py_XNewRef(doc));
  return 0;
}

int TraverseProperty(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(ExtraOf(self)->write);
  Py_VISIT(ExtraOf(self)->doc);
  return PyProperty_Type.tp_traverse(self, visit, arg);
}
int ClearProperty(PyObject* self) {
  Py_CLEAR(ExtraOf(self)->write);
  Py_CLEAR(ExtraOf(self)->doc);
  return PyProperty_Type.tp_clear != nullptr ? PyProperty_Type.tp_clear(self) : 0;
}
void DeallocProperty(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  // Still tracked when the base's function takes over: it untracks first.
  Py_CLEAR(ExtraOf(self)->write);
  Py_CLEAR(ExtraOf(self)->doc);
  PyProperty_Type.tp_dealloc(self);
  Py_DECREF(type);
}

PyMethodDef property_methods[] = {{"set", Entry<PropertyForceSet>, METH_VARARGS,
                                   "Write the field, whether or not it is read-only."},
                                  {nullptr, nullptr, 0, nullptr}};
PyGetSetDef property_getset[] = {
    {"__name__", Entry<PropertyName>, nullptr, nullptr, nullptr},
    {"__doc__", Entry<PropertyDoc>, Entry<SetPropertyDoc>, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot property_slots[] = {{Py_tp_descr_get, Slot<PropertyGet>()},
                                {Py_tp_descr_set, Slot<PropertySet>()},
                                {Py_tp_init, Slot<InitProperty>()},
                                {Py_tp_traverse, reinterpret_cast<void*>(TraverseProperty)},
                                {Py_tp_clear, reinterpret_cast<void*>(ClearProperty)},
                                {Py_tp_dealloc, reinterpret_cast<void*>(DeallocProperty)},
                                {Py_tp_methods, property_methods},
                                {Py_tp_getset, property_getset},
                                {0, nullptr}};

PyObject* MakeAccessor(PyTypeObject* type, Field* field) {
  auto* accessor = reinterpret_cast<AccessorObject*>(type->tp_alloc(type, 0));
  if (accessor == nullptr) return nullptr;
  accessor->field = field;
  Ref name = Ref::Steal(PyUnicode_FromString(field->name.c_str()));
  PyObject* self = reinterpret_cast<PyObject*>(accessor);
  if (!name || PyObject_SetAttrString(self, "__name__", name.get()) < 0) {
    Py_DECREF(self);
    return nullptr;
  }
  return self;
}

}  // namespace

Field* FieldOfType(const TVMFFITypeInfo* type, int32_t i) {
  std::lock_guard<ShortLock> guard(all_fields.lock);
  Field*& field = all_fields.by_place[{type->type_index, i}];
  if (field != nullptr) return field;
  const TVMFFIFieldInfo& info = type->fields[i];
  constexpr int64_t kMask = kTVMFFIFieldFlagBitMaskPlain | kTVMFFIFieldFlagBitSetterIsFunctionObj;
  FieldKind kind = KindOf(info);
  bool by_c_function =
      info.setter != nullptr && (info.flags & kTVMFFIFieldFlagBitSetterIsFunctionObj) == 0;
  field = new Field{info,
                    type->type_index,
                    std::string(info.name.data, info.name.size),
                    std::string(type->type_key.data, type->type_key.size),
                    kind,
                    (info.flags & kMask) == kTVMFFIFieldFlagBitMaskPlain,
                    kind == FieldKind::kObject && by_c_function,
                    {nullptr},
                    all_fields.first};
  all_fields.first = field;
  return field;
}

void ForgetInFields(PyTypeObject* cls) {
  std::lock_guard<ShortLock> guard(all_fields.lock);
  for (const Field* field = all_fields.first; field != nullptr; field = field->next) {
    if (field->last_class.load(std::memory_order_relaxed) == cls) {
      field->last_class.store(nullptr, std::memory_order_relaxed);
    }
  }
}

PyObject* MakeFieldGetter(Field* field) { return MakeAccessor(types.field_getter, field); }
PyObject* MakeFieldSetter(Field* field) { return MakeAccessor(types.field_setter, field); }

namespace {

// object.__setattr__ refuses objects whose class has a C function of its own for that, and nothing
// can make it think otherwise. So only classes whose body is empty have ours, those that the
// package makes for types nobody registered above all: they have no code that could call it, and
// their instances have no attribute besides the fields.
bool IsBodyEmpty(PyTypeObject* cls) {
  if (HasInstanceDict(cls) || cls->tp_basicsize != cls->tp_base->tp_basicsize) return false;
  PyObject *name, *value;
  Py_ssize_t position = 0;
  while (PyDict_Next(cls->tp_dict, &position, &name, &value) != 0) {
    bool is_code = PyFunction_Check(value) || Py_TYPE(value) == &PyProperty_Type ||
                   Py_TYPE(value) == &PyStaticMethod_Type || Py_TYPE(value) == &PyClassMethod_Type;
    const char* text = PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : nullptr;
    if (text == nullptr) PyErr_Clear();
    if (is_code || text == nullptr || std::strncmp(text, "__annot", 7) == 0) return false;
  }
  return true;
}

// For a class that was just written in Python: what it inherits of ours goes, and where it has a
// __setattr__ of its own that of its bases does too, because object.__setattr__ looks at them.
PyObject* UseGeneralSetAttr(PyObject*, PyObject* arg) {
  if (kFreeThreaded || !PyType_Check(arg)) Py_RETURN_NONE;
  auto* cls = reinterpret_cast<PyTypeObject*>(arg);
  bool is_ours = cls->tp_setattro == SetAttribute;
  if (is_ours) cls->tp_setattro = PyObject_GenericSetAttr;
  if (cls->tp_setattro == PyObject_GenericSetAttr) Py_RETURN_NONE;
  for (PyTypeObject* base = cls->tp_base; base != nullptr; base = base->tp_base) {
    if (base->tp_setattro == SetAttribute) base->tp_setattro = PyObject_GenericSetAttr;
  }
  Py_RETURN_NONE;
}

// Of a property that a registered class has got: it stays as long as its type, for good, and every
// access counts a reference to it.
PyObject* PyShareForGood(PyObject*, PyObject* obj) {
  if (PyObject_TypeCheck(obj, types.field_property)) ShareForGood(obj);
  Py_RETURN_NONE;
}

PyMethodDef field_functions[] = {
    {"_share_for_good", Entry<PyShareForGood>, METH_O, nullptr},
    {"_use_general_setattr", Entry<UseGeneralSetAttr>, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void InstallFieldAccess(PyTypeObject* cls, bool is_python_defined) {
  if (kFreeThreaded || (cls->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0) return;
  if (cls->tp_getattro == PyObject_GenericGetAttr) cls->tp_getattro = GetAttribute;
  bool may_set = !is_python_defined && cls->tp_setattro == PyObject_GenericSetAttr;
  if (may_set && IsBodyEmpty(cls)) cls->tp_setattro = SetAttribute;
}

int InitFieldTypes(PyObject* module) {
  if (PyModule_AddFunctions(module, field_functions) < 0) return -1;
  types.field_getter = AddType(module, &getter_spec, nullptr);
  types.field_setter = AddType(module, &setter_spec, nullptr);
  PyType_Spec property_spec = {
      "tvm_ffi.core.FFIProperty",
      static_cast<int>(PyProperty_Type.tp_basicsize + sizeof(PropertyExtra)), 0,
      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, property_slots};
  types.field_property = AddType(module, &property_spec, &PyProperty_Type);
  bool done = types.field_getter != nullptr && types.field_setter != nullptr &&
              types.field_property != nullptr;
  return done ? 0 : -1;
}

}  // namespace tether_py
