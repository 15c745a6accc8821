// SPDX-License-Identifier: Apache-2.0
// The class Error of Python: an FFI error with its kind, message and backtrace.
#include "python/convert/error_class.h"

#include <tvm/ffi/error.h>

#include <string_view>
#include <utility>

#include "python/base/entry.h"
#include "python/base/python_api.h"
#include "python/convert/attached_error.h"
#include "python/convert/convert.h"
#include "python/convert/errors.h"
#include "python/convert/exception_text.h"

namespace tether_py {

using ffi::TypeIndex;

TVMFFIErrorCell* ErrorCellOf(PyObject* self) {
  TVMFFIObject* h = UseHandle(AsWrapper(self));
  if (h == nullptr) return nullptr;
  if (h->type_index != TypeIndex::kTVMFFIError) {
    PyErr_Format(PyExc_TypeError, "%s object does not hold an ffi.Error", Py_TYPE(self)->tp_name);
    return nullptr;
  }
  return TVMFFIErrorGetCellPtr(h);
}

namespace {

PyObject* Text(const TVMFFIByteArray& bytes) {
  return DecodeText(std::string_view(bytes.data, bytes.size));
}

// The error behind a wrapper, held: decoding its texts may run Python code, which may move it away.
class ErrorUse {
 public:
  explicit ErrorUse(PyObject* self) : section_(self), cell_(ErrorCellOf(self)) {
    if (cell_ == nullptr) return;
    held_ =
        ffi::details::ObjectUnsafe::ObjectPtrFromUnowned<ffi::Object>(Engine::Use(AsWrapper(self)));
  }
  TVMFFIErrorCell* cell() const { return cell_; }  // NULL with an error set

 private:
  ffi::ObjectPtr<ffi::Object> held_;  // dropped after the section is left
  CriticalSection section_;
  TVMFFIErrorCell* cell_;
};

PyObject* GetText(PyObject* self, TVMFFIByteArray TVMFFIErrorCell::*text) {
  ErrorUse error(self);
  return error.cell() != nullptr ? Text(error.cell()->*text) : nullptr;
}

PyObject* GetKind(PyObject* self, void*) { return GetText(self, &TVMFFIErrorCell::kind); }
PyObject* GetMessage(PyObject* self, void*) { return GetText(self, &TVMFFIErrorCell::message); }
PyObject* GetBacktrace(PyObject* self, void*) { return GetText(self, &TVMFFIErrorCell::backtrace); }
PyObject* GetExtraContext(PyObject* self, void*) {
  ffi::ObjectPtr<ffi::Object> context;
  {
    ErrorUse error(self);
    if (error.cell() == nullptr) return nullptr;
    context = ExtraContextOf(error.cell());
  }
  if (context == nullptr) Py_RETURN_NONE;
  TVMFFIAny value;
  tie::StoreObject(ffi::details::ObjectUnsafe::MoveObjectPtrToTVMFFIObjectPtr(std::move(context)),
                   &value);
  return FromOwnedAny(value);
}

PyObject* UpdateBacktrace(PyObject* self, PyObject* text) {
  CriticalSection section(self);
  TVMFFIErrorCell* cell = ErrorCellOf(self);
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
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "UUU:Error", const_cast<char**>(names), &kind,
                                   &message, &backtrace)) {
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

PyObject* PyError(PyObject* self, PyObject*) { return PyErrorOf(self); }

// Strings only: what is attached to an error need not survive in another process.
PyObject* ReduceError(PyObject* self, PyObject*) {
  auto* type = reinterpret_cast<PyObject*>(Py_TYPE(self));
  if (ObjectAddressOf(AsWrapper(self)) == 0) {  // stays empty
    Ref core = Ref::Steal(PyImport_ImportModule("tvm_ffi.core"));
    if (!core) return nullptr;
    Ref make = Ref::Steal(PyObject_GetAttrString(core.get(), "_new_object"));
    return make ? Py_BuildValue("O(O)", make.get(), type) : nullptr;
  }
  ErrorUse error(self);
  TVMFFIErrorCell* cell = error.cell();
  if (cell == nullptr) return nullptr;
  Ref kind = Ref::Steal(Text(cell->kind)), message = Ref::Steal(Text(cell->message));
  Ref backtrace = Ref::Steal(Text(cell->backtrace));
  if (!kind || !message || !backtrace) return nullptr;
  return Py_BuildValue("O(OOO)", type, kind.get(), message.get(), backtrace.get());
}

PyMethodDef error_methods[] = {
    {"update_backtrace", Entry<UpdateBacktrace>, METH_O, "Replace the backtrace text."},
    {"py_error", Entry<PyError>, METH_NOARGS,
     "The Python exception for this error, not yet raised."},
    {"__reduce__", Entry<ReduceError>, METH_NOARGS, "Kind, message and backtrace."},
    {nullptr, nullptr, 0, nullptr}};

PyGetSetDef error_getset[] = {
    {"kind", Entry<GetKind>, nullptr, "Name of the kind of error, such as ValueError.", nullptr},
    {"message", Entry<GetMessage>, nullptr, "What went wrong.", nullptr},
    {"backtrace", Entry<GetBacktrace>, nullptr, "Frames, most recent call first.", nullptr},
    {"extra_context", Entry<GetExtraContext>, nullptr, "An object attached to the error, or None.",
     nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyType_Slot error_slots[] = {{Py_tp_doc, const_cast<char*>("An error as it crosses languages.")},
                             {Py_tp_init, Slot<InitError>()},
                             {Py_tp_methods, error_methods},
                             {Py_tp_getset, error_getset},
                             {0, nullptr}};

PyType_Spec error_spec = {"tvm_ffi.core.Error", sizeof(Wrapper), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, error_slots};

}  // namespace

int InitErrorClass(PyObject* module) {
  types.error = AddType(module, &error_spec, types.object);
  if (types.error == nullptr) return -1;
  SetClassOfIndex(TypeIndex::kTVMFFIError, types.error);
  return 0;
}

}  // namespace tether_py
