// SPDX-License-Identifier: Apache-2.0
//! Values of any type: [`Any`] owns, [`AnyView`] borrows.
use crate::error::{Error, Result, TYPE_ERROR};
use crate::object::unsafe_;
use crate::type_traits::AnyCompatible;
use std::marker::PhantomData;
use std::sync::atomic::Ordering;
use tvm_ffi_sys::TVMFFITypeIndex as TypeIndex;
use tvm_ffi_sys::*;

const OBJECT_BEGIN: i32 = TypeIndex::kTVMFFIStaticObjectBegin as i32;

/// A borrowed value of any type.
///
/// ```
/// use tvm_ffi::AnyView;
/// let view = AnyView::from(&42i64);
/// assert_eq!(view.try_as::<i64>(), Some(42));
/// assert_eq!(view.try_as::<bool>(), None);
/// assert!(bool::try_from(view).unwrap());
/// ```
#[repr(C)]
#[derive(Copy, Clone)]
pub struct AnyView<'a> {
    data: TVMFFIAny,
    _phantom: PhantomData<&'a ()>,
}

/// An owned value of any type.
///
/// ```
/// use tvm_ffi::{Any, String};
/// let any = Any::from(String::from("a longer text"));
/// assert_eq!(any.debug_strong_count(), Some(1));
/// assert_eq!(String::try_from(any).unwrap(), "a longer text");
/// ```
#[repr(C)]
pub struct Any {
    data: TVMFFIAny,
}

fn strong_count(data: &TVMFFIAny) -> Option<usize> {
    if data.type_index < OBJECT_BEGIN {
        return None;
    }
    // SAFETY: the index says that it is an object.
    let count = unsafe { (*data.data_union.v_obj).combined_ref_count.load(Ordering::Relaxed) };
    Some((count & COMBINED_REF_COUNT_MASK_U32) as usize)
}

impl<'a> AnyView<'a> {
    /// None.
    ///
    /// ```
    /// assert_eq!(tvm_ffi::AnyView::new().type_index(), 0);
    /// ```
    pub fn new() -> Self {
        Self { data: TVMFFIAny::new(), _phantom: PhantomData }
    }

    /// # Safety
    /// What `data` borrows lives for `'a`.
    #[inline]
    pub(crate) unsafe fn from_raw(data: TVMFFIAny) -> Self {
        Self { data, _phantom: PhantomData }
    }

    #[inline]
    pub(crate) fn raw(&self) -> &TVMFFIAny {
        &self.data
    }

    /// What the value is.
    ///
    /// ```
    /// assert_eq!(tvm_ffi::AnyView::from(&1i64).type_index(), tvm_ffi::TypeIndex::kTVMFFIInt as i32);
    /// ```
    pub fn type_index(&self) -> i32 {
        self.data.type_index
    }

    /// The value, if it is a `T` without a conversion.
    ///
    /// ```
    /// assert_eq!(tvm_ffi::AnyView::from(&1i64).try_as::<f64>(), None);
    /// ```
    pub fn try_as<T: AnyCompatible>(&self) -> Option<T> {
        // SAFETY: the view is valid, and copied only after the check.
        unsafe {
            T::check_any_strict(&self.data).then(|| T::copy_from_any_view_after_check(&self.data))
        }
    }

    /// Number of strong references to the object, None if the value is not an object.
    ///
    /// ```
    /// let shape = tvm_ffi::Shape::new();
    /// assert_eq!(tvm_ffi::AnyView::from(&shape).debug_strong_count(), Some(1));
    /// ```
    pub fn debug_strong_count(&self) -> Option<usize> {
        strong_count(&self.data)
    }
}

impl Default for AnyView<'_> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'a, T: AnyCompatible> From<&'a T> for AnyView<'a> {
    #[inline]
    fn from(value: &'a T) -> Self {
        let mut data = TVMFFIAny::new();
        // SAFETY: the view has the lifetime of the value.
        unsafe {
            T::copy_to_any_view(value, &mut data);
            Self::from_raw(data)
        }
    }
}

impl<'a> From<&'a Any> for AnyView<'a> {
    #[inline]
    fn from(value: &'a Any) -> Self {
        // SAFETY: the view has the lifetime of the value.
        unsafe { Self::from_raw(value.data) }
    }
}

impl<'a> From<&AnyView<'a>> for AnyView<'a> {
    fn from(value: &AnyView<'a>) -> Self {
        *value
    }
}

impl Any {
    /// None.
    ///
    /// ```
    /// assert_eq!(tvm_ffi::Any::new().type_index(), 0);
    /// ```
    pub fn new() -> Self {
        Self { data: TVMFFIAny::new() }
    }

    /// What the value is.
    ///
    /// ```
    /// assert_eq!(tvm_ffi::Any::from(1.5f64).type_index(), tvm_ffi::TypeIndex::kTVMFFIFloat as i32);
    /// ```
    pub fn type_index(&self) -> i32 {
        self.data.type_index
    }

    #[inline]
    pub(crate) fn raw(&self) -> &TVMFFIAny {
        &self.data
    }

    /// An owned copy of what a view shows.
    ///
    /// # Safety
    /// `view` is a valid value.
    #[inline]
    pub(crate) unsafe fn copy_of_view(view: &TVMFFIAny) -> Self {
        let index = view.type_index;
        if index >= OBJECT_BEGIN {
            unsafe_::inc_ref(view.data_union.v_obj);
        } else if is_borrowed_kind(index) {
            let mut out = TVMFFIAny::new();
            if TVMFFIAnyViewToOwnedAny(view, &mut out) != 0 {
                panic!("cannot own a value of a view: {}", Error::of_failed_call(-1));
            }
            return Self { data: out };
        }
        Self { data: *view }
    }

    /// The value, if it is a `T` without a conversion.
    ///
    /// ```
    /// assert_eq!(tvm_ffi::Any::from(true).try_as::<bool>(), Some(true));
    /// ```
    pub fn try_as<T: AnyCompatible>(&self) -> Option<T> {
        AnyView::from(self).try_as()
    }

    /// Number of strong references to the object, None if the value is not an object.
    ///
    /// ```
    /// assert_eq!(tvm_ffi::Any::from(1i64).debug_strong_count(), None);
    /// ```
    pub fn debug_strong_count(&self) -> Option<usize> {
        strong_count(&self.data)
    }

    /// The cell, to be written by C code.
    ///
    /// ```
    /// let mut any = tvm_ffi::Any::new();
    /// // SAFETY: a number owns nothing.
    /// unsafe { (*any.as_data_ptr()).type_index = 1 };
    /// assert_eq!(any.try_as::<i64>(), Some(0));
    /// ```
    ///
    /// # Safety
    /// What is written must be an owned value; what was there is not released.
    pub unsafe fn as_data_ptr(&mut self) -> *mut TVMFFIAny {
        &mut self.data
    }

    /// The cell with its reference.
    ///
    /// ```
    /// use tvm_ffi::{Any, Shape};
    /// // SAFETY: the reference is taken back.
    /// let back = unsafe { Any::from_raw_ffi_any(Any::into_raw_ffi_any(Any::from(Shape::new()))) };
    /// assert_eq!(back.debug_strong_count(), Some(1));
    /// ```
    ///
    /// # Safety
    /// Somebody must give the reference back.
    #[inline]
    pub unsafe fn into_raw_ffi_any(this: Self) -> TVMFFIAny {
        std::mem::ManuallyDrop::new(this).data
    }

    /// Takes over a cell.
    ///
    /// ```
    /// // SAFETY: None owns nothing.
    /// let any = unsafe { tvm_ffi::Any::from_raw_ffi_any(tvm_ffi::TVMFFIAny::new()) };
    /// assert!(any.try_as::<()>().is_some());
    /// ```
    ///
    /// # Safety
    /// `data` is an owned value that nobody else releases.
    #[inline]
    pub unsafe fn from_raw_ffi_any(data: TVMFFIAny) -> Self {
        Self { data }
    }
}

/// Kinds that only views may have.
fn is_borrowed_kind(index: i32) -> bool {
    index == TypeIndex::kTVMFFIRawStr as i32
        || index == TypeIndex::kTVMFFIByteArrayPtr as i32
        || index == TypeIndex::kTVMFFIObjectRValueRef as i32
}

impl Default for Any {
    fn default() -> Self {
        Self::new()
    }
}

impl Clone for Any {
    #[inline]
    fn clone(&self) -> Self {
        // SAFETY: the value is alive.
        unsafe { Self::copy_of_view(&self.data) }
    }
}

impl Drop for Any {
    #[inline]
    fn drop(&mut self) {
        if self.data.type_index >= OBJECT_BEGIN {
            // SAFETY: self owns one reference.
            unsafe { unsafe_::dec_ref(self.data.data_union.v_obj) }
        }
    }
}

impl<T: AnyCompatible> From<T> for Any {
    #[inline]
    fn from(value: T) -> Self {
        let mut any = Self::new();
        // SAFETY: the cell owned nothing.
        unsafe { T::move_to_any(value, &mut any.data) };
        any
    }
}

impl From<AnyView<'_>> for Any {
    fn from(view: AnyView<'_>) -> Self {
        // SAFETY: the view is valid.
        unsafe { Self::copy_of_view(&view.data) }
    }
}

fn format_value(name: &str, data: &TVMFFIAny, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
    // SAFETY: records of the type table are never freed.
    let info = unsafe { TVMFFIGetTypeInfo(data.type_index).as_ref() };
    let key = info.map_or("?", |info| info.type_key.as_str());
    write!(f, "{name}<{key}>")
}

impl std::fmt::Debug for Any {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        format_value("Any", &self.data, f)
    }
}

impl std::fmt::Debug for AnyView<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        format_value("AnyView", &self.data, f)
    }
}

/// Carries a value out of a generic `TryFrom`, which cannot be written for `T` itself.
///
/// ```
/// use tvm_ffi::{any::TryFromTemp, Any};
/// let carried = TryFromTemp::<i64>::try_from(Any::from(3i64)).unwrap();
/// assert_eq!(TryFromTemp::into_value(carried), 3);
/// ```
pub struct TryFromTemp<T> {
    value: T,
}

impl<T> TryFromTemp<T> {
    /// Wraps a value.
    ///
    /// ```
    /// use tvm_ffi::any::TryFromTemp;
    /// assert_eq!(TryFromTemp::into_value(TryFromTemp::new(3)), 3);
    /// ```
    pub fn new(value: T) -> Self {
        Self { value }
    }
    /// The value.
    ///
    /// ```
    /// use tvm_ffi::any::TryFromTemp;
    /// assert_eq!(TryFromTemp::into_value(TryFromTemp::new("x")), "x");
    /// ```
    pub fn into_value(this: Self) -> T {
        this.value
    }
}

/// The conversion behind every `TryFrom<AnyView>`.
#[inline]
pub(crate) fn convert_view<T: AnyCompatible>(data: &TVMFFIAny) -> Result<T> {
    // SAFETY: `data` belongs to a valid view, and is copied only after the check.
    unsafe {
        if T::check_any_strict(data) {
            return Ok(T::copy_from_any_view_after_check(data));
        }
        T::try_cast_from_any_view(data).map_err(|()| mismatch::<T>("", data))
    }
}

#[cold]
pub(crate) fn mismatch<T: AnyCompatible>(prefix: &str, data: &TVMFFIAny) -> Error {
    let message = format!(
        "{prefix}Cannot convert from type `{}` to `{}`",
        T::get_mismatch_type_info(data),
        T::type_str()
    );
    Error::new(TYPE_ERROR, &message, "")
}

impl<'a, T: AnyCompatible> TryFrom<AnyView<'a>> for TryFromTemp<T> {
    type Error = Error;
    #[inline]
    fn try_from(view: AnyView<'a>) -> Result<Self> {
        convert_view(&view.data).map(Self::new)
    }
}

impl<T: AnyCompatible> TryFrom<Any> for TryFromTemp<T> {
    type Error = Error;
    #[inline]
    fn try_from(any: Any) -> Result<Self> {
        // SAFETY: moved out only after the check; the reference then belongs to the value.
        unsafe {
            if T::check_any_strict(&any.data) {
                let mut any = std::mem::ManuallyDrop::new(any);
                return Ok(Self::new(T::move_from_any_after_check(&mut any.data)));
            }
            T::try_cast_from_any_view(&any.data)
                .map(Self::new)
                .map_err(|()| mismatch::<T>("", &any.data))
        }
    }
}

impl<'a, T: AnyCompatible> TryFrom<AnyView<'a>> for Option<T> {
    type Error = Error;
    fn try_from(view: AnyView<'a>) -> Result<Self> {
        convert_view(&view.data)
    }
}

impl<T: AnyCompatible> TryFrom<Any> for Option<T> {
    type Error = Error;
    fn try_from(any: Any) -> Result<Self> {
        TryFromTemp::<Option<T>>::try_from(any).map(TryFromTemp::into_value)
    }
}

crate::impl_try_from_any!(
    bool,
    i8,
    i16,
    i32,
    i64,
    isize,
    u8,
    u16,
    u32,
    u64,
    usize,
    f32,
    f64,
    (),
    *mut std::ffi::c_void,
    DLDataType,
    DLDevice,
);
