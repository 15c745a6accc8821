// SPDX-License-Identifier: Apache-2.0
// When to ask CPython for a full collection.
#include "python/wrap/full_collections.h"

#include <algorithm>
#include <type_traits>

#include "python/base/pointer_set.h"
#include "python/base/ref.h"
#include "python/wrap/arguments.h"
#include "python/wrap/edges.h"
#include "python/wrap/hidden.h"

namespace tether_py {

namespace {

// Whether `root` leads back to itself, or to something that this walk does not follow: Python
// objects, and what C++ shares. A walk that exceeds its budget returns false.
bool MayBeInRing(TVMFFIObject* root) {
  constexpr int kBudget = 256;
  int budget = kBudget;
  PointerSet<TVMFFIObject> seen;
  TVMFFIObject* pending[kBudget] = {root};
  int num_pending = 1;
  auto follow = [&](auto* to) {
    if constexpr (!std::is_same_v<decltype(to), TVMFFIObject*>) {
      return 1;
    } else {
      bool is_readable =
          IsSoleOwned(to) || CanBeEmptied(to->type_index) || HasFixedEdges(to->type_index);
      if (to == root || !is_readable) return 1;
      if (--budget <= 0 || seen.Contains(to) || !seen.Insert(to)) return 0;
      pending[num_pending++] = to;
      return 0;
    }
  };
  while (num_pending != 0 && budget > 0) {
    TVMFFIObject* h = pending[--num_pending];
    if (ForEachEdge(h, follow) != 0) return true;
  }
  return false;
}

size_t AllocatedBlocks() {
  PyObject* count = PySys_GetObject("getallocatedblocks");  // borrowed
  Ref blocks = Ref::Steal(count != nullptr ? PyObject_CallNoArgs(count) : nullptr);
  Py_ssize_t n = blocks ? PyLong_AsSsize_t(blocks.get()) : 0;
  if (PyErr_Occurred()) PyErr_Clear();
  return n > 0 ? static_cast<size_t>(n) : 0;
}

}  // namespace

void Patience::End(size_t collected) {
  bool was_worth_it = collected >= (hidden_ + closed_) / 8;
  size_t alive = alive_ - std::min(alive_, collected);
  size_t others = AllocatedBlocks() / 16;  // about a quarter of CPython's own objects
  limit_ = std::max({kFloor, others, was_worth_it ? alive / 4 : alive * 3});
  check_at_ = limit_;
  hidden_ = closed_ = 0;
}

bool Patience::IsOver() {
  if (closed_ > limit_) return true;
  if (hidden_ <= check_at_) return false;
  if (AreRingsLikely()) return true;
  check_at_ = hidden_ + hidden_ / 2;
  return false;
}

bool Patience::AreRingsLikely() {
  constexpr int kSamples = 256;
  if (CallArguments::IsAnyElsewhere()) return false;
  bool found = false;
  for (int i = 0; i < kSamples && !found && NumHidden() != 0; ++i) {
    random_ = random_ * 6364136223846793005 + 1442695040888963407;
    Wrapper* w = HiddenAt((random_ >> 33) % NumHidden());
    // Held meanwhile: C++ may be about to drop it.
    TVMFFIObject* h = nullptr;
    Engine::PeekDormant(w, [&](TVMFFIObject* object) {
      if (Engine::AddStrongIfAlive(object)) h = object;
    });
    if (h == nullptr) continue;
    found = MayBeInRing(h);
    Engine::DropStrong(h);
  }
  return found;
}

void YoungRings::End(size_t looked_at, size_t survived) {
  constexpr size_t kEnough = 50;
  constexpr int kTries = 4;
  constexpr int kRest = 15;
  if (Runtime::hides_at_once) {
    if (--rest_ == 0) Runtime::hides_at_once = false;
    return;
  }
  if (looked_at < kEnough) return;
  bool was_worth_it = looked_at - survived >= looked_at / 8;
  fruitless_ = was_worth_it ? 0 : fruitless_ + 1;
  if (fruitless_ < kTries) return;
  fruitless_ = kTries - 1;  // one try from now on
  rest_ = kRest;
  Runtime::hides_at_once = true;
}

}  // namespace tether_py
