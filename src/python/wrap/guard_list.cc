// SPDX-License-Identifier: Apache-2.0
// Rule B, for a collector that is none of those known.
//
// The finaliser makes a wrapper whose object is shared dormant, as dealloc does, and every wrapper
// that somebody gets while a collection runs is on a list until it ends. Identity and state
// survive; weak references in garbage cycles are cleared by CPython before any finaliser runs.
#include "python/wrap/guard_list.h"

#include <mutex>
#include <new>
#include <unordered_set>

#include "python/wrap/wrapper.h"

namespace tether_py {

bool uses_rule_b = false;

namespace {

// Wrappers that somebody got since the collection began, each with a reference.
struct GuardList {
  ShortLock lock;
  std::unordered_set<Wrapper*> wrappers;
  bool is_incomplete = false;  // out of memory: any wrapper may be one of them
} guards;

}  // namespace

void ReleaseGuards() {
  std::unordered_set<Wrapper*> released;
  {
    std::lock_guard<ShortLock> locked(guards.lock);
    released.swap(guards.wrappers);
    guards.is_incomplete = false;
  }
  for (Wrapper* w : released) Py_DECREF(AsObject(w));
}

void Runtime::Guard(Wrapper* w) {
  std::lock_guard<ShortLock> locked(guards.lock);
  try {
    if (guards.wrappers.insert(w).second) Py_INCREF(AsObject(w));
  } catch (const std::bad_alloc&) {
    guards.is_incomplete = true;
  }
}

bool Runtime::IsGuarded(Wrapper* w) {
  if (!uses_rule_b) return false;
  std::lock_guard<ShortLock> locked(guards.lock);
  return guards.is_incomplete || guards.wrappers.count(w) != 0;
}

}  // namespace tether_py
