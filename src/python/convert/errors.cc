// SPDX-License-Identifier: Apache-2.0
// Exceptions both ways: FFI errors become Python exceptions and back.
//
// Three objects, and references one way only, so that no cycle ever waits for the collector:
//
//   RaisedException -> the Python exception -> __tvm_ffi_error__ -> an Error
//
// A RaisedException is what C++ catches, keeps and throws: made anew each time an exception leaves
// Python, it carries that very instance and hands it out as often as it is thrown. The Error at the
// exception describes it to Python and knows nothing of the exception.
#include <tvm/ffi/error.h>

#include <cxxabi.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <exception>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "python/base/entry.h"
#include "python/base/python_api.h"
#include "python/convert/convert.h"
#include "python/convert/errors.h"
#include "python/wrap/python_hooks.h"
#include "python/wrap/release_queue.h"

namespace tether_py {

using ffi::TypeIndex;

namespace {

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
  auto* context = static_cast<TVMFFIObject*>(cell->extra_context);
  if (context == nullptr) Py_RETURN_NONE;
  TVMFFIAny value;
  Engine::AddStrong(context);
  tie::StoreObject(context, &value);
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

// The exception that a RaisedException carries, or one made for the error.
PyObject* PyErrorOf(PyObject* self, PyObject*);

// Strings only: what is attached to an error need not survive in another process.
PyObject* ReduceError(PyObject* self, PyObject*) {
  CriticalSection section(self);
  auto* type = reinterpret_cast<PyObject*>(Py_TYPE(self));
  TVMFFIObject* h = Engine::Use(AsWrapper(self));
  if (h == nullptr) return Py_BuildValue("O(sss)", type, "", "", "");
  TVMFFIErrorCell* cell = CellOf(self);
  if (cell == nullptr) return nullptr;
  Ref kind = Ref::Steal(Text(cell->kind)), message = Ref::Steal(Text(cell->message));
  Ref backtrace = Ref::Steal(Text(cell->backtrace));
  if (!kind || !message || !backtrace) return nullptr;
  return Py_BuildValue("O(OOO)", type, kind.get(), message.get(), backtrace.get());
}

PyMethodDef error_methods[] = {
    {"update_backtrace", Entry<UpdateBacktrace>, METH_O, "Replace the backtrace text."},
    {"py_error", Entry<PyErrorOf>, METH_NOARGS,
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

// ---- what an exception says of itself ----

// Text as UTF-8 in any case; without it where even that fails. No error is left set.
std::string Utf8OrLess(PyObject* text) {
  TVMFFIByteArray bytes;
  if (text == nullptr || !PyUnicode_Check(text)) return std::string();
  if (Utf8(text, &bytes)) return std::string(bytes.data, bytes.size);
  PyErr_Clear();  // lone surrogates
  Ref escaped = Ref::Steal(PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace"));
  if (escaped) {
    return std::string(PyBytes_AS_STRING(escaped.get()),
                       static_cast<size_t>(PyBytes_GET_SIZE(escaped.get())));
  }
  PyErr_Clear();
  return std::string();
}

// The kind an exception class crosses as: exact matches only, everything else is a RuntimeError.
std::string KindOf(PyObject* exc) {
  PyObject* name = nullptr;
  if (PyDict_Check(hooks.error_kinds)) {
    name = PyDict_GetItemWithError(hooks.error_kinds, reinterpret_cast<PyObject*>(Py_TYPE(exc)));
  }
  PyErr_Clear();
  return name != nullptr && PyUnicode_Check(name) ? Utf8OrLess(name) : "RuntimeError";
}

std::string MessageOf(PyObject* exc) {
  Ref message = Ref::Steal(PyObject_Str(exc));
  if (message) return Utf8OrLess(message.get());
  PyErr_Clear();
  return "<exception str() failed>";
}

// A traceback entry with this number in place of an instruction begins the frames that a text of
// `size` bytes names: what it and those behind it stand for need not be written again. Keep in step
// with _with_append_backtrace in error.py.
int MarkOf(size_t size) {
  return -2 - static_cast<int>(std::min(size, static_cast<size_t>(INT_MAX - 2)));
}

int LineOf(PyTracebackObject* entry) {
  if (entry->tb_lineno > 0) return entry->tb_lineno;
  Ref line = Ref::Steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(entry), "tb_lineno"));
  int overflow = 0;
  long number = line && PyLong_Check(line.get())  // NOLINT(google-runtime-int): as Python has it
                    ? PyLong_AsLongAndOverflow(line.get(), &overflow)
                    : 0;
  PyErr_Clear();
  return number > 0 && number <= INT_MAX ? static_cast<int>(number) : 0;
}

// Makes `text` the frames of the traceback, most recent call first. It comes with the text written
// when the exception was last raised, which stays if the traceback has grown from that one. Runs no
// Python code: a RecursionError must get through.
void WriteFrames(PyObject* traceback, std::string* text) {
  std::vector<Ref> entries;
  int mark = MarkOf(text->size());
  bool has_grown = false;
  for (Ref at = Ref::Borrow(traceback); at && PyTraceBack_Check(at.get()) && !has_grown;) {
    auto* entry = reinterpret_cast<PyTracebackObject*>(at.get());
    has_grown = entry->tb_lasti == mark;
    Ref next = Ref::Borrow(reinterpret_cast<PyObject*>(entry->tb_next));
    if (!has_grown) entries.push_back(std::move(at));
    at = std::move(next);
  }
  if (!has_grown) text->clear();
  for (auto it = entries.rbegin(); it != entries.rend(); ++it) {
    auto* entry = reinterpret_cast<PyTracebackObject*>(it->get());
    Ref code = Ref::Steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(entry->tb_frame)));
    auto* of_frame = reinterpret_cast<PyCodeObject*>(code.get());
    text->append("  File \"").append(Utf8OrLess(of_frame->co_filename)).append("\", line ");
    text->append(std::to_string(LineOf(entry))).append(", in ");
    text->append(Utf8OrLess(of_frame->co_name)).append("\n");
  }
}

PyObject* TracebackText(PyObject*, PyObject* traceback) {
  return Guarded([&] {
    std::string text;
    WriteFrames(traceback, &text);
    return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), nullptr);
  });
}

// ---- the error attached to an exception ----
//
// Attached without asking the class: a __setattr__ of its own may refuse.

PyObject* NameOfAttached() {
  static std::atomic<PyObject*> name{nullptr};
  return FindOnce(&name, [] { return PyUnicode_InternFromString("__tvm_ffi_error__"); });
}

Ref AttachedTo(PyObject* exc) {
  PyObject* name = NameOfAttached();
  Ref attached = name != nullptr ? Ref::Steal(PyObject_GenericGetAttr(exc, name)) : Ref();
  if (!attached) PyErr_Clear();
  return attached && PyObject_TypeCheck(attached.get(), types.error) ? std::move(attached) : Ref();
}

void Attach(PyObject* exc, PyObject* error) {
  PyObject* name = NameOfAttached();
  if (name == nullptr || PyObject_GenericSetAttr(exc, name, error) < 0) PyErr_Clear();
}

// Whether the error was made by the runtime or here. Those of old binaries may have a shorter cell.
bool HasFullCell(const TVMFFIErrorCell* cell);

// What crosses as the error of an exception.
struct Account {
  std::string kind, message, frames;
  ffi::ObjectPtr<ffi::Object> cause, context;
};

ffi::ObjectPtr<ffi::Object> Share(TVMFFIObjectHandle h) {
  return h != nullptr ? ffi::details::ObjectUnsafe::ObjectPtrFromUnowned<ffi::Object>(
                            static_cast<TVMFFIObject*>(h))
                      : nullptr;
}

// An exception that came from an FFI error keeps the kind, message and context of that.
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
      if (HasFullCell(cell)) {
        account.cause = Share(cell->cause_chain);
        account.context = Share(cell->extra_context);
      }
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

// ---- an exception on its way through C++ ----

class RaisedException;

// Errors that arrived in Python while C++ keeps them. Python frees no frame of an exception that is
// alive, so each collection looks whether C++ alone still has it. An error takes itself off the
// list when it dies: a weak reference would tell the collector that a thread may get hold of it.
struct WatchList {
  ShortLock lock;
  RaisedException* first = nullptr;
  size_t count = 0;

  void Add(RaisedException* error);
  void Remove(RaisedException* error);
  // Those that are alive, each with a reference. Fewer if there is no memory for all.
  std::vector<ffi::ObjectPtr<RaisedException>> Alive();
} watch_list;

class RaisedException : public ffi::ErrorObj {
 public:
  RaisedException(PyObject* exc, Account account)
      : kind_(std::move(account.kind)),
        message_(std::move(account.message)),
        backtrace_(std::move(account.frames)),
        num_own_(backtrace_.size()),
        exc_(Py_NewRef(exc)) {
    const TVMFFIByteArray* native = TVMFFIBacktrace(nullptr, 0, nullptr, 0);
    backtrace_.append(native->data, native->size);
    kind = tie::AsBytes(kind_);
    message = tie::AsBytes(message_);
    backtrace = tie::AsBytes(backtrace_);
    update_backtrace = Update;
    cause_chain = Released(std::move(account.cause));
    extra_context = Released(std::move(account.context));
  }
  ~RaisedException() {
    if (is_watched_) watch_list.Remove(this);
    ReleaseFromAnyThread(exc_);
  }

  static bool IsCell(const TVMFFIErrorCell* cell) { return cell->update_backtrace == Update; }
  // The object behind an error, or NULL where it is of another class.
  static RaisedException* Of(TVMFFIObject* h) {
    if (h->type_index != TypeIndex::kTVMFFIError) return nullptr;
    if (!IsCell(TVMFFIErrorGetCellPtr(h))) return nullptr;
    return ffi::details::ObjectUnsafe::RawObjectPtrFromUnowned<RaisedException>(h);
  }

  PyObject* exception() const { return exc_; }

  // C++ keeps this beyond the call. Locals do not wait for that: from now on the traceback says
  // where, with frames that hold nothing.
  void LetFramesGo() {
    if (frames_are_gone_.exchange(true)) return;
    if (!CallHook(hooks.release_frames, std::string_view(backtrace_).substr(0, num_own_), 0,
                  true)) {
      PyException_SetTraceback(exc_, Py_None);
    }
  }

  // Gives the exception the frames that it crossed since it was raised.
  void ExtendTraceback() {
    bool all = frames_are_gone_.load();
    size_t known = all ? 0 : num_own_;
    CallHook(hooks.extend_traceback, std::string_view(backtrace_).substr(known), known, all);
  }

  // Where nobody but C++ has the exception, nobody looks at its traceback; it is made anew from the
  // text when the exception is thrown again.
  void ForgetFramesUnused() {
    if (Py_REFCNT(exc_) == 1) PyException_SetTraceback(exc_, Py_None);
  }

 private:
  friend struct WatchList;

  static TVMFFIObjectHandle Released(ffi::ObjectPtr<ffi::Object> object) {
    return object != nullptr
               ? ffi::details::ObjectUnsafe::MoveObjectPtrToTVMFFIObjectPtr(std::move(object))
               : nullptr;
  }

  static void Update(TVMFFIObjectHandle handle, const TVMFFIByteArray* text, int32_t mode) {
    auto* self = static_cast<RaisedException*>(static_cast<ffi::Object*>(handle));
    std::string_view addition(text->data, text->size);
    try {
      if (mode == kTVMFFIBacktraceUpdateModeAppend) {
        self->backtrace_.append(addition);
      } else {
        std::string replaced(addition);
        std::string_view own = std::string_view(self->backtrace_).substr(0, self->num_own_);
        // Text of somebody else's says nothing about the frames that the exception lacks.
        bool goes_on = addition.substr(0, own.size()) == own;
        if (!goes_on) self->num_own_ = addition.size();
        self->backtrace_ = std::move(replaced);
      }
    } catch (const std::bad_alloc&) {  // the error is the same without these frames
    }
    self->backtrace = tie::AsBytes(self->backtrace_);
  }

  // False if it failed: frames are lost then, the exception is not.
  bool CallHook(PyObject* hook, std::string_view text, size_t known, bool all) {
    Ref done = Ref::Steal(PyObject_CallFunction(
        hook, "ONnO", exc_,
        PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"),
        static_cast<Py_ssize_t>(known), all ? Py_True : Py_False));
    if (done) return true;
    bool was_interrupted = PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) != 0;
    PyErr_Clear();
    if (was_interrupted) PyErr_SetInterrupt();  // Ctrl-C came just now: let it come again
    return false;
  }

  std::string kind_;
  std::string message_;
  std::string backtrace_;
  // The part of the text that the traceback of the exception has itself.
  size_t num_own_;
  PyObject* const exc_;
  std::atomic<bool> frames_are_gone_{false};
  // By the lock of watch_list. The destructor alone reads the first without it.
  bool is_watched_ = false;
  RaisedException* next_watched_ = nullptr;
  RaisedException* previous_watched_ = nullptr;
};

bool HasFullCell(const TVMFFIErrorCell* cell) {
  static const auto kOfRuntime = [] {
    ffi::Error sample("RuntimeError", "", "");
    TVMFFIObject* h = ffi::details::ObjectUnsafe::TVMFFIObjectPtrFromObjectRef(sample);
    return TVMFFIErrorGetCellPtr(h)->update_backtrace;
  }();
  return cell->update_backtrace == kOfRuntime || RaisedException::IsCell(cell);
}

// What Python gave to a call that failed, for messages about it.
struct Given {
  PyObject* const* args = nullptr;
  Py_ssize_t nargs = 0;
  const std::string* field = nullptr;  // with its type; its value is the only argument
  const std::string* type_key = nullptr;
};

PyObject* MakeException(PyObject* error, const Given& given) {
  Ref classes = Ref::Steal(PyTuple_New(given.nargs));
  if (!classes) return nullptr;
  for (Py_ssize_t i = 0; i < given.nargs; ++i) {
    PyTuple_SET_ITEM(classes.get(), i,
                     Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(given.args[i]))));
  }
  if (given.field == nullptr) {
    return PyObject_CallFunctionObjArgs(hooks.make_exception, error, classes.get(), nullptr);
  }
  return PyObject_CallFunction(hooks.make_exception, "OOss", error, classes.get(),
                               given.field->c_str(), given.type_key->c_str());
}

PyObject* PyErrorOf(PyObject* self, const Given& given) {
  {
    CriticalSection section(self);
    TVMFFIObject* h = Engine::Use(AsWrapper(self));
    RaisedException* raised = h != nullptr ? RaisedException::Of(h) : nullptr;
    if (raised != nullptr) return Py_NewRef(raised->exception());
  }
  Ref exc = Ref::Steal(MakeException(self, given));
  if (exc && !PyExceptionInstance_Check(exc.get())) {
    return PyErr_Format(PyExc_TypeError, "expected an exception, got %s",
                        Py_TYPE(exc.get())->tp_name);
  }
  return exc.release();
}

PyObject* PyErrorOf(PyObject* self, PyObject*) { return PyErrorOf(self, Given()); }

void WatchList::Add(RaisedException* error) {
  std::lock_guard<ShortLock> guard(lock);
  if (error->is_watched_) return;
  error->is_watched_ = true;
  error->next_watched_ = first;
  if (first != nullptr) first->previous_watched_ = error;
  first = error;
  ++count;
}

void WatchList::Remove(RaisedException* error) {
  std::lock_guard<ShortLock> guard(lock);
  RaisedException* next = error->next_watched_;
  RaisedException* previous = error->previous_watched_;
  if (next != nullptr) next->previous_watched_ = previous;
  (previous != nullptr ? previous->next_watched_ : first) = next;
  --count;
}

std::vector<ffi::ObjectPtr<RaisedException>> WatchList::Alive() {
  std::vector<ffi::ObjectPtr<RaisedException>> alive;
  std::lock_guard<ShortLock> guard(lock);
  try {
    alive.reserve(count);
  } catch (const std::bad_alloc&) {
    return alive;
  }
  for (RaisedException* error = first; error != nullptr; error = error->next_watched_) {
    // One whose destructor waits for the lock has no reference any more.
    TVMFFIObject* h = ffi::details::ObjectUnsafe::GetHeader(error);
    if (!Engine::AddStrongIfAlive(h)) continue;
    alive.push_back(ffi::details::ObjectUnsafe::ObjectPtrFromOwned<RaisedException>(h));
  }
  return alive;
}

// ---- errors that C++ keeps ----
//
// An exception in flight keeps its frames: a debugger at the caller wants to see them. Whether C++
// passes it on or keeps it shows when control is back in the Python frame that called C++: an error
// that is then still alive was kept, and lets its frames go.

struct Departure {
  RaisedException* address;
  ffi::WeakObjectPtr<RaisedException> error;
  const void* frame;  // only compared
};
// Of this thread, in the order in which they left Python.
thread_local std::vector<Departure> departures;

Ref CurrentFrame() {
  return Ref::Steal(reinterpret_cast<PyObject*>(PyThreadState_GetFrame(PyThreadState_Get())));
}

// Whether `frame` waits for a call in which the current one runs.
bool IsWaiting(const void* frame) {
  Ref at = CurrentFrame();
  while (at) {
    at = Ref::Steal(
        reinterpret_cast<PyObject*>(PyFrame_GetBack(reinterpret_cast<PyFrameObject*>(at.get()))));
    if (at.get() == frame) return true;
  }
  return false;
}

void Depart(const ffi::ObjectPtr<RaisedException>& error) {
  while (!departures.empty() && departures.back().error.expired()) departures.pop_back();
  Ref frame = CurrentFrame();
  // A thread of C++ has no caller to show them to.
  if (!frame) return error->LetFramesGo();
  try {
    departures.push_back({error.get(), ffi::WeakObjectPtr<RaisedException>(error), frame.get()});
    any_departed = true;
  } catch (const std::bad_alloc&) {
    error->LetFramesGo();
  }
}

PyObject* ConvertToError(PyObject*, PyObject* exc) {
  if (!PyExceptionInstance_Check(exc)) {
    return PyErr_Format(PyExc_TypeError, "expected an exception, got %s", Py_TYPE(exc)->tp_name);
  }
  return Guarded([&]() -> PyObject* {
    return WrapOwned(
        ffi::details::ObjectUnsafe::MoveObjectRefToTVMFFIObjectPtr(ErrorFromException(exc)));
  });
}

PyMethodDef error_functions[] = {
    {"_convert_to_ffi_error", Entry<ConvertToError>, METH_O, "The FFI error for an exception."},
    {"_traceback_text", Entry<TracebackText>, METH_O, "Frames as text, most recent call first."},
    {nullptr, nullptr, 0, nullptr}};

// Brings the error attached to the exception up to date, or attaches one. An exception without it
// is still the exception, so failures pass.
void Describe(PyObject* exc, RaisedException* raised) {
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
    PyErr_Clear();
  }
}

// The exception for an error that arrives, whose reference it takes over; null with an error set.
Ref ExceptionFor(TVMFFIObject* h, const Given& given) {
  RaisedException* raised = RaisedException::Of(h);
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
    Describe(exc.get(), raised);
  } catch (const std::bad_alloc&) {  // the exception itself is there
  }
  return exc;
}

}  // namespace

void SettleDepartures(TVMFFIObject* arriving) {
  auto is_arriving = [&](const Departure& departure) {
    return arriving != nullptr && departure.address == RaisedException::Of(arriving);
  };
  // Locals that die may run code that calls C++ and changes the list.
  while (!departures.empty()) {
    if (!departures.back().error.expired() && !is_arriving(departures.back())) {
      if (IsWaiting(departures.back().frame)) break;
      ffi::ObjectPtr<RaisedException> kept = departures.back().error.lock();
      departures.pop_back();
      if (kept != nullptr) kept->LetFramesGo();
    } else {
      departures.pop_back();
    }
  }
  any_departed = !departures.empty();
}

void ForgetUnusedFrames() {
  for (const auto& raised : watch_list.Alive()) raised->ForgetFramesUnused();
}

PyObject* ExceptionIn(TVMFFIObject* error) {
  RaisedException* raised = RaisedException::Of(error);
  return raised != nullptr ? raised->exception() : nullptr;
}

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
  Ref exc = ExceptionFor(h, given);
  if (!exc) return nullptr;
  Ref context = Ref::Steal(PyException_GetContext(exc.get()));
  if (pending && pending.get() != exc.get() && !context) {
    if (tb) PyException_SetTraceback(pending.get(), tb.get());
    PyException_SetContext(exc.get(), Py_NewRef(pending.get()));
  }
  PyErr_Restore(Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(exc.get()))), Py_NewRef(exc.get()),
                PyException_GetTraceback(exc.get()));
  return nullptr;
}

PyObject* RaiseFromCall(int code) { return Raise(code, Given()); }

PyObject* RaiseFromCall(int code, PyObject* const* args, Py_ssize_t nargs) {
  return Raise(code, Given{args, nargs, nullptr, nullptr});
}

PyObject* RaiseForField(int code, const std::string& field, const std::string& type_key,
                        PyObject* value) {
  return Raise(code, Given{&value, 1, &field, &type_key});
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

int InitErrorType(PyObject* module) {
  departures.reserve(4);  // the first one may come when there is no memory left
  types.error = AddType(module, &error_spec, types.object);
  if (types.error == nullptr) return -1;
  SetClassOfIndex(TypeIndex::kTVMFFIError, types.error);
  return PyModule_AddFunctions(module, error_functions);
}

}  // namespace tether_py
