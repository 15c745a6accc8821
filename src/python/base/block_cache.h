// SPDX-License-Identifier: Apache-2.0
// Memory of C++ objects: malloc, with the blocks a thread has freed kept for its next objects.
//
// A pair of malloc and free costs about as much as everything else a small object goes through. A
// block goes to the list of the thread that frees it, so there is nothing to lock; the list of one
// size is at most kMaxBlocks long. PYTHONMALLOC=malloc, as used under memory checkers, turns it
// off.
#ifndef TETHER_PYTHON_BLOCK_CACHE_H_
#define TETHER_PYTHON_BLOCK_CACHE_H_

#include <malloc.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace tether_py {

class BlockCache {
 public:
  static void* Allocate(size_t n) {
    size_t bin = (n + kGrain - 1) / kGrain;
    if (bin >= kBins) return std::malloc(n);
    Lists* lists = lists_;
    if (__builtin_expect(lists != nullptr, 1)) {
      if (Block* block = lists->first[bin]) {
        lists->first[bin] = block->next;
        --lists->length[bin];
        return block;
      }
    }
    return std::malloc(bin * kGrain);
  }

  static void Free(void* p) {
    // At least what was asked for, so the block serves every request of its bin.
    size_t bin = malloc_usable_size(p) / kGrain;
    Lists* lists = lists_;
    if (bin >= kBins || lists == nullptr || lists->length[bin] >= lists->max_length) {
      return FreeSlow(p);
    }
    auto* block = static_cast<Block*>(p);
    block->next = lists->first[bin];
    lists->first[bin] = block;
    ++lists->length[bin];
  }

 private:
  static constexpr size_t kGrain = 16;
  static constexpr size_t kBins = 17;  // up to 256 bytes
  static constexpr uint32_t kMaxBlocks = 256;

  struct Block {
    Block* next;
  };
  struct Lists {
    Block* first[kBins];
    uint32_t length[kBins];
    uint32_t max_length;
  };

  static void FreeSlow(void* p);
  static Lists* MakeLists();
  static void DeleteLists(void* lists);

  // Initial-exec: one instruction instead of a call. It is one pointer, for which the loader always
  // has room.
  __attribute__((tls_model("initial-exec"))) static thread_local Lists* lists_;
  static thread_local bool thread_ended_;
};

}  // namespace tether_py
#endif  // TETHER_PYTHON_BLOCK_CACHE_H_
