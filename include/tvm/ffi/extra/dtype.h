// SPDX-License-Identifier: Apache-2.0
// The DLDataType of a C++ element type, also of device types whose headers are not included.
//
//   static_assert(tvm::ffi::dtype_trait<float>::value.bits == 32);
#ifndef TVM_FFI_EXTRA_DTYPE_H_
#define TVM_FFI_EXTRA_DTYPE_H_

#include <dlpack/dlpack.h>

#include <type_traits>

// Only named here; the CUDA and HIP headers define them.
struct __half;
struct __nv_bfloat16;
struct __nv_fp8_e4m3;
struct __nv_fp8_e5m2;
struct __nv_fp8_e8m0;
struct __nv_fp4_e2m1;
struct __nv_fp4x2_e2m1;
struct __hip_bfloat16;
struct hip_bfloat16;
struct __hip_fp8_e4m3;
struct __hip_fp8_e5m2;
struct __hip_fp8_e4m3_fnuz;
struct __hip_fp8_e5m2_fnuz;
struct __hip_fp4_e2m1;
struct __hip_fp4x2_e2m1;

namespace tvm {
namespace ffi {

// No `value` for a type that has no DLPack equivalent.
template <typename T, typename = void>
struct dtype_trait {};

template <uint8_t kCode, uint8_t kBits, uint16_t kLanes = 1>
struct dtype_constant {
  static constexpr DLDataType value = {kCode, kBits, kLanes};
};

template <>
struct dtype_trait<bool> : dtype_constant<kDLBool, 8> {};
template <typename T>
struct dtype_trait<T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>>>
    : dtype_constant<std::is_signed_v<T> ? kDLInt : kDLUInt, sizeof(T) * 8> {};
template <>
struct dtype_trait<float> : dtype_constant<kDLFloat, 32> {};
template <>
struct dtype_trait<double> : dtype_constant<kDLFloat, 64> {};

template <>
struct dtype_trait<__half> : dtype_constant<kDLFloat, 16> {};
template <>
struct dtype_trait<__nv_bfloat16> : dtype_constant<kDLBfloat, 16> {};
template <>
struct dtype_trait<__hip_bfloat16> : dtype_constant<kDLBfloat, 16> {};
template <>
struct dtype_trait<hip_bfloat16> : dtype_constant<kDLBfloat, 16> {};
template <>
struct dtype_trait<__nv_fp8_e4m3> : dtype_constant<kDLFloat8_e4m3fn, 8> {};
template <>
struct dtype_trait<__hip_fp8_e4m3> : dtype_constant<kDLFloat8_e4m3fn, 8> {};
template <>
struct dtype_trait<__nv_fp8_e5m2> : dtype_constant<kDLFloat8_e5m2, 8> {};
template <>
struct dtype_trait<__hip_fp8_e5m2> : dtype_constant<kDLFloat8_e5m2, 8> {};
template <>
struct dtype_trait<__nv_fp8_e8m0> : dtype_constant<kDLFloat8_e8m0fnu, 8> {};
template <>
struct dtype_trait<__hip_fp8_e4m3_fnuz> : dtype_constant<kDLFloat8_e4m3fnuz, 8> {};
template <>
struct dtype_trait<__hip_fp8_e5m2_fnuz> : dtype_constant<kDLFloat8_e5m2fnuz, 8> {};
template <>
struct dtype_trait<__nv_fp4_e2m1> : dtype_constant<kDLFloat4_e2m1fn, 4> {};
template <>
struct dtype_trait<__hip_fp4_e2m1> : dtype_constant<kDLFloat4_e2m1fn, 4> {};
// One value of these holds two elements.
template <>
struct dtype_trait<__nv_fp4x2_e2m1> : dtype_constant<kDLFloat4_e2m1fn, 4, 2> {};
template <>
struct dtype_trait<__hip_fp4x2_e2m1> : dtype_constant<kDLFloat4_e2m1fn, 4, 2> {};

}  // namespace ffi
}  // namespace tvm

// The namespace up to 0.1.14.
namespace tvm_ffi {
using ::tvm::ffi::dtype_trait;
}  // namespace tvm_ffi
#endif  // TVM_FFI_EXTRA_DTYPE_H_
