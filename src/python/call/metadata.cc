// SPDX-License-Identifier: Apache-2.0
// Global functions, and what is known about a function besides its code.
//
// Shared state: get_metadata (WrapGlobal): set on first use, constant afterwards.
#include "python/call/metadata.h"
#include "python/base/entry.h"

#include <tvm/ffi/extra/json.h>
#include <tvm/ffi/function.h>

#include <string_view>

#include "python/base/python_api.h"
#include "python/call/callback.h"
#include "python/call/function.h"
#include "python/convert/convert.h"
#include "python/convert/errors.h"
#include "python/wrap/python_hooks.h"

namespace tether_py {

namespace {

// ---- metadata

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

// What a registration says about a function, a JSON object. "release_gil" is the first value of
// the attribute of that name; 0 and false turn it off.
void ReadMetadata(FunctionWrapper* w, const ffi::String& metadata, bool takes_object) {
  std::string_view text(metadata.data(), metadata.size());
  // Nearly all metadata mentions none of this and need not be parsed.
  if (text.find("\"release_gil\"") == text.npos && text.find("\"parameters\"") == text.npos) return;
  ffi::String error;
  auto entries = ffi::json::Parse(metadata, &error).as<ffi::json::Object>();
  if (!entries.has_value()) return;
  if (auto flag = ValueOf(*entries, "release_gil").try_cast<bool>()) w->release_gil = *flag;
  auto list = ValueOf(*entries, "parameters").as<ffi::json::Array>();
  if (!list.has_value() || sentinels.missing == nullptr) return;
  PyObject* parameters = ReadParameters(*list, takes_object);
  if (parameters != nullptr) SetParameters(w, parameters);
  PyErr_Clear();
}

void SetOrigin(FunctionWrapper* w, PyObject* origin) {
  Ref owned = Ref::Borrow(origin);
  CriticalSection section(AsObject(&w->base));
  if (w->origin == nullptr) w->origin = owned.release();
}

// ---- the GIL during a call

// How the functions of the library are called. The first entry whose prefix a name has applies; a
// name with no entry is not the library's, and its function starts with the default.
struct CallPolicy {
  std::string_view prefix;
  // It looks into its arguments, which other Python threads may change. Not so functions of
  // modules: they run code of others, which may wait for a thread that wants the GIL.
  bool keeps_gil;
  // It goes through whole structures and locks one object after the other, so a call must not hold
  // the critical sections of its arguments (CallKeepingGIL).
  bool walks;
};
constexpr CallPolicy kCallPolicies[] = {
    {"ffi.Module", false, false},
    {"ffi.DeepCopy", true, true},
    {"ffi.GetFirstStructuralMismatch", true, true},
    {"ffi.Recursive", true, true},
    {"ffi.ReprPrint", true, true},
    {"ffi.StructuralEqual", true, true},
    {"ffi.StructuralHash", true, true},
    {"ffi.StructuralKey", true, true},
    {"ffi.StructuralWalk", true, true},
    {"ffi.ToJSONGraph", true, true},
    {"ffi.json.Stringify", true, true},
    {"ffi.", true, false},
};

// NULL for functions of others.
const CallPolicy* PolicyOf(std::string_view name) {
  for (const CallPolicy& policy : kCallPolicies) {
    if (name.substr(0, policy.prefix.size()) == policy.prefix) return &policy;
  }
  return nullptr;
}

// ---- global functions

// The wrapper of a global function; a new one starts as its registration says.
PyObject* WrapGlobal(TVMFFIObject* h, PyObject* name) {
  static const auto* get_metadata =
      new ffi::Function(ffi::Function::GetGlobalRequired("ffi.GetGlobalFuncMetadata"));
  tie::TieSlot* slot = Engine::FindSlot(h);
  bool is_new = slot == nullptr || slot->word.load(std::memory_order_relaxed) == 0;
  Ref function = Ref::Steal(WrapOwned(h));
  if (!function || !is_new || !PyObject_TypeCheck(function.get(), types.function)) {
    return function.release();
  }
  return Guarded([&]() -> PyObject* {
    TVMFFIByteArray bytes;
    if (!Utf8(name, &bytes)) return nullptr;
    auto* w = reinterpret_cast<FunctionWrapper*>(function.get());
    if (const CallPolicy* policy = PolicyOf({bytes.data, bytes.size})) {
      if (policy->keeps_gil) w->release_gil = false;
      w->walks = policy->walks;
    }
    auto metadata = (*get_metadata)(ffi::String(bytes.data, bytes.size)).cast<ffi::String>();
    ReadMetadata(w, metadata, false);
    SetOrigin(w, name);
    return function.release();
  });
}

PyObject* GetGlobalFunc(PyObject*, PyObject* args) {
  PyObject* name;
  int allow_missing = 0;
  if (!PyArg_ParseTuple(args, "U|p", &name, &allow_missing)) return nullptr;
  TVMFFIByteArray bytes;
  if (!Utf8(name, &bytes)) return nullptr;
  TVMFFIObjectHandle handle = nullptr;
  if (int code = TVMFFIFunctionGetGlobal(&bytes, &handle)) return RaiseFromCall(code);
  if (handle != nullptr) {
    // Functions of C++ stay registered; one made in Python may be removed and must then die.
    bool stays = CallableOf(static_cast<TVMFFIObject*>(handle)) == nullptr;
    PyObject* function = WrapGlobal(static_cast<TVMFFIObject*>(handle), name);
    if (stays && function != nullptr) ShareForGood(function);
    return function;
  }
  if (allow_missing) Py_RETURN_NONE;
  return PyErr_Format(PyExc_ValueError, "Cannot find global function %U", name);
}

PyObject* RegisterGlobalFunc(PyObject*, PyObject* args) {
  PyObject* name;
  PyObject* func;
  int override = 0;
  if (!PyArg_ParseTuple(args, "UO|p", &name, &func, &override)) return nullptr;
  TVMFFIByteArray bytes;
  if (!Utf8(name, &bytes)) return nullptr;
  Ref made =
      PyObject_TypeCheck(func, types.function) ? Ref::Borrow(func) : Ref::Steal(WrapCallable(func));
  if (!made) return nullptr;
  Using function(AsWrapper(made.get()));
  if (function.get() == nullptr) return nullptr;
  if (int code = TVMFFIFunctionSetGlobal(&bytes, function.get(), override)) {
    return RaiseFromCall(code);
  }
  return made.release();
}

// (function, name, doc, metadata): says what a function without an origin is.
PyObject* DescribeFunction(PyObject*, PyObject* args) {
  PyObject *function, *name, *doc, *metadata;
  if (!PyArg_ParseTuple(args, "O!UUU", types.function, &function, &name, &doc, &metadata)) {
    return nullptr;
  }
  Ref origin = Ref::Steal(PyTuple_Pack(3, name, doc, metadata));
  if (!origin) return nullptr;
  SetOrigin(reinterpret_cast<FunctionWrapper*>(function), origin.get());
  Py_RETURN_NONE;
}

// The Python callable inside a function, or None.
PyObject* CallableIn(PyObject*, PyObject* function) {
  if (!PyObject_TypeCheck(function, types.function)) Py_RETURN_NONE;
  Using used(AsWrapper(function));
  if (used.get() == nullptr) {
    PyErr_Clear();
    Py_RETURN_NONE;
  }
  PyObject* callable = CallableOf(used.get());
  return Py_NewRef(callable != nullptr ? callable : Py_None);
}

PyMethodDef global_functions[] = {
    {"_describe_function", Entry<DescribeFunction>, METH_VARARGS, nullptr},
    {"_callable_in", Entry<CallableIn>, METH_O, nullptr},
    {"_get_global_func", Entry<GetGlobalFunc>, METH_VARARGS, nullptr},
    {"_register_global_func", Entry<RegisterGlobalFunc>, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void ApplyMetadata(PyObject* function, const TVMFFIMethodInfo& info, bool takes_object) {
  if (!PyObject_TypeCheck(function, types.function)) return;
  auto* w = reinterpret_cast<FunctionWrapper*>(function);
  try {
    ReadMetadata(w, ffi::String(info.metadata.data, info.metadata.size), takes_object);
    Ref origin = Ref::Steal(
        Py_BuildValue("(s#s#s#)", info.name.data, static_cast<Py_ssize_t>(info.name.size),
                      info.doc.data, static_cast<Py_ssize_t>(info.doc.size), info.metadata.data,
                      static_cast<Py_ssize_t>(info.metadata.size)));
    if (origin) SetOrigin(w, origin.get());
    PyErr_Clear();
  } catch (const std::exception&) {  // out of memory: as if there were no metadata
  }
}

int InitGlobalFunctions(PyObject* module) {
  return PyModule_AddFunctions(module, global_functions);
}

}  // namespace tether_py
