// SPDX-License-Identifier: Apache-2.0
// Exceptions both ways: FFI errors become Python exceptions and back.
#include <tvm/ffi/error.h>

#include <string>
#include <utility>

#include "convert.h"

namespace tether_py {

using ffi::TypeIndex;

namespace {

constexpr const char* kAttachedError = "__tvm_ffi_error__";

// For the extra context of errors: threads that raise one exception at once share its error.
ShortLock extra_context_lock;

// The error cell behind a wrapper, to be used in its critical section. NULL with an error set.
TVMFFIErrorCell* CellOf(PyObject* self) {
  TVMFFIObject* h = UseHandle(AsWrapper(self));
  if (h == nullptr) return nullptr;
  if (h->type_index != TypeIndex::kTVMFFIError) {
    PyErr_Format(PyExc_TypeError, "%s object does not hold an ffi.Error", Py_TYPE(self)->tp_name);
    return nullptr;
  }
  return TVMFFIErrorGetCellPtr(h);
}

// Of a copy: the error handler may be Python code, which may do anything to the error.
PyObject* Text(const TVMFFIByteArray& bytes) {
  std::string copy(bytes.data, bytes.size);
  return PyUnicode_DecodeUTF8(copy.data(), static_cast<Py_ssize_t>(copy.size()),
                              "backslashreplace");
}

PyObject* GetKind(PyObject* self, void*) {
  CriticalSection section(self);
  TVMFFIErrorCell* cell = CellOf(self);
  return cell != nullptr ? Text(cell->kind) : nullptr;
}
PyObject* GetMessage(PyObject* self, void*) {
  CriticalSection section(self);
  TVMFFIErrorCell* cell = CellOf(self);
  return cell != nullptr ? Text(cell->message) : nullptr;
}
PyObject* GetBacktrace(PyObject* self, void*) {
  CriticalSection section(self);
  TVMFFIErrorCell* cell = CellOf(self);
  return cell != nullptr ? Text(cell->backtrace) : nullptr;
}
PyObject* GetExtraContext(PyObject* self, void*) {
  CriticalSection section(self);
  TVMFFIErrorCell* cell = CellOf(self);
  if (cell == nullptr) return nullptr;
  TVMFFIAny value;
  {
    std::lock_guard<ShortLock> guard(extra_context_lock);
    auto* context = static_cast<TVMFFIObject*>(cell->extra_context);
    if (context == nullptr) Py_RETURN_NONE;
    Engine::AddStrong(context);
    tie::StoreObject(context, &value);
  }
  return FromOwnedAny(value);
}

PyObject* UpdateBacktrace(PyObject* self, PyObject* text) {
  CriticalSection section(self);
  TVMFFIErrorCell* cell = CellOf(self);
  TVMFFIByteArray bytes;
  if (cell == nullptr) return nullptr;
  if (!PyUnicode_Check(text)) {
    return PyErr_Format(PyExc_TypeError, "backtrace must be a str, got %s", Py_TYPE(text)->tp_name);
  }
  if (!Utf8(text, &bytes)) return nullptr;
  cell->update_backtrace(UseHandle(AsWrapper(self)), &bytes, kTVMFFIBacktraceUpdateModeReplace);
  Py_RETURN_NONE;
}

int InitError(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"kind", "message", "backtrace", nullptr};
  PyObject *kind, *message, *backtrace;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "UUU", const_cast<char**>(names), &kind, &message,
                                   &backtrace)) {
    return -1;
  }
  TVMFFIByteArray k, m, b;
  if (!Utf8(kind, &k) || !Utf8(message, &m) || !Utf8(backtrace, &b)) return -1;
  TVMFFIObjectHandle handle = nullptr;
  if (TVMFFIErrorCreate(&k, &m, &b, &handle) != 0) {
    PyErr_NoMemory();
    return -1;
  }
  return BindNew(AsWrapper(self), static_cast<TVMFFIObject*>(handle)) ? 0 : -1;
}

PyObject* PyErrorOf(PyObject* self, PyObject*) {
  Ref make = Ref::Steal(PyObject_GetAttrString(core_module, "_py_error"));
  return make ? PyObject_CallOneArg(make.get(), self) : nullptr;
}

PyMethodDef error_methods[] = {
    {"update_backtrace", UpdateBacktrace, METH_O, "Replace the backtrace text."},
    {"py_error", PyErrorOf, METH_NOARGS, "The Python exception for this error, not yet raised."},
    {nullptr, nullptr, 0, nullptr}};

PyGetSetDef error_getset[] = {
    {"kind", GetKind, nullptr, "Name of the kind of error, such as ValueError.", nullptr},
    {"message", GetMessage, nullptr, "What went wrong.", nullptr},
    {"backtrace", GetBacktrace, nullptr, "Frames, most recent call first.", nullptr},
    {"extra_context", GetExtraContext, nullptr, "An object attached to the error, or None.",
     nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyType_Slot error_slots[] = {{Py_tp_doc, const_cast<char*>("An error as it crosses languages.")},
                             {Py_tp_init, reinterpret_cast<void*>(InitError)},
                             {Py_tp_methods, error_methods},
                             {Py_tp_getset, error_getset},
                             {0, nullptr}};

PyType_Spec error_spec = {"tvm_ffi.core.Error", sizeof(Wrapper), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, error_slots};

// The kind an exception class crosses as: exact matches only, everything else is a RuntimeError.
Ref KindOf(PyObject* exc) {
  Ref names = Ref::Steal(PyObject_GetAttrString(core_module, "ERROR_TYPE_TO_NAME"));
  if (!names) return nullptr;
  PyObject* name = PyDict_GetItemWithError(names.get(), reinterpret_cast<PyObject*>(Py_TYPE(exc)));
  if (name != nullptr) return Ref::Borrow(name);
  return PyErr_Occurred() ? Ref() : Ref::Steal(PyUnicode_FromString("RuntimeError"));
}

// Frames of the exception's traceback, most recent call first.
Ref TracebackText(PyObject* exc) {
  Ref traceback = Ref::Steal(PyException_GetTraceback(exc));
  Ref format = Ref::Steal(PyObject_GetAttrString(core_module, "_TRACEBACK_TO_BACKTRACE_STR"));
  if (!format) return nullptr;
  if (!traceback || format.get() == Py_None) return Ref::Steal(PyUnicode_FromString(""));
  return Ref::Steal(PyObject_CallOneArg(format.get(), traceback.get()));
}

PyObject* ConvertToError(PyObject*, PyObject* exc) {
  if (!PyExceptionInstance_Check(exc)) {
    return PyErr_Format(PyExc_TypeError, "expected an exception, got %s", Py_TYPE(exc)->tp_name);
  }
  return Guarded([&]() -> PyObject* {
    ffi::Optional<ffi::Error> error = ErrorFromException(exc, false);
    if (!error.has_value()) return nullptr;
    return WrapOwned(ffi::details::ObjectUnsafe::MoveObjectRefToTVMFFIObjectPtr(error.value()));
  });
}

PyMethodDef error_functions[] = {
    {"_convert_to_ffi_error", ConvertToError, METH_O, "The FFI error for an exception."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

ffi::Optional<ffi::Error> ErrorFromException(PyObject* exc, bool with_native_frames) {
  Ref text = TracebackText(exc);
  TVMFFIByteArray frames;
  if (!text || !Utf8(text.get(), &frames)) return std::nullopt;
  std::string backtrace(frames.data, frames.size);
  if (with_native_frames) {
    const TVMFFIByteArray* native = TVMFFIBacktrace(nullptr, 0, nullptr, 0);
    backtrace.append(native->data, native->size);
  }
  TVMFFIByteArray backtrace_bytes{backtrace.data(), backtrace.size()};

  // An exception that came from an FFI error goes back as that same error.
  Ref attached = Ref::Steal(PyObject_GetAttrString(exc, kAttachedError));
  if (!attached) PyErr_Clear();
  if (attached && PyObject_TypeCheck(attached.get(), types.error)) {
    CriticalSection section(attached.get());
    TVMFFIObject* h = Engine::Use(AsWrapper(attached.get()));
    if (h != nullptr && h->type_index == TypeIndex::kTVMFFIError) {
      TVMFFIErrorGetCellPtr(h)->update_backtrace(h, &backtrace_bytes,
                                                 kTVMFFIBacktraceUpdateModeReplace);
      return ffi::details::ObjectUnsafe::ObjectRefFromObjectPtr<ffi::Error>(
          ffi::details::ObjectUnsafe::ObjectPtrFromUnowned<ffi::Object>(h));
    }
  }
  Ref kind = KindOf(exc);
  Ref message = Ref::Steal(PyObject_Str(exc));
  if (!message) {
    PyErr_Clear();
    message = Ref::Steal(PyUnicode_FromString("<exception str() failed>"));
  }
  TVMFFIByteArray k, m;
  if (!kind || !message || !Utf8(kind.get(), &k)) return std::nullopt;
  if (!Utf8(message.get(), &m)) {
    PyErr_Clear();  // lone surrogates
    Ref ascii = Ref::Steal(PyUnicode_AsEncodedString(message.get(), "utf-8", "backslashreplace"));
    if (!ascii) return std::nullopt;
    return ffi::Error(std::string(k.data, k.size), PyBytes_AS_STRING(ascii.get()), backtrace);
  }
  return ffi::Error(std::string(k.data, k.size), std::string(m.data, m.size), backtrace);
}

namespace {

// ---- a Python exception inside an FFI error ----
//
// An error made from a Python exception carries that exception as its extra context, so that the
// next Python caller gets the very instance. Exception and error never refer to each other at the
// same time, for the collector could not free such a cycle: on the way out the exception forgets
// its error, on arrival the error gives the exception away.

// Whether the error has the cell that this library defines. Errors of old binaries may be shorter.
bool HasOurCell(const TVMFFIErrorCell* cell) {
  static const auto kOurs = [] {
    ffi::Error sample("RuntimeError", "", "");
    TVMFFIObject* h = ffi::details::ObjectUnsafe::TVMFFIObjectPtrFromObjectRef(sample);
    return TVMFFIErrorGetCellPtr(h)->update_backtrace;
  }();
  return cell->update_backtrace == kOurs;
}

void CarryException(const ffi::Error& error, PyObject* exc) {
  TVMFFIErrorCell* cell =
      TVMFFIErrorGetCellPtr(ffi::details::ObjectUnsafe::TVMFFIObjectPtrFromObjectRef(error));
  if (!HasOurCell(cell)) return;
  TVMFFIObjectHandle holder = nullptr;
  if (TVMFFIObjectCreateOpaque(exc, TypeIndex::kTVMFFIOpaquePyObject, ReleaseFromAnyThread,
                               &holder) != 0) {
    return;  // the error then says in words what the exception was
  }
  Py_INCREF(exc);
  {
    std::lock_guard<ShortLock> guard(extra_context_lock);
    if (cell->extra_context == nullptr) std::swap(cell->extra_context, holder);
  }
  if (holder != nullptr) {
    TVMFFIObjectDecRef(holder);
  } else if (PyObject_DelAttrString(exc, kAttachedError) < 0) {
    PyErr_Clear();
  }
}

// The exception an error carries, which it then has no more; or null.
Ref TakeException(TVMFFIErrorCell* cell) {
  if (!HasOurCell(cell)) return nullptr;
  TVMFFIObject* holder;
  Ref exc;
  {
    std::lock_guard<ShortLock> guard(extra_context_lock);
    holder = static_cast<TVMFFIObject*>(cell->extra_context);
    if (holder == nullptr || holder->type_index != TypeIndex::kTVMFFIOpaquePyObject) return nullptr;
    auto* held = static_cast<PyObject*>(TVMFFIOpaqueObjectGetCellPtr(holder)->handle);
    if (!PyExceptionInstance_Check(held)) return nullptr;
    exc = Ref::Borrow(held);
    cell->extra_context = nullptr;
  }
  TVMFFIObjectDecRef(holder);
  return exc;
}

// Raises the exception again, with the frames it crossed since in its traceback.
void RaiseAgain(PyObject* exc, PyObject* error) {
  Ref extend = Ref::Steal(PyObject_GetAttrString(core_module, "_extend_traceback"));
  Ref extended =
      extend ? Ref::Steal(PyObject_CallFunctionObjArgs(extend.get(), exc, error, nullptr)) : Ref();
  if (!extended) PyErr_Clear();  // frames are lost, the exception is not
  Py_INCREF(exc);
  PyErr_Restore(Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(exc))), exc,
                PyException_GetTraceback(exc));
}

}  // namespace

PyObject* RaiseFromCall(int code) {
  TVMFFIObjectHandle handle = nullptr;
  TVMFFIErrorMoveFromRaised(&handle);
  if (handle == nullptr) {
    // Old binaries return -2 with the exception already pending in the interpreter.
    if (!PyErr_Occurred()) {
      PyErr_Format(PyExc_RuntimeError, "an FFI call failed with code %d and left no error", code);
    }
    return nullptr;
  }
  const TVMFFIByteArray& kind = TVMFFIErrorGetCellPtr(handle)->kind;
  if (std::string_view(kind.data, kind.size) == "EnvErrorAlreadySet" && PyErr_Occurred()) {
    TVMFFIObjectDecRef(handle);
    return nullptr;
  }
  Ref carried = TakeException(TVMFFIErrorGetCellPtr(handle));
  Ref error = Ref::Steal(WrapOwned(static_cast<TVMFFIObject*>(handle)));
  if (!error) return nullptr;
  if (carried) {
    RaiseAgain(carried.get(), error.get());
    return nullptr;
  }
  Ref exc = Ref::Steal(PyErrorOf(error.get(), nullptr));
  if (!exc) return nullptr;
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exc.get())), exc.get());
  return nullptr;
}

void RaiseToCaller() {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (value != nullptr && traceback != nullptr) PyException_SetTraceback(value, traceback);
  Ref type_ref = Ref::Steal(type), exc = Ref::Steal(value), tb = Ref::Steal(traceback);
  try {
    ffi::Optional<ffi::Error> error;
    if (exc) error = ErrorFromException(exc.get(), true);
    if (error.has_value()) {
      CarryException(error.value(), exc.get());
      ffi::details::SetSafeCallRaised(error.value());
      return;
    }
  } catch (const std::exception&) {
  }
  PyErr_Clear();
  TVMFFIErrorSetRaisedFromCStr("RuntimeError", "a Python exception could not be converted");
}

int InitErrorType(PyObject* module) {
  types.error = AddType(module, &error_spec, types.object);
  if (types.error == nullptr) return -1;
  SetClassOfIndex(TypeIndex::kTVMFFIError, types.error);
  return PyModule_AddFunctions(module, error_functions);
}

}  // namespace tether_py
