// SPDX-License-Identifier: Apache-2.0
// References that C++ holds to Python objects, given back on any thread.
#include "python/wrap/release_queue.h"

#include <cstdlib>

#include "python/wrap/wrapper.h"

namespace tether_py {

namespace {

struct PendingRelease {
  void* what;
  void (*release)(void*);
  PendingRelease* next;
};
std::atomic<PendingRelease*> pending_releases{nullptr};
std::atomic<int64_t> num_pending_releases{0};
std::atomic<bool> interpreter_ended{false};

}  // namespace

void ReleaseWith(void* what, void (*release)(void*)) {
  UnwindStop stop;
  // Also at exit, on the thread that ends the interpreter: modules are emptied then, and what they
  // alone held is finalised. When the interpreter is gone, no thread is attached.
  if (AttachedHere()) return release(what);
  if (interpreter_ended.load(std::memory_order_acquire)) return;  // leaked on purpose
  auto* node = static_cast<PendingRelease*>(std::malloc(sizeof(PendingRelease)));
  if (node == nullptr) return;  // leak one object rather than abort
  // The gate: the interpreter may not end while this thread asks it for something.
  if (!Engine::list().Enter()) return std::free(node);
  node->what = what;
  node->release = release;
  num_pending_releases.fetch_add(1, std::memory_order_relaxed);
  node->next = pending_releases.load(std::memory_order_relaxed);
  while (!pending_releases.compare_exchange_weak(node->next, node, std::memory_order_release,
                                                 std::memory_order_relaxed)) {
  }
  Runtime::RequestDrain();
  Engine::list().Leave();
}

void ReleaseFromAnyThread(void* obj) {
  ReleaseWith(obj, [](void* o) { Py_DECREF(static_cast<PyObject*>(o)); });
}

void DrainReleases() {
  if (pending_releases.load(std::memory_order_relaxed) == nullptr) return;
  PendingRelease* node = pending_releases.exchange(nullptr, std::memory_order_acquire);
  while (node != nullptr) {
    PendingRelease pending = *node;
    std::free(node);
    num_pending_releases.fetch_sub(1, std::memory_order_relaxed);
    pending.release(pending.what);
    node = pending.next;
  }
}

int64_t CountPendingReleases() { return num_pending_releases.load(std::memory_order_relaxed); }

void CloseReleaseQueue() {
  DrainReleases();
  interpreter_ended.store(true, std::memory_order_release);
}

}  // namespace tether_py
