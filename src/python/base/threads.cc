// SPDX-License-Identifier: Apache-2.0
// What becomes of a thread that CPython ends.
//
// Once the interpreter shuts down, no other thread gets the GIL any more. CPython up to 3.13 calls
// pthread_exit in a thread that asks for it, wherever that is, and glibc then unwinds its C++
// frames: destructors run that touch Python without the GIL, and noexcept functions terminate the
// process. CPython 3.14 stops such a thread for good instead.
//
// So do we, with one rule: a thread that CPython ends stops at the first frame of this library that
// the unwinder meets, before anything there is destroyed. Every frame with something to destroy
// names a personality routine; the linker gives this library the one below (--wrap in
// CMakeLists.txt), so an ordinary call pays nothing. Frames of others, further out, are not reached
// because every function through which C++ enters Python has an UnwindStop (threads.h).
//
// Shared state:
//   is_entering, leaving,          of one thread each
//     ends_interpreter
//   threads_entering, is_exiting   atomics
//   forks                          changes only where there is one thread: in the child of a fork
//   adding_state                   a lock; no thread has the GIL and waits for it, but in fork()
#include <pthread.h>
#include <tvm/ffi/base_detail.h>
#include <unistd.h>
#include <unwind.h>

#include <mutex>
#include <new>

#include "python/base/entry.h"
#include "python/base/python_api.h"
#include "python/base/ref.h"
#include "python/base/threads.h"

namespace tether_py {

namespace {

// CPython 3.14 stops threads that enter while it shuts down, before they return to our code. But it
// aborts if a thread creates its state after shutdown.
constexpr bool kStopsThreads = PY_VERSION_HEX >= 0x030E0000;

// Whether this thread is counted in threads_entering.
thread_local bool is_entering = false;
std::atomic<int> threads_entering{0};
// The program has ended, and the interpreter will shut down as soon as the last exit hook has run.
std::atomic<bool> is_exiting{false};
// This thread shuts the interpreter down, and is the only one that CPython still lets in.
thread_local bool ends_interpreter = false;

void BeginEntering() {
  is_entering = true;
  threads_entering.fetch_add(1);
}

void EndEntering() {
  threads_entering.fetch_sub(1);
  is_entering = false;
}

// CPython 3.10 and 3.11 do not mind a thread without the GIL that adds its state to the list of all
// during a fork: the child then waits for the lock of that list for ever. So fork() waits here.
// This is what PyGILState_Ensure does for a new thread before it takes the GIL; it finds the state.
#if PY_VERSION_HEX < 0x030C0000
std::mutex adding_state;

void AddState() {
  std::lock_guard<std::mutex> lock(adding_state);
  PyThreadState* state = PyThreadState_New(PyInterpreterState_Main());
  if (state != nullptr) state->gilstate_counter = 0;
}
void GuardAddingState() {
  pthread_atfork([] { adding_state.lock(); }, [] { adding_state.unlock(); },
                 [] { adding_state.unlock(); });
}
#else
void AddState() {}
void GuardAddingState() {}
#endif

[[noreturn]] void StopForGood() {
  if (is_entering) EndEntering();
  for (;;) pause();
}

// Others may have asked whether the interpreter shuts down before it did, and not have asked for
// the GIL yet. With a time limit: somebody may have stopped the thread.
void AwaitEnteringThreads(int milliseconds) {
  for (int i = 0; i < 10 * milliseconds && threads_entering.load() != 0; ++i) usleep(100);
}
constexpr int kPatience = 1000;

// In the main thread, with the interpreter about to go: no thread may enter after the GIL is gone.
void OnInterpreterDict(PyObject*) { AwaitEnteringThreads(kStopsThreads ? 50 : kPatience); }

// An exit hook, the last one in most programs. Between it and the start of the shutdown nothing of
// ours runs, and the shutdown frees the state of every other thread, also one that a thread is
// making at that moment. So threads that are entering finish now, and others wait.
PyObject* OnExit(PyObject*, PyObject*) {
  is_exiting = true;
  ends_interpreter = true;
  PyThreadState* state = PyEval_SaveThread();
  AwaitEnteringThreads(kPatience);
  PyEval_RestoreThread(state);
  Py_RETURN_NONE;
}

// In a thread without a state. The hooks of others may go on for long, perhaps waiting for this
// thread: then it comes in after all.
void AwaitShutdown() {
  constexpr int kPatience = 500;  // 50 ms
  for (int i = 0; i < kPatience && !IsFinalizing(); ++i) usleep(100);
}

// ---- a thread state that is freed while its thread lets go of it (kFreesStatesInUse)
//
// The state is cleared before it is freed, and with it a capsule in its dict. That capsule's
// destructor runs in the thread that frees the state, and waits until the owner has left. That the
// owner was on its way out is visible by then, because it said so before it gave its state up.

// How many forks led to this process.
int forks = 0;

struct Leaving {
  std::atomic<bool> now{false};
  const int made_after = forks;
};
thread_local Leaving* leaving = nullptr;

void AwaitLeavingThread(PyObject* capsule) {
  auto* cell = static_cast<Leaving*>(PyCapsule_GetPointer(capsule, nullptr));
  if (cell == leaving) {  // the thread ends by itself
    leaving = nullptr;
    delete cell;
    return;
  }
  if (cell->made_after != forks) return;  // a thread of the parent
  // With a time limit: somebody may have stopped the thread. It keeps the cell.
  constexpr int kPatience = 10000;
  for (int i = 0; i < kPatience && cell->now.load(std::memory_order_acquire); ++i) usleep(100);
}

// No error is left behind: without a cell the thread is only not waited for.
void MakeLeavingCell() {
  PyObject* dict = PyThreadState_GetDict();
  if (dict == nullptr) return;
  ErrorAside pending;
  auto* cell = new (std::nothrow) Leaving();
  if (cell == nullptr) return;
  Ref capsule = Ref::Steal(PyCapsule_New(cell, nullptr, AwaitLeavingThread));
  if (!capsule) {
    delete cell;
    PyErr_Clear();
    return;
  }
  leaving = cell;
  if (PyDict_SetItemString(dict, "tvm_ffi.core", capsule.get()) < 0) PyErr_Clear();
}

// leave() detaches this thread, whose state is not freed before it is done.
template <typename Leave>
auto LeaveGuarded(const Leave& leave) {
  if (TVM_FFI_PREDICT_FALSE(leaving == nullptr)) MakeLeavingCell();
  Leaving* cell = leaving;
  if (cell != nullptr) cell->now.store(true, std::memory_order_relaxed);
  auto result = leave();
  if (cell != nullptr) cell->now.store(false, std::memory_order_release);
  return result;
}

}  // namespace

PyThreadState* SaveThreadGuarded() { return LeaveGuarded(PyEval_SaveThread); }

void ReleaseGuarded(PyGILState_STATE state) {
  LeaveGuarded([state] {
    PyGILState_Release(state);
    return true;
  });
}

void StopIfFinalizing() {
  if (IsFinalizing() && !ends_interpreter) StopForGood();
}

bool EnterInterpreter(PyGILState_STATE* state) {
  bool is_new = PyGILState_GetThisThreadState() == nullptr;
  bool is_counted = is_new || !kStopsThreads;
  if (is_counted) BeginEntering();
  if (is_new && is_exiting.load()) {
    EndEntering();
    AwaitShutdown();
    BeginEntering();
  }
  bool may_enter = !IsFinalizing() || (ends_interpreter && !is_new);
  if (may_enter) {
    if (is_new) AddState();
    *state = PyGILState_Ensure();
    StopIfFinalizing();  // see RestoreThread
  }
  if (is_counted) EndEntering();
  return may_enter;
}

void ForgetOtherThreads() {
  threads_entering.store(is_entering ? 1 : 0);
  ++forks;
}

int InitThreadExit() {
  GuardAddingState();
  PyObject* dict = PyInterpreterState_GetDict(PyInterpreterState_Get());  // cleared near the end
  if (dict == nullptr) return -1;
  static char anything;
  Ref capsule = Ref::Steal(PyCapsule_New(&anything, nullptr, OnInterpreterDict));
  if (!capsule || PyDict_SetItemString(dict, "tvm_ffi.core", capsule.get()) < 0) return -1;
  static PyMethodDef on_exit = {"_on_exit", Entry<OnExit>, METH_NOARGS, nullptr};
  Ref hook = Ref::Steal(PyCFunction_New(&on_exit, nullptr));
  return hook && CallAtExit(hook.get()) ? 0 : -1;
}

}  // namespace tether_py

#ifdef TETHER_WRAPS_PERSONALITY
extern "C" {

// The names are the linker's: references to X go to __wrap_X, those to __real_X go to X.
_Unwind_Reason_Code __real___gxx_personality_v0(int version, _Unwind_Action actions,
                                                _Unwind_Exception_Class exception_class,
                                                _Unwind_Exception* exception,
                                                _Unwind_Context* context);

__attribute__((visibility("hidden"))) _Unwind_Reason_Code __wrap___gxx_personality_v0(
    int version, _Unwind_Action actions, _Unwind_Exception_Class exception_class,
    _Unwind_Exception* exception, _Unwind_Context* context) {
  bool is_forced = (actions & _UA_FORCE_UNWIND) != 0;
  if (is_forced && tether_py::IsFinalizing()) tether_py::StopForGood();
  return __real___gxx_personality_v0(version, actions, exception_class, exception, context);
}

}  // extern "C"
#endif
