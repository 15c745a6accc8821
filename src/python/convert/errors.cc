// SPDX-License-Identifier: Apache-2.0
// Errors of C++ become exceptions of Python: the one they came from, or one made for them.
//
// Shared state: append_hook: set at import, constant afterwards.
#include <tvm/ffi/error.h>

#include <cxxabi.h>

#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "python/base/entry.h"
#include "python/base/python_api.h"
#include "python/convert/attached_error.h"
#include "python/convert/departures.h"
#include "python/convert/error_class.h"
#include "python/convert/errors.h"
#include "python/convert/exception_text.h"
#include "python/convert/exceptions.h"
#include "python/convert/raised_exception.h"
#include "python/convert/traceback.h"
#include "python/wrap/python_hooks.h"

namespace tether_py {

using ffi::TypeIndex;

namespace {

// What Python gave to a call that failed, for messages about it.
struct Given {
  PyObject* const* args = nullptr;
  Py_ssize_t nargs = 0;
  const std::string* field = nullptr;  // with its type; its value is the only argument
  const std::string* type_key = nullptr;
};

// The class and the text for a kind that is not registered, or for a message about types. False
// with an error set.
bool AskClassAndText(const Given& given, PyObject* kind, Ref* cls, Ref* message) {
  Ref classes = Ref::Steal(PyTuple_New(given.nargs));
  if (!classes) return false;
  for (Py_ssize_t i = 0; i < given.nargs; ++i) {
    PyTuple_SET_ITEM(classes.get(), i,
                     Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(given.args[i]))));
  }
  Ref both = Ref::Steal(given.field == nullptr
                            ? PyObject_CallFunctionObjArgs(hooks.class_and_text, kind,
                                                           message->get(), classes.get(), nullptr)
                            : PyObject_CallFunction(hooks.class_and_text, "OOOss", kind,
                                                    message->get(), classes.get(),
                                                    given.field->c_str(), given.type_key->c_str()));
  if (!both) return false;
  if (!PyTuple_Check(both.get()) || PyTuple_GET_SIZE(both.get()) != 2) {
    PyErr_Format(PyExc_TypeError, "expected a class and a text, got %R", both.get());
    return false;
  }
  *cls = Ref::Borrow(PyTuple_GET_ITEM(both.get(), 0));
  *message = Ref::Borrow(PyTuple_GET_ITEM(both.get(), 1));
  return true;
}

// Messages about types name those of C++.
bool MayNameTypes(PyObject* cls, PyObject* message, const Given& given) {
  if (cls != PyExc_TypeError && cls != PyExc_OverflowError) return false;
  return given.field != nullptr ||
         PyUnicode_FindChar(message, '`', 0, PyUnicode_GET_LENGTH(message), 1) >= 0;
}

// An exception of the class for a kind, without a traceback. Null with an error set.
Ref MakeException(PyObject* kind, PyObject* message, const Given& given) {
  Ref cls = FindInDict(hooks.error_classes, kind);
  if (!cls && PyErr_Occurred()) return nullptr;
  Ref text = Ref::Borrow(message);
  if ((!cls || MayNameTypes(cls.get(), message, given)) &&
      !AskClassAndText(given, kind, &cls, &text)) {
    return nullptr;
  }
  Ref exc = Ref::Steal(PyObject_CallOneArg(cls.get(), text.get()));
  if (exc && PyExceptionInstance_Check(exc.get())) return exc;
  if (!exc && !PyErr_ExceptionMatches(PyExc_Exception)) return nullptr;
  PyErr_Clear();
  // A registered class that cannot be built from one message must not hide the message.
  text = Ref::Steal(PyUnicode_FromFormat("%U: %U", kind, message));
  return text ? Ref::Steal(PyObject_CallOneArg(PyExc_RuntimeError, text.get())) : nullptr;
}

// Clients may assign to core._WITH_APPEND_BACKTRACE. It may return another exception.
struct AppendHook {
  PyObject* names = nullptr;  // of the module; owned, as long as the process
  PyObject* name = nullptr;
  Ref Find() const { return FindInDict(names, name); }
} append_hook;

Ref WithFrames(Ref exc, PyObject* backtrace, size_t size) {
  Ref hook = append_hook.Find();
  if (!hook && PyErr_Occurred()) return nullptr;
  if (!hook || hook.get() == Py_None) return exc;
  if (IsAppendFrames(hook.get())) {
    return AppendFrames(exc.get(), backtrace, 0, size) ? std::move(exc) : Ref();
  }
  return Ref::Steal(PyObject_CallFunctionObjArgs(hook.get(), exc.get(), backtrace, nullptr));
}

PyObject* PyErrorOf(PyObject* self, const Given& given) {
  Ref kind, message, backtrace;
  size_t size = 0;
  {
    CriticalSection section(self);
    TVMFFIErrorCell* cell = ErrorCellOf(self);
    if (cell == nullptr) return nullptr;
    TVMFFIObject* h = Engine::Use(AsWrapper(self));
    if (RaisedException* raised = RaisedException::Of(h)) return Py_NewRef(raised->exception());
    // Handlers of text that is not UTF-8 may be Python code, which may move the error away.
    auto owner = ffi::details::ObjectUnsafe::ObjectPtrFromUnowned<ffi::Object>(h);
    auto decode = [](const TVMFFIByteArray& bytes) {
      return Ref::Steal(DecodeText(std::string_view(bytes.data, bytes.size)));
    };
    kind = decode(cell->kind);
    message = kind ? decode(cell->message) : Ref();
    size = cell->backtrace.size;
    backtrace = message ? decode(cell->backtrace) : Ref();
  }
  if (!backtrace) return nullptr;
  Ref exc = MakeException(kind.get(), message.get(), given);
  if (exc) exc = WithFrames(std::move(exc), backtrace.get(), size);
  if (!exc) return nullptr;
  if (!PyExceptionInstance_Check(exc.get())) {
    return PyErr_Format(PyExc_TypeError, "expected an exception, got %s",
                        Py_TYPE(exc.get())->tp_name);
  }
  Attach(exc.get(), self);
  return exc.release();
}

// The exception for an error that arrives, whose reference it takes over; null with an error set.
// `is_passing`: it was raised in Python and is on its way since.
Ref ExceptionFor(TVMFFIObject* h, const Given& given, bool* is_passing) {
  RaisedException* raised = RaisedException::Of(h);
  *is_passing = raised != nullptr && !raised->was_kept();
  if (raised == nullptr) {
    Ref error = Ref::Steal(WrapOwned(h));
    return error ? Ref::Steal(PyErrorOf(error.get(), given)) : Ref();
  }
  auto owner = ffi::details::ObjectUnsafe::ObjectPtrFromOwned<RaisedException>(h);
  Ref exc = Ref::Borrow(raised->exception());
  if (owner.use_count() > 1) {
    raised->LetFramesGo();
    watch_list.Add(raised);
  }
  raised->ExtendTraceback();
  try {
    UpdateAttached(exc.get(), raised);
  } catch (const std::bad_alloc&) {  // the exception itself is there
  }
  return exc;
}

}  // namespace

bool TakeCaught() {
  try {
    throw;
  } catch (const ffi::Error& error) {
    TVMFFIErrorSetRaised(ffi::details::ObjectUnsafe::TVMFFIObjectPtrFromObjectRef(error));
    return true;
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
#ifdef __GLIBCXX__
  } catch (abi::__forced_unwind&) {  // a thread that ends itself is not an exception
    throw;
#endif
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, ffi::tether::kUnknownException);
  }
  return false;
}

void RaiseTaken(bool is_ffi_error) {
  if (is_ffi_error) RaiseFromCall(-1);
}

static PyObject* Raise(int code, const Given& given) {
  TVMFFIObjectHandle handle = nullptr;
  TVMFFIErrorMoveFromRaised(&handle);
  auto* h = static_cast<TVMFFIObject*>(handle);
  if (h == nullptr) {
    // Old binaries return -2 with the exception already pending in the interpreter.
    if (!PyErr_Occurred()) {
      PyErr_Format(PyExc_RuntimeError, "an FFI call failed with code %d and left no error", code);
    }
    return nullptr;
  }
  const TVMFFIByteArray& kind = TVMFFIErrorGetCellPtr(h)->kind;
  if (std::string_view(kind.data, kind.size) == "EnvErrorAlreadySet" && PyErr_Occurred()) {
    TVMFFIObjectDecRef(h);
    return nullptr;
  }
  // An exception may wait in the interpreter that C++ did not pass on: it is not lost either.
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  if (type != nullptr) PyErr_NormalizeException(&type, &value, &traceback);
  Ref type_ref = Ref::Steal(type), pending = Ref::Steal(value), tb = Ref::Steal(traceback);
  if (any_departed) SettleDepartures(h);
  bool is_passing;
  Ref exc = ExceptionFor(h, given, &is_passing);
  if (!exc) return nullptr;
  auto* cls = reinterpret_cast<PyObject*>(Py_TYPE(exc.get()));
  // What is raised here has the exception being handled as its context. What is passing got it
  // where it was raised.
  if (!pending && !is_passing) {
    PyErr_SetObject(cls, exc.get());
    return nullptr;
  }
  Ref context = Ref::Steal(PyException_GetContext(exc.get()));
  if (pending && pending.get() != exc.get() && !context) {
    if (tb) PyException_SetTraceback(pending.get(), tb.get());
    PyException_SetContext(exc.get(), Py_NewRef(pending.get()));
  }
  PyErr_Restore(Py_NewRef(cls), Py_NewRef(exc.get()), PyException_GetTraceback(exc.get()));
  return nullptr;
}

PyObject* PyErrorOf(PyObject* error) { return PyErrorOf(error, Given()); }

PyObject* RaiseFromCall(int code) { return Raise(code, Given()); }

PyObject* RaiseFromCall(int code, PyObject* const* args, Py_ssize_t nargs) {
  return Raise(code, Given{args, nargs, nullptr, nullptr});
}

PyObject* RaiseForField(int code, const std::string& field, const std::string& type_key,
                        PyObject* value) {
  return Raise(code, Given{&value, 1, &field, &type_key});
}

int InitErrors(PyObject* module) {
  if (InitWatchList() != 0) {
    PyErr_NoMemory();
    return -1;
  }
  ReserveDepartures();
  append_hook.names = Py_XNewRef(PyModule_GetDict(module));
  append_hook.name = PyUnicode_InternFromString("_WITH_APPEND_BACKTRACE");
  if (append_hook.names == nullptr || append_hook.name == nullptr) return -1;
  if (InitErrorClass(module) < 0 || InitTracebacks(module) < 0) return -1;
  return InitExceptions(module);
}

}  // namespace tether_py
