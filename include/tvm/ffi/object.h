// SPDX-License-Identifier: Apache-2.0
// Objects, their reference counts, and the pointers and references that own them.
//
//   class PointObj : public Object {
//    public:
//     int64_t x, y;
//     PointObj(int64_t x, int64_t y) : x(x), y(y) {}
//     TVM_FFI_DECLARE_OBJECT_INFO_FINAL("demo.Point", PointObj, Object);
//   };
//   class Point : public ObjectRef {
//    public:
//     Point(int64_t x, int64_t y) { data_ = make_object<PointObj>(x, y); }
//     TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Point, ObjectRef, PointObj);
//   };
//   Point p(1, 2);        // p->x == 1, p.use_count() == 1
//
// A handle is always the address of the Object base. That need not be the start of the block: a
// class may have a vtable or other bases in front, so go from Object* to T* by static_cast only.
#ifndef TVM_FFI_OBJECT_H_
#define TVM_FFI_OBJECT_H_

#include <tvm/ffi/base_details.h>
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/type_traits.h>

#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#if defined(_MSC_VER)
#include <atomic>
#endif

namespace tvm {
namespace ffi {

// Asks a reference type for a null value whatever its constructors promise.
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

namespace details {

struct ObjectUnsafe;

// combined_ref_count: strong count in the low half, weak count in the high half. All strong
// references together hold one weak count.
constexpr uint64_t kCombinedRefCountMaskUInt32 = (static_cast<uint64_t>(1) << 32) - 1;
constexpr uint64_t kCombinedRefCountStrongOne = 1;
constexpr uint64_t kCombinedRefCountWeakOne = static_cast<uint64_t>(1) << 32;
constexpr uint64_t kCombinedRefCountBothOne = kCombinedRefCountWeakOne | kCombinedRefCountStrongOne;

template <typename TargetType>
TVM_FFI_INLINE bool IsObjectInstance(int32_t object_type_index);

// Whether a value of type index `actual` can stand where `target` is asked for.
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

}  // namespace details

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
  using namespace details;
  if (CountWord::SubRelease(&self->combined_ref_count, kCombinedRefCountWeakOne) ==
      kCombinedRefCountWeakOne) {
    ReleaseStorage(self);
  }
}

// The last strong reference was just dropped, from count `old`.
TVM_FFI_NO_INLINE inline void ReleaseLastStrong(TVMFFIObject* self, uint64_t old) {
  (void)CountWord::LoadAcquire(&self->combined_ref_count);
  if (old == details::kCombinedRefCountBothOne) {
    CallDeleter(self, kTVMFFIObjectDeleterFlagBitMaskBoth);
    return;
  }
  CallDeleter(self, kTVMFFIObjectDeleterFlagBitMaskStrong);
  DropWeak(self);
}

// Always a read-modify-write, even when the count says "alone": a dormant wrapper of a frontend may
// promote itself at any moment, and it holds no weak count that would show here.
TVM_FFI_INLINE void DropStrong(TVMFFIObject* self) {
  using namespace details;
  uint64_t old = CountWord::SubRelease(&self->combined_ref_count, kCombinedRefCountStrongOne);
  if ((old & kCombinedRefCountMaskUInt32) == 1) ReleaseLastStrong(self, old);
}

}  // namespace tether

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
    return details::IsObjectInstance<T>(header_.type_index);
  }
  int32_t type_index() const { return header_.type_index; }
  std::string GetTypeKey() const { return TypeIndexToTypeKey(header_.type_index); }
  uint64_t GetTypeKeyHash() const { return TVMFFIGetTypeInfo(header_.type_index)->type_key_hash; }
  static std::string TypeIndex2Key(int32_t tindex) { return TypeIndexToTypeKey(tindex); }

  uint64_t use_count() const {
    return tether::CountWord::Load(&header_.combined_ref_count) &
           details::kCombinedRefCountMaskUInt32;
  }
  bool unique() const { return use_count() == 1; }

  static int32_t RuntimeTypeIndex() noexcept { return TypeIndex::kTVMFFIObject; }
  static int32_t _GetOrAllocRuntimeTypeIndex() { return TypeIndex::kTVMFFIObject; }

 private:
  void IncRef() {
    tether::CountWord::Add(&header_.combined_ref_count, details::kCombinedRefCountStrongOne);
  }
  void DecRef() { tether::DropStrong(&header_); }
  void IncWeakRef() {
    tether::CountWord::Add(&header_.combined_ref_count, details::kCombinedRefCountWeakOne);
  }
  void DecWeakRef() { tether::DropWeak(&header_); }
  bool TryPromoteWeakPtr() {
    uint64_t old = tether::CountWord::Load(&header_.combined_ref_count);
    while ((old & details::kCombinedRefCountMaskUInt32) != 0) {
      if (tether::CountWord::CompareExchange(&header_.combined_ref_count, &old,
                                             old + details::kCombinedRefCountStrongOne)) {
        return true;
      }
    }
    return false;
  }

  template <typename>
  friend class ObjectPtr;
  template <typename>
  friend class WeakObjectPtr;
  friend struct details::ObjectUnsafe;
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

  ObjectPtr& operator=(const ObjectPtr& other) {
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
  friend struct details::ObjectUnsafe;
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
  friend struct details::ObjectUnsafe;
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
  friend struct details::ObjectUnsafe;
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

// Whether any Obj may be held by a Ref.
template <typename Ref, typename Obj,
          typename =
              std::enable_if_t<std::is_base_of_v<ObjectRef, Ref> && std::is_base_of_v<Object, Obj>>>
inline constexpr bool object_ref_contains_v =
    Ref::_type_container_is_exact&& std::is_base_of_v<typename Ref::ContainerType, Obj>;

namespace tether {

template <typename T>
inline constexpr bool is_unqualified_v =
    std::is_same_v<T, std::remove_cv_t<std::remove_reference_t<T>>>;

// The one registration behind the declaration macros below.
template <typename Class, typename Parent>
int32_t RegisterClass(int32_t static_type_index) {
  static_assert(!Parent::_type_final, "ParentType marked as final");
  static_assert(static_cast<int64_t>(Class::_type_child_slots) == 0 ||
                    static_cast<int64_t>(Parent::_type_child_slots) == 0 ||
                    static_cast<int64_t>(Class::_type_child_slots) <
                        static_cast<int64_t>(Parent::_type_child_slots),
                "Need to set _type_child_slots when parent specifies it.");
  TVMFFIByteArray key{Class::_type_key, std::char_traits<char>::length(Class::_type_key)};
  return TVMFFITypeGetOrAllocIndex(
      &key, static_type_index, Class::_type_depth, static_cast<int32_t>(Class::_type_child_slots),
      Class::_type_child_slots_can_overflow, Parent::_GetOrAllocRuntimeTypeIndex());
}

}  // namespace tether

// For a class that defines `static constexpr int32_t _type_index` itself.
#define TVM_FFI_DECLARE_OBJECT_INFO_STATIC(TypeKey, TypeName, ParentType)               \
  static constexpr int32_t _type_depth = ParentType::_type_depth + 1;                   \
  static int32_t _GetOrAllocRuntimeTypeIndex() {                                        \
    [[maybe_unused]] static int32_t tindex =                                            \
        ::tvm::ffi::tether::RegisterClass<TypeName, ParentType>(TypeName::_type_index); \
    return TypeName::_type_index;                                                       \
  }                                                                                     \
  static int32_t RuntimeTypeIndex() noexcept { return TypeName::_type_index; }          \
  static constexpr const char* _type_key = TypeKey

// For a class that defines `_type_key` itself; the index is allocated when the library is loaded.
// _type_index is still 0 in a static-init block that runs before it is initialised: then ask the
// table.
#define TVM_FFI_DECLARE_OBJECT_INFO_PREDEFINED_TYPE_KEY(TypeName, ParentType)            \
  static constexpr int32_t _type_depth = ParentType::_type_depth + 1;                    \
  static int32_t _GetOrAllocRuntimeTypeIndex() {                                         \
    static int32_t tindex = ::tvm::ffi::tether::RegisterClass<TypeName, ParentType>(-1); \
    return tindex;                                                                       \
  }                                                                                      \
  static int32_t RuntimeTypeIndex() noexcept {                                           \
    int32_t known = TypeName::_type_index;                                               \
    return TVM_FFI_PREDICT_TRUE(known != 0) ? known : _GetOrAllocRuntimeTypeIndex();     \
  }                                                                                      \
  static inline const int32_t _type_index = _GetOrAllocRuntimeTypeIndex()

#define TVM_FFI_DECLARE_OBJECT_INFO(TypeKey, TypeName, ParentType) \
  static constexpr const char* _type_key = TypeKey;                \
  TVM_FFI_DECLARE_OBJECT_INFO_PREDEFINED_TYPE_KEY(TypeName, ParentType)

#define TVM_FFI_DECLARE_OBJECT_INFO_FINAL(TypeKey, TypeName, ParentType) \
  [[maybe_unused]] static constexpr int _type_child_slots = 0;           \
  [[maybe_unused]] static constexpr bool _type_final = true;             \
  TVM_FFI_DECLARE_OBJECT_INFO(TypeKey, TypeName, ParentType)

#define TVM_FFI_OBJECT_REF_COMMON_(TypeName, ParentType, ObjectName, Nullable)             \
  explicit TypeName(::tvm::ffi::UnsafeInit tag) : ParentType(tag) {}                       \
  TVM_FFI_DEFINE_DEFAULT_COPY_MOVE_AND_ASSIGN(TypeName);                                   \
  using TVMFFIPointee_ =                                                                   \
      std::conditional_t<ObjectName::_type_mutable, ObjectName, const ObjectName>;         \
  TVMFFIPointee_* operator->() const { return static_cast<TVMFFIPointee_*>(data_.get()); } \
  TVMFFIPointee_* get() const { return operator->(); }                                     \
  [[maybe_unused]] static constexpr bool _type_is_nullable = Nullable;                     \
  using ContainerType = ObjectName

#define TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(TypeName, ParentType, ObjectName)   \
  TypeName() = default;                                                                \
  explicit TypeName(::tvm::ffi::ObjectPtr<ObjectName> n) : ParentType(std::move(n)) {} \
  TVM_FFI_OBJECT_REF_COMMON_(TypeName, ParentType, ObjectName, true)

#define TVM_FFI_DEFINE_OBJECT_REF_METHODS_NOTNULLABLE(TypeName, ParentType, ObjectName) \
  TVM_FFI_OBJECT_REF_COMMON_(TypeName, ParentType, ObjectName, false)

namespace details {

template <typename T>
inline constexpr bool is_qualified_object_v =
    std::is_base_of_v<Object, std::remove_cv_t<std::remove_reference_t<T>>> &&
    !tether::is_unqualified_v<T>;

// Exact match for final classes; the reserved index range; then the ancestor at the target's depth.
template <typename TargetType>
TVM_FFI_INLINE bool IsObjectInstance(int32_t object_type_index) {
  static_assert(std::is_base_of_v<Object, TargetType>);
  if constexpr (std::is_same_v<TargetType, Object>) {
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

// The way in and out of owning pointers for language bindings and other headers.
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

}  // namespace details

template <typename T>
struct TypeToRuntimeTypeIndex<T, std::enable_if_t<std::is_base_of_v<ObjectRef, T>>> {
  static int32_t v() { return T::ContainerType::RuntimeTypeIndex(); }
};
template <typename O>
struct TypeToRuntimeTypeIndex<ObjectPtr<O>, std::enable_if_t<tether::is_unqualified_v<O>>> {
  static int32_t v() { return O::RuntimeTypeIndex(); }
};
template <typename O>
struct TypeToRuntimeTypeIndex<Arc<O>, std::enable_if_t<tether::is_unqualified_v<O>>> {
  static int32_t v() { return O::RuntimeTypeIndex(); }
};

template <typename B, typename D>
inline constexpr bool type_subsumes_v<ObjectPtr<B>, ObjectPtr<D>> = std::is_base_of_v<B, D>;
template <typename B, typename D>
inline constexpr bool type_subsumes_v<Arc<B>, Arc<D>> = std::is_base_of_v<B, D>;
template <typename B, typename D>
inline constexpr bool type_subsumes_v<ObjectPtr<B>, Arc<D>> = std::is_base_of_v<B, D>;

namespace tether {

TVM_FFI_INLINE void StoreObject(TVMFFIObject* obj, TVMFFIAny* result) {
  result->type_index = obj->type_index;
  result->zero_padding = 0;
  TVM_FFI_CLEAR_PTR_PADDING_IN_FFI_ANY(result);
  result->v_obj = obj;
}

// A copy of a cell, part by part as cells are stored. Loaded in one piece, a cell that was just
// stored would stall the processor; and compilers keep the parts in registers.
TVM_FFI_INLINE TVMFFIAny CopyCell(const TVMFFIAny& cell) {
  TVMFFIAny copy;
  copy.type_index = cell.type_index;
  copy.zero_padding = cell.zero_padding;
  copy.v_int64 = cell.v_int64;
  return copy;
}

TVM_FFI_INLINE void SwapCells(TVMFFIAny* a, TVMFFIAny* b) {
  TVMFFIAny old = CopyCell(*a);
  *a = CopyCell(*b);
  *b = CopyCell(old);
}

TVM_FFI_INLINE void StoreNone(TVMFFIAny* result) {
  result->type_index = TypeIndex::kTVMFFINone;
  result->zero_padding = 0;
  result->v_int64 = 0;
}

TVM_FFI_INLINE void StoreObjectOrNone(TVMFFIObject* obj, TVMFFIAny* result) {
  if (obj != nullptr) {
    StoreObject(obj, result);
  } else {
    StoreNone(result);
  }
}

template <typename O>
TVM_FFI_INLINE bool HoldsInstance(const TVMFFIAny* src) {
  return src->type_index >= TypeIndex::kTVMFFIStaticObjectBegin &&
         details::IsObjectInstance<O>(src->type_index);
}

// Takes the object out of an owning cell, which becomes None. None gives null.
TVM_FFI_INLINE Object* TakeObject(TVMFFIAny* src) {
  if (src->type_index == TypeIndex::kTVMFFINone) return nullptr;
  auto* obj = reinterpret_cast<Object*>(src->v_obj);
  StoreNone(src);
  return obj;
}

TVM_FFI_INLINE TVMFFIObject* ObjectOrNull(const TVMFFIAny* src) {
  return src->type_index == TypeIndex::kTVMFFINone ? nullptr : src->v_obj;
}

}  // namespace tether

// Traits of references: instance check on the container type, None for null where nullable.
template <typename TObjRef>
struct ObjectRefTypeTraitsBase : public TypeTraitsBase {
  static constexpr int32_t field_static_type_index = TypeIndex::kTVMFFIObject;
  using ContainerType = typename TObjRef::ContainerType;

  TVM_FFI_INLINE static void CopyToAnyView(const TObjRef& src, TVMFFIAny* result) {
    TVMFFIObject* obj = details::ObjectUnsafe::TVMFFIObjectPtrFromObjectRef(src);
    if constexpr (TObjRef::_type_is_nullable) {
      tether::StoreObjectOrNone(obj, result);
    } else {
      tether::StoreObject(obj, result);
    }
  }
  TVM_FFI_INLINE static void MoveToAny(TObjRef src, TVMFFIAny* result) {
    TVMFFIObject* obj = details::ObjectUnsafe::MoveObjectRefToTVMFFIObjectPtr(std::move(src));
    if constexpr (TObjRef::_type_is_nullable) {
      tether::StoreObjectOrNone(obj, result);
    } else {
      tether::StoreObject(obj, result);
    }
  }
  TVM_FFI_INLINE static bool CheckAnyStrict(const TVMFFIAny* src) {
    if constexpr (TObjRef::_type_is_nullable) {
      if (src->type_index == TypeIndex::kTVMFFINone) return true;
    }
    return tether::HoldsInstance<ContainerType>(src);
  }
  TVM_FFI_INLINE static TObjRef CopyFromAnyViewAfterCheck(const TVMFFIAny* src) {
    return details::ObjectUnsafe::ObjectRefFromObjectPtr<TObjRef>(
        details::ObjectUnsafe::ObjectPtrFromUnowned<Object>(tether::ObjectOrNull(src)));
  }
  TVM_FFI_INLINE static TObjRef MoveFromAnyAfterCheck(TVMFFIAny* src) {
    return details::ObjectUnsafe::ObjectRefFromObjectPtr<TObjRef>(
        details::ObjectUnsafe::ObjectPtrFromOwned<Object>(tether::TakeObject(src)));
  }
  TVM_FFI_INLINE static std::optional<TObjRef> TryCastFromAnyView(const TVMFFIAny* src) {
    if (ObjectRefTypeTraitsBase::CheckAnyStrict(src)) return CopyFromAnyViewAfterCheck(src);
    return std::nullopt;
  }
  static std::string TypeStr() { return ContainerType::_type_key; }
  static std::string TypeSchema() { return tether::Schema(ContainerType::_type_key); }
};

template <typename TObjRef>
struct TypeTraits<TObjRef, std::enable_if_t<std::is_base_of_v<ObjectRef, TObjRef> &&
                                            use_default_type_traits_v<TObjRef>>>
    : public ObjectRefTypeTraitsBase<TObjRef> {};

// A reference that other values convert into, through TypeTraits<Ref>::ConvertFallbackValue.
template <typename ObjectRefType, typename... FallbackTypes>
struct ObjectRefWithFallbackTraitsBase : public ObjectRefTypeTraitsBase<ObjectRefType> {
  static std::optional<ObjectRefType> TryCastFromAnyView(const TVMFFIAny* src) {
    if (auto ref = ObjectRefTypeTraitsBase<ObjectRefType>::TryCastFromAnyView(src)) return ref;
    return tether::TryFallbacks<ObjectRefType, FallbackTypes...>(src);
  }
};

namespace tether {

// Traits of ObjectPtr<O> and Arc<O>. Nothing here needs O complete until a member is used.
template <typename Ptr, typename O, bool kNullable>
struct OwningPtrTraits : public TypeTraitsBase {
  static constexpr int32_t field_static_type_index = TypeIndex::kTVMFFIObject;

  TVM_FFI_INLINE static void CopyToAnyView(const Ptr& src, TVMFFIAny* result) {
    StoreObjectOrNone(details::ObjectUnsafe::TVMFFIObjectPtrFromObjectPtr<O>(src), result);
  }
  TVM_FFI_INLINE static void MoveToAny(Ptr src, TVMFFIAny* result) {
    StoreObjectOrNone(details::ObjectUnsafe::MoveObjectPtrToTVMFFIObjectPtr<O>(std::move(src)),
                      result);
  }
  TVM_FFI_INLINE static bool CheckAnyStrict(const TVMFFIAny* src) {
    if (kNullable && src->type_index == TypeIndex::kTVMFFINone) return true;
    return HoldsInstance<O>(src);
  }
  TVM_FFI_INLINE static Ptr CopyFromAnyViewAfterCheck(const TVMFFIAny* src) {
    return Wrap(details::ObjectUnsafe::ObjectPtrFromUnowned<O>(ObjectOrNull(src)));
  }
  TVM_FFI_INLINE static Ptr MoveFromAnyAfterCheck(TVMFFIAny* src) {
    return Wrap(details::ObjectUnsafe::ObjectPtrFromOwned<O>(TakeObject(src)));
  }
  TVM_FFI_INLINE static std::optional<Ptr> TryCastFromAnyView(const TVMFFIAny* src) {
    if (CheckAnyStrict(src)) return CopyFromAnyViewAfterCheck(src);
    return std::nullopt;
  }
  static std::string TypeStr() { return O::_type_key; }
  static std::string TypeSchema() {
    std::string schema = Schema(O::_type_key);
    return kNullable ? Schema("Optional", {schema}) : schema;
  }

 private:
  TVM_FFI_INLINE static Ptr Wrap(ObjectPtr<O>&& ptr) {
    if constexpr (kNullable) {
      return std::move(ptr);
    } else {
      return details::ObjectUnsafe::ArcFromObjectPtr<O>(std::move(ptr));
    }
  }
};

// Traits of O* and const O*: a borrowed view, a new reference when stored.
template <typename Ptr, typename O>
struct RawObjectPtrTraits : public TypeTraitsBase {
  TVM_FFI_INLINE static void CopyToAnyView(const Ptr& src, TVMFFIAny* result) {
    StoreObject(details::ObjectUnsafe::GetHeader(src), result);
  }
  TVM_FFI_INLINE static void MoveToAny(Ptr src, TVMFFIAny* result) {
    CopyToAnyView(src, result);
    details::ObjectUnsafe::IncRefObjectHandle(result->v_obj);
  }
  TVM_FFI_INLINE static bool CheckAnyStrict(const TVMFFIAny* src) { return HoldsInstance<O>(src); }
  TVM_FFI_INLINE static Ptr CopyFromAnyViewAfterCheck(const TVMFFIAny* src) {
    if constexpr (!std::is_const_v<std::remove_pointer_t<Ptr>>) {
      static_assert(O::_type_mutable, "TObject must be mutable to enable cast from Any");
    }
    return details::ObjectUnsafe::RawObjectPtrFromUnowned<O>(src->v_obj);
  }
  TVM_FFI_INLINE static std::optional<Ptr> TryCastFromAnyView(const TVMFFIAny* src) {
    if (CheckAnyStrict(src)) return CopyFromAnyViewAfterCheck(src);
    return std::nullopt;
  }
  static std::string TypeStr() { return O::_type_key; }
  static std::string TypeSchema() { return Schema(O::_type_key); }
};

}  // namespace tether

template <typename O>
struct TypeTraits<ObjectPtr<O>,
                  std::enable_if_t<is_object_subclass_v<O> && tether::is_unqualified_v<O>>>
    : public tether::OwningPtrTraits<ObjectPtr<O>, O, true> {};

template <typename O>
struct TypeTraits<Arc<O>, std::enable_if_t<is_object_subclass_v<O> && tether::is_unqualified_v<O>>>
    : public tether::OwningPtrTraits<Arc<O>, O, false> {};

template <typename O>
struct TypeTraits<O*, std::enable_if_t<std::is_base_of_v<Object, O>>>
    : public tether::RawObjectPtrTraits<O*, std::remove_const_t<O>> {};

template <typename RefType>
bool ObjectRef::Is() const {
  if (data_ == nullptr) return RefType::_type_is_nullable;
  TVMFFIAny cell;
  tether::StoreObject(details::ObjectUnsafe::GetHeader(data_.get()), &cell);
  return TypeTraits<RefType>::CheckAnyStrict(&cell);
}

template <typename RefType, typename>
std::optional<RefType> ObjectRef::as() const& {
  if (!Is<RefType>()) return std::nullopt;
  return details::ObjectUnsafe::ObjectRefFromObjectPtr<RefType>(data_);
}

template <typename RefType, typename>
std::optional<RefType> ObjectRef::as() && {
  if (!Is<RefType>()) return std::nullopt;
  return details::ObjectUnsafe::ObjectRefFromObjectPtr<RefType>(std::move(data_));
}

}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_OBJECT_H_
