// SPDX-License-Identifier: Apache-2.0
// The locks of the library. fork() holds them while it copies the process: a child finds them free,
// and what they guard whole.
//
// Whoever holds one runs no code of users: that may wait for the GIL, which the thread in fork()
// may have.
#ifndef TETHER_CORE_LOCKS_H_
#define TETHER_CORE_LOCKS_H_

#include <unistd.h>

#include <atomic>
#include <mutex>
#include <shared_mutex>

namespace tvm {
namespace ffi {
namespace tether {

// For any number of threads, or for fork(). Every error passes it: std::shared_mutex takes ten
// times as many instructions.
class ForkGate {
 public:
  void lock_shared() {
    while (inside_.fetch_add(1, std::memory_order_acquire) >= kFork) {
      unlock_shared();
      usleep(50);
    }
  }
  void unlock_shared() { inside_.fetch_sub(1, std::memory_order_release); }
  void lock() {
    inside_.fetch_add(kFork);
    while (inside_.load() != kFork) usleep(10);
  }
  void unlock() { inside_.fetch_sub(kFork); }
  void Renew() { inside_.store(0); }

 private:
  static constexpr int kFork = 1 << 30;
  std::atomic<int> inside_{0};
};

struct Locks {
  // In the order in which fork() takes them: a thread that holds one may take one further down.
  std::mutex types;  // errors are raised under it
  std::shared_mutex functions;
  std::mutex read_only_tensors;
  std::mutex context_symbols;
  std::mutex pinned_modules;
  std::mutex import_lookups;
  std::mutex system_symbols;
  std::mutex failed_libraries;
  std::mutex loaded_files;
  std::mutex places;
  // Nothing is done under it that waits for a thread in the initialiser of a library: that may
  // throw and wait for it.
  std::mutex debug_info;
  // Of the threads in dl_iterate_phdr, whose own lock a child would find taken.
  ForkGate loader;

  // Held while code of users runs, and so not by fork(). A child gets new ones.
  std::recursive_mutex init_once;
  std::recursive_mutex system_modules;
};

extern Locks locks;

}  // namespace tether
}  // namespace ffi
}  // namespace tvm
#endif  // TETHER_CORE_LOCKS_H_
