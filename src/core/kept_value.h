// SPDX-License-Identifier: Apache-2.0
// What an object is to keep of an argument: a DLTensor* is only lent, and nobody says until when it
// is valid.
#ifndef TETHER_CORE_KEPT_VALUE_H_
#define TETHER_CORE_KEPT_VALUE_H_

#include <tvm/ffi/any.h>
#include <tvm/ffi/error.h>

#include "core/field_kind.h"

namespace tvm {
namespace ffi {
namespace tether {

inline constexpr char kCannotKeepLent[] =
    "DLTensor* cannot be held in Any: a tensor that C++ only lends to a callback is valid during "
    "the call alone; copy.deepcopy(tensor) makes one that can be kept";

[[noreturn]] TVM_FFI_NO_INLINE inline void ThrowCannotKeepLent() {
  TVM_FFI_THROW(ValueError) << kCannotKeepLent;
}

// The value, as the Any that keeps it.
inline Any Kept(const AnyView& value) {
  if (TVM_FFI_PREDICT_FALSE(value.type_index() == kTVMFFIDLTensorPtr)) ThrowCannotKeepLent();
  return Any(value);
}

// Whether a field would keep such a value.
inline bool WouldKeepLent(const TVMFFIFieldInfo& field, const TVMFFIAny& value) {
  return TVM_FFI_PREDICT_FALSE(value.type_index == kTVMFFIDLTensorPtr) &&
         KindOfField(field) == FieldKind::kAny;
}

}  // namespace tether
}  // namespace ffi
}  // namespace tvm
#endif  // TETHER_CORE_KEPT_VALUE_H_
