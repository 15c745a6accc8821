/* SPDX-License-Identifier: Apache-2.0 */
/* A library without C++: functions that take and return plain values, or raise. */
#include <tvm/ffi/c_api.h>

TVM_FFI_DLL_EXPORT int __tvm_ffi_double_it(void* handle, const TVMFFIAny* args, int32_t num_args,
                                           TVMFFIAny* result) {
  (void)handle;
  if (num_args != 1 || args[0].type_index != kTVMFFIInt) {
    TVMFFIErrorSetRaisedFromCStr("TypeError", "double_it expects one int");
    return -1;
  }
  result->type_index = kTVMFFIInt;
  result->zero_padding = 0;
  result->v_int64 = 2 * args[0].v_int64;
  return 0;
}

TVM_FFI_DLL_EXPORT int __tvm_ffi_leaves_result_alone(void* handle, const TVMFFIAny* args,
                                                     int32_t num_args, TVMFFIAny* result) {
  (void)handle;
  (void)args;
  (void)num_args;
  (void)result;
  return 0;
}

TVM_FFI_DLL_EXPORT int __tvm_ffi_is_null_handle(void* handle, const TVMFFIAny* args,
                                                int32_t num_args, TVMFFIAny* result) {
  (void)args;
  (void)num_args;
  result->type_index = kTVMFFIBool;
  result->zero_padding = 0;
  result->v_int64 = handle == NULL;
  return 0;
}

/* A metadata getter that does not return a string. */
TVM_FFI_DLL_EXPORT int __tvm_ffi__metadata_double_it(void* handle, const TVMFFIAny* args,
                                                     int32_t num_args, TVMFFIAny* result) {
  return __tvm_ffi_is_null_handle(handle, args, num_args, result);
}
