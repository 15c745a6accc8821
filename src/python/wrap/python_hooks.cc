// SPDX-License-Identifier: Apache-2.0
// What C++ uses of the part that is written in Python: how it is filled in.
#include "python/wrap/python_hooks.h"
#include "python/base/entry.h"

#include <iterator>

#include "python/base/python_api.h"
#include "python/wrap/wrapper.h"

namespace tether_py {

PythonHooks hooks{};

namespace {

struct HookName {
  const char* name;
  PyObject* PythonHooks::*place;
};
constexpr HookName Named(const char* name, PyObject* PythonHooks::*place) {
  return HookName{name, place};
}

#define TETHER_HOOK(name) Named(#name, &PythonHooks::name)
constexpr HookName kHookNames[] = {
    TETHER_HOOK(object_class),   TETHER_HOOK(native_object_class),
    TETHER_HOOK(bytes_class),    TETHER_HOOK(convertible_class),
    TETHER_HOOK(make_class),     TETHER_HOOK(convert_error_class),
    TETHER_HOOK(object_repr),    TETHER_HOOK(type_info_of_class),
    TETHER_HOOK(describe),       TETHER_HOOK(error_kinds),
    TETHER_HOOK(error_classes),  TETHER_HOOK(class_and_text),
    TETHER_HOOK(known_places),   TETHER_HOOK(find_places),
    TETHER_HOOK(release_frames), TETHER_HOOK(dtype_of_torch),
    TETHER_HOOK(dtype_of_numpy), TETHER_HOOK(prepare_torch),
};
#undef TETHER_HOOK
constexpr Py_ssize_t kNumHooks = static_cast<Py_ssize_t>(std::size(kHookNames));
static_assert(sizeof(PythonHooks) == sizeof(PyObject*) * kNumHooks, "every hook has a name");

bool IsWrapperClass(PyObject* cls) {
  return PyType_Check(cls) && PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cls), types.object);
}

// What C++ casts without another check.
bool CheckHooks(const PythonHooks& given) {
  if (!IsWrapperClass(given.object_class)) {
    PyErr_Format(PyExc_TypeError, "hook 'object_class' must be a subclass of CObject, got %R",
                 given.object_class);
  } else if (!PyType_Check(given.bytes_class) ||
             !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(given.bytes_class), &PyBytes_Type)) {
    PyErr_Format(PyExc_TypeError, "hook 'bytes_class' must be a subclass of bytes, got %R",
                 given.bytes_class);
  } else if (!PyExceptionClass_Check(given.convert_error_class)) {
    PyErr_Format(PyExc_TypeError, "hook 'convert_error_class' must be an exception class, got %R",
                 given.convert_error_class);
  } else {
    return true;
  }
  return false;
}

PyObject* SetHooks(PyObject*, PyObject* args, PyObject* kwargs) {
  if (PyTuple_GET_SIZE(args) != 0 || kwargs == nullptr) {
    return PyErr_Format(PyExc_TypeError, "_set_hooks() takes the hooks as keyword arguments");
  }
  PythonHooks given{};
  for (const HookName& hook : kHookNames) {
    Ref name = Ref::Steal(PyUnicode_FromString(hook.name));
    PyObject* value = name ? PyDict_GetItemWithError(kwargs, name.get()) : nullptr;
    if (value == nullptr) {
      if (PyErr_Occurred()) return nullptr;
      return PyErr_Format(PyExc_TypeError, "_set_hooks() is missing the hook '%s'", hook.name);
    }
    given.*hook.place = value;
  }
  // All of ours are there, so more names than we have means an unknown one.
  if (PyDict_GET_SIZE(kwargs) != kNumHooks) {
    for (const HookName& hook : kHookNames) {
      if (PyDict_DelItemString(kwargs, hook.name) < 0) return nullptr;
    }
    return PyErr_Format(PyExc_TypeError, "_set_hooks() got unknown hooks: %R", kwargs);
  }
  if (!CheckHooks(given)) return nullptr;
  // Not released: another thread may be calling one that is replaced.
  for (const HookName& hook : kHookNames) hooks.*hook.place = Py_NewRef(given.*hook.place);
  Py_RETURN_NONE;
}

PyObject* RaiseNotLoaded(PyObject*, PyObject*) {
  return PyErr_Format(PyExc_RuntimeError,
                      "tvm_ffi.core was used before its Python part was loaded");
}

PyMethodDef not_loaded = {"_not_loaded", Entry<RaiseNotLoaded>, METH_VARARGS, nullptr};

PyMethodDef hook_functions[] = {
    {"_set_hooks", EntryOfAnyKind<SetHooks>(), METH_VARARGS | METH_KEYWORDS,
     "Tell C++ what it uses of the part written in Python."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

int InitPythonHooks(PyObject* module) {
  for (const HookName& hook : kHookNames) {
    hooks.*hook.place = PyCFunction_New(&not_loaded, nullptr);
    if (hooks.*hook.place == nullptr) return -1;
  }
  hooks.object_class = Py_NewRef(reinterpret_cast<PyObject*>(types.object));
  hooks.bytes_class = Py_NewRef(reinterpret_cast<PyObject*>(&PyBytes_Type));
  hooks.convert_error_class = Py_NewRef(PyExc_TypeError);
  Py_CLEAR(hooks.make_class);
  return PyModule_AddFunctions(module, hook_functions);
}

}  // namespace tether_py
