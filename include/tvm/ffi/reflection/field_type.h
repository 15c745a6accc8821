// SPDX-License-Identifier: Apache-2.0
// What reflection knows about a field from its C++ type: size, getter, setter, flags.
//
//   const tether::FieldType& type = tether::kFieldType<int64_t>;
//   type.getter(address, &value);
#ifndef TVM_FFI_REFLECTION_FIELD_TYPE_H_
#define TVM_FFI_REFLECTION_FIELD_TYPE_H_

#include <tvm/ffi/any.h>
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/container/variant.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/optional.h>
#include <tvm/ffi/string.h>
#include <tvm/ffi/type_traits.h>

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

namespace tvm {
namespace ffi {

namespace reflection {

// Offset of a field from the object header, which need not be where the class begins.
template <typename Class, typename T>
inline int64_t GetFieldByteOffsetToObject(T Class::*field_ptr) {
  // A data member pointer is represented by its offset, in both the Itanium and the MSVC ABI.
  using Raw = std::conditional_t<sizeof(field_ptr) == sizeof(int64_t), int64_t, int32_t>;
  static_assert(sizeof(field_ptr) == sizeof(Raw), "unknown member pointer representation");
  Raw offset;
  std::memcpy(&offset, &field_ptr, sizeof(Raw));
  return offset - ffi::detail::ObjectUnsafe::GetObjectOffsetToSubclass<Class>();
}

}  // namespace reflection

namespace tether {

// Types that are one TVMFFIAny in memory.
template <typename T>
inline constexpr bool kIsAnyCell = false;
template <>
inline constexpr bool kIsAnyCell<Any> = true;
template <>
inline constexpr bool kIsAnyCell<String> = true;
template <>
inline constexpr bool kIsAnyCell<Bytes> = true;
template <typename... V>
inline constexpr bool kIsAnyCell<Variant<V...>> = true;
template <typename T>
inline constexpr bool kIsAnyCell<Optional<T>> =
    !use_object_ptr_optional_v<T> && TypeTraits<T>::storage_enabled;

// Types that are one object pointer in memory, null for None.
template <typename T>
inline constexpr bool kIsObjectCell = (std::is_base_of_v<ObjectRef, T> || is_object_ptr_type_v<T> ||
                                       is_arc_type_v<T>)&&sizeof(T) == sizeof(void*);
template <typename F>
inline constexpr bool kIsObjectCell<TypedFunction<F>> = true;

template <typename T, bool kIsEnum = std::is_enum_v<T>>
struct IntegerOf {
  using type = T;
};
template <typename T>
struct IntegerOf<T, true> {
  using type = std::underlying_type_t<T>;
};

// The Plain flags of a field. An 8-byte unsigned field has none: its getter rejects values above
// INT64_MAX. Nor has Optional of a reference: a pointer under the static type Any.
template <typename T>
constexpr int64_t PlainFlags() {
  constexpr int64_t kPlain = kTVMFFIFieldFlagBitMaskPlain;
  constexpr int32_t kIndex = TypeToFieldStaticTypeIndex<T>::value;
  if constexpr (kIndex == kTVMFFIAny) {
    return kIsAnyCell<T> ? kPlain : 0;
  } else if constexpr (kIndex >= kTVMFFIObject) {
    return kIsObjectCell<T> ? kPlain : 0;
  } else if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, StrictBool>) {
    return sizeof(T) == 1 ? kPlain : 0;
  } else if constexpr (kIndex == kTVMFFIInt && (std::is_integral_v<T> || std::is_enum_v<T>)) {
    if (std::is_signed_v<typename IntegerOf<T>::type>) return kPlain;
    return sizeof(T) < sizeof(int64_t) ? kPlain | kTVMFFIFieldFlagBitMaskPlainUnsigned : 0;
  } else if constexpr (kIndex == kTVMFFIFloat) {
    return std::is_same_v<T, float> || std::is_same_v<T, double> ? kPlain : 0;
  } else {
    return std::is_same_v<T, void*> || std::is_same_v<T, DLDataType> || std::is_same_v<T, DLDevice>
               ? kPlain
               : 0;
  }
}

template <typename T>
int ReadField(void* field, TVMFFIAny* result) {
  TVM_FFI_SAFE_CALL_BEGIN();
  *result = detail::AnyUnsafe::MoveAnyToTVMFFIAny(Any(*static_cast<const T*>(field)));
  TVM_FFI_SAFE_CALL_END();
}

template <typename T>
int WriteField(void* field, const TVMFFIAny* value) {
  TVM_FFI_SAFE_CALL_BEGIN();
  if constexpr (std::is_same_v<T, Any>) {
    *static_cast<Any*>(field) = AnyView::CopyFromTVMFFIAny(*value);
  } else if constexpr (kIsObjectCell<T> || std::is_trivially_copyable_v<T> ||
                       !std::is_swappable_v<T>) {
    *static_cast<T*>(field) = AnyView::CopyFromTVMFFIAny(*value).template cast<T>();
  } else {
    // The old value dies when the field has the new one: what dies with it may run Python code,
    // which may use the field. A std::map lets go of its old entries first when another is assigned
    // to it.
    T assigned = AnyView::CopyFromTVMFFIAny(*value).template cast<T>();
    using std::swap;
    swap(*static_cast<T*>(field), assigned);
  }
  TVM_FFI_SAFE_CALL_END();
}

// All that reflection knows about the type of a field.
struct FieldType {
  int64_t plain_flags;
  int64_t size;
  int64_t alignment;
  TVMFFIFieldGetter getter;
  TVMFFIFieldSetter setter;
  int32_t static_type_index;
};

template <typename T>
inline constexpr FieldType kFieldType = {PlainFlags<T>(), sizeof(T),
                                         alignof(T),      &ReadField<T>,
                                         &WriteField<T>,  TypeToFieldStaticTypeIndex<T>::value};

}  // namespace tether

}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_REFLECTION_FIELD_TYPE_H_
