// SPDX-License-Identifier: Apache-2.0
// The Error attached to a Python exception, which describes it.
//
// Shared state: the names and the cell's function (NameOfAttached, HasOwnSetState, HasFullCell):
// set on first use, constant afterwards.
#include "python/convert/attached_error.h"

#include <tvm/ffi/error.h>

#include <atomic>
#include <utility>

#include "python/base/python_api.h"
#include "python/convert/exception_text.h"
#include "python/convert/traceback.h"

namespace tether_py {

using ffi::TypeIndex;

namespace {

PyObject* NameOfAttached() {
  static std::atomic<PyObject*> name{nullptr};
  return FindOnce(&name, [] { return PyUnicode_InternFromString("__tvm_ffi_error__"); });
}

// Whether the class restores the state of its exceptions itself.
bool HasOwnSetState(PyTypeObject* cls) {
  static std::atomic<PyObject*> shared{nullptr};
  PyObject* name = FindOnce(&shared, [] { return PyUnicode_InternFromString("__setstate__"); });
  if (name == nullptr) PassOver();
  auto* base = reinterpret_cast<PyTypeObject*>(PyExc_BaseException);
  return name != nullptr && _PyType_Lookup(cls, name) != _PyType_Lookup(base, name);
}

// Whether the error was made by the runtime or here. Those of old binaries may have a shorter cell.
bool HasFullCell(const TVMFFIErrorCell* cell) {
  static const auto kOfRuntime = [] {
    ffi::Error sample("RuntimeError", "", "");
    TVMFFIObject* h = ffi::details::ObjectUnsafe::TVMFFIObjectPtrFromObjectRef(sample);
    return TVMFFIErrorGetCellPtr(h)->update_backtrace;
  }();
  return cell->update_backtrace == kOfRuntime || RaisedException::IsCell(cell);
}

ffi::ObjectPtr<ffi::Object> Share(TVMFFIObjectHandle h) {
  return h != nullptr ? ffi::details::ObjectUnsafe::ObjectPtrFromUnowned<ffi::Object>(
                            static_cast<TVMFFIObject*>(h))
                      : nullptr;
}

}  // namespace

ffi::ObjectPtr<ffi::Object> ExtraContextOf(const TVMFFIErrorCell* cell) {
  return HasFullCell(cell) ? Share(cell->extra_context) : nullptr;
}

void Attach(PyObject* exc, PyObject* error) {
  // Copies and pickles restore it as the class does: by its __setstate__, which may know what there
  // is to restore, or one attribute after the other. Where that would fail it is not attached.
  if (HasOwnSetState(Py_TYPE(exc))) return;
  PyObject* name = NameOfAttached();
  if (name == nullptr || PyObject_SetAttr(exc, name, error) < 0) PassOver();
}

Ref AttachedTo(PyObject* exc) {
  PyObject* name = NameOfAttached();
  Ref attached = name != nullptr ? Ref::Steal(PyObject_GenericGetAttr(exc, name)) : Ref();
  if (!attached) PassOver();
  return attached && PyObject_TypeCheck(attached.get(), types.error) ? std::move(attached) : Ref();
}

Account AccountOf(PyObject* exc, PyObject* attached) {
  Account account;
  bool is_known = false;
  if (attached != nullptr) {
    CriticalSection section(attached);
    TVMFFIObject* h = Engine::Use(AsWrapper(attached));
    if (h != nullptr && h->type_index == TypeIndex::kTVMFFIError) {
      is_known = true;
      TVMFFIErrorCell* cell = TVMFFIErrorGetCellPtr(h);
      account.kind.assign(cell->kind.data, cell->kind.size);
      account.message.assign(cell->message.data, cell->message.size);
      account.frames.reserve(cell->backtrace.size + 1024);  // more is to come
      account.frames.assign(cell->backtrace.data, cell->backtrace.size);
      if (HasFullCell(cell)) account.cause = Share(cell->cause_chain);
      account.context = ExtraContextOf(cell);
    }
  }
  if (!is_known) {
    account.kind = KindOf(exc);
    account.message = MessageOf(exc);
  }
  Ref traceback = Ref::Steal(PyException_GetTraceback(exc));
  WriteFrames(traceback.get(), &account.frames);
  return account;
}

void UpdateAttached(PyObject* exc, RaisedException* raised) {
  Ref attached = AttachedTo(exc);
  if (attached) {
    CriticalSection section(attached.get());
    TVMFFIObject* h = Engine::Use(AsWrapper(attached.get()));
    if (h != nullptr && h->type_index == TypeIndex::kTVMFFIError) {
      TVMFFIErrorCell* cell = TVMFFIErrorGetCellPtr(h);
      if (cell == raised) return;
      cell->update_backtrace(h, &raised->backtrace, kTVMFFIBacktraceUpdateModeReplace);
      if (HasFullCell(cell) && cell->extra_context != raised->extra_context) {
        ffi::ObjectPtr<ffi::Object> context = Share(raised->extra_context);
        TVMFFIObjectHandle old = std::exchange(
            cell->extra_context,
            context != nullptr
                ? ffi::details::ObjectUnsafe::MoveObjectPtrToTVMFFIObjectPtr(std::move(context))
                : nullptr);
        if (old != nullptr) TVMFFIObjectDecRef(old);
      }
      return;
    }
  }
  TVMFFIObjectHandle handle = nullptr;
  if (TVMFFIErrorCreateWithCauseAndExtraContext(&raised->kind, &raised->message, &raised->backtrace,
                                                raised->cause_chain, raised->extra_context,
                                                &handle) != 0) {
    return;
  }
  Ref error = Ref::Steal(WrapOwned(static_cast<TVMFFIObject*>(handle)));
  if (error) {
    Attach(exc, error.get());
  } else {
    PassOver();
  }
}

}  // namespace tether_py
