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

/// Up to seven bytes and zeros, without a call of `memcpy`: two reads that may overlap.
#[inline]
fn inline_bytes(bytes: &[u8]) -> [u8; 8] {
    let count = bytes.len();
    let word = match bytes {
        [] => 0,
        [first, .., last] if count < 4 => {
            let middle = bytes[count / 2];
            u64::from(*first)
                | u64::from(middle) << (8 * (count / 2))
                | u64::from(*last) << (8 * (count - 1))
        }
        [only] => u64::from(*only),
        _ => {
            let low = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            let tail = &bytes[count - 4..];
            let high = u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]);
            u64::from(low) | u64::from(high) << (8 * (count - 4))
        }
    };
    word.to_le_bytes()
}

/// The 16 bytes of a string: inline or an object.
#[repr(C)]
struct Cell {
    data: TVMFFIAny,
}

impl Cell {
    #[inline]
    fn new(bytes: &[u8], small: TypeIndex, large: TypeIndex) -> Self {
        let mut data = TVMFFIAny::new();
        if bytes.len() <= MAX_SMALL {
            data.type_index = small as i32;
            data.small_str_len = bytes.len() as u32;
            data.data_union.v_bytes = inline_bytes(bytes);
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
                let size = (self.data.small_str_len as usize).min(MAX_SMALL);
                std::slice::from_raw_parts(start, size)
            }
        }
    }
}

impl Clone for Cell {
    #[inline]
    fn clone(&self) -> Self {
        if self.is_object() {
            // SAFETY: self keeps the object alive.
            unsafe { unsafe_::inc_ref(self.data.data_union.v_obj) }
        }
        Self { data: self.data }
    }
}

impl Drop for Cell {
    #[inline]
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
    ///
    /// ```
    /// assert!(tvm_ffi::String::new().is_empty());
    /// ```
    pub fn new() -> Self {
        Self::from("")
    }
    /// Number of bytes.
    ///
    /// ```
    /// assert_eq!(tvm_ffi::String::from("ä").len(), 2);
    /// ```
    pub fn len(&self) -> usize {
        self.as_bytes().len()
    }
    /// Whether there is nothing in it.
    ///
    /// ```
    /// assert!(!tvm_ffi::String::from("x").is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The bytes.
    ///
    /// ```
    /// assert_eq!(tvm_ffi::String::from("ab").as_bytes(), b"ab");
    /// ```
    pub fn as_bytes(&self) -> &[u8] {
        self.cell.as_slice()
    }
    /// The text.
    ///
    /// ```
    /// assert_eq!(tvm_ffi::String::from("ab").as_str(), "ab");
    /// ```
    ///
    /// # Panics
    /// If another language has put bytes into the string that are not UTF-8. [`String::as_bytes`] gives them.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).expect("Invalid UTF-8")
    }
}

impl Bytes {
    /// No bytes.
    ///
    /// ```
    /// assert!(tvm_ffi::Bytes::new().is_empty());
    /// ```
    pub fn new() -> Self {
        Self::from(b"")
    }
    /// Number of bytes.
    ///
    /// ```
    /// assert_eq!(tvm_ffi::Bytes::from(b"abc").len(), 3);
    /// ```
    pub fn len(&self) -> usize {
        self.as_slice().len()
    }
    /// Whether there is nothing in it.
    ///
    /// ```
    /// assert!(!tvm_ffi::Bytes::from(b"x").is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The bytes.
    ///
    /// ```
    /// assert_eq!(tvm_ffi::Bytes::from([1u8, 2]).as_slice(), [1, 2]);
    /// ```
    pub fn as_slice(&self) -> &[u8] {
        self.cell.as_slice()
    }
}

impl<T: AsRef<str>> From<T> for String {
    #[inline]
    fn from(value: T) -> Self {
        let bytes = value.as_ref().as_bytes();
        Self { cell: Cell::new(bytes, TypeIndex::kTVMFFISmallStr, TypeIndex::kTVMFFIStr) }
    }
}

impl<T: AsRef<[u8]>> From<T> for Bytes {
    #[inline]
    fn from(value: T) -> Self {
        let bytes = value.as_ref();
        Self { cell: Cell::new(bytes, TypeIndex::kTVMFFISmallBytes, TypeIndex::kTVMFFIBytes) }
    }
}

macro_rules! text_traits {
    ($name:ident, $target:ty, $access:ident, $bytes:ident, $key:literal, $small:ident, $large:ident,
     $raw:ident, |$view:ident| $from_raw:expr, |$this:ident| $shown:expr,
     |$hashed:ident, $state:ident| $hash:expr) => {
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
                let other: &[u8] = AsRef::<$target>::as_ref(other).as_ref();
                self.$bytes() == other
            }
        }
        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                self.$bytes() == other.$bytes()
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
                self.$bytes().cmp(other.$bytes())
            }
        }
        impl Hash for $name {
            fn hash<H: Hasher>(&self, $state: &mut H) {
                let $hashed = self.$bytes();
                $hash
            }
        }
        impl Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let $this = self;
                write!(f, "{:?}", $shown)
            }
        }
        impl Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let $this = self;
                write!(f, concat!($key, " {{ data: {:?} }}"), $shown)
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
    as_bytes,
    "ffi.String",
    kTVMFFISmallStr,
    kTVMFFIStr,
    kTVMFFIRawStr,
    |view| {
        let text = std::ffi::CStr::from_ptr(view.data_union.v_c_str as *const std::ffi::c_char);
        Self::from(text.to_str().expect("Invalid UTF-8"))
    },
    |this| std::string::String::from_utf8_lossy(this.as_bytes()),
    // As a `str`.
    |bytes, state| {
        state.write(bytes);
        state.write_u8(0xff);
    }
);
text_traits!(
    Bytes,
    [u8],
    as_slice,
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
    },
    |this| this.as_slice(),
    |bytes, state| bytes.hash(state)
);
