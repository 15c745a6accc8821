// SPDX-License-Identifier: Apache-2.0
//! The functions of `tvm/ffi/extra/c_env_api.h`.
#![allow(missing_docs)]
use crate::{DLTensor, TVMFFIObjectHandle};
use std::ffi::{c_char, c_void};

/// A stream of a device.
pub type TVMFFIStreamHandle = *mut c_void;

/// Makes a DLPack tensor like a prototype.
pub type DLPackManagedTensorAllocator = unsafe extern "C" fn(
    prototype: *mut DLTensor,
    out: *mut *mut c_void,
    error_ctx: *mut c_void,
    set_error: unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char),
) -> i32;

unsafe extern "C" {
    pub fn TVMFFIEnvSetStream(
        device_type: i32,
        device_id: i32,
        stream: TVMFFIStreamHandle,
        opt_out_original_stream: *mut TVMFFIStreamHandle,
    ) -> i32;
    pub fn TVMFFIEnvGetStream(device_type: i32, device_id: i32) -> TVMFFIStreamHandle;
    pub fn TVMFFIEnvSetDLPackManagedTensorAllocator(
        allocator: Option<DLPackManagedTensorAllocator>,
        write_to_global_context: i32,
        opt_out_original_allocator: *mut Option<DLPackManagedTensorAllocator>,
    ) -> i32;
    pub fn TVMFFIEnvGetDLPackManagedTensorAllocator() -> Option<DLPackManagedTensorAllocator>;
    pub fn TVMFFIEnvTensorAlloc(prototype: *mut DLTensor, out: *mut TVMFFIObjectHandle) -> i32;
    pub fn TVMFFIEnvCheckSignals() -> i32;
    pub fn TVMFFIEnvRegisterCAPI(name: *const c_char, symbol: *mut c_void) -> i32;
    pub fn TVMFFIEnvModLookupFromImports(
        library_ctx: TVMFFIObjectHandle,
        func_name: *const c_char,
        out: *mut TVMFFIObjectHandle,
    ) -> i32;
    pub fn TVMFFIEnvModRegisterContextSymbol(name: *const c_char, symbol: *mut c_void) -> i32;
    pub fn TVMFFIEnvModRegisterSystemLibSymbol(name: *const c_char, symbol: *mut c_void) -> i32;
}
