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
  static constexpr Mutation kMutation = Mutation::kNone;
  using Mutex = std::mutex;
  static void* AllocateChunk(size_t bytes) { return std::calloc(1, bytes); }
};

using Table = AdoptedTableOf<ProcessTable>;

TVM_FFI_STATIC_INIT_BLOCK() {
  reflection::GlobalDef().def("ffi.tether.AdoptedTable",
                              []() -> void* { return const_cast<AdoptedTable*>(&Table::Get()); });
  // Called by deleters that clients compiled from memory.h.
  reflection::GlobalDef().def("ffi.tether.OnlyStorageIsLeft", [](void* object) {
    Table::TellOnlyStorageIsLeft(static_cast<TVMFFIObject*>(object));
  });
  // A child of fork() must not inherit a lock whose owner does not exist there.
  pthread_atfork([] { Table::state().mutex.lock(); }, [] { Table::state().mutex.unlock(); },
                 [] { Table::state().mutex.unlock(); });
}

}  // namespace
}  // namespace tether
}  // namespace ffi
}  // namespace tvm
