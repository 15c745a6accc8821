// SPDX-License-Identifier: Apache-2.0
// How many wrappers there are, by class.
#ifndef TETHER_PYTHON_WRAP_CLASS_COUNTS_H_
#define TETHER_PYTHON_WRAP_CLASS_COUNTS_H_

#include <tvm/ffi/base_detail.h>

#include <iterator>
#include <mutex>
#include <new>
#include <unordered_map>

#include "python/base/locks.h"

namespace tether_py {

// Counts by address, whichever class is there: a class cannot die while it has instances, so the
// count of an address is zero when another class reuses it. No class is kept alive, and a
// cell that holds zero is free for the next class that wants its place; classes whose place is
// taken are counted in a map. In a free-threaded build there are several cells per place, so that
// threads do not contend for one cache line; the count of an address is the sum of its cells.
class ClassCounts {
 public:
  void Add(PyTypeObject* cls, int64_t n) {
    if (TVM_FFI_PREDICT_FALSE(!CellOf(cls, Row())->TryAdd(cls, n))) AddSlow(cls, n);
  }

  int64_t CountOf(PyTypeObject* cls) {
    std::lock_guard<ShortLock> guard(lock_);
    auto it = others_.find(cls);
    int64_t sum = it != others_.end() ? it->second : 0;
    for (size_t row = 0; row < kRows; ++row) sum += CellOf(cls, row)->CountOf(cls);
    return sum;
  }

  int64_t Total() {
    std::lock_guard<ShortLock> guard(lock_);
    int64_t sum = unattributed_;
    for (const auto& [cls, n] : others_) sum += n;
    for (auto& row : cells_) {
      for (Cell& cell : row) sum += cell.Count();
    }
    return sum;
  }

 private:
  static constexpr size_t kRows = kFreeThreaded ? 8 : 1;
  static constexpr size_t kColumns = 256;
  static constexpr int kColumnShift = 5;

#ifdef Py_GIL_DISABLED
  // One word, so that a cell changes hands and counts in one step: above the count the bits of the
  // address that its column does not tell.
  class Cell {
   public:
    bool TryAdd(PyTypeObject* cls, int64_t n) {
      uint64_t word = word_.load(std::memory_order_relaxed);
      uint64_t next;
      do {
        int64_t count = CountIn(word) + n;
        bool is_free = (word & kCountMask) == 0;
        if ((!is_free && KeyIn(word) != KeyOf(cls)) || !Fits(cls, count)) return false;
        next = KeyOf(cls) << kCountBits | (static_cast<uint64_t>(count) & kCountMask);
      } while (!word_.compare_exchange_weak(word, next, std::memory_order_relaxed));
      return true;
    }
    int64_t CountOf(PyTypeObject* cls) const {
      uint64_t word = word_.load(std::memory_order_relaxed);
      return KeyIn(word) == KeyOf(cls) ? CountIn(word) : 0;
    }
    int64_t Count() const { return CountIn(word_.load(std::memory_order_relaxed)); }
    // Frees the cell: gives its count to f(cls, n).
    template <typename F>
    void Empty(size_t column, F&& f) {
      uint64_t word = word_.exchange(0, std::memory_order_relaxed);
      uintptr_t address = (KeyIn(word) * kColumns + column) << kColumnShift;
      if (CountIn(word) != 0) f(reinterpret_cast<PyTypeObject*>(address), CountIn(word));
    }

   private:
    static constexpr int kCountBits = 29;
    static constexpr uint64_t kCountMask = (uint64_t{1} << kCountBits) - 1;
    static uint64_t KeyOf(PyTypeObject* cls) {
      return (reinterpret_cast<uintptr_t>(cls) >> kColumnShift) / kColumns;
    }
    static uint64_t KeyIn(uint64_t word) { return word >> kCountBits; }
    static int64_t CountIn(uint64_t word) {
      return static_cast<int64_t>(word << (64 - kCountBits)) >> (64 - kCountBits);
    }
    static bool Fits(PyTypeObject* cls, int64_t count) {
      constexpr int64_t kLimit = int64_t{1} << (kCountBits - 1);
      return count < kLimit && count >= -kLimit && KeyOf(cls) >> (64 - kCountBits) == 0;
    }
    std::atomic<uint64_t> word_{0};
  };
#else
  class Cell {
   public:
    bool TryAdd(PyTypeObject* cls, int64_t n) {
      if (TVM_FFI_PREDICT_FALSE(cls_ != cls)) {
        if (count_ != 0) return false;
        cls_ = cls;
      }
      count_ += n;
      return true;
    }
    int64_t CountOf(PyTypeObject* cls) const { return cls_ == cls ? count_ : 0; }
    int64_t Count() const { return count_; }
    template <typename F>
    void Empty(size_t, F&& f) {
      if (count_ != 0) f(cls_, count_);
      count_ = 0;
    }

   private:
    PyTypeObject* cls_ = nullptr;
    int64_t count_ = 0;
  };
#endif

  static size_t Row() {
    if (!kFreeThreaded) return 0;
    static std::atomic<size_t> next{0};  // any thread, once
    static thread_local size_t row = next.fetch_add(1, std::memory_order_relaxed) % kRows;
    return row;
  }
  Cell* CellOf(PyTypeObject* cls, size_t row) {
    return &cells_[row][(reinterpret_cast<uintptr_t>(cls) >> kColumnShift) % kColumns];
  }

  TVM_FFI_NO_INLINE void AddSlow(PyTypeObject* cls, int64_t n) {
    std::lock_guard<ShortLock> guard(lock_);
    AddToMap(cls, n);
    if (++num_slow_ % kSlowPerSweep == 0) Sweep();
  }

  // With the lock held. Out of memory, the total stays right but the count of the class does not.
  void AddToMap(PyTypeObject* cls, int64_t n) {
    try {
      others_[cls] += n;
    } catch (const std::bad_alloc&) {
      unattributed_ += n;
    }
  }

  // Moves all counts to the map, where those of one address come together, and drops the zeros.
  // The cells are free then for the classes that are busy now.
  void Sweep() {
    for (auto& row : cells_) {
      for (size_t i = 0; i < kColumns; ++i) {
        row[i].Empty(i, [this](PyTypeObject* cls, int64_t n) { AddToMap(cls, n); });
      }
    }
    for (auto it = others_.begin(); it != others_.end();) {
      it = it->second == 0 ? others_.erase(it) : std::next(it);
    }
  }

  static constexpr uint64_t kSlowPerSweep = 1 << 14;
  Cell cells_[kRows][kColumns];
  ShortLock lock_;
  std::unordered_map<PyTypeObject*, int64_t> others_;
  uint64_t num_slow_ = 0;
  int64_t unattributed_ = 0;
};
extern ClassCounts& class_counts;

}  // namespace tether_py
#endif  // TETHER_PYTHON_WRAP_CLASS_COUNTS_H_
