// SPDX-License-Identifier: Apache-2.0
// When to ask CPython for a full collection, and when to leave wrappers to the next young one.
#ifndef TETHER_PYTHON_WRAP_FULL_COLLECTIONS_H_
#define TETHER_PYTHON_WRAP_FULL_COLLECTIONS_H_

#include <cstddef>
#include <cstdint>

namespace tether_py {

// CPython starts one when what is new has reached a quarter of what is old. It does not see hidden
// wrappers, and from 3.14 on it starts none at all. So we count the wrappers that only a full
// collection can judge, and ask for one by the same rule; less often while it finds nothing, and
// not at all while a sample of the hidden ones shows no ring.
class Patience {
 public:
  void AddHidden(size_t n) { hidden_ += n; }
  void AddClosed() { ++closed_; }  // tracked, but not looked into
  void SawWrapper() { ++alive_; }

  // A full collection begins, and has ended.
  void Begin() { alive_ = 0; }
  void End(size_t collected);
  bool IsOver();

 private:
  static constexpr size_t kFloor = 10000;

  bool AreRingsLikely();

  size_t hidden_ = 0;  // since the last full collection, and so are these
  size_t closed_ = 0;
  size_t alive_ = 0;  // wrappers that it saw
  size_t limit_ = kFloor;
  size_t check_at_ = kFloor;
  uint64_t random_ = 0;
};

// New dormant wrappers are left to the next collection, which hides those that survive. Where
// that repeatedly finds nothing, they are hidden at once and only occasionally left to it.
class YoungRings {
 public:
  void End(size_t looked_at, size_t survived);

 private:
  int fruitless_ = 0;
  int rest_ = 0;
};

}  // namespace tether_py
#endif  // TETHER_PYTHON_WRAP_FULL_COLLECTIONS_H_
