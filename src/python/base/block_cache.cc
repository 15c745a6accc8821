// SPDX-License-Identifier: Apache-2.0
// The lists of a thread: made at its first free, given back when it ends.
#include "python/base/block_cache.h"

#include <pthread.h>

#include <cstring>

namespace tether_py {

thread_local BlockCache::Lists* BlockCache::lists_ = nullptr;
thread_local bool BlockCache::thread_ended_ = false;

namespace {

bool IsWanted() {
#ifdef __SANITIZE_ADDRESS__
  return false;
#else
  const char* setting = std::getenv("PYTHONMALLOC");
  return setting == nullptr || std::strncmp(setting, "malloc", 6) != 0;
#endif
}

}  // namespace

BlockCache::Lists* BlockCache::MakeLists() {
  static pthread_key_t key = [] {
    pthread_key_t made;
    pthread_key_create(&made, DeleteLists);
    return made;
  }();
  auto* lists = static_cast<Lists*>(std::calloc(1, sizeof(Lists)));
  if (lists == nullptr) return nullptr;
  lists->max_length = IsWanted() ? kMaxBlocks : 0;
  pthread_setspecific(key, lists);
  return lists;
}

void BlockCache::FreeSlow(void* p) {
  // Objects may still die while the thread ends, after its lists are gone.
  if (lists_ == nullptr && !thread_ended_) lists_ = MakeLists();
  std::free(p);
}

void BlockCache::DeleteLists(void* p) {
  auto* lists = static_cast<Lists*>(p);
  lists_ = nullptr;
  thread_ended_ = true;
  for (Block* block : lists->first) {
    while (block != nullptr) {
      Block* next = block->next;
      std::free(block);
      block = next;
    }
  }
  std::free(lists);
}

}  // namespace tether_py
