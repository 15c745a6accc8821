// SPDX-License-Identifier: Apache-2.0
//! Declarations of the C interface of `libtvm_ffi`. Names, values and layouts are those of
//! `tvm/ffi/c_api.h`, `tvm/ffi/extra/c_env_api.h` and DLPack, which document them.
//!
//! ```
//! use tvm_ffi_sys::*;
//! assert_eq!(std::mem::size_of::<TVMFFIAny>(), 16);
//! assert_eq!(std::mem::size_of::<TVMFFIObject>(), 24);
//! ```
//!
//! The examples are short and keep the references that they get. A program gives each back, which the handles of
//! the crate `tvm-ffi` do by themselves.
#![deny(missing_docs)]
#![allow(non_camel_case_types, non_upper_case_globals)]

mod built_with;
pub mod c_api;
pub mod c_env_api;
pub mod dlpack;

pub use c_api::*;
pub use c_env_api::*;
pub use dlpack::*;
