# SPDX-License-Identifier: Apache-2.0
"""A CUDA kernel on torch tensors: on their device and stream; the result is a torch tensor."""

import os
import shutil

import tvm_ffi.cpp

SOURCE = """
#include <tvm/ffi/extra/cuda/device_guard.h>

namespace ffi = tvm::ffi;

__global__ void ScaleKernel(const float* x, float* y, int64_t n, float factor) {
  int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (i < n) y[i] = x[i] * factor;
}

ffi::Tensor scale(ffi::TensorView x, double factor) {
  TVM_FFI_CHECK(x.device().device_type == kDLCUDA, ValueError) << "x must be on a GPU";
  TVM_FFI_CHECK(x.dtype() == (DLDataType{kDLFloat, 32, 1}), TypeError) << "x must be float32";
  TVM_FFI_CHECK(x.IsContiguous(), ValueError) << "x must be contiguous";
  ffi::CUDADeviceGuard guard(x.device().device_id);
  // Allocated by torch, because the argument is a tensor of torch.
  ffi::Tensor y = ffi::Tensor::FromEnvAlloc(TVMFFIEnvTensorAlloc, x.shape(), x.dtype(), x.device());
  int64_t n = x.numel();
  if (n == 0) return y;
  auto stream = static_cast<cudaStream_t>(TVMFFIEnvGetStream(kDLCUDA, x.device().device_id));
  ScaleKernel<<<static_cast<unsigned>((n + 255) / 256), 256, 0, stream>>>(
      static_cast<const float*>(x.data_ptr()), static_cast<float*>(y.data_ptr()), n,
      static_cast<float>(factor));
  TVM_FFI_CHECK(cudaGetLastError() == cudaSuccess, RuntimeError) << "the launch failed";
  return y;
}
"""


def main() -> None:
    try:
        import torch
    except ImportError:
        print("skipped: torch is not installed")
        return
    if not torch.cuda.is_available():
        print("skipped: torch sees no GPU")
        return
    if shutil.which("nvcc") is None and "CUDA_HOME" not in os.environ:
        print("skipped: nvcc is not on PATH, and CUDA_HOME is not set")
        return
    module = tvm_ffi.cpp.load_inline("scale", cuda_sources=SOURCE, functions=["scale"])
    x = torch.arange(5, dtype=torch.float32, device="cuda")
    y = module.scale(x, 2.0)
    assert isinstance(y, torch.Tensor)
    with torch.cuda.stream(torch.cuda.Stream()):
        z = module.scale(y, 0.5)
        torch.cuda.current_stream().synchronize()
    assert torch.equal(x, z)
    print(y.tolist())


if __name__ == "__main__":
    main()
