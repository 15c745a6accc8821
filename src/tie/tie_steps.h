// SPDX-License-Identifier: Apache-2.0
// The single steps the state machine (tie.h) is made of: counts of H, the lock of its word, and the
// lock of a dormant handle.
#ifndef TETHER_TIE_TIE_STEPS_H_
#define TETHER_TIE_TIE_STEPS_H_

#include <tvm/ffi/object.h>

#include "tie_word.h"

namespace tvm {
namespace ffi {
namespace tether {

template <typename R>
struct TieSteps {
  using At = Access<R>;
  using Wrapper = typename R::Wrapper;

  static constexpr bool Broken(Mutation m) { return R::kMutation == m; }

  static uintptr_t Inactive(Wrapper* w) { return reinterpret_cast<uintptr_t>(w) | kInactive; }
  static bool IsActive(uintptr_t word) { return (word & kInactive) == 0; }
  static Wrapper* WrapperOf(uintptr_t word) {
    return reinterpret_cast<Wrapper*>(word & ~kWordTags);
  }
  // Only for an active word. In a GIL build such a word has no tag bits.
  static Wrapper* WrapperOfActive(uintptr_t word) {
    return R::kFreeThreaded ? WrapperOf(word) : reinterpret_cast<Wrapper*>(word);
  }
  static bool IsResurrectionOver(Wrapper* w) {
    return !R::kFreeThreaded || R::IsResurrectionOver(w);
  }

  // ---- strong references, as every client counts them -----------------------------------------

  // A process with one thread needs no atomic arithmetic, which costs more than the rest of a live
  // hit; std::shared_ptr makes the same distinction.

  static void AddStrong(TVMFFIObject* h) {
    R::Step(h);
    if (R::OneThread()) {
      h->combined_ref_count += details::kCombinedRefCountStrongOne;
    } else {
      CountWord::Add(&h->combined_ref_count, details::kCombinedRefCountStrongOne);
    }
  }
  static void DropStrong(TVMFFIObject* h) {
    R::Step(h);
    if (!R::OneThread()) return tether::DropStrong(h);
    uint64_t old = h->combined_ref_count;
    h->combined_ref_count = old - details::kCombinedRefCountStrongOne;
    if ((old & details::kCombinedRefCountMaskUInt32) == 1) ReleaseLastStrong(h, old);
  }

  // One strong reference (the caller's), and no weak one that could make another. Acquire: what
  // other owners did to H comes before its destruction.
  static bool IsSoleOwner(TVMFFIObject* h) {
    R::Step(h);
    uint64_t count = R::Saw(CountWord::LoadAcquire(&h->combined_ref_count));
    if (Broken(Mutation::kShortcutIgnoresWeak)) return static_cast<uint32_t>(count) == 1;
    return count == details::kCombinedRefCountBothOne;
  }

  static bool AddStrongIfAlive(TVMFFIObject* h) {
    R::Step(h);
    uint64_t old = CountWord::Load(&h->combined_ref_count);
    while ((old & details::kCombinedRefCountMaskUInt32) != 0 || Broken(Mutation::kPromoteBlindly)) {
      if (CountWord::CompareExchange(&h->combined_ref_count, &old,
                                     old + details::kCombinedRefCountStrongOne)) {
        return R::Saw(true);
      }
    }
    return R::Saw(false);
  }

  // Lock, Unlock, Publish: the word. Publishing unlocks.
  static uintptr_t Lock(TieSlot* slot) {
    if (!R::kFreeThreaded) return At::Load(slot->word);
    for (;; R::Relax()) {
      uintptr_t word = At::FetchOr(slot->word, kWordLocked, std::memory_order_acquire);
      if ((word & kWordLocked) == 0) return word;
    }
  }
  static void Unlock(TieSlot* slot, uintptr_t word) {
    if (R::kFreeThreaded) Publish(slot, word);
  }
  static void Publish(TieSlot* slot, uintptr_t word) {
    At::Store(slot->word, word,
              R::kFreeThreaded ? std::memory_order_release : std::memory_order_relaxed);
  }

  // LockDormant, UnlockDormant: the handle, held while its object's count is looked at, so that the
  // object's memory stays. A handle that is not dormant is returned as it is, unlocked.
  static uintptr_t LockDormant(Wrapper* w) {
    for (;;) {
      uintptr_t handle = At::Load(R::HandleOf(w), std::memory_order_acquire);
      if (!IsDormant(handle) || Broken(Mutation::kNoHandleLock)) return handle;
      if ((handle & kHandleLocked) != 0) {
        R::Relax();
      } else if (At::Cas(R::HandleOf(w), handle, handle | kHandleLocked,
                         std::memory_order_acquire)) {
        return handle;
      }
    }
  }
  static void UnlockDormant(Wrapper* w, uintptr_t handle) {
    if (Broken(Mutation::kNoHandleLock)) return;
    At::Store(R::HandleOf(w), handle, std::memory_order_release);
  }
  // Lock, set and unlock of a dormant handle in one step.
  static void SwapDormant(Wrapper* w, uintptr_t next) {
    for (;;) {
      uintptr_t handle = At::Load(R::HandleOf(w));
      if ((handle & kHandleLocked) != 0) {
        R::Relax();
      } else if (At::Cas(R::HandleOf(w), handle, next, std::memory_order_acq_rel)) {
        return;
      }
    }
  }
};

}  // namespace tether
}  // namespace ffi
}  // namespace tvm
#endif  // TETHER_TIE_TIE_STEPS_H_
