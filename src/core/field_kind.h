// SPDX-License-Identifier: Apache-2.0
// What the memory of a reflected field holds, decided once for everything that reads fields in
// place.
#ifndef TVM_FFI_CORE_FIELD_KIND_H_
#define TVM_FFI_CORE_FIELD_KIND_H_

#include <tvm/ffi/c_api.h>
#include <tvm/ffi/type_traits.h>

#include <string>

namespace tvm {
namespace ffi {
namespace tether {

enum class FieldKind : uint8_t {
  kGetter,  // the memory does not say: only the getter knows
  kInt64,
  kInt,  // of info.size bytes, signed unless the flag PlainUnsigned is set
  kBool,
  kFloat64,
  kFloat32,
  kAny,     // one TVMFFIAny
  kObject,  // one pointer, NULL for None
};

inline FieldKind KindOfField(const TVMFFIFieldInfo& info) {
  if ((info.flags & kTVMFFIFieldFlagBitMaskPlain) == 0) return FieldKind::kGetter;
  switch (info.field_static_type_index) {
    case kTVMFFIInt:
      return info.size == 8 ? FieldKind::kInt64 : FieldKind::kInt;
    case kTVMFFIBool:
      return FieldKind::kBool;
    case kTVMFFIFloat:
      return info.size == 4 ? FieldKind::kFloat32 : FieldKind::kFloat64;
    case kTVMFFIAny:
      return FieldKind::kAny;
    default:
      return info.field_static_type_index >= kTVMFFIObject ? FieldKind::kObject
                                                           : FieldKind::kGetter;
  }
}

// Whether a field of narrow integers has room for a value. Setters of clients that were compiled
// with older headers would store the low bytes. Those headers do not say whether a field is signed:
// it may then be either.
inline bool FitsField(const TVMFFIFieldInfo& info, const TVMFFIAny& value) {
  if (info.field_static_type_index != kTVMFFIInt || value.type_index != kTVMFFIInt) return true;
  if (info.size >= 8 || info.size <= 0) return true;
  int64_t bits = info.size * 8;
  bool is_plain = (info.flags & kTVMFFIFieldFlagBitMaskPlain) != 0;
  bool is_unsigned = (info.flags & kTVMFFIFieldFlagBitMaskPlainUnsigned) != 0;
  int64_t low = is_plain && is_unsigned ? 0 : -(int64_t{1} << (bits - 1));
  int64_t high = (int64_t{1} << (is_plain && !is_unsigned ? bits - 1 : bits)) - 1;
  return low <= value.v_int64 && value.v_int64 <= high;
}

// "300 is out of range for uint8 (0 to 255)", for a value that does not fit.
inline std::string OutOfFieldText(const TVMFFIFieldInfo& info, const TVMFFIAny& value) {
  bool is_plain = (info.flags & kTVMFFIFieldFlagBitMaskPlain) != 0;
  bool is_unsigned = (info.flags & kTVMFFIFieldFlagBitMaskPlainUnsigned) != 0;
  // Of unknown sign: a value above the signed range is above the unsigned one.
  bool is_signed = is_plain ? !is_unsigned : value.v_int64 < 0;
  return OutOfRangeText(value.v_int64, static_cast<size_t>(info.size), is_signed);
}

// Whether the memory owns the objects that it refers to.
inline bool HoldsReferences(FieldKind kind) {
  return kind == FieldKind::kAny || kind == FieldKind::kObject;
}

}  // namespace tether
}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_CORE_FIELD_KIND_H_
