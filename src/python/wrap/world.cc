// SPDX-License-Identifier: Apache-2.0
// The C++ objects that can be found: the walk.
#include "python/wrap/world.h"

#include <tvm/ffi/function.h>

#include <mutex>

#include "python/wrap/arguments.h"
#include "python/wrap/edge_text.h"
#include "python/wrap/hidden.h"
#include "python/wrap/object_lock.h"

namespace tether_py {

namespace {

// Whether the header of a recorded object is where its block begins, and complete.
bool IsHeader(TVMFFIObject* h) {
  uint32_t padding = tie::LoadPadding<tie::NoHooks>(h);
  return padding == static_cast<uint32_t>(kTVMFFIObjectAllocHeaderMark) ||
         tie::FindAdopted(Runtime::Table(), h, padding) != nullptr;
}

}  // namespace

size_t World::AddOwned(TVMFFIObject* h) {
  auto found = index_.find(h);
  if (found != index_.end()) {
    Engine::DropStrong(h);  // not the last: one is ours
    return found->second;
  }
  try {
    index_.emplace(h, nodes_.size());
    nodes_.push_back(h);
  } catch (...) {
    index_.erase(h);
    Engine::DropStrong(h);
    throw;
  }
  return nodes_.size() - 1;
}

size_t World::AddWrapper(Wrapper* w) {
  TVMFFIObject* h = nullptr;
  {
    CriticalSection section(AsObject(w));
    uintptr_t handle = w->handle.load(std::memory_order_acquire);
    if (handle == 0) return SIZE_MAX;
    if (tie::IsUsable(handle)) {
      h = tie::ObjectOf(handle);
      Engine::AddStrong(h);
    } else {
      Engine::PeekDormant(w, [&h](TVMFFIObject* object) {
        if (Engine::AddStrongIfAlive(object)) h = object;
      });
    }
  }
  return h != nullptr ? AddOwned(h) : SIZE_MAX;
}

// Nothing is made on the way, so no call can begin or end meanwhile.
void World::AddCallsInProgress() {
  CallArguments::ForEachObject(
      [](void* self, TVMFFIObject* h, bool is_held) {
        InCalls& found = static_cast<World*>(self)->in_calls_[h];
        is_held ? ++found.held : found.is_argument = true;
      },
      this);
  for (auto& [h, found] : in_calls_) {
    Engine::AddStrong(h);
    AddOwned(h);
  }
}

// Adopted objects may die on other threads at any time. One with a wrapper is asked through it.
void World::AddAdopted() {
  const tie::AdoptedTable& table = Runtime::Table();
  for (uint32_t chunk = 0; chunk < table.num_chunks; ++chunk) {
    tie::AdoptedSlot* slots = table.chunks[chunk].load(std::memory_order_acquire);
    if (slots == nullptr) continue;
    for (uint32_t i = 0; i < 1u << table.chunk_bits; ++i) {
      if (slots[i].object.load(std::memory_order_acquire) == nullptr) continue;
      uintptr_t word = slots[i].tie.word.load(std::memory_order_acquire);
      // Active ones are on the collector's list.
      if ((word & tie::kInactive) == 0) continue;
      auto* w = reinterpret_cast<Wrapper*>(word & ~tie::kWordTags);
      AddWrapper(w);
    }
  }
}

void World::AddRecorded() {
  std::vector<std::pair<TVMFFIObject*, FirstFetch>> alive;
  {
    std::lock_guard<std::mutex> locked(recorder.lock);
    size_t count = 0;
    for (Record* it = recorder.all.next; it != &recorder.all; it = it->next) ++count;
    alive.reserve(count);
    for (Record* it = recorder.all.next; it != &recorder.all; it = it->next) {
      TVMFFIObject* h = BodyOf(it);
      // Objects with something in front of their header are known once Python has adopted them.
      if (!IsHeader(h) || !Engine::AddStrongIfAlive(h)) continue;
      alive.emplace_back(h, FirstFetch{static_cast<int64_t>(it->serial), it->line});
    }
  }
  for (auto [h, first] : alive) {
    AddOwned(h);
    records_.emplace(h, first);
  }
}

void World::AddAllKnown() {
  AddCallsInProgress();
  if (!kFreeThreaded) {
    for (size_t i = 0; i < NumHidden(); ++i) AddWrapper(HiddenAt(i));
  }
  AddAdopted();
  AddRecorded();
  for (const ffi::String& name : ffi::Function::ListGlobalNames()) {
    auto function = ffi::Function::GetGlobal(name);
    if (!function.has_value()) continue;
    size_t node =
        AddOwned(ffi::details::ObjectUnsafe::MoveObjectRefToTVMFFIObjectPtr(*std::move(function)));
    roots_.push_back({node, "global function " + std::string(name.data(), name.size())});
  }
}

void World::AddEdge(TVMFFIObject* child, const EdgePlace& place, Children* children) {
  if (child->type_index == ffi::TypeIndex::kTVMFFIStr ||
      child->type_index == ffi::TypeIndex::kTVMFFIBytes) {
    return;  // values
  }
  edges_.push_back({walked_, SIZE_MAX, Ref(), TextOf(place)});
  children->emplace_back(child, edges_.size() - 1);
  Engine::AddStrong(child);
}

void World::AddEdge(PyObject* object, const EdgePlace& place, Children*) {
  edges_.push_back({walked_, SIZE_MAX, Ref::Borrow(object), TextOf(place)});
}

void World::Walk() {
  for (; walked_ < nodes_.size(); ++walked_) {
    TVMFFIObject* h = nodes_[walked_];
    if (!MayReferToOthers(h->type_index)) continue;
    Children children;
    {
      LookAtObject look(h);
      ForEachEdge(h, [&](auto* to, const EdgePlace& place) {
        AddEdge(to, place, &children);
        return 0;
      });
    }
    for (auto [child, edge] : children) edges_[edge].to = AddOwned(child);
  }
}

void World::LetGo() {
  std::vector<TVMFFIObject*> nodes;
  nodes.swap(nodes_);
  std::vector<Edge>().swap(edges_);  // they hold Python objects
  for (TVMFFIObject* h : nodes) Engine::DropStrong(h);
}

}  // namespace tether_py
