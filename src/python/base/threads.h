// SPDX-License-Identifier: Apache-2.0
// Threads: attached or not, entering and leaving the interpreter, and its end (threads.cc).
#ifndef TETHER_PYTHON_BASE_THREADS_H_
#define TETHER_PYTHON_BASE_THREADS_H_

#include "python/base/compat.h"

#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#define TETHER_HAS_SINGLE_THREADED
#endif

namespace tether_py {

// Whether this thread may touch Python objects now.
inline bool AttachedHere() {
#if PY_VERSION_HEX >= 0x030D0000
  return PyThreadState_GetUnchecked() != nullptr;
#elif PY_VERSION_HEX >= 0x030C0000
  return _PyThreadState_UncheckedGet() != nullptr;
#else
  // There it is the thread that holds the GIL, which need not be this one.
  PyThreadState* current = _PyThreadState_UncheckedGet();
  return current != nullptr && current == PyGILState_GetThisThreadState();
#endif
}

// Whether the process has never had a second thread.
inline bool OneThread() {
#ifdef TETHER_HAS_SINGLE_THREADED
  return __libc_single_threaded != 0;
#else
  return false;
#endif
}

inline bool IsFinalizing() {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

// In every function through which C++ enters Python: its frame gets an entry that the unwinder
// looks at, so that a thread which CPython ends stops there (threads.cc), and no frame of
// others further out is unwound.
class UnwindStop {
 public:
  UnwindStop() = default;
  UnwindStop(const UnwindStop&) = delete;
  UnwindStop& operator=(const UnwindStop&) = delete;
  ~UnwindStop() { __asm__ volatile(""); }  // emits nothing, but needs an unwind entry
};

// Stops this thread for good if the interpreter is shutting down. Does not return then.
void StopIfFinalizing();

// At exit, free-threaded CPython 3.13 frees the states of threads that are just leaving or about to
// come, and may let a thread in that came while it stopped all threads for the last time.
inline constexpr bool kFreesStatesInUse = kFreeThreaded && PY_VERSION_HEX < 0x030E0000;

// PyEval_SaveThread and PyEval_RestoreThread.
PyThreadState* SaveThreadGuarded();
inline PyThreadState* SaveThread() {
  return kFreesStatesInUse ? SaveThreadGuarded() : PyEval_SaveThread();
}
inline void RestoreThread(PyThreadState* state) {
  if (kFreesStatesInUse) StopIfFinalizing();
  PyEval_RestoreThread(state);
  if (kFreesStatesInUse) StopIfFinalizing();
}

// Gives a detached thread the GIL. False while the interpreter shuts down.
bool EnterInterpreter(PyGILState_STATE* state);
int InitThreadExit();  // at import: -1 with an error set

// Attaches a thread that C++ came in on, for as long as it lives; false when the interpreter shuts
// down and does not let it in.
class GILGuard {
 public:
  GILGuard() : attached_(AttachedHere()) {
    if (!attached_) entered_ = EnterInterpreter(&state_);
  }
  GILGuard(const GILGuard&) = delete;
  GILGuard& operator=(const GILGuard&) = delete;
  ~GILGuard() {
    if (entered_) PyGILState_Release(state_);
  }
  explicit operator bool() const { return attached_ || entered_; }

 private:
  bool attached_;
  bool entered_ = false;
  PyGILState_STATE state_{};
};

inline bool IsMainInterpreter() { return PyInterpreterState_Get() == PyInterpreterState_Main(); }

}  // namespace tether_py
#endif  // TETHER_PYTHON_BASE_THREADS_H_
