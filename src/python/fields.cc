// SPDX-License-Identifier: Apache-2.0
// Reflected fields. A field whose memory says what it holds is read and written in place; any other
// one goes through its getter and setter.
#include <cstring>

#include "convert.h"
#include "fields.h"

namespace tether_py {

using ffi::TypeIndex;

namespace {

// ---- reading and writing
// -----------------------------------------------------------------------------------

// Address of the field in the object of `obj`, which must be of the type that declares it. NULL
// with an error set.
char* FieldAddress(const Field& field, PyObject* obj) {
  if (TVM_FFI_PREDICT_FALSE(Py_TYPE(obj) != field.last_class.load(std::memory_order_relaxed))) {
    if (!IsWrapper(obj)) {
      PyErr_Format(PyExc_TypeError, "field `%s` belongs to `%s`, not to %s", field.name.c_str(),
                   field.type_key.c_str(), Py_TYPE(obj)->tp_name);
      return nullptr;
    }
    Py_INCREF(Py_TYPE(obj));
    Py_XDECREF(field.last_class.exchange(Py_TYPE(obj)));
  }
  TVMFFIObject* h = UseHandle(AsWrapper(obj));
  if (h == nullptr) return nullptr;
  // The wrapper's class does not vouch for the object: any object may have been moved into it.
  if (TVM_FFI_PREDICT_FALSE(
          h->type_index != field.type_index &&
          !ffi::details::RuntimeTypeIndexMatch(h->type_index, field.type_index))) {
    const TVMFFIByteArray& key = TVMFFIGetTypeInfo(h->type_index)->type_key;
    PyErr_Format(PyExc_TypeError, "field `%s` belongs to `%s`, not to `%s`", field.name.c_str(),
                 field.type_key.c_str(), key.data);
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

PyObject* ReadByGetter(const Field& field, char* address) {
  TVMFFIAny value;
  tie::StoreNone(&value);
  if (int code = field.info.getter(address, &value)) return RaiseFromCall(code);
  return FromOwnedAny(value);
}

PyObject* Read(const Field& field, PyObject* obj) {
  char* address = FieldAddress(field, obj);
  if (TVM_FFI_PREDICT_FALSE(address == nullptr)) return nullptr;
  if ((field.info.flags & kTVMFFIFieldFlagBitMaskPlain) == 0) return ReadByGetter(field, address);
  switch (field.info.field_static_type_index) {
    case TypeIndex::kTVMFFIInt:
      return PyLong_FromLongLong(LoadInt(field, address));
    case TypeIndex::kTVMFFIBool:
      return PyBool_FromLong(Load<uint8_t>(address) != 0);
    case TypeIndex::kTVMFFIFloat:
      return PyFloat_FromDouble(field.info.size == 4 ? static_cast<double>(Load<float>(address))
                                                     : Load<double>(address));
    case TypeIndex::kTVMFFIAny:
      return FromBorrowedAny(*reinterpret_cast<TVMFFIAny*>(address));
    default:
      break;
  }
  if (field.info.field_static_type_index < TypeIndex::kTVMFFIObject) {
    return ReadByGetter(field, address);
  }
  auto* child = Load<TVMFFIObject*>(address);
  if (child == nullptr) Py_RETURN_NONE;
  TVMFFIAny value;
  tie::StoreObject(child, &value);
  return FromBorrowedAny(value);
}

int WriteBySetter(const Field& field, char* address, PyObject* value) {
  Arguments args;
  TVMFFIAny converted[2];
  if (!ToAny(value, &converted[1], &args)) return -1;
  int code;
  if ((field.info.flags & kTVMFFIFieldFlagBitSetterIsFunctionObj) != 0) {
    converted[0].type_index = TypeIndex::kTVMFFIOpaquePtr;
    converted[0].zero_padding = 0;
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
  int overflow = 0;
  long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
  if (overflow != 0 || (number == -1 && PyErr_Occurred())) {
    PyErr_Clear();
    return false;
  }
  // Little-endian: the low bytes are the value, as a C++ assignment would narrow it.
  std::memcpy(address, &number, static_cast<size_t>(field.info.size));
  return true;
}

int Write(const Field& field, PyObject* obj, PyObject* value) {
  char* address = FieldAddress(field, obj);
  if (TVM_FFI_PREDICT_FALSE(address == nullptr)) return -1;
  constexpr int64_t kMask = kTVMFFIFieldFlagBitMaskPlain | kTVMFFIFieldFlagBitSetterIsFunctionObj;
  if ((field.info.flags & kMask) == kTVMFFIFieldFlagBitMaskPlain) {
    switch (field.info.field_static_type_index) {
      case TypeIndex::kTVMFFIInt:
        if (TVM_FFI_LITTLE_ENDIAN && WriteIntInPlace(field, address, value)) return 0;
        break;
      case TypeIndex::kTVMFFIBool:
        if (!PyBool_Check(value)) break;
        *address = value == Py_True;
        return 0;
      case TypeIndex::kTVMFFIFloat:
        if (!PyFloat_CheckExact(value) || field.info.size != 8) break;
        std::memcpy(address, &reinterpret_cast<PyFloatObject*>(value)->ob_fval, sizeof(double));
        return 0;
      default:
        break;
    }
  }
  if (field.info.setter == nullptr) {
    PyErr_Format(PyExc_AttributeError, "field `%s` of `%s` has no setter", field.name.c_str(),
                 field.type_key.c_str());
    return -1;
  }
  return WriteBySetter(field, address, value);
}

// ---- Python objects
// ---------------------------------------------------------------------------------------------

// FieldGetter and FieldSetter: callables that can be named and documented like functions.
struct AccessorObject {
  PyObject_HEAD Field* field;
  PyObject* dict;
};

struct DescriptorObject {
  PyObject_HEAD Field* field;
  PyObject* getter;
  PyObject* setter;
  PyObject* doc;
  bool frozen;
};

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
    {"__doc__", GetDocNone, SetDoc, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMemberDef accessor_members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(AccessorObject, dict), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

#define TETHER_ACCESSOR_SLOTS(call)                                           \
  {                                                                           \
    {Py_tp_call, reinterpret_cast<void*>(call)},                              \
        {Py_tp_traverse, reinterpret_cast<void*>(TraverseAccessor)},          \
        {Py_tp_clear, reinterpret_cast<void*>(ClearAccessor)},                \
        {Py_tp_dealloc, reinterpret_cast<void*>(DeallocAccessor)},            \
        {Py_tp_getset, accessor_getset}, {Py_tp_members, accessor_members}, { \
      0, nullptr                                                              \
    }                                                                         \
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

PyObject* DescriptorGet(PyObject* self, PyObject* obj, PyObject*) {
  if (obj == nullptr || obj == Py_None) return Py_NewRef(self);
  return Read(*reinterpret_cast<DescriptorObject*>(self)->field, obj);
}

int DescriptorSet(PyObject* self, PyObject* obj, PyObject* value) {
  auto* descriptor = reinterpret_cast<DescriptorObject*>(self);
  const Field& field = *descriptor->field;
  if (value == nullptr) {
    PyErr_Format(PyExc_AttributeError, "field `%s` of `%s` cannot be deleted", field.name.c_str(),
                 field.type_key.c_str());
    return -1;
  }
  if (descriptor->frozen) {
    PyErr_Format(PyExc_AttributeError, "field `%s` of `%s` is read-only", field.name.c_str(),
                 field.type_key.c_str());
    return -1;
  }
  return Write(field, obj, value);
}

// Writes read-only fields too.
PyObject* DescriptorForceSet(PyObject* self, PyObject* args) {
  PyObject *obj, *value;
  if (!PyArg_ParseTuple(args, "OO", &obj, &value)) return nullptr;
  if (Write(*reinterpret_cast<DescriptorObject*>(self)->field, obj, value) < 0) return nullptr;
  Py_RETURN_NONE;
}

PyObject* DescriptorName(PyObject* self, void*) {
  return PyUnicode_FromString(reinterpret_cast<DescriptorObject*>(self)->field->name.c_str());
}
PyObject* DescriptorSetter(PyObject* self, void*) {
  auto* descriptor = reinterpret_cast<DescriptorObject*>(self);
  return Py_NewRef(descriptor->frozen || descriptor->setter == nullptr ? Py_None
                                                                       : descriptor->setter);
}
PyObject* DescriptorDoc(PyObject* self, void*) {
  PyObject* doc = reinterpret_cast<DescriptorObject*>(self)->doc;
  return Py_NewRef(doc != nullptr ? doc : Py_None);
}

int TraverseDescriptor(PyObject* self, visitproc visit, void* arg) {
  auto* descriptor = reinterpret_cast<DescriptorObject*>(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(descriptor->getter);
  Py_VISIT(descriptor->setter);
  Py_VISIT(descriptor->doc);
  return 0;
}
int ClearDescriptor(PyObject* self) {
  auto* descriptor = reinterpret_cast<DescriptorObject*>(self);
  Py_CLEAR(descriptor->getter);
  Py_CLEAR(descriptor->setter);
  Py_CLEAR(descriptor->doc);
  return 0;
}
void DeallocDescriptor(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  ClearDescriptor(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyMethodDef descriptor_methods[] = {
    {"set", DescriptorForceSet, METH_VARARGS, "Write the field, whether or not it is read-only."},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef descriptor_getset[] = {{"__name__", DescriptorName, nullptr, nullptr, nullptr},
                                   {"__doc__", DescriptorDoc, nullptr, nullptr, nullptr},
                                   {"fset", DescriptorSetter, nullptr, nullptr, nullptr},
                                   {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMemberDef descriptor_members[] = {
    {"fget", T_OBJECT, offsetof(DescriptorObject, getter), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyType_Slot descriptor_slots[] = {{Py_tp_descr_get, reinterpret_cast<void*>(DescriptorGet)},
                                  {Py_tp_descr_set, reinterpret_cast<void*>(DescriptorSet)},
                                  {Py_tp_traverse, reinterpret_cast<void*>(TraverseDescriptor)},
                                  {Py_tp_clear, reinterpret_cast<void*>(ClearDescriptor)},
                                  {Py_tp_dealloc, reinterpret_cast<void*>(DeallocDescriptor)},
                                  {Py_tp_methods, descriptor_methods},
                                  {Py_tp_getset, descriptor_getset},
                                  {Py_tp_members, descriptor_members},
                                  {0, nullptr}};
PyType_Spec descriptor_spec = {"tvm_ffi.core.FieldDescriptor", sizeof(DescriptorObject), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | kNoNew, descriptor_slots};

PyObject* MakeProperty(PyObject*, PyObject* args) {
  PyObject *getter, *setter, *doc;
  int frozen;
  if (!PyArg_ParseTuple(args, "OOpO", &getter, &setter, &frozen, &doc)) return nullptr;
  if (Py_TYPE(getter) != types.field_getter) {
    return PyErr_Format(PyExc_TypeError, "expected a FieldGetter, got %s",
                        Py_TYPE(getter)->tp_name);
  }
  auto* descriptor = reinterpret_cast<DescriptorObject*>(
      types.field_descriptor->tp_alloc(types.field_descriptor, 0));
  if (descriptor == nullptr) return nullptr;
  descriptor->field = FieldOf(getter);
  descriptor->getter = Py_NewRef(getter);
  descriptor->setter = setter == Py_None ? nullptr : Py_NewRef(setter);
  descriptor->doc = doc == Py_None ? nullptr : Py_NewRef(doc);
  descriptor->frozen = frozen != 0;
  return reinterpret_cast<PyObject*>(descriptor);
}

PyMethodDef field_functions[] = {
    {"_make_property", MakeProperty, METH_VARARGS, "A descriptor for a reflected field."},
    {nullptr, nullptr, 0, nullptr}};

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

PyObject* MakeFieldGetter(Field* field) { return MakeAccessor(types.field_getter, field); }
PyObject* MakeFieldSetter(Field* field) { return MakeAccessor(types.field_setter, field); }

int InitFieldTypes(PyObject* module) {
  types.field_getter = AddType(module, &getter_spec, nullptr);
  types.field_setter = AddType(module, &setter_spec, nullptr);
  types.field_descriptor = AddType(module, &descriptor_spec, nullptr);
  if (types.field_getter == nullptr || types.field_setter == nullptr ||
      types.field_descriptor == nullptr) {
    return -1;
  }
  return PyModule_AddFunctions(module, field_functions);
}

}  // namespace tether_py
