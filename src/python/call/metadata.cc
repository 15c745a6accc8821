// SPDX-License-Identifier: Apache-2.0
// What is known about a function besides its code.
#include "python/call/metadata.h"
#include "python/base/entry.h"

#include <tvm/ffi/extra/json.h>

#include <string>
#include <string_view>

#include "python/call/function.h"
#include "python/convert/convert.h"
#include "python/wrap/sentinels.h"

namespace tether_py {

namespace {

// The value of a key, or None.
ffi::Any ValueOf(const ffi::json::Object& entries, const char* key) {
  auto it = entries.find(ffi::String(key));
  return it != entries.end() ? (*it).second : ffi::Any();
}

// (names, defaults) from a list of {"name": ..., "default": ...}. NULL if it is something else; an
// error may be set.
PyObject* ReadParameters(const ffi::json::Array& list, bool takes_object) {
  Py_ssize_t n = static_cast<Py_ssize_t>(list.size()) + (takes_object ? 1 : 0);
  Ref names = Ref::Steal(PyTuple_New(n));
  Ref defaults = Ref::Steal(PyTuple_New(n));
  if (!names || !defaults) return nullptr;
  Py_ssize_t i = 0;
  auto add = [&](const char* text, size_t size, PyObject* value) {
    PyObject* name = PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(size), nullptr);
    if (name != nullptr) PyUnicode_InternInPlace(&name);
    PyTuple_SET_ITEM(names.get(), i, name);
    PyTuple_SET_ITEM(defaults.get(), i, value);
    ++i;
    return name != nullptr && value != nullptr;
  };
  if (takes_object && !add("self", 4, Py_NewRef(sentinels.missing))) return nullptr;
  for (const ffi::Any& item : list) {
    auto entry = item.as<ffi::json::Object>();
    if (!entry.has_value()) return nullptr;
    auto name = ValueOf(*entry, "name").as<ffi::String>();
    if (!name.has_value()) return nullptr;
    bool has_default = entry->find(ffi::String("default")) != entry->end();
    ffi::Any value = ValueOf(*entry, "default");
    PyObject* converted = has_default ? FromBorrowedAny(ffi::AnyView(value).CopyToTVMFFIAny())
                                      : Py_NewRef(sentinels.missing);
    if (!add(name->data(), name->size(), converted)) return nullptr;
  }
  return PyTuple_Pack(2, names.get(), defaults.get());
}

// (function, name, doc, metadata, file): says what a function without an origin is.
PyObject* DescribeFunction(PyObject*, PyObject* args) {
  PyObject *function, *name, *doc, *metadata, *file;
  if (!PyArg_ParseTuple(args, "O!UUUU", types.function, &function, &name, &doc, &metadata, &file)) {
    return nullptr;
  }
  Ref origin = Ref::Steal(PyTuple_Pack(4, name, doc, metadata, file));
  if (!origin) return nullptr;
  SetOrigin(reinterpret_cast<FunctionWrapper*>(function), origin.get());
  Py_RETURN_NONE;
}

PyMethodDef metadata_functions[] = {
    {"_describe_function", Entry<DescribeFunction>, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

// "release_gil" is the first value of the attribute of that name; 0 and false turn it off.
void ReadMetadata(FunctionWrapper* w, const ffi::String& metadata, bool takes_object) {
  std::string_view text(metadata.data(), metadata.size());
  // Nearly all metadata mentions none of this and need not be parsed.
  if (text.find("\"release_gil\"") == text.npos && text.find("\"parameters\"") == text.npos) return;
  ffi::String error;
  auto entries = ffi::json::Parse(metadata, &error).as<ffi::json::Object>();
  if (!entries.has_value()) return;
  if (auto flag = ValueOf(*entries, "release_gil").try_cast<bool>()) SetReleaseGil(w, *flag);
  auto list = ValueOf(*entries, "parameters").as<ffi::json::Array>();
  if (!list.has_value() || sentinels.missing == nullptr) return;
  PyObject* parameters = ReadParameters(*list, takes_object);
  if (parameters != nullptr) SetParameters(w, parameters);
  PassOver();
}

void SetOrigin(FunctionWrapper* w, PyObject* origin) {
  Ref owned = Ref::Borrow(origin);
  CriticalSection section(AsObject(&w->base));
  if (w->origin == nullptr) w->origin = owned.release();
}

void ApplyMetadata(PyObject* function, const TVMFFITypeInfo& type, const TVMFFIMethodInfo& info) {
  if (!PyObject_TypeCheck(function, types.function)) return;
  auto* w = reinterpret_cast<FunctionWrapper*>(function);
  try {
    // The object is the first parameter of a method, and has no name in the metadata.
    bool takes_object = (info.flags & kTVMFFIFieldFlagBitMaskIsStaticMethod) == 0;
    ReadMetadata(w, ffi::String(info.metadata.data, info.metadata.size), takes_object);
    std::string name(type.type_key.data, type.type_key.size);
    name.append(".").append(info.name.data, info.name.size);
    Ref origin =
        Ref::Steal(Py_BuildValue("(s#s#s#)", name.data(), static_cast<Py_ssize_t>(name.size()),
                                 info.doc.data, static_cast<Py_ssize_t>(info.doc.size),
                                 info.metadata.data, static_cast<Py_ssize_t>(info.metadata.size)));
    if (origin) SetOrigin(w, origin.get());
    PyErr_Clear();
  } catch (const std::exception&) {  // out of memory: as if there were no metadata
  }
}

int InitMetadata(PyObject* module) { return PyModule_AddFunctions(module, metadata_functions); }

}  // namespace tether_py
