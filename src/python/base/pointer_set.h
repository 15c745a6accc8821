// SPDX-License-Identifier: Apache-2.0
// Sets of pointers, and maps from pointers, for the collector, which visits every wrapper: with a
// node per entry it would spend most of its time on allocations.
//
//   PointerSet<Wrapper> set;
//   bool done = set.Insert(w);                    // false: out of memory; nothing throws here
//   set.Contains(w); set.Erase(w);
//   set.ForEach([](Wrapper* w) { ... });          // must not change the set
//
//   PointerMap<Wrapper, Facts> map;               // Facts can be copied as bytes
//   Facts* facts = map.FindOrAdd(w);              // NULL: out of memory; new ones are Facts()
//   facts = map.Find(w);                          // NULL: not there
//
// What FindOrAdd and Find return is good until something is added.
#ifndef TETHER_PYTHON_BASE_POINTER_SET_H_
#define TETHER_PYTHON_BASE_POINTER_SET_H_

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

namespace tether_py {

// What both are made of: entries with a member `key`, a T*. Open addressing with linear probing, at
// most half full, so a search ends soon. What lies side by side in memory, as wrappers do, lies
// side by side here: the collector goes through both in order.
template <typename T, typename Entry>
class PointerTable {
 public:
  size_t size() const { return size_; }

  bool Contains(T* p) const { return size_ != 0 && places_[PlaceOf(p)].key == p; }

  void Erase(T* p) {
    if (size_ == 0) return;
    size_t hole = PlaceOf(p);
    if (places_[hole].key != p) return;
    --size_;
    // What follows moves up, unless its search begins behind the hole.
    size_t mask = places_.size() - 1;
    for (size_t i = (hole + 1) & mask; places_[i].key != nullptr; i = (i + 1) & mask) {
      if (((i - Home(places_[i].key)) & mask) < ((i - hole) & mask)) continue;
      places_[hole] = places_[i];
      hole = i;
    }
    places_[hole] = Entry();
  }

  // Makes room for n entries.
  bool Reserve(size_t n) {
    if (n * 2 <= places_.size()) return true;
    size_t needed = 64;
    while (needed < n * 2) needed *= 2;
    return Rehash(needed);
  }

  // Keeps no memory.
  void Clear() {
    std::vector<Entry>().swap(places_);
    size_ = 0;
  }

  void Swap(PointerTable* other) {
    places_.swap(other->places_);
    std::swap(size_, other->size_);
  }

 protected:
  Entry* FindEntry(T* p) {
    if (size_ == 0) return nullptr;
    Entry& entry = places_[PlaceOf(p)];
    return entry.key == p ? &entry : nullptr;
  }
  Entry* FindOrAddEntry(T* p) {
    if (!Reserve(size_ + 1)) return nullptr;
    Entry& entry = places_[PlaceOf(p)];
    if (entry.key == nullptr) ++size_;
    entry.key = p;
    return &entry;
  }
  const std::vector<Entry>& places() const { return places_; }

 private:
  size_t Home(T* p) const {
    auto address = reinterpret_cast<uintptr_t>(p);
    uint64_t page = (address >> 12) * uint64_t{0x9E3779B97F4A7C15} >> 32;
    return static_cast<size_t>(page + (address >> 5 & 127)) & (places_.size() - 1);
  }
  // Where p is, or the free place where it would be.
  size_t PlaceOf(T* p) const {
    size_t i = Home(p);
    while (places_[i].key != nullptr && places_[i].key != p) i = (i + 1) & (places_.size() - 1);
    return i;
  }
  bool Rehash(size_t n) {
    std::vector<Entry> old;
    try {
      old.resize(n);
    } catch (const std::bad_alloc&) {
      return false;
    }
    old.swap(places_);
    for (const Entry& entry : old) {
      if (entry.key != nullptr) places_[PlaceOf(entry.key)] = entry;
    }
    return true;
  }

  std::vector<Entry> places_;
  size_t size_ = 0;
};

template <typename T>
struct PointerSetEntry {
  T* key = nullptr;
};

template <typename T>
class PointerSet : public PointerTable<T, PointerSetEntry<T>> {
 public:
  bool Insert(T* p) { return this->FindOrAddEntry(p) != nullptr; }

  template <typename F>
  void ForEach(F&& f) const {
    for (const auto& entry : this->places()) {
      if (entry.key != nullptr) f(entry.key);
    }
  }
};

template <typename T, typename V>
struct PointerMapEntry {
  T* key = nullptr;
  V value = V();
};

template <typename T, typename V>
class PointerMap : public PointerTable<T, PointerMapEntry<T, V>> {
 public:
  V* Find(T* p) { return ValueOf(this->FindEntry(p)); }
  V* FindOrAdd(T* p) { return ValueOf(this->FindOrAddEntry(p)); }

 private:
  static V* ValueOf(PointerMapEntry<T, V>* entry) {
    return entry != nullptr ? &entry->value : nullptr;
  }
};

}  // namespace tether_py
#endif  // TETHER_PYTHON_BASE_POINTER_SET_H_
