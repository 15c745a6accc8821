// SPDX-License-Identifier: Apache-2.0
// make_object: storage for objects, from the process-wide allocator.
//
//   ObjectPtr<PointObj> p = make_object<PointObj>(1, 2);
//
// A block begins with a private prefix of the allocator's choice, ends that prefix with a
// TVMFFIObjectAllocHeader, and goes on with the body. The header knows how to release the block, so
// any allocator may be current at any time, and `__padding` tells readers that the header is there.
#ifndef TVM_FFI_MEMORY_H_
#define TVM_FFI_MEMORY_H_

#include <tvm/ffi/object.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <type_traits>
#include <utility>

// Calls destroy(self, flags), now or, far down the stack, after the calls it is nested in. Not a
// part of this header, because it needs a thread-local variable: those of a client that was
// compiled at run time are gone before its last objects. Weak, because other runtimes do not have
// it.
#ifndef _MSC_VER
extern "C" TVM_FFI_DLL TVM_FFI_WEAK void TVMFFITetherDestroyNested(void* self, int flags,
                                                                   void (*destroy)(void*, int));
#else
inline constexpr void (*TVMFFITetherDestroyNested)(void*, int, void (*)(void*, int)) = nullptr;
#endif

namespace tvm {
namespace ffi {

using FObjectDeleter = void (*)(void* obj, int flags);

namespace detail {

inline void* AlignedAlloc(size_t size, size_t align) {
  if (align <= alignof(std::max_align_t)) {
    if (void* p = std::malloc(size)) return p;
    throw std::bad_alloc();
  }
#ifdef _MSC_VER
  if (void* p = _aligned_malloc(size, align)) return p;
#else
  void* p = nullptr;
  if (posix_memalign(&p, align, size) == 0) return p;
#endif
  throw std::bad_alloc();
}

// Pairs with AlignedAlloc of alignment up to that of max_align_t, and, except on MSVC, any other.
inline void AlignedFree(void* p) noexcept { std::free(p); }

}  // namespace detail

namespace tether {

// Returns the block to whatever allocator it came from.
TVM_FFI_INLINE void ReleaseBody(void* body) {
  detail::ObjectUnsafe::GetObjectAllocHeaderFromPtr(body)->delete_space(body);
}

// Gives the block back if the constructor throws.
class BodyGuard {
 public:
  explicit BodyGuard(void* body) : body_(body) {}
  BodyGuard(const BodyGuard&) = delete;
  BodyGuard& operator=(const BodyGuard&) = delete;
  ~BodyGuard() {
    if (body_ != nullptr) ReleaseBody(body_);
  }
  void Dismiss() { body_ = nullptr; }

 private:
  void* body_;
};

// An object was destroyed and a weak reference keeps its storage: what a frontend has tied to it
// is released now, not with the storage. Rare, so the library's function is looked up by name; a
// library without it has no frontend that needs it.
TVM_FFI_NO_INLINE inline void TellOnlyStorageIsLeft(TVMFFIObject* self) {
  constexpr char kName[] = "ffi.tether.OnlyStorageIsLeft";
  TVMFFIByteArray name{kName, sizeof(kName) - 1};
  TVMFFIObjectHandle tell = nullptr;
  if (TVMFFIFunctionGetGlobal(&name, &tell) != 0 || tell == nullptr) return;
  TVMFFIAny arg{}, result{};
  arg.type_index = TypeIndex::kTVMFFIOpaquePtr;
  arg.v_ptr = self;
  (void)TVMFFIFunctionCall(tell, &arg, 1, &result);
  TVMFFIObjectDecRef(tell);
}

// The deleter of an object in storage from the registry, given how to destroy it.
template <typename Destroy>
TVM_FFI_INLINE void DeleteInPhases(TVMFFIObject* self, void* body, int flags,
                                   const Destroy& destroy) {
  bool storage_stays = (flags & kTVMFFIObjectDeleterFlagBitMaskWeak) == 0;
  bool tell = storage_stays && self->__padding == kTVMFFIObjectAllocHeaderMark;
  if (flags & kTVMFFIObjectDeleterFlagBitMaskStrong) destroy();
  if (TVM_FFI_PREDICT_FALSE(tell)) TellOnlyStorageIsLeft(self);
  if (!storage_stays) ReleaseBody(body);
}

template <typename T>
void DestroyObject(void* self, int flags) {
  T* body = detail::ObjectUnsafe::RawObjectPtrFromUnowned<T>(static_cast<TVMFFIObject*>(self));
  DeleteInPhases(static_cast<TVMFFIObject*>(self), body, flags, [body] { body->T::~T(); });
}

// The deleter of objects that may own other objects. The head of a long chain drops the next object
// inside its own destructor, and so on, which would overflow the native stack. Each time this
// recursion crosses a checkpoint, an 8 KB window at every 64 KB of stack, it asks the library,
// which delays destruction where the stack is deep. Elsewhere it costs one comparison.
template <FObjectDeleter kDestroy>
void DeleteNested(void* self, int flags) {
  bool is_checkpoint = (StackAddress() & 0xffff) < 0x2000;
  if (TVM_FFI_PREDICT_FALSE(is_checkpoint) && TVMFFITetherDestroyNested != nullptr) {
    TVMFFITetherDestroyNested(self, flags, kDestroy);
    return;
  }
  kDestroy(self, flags);
}

template <typename T>
constexpr FObjectDeleter DeleterOf() {
  if constexpr (std::is_trivially_destructible_v<T>) return DestroyObject<T>;
  return DeleteNested<DestroyObject<T>>;
}

// Storage of `size` bytes with a T constructed at its start and the header written after it.
template <typename T, typename... Args>
ObjectPtr<T> MakeObject(size_t size, Args&&... args) {
  static_assert(std::is_base_of_v<Object, T>, "make_object can only be used to create Object");
  static_assert(alignof(T) <= alignof(std::max_align_t),
                "objects cannot be aligned more strictly than std::max_align_t");
  int32_t type_index = T::RuntimeTypeIndex();
  TVMFFICustomAllocator* allocator = TVMFFIGetCustomAllocator();
  void* body = allocator->allocate(size, alignof(T), type_index, allocator->context);
  if (TVM_FFI_PREDICT_FALSE(body == nullptr)) throw std::bad_alloc();
  T* object;
  if constexpr (std::is_nothrow_constructible_v<T, Args...>) {
    object = ::new (body) T(std::forward<Args>(args)...);
  } else {
    BodyGuard guard(body);
    object = ::new (body) T(std::forward<Args>(args)...);
    guard.Dismiss();
  }
  TVMFFIObject* header = detail::ObjectUnsafe::GetHeader(object);
  header->combined_ref_count = detail::kCombinedRefCountBothOne;
  header->type_index = type_index;
  // With a vtable or another base in front, the bytes before the header belong to the object
  // itself.
  header->__padding = static_cast<void*>(header) == body ? kTVMFFIObjectAllocHeaderMark : 0;
  header->deleter = DeleterOf<T>();
  return detail::ObjectUnsafe::ObjectPtrFromOwned<T>(header);
}

}  // namespace tether

template <typename T, typename... Args>
inline ObjectPtr<T> make_object(Args&&... args) {
  return tether::MakeObject<T>(sizeof(T), std::forward<Args>(args)...);
}

template <typename T, typename... Args>
inline Arc<T> make_arc(Args&&... args) {
  return detail::ObjectUnsafe::ArcFromObjectPtr<T>(make_object<T>(std::forward<Args>(args)...));
}

// An ArrayType followed, at sizeof(ArrayType), by room for num_elems elements left uninitialised.
template <typename ArrayType, typename ElemType, typename... Args>
inline ObjectPtr<ArrayType> make_inplace_array_object(size_t num_elems, Args&&... args) {
  static_assert(
      alignof(ArrayType) % alignof(ElemType) == 0 && sizeof(ArrayType) % alignof(ElemType) == 0,
      "element alignment constraint");
  constexpr size_t kAlign = alignof(ArrayType);
  constexpr size_t kMaxElems =
      (static_cast<size_t>(-1) / 2 - sizeof(ArrayType) - kAlign) / sizeof(ElemType);
  if (TVM_FFI_PREDICT_FALSE(num_elems > kMaxElems)) throw std::bad_array_new_length();
  size_t size = sizeof(ArrayType) + num_elems * sizeof(ElemType);
  size = (size + kAlign - 1) / kAlign * kAlign;
  return tether::MakeObject<ArrayType>(size, std::forward<Args>(args)...);
}

}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_MEMORY_H_
