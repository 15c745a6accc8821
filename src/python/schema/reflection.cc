// SPDX-License-Identifier: Apache-2.0
// The type table as Python data: the package builds its classes from this.
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/function.h>

#include "python/base/entry.h"
#include "python/base/python_api.h"
#include "python/call/metadata.h"
#include "python/convert/convert.h"
#include "python/convert/errors.h"
#include "python/data/field_accessors.h"
#include "python/schema/schema.h"
#include "python/wrap/sentinels.h"

namespace tether_py {

using ffi::TypeIndex;

namespace {

// NULL with an error set.
PyObject* Text(const TVMFFIByteArray& bytes) {
  return PyUnicode_DecodeUTF8(bytes.data, static_cast<Py_ssize_t>(bytes.size), nullptr);
}

// NULL for an index that no type has: TVMFFIGetTypeInfo would end the process.
const TVMFFITypeInfo* FindTypeInfo(int32_t index) {
  if (index < 0) return nullptr;
  if (index < TypeIndex::kTVMFFIStaticObjectEnd || FindClassOfIndex(index) != nullptr) {
    // Between the plain values and the objects there are holes.
    if (index > TypeIndex::kTVMFFIUnchanged && index < TypeIndex::kTVMFFIStaticObjectBegin)
      return nullptr;
    return TVMFFIGetTypeInfo(index);
  }
  ffi::Function keys = ffi::Function::GetGlobalRequired("ffi.GetRegisteredTypeKeys");
  for (const ffi::String& key : keys().cast<ffi::Array<ffi::String>>()) {
    TVMFFIByteArray bytes{key.data(), key.size()};
    int32_t found = -1;
    if (TVMFFITypeKeyToIndex(&bytes, &found) == 0 && found == index)
      return TVMFFIGetTypeInfo(index);
  }
  return nullptr;
}

// NULL with an error set.
PyObject* DefaultOf(const TVMFFIFieldInfo& info) {
  if ((info.flags & kTVMFFIFieldFlagBitMaskHasDefault) != 0) {
    return FromBorrowedAny(info.default_value_or_factory);
  }
  return Py_NewRef(sentinels.missing);
}

// The following give new dicts, or NULL with an error set.

PyObject* FieldDict(const TVMFFITypeInfo* type, int32_t i) {
  const TVMFFIFieldInfo& info = type->fields[i];
  Field* field = FieldOfType(type, i);
  Ref getter = Ref::Steal(MakeFieldGetter(field));
  Ref setter = getter ? Ref::Steal(MakeFieldSetter(field)) : Ref();
  PyObject* default_value = setter ? DefaultOf(info) : nullptr;
  if (default_value == nullptr) return nullptr;
  // clang-format off
  return Py_BuildValue("{sNsNsNsLsLsLsLsisOsOsN}",
      "name", Text(info.name),
      "doc", Text(info.doc),
      "metadata", Text(info.metadata),
      "flags", static_cast<long long>(info.flags),
      "size", static_cast<long long>(info.size),
      "alignment", static_cast<long long>(info.alignment),
      "offset", static_cast<long long>(info.offset),
      "field_static_type_index", static_cast<int>(info.field_static_type_index),
      "getter", getter.get(),
      "setter", setter.get(),
      "default", default_value);
  // clang-format on
}

PyObject* MethodDict(const TVMFFITypeInfo& type, const TVMFFIMethodInfo& info) {
  PyObject* func = FromBorrowedAny(info.method);
  if (func == nullptr) return nullptr;
  ApplyMetadata(func, type, info);
  // clang-format off
  return Py_BuildValue("{sNsNsNsLsN}",
      "name", Text(info.name),
      "doc", Text(info.doc),
      "metadata", Text(info.metadata),
      "flags", static_cast<long long>(info.flags),
      "func", func);
  // clang-format on
}

// Appends a new object, which it takes over. False with an error set.
bool Append(PyObject* list, PyObject* item) {
  Ref owned = Ref::Steal(item);
  return owned && PyList_Append(list, item) == 0;
}

PyObject* TypeDict(const TVMFFITypeInfo* type) {
  Ref ancestors = Ref::Steal(PyList_New(0));
  Ref fields = Ref::Steal(PyList_New(0));
  Ref methods = Ref::Steal(PyList_New(0));
  if (!ancestors || !fields || !methods) return nullptr;
  for (int32_t i = 0; i < type->type_depth; ++i) {
    PyObject* ancestor = PyLong_FromLong(type->type_ancestors[i]->type_index);
    if (!Append(ancestors.get(), ancestor)) return nullptr;
  }
  for (int32_t i = 0; i < type->num_fields; ++i) {
    if (!Append(fields.get(), FieldDict(type, i))) return nullptr;
  }
  for (int32_t i = 0; i < type->num_methods; ++i) {
    if (!Append(methods.get(), MethodDict(*type, type->methods[i]))) return nullptr;
  }
  int32_t size = type->metadata != nullptr ? type->metadata->total_size : 0;
  // clang-format off
  return Py_BuildValue("{sNsOsOsOsNsN}",
      "type_key", Text(type->type_key),
      "type_ancestors", ancestors.get(),
      "fields", fields.get(),
      "methods", methods.get(),
      "total_size", size != 0 ? PyLong_FromLong(size) : Py_NewRef(Py_None),
      "has_metadata", PyBool_FromLong(type->metadata != nullptr));
  // clang-format on
}

PyObject* RawTypeInfo(PyObject*, PyObject* arg) {
  long index = PyLong_AsLong(arg);
  if (index == -1 && PyErr_Occurred()) return nullptr;
  return Guarded([&]() -> PyObject* {
    const TVMFFITypeInfo* type =
        index >= 0 && index <= INT32_MAX ? FindTypeInfo(static_cast<int32_t>(index)) : nullptr;
    if (type == nullptr) Py_RETURN_NONE;
    return TypeDict(type);
  });
}

PyObject* TypeKeyToIndex(PyObject*, PyObject* key) {
  TVMFFIByteArray bytes;
  if (!PyUnicode_Check(key)) {
    return PyErr_Format(PyExc_TypeError, "a type key must be a str, got %s", Py_TYPE(key)->tp_name);
  }
  if (!Utf8(key, &bytes)) return nullptr;
  // Unlike TVMFFITypeKeyToIndex this leaves no error behind when the key is unknown.
  int32_t index = TVMFFITypeGetOrAllocIndex(&bytes, -1, 0, 0, 0, -2);
  if (index < 0) Py_RETURN_NONE;
  return PyLong_FromLong(index);
}

PyObject* GetOrAllocTypeIndex(PyObject*, PyObject* args) {
  PyObject* key;
  int depth, parent;
  if (!PyArg_ParseTuple(args, "Uii", &key, &depth, &parent)) return nullptr;
  TVMFFIByteArray bytes;
  if (!Utf8(key, &bytes)) return nullptr;
  return Guarded([&]() -> PyObject* {
    const TVMFFITypeInfo* info = FindTypeInfo(parent);
    if (info == nullptr || info->type_depth + 1 != depth) {
      return PyErr_Format(PyExc_ValueError, "type index %d cannot be the parent of `%U`", parent,
                          key);
    }
    auto alloc = ffi::Function::GetGlobalRequired("ffi.tether.AllocTypeIndex");
    return PyLong_FromLong(
        alloc(ffi::String(bytes.data, bytes.size), depth, parent).cast<int32_t>());
  });
}

PyObject* GetTypeAttr(PyObject*, PyObject* args) {
  int index;
  PyObject* name;
  if (!PyArg_ParseTuple(args, "iU", &index, &name)) return nullptr;
  TVMFFIByteArray bytes;
  if (!Utf8(name, &bytes)) return nullptr;
  const TVMFFITypeAttrColumn* column = TVMFFIGetTypeAttrColumn(&bytes);
  if (column == nullptr) Py_RETURN_NONE;
  int64_t i = static_cast<int64_t>(index) - column->begin_index;
  if (i < 0 || i >= column->size) Py_RETURN_NONE;
  return FromBorrowedAny(column->data[i]);
}

PyObject* RegisterTypeAttr(PyObject*, PyObject* args) {
  int index;
  PyObject *name, *value;
  if (!PyArg_ParseTuple(args, "iUO", &index, &name, &value)) return nullptr;
  TVMFFIByteArray bytes;
  Conversion converted;
  if (!Utf8(name, &bytes) || !converted.Add(value)) return nullptr;
  if (int code = TVMFFITypeRegisterAttr(index, &bytes, converted.data()))
    return RaiseFromCall(code);
  Py_RETURN_NONE;
}

PyObject* RegisterTypeMethod(PyObject*, PyObject* args) {
  int index;
  long long flags;
  PyObject *name, *func, *metadata;
  if (!PyArg_ParseTuple(args, "iUOLU", &index, &name, &func, &flags, &metadata)) return nullptr;
  TVMFFIMethodInfo info{};
  Conversion converted;
  if (!Utf8(name, &info.name) || !Utf8(metadata, &info.metadata) || !converted.Add(func)) {
    return nullptr;
  }
  info.flags = flags;
  info.method = *converted.data();
  if (int code = TVMFFITypeRegisterMethod(index, &info)) return RaiseFromCall(code);
  Py_RETURN_NONE;
}

PyMethodDef reflection_functions[] = {
    {"_raw_type_info", Entry<RawTypeInfo>, METH_O,
     "What the type table knows of a type, as a dict."},
    {"_object_type_key_to_index", Entry<TypeKeyToIndex>, METH_O, "Index of a type key, or None."},
    {"_get_or_alloc_type_index", Entry<GetOrAllocTypeIndex>, METH_VARARGS, nullptr},
    {"_get_type_attr", Entry<GetTypeAttr>, METH_VARARGS, nullptr},
    {"_register_type_attr", Entry<RegisterTypeAttr>, METH_VARARGS, nullptr},
    {"_register_type_method", Entry<RegisterTypeMethod>, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

int InitReflection(PyObject* module) { return PyModule_AddFunctions(module, reflection_functions); }

}  // namespace tether_py
