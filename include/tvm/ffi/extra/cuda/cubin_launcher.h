// SPDX-License-Identifier: Apache-2.0
// Loads compiled CUDA code (a cubin or fatbin) and launches its kernels.
//
//   TVM_FFI_EMBED_CUBIN(my_kernels);                  // linked in by the embed_cubin tool
//   static auto add_one = TVM_FFI_EMBED_CUBIN_GET_KERNEL(my_kernels, "add_one");
//   void* args[] = {&x_ptr, &y_ptr, &n};
//   cuda_api::Check(add_one.Launch(args, dim3(blocks), dim3(256), stream), "add_one");
#ifndef TVM_FFI_EXTRA_CUDA_CUBIN_LAUNCHER_H_
#define TVM_FFI_EXTRA_CUDA_CUBIN_LAUNCHER_H_

#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/cuda/base.h>
#include <tvm/ffi/extra/cuda/internal/unified_api.h>
#include <tvm/ffi/string.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace tvm {
namespace ffi {

// A kernel of a CubinModule, valid as long as the module is.
class CubinKernel {
 public:
  explicit CubinKernel(cuda_api::KernelHandle handle) : handle_(handle) {}

  cuda_api::KernelHandle GetHandle() const { return handle_; }

  // Asynchronous, as every launch. args[i] points at the value of parameter i.
  cuda_api::ResultType Launch(void** args, dim3 grid, dim3 block, cuda_api::StreamHandle stream,
                              uint32_t dyn_smem_bytes = 0) const {
    return cuda_api::Launch(handle_, args, grid, block, stream, dyn_smem_bytes);
  }

  // With launch attributes such as cluster size.
  cuda_api::ResultType LaunchEx(void** args, const cuda_api::LaunchConfig& config) const {
    return cuda_api::LaunchEx(handle_, args, config);
  }

  // Allows launches with that much dynamic shared memory; -1 for all that a device has beside the
  // kernel's static part. Applies to every device that can run the kernel; fails if none can.
  void SetMaxDynamicSharedMemory(int64_t dynamic_smem_max = -1) const {
    int num_devices = 0;
    TVM_FFI_CHECK_CUDA_ERROR(cudaGetDeviceCount(&num_devices));
    cuda_api::ResultType result = cuda_api::kSuccess;
    bool any = false;
    for (int device = 0; device < num_devices; ++device) {
      int bytes = static_cast<int>(dynamic_smem_max);
      if (dynamic_smem_max < 0) {
        int available = 0;
        TVM_FFI_CHECK_CUDA_ERROR(
            cudaDeviceGetAttribute(&available, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
        size_t used = 0;
        result = cuda_api::GetStaticSharedMemory(handle_, device, &used);
        if (result != cuda_api::kSuccess) continue;
        bytes = available - static_cast<int>(used);
      }
      result = cuda_api::SetMaxDynamicSharedMemory(handle_, device, bytes);
      any = any || result == cuda_api::kSuccess;
    }
    if (!any) cuda_api::Check(result, "cannot set the maximum of dynamic shared memory");
  }

 private:
  cuda_api::KernelHandle handle_;
};

// Compiled code in the driver, for all devices of the process.
class CubinModule {
 public:
  // `bytes` may go away afterwards.
  explicit CubinModule(const Bytes& bytes) : CubinModule(bytes.data()) {}
  // The image knows its own length.
  explicit CubinModule(const char* code) : CubinModule(static_cast<const void*>(code)) {}
  explicit CubinModule(const unsigned char* code) : CubinModule(static_cast<const void*>(code)) {}
  CubinModule(CubinModule&& other) noexcept : library_(std::exchange(other.library_, nullptr)) {}
  CubinModule& operator=(CubinModule&& other) noexcept {
    std::swap(library_, other.library_);
    return *this;
  }
  // At process exit the driver may be gone already; its answer is ignored then.
  ~CubinModule() {
    if (library_ != nullptr) (void)cuda_api::UnloadLibrary(library_);
  }

  CubinKernel GetKernel(const char* name) const {
    cuda_api::KernelHandle kernel = nullptr;
    cuda_api::ResultType result = cuda_api::GetKernel(&kernel, library_, name);
    if (result != cuda_api::kSuccess) {
      cuda_api::Check(result, (std::string("cannot find the kernel `") + name + "`").c_str());
    }
    return CubinKernel(kernel);
  }
  CubinKernel GetKernelWithMaxDynamicSharedMemory(const char* name,
                                                  int64_t dynamic_smem_max = -1) const {
    CubinKernel kernel = GetKernel(name);
    kernel.SetMaxDynamicSharedMemory(dynamic_smem_max);
    return kernel;
  }
  CubinKernel operator[](const char* name) const { return GetKernel(name); }

  cuda_api::LibraryHandle GetHandle() const { return library_; }

 private:
  explicit CubinModule(const void* image) {
    cuda_api::Check(cuda_api::LoadLibrary(&library_, image), "cannot load the cubin");
  }

  cuda_api::LibraryHandle library_ = nullptr;
};

}  // namespace ffi
}  // namespace tvm

// A module made of `image` on first use, found again under `name`.
#define TVM_FFI_EMBED_CUBIN_DEFINE_(name, image)    \
  namespace {                                       \
  struct TVMFFIEmbeddedCubin_##name {               \
    static ::tvm::ffi::CubinModule& Module() {      \
      static ::tvm::ffi::CubinModule module(image); \
      return module;                                \
    }                                               \
  };                                                \
  }                                                 \
  static_assert(true, "takes the semicolon")

// For code that the embed_cubin tool merges into this object file.
#define TVM_FFI_EMBED_CUBIN(name)                        \
  extern "C" const char __tvm_ffi__cubin_##name[];       \
  extern "C" const char __tvm_ffi__cubin_##name##_end[]; \
  TVM_FFI_EMBED_CUBIN_DEFINE_(name, __tvm_ffi__cubin_##name)

// For code that is in an array of bytes.
#define TVM_FFI_EMBED_CUBIN_FROM_BYTES(name, bytes) TVM_FFI_EMBED_CUBIN_DEFINE_(name, bytes)

#define TVM_FFI_EMBED_CUBIN_GET_KERNEL(name, kernel_name) \
  (TVMFFIEmbeddedCubin_##name::Module()[kernel_name])

#endif  // TVM_FFI_EXTRA_CUDA_CUBIN_LAUNCHER_H_
