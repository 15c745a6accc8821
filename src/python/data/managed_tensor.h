// SPDX-License-Identifier: Apache-2.0
// Managed tensors of DLPack, as they are imported.
#ifndef TETHER_PYTHON_DATA_MANAGED_TENSOR_H_
#define TETHER_PYTHON_DATA_MANAGED_TENSOR_H_

#include <tvm/ffi/base_detail.h>
#include <tvm/ffi/c_api.h>

#include "python/base/compat.h"

namespace tether_py {

// What from_dlpack demands of a tensor.
struct ImportOptions {
  int32_t require_alignment = 0;
  bool require_contiguous = false;
};

// Whether a tensor has elements and memory, and so few dimensions, extents, strides and bits that
// nothing FindDefect computes can overflow: nearly every one, in a third of the instructions.
inline bool IsUsualGeometry(const DLTensor& t) {
  constexpr int kBits = 25;  // of an extent, a stride, and the elements of all dimensions but one
  const uint32_t element = uint32_t{t.dtype.bits} * t.dtype.lanes;
  if (static_cast<uint32_t>(t.ndim) > 6 || element == 0 || element > 256 || t.data == nullptr ||
      t.byte_offset > INT64_MAX || (t.ndim != 0 && t.shape == nullptr)) {
    return false;
  }
  const int64_t* strides = t.strides != nullptr ? t.strides : t.shape;
  uint64_t count = 1, all = 0;
  for (int32_t i = 0; i < t.ndim; ++i) {
    const auto extent = static_cast<uint64_t>(t.shape[i]);  // huge if it is negative
    all |= extent | static_cast<uint64_t>(strides[i]) | count;
    count *= extent;
  }
  return (all >> kBits) == 0 && count != 0;
}
// Rejects impossible shapes, strides and offsets. False with an error set.
bool CheckGeometrySlow(const DLTensor& t);
inline bool CheckGeometry(const DLTensor& t) {
  return TVM_FFI_PREDICT_TRUE(IsUsualGeometry(t)) || CheckGeometrySlow(t);
}
// Refuses other major versions of DLPack. False with an error set.
bool CheckVersion(const DLPackVersion& version, const char* what);

// The functions that import return a new reference, or NULL with an error set.

// Both take `managed` over only when they succeed.
TVMFFIObject* ImportManaged(DLManagedTensor* managed, const ImportOptions& options);
TVMFFIObject* ImportManaged(DLManagedTensorVersioned* managed, const ImportOptions& options);
void DeleteManaged(DLManagedTensorVersioned* managed);

}  // namespace tether_py
#endif  // TETHER_PYTHON_DATA_MANAGED_TENSOR_H_
