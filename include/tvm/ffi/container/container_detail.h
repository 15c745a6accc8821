// SPDX-License-Identifier: Apache-2.0
// What all containers share: which element types can be stored, how a container type is spelled,
// and iterators that turn stored Any cells into elements on the fly.
//
//   detail::storage_enabled_v<int>                  // true
//   detail::ContainerTypeStr<int, String>("Map")    // "Map<int, str>"
#ifndef TVM_FFI_CONTAINER_CONTAINER_DETAIL_H_
#define TVM_FFI_CONTAINER_CONTAINER_DETAIL_H_

#include <tvm/ffi/any.h>
#include <tvm/ffi/memory.h>
#include <tvm/ffi/object.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <string>
#include <type_traits>
#include <utility>

namespace tvm {
namespace ffi {
namespace tether {

// Map<int, str>
TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE inline std::string GenericName(
    const char* name, std::initializer_list<TypeText> args) {
  std::string out = std::string(name).append("<");
  AppendTexts(&out, args, ", ");
  return out.append(">");
}

}  // namespace tether

namespace detail {

template <typename T>
inline constexpr bool storage_enabled_v = std::is_same_v<T, Any> || TypeTraits<T>::storage_enabled;

template <typename... T>
inline constexpr bool all_storage_enabled_v = (storage_enabled_v<T> && ...);

template <typename... T>
inline constexpr bool all_object_ref_v = (std::is_base_of_v<ObjectRef, T> && ...);

// `name<A, B, ...>` in the spelling used by error messages.
template <typename... V>
std::string ContainerTypeStr(const char* name) {
  return tether::GenericName(name, {&Type2Str<V>::v...});
}

// Walks TIter and yields Converter::convert(*iter) by value. There is no stored element to refer
// to, hence no operator[], no -> and no reference to an element.
template <typename Converter, typename TIter>
class IterAdapter {
 public:
  using difference_type = typename std::iterator_traits<TIter>::difference_type;
  using value_type = typename Converter::ResultType;
  using pointer = const typename Converter::ResultType*;
  using reference = const typename Converter::ResultType;
  using iterator_category = typename std::iterator_traits<TIter>::iterator_category;

  explicit IterAdapter(TIter iter) : iter_(iter) {}

  IterAdapter& operator++() {
    ++iter_;
    return *this;
  }
  IterAdapter& operator--() {
    --iter_;
    return *this;
  }
  IterAdapter operator++(int) { return IterAdapter(iter_++); }
  IterAdapter operator--(int) { return IterAdapter(iter_--); }
  IterAdapter operator+(difference_type n) const { return IterAdapter(iter_ + n); }
  IterAdapter operator-(difference_type n) const { return IterAdapter(iter_ - n); }
  IterAdapter& operator+=(difference_type n) {
    iter_ += n;
    return *this;
  }
  IterAdapter& operator-=(difference_type n) {
    iter_ -= n;
    return *this;
  }
  template <typename Self = IterAdapter>
  std::enable_if_t<
      std::is_same_v<typename Self::iterator_category, std::random_access_iterator_tag>,
      difference_type>
  operator-(const IterAdapter& other) const {
    return iter_ - other.iter_;
  }
  bool operator==(const IterAdapter& other) const { return iter_ == other.iter_; }
  bool operator!=(const IterAdapter& other) const { return iter_ != other.iter_; }
  reference operator*() const { return Converter::convert(*iter_); }

 private:
  TIter iter_;
};

// As IterAdapter, backwards. Holds the element's own position, not the one behind it.
template <typename Converter, typename TIter>
class ReverseIterAdapter {
 public:
  using difference_type = typename std::iterator_traits<TIter>::difference_type;
  using value_type = typename Converter::ResultType;
  using pointer = const typename Converter::ResultType*;
  using reference = const typename Converter::ResultType;
  using iterator_category = typename std::iterator_traits<TIter>::iterator_category;

  explicit ReverseIterAdapter(TIter iter) : iter_(iter) {}

  ReverseIterAdapter& operator++() {
    --iter_;
    return *this;
  }
  ReverseIterAdapter& operator--() {
    ++iter_;
    return *this;
  }
  ReverseIterAdapter operator++(int) { return ReverseIterAdapter(iter_--); }
  ReverseIterAdapter operator--(int) { return ReverseIterAdapter(iter_++); }
  ReverseIterAdapter operator+(difference_type n) const { return ReverseIterAdapter(iter_ - n); }
  template <typename Self = ReverseIterAdapter>
  std::enable_if_t<
      std::is_same_v<typename Self::iterator_category, std::random_access_iterator_tag>,
      difference_type>
  operator-(const ReverseIterAdapter& other) const {
    return other.iter_ - iter_;
  }
  bool operator==(const ReverseIterAdapter& other) const { return iter_ == other.iter_; }
  bool operator!=(const ReverseIterAdapter& other) const { return iter_ != other.iter_; }
  reference operator*() const { return Converter::convert(*iter_); }

 private:
  TIter iter_;
};

}  // namespace detail

namespace tether {

// Reads a stored cell as T; the container's invariant makes a check unnecessary.
template <typename T>
struct ElementReader {
  using ResultType = T;
  TVM_FFI_INLINE static T convert(const Any& cell) {
    return detail::AnyUnsafe::CopyFromAnyViewAfterCheck<T>(cell);
  }
};

[[noreturn]] TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE inline void ThrowBadElement(
    const std::string& expected, const std::string& actual) {
  TVM_FFI_THROW(TypeError) << "Mismatched type of an element in a container. Expected `" << expected
                           << "` but got `" << actual << "`";
  TVM_FFI_UNREACHABLE();
}

// Types whose elements are looked at before they are read. What an element that is a container
// holds is looked at when that is read.
template <typename T>
inline constexpr bool is_checked_element_v =
    std::is_base_of_v<ObjectRef, T> || std::is_arithmetic_v<T> || std::is_enum_v<T> ||
    std::is_same_v<T, String> || std::is_same_v<T, Bytes>;

// Reads a cell of a List or Dict. Everyone who shares it may have put something else there, Python
// above all.
template <typename T, typename = void>
struct SharedElementReader : public ElementReader<T> {};

template <typename T>
struct SharedElementReader<T, std::enable_if_t<is_checked_element_v<T>>> {
  using ResultType = T;
  TVM_FFI_INLINE static T convert(const Any& cell) {
    if (TVM_FFI_PREDICT_FALSE(!IsElement(detail::AnyUnsafe::TVMFFIAnyPtrFromAny(cell)))) {
      return Convert(cell);
    }
    return ElementReader<T>::convert(cell);
  }

 private:
  TVM_FFI_INLINE static bool IsElement(const TVMFFIAny* cell) {
    if constexpr (std::is_base_of_v<ObjectRef, T>) {
      // None is null, also where the type says that there is no null: resize() leaves it behind.
      return cell->type_index == TypeIndex::kTVMFFINone ||
             HoldsInstance<typename T::ContainerType>(cell);
    } else {
      return TypeTraits<T>::CheckAnyStrict(cell);
    }
  }
  TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE static T Convert(const Any& cell) {
    if (auto value = cell.template try_cast<T>()) return *std::move(value);
    ThrowBadElement(detail::Type2Str<T>::v(), detail::AnyUnsafe::GetMismatchTypeInfo<T>(cell));
  }
};

template <typename T>
using SharedElement = SharedElementReader<T>;

// True when the view of a K has the same bits as the Any that owns it.
template <typename K>
inline constexpr bool key_view_is_key_v =
    std::is_arithmetic_v<K> || std::is_enum_v<K> || std::is_same_v<K, String> ||
    std::is_same_v<K, Bytes> || std::is_base_of_v<ObjectRef, K>;

// A lookup key as a const Any&, without counting a reference where that is possible:
//   map_object->find(BorrowedKey<String>(name).get());
template <typename K, typename = void>
class BorrowedKey {
 public:
  explicit BorrowedKey(const K& key) : owned_(key) {}
  const Any& get() const { return owned_; }

 private:
  Any owned_;
};

template <>
class BorrowedKey<Any, void> {
 public:
  explicit BorrowedKey(const Any& key) : key_(key) {}
  const Any& get() const { return key_; }

 private:
  const Any& key_;
};

template <typename K>
class BorrowedKey<K, std::enable_if_t<key_view_is_key_v<K>>> {
 public:
  TVM_FFI_INLINE explicit BorrowedKey(const K& key) { TypeTraits<K>::CopyToAnyView(key, &cell_); }
  // Never constructed or destroyed as an Any: the cell is a view for the duration of one call.
  TVM_FFI_INLINE const Any& get() const { return reinterpret_cast<const Any&>(cell_); }

 private:
  TVMFFIAny cell_;
};

}  // namespace tether
}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_CONTAINER_CONTAINER_DETAIL_H_
