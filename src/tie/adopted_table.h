// SPDX-License-Identifier: Apache-2.0
// Tie slots for objects that have no prefix of this frontend: those of old binaries, of static
// initialisers, of other allocators. Nothing before the object is read.
//
// An adopted object carries the number of its slot in the padding word of its header
// (kAdoptedMark | n), and its deleter is replaced by the table's:
//
//   TieSlot* s = table->adopt(h, &my_frontend);   // first time; needs a strong reference to h
//   AdoptedSlot* a = FindAdopted(*table, h, padding);  // later: two loads, no lock, no hash
//
// `padding` is that word of h. A number counts only if slot[n].object == h, so a copied header or
// garbage in the padding word is never taken for a slot. Slots never move, because a tie word
// contains its lock.
//
// Adoption is one critical section, not a compare-and-swap on the padding word that the loser rolls
// back: garbage there may happen to be the number of the slot that is being filled, and a third
// thread would use a slot that the loser is about to free.
//
// The table has several locks, so that threads do not wait for each other. The address of an object
// says which one (StripeOf), so everything about one object happens under one lock. Each stripe
// has its own free slots and keeps at most two bundles of them; further bundles go through a common
// pile to the next stripe that needs some. Locks: stripe, then pile.
//
// One table per process lives in libtvm_ffi. Frontends reach it without a new exported symbol:
// the global function "ffi.tether.AdoptedTable" returns a const AdoptedTable* as an opaque pointer.
// Its layout is versioned; a frontend that finds another version must not use it. Ours raises
// ImportError.
#ifndef TETHER_TIE_ADOPTED_TABLE_H_
#define TETHER_TIE_ADOPTED_TABLE_H_

#include <tvm/ffi/c_api.h>

#include <mutex>
#include <utility>

#include "tie_word.h"

namespace tvm {
namespace ffi {
namespace tether {

inline constexpr uint32_t kAdoptedMark = 0x80000000u;

// What the table calls when an adopted object dies. Must outlive the process's last object.
struct TieFrontend {
  // Settles the word finally and returns the wrapper it owned, or NULL.
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
  // The object's slot, made if there is none; NULL if another frontend has it, or without memory.
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

// The table itself. Config (also the Hooks): kChunkBits, kNumChunks, kNumStripes, kLine (bytes
// that threads should not share), kBundle (slots), Mutex, kMutation, StripeOf(object), and
// AllocateChunk(bytes), zeroed or NULL.
template <typename Config>
class AdoptedTableOf {
 public:
  struct alignas(Config::kLine) Stripe {
    typename Config::Mutex mutex;
    uint32_t free = 0;   // number + 1 of the first free slot, or 0
    uint32_t count = 0;  // of the slots chained from there
    uint32_t spare = 0;  // a whole bundle, or 0
    uint32_t fresh = 0;  // slots from here to fresh_end were never used
    uint32_t fresh_end = 0;
    size_t size = 0;  // objects that are adopted now
  };
  struct State {
    Stripe stripes[Config::kNumStripes];
    typename Config::Mutex mutex;  // of what follows
    uint32_t pile = 0;             // bundles of free slots
    uint32_t num_chunks = 0;       // in use
    std::atomic<AdoptedSlot*> chunks[Config::kNumChunks]{};
  };

  static const AdoptedTable& Get() { return table_; }
  static State& state() { return state_; }

  static void LockAll() {
    for (Stripe& stripe : state_.stripes) stripe.mutex.lock();
    state_.mutex.lock();
  }
  static void UnlockAll() {
    state_.mutex.unlock();
    for (Stripe& stripe : state_.stripes) stripe.mutex.unlock();
  }

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
    Stripe& stripe = state_.stripes[Config::StripeOf(object)];
    Guard guard(stripe.mutex);
    if (AdoptedSlot* slot = FindAdopted<Config>(table_, object, LoadPadding<Config>(object))) {
      return slot->frontend == frontend ? &slot->tie : nullptr;
    }
    // A byte copy of an adopted object: its original deleter cannot be found.
    if (object->deleter == &Deleter) return nullptr;
    uint32_t n = 0;
    AdoptedSlot* slot = TakeFree(stripe, &n);
    if (slot == nullptr) return nullptr;
    slot->original = object->deleter;
    slot->frontend = frontend;
    At::Store(slot->object, object, std::memory_order_release);
    // Deleters run only after the last reference is gone, and the caller has one, so no thread
    // reads this field now; the count's release and acquire order it for the one that will.
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
    if (slot == nullptr) return;  // a byte copy (see Adopt): leaked, because nothing can free it
    const TieFrontend* frontend = slot->frontend;
    void (*original)(void*, int) = slot->original;
    void* wrapper = (flags & kSettlePhase) != 0 ? frontend->settle(&slot->tie) : nullptr;
    // Before the original can free the address: the next object there must not find this slot.
    bool last = (flags & kTVMFFIObjectDeleterFlagBitMaskWeak) != 0;
    if (last && Config::kMutation != Mutation::kSlotAfterDeleter) {
      object->deleter = original;
      object->__padding = 0;
      GiveFree(object, slot, padding & ~kAdoptedMark);
    }
    if (original != nullptr) original(self, flags);
    if (last && Config::kMutation == Mutation::kSlotAfterDeleter) {
      GiveFree(object, slot, padding & ~kAdoptedMark);
    }
    if (wrapper != nullptr) frontend->release(wrapper);
  }

  // Free slots are chained through the low halves of their words, as number + 1; the high half of
  // the first one of a bundle chains the pile.
  static constexpr int kPileShift = 32;
  static_assert(sizeof(uintptr_t) == 8);

  // Needs the stripe's lock, like Refill.
  static AdoptedSlot* TakeFree(Stripe& stripe, uint32_t* n) {
    if (stripe.free == 0 && !Refill(stripe)) return nullptr;
    ++stripe.size;
    if (stripe.free == 0) {
      *n = stripe.fresh++;
      return SlotAt(*n);
    }
    *n = stripe.free - 1;
    AdoptedSlot* slot = SlotAt(*n);
    stripe.free = static_cast<uint32_t>(slot->tie.word.exchange(0, std::memory_order_relaxed));
    --stripe.count;
    return slot;
  }

  // Leaves free or fresh slots in a stripe whose chain is empty; false if out of memory.
  static bool Refill(Stripe& stripe) {
    if (stripe.spare != 0) {
      stripe.free = std::exchange(stripe.spare, 0);
      stripe.count = Config::kBundle;
      return true;
    }
    if (stripe.fresh != stripe.fresh_end) return true;
    Guard guard(state_.mutex);
    if (state_.pile != 0) {
      stripe.free = state_.pile;
      stripe.count = Config::kBundle;
      uintptr_t word = SlotAt(state_.pile - 1)->tie.word.load(std::memory_order_relaxed);
      state_.pile = static_cast<uint32_t>(word >> kPileShift);
      return true;
    }
    if (state_.num_chunks == Config::kNumChunks) return false;
    void* block = Config::AllocateChunk(sizeof(AdoptedSlot) << Config::kChunkBits);
    if (block == nullptr) return false;
    stripe.fresh = state_.num_chunks << Config::kChunkBits;
    stripe.fresh_end = stripe.fresh + (1u << Config::kChunkBits);
    state_.chunks[state_.num_chunks++].store(static_cast<AdoptedSlot*>(block),
                                             std::memory_order_release);
    return true;
  }

  static void GiveFree(TVMFFIObject* object, AdoptedSlot* slot, uint32_t n) {
    Stripe& stripe = state_.stripes[Config::StripeOf(object)];
    Guard guard(stripe.mutex);
    At::Store(slot->object, static_cast<TVMFFIObject*>(nullptr), std::memory_order_release);
    if (stripe.count == Config::kBundle) {
      if (stripe.spare != 0) PutOnPile(stripe.spare);
      stripe.spare = std::exchange(stripe.free, 0);
      stripe.count = 0;
    }
    slot->tie.word.store(stripe.free, std::memory_order_relaxed);
    stripe.free = n + 1;
    ++stripe.count;
    --stripe.size;
  }

  static void PutOnPile(uint32_t bundle) {
    Guard guard(state_.mutex);
    std::atomic<uintptr_t>& word = SlotAt(bundle - 1)->tie.word;
    uintptr_t next = static_cast<uint32_t>(word.load(std::memory_order_relaxed));
    word.store(next | uintptr_t{state_.pile} << kPileShift, std::memory_order_relaxed);
    state_.pile = bundle;
  }

  static AdoptedSlot* SlotAt(uint32_t n) {
    return state_.chunks[n >> Config::kChunkBits].load(std::memory_order_relaxed) +
           (n & ((1u << Config::kChunkBits) - 1));
  }

  static size_t Size() {
    size_t size = 0;
    for (Stripe& stripe : state_.stripes) {
      Guard guard(stripe.mutex);
      size += stripe.size;
    }
    return size;
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
