// SPDX-License-Identifier: Apache-2.0
// The module __main__ at exit.
//
// At exit CPython drops its modules. What only a module's names refer to goes with it: files are
// written, finalisers run. A function that is registered in C++ has a reference to those names, and
// no collection can free them. But CPython empties a module that is still alive then. So __main__
// is kept where C++ has functions or classes of it. Other modules stay as they are: their objects
// may need what the end of the process has taken apart.
#include <tvm/ffi/function.h>

#include "python/base/entry.h"
#include "python/base/python_api.h"
#include "python/call/callback.h"
#include "python/call/main_module.h"
#include "python/wrap/class_table.h"

namespace tether_py {

namespace {

// Whether a callable comes from the module with these names, as far as that can be seen.
bool IsFrom(PyObject* callable, PyObject* names) {
  if (PyMethod_Check(callable)) callable = PyMethod_GET_FUNCTION(callable);
  if (PyFunction_Check(callable)) return PyFunction_GET_GLOBALS(callable) == names;
  PyObject* cls = callable;
  if (!PyType_Check(cls)) cls = reinterpret_cast<PyObject*>(Py_TYPE(callable));
  Ref module = Ref::Steal(PyObject_GetAttrString(cls, "__module__"));
  if (!module) PassOver();
  return module && PyUnicode_Check(module.get()) &&
         PyUnicode_CompareWithASCIIString(module.get(), "__main__") == 0;
}

bool HasClassFrom(PyObject* names) {
  const ClassTable* table = class_table.load(std::memory_order_acquire);
  for (size_t i = 0; i < table->size; ++i) {
    PyTypeObject* cls = table->classes[i].load(std::memory_order_acquire);
    if (cls != nullptr && IsFrom(reinterpret_cast<PyObject*>(cls), names)) return true;
  }
  return false;
}

bool HasFunctionFrom(PyObject* names) {
  for (const ffi::String& name : ffi::Function::ListGlobalNames()) {
    std::optional<ffi::Function> function = ffi::Function::GetGlobal(name);
    if (!function.has_value()) continue;
    PyObject* callable = CallableOf(ffi::details::ObjectUnsafe::GetHeader(function->get()));
    if (callable != nullptr && IsFrom(callable, names)) return true;
  }
  return false;
}

PyObject* KeepMainModule(PyObject*, PyObject*) {
  return Guarded([]() -> PyObject* {
    Ref module = LoadedModule("__main__");
    PyObject* names =
        module && PyModule_Check(module.get()) ? PyModule_GetDict(module.get()) : nullptr;
    if (names != nullptr && (HasFunctionFrom(names) || HasClassFrom(names))) module.release();
    Py_RETURN_NONE;
  });
}

}  // namespace

int InitMainModule(PyObject*) {
  static PyMethodDef keep = {"_keep_main_module", Entry<KeepMainModule>, METH_NOARGS, nullptr};
  Ref hook = Ref::Steal(PyCFunction_New(&keep, nullptr));
  return hook && CallAtExit(hook.get()) ? 0 : -1;
}

}  // namespace tether_py
