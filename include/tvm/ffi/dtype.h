// SPDX-License-Identifier: Apache-2.0
// DLDataType as a value: text form, comparison, conversion.
//
//   DLDataType t = StringToDLDataType("float16x4");
//   String s = DLDataTypeToString(t);                 // "float16x4"
//   DTypeAbbrev(t);                                   // "f16x4"
#ifndef TVM_FFI_DTYPE_H_
#define TVM_FFI_DTYPE_H_

#include <dlpack/dlpack.h>
#include <tvm/ffi/any.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/string.h>
#include <tvm/ffi/type_traits.h>

#include <ostream>
#include <string>

namespace tvm {
namespace ffi {

// Codes from here on belong to types registered by name.
enum DLExtDataTypeCode { kDLExtCustomBegin = 129 };

namespace detail {

inline const char* DLDataTypeCodeAsCStr(DLDataTypeCode type_code) {
  switch (static_cast<int>(type_code)) {
    case kDLInt:
      return "int";
    case kDLUInt:
      return "uint";
    case kDLFloat:
      return "float";
    case kDLOpaqueHandle:
      return "handle";
    case kDLBfloat:
      return "bfloat";
    case kDLBool:
      return "bool";
    case kDLFloat8_e3m4:
      return "float8_e3m4";
    case kDLFloat8_e4m3:
      return "float8_e4m3";
    case kDLFloat8_e4m3b11fnuz:
      return "float8_e4m3b11fnuz";
    case kDLFloat8_e4m3fn:
      return "float8_e4m3fn";
    case kDLFloat8_e4m3fnuz:
      return "float8_e4m3fnuz";
    case kDLFloat8_e5m2:
      return "float8_e5m2";
    case kDLFloat8_e5m2fnuz:
      return "float8_e5m2fnuz";
    case kDLFloat8_e8m0fnu:
      return "float8_e8m0fnu";
    case kDLFloat6_e2m3fn:
      return "float6_e2m3fn";
    case kDLFloat6_e3m2fn:
      return "float6_e3m2fn";
    case kDLFloat4_e2m1fn:
      return "float4_e2m1fn";
  }
  if (static_cast<int>(type_code) >= static_cast<int>(kDLExtCustomBegin)) return "custom";
  TVM_FFI_THROW(ValueError) << "DLDataType contains unknown type_code="
                            << static_cast<int>(type_code);
  TVM_FFI_UNREACHABLE();  // nvcc does not see that the line above throws
}

}  // namespace detail

inline DLDataType StringToDLDataType(const String& str) {
  DLDataType out;
  TVMFFIByteArray data{str.data(), str.size()};
  TVM_FFI_CHECK_SAFE_CALL(TVMFFIDataTypeFromString(&data, &out));
  return out;
}

inline String DLDataTypeToString(DLDataType dtype) {
  TVMFFIAny out;
  TVM_FFI_CHECK_SAFE_CALL(TVMFFIDataTypeToString(&dtype, &out));
  return TypeTraits<String>::MoveFromAnyAfterCheck(&out);
}

inline bool DTypeIsFloat(DLDataType dtype) {
  int code = dtype.code;
  return code == kDLFloat || code == kDLBfloat ||
         (code >= kDLFloat8_e3m4 && code <= kDLFloat4_e2m1fn);
}
inline bool DTypeIsInt(DLDataType dtype) {
  int code = dtype.code;
  return code == kDLInt || code == kDLUInt;
}
inline bool DTypeIsBool(DLDataType dtype) { return static_cast<int>(dtype.code) == kDLBool; }

// Short form for names of generated code: i32x4, bf16, f8_e4m3fn.
inline std::string DTypeAbbrev(DLDataType dtype) {
  int code = dtype.code;
  if (code == kDLOpaqueHandle) return dtype.bits == 0 && dtype.lanes == 0 ? "void" : "handle";
  if (code >= static_cast<int>(kDLExtCustomBegin)) return DLDataTypeToString(dtype);
  std::string name = detail::DLDataTypeCodeAsCStr(static_cast<DLDataTypeCode>(code));
  if (code == kDLInt) name = "i";
  if (code == kDLUInt) name = "u";
  if (code == kDLBfloat) name = "bf";
  if (name.compare(0, 5, "float") == 0) name = "f" + name.substr(5);
  if (code < kDLFloat8_e3m4 && !(code == kDLBool && dtype.bits == 8)) {
    name += std::to_string(static_cast<int>(dtype.bits));
  }
  auto lanes = static_cast<int16_t>(dtype.lanes);
  if (lanes > 1) name += "x" + std::to_string(lanes);
  if (lanes < -1) name += "xvscalex" + std::to_string(-static_cast<int>(lanes));
  return name;
}

// Any text that TVMFFIDataTypeFromString takes converts; a malformed one raises its ValueError.
template <>
struct TypeTraits<DLDataType>
    : public tether::PayloadTraits<TypeTraits<DLDataType>, DLDataType, TypeIndex::kTVMFFIDataType> {
  TVM_FFI_INLINE static void Store(const DLDataType& src, TVMFFIAny* result) {
    result->v_dtype = src;
  }
  TVM_FFI_INLINE static DLDataType Load(const TVMFFIAny* src) { return src->v_dtype; }
  static std::optional<DLDataType> TryCastFromAnyView(const TVMFFIAny* src) {
    if (CheckAnyStrict(src)) return Load(src);
    if (auto text = TypeTraits<std::string>::TryCastFromAnyView(src)) {
      return StringToDLDataType(String(*std::move(text)));
    }
    return std::nullopt;
  }
  static std::string TypeStr() { return StaticTypeKey::kTVMFFIDataType; }
  static std::string TypeSchema() { return tether::Schema(StaticTypeKey::kTVMFFIDataType); }
};

}  // namespace ffi
}  // namespace tvm

inline bool operator==(const DLDataType& lhs, const DLDataType& rhs) {
  return lhs.code == rhs.code && lhs.bits == rhs.bits && lhs.lanes == rhs.lanes;
}
inline bool operator!=(const DLDataType& lhs, const DLDataType& rhs) { return !(lhs == rhs); }
// Does not throw: a data type is often part of the message of an error. One without a name is
// printed as its numbers.
inline std::ostream& operator<<(std::ostream& os, DLDataType dtype) {
  TVMFFIAny text;
  if (TVMFFIDataTypeToString(&dtype, &text) == 0) {
    return os << ::tvm::ffi::TypeTraits<::tvm::ffi::String>::MoveFromAnyAfterCheck(&text);
  }
  ::tvm::ffi::detail::MoveFromSafeCallRaised();
  return os << "dtype(code=" << static_cast<int>(dtype.code)
            << ", bits=" << static_cast<int>(dtype.bits) << ", lanes=" << dtype.lanes << ')';
}
#endif  // TVM_FFI_DTYPE_H_
