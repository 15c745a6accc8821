// SPDX-License-Identifier: Apache-2.0
// Object, and the pointers that count references to it.
//
//   ObjectPtr<PointObj> p = make_object<PointObj>(1, 2);     // owns; may be null
//   WeakObjectPtr<PointObj> w = p;
//   if (ObjectPtr<PointObj> alive = w.lock()) alive->x = 3;
//   Arc<PointObj>                                            // as ObjectPtr, but never null
#ifndef TVM_FFI_OBJECT_PTR_H_
#define TVM_FFI_OBJECT_PTR_H_

#include <tvm/ffi/base_detail.h>
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/ref_count.h>
#include <tvm/ffi/type_traits.h>

#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>

namespace tvm {
namespace ffi {

// Asks a reference type for a null value, even if it is declared not nullable.
struct UnsafeInit {};

class Object;
class ObjectRef;
template <typename T>
class ObjectPtr;
template <typename T>
class Arc;
template <typename T>
class WeakObjectPtr;
template <typename T, typename = void>
class Optional;
template <typename... V>
class Variant;

namespace detail {

struct ObjectUnsafe;

template <typename TargetType>
TVM_FFI_INLINE bool IsObjectInstance(int32_t object_type_index);

// Whether a value of type index `actual` can be used where `target` is expected.
inline bool RuntimeTypeIndexMatch(int32_t actual, int32_t target) {
  if (actual == target || target == TypeIndex::kTVMFFIAny) return true;
  if (target == TypeIndex::kTVMFFIStr) return actual == TypeIndex::kTVMFFISmallStr;
  if (target == TypeIndex::kTVMFFIBytes) return actual == TypeIndex::kTVMFFISmallBytes;
  if (actual < TypeIndex::kTVMFFIStaticObjectBegin) return false;
  if (target == TypeIndex::kTVMFFIObject) return true;
  if (actual < target || target < TypeIndex::kTVMFFIStaticObjectBegin) return false;
  const TypeInfo* actual_info = TVMFFIGetTypeInfo(actual);
  int32_t depth = TVMFFIGetTypeInfo(target)->type_depth;
  return actual_info->type_depth > depth &&
         actual_info->type_ancestors[depth]->type_index == target;
}

}  // namespace detail

// Base of every class whose instances are shared across the boundary. No virtual functions needed.
class Object {
 protected:
  TVMFFIObject header_;

 public:
  static constexpr const char* _type_key = StaticTypeKey::kTVMFFIObject;
  static constexpr bool _type_final = false;
  static constexpr bool _type_mutable = false;
  static constexpr uint32_t _type_child_slots = 0;
  static constexpr bool _type_child_slots_can_overflow = true;
  static constexpr int32_t _type_index = TypeIndex::kTVMFFIObject;
  static constexpr int32_t _type_depth = 0;
  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindUnsupported;
  // True: subclasses must have the same kind.
  static constexpr bool _type_s_eq_hash_subclass_kind_fixed = false;

  Object() noexcept {
    header_.combined_ref_count = 0;
    header_.type_index = 0;
    header_.__padding = 0;
    header_.__ensure_align = 0;
    header_.deleter = nullptr;
  }
  // The header describes the block an object lives in, so it is never copied with the contents.
  Object(const Object&) noexcept : Object() {}
  Object& operator=(const Object&) noexcept { return *this; }

  template <typename T>
  bool IsInstance() const {
    return detail::IsObjectInstance<T>(header_.type_index);
  }
  int32_t type_index() const { return header_.type_index; }
  std::string GetTypeKey() const { return TypeIndexToTypeKey(header_.type_index); }
  uint64_t GetTypeKeyHash() const { return TVMFFIGetTypeInfo(header_.type_index)->type_key_hash; }
  static std::string TypeIndex2Key(int32_t tindex) { return TypeIndexToTypeKey(tindex); }

  uint64_t use_count() const {
    return tether::CountWord::Load(&header_.combined_ref_count) &
           detail::kCombinedRefCountMaskUInt32;
  }
  // Whether nobody else can reach the object: one strong reference and no weak one.
  bool unique() const {
    return tether::CountWord::Load(&header_.combined_ref_count) == detail::kCombinedRefCountBothOne;
  }

  static int32_t RuntimeTypeIndex() noexcept { return TypeIndex::kTVMFFIObject; }
  static int32_t _GetOrAllocRuntimeTypeIndex() { return TypeIndex::kTVMFFIObject; }

 private:
  void IncRef() {
    tether::CountWord::Add(&header_.combined_ref_count, detail::kCombinedRefCountStrongOne);
  }
  void DecRef() { tether::DropStrong(&header_); }
  void IncWeakRef() {
    tether::CountWord::Add(&header_.combined_ref_count, detail::kCombinedRefCountWeakOne);
  }
  void DecWeakRef() { tether::DropWeak(&header_); }
  bool TryPromoteWeakPtr() {
    uint64_t old = tether::CountWord::Load(&header_.combined_ref_count);
    while ((old & detail::kCombinedRefCountMaskUInt32) != 0) {
      if (tether::CountWord::CompareExchange(&header_.combined_ref_count, &old,
                                             old + detail::kCombinedRefCountStrongOne)) {
        return true;
      }
    }
    return false;
  }

  template <typename>
  friend class ObjectPtr;
  template <typename>
  friend class WeakObjectPtr;
  friend struct detail::ObjectUnsafe;
};

static_assert(sizeof(Object) == sizeof(TVMFFIObject), "Object is its header");

// Owns one strong reference, or is null.
template <typename T>
class ObjectPtr {
 public:
  ObjectPtr() = default;
  ObjectPtr(std::nullptr_t) {}  // NOLINT(*)
  ObjectPtr(const ObjectPtr& other) : ObjectPtr(other.data_) {}
  ObjectPtr(ObjectPtr&& other) noexcept : data_(other.data_) { other.data_ = nullptr; }
  template <typename U>
  ObjectPtr(const ObjectPtr<U>& other) : ObjectPtr(other.data_) {  // NOLINT(*)
    static_assert(std::is_base_of_v<T, U>, "can only assign of child class ObjectPtr to parent");
  }
  template <typename U>
  ObjectPtr(ObjectPtr<U>&& other) noexcept : data_(other.data_) {  // NOLINT(*)
    static_assert(std::is_base_of_v<T, U>, "can only assign of child class ObjectPtr to parent");
    other.data_ = nullptr;
  }
  ~ObjectPtr() { reset(); }

  ObjectPtr& operator=(const ObjectPtr& other) {  // NOLINT(bugprone-unhandled-self-assignment)
    ObjectPtr(other).swap(*this);
    return *this;
  }
  ObjectPtr& operator=(ObjectPtr&& other) noexcept {
    ObjectPtr(std::move(other)).swap(*this);
    return *this;
  }

  void swap(ObjectPtr& other) noexcept { std::swap(data_, other.data_); }
  void reset() {
    if (Object* old = data_) {
      data_ = nullptr;
      old->DecRef();
    }
  }
  T* get() const { return static_cast<T*>(data_); }
  T* operator->() const { return get(); }
  T& operator*() const { return *get(); }
  explicit operator bool() const { return data_ != nullptr; }
  int use_count() const { return data_ != nullptr ? static_cast<int>(data_->use_count()) : 0; }
  bool unique() const { return data_ != nullptr && data_->unique(); }
  bool operator==(const ObjectPtr& other) const { return data_ == other.data_; }
  bool operator!=(const ObjectPtr& other) const { return data_ != other.data_; }
  bool operator==(std::nullptr_t) const { return data_ == nullptr; }
  bool operator!=(std::nullptr_t) const { return data_ != nullptr; }

 private:
  explicit ObjectPtr(Object* data) : data_(data) {
    if (data_ != nullptr) data_->IncRef();
  }

  Object* data_{nullptr};

  template <typename>
  friend class ObjectPtr;
  template <typename>
  friend class WeakObjectPtr;
  friend class ObjectRef;
  friend struct ObjectPtrHash;
  friend struct detail::ObjectUnsafe;
};

// An ObjectPtr that is never null, except after it was moved from.
template <typename T>
class Arc : public ObjectPtr<T> {
 public:
  Arc() = delete;
  Arc(std::nullptr_t) = delete;
  explicit Arc(UnsafeInit) {}
  Arc(const Arc&) = default;
  Arc(Arc&&) noexcept = default;
  Arc& operator=(const Arc&) = default;
  Arc& operator=(Arc&&) noexcept = default;
  template <typename U, typename = std::enable_if_t<std::is_base_of_v<T, U>>>
  Arc(const Arc<U>& other) : ObjectPtr<T>(other) {}  // NOLINT(*)
  template <typename U, typename = std::enable_if_t<std::is_base_of_v<T, U>>>
  Arc(Arc<U>&& other) noexcept : ObjectPtr<T>(std::move(other)) {}  // NOLINT(*)

 private:
  using ObjectPtr<T>::reset;
  using ObjectPtr<T>::swap;
  explicit Arc(ObjectPtr<T>&& ptr) : ObjectPtr<T>(std::move(ptr)) {}
  friend struct detail::ObjectUnsafe;
};

// Keeps the storage, not the object: lock() gives a strong pointer while the object lives.
template <typename T>
class WeakObjectPtr {
 public:
  WeakObjectPtr() = default;
  WeakObjectPtr(std::nullptr_t) {}  // NOLINT(*)
  WeakObjectPtr(const WeakObjectPtr& other) : WeakObjectPtr(other.data_) {}
  WeakObjectPtr(WeakObjectPtr&& other) noexcept : data_(other.data_) { other.data_ = nullptr; }
  WeakObjectPtr(const ObjectPtr<T>& other) : WeakObjectPtr(other.data_) {}  // NOLINT(*)
  template <typename U>
  WeakObjectPtr(const WeakObjectPtr<U>& other) : WeakObjectPtr(other.data_) {  // NOLINT(*)
    static_assert(std::is_base_of_v<T, U>,
                  "can only assign of child class WeakObjectPtr to parent");
  }
  template <typename U>
  WeakObjectPtr(const ObjectPtr<U>& other) : WeakObjectPtr(other.data_) {  // NOLINT(*)
    static_assert(std::is_base_of_v<T, U>, "can only assign of child class ObjectPtr to parent");
  }
  template <typename U>
  WeakObjectPtr(WeakObjectPtr<U>&& other) noexcept : data_(other.data_) {  // NOLINT(*)
    static_assert(std::is_base_of_v<T, U>,
                  "can only assign of child class WeakObjectPtr to parent");
    other.data_ = nullptr;
  }
  ~WeakObjectPtr() { reset(); }

  WeakObjectPtr& operator=(const WeakObjectPtr& other) {
    WeakObjectPtr(other).swap(*this);
    return *this;
  }
  WeakObjectPtr& operator=(WeakObjectPtr&& other) noexcept {
    WeakObjectPtr(std::move(other)).swap(*this);
    return *this;
  }

  ObjectPtr<T> lock() const {
    ObjectPtr<T> strong;
    if (data_ != nullptr && data_->TryPromoteWeakPtr()) strong.data_ = data_;
    return strong;
  }
  void reset() {
    if (Object* old = data_) {
      data_ = nullptr;
      old->DecWeakRef();
    }
  }
  void swap(WeakObjectPtr& other) noexcept { std::swap(data_, other.data_); }
  int use_count() const { return data_ != nullptr ? static_cast<int>(data_->use_count()) : 0; }
  bool expired() const { return use_count() == 0; }

 private:
  explicit WeakObjectPtr(Object* data) : data_(data) {
    if (data_ != nullptr) data_->IncWeakRef();
  }

  Object* data_{nullptr};

  template <typename>
  friend class WeakObjectPtr;
};

namespace detail {

// Exact match for final classes; the reserved index range; then the ancestor at the target's depth.
template <typename TargetType>
TVM_FFI_INLINE bool IsObjectInstance(int32_t object_type_index) {
  static_assert(std::is_base_of_v<Object, TargetType>);
  if constexpr (std::is_same_v<std::remove_cv_t<TargetType>, Object>) {
    return true;
  } else if constexpr (TargetType::_type_final) {
    return object_type_index == TargetType::RuntimeTypeIndex();
  } else {
    constexpr int32_t slots = static_cast<int32_t>(TargetType::_type_child_slots);
    int32_t begin = TargetType::RuntimeTypeIndex();
    if constexpr (slots != 0) {
      if (object_type_index >= begin && object_type_index < begin + slots + 1) return true;
    } else {
      if (object_type_index == begin) return true;
    }
    if constexpr (!TargetType::_type_child_slots_can_overflow) return false;
    if (object_type_index < begin) return false;
    const TypeInfo* info = TVMFFIGetTypeInfo(object_type_index);
    return info->type_depth > TargetType::_type_depth &&
           info->type_ancestors[TargetType::_type_depth]->type_index == begin;
  }
}

}  // namespace detail

}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_OBJECT_PTR_H_
