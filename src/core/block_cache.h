// SPDX-License-Identifier: Apache-2.0
// Memory of objects: malloc, with the small blocks that a thread has freed kept for its next ones.
//
//   void* block = BlockCache::Allocate(bytes);   // NULL when there is no memory; 16-byte aligned
//   BlockCache::Release(block);
//
// A pair of malloc and free costs about as much as everything else that a small object goes
// through. A block goes to the list of the thread that releases it, so there is nothing to lock.
// Lists are short: what a program has freed goes back to malloc. TVM_FFI_BLOCK_CACHE=0 or
// PYTHONMALLOC=malloc in the environment, and sanitizers, turn the lists off: every release then is
// a free that a memory checker can see. Every library that includes this has lists of its own.
#ifndef TETHER_CORE_BLOCK_CACHE_H_
#define TETHER_CORE_BLOCK_CACHE_H_

#include <tvm/ffi/base_detail.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#include "core/static_tls.h"
#include "core/thread_end.h"

#ifdef __APPLE__
#include <malloc/malloc.h>
#else
#include <malloc.h>
#endif

namespace tvm {
namespace ffi {
namespace tether {

class BlockCache {
 public:
  static void* Allocate(size_t bytes) {
    size_t bin = (bytes + kGrain - 1 - kOdd) / kGrain;
    if (bin >= kBins) return std::malloc(bytes);
    Lists* lists = lists_;
    if (TVM_FFI_PREDICT_TRUE(lists != nullptr)) {
      if (Block* block = lists->first[bin]) {
        lists->first[bin] = block->next;
        --lists->length[bin];
        return block;
      }
    }
    return std::malloc(bin * kGrain + kOdd);
  }

  static void Release(void* ptr) {
    // At least what was asked for, so the block serves every request of its bin.
    size_t bin = (UsableSize(ptr) - kOdd) / kGrain;
    Lists* lists = lists_;
    if (bin >= kBins || lists == nullptr || lists->length[bin] >= lists->max_length) {
      return ReleaseSlow(ptr);
    }
    auto* block = static_cast<Block*>(ptr);
    block->next = lists->first[bin];
    lists->first[bin] = block;
    ++lists->length[bin];
  }

 private:
  // Blocks of 8, 24, 40 ... bytes: those that malloc of glibc has, of 16, 32, 48 ... less the word
  // in which it keeps the size.
  static constexpr size_t kGrain = 16;
  static constexpr size_t kOdd = 8;
  static constexpr size_t kBins = 33;  // blocks of up to 520 bytes
  static constexpr uint32_t kMaxBlocks = 256;
  static constexpr uint32_t kMaxReleased = 4096;
  static constexpr size_t kLarge = 2048;

  struct Block {
    Block* next;
  };
  struct Lists {
    Block* first[kBins]{};
    uint32_t length[kBins]{};
    uint32_t max_length = IsWanted() ? kMaxBlocks : 0;
    uint32_t released = 0;  // to malloc
  };
  // Gives back what a thread kept when the thread ends.
  static void GiveBack() {
    Lists* lists = lists_;
    lists_ = nullptr;
    if (lists == nullptr) return;
    for (Block* block : lists->first) {
      while (block != nullptr) {
        Block* next = block->next;
        std::free(block);
        block = next;
      }
    }
    delete lists;
  }

  static size_t UsableSize(void* ptr) {
#ifdef __APPLE__
    return malloc_size(ptr);
#else
    return malloc_usable_size(ptr);
#endif
  }

  static bool IsWanted() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return false;
#else
    const char* own = std::getenv("TVM_FFI_BLOCK_CACHE");
    const char* python = std::getenv("PYTHONMALLOC");
    return (own == nullptr || std::strcmp(own, "0") != 0) &&
           (python == nullptr || std::strncmp(python, "malloc", 6) != 0);
#endif
  }

  TVM_FFI_NO_INLINE static void ReleaseSlow(void* ptr) {
    if (!has_asked_) {
      // Once per thread, and never again after its end: objects may die while the thread ends.
      has_asked_ = true;
      lists_ = new (std::nothrow) Lists();
      ThreadEnd<GiveBack>::Arm();
    }
    std::free(ptr);
#ifdef __GLIBC__
    // glibc leaves small blocks that are free side by side apart until it is asked for a large one.
    // Many of them are merged here, while they are in the caches: the next that are allocated then
    // follow one another in memory.
    if (lists_ != nullptr && lists_->max_length != 0 && ++lists_->released % kMaxReleased == 0) {
      void* volatile large = std::malloc(kLarge);
      std::free(large);
    }
#endif
  }

  static inline thread_local TETHER_STATIC_TLS Lists* lists_ = nullptr;
  static inline thread_local TETHER_STATIC_TLS bool has_asked_ = false;
};

}  // namespace tether
}  // namespace ffi
}  // namespace tvm
#endif  // TETHER_CORE_BLOCK_CACHE_H_
