// SPDX-License-Identifier: Apache-2.0
#include "locks.h"

#include <pthread.h>
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

#include <new>

namespace tvm {
namespace ffi {
namespace tether {

Locks locks;

namespace {

template <typename Visit>
void ForEachHeld(Visit visit) {
  visit(&locks.types);
  visit(&locks.functions);
  visit(&locks.read_only_tensors);
  visit(&locks.context_symbols);
  visit(&locks.pinned_modules);
  visit(&locks.import_lookups);
  visit(&locks.system_symbols);
  visit(&locks.failed_libraries);
  visit(&locks.loaded_files);
  visit(&locks.places);
  visit(&locks.debug_info);
  visit(&locks.loader);
}

void LockAll() {
  ForEachHeld([](auto* lock) { lock->lock(); });
}
void UnlockAll() {
  ForEachHeld([](auto* lock) { lock->unlock(); });
}

void UnlockInChild(std::mutex* lock) { lock->unlock(); }
void UnlockInChild(ForkGate* lock) { lock->Renew(); }
// The thread has another number than the one that the C library noted.
void UnlockInChild(std::shared_mutex* lock) {
#ifdef __SANITIZE_THREAD__
  __tsan_mutex_pre_unlock(lock, 0);
  __tsan_mutex_post_unlock(lock, 0);
#endif
  new (lock) std::shared_mutex();
}

void UnlockAllInChild() {
  ForEachHeld([](auto* lock) { UnlockInChild(lock); });
  new (&locks.init_once) std::recursive_mutex();
  new (&locks.system_modules) std::recursive_mutex();
}

[[maybe_unused]] const int at_fork = pthread_atfork(LockAll, UnlockAll, UnlockAllInChild);

}  // namespace
}  // namespace tether
}  // namespace ffi
}  // namespace tvm
