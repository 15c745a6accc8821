// SPDX-License-Identifier: Apache-2.0
// Tie slots for objects that have no prefix of this frontend: those of old binaries, of static
// initialisers, of other allocators. Not one byte outside the object's own header is touched.
//
// An adopted object carries the number of its slot in the padding word of its header
// (kAdoptedMark | n), and its deleter is replaced by the table's:
//
//   TieSlot* s = table->adopt(h, &my_frontend);   // first sight; needs a strong reference to h
//   AdoptedSlot* a = FindAdopted(*table, h);      // later: two loads, no lock, no hash
//
// A number counts only if slot[n].object == h, so a copied header or garbage in the padding word is
// never believed. Slots never move, because a tie word contains its lock.
//
// Adoption is one critical section of the table's lock, not a compare-and-swap on the padding word
// with a roll-back for the loser: garbage there may happen to be the number of the slot that is
// just being filled, and a third thread would use a slot that its loser is about to free.
//
// One table per process lives in libtvm_ffi. Frontends reach it without a new exported symbol:
// the global function "ffi.tether.AdoptedTable" returns a const AdoptedTable* as an opaque pointer.
// Its layout is versioned; a frontend that finds another version does not adopt.
#ifndef TETHER_TIE_ADOPTED_TABLE_H_
#define TETHER_TIE_ADOPTED_TABLE_H_

#include <tvm/ffi/c_api.h>

#include <mutex>

#include "tie_word.h"

namespace tvm {
namespace ffi {
namespace tether {

inline constexpr uint32_t kAdoptedMark = 0x80000000u;

// What the table calls when an adopted object dies. Must outlive the process's last object.
struct TieFrontend {
  // Settles the word for good and returns the wrapper it owned, or NULL.
  void* (*settle)(TieSlot* slot);
  // Returns the word's reference to that wrapper; H is destroyed by then. Any thread, never blocks.
  void (*release)(void* wrapper);
};

struct AdoptedSlot {
  TieSlot tie;
  std::atomic<TVMFFIObject*> object;  // NULL: free
  void (*original)(void* self, int flags);
  const TieFrontend* frontend;  // the only one that may use `tie`
};
static_assert(sizeof(AdoptedSlot) == 32);

struct AdoptedTable {
  static constexpr uint32_t kVersion = 2;

  uint32_t version;
  uint32_t chunk_bits;  // slots per chunk = 1 << chunk_bits
  uint32_t num_chunks;  // entries of `chunks`; NULL where not needed yet
  const std::atomic<AdoptedSlot*>* chunks;
  // The object's slot, made if there is none; NULL if another frontend has it or memory is short.
  // The caller holds a strong reference.
  TieSlot* (*adopt)(TVMFFIObject* object, const TieFrontend* frontend);
  // How many objects are adopted now.
  size_t (*size)();
  // Objects that need no adoption: hook(h) is called on any thread when one with an alloc header,
  // of any frontend, was destroyed and a weak reference keeps its storage. False: too many hooks.
  bool (*on_only_storage_left)(void (*hook)(TVMFFIObject* object));
};
static_assert(sizeof(AdoptedTable) == 48);

template <typename Hooks>
inline uint32_t LoadPadding(const TVMFFIObject* object) {
  Hooks::Step(&object->__padding);
  return Hooks::Saw(__atomic_load_n(&object->__padding, __ATOMIC_ACQUIRE));
}

// The slot of an object whose padding word is `padding`, or NULL if the number does not count.
template <typename Hooks = NoHooks>
inline AdoptedSlot* FindAdopted(const AdoptedTable& table, const TVMFFIObject* object,
                                uint32_t padding) {
  uint32_t n = padding & ~kAdoptedMark;
  if (n == padding || (n >> table.chunk_bits) >= table.num_chunks) return nullptr;
  AdoptedSlot* chunk = table.chunks[n >> table.chunk_bits].load(std::memory_order_acquire);
  if (chunk == nullptr) return nullptr;
  AdoptedSlot* slot = &chunk[n & ((1u << table.chunk_bits) - 1)];
  return Access<Hooks>::Load(slot->object, std::memory_order_acquire) == object ? slot : nullptr;
}

// The table itself. Config (also the Hooks): kChunkBits, kNumChunks, Mutex, kMutation and
// AllocateChunk(bytes), zeroed or NULL.
template <typename Config>
class AdoptedTableOf {
 public:
  struct State {
    typename Config::Mutex mutex;
    uint32_t free = 0;   // number + 1 of the first free slot, or 0
    uint32_t fresh = 0;  // slots from here on were never used
    size_t size = 0;
    std::atomic<AdoptedSlot*> chunks[Config::kNumChunks]{};
  };

  static const AdoptedTable& Get() { return table_; }
  static State& state() { return state_; }

  static void TellOnlyStorageIsLeft(TVMFFIObject* object) {
    for (std::atomic<StorageHook>& place : hooks_) {
      StorageHook hook = place.load(std::memory_order_acquire);
      if (hook != nullptr) hook(object);
    }
  }

 private:
  using StorageHook = void (*)(TVMFFIObject*);
  using At = Access<Config>;
  using Guard = std::lock_guard<typename Config::Mutex>;

  static TieSlot* Adopt(TVMFFIObject* object, const TieFrontend* frontend) {
    Guard guard(state_.mutex);
    if (AdoptedSlot* slot = FindAdopted<Config>(table_, object, LoadPadding<Config>(object))) {
      return slot->frontend == frontend ? &slot->tie : nullptr;
    }
    // A byte copy of an adopted object: its own deleter is nowhere to be found.
    if (object->deleter == &Deleter) return nullptr;
    uint32_t n = 0;
    AdoptedSlot* slot = TakeFree(&n);
    if (slot == nullptr) return nullptr;
    slot->original = object->deleter;
    slot->frontend = frontend;
    At::Store(slot->object, object, std::memory_order_release);
    // Deleters run only after the last reference is gone and the caller has one, so nobody reads
    // this field now; the count's release and acquire order it for whoever will.
    object->deleter = &Deleter;
    Config::Step(&object->__padding);
    __atomic_store_n(&object->__padding, kAdoptedMark | n, __ATOMIC_RELEASE);
    return &slot->tie;
  }

  // The wrapper is settled when the strong phase begins: from then on old binaries may use the
  // count word for something else, and a C++ weak reference must not keep the wrapper alive.
  static void Deleter(void* self, int flags) {
    constexpr int kSettlePhase = Config::kMutation == Mutation::kNoStrongHook
                                     ? kTVMFFIObjectDeleterFlagBitMaskWeak
                                     : kTVMFFIObjectDeleterFlagBitMaskStrong;
    TVMFFIObject* object = static_cast<TVMFFIObject*>(self);
    uint32_t padding = LoadPadding<Config>(object);
    AdoptedSlot* slot = FindAdopted<Config>(table_, object, padding);
    if (slot == nullptr) return;  // a byte copy (see Adopt): leaked, because nobody can free it
    const TieFrontend* frontend = slot->frontend;
    void (*original)(void*, int) = slot->original;
    void* wrapper = (flags & kSettlePhase) != 0 ? frontend->settle(&slot->tie) : nullptr;
    // Before the original can free the address: the next object there must not find this slot.
    bool last = (flags & kTVMFFIObjectDeleterFlagBitMaskWeak) != 0;
    if (last && Config::kMutation != Mutation::kSlotAfterDeleter) {
      object->deleter = original;
      object->__padding = 0;
      GiveFree(slot, padding & ~kAdoptedMark);
    }
    if (original != nullptr) original(self, flags);
    if (last && Config::kMutation == Mutation::kSlotAfterDeleter) {
      GiveFree(slot, padding & ~kAdoptedMark);
    }
    if (wrapper != nullptr) frontend->release(wrapper);
  }

  // Free slots are chained through their words, as number + 1. Both need the lock.
  static AdoptedSlot* TakeFree(uint32_t* n) {
    if (state_.free != 0) {
      *n = state_.free - 1;
      AdoptedSlot* slot = SlotAt(*n);
      state_.free = static_cast<uint32_t>(slot->tie.word.exchange(0, std::memory_order_relaxed));
      ++state_.size;
      return slot;
    }
    uint32_t chunk = state_.fresh >> Config::kChunkBits;
    if (chunk == Config::kNumChunks) return nullptr;
    if (state_.chunks[chunk].load(std::memory_order_relaxed) == nullptr) {
      void* block = Config::AllocateChunk(sizeof(AdoptedSlot) << Config::kChunkBits);
      if (block == nullptr) return nullptr;
      state_.chunks[chunk].store(static_cast<AdoptedSlot*>(block), std::memory_order_release);
    }
    *n = state_.fresh++;
    ++state_.size;
    return SlotAt(*n);
  }

  static void GiveFree(AdoptedSlot* slot, uint32_t n) {
    Guard guard(state_.mutex);
    At::Store(slot->object, static_cast<TVMFFIObject*>(nullptr), std::memory_order_release);
    slot->tie.word.store(state_.free, std::memory_order_relaxed);
    state_.free = n + 1;
    --state_.size;
  }

  static AdoptedSlot* SlotAt(uint32_t n) {
    return state_.chunks[n >> Config::kChunkBits].load(std::memory_order_relaxed) +
           (n & ((1u << Config::kChunkBits) - 1));
  }

  static size_t Size() {
    Guard guard(state_.mutex);
    return state_.size;
  }

  static bool OnOnlyStorageLeft(StorageHook hook) {
    for (std::atomic<StorageHook>& place : hooks_) {
      StorageHook none = nullptr;
      if (place.compare_exchange_strong(none, hook, std::memory_order_release)) return true;
    }
    return false;
  }

  inline static State state_;
  inline static std::atomic<StorageHook> hooks_[4];
  inline static const AdoptedTable table_{
      AdoptedTable::kVersion, Config::kChunkBits, Config::kNumChunks, state_.chunks, &Adopt, &Size,
      &OnOnlyStorageLeft};
};

}  // namespace tether
}  // namespace ffi
}  // namespace tvm
#endif  // TETHER_TIE_ADOPTED_TABLE_H_
