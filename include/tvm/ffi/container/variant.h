// SPDX-License-Identifier: Apache-2.0
// Variant<A, B, ...>: a value of one of the listed types, stored as one Any.
//
//   Variant<int, String> v = 1;
//   v = String("one");
//   if (auto s = v.as<String>()) use(*s);
//   v.get<int>();               // TypeError
#ifndef TVM_FFI_CONTAINER_VARIANT_H_
#define TVM_FFI_CONTAINER_VARIANT_H_

#include <tvm/ffi/any.h>
#include <tvm/ffi/container/container_detail.h>
#include <tvm/ffi/optional.h>

#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace tvm {
namespace ffi {

template <typename... V>
class Variant {
 public:
  static_assert(detail::all_storage_enabled_v<V...>,
                "All types used in Variant<...> must be compatible with Any");
  static constexpr bool _type_container_is_exact = false;

  // Exactly an alternative, or a reference derived from one; no conversions.
  template <typename T>
  static constexpr bool variant_contains_v = (type_subsumes_v<V, T> || ...);
  template <typename T>
  using enable_if_variant_contains_t = std::enable_if_t<variant_contains_v<T>>;

  TVM_FFI_DEFINE_DEFAULT_COPY_MOVE_AND_ASSIGN(Variant);
  template <typename T, typename = enable_if_variant_contains_t<T>>
  Variant(T other) : data_(std::move(other)) {}  // NOLINT(*)
  template <typename T, typename = enable_if_variant_contains_t<T>>
  TVM_FFI_INLINE Variant& operator=(T other) {
    data_ = Any(std::move(other));
    return *this;
  }

  // Without conversion.
  template <typename T, typename = enable_if_variant_contains_t<T>>
  TVM_FFI_INLINE std::optional<T> as() const {
    return data_.as<T>();
  }
  template <typename T, typename = std::enable_if_t<std::is_base_of_v<Object, T>>>
  TVM_FFI_INLINE const T* as() const {
    return data_.as<T>();
  }

  // The value as a T, or a TypeError.
  template <typename T, typename = enable_if_variant_contains_t<T>>
  TVM_FFI_INLINE T get() const& {
    if constexpr (std::is_same_v<T, Any>) {
      return data_;
    } else {
      return data_.template cast<T>();
    }
  }
  template <typename T, typename = enable_if_variant_contains_t<T>>
  TVM_FFI_INLINE T get() && {
    if constexpr (std::is_same_v<T, Any>) {
      return std::move(data_);
    } else {
      return std::move(data_).template cast<T>();
    }
  }

  std::string GetTypeKey() const { return data_.GetTypeKey(); }
  // Same value cell: equal plain values, or one and the same object.
  bool same_as(const Variant& other) const { return data_.same_as(other.data_); }

 private:
  struct FromCell {};
  Variant(FromCell, Any&& data) : data_(std::move(data)) {}

  const Object* ObjectOrNull() const {
    static_assert(detail::all_object_ref_v<V...>,
                  "All types used in Variant<...> must be derived from ObjectRef to enable "
                  "ObjectPtrHash/ObjectPtrEqual");
    return data_ == nullptr ? nullptr : detail::AnyUnsafe::ObjectPtrFromAnyAfterCheck(data_);
  }

  friend struct TypeTraits<Variant<V...>>;
  friend struct ObjectPtrHash;
  friend struct ObjectPtrEqual;

  Any data_;
};

template <typename... V>
struct TypeTraits<Variant<V...>> : public TypeTraitsBase {
  TVM_FFI_INLINE static void CopyToAnyView(const Variant<V...>& src, TVMFFIAny* result) {
    *result = AnyView(src.data_).CopyToTVMFFIAny();
  }
  TVM_FFI_INLINE static void MoveToAny(Variant<V...> src, TVMFFIAny* result) {
    *result = detail::AnyUnsafe::MoveAnyToTVMFFIAny(std::move(src.data_));
  }
  TVM_FFI_INLINE static bool CheckAnyStrict(const TVMFFIAny* src) { return (Holds<V>(src) || ...); }
  TVM_FFI_INLINE static Variant<V...> CopyFromAnyViewAfterCheck(const TVMFFIAny* src) {
    return Wrap(Any(AnyView::CopyFromTVMFFIAny(*src)));
  }
  TVM_FFI_INLINE static Variant<V...> MoveFromAnyAfterCheck(TVMFFIAny* src) {
    return Wrap(detail::AnyUnsafe::MoveTVMFFIAnyToAny(src));
  }
  // As it stands if that fits an alternative; else the first alternative it converts to.
  static std::optional<Variant<V...>> TryCastFromAnyView(const TVMFFIAny* src) {
    if (CheckAnyStrict(src)) return CopyFromAnyViewAfterCheck(src);
    std::optional<Variant<V...>> result;
    (void)(TryConvert<V>(src, &result) || ...);
    return result;
  }
  static std::string TypeStr() { return detail::ContainerTypeStr<V...>("Variant"); }
  static std::string TypeSchema() {
    return tether::Schema("Variant", {&detail::TypeSchema<V>::v...});
  }

 private:
  TVM_FFI_INLINE static Variant<V...> Wrap(Any&& data) {
    return Variant<V...>(typename Variant<V...>::FromCell{}, std::move(data));
  }
  template <typename T>
  TVM_FFI_INLINE static bool Holds(const TVMFFIAny* src) {
    if constexpr (std::is_same_v<T, Any>) {
      return true;
    } else {
      return TypeTraits<T>::CheckAnyStrict(src);
    }
  }
  template <typename T>
  static bool TryConvert(const TVMFFIAny* src, std::optional<Variant<V...>>* result) {
    if constexpr (!std::is_same_v<T, Any>) {
      if (std::optional<T> value = TypeTraits<T>::TryCastFromAnyView(src)) {
        *result = Wrap(Any(*std::move(value)));
        return true;
      }
    }
    return false;
  }
};

template <typename... V, typename T>
inline constexpr bool type_subsumes_v<Variant<V...>, T> = std::is_same_v<Variant<V...>, T> ||
                                                          (type_subsumes_v<V, T> || ...);

template <typename... V>
TVM_FFI_INLINE size_t ObjectPtrHash::operator()(const Variant<V...>& a) const {
  return std::hash<const Object*>()(a.ObjectOrNull());
}

template <typename... V>
TVM_FFI_INLINE bool ObjectPtrEqual::operator()(const Variant<V...>& a,
                                               const Variant<V...>& b) const {
  return a.ObjectOrNull() == b.ObjectOrNull();
}

}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_CONTAINER_VARIANT_H_
