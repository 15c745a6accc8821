// SPDX-License-Identifier: Apache-2.0
// Byte order of this host and of serialized data.
#ifndef TVM_FFI_ENDIAN_H_
#define TVM_FFI_ENDIAN_H_

#include <cstddef>
#include <cstdint>
#include <utility>

#ifndef TVM_FFI_IO_USE_LITTLE_ENDIAN
#define TVM_FFI_IO_USE_LITTLE_ENDIAN 1
#endif

#ifdef TVM_FFI_CMAKE_LITTLE_ENDIAN
#define TVM_FFI_LITTLE_ENDIAN TVM_FFI_CMAKE_LITTLE_ENDIAN
#elif defined(__BYTE_ORDER__) && defined(__ORDER_LITTLE_ENDIAN__)
#define TVM_FFI_LITTLE_ENDIAN (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
#elif defined(_WIN32)
#define TVM_FFI_LITTLE_ENDIAN 1
#else
#error "Cannot tell the byte order of this platform; define TVM_FFI_CMAKE_LITTLE_ENDIAN"
#endif

#define TVM_FFI_IO_NO_ENDIAN_SWAP (TVM_FFI_LITTLE_ENDIAN == TVM_FFI_IO_USE_LITTLE_ENDIAN)

namespace tvm {
namespace ffi {

// Reverses the bytes of each of num_elems elements in place.
inline void ByteSwap(void* data, size_t elem_bytes, size_t num_elems) {
  auto* bytes = static_cast<uint8_t*>(data);
  for (size_t e = 0; e < num_elems; ++e, bytes += elem_bytes) {
    for (size_t i = 0, j = elem_bytes; i + 1 < j; ++i) std::swap(bytes[i], bytes[--j]);
  }
}

}  // namespace ffi
}  // namespace tvm
#endif  // TVM_FFI_ENDIAN_H_
