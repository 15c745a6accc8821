// SPDX-License-Identifier: Apache-2.0
// The C++ objects that can be found, and what they refer to, for tvm_ffi.inspect.
//
// There is no list of all objects. A walk begins at wrappers in use, at hidden ones, adopted
// objects, global functions and recorded objects (recorder.h), and follows edges. Dormant wrappers
// that are not hidden and that no edge leads to are not found. Each object found is held until the
// walk is over, and the counts reported leave that one out.
#ifndef TETHER_PYTHON_WRAP_WORLD_H_
#define TETHER_PYTHON_WRAP_WORLD_H_

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "python/wrap/edges.h"
#include "python/wrap/recorder.h"
#include "python/wrap/wrapper.h"

namespace tether_py {

// The word that ties an object to its wrapper; 0 if it has none.
inline uintptr_t WordOf(TVMFFIObject* h) {
  tie::TieSlot* slot = Engine::FindSlot(h);
  return slot != nullptr ? slot->word.load(std::memory_order_acquire) : 0;
}
inline PyObject* WrapperIn(uintptr_t word) {
  return reinterpret_cast<PyObject*>(word & ~tie::kWordTags);
}

class World {
 public:
  World() = default;
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World() { LetGo(); }

  // The node of a wrapper; SIZE_MAX if it has no object. A dormant wrapper stays dormant.
  size_t AddWrapper(Wrapper* w);
  void AddAllKnown();
  // Follows edges from every node, also from those that it adds.
  void Walk();
  void LetGo();
  const std::vector<TVMFFIObject*>& nodes() const { return nodes_; }

  // New lists, or NULL with an error set (world_to_python.cc).
  PyObject* NodesToPython() const;
  PyObject* EdgesToPython() const;
  PyObject* RootsToPython() const;
  PyObject* TypesToPython() const;

 private:
  struct Edge {
    size_t from;
    size_t to;  // SIZE_MAX: a Python object
    Ref object;
    std::string place;
  };
  struct Root {
    size_t node;
    std::string name;
  };
  struct InCalls {
    long long held = 0;        // references of calls in progress
    bool is_argument = false;  // borrowed
  };
  using Children = std::vector<std::pair<TVMFFIObject*, size_t>>;  // with a reference; their edge

  // Takes over a strong reference. Throws.
  size_t AddOwned(TVMFFIObject* h);
  void AddCallsInProgress();
  void AddAdopted();
  void AddRecorded();
  void AddEdge(TVMFFIObject* child, const EdgePlace& place, Children* children);
  void AddEdge(PyObject* object, const EdgePlace& place, Children* children);
  FirstFetch FirstFetchOf(TVMFFIObject* h, bool is_adopted) const;
  PyObject* NodeToPython(size_t i) const;

  std::vector<TVMFFIObject*> nodes_;  // each with a reference
  std::unordered_map<TVMFFIObject*, size_t> index_;
  std::unordered_map<TVMFFIObject*, FirstFetch> records_;
  std::unordered_map<TVMFFIObject*, InCalls> in_calls_;
  std::vector<Edge> edges_;
  std::vector<Root> roots_;
  size_t walked_ = 0;
};

}  // namespace tether_py
#endif  // TETHER_PYTHON_WRAP_WORLD_H_
