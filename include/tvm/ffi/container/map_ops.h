// SPDX-License-Identifier: Apache-2.0
// The operations of Map and Dict on either form (map_layout.h).
//
//   ObjectPtr<Object> map = MapOps::MakeSmall(TypeIndex::kTVMFFIMap, 0);
//   MapOps::SetReplacing(&map, key, value);
//   Any* found = MapOps::FindValue(static_cast<MapBaseObj*>(map.get()), key);
//
// Hash and equality hooks of keys and destructors of entries are user code, and user code may do
// anything to the map, also to the one being searched. Hence:
//   - user code runs only while the fields are consistent; entries leave the map before they are
//     destroyed
//   - nothing that was read before user code is used after it without being checked again. A search
//     holds the keys it shows to hooks and at its end finds the same keys in the same places, or
//     begins again; a map that changes in kMaxSearches searches is a RuntimeError
//   - a change first asks all the hooks it needs, then changes the map without asking any
// Keys without hooks (numbers, strings, most objects) run no user code and pay for none of this:
// the plain searches give up with kAskHooks at the first hook, and the functions named ...Asking
// start again and check everything.
//
// KeysSeen is cold, for a short compile. The functions that ask or make a map larger are not: g++
// would keep less in registers around the calls of them.
#ifndef TVM_FFI_CONTAINER_MAP_OPS_H_
#define TVM_FFI_CONTAINER_MAP_OPS_H_

#include <tvm/ffi/any.h>
#include <tvm/ffi/container/container_detail.h>
#include <tvm/ffi/container/map_dense.h>
#include <tvm/ffi/container/map_layout.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/memory.h>
#include <tvm/ffi/object.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <new>
#include <optional>
#include <utility>
#include <vector>

namespace tvm {
namespace ffi {

namespace tether {

inline constexpr int kMaxSearches = 100;

[[noreturn]] TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE inline void ThrowChangedMeanwhile(
    const Object* map, const char* operation) {
  const char* kind = map->type_index() == TypeIndex::kTVMFFIDict ? "Dict" : "Map";
  TVM_FFI_THROW(RuntimeError) << kind << " changed during `" << operation
                              << "`: the hooks of its keys change it whenever it is searched";
}

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

  // The index of `key`, or EndIndex. Valid until user code runs.
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

  // ---- Creating. Every map is made with room for two entries, so that a Dict can be switched to
  // the dense form in place.

  static ObjectPtr<Object> MakeSmall(int32_t type_index, uint64_t slots) {
    slots = std::max(slots, kInitialSmallSlots);
    auto map = make_inplace_array_object<SmallMapBaseObj, MapEntry>(slots);
    detail::ObjectUnsafe::GetHeader(map.get())->type_index = type_index;
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

  // The value of a key of a shared Dict, which is added with `value` if it is not there.
  static Any SetDefault(MapBaseObj* map, const Any& key, const Any& value) {
    const uint64_t index = FindPlain(map, key);
    if (index != kAskHooks && index != EndIndex(map)) return Entry(map, index)->second;
    NoteInsertion(map);
    Any stored = value;
    return PutAsking(map, nullptr, key, &stored, Present::kCopy) ? value : stored;
  }

  static void EraseIndex(MapBaseObj* map, uint64_t index) {
    // Destroyed at the end of the scope, when the map is consistent again.
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

  // The entries are destroyed with the old storage, when the map is already empty: what their
  // destructors store in it stays.
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
  // "empty" before the first entry is destroyed.
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

  // The keys of a walk through some entries, held: no other key can reuse the address of one, so
  // that a later walk can tell whether the same keys are in the same order.
  class KeysSeen {
   public:
    TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE const Any& Add(const MapBaseObj* map, uint64_t index) {
      keys_.push_back(Entry(map, index)->first);
      return keys_.back();
    }
    // Whether the walk can go on behind the key added last, which was at `index`. It ends even if
    // user code moves the entries during the walk.
    TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE bool LastIsAt(const MapBaseObj* map, uint64_t index) const {
      return keys_.size() <= map->size_ && IsOccupied(map, index) &&
             Entry(map, index)->first.same_as(keys_.back());
    }
    // Whether a walk gives these keys now. If so, the map holds them all, and dropping them
    // runs no user code.
    template <typename Next>
    TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE bool AreStill(const MapBaseObj* map, uint64_t first,
                                                      const Next& next) const {
      size_t n = 0;
      for (uint64_t i = first; IsOccupied(map, i); i = next(map, i), ++n) {
        if (n == keys_.size() || !Entry(map, i)->first.same_as(keys_[n])) return false;
      }
      return n == keys_.size();
    }
    // Drops all keys but the last, which runs user code.
    TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE void KeepLast() {
      std::swap(keys_.front(), keys_.back());
      keys_.erase(keys_.begin() + 1, keys_.end());
    }

   private:
    std::vector<Any> keys_;
  };

  // FindIndex with hooks. `hash` is set when it is needed.
  TVM_FFI_NO_INLINE static uint64_t FindAsking(const MapBaseObj* map, const Any& borrowed_key,
                                               std::optional<uint64_t>* hash,
                                               const char* operation) {
    const Any key = borrowed_key;  // it may be part of the map
    uint64_t index = kAskHooks;
    for (int i = 0; index == kAskHooks; ++i) {
      if (i == kMaxSearches) ThrowChangedMeanwhile(map, operation);
      if (!IsSmall(map) && !hash->has_value()) *hash = AnyHash()(key);
      index = TryFindAsking(map, key, hash->value_or(0));
    }
    // The caller's key is gone, and dropping ours runs user code: no index would stay valid.
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
  TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE static bool TryHashAsking(const MapBaseObj* map,
                                                                std::vector<uint64_t>* hashes) {
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
      SmallEntries(map)[i].second.swap(value);  // the old value is dropped by the caller
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

  // Sets a key that is not in the map and has no hooks itself: only keys of the map may have some.
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

  static void SetAsking(MapBaseObj* map, ObjectPtr<Object>* ref, const Any& key, Any&& value) {
    PutAsking(map, ref, key, &value, Present::kSwap);
  }

  // What happens to the value of a key that is there: swapped with the new one, or copied to it.
  enum class Present { kSwap, kCopy };

  // Set with hooks. Each round asks all it needs to know; the first in which the map stays as it is
  // makes the change. True if the key was not there.
  TVM_FFI_NO_INLINE static bool PutAsking(MapBaseObj* map, ObjectPtr<Object>* ref,
                                          const Any& borrowed_key, Any* value, Present present) {
    const Any key = borrowed_key;  // it may be part of the map
    const ObjectPtr<Object> hold = detail::ObjectUnsafe::ObjectPtrFromUnowned<Object>(map);
    // A Map can be changed only while it has one owner. User code may have taken a reference.
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
        Any& found = Entry(map, index)->second;
        if (present == Present::kCopy) {
          *value = found;
        } else {
          found.swap(*value);
        }
        return false;
      }
      if (IsSmall(map) && map->size_ < NumSlots(map)) {
        AppendSmall(map, key, std::move(*value));
        return true;
      }
      if (IsSmall(map) && NumSlots(map) < kMaxSmallSlots) {
        GrowSmall(map, ref, key, std::move(*value));
        return true;
      }
      if (!hash.has_value()) continue;
      if (!IsSmall(map) && TryPlace(map, *hash, key, value)) return true;
      if (!TryHashAsking(map, &hashes)) continue;
      require_owned();
      GrowDense(map, ref, hashes.data(), *hash, key, value);
      return true;
    }
    ThrowChangedMeanwhile(map, "set");
  }

  // An object without a table; valid only to be given one or to be destroyed.
  static ObjectPtr<Object> MakeDenseShell(int32_t type_index) {
    ObjectPtr<DenseMapBaseObj> map = make_object<DenseMapBaseObj>();
    detail::ObjectUnsafe::GetHeader(map.get())->type_index = type_index;
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
  // The replaced one is released last: that may run user code, which sees the new one.
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
    new (entries + size) MapEntry(key, std::move(value));  // `key` may be in the old storage
    Abandon(map);
    target->data_ = data;
    target->size_ = size + 1;
    target->slots_ = slots | kSmallMapTag;
    if (ref != nullptr) {
      ref->swap(fresh);  // the old object is released last
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

}  // namespace tether

}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_CONTAINER_MAP_OPS_H_
