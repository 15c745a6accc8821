// SPDX-License-Identifier: Apache-2.0
//! The derive macros of objects and handles.
//!
//! ```
//! use tvm_ffi::derive::{Object, ObjectRef};
//! use tvm_ffi::{Object as Root, ObjectArc};
//!
//! #[repr(C)]
//! #[derive(Object)]
//! #[type_key = "doc.derive.Point"]
//! #[type_register]
//! struct PointObj {
//!     base: Root,
//!     #[reflect]
//!     x: i64,
//! }
//!
//! #[repr(C)]
//! #[derive(ObjectRef, Clone)]
//! struct Point {
//!     data: ObjectArc<PointObj>,
//! }
//!
//! let point = Point { data: ObjectArc::new(PointObj { base: Root::new(), x: 3 }) };
//! assert_eq!(point.data.x, 3);
//! ```
pub use tvm_ffi_macros::{Object, ObjectRef};
