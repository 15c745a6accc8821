// SPDX-License-Identifier: Apache-2.0
// Tuple<A, B, ...>: a fixed number of typed elements, held in an ordinary array object and shared
// until a handle writes.
//
//   Tuple<int, String> t(1, "one");
//   auto [n, s] = t;
//   t.Set<0>(2);
#ifndef TVM_FFI_CONTAINER_TUPLE_H_
#define TVM_FFI_CONTAINER_TUPLE_H_

#include <tvm/ffi/container/array.h>

#include <cstddef>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

namespace tvm {
namespace ffi {

template <typename... Types>
class Tuple;

namespace tether {

template <typename... T>
struct TypeList {};

template <typename... T, typename... U>
constexpr bool AllSubsume(TypeList<T...>, TypeList<U...>) {
  if constexpr (sizeof...(T) != sizeof...(U)) {
    return false;
  } else {
    return (type_subsumes_v<T, U> && ...);
  }
}

// Whether a single argument means another tuple rather than the one element.
template <typename Self, typename... U>
inline constexpr bool is_other_tuple_v = false;
template <typename Self, typename U>
inline constexpr bool is_other_tuple_v<Self, U> =
    type_subsumes_v<Self, std::remove_cv_t<std::remove_reference_t<U>>>;

}  // namespace tether

template <typename... T, typename... U>
inline constexpr bool type_subsumes_v<Tuple<T...>, Tuple<U...>> =
    tether::AllSubsume(tether::TypeList<T...>{}, tether::TypeList<U...>{});

template <typename... Types>
inline constexpr bool use_default_type_traits_v<Tuple<Types...>> = false;

template <typename... Types>
class Tuple : public ObjectRef {
 public:
  static_assert(detail::all_storage_enabled_v<Types...>,
                "All types used in Tuple<...> must be compatible with Any");
  using ContainerType = ArrayObj;
  static constexpr bool _type_container_is_exact = false;
  static constexpr bool _type_is_nullable = false;

  Tuple() : ObjectRef(MakeArray(Any(Types())...)) {}
  explicit Tuple(UnsafeInit tag) : ObjectRef(tag) {}
  // Adopts an array whose elements the caller knows to fit; nothing is checked. Not where the
  // pointer may be meant as the one element.
  template <
      typename Ptr,
      typename = std::enable_if_t<std::is_same_v<std::decay_t<Ptr>, ObjectPtr<Object>> &&
                                  !(sizeof...(Types) == 1 &&
                                    (std::is_constructible_v<Types, ObjectPtr<Object>> && ...))>,
      typename = void>
  explicit Tuple(Ptr&& n) : ObjectRef(ObjectPtr<Object>(std::forward<Ptr>(n))) {
    TVM_FFI_ICHECK_NOTNULL(data_.get());
  }

  Tuple(const Tuple& other) = default;
  Tuple(Tuple&& other) noexcept = default;
  Tuple& operator=(const Tuple& other) = default;
  Tuple& operator=(Tuple&& other) noexcept = default;

  template <typename... U,
            typename = std::enable_if_t<type_subsumes_v<Tuple<Types...>, Tuple<U...>>>>
  Tuple(const Tuple<U...>& other)  // NOLINT(*)
      : ObjectRef(detail::ObjectUnsafe::ObjectPtrFromObjectRef<Object>(other)) {}
  template <typename... U,
            typename = std::enable_if_t<type_subsumes_v<Tuple<Types...>, Tuple<U...>>>>
  Tuple(Tuple<U...>&& other)  // NOLINT(*)
      : ObjectRef(detail::ObjectUnsafe::ObjectPtrFromObjectRef<Object>(std::move(other))) {}
  template <typename... U,
            typename = std::enable_if_t<type_subsumes_v<Tuple<Types...>, Tuple<U...>>>>
  Tuple& operator=(const Tuple<U...>& other) {
    data_ = detail::ObjectUnsafe::ObjectPtrFromObjectRef<Object>(other);
    return *this;
  }
  template <typename... U,
            typename = std::enable_if_t<type_subsumes_v<Tuple<Types...>, Tuple<U...>>>>
  Tuple& operator=(Tuple<U...>&& other) {
    data_ = detail::ObjectUnsafe::ObjectPtrFromObjectRef<Object>(std::move(other));
    return *this;
  }

  template <
      typename... UTypes,
      typename = std::enable_if_t<sizeof...(UTypes) == sizeof...(Types) && sizeof...(UTypes) != 0 &&
                                  !tether::is_other_tuple_v<Tuple<Types...>, UTypes...> &&
                                  (std::is_constructible_v<Types, UTypes&&> && ...)>>
  explicit Tuple(UTypes&&... args)
      : ObjectRef(MakeArray(Any(Types(std::forward<UTypes>(args)))...)) {}

  template <size_t I>
  auto get() const& {
    return tether::ElementReader<Element<I>>::convert(Cells()[I]);
  }
  // Takes the element out if this is the only handle; None stays behind.
  template <size_t I>
  auto get() && {
    using T = Element<I>;
    if constexpr (!std::is_pointer_v<T>) {
      if (data_.unique()) {
        return detail::AnyUnsafe::MoveFromAnyAfterCheck<T>(std::move(Cells()[I]));
      }
    }
    return tether::ElementReader<T>::convert(Cells()[I]);
  }

  // Copies the array first if another handle shares it.
  template <size_t I, typename U>
  void Set(U&& item) {
    Any cell(Element<I>(std::forward<U>(item)));
    tether::ArrayOps::Writable(&data_, 0)->SetItem(I, std::move(cell));
  }

 private:
  template <size_t I>
  struct ElementAt {
    static_assert(I < sizeof...(Types), "Tuple index out of bounds");
    using type = std::tuple_element_t<I, std::tuple<Types...>>;
  };
  template <size_t I>
  using Element = typename ElementAt<I>::type;

  Any* Cells() const { return tether::SeqOps::Cells(static_cast<ArrayObj*>(data_.get())); }

  template <typename... Cell>
  static ObjectPtr<ArrayObj> MakeArray(Cell&&... cells) {
    ObjectPtr<ArrayObj> array = tether::ArrayOps::Empty(sizeof...(Cell));
    (tether::SeqOps::Append(array.get(), std::move(cells)), ...);
    return array;
  }
};

template <typename... UTypes>
Tuple(UTypes&&...) -> Tuple<std::remove_cv_t<std::remove_reference_t<UTypes>>...>;

template <size_t I, typename... Types>
inline auto get(const Tuple<Types...>& t) {
  return t.template get<I>();
}
template <size_t I, typename... Types>
inline auto get(Tuple<Types...>&& t) {
  return std::move(t).template get<I>();
}

// An array of the right length: shared if every element fits, else converted. Lists are not tuples.
template <typename... Types>
struct TypeTraits<Tuple<Types...>> : public ObjectRefTypeTraitsBase<Tuple<Types...>> {
  using Base = ObjectRefTypeTraitsBase<Tuple<Types...>>;
  static constexpr int64_t kSize = static_cast<int64_t>(sizeof...(Types));

  static bool CheckAnyStrict(const TVMFFIAny* src) {
    const ArrayObj* array = FindArray(src);
    return array != nullptr && array->size() == sizeof...(Types) &&
           CheckCells(array->begin(), std::index_sequence_for<Types...>{});
  }

  static std::optional<Tuple<Types...>> TryCastFromAnyView(const TVMFFIAny* src) {
    if (CheckAnyStrict(src)) return Base::CopyFromAnyViewAfterCheck(src);
    const ArrayObj* array = FindArray(src);
    if (array == nullptr || array->size() != sizeof...(Types)) return std::nullopt;
    ObjectPtr<Object> keep =
        detail::ObjectUnsafe::ObjectPtrFromUnowned<Object>(const_cast<ArrayObj*>(array));
    ObjectPtr<ArrayObj> converted = tether::ArrayOps::Empty(kSize);
    const Any* cell = array->begin();
    if (!(AppendConverted<Types>(converted.get(), *cell++) && ...)) return std::nullopt;
    return detail::ObjectUnsafe::ObjectRefFromObjectPtr<Tuple<Types...>>(
        ObjectPtr<Object>(std::move(converted)));
  }

  static std::string GetMismatchTypeInfo(const TVMFFIAny* src) {
    const ArrayObj* array = FindArray(src);
    if (array == nullptr) return TypeTraitsBase::GetMismatchTypeInfo(src);
    if (array->size() != sizeof...(Types)) {
      return "Array[size=" + std::to_string(array->size()) + "]";
    }
    std::string text;
    int index = 0;
    const Any* cells = array->begin();
    (void)((DescribeMismatch<Types>(cells[index], index, &text) || (++index, false)) || ...);
    if (text.empty()) TVM_FFI_THROW(InternalError) << "Cannot reach here";
    return text;
  }

  static std::string TypeStr() { return detail::ContainerTypeStr<Types...>("Tuple"); }
  static std::string TypeSchema() {
    return tether::Schema("Tuple", {&detail::TypeSchema<Types>::v...});
  }

 private:
  static const ArrayObj* FindArray(const TVMFFIAny* src) {
    if (src->type_index != TypeIndex::kTVMFFIArray) return nullptr;
    return detail::ObjectUnsafe::RawObjectPtrFromUnowned<ArrayObj>(src->v_obj);
  }
  template <size_t... I>
  static bool CheckCells([[maybe_unused]] const Any* cells, std::index_sequence<I...>) {
    return (detail::AnyUnsafe::CheckAnyStrict<Types>(cells[I]) && ...);
  }
  template <typename T>
  static bool AppendConverted(ArrayObj* array, const Any& cell) {
    std::optional<T> value = cell.template try_cast<T>();
    if (!value.has_value()) return false;
    tether::SeqOps::Append(array, Any(*std::move(value)));
    return true;
  }
  template <typename T>
  static bool DescribeMismatch(const Any& cell, int index, std::string* text) {
    if constexpr (!std::is_same_v<T, Any>) {
      if (cell.template try_cast<T>().has_value()) return false;
      *text = "Array[index " + std::to_string(index) + ": " +
              detail::AnyUnsafe::GetMismatchTypeInfo<T>(cell) + "]";
      return true;
    }
    return false;
  }
};

}  // namespace ffi
}  // namespace tvm

namespace std {

template <typename... Types>
struct tuple_size<::tvm::ffi::Tuple<Types...>>
    : public std::integral_constant<size_t, sizeof...(Types)> {};

template <size_t I, typename... Types>
struct tuple_element<I, ::tvm::ffi::Tuple<Types...>> {
  using type = std::tuple_element_t<I, std::tuple<Types...>>;
};

}  // namespace std
#endif  // TVM_FFI_CONTAINER_TUPLE_H_
