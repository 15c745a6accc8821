# SPDX-License-Identifier: Apache-2.0
"""GPU code that was compiled elsewhere (NVRTC here; Triton and nvcc work too), inside a library.

The C++ around it needs no nvcc: a C++ compiler and the CUDA runtime are enough.
"""

import os
from pathlib import Path

import tvm_ffi.cpp
import tvm_ffi.cpp.nvrtc

KERNEL = """
extern "C" __global__ void add_one(const float* x, float* y, long long n) {
  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + 1;
}
"""

LAUNCHER = """
#include <tvm/ffi/extra/cuda/cubin_launcher.h>

namespace ffi = tvm::ffi;

TVM_FFI_EMBED_CUBIN(kernels);

void add_one(ffi::TensorView x, ffi::TensorView y) {
  TVM_FFI_CHECK(x.device().device_type == kDLCUDA, ValueError) << "x must be on a GPU";
  TVM_FFI_CHECK(x.dtype() == (DLDataType{kDLFloat, 32, 1}), TypeError) << "x must be float32";
  TVM_FFI_CHECK(x.dtype() == y.dtype() && x.numel() == y.numel(), ValueError) << "x and y differ";
  static auto kernel = TVM_FFI_EMBED_CUBIN_GET_KERNEL(kernels, "add_one");
  void* from = x.data_ptr();
  void* to = y.data_ptr();
  int64_t n = x.numel();
  if (n == 0) return;
  void* args[] = {&from, &to, &n};
  auto stream =
      static_cast<ffi::cuda_api::StreamHandle>(TVMFFIEnvGetStream(kDLCUDA, x.device().device_id));
  ffi::dim3 grid(static_cast<unsigned>((n + 255) / 256)), block(256);
  ffi::cuda_api::Check(kernel.Launch(args, grid, block, stream), "add_one");
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
    home = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))
    if not (home / "include" / "cuda_runtime.h").exists():
        print(f"skipped: no headers of CUDA in {home}; set CUDA_HOME")
        return
    try:
        code = tvm_ffi.cpp.nvrtc.nvrtc_compile(KERNEL)
    except RuntimeError as error:
        print(f"skipped: {error}")
        return
    module = tvm_ffi.cpp.load_inline(
        "cubin_launcher",
        cpp_sources=LAUNCHER,
        functions=["add_one"],
        embed_cubin={"kernels": code},
        extra_include_paths=[str(home / "include")],
        extra_ldflags=[f"-L'{home / 'lib64'}'", "-lcudart"],
    )
    x = torch.arange(5, dtype=torch.float32, device="cuda")
    y = torch.empty_like(x)
    module.add_one(x, y)
    print(y.tolist())


if __name__ == "__main__":
    main()
