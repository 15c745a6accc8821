// SPDX-License-Identifier: Apache-2.0
//! Modules, and walks over the structure of values.
/// Calls a macro with the tuples of links that chains may be: type, marker and index of each link.
macro_rules! for_each_chain {
    ($implement:ident) => {
        $implement! {
            (A MA 0)
            (A MA 0, B MB 1)
            (A MA 0, B MB 1, C MC 2)
            (A MA 0, B MB 1, C MC 2, D MD 3)
            (A MA 0, B MB 1, C MC 2, D MD 3, E ME 4)
            (A MA 0, B MB 1, C MC 2, D MD 3, E ME 4, F MF 5)
            (A MA 0, B MB 1, C MC 2, D MD 3, E ME 4, F MF 5, G MG 6)
            (A MA 0, B MB 1, C MC 2, D MD 3, E ME 4, F MF 5, G MG 6, H MH 7)
            (A MA 0, B MB 1, C MC 2, D MD 3, E ME 4, F MF 5, G MG 6, H MH 7, I MI 8)
            (A MA 0, B MB 1, C MC 2, D MD 3, E ME 4, F MF 5, G MG 6, H MH 7, I MI 8, J MJ 9)
            (A MA 0, B MB 1, C MC 2, D MD 3, E ME 4, F MF 5, G MG 6, H MH 7, I MI 8, J MJ 9, K MK 10)
            (A MA 0, B MB 1, C MC 2, D MD 3, E ME 4, F MF 5, G MG 6, H MH 7, I MI 8, J MJ 9, K MK 10, L ML 11)
        }
    };
}

pub mod dispatch;
mod error_path;
pub mod module;
pub mod structural_mutate;
pub mod structural_visit;
pub mod unchanged;

use crate::any::{Any, AnyView};
use crate::object::{is_instance_of, ObjectCore, TypeIndex};
use crate::type_traits::AnyCompatible;
use tvm_ffi_sys::TVMFFIAny;
use unchanged::{Unchanged, UnchangedOr};

/// A value that a walk shows, borrowed.
///
/// ```
/// use tvm_ffi::*;
/// let mut seen = Vec::new();
/// let look = |value: &StructuralView| {
///     seen.push(value.cast::<i64>());
///     WalkResult::Advance
/// };
/// structural_walk(&Array::new(vec![1i64, 2]), look, WalkOrder::PreOrder).unwrap();
/// assert_eq!(seen, [None, Some(1), Some(2)]);
/// ```
#[repr(transparent)]
pub struct StructuralView(TVMFFIAny);

impl StructuralView {
    /// # Safety
    /// The value outlives the borrow.
    pub(crate) unsafe fn from_raw(data: &TVMFFIAny) -> &Self {
        &*(data as *const TVMFFIAny as *const Self)
    }

    /// What the value is.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let mut seen = Vec::new();
    /// let look = |value: &StructuralView| {
    ///     seen.push(value.type_index());
    ///     WalkResult::Advance
    /// };
    /// structural_walk(&Array::new(vec![1i64, 2]), look, WalkOrder::PreOrder).unwrap();
    /// assert_eq!(seen, [71, 1, 1]);
    /// ```
    pub fn type_index(&self) -> i32 {
        self.0.type_index
    }

    /// The value, if it is an `R` without a conversion.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let mut seen = Vec::new();
    /// let look = |value: &StructuralView| {
    ///     seen.push(value.cast::<f64>());
    ///     WalkResult::Advance
    /// };
    /// structural_walk(&Array::new(vec![1i64, 2]), look, WalkOrder::PreOrder).unwrap();
    /// assert_eq!(seen, [None, None, None]);
    /// ```
    pub fn cast<R: AnyCompatible>(&self) -> Option<R> {
        AnyView::from(self).try_as()
    }

    /// The object, if it is an `N`.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let mut seen = Vec::new();
    /// let look = |value: &StructuralView| {
    ///     seen.push(value.as_node::<Object>().is_some());
    ///     WalkResult::Advance
    /// };
    /// structural_walk(&Array::new(vec![1i64, 2]), look, WalkOrder::PreOrder).unwrap();
    /// assert_eq!(seen, [true, false, false]);
    /// ```
    pub fn as_node<N: ObjectCore>(&self) -> Option<&N> {
        let index = self.0.type_index;
        if index < TypeIndex::kTVMFFIStaticObjectBegin as i32 || !is_instance_of::<N>(index) {
            return None;
        }
        // SAFETY: the index says what the object is; it lives as long as the view.
        Some(unsafe { &*(self.0.data_union.v_obj as *const N) })
    }

    /// An owned copy.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let mut seen = Vec::new();
    /// let look = |value: &StructuralView| {
    ///     seen.push(value.to_owned().type_index());
    ///     WalkResult::Advance
    /// };
    /// structural_walk(&Array::new(vec![1i64, 2]), look, WalkOrder::PreOrder).unwrap();
    /// assert_eq!(seen, [71, 1, 1]);
    /// ```
    #[allow(clippy::should_implement_trait, clippy::wrong_self_convention)]
    pub fn to_owned(&self) -> Any {
        Any::from(AnyView::from(self))
    }
}

impl<'a> From<&'a StructuralView> for AnyView<'a> {
    fn from(value: &'a StructuralView) -> Self {
        // SAFETY: the view has the lifetime of the value.
        unsafe { AnyView::from_raw(value.0) }
    }
}
