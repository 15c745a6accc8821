// SPDX-License-Identifier: Apache-2.0
//! Strings and bytes, stored inline up to seven bytes.
use crate::derive::Object as DeriveObject;
use crate::object::{unsafe_, Object, ObjectArc, ObjectCoreWithExtraItems, TypeIndex};
use crate::type_traits::AnyCompatible;
use std::cmp::Ordering;
use std::fmt::{Debug, Display};
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use tvm_ffi_sys::*;

const MAX_SMALL: usize = 7;

/// The object behind a long [`String`].
#[repr(C)]
#[derive(DeriveObject)]
#[type_key = "ffi.String"]
#[type_index(TypeIndex::kTVMFFIStr)]
pub(crate) struct StringObj {
    object: Object,
    data: TVMFFIByteArray,
}

/// The object behind long [`Bytes`].
#[repr(C)]
#[derive(DeriveObject)]
#[type_key = "ffi.Bytes"]
#[type_index(TypeIndex::kTVMFFIBytes)]
pub(crate) struct BytesObj {
    object: Object,
    data: TVMFFIByteArray,
}

macro_rules! byte_object {
    ($obj:ident) => {
        // SAFETY: the size never changes; one byte more for the NUL.
        unsafe impl ObjectCoreWithExtraItems for $obj {
            type ExtraItem = u8;
            fn extra_items_count(this: &Self) -> usize {
                this.data.size + 1
            }
        }
        impl $obj {
            fn make(bytes: &[u8]) -> *mut TVMFFIObject {
                let data = TVMFFIByteArray::new(std::ptr::null(), bytes.len());
                let mut arc = ObjectArc::new_with_extra_items($obj { object: Object::new(), data });
                // SAFETY: the block has room for the bytes and the NUL behind the object.
                unsafe {
                    let object = ObjectArc::as_raw_mut(&mut arc);
                    let start = object.add(1) as *mut u8;
                    std::ptr::copy_nonoverlapping(bytes.as_ptr(), start, bytes.len());
                    start.add(bytes.len()).write(0);
                    (*object).data.data = start;
                    ObjectArc::into_raw(arc) as *mut TVMFFIObject
                }
            }
        }
    };
}
byte_object!(StringObj);
byte_object!(BytesObj);

/// The 16 bytes of a string: inline or an object.
#[repr(C)]
struct Cell {
    data: TVMFFIAny,
}

impl Cell {
    fn new(bytes: &[u8], small: TypeIndex, large: TypeIndex) -> Self {
        let mut data = TVMFFIAny::new();
        if bytes.len() <= MAX_SMALL {
            data.type_index = small as i32;
            data.small_str_len = bytes.len() as u32;
            let mut inline = [0u8; 8];
            inline[..bytes.len()].copy_from_slice(bytes);
            data.data_union.v_bytes = inline;
        } else {
            data.type_index = large as i32;
            data.data_union.v_obj = match large {
                TypeIndex::kTVMFFIStr => StringObj::make(bytes),
                _ => BytesObj::make(bytes),
            };
        }
        Self { data }
    }

    fn is_object(&self) -> bool {
        self.data.type_index >= TypeIndex::kTVMFFIStaticObjectBegin as i32
    }

    #[inline]
    fn as_slice(&self) -> &[u8] {
        // SAFETY: the index says which of the two it is; the object outlives self.
        unsafe {
            if self.is_object() {
                let bytes = &(*(self.data.data_union.v_obj as *const BytesObj)).data;
                if bytes.data.is_null() {
                    return &[];
                }
                std::slice::from_raw_parts(bytes.data, bytes.size)
            } else {
                let start = &raw const self.data.data_union as *const u8;
                std::slice::from_raw_parts(start, self.data.small_str_len as usize)
            }
        }
    }
}

impl Clone for Cell {
    fn clone(&self) -> Self {
        if self.is_object() {
            // SAFETY: self keeps the object alive.
            unsafe { unsafe_::inc_ref(self.data.data_union.v_obj) }
        }
        Self { data: self.data }
    }
}

impl Drop for Cell {
    fn drop(&mut self) {
        if self.is_object() {
            // SAFETY: self owns one reference.
            unsafe { unsafe_::dec_ref(self.data.data_union.v_obj) }
        }
    }
}

/// Text that is shared with the other languages.
///
/// ```
/// let text = tvm_ffi::String::from("hello");
/// assert_eq!(text, "hello");
/// assert!(text.starts_with("he"));
/// ```
#[repr(C)]
#[derive(Clone)]
pub struct String {
    cell: Cell,
}

/// Bytes that are shared with the other languages.
///
/// ```
/// let bytes = tvm_ffi::Bytes::from([1u8, 2, 3]);
/// assert_eq!(bytes.len(), 3);
/// assert_eq!(bytes, [1u8, 2, 3]);
/// ```
#[repr(C)]
#[derive(Clone)]
pub struct Bytes {
    cell: Cell,
}

impl String {
    /// An empty string.
    pub fn new() -> Self {
        Self::from("")
    }
    /// Number of bytes.
    pub fn len(&self) -> usize {
        self.as_bytes().len()
    }
    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.cell.as_slice()
    }
    /// The text. Whoever made the string promises that it is UTF-8.
    pub fn as_str(&self) -> &str {
        // SAFETY: strings of the FFI are UTF-8.
        unsafe { std::str::from_utf8_unchecked(self.as_bytes()) }
    }
}

impl Bytes {
    /// No bytes.
    pub fn new() -> Self {
        Self::from(b"")
    }
    /// Number of bytes.
    pub fn len(&self) -> usize {
        self.as_slice().len()
    }
    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        self.cell.as_slice()
    }
}

impl<T: AsRef<str>> From<T> for String {
    fn from(value: T) -> Self {
        let bytes = value.as_ref().as_bytes();
        Self { cell: Cell::new(bytes, TypeIndex::kTVMFFISmallStr, TypeIndex::kTVMFFIStr) }
    }
}

impl<T: AsRef<[u8]>> From<T> for Bytes {
    fn from(value: T) -> Self {
        let bytes = value.as_ref();
        Self { cell: Cell::new(bytes, TypeIndex::kTVMFFISmallBytes, TypeIndex::kTVMFFIBytes) }
    }
}

macro_rules! text_traits {
    ($name:ident, $target:ty, $access:ident, $key:literal, $small:ident, $large:ident, $raw:ident,
     |$view:ident| $from_raw:expr) => {
        impl Default for $name {
            fn default() -> Self {
                Self::new()
            }
        }
        impl Deref for $name {
            type Target = $target;
            fn deref(&self) -> &$target {
                self.$access()
            }
        }
        impl<T: AsRef<$target>> PartialEq<T> for $name {
            fn eq(&self, other: &T) -> bool {
                self.$access() == other.as_ref()
            }
        }
        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                self.$access() == other.$access()
            }
        }
        impl Eq for $name {}
        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }
        impl Ord for $name {
            fn cmp(&self, other: &Self) -> Ordering {
                self.$access().cmp(other.$access())
            }
        }
        impl Hash for $name {
            fn hash<H: Hasher>(&self, state: &mut H) {
                self.$access().hash(state)
            }
        }
        impl Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{:?}", self.$access())
            }
        }
        impl Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!($key, " {{ data: {:?} }}"), self.$access())
            }
        }
        // SAFETY: the cell is the value.
        unsafe impl AnyCompatible for $name {
            #[inline]
            unsafe fn copy_to_any_view(src: &Self, data: &mut TVMFFIAny) {
                *data = src.cell.data;
            }
            #[inline]
            unsafe fn move_to_any(src: Self, data: &mut TVMFFIAny) {
                *data = std::mem::ManuallyDrop::new(src).cell.data;
            }
            #[inline]
            unsafe fn check_any_strict(data: &TVMFFIAny) -> bool {
                data.type_index == TypeIndex::$small as i32
                    || data.type_index == TypeIndex::$large as i32
            }
            #[inline]
            unsafe fn copy_from_any_view_after_check(data: &TVMFFIAny) -> Self {
                let borrowed = std::mem::ManuallyDrop::new(Cell { data: *data });
                Self { cell: Cell::clone(&borrowed) }
            }
            #[inline]
            unsafe fn move_from_any_after_check(data: &mut TVMFFIAny) -> Self {
                let data = std::mem::replace(data, TVMFFIAny::new());
                Self { cell: Cell { data } }
            }
            unsafe fn try_cast_from_any_view($view: &TVMFFIAny) -> Result<Self, ()> {
                if Self::check_any_strict($view) {
                    return Ok(Self::copy_from_any_view_after_check($view));
                }
                if $view.type_index == TypeIndex::$raw as i32 {
                    return Ok($from_raw);
                }
                Err(())
            }
            fn type_str() -> std::string::String {
                $key.to_string()
            }
        }
        crate::impl_try_from_any!($name);
    };
}

text_traits!(
    String,
    str,
    as_str,
    "ffi.String",
    kTVMFFISmallStr,
    kTVMFFIStr,
    kTVMFFIRawStr,
    |view| {
        let text = std::ffi::CStr::from_ptr(view.data_union.v_c_str as *const std::ffi::c_char);
        Self::from(text.to_str().expect("Invalid UTF-8"))
    }
);
text_traits!(
    Bytes,
    [u8],
    as_slice,
    "ffi.Bytes",
    kTVMFFISmallBytes,
    kTVMFFIBytes,
    kTVMFFIByteArrayPtr,
    |view| {
        let bytes = &*(view.data_union.v_ptr as *const TVMFFIByteArray);
        if bytes.data.is_null() {
            Self::new()
        } else {
            Self::from(std::slice::from_raw_parts(bytes.data, bytes.size))
        }
    }
);
