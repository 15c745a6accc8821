// SPDX-License-Identifier: Apache-2.0
//! [`Optional`]: the layout of `ffi::Optional<T>` for values that are not objects.
use crate::any::{Any, AnyView};
use crate::big_int::BigInt;
use crate::string::{Bytes, String};
use crate::type_traits::AnyCompatible;
use std::fmt::Debug;
use std::marker::PhantomData;
use tvm_ffi_sys::{DLDataType, DLDevice, TVMFFIAny};

/// What [`Optional`] can hold. Objects use `Option<X>`, one pointer that may be null.
///
/// # Safety
/// C++ must lay out `ffi::Optional` of the type as one `Any`.
///
/// ```compile_fail,E0277
/// use tvm_ffi::{Array, Optional};
/// let none = Optional::<Array<i64>>::none();
/// ```
#[diagnostic::on_unimplemented(
    message = "`Optional<{Self}>` only mirrors non-object-pointer `ffi::Optional` values"
)]
pub unsafe trait OptionalCompatible: AnyCompatible {}

macro_rules! optional_compatible {
    ($($ty:ty),* $(,)?) => {$(
        // SAFETY: a value that is not an object pointer.
        unsafe impl OptionalCompatible for $ty {}
    )*};
}
optional_compatible!(
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
    *mut std::ffi::c_void,
    DLDataType,
    DLDevice,
    String,
    Bytes,
    BigInt,
);
// SAFETY: stored as T or None.
unsafe impl<T: OptionalCompatible> OptionalCompatible for Option<T> {}

/// A field of type `ffi::Optional<T>`.
///
/// ```
/// use tvm_ffi::Optional;
/// let mut field = Optional::some(3i64);
/// assert_eq!(field.get(), Some(3));
/// field.set(None);
/// assert!(field.is_none());
/// ```
#[repr(transparent)]
pub struct Optional<T: OptionalCompatible> {
    data: Any,
    _phantom: PhantomData<T>,
}

impl<T: OptionalCompatible> Optional<T> {
    /// With a value.
    ///
    /// ```
    /// use tvm_ffi::Optional;
    /// assert_eq!(Optional::some(1i64).get(), Some(1));
    /// ```
    pub fn some(value: T) -> Self {
        Self { data: Any::from(value), _phantom: PhantomData }
    }
    /// Without one.
    ///
    /// ```
    /// use tvm_ffi::Optional;
    /// assert_eq!(Optional::<i64>::none().get(), None);
    /// ```
    pub fn none() -> Self {
        Self { data: Any::new(), _phantom: PhantomData }
    }
    /// Whether there is one.
    ///
    /// ```
    /// use tvm_ffi::Optional;
    /// assert!(Optional::some(1i64).has_value());
    /// ```
    pub fn has_value(&self) -> bool {
        self.data.type_index() != 0
    }
    /// Whether there is none.
    ///
    /// ```
    /// use tvm_ffi::Optional;
    /// assert!(Optional::<bool>::none().is_none());
    /// ```
    pub fn is_none(&self) -> bool {
        !self.has_value()
    }
    /// A copy of the value.
    ///
    /// ```
    /// use tvm_ffi::Optional;
    /// assert_eq!(Optional::some(1.5f64).get(), Some(1.5));
    /// ```
    pub fn get(&self) -> Option<T> {
        // SAFETY: the cell is None or holds a T.
        self.has_value().then(|| unsafe { T::copy_from_any_view_after_check(self.data.raw()) })
    }
    /// The value.
    ///
    /// ```
    /// use tvm_ffi::Optional;
    /// assert_eq!(Optional::some(true).into_option(), Some(true));
    /// ```
    pub fn into_option(self) -> Option<T> {
        if self.is_none() {
            return None;
        }
        // SAFETY: the cell holds a T, and is given up.
        unsafe {
            let mut data: TVMFFIAny = Any::into_raw_ffi_any(self.data);
            Some(T::move_from_any_after_check(&mut data))
        }
    }
    /// Replaces the value.
    ///
    /// ```
    /// use tvm_ffi::Optional;
    /// let mut value = Optional::some(1i64);
    /// value.set(None);
    /// assert!(value.is_none());
    /// ```
    pub fn set(&mut self, value: Option<T>) {
        self.data = value.map_or_else(Any::new, Any::from);
    }
}

impl Optional<String> {
    /// The text.
    ///
    /// ```
    /// use tvm_ffi::Optional;
    /// assert_eq!(Optional::some(tvm_ffi::String::from("x")).as_str(), Some("x"));
    /// ```
    pub fn as_str(&self) -> Option<&str> {
        if self.is_none() {
            return None;
        }
        // SAFETY: the cell holds a String, which has the layout of the cell.
        Some(unsafe { (*(&self.data as *const Any as *const String)).as_str() })
    }
}

impl<T: OptionalCompatible> Default for Optional<T> {
    fn default() -> Self {
        Self::none()
    }
}
impl<T: OptionalCompatible> Clone for Optional<T> {
    fn clone(&self) -> Self {
        Self { data: self.data.clone(), _phantom: PhantomData }
    }
}
impl<T: OptionalCompatible + PartialEq> PartialEq for Optional<T> {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}
impl<T: OptionalCompatible + Eq> Eq for Optional<T> {}
impl<T: OptionalCompatible> From<Option<T>> for Optional<T> {
    fn from(value: Option<T>) -> Self {
        value.map_or_else(Self::none, Self::some)
    }
}
impl<T: OptionalCompatible> From<Optional<T>> for Option<T> {
    fn from(value: Optional<T>) -> Self {
        value.into_option()
    }
}
impl<T: OptionalCompatible + Debug> Debug for Optional<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.get() {
            Some(value) => write!(f, "Optional::Some({value:?})"),
            None => f.write_str("Optional::None"),
        }
    }
}

/// Views of a value that may be missing.
impl<'a, T: OptionalCompatible> From<&'a Optional<T>> for AnyView<'a> {
    fn from(value: &'a Optional<T>) -> Self {
        AnyView::from(&value.data)
    }
}
