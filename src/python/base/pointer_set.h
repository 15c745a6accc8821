// SPDX-License-Identifier: Apache-2.0
// A set of pointers for the collector, which visits every wrapper: with a node per entry it would
// spend most of its time on allocations.
//
//   PointerSet<Wrapper> set;
//   bool done = set.Insert(w);                    // false: out of memory; nothing throws here
//   set.Contains(w); set.Erase(w);
//   set.ForEach([](Wrapper* w) { ... });          // must not change the set
#ifndef TETHER_PYTHON_BASE_POINTER_SET_H_
#define TETHER_PYTHON_BASE_POINTER_SET_H_

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

namespace tether_py {

// Open addressing with linear probing, at most half full, so a search ends soon. What lies side by
// side in memory, as wrappers do, lies side by side here: the collector goes through both in order.
template <typename T>
class PointerSet {
 public:
  size_t size() const { return size_; }

  bool Contains(T* p) const { return size_ != 0 && places_[Find(p)] == p; }

  bool Insert(T* p) {
    if (!Reserve(size_ + 1)) return false;
    T*& place = places_[Find(p)];
    if (place == nullptr) ++size_;
    place = p;
    return true;
  }

  void Erase(T* p) {
    if (size_ == 0) return;
    size_t hole = Find(p);
    if (places_[hole] != p) return;
    --size_;
    // What follows moves up, unless its search begins behind the hole.
    size_t mask = places_.size() - 1;
    for (size_t i = (hole + 1) & mask; places_[i] != nullptr; i = (i + 1) & mask) {
      if (((i - Home(places_[i])) & mask) < ((i - hole) & mask)) continue;
      places_[hole] = places_[i];
      hole = i;
    }
    places_[hole] = nullptr;
  }

  // Makes room for n entries.
  bool Reserve(size_t n) {
    if (n * 2 <= places_.size()) return true;
    size_t needed = 64;
    while (needed < n * 2) needed *= 2;
    return Rehash(needed);
  }

  void Clear() {
    places_.clear();
    size_ = 0;
  }

  void Swap(PointerSet* other) {
    places_.swap(other->places_);
    std::swap(size_, other->size_);
  }

  template <typename F>
  void ForEach(F&& f) const {
    for (T* p : places_) {
      if (p != nullptr) f(p);
    }
  }

 private:
  size_t Home(T* p) const {
    auto address = reinterpret_cast<uintptr_t>(p);
    uint64_t page = (address >> 12) * uint64_t{0x9E3779B97F4A7C15} >> 32;
    return static_cast<size_t>(page + (address >> 5 & 127)) & (places_.size() - 1);
  }
  // The place of p, or the free one where it would be.
  size_t Find(T* p) const {
    size_t i = Home(p);
    while (places_[i] != nullptr && places_[i] != p) i = (i + 1) & (places_.size() - 1);
    return i;
  }
  bool Rehash(size_t n) {
    std::vector<T*> old;
    try {
      old.resize(n, nullptr);
    } catch (const std::bad_alloc&) {
      return false;
    }
    old.swap(places_);
    for (T* p : old) {
      if (p != nullptr) places_[Find(p)] = p;
    }
    return true;
  }

  std::vector<T*> places_;
  size_t size_ = 0;
};

}  // namespace tether_py
#endif  // TETHER_PYTHON_BASE_POINTER_SET_H_
