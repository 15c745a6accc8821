// SPDX-License-Identifier: Apache-2.0
// The tie between an object H and its one wrapper W: a state machine on H's tie word.
//
//   state        word           who owns whom
//   Detached     0              no wrapper
//   Active(W)    W              W is alive in Python and owns one strong reference to H
//   Inactive(W)  W | kInactive  the word owns the one reference to W, W owns nothing of H
//
//   transition             function      when
//   Detached -> Active     Fetch, Attach H is given to Python for the first time
//   Active -> Inactive     Drop          the last Python reference goes, something else holds H
//   Inactive -> Active     Fetch         H is given to Python again: same W, same state
//                          Promote       W, reached through a weak reference, is used
//   Active -> Detached     Take          move; a wrapper that dies without Drop
//   Active -> gone         Drop          W's reference to H was the only one
//   Inactive -> gone       Settle        the last C++ reference goes: H is destroyed, then W
//
// Rebind goes from Active(W) to Active(V): H moves to another wrapper. A Fetch that runs out of
// attempts gives up on W, makes the word Detached and begins again with a new wrapper: on an active
// W whose dealloc the trashcan puts off, and on an inactive W whose thread a fork took away.
//
// Invariants
//   I1  a wrapper that loses its last Python reference gives back its strong reference
//   I2  when H's storage is released the word is Detached or Inactive, and W is released with it
//   I3  a usable handle owns exactly one strong reference to its object
//   I4  the word points at no more than one wrapper, and only that one is handed out
//
// Locks: the lock bit of the word (free-threaded builds only; in a GIL build Lock is a load), then
// the lock bit of a dormant handle (every build, because C++ threads settle without holding the
// GIL). C++ threads wait for the second only. No Python code runs under either: no DecRef, no
// allocation, no drain. Where Python code can run, the word is read again afterwards.
//
// Drain comes first in Fetch and Promote, and last in the caller's tp_dealloc, but never in Drop:
// there W shows a temporary reference, and another thread could take it before CPython marks W
// finalised.
//
// Runtime R (static members; see the tests for a complete one):
//   Wrapper, kFreeThreaded, kMutation, kMaxAttempts, Table(), HandleOf(w)
//   IncRef(w) DecRef(w) ClearFinalized(w) EnableTryIncRef(w)
//   TryIncRef(w)            false if the count is 0
//   IsResurrectionOver(w)   CPython is done with w's last Drop
//   OnDormant(w) OnActive(w) OnGone(w)   let the collector track w, or not
//   IsGuarded(w)            TryIncRef or OnActive took w during this collection
//   AttachedHere()          RequestDrain(): ask for list().DrainRequested(), false if refused
//   Relax()                 brief spin
//   Pause(attempt)          wait for another thread, with the thread state detached
//   AllocateSpace(n) FreeSpace(p), and OneThread, Step, Saw: NoHooks
//
// model/tie.pml has the same order of steps under the same names; change both or neither.
#ifndef TETHER_TIE_TIE_H_
#define TETHER_TIE_TIE_H_

#include <new>

#include "adopted_table.h"
#include "reclaim_list.h"
#include "tie_steps.h"

namespace tvm {
namespace ffi {
namespace tether {

template <typename R>
class Tie : private TieSteps<R> {
 public:
  using Wrapper = typename R::Wrapper;
  using TieSteps<R>::AddStrong, TieSteps<R>::AddStrongIfAlive, TieSteps<R>::DropStrong;

  // ---- where the word is ----------------------------------------------------------------------

  // NULL if H is not tied by this frontend. Reads nothing before H unless the mark allows it.
  static TieSlot* FindSlot(TVMFFIObject* h) {
    uint32_t padding = LoadPadding<R>(h);
    if (TVM_FFI_PREDICT_TRUE(padding == kTVMFFIObjectAllocHeaderMark)) {
      TiePrefix* prefix = PrefixOf(h);
      bool is_ours = prefix->header.delete_space == &DeleteSpace;
      return TVM_FFI_PREDICT_TRUE(is_ours) ? &prefix->tie : nullptr;
    }
    AdoptedSlot* slot = FindAdopted<R>(R::Table(), h, padding);
    return slot != nullptr && slot->frontend == &kFrontend ? &slot->tie : nullptr;
  }

  // NULL if another frontend has tied H, or out of memory. Needs a strong reference.
  static TieSlot* FindOrAdopt(TVMFFIObject* h) {
    TieSlot* slot = FindSlot(h);
    return slot != nullptr ? slot : R::Table().adopt(h, &kFrontend);
  }

  // ---- Python takes a reference ---------------------------------------------------------------

  // The wrapper of H, as a new reference. Takes over one strong reference to H. make(h) returns a
  // new wrapper with an empty handle, or NULL with an error set, which is passed on.
  template <typename Make>
  static Wrapper* Fetch(TVMFFIObject* h, Make&& make) {
    list().Drain();
    TieSlot* slot = FindOrAdopt(h);
    for (int attempt = 0;; ++attempt) {
      uintptr_t word = slot != nullptr ? Lock(slot) : 0;
      if (Broken(Mutation::kDrainMidway)) list().Drain();
      if (word == 0) {
        if (slot != nullptr) Unlock(slot, word);
        Wrapper* w = make(h);
        if (w == nullptr) {
          DropStrong(h);
          return nullptr;
        }
        if (Attach(w, h, slot)) return w;
        At::Store(R::HandleOf(w), kEmpty);
        R::DecRef(w);
        continue;
      }
      Wrapper* w = WrapperOf(word);
      bool out_of_patience = !R::kFreeThreaded || attempt >= R::kMaxAttempts;
      if (IsActive(word)) {
        if (Broken(Mutation::kTryIncRefOutside)) Unlock(slot, word);
        if (R::TryIncRef(w)) {
          if (!Broken(Mutation::kTryIncRefOutside)) Unlock(slot, word);
          DropStrong(h);
          return w;
        }
        // Count 0: about to drop (resolved by retrying), or its dealloc is put off by the trashcan.
        if (out_of_patience) {
          Publish(slot, 0);
          continue;
        }
      } else if (IsResurrectionOver(w)) {
        Activate(w, h);
        Publish(slot, reinterpret_cast<uintptr_t>(w));
        return w;
      } else if (out_of_patience) {
        // Its thread does not exist any more (fork). The word gives up its reference here.
        SwapDormant(w, kEmpty);
        Publish(slot, 0);
        R::DecRef(w);
        continue;
      }
      Unlock(slot, word);
      R::Pause(attempt);
    }
  }

  // The first half of a fetch, where something else keeps H alive meanwhile: a live hit does not
  // touch the count of H. NULL if there is none; then AddStrong and Fetch.
  static Wrapper* FetchLive(TVMFFIObject* h) {
    TieSlot* slot = FindSlot(h);
    if (slot == nullptr) return nullptr;
    uintptr_t word = Lock(slot);
    Wrapper* w = WrapperOfActive(word);
    bool hit = word != 0 && IsActive(word) && R::TryIncRef(w);
    Unlock(slot, word);
    return TVM_FFI_PREDICT_TRUE(hit) ? w : nullptr;
  }

  // Keeps Python away from H, which something else keeps alive, while no wrapper of it is in use:
  // until StopKeeping, threads that want one wait, spinning. If one is in use, that is returned, as
  // a new reference, and nothing is kept. In free-threaded builds only.
  struct Kept {
    TieSlot* slot = nullptr;
    uintptr_t word = 0;
  };
  static Wrapper* FetchLiveOrKeep(TVMFFIObject* h, Kept* kept) {
    TieSlot* slot = FindOrAdopt(h);
    if (slot == nullptr) return nullptr;  // tied by another frontend, or out of memory
    for (int attempt = 0;; ++attempt) {
      uintptr_t word = Lock(slot);
      bool active = word != 0 && IsActive(word);
      if (active && R::TryIncRef(WrapperOf(word))) {
        Unlock(slot, word);
        return WrapperOf(word);
      }
      // Count 0, as in Fetch. Its thread has used it until now, and what that thread did is visible
      // to others only once it has dropped it, through the word.
      if (!active || attempt >= R::kMaxAttempts) {
        *kept = {slot, word};
        return nullptr;
      }
      Unlock(slot, word);
      R::Pause(attempt);
    }
  }
  static void StopKeeping(const Kept& kept) {
    if (kept.slot != nullptr) Unlock(kept.slot, kept.word);
  }

  template <typename Make>
  static Wrapper* FetchBorrowed(TVMFFIObject* h, Make&& make) {
    if (Wrapper* w = FetchLive(h)) return w;
    AddStrong(h);
    return Fetch(h, make);
  }

  // Binds a wrapper with an empty handle to H, whose strong reference it takes over. False if H has
  // another wrapper: `w` is usable, but is not the one handed out. With no slot it is always true:
  // `w` is usable but not tied.
  static bool Attach(Wrapper* w, TVMFFIObject* h, TieSlot* slot) {
    At::Store(R::HandleOf(w), reinterpret_cast<uintptr_t>(h));
    R::EnableTryIncRef(w);
    if (slot == nullptr) return true;
    // make() may have run Python code, so in a GIL build too the word is read again.
    uintptr_t word = Lock(slot);
    if (word == 0 || Broken(Mutation::kBlindPublish)) {
      Publish(slot, reinterpret_cast<uintptr_t>(w));
      return true;
    }
    Unlock(slot, word);
    return false;
  }

  // The object behind W, or NULL if W is empty or its object died. Call it, and use the result, in
  // W's critical section and with a reference to W.
  static TVMFFIObject* Use(Wrapper* w) {
    uintptr_t handle = At::Load(R::HandleOf(w));
    return IsUsable(handle) ? ObjectOf(handle) : Promote(w);
  }

  // Use of a wrapper that is, or was just now, dormant.
  static TVMFFIObject* Promote(Wrapper* w) {
    list().Drain();
    for (int attempt = 0; attempt <= R::kMaxAttempts; ++attempt) {
      TVMFFIObject* h = nullptr;
      bool alive = false;
      bool dormant = PeekDormant(w, [&](TVMFFIObject* object) {
        h = object;
        alive = AddStrongIfAlive(object);
      });
      if (!dormant) {
        uintptr_t handle = At::Load(R::HandleOf(w));
        return IsUsable(handle) ? ObjectOf(handle) : nullptr;
      }
      if (!alive) return nullptr;
      TieSlot* slot = FindSlot(h);
      uintptr_t word = Lock(slot);
      if (word == Inactive(w) && IsResurrectionOver(w)) {
        Activate(w, h);
        Publish(slot, reinterpret_cast<uintptr_t>(w));
        R::DecRef(w);  // the word's; the caller has its own
        return h;
      }
      Unlock(slot, word);
      DropStrong(h);
      if (R::kFreeThreaded) R::Pause(attempt);
    }
    return nullptr;
  }

  // Calls look(h) if W is dormant: the memory of h stays meanwhile. False if it is not, or once the
  // list closes: then objects die without telling their wrappers, and a dormant handle proves
  // nothing any more.
  template <typename Look>
  static bool PeekDormant(Wrapper* w, Look&& look) {
    if (!list().EnterReader()) return false;
    uintptr_t handle = LockDormant(w);
    bool dormant = IsDormant(handle);
    if (dormant) {
      look(ObjectOf(handle));
      UnlockDormant(w, handle);
    }
    list().LeaveReader();
    return dormant;
  }

  // ---- Python lets go -------------------------------------------------------------------------

  // tp_finalize from dealloc: W has no reference but CPython's temporary one. If it has more
  // afterwards, it has become dormant.
  static void Drop(Wrapper* w) {
    uintptr_t handle = At::Load(R::HandleOf(w));
    if (!IsUsable(handle)) return;
    TVMFFIObject* h = ObjectOf(handle);
    TieSlot* slot = FindSlot(h);
    uintptr_t word = slot != nullptr ? Lock(slot) : 0;
    if (word != reinterpret_cast<uintptr_t>(w) && !Broken(Mutation::kNoMineCheck)) {
      if (slot != nullptr) Unlock(slot, word);
      At::Store(R::HandleOf(w), kEmpty);
      DropStrong(h);
      return;
    }
    if (IsSoleOwner(h)) {
      At::Store(R::HandleOf(w), kEmpty);
      Publish(slot, 0);
      DropStrong(h);
      return;
    }
    HandOff(w, h, slot);
  }

  // tp_finalize from the collector, which goes on after it: a wrapper that another thread took
  // since this collection began, or whose death will destroy H, is left alone.
  static void DropFromCollector(Wrapper* w) {
    uintptr_t handle = At::Load(R::HandleOf(w));
    if (!IsUsable(handle)) return;
    TVMFFIObject* h = ObjectOf(handle);
    TieSlot* slot = FindSlot(h);
    uintptr_t word = slot != nullptr ? Lock(slot) : 0;
    if (word == reinterpret_cast<uintptr_t>(w) && !R::IsGuarded(w) && !IsSoleOwner(h)) {
      return HandOff(w, h, slot);
    }
    if (slot != nullptr) Unlock(slot, word);
    R::ClearFinalized(w);
  }

  // Takes W's strong reference out of it, or returns NULL if it has none: move (in W's critical
  // section, after Use), and, with DropStrong, tp_clear and the base tp_dealloc.
  static TVMFFIObject* Take(Wrapper* w) {
    uintptr_t handle = At::Load(R::HandleOf(w));
    if (!IsUsable(handle)) return nullptr;
    TVMFFIObject* h = ObjectOf(handle);
    TieSlot* slot = FindSlot(h);
    uintptr_t word = slot != nullptr ? Lock(slot) : 0;
    At::Store(R::HandleOf(w), kEmpty);
    if (word == reinterpret_cast<uintptr_t>(w)) {
      Publish(slot, 0);
    } else if (slot != nullptr) {
      Unlock(slot, word);
    }
    return h;
  }

  static void Discard(Wrapper* w) {
    if (TVMFFIObject* h = Take(w)) DropStrong(h);
  }

  // Moves the handle of `from` (usable) to `to`, and the tie with it. False if `to` is not empty: a
  // dead wrapper may still be on the reclaim list, linked through its handle. In both critical
  // sections.
  static bool Rebind(Wrapper* from, Wrapper* to) {
    if (At::Load(R::HandleOf(to)) != kEmpty) return false;
    TVMFFIObject* h = ObjectOf(At::Load(R::HandleOf(from)));
    TieSlot* slot = FindSlot(h);
    uintptr_t word = slot != nullptr ? Lock(slot) : 0;
    At::Store(R::HandleOf(to), reinterpret_cast<uintptr_t>(h));
    At::Store(R::HandleOf(from), kEmpty);
    R::EnableTryIncRef(to);
    if (word == reinterpret_cast<uintptr_t>(from)) {
      Publish(slot, reinterpret_cast<uintptr_t>(to));
    } else if (slot != nullptr) {
      Unlock(slot, word);
    }
    return true;
  }

  // ---- C++ lets go ----------------------------------------------------------------------------

  // H is dying: no strong reference is left, so only this thread uses the word. Returns the
  // wrapper whose reference the word owned, to be passed to Release once H is destroyed.
  static Wrapper* Settle(TieSlot* slot) {
    uintptr_t word = At::Load(slot->word);
    if ((word & kInactive) == 0) return nullptr;
    Wrapper* w = WrapperOf(word);
    bool attached = R::AttachedHere();
    if (attached || list().Enter()) {
      if (!Broken(Mutation::kHandleNotEmptied)) SwapDormant(w, kGone);
      if (!attached) list().Leave();
    } else {
      w = nullptr;  // the interpreter has ended, and the wrapper's memory with it
    }
    At::Store(slot->word, uintptr_t{0});
    return w;
  }

  static void Release(Wrapper* w) {
    if (R::AttachedHere()) return R::DecRef(w);
    list().Push(w);
  }

  // H, which has an alloc header, was destroyed, and a C++ weak reference keeps its storage. The
  // wrapper does not wait for that (P4): as in Settle, only this thread uses the word.
  static void OnlyStorageIsLeft(TVMFFIObject* h) {
    if (PrefixOf(h)->header.delete_space != &DeleteSpace) return;
    if (Wrapper* w = Settle(&PrefixOf(h)->tie)) Release(w);
  }

  // ---- the allocator of the frontend ----------------------------------------------------------

  static void* Allocate(size_t size, size_t alignment, int32_t /*type_index*/, void* /*context*/) {
    if (alignment > alignof(std::max_align_t)) {
      TVMFFIErrorSetRaisedFromCStr("ValueError",
                                   "objects cannot be aligned more strictly than max_align_t");
      return nullptr;
    }
    if (size > SIZE_MAX - sizeof(TiePrefix)) throw std::bad_alloc();
    void* block = R::AllocateSpace(sizeof(TiePrefix) + size);
    if (block == nullptr) throw std::bad_alloc();
    return new (block) TiePrefix{{0}, {&DeleteSpace}} + 1;
  }

  static void DeleteSpace(void* body) {
    TiePrefix* prefix = PrefixOf(body);
    Wrapper* w = Settle(&prefix->tie);
    R::FreeSpace(prefix);
    if (w != nullptr) Release(w);
  }

  static ReclaimList<R>& list() { return list_; }

 private:
  using At = Access<R>;
  using Steps = TieSteps<R>;
  using Steps::Broken, Steps::Inactive, Steps::IsActive, Steps::IsResurrectionOver;
  using Steps::IsSoleOwner, Steps::WrapperOf, Steps::WrapperOfActive;
  using Steps::Lock, Steps::LockDormant, Steps::Publish, Steps::SwapDormant, Steps::Unlock,
      Steps::UnlockDormant;

  // Publish, then release: a thread that sees H die from here on finds Inactive(W) and settles it.
  static void HandOff(Wrapper* w, TVMFFIObject* h, TieSlot* slot) {
    R::IncRef(w);  // the word's
    if (Broken(Mutation::kLetGoFirst)) DropStrong(h);
    R::OnDormant(w);
    At::Store(R::HandleOf(w), reinterpret_cast<uintptr_t>(h) | kDormant, std::memory_order_release);
    Publish(slot, Inactive(w));
    if (!Broken(Mutation::kLetGoFirst)) DropStrong(h);
    // H and its word may be gone; W is not, it has the caller's reference.
    if (IsDead(At::Load(R::HandleOf(w)))) R::OnGone(w);
  }

  // Inactive(W), word locked, caller owns a strong reference: everything but the publication.
  static void Activate(Wrapper* w, TVMFFIObject* h) {
    // H lives, so no thread settles, and in a GIL build none promotes meanwhile: a store is enough.
    if (R::kFreeThreaded) {
      SwapDormant(w, reinterpret_cast<uintptr_t>(h));
    } else {
      At::Store(R::HandleOf(w), reinterpret_cast<uintptr_t>(h));
    }
    R::ClearFinalized(w);
    R::EnableTryIncRef(w);
    R::OnActive(w);
  }

  // Functions with names: a lambda here would be compiled into every file that includes this.
  static void* SettleAny(TieSlot* slot) { return Settle(slot); }
  static void ReleaseAny(void* wrapper) { Release(static_cast<Wrapper*>(wrapper)); }
  static constexpr TieFrontend kFrontend{SettleAny, ReleaseAny};

  inline static ReclaimList<R> list_;
};

}  // namespace tether
}  // namespace ffi
}  // namespace tvm
#endif  // TETHER_TIE_TIE_H_
