// SPDX-License-Identifier: Apache-2.0
// Standard library types as arguments and results. Values are copied in both directions.
//
//   #include <tvm/ffi/extra/stl.h>
//   std::vector<int> Sorted(std::vector<int> v) { std::sort(v.begin(), v.end()); return v; }
//   TVM_FFI_DLL_EXPORT_TYPED_FUNC(sorted, Sorted)
//
// `std::vector`, `std::array`, `std::tuple` and `std::pair` travel as ffi.Array, `std::map` and
// `std::unordered_map` as ffi.Map, `std::function` as ffi.Function, `std::optional` and
// `std::variant` as what they hold. Elements may be of these types again. Only `std::vector` also
// takes an ffi.List.
#ifndef TVM_FFI_EXTRA_STL_H_
#define TVM_FFI_EXTRA_STL_H_

#include <tvm/ffi/base_detail.h>
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/list.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/container/seq_base.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/object.h>
#include <tvm/ffi/type_traits.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace tvm {
namespace ffi {

namespace tether {

// Whether a cell holds exactly what storing a T would have put there.
template <typename T>
TVM_FFI_INLINE bool StlElementFits(const TVMFFIAny* cell) {
  if constexpr (std::is_same_v<T, Any>) {
    return true;
  } else if constexpr (std::is_same_v<T, std::string>) {
    return TypeTraits<String>::CheckAnyStrict(cell);
  } else {
    return TypeTraits<T>::CheckAnyStrict(cell);
  }
}

template <typename T>
TVM_FFI_INLINE bool StlElementFits(const Any& cell) {
  return StlElementFits<T>(detail::AnyUnsafe::TVMFFIAnyPtrFromAny(cell));
}

TVM_FFI_INLINE const ArrayObj* FindArrayOfSize(const TVMFFIAny* src, size_t size) {
  if (src->type_index != TypeIndex::kTVMFFIArray) return nullptr;
  const auto* array = detail::ObjectUnsafe::RawObjectPtrFromUnowned<ArrayObj>(src->v_obj);
  return array->size() == size ? array : nullptr;
}

// Between the arguments of these types, whose schemas have a space there, unlike all others.
inline constexpr const char* kCommaSpace = ", ";

// What the traits of types that travel as a new object have in common. Self provides
// MakeObject(T) -> ObjectPtr<Object>, TryCastFromAnyView and CheckAnyStrict.
template <typename Self, typename T, int32_t kIndex>
struct StlObjectTraits : public TypeTraitsBase {
  static constexpr bool storage_enabled = false;
  static constexpr int32_t field_static_type_index = kIndex;

  static void MoveToAny(T src, TVMFFIAny* result) {
    ObjectPtr<Object> object = Self::MakeObject(std::move(src));
    StoreObjectOrNone(detail::ObjectUnsafe::MoveObjectPtrToTVMFFIObjectPtr(std::move(object)),
                      result);
  }
  template <typename U>
  static void CopyToAnyView(const U&, TVMFFIAny*) {
    static_assert(!std::is_same_v<U, U>,
                  "a view cannot own the copy it would have to make of a standard container; "
                  "use tvm::ffi::Any");
  }
  static T CopyFromAnyViewAfterCheck(const TVMFFIAny* src) {
    return *Self::TryCastFromAnyView(src);
  }
  static T MoveFromAnyAfterCheck(TVMFFIAny* src) {
    const Any dropped = detail::AnyUnsafe::MoveTVMFFIAnyToAny(src);
    return CopyFromAnyViewAfterCheck(detail::AnyUnsafe::TVMFFIAnyPtrFromAny(dropped));
  }
};

// Calls hold these arguments in an Any.
template <typename T>
inline constexpr bool passes_as_new_object_v<std::vector<T>> = true;
template <typename T, size_t N>
inline constexpr bool passes_as_new_object_v<std::array<T, N>> = true;
template <typename... T>
inline constexpr bool passes_as_new_object_v<std::tuple<T...>> = true;
template <typename A, typename B>
inline constexpr bool passes_as_new_object_v<std::pair<A, B>> = true;
template <typename K, typename V>
inline constexpr bool passes_as_new_object_v<std::map<K, V>> = true;
template <typename K, typename V>
inline constexpr bool passes_as_new_object_v<std::unordered_map<K, V>> = true;
template <typename F>
inline constexpr bool passes_as_new_object_v<std::function<F>> = true;
template <typename T>
inline constexpr bool passes_as_new_object_v<std::optional<T>> = passes_as_new_object_v<T>;
template <typename... T>
inline constexpr bool passes_as_new_object_v<std::variant<T...>> = (passes_as_new_object_v<T> ||
                                                                    ...);

}  // namespace tether

// The one type here that also takes a List.
template <typename T>
struct TypeTraits<std::vector<T>, std::enable_if_t<tether::convertible_or_any_v<T>>>
    : public tether::StlObjectTraits<TypeTraits<std::vector<T>>, std::vector<T>,
                                     TypeIndex::kTVMFFIArray> {
  static ObjectPtr<Object> MakeObject(std::vector<T> src) {
    ObjectPtr<ArrayObj> array = tether::ArrayOps::Empty(static_cast<int64_t>(src.size()));
    for (auto&& item : src) tether::SeqOps::Append(array.get(), Any(T(std::move(item))));
    return array;
  }
  static bool CheckAnyStrict(const TVMFFIAny* src) {
    if (src->type_index != TypeIndex::kTVMFFIArray) return false;
    for (const Any& item : *GetSeq(src)) {
      if (!tether::StlElementFits<T>(item)) return false;
    }
    return true;
  }
  static std::optional<std::vector<T>> TryCastFromAnyView(const TVMFFIAny* src) {
    if (src->type_index != TypeIndex::kTVMFFIArray && src->type_index != TypeIndex::kTVMFFIList) {
      return std::nullopt;
    }
    const SeqBaseObj* seq = GetSeq(src);
    std::vector<T> result;
    result.reserve(seq->size());
    for (size_t i = 0; i < seq->size(); ++i) {
      const Any cell = seq->begin()[i];  // a conversion is user code and may change a List
      std::optional<T> item = cell.template try_cast<T>();
      if (!item.has_value()) return std::nullopt;
      result.push_back(*std::move(item));
    }
    return result;
  }
  static std::string TypeStr() { return detail::ContainerTypeStr<T>("std::vector"); }
  static std::string TypeSchema() {
    return tether::Schema("std::vector", {&detail::TypeSchema<T>::v});
  }

 private:
  static const SeqBaseObj* GetSeq(const TVMFFIAny* src) {
    return detail::ObjectUnsafe::RawObjectPtrFromUnowned<SeqBaseObj>(src->v_obj);
  }
};

template <typename T, size_t N>
struct TypeTraits<std::array<T, N>, std::enable_if_t<tether::convertible_or_any_v<T>>>
    : public tether::StlObjectTraits<TypeTraits<std::array<T, N>>, std::array<T, N>,
                                     TypeIndex::kTVMFFIArray> {
  static_assert(N > 0, "Zero-length std::array is not supported.");

  static ObjectPtr<Object> MakeObject(std::array<T, N> src) {
    ObjectPtr<ArrayObj> array = tether::ArrayOps::Empty(static_cast<int64_t>(N));
    for (T& item : src) tether::SeqOps::Append(array.get(), Any(std::move(item)));
    return array;
  }
  static bool CheckAnyStrict(const TVMFFIAny* src) {
    const ArrayObj* array = tether::FindArrayOfSize(src, N);
    if (array == nullptr) return false;
    for (const Any& item : *array) {
      if (!tether::StlElementFits<T>(item)) return false;
    }
    return true;
  }
  static std::optional<std::array<T, N>> TryCastFromAnyView(const TVMFFIAny* src) {
    const ArrayObj* array = tether::FindArrayOfSize(src, N);
    if (array == nullptr) return std::nullopt;
    return Convert(array->begin(), std::make_index_sequence<N>{});
  }
  static std::string TypeStr() {
    return "std::array<" + detail::Type2Str<T>::v() + ", " + std::to_string(N) + ">";
  }
  static std::string TypeSchema() {
    return tether::Schema("std::array",
                          {&detail::TypeSchema<T>::v, [] { return std::to_string(N); }});
  }

 private:
  // Elements need not be default constructible, so all are made before the array is.
  template <size_t... I>
  static std::optional<std::array<T, N>> Convert(const Any* cells, std::index_sequence<I...>) {
    std::optional<T> items[N];
    if (!((items[I] = cells[I].template try_cast<T>()).has_value() && ...)) return std::nullopt;
    return std::array<T, N>{{*std::move(items[I])...}};
  }
};

template <typename... T>
struct TypeTraits<std::tuple<T...>,
                  std::enable_if_t<(sizeof...(T) > 0) && (tether::convertible_or_any_v<T> && ...)>>
    : public tether::StlObjectTraits<TypeTraits<std::tuple<T...>>, std::tuple<T...>,
                                     TypeIndex::kTVMFFIArray> {
  static ObjectPtr<Object> MakeObject(std::tuple<T...> src) {
    ObjectPtr<ArrayObj> array = tether::ArrayOps::Empty(static_cast<int64_t>(sizeof...(T)));
    std::apply(
        [&](T&... item) { (tether::SeqOps::Append(array.get(), Any(std::move(item))), ...); }, src);
    return array;
  }
  static bool CheckAnyStrict(const TVMFFIAny* src) {
    const ArrayObj* array = tether::FindArrayOfSize(src, sizeof...(T));
    return array != nullptr && Check(array->begin(), std::index_sequence_for<T...>{});
  }
  static std::optional<std::tuple<T...>> TryCastFromAnyView(const TVMFFIAny* src) {
    const ArrayObj* array = tether::FindArrayOfSize(src, sizeof...(T));
    if (array == nullptr) return std::nullopt;
    return Convert(array->begin(), std::index_sequence_for<T...>{});
  }
  static std::string TypeStr() { return detail::ContainerTypeStr<T...>("std::tuple"); }
  static std::string TypeSchema() {
    return tether::Schema("std::tuple", {&detail::TypeSchema<T>::v...}, tether::kCommaSpace);
  }

 private:
  template <size_t... I>
  static bool Check(const Any* cells, std::index_sequence<I...>) {
    return (tether::StlElementFits<T>(cells[I]) && ...);
  }
  template <size_t... I>
  static std::optional<std::tuple<T...>> Convert(const Any* cells, std::index_sequence<I...>) {
    std::tuple<std::optional<T>...> items;
    if (!((std::get<I>(items) = cells[I].template try_cast<T>()).has_value() && ...)) {
      return std::nullopt;
    }
    return std::tuple<T...>(*std::move(std::get<I>(items))...);
  }
};

// A tuple of two, also to those who read the schema.
template <typename A, typename B>
struct TypeTraits<std::pair<A, B>, std::enable_if_t<tether::convertible_or_any_v<A> &&
                                                    tether::convertible_or_any_v<B>>>
    : public tether::StlObjectTraits<TypeTraits<std::pair<A, B>>, std::pair<A, B>,
                                     TypeIndex::kTVMFFIArray> {
  using Tuple = TypeTraits<std::tuple<A, B>>;

  static ObjectPtr<Object> MakeObject(std::pair<A, B> src) {
    return Tuple::MakeObject({std::move(src.first), std::move(src.second)});
  }
  static bool CheckAnyStrict(const TVMFFIAny* src) { return Tuple::CheckAnyStrict(src); }
  static std::optional<std::pair<A, B>> TryCastFromAnyView(const TVMFFIAny* src) {
    std::optional<std::tuple<A, B>> items = Tuple::TryCastFromAnyView(src);
    if (!items.has_value()) return std::nullopt;
    return std::make_from_tuple<std::pair<A, B>>(*std::move(items));
  }
  static std::string TypeStr() { return detail::ContainerTypeStr<A, B>("std::pair"); }
  static std::string TypeSchema() { return Tuple::TypeSchema(); }
};

namespace tether {

// std::map and std::unordered_map. Of keys that become equal by conversion the first stays.
template <typename Self, typename StdMap>
struct StlMapTraits : public StlObjectTraits<Self, StdMap, TypeIndex::kTVMFFIMap> {
  using K = typename StdMap::key_type;
  using V = typename StdMap::mapped_type;

  static ObjectPtr<Object> MakeObject(StdMap src) {
    ObjectPtr<Object> map =
        MapOps::MakeFor(TypeIndex::kTVMFFIMap, static_cast<int64_t>(src.size()));
    for (auto& entry : src) {
      MapOps::SetReplacing(&map, Any(entry.first), Any(std::move(entry.second)));
    }
    return map;
  }
  static bool CheckAnyStrict(const TVMFFIAny* src) {
    if (src->type_index != TypeIndex::kTVMFFIMap) return false;
    for (const auto& entry : *GetMap(src)) {
      if (!StlElementFits<K>(entry.first) || !StlElementFits<V>(entry.second)) return false;
    }
    return true;
  }
  static std::optional<StdMap> TryCastFromAnyView(const TVMFFIAny* src) {
    if (src->type_index != TypeIndex::kTVMFFIMap) return std::nullopt;
    StdMap result;
    for (const auto& entry : *GetMap(src)) {
      std::optional<K> key = entry.first.template try_cast<K>();
      if (!key.has_value()) return std::nullopt;
      std::optional<V> value = entry.second.template try_cast<V>();
      if (!value.has_value()) return std::nullopt;
      result.try_emplace(*std::move(key), *std::move(value));
    }
    return result;
  }
  static std::string TypeStr() { return detail::ContainerTypeStr<K, V>(Self::kTypeName); }
  static std::string TypeSchema() {
    return Schema(Self::kTypeName, {&detail::TypeSchema<K>::v, &detail::TypeSchema<V>::v});
  }

 private:
  static const MapObj* GetMap(const TVMFFIAny* src) {
    return detail::ObjectUnsafe::RawObjectPtrFromUnowned<MapObj>(src->v_obj);
  }
};

}  // namespace tether

template <typename K, typename V>
struct TypeTraits<std::map<K, V>, std::enable_if_t<tether::convertible_or_any_v<K> &&
                                                   tether::convertible_or_any_v<V>>>
    : public tether::StlMapTraits<TypeTraits<std::map<K, V>>, std::map<K, V>> {
  static constexpr const char* kTypeName = "std::map";
};

template <typename K, typename V>
struct TypeTraits<std::unordered_map<K, V>, std::enable_if_t<tether::convertible_or_any_v<K> &&
                                                             tether::convertible_or_any_v<V>>>
    : public tether::StlMapTraits<TypeTraits<std::unordered_map<K, V>>, std::unordered_map<K, V>> {
  static constexpr const char* kTypeName = "std::unordered_map";
};

template <typename T>
struct TypeTraits<std::optional<T>, std::enable_if_t<tether::convertible_or_any_v<T>>>
    : public TypeTraitsBase {
  static void CopyToAnyView(const std::optional<T>& src, TVMFFIAny* result) {
    *result = src.has_value() ? AnyView(*src).CopyToTVMFFIAny() : AnyView().CopyToTVMFFIAny();
  }
  static void MoveToAny(std::optional<T> src, TVMFFIAny* result) {
    *result = detail::AnyUnsafe::MoveAnyToTVMFFIAny(src.has_value() ? Any(*std::move(src)) : Any());
  }
  static bool CheckAnyStrict(const TVMFFIAny* src) {
    return src->type_index == TypeIndex::kTVMFFINone || tether::StlElementFits<T>(src);
  }
  static std::optional<T> CopyFromAnyViewAfterCheck(const TVMFFIAny* src) {
    if (src->type_index == TypeIndex::kTVMFFINone) return std::nullopt;
    return Convert(src);
  }
  static std::optional<T> MoveFromAnyAfterCheck(TVMFFIAny* src) {
    if (src->type_index == TypeIndex::kTVMFFINone) return std::nullopt;
    const Any taken = detail::AnyUnsafe::MoveTVMFFIAnyToAny(src);
    return Convert(detail::AnyUnsafe::TVMFFIAnyPtrFromAny(taken));
  }
  static std::optional<std::optional<T>> TryCastFromAnyView(const TVMFFIAny* src) {
    std::optional<std::optional<T>> result;
    if (src->type_index == TypeIndex::kTVMFFINone) {
      result.emplace();
    } else if (std::optional<T> value = Convert(src)) {
      result.emplace(std::move(value));
    }
    return result;
  }
  static std::string GetMismatchTypeInfo(const TVMFFIAny* src) {
    if constexpr (std::is_same_v<T, Any>) {
      return TypeTraitsBase::GetMismatchTypeInfo(src);
    } else {
      return TypeTraits<T>::GetMismatchTypeInfo(src);
    }
  }
  static std::string TypeStr() { return detail::ContainerTypeStr<T>("std::optional"); }
  static std::string TypeSchema() {
    return tether::Schema("std::optional", {&detail::TypeSchema<T>::v});
  }

 private:
  static std::optional<T> Convert(const TVMFFIAny* src) {
    if constexpr (std::is_same_v<T, Any>) {
      return Any(AnyView::CopyFromTVMFFIAny(*src));
    } else {
      return TypeTraits<T>::TryCastFromAnyView(src);
    }
  }
};

template <typename... T>
struct TypeTraits<std::variant<T...>, std::enable_if_t<(tether::convertible_or_any_v<T> && ...)>>
    : public TypeTraitsBase {
  using Self = std::variant<T...>;

  static void CopyToAnyView(const Self& src, TVMFFIAny* result) {
    std::visit([&](const auto& item) { *result = AnyView(item).CopyToTVMFFIAny(); }, src);
  }
  static void MoveToAny(Self src, TVMFFIAny* result) {
    std::visit(
        [&](auto& item) { *result = detail::AnyUnsafe::MoveAnyToTVMFFIAny(Any(std::move(item))); },
        src);
  }
  static bool CheckAnyStrict(const TVMFFIAny* src) {
    return (tether::StlElementFits<T>(src) || ...);
  }
  static Self CopyFromAnyViewAfterCheck(const TVMFFIAny* src) { return *TryCastFromAnyView(src); }
  static Self MoveFromAnyAfterCheck(TVMFFIAny* src) {
    const Any taken = detail::AnyUnsafe::MoveTVMFFIAnyToAny(src);
    return CopyFromAnyViewAfterCheck(detail::AnyUnsafe::TVMFFIAnyPtrFromAny(taken));
  }
  // The first alternative that the value converts to, in the order they are declared.
  static std::optional<Self> TryCastFromAnyView(const TVMFFIAny* src) {
    std::optional<Self> result;
    (void)(TryAlternative<T>(src, &result) || ...);
    return result;
  }
  static std::string TypeStr() { return detail::ContainerTypeStr<T...>("std::variant"); }
  static std::string TypeSchema() {
    return tether::Schema("std::variant", {&detail::TypeSchema<T>::v...}, tether::kCommaSpace);
  }

 private:
  template <typename U>
  static bool TryAlternative(const TVMFFIAny* src, std::optional<Self>* result) {
    std::optional<U> value;
    if constexpr (std::is_same_v<U, Any>) {
      value = Any(AnyView::CopyFromTVMFFIAny(*src));
    } else {
      value = TypeTraits<U>::TryCastFromAnyView(src);
    }
    if (value.has_value()) result->emplace(std::in_place_type<U>, *std::move(value));
    return value.has_value();
  }
};

// Argument types are checked when the function is called, not when it is converted.
template <typename R, typename... Args>
struct TypeTraits<std::function<R(Args...)>>
    : public tether::StlObjectTraits<TypeTraits<std::function<R(Args...)>>,
                                     std::function<R(Args...)>, TypeIndex::kTVMFFIFunction> {
  using Self = std::function<R(Args...)>;

  // An empty function is None.
  static ObjectPtr<Object> MakeObject(Self src) {
    if (src == nullptr) return nullptr;
    return detail::ObjectUnsafe::ObjectPtrFromObjectRef<Object>(
        Function::FromTyped(std::move(src)));
  }
  static bool CheckAnyStrict(const TVMFFIAny* src) {
    return src->type_index == TypeIndex::kTVMFFIFunction;
  }
  static std::optional<Self> TryCastFromAnyView(const TVMFFIAny* src) {
    if (!CheckAnyStrict(src)) return std::nullopt;
    using Typed = TypedFunction<R(Args...)>;
    return Self(Typed(TypeTraits<Function>::CopyFromAnyViewAfterCheck(src)));
  }
  static std::string TypeStr() {
    std::string text = "std::function<" + detail::Type2Str<R>::v() + "(";
    tether::AppendTexts(&text, {&detail::Type2Str<Args>::v...}, ", ");
    return text.append(")>");
  }
  static std::string TypeSchema() {
    return tether::FunctionSchema("std::function", &detail::TypeSchema<R>::v,
                                  {&detail::TypeSchema<Args>::v...}, tether::kCommaSpace);
  }
};

}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_EXTRA_STL_H_
