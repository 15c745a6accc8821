/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the host environment (an interpreter, a tensor framework) gives to code called through the
 * FFI: the current stream of a device, a tensor allocator, signal checks, and lookups between
 * modules.
 *
 *   cudaStream_t stream = (cudaStream_t)TVMFFIEnvGetStream(kDLCUDA, device_id);
 *   kernel<<<grid, block, 0, stream>>>(...);
 *
 * Return codes and ownership follow c_api.h.
 */
#ifndef TVM_FFI_EXTRA_C_ENV_API_H_
#define TVM_FFI_EXTRA_C_ENV_API_H_

#include <tvm/ffi/c_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Streams: per thread and device, never owned ----------------------------------------- */

typedef void* TVMFFIStreamHandle;

TVM_FFI_DLL int TVMFFIEnvSetStream(int32_t device_type, int32_t device_id,
                                   TVMFFIStreamHandle stream,
                                   TVMFFIStreamHandle* opt_out_original_stream);
/* NULL when this thread never set one. */
TVM_FFI_DLL TVMFFIStreamHandle TVMFFIEnvGetStream(int32_t device_type, int32_t device_id);

/* ---- Tensor allocation ------------------------------------------------------------------- */

/* Sets the calling thread's allocator, and the process-wide one too when asked. The out value is
 * the thread's previous one. NULL clears. */
TVM_FFI_DLL int TVMFFIEnvSetDLPackManagedTensorAllocator(
    DLPackManagedTensorAllocator allocator, int write_to_global_context,
    DLPackManagedTensorAllocator* opt_out_original_allocator);
/* The thread's allocator, else the process-wide one, else NULL. */
TVM_FFI_DLL DLPackManagedTensorAllocator TVMFFIEnvGetDLPackManagedTensorAllocator(void);
/* A new tensor with the dtype, shape and device of `prototype`, made by that allocator. */
TVM_FFI_DLL int TVMFFIEnvTensorAlloc(DLTensor* prototype, TVMFFIObjectHandle* out);

/* ---- Interpreter ------------------------------------------------------------------------- */

/* -1, with no error in the FFI slot, when the interpreter has a pending error (an interrupt, say):
 * the caller unwinds with an error of kind EnvErrorAlreadySet. Long-running code calls it now and
 * then. */
TVM_FFI_DLL int TVMFFIEnvCheckSignals(void);
/* name: PyErr_CheckSignals, PyGILState_Ensure or PyGILState_Release. */
TVM_FFI_DLL int TVMFFIEnvRegisterCAPI(const char* name, void* symbol);

/* ---- Modules ----------------------------------------------------------------------------- */

/* library_ctx is what the loader stored in the library's `__tvm_ffi__library_ctx`. *out is borrowed
 * and lives as long as that module. */
TVM_FFI_DLL int TVMFFIEnvModLookupFromImports(TVMFFIObjectHandle library_ctx, const char* func_name,
                                              TVMFFIObjectHandle* out);
/* Every library loaded later that exports a `void*` variable of this name gets the address. */
TVM_FFI_DLL int TVMFFIEnvModRegisterContextSymbol(const char* name, void* symbol);
/* Makes a statically linked symbol visible to `ffi.SystemLib`. */
TVM_FFI_DLL int TVMFFIEnvModRegisterSystemLibSymbol(const char* name, void* symbol);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TVM_FFI_EXTRA_C_ENV_API_H_
