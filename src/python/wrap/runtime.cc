// SPDX-License-Identifier: Apache-2.0
// CPython as the tie sees it: what need not be inline.
#include "python/wrap/runtime.h"

#include <unistd.h>

#include "python/wrap/release_queue.h"

namespace tether_py {

Counters counters;
std::atomic<const tie::AdoptedTable*> Runtime::adopted_table{nullptr};

namespace {

int DrainFromPendingCall(void*) {
  Engine::list().DrainRequested();
  DrainReleases();
  return 0;
}

}  // namespace

bool Runtime::RequestDrain() { return Py_AddPendingCall(DrainFromPendingCall, nullptr) == 0; }

void Runtime::Pause(int attempt) {
  // Detached, so that a stop-the-world request does not wait for this thread.
  PyThreadState* state = SaveThread();
  if (attempt > 16) usleep(attempt < 100 ? 1 : 50);
  RestoreThread(state);
}

}  // namespace tether_py
