// SPDX-License-Identifier: Apache-2.0
//! Which Rust types can be values of the FFI, and how they are stored.
use crate::any::Any;
use crate::dtype::DLDataTypeExt;
use tvm_ffi_sys::TVMFFITypeIndex as TypeIndex;
use tvm_ffi_sys::*;

/// A type whose values can be passed through the FFI.
///
/// ```
/// use tvm_ffi::*;
/// assert_eq!(<Array<i64> as AnyCompatible>::type_str(), "Array<int>");
/// assert_eq!(1i64.to_any().try_as::<i64>(), Some(1));
/// ```
///
/// # Safety
/// The conversions must agree with the layout of `TVMFFIAny` for the type indices they use.
pub unsafe trait AnyCompatible: Sized {
    /// A value converts if and only if its type index is [`AnyCompatible::match_any_exact_type_index`].
    #[doc(hidden)]
    const MATCH_ANY_EXACT: bool = false;
    /// The one type index.
    #[doc(hidden)]
    fn match_any_exact_type_index() -> i32 {
        unreachable!("MATCH_ANY_EXACT is false")
    }
    /// Writes a view of `src` that borrows.
    ///
    /// ```
    /// use tvm_ffi::{AnyCompatible, TVMFFIAny, TypeIndex};
    /// let mut data = TVMFFIAny::new();
    /// // SAFETY: an integer borrows nothing.
    /// unsafe { i64::copy_to_any_view(&7, &mut data) };
    /// assert_eq!(data.type_index, TypeIndex::kTVMFFIInt as i32);
    /// ```
    ///
    /// # Safety
    /// The view must not outlive `src`.
    unsafe fn copy_to_any_view(src: &Self, data: &mut TVMFFIAny);
    /// Moves `src` into an owned value.
    ///
    /// ```
    /// use tvm_ffi::{AnyCompatible, Shape, TVMFFIAny};
    /// let mut data = TVMFFIAny::new();
    /// // SAFETY: `data` owns nothing before, and what it owns then is taken out again.
    /// let shape = unsafe {
    ///     Shape::move_to_any(Shape::from([1i64]), &mut data);
    ///     Shape::move_from_any_after_check(&mut data)
    /// };
    /// assert_eq!(shape.as_slice(), [1]);
    /// ```
    ///
    /// # Safety
    /// `data` owns nothing before the call.
    unsafe fn move_to_any(src: Self, data: &mut TVMFFIAny);
    /// Whether the value is one of this type, without a conversion.
    ///
    /// ```
    /// use tvm_ffi::{AnyCompatible, TVMFFIAny};
    /// let none = TVMFFIAny::new();
    /// // SAFETY: None is a valid value.
    /// unsafe {
    ///     assert!(<()>::check_any_strict(&none));
    ///     assert!(!i64::check_any_strict(&none));
    /// }
    /// ```
    ///
    /// # Safety
    /// `data` is a valid value.
    unsafe fn check_any_strict(data: &TVMFFIAny) -> bool;
    /// Copies out of a view that has passed the strict check.
    ///
    /// ```
    /// use tvm_ffi::{AnyCompatible, TVMFFIAny};
    /// let mut data = TVMFFIAny::new();
    /// // SAFETY: the view is of an i64.
    /// unsafe {
    ///     i64::copy_to_any_view(&7, &mut data);
    ///     assert_eq!(i64::copy_from_any_view_after_check(&data), 7);
    /// }
    /// ```
    ///
    /// # Safety
    /// [`AnyCompatible::check_any_strict`] is true for `data`.
    unsafe fn copy_from_any_view_after_check(data: &TVMFFIAny) -> Self;
    /// Moves out of an owned value that has passed the strict check.
    ///
    /// ```
    /// use tvm_ffi::{AnyCompatible, TVMFFIAny};
    /// let mut data = TVMFFIAny::new();
    /// // SAFETY: `data` owns an f64.
    /// unsafe {
    ///     f64::move_to_any(2.5, &mut data);
    ///     assert_eq!(f64::move_from_any_after_check(&mut data), 2.5);
    /// }
    /// ```
    ///
    /// # Safety
    /// [`AnyCompatible::check_any_strict`] is true for `data`, which owns its value.
    unsafe fn move_from_any_after_check(data: &mut TVMFFIAny) -> Self;
    /// Converts what a view shows.
    ///
    /// ```
    /// use tvm_ffi::{AnyCompatible, TVMFFIAny};
    /// let mut data = TVMFFIAny::new();
    /// // SAFETY: the view is valid.
    /// unsafe {
    ///     i64::copy_to_any_view(&7, &mut data);
    ///     assert_eq!(f64::try_cast_from_any_view(&data), Ok(7.0));
    ///     assert!(tvm_ffi::Shape::try_cast_from_any_view(&data).is_err());
    /// }
    /// ```
    ///
    /// # Safety
    /// `data` is a valid value.
    #[allow(clippy::result_unit_err)]
    unsafe fn try_cast_from_any_view(data: &TVMFFIAny) -> Result<Self, ()>;
    /// What messages call a value that did not convert.
    ///
    /// ```
    /// use tvm_ffi::{AnyCompatible, TVMFFIAny};
    /// assert_eq!(i64::get_mismatch_type_info(&TVMFFIAny::new()), "None");
    /// ```
    fn get_mismatch_type_info(data: &TVMFFIAny) -> std::string::String {
        type_key_of(data.type_index)
    }
    /// What messages and schemas call this type.
    ///
    /// ```
    /// use tvm_ffi::{AnyCompatible, Array, String};
    /// assert_eq!(Array::<String>::type_str(), "Array<ffi.String>");
    /// ```
    fn type_str() -> std::string::String;
    /// An owned value of a borrowed one.
    ///
    /// ```
    /// use tvm_ffi::{AnyCompatible, Shape};
    /// let shape = Shape::new();
    /// assert_eq!(shape.to_any().debug_strong_count(), Some(2));
    /// ```
    fn to_any(&self) -> Any {
        let mut data = TVMFFIAny::new();
        // SAFETY: the view lives during the copy.
        unsafe {
            Self::copy_to_any_view(self, &mut data);
            Any::copy_of_view(&data)
        }
    }
}

/// The key of a type.
pub(crate) fn type_key_of(type_index: i32) -> std::string::String {
    // SAFETY: records of the type table are never freed.
    unsafe {
        let info = TVMFFIGetTypeInfo(type_index);
        assert!(!info.is_null(), "TVMFFIGetTypeInfo returned null");
        (*info).type_key.as_str().to_string()
    }
}

pub(crate) mod sealed {
    pub trait Sealed {}
    impl<T: super::AnyCompatible> Sealed for T {}
    impl Sealed for crate::any::Any {}
}

/// What a container can hold: every [`AnyCompatible`] type, and [`Any`].
#[doc(hidden)]
pub trait ContainerElement: sealed::Sealed + Sized {
    /// # Safety
    /// `data` is a valid value.
    unsafe fn element_strict(data: &TVMFFIAny) -> bool;
    /// # Safety
    /// The strict check is true.
    unsafe fn element_copy(data: &TVMFFIAny) -> Self;
    /// # Safety
    /// `data` is a valid value.
    #[allow(clippy::result_unit_err)]
    unsafe fn element_cast(data: &TVMFFIAny) -> Result<Self, ()>;
    fn element_into_any(self) -> Any;
    /// # Safety
    /// The view must not outlive `self`.
    unsafe fn element_view(&self) -> TVMFFIAny;
    fn element_type_str() -> std::string::String;
    /// Strict first, then by conversion.
    ///
    /// # Safety
    /// `data` is a valid value.
    #[allow(clippy::result_unit_err)]
    unsafe fn element_read(data: &TVMFFIAny) -> Result<Self, ()> {
        if Self::element_strict(data) {
            Ok(Self::element_copy(data))
        } else {
            Self::element_cast(data)
        }
    }
}

impl<T: AnyCompatible> ContainerElement for T {
    #[inline]
    unsafe fn element_strict(data: &TVMFFIAny) -> bool {
        T::check_any_strict(data)
    }
    #[inline]
    unsafe fn element_copy(data: &TVMFFIAny) -> Self {
        T::copy_from_any_view_after_check(data)
    }
    #[inline]
    unsafe fn element_cast(data: &TVMFFIAny) -> Result<Self, ()> {
        T::try_cast_from_any_view(data)
    }
    #[inline]
    fn element_into_any(self) -> Any {
        Any::from(self)
    }
    #[inline]
    unsafe fn element_view(&self) -> TVMFFIAny {
        let mut data = TVMFFIAny::new();
        T::copy_to_any_view(self, &mut data);
        data
    }
    fn element_type_str() -> std::string::String {
        T::type_str()
    }
}

impl ContainerElement for Any {
    unsafe fn element_strict(_: &TVMFFIAny) -> bool {
        true
    }
    unsafe fn element_copy(data: &TVMFFIAny) -> Self {
        Any::copy_of_view(data)
    }
    unsafe fn element_cast(data: &TVMFFIAny) -> Result<Self, ()> {
        Ok(Any::copy_of_view(data))
    }
    fn element_into_any(self) -> Any {
        self
    }
    unsafe fn element_view(&self) -> TVMFFIAny {
        *self.raw()
    }
    fn element_type_str() -> std::string::String {
        "Any".to_string()
    }
}

/// The parts of `AnyCompatible` of a type that is copied bit by bit.
macro_rules! plain_any_compatible {
    ($ty:ty, $index:ident, $name:literal,
     |$src:ident, $data:ident| $store:expr,
     |$from:ident| $load:expr,
     |$view:ident| $cast:expr) => {
        // SAFETY: the value is stored where its type index says.
        unsafe impl AnyCompatible for $ty {
            #[inline]
            unsafe fn copy_to_any_view($src: &Self, $data: &mut TVMFFIAny) {
                $data.type_index = TypeIndex::$index as i32;
                $data.small_str_len = 0;
                $data.data_union.v_uint64 = 0;
                $store;
            }
            #[inline]
            unsafe fn move_to_any(src: Self, data: &mut TVMFFIAny) {
                Self::copy_to_any_view(&src, data)
            }
            #[inline]
            unsafe fn check_any_strict(data: &TVMFFIAny) -> bool {
                data.type_index == TypeIndex::$index as i32
            }
            #[inline]
            unsafe fn copy_from_any_view_after_check($from: &TVMFFIAny) -> Self {
                $load
            }
            #[inline]
            unsafe fn move_from_any_after_check(data: &mut TVMFFIAny) -> Self {
                Self::copy_from_any_view_after_check(data)
            }
            #[inline]
            unsafe fn try_cast_from_any_view($view: &TVMFFIAny) -> Result<Self, ()> {
                if Self::check_any_strict($view) {
                    return Ok(Self::copy_from_any_view_after_check($view));
                }
                $cast
            }
            fn type_str() -> std::string::String {
                $name.to_string()
            }
        }
    };
}
pub(crate) use plain_any_compatible;

const INT: i32 = TypeIndex::kTVMFFIInt as i32;
const BOOL: i32 = TypeIndex::kTVMFFIBool as i32;
const NONE: i32 = TypeIndex::kTVMFFINone as i32;

plain_any_compatible!(
    bool,
    kTVMFFIBool,
    "bool",
    |src, data| data.data_union.v_int64 = *src as i64,
    |data| data.data_union.v_int64 != 0,
    |data| if data.type_index == INT { Ok(data.data_union.v_int64 != 0) } else { Err(()) }
);

macro_rules! integers {
    ($($ty:ty),*) => {$(
        plain_any_compatible!(
            $ty,
            kTVMFFIInt,
            "int",
            |src, data| data.data_union.v_int64 = *src as i64,
            |data| data.data_union.v_int64 as $ty,
            |data| if data.type_index == BOOL { Ok(data.data_union.v_int64 as $ty) } else { Err(()) }
        );
    )*};
}
integers!(i8, i16, i32, i64, isize, u8, u16, u32, u64, usize);

macro_rules! floats {
    ($($ty:ty),*) => {$(
        plain_any_compatible!(
            $ty,
            kTVMFFIFloat,
            "float",
            |src, data| data.data_union.v_float64 = *src as f64,
            |data| data.data_union.v_float64 as $ty,
            |data| if data.type_index == INT || data.type_index == BOOL {
                Ok(data.data_union.v_int64 as $ty)
            } else {
                Err(())
            }
        );
    )*};
}
floats!(f32, f64);

plain_any_compatible!((), kTVMFFINone, "None", |_src, data| {}, |_data| (), |_data| Err(()));

plain_any_compatible!(
    *mut std::ffi::c_void,
    kTVMFFIOpaquePtr,
    "void*",
    |src, data| data.data_union.v_ptr = *src,
    |data| data.data_union.v_ptr,
    |data| if data.type_index == NONE { Ok(std::ptr::null_mut()) } else { Err(()) }
);

const DEVICE: i32 = TypeIndex::kTVMFFIDevice as i32;

/// The kind of a device, which may be one that this crate does not know.
fn device_kind(data: &TVMFFIAny) -> u32 {
    // SAFETY: a device starts with its kind.
    unsafe { *(&raw const data.data_union as *const u32) }
}

// SAFETY: stored as a `DLDevice`, and read as one only if its kind is a variant.
unsafe impl AnyCompatible for DLDevice {
    #[inline]
    unsafe fn copy_to_any_view(src: &Self, data: &mut TVMFFIAny) {
        data.type_index = DEVICE;
        data.small_str_len = 0;
        data.data_union.v_device = *src;
    }
    #[inline]
    unsafe fn move_to_any(src: Self, data: &mut TVMFFIAny) {
        Self::copy_to_any_view(&src, data)
    }
    #[inline]
    unsafe fn check_any_strict(data: &TVMFFIAny) -> bool {
        data.type_index == DEVICE && DLDeviceType::from_raw(device_kind(data)).is_some()
    }
    #[inline]
    unsafe fn copy_from_any_view_after_check(data: &TVMFFIAny) -> Self {
        data.data_union.v_device
    }
    #[inline]
    unsafe fn move_from_any_after_check(data: &mut TVMFFIAny) -> Self {
        Self::copy_from_any_view_after_check(data)
    }
    #[inline]
    unsafe fn try_cast_from_any_view(data: &TVMFFIAny) -> Result<Self, ()> {
        if Self::check_any_strict(data) {
            return Ok(Self::copy_from_any_view_after_check(data));
        }
        Err(())
    }
    fn get_mismatch_type_info(data: &TVMFFIAny) -> std::string::String {
        match data.type_index {
            DEVICE => format!("Device of the unknown kind {}", device_kind(data)),
            other => type_key_of(other),
        }
    }
    fn type_str() -> std::string::String {
        "Device".to_string()
    }
}

plain_any_compatible!(
    DLDataType,
    kTVMFFIDataType,
    "DataType",
    |src, data| data.data_union.v_dtype = *src,
    |data| data.data_union.v_dtype,
    |data| {
        let text = crate::string::String::try_cast_from_any_view(data)?;
        let text = std::str::from_utf8(text.as_bytes()).map_err(|_| ())?;
        DLDataType::try_from_str(text).map_err(|_| ())
    }
);

// SAFETY: None is index 0, everything else is stored as T.
unsafe impl<T: AnyCompatible> AnyCompatible for Option<T> {
    #[inline]
    unsafe fn copy_to_any_view(src: &Self, data: &mut TVMFFIAny) {
        match src {
            Some(value) => T::copy_to_any_view(value, data),
            None => *data = TVMFFIAny::new(),
        }
    }
    #[inline]
    unsafe fn move_to_any(src: Self, data: &mut TVMFFIAny) {
        match src {
            Some(value) => T::move_to_any(value, data),
            None => *data = TVMFFIAny::new(),
        }
    }
    #[inline]
    unsafe fn check_any_strict(data: &TVMFFIAny) -> bool {
        data.type_index == NONE || T::check_any_strict(data)
    }
    #[inline]
    unsafe fn copy_from_any_view_after_check(data: &TVMFFIAny) -> Self {
        (data.type_index != NONE).then(|| T::copy_from_any_view_after_check(data))
    }
    #[inline]
    unsafe fn move_from_any_after_check(data: &mut TVMFFIAny) -> Self {
        (data.type_index != NONE).then(|| T::move_from_any_after_check(data))
    }
    unsafe fn try_cast_from_any_view(data: &TVMFFIAny) -> Result<Self, ()> {
        if data.type_index == NONE {
            Ok(None)
        } else {
            T::try_cast_from_any_view(data).map(Some)
        }
    }
    fn get_mismatch_type_info(data: &TVMFFIAny) -> std::string::String {
        T::get_mismatch_type_info(data)
    }
    fn type_str() -> std::string::String {
        format!("Optional<{}>", T::type_str())
    }
}
