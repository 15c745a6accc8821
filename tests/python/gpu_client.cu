// SPDX-License-Identifier: Apache-2.0
// A library with one kernel: it works on the stream of its caller, and its result is made by the
// framework whose tensor it was given.
#include <cuda_runtime.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>

namespace {

namespace ffi = tvm::ffi;

__global__ void AddKernel(const float* x, float* y, int64_t n, float amount) {
  int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (i < n) y[i] = x[i] + amount;
}

// Keeps the stream busy, so that what is queued behind it is seen to wait.
__global__ void SpinKernel(int64_t cycles) {
  int64_t begin = clock64();
  while (clock64() - begin < cycles) {
  }
}

cudaStream_t StreamOf(DLDevice device) {
  return static_cast<cudaStream_t>(TVMFFIEnvGetStream(device.device_type, device.device_id));
}

void Check(cudaError_t code) {
  TVM_FFI_CHECK(code == cudaSuccess, RuntimeError) << cudaGetErrorString(code);
}

void CheckInput(ffi::TensorView x) {
  TVM_FFI_CHECK(x.device().device_type == kDLCUDA, ValueError) << "x must be on a GPU";
  TVM_FFI_CHECK(x.dtype() == (DLDataType{kDLFloat, 32, 1}), TypeError) << "x must be float32";
  TVM_FFI_CHECK(x.IsContiguous(), ValueError) << "x must be contiguous";
}

void AddInto(ffi::TensorView x, ffi::TensorView y, double amount) {
  CheckInput(x);
  CheckInput(y);
  int64_t n = x.numel();
  TVM_FFI_CHECK(y.numel() == n, ValueError) << "x and y differ in size";
  if (n == 0) return;
  AddKernel<<<static_cast<unsigned>((n + 255) / 256), 256, 0, StreamOf(x.device())>>>(
      static_cast<const float*>(x.data_ptr()), static_cast<float*>(y.data_ptr()), n,
      static_cast<float>(amount));
  Check(cudaGetLastError());
}

ffi::Tensor Add(ffi::TensorView x, double amount) {
  CheckInput(x);
  ffi::Tensor y = ffi::Tensor::FromEnvAlloc(TVMFFIEnvTensorAlloc, x.shape(), x.dtype(), x.device());
  AddInto(x, y, amount);
  return y;
}

void Spin(ffi::TensorView x, int64_t cycles) {
  SpinKernel<<<1, 1, 0, StreamOf(x.device())>>>(cycles);
  Check(cudaGetLastError());
}

}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(add, Add);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(add_into, AddInto);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(spin, Spin);
