// SPDX-License-Identifier: Apache-2.0
// TypeTraits<T>: how a C++ type becomes a TVMFFIAny and back. To add a type of your own,
// specialise it:
//
//   template <> struct TypeTraits<Celsius> : public TypeTraitsBase {
//     static void CopyToAnyView(const Celsius& c, TVMFFIAny* out) {
//       TypeTraits<double>::CopyToAnyView(c.degrees, out);
//     }
//     ... MoveToAny, CheckAnyStrict, CopyFromAnyViewAfterCheck, MoveFromAnyAfterCheck,
//     static std::optional<Celsius> TryCastFromAnyView(const TVMFFIAny* src);
//     static std::string TypeStr() { return "Celsius"; }
//     static std::string TypeSchema() { return R"({"type":"float"})"; }
//   };
#ifndef TVM_FFI_TYPE_TRAITS_H_
#define TVM_FFI_TYPE_TRAITS_H_

#include <tvm/ffi/base_detail.h>
#include <tvm/ffi/c_api.h>

#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace tvm {
namespace ffi {

using TypeIndex = TVMFFITypeIndex;
using TypeInfo = TVMFFITypeInfo;

struct StaticTypeKey {
  static constexpr const char* kTVMFFIAny = "Any";
  static constexpr const char* kTVMFFINone = "None";
  static constexpr const char* kTVMFFIInt = "int";
  static constexpr const char* kTVMFFIBool = "bool";
  static constexpr const char* kTVMFFIFloat = "float";
  static constexpr const char* kTVMFFIOpaquePtr = "void*";
  static constexpr const char* kTVMFFIDataType = "DataType";
  static constexpr const char* kTVMFFIDevice = "Device";
  static constexpr const char* kTVMFFIDLTensorPtr = "DLTensor*";
  static constexpr const char* kTVMFFIRawStr = "const char*";
  static constexpr const char* kTVMFFIByteArrayPtr = "TVMFFIByteArray*";
  static constexpr const char* kTVMFFIObjectRValueRef = "ObjectRValueRef";
  static constexpr const char* kTVMFFISmallStr = "ffi.SmallStr";
  static constexpr const char* kTVMFFISmallBytes = "ffi.SmallBytes";
  static constexpr const char* kTVMFFIUnchanged = "ffi.Unchanged";
  static constexpr const char* kTVMFFIObject = "ffi.Object";
  static constexpr const char* kTVMFFIStr = "ffi.String";
  static constexpr const char* kTVMFFIBytes = "ffi.Bytes";
  static constexpr const char* kTVMFFIError = "ffi.Error";
  static constexpr const char* kTVMFFIFunction = "ffi.Function";
  static constexpr const char* kTVMFFIShape = "ffi.Shape";
  static constexpr const char* kTVMFFITensor = "ffi.Tensor";
  static constexpr const char* kTVMFFIArray = "ffi.Array";
  static constexpr const char* kTVMFFIMap = "ffi.Map";
  static constexpr const char* kTVMFFIModule = "ffi.Module";
  static constexpr const char* kTVMFFIOpaquePyObject = "ffi.OpaquePyObject";
  static constexpr const char* kTVMFFIList = "ffi.List";
  static constexpr const char* kTVMFFIDict = "ffi.Dict";
  static constexpr const char* kTVMFFIVisitInterrupt = "ffi.VisitInterrupt";
  static constexpr const char* kTVMFFIBigInt = "ffi.BigInt";
};

TVM_FFI_NO_INLINE inline std::string TypeIndexToTypeKey(int32_t type_index) {
  const TVMFFIByteArray& key = TVMFFIGetTypeInfo(type_index)->type_key;
  return std::string(key.data, key.size);
}

template <typename T, typename = void>
struct TypeTraits {
  static constexpr bool convert_enabled = false;
  static constexpr bool storage_enabled = false;
};

template <typename T>
using TypeTraitsNoCR = TypeTraits<std::remove_const_t<std::remove_reference_t<T>>>;

// False for an ObjectRef template that brings its own partial specialisation of TypeTraits.
template <typename T>
inline constexpr bool use_default_type_traits_v = true;

struct TypeTraitsBase {
  static constexpr bool convert_enabled = true;
  static constexpr bool storage_enabled = true;
  static constexpr int32_t field_static_type_index = TypeIndex::kTVMFFIAny;
  // Names the actual type after a failed conversion.
  static std::string GetMismatchTypeInfo(const TVMFFIAny* source) {
    return TypeIndexToTypeKey(source->type_index);
  }
};

template <typename T, typename = void>
struct TypeToFieldStaticTypeIndex {
  static constexpr int32_t value = TypeIndex::kTVMFFIAny;
};
template <typename T>
struct TypeToFieldStaticTypeIndex<T, std::enable_if_t<TypeTraits<T>::convert_enabled>> {
  static constexpr int32_t value = TypeTraits<T>::field_static_type_index;
};

template <typename T, typename = void>
struct TypeToRuntimeTypeIndex {
  static int32_t v() { return TypeToFieldStaticTypeIndex<T>::value; }
};

// Whether every Source value can serve as a Target unchanged.
template <typename Target, typename Source, typename = void>
inline constexpr bool type_subsumes_v =
    std::is_same_v<Target, Source> || std::is_base_of_v<Target, Source>;

// A bool that takes nothing but a bool, for lists of fallback types.
class StrictBool {
 public:
  StrictBool(bool value) : value_(value) {}  // NOLINT(*)
  operator bool() const { return value_; }   // NOLINT(*)

 private:
  bool value_;
};

namespace tether {

template <typename T>
inline constexpr bool is_plain_integer_v =
    std::is_integral_v<T> && !std::is_same_v<T, bool> && !std::is_same_v<T, uint64_t>;

TVM_FFI_INLINE bool IsIntOrBool(const TVMFFIAny* src) {
  return src->type_index == TypeIndex::kTVMFFIInt || src->type_index == TypeIndex::kTVMFFIBool;
}

// The integer type behind a T that cannot hold every int64_t, or void. Also of an optional T.
template <typename T, typename = void>
struct NarrowInteger {
  using type = void;
};
template <typename T>
struct NarrowInteger<
    T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool> && (sizeof(T) < 8)>> {
  using type = T;
};
template <typename T>
struct NarrowInteger<T, std::enable_if_t<std::is_enum_v<T>>>
    : public NarrowInteger<std::underlying_type_t<T>> {};
template <typename T>
struct NarrowInteger<std::optional<T>> : public NarrowInteger<T> {};
template <typename T>
inline constexpr bool is_narrow_integer_v = !std::is_void_v<typename NarrowInteger<T>::type>;

// Whether T has this value. An int64_t and a uint64_t take all: the cell has no wider ones.
template <typename T>
TVM_FFI_INLINE bool FitsInteger(int64_t value) {
  if constexpr (is_narrow_integer_v<T>) {
    return static_cast<int64_t>(static_cast<typename NarrowInteger<T>::type>(value)) == value;
  } else {
    return true;
  }
}

// "300 is out of range for uint8 (0 to 255)"
TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE inline std::string OutOfRangeText(int64_t value, size_t size,
                                                                      bool is_signed) {
  int64_t bits = static_cast<int64_t>(size) * 8;
  int64_t low = is_signed ? -(int64_t{1} << (bits - 1)) : 0;
  int64_t high = (int64_t{1} << (is_signed ? bits - 1 : bits)) - 1;
  return Concat({std::to_string(value), " is out of range for ", is_signed ? "int" : "uint",
                 std::to_string(bits), " (", std::to_string(low), " to ", std::to_string(high),
                 ")"});
}
template <typename T>
std::string OutOfRangeText(int64_t value) {
  using Int = typename NarrowInteger<T>::type;
  return OutOfRangeText(value, sizeof(Int), std::is_signed_v<Int>);
}

// Traits of a value that lives in the payload. Self has Store(value, cell) and Load(cell); Store is
// given a cell whose payload is zero.
template <typename Self, typename T, int32_t kIndex>
struct PayloadTraits : public TypeTraitsBase {
  static constexpr int32_t field_static_type_index = kIndex;

  TVM_FFI_INLINE static void CopyToAnyView(const T& src, TVMFFIAny* result) {
    result->type_index = kIndex;
    result->zero_padding = 0;
    result->v_int64 = 0;
    Self::Store(src, result);
  }
  TVM_FFI_INLINE static void MoveToAny(T src, TVMFFIAny* result) { CopyToAnyView(src, result); }
  TVM_FFI_INLINE static bool CheckAnyStrict(const TVMFFIAny* src) {
    return src->type_index == kIndex;
  }
  TVM_FFI_INLINE static T CopyFromAnyViewAfterCheck(const TVMFFIAny* src) {
    return Self::Load(src);
  }
  TVM_FFI_INLINE static T MoveFromAnyAfterCheck(TVMFFIAny* src) { return Self::Load(src); }
};

template <typename Self, typename T>
struct IntegerTraits : public PayloadTraits<Self, T, TypeIndex::kTVMFFIInt> {
  TVM_FFI_INLINE static void Store(const T& src, TVMFFIAny* result) {
    result->v_int64 = static_cast<int64_t>(src);
  }
  TVM_FFI_INLINE static T Load(const TVMFFIAny* src) { return static_cast<T>(src->v_int64); }
  TVM_FFI_INLINE static bool CheckAnyStrict(const TVMFFIAny* src) {
    return src->type_index == TypeIndex::kTVMFFIInt && FitsInteger<T>(src->v_int64);
  }
  TVM_FFI_INLINE static std::optional<T> TryCastFromAnyView(const TVMFFIAny* src) {
    if (IsIntOrBool(src) && FitsInteger<T>(src->v_int64)) return Load(src);
    return std::nullopt;
  }
  static std::string GetMismatchTypeInfo(const TVMFFIAny* src) {
    if constexpr (is_narrow_integer_v<T>) {
      if (IsIntOrBool(src) && !FitsInteger<T>(src->v_int64)) {
        return "int " + OutOfRangeText<T>(src->v_int64);
      }
    }
    return TypeTraitsBase::GetMismatchTypeInfo(src);
  }
  static std::string TypeStr() { return StaticTypeKey::kTVMFFIInt; }
  static std::string TypeSchema() { return Schema(StaticTypeKey::kTVMFFIInt); }
};

}  // namespace tether

template <>
struct TypeTraits<std::nullptr_t>
    : public tether::PayloadTraits<TypeTraits<std::nullptr_t>, std::nullptr_t,
                                   TypeIndex::kTVMFFINone> {
  TVM_FFI_INLINE static void Store(const std::nullptr_t&, TVMFFIAny*) {}
  TVM_FFI_INLINE static std::nullptr_t Load(const TVMFFIAny*) { return nullptr; }
  TVM_FFI_INLINE static std::optional<std::nullptr_t> TryCastFromAnyView(const TVMFFIAny* src) {
    if (CheckAnyStrict(src)) return nullptr;
    return std::nullopt;
  }
  static std::string TypeStr() { return StaticTypeKey::kTVMFFINone; }
  static std::string TypeSchema() { return tether::Schema(StaticTypeKey::kTVMFFINone); }
};

template <>
struct TypeTraits<bool>
    : public tether::PayloadTraits<TypeTraits<bool>, bool, TypeIndex::kTVMFFIBool> {
  TVM_FFI_INLINE static void Store(const bool& src, TVMFFIAny* result) {
    result->v_int64 = static_cast<int64_t>(src);
  }
  TVM_FFI_INLINE static bool Load(const TVMFFIAny* src) { return src->v_int64 != 0; }
  TVM_FFI_INLINE static std::optional<bool> TryCastFromAnyView(const TVMFFIAny* src) {
    if (tether::IsIntOrBool(src)) return Load(src);
    return std::nullopt;
  }
  static std::string TypeStr() { return StaticTypeKey::kTVMFFIBool; }
  static std::string TypeSchema() { return tether::Schema(StaticTypeKey::kTVMFFIBool); }
};

template <>
struct TypeTraits<StrictBool>
    : public tether::PayloadTraits<TypeTraits<StrictBool>, StrictBool, TypeIndex::kTVMFFIBool> {
  TVM_FFI_INLINE static void Store(const StrictBool& src, TVMFFIAny* result) {
    result->v_int64 = static_cast<int64_t>(static_cast<bool>(src));
  }
  TVM_FFI_INLINE static StrictBool Load(const TVMFFIAny* src) { return src->v_int64 != 0; }
  TVM_FFI_INLINE static std::optional<StrictBool> TryCastFromAnyView(const TVMFFIAny* src) {
    if (CheckAnyStrict(src)) return Load(src);
    return std::nullopt;
  }
  static std::string TypeStr() { return StaticTypeKey::kTVMFFIBool; }
  static std::string TypeSchema() { return tether::Schema(StaticTypeKey::kTVMFFIBool); }
};

// uint64_t checks for overflow and has its specialisation in any.h.
template <typename Int>
struct TypeTraits<Int, std::enable_if_t<tether::is_plain_integer_v<Int>>>
    : public tether::IntegerTraits<TypeTraits<Int>, Int> {};

template <typename T, typename = void>
inline constexpr bool is_integeral_enum_v = false;
template <typename T>
inline constexpr bool is_integeral_enum_v<T, std::enable_if_t<std::is_enum_v<T>>> =
    std::is_integral_v<std::underlying_type_t<T>>;

template <typename Enum>
struct TypeTraits<Enum, std::enable_if_t<is_integeral_enum_v<Enum>>>
    : public tether::IntegerTraits<TypeTraits<Enum>, Enum> {};

template <typename Float>
struct TypeTraits<Float, std::enable_if_t<std::is_floating_point_v<Float>>>
    : public tether::PayloadTraits<TypeTraits<Float>, Float, TypeIndex::kTVMFFIFloat> {
  TVM_FFI_INLINE static void Store(const Float& src, TVMFFIAny* result) {
    result->v_float64 = static_cast<double>(src);
  }
  TVM_FFI_INLINE static Float Load(const TVMFFIAny* src) {
    return static_cast<Float>(src->v_float64);
  }
  TVM_FFI_INLINE static std::optional<Float> TryCastFromAnyView(const TVMFFIAny* src) {
    if (src->type_index == TypeIndex::kTVMFFIFloat) return Load(src);
    if (tether::IsIntOrBool(src)) return static_cast<Float>(src->v_int64);
    return std::nullopt;
  }
  static std::string TypeStr() { return StaticTypeKey::kTVMFFIFloat; }
  static std::string TypeSchema() { return tether::Schema(StaticTypeKey::kTVMFFIFloat); }
};

template <>
struct TypeTraits<void*>
    : public tether::PayloadTraits<TypeTraits<void*>, void*, TypeIndex::kTVMFFIOpaquePtr> {
  TVM_FFI_INLINE static void Store(void* const& src, TVMFFIAny* result) { result->v_ptr = src; }
  TVM_FFI_INLINE static void* Load(const TVMFFIAny* src) { return src->v_ptr; }
  TVM_FFI_INLINE static std::optional<void*> TryCastFromAnyView(const TVMFFIAny* src) {
    if (CheckAnyStrict(src)) return Load(src);
    if (src->type_index == TypeIndex::kTVMFFINone) return static_cast<void*>(nullptr);
    return std::nullopt;
  }
  static std::string TypeStr() { return StaticTypeKey::kTVMFFIOpaquePtr; }
  static std::string TypeSchema() { return tether::Schema(StaticTypeKey::kTVMFFIOpaquePtr); }
};

namespace tether {

// The first Fallback that src converts to, turned into a T by TypeTraits<T>::ConvertFallbackValue.
template <typename T, typename Fallback, typename... Rest>
std::optional<T> TryFallbacks(const TVMFFIAny* src) {
  static_assert(!std::is_same_v<bool, Fallback>,
                "bool would also take integers as a fallback type, use tvm::ffi::StrictBool");
  if (auto value = TypeTraits<Fallback>::TryCastFromAnyView(src)) {
    return TypeTraits<T>::ConvertFallbackValue(*std::move(value));
  }
  if constexpr (sizeof...(Rest) != 0) return TryFallbacks<T, Rest...>(src);
  return std::nullopt;
}

}  // namespace tether

// Base of traits that only convert from other types and are never stored as themselves.
template <typename T, typename... FallbackTypes>
struct FallbackOnlyTraitsBase : public TypeTraitsBase {
  static constexpr bool storage_enabled = false;
  static std::optional<T> TryCastFromAnyView(const TVMFFIAny* src) {
    return tether::TryFallbacks<T, FallbackTypes...>(src);
  }
};

// For a class whose type is registered elsewhere: looks the key up, never registers it.
#define TVM_FFI_DECLARE_OBJECT_INFO_LOOKUP(RegisteredKey, TypeDepth)             \
  [[maybe_unused]] static constexpr const char* _type_key = RegisteredKey;       \
  [[maybe_unused]] static constexpr int32_t _type_depth = TypeDepth;             \
  [[maybe_unused]] static constexpr bool _type_mutable = true;                   \
  [[maybe_unused]] static constexpr bool _type_final = false;                    \
  [[maybe_unused]] static constexpr uint32_t _type_child_slots = 0;              \
  [[maybe_unused]] static constexpr bool _type_child_slots_can_overflow = true;  \
  static int32_t RuntimeTypeIndex() {                                            \
    static const int32_t found = [] {                                            \
      TVMFFIByteArray key{_type_key, std::char_traits<char>::length(_type_key)}; \
      int32_t index = 0;                                                         \
      TVM_FFI_CHECK_SAFE_CALL(TVMFFITypeKeyToIndex(&key, &index));               \
      return index;                                                              \
    }();                                                                         \
    return found;                                                                \
  }

}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_TYPE_TRAITS_H_
