// SPDX-License-Identifier: Apache-2.0
//! Results of mutations: a new value, or "keep the input".
use crate::any::{Any, AnyView, TryFromTemp};
use crate::error::{Error, Result, TYPE_ERROR};
use crate::object::TypeIndex;
use crate::type_traits::{plain_any_compatible, AnyCompatible, ContainerElement};
use std::marker::PhantomData;
use tvm_ffi_sys::TVMFFIAny;

/// "Keep the input."
///
/// ```
/// use tvm_ffi::{Any, Unchanged};
/// assert_eq!(Any::from(Unchanged).try_as::<Unchanged>(), Some(Unchanged));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unchanged;

plain_any_compatible!(
    Unchanged,
    kTVMFFIUnchanged,
    "Unchanged",
    |_src, data| {},
    |_data| Unchanged,
    |_data| Err(())
);
crate::impl_try_from_any!(Unchanged);

const UNCHANGED: i32 = TypeIndex::kTVMFFIUnchanged as i32;

/// [`Unchanged`], or a new value.
///
/// ```
/// use tvm_ffi::UnchangedOr;
/// assert_eq!(UnchangedOr::<i64>::unchanged().value_or(1), 1);
/// assert_eq!(UnchangedOr::changed(2i64).map(|x| x + 1).into_option(), Some(3));
/// ```
#[repr(transparent)]
pub struct UnchangedOr<T: ContainerElement = Any> {
    data: Any,
    _phantom: PhantomData<T>,
}

impl<T: ContainerElement> UnchangedOr<T> {
    /// Keep the input.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// assert!(UnchangedOr::<i64>::unchanged().is_unchanged());
    /// ```
    pub fn unchanged() -> Self {
        Self { data: Any::from(Unchanged), _phantom: PhantomData }
    }
    /// A new value.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// assert_eq!(UnchangedOr::changed(1i64).into_option(), Some(1));
    /// ```
    pub fn changed(value: T) -> Self {
        Self { data: value.element_into_any(), _phantom: PhantomData }
    }
    /// Whether the input is kept.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// assert!(!UnchangedOr::changed(1i64).is_unchanged());
    /// ```
    pub fn is_unchanged(&self) -> bool {
        self.data.type_index() == UNCHANGED
    }
    /// Whether the input is kept, or the new value is the very same one.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// assert!(UnchangedOr::changed(1i64).unchanged_or_same_as(&1));
    /// assert!(!UnchangedOr::changed(1i64).unchanged_or_same_as(&2));
    /// ```
    pub fn unchanged_or_same_as(&self, original: &T) -> bool {
        // SAFETY: the view is used while `original` is alive.
        self.is_unchanged() || same_cell(self.data.raw(), &unsafe { original.element_view() })
    }
    /// The new value.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// assert_eq!(UnchangedOr::<i64>::unchanged().into_option(), None);
    /// ```
    pub fn into_option(self) -> Option<T> {
        if self.is_unchanged() {
            return None;
        }
        // SAFETY: the cell holds a T.
        Some(unsafe { T::element_copy(self.data.raw()) })
    }
    /// The new value, or another one.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// assert_eq!(UnchangedOr::<i64>::unchanged().value_or(5), 5);
    /// ```
    pub fn value_or(self, other: T) -> T {
        self.into_option().unwrap_or(other)
    }
    /// The new value, or what `f` makes.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// assert_eq!(UnchangedOr::changed(1i64).value_or_else(|| 5), 1);
    /// ```
    pub fn value_or_else(self, f: impl FnOnce() -> T) -> T {
        self.into_option().unwrap_or_else(f)
    }
    /// Changes the new value.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// assert_eq!(UnchangedOr::changed(1i64).map(|x| x == 1).into_option(), Some(true));
    /// ```
    pub fn map<U: ContainerElement>(self, f: impl FnOnce(T) -> U) -> UnchangedOr<U> {
        match self.into_option() {
            Some(value) => UnchangedOr::changed(f(value)),
            None => UnchangedOr::unchanged(),
        }
    }
    /// Changes the new value with what can fail.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let halved = UnchangedOr::changed(3i64).try_map(|x| if x % 2 == 0 { Ok(x / 2) } else { Err("odd") });
    /// assert_eq!(halved.err(), Some("odd"));
    /// ```
    pub fn try_map<U: ContainerElement, E>(
        self,
        f: impl FnOnce(T) -> Result<U, E>,
    ) -> Result<UnchangedOr<U>, E> {
        match self.into_option() {
            Some(value) => f(value).map(UnchangedOr::changed),
            None => Ok(UnchangedOr::unchanged()),
        }
    }
    /// The same with another type of the new value.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let any = UnchangedOr::changed(Any::from(1i64));
    /// assert_eq!(any.clone().try_cast::<i64>().unwrap().into_option(), Some(1));
    /// assert!(any.try_cast::<String>().is_err());
    /// ```
    pub fn try_cast<U: ContainerElement>(self) -> Result<UnchangedOr<U>> {
        // SAFETY: the value is alive.
        if self.is_unchanged() || unsafe { U::element_strict(self.data.raw()) } {
            return Ok(UnchangedOr { data: self.data, _phantom: PhantomData });
        }
        crate::bail!(
            TYPE_ERROR,
            "structural mutation result does not match {}",
            U::element_type_str()
        )
    }
}

/// Whether two cells are the same bit by bit.
pub(crate) fn same_cell(a: &TVMFFIAny, b: &TVMFFIAny) -> bool {
    // SAFETY: every payload can be read as an integer.
    a.type_index == b.type_index
        && a.small_str_len == b.small_str_len
        && unsafe { a.data_union.v_uint64 == b.data_union.v_uint64 }
}

impl<T: ContainerElement> Clone for UnchangedOr<T> {
    fn clone(&self) -> Self {
        Self { data: self.data.clone(), _phantom: PhantomData }
    }
}

impl<T: ContainerElement> std::fmt::Debug for UnchangedOr<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.data.fmt(f)
    }
}

// SAFETY: the cell is the value.
unsafe impl<T: ContainerElement> AnyCompatible for UnchangedOr<T> {
    unsafe fn copy_to_any_view(src: &Self, data: &mut TVMFFIAny) {
        *data = *src.data.raw();
    }
    unsafe fn move_to_any(src: Self, data: &mut TVMFFIAny) {
        *data = Any::into_raw_ffi_any(src.data);
    }
    unsafe fn check_any_strict(data: &TVMFFIAny) -> bool {
        data.type_index == UNCHANGED
            || (data.type_index != TypeIndex::kTVMFFIError as i32 && T::element_strict(data))
    }
    unsafe fn copy_from_any_view_after_check(data: &TVMFFIAny) -> Self {
        Self { data: Any::copy_of_view(data), _phantom: PhantomData }
    }
    unsafe fn move_from_any_after_check(data: &mut TVMFFIAny) -> Self {
        let data = std::mem::replace(data, TVMFFIAny::new());
        Self { data: Any::from_raw_ffi_any(data), _phantom: PhantomData }
    }
    unsafe fn try_cast_from_any_view(data: &TVMFFIAny) -> Result<Self, ()> {
        if Self::check_any_strict(data) {
            return Ok(Self::copy_from_any_view_after_check(data));
        }
        if data.type_index == TypeIndex::kTVMFFIError as i32 {
            return Err(());
        }
        T::element_cast(data).map(Self::changed)
    }
    fn type_str() -> std::string::String {
        format!("UnchangedOr<{}>", T::element_type_str())
    }
}

impl<'a, T: ContainerElement> TryFrom<AnyView<'a>> for UnchangedOr<T> {
    type Error = Error;
    fn try_from(view: AnyView<'a>) -> Result<Self> {
        TryFromTemp::<Self>::try_from(view).map(TryFromTemp::into_value)
    }
}
impl<T: ContainerElement> TryFrom<Any> for UnchangedOr<T> {
    type Error = Error;
    fn try_from(any: Any) -> Result<Self> {
        TryFromTemp::<Self>::try_from(any).map(TryFromTemp::into_value)
    }
}
