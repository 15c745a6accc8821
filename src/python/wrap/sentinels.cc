// SPDX-License-Identifier: Apache-2.0
// The objects MISSING and KWARGS: how they are made.
#include "python/wrap/sentinels.h"

#include <tvm/ffi/function.h>

#include "python/base/entry.h"
#include "python/wrap/wrapper.h"

namespace tether_py {

Sentinels sentinels{};

namespace {

// NULL with an error set.
PyObject* MakeSentinel(PyObject* module, const char* name, const char* function) {
  TVMFFIObject* h = ffi::details::ObjectUnsafe::MoveObjectRefToTVMFFIObjectPtr(
      ffi::Function::GetGlobalRequired(function)().cast<ffi::ObjectRef>());
  Ref made = Ref::Steal(WrapOwned(h));
  if (!made || PyModule_AddObjectRef(module, name, made.get()) < 0) return nullptr;
  return made.release();
}

PyObject* MakeSentinels(PyObject* module, PyObject*) {
  return Guarded([&]() -> PyObject* {
    sentinels.missing = MakeSentinel(module, "MISSING", "ffi.GetInvalidObject");
    if (sentinels.missing == nullptr) return nullptr;
    sentinels.kwargs = MakeSentinel(module, "KWARGS", "ffi.GetKwargsObject");
    if (sentinels.kwargs == nullptr) return nullptr;
    Py_RETURN_NONE;
  });
}

PyMethodDef sentinel_functions[] = {{"_make_sentinels", Entry<MakeSentinels>, METH_NOARGS,
                                     "Make MISSING and KWARGS, once there is a class for them."},
                                    {nullptr, nullptr, 0, nullptr}};

}  // namespace

int InitSentinels(PyObject* module) { return PyModule_AddFunctions(module, sentinel_functions); }

}  // namespace tether_py
