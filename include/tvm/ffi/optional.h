// SPDX-License-Identifier: Apache-2.0
// Optional<T>: a T or nothing, stored the way T itself is.
//
//   Optional<int> n = 3;  n.value_or(0);  *n;
//   Optional<Point> p = std::nullopt;           // one null pointer
//
// Layout: references and owning pointers are one pointer, null for nothing; other storable types
// are one Any, None for nothing; the rest a std::optional. A null inside therefore reads as
// nothing.
#ifndef TVM_FFI_OPTIONAL_H_
#define TVM_FFI_OPTIONAL_H_

#include <tvm/ffi/any.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/object.h>
#include <tvm/ffi/string.h>

#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace tvm {
namespace ffi {

template <typename T>
inline constexpr bool is_optional_type_v = false;
template <typename T>
inline constexpr bool is_optional_type_v<Optional<T>> = true;

template <typename T>
inline constexpr bool is_object_ptr_type_v = false;
template <typename T>
inline constexpr bool is_object_ptr_type_v<ObjectPtr<T>> = true;

template <typename T>
inline constexpr bool is_arc_type_v = false;
template <typename T>
inline constexpr bool is_arc_type_v<Arc<T>> = true;

template <typename T>
inline constexpr bool use_object_ref_optional_v =
    std::is_base_of_v<ObjectRef, T> && !is_optional_type_v<T>;

// The three kinds kept as one pointer.
template <typename T>
inline constexpr bool use_object_ptr_optional_v =
    use_object_ref_optional_v<T> || is_object_ptr_type_v<T> || is_arc_type_v<T>;

template <typename T>
inline constexpr bool use_default_type_traits_v<Optional<T>> = false;

namespace tether {

// The spelling is that of the interface.
inline constexpr const char* kEmptyOptional = "Back optional access";

[[noreturn]] TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE inline void ThrowEmptyOptional(const char* text) {
  TVM_FFI_THROW(RuntimeError) << text;
}

// What every form of Optional<T> has in common. Self provides has_value(), Get() and Take(), and
// SameStorage(other), which is true only where equality then follows from identity. kEmptyText is
// the message of value() on nothing.
template <typename Self, typename T>
class OptionalApi {
 public:
  using value_type = T;

  explicit operator bool() const noexcept { return self().has_value(); }
  template <typename U>
  T value_or(U&& default_value) const {
    return self().has_value() ? T(self().Get()) : T(std::forward<U>(default_value));
  }

  // The return types are those of T's own operators, so they are only looked at when used.
  auto operator==(const Self& other) const {
    using Result = decltype(std::declval<const T&>() == std::declval<const T&>());
    if (self().SameStorage(other)) return Result(true);
    if (!self().has_value() || !other.has_value()) {
      return Result(self().has_value() == other.has_value());
    }
    return Result(self().Get() == other.Get());
  }
  auto operator!=(const Self& other) const {
    using Result = decltype(std::declval<const T&>() != std::declval<const T&>());
    if (self().SameStorage(other)) return Result(false);
    if (!self().has_value() || !other.has_value()) {
      return Result(self().has_value() != other.has_value());
    }
    return Result(self().Get() != other.Get());
  }
  auto operator==(const std::optional<T>& other) const { return *this == Self(other); }
  auto operator!=(const std::optional<T>& other) const { return *this != Self(other); }
  template <typename U>
  auto operator==(const U& other) const {
    using Result = decltype(std::declval<const T&>() == other);
    return self().has_value() ? Result(self().Get() == other) : Result(false);
  }
  template <typename U>
  auto operator!=(const U& other) const {
    using Result = decltype(std::declval<const T&>() != other);
    return self().has_value() ? Result(self().Get() != other) : Result(true);
  }
  bool operator==(std::nullopt_t) const noexcept { return !self().has_value(); }
  bool operator!=(std::nullopt_t) const noexcept { return self().has_value(); }

 protected:
  void CheckHasValue() const {
    if (TVM_FFI_PREDICT_FALSE(!self().has_value())) ThrowEmptyOptional(Self::kEmptyText);
  }

 private:
  const Self& self() const { return static_cast<const Self&>(*this); }
};

// The forms that return their value by copy or move: all but std::optional. Self also provides
// CopyToView(cell) and MoveTo(cell).
template <typename Self, typename T>
class OptionalByValueApi : public OptionalApi<Self, T> {
 public:
  // The content as a U without conversion: a std::optional, or a pointer if U is an object class.
  // Nothing reads as None.
  template <typename U>
  auto as() const {
    return View().template as<U>();
  }
  // The same, or a TypeError. The && form moves the content out, on success only.
  template <typename U>
  U as_or_throw() const& {
    return View().template as_or_throw<U>();
  }
  template <typename U>
  U as_or_throw() && {
    if constexpr (std::is_same_v<U, Any>) {
      return Any(std::move(self()));
    } else if constexpr (TypeTraits<U>::storage_enabled && !std::is_pointer_v<U>) {
      TVMFFIAny cell = View().CopyToTVMFFIAny();
      if (TVM_FFI_PREDICT_FALSE(!TypeTraits<U>::CheckAnyStrict(&cell))) ThrowBadAs<U>(&cell);
      self().MoveTo(&cell);
      return TypeTraits<U>::MoveFromAnyAfterCheck(&cell);
    } else {
      return View().template as_or_throw<U>();
    }
  }

  T value() const& {
    this->CheckHasValue();
    return self().Get();
  }
  T value() && {
    this->CheckHasValue();
    return self().Take();
  }
  T operator*() const& noexcept { return self().Get(); }
  T operator*() && noexcept { return self().Take(); }

  using OptionalApi<Self, T>::operator==;
  using OptionalApi<Self, T>::operator!=;
  bool operator==(std::nullptr_t) const noexcept { return !self().has_value(); }
  bool operator!=(std::nullptr_t) const noexcept { return self().has_value(); }

 private:
  const Self& self() const { return static_cast<const Self&>(*this); }
  Self& self() { return static_cast<Self&>(*this); }
  AnyView View() const {
    TVMFFIAny cell;
    self().CopyToView(&cell);
    return AnyView::CopyFromTVMFFIAny(cell);
  }
};

}  // namespace tether

// A reference: null is nothing. One pointer, like the reference, but not an ObjectRef itself.
template <typename T>
class Optional<T, std::enable_if_t<use_object_ref_optional_v<T>>>
    : public tether::OptionalByValueApi<Optional<T>, T> {
  using Api = tether::OptionalByValueApi<Optional<T>, T>;

 public:
  using ContainerType = typename T::ContainerType;

  Optional() = default;
  TVM_FFI_DEFINE_DEFAULT_COPY_MOVE_AND_ASSIGN(Optional);
  Optional(std::nullopt_t) {}                     // NOLINT(*)
  Optional(std::nullptr_t) {}                     // NOLINT(*)
  explicit Optional(UnsafeInit) {}                // NOLINT(*)
  Optional(T other) { Store(std::move(other)); }  // NOLINT(*)
  Optional(std::optional<T> other) {              // NOLINT(*)
    if (other.has_value()) Store(*std::move(other));
  }
  Optional& operator=(T other) {
    Store(std::move(other));
    return *this;
  }
  Optional& operator=(std::nullopt_t) {
    data_.reset();
    return *this;
  }
  Optional& operator=(std::nullptr_t) {
    data_.reset();
    return *this;
  }

  bool has_value() const noexcept { return data_ != nullptr; }
  bool defined() const noexcept { return has_value(); }
  auto get() const {
    using Pointee =
        std::conditional_t<ContainerType::_type_mutable, ContainerType, const ContainerType>;
    return static_cast<Pointee*>(data_.get());
  }
  auto operator->() const { return get(); }
  bool same_as(const Optional& other) const { return data_ == other.data_; }
  bool same_as(const ObjectRef& other) const { return data_.get() == other.get(); }
  bool unique() const { return data_.unique(); }
  int use_count() const { return data_.use_count(); }
  using Api::operator bool;
  using Api::operator*;
  using Api::operator==;
  using Api::operator!=;

 private:
  static constexpr const char* kEmptyText = tether::kEmptyOptional;
  void Store(T&& other) {
    data_ = detail::ObjectUnsafe::ObjectPtrFromObjectRef<Object>(std::move(other));
  }
  T Get() const { return detail::ObjectUnsafe::ObjectRefFromObjectPtr<T>(data_); }
  T Take() { return detail::ObjectUnsafe::ObjectRefFromObjectPtr<T>(std::move(data_)); }
  bool SameStorage(const Optional& other) const { return data_ == other.data_; }
  void CopyToView(TVMFFIAny* out) const {
    tether::StoreObjectOrNone(detail::ObjectUnsafe::TVMFFIObjectPtrFromObjectPtr(data_), out);
  }
  void MoveTo(TVMFFIAny* out) {
    tether::StoreObjectOrNone(
        detail::ObjectUnsafe::MoveObjectPtrToTVMFFIObjectPtr(std::move(data_)), out);
  }
  template <typename, typename>
  friend class tether::OptionalApi;
  template <typename, typename>
  friend class tether::OptionalByValueApi;
  template <typename, typename>
  friend struct TypeTraits;
  ObjectPtr<Object> data_;
};

namespace tether {

template <typename T>
struct OwningPtrPointee;
template <typename O>
struct OwningPtrPointee<ObjectPtr<O>> {
  using type = O;
};
template <typename O>
struct OwningPtrPointee<Arc<O>> {
  using type = O;
};

}  // namespace tether

// An ObjectPtr or Arc: null is nothing.
template <typename T>
class Optional<T, std::enable_if_t<is_object_ptr_type_v<T> || is_arc_type_v<T>>>
    : public ObjectPtr<typename tether::OwningPtrPointee<T>::type>,
      public tether::OptionalByValueApi<Optional<T>, T> {
  using Pointee = typename tether::OwningPtrPointee<T>::type;
  using Base = ObjectPtr<Pointee>;
  using Api = tether::OptionalByValueApi<Optional<T>, T>;

 public:
  using ContainerType = Pointee;

  Optional() = default;
  TVM_FFI_DEFINE_DEFAULT_COPY_MOVE_AND_ASSIGN(Optional);
  Optional(std::nullopt_t) {}                    // NOLINT(*)
  Optional(std::nullptr_t) {}                    // NOLINT(*)
  Optional(T other) : Base(std::move(other)) {}  // NOLINT(*)
  Optional(std::optional<T> other) {             // NOLINT(*)
    if (other.has_value()) *this = *std::move(other);
  }
  Optional& operator=(T other) {
    Base::operator=(std::move(other));
    return *this;
  }
  Optional& operator=(std::nullopt_t) {
    Base::reset();
    return *this;
  }
  Optional& operator=(std::nullptr_t) {
    Base::reset();
    return *this;
  }

  bool has_value() const noexcept { return Base::get() != nullptr; }
  bool same_as(const Optional& other) const { return Base::get() == other.get(); }
  using Api::operator bool;
  using Api::operator*;
  using Api::operator==;
  using Api::operator!=;

 private:
  static constexpr const char* kEmptyText = "Bad optional access";
  static T Wrap(Base&& ptr) {
    if constexpr (is_arc_type_v<T>) {
      return detail::ObjectUnsafe::ArcFromObjectPtr<Pointee>(std::move(ptr));
    } else {
      return std::move(ptr);
    }
  }
  T Get() const { return Wrap(Base(static_cast<const Base&>(*this))); }
  T Take() { return Wrap(Base(std::move(static_cast<Base&>(*this)))); }
  bool SameStorage(const Optional& other) const { return same_as(other); }
  void CopyToView(TVMFFIAny* out) const {
    tether::StoreObjectOrNone(detail::ObjectUnsafe::TVMFFIObjectPtrFromObjectPtr<Pointee>(*this),
                              out);
  }
  void MoveTo(TVMFFIAny* out) {
    tether::StoreObjectOrNone(
        detail::ObjectUnsafe::MoveObjectPtrToTVMFFIObjectPtr<Pointee>(std::move(*this)), out);
  }
  template <typename, typename>
  friend class tether::OptionalApi;
  template <typename, typename>
  friend class tether::OptionalByValueApi;
  template <typename, typename>
  friend struct TypeTraits;
};

// Any other storable type: None is nothing.
template <typename T>
class Optional<T, std::enable_if_t<TypeTraits<T>::storage_enabled && !use_object_ptr_optional_v<T>>>
    : public tether::OptionalByValueApi<Optional<T>, T> {
  using Api = tether::OptionalByValueApi<Optional<T>, T>;

 public:
  Optional() = default;
  TVM_FFI_DEFINE_DEFAULT_COPY_MOVE_AND_ASSIGN(Optional);
  Optional(std::nullopt_t) {}                     // NOLINT(*)
  Optional(T other) : data_(std::move(other)) {}  // NOLINT(*)
  Optional(std::optional<T> other) {              // NOLINT(*)
    if (other.has_value()) data_ = *std::move(other);
  }
  Optional& operator=(T other) {
    data_ = std::move(other);
    return *this;
  }
  Optional& operator=(std::nullopt_t) {
    data_.reset();
    return *this;
  }
  Optional& operator=(std::nullptr_t) {
    data_.reset();
    return *this;
  }

  bool has_value() const noexcept { return data_ != nullptr; }
  bool same_as(const Optional& other) const { return data_.same_as(other.data_); }
  template <typename U,
            typename = std::enable_if_t<std::is_same_v<U, T> && std::is_base_of_v<ObjectRef, U>>>
  bool same_as(const U& other) const {
    return data_.same_as(static_cast<const ObjectRef&>(other));
  }
  // As members of this class they match better than the comparisons std::optional brings along.
  using Api::operator==;
  using Api::operator!=;

 private:
  static constexpr const char* kEmptyText = tether::kEmptyOptional;
  T Get() const { return detail::AnyUnsafe::CopyFromAnyViewAfterCheck<T>(data_); }
  T Take() {
    if constexpr (std::is_pointer_v<T>) {
      return Get();
    } else {
      return detail::AnyUnsafe::MoveFromAnyAfterCheck<T>(std::move(data_));
    }
  }
  static bool SameStorage(const Optional&) { return false; }
  void CopyToView(TVMFFIAny* out) const { *out = AnyView(data_).CopyToTVMFFIAny(); }
  void MoveTo(TVMFFIAny* out) { *out = detail::AnyUnsafe::MoveAnyToTVMFFIAny(std::move(data_)); }
  template <typename, typename>
  friend class tether::OptionalApi;
  template <typename, typename>
  friend class tether::OptionalByValueApi;
  template <typename, typename>
  friend struct TypeTraits;
  Any data_;
};

// A type that cannot be stored in Any, such as a borrowed tensor.
template <typename T>
class Optional<T,
               std::enable_if_t<!TypeTraits<T>::storage_enabled && !use_object_ptr_optional_v<T>>>
    : public tether::OptionalApi<Optional<T>, T> {
  using Api = tether::OptionalApi<Optional<T>, T>;

 public:
  Optional() = default;
  TVM_FFI_DEFINE_DEFAULT_COPY_MOVE_AND_ASSIGN(Optional);
  Optional(std::nullopt_t) {}                                    // NOLINT(*)
  Optional(T other) : data_(std::move(other)) {}                 // NOLINT(*)
  Optional(std::optional<T> other) : data_(std::move(other)) {}  // NOLINT(*)
  Optional& operator=(T other) {
    data_ = std::move(other);
    return *this;
  }
  Optional& operator=(std::nullopt_t) {
    data_ = std::nullopt;
    return *this;
  }

  bool has_value() const noexcept { return data_.has_value(); }
  const T& value() const& {
    Api::CheckHasValue();
    return *data_;
  }
  T&& value() && {
    Api::CheckHasValue();
    return *std::move(data_);
  }
  const T& operator*() const& noexcept { return *data_; }
  T&& operator*() && noexcept { return *std::move(data_); }
  using Api::operator==;
  using Api::operator!=;

 private:
  static constexpr const char* kEmptyText = tether::kEmptyOptional;
  const T& Get() const { return *data_; }
  static bool SameStorage(const Optional&) { return false; }
  void CopyToView(TVMFFIAny* out) const {
    if (data_.has_value()) {
      TypeTraits<T>::CopyToAnyView(*data_, out);
    } else {
      tether::StoreNone(out);
    }
  }
  void MoveTo(TVMFFIAny* out) {
    if (data_.has_value()) {
      TypeTraits<T>::MoveToAny(*std::move(data_), out);
    } else {
      tether::StoreNone(out);
    }
  }
  template <typename, typename>
  friend class tether::OptionalApi;
  template <typename, typename>
  friend struct TypeTraits;
  std::optional<T> data_;
};

namespace tether {
template <typename T>
struct NarrowInteger<Optional<T>> : public NarrowInteger<T> {};
}  // namespace tether

template <typename T>
struct TypeTraits<Optional<T>> : public TypeTraitsBase {
  static constexpr bool storage_enabled = TypeTraits<T>::storage_enabled;

  TVM_FFI_INLINE static void CopyToAnyView(const Optional<T>& src, TVMFFIAny* result) {
    src.CopyToView(result);
  }
  TVM_FFI_INLINE static void MoveToAny(Optional<T> src, TVMFFIAny* result) { src.MoveTo(result); }
  TVM_FFI_INLINE static bool CheckAnyStrict(const TVMFFIAny* src) {
    return src->type_index == TypeIndex::kTVMFFINone || TypeTraits<T>::CheckAnyStrict(src);
  }
  TVM_FFI_INLINE static Optional<T> CopyFromAnyViewAfterCheck(const TVMFFIAny* src) {
    if (src->type_index == TypeIndex::kTVMFFINone) return Optional<T>(std::nullopt);
    return Optional<T>(TypeTraits<T>::CopyFromAnyViewAfterCheck(src));
  }
  TVM_FFI_INLINE static Optional<T> MoveFromAnyAfterCheck(TVMFFIAny* src) {
    if (src->type_index == TypeIndex::kTVMFFINone) return Optional<T>(std::nullopt);
    return Optional<T>(TypeTraits<T>::MoveFromAnyAfterCheck(src));
  }
  TVM_FFI_INLINE static std::optional<Optional<T>> TryCastFromAnyView(const TVMFFIAny* src) {
    if (src->type_index == TypeIndex::kTVMFFINone) return Optional<T>(std::nullopt);
    if (auto value = TypeTraits<T>::TryCastFromAnyView(src)) return Optional<T>(*std::move(value));
    return std::nullopt;
  }
  static std::string GetMismatchTypeInfo(const TVMFFIAny* src) {
    return TypeTraits<T>::GetMismatchTypeInfo(src);
  }
  static std::string TypeStr() { return "Optional<" + TypeTraits<T>::TypeStr() + ">"; }
  static std::string TypeSchema() {
    return tether::Schema("Optional", {&TypeTraits<T>::TypeSchema});
  }
};

}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_OPTIONAL_H_
