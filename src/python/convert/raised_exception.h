// SPDX-License-Identifier: Apache-2.0
// An exception on its way through C++, as the error that C++ catches, keeps and throws.
//
// Three objects, and references one way only, so that no cycle ever waits for the collector:
//
//   RaisedException -> the Python exception -> __tvm_ffi_error__ -> an Error
//
// A RaisedException is what C++ catches, keeps and throws: made anew each time an exception leaves
// Python, it carries that instance and returns it each time it is thrown. The Error attached to the
// exception (attached_error.h) describes it to Python and knows nothing of it.
#ifndef TETHER_PYTHON_CONVERT_RAISED_EXCEPTION_H_
#define TETHER_PYTHON_CONVERT_RAISED_EXCEPTION_H_

#include <tvm/ffi/error.h>
#include <tvm/ffi/memory.h>

#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "python/wrap/wrapper.h"

namespace tether_py {

// What crosses as the error of an exception.
struct Account {
  std::string kind, message, frames;
  ffi::ObjectPtr<ffi::Object> cause, context;
};

class RaisedException;

// Errors that arrived in Python while C++ keeps them. Python frees no frame of an exception that is
// alive, so each collection looks whether C++ alone still has it. An error takes itself off the
// list when it dies: a weak reference would tell the collector that a thread may get hold of it. It
// may die on any thread, attached or not.
struct WatchList {
  std::mutex lock;
  RaisedException* first = nullptr;
  size_t count = 0;

  void Add(RaisedException* error);
  void Remove(RaisedException* error);
  // Those that are alive, each with a reference. Fewer if there is no memory for all.
  std::vector<ffi::ObjectPtr<RaisedException>> Alive();
};
extern WatchList& watch_list;
// Once: from now on a fork finds nobody else inside.
int InitWatchList();
// At a collection: exceptions that C++ alone holds need no frames.
void ForgetUnusedFrames();

class RaisedException : public ffi::ErrorObj {
 public:
  RaisedException(PyObject* exc, Account account);
  ~RaisedException();

  static bool IsCell(const TVMFFIErrorCell* cell) { return cell->update_backtrace == Update; }
  // The object behind an error, or NULL where it is of another class.
  static RaisedException* Of(TVMFFIObject* h) {
    if (h->type_index != ffi::TypeIndex::kTVMFFIError) return nullptr;
    if (!IsCell(TVMFFIErrorGetCellPtr(h))) return nullptr;
    return ffi::details::ObjectUnsafe::RawObjectPtrFromUnowned<RaisedException>(h);
  }

  PyObject* exception() const { return exc_; }

  // Whether C++ had kept it when it was thrown: it is not on its way from Python, but raised anew.
  bool was_kept() const { return frames_are_gone_.load(); }

  // C++ keeps this beyond the call. Locals are released now: the traceback then names the same
  // places with frames that hold no locals.
  void LetFramesGo();

  // Gives the exception the frames that it crossed since it was raised.
  void ExtendTraceback();

  // Where nobody but C++ has the exception, nobody looks at its traceback; it is made anew from the
  // text when the exception is thrown again.
  void ForgetFramesUnused();

 private:
  friend struct WatchList;

  static void Update(TVMFFIObjectHandle handle, const TVMFFIByteArray* text, int32_t mode);

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

// The Python exception inside a RaisedException, borrowed, or NULL.
PyObject* ExceptionIn(TVMFFIObject* error);

}  // namespace tether_py
#endif  // TETHER_PYTHON_CONVERT_RAISED_EXCEPTION_H_
