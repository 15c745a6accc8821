// SPDX-License-Identifier: Apache-2.0
// An exception on its way through C++, and what becomes of its frames.
//
// Shared state: watch_list: its own lock. No Python code runs and nothing is released under it.
#include "python/convert/raised_exception.h"

#include <pthread.h>

#include <new>
#include <utility>

#include "python/base/python_api.h"
#include "python/base/ref.h"
#include "python/convert/exception_text.h"
#include "python/convert/traceback.h"
#include "python/wrap/python_hooks.h"
#include "python/wrap/release_queue.h"

namespace tether_py {

namespace {

TVMFFIObjectHandle Released(ffi::ObjectPtr<ffi::Object> object) {
  return object != nullptr
             ? ffi::details::ObjectUnsafe::MoveObjectPtrToTVMFFIObjectPtr(std::move(object))
             : nullptr;
}

}  // namespace

RaisedException::RaisedException(PyObject* exc, Account account)
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

RaisedException::~RaisedException() {
  if (is_watched_) watch_list.Remove(this);
  ReleaseFromAnyThread(exc_);
}

void RaisedException::LetFramesGo() {
  if (frames_are_gone_.exchange(true)) return;
  Ref text = Ref::Steal(DecodeText(std::string_view(backtrace_).substr(0, num_own_)));
  Ref done = text ? Ref::Steal(PyObject_CallFunctionObjArgs(hooks.release_frames, exc_, text.get(),
                                                            nullptr))
                  : Ref();
  if (done) return;
  PassOver();  // the exception stays without its frames
  PyException_SetTraceback(exc_, Py_None);
}

void RaisedException::ExtendTraceback() {
  bool all = frames_are_gone_.load();
  if (all) PyException_SetTraceback(exc_, Py_None);
  size_t known = all ? 0 : num_own_;
  std::string_view added = std::string_view(backtrace_).substr(known);
  Ref text = Ref::Steal(DecodeText(added));
  if (!text || !AppendFrames(exc_, text.get(), known, added.size())) PassOver();
}

void RaisedException::ForgetFramesUnused() {
  if (Py_REFCNT(exc_) == 1) PyException_SetTraceback(exc_, Py_None);
}

void RaisedException::Update(TVMFFIObjectHandle handle, const TVMFFIByteArray* text, int32_t mode) {
  auto* self = static_cast<RaisedException*>(static_cast<ffi::Object*>(handle));
  std::string_view addition(text->data, text->size);
  try {
    if (mode == kTVMFFIBacktraceUpdateModeAppend) {
      self->backtrace_.append(addition);
    } else {
      std::string replaced(addition);
      std::string_view own = std::string_view(self->backtrace_).substr(0, self->num_own_);
      // A replacement text says nothing about the frames that the exception lacks.
      bool goes_on = addition.substr(0, own.size()) == own;
      if (!goes_on) self->num_own_ = addition.size();
      self->backtrace_ = std::move(replaced);
    }
  } catch (const std::bad_alloc&) {  // the error is the same without these frames
  }
  self->backtrace = tie::AsBytes(self->backtrace_);
}

PyObject* ExceptionIn(TVMFFIObject* error) {
  RaisedException* raised = RaisedException::Of(error);
  return raised != nullptr ? raised->exception() : nullptr;
}

// ---- errors that arrived in Python while C++ keeps them ----

WatchList& watch_list = *new WatchList();  // outlives the last error

int InitWatchList() {
  // A child must not wait for a thread that does not exist there.
  return pthread_atfork([] { watch_list.lock.lock(); }, [] { watch_list.lock.unlock(); },
                        [] { watch_list.lock.unlock(); });
}

void WatchList::Add(RaisedException* error) {
  std::lock_guard<std::mutex> guard(lock);
  if (error->is_watched_) return;
  error->is_watched_ = true;
  error->next_watched_ = first;
  if (first != nullptr) first->previous_watched_ = error;
  first = error;
  ++count;
}

void WatchList::Remove(RaisedException* error) {
  std::lock_guard<std::mutex> guard(lock);
  RaisedException* next = error->next_watched_;
  RaisedException* previous = error->previous_watched_;
  if (next != nullptr) next->previous_watched_ = previous;
  (previous != nullptr ? previous->next_watched_ : first) = next;
  --count;
}

std::vector<ffi::ObjectPtr<RaisedException>> WatchList::Alive() {
  std::vector<ffi::ObjectPtr<RaisedException>> alive;
  std::lock_guard<std::mutex> guard(lock);
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

void ForgetUnusedFrames() {
  for (const auto& raised : watch_list.Alive()) raised->ForgetFramesUnused();
}

}  // namespace tether_py
