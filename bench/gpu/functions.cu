// SPDX-License-Identifier: Apache-2.0
// What bench/run_gpu.py calls: functions of tensors through the FFI, and the same work without it.
// Compiled once with the headers of each package.
#include <Python.h>
#include <cuda_runtime.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>

#include <chrono>

namespace ffi = tvm::ffi;

__global__ void Add(const float* a, const float* b, float* out) {
  out[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x];
}

void Nothing(ffi::TensorView, ffi::TensorView, ffi::TensorView) {}

void Launch(ffi::TensorView a, ffi::TensorView b, ffi::TensorView out) {
  DLDevice device = out.device();
  auto stream =
      static_cast<cudaStream_t>(TVMFFIEnvGetStream(device.device_type, device.device_id));
  Add<<<1, 32, 0, stream>>>(static_cast<const float*>(a.data_ptr()),
                            static_cast<const float*>(b.data_ptr()),
                            static_cast<float*>(out.data_ptr()));
}

TVM_FFI_DLL_EXPORT_TYPED_FUNC(nothing, Nothing);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(launch, Launch);

template <typename F>
static double Nanoseconds(int count, F&& f) {
  auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < count; ++i) f();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count() /
         count;
}

extern "C" {

// A framework's own exchange functions, called from C: what no frontend can do without.
__attribute__((visibility("default"))) double time_view(const DLPackExchangeAPI* api,
                                                        PyObject* tensor, int count) {
  DLTensor view;
  return Nanoseconds(count, [&] { api->dltensor_from_py_object_no_sync(tensor, &view); });
}
__attribute__((visibility("default"))) double time_stream(const DLPackExchangeAPI* api, int count) {
  void* stream;
  return Nanoseconds(count, [&] { api->current_work_stream(kDLCUDA, 0, &stream); });
}
// The launch alone.
__attribute__((visibility("default"))) double time_launch(float* data, int count) {
  return Nanoseconds(count, [&] { Add<<<1, 32>>>(data, data, data); });
}
}
