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

// The state of this thread if it may touch Python objects now; otherwise NULL.
inline PyThreadState* AttachedState() {
#if PY_VERSION_HEX >= 0x030D0000
  return PyThreadState_GetUnchecked();
#elif PY_VERSION_HEX >= 0x030C0000
  return _PyThreadState_UncheckedGet();
#else
  // There it is the thread that holds the GIL, which need not be this one.
  PyThreadState* current = _PyThreadState_UncheckedGet();
  return current == PyGILState_GetThisThreadState() ? current : nullptr;
#endif
}
inline bool AttachedHere() { return AttachedState() != nullptr; }

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

// A local variable of every function through which C++ enters Python. It gives the function's frame
// an entry that the unwinder looks at. So a thread that CPython ends stops there (threads.cc), and
// no frame of other libraries further out is unwound.
class UnwindStop {
 public:
  UnwindStop() = default;
  UnwindStop(const UnwindStop&) = delete;
  UnwindStop& operator=(const UnwindStop&) = delete;
  ~UnwindStop() { __asm__ volatile(""); }  // emits nothing, but needs an unwind entry
};

// Whether a thread that CPython ends stops and keeps its stack, so that others may go on reading
// it.
#if PY_VERSION_HEX >= 0x030E0000 || defined(TETHER_WRAPS_PERSONALITY)
inline constexpr bool kEndedThreadsStop = true;
#else
inline constexpr bool kEndedThreadsStop = false;
#endif

// Stops this thread for good if another one is shutting the interpreter down. Does not return then.
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

// The same of PyGILState_Release, of a thread whose state stays.
void ReleaseGuarded(PyGILState_STATE state);

// Gives a detached thread the GIL. False while another thread shuts the interpreter down.
bool EnterInterpreter(PyGILState_STATE* state);
int InitThreadExit();  // at import: -1 with an error set
// In the child of a fork: threads that do not exist there are not waited for.
void ForgetOtherThreads();

// Attaches a thread that C++ came in on, for as long as it lives; false when the interpreter shuts
// down and does not let it in.
class GILGuard {
 public:
  GILGuard() : attached_(AttachedHere()) {
    if (attached_) return;
    keeps_state_ = kFreesStatesInUse && PyGILState_GetThisThreadState() != nullptr;
    entered_ = EnterInterpreter(&state_);
  }
  GILGuard(const GILGuard&) = delete;
  GILGuard& operator=(const GILGuard&) = delete;
  ~GILGuard() {
    if (!entered_) return;
    if (keeps_state_) {
      ReleaseGuarded(state_);
    } else {
      PyGILState_Release(state_);
    }
  }
  explicit operator bool() const { return attached_ || entered_; }

 private:
  bool attached_;
  bool entered_ = false;
  bool keeps_state_ = false;
  PyGILState_STATE state_{};
};

inline bool IsMainInterpreter() { return PyInterpreterState_Get() == PyInterpreterState_Main(); }

}  // namespace tether_py
#endif  // TETHER_PYTHON_BASE_THREADS_H_
