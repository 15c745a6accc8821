// SPDX-License-Identifier: Apache-2.0
// ObjectRef, the base of all reference classes, and the conversions between pointers that the other
// headers and language bindings need.
//
//   ObjectRef ref = ...;
//   if (const auto* point = ref.as<PointObj>()) use(point->x);
//   TVMFFIObject* handle = detail::ObjectUnsafe::TVMFFIObjectPtrFromObjectRef(ref);
#ifndef TVM_FFI_OBJECT_REF_H_
#define TVM_FFI_OBJECT_REF_H_

#include <tvm/ffi/base_detail.h>
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/object_ptr.h>
#include <tvm/ffi/type_traits.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace tvm {
namespace ffi {

// Base of every reference class: one pointer, compared by identity.
class ObjectRef {
 public:
  using ContainerType = Object;
  static constexpr bool _type_container_is_exact = true;
  static constexpr bool _type_is_nullable = true;

  ObjectRef() = default;
  explicit ObjectRef(ObjectPtr<Object> data) : data_(std::move(data)) {}
  explicit ObjectRef(UnsafeInit) {}
  TVM_FFI_DEFINE_DEFAULT_COPY_MOVE_AND_ASSIGN(ObjectRef);

  bool same_as(const ObjectRef& other) const { return data_ == other.data_; }
  bool operator==(const ObjectRef& other) const { return data_ == other.data_; }
  bool operator!=(const ObjectRef& other) const { return data_ != other.data_; }
  bool operator<(const ObjectRef& other) const {
    return std::less<const Object*>()(data_.get(), other.data_.get());
  }
  bool defined() const { return data_ != nullptr; }
  const Object* get() const { return data_.get(); }
  const Object* operator->() const { return get(); }
  bool unique() const { return data_.unique(); }
  int use_count() const { return data_.use_count(); }
  int32_t type_index() const {
    return data_ != nullptr ? data_->type_index() : static_cast<int32_t>(TypeIndex::kTVMFFINone);
  }
  std::string GetTypeKey() const { return TypeIndexToTypeKey(type_index()); }

  template <typename ObjectType, typename = std::enable_if_t<std::is_base_of_v<Object, ObjectType>>>
  const ObjectType* as() const& {
    if (data_ == nullptr || !data_->template IsInstance<ObjectType>()) return nullptr;
    return static_cast<const ObjectType*>(data_.get());
  }
  template <typename RefType, typename = std::enable_if_t<std::is_base_of_v<ObjectRef, RefType>>>
  std::optional<RefType> as() const&;
  template <typename RefType, typename = std::enable_if_t<std::is_base_of_v<ObjectRef, RefType>>>
  std::optional<RefType> as() &&;
  // as<RefType>() or a TypeError; defined in any.h.
  template <typename RefType, typename = std::enable_if_t<std::is_base_of_v<ObjectRef, RefType>>>
  RefType as_or_throw() const&;
  template <typename RefType, typename = std::enable_if_t<std::is_base_of_v<ObjectRef, RefType>>>
  RefType as_or_throw() &&;

 protected:
  ObjectPtr<Object> data_;
  Object* get_mutable() const { return data_.get(); }

 private:
  template <typename RefType>
  bool Is() const;

  friend struct ObjectPtrHash;
  friend struct detail::ObjectUnsafe;
};

struct ObjectPtrHash {
  size_t operator()(const ObjectRef& ref) const { return operator()(ref.data_); }
  template <typename T>
  size_t operator()(const ObjectPtr<T>& ptr) const {
    return std::hash<Object*>()(ptr.data_);
  }
  template <typename... V>
  TVM_FFI_INLINE size_t operator()(const Variant<V...>& a) const;
};

struct ObjectPtrEqual {
  bool operator()(const ObjectRef& a, const ObjectRef& b) const { return a.same_as(b); }
  template <typename T>
  bool operator()(const ObjectPtr<T>& a, const ObjectPtr<T>& b) const {
    return a == b;
  }
  template <typename... V>
  TVM_FFI_INLINE bool operator()(const Variant<V...>& a, const Variant<V...>& b) const;
};

// Specialise to true to name List<Arc<X>> and the like while X is still incomplete.
template <typename T>
inline constexpr bool is_object_subclass_v = std::is_base_of_v<Object, T>;

template <typename Ref, typename Obj>
inline constexpr bool object_ref_contains_is_enabled_v =
    std::is_base_of_v<ObjectRef, Ref>&& std::is_base_of_v<Object, Obj>;

// Whether any Obj may be held by a Ref.
template <typename Ref, typename Obj,
          typename = std::enable_if_t<object_ref_contains_is_enabled_v<Ref, Obj>>>
inline constexpr bool object_ref_contains_v =
    Ref::_type_container_is_exact&& std::is_base_of_v<typename Ref::ContainerType, Obj>;

namespace tether {

template <typename T>
inline constexpr bool is_unqualified_v =
    std::is_same_v<T, std::remove_cv_t<std::remove_reference_t<T>>>;

}  // namespace tether

namespace detail {

template <typename T>
inline constexpr bool is_qualified_object_v =
    std::is_base_of_v<Object, std::remove_cv_t<std::remove_reference_t<T>>> &&
    !tether::is_unqualified_v<T>;

// Access to the inside of owning pointers, for language bindings and other headers.
struct ObjectUnsafe {
  TVM_FFI_INLINE static TVMFFIObject* GetHeader(const Object* src) {
    return const_cast<TVMFFIObject*>(&src->header_);
  }
  TVM_FFI_INLINE static TVMFFIObjectAllocHeader* GetObjectAllocHeaderFromPtr(void* body) {
    return reinterpret_cast<TVMFFIObjectAllocHeader*>(static_cast<char*>(body) -
                                                      sizeof(TVMFFIObjectAllocHeader));
  }
  // Distance from the start of a Class to its object header.
  template <typename Class>
  TVM_FFI_INLINE static int64_t GetObjectOffsetToSubclass() {
    // Any suitably aligned non-null address will do; nothing is read from it.
    auto* body = reinterpret_cast<Class*>(static_cast<uintptr_t>(4096));
    return static_cast<int64_t>(reinterpret_cast<uintptr_t>(static_cast<Object*>(body)) - 4096);
  }

  template <typename Ref>
  TVM_FFI_INLINE static Ref ObjectRefFromObjectPtr(const ObjectPtr<Object>& ptr) {
    Ref ref(UnsafeInit{});
    ref.data_ = ptr;
    return ref;
  }
  template <typename Ref>
  TVM_FFI_INLINE static Ref ObjectRefFromObjectPtr(ObjectPtr<Object>&& ptr) {
    Ref ref(UnsafeInit{});
    ref.data_ = std::move(ptr);
    return ref;
  }
  template <typename T>
  TVM_FFI_INLINE static ObjectPtr<T> ObjectPtrFromObjectRef(const ObjectRef& ref) {
    return ObjectPtr<T>(ref.data_.data_);
  }
  template <typename T>
  TVM_FFI_INLINE static ObjectPtr<T> ObjectPtrFromObjectRef(ObjectRef&& ref) {
    return ObjectPtrFromOwned<T>(std::exchange(ref.data_.data_, nullptr));
  }
  template <typename T>
  TVM_FFI_INLINE static ObjectPtr<T> ObjectPtrFromOwned(Object* raw) {
    ObjectPtr<T> ptr;
    ptr.data_ = raw;
    return ptr;
  }
  template <typename T>
  TVM_FFI_INLINE static ObjectPtr<T> ObjectPtrFromOwned(TVMFFIObject* raw) {
    return ObjectPtrFromOwned<T>(reinterpret_cast<Object*>(raw));
  }
  template <typename T>
  TVM_FFI_INLINE static ObjectPtr<T> ObjectPtrFromUnowned(Object* raw) {
    return ObjectPtr<T>(raw);
  }
  template <typename T>
  TVM_FFI_INLINE static ObjectPtr<T> ObjectPtrFromUnowned(TVMFFIObject* raw) {
    return ObjectPtr<T>(reinterpret_cast<Object*>(raw));
  }
  template <typename T>
  TVM_FFI_INLINE static Arc<T> ArcFromObjectPtr(ObjectPtr<T>&& ptr) {
    return Arc<T>(std::move(ptr));
  }
  template <typename T>
  TVM_FFI_INLINE static T* RawObjectPtrFromUnowned(TVMFFIObject* raw) {
    return static_cast<T*>(reinterpret_cast<Object*>(raw));
  }
  TVM_FFI_INLINE static void DecRefObjectHandle(TVMFFIObjectHandle handle) {
    if (handle != nullptr) tether::DropStrong(static_cast<TVMFFIObject*>(handle));
  }
  TVM_FFI_INLINE static void IncRefObjectHandle(TVMFFIObjectHandle handle) {
    tether::CountWord::Add(&static_cast<TVMFFIObject*>(handle)->combined_ref_count,
                           kCombinedRefCountStrongOne);
  }
  TVM_FFI_INLINE static Object* RawObjectPtrFromObjectRef(const ObjectRef& ref) {
    return ref.data_.data_;
  }
  TVM_FFI_INLINE static TVMFFIObject* TVMFFIObjectPtrFromObjectRef(const ObjectRef& ref) {
    return reinterpret_cast<TVMFFIObject*>(ref.data_.data_);
  }
  template <typename T>
  TVM_FFI_INLINE static TVMFFIObject* TVMFFIObjectPtrFromObjectPtr(const ObjectPtr<T>& ptr) {
    return reinterpret_cast<TVMFFIObject*>(ptr.data_);
  }
  template <typename T>
  TVM_FFI_INLINE static TVMFFIObject* MoveObjectPtrToTVMFFIObjectPtr(ObjectPtr<T>&& ptr) {
    return reinterpret_cast<TVMFFIObject*>(std::exchange(ptr.data_, nullptr));
  }
  TVM_FFI_INLINE static TVMFFIObject* MoveObjectRefToTVMFFIObjectPtr(ObjectRef&& ref) {
    return reinterpret_cast<TVMFFIObject*>(std::exchange(ref.data_.data_, nullptr));
  }
};

}  // namespace detail

}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_OBJECT_REF_H_
