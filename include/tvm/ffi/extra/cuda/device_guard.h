// SPDX-License-Identifier: Apache-2.0
// Makes a CUDA device current for a scope.
//
//   CUDADeviceGuard guard(tensor.device().device_id);
//   kernel<<<grid, block, 0, stream>>>(...);
#ifndef TVM_FFI_EXTRA_CUDA_DEVICE_GUARD_H_
#define TVM_FFI_EXTRA_CUDA_DEVICE_GUARD_H_

#include <tvm/ffi/extra/cuda/base.h>

namespace tvm {
namespace ffi {

struct CUDADeviceGuard {
  CUDADeviceGuard() = delete;
  explicit CUDADeviceGuard(int device_index) {
    TVM_FFI_CHECK_CUDA_ERROR(cudaGetDevice(&original_device_));
    if (device_index == original_device_) return;
    TVM_FFI_CHECK_CUDA_ERROR(cudaSetDevice(device_index));
    switched_ = true;
  }
  CUDADeviceGuard(const CUDADeviceGuard&) = delete;
  CUDADeviceGuard& operator=(const CUDADeviceGuard&) = delete;
  // An error cannot be thrown from here; the next checked call reports it.
  ~CUDADeviceGuard() {
    if (switched_) (void)cudaSetDevice(original_device_);
  }

 private:
  int original_device_ = 0;
  bool switched_ = false;
};

}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_EXTRA_CUDA_DEVICE_GUARD_H_
