// SPDX-License-Identifier: Apache-2.0
//! Data types.
use crate::error::Result;
use crate::string::String;
use tvm_ffi_sys::{
    DLDataType, DLDataTypeCode, TVMFFIAny, TVMFFIByteArray, TVMFFIDataTypeFromString,
    TVMFFIDataTypeToString,
};

/// Names of data types.
///
/// ```
/// use tvm_ffi::{DLDataType, DLDataTypeExt};
/// let int32 = DLDataType::try_from_str("int32").unwrap();
/// assert_eq!(int32.to_string(), "int32");
/// ```
pub trait DLDataTypeExt: Sized {
    /// The name.
    ///
    /// ```
    /// use tvm_ffi::{DLDataType, DLDataTypeCode, DLDataTypeExt};
    /// assert_eq!(DLDataType::new(DLDataTypeCode::kDLFloat, 16, 4).to_string(), "float16x4");
    /// ```
    fn to_string(&self) -> String;
    /// The data type of a name.
    ///
    /// ```
    /// use tvm_ffi::{DLDataType, DLDataTypeExt};
    /// assert_eq!(DLDataType::try_from_str("int8").unwrap().bits, 8);
    /// assert!(DLDataType::try_from_str("no type").is_err());
    /// ```
    fn try_from_str(value: &str) -> Result<Self>;
}

impl DLDataTypeExt for DLDataType {
    fn to_string(&self) -> String {
        let mut out = TVMFFIAny::new();
        // SAFETY: both are valid during the call; the result is an owned string.
        unsafe {
            let code = TVMFFIDataTypeToString(self, &mut out);
            crate::check_safe_call!(code).expect("a data type has a name");
            crate::any::Any::from_raw_ffi_any(out).try_into().expect("a name is a string")
        }
    }

    fn try_from_str(value: &str) -> Result<Self> {
        let mut out = DLDataType { code: 0, bits: 0, lanes: 0 };
        // SAFETY: both are valid during the call.
        let code = unsafe { TVMFFIDataTypeFromString(&TVMFFIByteArray::from_str(value), &mut out) };
        crate::check_safe_call!(code)?;
        Ok(out)
    }
}

/// A Rust number with a data type.
///
/// ```
/// use tvm_ffi::{dtype::AsDLDataType, DLDataTypeExt};
/// assert_eq!(DLDataTypeExt::to_string(&f32::DL_DATA_TYPE), "float32");
/// ```
pub trait AsDLDataType: Copy {
    /// The data type.
    ///
    /// ```
    /// use tvm_ffi::dtype::AsDLDataType;
    /// assert_eq!((u16::DL_DATA_TYPE.bits, u16::DL_DATA_TYPE.lanes), (16, 1));
    /// ```
    const DL_DATA_TYPE: DLDataType;
}

macro_rules! data_types {
    ($($ty:ty: $code:ident $bits:literal),*) => {$(
        impl AsDLDataType for $ty {
            const DL_DATA_TYPE: DLDataType = DLDataType::new(DLDataTypeCode::$code, $bits, 1);
        }
    )*};
}
data_types!(i8: kDLInt 8, i16: kDLInt 16, i32: kDLInt 32, i64: kDLInt 64,
            u8: kDLUInt 8, u16: kDLUInt 16, u32: kDLUInt 32, u64: kDLUInt 64,
            f32: kDLFloat 32, f64: kDLFloat 64);
