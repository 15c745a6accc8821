// SPDX-License-Identifier: Apache-2.0
//! `#[dispatch(...)]`: the methods of an impl as handlers.
//!
//! ```
//! use tvm_ffi::*;
//! #[derive(Default)]
//! struct Sum(i64);
//! #[dispatch(walk)]
//! impl Sum {
//!     fn walk_int(&mut self, x: i64) -> WalkResult {
//!         self.0 += x;
//!         WalkResult::Advance
//!     }
//! }
//! let mut sum = Sum::default();
//! structural_walk(&Array::new(vec![1i64, 2]), &mut sum, WalkOrder::PreOrder).unwrap();
//! assert_eq!(sum.0, 3);
//! ```
/// ```
/// use tvm_ffi::{extra::dispatch::dispatch, structural_map, WalkOrder};
/// struct Negate;
/// #[dispatch(map)]
/// impl Negate {
///     fn map_int(&mut self, x: i64) -> i64 {
///         -x
///     }
/// }
/// let result = structural_map(1i64, &mut Negate, WalkOrder::PreOrder).unwrap();
/// assert_eq!(result.try_as::<i64>(), Some(-1));
/// ```
pub use tvm_ffi_macros::dispatch;
