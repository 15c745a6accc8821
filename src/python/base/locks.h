// SPDX-License-Identifier: Apache-2.0
// Locks, and numbers that many threads change. In a GIL build they are plain variables, or nothing.
#ifndef TETHER_PYTHON_BASE_LOCKS_H_
#define TETHER_PYTHON_BASE_LOCKS_H_

#include <atomic>
#include <mutex>

#include "python/base/compat.h"

namespace tether_py {

// The critical section of an object, for the length of a scope; nothing in a GIL build. CPython
// gives it up whenever the thread waits, also in Python code that is called inside. So it protects
// only code that runs no Python code.
class CriticalSection {
 public:
#ifdef Py_GIL_DISABLED
  explicit CriticalSection(PyObject* obj) { PyCriticalSection_Begin(&section_, obj); }
  ~CriticalSection() { PyCriticalSection_End(&section_); }

 private:
  PyCriticalSection section_;
#else
  explicit CriticalSection(PyObject*) {}
#endif
  CriticalSection(const CriticalSection&) = delete;
  CriticalSection& operator=(const CriticalSection&) = delete;
};

// The critical sections of two objects, which may be one and the same.
class CriticalSection2 {
 public:
#ifdef Py_GIL_DISABLED
  CriticalSection2(PyObject* a, PyObject* b) { PyCriticalSection2_Begin(&section_, a, b); }
  ~CriticalSection2() { PyCriticalSection2_End(&section_); }

 private:
  PyCriticalSection2 section_;
#else
  CriticalSection2(PyObject*, PyObject*) {}
#endif
  CriticalSection2(const CriticalSection2&) = delete;
  CriticalSection2& operator=(const CriticalSection2&) = delete;
};

// A lock for code that runs no Python code; nothing in a GIL build. So only attached threads may
// take it: what a thread of C++ may do, such as destroying an object, needs a std::mutex. A fork
// finds nobody inside: with a GIL, or because CPython stops the other threads. Nearly always it is
// held for a few instructions. class_table_lock is held longer, while the schemas of a type's
// fields are parsed.
class ShortLock {
 public:
  constexpr ShortLock() = default;
  void lock() {
    if (kFreeThreaded) mutex_.lock();
  }
  void unlock() {
    if (kFreeThreaded) mutex_.unlock();
  }

 private:
  std::mutex mutex_;
};

// A flag for attached threads. In a GIL build it is a plain bool, which is tested in one
// instruction.
class SharedFlag {
 public:
#ifdef Py_GIL_DISABLED
  bool IsSet() const { return value_.load(std::memory_order_relaxed); }
  void Set(bool value) { value_.store(value); }

 private:
  std::atomic<bool> value_{false};
#else
  bool IsSet() const { return value_; }
  void Set(bool value) { value_ = value; }

 private:
  bool value_ = false;
#endif
};

// A number that many threads change and few read: each thread has a cell of its own, or shares one
// with few others, so that no cache line bounces between processors. Changed by attached
// threads only, so in a GIL build it is plain.
class SharedCount {
 public:
#ifdef Py_GIL_DISABLED
  void Add(int64_t n) { cells_[CellOfThread()].value.fetch_add(n, std::memory_order_relaxed); }
  int64_t Get() const {
    int64_t sum = 0;
    for (const Cell& cell : cells_) sum += cell.value.load(std::memory_order_relaxed);
    return sum;
  }

 private:
  static constexpr size_t kCells = 64;
  struct alignas(64) Cell {
    std::atomic<int64_t> value{0};
  };
  static size_t CellOfThread() {
    static std::atomic<size_t> next{0};  // any thread, once
    static thread_local size_t cell = next.fetch_add(1, std::memory_order_relaxed) % kCells;
    return cell;
  }
  Cell cells_[kCells];
#else
  void Add(int64_t n) { value_ += n; }
  int64_t Get() const { return value_; }

 private:
  int64_t value_ = 0;
#endif
};

}  // namespace tether_py
#endif  // TETHER_PYTHON_BASE_LOCKS_H_
