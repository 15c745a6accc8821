// SPDX-License-Identifier: Apache-2.0
// A copy of a tensor whose elements can be read here: row-major, without gaps, in its own memory.
#ifndef TVM_FFI_CORE_COPY_TENSOR_H_
#define TVM_FFI_CORE_COPY_TENSOR_H_

#include <tvm/ffi/container/tensor.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

namespace tvm {
namespace ffi {
namespace tether {

// Host memory, aligned as numeric libraries expect it.
struct HostMemory {
  void AllocData(DLTensor* t) {
    constexpr size_t kAlignment = 256;
    size_t size = (GetDataSize(*t) + kAlignment - 1) / kAlignment * kAlignment;
    t->data = std::aligned_alloc(kAlignment, size != 0 ? size : kAlignment);
    if (t->data == nullptr) throw std::bad_alloc();
  }
  void FreeData(DLTensor* t) { std::free(t->data); }
};

// Why CopyTensor cannot copy it, or null.
inline const char* FindCopyObstacle(const DLTensor& source) {
  if (source.device.device_type != kDLCPU) return "only a tensor on the CPU can be copied";
  if (FindDefect(source) == Defect::kNoMemory) return "a tensor without memory cannot be copied";
  if (source.dtype.bits * source.dtype.lanes % 8 != 0 && !IsContiguous(source)) {
    return "a tensor with gaps and elements that share bytes cannot be copied";
  }
  return nullptr;
}

inline Tensor CopyTensor(const DLTensor& source) {
  if (const char* obstacle = FindCopyObstacle(source)) TVM_FFI_THROW(ValueError) << obstacle;
  const ShapeView shape(source.shape, static_cast<size_t>(source.ndim));
  Tensor copy = Tensor::FromNDAlloc(HostMemory(), shape, source.dtype, source.device);
  auto* to = static_cast<char*>(copy.data_ptr());
  if (shape.Product() == 0) return copy;
  const char* from = static_cast<const char*>(source.data) + source.byte_offset;
  if (IsContiguous(source)) {
    std::memcpy(to, from, GetDataSize(source));
    return copy;
  }
  // Counts through all indices, the last dimension fastest. That one is copied a row at a time.
  const auto size = static_cast<int64_t>(GetDataSize(1, source.dtype));
  const int32_t last = source.ndim - 1;
  std::vector<int64_t> at(shape.size(), 0);
  for (int32_t turned = last; turned >= 0;) {
    const char* element = from;
    for (int64_t i = 0; i < shape[static_cast<size_t>(last)]; ++i) {
      std::memcpy(to, element, static_cast<size_t>(size));
      to += size;
      element += source.strides[last] * size;
    }
    for (turned = last - 1; turned >= 0; --turned) {
      auto i = static_cast<size_t>(turned);
      from += source.strides[i] * size;
      if (++at[i] < shape[i]) break;
      from -= shape[i] * source.strides[i] * size;
      at[i] = 0;
    }
  }
  return copy;
}

}  // namespace tether
}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_CORE_COPY_TENSOR_H_
