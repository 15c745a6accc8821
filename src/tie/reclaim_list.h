// SPDX-License-Identifier: Apache-2.0
// Wrappers whose object died on a thread that may not touch Python, waiting for a thread that may.
//
//   C++ thread:     list.Push(w)         // lock-free, no allocation: the link is w's handle field
//   Python thread:  list.Drain()         // in Fetch, Promote and tp_dealloc; one load when empty
//   pending call:   list.DrainRequested()
//   atexit:         list.Close()         // from now on C++ threads leave wrappers alone
//   forked child:   list.AfterForkInChild()
//
// `requested_` means that a pending call has been requested. Only that call clears it, before it
// pops, so a push it did not see asks again. (An ordinary Drain leaves the flag alone: the pending
// call still runs, and will find the list empty.)
//
// Gates: a C++ thread may touch a wrapper only between Enter() == true and Leave(), and a Python
// thread may follow a dormant handle only between EnterReader() == true and LeaveReader(). Close()
// closes the second gate, waits for those inside, and only then closes the first: while a thread
// reads through a handle, C++ threads still empty it before they free the object. Python waits for
// C++, never the reverse; nothing blocks between the two. In a GIL build Close() and readers
// exclude each other anyway.
#ifndef TETHER_TIE_RECLAIM_LIST_H_
#define TETHER_TIE_RECLAIM_LIST_H_

#include "tie_word.h"

namespace tvm {
namespace ffi {
namespace tether {

template <typename R>
class ReclaimList {
 public:
  using Wrapper = typename R::Wrapper;

  bool Enter() {
    if (R::kMutation == Mutation::kNoShutdownGate) return !At::Load(closed_);
    R::Step(&inside_);
    inside_.fetch_add(1, std::memory_order_seq_cst);
    if (!At::Load(closed_, std::memory_order_seq_cst)) return true;
    Leave();
    return false;
  }
  void Leave() {
    if (R::kMutation == Mutation::kNoShutdownGate) return;
    R::Step(&inside_);
    inside_.fetch_sub(1, std::memory_order_release);
  }

  bool EnterReader() {
    if (!R::kFreeThreaded || R::kMutation == Mutation::kNoReaderGate) return !At::Load(closing_);
    R::Step(&readers_);
    readers_.fetch_add(1, std::memory_order_seq_cst);
    if (!At::Load(closing_, std::memory_order_seq_cst)) return true;
    LeaveReader();
    return false;
  }
  void LeaveReader() {
    if (!R::kFreeThreaded || R::kMutation == Mutation::kNoReaderGate) return;
    R::Step(&readers_);
    readers_.fetch_sub(1, std::memory_order_release);
  }

  // Takes over one reference to `w`, whose handle is dead and stays so.
  void Push(Wrapper* w) {
    if (!Enter()) return;  // the interpreter has ended: leaked on purpose
    waiting_.fetch_add(1, std::memory_order_relaxed);
    uintptr_t head = At::Load(head_);
    do {
      At::Store(R::HandleOf(w), head);
    } while (!Swap(&head, reinterpret_cast<uintptr_t>(w) | kDead));
    if (!At::Exchange(requested_, true, std::memory_order_acq_rel) && !R::RequestDrain()) {
      At::Store(requested_, false);
    }
    Leave();
  }

  // Runs arbitrary Python code.
  void Drain() {
    if (At::Load(head_) != kGone) DrainAll();
  }

  void DrainRequested() {
    if (R::kMutation != Mutation::kRequestedAfterPop) At::Store(requested_, false);
    DrainAll();
    if (R::kMutation == Mutation::kRequestedAfterPop) At::Store(requested_, false);
  }

  void Close() {
    At::Store(closing_, true, std::memory_order_seq_cst);
    while (At::Load(readers_, std::memory_order_acquire) != 0) R::Relax();
    At::Store(closed_, true, std::memory_order_seq_cst);
    while (At::Load(inside_, std::memory_order_acquire) != 0) R::Relax();
    DrainAll();
  }

  bool IsClosed() { return At::Load(closing_, std::memory_order_relaxed); }

  // Threads inside the gate and pending calls do not exist in the child.
  void AfterForkInChild() {
    inside_.store(0, std::memory_order_relaxed);
    readers_.store(0, std::memory_order_relaxed);
    requested_.store(false, std::memory_order_relaxed);
  }

  // How many wrappers are on the list, for inspection.
  size_t waiting() const { return waiting_.load(std::memory_order_relaxed); }

 private:
  using At = Access<R>;

  bool Swap(uintptr_t* head, uintptr_t desired) {
    R::Step(&head_);
    bool done = head_.compare_exchange_weak(*head, desired, std::memory_order_release,
                                            std::memory_order_relaxed);
    (void)R::Saw(*head);
    return R::Saw(done);
  }

  void DrainAll() {
    uintptr_t next = At::Exchange(head_, kGone, std::memory_order_acquire);
    while (next != kGone) {
      Wrapper* w = reinterpret_cast<Wrapper*>(next & ~kHandleTags);
      next = At::Load(R::HandleOf(w));
      At::Store(R::HandleOf(w), kGone);
      waiting_.fetch_sub(1, std::memory_order_relaxed);
      R::DecRef(w);
    }
  }

  std::atomic<uintptr_t> head_{kGone};  // as a handle: kGone, or a wrapper | kDead
  std::atomic<bool> requested_{false};
  std::atomic<bool> closing_{false};  // the readers' gate
  std::atomic<bool> closed_{false};   // the C++ threads' gate
  std::atomic<uint32_t> inside_{0};
  std::atomic<uint32_t> readers_{0};
  std::atomic<size_t> waiting_{0};
};

}  // namespace tether
}  // namespace ffi
}  // namespace tvm
#endif  // TETHER_TIE_RECLAIM_LIST_H_
