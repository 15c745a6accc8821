// SPDX-License-Identifier: Apache-2.0
// Fields of classes defined in Python. The package lays them out; here they enter the type table
// with a setter that converts what C++ or Python stores in them:
//
//   core._register_field(type_index, name, doc, metadata, flags, size, alignment, offset,
//                        static_index, default, converter) -> (getter, setter)
#include <tvm/ffi/function.h>

#include "python/base/entry.h"
#include "python/base/python_api.h"
#include "python/convert/convert.h"
#include "python/convert/errors.h"
#include "python/data/field_accessors.h"
#include "python/schema/schema.h"

namespace tether_py {

using ffi::TypeIndex;

namespace {

int64_t AddressOf(const void* pointer) {
  return static_cast<int64_t>(reinterpret_cast<intptr_t>(pointer));
}

void FillAccessors(TVMFFIFieldInfo* info, PyObject* converter, ffi::Function* keep) {
  static const auto* make_getter =
      new ffi::Function(ffi::Function::GetGlobalRequired("ffi.MakeFieldGetter"));
  static const auto* make_setter =
      new ffi::Function(ffi::Function::GetGlobalRequired("ffi.MakeFieldSetter"));
  int32_t index = info->field_static_type_index;
  info->getter = reinterpret_cast<TVMFFIFieldGetter>(
      static_cast<intptr_t>((*make_getter)(index).cast<int64_t>()));
  *keep = (*make_setter)(index, AddressOf(converter),
                         AddressOf(reinterpret_cast<const void*>(&ConvertForField)))
              .cast<ffi::Function>();
  info->setter = ffi::details::ObjectUnsafe::TVMFFIObjectPtrFromObjectRef(*keep);
}

PyObject* RegisterField(PyObject*, PyObject* args) {
  int type_index, static_index;
  PyObject *name, *doc, *metadata, *default_value, *converter;
  long long flags, size, alignment, offset;
  if (!PyArg_ParseTuple(args, "iUUULLLLiOO!", &type_index, &name, &doc, &metadata, &flags, &size,
                        &alignment, &offset, &static_index, &default_value, types.converter,
                        &converter)) {
    return nullptr;
  }
  TVMFFIFieldInfo info{};
  if (!Utf8(name, &info.name) || !Utf8(doc, &info.doc) || !Utf8(metadata, &info.metadata)) {
    return nullptr;
  }
  info.flags = flags | kTVMFFIFieldFlagBitMaskWritable | kTVMFFIFieldFlagBitSetterIsFunctionObj |
               kTVMFFIFieldFlagBitMaskPlain;
  info.size = size;
  info.alignment = alignment;
  info.offset = offset;
  info.field_static_type_index = static_index;
  Conversion converted;
  if ((flags & kTVMFFIFieldFlagBitMaskHasDefault) != 0) {
    if (!converted.Add(default_value)) return nullptr;
    info.default_value_or_factory = *converted.data();
  }
  return Guarded([&]() -> PyObject* {
    ffi::Function setter;
    FillAccessors(&info, converter, &setter);
    if (int code = TVMFFITypeRegisterField(type_index, &info)) return RaiseFromCall(code);
    // The setter borrows its converter, which therefore is never released, like the type.
    Py_INCREF(converter);
    const TVMFFITypeInfo* type = TVMFFIGetTypeInfo(type_index);
    // The setter stores these values unchanged, so it does not have to be called.
    Field* field = FieldOfType(type, type->num_fields - 1, KeepsValuesOf(converter, static_index));
    Ref get = Ref::Steal(MakeFieldGetter(field));
    Ref set = Ref::Steal(MakeFieldSetter(field));
    return get && set ? PyTuple_Pack(2, get.get(), set.get()) : nullptr;
  });
}

PyObject* RegisterTypeMetadata(PyObject*, PyObject* args) {
  int type_index, kind, total_size;
  if (!PyArg_ParseTuple(args, "iii", &type_index, &kind, &total_size)) return nullptr;
  TVMFFITypeMetadata metadata{};
  metadata.structural_eq_hash_kind = static_cast<TVMFFISEqHashKind>(kind);
  metadata.total_size = total_size;
  if (int code = TVMFFITypeRegisterMetadata(type_index, &metadata)) return RaiseFromCall(code);
  Py_RETURN_NONE;
}

PyMethodDef py_class_functions[] = {
    {"_register_field", Entry<RegisterField>, METH_VARARGS,
     "Add a field to a class defined in Python."},
    {"_register_type_metadata", Entry<RegisterTypeMetadata>, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

int InitPyClass(PyObject* module) { return PyModule_AddFunctions(module, py_class_functions); }

}  // namespace tether_py
