// SPDX-License-Identifier: Apache-2.0
// The kernel of peers.cc.
#include <cuda_runtime.h>

__global__ void Add(const float* a, const float* b, float* out) {
  out[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x];
}

void LaunchAdd(const float* a, const float* b, float* out, cudaStream_t stream) {
  Add<<<1, 32, 0, stream>>>(a, b, out);
}
