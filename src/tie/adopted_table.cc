// SPDX-License-Identifier: Apache-2.0
// The process's one table of adopted objects, and the way frontends find it.
#include "adopted_table.h"

#include <pthread.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include <cstdlib>

namespace tvm {
namespace ffi {
namespace tether {
namespace {

struct ProcessTable : NoHooks {
  static constexpr uint32_t kChunkBits = 12;               // 128 KiB a chunk
  static constexpr uint32_t kNumChunks = 1u << (31 - 12);  // every number the padding word can hold
  static constexpr uint32_t kNumStripes = 32;              // fork() holds all; TSan tracks 64 locks
  static constexpr size_t kLine = 128;                     // processors fetch lines in pairs
  static constexpr uint32_t kBundle = 256;
  static constexpr Mutation kMutation = Mutation::kNone;
  using Mutex = std::mutex;
  // Allocators give every thread regions of its own. Objects of one region share a stripe, so a
  // thread finds the locks and slots it uses in its own cache. Regions are adjacent, or start at
  // multiples of 64 MiB as glibc's arenas do: 32 consecutive ones of either kind get a stripe each.
  static uint32_t StripeOf(const void* object) {
    uint64_t region = reinterpret_cast<uintptr_t>(object) >> 21;
    return static_cast<uint32_t>(region + (region >> 5) + (region >> 10)) % kNumStripes;
  }
  static void* AllocateChunk(size_t bytes) { return std::calloc(1, bytes); }
};

using Table = AdoptedTableOf<ProcessTable>;

TVM_FFI_STATIC_INIT_BLOCK() {
  reflection::GlobalDef().def("ffi.tether.AdoptedTable",
                              []() -> void* { return const_cast<AdoptedTable*>(&Table::Get()); });
  // Called by deleters that clients compiled from memory.h.
  reflection::GlobalDef().def("ffi.tether.OnlyStorageIsLeft", [](void* object) {
    if (object == nullptr) TVM_FFI_THROW(ValueError) << "the object must not be NULL";
    Table::TellOnlyStorageIsLeft(static_cast<TVMFFIObject*>(object));
  });
  // A child of fork() must not inherit locks whose owner does not exist there.
  pthread_atfork(&Table::LockAll, &Table::UnlockAll, &Table::UnlockAll);
}

}  // namespace
}  // namespace tether
}  // namespace ffi
}  // namespace tvm
