// SPDX-License-Identifier: Apache-2.0
// Exceptions of Python become errors of C++.
#include "python/convert/exceptions.h"

#include <exception>
#include <new>

#include "python/base/entry.h"
#include "python/convert/attached_error.h"
#include "python/convert/departures.h"
#include "python/convert/raised_exception.h"

namespace tether_py {

using ffi::TypeIndex;

namespace {

PyObject* ConvertToError(PyObject*, PyObject* exc) {
  if (!PyExceptionInstance_Check(exc)) {
    return PyErr_Format(PyExc_TypeError, "expected an exception, got %s", Py_TYPE(exc)->tp_name);
  }
  return Guarded([&]() -> PyObject* {
    return WrapOwned(
        ffi::details::ObjectUnsafe::MoveObjectRefToTVMFFIObjectPtr(ErrorFromException(exc)));
  });
}

PyMethodDef exception_functions[] = {
    {"_convert_to_ffi_error", Entry<ConvertToError>, METH_O, "The FFI error for an exception."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

ffi::Error ErrorFromException(PyObject* exc) {
  Ref attached = AttachedTo(exc);
  Account account = AccountOf(exc, attached.get());
  if (attached) {
    CriticalSection section(attached.get());
    TVMFFIObject* h = Engine::Use(AsWrapper(attached.get()));
    if (h != nullptr && h->type_index == TypeIndex::kTVMFFIError) {
      TVMFFIByteArray frames = tie::AsBytes(account.frames);
      TVMFFIErrorGetCellPtr(h)->update_backtrace(h, &frames, kTVMFFIBacktraceUpdateModeReplace);
      return ffi::details::ObjectUnsafe::ObjectRefFromObjectPtr<ffi::Error>(
          ffi::details::ObjectUnsafe::ObjectPtrFromUnowned<ffi::Object>(h));
    }
  }
  return ffi::Error(account.kind, account.message, account.frames);
}

void RaiseToCaller() {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (value != nullptr && traceback != nullptr) PyException_SetTraceback(value, traceback);
  Ref type_ref = Ref::Steal(type), exc = Ref::Steal(value), tb = Ref::Steal(traceback);
  try {
    if (exc) {
      Ref attached = AttachedTo(exc.get());
      ffi::ObjectPtr<RaisedException> error =
          ffi::make_object<RaisedException>(exc.get(), AccountOf(exc.get(), attached.get()));
      Depart(error);
      TVMFFIErrorSetRaised(error.get());
      return;
    }
  } catch (const std::bad_alloc&) {
    PyErr_Clear();
    return TVMFFIErrorSetRaisedFromCStr("MemoryError", "");
  } catch (const std::exception&) {
  }
  PyErr_Clear();
  TVMFFIErrorSetRaisedFromCStr("RuntimeError", "a Python exception could not be converted");
}

int InitExceptions(PyObject* module) { return PyModule_AddFunctions(module, exception_functions); }

}  // namespace tether_py
