// SPDX-License-Identifier: Apache-2.0
// Global functions: found and registered by name.
//
// Shared state: get_metadata (WrapGlobal): set on first use, constant afterwards.
#include "python/call/global_functions.h"

#include <tvm/ffi/function.h>

#include <string_view>

#include "python/base/entry.h"
#include "python/base/python_api.h"
#include "python/call/callback.h"
#include "python/call/function.h"
#include "python/call/metadata.h"
#include "python/convert/errors.h"

namespace tether_py {

namespace {

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
    {"ffi.tether.GraphWrite", true, true},
    {"ffi.", true, false},
};

// NULL for functions of others.
const CallPolicy* PolicyOf(std::string_view name) {
  for (const CallPolicy& policy : kCallPolicies) {
    if (name.substr(0, policy.prefix.size()) == policy.prefix) return &policy;
  }
  return nullptr;
}

// ---- by name

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
      if (policy->keeps_gil) SetReleaseGil(w, false);
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

PyMethodDef global_functions[] = {
    {"_get_global_func", Entry<GetGlobalFunc>, METH_VARARGS, nullptr},
    {"_register_global_func", Entry<RegisterGlobalFunc>, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

int InitGlobalFunctions(PyObject* module) {
  return PyModule_AddFunctions(module, global_functions);
}

}  // namespace tether_py
