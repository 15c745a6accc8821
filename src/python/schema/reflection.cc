// SPDX-License-Identifier: Apache-2.0
// The type table as Python data: the package builds its classes from this.
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/function.h>

#include "python/base/entry.h"
#include "python/base/python_api.h"
#include "python/call/metadata.h"
#include "python/convert/convert.h"
#include "python/convert/errors.h"
#include "python/data/field_descriptors.h"
#include "python/schema/schema.h"
#include "python/wrap/python_hooks.h"

namespace tether_py {

using ffi::TypeIndex;

namespace {

Ref Text(const TVMFFIByteArray& bytes) {
  return Ref::Steal(PyUnicode_DecodeUTF8(bytes.data, static_cast<Py_ssize_t>(bytes.size), nullptr));
}

// Every index that was handed out has an entry; asking for another one would end the process.
const TVMFFITypeInfo* FindTypeInfo(int32_t index) {
  static ffi::Function* keys = nullptr;
  if (index < 0) return nullptr;
  if (index < TypeIndex::kTVMFFIStaticObjectEnd || FindClassOfIndex(index) != nullptr) {
    // Below, between 13 and 63, there are holes.
    if (index > TypeIndex::kTVMFFISmallBytes && index < TypeIndex::kTVMFFIStaticObjectBegin)
      return nullptr;
    return TVMFFIGetTypeInfo(index);
  }
  if (keys == nullptr) {
    keys = new ffi::Function(ffi::Function::GetGlobalRequired("ffi.GetRegisteredTypeKeys"));
  }
  for (const ffi::String& key : (*keys)().cast<ffi::Array<ffi::String>>()) {
    TVMFFIByteArray bytes{key.data(), key.size()};
    int32_t found = -1;
    if (TVMFFITypeKeyToIndex(&bytes, &found) == 0 && found == index)
      return TVMFFIGetTypeInfo(index);
  }
  return nullptr;
}

bool Put(PyObject* dict, const char* key, Ref value) {
  return value && PyDict_SetItemString(dict, key, value.get()) == 0;
}

Ref FieldDict(const TVMFFITypeInfo* type, int32_t i) {
  const TVMFFIFieldInfo& info = type->fields[i];
  Field* field = FieldOfType(type, i);
  Ref dict = Ref::Steal(PyDict_New());
  if (!dict) return nullptr;
  PyObject* d = dict.get();
  bool has_default = (info.flags & kTVMFFIFieldFlagBitMaskHasDefault) != 0;
  Ref default_value = has_default ? Ref::Steal(FromBorrowedAny(info.default_value_or_factory))
                                  : Ref::Borrow(sentinels.missing);
  bool done = Put(d, "name", Text(info.name)) && Put(d, "doc", Text(info.doc)) &&
              Put(d, "metadata", Text(info.metadata)) &&
              Put(d, "flags", Ref::Steal(PyLong_FromLongLong(info.flags))) &&
              Put(d, "size", Ref::Steal(PyLong_FromLongLong(info.size))) &&
              Put(d, "alignment", Ref::Steal(PyLong_FromLongLong(info.alignment))) &&
              Put(d, "offset", Ref::Steal(PyLong_FromLongLong(info.offset))) &&
              Put(d, "field_static_type_index",
                  Ref::Steal(PyLong_FromLong(info.field_static_type_index))) &&
              Put(d, "getter", Ref::Steal(MakeFieldGetter(field))) &&
              Put(d, "setter", Ref::Steal(MakeFieldSetter(field))) &&
              Put(d, "default", std::move(default_value));
  return done ? dict : Ref();
}

Ref MethodDict(const TVMFFIMethodInfo& info) {
  Ref dict = Ref::Steal(PyDict_New());
  if (!dict) return nullptr;
  PyObject* d = dict.get();
  Ref func = Ref::Steal(FromBorrowedAny(info.method));
  if (!func) return nullptr;
  ApplyMetadata(func.get(), info.metadata);
  bool done = Put(d, "name", Text(info.name)) && Put(d, "doc", Text(info.doc)) &&
              Put(d, "metadata", Text(info.metadata)) &&
              Put(d, "flags", Ref::Steal(PyLong_FromLongLong(info.flags))) &&
              Put(d, "func", std::move(func));
  return done ? dict : Ref();
}

PyObject* RawTypeInfo(PyObject*, PyObject* arg) {
  long index = PyLong_AsLong(arg);
  if (index == -1 && PyErr_Occurred()) return nullptr;
  return Guarded([&]() -> PyObject* {
    const TVMFFITypeInfo* type =
        index >= 0 && index <= INT32_MAX ? FindTypeInfo(static_cast<int32_t>(index)) : nullptr;
    if (type == nullptr) Py_RETURN_NONE;
    Ref dict = Ref::Steal(PyDict_New());
    Ref ancestors = Ref::Steal(PyList_New(0));
    Ref fields = Ref::Steal(PyList_New(0));
    Ref methods = Ref::Steal(PyList_New(0));
    if (!dict || !ancestors || !fields || !methods) return nullptr;
    for (int32_t i = 0; i < type->type_depth; ++i) {
      Ref ancestor = Ref::Steal(PyLong_FromLong(type->type_ancestors[i]->type_index));
      if (!ancestor || PyList_Append(ancestors.get(), ancestor.get()) < 0) return nullptr;
    }
    for (int32_t i = 0; i < type->num_fields; ++i) {
      Ref field = FieldDict(type, i);
      if (!field || PyList_Append(fields.get(), field.get()) < 0) return nullptr;
    }
    for (int32_t i = 0; i < type->num_methods; ++i) {
      Ref method = MethodDict(type->methods[i]);
      if (!method || PyList_Append(methods.get(), method.get()) < 0) return nullptr;
    }
    bool has_metadata = type->metadata != nullptr;
    Ref total_size = has_metadata && type->metadata->total_size != 0
                         ? Ref::Steal(PyLong_FromLong(type->metadata->total_size))
                         : Ref::Borrow(Py_None);
    bool done = Put(dict.get(), "type_key", Text(type->type_key)) &&
                Put(dict.get(), "type_ancestors", std::move(ancestors)) &&
                Put(dict.get(), "fields", std::move(fields)) &&
                Put(dict.get(), "methods", std::move(methods)) &&
                Put(dict.get(), "total_size", std::move(total_size)) &&
                Put(dict.get(), "has_metadata", Ref::Steal(PyBool_FromLong(has_metadata)));
    return done ? dict.release() : nullptr;
  });
}

PyObject* TypeKeyToIndex(PyObject*, PyObject* key) {
  TVMFFIByteArray bytes;
  if (!PyUnicode_Check(key)) {
    return PyErr_Format(PyExc_TypeError, "a type key must be a str, got %s", Py_TYPE(key)->tp_name);
  }
  if (!Utf8(key, &bytes)) return nullptr;
  // A query leaves no error behind when the key is unknown.
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
    return PyLong_FromLong(TVMFFITypeGetOrAllocIndex(&bytes, -1, depth, 0, 1, parent));
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
