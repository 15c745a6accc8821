// SPDX-License-Identifier: Apache-2.0
//! DLPack: the data types, devices and tensors of `dlpack.h`.
#![allow(missing_docs)]
use std::ffi::c_void;

/// Kind of a device.
///
/// ```
/// use tvm_ffi_sys::*;
/// assert_eq!(DLDeviceType::kDLCUDA as u32, 2);
/// ```
#[repr(u32)]
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub enum DLDeviceType {
    kDLCPU = 1,
    kDLCUDA = 2,
    kDLCUDAHost = 3,
    kDLOpenCL = 4,
    kDLVulkan = 7,
    kDLMetal = 8,
    kDLVPI = 9,
    kDLROCM = 10,
    kDLROCMHost = 11,
    kDLExtDev = 12,
    kDLCUDAManaged = 13,
    kDLOneAPI = 14,
    kDLWebGPU = 15,
    kDLHexagon = 16,
    kDLMAIA = 17,
    kDLTrn = 18,
}

impl DLDeviceType {
    /// The kind of a number that other code has written. None where it is not one of these: DLPack may get
    /// more of them.
    ///
    /// ```
    /// use tvm_ffi_sys::DLDeviceType;
    /// assert_eq!(DLDeviceType::from_raw(2), Some(DLDeviceType::kDLCUDA));
    /// assert_eq!(DLDeviceType::from_raw(5), None);
    /// ```
    pub const fn from_raw(kind: u32) -> Option<Self> {
        match kind {
            1..=4 | 7..=18 => {
                // SAFETY: these are the variants.
                Some(unsafe { std::mem::transmute::<u32, Self>(kind) })
            }
            _ => None,
        }
    }
}

/// Kind of a number.
///
/// ```
/// use tvm_ffi_sys::*;
/// let bool8 = DLDataType::new(DLDataTypeCode::kDLBool, 8, 1);
/// assert_eq!(bool8.code, DLDataTypeCode::kDLBool as u8);
/// ```
#[repr(u8)]
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub enum DLDataTypeCode {
    kDLInt = 0,
    kDLUInt = 1,
    kDLFloat = 2,
    kDLOpaqueHandle = 3,
    kDLBfloat = 4,
    kDLComplex = 5,
    kDLBool = 6,
    kDLFloat8_e3m4 = 7,
    kDLFloat8_e4m3 = 8,
    kDLFloat8_e4m3b11fnuz = 9,
    kDLFloat8_e4m3fn = 10,
    kDLFloat8_e4m3fnuz = 11,
    kDLFloat8_e5m2 = 12,
    kDLFloat8_e5m2fnuz = 13,
    kDLFloat8_e8m0fnu = 14,
    kDLFloat6_e2m3fn = 15,
    kDLFloat6_e3m2fn = 16,
    kDLFloat4_e2m1fn = 17,
}

/// A device.
///
/// ```
/// use tvm_ffi_sys::*;
/// let gpu = DLDevice { device_type: DLDeviceType::kDLCUDA, device_id: 1 };
/// assert_ne!(gpu, DLDevice::new(DLDeviceType::kDLCPU, 0));
/// ```
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub struct DLDevice {
    pub device_type: DLDeviceType,
    pub device_id: i32,
}

impl DLDevice {
    /// The device `device_id` of a kind.
    ///
    /// ```
    /// use tvm_ffi_sys::*;
    /// assert_eq!(DLDevice::new(DLDeviceType::kDLCUDA, 1).device_id, 1);
    /// ```
    pub const fn new(device_type: DLDeviceType, device_id: i32) -> Self {
        Self { device_type, device_id }
    }
}

/// A data type.
///
/// ```
/// use tvm_ffi_sys::*;
/// let half = DLDataType { code: DLDataTypeCode::kDLFloat as u8, bits: 16, lanes: 1 };
/// assert_eq!(half, DLDataType::new(DLDataTypeCode::kDLFloat, 16, 1));
/// ```
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub struct DLDataType {
    pub code: u8,
    pub bits: u8,
    pub lanes: u16,
}

impl DLDataType {
    /// A data type of `lanes` numbers of `bits` bits.
    ///
    /// ```
    /// use tvm_ffi_sys::*;
    /// assert_eq!(DLDataType::new(DLDataTypeCode::kDLInt, 8, 4).lanes, 4);
    /// ```
    pub const fn new(code: DLDataTypeCode, bits: u8, lanes: u16) -> Self {
        Self { code: code as u8, bits, lanes }
    }
}

/// A tensor that owns nothing.
///
/// ```
/// use tvm_ffi_sys::*;
/// let (mut data, mut shape) = ([1f32, 2.0], [2i64]);
/// let tensor = DLTensor {
///     data: data.as_mut_ptr() as *mut _,
///     device: DLDevice::new(DLDeviceType::kDLCPU, 0),
///     ndim: 1,
///     dtype: DLDataType::new(DLDataTypeCode::kDLFloat, 32, 1),
///     shape: shape.as_mut_ptr(),
///     strides: std::ptr::null_mut(), // row by row
///     byte_offset: 0,
/// };
/// assert_eq!(unsafe { *(tensor.data as *const f32) }, 1.0);
/// ```
#[repr(C)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DLTensor {
    pub data: *mut c_void,
    pub device: DLDevice,
    pub ndim: i32,
    pub dtype: DLDataType,
    pub shape: *mut i64,
    pub strides: *mut i64,
    pub byte_offset: u64,
}
