// SPDX-License-Identifier: Apache-2.0
// Signals, such as that of Ctrl-C, while C++ runs.
//
// Shared state: main_thread: an atomic, set at import and in the child of a fork.
#include "python/base/signals.h"

#include <pthread.h>
#include <tvm/ffi/extra/c_env_api.h>

#include <atomic>

#include "python/base/ref.h"
#include "python/base/threads.h"

namespace tether_py {

namespace {

// The thread that handles signals.
std::atomic<unsigned long> main_thread{0};

// For C++ that runs long, from any thread. -1 with a Python error set.
int CheckSignals() {
  // Elsewhere there is nothing to do, and no reason to wait for the GIL.
  if (PyThread_get_thread_ident() != main_thread.load(std::memory_order_relaxed)) return 0;
  UnwindStop stop;
  GILGuard gil;
  // Handlers are Python code. They wait while an exception is on its way.
  return gil && !PyErr_Occurred() ? PyErr_CheckSignals() : 0;
}

}  // namespace

// The library needs no other entry: this one acquires the GIL itself.
int InitSignals(PyObject*) {
  Ref threading = Ref::Steal(PyImport_ImportModule("threading"));
  if (!threading) return -1;
  Ref thread = Ref::Steal(PyObject_CallMethod(threading.get(), "main_thread", nullptr));
  Ref ident = thread ? Ref::Steal(PyObject_GetAttrString(thread.get(), "ident")) : Ref();
  if (!ident) return -1;
  unsigned long value = PyLong_AsUnsignedLong(ident.get());
  if (PyErr_Occurred() != nullptr) return -1;
  main_thread.store(value);
  // The thread that forks is the main thread of the child.
  pthread_atfork(nullptr, nullptr, [] { main_thread.store(PyThread_get_thread_ident()); });
  return TVMFFIEnvRegisterCAPI("PyErr_CheckSignals", reinterpret_cast<void*>(CheckSignals));
}

}  // namespace tether_py
