// SPDX-License-Identifier: Apache-2.0
// The two words of a tie, and where the first one lives.
//
// clang-format off
//   tie word (of an object H)           handle (a field of a wrapper W)
//     0                  Detached         H                             usable: W owns a reference
//     W                  Active           H | kDormant                  H lives, W owns none
//     W | kInactive      Inactive         H | kDormant | kHandleLocked  being promoted
//     ... | kWordLocked  free-threaded    kEmpty                        never bound, or moved away
//                                         kGone                         H died
//                                         W' | kDead                    reclaim list; W' is next
// clang-format on
//
// "Usable" is one test: no tag is set. The tie word of an object that this frontend's allocator
// made sits in the 16 bytes before it; any other object is adopted (adopted_table.h).
#ifndef TETHER_TIE_TIE_WORD_H_
#define TETHER_TIE_TIE_WORD_H_

#include <tvm/ffi/c_api.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tvm {
namespace ffi {
namespace tether {

inline constexpr uintptr_t kInactive = 1;
inline constexpr uintptr_t kWordLocked = 2;
inline constexpr uintptr_t kWordTags = 3;

inline constexpr uintptr_t kDormant = 1;
inline constexpr uintptr_t kHandleLocked = 2;
inline constexpr uintptr_t kDead = 4;
inline constexpr uintptr_t kHandleTags = 7;
inline constexpr uintptr_t kEmpty = kDead;
inline constexpr uintptr_t kGone = kDead | 8;

using Handle = std::atomic<uintptr_t>;

struct TieSlot {
  std::atomic<uintptr_t> word;
};

// What this frontend's allocator puts before an object.
struct TiePrefix {
  TieSlot tie;
  TVMFFIObjectAllocHeader header;
};

static_assert(sizeof(uintptr_t) == 8 && sizeof(Handle) == 8, "pointers leave three low bits");
static_assert(sizeof(TiePrefix) == 16 && alignof(TiePrefix) == 8, "bodies stay aligned");
static_assert(offsetof(TiePrefix, header) + sizeof(TVMFFIObjectAllocHeader) == sizeof(TiePrefix),
              "the alloc header ends where the object begins");
static_assert(offsetof(TVMFFIObject, __padding) == 12 && sizeof(TVMFFIObject) == 24);

inline TiePrefix* PrefixOf(void* body) { return static_cast<TiePrefix*>(body) - 1; }

inline bool IsUsable(uintptr_t handle) { return (handle & kHandleTags) == 0; }
inline bool IsDormant(uintptr_t handle) { return (handle & kDormant) != 0; }
inline bool IsDead(uintptr_t handle) { return (handle & kDead) != 0; }
inline TVMFFIObject* ObjectOf(uintptr_t handle) {
  return reinterpret_cast<TVMFFIObject*>(handle & ~kHandleTags);
}

// Called before each step, so that a test can interleave threads there and see what they saw.
// Runtimes inherit these no-ops.
struct NoHooks {
  // Whether the process has never had a second thread; false is always a safe answer.
  static bool OneThread() { return false; }
  static void Step(const void* /*about_to_touch*/) {}
  template <typename T>
  static T Saw(T value) {
    return value;
  }
};

// Steps that a test can break, here or in its runtime, to prove that it notices. Shipped code has
// kNone.
enum class Mutation {
  kNone,
  kLetGoFirst,
  kNoWordReference,
  kShortcutIgnoresWeak,
  kNoHandleLock,
  kHandleNotEmptied,
  kPromoteBlindly,
  kFinalizedNotCleared,
  kBlindPublish,
  kNoMineCheck,
  kTryIncRefOutside,
  kResurrectionWindow,
  kUseOutside,
  kMoveOutside,
  kSlotAfterDeleter,
  kNoStrongHook,
  kDrainMidway,
  kRequestedAfterPop,
  kNoShutdownGate,
  kNoReaderGate,
};

// Atomic accesses with the hooks in front.
template <typename Hooks>
struct Access {
  template <typename T>
  static T Load(const std::atomic<T>& a, std::memory_order order = std::memory_order_relaxed) {
    Hooks::Step(&a);
    return Hooks::Saw(a.load(order));
  }
  template <typename T>
  static void Store(std::atomic<T>& a, T value,
                    std::memory_order order = std::memory_order_relaxed) {
    Hooks::Step(&a);
    a.store(value, order);
  }
  template <typename T>
  static T Exchange(std::atomic<T>& a, T value, std::memory_order order) {
    Hooks::Step(&a);
    return Hooks::Saw(a.exchange(value, order));
  }
  static uintptr_t FetchOr(std::atomic<uintptr_t>& a, uintptr_t bits, std::memory_order order) {
    Hooks::Step(&a);
    return Hooks::Saw(a.fetch_or(bits, order));
  }
  template <typename T>
  static bool Cas(std::atomic<T>& a, T expected, T desired, std::memory_order order) {
    Hooks::Step(&a);
    return Hooks::Saw(
        a.compare_exchange_strong(expected, desired, order, std::memory_order_relaxed));
  }
};

}  // namespace tether
}  // namespace ffi
}  // namespace tvm
#endif  // TETHER_TIE_TIE_WORD_H_
