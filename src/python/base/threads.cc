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
#include <tvm/ffi/base_detail.h>
#include <unistd.h>
#include <unwind.h>

#include <new>

#include "python/base/ref.h"
#include "python/base/threads.h"

namespace tether_py {

namespace {

// Whether this thread is counted in threads_entering.
thread_local bool is_entering = false;
std::atomic<int> threads_entering{0};

[[noreturn]] void StopForGood() {
  if (is_entering) threads_entering.fetch_sub(1);
  for (;;) pause();
}

// In the main thread, with the interpreter about to go. Others may have asked whether it shuts down
// before it did, and not have asked for the GIL yet: that must not find an interpreter without one.
void AwaitEnteringThreads(PyObject*) {
#if PY_VERSION_HEX < 0x030E0000  // later ones look themselves, and stop the thread out of our sight
  constexpr int kPatience = 10000;  // a second: in case somebody stopped the thread
  for (int i = 0; i < kPatience && threads_entering.load() != 0; ++i) usleep(100);
#endif
}

// ---- a thread state that is freed while its thread lets go of it (kFreesStatesInUse)
//
// The state is cleared before it is freed, and with it a capsule in its dict: there the thread that
// frees it waits until its owner is out. That the owner was on its way out is visible by then,
// because it said so before it gave its state up.

struct Leaving {
  std::atomic<bool> now{false};
};
thread_local Leaving* leaving = nullptr;

void AwaitLeavingThread(PyObject* capsule) {
  auto* cell = static_cast<Leaving*>(PyCapsule_GetPointer(capsule, nullptr));
  if (cell == leaving) {  // the thread ends by itself
    leaving = nullptr;
    delete cell;
    return;
  }
  // Not for ever: somebody may have stopped the thread. The cell is left to it.
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

}  // namespace

PyThreadState* SaveThreadGuarded() {
  if (TVM_FFI_PREDICT_FALSE(leaving == nullptr)) MakeLeavingCell();
  Leaving* cell = leaving;
  if (cell != nullptr) cell->now.store(true, std::memory_order_relaxed);
  PyThreadState* state = PyEval_SaveThread();
  if (cell != nullptr) cell->now.store(false, std::memory_order_release);
  return state;
}

void StopIfFinalizing() {
  if (IsFinalizing()) StopForGood();
}

bool EnterInterpreter(PyGILState_STATE* state) {
  is_entering = true;
  threads_entering.fetch_add(1);
  bool may_enter = !IsFinalizing();
  if (may_enter) {
    *state = PyGILState_Ensure();
    StopIfFinalizing();  // see RestoreThread
  }
  threads_entering.fetch_sub(1);
  is_entering = false;
  return may_enter;
}

int InitThreadExit() {
  PyObject* dict = PyInterpreterState_GetDict(PyInterpreterState_Get());  // cleared near the end
  if (dict == nullptr) return -1;
  static char anything;
  Ref hook = Ref::Steal(PyCapsule_New(&anything, nullptr, AwaitEnteringThreads));
  return hook ? PyDict_SetItemString(dict, "tvm_ffi.core", hook.get()) : -1;
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
