// SPDX-License-Identifier: Apache-2.0
// What the memory of a reflected field holds, decided once for everything that reads fields in
// place.
#ifndef TVM_FFI_CORE_FIELD_KIND_H_
#define TVM_FFI_CORE_FIELD_KIND_H_

#include <tvm/ffi/c_api.h>

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

// Whether the memory owns the objects that it refers to.
inline bool HoldsReferences(FieldKind kind) {
  return kind == FieldKind::kAny || kind == FieldKind::kObject;
}

}  // namespace tether
}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_CORE_FIELD_KIND_H_
