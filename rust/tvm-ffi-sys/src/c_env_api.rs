// SPDX-License-Identifier: Apache-2.0
//! The functions of `tvm/ffi/extra/c_env_api.h`.
#![allow(missing_docs)]
use crate::{DLTensor, TVMFFIObjectHandle};
use std::ffi::{c_char, c_void};

/// A stream of a device.
///
/// ```
/// use tvm_ffi_sys::*;
/// let default: TVMFFIStreamHandle = std::ptr::null_mut();
/// assert_eq!(unsafe { TVMFFIEnvGetStream(DLDeviceType::kDLCPU as i32, 0) }, default);
/// ```
pub type TVMFFIStreamHandle = *mut c_void;

/// Makes a DLPack tensor like a prototype.
///
/// ```
/// use tvm_ffi_sys::*;
/// use std::ffi::{c_char, c_void};
/// unsafe extern "C" fn refuse(
///     _: *mut DLTensor,
///     _: *mut *mut c_void,
///     context: *mut c_void,
///     set_error: unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char),
/// ) -> i32 {
///     set_error(context, c"MemoryError".as_ptr(), c"no room".as_ptr());
///     -1
/// }
/// let allocator: DLPackManagedTensorAllocator = refuse;
/// let set = TVMFFIEnvSetDLPackManagedTensorAllocator;
/// assert_eq!(unsafe { set(Some(allocator), 0, std::ptr::null_mut()) }, 0);
/// ```
pub type DLPackManagedTensorAllocator = unsafe extern "C" fn(
    prototype: *mut DLTensor,
    out: *mut *mut c_void,
    error_ctx: *mut c_void,
    set_error: unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char),
) -> i32;

unsafe extern "C" {
    /// Sets the current stream of a device on this thread. What it was goes to the last argument, if that is not null.
    ///
    /// ```
    /// use tvm_ffi_sys::*;
    /// let cpu = DLDeviceType::kDLCPU as i32;
    /// let mut before = std::ptr::null_mut();
    /// assert_eq!(unsafe { TVMFFIEnvSetStream(cpu, 0, 8 as TVMFFIStreamHandle, &mut before) }, 0);
    /// assert_eq!(unsafe { TVMFFIEnvGetStream(cpu, 0) }, 8 as TVMFFIStreamHandle);
    /// assert_eq!(unsafe { TVMFFIEnvSetStream(cpu, 0, before, std::ptr::null_mut()) }, 0);
    /// ```
    pub fn TVMFFIEnvSetStream(
        device_type: i32,
        device_id: i32,
        stream: TVMFFIStreamHandle,
        opt_out_original_stream: *mut TVMFFIStreamHandle,
    ) -> i32;
    /// The current stream of a device on this thread.
    ///
    /// ```
    /// use tvm_ffi_sys::*;
    /// assert!(unsafe { TVMFFIEnvGetStream(DLDeviceType::kDLCPU as i32, 0) }.is_null());
    /// ```
    pub fn TVMFFIEnvGetStream(device_type: i32, device_id: i32) -> TVMFFIStreamHandle;
    /// Sets what allocates tensors on this thread, or everywhere if the second argument is not 0.
    ///
    /// ```
    /// use tvm_ffi_sys::*;
    /// let mut before = None;
    /// assert_eq!(unsafe { TVMFFIEnvSetDLPackManagedTensorAllocator(None, 0, &mut before) }, 0);
    /// assert!(before.is_none());
    /// ```
    pub fn TVMFFIEnvSetDLPackManagedTensorAllocator(
        allocator: Option<DLPackManagedTensorAllocator>,
        write_to_global_context: i32,
        opt_out_original_allocator: *mut Option<DLPackManagedTensorAllocator>,
    ) -> i32;
    /// What allocates tensors on this thread.
    ///
    /// ```
    /// use tvm_ffi_sys::*;
    /// assert!(unsafe { TVMFFIEnvGetDLPackManagedTensorAllocator() }.is_none());
    /// ```
    pub fn TVMFFIEnvGetDLPackManagedTensorAllocator() -> Option<DLPackManagedTensorAllocator>;
    /// Allocates a tensor like a prototype. An error if nobody has registered an allocator.
    ///
    /// ```
    /// use tvm_ffi_sys::*;
    /// let mut shape = [2i64];
    /// let mut prototype = DLTensor {
    ///     data: std::ptr::null_mut(),
    ///     device: DLDevice::new(DLDeviceType::kDLCPU, 0),
    ///     ndim: 1,
    ///     dtype: DLDataType::new(DLDataTypeCode::kDLFloat, 32, 1),
    ///     shape: shape.as_mut_ptr(),
    ///     strides: std::ptr::null_mut(),
    ///     byte_offset: 0,
    /// };
    /// let mut tensor = std::ptr::null_mut();
    /// assert_eq!(unsafe { TVMFFIEnvTensorAlloc(&mut prototype, &mut tensor) }, -1);
    /// ```
    pub fn TVMFFIEnvTensorAlloc(prototype: *mut DLTensor, out: *mut TVMFFIObjectHandle) -> i32;
    /// Asks the frontend whether a signal is waiting, for example Ctrl-C in Python. 0: none.
    ///
    /// ```
    /// use tvm_ffi_sys::*;
    /// assert_eq!(unsafe { TVMFFIEnvCheckSignals() }, 0);
    /// ```
    pub fn TVMFFIEnvCheckSignals() -> i32;
    /// Gives the environment a function of the frontend.
    ///
    /// ```
    /// use tvm_ffi_sys::*;
    /// unsafe extern "C" fn no_signal() -> i32 {
    ///     0
    /// }
    /// let name = c"PyErr_CheckSignals";
    /// assert_eq!(unsafe { TVMFFIEnvRegisterCAPI(name.as_ptr(), no_signal as *mut _) }, 0);
    /// assert_eq!(unsafe { TVMFFIEnvCheckSignals() }, 0);
    /// ```
    pub fn TVMFFIEnvRegisterCAPI(name: *const c_char, symbol: *mut c_void) -> i32;
    /// A function of the libraries that a library imports. For code in a library.
    ///
    /// ```
    /// use tvm_ffi_sys::*;
    /// let none: TVMFFIObjectHandle = std::ptr::null_mut();
    /// let mut found = std::ptr::null_mut();
    /// // Without a library there is nothing to be found.
    /// assert_eq!(unsafe { TVMFFIEnvModLookupFromImports(none, c"f".as_ptr(), &mut found) }, -1);
    /// ```
    pub fn TVMFFIEnvModLookupFromImports(
        library_ctx: TVMFFIObjectHandle,
        func_name: *const c_char,
        out: *mut TVMFFIObjectHandle,
    ) -> i32;
    /// Gives an address to a symbol of libraries that are loaded later.
    ///
    /// ```
    /// use tvm_ffi_sys::*;
    /// static TABLE: [i32; 2] = [1, 2];
    /// let address = &TABLE as *const _ as *mut _;
    /// assert_eq!(unsafe { TVMFFIEnvModRegisterContextSymbol(c"__doc_table".as_ptr(), address) }, 0);
    /// ```
    pub fn TVMFFIEnvModRegisterContextSymbol(name: *const c_char, symbol: *mut c_void) -> i32;
    /// Adds a symbol to the library of the program itself.
    ///
    /// ```
    /// use tvm_ffi_sys::*;
    /// unsafe extern "C" fn negate(
    ///     _: *mut std::ffi::c_void,
    ///     args: *const TVMFFIAny,
    ///     _: i32,
    ///     result: *mut TVMFFIAny,
    /// ) -> i32 {
    ///     *result = *args;
    ///     (*result).data_union.v_int64 = -(*args).data_union.v_int64;
    ///     0
    /// }
    /// let name = c"__tvm_ffi_doc_negate";
    /// assert_eq!(unsafe { TVMFFIEnvModRegisterSystemLibSymbol(name.as_ptr(), negate as *mut _) }, 0);
    /// ```
    pub fn TVMFFIEnvModRegisterSystemLibSymbol(name: *const c_char, symbol: *mut c_void) -> i32;
}
