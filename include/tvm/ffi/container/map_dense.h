// SPDX-License-Identifier: Apache-2.0
// The hash table of the dense form (map_layout.h): searching, placing and removing entries.
//
//   DenseTable table = DenseTable::Load(map);
//   uint64_t slot = table.Find(key, hash);
//   if (slot != kNoSlot) table.Remove(slot, &removed);
//   table.StoreEntries(map);
#ifndef TVM_FFI_CONTAINER_MAP_DENSE_H_
#define TVM_FFI_CONTAINER_MAP_DENSE_H_

#include <tvm/ffi/any.h>
#include <tvm/ffi/container/container_detail.h>
#include <tvm/ffi/container/map_layout.h>
#include <tvm/ffi/error.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>

namespace tvm {
namespace ffi {

namespace tether {

// The result of a search that met a hook, or a change of the map: not known yet.
inline constexpr uint64_t kAskHooks = ~uint64_t{0} - 1;

// Steps from one slot of a chain to the next: near ones first, then triangular numbers, then
// numbers that spread over tables of any size.
struct ProbeTable {
  uint64_t step[126];
};

constexpr ProbeTable MakeProbeTable() {
  // clang-format off
  constexpr uint64_t kFar[43] = {
      8515ULL, 19110ULL, 42778ULL, 96141ULL, 216153ULL, 486591ULL, 1092981ULL, 2458653ULL,
      5532801ULL, 12442566ULL, 27993903ULL, 62983476ULL, 141717030ULL, 318844378ULL,
      717352503ULL, 1614057336ULL, 3631522476ULL, 8170957530ULL, 18384510628ULL, 41364789378ULL,
      93070452520ULL, 209408356380ULL, 471168559170ULL, 1060128894105ULL, 2385289465695ULL,
      5366898840628ULL, 12075518705635ULL, 27169915244790ULL, 61132312065111ULL,
      137547689707000ULL, 309482283181501ULL, 696335127828753ULL, 1566753995631385ULL,
      3525196511162271ULL, 7931691992677701ULL, 17846306936293605ULL, 40154190677507445ULL,
      90346928918121501ULL, 203280589587557251ULL, 457381325854679626ULL, 1029107982097042876ULL,
      2315492959180353330ULL, 5209859154120846435ULL};
  // clang-format on
  ProbeTable table{};
  for (uint64_t i = 0; i < 16; ++i) table.step[i] = i;
  for (uint64_t k = 6; k <= 72; ++k) table.step[10 + k] = k * (k + 1) / 2;
  for (uint64_t i = 0; i < 43; ++i) table.step[83 + i] = kFar[i];
  return table;
}

inline constexpr ProbeTable kProbe = MakeProbeTable();

[[noreturn]] TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE inline void ThrowBrokenChain() {
  TVM_FFI_THROW(InternalError) << "the table of a Map is broken: an entry is in no chain";
}

// The fields of one dense table, held in locals while it is worked on and stored back at the end.
// Invariants at rest: a chain holds exactly the keys of one home slot and begins there; the
// occupied slots are linked from head to tail; no metadata byte is kClaimed.
struct DenseTable {
  static constexpr uint8_t kEmpty = 0xFF;
  static constexpr uint8_t kClaimed = 0xFE;
  static constexpr uint8_t kBody = 0x80;
  static constexpr uint8_t kStepMask = 0x7F;

  MapBlock* blocks = nullptr;
  uint64_t slots = 0;
  uint64_t size = 0;
  uint64_t head = kNoSlot;
  uint64_t tail = kNoSlot;
  uint32_t fib_shift = 63;

  static DenseTable Load(const MapBaseObj* map) {
    const DenseMapBaseObj* fields = static_cast<const DenseMapBaseObj*>(map);
    DenseTable t;
    t.blocks = static_cast<MapBlock*>(map->data_);
    t.slots = map->slots_;
    t.size = map->size_;
    t.head = fields->iter_list_head_;
    t.tail = fields->iter_list_tail_;
    t.fib_shift = fields->fib_shift_;
    return t;
  }

  // Stores what changes when entries come and go.
  void StoreEntries(MapBaseObj* map) const {
    DenseMapBaseObj* fields = static_cast<DenseMapBaseObj*>(map);
    map->size_ = size;
    fields->iter_list_head_ = head;
    fields->iter_list_tail_ = tail;
  }

  void StoreAll(MapBaseObj* map) const {
    map->data_ = blocks;
    map->slots_ = slots;
    static_cast<DenseMapBaseObj*>(map)->fib_shift_ = fib_shift;
    StoreEntries(map);
  }

  static uint64_t NumBlocks(uint64_t slots) {
    return (slots + MapBlock::kSlots - 1) / MapBlock::kSlots;
  }

  // An empty table in `buffer`, which goes on owning the memory.
  static DenseTable MakeEmpty(uint64_t slots, MapBuffer* buffer) {
    const uint64_t n = NumBlocks(slots);
    if (TVM_FFI_PREDICT_FALSE(n > (~uint64_t{0} >> 1) / sizeof(MapBlock))) throw std::bad_alloc();
    buffer->reset(::operator new(n * sizeof(MapBlock)));
    DenseTable t;
    t.blocks = static_cast<MapBlock*>(buffer->get());
    t.slots = slots;
    t.fib_shift = 64;
    for (uint64_t s = slots; s > 1; s >>= 1) --t.fib_shift;
    for (uint64_t i = 0; i < n; ++i) {
      std::memset(t.blocks[i].meta, kEmpty, sizeof(t.blocks[i].meta));
    }
    return t;
  }

  // Slots for `count` expected entries: a power of two, at most half full.
  static uint64_t SlotsFor(uint64_t count) {
    uint64_t s = 1;
    while (s <= count) s <<= 1;
    if (s < 2 * count) s <<= 1;
    return std::max(s, kMinDenseSlots);
  }

  TVM_FFI_INLINE uint8_t& Meta(uint64_t slot) const {
    return blocks[slot / MapBlock::kSlots].meta[slot % MapBlock::kSlots];
  }
  TVM_FFI_INLINE MapItem* Item(uint64_t slot) const {
    return reinterpret_cast<MapItem*>(blocks[slot / MapBlock::kSlots].items) +
           slot % MapBlock::kSlots;
  }
  TVM_FFI_INLINE uint64_t Home(uint64_t hash) const {
    return (11400714819323198485ULL * hash) >> fib_shift;
  }
  TVM_FFI_INLINE uint64_t Forward(uint64_t slot, uint8_t step) const {
    return (slot + kProbe.step[step]) & (slots - 1);
  }
  TVM_FFI_INLINE uint64_t Backward(uint64_t slot, uint8_t step) const {
    return (slot - kProbe.step[step]) & (slots - 1);
  }
  TVM_FFI_INLINE uint8_t Step(uint64_t slot) const { return Meta(slot) & kStepMask; }
  TVM_FFI_INLINE void SetStep(uint64_t slot, uint8_t step) const {
    Meta(slot) = static_cast<uint8_t>((Meta(slot) & kBody) | step);
  }
  // Also true of an empty slot.
  TVM_FFI_INLINE bool IsNotHead(uint64_t slot) const { return (Meta(slot) & kBody) != 0; }
  // The threshold and its arithmetic decide when a table grows, so all binaries must share them.
  bool IsFull() const { return static_cast<double>(size + 1) > static_cast<double>(slots) * 0.99; }

  // A key whose home slot is not a head is absent: no other chain can hold it. The first key that
  // has to be compared by a hook ends the search with kAskHooks.
  TVM_FFI_INLINE uint64_t Find(const Any& key, uint64_t hash) const {
    if (size == 0) return kNoSlot;
    uint64_t slot = Home(hash);
    if (IsNotHead(slot)) return kNoSlot;
    while (true) {
      const TVMFFIAny* hook = nullptr;
      if (EqualUnlessHook(key, Item(slot)->data.first, &hook)) return slot;
      if (TVM_FFI_PREDICT_FALSE(hook != nullptr)) return kAskHooks;
      const uint8_t step = Step(slot);
      if (step == 0) return kNoSlot;
      slot = Forward(slot, step);
    }
  }

  // Find for a number or another key that is equal only to the same bits: without any call it needs
  // no registers saved, which would take as long as the search.
  TVM_FFI_INLINE uint64_t FindBits(const Any& key) const {
    if (size == 0) return kNoSlot;
    const TVMFFIAny* cell = detail::AnyUnsafe::TVMFFIAnyPtrFromAny(key);
    const auto index = static_cast<uint64_t>(static_cast<int64_t>(cell->type_index));
    uint64_t slot = Home(detail::StableHashCombine(index, cell->v_uint64));
    if (IsNotHead(slot)) return kNoSlot;
    while (true) {
      if (key.same_as(Item(slot)->data.first)) return slot;
      const uint8_t step = Step(slot);
      if (step == 0) return kNoSlot;
      slot = Forward(slot, step);
    }
  }

  // ---- The list of insertion order.

  TVM_FFI_INLINE void LinkLast(uint64_t slot) {
    MapItem* item = Item(slot);
    item->prev = tail;
    item->next = kNoSlot;
    (tail == kNoSlot ? head : Item(tail)->next) = slot;
    tail = slot;
  }

  TVM_FFI_INLINE void Unlink(uint64_t slot) {
    const MapItem* item = Item(slot);
    (item->prev == kNoSlot ? head : Item(item->prev)->next) = item->next;
    (item->next == kNoSlot ? tail : Item(item->next)->prev) = item->prev;
  }

  // Moves the entry of `from` into the unused item of `to`, with its place in the list.
  TVM_FFI_INLINE void MoveItem(uint64_t from, uint64_t to) {
    const MapItem* source = Item(from);
    MapItem* target = Item(to);
    RelocateEntries(&target->data, &source->data, 1);
    target->prev = source->prev;
    target->next = source->next;
    (source->prev == kNoSlot ? head : Item(source->prev)->next) = to;
    (source->next == kNoSlot ? tail : Item(source->next)->prev) = to;
  }

  // ---- Chains.

  // The first step from `slot` to an empty slot, or 0.
  uint8_t ProbeEmpty(uint64_t slot) const {
    for (uint8_t step = 1; step < 126; ++step) {
      if (Meta(Forward(slot, step)) == kEmpty) return step;
    }
    return 0;
  }

  // The slot before the body slot `slot` in its chain: the one whose step leads here. Found without
  // the hash of the key, which may be user code.
  uint64_t Predecessor(uint64_t slot) const {
    for (uint8_t step = 1; step < 126; ++step) {
      const uint64_t before = Backward(slot, step);
      if (Step(before) == step) return before;
    }
    ThrowBrokenChain();
  }

  // Empties the body slot `slot`, which is the home of a new key, by moving it and everything
  // behind it in its chain elsewhere. False, and nothing changed, if there is no room.
  TVM_FFI_NO_INLINE bool Evict(uint64_t slot) {
    const uint64_t before = Predecessor(slot);
    const uint8_t before_step = Step(before);
    uint64_t length = 1;
    for (uint64_t s = slot; Step(s) != 0; s = Forward(s, Step(s))) ++length;
    // What is needed to undo: each entry's old step, and the step that led to its new slot.
    uint8_t few[32];
    std::unique_ptr<uint8_t[]> many;
    if (2 * length > sizeof(few)) many.reset(new uint8_t[2 * length]);
    uint8_t* log = many != nullptr ? many.get() : few;

    uint64_t last = before, from = slot;
    for (uint64_t i = 0;; ++i) {
      const uint8_t old_step = Step(from);
      const uint8_t new_step = ProbeEmpty(last);
      if (new_step == 0) {
        UndoEvict(from, last, i, log);
        SetStep(before, before_step);
        return false;
      }
      const uint64_t to = Forward(last, new_step);
      MoveItem(from, to);
      Meta(from) = from == slot ? kClaimed : kEmpty;
      Meta(to) = kBody;
      SetStep(last, new_step);
      log[2 * i] = old_step;
      log[2 * i + 1] = new_step;
      last = to;
      if (old_step == 0) return true;
      from = Forward(from, old_step);
    }
  }

  // Takes back the last `n` moves; `from` is the slot behind them in the old chain, `last` the end
  // of the new one.
  void UndoEvict(uint64_t from, uint64_t last, uint64_t n, const uint8_t* log) {
    while (n-- > 0) {
      const uint64_t old_slot = Backward(from, log[2 * n]);
      Meta(last) = kEmpty;
      Meta(old_slot) = static_cast<uint8_t>(kBody | log[2 * n]);
      MoveItem(last, old_slot);
      last = Backward(last, log[2 * n + 1]);
      from = old_slot;
    }
  }

  // The slot for a key that is not in the table, its metadata set and its item still raw, or
  // kNoSlot if the table has to grow.
  TVM_FFI_INLINE uint64_t Place(uint64_t home) {
    if (Meta(home) == kEmpty) {
      Meta(home) = 0;
      return home;
    }
    return PlaceOccupied(home);
  }

  TVM_FFI_NO_INLINE uint64_t PlaceOccupied(uint64_t home) {
    if (IsFull()) return kNoSlot;
    if (IsNotHead(home)) {
      if (!Evict(home)) return kNoSlot;
      Meta(home) = 0;
      return home;
    }
    uint64_t last = home;
    while (Step(last) != 0) last = Forward(last, Step(last));
    const uint8_t step = ProbeEmpty(last);
    if (step == 0) return kNoSlot;
    const uint64_t slot = Forward(last, step);
    Meta(slot) = kBody;
    SetStep(last, step);
    return slot;
  }

  // Takes a slot's entry out of the table as raw bytes in `removed`.
  void Remove(uint64_t slot, MapEntry* removed) {
    const bool is_last = Step(slot) == 0;
    if (is_last) {
      if (IsNotHead(slot)) SetStep(Predecessor(slot), 0);
      Unlink(slot);
      RelocateEntries(removed, &Item(slot)->data, 1);
      Meta(slot) = kEmpty;
    } else {
      // The chain's last entry fills the gap, so that the chain keeps its home.
      uint64_t before = slot, last = Forward(slot, Step(slot));
      while (Step(last) != 0) {
        before = last;
        last = Forward(last, Step(last));
      }
      Unlink(slot);
      RelocateEntries(removed, &Item(slot)->data, 1);
      MoveItem(last, slot);
      Meta(last) = kEmpty;
      SetStep(before, 0);
    }
    --size;
  }

  // Appends a raw copy of an entry that differs from what is in the table. False if the table is
  // too small.
  bool AppendRaw(const MapEntry* entry, uint64_t hash) {
    const uint64_t slot = Place(Home(hash));
    if (slot == kNoSlot) return false;
    RelocateEntries(&Item(slot)->data, entry, 1);
    LinkLast(slot);
    ++size;
    return true;
  }

  // In memory order: the links are not needed for that.
  void DestroyEntries() const {
    for (uint64_t b = 0; b < NumBlocks(slots); ++b) {
      for (uint64_t i = 0; i < MapBlock::kSlots; ++i) {
        if (blocks[b].meta[i] < kClaimed) Item(b * MapBlock::kSlots + i)->data.~MapEntry();
      }
    }
  }
};

}  // namespace tether

}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_CONTAINER_MAP_DENSE_H_
