// SPDX-License-Identifier: Apache-2.0
// Small blocks for objects, kept per thread and size after release: an allocation and its release
// are then a pop and a push on a list no other thread sees.
//
//   void* block = BlockCache::Allocate(bytes);   // throws std::bad_alloc; 16-byte aligned
//   BlockCache::Release(block);
//
// A block stores its size class in its first word, which its user must not change. Any thread may
// release a block, which then stays with that thread. Lists are short, so most freed memory goes
// back to malloc. TVM_FFI_BLOCK_CACHE=0 in the environment, and sanitizers, turn the lists
// off: every release is then a free that a memory checker can see.
#ifndef TETHER_CORE_BLOCK_CACHE_H_
#define TETHER_CORE_BLOCK_CACHE_H_

#include <tvm/ffi/base_details.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

namespace tvm {
namespace ffi {
namespace tether {

class BlockCache {
 public:
  static void* Allocate(size_t bytes) {
    size_t size_class = (bytes + kGranule - 1) / kGranule;
    Lists* lists = lists_;
    if (TVM_FFI_PREDICT_TRUE(size_class < kClasses && lists != nullptr)) {
      if (Block* block = lists->head[size_class]) {
        lists->head[size_class] = block->next;
        --lists->count[size_class];
        return block;
      }
    }
    return AllocateSlow(bytes, size_class);
  }

  static void Release(void* ptr) {
    auto* block = static_cast<Block*>(ptr);
    size_t size_class = block->size_class;
    Lists* lists = lists_;
    if (TVM_FFI_PREDICT_TRUE(lists != nullptr && size_class < kClasses &&
                             lists->count[size_class] < kMaxKept)) {
      block->next = lists->head[size_class];
      lists->head[size_class] = block;
      ++lists->count[size_class];
      return;
    }
    std::free(block);
  }

 private:
  static constexpr size_t kGranule = 16;
  static constexpr size_t kClasses = 33;  // blocks of up to 512 bytes
  static constexpr uint16_t kMaxKept = 32;

  struct Block {
    uintptr_t size_class;
    Block* next;  // while kept
  };
  struct Lists {
    Block* head[kClasses]{};
    uint16_t count[kClasses]{};
  };
  // Returns what a thread kept when the thread ends.
  struct Keeper {
    ~Keeper() {
      Lists* lists = lists_;
      lists_ = nullptr;
      if (lists == nullptr) return;
      for (Block* block : lists->head) {
        while (block != nullptr) {
          Block* next = block->next;
          std::free(block);
          block = next;
        }
      }
      delete lists;
    }
  };

  static bool Enabled() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return false;
#else
    const char* setting = std::getenv("TVM_FFI_BLOCK_CACHE");
    return setting == nullptr || std::strcmp(setting, "0") != 0;
#endif
  }

  TVM_FFI_NO_INLINE static void* AllocateSlow(size_t bytes, size_t size_class) {
    if (bytes > SIZE_MAX - kGranule) throw std::bad_alloc();
    if (!asked_) {
      // Once per thread, and not again while the thread ends: other destructors that run then may
      // still make and drop objects.
      asked_ = true;
      if (Enabled()) {
        static thread_local Keeper keeper;
        (void)keeper;
        lists_ = new Lists();
      }
    }
    auto* block = static_cast<Block*>(std::malloc(size_class * kGranule));
    if (block == nullptr) throw std::bad_alloc();
    block->size_class = size_class;
    return block;
  }

  // The address of these is a constant away from the thread pointer. That takes static TLS, of
  // which a library gets little, hence a pointer.
#if defined(__GNUC__) && !defined(__APPLE__)
#define TETHER_STATIC_TLS __attribute__((tls_model("initial-exec")))
#else
#define TETHER_STATIC_TLS
#endif
  static inline thread_local TETHER_STATIC_TLS Lists* lists_ = nullptr;
  static inline thread_local TETHER_STATIC_TLS bool asked_ = false;
#undef TETHER_STATIC_TLS
};

}  // namespace tether
}  // namespace ffi
}  // namespace tvm
#endif  // TETHER_CORE_BLOCK_CACHE_H_
