// SPDX-License-Identifier: Apache-2.0
// The collection in progress: what its passes have found so far.
#ifndef TETHER_PYTHON_WRAP_COLLECTION_H_
#define TETHER_PYTHON_WRAP_COLLECTION_H_

#include <atomic>
#include <unordered_set>
#include <vector>

#include "python/base/pointer_set.h"
#include "python/wrap/full_collections.h"
#include "python/wrap/wrapper.h"

namespace tether_py {

// Used by the thread that collects and by no other: see MayUseCollection.
struct Collection {
  // That thread; in a GIL build it has the GIL, and this is not needed.
  std::atomic<PyThreadState*> thread{nullptr};
  bool is_full = true;
  // No other thread is in a call that has released the GIL.
  bool is_quiet = false;
  // Objects of dormant wrappers that were looked into; held until it is over.
  PointerSet<TVMFFIObject> pins;

  // Objects without a wrapper that reads them, by how many of their owners were found so far. Of
  // one pass: the collector makes another after finalisers have run.
  struct Owners {
    visitproc told = nullptr;      // the last visitor that has seen the edges
    TVMFFIObject* next = nullptr;  // in the list of an EdgeWalk
    uint32_t found = 0;
    bool are_known = false;
  };
  PointerMap<TVMFFIObject, Owners> owners;
  // In a collection of young objects: those without a wrapper whose edges were taken away.
  PointerSet<TVMFFIObject> read;
  bool is_subtracting = false;
  bool has_run = false;  // 3.14 reports a collection even if it does nothing
  // The stack of the walk that is under way. It keeps its room until the collection ends.
  std::vector<TVMFFIObject*> pending;
  bool is_out_of_memory = false;  // the stack could not grow, and does not until the next pass
  // Debug builds: whose count AddHeldByCpp has added to, in this pass over the objects.
  std::unordered_set<PyObject*> added;
};
extern Collection& collection;

// Whether this thread may use it. In a free-threaded build others may ask what an object refers to
// (gc.get_referents) while a collection begins or ends.
inline bool MayUseCollection() {
  return !kFreeThreaded ||
         (Runtime::collecting.load(std::memory_order_relaxed) &&
          collection.thread.load(std::memory_order_relaxed) == PyThreadState_Get());
}

extern Patience patience;

// This thread collects from now on, until Runtime::collecting is false.
void MarkCollecting();
// The collector begins to subtract, or is done with that.
void BeginPass(bool subtracts);
// Debug builds: the collector is done with counting, and may count again.
void EndCounting();
// The collection that dormant wrappers call for. Where Python code may run; in GIL builds only.
void CollectNow();
// Hides a dormant wrapper (hidden.h) without waiting for a collection.
void HideAtOnce(Wrapper* w);
// From now on collections are noticed. At import: false with an error set.
bool WatchCollections(PyObject* gc);

}  // namespace tether_py
#endif  // TETHER_PYTHON_WRAP_COLLECTION_H_
