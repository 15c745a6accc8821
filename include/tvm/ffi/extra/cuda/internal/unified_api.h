// SPDX-License-Identifier: Apache-2.0
// The few CUDA calls that loading and launching a cubin needs, on either of the toolkit's
// interfaces.
//
// The runtime has them since CUDA 12.8 and needs only libcudart; older toolkits use the driver
// interface and libcuda. Define TVM_FFI_CUBIN_LAUNCHER_USE_DRIVER_API as 0 or 1 to choose.
#ifndef TVM_FFI_EXTRA_CUDA_INTERNAL_UNIFIED_API_H_
#define TVM_FFI_EXTRA_CUDA_INTERNAL_UNIFIED_API_H_

#include <cuda_runtime.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/cuda/base.h>

#include <cstddef>
#include <cstdint>

#ifndef TVM_FFI_CUBIN_LAUNCHER_USE_DRIVER_API
#if CUDART_VERSION >= 12080
#define TVM_FFI_CUBIN_LAUNCHER_USE_DRIVER_API 0
#else
#define TVM_FFI_CUBIN_LAUNCHER_USE_DRIVER_API 1
#endif
#endif

#if TVM_FFI_CUBIN_LAUNCHER_USE_DRIVER_API
#include <cuda.h>
#endif

namespace tvm {
namespace ffi {
namespace cuda_api {

#if TVM_FFI_CUBIN_LAUNCHER_USE_DRIVER_API

using ResultType = CUresult;
using LibraryHandle = CUlibrary;
using KernelHandle = CUkernel;
using StreamHandle = CUstream;
using LaunchConfig = CUlaunchConfig;

inline constexpr ResultType kSuccess = CUDA_SUCCESS;

inline const char* ErrorText(ResultType result) {
  const char* text = nullptr;
  return cuGetErrorString(result, &text) == CUDA_SUCCESS ? text : "unknown error";
}
inline ResultType LoadLibrary(LibraryHandle* library, const void* image) {
  // The driver interface works in the current context; the runtime makes one on first use.
  (void)cudaFree(nullptr);
  return cuLibraryLoadData(library, image, nullptr, nullptr, 0, nullptr, nullptr, 0);
}
inline ResultType UnloadLibrary(LibraryHandle library) { return cuLibraryUnload(library); }
inline ResultType GetKernel(KernelHandle* kernel, LibraryHandle library, const char* name) {
  return cuLibraryGetKernel(kernel, library, name);
}
inline ResultType Launch(KernelHandle kernel, void** args, dim3 grid, dim3 block,
                         StreamHandle stream, uint32_t dyn_smem_bytes) {
  return cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), grid.x, grid.y, grid.z, block.x,
                        block.y, block.z, dyn_smem_bytes, stream, args, nullptr);
}
inline ResultType LaunchEx(KernelHandle kernel, void** args, const LaunchConfig& config) {
  return cuLaunchKernelEx(&config, reinterpret_cast<CUfunction>(kernel), args, nullptr);
}
inline ResultType GetStaticSharedMemory(KernelHandle kernel, int device, size_t* bytes) {
  int value = 0;
  ResultType result =
      cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, kernel, device);
  *bytes = static_cast<size_t>(value);
  return result;
}
inline ResultType SetMaxDynamicSharedMemory(KernelHandle kernel, int device, int bytes) {
  return cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes, kernel,
                              device);
}

#else

using ResultType = cudaError_t;
using LibraryHandle = cudaLibrary_t;
using KernelHandle = cudaKernel_t;
using StreamHandle = cudaStream_t;
using LaunchConfig = cudaLaunchConfig_t;

inline constexpr ResultType kSuccess = cudaSuccess;

inline const char* ErrorText(ResultType result) { return cudaGetErrorString(result); }
inline ResultType LoadLibrary(LibraryHandle* library, const void* image) {
  return cudaLibraryLoadData(library, image, nullptr, nullptr, 0, nullptr, nullptr, 0);
}
inline ResultType UnloadLibrary(LibraryHandle library) { return cudaLibraryUnload(library); }
inline ResultType GetKernel(KernelHandle* kernel, LibraryHandle library, const char* name) {
  return cudaLibraryGetKernel(kernel, library, name);
}
inline ResultType Launch(KernelHandle kernel, void** args, dim3 grid, dim3 block,
                         StreamHandle stream, uint32_t dyn_smem_bytes) {
  return cudaLaunchKernel(reinterpret_cast<const void*>(kernel), ::dim3(grid.x, grid.y, grid.z),
                          ::dim3(block.x, block.y, block.z), args, dyn_smem_bytes, stream);
}
inline ResultType LaunchEx(KernelHandle kernel, void** args, const LaunchConfig& config) {
  return cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(kernel), args);
}
inline ResultType GetStaticSharedMemory(KernelHandle kernel, int, size_t* bytes) {
  cudaFuncAttributes attributes{};
  ResultType result = cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(kernel));
  *bytes = attributes.sharedSizeBytes;
  return result;
}
inline ResultType SetMaxDynamicSharedMemory(KernelHandle kernel, int device, int bytes) {
  return cudaKernelSetAttributeForDevice(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes,
                                         device);
}

#endif  // TVM_FFI_CUBIN_LAUNCHER_USE_DRIVER_API

inline void Check(ResultType result, const char* what) {
  if (TVM_FFI_PREDICT_TRUE(result == kSuccess)) return;
  TVM_FFI_THROW(RuntimeError) << what << ": " << ErrorText(result);
}

}  // namespace cuda_api
}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_EXTRA_CUDA_INTERNAL_UNIFIED_API_H_
