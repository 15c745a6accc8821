// SPDX-License-Identifier: Apache-2.0
// The storage that Map and Dict share, and the rules by which values convert to either.
//
// A map is the object header followed by four words. Bit 63 of `slots_` tells which form it has:
//
//   small   at most 4 entries, side by side in insertion order, found by comparing
//   dense   a hash table of 2^k slots in blocks of 16: one metadata byte and one item per slot.
//           Items are linked in insertion order; a metadata byte says
//             0xFF            empty
//             0xFE            claimed, only while an entry is being moved
//             0jjjjjjj        first entry of a chain, in the home slot of all keys of that chain
//             1jjjjjjj        another entry of a chain
//           and j leads to the chain's next slot: (i + kProbe[j]) mod slots, j == 0 ends the chain.
//
// Any binary may read and, by the rules of Map and Dict, write these fields. Entries move as bytes.
//
// Hash and equality hooks of keys and destructors of entries are user code, and user code may do
// anything to the map, also to the one being searched. Hence:
//   - user code runs only while the fields tell the truth; entries leave the map before they die
//   - nothing that was read before user code is used after it without being checked again. A search
//     holds the keys it shows to hooks and at its end finds the same keys in the same places, or
//     begins again; a map that changes in kMaxSearches searches is a RuntimeError
//   - a change first asks all the hooks it needs, then changes the map without asking any
// Keys without hooks (numbers, strings, most objects) run no user code and pay for none of this:
// the plain searches give up with kAskHooks at the first hook, and the functions named ...Asking
// start over with care.
#ifndef TVM_FFI_CONTAINER_MAP_BASE_H_
#define TVM_FFI_CONTAINER_MAP_BASE_H_

#include <tvm/ffi/any.h>
#include <tvm/ffi/container/container_details.h>
#include <tvm/ffi/memory.h>
#include <tvm/ffi/object.h>
#include <tvm/ffi/optional.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

// Non-zero: iterators notice that their map was changed. Changes layouts, for debugging only.
#ifndef TVM_FFI_DEBUG_WITH_ABI_CHANGE
#define TVM_FFI_DEBUG_WITH_ABI_CHANGE 0
#endif

namespace tvm {
namespace ffi {

namespace tether {
struct MapOps;
struct DenseTable;
}  // namespace tether

class MapBaseObj : public Object {
 public:
  using key_type = Any;
  using mapped_type = Any;
  using KVType = std::pair<Any, Any>;
  // The same bytes without ownership.
  struct KVRawStorageType {
    TVMFFIAny first;
    TVMFFIAny second;
  };
  static_assert(sizeof(KVType) == 32 && sizeof(KVRawStorageType) == 32, "one entry is two cells");
  static_assert(std::is_standard_layout_v<KVType>, "key first, then value");

  // Walks in insertion order. Owns nothing; a change of the map may invalidate it.
  class iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using difference_type = int64_t;
    using value_type = KVType;
    using pointer = KVType*;
    using reference = KVType&;

    iterator() = default;
    bool operator==(const iterator& other) const {
      return index == other.index && self == other.self;
    }
    bool operator!=(const iterator& other) const { return !(*this == other); }
    pointer operator->() const;
    reference operator*() const { return *operator->(); }
    iterator& operator++();
    iterator& operator--();
    iterator operator++(int) {
      iterator copy = *this;
      ++*this;
      return copy;
    }
    iterator operator--(int) {
      iterator copy = *this;
      --*this;
      return copy;
    }

   private:
    friend class MapBaseObj;
    friend struct tether::MapOps;
#if TVM_FFI_DEBUG_WITH_ABI_CHANGE
    iterator(uint64_t index, const MapBaseObj* self)
        : state_marker(self->state_marker), index(index), self(self) {}
    void CheckState() const {
      if (state_marker != self->state_marker) {
        TVM_FFI_THROW(InternalError) << "Concurrent modification of the Map";
      }
    }
    uint64_t state_marker = 0;
#else
    iterator(uint64_t index, const MapBaseObj* self) : index(index), self(self) {}
    void CheckState() const {}
#endif
    uint64_t index = 0;
    const MapBaseObj* self = nullptr;
  };

  MapBaseObj(const MapBaseObj&) = delete;
  MapBaseObj& operator=(const MapBaseObj&) = delete;

  size_t size() const { return size_; }
  size_t count(const key_type& key) const;
  const mapped_type& at(const key_type& key) const;
  mapped_type& at(const key_type& key);
  iterator begin() const;
  iterator end() const;
  iterator find(const key_type& key) const;
  void erase(const iterator& position);
  void erase(const key_type& key);
  void clear();

 protected:
  MapBaseObj() noexcept {}

#if TVM_FFI_DEBUG_WITH_ABI_CHANGE
  uint64_t state_marker = 0;
#endif
  void* data_ = nullptr;
  uint64_t size_ = 0;
  uint64_t slots_ = 0;
  void (*data_deleter_)(void*) = nullptr;

 private:
  friend struct tether::MapOps;
  friend struct tether::DenseTable;
};

// A map allocated with room for its entries in the same block. A Dict may later switch to another
// storage, also to the dense form, whose three extra fields then lie where the first entries were.
class SmallMapBaseObj : public MapBaseObj {
 public:
  SmallMapBaseObj() noexcept {}
  ~SmallMapBaseObj();
};

// A map allocated with the fields of the dense form.
class DenseMapBaseObj : public MapBaseObj {
 public:
  DenseMapBaseObj() noexcept {}
  ~DenseMapBaseObj();

 private:
  friend struct tether::DenseTable;

  uint32_t fib_shift_ = 63;
  uint64_t iter_list_head_ = ~uint64_t{0};
  uint64_t iter_list_tail_ = ~uint64_t{0};
};

#if !TVM_FFI_DEBUG_WITH_ABI_CHANGE
static_assert(sizeof(void*) != 8 || (sizeof(MapBaseObj) == 56 && sizeof(SmallMapBaseObj) == 56 &&
                                     sizeof(DenseMapBaseObj) == 80),
              "clients inline this layout");
static_assert(sizeof(MapBaseObj::iterator) == 16, "clients inline this layout");
#endif

// Maps are made by Map, Dict and the functions below, in one of the two forms.
template <>
inline ObjectPtr<MapBaseObj> make_object<MapBaseObj>() = delete;

namespace tether {

using MapEntry = MapBaseObj::KVType;

inline constexpr uint64_t kNoSlot = ~uint64_t{0};
// The result of a search that met a hook, or a change of the map: not known yet.
inline constexpr uint64_t kAskHooks = ~uint64_t{0} - 1;
inline constexpr int kMaxSearches = 100;
inline constexpr uint64_t kSmallMapTag = uint64_t{1} << 63;
inline constexpr uint64_t kInitialSmallSlots = 2;
inline constexpr uint64_t kMaxSmallSlots = 4;
inline constexpr uint64_t kMinDenseSlots = 8;

// Entries never carry more than their bytes, so they can be moved without running any code.
TVM_FFI_INLINE void RelocateEntries(MapEntry* to, const MapEntry* from, uint64_t n) {
  std::memmove(static_cast<void*>(to), static_cast<const void*>(from), n * sizeof(MapEntry));
}

struct MapItem {
  MapEntry data;
  uint64_t prev;
  uint64_t next;
};

struct MapBlock {
  static constexpr uint64_t kSlots = 16;
  uint8_t meta[kSlots];
  alignas(MapItem) unsigned char items[kSlots * sizeof(MapItem)];
};
static_assert(sizeof(MapItem) == 48 && sizeof(MapBlock) == 784, "clients inline this layout");

inline void FreeMapBuffer(void* data) { ::operator delete(data); }

struct MapBufferDeleter {
  void operator()(void* data) const { FreeMapBuffer(data); }
};
using MapBuffer = std::unique_ptr<void, MapBufferDeleter>;

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

[[noreturn]] TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE inline void ThrowKeyNotInMap() {
  TVM_FFI_THROW(KeyError) << "key is not in Map";
}

[[noreturn]] TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE inline void ThrowBrokenChain() {
  TVM_FFI_THROW(InternalError) << "the table of a Map is broken: an entry is in no chain";
}

[[noreturn]] TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE inline void ThrowChangedMeanwhile(
    const Object* map, const char* operation) {
  const char* kind = map->type_index() == TypeIndex::kTVMFFIDict ? "Dict" : "Map";
  TVM_FFI_THROW(RuntimeError) << kind << " changed during `" << operation
                              << "`: the hooks of its keys change it whenever it is searched";
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

  // Find for a number or another key that is equal to nothing but its own bits: without any call,
  // it needs no registers saved, which would take as long as the search.
  TVM_FFI_INLINE uint64_t FindBits(const Any& key) const {
    if (size == 0) return kNoSlot;
    const TVMFFIAny* cell = details::AnyUnsafe::TVMFFIAnyPtrFromAny(key);
    const auto index = static_cast<uint64_t>(static_cast<int64_t>(cell->type_index));
    uint64_t slot = Home(details::StableHashCombine(index, cell->v_uint64));
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

// The operations that Map and Dict are written in.
struct MapOps {
  TVM_FFI_INLINE static bool IsSmall(const MapBaseObj* map) {
    return (map->slots_ & kSmallMapTag) != 0;
  }
  TVM_FFI_INLINE static uint64_t NumSlots(const MapBaseObj* map) {
    return map->slots_ & ~kSmallMapTag;
  }
  TVM_FFI_INLINE static MapEntry* SmallEntries(const MapBaseObj* map) {
    return static_cast<MapEntry*>(map->data_);
  }
  TVM_FFI_INLINE static MapItem* DenseItem(const MapBaseObj* map, uint64_t slot) {
    MapBlock* block = static_cast<MapBlock*>(map->data_) + slot / MapBlock::kSlots;
    return reinterpret_cast<MapItem*>(block->items) + slot % MapBlock::kSlots;
  }
  TVM_FFI_INLINE static MapEntry* Entry(const MapBaseObj* map, uint64_t index) {
    return IsSmall(map) ? SmallEntries(map) + index : &DenseItem(map, index)->data;
  }

  // ---- Finding.

  TVM_FFI_INLINE static uint64_t EndIndex(const MapBaseObj* map) {
    return IsSmall(map) ? map->size_ : kNoSlot;
  }

  TVM_FFI_INLINE static uint64_t FirstIndex(const MapBaseObj* map) {
    return IsSmall(map) ? 0 : DenseTable::Load(map).head;
  }
  TVM_FFI_INLINE static uint64_t NextIndex(const MapBaseObj* map, uint64_t index) {
    if (IsSmall(map)) return std::min(index + 1, map->size_);
    return index == kNoSlot ? kNoSlot : DenseItem(map, index)->next;
  }
  // Whether there is an entry at `index`, which may come from before a change of the map.
  static bool IsOccupied(const MapBaseObj* map, uint64_t index) {
    if (IsSmall(map)) return index < map->size_;
    return index < map->slots_ && DenseTable::Load(map).Meta(index) < DenseTable::kClaimed;
  }

  // The index of `key`, or EndIndex. It holds until user code runs.
  TVM_FFI_INLINE static uint64_t FindIndex(const MapBaseObj* map, const Any& key,
                                           const char* operation = "find") {
    const uint64_t index = FindPlain(map, key);
    if (TVM_FFI_PREDICT_TRUE(index != kAskHooks)) return index;
    std::optional<uint64_t> hash;
    return FindAsking(map, key, &hash, operation);
  }

  // As FindIndex, or kAskHooks.
  static uint64_t FindPlain(const MapBaseObj* map, const Any& key) {
    if (!IsSmall(map) && key.type_index() < TypeIndex::kTVMFFISmallStr) {
      return DenseTable::Load(map).FindBits(key);
    }
    return FindByContent(map, key);
  }

  TVM_FFI_NO_INLINE static uint64_t FindByContent(const MapBaseObj* map, const Any& key) {
    if (IsSmall(map)) return FindSmall(map, key);
    if (map->size_ == 0) return kNoSlot;
    const TVMFFIAny* hook = nullptr;
    const uint64_t hash = HashUnlessHook(key, &hook);
    return hook == nullptr ? DenseTable::Load(map).Find(key, hash) : kAskHooks;
  }

  TVM_FFI_INLINE static uint64_t FindSmall(const MapBaseObj* map, const Any& key) {
    const MapEntry* entries = SmallEntries(map);
    uint64_t i = 0;
    for (; i < map->size_; ++i) {
      const TVMFFIAny* hook = nullptr;
      if (EqualUnlessHook(entries[i].first, key, &hook)) break;
      if (TVM_FFI_PREDICT_FALSE(hook != nullptr)) return kAskHooks;
    }
    return i;
  }

  // The value of `key`, or null.
  TVM_FFI_INLINE static Any* FindValue(const MapBaseObj* map, const Any& key) {
    const uint64_t index = FindIndex(map, key);
    return index == EndIndex(map) ? nullptr : &Entry(map, index)->second;
  }

  // ---- Creating. Every map is born with room for two entries, so that a Dict can be switched to
  // the dense form in place.

  static ObjectPtr<Object> MakeSmall(int32_t type_index, uint64_t slots) {
    slots = std::max(slots, kInitialSmallSlots);
    auto map = make_inplace_array_object<SmallMapBaseObj, MapEntry>(slots);
    details::ObjectUnsafe::GetHeader(map.get())->type_index = type_index;
    map->data_ = reinterpret_cast<char*>(map.get()) + sizeof(SmallMapBaseObj);
    map->slots_ = slots | kSmallMapTag;
    return map;
  }

  static ObjectPtr<Object> MakeDense(int32_t type_index, uint64_t slots) {
    ObjectPtr<Object> map = MakeDenseShell(type_index);
    MapBuffer buffer;
    DenseTable table = DenseTable::MakeEmpty(slots, &buffer);
    SetTable(static_cast<MapBaseObj*>(map.get()), table, &buffer);
    return map;
  }

  // A map with room for `count` entries.
  static ObjectPtr<Object> MakeFor(int32_t type_index, int64_t count) {
    if (count < static_cast<int64_t>(kMaxSmallSlots)) {
      return MakeSmall(type_index, count > 0 ? static_cast<uint64_t>(count) : 0);
    }
    return MakeDense(type_index, DenseTable::SlotsFor(static_cast<uint64_t>(count)));
  }

  template <typename Iter>
  static ObjectPtr<Object> MakeFromRange(int32_t type_index, Iter first, Iter last) {
    ObjectPtr<Object> map = MakeFor(type_index, static_cast<int64_t>(std::distance(first, last)));
    for (; first != last; ++first) {
      MapEntry entry(*first);
      SetReplacing(&map, entry.first, std::move(entry.second));
    }
    return map;
  }

  static ObjectPtr<Object> Copy(const MapBaseObj* from) {
    if (!IsSmall(from)) return CopyDense(from);
    ObjectPtr<Object> copy = MakeSmall(from->type_index(), from->size_);
    MapBaseObj* map = static_cast<MapBaseObj*>(copy.get());
    for (uint64_t i = 0; i < from->size_; ++i) {
      new (SmallEntries(map) + i) MapEntry(SmallEntries(from)[i]);
      map->size_ = i + 1;
    }
    return copy;
  }

  // ---- Changing.

  // Removes a key. False if it is not there.
  static bool EraseKey(MapBaseObj* map, const Any& key) {
    const uint64_t index = FindIndex(map, key, "erase");
    if (index == EndIndex(map)) return false;
    EraseIndex(map, index);
    return true;
  }

  // Sets in a map whose only owner is `ref`. Growth puts a new object in its place.
  static void SetReplacing(ObjectPtr<Object>* ref, const Any& key, Any&& value) {
    Set(static_cast<MapBaseObj*>(ref->get()), ref, key, std::move(value));
  }
  // Sets in a shared Dict. Growth gives the object another storage.
  static void SetInPlace(MapBaseObj* map, const Any& key, Any&& value) {
    Set(map, nullptr, key, std::move(value));
  }

  static void EraseIndex(MapBaseObj* map, uint64_t index) {
    // Destroyed at the end of the scope, when the map is whole again.
    RemovedEntry removed;
    if (!IsOccupied(map, index)) return;
    if (IsSmall(map)) {
      MapEntry* entry = SmallEntries(map) + index;
      RelocateEntries(removed.get(), entry, 1);
      --map->size_;
      RelocateEntries(entry, entry + 1, map->size_ - index);
    } else {
      DenseTable table = DenseTable::Load(map);
      table.Remove(index, removed.get());
      table.StoreEntries(map);
    }
    removed.Arm();
  }

  // The entries leave with the old storage, while the map is empty already: what their destructors
  // store in it stays.
  static void Clear(MapBaseObj* map) {
    if (map->size_ == 0) return;
    if (IsSmall(map)) return ClearSmall(map);
    MapBuffer buffer;
    DenseTable empty = DenseTable::MakeEmpty(map->slots_, &buffer);
    DenseTable old = DenseTable::Load(map);
    auto old_deleter = map->data_deleter_;
    SetTable(map, empty, &buffer);
    old.DestroyEntries();
    if (old_deleter != nullptr) old_deleter(old.blocks);
  }

  static void ClearSmall(MapBaseObj* map) {
    // A small map has four entries at most.
    alignas(MapEntry) unsigned char taken[kMaxSmallSlots * sizeof(MapEntry)];
    MapEntry* entries = reinterpret_cast<MapEntry*>(taken);
    const uint64_t n = std::min(map->size_, kMaxSmallSlots);
    RelocateEntries(entries, SmallEntries(map), n);
    map->size_ = 0;
    for (uint64_t i = n; i > 0; --i) entries[i - 1].~MapEntry();
  }

  // For destructors: by the form the map has now, whatever it was allocated as. The fields say
  // "empty" before the first entry dies.
  static void Destroy(MapBaseObj* map) {
    const uint64_t n = map->size_;
    if (IsSmall(map)) {
      map->size_ = 0;
      for (uint64_t i = 0; i < n; ++i) SmallEntries(map)[i].~MapEntry();
    } else if (n != 0) {
      const DenseTable table = DenseTable::Load(map);
      DenseTable().StoreEntries(map);
      table.DestroyEntries();
    }
    if (map->data_deleter_ != nullptr && map->data_ != nullptr) map->data_deleter_(map->data_);
  }

 private:
  // Room for an entry that was taken out of a map as bytes.
  class RemovedEntry {
   public:
    RemovedEntry() = default;
    RemovedEntry(const RemovedEntry&) = delete;
    RemovedEntry& operator=(const RemovedEntry&) = delete;
    ~RemovedEntry() {
      if (armed_) get()->~MapEntry();
    }
    MapEntry* get() { return reinterpret_cast<MapEntry*>(bytes_); }
    void Arm() { armed_ = true; }

   private:
    alignas(MapEntry) unsigned char bytes_[sizeof(MapEntry)];
    bool armed_ = false;
  };

  TVM_FFI_INLINE static void NoteInsertion(MapBaseObj* map) {
    (void)map;
#if TVM_FFI_DEBUG_WITH_ABI_CHANGE
    ++map->state_marker;
#endif
  }

  TVM_FFI_INLINE static void AppendSmall(MapBaseObj* map, const Any& key, Any&& value) {
    new (SmallEntries(map) + map->size_) MapEntry(key, std::move(value));
    ++map->size_;
  }

  TVM_FFI_INLINE static void FillSlot(DenseTable* table, uint64_t slot, const Any& key,
                                      Any&& value) {
    new (&table->Item(slot)->data) MapEntry(key, std::move(value));
    table->LinkLast(slot);
    ++table->size;
  }

  // ---- Searches that ask hooks.

  // The entries that could have a key: all of a small map, one chain of a dense one.
  static uint64_t FirstCandidate(const MapBaseObj* map, uint64_t hash) {
    if (map->size_ == 0) return kNoSlot;
    if (IsSmall(map)) return 0;
    const DenseTable table = DenseTable::Load(map);
    const uint64_t home = table.Home(hash);
    return table.IsNotHead(home) ? kNoSlot : home;
  }
  static uint64_t NextCandidate(const MapBaseObj* map, uint64_t index) {
    if (IsSmall(map)) return index + 1 < map->size_ ? index + 1 : kNoSlot;
    const DenseTable table = DenseTable::Load(map);
    const uint8_t step = table.Step(index);
    return step == 0 ? kNoSlot : table.Forward(index, step);
  }

  // The keys of a walk through some entries, held: none of them can die and leave its address to
  // another key, so that a later look tells whether the same keys are in the same order.
  class KeysSeen {
   public:
    const Any& Add(const MapBaseObj* map, uint64_t index) {
      keys_.push_back(Entry(map, index)->first);
      return keys_.back();
    }
    // Whether the walk can go on behind the key added last, which was at `index`. Not for ever,
    // even if user code moves the entries about as we go.
    bool LastIsAt(const MapBaseObj* map, uint64_t index) const {
      return keys_.size() <= map->size_ && IsOccupied(map, index) &&
             Entry(map, index)->first.same_as(keys_.back());
    }
    // Whether a walk gives these keys now. If so, the map holds them all, and letting go of them
    // runs no user code.
    template <typename Next>
    bool AreStill(const MapBaseObj* map, uint64_t first, const Next& next) const {
      size_t n = 0;
      for (uint64_t i = first; IsOccupied(map, i); i = next(map, i), ++n) {
        if (n == keys_.size() || !Entry(map, i)->first.same_as(keys_[n])) return false;
      }
      return n == keys_.size();
    }
    // Lets go of all keys but the last, which runs user code.
    void KeepLast() {
      std::swap(keys_.front(), keys_.back());
      keys_.erase(keys_.begin() + 1, keys_.end());
    }

   private:
    std::vector<Any> keys_;
  };

  // FindIndex with hooks. `hash` is set if and when it is needed.
  TVM_FFI_NO_INLINE static uint64_t FindAsking(const MapBaseObj* map, const Any& borrowed_key,
                                               std::optional<uint64_t>* hash,
                                               const char* operation) {
    const Any key = borrowed_key;  // it may lie in the map
    uint64_t index = kAskHooks;
    for (int i = 0; index == kAskHooks; ++i) {
      if (i == kMaxSearches) ThrowChangedMeanwhile(map, operation);
      if (!IsSmall(map) && !hash->has_value()) *hash = AnyHash()(key);
      index = TryFindAsking(map, key, hash->value_or(0));
    }
    // The caller's key is gone, and letting go of ours runs user code: no index would hold.
    const Object* object = key.as<Object>();
    if (object != nullptr && object->use_count() == 1) ThrowChangedMeanwhile(map, operation);
    return index;
  }

  // One search: the index, EndIndex, or kAskHooks if the map changed.
  static uint64_t TryFindAsking(const MapBaseObj* map, const Any& key, uint64_t hash) {
    const bool small = IsSmall(map);
    KeysSeen seen;
    for (uint64_t i = FirstCandidate(map, hash); i != kNoSlot; i = NextCandidate(map, i)) {
      const Any& stored = seen.Add(map, i);
      const bool equal = small ? AnyEqual()(stored, key) : AnyEqual()(key, stored);
      if (equal) seen.KeepLast();
      if (IsSmall(map) != small || !seen.LastIsAt(map, i)) return kAskHooks;
      if (equal) return i;
    }
    return seen.AreStill(map, FirstCandidate(map, hash), NextCandidate) ? EndIndex(map) : kAskHooks;
  }

  // The hashes of all keys in their order. False if the map changed.
  static bool TryHashAsking(const MapBaseObj* map, std::vector<uint64_t>* hashes) {
    const bool small = IsSmall(map);
    const auto next = [](const MapBaseObj* m, uint64_t i) { return NextIndex(m, i); };
    KeysSeen seen;
    hashes->clear();
    for (uint64_t i = FirstIndex(map); IsOccupied(map, i); i = NextIndex(map, i)) {
      hashes->push_back(AnyHash()(seen.Add(map, i)));
      if (IsSmall(map) != small || !seen.LastIsAt(map, i)) return false;
    }
    return seen.AreStill(map, FirstIndex(map), next);
  }

  // ---- Setting. `ref` is null for a Dict. A key that is there keeps its place in the order.

  static void Set(MapBaseObj* map, ObjectPtr<Object>* ref, const Any& key, Any&& value) {
    NoteInsertion(map);
    if (!IsSmall(map)) return SetDense(map, ref, key, std::move(value));
    const uint64_t i = FindSmall(map, key);
    if (TVM_FFI_PREDICT_FALSE(i == kAskHooks)) return SetAsking(map, ref, key, std::move(value));
    if (i != map->size_) {
      SmallEntries(map)[i].second.swap(value);  // the old value leaves with the caller's
      return;
    }
    if (TVM_FFI_PREDICT_FALSE(map->size_ == NumSlots(map))) {
      return SetGrowing(map, ref, key, std::move(value));
    }
    AppendSmall(map, key, std::move(value));
  }

  static void SetDense(MapBaseObj* map, ObjectPtr<Object>* ref, const Any& key, Any&& value) {
    const TVMFFIAny* hook = nullptr;
    const uint64_t hash = HashUnlessHook(key, &hook);
    if (TVM_FFI_PREDICT_FALSE(hook != nullptr)) return SetAsking(map, ref, key, std::move(value));
    DenseTable table = DenseTable::Load(map);
    uint64_t slot = table.Find(key, hash);
    if (TVM_FFI_PREDICT_FALSE(slot == kAskHooks)) return SetAsking(map, ref, key, std::move(value));
    if (slot != kNoSlot) {
      table.Item(slot)->data.second.swap(value);
      return;
    }
    if (TVM_FFI_PREDICT_FALSE(!TryPlace(map, hash, key, &value))) {
      SetGrowing(map, ref, key, std::move(value));
    }
  }

  // Puts a new key into a table that has room for it.
  TVM_FFI_INLINE static bool TryPlace(MapBaseObj* map, uint64_t hash, const Any& key, Any* value) {
    DenseTable table = DenseTable::Load(map);
    const uint64_t slot = table.slots == 0 ? kNoSlot : table.Place(table.Home(hash));
    if (slot == kNoSlot) return false;
    FillSlot(&table, slot, key, std::move(*value));
    table.StoreEntries(map);
    return true;
  }

  // Sets a key that is not in the map and not in its way: only keys of the map may have hooks.
  TVM_FFI_NO_INLINE static void SetGrowing(MapBaseObj* map, ObjectPtr<Object>* ref, const Any& key,
                                           Any&& value) {
    if (IsSmall(map) && NumSlots(map) < kMaxSmallSlots) {
      return GrowSmall(map, ref, key, std::move(value));
    }
    const TVMFFIAny* hook = nullptr;
    const uint64_t hash = HashUnlessHook(key, &hook);
    if (hook != nullptr || !GrowDense(map, ref, nullptr, hash, key, &value)) {
      SetAsking(map, ref, key, std::move(value));
    }
  }

  // Set with hooks. Each round asks all it needs to know; the first in which the map stays as it is
  // makes the change.
  TVM_FFI_NO_INLINE static void SetAsking(MapBaseObj* map, ObjectPtr<Object>* ref,
                                          const Any& borrowed_key, Any&& value) {
    const Any key = borrowed_key;  // it may lie in the map
    const ObjectPtr<Object> hold = details::ObjectUnsafe::ObjectPtrFromUnowned<Object>(map);
    // A Map can be changed while its owner alone has it. User code may have got hold of it.
    const auto require_owned = [&] {
      if (ref != nullptr && (ref->get() != map || hold.use_count() != 2)) {
        ThrowChangedMeanwhile(map, "set");
      }
    };
    std::optional<uint64_t> hash;
    std::vector<uint64_t> hashes;
    for (int i = 0; i < kMaxSearches; ++i) {
      if (!hash.has_value() && map->size_ >= kMaxSmallSlots) hash = AnyHash()(key);
      const uint64_t index = FindAsking(map, key, &hash, "set");
      require_owned();
      if (index != EndIndex(map)) {
        Entry(map, index)->second.swap(value);
        return;
      }
      if (IsSmall(map) && map->size_ < NumSlots(map)) {
        return AppendSmall(map, key, std::move(value));
      }
      if (IsSmall(map) && NumSlots(map) < kMaxSmallSlots) {
        return GrowSmall(map, ref, key, std::move(value));
      }
      if (!hash.has_value()) continue;
      if (!IsSmall(map) && TryPlace(map, *hash, key, &value)) return;
      if (!TryHashAsking(map, &hashes)) continue;
      require_owned();
      GrowDense(map, ref, hashes.data(), *hash, key, &value);
      return;
    }
    ThrowChangedMeanwhile(map, "set");
  }

  // An object without a table; valid only to be given one or to be destroyed.
  static ObjectPtr<Object> MakeDenseShell(int32_t type_index) {
    ObjectPtr<DenseMapBaseObj> map = make_object<DenseMapBaseObj>();
    details::ObjectUnsafe::GetHeader(map.get())->type_index = type_index;
    return map;
  }

  static void SetTable(MapBaseObj* map, const DenseTable& table, MapBuffer* buffer) {
    table.StoreAll(map);
    map->data_deleter_ = FreeMapBuffer;
    buffer->release();
  }

  // Gives up the storage of a map whose entries were moved out of it.
  static void Abandon(MapBaseObj* map) {
    if (map->data_deleter_ != nullptr) map->data_deleter_(map->data_);
    map->data_ = nullptr;
    map->data_deleter_ = nullptr;
    map->size_ = 0;
    map->slots_ = 0;
  }

  // Gives `table`, which holds the entries of `map`, to `map` or to the object that replaces it.
  // The replaced one dies last: user code may look at the new one then.
  static void Commit(MapBaseObj* map, ObjectPtr<Object>* ref, ObjectPtr<Object> shell,
                     const DenseTable& table, MapBuffer* buffer) {
    Abandon(map);
    if (ref == nullptr) return SetTable(map, table, buffer);
    MapBaseObj* target = static_cast<MapBaseObj*>(shell.get());
    NoteInsertion(target);
    SetTable(target, table, buffer);
    ref->swap(shell);
  }

  // Moves the entries and a new one into a larger small form.
  TVM_FFI_NO_INLINE static void GrowSmall(MapBaseObj* map, ObjectPtr<Object>* ref, const Any& key,
                                          Any&& value) {
    const uint64_t slots =
        std::min(std::max(NumSlots(map) * 2, kInitialSmallSlots), kMaxSmallSlots);
    const uint64_t size = map->size_;
    ObjectPtr<Object> fresh = ref != nullptr ? MakeSmall(map->type_index(), slots) : nullptr;
    MapBaseObj* target = ref != nullptr ? static_cast<MapBaseObj*>(fresh.get()) : map;
    void* data = ref != nullptr ? target->data_ : ::operator new(slots * sizeof(MapEntry));
    MapEntry* entries = static_cast<MapEntry*>(data);
    RelocateEntries(entries, SmallEntries(map), size);
    new (entries + size) MapEntry(key, std::move(value));  // `key` may lie in the old storage
    Abandon(map);
    target->data_ = data;
    target->size_ = size + 1;
    target->slots_ = slots | kSmallMapTag;
    if (ref != nullptr) {
      ref->swap(fresh);  // the old object dies last
    } else {
      map->data_deleter_ = FreeMapBuffer;
    }
  }

  // Moves the entries and a new one into a larger table. The old one is given up only when all have
  // found room. `hashes` are those of the keys in order; null stands for keys without hooks, and if
  // there is a hook after all, nothing is changed and the result is false.
  TVM_FFI_NO_INLINE static bool GrowDense(MapBaseObj* map, ObjectPtr<Object>* ref,
                                          const uint64_t* hashes, uint64_t hash, const Any& key,
                                          Any* value) {
    ObjectPtr<Object> shell = ref != nullptr ? MakeDenseShell(map->type_index()) : nullptr;
    uint64_t slots =
        IsSmall(map) ? DenseTable::SlotsFor(map->size_) : std::max(map->slots_ * 2, kMinDenseSlots);
    for (;; slots *= 2) {
      MapBuffer buffer;
      DenseTable table = DenseTable::MakeEmpty(slots, &buffer);
      uint64_t i = FirstIndex(map);
      const uint64_t end = EndIndex(map);
      for (const uint64_t* next_hash = hashes; i != end; i = NextIndex(map, i)) {
        const MapEntry* entry = Entry(map, i);
        const TVMFFIAny* hook = nullptr;
        const uint64_t entry_hash =
            next_hash != nullptr ? *next_hash++ : HashUnlessHook(entry->first, &hook);
        if (hook != nullptr) return false;
        if (!table.AppendRaw(entry, entry_hash)) break;
      }
      if (i != end) continue;
      const uint64_t slot = table.Place(table.Home(hash));
      if (slot == kNoSlot) continue;
      FillSlot(&table, slot, key, std::move(*value));
      Commit(map, ref, std::move(shell), table, &buffer);
      return true;
    }
  }

  // Slot for slot: rebuilding would hash every key.
  static ObjectPtr<Object> CopyDense(const MapBaseObj* from) {
    const DenseTable source = DenseTable::Load(from);
    if (source.slots == 0) return MakeSmall(from->type_index(), 0);
    ObjectPtr<Object> copy = MakeDenseShell(from->type_index());
    MapBuffer buffer;
    DenseTable table = DenseTable::MakeEmpty(source.slots, &buffer);
    for (uint64_t b = 0; b < DenseTable::NumBlocks(source.slots); ++b) {
      const uint8_t* meta = source.blocks[b].meta;
      for (uint64_t i = 0; i < MapBlock::kSlots; ++i) {
        TVM_FFI_ICHECK(meta[i] != DenseTable::kClaimed) << "copied while an entry is being moved";
      }
      std::memcpy(table.blocks[b].meta, meta, MapBlock::kSlots);
    }
    for (uint64_t s = source.head; s != kNoSlot; s = source.Item(s)->next) {
      MapItem* item = table.Item(s);
      new (&item->data) MapEntry(source.Item(s)->data);
      item->prev = source.Item(s)->prev;
      item->next = source.Item(s)->next;
    }
    table.size = source.size;
    table.head = source.head;
    table.tail = source.tail;
    SetTable(static_cast<MapBaseObj*>(copy.get()), table, &buffer);
    return copy;
  }
};

// A lookup key that stays valid while the map it is set in may be replaced: a reference to the very
// map is the one kind of key that could die with it.
template <typename K>
using KeyForSet = std::conditional_t<std::is_base_of_v<ObjectRef, K>, Any, BorrowedKey<K>>;

TVM_FFI_INLINE const Any& GetKey(const Any& key) { return key; }
template <typename K>
TVM_FFI_INLINE const Any& GetKey(const BorrowedKey<K>& key) {
  return key.get();
}

// The iterator of Map<K, V> and Dict<K, V>: entries by value, converted on the fly.
template <typename K, typename V>
class MapIterator {
 public:
  using iterator_category = std::bidirectional_iterator_tag;
  using difference_type = int64_t;
  using value_type = const std::pair<K, V>;
  using pointer = value_type*;
  using reference = value_type;

  MapIterator() = default;
  explicit MapIterator(const MapBaseObj::iterator& iter) : iter_(iter) {}

  bool operator==(const MapIterator& other) const { return iter_ == other.iter_; }
  bool operator!=(const MapIterator& other) const { return iter_ != other.iter_; }
  pointer operator->() const = delete;
  reference operator*() const {
    const MapEntry& entry = *iter_;
    return std::pair<K, V>(ElementReader<K>::convert(entry.first),
                           ElementReader<V>::convert(entry.second));
  }
  MapIterator& operator++() {
    ++iter_;
    return *this;
  }
  MapIterator& operator--() {
    --iter_;
    return *this;
  }
  MapIterator operator++(int) { return MapIterator(iter_++); }
  MapIterator operator--(int) { return MapIterator(iter_--); }

 private:
  MapBaseObj::iterator iter_;
};

}  // namespace tether

inline SmallMapBaseObj::~SmallMapBaseObj() { tether::MapOps::Destroy(this); }
inline DenseMapBaseObj::~DenseMapBaseObj() { tether::MapOps::Destroy(this); }

inline MapBaseObj::iterator::pointer MapBaseObj::iterator::operator->() const {
  CheckState();
  return tether::MapOps::Entry(self, index);
}

inline MapBaseObj::iterator& MapBaseObj::iterator::operator++() {
  CheckState();
  index = tether::MapOps::NextIndex(self, index);
  return *this;
}

inline MapBaseObj::iterator& MapBaseObj::iterator::operator--() {
  CheckState();
  if (tether::MapOps::IsSmall(self)) {
    index = index == 0 ? self->size_ : index - 1;
  } else {
    index = index == tether::kNoSlot ? tether::DenseTable::Load(self).tail
                                     : tether::MapOps::DenseItem(self, index)->prev;
  }
  return *this;
}

inline MapBaseObj::iterator MapBaseObj::begin() const {
  return iterator(tether::MapOps::FirstIndex(this), this);
}
inline MapBaseObj::iterator MapBaseObj::end() const {
  return iterator(tether::MapOps::EndIndex(this), this);
}
inline MapBaseObj::iterator MapBaseObj::find(const key_type& key) const {
  return iterator(tether::MapOps::FindIndex(this, key), this);
}
inline size_t MapBaseObj::count(const key_type& key) const {
  return tether::MapOps::FindValue(this, key) != nullptr ? 1 : 0;
}
inline const MapBaseObj::mapped_type& MapBaseObj::at(const key_type& key) const {
  const Any* value = tether::MapOps::FindValue(this, key);
  if (TVM_FFI_PREDICT_FALSE(value == nullptr)) tether::ThrowKeyNotInMap();
  return *value;
}
inline MapBaseObj::mapped_type& MapBaseObj::at(const key_type& key) {
  Any* value = tether::MapOps::FindValue(this, key);
  if (TVM_FFI_PREDICT_FALSE(value == nullptr)) tether::ThrowKeyNotInMap();
  return *value;
}
inline void MapBaseObj::erase(const iterator& position) {
  // A small map goes by the index alone; the default iterator means entry 0 there.
  if (position.self == nullptr && !tether::MapOps::IsSmall(this)) return;
  tether::MapOps::EraseIndex(this, position.index);
}
inline void MapBaseObj::erase(const key_type& key) { tether::MapOps::EraseKey(this, key); }
inline void MapBaseObj::clear() { tether::MapOps::Clear(this); }

// Conversion rules common to Map<K, V> and Dict<K, V>. Derived names the two kinds that are
// accepted: the primary one is shared if all entries fit already, anything else is converted into a
// new map.
template <typename Derived, typename MapRef, typename K, typename V>
struct MapTypeTraitsBase : public ObjectRefTypeTraitsBase<MapRef> {
  using Base = ObjectRefTypeTraitsBase<MapRef>;

  static bool CheckAnyStrict(const TVMFFIAny* src) {
    if (src->type_index != Derived::kPrimaryTypeIndex) return false;
    if constexpr (!std::is_same_v<K, Any> || !std::is_same_v<V, Any>) {
      for (const auto& entry : *GetMap(src)) {
        if (!details::AnyUnsafe::CheckAnyStrict<K>(entry.first)) return false;
        if (!details::AnyUnsafe::CheckAnyStrict<V>(entry.second)) return false;
      }
    }
    return true;
  }

  static std::optional<MapRef> TryCastFromAnyView(const TVMFFIAny* src) {
    if (!IsMap(src)) return std::nullopt;
    if (CheckAnyStrict(src)) return Base::CopyFromAnyViewAfterCheck(src);
    MapRef result;
    // Conversions and Set are user code: not over a Dict that it may change, nor one that may die.
    const ObjectPtr<Object> source = Unchanging(GetMap(src));
    for (const auto& entry : *static_cast<const MapBaseObj*>(source.get())) {
      std::optional<K> key = entry.first.template try_cast<K>();
      if (!key.has_value()) return std::nullopt;
      std::optional<V> value = entry.second.template try_cast<V>();
      if (!value.has_value()) return std::nullopt;
      result.Set(*key, *value);
    }
    return result;
  }

  static std::string GetMismatchTypeInfo(const TVMFFIAny* src) {
    if (!IsMap(src)) return TypeTraitsBase::GetMismatchTypeInfo(src);
    const std::string name = Derived::kTypeName;
    if constexpr (!std::is_same_v<K, Any> || !std::is_same_v<V, Any>) {
      const ObjectPtr<Object> source = Unchanging(GetMap(src));
      for (const auto& entry : *static_cast<const MapBaseObj*>(source.get())) {
        if (Mismatches<K>(entry.first)) {
          return name + "[some key is " + MismatchInfo<K>(entry.first) + ", V]";
        }
        if (Mismatches<V>(entry.second)) {
          return name + "[K, some value is " + MismatchInfo<V>(entry.second) + "]";
        }
      }
    }
    TVM_FFI_THROW(InternalError) << "Cannot reach here";
    TVM_FFI_UNREACHABLE();
  }

  static std::string TypeStr() { return details::ContainerTypeStr<K, V>(Derived::kTypeName); }
  static std::string TypeSchema() {
    return tether::Schema(Derived::kStaticTypeKey,
                          {details::TypeSchema<K>::v(), details::TypeSchema<V>::v()});
  }

 private:
  static bool IsMap(const TVMFFIAny* src) {
    return src->type_index == Derived::kPrimaryTypeIndex ||
           src->type_index == Derived::kOtherTypeIndex;
  }
  static const MapBaseObj* GetMap(const TVMFFIAny* src) {
    return details::ObjectUnsafe::RawObjectPtrFromUnowned<MapBaseObj>(src->v_obj);
  }
  // The map itself, held, or a copy of a Dict: user code can change neither.
  static ObjectPtr<Object> Unchanging(const MapBaseObj* map) {
    if (map->type_index() == TypeIndex::kTVMFFIDict) return tether::MapOps::Copy(map);
    return details::ObjectUnsafe::ObjectPtrFromUnowned<Object>(const_cast<MapBaseObj*>(map));
  }
  template <typename T>
  static bool Mismatches(const Any& item) {
    if constexpr (std::is_same_v<T, Any>) {
      return false;
    } else {
      return !item.template try_cast<T>().has_value();
    }
  }
  template <typename T>
  static std::string MismatchInfo(const Any& item) {
    if constexpr (std::is_same_v<T, Any>) {
      return std::string();
    } else {
      return details::AnyUnsafe::GetMismatchTypeInfo<T>(item);
    }
  }
};

}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_CONTAINER_MAP_BASE_H_
