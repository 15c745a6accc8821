// SPDX-License-Identifier: Apache-2.0
// What the CUDA helpers share: checking runtime calls, and launch dimensions.
//
//   TVM_FFI_CHECK_CUDA_ERROR(cudaMemcpyAsync(dst, src, n, cudaMemcpyDefault, stream));
//
// Needs the CUDA toolkit's headers; the rest of the library does not.
#ifndef TVM_FFI_EXTRA_CUDA_BASE_H_
#define TVM_FFI_EXTRA_CUDA_BASE_H_

#include <cuda_runtime.h>
#include <tvm/ffi/error.h>

namespace tvm {
namespace ffi {

// Grid or block size; unlike the toolkit's own it also exists without CUDA's compiler.
struct dim3 {
  unsigned int x;
  unsigned int y;
  unsigned int z;

  dim3(unsigned int x = 1, unsigned int y = 1, unsigned int z = 1)  // NOLINT(*)
      : x(x), y(y), z(z) {}
};

namespace tether {

[[noreturn]] TVM_FFI_COLD_CODE TVM_FFI_NO_INLINE inline void ThrowCudaError(cudaError_t error,
                                                                            const char* call) {
  // Clears a sticky error, so that the next call does not report it again.
  (void)cudaGetLastError();
  TVM_FFI_THROW(RuntimeError) << "CUDA error " << cudaGetErrorName(error) << " in `" << call
                              << "`: " << cudaGetErrorString(error);
}

}  // namespace tether
}  // namespace ffi
}  // namespace tvm

// Throws a RuntimeError unless `stmt` gives cudaSuccess.
#define TVM_FFI_CHECK_CUDA_ERROR(stmt)                                \
  do {                                                                \
    const cudaError_t tvm_ffi_cuda_error_ = (stmt);                   \
    if (TVM_FFI_PREDICT_FALSE(tvm_ffi_cuda_error_ != cudaSuccess)) {  \
      ::tvm::ffi::tether::ThrowCudaError(tvm_ffi_cuda_error_, #stmt); \
    }                                                                 \
  } while (false)

#endif  // TVM_FFI_EXTRA_CUDA_BASE_H_
