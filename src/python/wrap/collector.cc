// SPDX-License-Identifier: Apache-2.0
// A wrapper and its object as one node of the garbage collector's graph.
//
// The collector subtracts, from each object's reference count, the references it finds inside the
// graph; what is left comes from outside. References that C++ holds to H count for W: when W is
// traversed by the subtracting visitor, H's other strong references are added to what W has. And
// where W is the only owner of H, the objects that H's memory holds are W's to report; each such
// edge takes one away again.
//
// That is rule A. It needs to know the visitor and where the count is. Where a check at import
// fails (learn_collector.cc), because the collector is none of those known, rule B takes over
// (guard_list.cc).
//
// What an object refers to is read
//   - if it never changes after construction: whoever shares the object (callable of a function,
//     owner of a tensor's memory, opaque Python object, module of a library's function);
//   - if only the wrapper owns the object, and no call has borrowed it;
//   - if a class in Python defined its fields. Rings through such fields may consist of dormant
//     wrappers alone. They are broken by emptying the fields that Python defined;
//   - if all its owners are known: every strong reference to it is its wrapper's or was found in
//     memory that is read here. Other memory is C++'s, whose threads may be changing it.
// The last two need a collection that finds no other thread in a call that has released the GIL.
// The subtracting pass finds out and remembers; all other visitors see the edges that it took away.
//
// Out of memory: nothing throws here. What cannot be remembered is not looked into, so references
// from there count as from outside, and a ring waits for a later collection. That is decided in the
// subtracting pass. An edge that it took away must be seen by the others, so those need no memory
// that it has not left for them (EdgeWalk).
//
// How a collection begins and ends is in collection.cc. Dormant wrappers that survive one are
// hidden, and shown to full ones only (hidden.cc). CPython does not know of them, so we ask for
// full collections ourselves (full_collections.cc). What the memory of an object refers to is read
// in edges.h.
#include "python/wrap/collector.h"

#include <new>
#include <vector>

#include "python/wrap/arguments.h"
#include "python/wrap/collection.h"
#include "python/wrap/drop.h"
#include "python/wrap/edges.h"
#include "python/wrap/guard_list.h"
#include "python/wrap/hidden.h"
#include "python/wrap/learn_collector.h"

namespace tether_py {

namespace {

// Whether a shared object may be looked into now. Where the visitor is not known, nothing counts
// the references that are not found.
bool LooksIntoShared(TVMFFIObject* h, bool counts) {
  if (!Runtime::collecting || !MayUseCollection() || subtracting_visitor == nullptr) return false;
  // A thread may get hold of it at any time. What was looked into stays so in this collection.
  if (counts && HasWeakReferences(h)) return false;
  return HasFixedEdges(h->type_index) || (collection.is_quiet && CanBeEmptied(h->type_index));
}

// Strong references to h less the one that this collection took.
uint64_t OutsideCount(TVMFFIObject* h) {
  return StrongCount(h) - (collection.pins.Contains(h) ? 1 : 0);
}

// The wrapper of h if the collector knows it.
PyObject* TrackedWrapper(uintptr_t word) {
  auto* w = reinterpret_cast<PyObject*>(word & ~tie::kWordTags);
  return w != nullptr && PyObject_GC_IsTracked(w) ? w : nullptr;
}

// The subtracting visitor has found one more owner of `child`, whose wrapper is w or none that the
// collector knows. True if that was the last one: its edges are to be taken away now. Others
// are shown them by its wrapper, or, where it has none, by its owners.
bool FoundAllOwners(TVMFFIObject* child, uintptr_t word, PyObject* w) {
  if (!Runtime::collecting || !collection.is_quiet) return false;
  if (!MayReferToOthers(child->type_index) || HasWeakReferences(child)) return false;
  if (w != nullptr) {
    // A wrapper that reports its object in any case, or one that this collection does not visit.
    if (LooksIntoShared(child, true) || !IsCollecting(w)) return false;
  }
  bool is_active = (word & ~tie::kWordTags) != 0 && (word & tie::kInactive) == 0;
  uint64_t in_memory = OutsideCount(child) - (is_active ? 1 : 0);
  // As of most: nothing is taken away, so there is nothing to remember.
  if (in_memory == 1 && !HasEdges(child)) return false;
  Collection::Owners* owners = collection.owners.FindOrAdd(child);
  // Out of memory: then the count never gets to the number of owners.
  return owners != nullptr && ++owners->found == in_memory;
}

// The edges of h are being taken away.
void KnowOwners(TVMFFIObject* h) {
  if (Collection::Owners* owners = collection.owners.Find(h)) owners->are_known = true;
}

// Whether the edges of h were taken away because all its owners are known, and this visitor has yet
// to see them. One time is enough for all its owners: visitors mark what is alive.
bool AreOwnersKnown(TVMFFIObject* h, visitproc visit) {
  if (!MayUseCollection()) return false;
  Collection::Owners* owners = collection.owners.Find(h);
  if (owners == nullptr || !owners->are_known || owners->told == visit) return false;
  owners->told = visit;
  return true;
}

// Adds what C++ holds to the count of a wrapper, beside the one reference that is there already.
// Edges may be reported before the wrapper they lead to is, so that its count is below zero in
// between. Debug builds do not allow that: there the first that comes to a wrapper adds.
void AddHeldByCpp(PyObject* w, uint64_t strong) {
  try {
    if (!kCountsMayDip && !collection.added.insert(w).second) return;
  } catch (const std::bad_alloc&) {  // counted twice, it only survives
  }
  if (strong > 1) AddGCRefs(w, static_cast<Py_ssize_t>(strong - 1));
}

class EdgeWalk {
 public:
  EdgeWalk(visitproc visit, void* arg)
      : visit_(visit), arg_(arg), subtracts_(visit == subtracting_visitor) {}

  // Reports what the memory of `root` refers to, and that of objects that no wrapper stands for.
  // Edges that are not reported count as references from outside, so the subtracting visitor of a
  // collection of young objects, which come by often, may stop early: others see what it saw.
  int Run(TVMFFIObject* root) { return Walk(root, root); }
  // The same for something else than a wrapper, which has one reference to `held`.
  int RunFrom(TVMFFIObject* held) {
    int result = Edge(held);
    return result != 0 ? result : Walk(Next(), nullptr);
  }
  EdgeWalk(const EdgeWalk&) = delete;
  EdgeWalk& operator=(const EdgeWalk&) = delete;

 private:
  static constexpr int64_t kYoungBudget = 100;

  // `root`: the object that its wrapper reads, whichever collection it is.
  int Walk(TVMFFIObject* first, TVMFFIObject* root) {
    bool is_limited = subtracts_ && !collection.is_full;
    int64_t budget = is_limited ? kYoungBudget : INT64_MAX;
    int result = 0;
    for (TVMFFIObject* h = first; h != nullptr && result == 0 && --budget >= 0; h = Next()) {
      if (is_limited && h != root && !collection.read.Insert(h)) continue;
      if (subtracts_) KnowOwners(h);
      result = ForEachEdge(h, [this](auto* to) { return Edge(to); });
    }
    pending_.clear();
    return result;
  }

  // What is yet to be read: on a stack, but for objects whose owners are known, which wait in a
  // list that needs no memory until the stack is empty. So the stack holds nothing but what one
  // object owns alone, whoever leads there, and gets no higher for a later visitor than it did for
  // the subtracting one. Thus Push fails for that one, or for a visitor that is not of a
  // collection.
  bool Push(TVMFFIObject* h) {
    Collection::Owners* owners = uses_collection_ ? collection.owners.Find(h) : nullptr;
    if (owners != nullptr) {
      owners->next = waiting_;
      waiting_ = h;
      return true;
    }
    bool may_grow = !uses_collection_ || !collection.is_out_of_memory;
    if (!may_grow && pending_.size() == pending_.capacity()) return false;
    try {
      pending_.push_back(h);
      return true;
    } catch (const std::bad_alloc&) {
      if (subtracts_) collection.is_out_of_memory = true;
      return false;
    }
  }
  TVMFFIObject* Next() {
    TVMFFIObject* h = nullptr;
    if (!pending_.empty()) {
      h = pending_.back();
      pending_.pop_back();
    } else if (waiting_ != nullptr) {
      h = waiting_;
      waiting_ = collection.owners.Find(h)->next;
    }
    return h;
  }

  // Whether the edges of `child`, whose wrapper is w if the collector knows one, are ours to show.
  bool IsOurs(TVMFFIObject* child, uintptr_t word, PyObject* w) {
    bool is_sole = w == nullptr && IsSoleOwned(child);
    if (subtracts_) return is_sole || FoundAllOwners(child, word, w);
    if (w != nullptr) return false;
    if (uses_collection_ && !collection.is_full && !collection.read.Contains(child)) return false;
    return is_sole || AreOwnersKnown(child, visit_);
  }

  int Edge(TVMFFIObject* child) {
    tie::TieSlot* slot = Engine::FindSlot(child);
    uintptr_t word = slot != nullptr ? slot->word.load(std::memory_order_relaxed) : 0;
    PyObject* w = TrackedWrapper(word);
    // At exit dormant handles are not followed any more, so such a wrapper does not show the edges
    // of its object. It counts as held from outside unless this is the object's only owner.
    bool is_mute = (word & tie::kInactive) != 0 && Engine::list().IsClosed();
    if (IsOurs(child, word, is_mute ? nullptr : w)) Push(child);
    if (is_mute && !IsSoleOwned(child)) w = nullptr;
    // Rule B adds nothing to the count of an active wrapper, so nothing may be taken away.
    bool counted = w != nullptr && (!uses_rule_b || (word & tie::kInactive) != 0);
    if (!kCountsMayDip && counted && subtracts_ && IsCollecting(w)) {
      AddHeldByCpp(w, OutsideCount(child));
    }
    return counted ? visit_(w, arg_) : 0;
  }
  int Edge(PyObject* obj) { return visit_(obj, arg_); }

  visitproc visit_;
  void* arg_;
  bool subtracts_;
  bool uses_collection_ = MayUseCollection();
  std::vector<TVMFFIObject*> own_pending_;
  std::vector<TVMFFIObject*>& pending_ = uses_collection_ ? collection.pending : own_pending_;
  TVMFFIObject* waiting_ = nullptr;
};

// Whether `self` is the wrapper that stands for h.
bool IsTied(PyObject* self, TVMFFIObject* h) {
  tie::TieSlot* slot = Engine::FindSlot(h);
  uintptr_t word = slot != nullptr ? slot->word.load(std::memory_order_relaxed) : 0;
  return (word & ~tie::kWordTags) == reinterpret_cast<uintptr_t>(self);
}

bool LooksInto(PyObject* self, TVMFFIObject* h, visitproc visit, bool counts) {
  if (IsSoleOwned(h)) return !CallArguments::IsAnyBorrowing(h);
  if (!IsTied(self, h)) return false;  // the edges are another wrapper's
  return LooksIntoShared(h, counts) || (!counts && AreOwnersKnown(h, visit));
}

// Counts the references to the object of a dormant wrapper, and holds it while it is looked into.
// NULL if it is not to be looked into.
TVMFFIObject* ObjectOfDormant(PyObject* self, visitproc visit, bool counts) {
  TVMFFIObject* found = nullptr;
  bool is_new = false;
  bool uses_collection = MayUseCollection();
  bool has_room = !counts || collection.pins.Reserve(collection.pins.size() + 1);
  Engine::PeekDormant(AsWrapper(self), [&](TVMFFIObject* h) {
    bool is_pinned = uses_collection && collection.pins.Contains(h);
    if (counts) {
      // The word's one reference stands for one of C++'s; the others count too.
      uint64_t strong = StrongCount(h) - (is_pinned ? 1 : 0);
      AddHeldByCpp(self, strong);
    }
    is_new = !is_pinned && counts && has_room && LooksIntoShared(h, counts) &&
             Engine::AddStrongIfAlive(h);
    // An object whose owners are known is held by them.
    if (is_pinned || is_new || (!counts && AreOwnersKnown(h, visit))) found = h;
  });
  if (is_new) {
    collection.pins.Insert(found);
    if (IsHidable(AsWrapper(self))) HideLater(AsWrapper(self));
  }
  return found;
}

}  // namespace

void BreakRing(PyObject* self) {
  uintptr_t handle = AsWrapper(self)->handle.load(std::memory_order_relaxed);
  TVMFFIObject* h = nullptr;
  if (tie::IsUsable(handle)) {
    h = tie::ObjectOf(handle);
    if (StrongCount(h) == 1) return;  // dies with its wrapper
  } else if (tie::IsDormant(handle)) {
    h = ObjectOfDormant(self, nullptr, false);
  }
  if (h == nullptr || !Runtime::collecting || !CanBeEmptied(h->type_index)) return;
  Engine::AddStrong(h);
  Empty(h);
  Engine::DropStrong(h);
}

int VisitHeld(TVMFFIObject* held, visitproc visit, void* arg) {
  return EdgeWalk(visit, arg).RunFrom(held);
}

int VisitOwnReference(PyObject* obj, void* list) {
  return PyList_Append(static_cast<PyObject*>(list), obj);
}

int TraverseWrapper(PyObject* self, visitproc visit, void* arg) {
  if (TVM_FFI_PREDICT_FALSE(learning) && subtracting_visitor == nullptr)
    subtracting_visitor = visit;
  Py_VISIT(Py_TYPE(self));
  if (IsFunctionClass(Py_TYPE(self))) {
    Py_VISIT(reinterpret_cast<FunctionWrapper*>(self)->dict);
  }
  if (visit == VisitOwnReference) return 0;
  bool counts = visit == subtracting_visitor && IsCollecting(self);
  if (!kCountsMayDip && !counts) EndCounting();
  // CPython does not announce the collections that it makes when the modules are gone, nor their
  // end. What such a one holds is not let go of; the process ends.
  if (counts && !Runtime::collecting && IsFinalizing()) MarkCollecting();
  if (Runtime::collecting && MayUseCollection() && counts != collection.is_subtracting) {
    BeginPass(counts);
  }
  if (counts) patience.SawWrapper();
  uintptr_t handle = AsWrapper(self)->handle.load(std::memory_order_relaxed);
  if (handle == 0)
    return 0;  // fresh from tp_alloc, which tracks it, and in debug builds looks here
  if (tie::IsUsable(handle)) {
    TVMFFIObject* h = tie::ObjectOf(handle);
    uint64_t strong = StrongCount(h);
    if (counts) AddHeldByCpp(self, strong);
    if (LooksInto(self, h, visit, counts)) return EdgeWalk(visit, arg).Run(h);
    if (counts && kIsIncremental && !collection.is_full) patience.AddClosed();
    return 0;
  }
  if (!tie::IsDormant(handle)) return 0;
  TVMFFIObject* h = ObjectOfDormant(self, visit, counts);
  if (h != nullptr) return EdgeWalk(visit, arg).Run(h);
  if (counts && kIsIncremental && !collection.is_full) patience.AddClosed();
  return 0;
}

}  // namespace tether_py
