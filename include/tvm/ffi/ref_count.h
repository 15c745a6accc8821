// SPDX-License-Identifier: Apache-2.0
// The reference counts of an object: one word in its header, changed by atomic operations.
//
//   tether::DropStrong(obj);     // the last strong reference destroys the object,
//   tether::DropWeak(obj);       // the last weak one releases its storage
#ifndef TVM_FFI_REF_COUNT_H_
#define TVM_FFI_REF_COUNT_H_

#include <tvm/ffi/base_detail.h>
#include <tvm/ffi/c_api.h>

#include <cstdint>

#if defined(_MSC_VER)
#include <atomic>
#endif

namespace tvm {
namespace ffi {

namespace detail {

// combined_ref_count: strong count in the low half, weak count in the high half. All strong
// references together hold one weak count.
constexpr uint64_t kCombinedRefCountMaskUInt32 = (static_cast<uint64_t>(1) << 32) - 1;
constexpr uint64_t kCombinedRefCountStrongOne = 1;
constexpr uint64_t kCombinedRefCountWeakOne = static_cast<uint64_t>(1) << 32;
constexpr uint64_t kCombinedRefCountBothOne = kCombinedRefCountWeakOne | kCombinedRefCountStrongOne;

}  // namespace detail

namespace tether {

// Atomic operations on the one count word. The C struct cannot hold a std::atomic.
struct CountWord {
#if defined(_MSC_VER)
  TVM_FFI_INLINE static uint64_t Load(const uint64_t* w) {
    return reinterpret_cast<const std::atomic<uint64_t>*>(w)->load(std::memory_order_relaxed);
  }
  TVM_FFI_INLINE static uint64_t LoadAcquire(const uint64_t* w) {
    return reinterpret_cast<const std::atomic<uint64_t>*>(w)->load(std::memory_order_acquire);
  }
  TVM_FFI_INLINE static void Store(uint64_t* w, uint64_t v) {
    reinterpret_cast<std::atomic<uint64_t>*>(w)->store(v, std::memory_order_relaxed);
  }
  TVM_FFI_INLINE static void Add(uint64_t* w, uint64_t d) {
    reinterpret_cast<std::atomic<uint64_t>*>(w)->fetch_add(d, std::memory_order_relaxed);
  }
  TVM_FFI_INLINE static uint64_t SubRelease(uint64_t* w, uint64_t d) {
    return reinterpret_cast<std::atomic<uint64_t>*>(w)->fetch_sub(d, std::memory_order_release);
  }
  TVM_FFI_INLINE static bool CompareExchange(uint64_t* w, uint64_t* expected, uint64_t desired) {
    return reinterpret_cast<std::atomic<uint64_t>*>(w)->compare_exchange_weak(
        *expected, desired, std::memory_order_acq_rel, std::memory_order_relaxed);
  }
#else
  TVM_FFI_INLINE static uint64_t Load(const uint64_t* w) {
    return __atomic_load_n(w, __ATOMIC_RELAXED);
  }
  TVM_FFI_INLINE static uint64_t LoadAcquire(const uint64_t* w) {
    return __atomic_load_n(w, __ATOMIC_ACQUIRE);
  }
  TVM_FFI_INLINE static void Store(uint64_t* w, uint64_t v) {
    __atomic_store_n(w, v, __ATOMIC_RELAXED);
  }
  TVM_FFI_INLINE static void Add(uint64_t* w, uint64_t d) {
    __atomic_fetch_add(w, d, __ATOMIC_RELAXED);
  }
  TVM_FFI_INLINE static uint64_t SubRelease(uint64_t* w, uint64_t d) {
    return __atomic_fetch_sub(w, d, __ATOMIC_RELEASE);
  }
  TVM_FFI_INLINE static bool CompareExchange(uint64_t* w, uint64_t* expected, uint64_t desired) {
    return __atomic_compare_exchange_n(w, expected, desired, true, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED);
  }
#endif
};

TVM_FFI_INLINE void CallDeleter(TVMFFIObject* self, int flags) {
  if (self->deleter != nullptr) self->deleter(self, flags);
}

// The last weak count is gone: release the storage. The acquire load pairs with the release
// decrements.
TVM_FFI_NO_INLINE inline void ReleaseStorage(TVMFFIObject* self) {
  (void)CountWord::LoadAcquire(&self->combined_ref_count);
  CallDeleter(self, kTVMFFIObjectDeleterFlagBitMaskWeak);
}

TVM_FFI_INLINE void DropWeak(TVMFFIObject* self) {
  using namespace detail;
  if (CountWord::SubRelease(&self->combined_ref_count, kCombinedRefCountWeakOne) ==
      kCombinedRefCountWeakOne) {
    ReleaseStorage(self);
  }
}

// The last strong reference was just dropped, from count `old`.
TVM_FFI_NO_INLINE inline void ReleaseLastStrong(TVMFFIObject* self, uint64_t old) {
  (void)CountWord::LoadAcquire(&self->combined_ref_count);
  if (old == detail::kCombinedRefCountBothOne) {
    CallDeleter(self, kTVMFFIObjectDeleterFlagBitMaskBoth);
    return;
  }
  CallDeleter(self, kTVMFFIObjectDeleterFlagBitMaskStrong);
  DropWeak(self);
}

// Always a read-modify-write, even when the count says "alone": a dormant wrapper of a frontend may
// promote itself at any moment, and it holds no weak count that would show here.
TVM_FFI_INLINE void DropStrong(TVMFFIObject* self) {
  using namespace detail;
  uint64_t old = CountWord::SubRelease(&self->combined_ref_count, kCombinedRefCountStrongOne);
  if ((old & kCombinedRefCountMaskUInt32) == 1) ReleaseLastStrong(self, old);
}

}  // namespace tether

}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_REF_COUNT_H_
