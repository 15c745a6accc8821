// SPDX-License-Identifier: Apache-2.0
//! The types and functions of `tvm/ffi/c_api.h`.
#![allow(missing_docs)]
use crate::{DLDataType, DLDevice};
use std::ffi::c_void;
use std::sync::atomic::AtomicU64;

/// What a value is.
///
/// ```
/// use tvm_ffi_sys::*;
/// let mut value = TVMFFIAny::new();
/// assert_eq!(value.type_index, TVMFFITypeIndex::kTVMFFINone as i32);
/// value.type_index = TVMFFITypeIndex::kTVMFFIInt as i32;
/// ```
#[repr(i32)]
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub enum TVMFFITypeIndex {
    kTVMFFINone = 0,
    kTVMFFIInt = 1,
    kTVMFFIBool = 2,
    kTVMFFIFloat = 3,
    kTVMFFIOpaquePtr = 4,
    kTVMFFIDataType = 5,
    kTVMFFIDevice = 6,
    kTVMFFIDLTensorPtr = 7,
    kTVMFFIRawStr = 8,
    kTVMFFIByteArrayPtr = 9,
    kTVMFFIObjectRValueRef = 10,
    kTVMFFISmallStr = 11,
    kTVMFFISmallBytes = 12,
    kTVMFFIUnchanged = 13,
    kTVMFFIStaticObjectBegin = 64,
    kTVMFFIStr = 65,
    kTVMFFIBytes = 66,
    kTVMFFIError = 67,
    kTVMFFIFunction = 68,
    kTVMFFIShape = 69,
    kTVMFFITensor = 70,
    kTVMFFIArray = 71,
    kTVMFFIMap = 72,
    kTVMFFIModule = 73,
    kTVMFFIOpaquePyObject = 74,
    kTVMFFIList = 75,
    kTVMFFIDict = 76,
    kTVMFFIVisitInterrupt = 77,
    kTVMFFIBigInt = 78,
    kTVMFFIStaticObjectEnd = 79,
    kTVMFFIDynObjectBegin = 128,
}

/// What a deleter is asked to do.
///
/// ```
/// use tvm_ffi_sys::*;
/// use TVMFFIObjectDeleterFlagBitMask::*;
/// let (strong, weak) =
///     (kTVMFFIObjectDeleterFlagBitMaskStrong as i32, kTVMFFIObjectDeleterFlagBitMaskWeak as i32);
/// assert_eq!(strong | weak, kTVMFFIObjectDeleterFlagBitMaskBoth as i32);
/// ```
#[repr(i32)]
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub enum TVMFFIObjectDeleterFlagBitMask {
    kTVMFFIObjectDeleterFlagBitMaskStrong = 1,
    kTVMFFIObjectDeleterFlagBitMaskWeak = 2,
    kTVMFFIObjectDeleterFlagBitMaskBoth = 3,
}

/// Flags of a reflected field.
///
/// ```
/// use tvm_ffi_sys::*;
/// use TVMFFIFieldFlagBitMask::*;
/// let flags = kTVMFFIFieldFlagBitMaskWritable as i64 | kTVMFFIFieldFlagBitMaskKwOnly as i64;
/// assert_ne!(flags & kTVMFFIFieldFlagBitMaskWritable as i64, 0);
/// ```
#[repr(i32)]
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub enum TVMFFIFieldFlagBitMask {
    kTVMFFIFieldFlagBitMaskWritable = 1 << 0,
    kTVMFFIFieldFlagBitMaskHasDefault = 1 << 1,
    kTVMFFIFieldFlagBitMaskIsStaticMethod = 1 << 2,
    kTVMFFIFieldFlagBitMaskSEqHashIgnore = 1 << 3,
    kTVMFFIFieldFlagBitMaskSEqHashDefPattern = 1 << 4,
    kTVMFFIFieldFlagBitMaskDefaultFromFactory = 1 << 5,
    kTVMFFIFieldFlagBitMaskReprOff = 1 << 6,
    kTVMFFIFieldFlagBitMaskCompareOff = 1 << 7,
    kTVMFFIFieldFlagBitMaskHashOff = 1 << 8,
    kTVMFFIFieldFlagBitMaskInitOff = 1 << 9,
    kTVMFFIFieldFlagBitMaskKwOnly = 1 << 10,
    kTVMFFIFieldFlagBitSetterIsFunctionObj = 1 << 11,
    kTVMFFIFieldFlagBitMaskSEqHashDefSimple = 1 << 12,
}

/// Whether a walk is inside a definition.
///
/// ```
/// use tvm_ffi_sys::*;
/// assert_eq!(TVMFFIDefRegionKind::kTVMFFIDefRegionKindSimple as i32, 2);
/// ```
#[repr(i32)]
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub enum TVMFFIDefRegionKind {
    kTVMFFIDefRegionKindNone = 0,
    kTVMFFIDefRegionKindPattern = 1,
    kTVMFFIDefRegionKindSimple = 2,
}

/// How a type takes part in structural comparison.
///
/// ```
/// use tvm_ffi_sys::*;
/// let kind = TVMFFISEqHashKind::kTVMFFISEqHashKindTreeNode;
/// let metadata = TVMFFITypeMetadata {
///     doc: unsafe { TVMFFIByteArray::from_str("") },
///     creator: None,
///     total_size: 24,
///     structural_eq_hash_kind: kind as i32,
/// };
/// assert_eq!(metadata.structural_eq_hash_kind, 1);
/// ```
#[repr(i32)]
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub enum TVMFFISEqHashKind {
    kTVMFFISEqHashKindUnsupported = 0,
    kTVMFFISEqHashKindTreeNode = 1,
    kTVMFFISEqHashKindFreeVar = 2,
    kTVMFFISEqHashKindDAGNode = 3,
    kTVMFFISEqHashKindConstTreeNode = 4,
    kTVMFFISEqHashKindUniqueInstance = 5,
}

/// How a backtrace is changed.
///
/// ```
/// use tvm_ffi_sys::*;
/// let text = |s| unsafe { TVMFFIByteArray::from_str(s) };
/// let (kind, message, backtrace) = (text("ValueError"), text("no"), text(""));
/// let mut error = std::ptr::null_mut();
/// assert_eq!(unsafe { TVMFFIErrorCreate(&kind, &message, &backtrace, &mut error) }, 0);
/// // What an error has is behind its header.
/// let cell = unsafe { &*((error as *const TVMFFIObject).add(1) as *const TVMFFIErrorCell) };
/// let more = text("a frame\n");
/// let mode = TVMFFIBacktraceUpdateMode::kTVMFFIBacktraceUpdateModeAppend as i32;
/// unsafe { (cell.update_backtrace)(error, &more, mode) };
/// assert_eq!(cell.backtrace.as_str(), "a frame\n");
/// ```
#[repr(i32)]
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub enum TVMFFIBacktraceUpdateMode {
    kTVMFFIBacktraceUpdateModeReplace = 0,
    kTVMFFIBacktraceUpdateModeAppend = 1,
}

/// A pointer to an object.
///
/// ```
/// use tvm_ffi_sys::*;
/// let text = |s| unsafe { TVMFFIByteArray::from_str(s) };
/// let (kind, message, backtrace) = (text("ValueError"), text("no"), text(""));
/// let mut error = std::ptr::null_mut();
/// assert_eq!(unsafe { TVMFFIErrorCreate(&kind, &message, &backtrace, &mut error) }, 0);
/// let object: TVMFFIObjectHandle = error;
/// let header = unsafe { &*(object as *const TVMFFIObject) };
/// assert_eq!(header.type_index, TVMFFITypeIndex::kTVMFFIError as i32);
/// ```
pub type TVMFFIObjectHandle = *mut c_void;
/// Destroys an object, frees its memory, or both.
///
/// ```
/// use tvm_ffi_sys::*;
/// unsafe extern "C" fn keep(_: *mut std::ffi::c_void, _: i32) {}
/// let deleter: TVMFFIObjectDeleter = keep;
/// let mut header = TVMFFIObject::new();
/// header.deleter = Some(deleter);
/// ```
pub type TVMFFIObjectDeleter = unsafe extern "C" fn(self_ptr: *mut c_void, flags: i32);

/// The first 24 bytes of every object.
///
/// ```
/// use tvm_ffi_sys::*;
/// let header = TVMFFIObject::new();
/// assert_eq!(std::mem::size_of_val(&header), 24);
/// assert!(header.deleter.is_none());
/// ```
#[repr(C)]
#[derive(Debug)]
pub struct TVMFFIObject {
    /// Strong count in the low half, weak count in the high half.
    pub combined_ref_count: AtomicU64,
    pub type_index: i32,
    /// 0, `OBJECT_ALLOC_HEADER_MARK`, or the number that a frontend has given the object.
    pub __padding: u32,
    pub deleter: Option<TVMFFIObjectDeleter>,
    #[cfg(target_pointer_width = "32")]
    __ensure_align: u32,
}

impl TVMFFIObject {
    /// A header of zeros.
    ///
    /// ```
    /// use tvm_ffi_sys::*;
    /// use std::sync::atomic::Ordering;
    /// assert_eq!(TVMFFIObject::new().combined_ref_count.load(Ordering::Relaxed), 0);
    /// ```
    pub const fn new() -> Self {
        Self {
            combined_ref_count: AtomicU64::new(0),
            type_index: 0,
            __padding: 0,
            deleter: None,
            #[cfg(target_pointer_width = "32")]
            __ensure_align: 0,
        }
    }
}

impl Default for TVMFFIObject {
    fn default() -> Self {
        Self::new()
    }
}

/// Selects the strong count.
///
/// ```
/// use tvm_ffi_sys::*;
/// let count = COMBINED_REF_COUNT_BOTH_ONE + COMBINED_REF_COUNT_STRONG_ONE;
/// assert_eq!(count & COMBINED_REF_COUNT_MASK_U32, 2);
/// ```
pub const COMBINED_REF_COUNT_MASK_U32: u64 = (1 << 32) - 1;
/// One strong reference.
///
/// ```
/// use tvm_ffi_sys::*;
/// use std::sync::atomic::Ordering;
/// let header = TVMFFIObject::new();
/// header.combined_ref_count.fetch_add(COMBINED_REF_COUNT_STRONG_ONE, Ordering::Relaxed);
/// assert_eq!(header.combined_ref_count.load(Ordering::Relaxed), 1);
/// ```
pub const COMBINED_REF_COUNT_STRONG_ONE: u64 = 1;
/// One weak reference. All strong references together hold one.
///
/// ```
/// use tvm_ffi_sys::*;
/// assert_eq!(COMBINED_REF_COUNT_WEAK_ONE >> 32, 1);
/// ```
pub const COMBINED_REF_COUNT_WEAK_ONE: u64 = 1 << 32;
/// The counts of a new object.
///
/// ```
/// use tvm_ffi_sys::*;
/// let one = COMBINED_REF_COUNT_BOTH_ONE;
/// assert_eq!(one, COMBINED_REF_COUNT_STRONG_ONE + COMBINED_REF_COUNT_WEAK_ONE);
/// ```
pub const COMBINED_REF_COUNT_BOTH_ONE: u64 =
    COMBINED_REF_COUNT_STRONG_ONE | COMBINED_REF_COUNT_WEAK_ONE;
/// In `__padding`: a `TVMFFIObjectAllocHeader` ends where the object begins.
///
/// ```
/// use tvm_ffi_sys::*;
/// let mut header = TVMFFIObject::new();
/// header.__padding = OBJECT_ALLOC_HEADER_MARK;
/// assert_eq!(&header.__padding.to_be_bytes(), b"TIED");
/// ```
pub const OBJECT_ALLOC_HEADER_MARK: u32 = 0x5449_4544;

/// Payload of a value.
///
/// ```
/// use tvm_ffi_sys::*;
/// let data = TVMFFIAnyDataUnion { v_float64: 2.5 };
/// assert_eq!(unsafe { data.v_uint64 }, 2.5f64.to_bits());
/// ```
#[repr(C)]
#[derive(Copy, Clone)]
pub union TVMFFIAnyDataUnion {
    pub v_int64: i64,
    pub v_float64: f64,
    pub v_ptr: *mut c_void,
    pub v_c_str: *const i8,
    pub v_obj: *mut TVMFFIObject,
    pub v_dtype: DLDataType,
    pub v_device: DLDevice,
    pub v_bytes: [u8; 8],
    pub v_uint64: u64,
}

/// A value.
///
/// ```
/// use tvm_ffi_sys::*;
/// let mut argument = TVMFFIAny::new();
/// argument.type_index = TVMFFITypeIndex::kTVMFFIInt as i32;
/// argument.data_union.v_int64 = 7;
/// assert_eq!(unsafe { argument.data_union.v_int64 }, 7);
/// ```
#[repr(C)]
#[derive(Copy, Clone)]
pub struct TVMFFIAny {
    pub type_index: i32,
    pub small_str_len: u32,
    pub data_union: TVMFFIAnyDataUnion,
}

impl TVMFFIAny {
    /// None.
    ///
    /// ```
    /// use tvm_ffi_sys::*;
    /// assert_eq!(TVMFFIAny::new().type_index, TVMFFITypeIndex::kTVMFFINone as i32);
    /// ```
    pub const fn new() -> Self {
        Self { type_index: 0, small_str_len: 0, data_union: TVMFFIAnyDataUnion { v_uint64: 0 } }
    }
}

impl Default for TVMFFIAny {
    fn default() -> Self {
        Self::new()
    }
}

/// Bytes that somebody else owns.
///
/// ```
/// use tvm_ffi_sys::*;
/// let bytes = TVMFFIByteArray { data: b"abc".as_ptr(), size: 3 };
/// assert_eq!(bytes.as_str(), "abc");
/// ```
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct TVMFFIByteArray {
    pub data: *const u8,
    pub size: usize,
}

impl TVMFFIByteArray {
    /// `size` bytes at `data`.
    ///
    /// ```
    /// use tvm_ffi_sys::*;
    /// assert_eq!(TVMFFIByteArray::new(b"abc".as_ptr(), 2).as_str(), "ab");
    /// ```
    pub const fn new(data: *const u8, size: usize) -> Self {
        Self { data, size }
    }

    /// The bytes as text, up to the first that is not UTF-8. Empty for a null pointer.
    ///
    /// ```
    /// use tvm_ffi_sys::*;
    /// assert_eq!(TVMFFIByteArray::new(std::ptr::null(), 0).as_str(), "");
    /// assert_eq!(TVMFFIByteArray::new(b"ab\xff".as_ptr(), 3).as_str(), "ab");
    /// ```
    pub fn as_str(&self) -> &str {
        if self.data.is_null() {
            return "";
        }
        // SAFETY: the producer of the record promises `size` bytes.
        let bytes = unsafe { std::slice::from_raw_parts(self.data, self.size) };
        std::str::from_utf8(bytes).unwrap_or_else(|error| {
            // SAFETY: what comes before has been found to be UTF-8.
            unsafe { std::str::from_utf8_unchecked(&bytes[..error.valid_up_to()]) }
        })
    }

    /// The bytes of a string.
    ///
    /// ```
    /// use tvm_ffi_sys::*;
    /// // SAFETY: the text is static.
    /// assert_eq!(unsafe { TVMFFIByteArray::from_str("abc") }.size, 3);
    /// ```
    ///
    /// # Safety
    /// The result must not be used after `value` is gone.
    #[allow(clippy::should_implement_trait)]
    pub const unsafe fn from_str(value: &str) -> Self {
        Self { data: value.as_ptr(), size: value.len() }
    }
}

/// A function as C calls it: 0, or -1 with an error raised.
///
/// ```
/// use tvm_ffi_sys::*;
/// unsafe extern "C" fn negate(
///     _: *mut std::ffi::c_void,
///     args: *const TVMFFIAny,
///     _: i32,
///     result: *mut TVMFFIAny,
/// ) -> i32 {
///     *result = *args;
///     (*result).data_union.v_int64 = -(*args).data_union.v_int64;
///     0
/// }
/// let mut argument = TVMFFIAny::new();
/// argument.type_index = TVMFFITypeIndex::kTVMFFIInt as i32;
/// argument.data_union.v_int64 = 7;
/// let call: TVMFFISafeCallType = negate;
/// let mut result = TVMFFIAny::new();
/// assert_eq!(unsafe { call(std::ptr::null_mut(), &argument, 1, &mut result) }, 0);
/// assert_eq!(unsafe { result.data_union.v_int64 }, -7);
/// ```
pub type TVMFFISafeCallType = unsafe extern "C" fn(
    handle: *mut c_void,
    args: *const TVMFFIAny,
    num_args: i32,
    result: *mut TVMFFIAny,
) -> i32;

/// What follows the header of a function.
///
/// ```
/// use tvm_ffi_sys::*;
/// unsafe extern "C" fn negate(
///     _: *mut std::ffi::c_void,
///     args: *const TVMFFIAny,
///     _: i32,
///     result: *mut TVMFFIAny,
/// ) -> i32 {
///     *result = *args;
///     (*result).data_union.v_int64 = -(*args).data_union.v_int64;
///     0
/// }
/// let mut function = std::ptr::null_mut();
/// assert_eq!(unsafe { TVMFFIFunctionCreate(std::ptr::null_mut(), negate, None, &mut function) }, 0);
/// let mut argument = TVMFFIAny::new();
/// argument.type_index = TVMFFITypeIndex::kTVMFFIInt as i32;
/// argument.data_union.v_int64 = 7;
/// let cell = unsafe { &*((function as *const TVMFFIObject).add(1) as *const TVMFFIFunctionCell) };
/// let mut result = TVMFFIAny::new();
/// assert_eq!(unsafe { (cell.safe_call)(function, &argument, 1, &mut result) }, 0);
/// assert_eq!(unsafe { result.data_union.v_int64 }, -7);
/// ```
#[repr(C)]
#[derive(Debug)]
pub struct TVMFFIFunctionCell {
    pub safe_call: TVMFFISafeCallType,
    pub cxx_call: *mut c_void,
}
// SAFETY: both are addresses of code.
unsafe impl Send for TVMFFIFunctionCell {}
unsafe impl Sync for TVMFFIFunctionCell {}

/// What follows the header of an error.
///
/// ```
/// use tvm_ffi_sys::*;
/// let text = |s| unsafe { TVMFFIByteArray::from_str(s) };
/// let (kind, message, backtrace) = (text("ValueError"), text("no"), text(""));
/// let mut error = std::ptr::null_mut();
/// assert_eq!(unsafe { TVMFFIErrorCreate(&kind, &message, &backtrace, &mut error) }, 0);
/// // What an error has is behind its header.
/// let cell = unsafe { &*((error as *const TVMFFIObject).add(1) as *const TVMFFIErrorCell) };
/// assert_eq!((cell.kind.as_str(), cell.message.as_str()), ("ValueError", "no"));
/// ```
#[repr(C)]
pub struct TVMFFIErrorCell {
    pub kind: TVMFFIByteArray,
    pub message: TVMFFIByteArray,
    pub backtrace: TVMFFIByteArray,
    pub update_backtrace: unsafe extern "C" fn(
        self_ptr: *mut c_void,
        backtrace: *const TVMFFIByteArray,
        update_mode: i32,
    ),
    pub cause_chain: TVMFFIObjectHandle,
    pub extra_context: TVMFFIObjectHandle,
}

/// Reads the field at an address.
///
/// ```
/// use tvm_ffi_sys::*;
/// unsafe extern "C" fn get(field: *mut std::ffi::c_void, result: *mut TVMFFIAny) -> i32 {
///     (*result).type_index = TVMFFITypeIndex::kTVMFFIInt as i32;
///     (*result).data_union.v_int64 = *(field as *const i64);
///     0
/// }
/// let getter: TVMFFIFieldGetter = get;
/// let (mut x, mut result) = (3i64, TVMFFIAny::new());
/// assert_eq!(unsafe { getter(&mut x as *mut i64 as *mut _, &mut result) }, 0);
/// assert_eq!(unsafe { result.data_union.v_int64 }, 3);
/// ```
pub type TVMFFIFieldGetter =
    unsafe extern "C" fn(field: *mut c_void, result: *mut TVMFFIAny) -> i32;
/// Writes the field at an address.
///
/// ```
/// use tvm_ffi_sys::*;
/// unsafe extern "C" fn set(field: *mut std::ffi::c_void, value: *const TVMFFIAny) -> i32 {
///     *(field as *mut i64) = (*value).data_union.v_int64;
///     0
/// }
/// let setter: TVMFFIFieldSetter = set;
/// let mut argument = TVMFFIAny::new();
/// argument.type_index = TVMFFITypeIndex::kTVMFFIInt as i32;
/// argument.data_union.v_int64 = 7;
/// let mut x = 0i64;
/// assert_eq!(unsafe { setter(&mut x as *mut i64 as *mut _, &argument) }, 0);
/// assert_eq!(x, 7);
/// ```
pub type TVMFFIFieldSetter =
    unsafe extern "C" fn(field: *mut c_void, value: *const TVMFFIAny) -> i32;
/// Makes an object whose fields are still to be set.
///
/// ```
/// use tvm_ffi_sys::*;
/// unsafe extern "C" fn refuse(_: *mut TVMFFIObjectHandle) -> i32 {
///     TVMFFIErrorSetRaisedFromCStr(c"TypeError".as_ptr() as *const i8, c"no".as_ptr() as *const i8);
///     -1
/// }
/// let creator: TVMFFIObjectCreator = refuse;
/// let mut made = std::ptr::null_mut();
/// assert_eq!(unsafe { creator(&mut made) }, -1);
/// ```
pub type TVMFFIObjectCreator = unsafe extern "C" fn(result: *mut TVMFFIObjectHandle) -> i32;

/// A reflected field.
///
/// ```
/// use tvm_ffi_sys::*;
/// // The first field of the error context, from the type table.
/// let key = unsafe { TVMFFIByteArray::from_str("ffi.VisitErrorContext") };
/// let mut index = 0;
/// assert_eq!(unsafe { TVMFFITypeKeyToIndex(&key, &mut index) }, 0);
/// let field: &TVMFFIFieldInfo = unsafe { &*(*TVMFFIGetTypeInfo(index)).fields };
/// assert_eq!(field.name.as_str(), "reverse_visit_pattern");
/// ```
#[repr(C)]
pub struct TVMFFIFieldInfo {
    pub name: TVMFFIByteArray,
    pub doc: TVMFFIByteArray,
    pub metadata: TVMFFIByteArray,
    pub flags: i64,
    pub size: i64,
    pub alignment: i64,
    pub offset: i64,
    pub getter: Option<TVMFFIFieldGetter>,
    pub setter: *mut c_void,
    pub default_value_or_factory: TVMFFIAny,
    pub field_static_type_index: i32,
}

/// A reflected method.
///
/// ```
/// use tvm_ffi_sys::*;
/// unsafe extern "C" fn negate(
///     _: *mut std::ffi::c_void,
///     args: *const TVMFFIAny,
///     _: i32,
///     result: *mut TVMFFIAny,
/// ) -> i32 {
///     *result = *args;
///     (*result).data_union.v_int64 = -(*args).data_union.v_int64;
///     0
/// }
/// let mut function = std::ptr::null_mut();
/// assert_eq!(unsafe { TVMFFIFunctionCreate(std::ptr::null_mut(), negate, None, &mut function) }, 0);
/// let mut method = TVMFFIAny::new();
/// method.type_index = TVMFFITypeIndex::kTVMFFIFunction as i32;
/// method.data_union.v_obj = function as *mut TVMFFIObject;
/// let text = |s| unsafe { TVMFFIByteArray::from_str(s) };
/// let info = TVMFFIMethodInfo {
///     name: text("negate"),
///     doc: text("The negative number."),
///     metadata: text("{}"),
///     flags: TVMFFIFieldFlagBitMask::kTVMFFIFieldFlagBitMaskIsStaticMethod as i64,
///     method,
/// };
/// assert_eq!(info.name.as_str(), "negate");
/// ```
#[repr(C)]
pub struct TVMFFIMethodInfo {
    pub name: TVMFFIByteArray,
    pub doc: TVMFFIByteArray,
    pub metadata: TVMFFIByteArray,
    pub flags: i64,
    pub method: TVMFFIAny,
}

/// More about a type.
///
/// ```
/// use tvm_ffi_sys::*;
/// let metadata = TVMFFITypeMetadata {
///     doc: unsafe { TVMFFIByteArray::from_str("A class.") },
///     creator: None,
///     total_size: 32,
///     structural_eq_hash_kind: 0,
/// };
/// assert_eq!(metadata.doc.as_str(), "A class.");
/// ```
#[repr(C)]
pub struct TVMFFITypeMetadata {
    pub doc: TVMFFIByteArray,
    pub creator: Option<TVMFFIObjectCreator>,
    pub total_size: i32,
    pub structural_eq_hash_kind: i32,
}

/// One attribute of many types, by type index.
///
/// ```
/// use tvm_ffi_sys::*;
/// let name = unsafe { TVMFFIByteArray::from_str("__ffi_repr__") };
/// let column: *const TVMFFITypeAttrColumn = unsafe { TVMFFIGetTypeAttrColumn(&name) };
/// // The entry of type `i` is `data[i - begin_index]`, if that is below `size`.
/// if let Some(column) = unsafe { column.as_ref() } {
///     assert!(column.size >= 0);
/// }
/// ```
#[repr(C)]
pub struct TVMFFITypeAttrColumn {
    pub data: *const TVMFFIAny,
    pub size: i32,
    pub begin_index: i32,
}

/// A registered type.
///
/// ```
/// use tvm_ffi_sys::*;
/// let index = TVMFFITypeIndex::kTVMFFIArray as i32;
/// let info: &TVMFFITypeInfo = unsafe { &*TVMFFIGetTypeInfo(index) };
/// assert_eq!((info.type_key.as_str(), info.type_depth), ("ffi.Array", 1));
/// ```
#[repr(C)]
pub struct TVMFFITypeInfo {
    pub type_index: i32,
    pub type_depth: i32,
    pub type_key: TVMFFIByteArray,
    pub type_acenstors: *const *const TVMFFITypeInfo,
    pub type_key_hash: u64,
    pub num_fields: i32,
    pub num_methods: i32,
    pub fields: *const TVMFFIFieldInfo,
    pub methods: *const TVMFFIMethodInfo,
    pub metadata: *const TVMFFITypeMetadata,
}

/// What follows the header of a shape.
///
/// ```
/// use tvm_ffi_sys::*;
/// let extents = [2i64, 3];
/// let cell = TVMFFIShapeCell { data: extents.as_ptr(), size: extents.len() };
/// assert_eq!(unsafe { std::slice::from_raw_parts(cell.data, cell.size) }, [2, 3]);
/// ```
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct TVMFFIShapeCell {
    pub data: *const i64,
    pub size: usize,
}

/// What ends where an object from an allocator of the registry begins.
///
/// ```
/// use tvm_ffi_sys::*;
/// let header = TVMFFIObjectAllocHeader { delete_space: None };
/// assert_eq!(std::mem::size_of_val(&header), 8);
/// ```
#[repr(C)]
pub struct TVMFFIObjectAllocHeader {
    pub delete_space: Option<unsafe extern "C" fn(*mut c_void)>,
}

/// An allocator of objects.
///
/// ```
/// use tvm_ffi_sys::*;
/// let allocator = unsafe { TVMFFIGetCustomAllocator() };
/// // There is always one.
/// assert!(unsafe { (*allocator).allocate.is_some() });
/// ```
#[repr(C)]
pub struct TVMFFICustomAllocator {
    pub allocate: Option<
        unsafe extern "C" fn(
            size: usize,
            alignment: usize,
            type_index: i32,
            context: *mut c_void,
        ) -> *mut c_void,
    >,
    pub context: *mut c_void,
}

unsafe extern "C" {
    /// The allocator of objects.
    ///
    /// ```
    /// use tvm_ffi_sys::*;
    /// let allocator = unsafe { &*TVMFFIGetCustomAllocator() };
    /// assert!(allocator.allocate.is_some());
    /// ```
    pub fn TVMFFIGetCustomAllocator() -> *mut TVMFFICustomAllocator;
    /// Registers an allocator of objects, which must live until the process ends.
    ///
    /// ```
    /// use tvm_ffi_sys::*;
    /// // The one that is there already.
    /// let allocator = unsafe { TVMFFIGetCustomAllocator() };
    /// assert_eq!(unsafe { TVMFFISetCustomAllocator(allocator) }, 0);
    /// ```
    pub fn TVMFFISetCustomAllocator(allocator: *mut TVMFFICustomAllocator) -> i32;
    /// The index of a type that has been registered.
    ///
    /// ```
    /// use tvm_ffi_sys::*;
    /// let key = unsafe { TVMFFIByteArray::from_str("ffi.Array") };
    /// let mut index = 0;
    /// assert_eq!(unsafe { TVMFFITypeKeyToIndex(&key, &mut index) }, 0);
    /// assert_eq!(index, TVMFFITypeIndex::kTVMFFIArray as i32);
    /// ```
    pub fn TVMFFITypeKeyToIndex(type_key: *const TVMFFIByteArray, out_tindex: *mut i32) -> i32;
    /// The index of a type, which is registered if it is new. -1 as the static index takes a free one.
    ///
    /// ```
    /// use tvm_ffi_sys::*;
    /// let key = unsafe { TVMFFIByteArray::from_str("doc.sys.get_or_alloc") };
    /// // The parent is `ffi.Object`, whose depth is 0.
    /// let parent = TVMFFITypeIndex::kTVMFFIStaticObjectBegin as i32;
    /// let index = unsafe { TVMFFITypeGetOrAllocIndex(&key, -1, 1, 0, 1, parent) };
    /// assert!(index >= TVMFFITypeIndex::kTVMFFIDynObjectBegin as i32);
    /// assert_eq!(unsafe { TVMFFITypeGetOrAllocIndex(&key, -1, 1, 0, 1, parent) }, index);
    /// ```
    pub fn TVMFFITypeGetOrAllocIndex(
        type_key: *const TVMFFIByteArray,
        static_type_index: i32,
        type_depth: i32,
        num_child_slots: i32,
        child_slots_can_overflow: i32,
        parent_type_index: i32,
    ) -> i32;
    /// Adds a field to a type.
    ///
    /// ```
    /// use tvm_ffi_sys::*;
    /// unsafe extern "C" fn get(field: *mut std::ffi::c_void, result: *mut TVMFFIAny) -> i32 {
    ///     (*result).type_index = TVMFFITypeIndex::kTVMFFIInt as i32;
    ///     (*result).data_union.v_int64 = *(field as *const i64);
    ///     0
    /// }
    /// let key = unsafe { TVMFFIByteArray::from_str("doc.sys.register_field") };
    /// // The parent is `ffi.Object`, whose depth is 0.
    /// let parent = TVMFFITypeIndex::kTVMFFIStaticObjectBegin as i32;
    /// let index = unsafe { TVMFFITypeGetOrAllocIndex(&key, -1, 1, 0, 1, parent) };
    /// let text = |s| unsafe { TVMFFIByteArray::from_str(s) };
    /// let info = TVMFFIFieldInfo {
    ///     name: text("x"),
    ///     doc: text(""),
    ///     metadata: text("{}"),
    ///     flags: 0,
    ///     size: 8,
    ///     alignment: 8,
    ///     offset: 24,
    ///     getter: Some(get),
    ///     setter: std::ptr::null_mut(),
    ///     default_value_or_factory: TVMFFIAny::new(),
    ///     field_static_type_index: TVMFFITypeIndex::kTVMFFIInt as i32,
    /// };
    /// assert_eq!(unsafe { TVMFFITypeRegisterField(index, &info) }, 0);
    /// assert_eq!(unsafe { (*TVMFFIGetTypeInfo(index)).num_fields }, 1);
    /// ```
    pub fn TVMFFITypeRegisterField(type_index: i32, info: *const TVMFFIFieldInfo) -> i32;
    /// Adds a method to a type.
    ///
    /// ```
    /// use tvm_ffi_sys::*;
    /// unsafe extern "C" fn negate(
    ///     _: *mut std::ffi::c_void,
    ///     args: *const TVMFFIAny,
    ///     _: i32,
    ///     result: *mut TVMFFIAny,
    /// ) -> i32 {
    ///     *result = *args;
    ///     (*result).data_union.v_int64 = -(*args).data_union.v_int64;
    ///     0
    /// }
    /// let mut function = std::ptr::null_mut();
    /// assert_eq!(unsafe { TVMFFIFunctionCreate(std::ptr::null_mut(), negate, None, &mut function) }, 0);
    /// let key = unsafe { TVMFFIByteArray::from_str("doc.sys.register_method") };
    /// // The parent is `ffi.Object`, whose depth is 0.
    /// let parent = TVMFFITypeIndex::kTVMFFIStaticObjectBegin as i32;
    /// let index = unsafe { TVMFFITypeGetOrAllocIndex(&key, -1, 1, 0, 1, parent) };
    /// let mut method = TVMFFIAny::new();
    /// method.type_index = TVMFFITypeIndex::kTVMFFIFunction as i32;
    /// method.data_union.v_obj = function as *mut TVMFFIObject;
    /// let text = |s| unsafe { TVMFFIByteArray::from_str(s) };
    /// let flags = TVMFFIFieldFlagBitMask::kTVMFFIFieldFlagBitMaskIsStaticMethod as i64;
    /// let info = TVMFFIMethodInfo { name: text("negate"), doc: text(""), metadata: text("{}"), flags, method };
    /// assert_eq!(unsafe { TVMFFITypeRegisterMethod(index, &info) }, 0);
    /// assert_eq!(unsafe { (*TVMFFIGetTypeInfo(index)).num_methods }, 1);
    /// ```
    pub fn TVMFFITypeRegisterMethod(type_index: i32, info: *const TVMFFIMethodInfo) -> i32;
    /// Says more about a type.
    ///
    /// ```
    /// use tvm_ffi_sys::*;
    /// let key = unsafe { TVMFFIByteArray::from_str("doc.sys.register_metadata") };
    /// // The parent is `ffi.Object`, whose depth is 0.
    /// let parent = TVMFFITypeIndex::kTVMFFIStaticObjectBegin as i32;
    /// let index = unsafe { TVMFFITypeGetOrAllocIndex(&key, -1, 1, 0, 1, parent) };
    /// let doc = unsafe { TVMFFIByteArray::from_str("A class.") };
    /// let metadata =
    ///     TVMFFITypeMetadata { doc, creator: None, total_size: 24, structural_eq_hash_kind: 0 };
    /// assert_eq!(unsafe { TVMFFITypeRegisterMetadata(index, &metadata) }, 0);
    /// assert_eq!(unsafe { (*(*TVMFFIGetTypeInfo(index)).metadata).total_size }, 24);
    /// ```
    pub fn TVMFFITypeRegisterMetadata(type_index: i32, info: *const TVMFFITypeMetadata) -> i32;
    /// Sets an attribute of a type.
    ///
    /// ```
    /// use tvm_ffi_sys::*;
    /// let key = unsafe { TVMFFIByteArray::from_str("doc.sys.register_attr") };
    /// // The parent is `ffi.Object`, whose depth is 0.
    /// let parent = TVMFFITypeIndex::kTVMFFIStaticObjectBegin as i32;
    /// let index = unsafe { TVMFFITypeGetOrAllocIndex(&key, -1, 1, 0, 1, parent) };
    /// let mut argument = TVMFFIAny::new();
    /// argument.type_index = TVMFFITypeIndex::kTVMFFIInt as i32;
    /// argument.data_union.v_int64 = 7;
    /// let name = unsafe { TVMFFIByteArray::from_str("doc.sys.attribute") };
    /// assert_eq!(unsafe { TVMFFITypeRegisterAttr(index, &name, &argument) }, 0);
    /// let column = unsafe { &*TVMFFIGetTypeAttrColumn(&name) };
    /// let entry = unsafe { &*column.data.add((index - column.begin_index) as usize) };
    /// assert_eq!(unsafe { entry.data_union.v_int64 }, 7);
    /// ```
    pub fn TVMFFITypeRegisterAttr(
        type_index: i32,
        attr_name: *const TVMFFIByteArray,
        attr_value: *const TVMFFIAny,
    ) -> i32;
    /// One attribute of all types, or null if no type has it.
    ///
    /// ```
    /// use tvm_ffi_sys::*;
    /// let name = unsafe { TVMFFIByteArray::from_str("doc.sys.no_such_attribute") };
    /// assert!(unsafe { TVMFFIGetTypeAttrColumn(&name) }.is_null());
    /// ```
    pub fn TVMFFIGetTypeAttrColumn(
        attr_name: *const TVMFFIByteArray,
    ) -> *const TVMFFITypeAttrColumn;
    /// The record of a registered type. It is never freed.
    ///
    /// ```
    /// use tvm_ffi_sys::*;
    /// let info = unsafe { &*TVMFFIGetTypeInfo(TVMFFITypeIndex::kTVMFFIShape as i32) };
    /// assert_eq!(info.type_key.as_str(), "ffi.Shape");
    /// ```
    pub fn TVMFFIGetTypeInfo(type_index: i32) -> *const TVMFFITypeInfo;
    /// The function of a name with a reference for the caller, or null.
    ///
    /// ```
    /// use tvm_ffi_sys::*;
    /// let name = unsafe { TVMFFIByteArray::from_str("ffi.Array") };
    /// let mut function = std::ptr::null_mut();
    /// assert_eq!(unsafe { TVMFFIFunctionGetGlobal(&name, &mut function) }, 0);
    /// assert!(!function.is_null());
    /// ```
    pub fn TVMFFIFunctionGetGlobal(
        name: *const TVMFFIByteArray,
        out: *mut TVMFFIObjectHandle,
    ) -> i32;
    /// Gives a function a name.
    ///
    /// ```
    /// use tvm_ffi_sys::*;
    /// unsafe extern "C" fn negate(
    ///     _: *mut std::ffi::c_void,
    ///     args: *const TVMFFIAny,
    ///     _: i32,
    ///     result: *mut TVMFFIAny,
    /// ) -> i32 {
    ///     *result = *args;
    ///     (*result).data_union.v_int64 = -(*args).data_union.v_int64;
    ///     0
    /// }
    /// let mut function = std::ptr::null_mut();
    /// assert_eq!(unsafe { TVMFFIFunctionCreate(std::ptr::null_mut(), negate, None, &mut function) }, 0);
    /// let name = unsafe { TVMFFIByteArray::from_str("doc.sys.negate") };
    /// assert_eq!(unsafe { TVMFFIFunctionSetGlobal(&name, function, 0) }, 0);
    /// let mut found = std::ptr::null_mut();
    /// assert_eq!(unsafe { TVMFFIFunctionGetGlobal(&name, &mut found) }, 0);
    /// assert_eq!(found, function);
    /// ```
    pub fn TVMFFIFunctionSetGlobal(
        name: *const TVMFFIByteArray,
        f: TVMFFIObjectHandle,
        allow_override: i32,
    ) -> i32;
    /// Makes a function object. The deleter, if any, gets `self_ptr`.
    ///
    /// ```
    /// use tvm_ffi_sys::*;
    /// unsafe extern "C" fn negate(
    ///     _: *mut std::ffi::c_void,
    ///     args: *const TVMFFIAny,
    ///     _: i32,
    ///     result: *mut TVMFFIAny,
    /// ) -> i32 {
    ///     *result = *args;
    ///     (*result).data_union.v_int64 = -(*args).data_union.v_int64;
    ///     0
    /// }
    /// let mut function = std::ptr::null_mut();
    /// assert_eq!(unsafe { TVMFFIFunctionCreate(std::ptr::null_mut(), negate, None, &mut function) }, 0);
    /// assert!(!function.is_null());
    /// ```
    pub fn TVMFFIFunctionCreate(
        self_ptr: *mut c_void,
        safe_call: TVMFFISafeCallType,
        deleter: Option<unsafe extern "C" fn(*mut c_void)>,
        out: *mut TVMFFIObjectHandle,
    ) -> i32;
    /// Calls a function object: 0, or -1 with an error raised.
    ///
    /// ```
    /// use tvm_ffi_sys::*;
    /// unsafe extern "C" fn negate(
    ///     _: *mut std::ffi::c_void,
    ///     args: *const TVMFFIAny,
    ///     _: i32,
    ///     result: *mut TVMFFIAny,
    /// ) -> i32 {
    ///     *result = *args;
    ///     (*result).data_union.v_int64 = -(*args).data_union.v_int64;
    ///     0
    /// }
    /// let mut function = std::ptr::null_mut();
    /// assert_eq!(unsafe { TVMFFIFunctionCreate(std::ptr::null_mut(), negate, None, &mut function) }, 0);
    /// let mut argument = TVMFFIAny::new();
    /// argument.type_index = TVMFFITypeIndex::kTVMFFIInt as i32;
    /// argument.data_union.v_int64 = 7;
    /// let mut result = TVMFFIAny::new();
    /// assert_eq!(unsafe { TVMFFIFunctionCall(function, &argument, 1, &mut result) }, 0);
    /// assert_eq!(unsafe { result.data_union.v_int64 }, -7);
    /// ```
    pub fn TVMFFIFunctionCall(
        func: TVMFFIObjectHandle,
        args: *const TVMFFIAny,
        num_args: i32,
        result: *mut TVMFFIAny,
    ) -> i32;
    /// Makes an owned value of a borrowed one.
    ///
    /// ```
    /// use tvm_ffi_sys::*;
    /// let mut view = TVMFFIAny::new();
    /// view.type_index = TVMFFITypeIndex::kTVMFFIRawStr as i32;
    /// view.data_union.v_c_str = c"abc".as_ptr() as *const i8;
    /// let mut owned = TVMFFIAny::new();
    /// assert_eq!(unsafe { TVMFFIAnyViewToOwnedAny(&view, &mut owned) }, 0);
    /// assert_eq!(owned.type_index, TVMFFITypeIndex::kTVMFFISmallStr as i32);
    /// ```
    pub fn TVMFFIAnyViewToOwnedAny(any_view: *const TVMFFIAny, out: *mut TVMFFIAny) -> i32;
    /// Takes the error that was raised on this thread.
    ///
    /// ```
    /// use tvm_ffi_sys::*;
    /// let mut error = std::ptr::null_mut();
    /// unsafe {
    ///     TVMFFIErrorSetRaisedFromCStr(c"ValueError".as_ptr() as *const i8, c"no".as_ptr() as *const i8);
    ///     TVMFFIErrorMoveFromRaised(&mut error);
    /// }
    /// assert!(!error.is_null());
    /// ```
    pub fn TVMFFIErrorMoveFromRaised(result: *mut TVMFFIObjectHandle);
    /// Raises an error on this thread.
    ///
    /// ```
    /// use tvm_ffi_sys::*;
    /// let text = |s| unsafe { TVMFFIByteArray::from_str(s) };
    /// let (kind, message, backtrace) = (text("ValueError"), text("no"), text(""));
    /// let mut error = std::ptr::null_mut();
    /// assert_eq!(unsafe { TVMFFIErrorCreate(&kind, &message, &backtrace, &mut error) }, 0);
    /// let mut raised = std::ptr::null_mut();
    /// unsafe {
    ///     TVMFFIErrorSetRaised(error);
    ///     TVMFFIErrorMoveFromRaised(&mut raised);
    /// }
    /// assert_eq!(raised, error);
    /// ```
    pub fn TVMFFIErrorSetRaised(error: TVMFFIObjectHandle);
    /// Raises an error on this thread, with a backtrace.
    ///
    /// ```
    /// use tvm_ffi_sys::*;
    /// unsafe {
    ///     TVMFFIErrorSetRaisedFromCStr(c"KeyError".as_ptr() as *const i8, c"no".as_ptr() as *const i8);
    ///     let mut error = std::ptr::null_mut();
    ///     TVMFFIErrorMoveFromRaised(&mut error);
    ///     let cell = &*((error as *const TVMFFIObject).add(1) as *const TVMFFIErrorCell);
    ///     assert_eq!(cell.kind.as_str(), "KeyError");
    /// }
    /// ```
    pub fn TVMFFIErrorSetRaisedFromCStr(kind: *const i8, message: *const i8);
    /// Makes an error object.
    ///
    /// ```
    /// use tvm_ffi_sys::*;
    /// let text = |s| unsafe { TVMFFIByteArray::from_str(s) };
    /// let (kind, message, backtrace) = (text("ValueError"), text("no"), text(""));
    /// let mut error = std::ptr::null_mut();
    /// assert_eq!(unsafe { TVMFFIErrorCreate(&kind, &message, &backtrace, &mut error) }, 0);
    /// // What an error has is behind its header.
    /// let cell = unsafe { &*((error as *const TVMFFIObject).add(1) as *const TVMFFIErrorCell) };
    /// assert_eq!(cell.message.as_str(), "no");
    /// ```
    pub fn TVMFFIErrorCreate(
        kind: *const TVMFFIByteArray,
        message: *const TVMFFIByteArray,
        backtrace: *const TVMFFIByteArray,
        out: *mut TVMFFIObjectHandle,
    ) -> i32;
    /// Makes an error object with a cause and a context, which may be null.
    ///
    /// ```
    /// use tvm_ffi_sys::*;
    /// let text = |s| unsafe { TVMFFIByteArray::from_str(s) };
    /// let (kind, message, backtrace) = (text("ValueError"), text("no"), text(""));
    /// let mut error = std::ptr::null_mut();
    /// let none = std::ptr::null_mut();
    /// let code = unsafe {
    ///     TVMFFIErrorCreateWithCauseAndExtraContext(&kind, &message, &backtrace, none, none, &mut error)
    /// };
    /// assert_eq!(code, 0);
    /// // What an error has is behind its header.
    /// let cell = unsafe { &*((error as *const TVMFFIObject).add(1) as *const TVMFFIErrorCell) };
    /// assert!(cell.cause_chain.is_null() && cell.extra_context.is_null());
    /// ```
    pub fn TVMFFIErrorCreateWithCauseAndExtraContext(
        kind: *const TVMFFIByteArray,
        message: *const TVMFFIByteArray,
        backtrace: *const TVMFFIByteArray,
        cause_chain: TVMFFIObjectHandle,
        extra_context: TVMFFIObjectHandle,
        out: *mut TVMFFIObjectHandle,
    ) -> i32;
    /// The stack as text, valid until the next call on this thread. The names may be null.
    ///
    /// ```
    /// use tvm_ffi_sys::*;
    /// let text = unsafe { &*TVMFFIBacktrace(std::ptr::null(), 0, std::ptr::null(), 0) };
    /// assert!(text.as_str().is_empty() || text.as_str().contains("File"));
    /// ```
    pub fn TVMFFIBacktrace(
        filename: *const i8,
        lineno: i32,
        func: *const i8,
        cross_ffi_boundary: i32,
    ) -> *const TVMFFIByteArray;
    /// Makes a tensor of a `DLManagedTensor*`, which it takes over.
    ///
    /// ```
    /// use tvm_ffi_sys::*;
    /// /// DLPack's `DLManagedTensor`.
    /// #[repr(C)]
    /// struct Managed {
    ///     tensor: DLTensor,
    ///     context: *mut std::ffi::c_void,
    ///     deleter: Option<unsafe extern "C" fn(*mut Managed)>,
    ///     shape: [i64; 1],
    ///     data: [f32; 2],
    /// }
    /// unsafe extern "C" fn free(managed: *mut Managed) {
    ///     drop(unsafe { Box::from_raw(managed) });
    /// }
    /// let mut managed = Box::new(Managed {
    ///     context: std::ptr::null_mut(),
    ///     deleter: Some(free),
    ///     tensor: DLTensor {
    ///         data: std::ptr::null_mut(),
    ///         device: DLDevice::new(DLDeviceType::kDLCPU, 0),
    ///         ndim: 1,
    ///         dtype: DLDataType::new(DLDataTypeCode::kDLFloat, 32, 1),
    ///         shape: std::ptr::null_mut(),
    ///         strides: std::ptr::null_mut(),
    ///         byte_offset: 0,
    ///     },
    ///     shape: [2],
    ///     data: [1.0, 2.0],
    /// });
    /// managed.tensor.data = managed.data.as_mut_ptr() as *mut _;
    /// managed.tensor.shape = managed.shape.as_mut_ptr();
    /// let mut tensor: TVMFFIObjectHandle = std::ptr::null_mut();
    /// let from = Box::into_raw(managed) as *mut _;
    /// assert_eq!(unsafe { TVMFFITensorFromDLPack(from, 4, 1, &mut tensor) }, 0);
    /// assert!(!tensor.is_null());
    /// ```
    pub fn TVMFFITensorFromDLPack(
        from: *mut c_void,
        require_alignment: i32,
        require_contiguous: i32,
        out: *mut TVMFFIObjectHandle,
    ) -> i32;
    /// A `DLManagedTensor*` that shares the memory of a tensor. The caller calls its deleter.
    ///
    /// ```
    /// use tvm_ffi_sys::*;
    /// /// DLPack's `DLManagedTensor`.
    /// #[repr(C)]
    /// struct Managed {
    ///     tensor: DLTensor,
    ///     context: *mut std::ffi::c_void,
    ///     deleter: Option<unsafe extern "C" fn(*mut Managed)>,
    ///     shape: [i64; 1],
    ///     data: [f32; 2],
    /// }
    /// unsafe extern "C" fn free(managed: *mut Managed) {
    ///     drop(unsafe { Box::from_raw(managed) });
    /// }
    /// let mut managed = Box::new(Managed {
    ///     context: std::ptr::null_mut(),
    ///     deleter: Some(free),
    ///     tensor: DLTensor {
    ///         data: std::ptr::null_mut(),
    ///         device: DLDevice::new(DLDeviceType::kDLCPU, 0),
    ///         ndim: 1,
    ///         dtype: DLDataType::new(DLDataTypeCode::kDLFloat, 32, 1),
    ///         shape: std::ptr::null_mut(),
    ///         strides: std::ptr::null_mut(),
    ///         byte_offset: 0,
    ///     },
    ///     shape: [2],
    ///     data: [1.0, 2.0],
    /// });
    /// managed.tensor.data = managed.data.as_mut_ptr() as *mut _;
    /// managed.tensor.shape = managed.shape.as_mut_ptr();
    /// let mut tensor: TVMFFIObjectHandle = std::ptr::null_mut();
    /// let from = Box::into_raw(managed) as *mut _;
    /// assert_eq!(unsafe { TVMFFITensorFromDLPack(from, 4, 1, &mut tensor) }, 0);
    /// let mut out = std::ptr::null_mut();
    /// assert_eq!(unsafe { TVMFFITensorToDLPack(tensor, &mut out) }, 0);
    /// let shared = out as *mut Managed;
    /// assert_eq!(unsafe { *((*shared).tensor.data as *const f32).add(1) }, 2.0);
    /// unsafe { (*shared).deleter.unwrap()(shared) };
    /// ```
    pub fn TVMFFITensorToDLPack(from: TVMFFIObjectHandle, out: *mut *mut c_void) -> i32;
    /// Makes a tensor of a `DLManagedTensorVersioned*`, which it takes over.
    ///
    /// ```
    /// use tvm_ffi_sys::*;
    /// /// DLPack's `DLManagedTensorVersioned`, version 1.0.
    /// #[repr(C)]
    /// struct Managed {
    ///     version: [u32; 2],
    ///     context: *mut std::ffi::c_void,
    ///     deleter: Option<unsafe extern "C" fn(*mut Managed)>,
    ///     flags: u64,
    ///     tensor: DLTensor,
    ///     shape: [i64; 1],
    ///     data: [f32; 2],
    /// }
    /// unsafe extern "C" fn free(managed: *mut Managed) {
    ///     drop(unsafe { Box::from_raw(managed) });
    /// }
    /// let mut managed = Box::new(Managed {
    ///     version: [1, 0],
    ///     flags: 0,
    ///     context: std::ptr::null_mut(),
    ///     deleter: Some(free),
    ///     tensor: DLTensor {
    ///         data: std::ptr::null_mut(),
    ///         device: DLDevice::new(DLDeviceType::kDLCPU, 0),
    ///         ndim: 1,
    ///         dtype: DLDataType::new(DLDataTypeCode::kDLFloat, 32, 1),
    ///         shape: std::ptr::null_mut(),
    ///         strides: std::ptr::null_mut(),
    ///         byte_offset: 0,
    ///     },
    ///     shape: [2],
    ///     data: [1.0, 2.0],
    /// });
    /// managed.tensor.data = managed.data.as_mut_ptr() as *mut _;
    /// managed.tensor.shape = managed.shape.as_mut_ptr();
    /// let mut tensor: TVMFFIObjectHandle = std::ptr::null_mut();
    /// let from = Box::into_raw(managed) as *mut _;
    /// assert_eq!(unsafe { TVMFFITensorFromDLPackVersioned(from, 4, 1, &mut tensor) }, 0);
    /// assert!(!tensor.is_null());
    /// ```
    pub fn TVMFFITensorFromDLPackVersioned(
        from: *mut c_void,
        require_alignment: i32,
        require_contiguous: i32,
        out: *mut TVMFFIObjectHandle,
    ) -> i32;
    /// A `DLManagedTensorVersioned*` that shares the memory of a tensor. The caller calls its deleter.
    ///
    /// ```
    /// use tvm_ffi_sys::*;
    /// /// DLPack's `DLManagedTensorVersioned`, version 1.0.
    /// #[repr(C)]
    /// struct Managed {
    ///     version: [u32; 2],
    ///     context: *mut std::ffi::c_void,
    ///     deleter: Option<unsafe extern "C" fn(*mut Managed)>,
    ///     flags: u64,
    ///     tensor: DLTensor,
    ///     shape: [i64; 1],
    ///     data: [f32; 2],
    /// }
    /// unsafe extern "C" fn free(managed: *mut Managed) {
    ///     drop(unsafe { Box::from_raw(managed) });
    /// }
    /// let mut managed = Box::new(Managed {
    ///     version: [1, 0],
    ///     flags: 0,
    ///     context: std::ptr::null_mut(),
    ///     deleter: Some(free),
    ///     tensor: DLTensor {
    ///         data: std::ptr::null_mut(),
    ///         device: DLDevice::new(DLDeviceType::kDLCPU, 0),
    ///         ndim: 1,
    ///         dtype: DLDataType::new(DLDataTypeCode::kDLFloat, 32, 1),
    ///         shape: std::ptr::null_mut(),
    ///         strides: std::ptr::null_mut(),
    ///         byte_offset: 0,
    ///     },
    ///     shape: [2],
    ///     data: [1.0, 2.0],
    /// });
    /// managed.tensor.data = managed.data.as_mut_ptr() as *mut _;
    /// managed.tensor.shape = managed.shape.as_mut_ptr();
    /// let mut tensor: TVMFFIObjectHandle = std::ptr::null_mut();
    /// let from = Box::into_raw(managed) as *mut _;
    /// assert_eq!(unsafe { TVMFFITensorFromDLPackVersioned(from, 4, 1, &mut tensor) }, 0);
    /// let mut out = std::ptr::null_mut();
    /// assert_eq!(unsafe { TVMFFITensorToDLPackVersioned(tensor, &mut out) }, 0);
    /// let shared = out as *mut Managed;
    /// assert_eq!(unsafe { *((*shared).tensor.data as *const f32).add(1) }, 2.0);
    /// unsafe { (*shared).deleter.unwrap()(shared) };
    /// ```
    pub fn TVMFFITensorToDLPackVersioned(from: TVMFFIObjectHandle, out: *mut *mut c_void) -> i32;
    /// A string with these bytes. Up to seven bytes are in the value itself.
    ///
    /// ```
    /// use tvm_ffi_sys::*;
    /// let text = unsafe { TVMFFIByteArray::from_str("more than seven") };
    /// let mut value = TVMFFIAny::new();
    /// assert_eq!(unsafe { TVMFFIStringFromByteArray(&text, &mut value) }, 0);
    /// assert_eq!(value.type_index, TVMFFITypeIndex::kTVMFFIStr as i32);
    /// ```
    pub fn TVMFFIStringFromByteArray(input: *const TVMFFIByteArray, out: *mut TVMFFIAny) -> i32;
    /// Bytes. Up to seven are in the value itself.
    ///
    /// ```
    /// use tvm_ffi_sys::*;
    /// let mut value = TVMFFIAny::new();
    /// let bytes = TVMFFIByteArray::new([1u8, 2].as_ptr(), 2);
    /// assert_eq!(unsafe { TVMFFIBytesFromByteArray(&bytes, &mut value) }, 0);
    /// assert_eq!(value.type_index, TVMFFITypeIndex::kTVMFFISmallBytes as i32);
    /// ```
    pub fn TVMFFIBytesFromByteArray(input: *const TVMFFIByteArray, out: *mut TVMFFIAny) -> i32;
    /// An integer of words of 64 bits, the lowest first, in two's complement.
    ///
    /// ```
    /// use tvm_ffi_sys::*;
    /// let words = [0i64, 1];
    /// let bytes = TVMFFIByteArray::new(words.as_ptr() as *const u8, 16);
    /// let mut value = TVMFFIAny::new();
    /// assert_eq!(unsafe { TVMFFIBigIntFromByteArray(&bytes, &mut value) }, 0);
    /// assert_eq!(value.type_index, TVMFFITypeIndex::kTVMFFIBigInt as i32);
    /// ```
    pub fn TVMFFIBigIntFromByteArray(input: *const TVMFFIByteArray, out: *mut TVMFFIAny) -> i32;
    /// The words of an integer, which lives as long as the value.
    ///
    /// ```
    /// use tvm_ffi_sys::*;
    /// let mut argument = TVMFFIAny::new();
    /// argument.type_index = TVMFFITypeIndex::kTVMFFIInt as i32;
    /// argument.data_union.v_int64 = 7;
    /// let bytes = unsafe { TVMFFIBigIntGetContentByteArray(&argument) };
    /// assert_eq!((bytes.size, unsafe { *(bytes.data as *const i64) }), (8, 7));
    /// ```
    pub fn TVMFFIBigIntGetContentByteArray(value: *const TVMFFIAny) -> TVMFFIByteArray;
    /// The data type of a name.
    ///
    /// ```
    /// use tvm_ffi_sys::*;
    /// let name = unsafe { TVMFFIByteArray::from_str("float16") };
    /// let mut dtype = DLDataType::new(DLDataTypeCode::kDLInt, 8, 1);
    /// assert_eq!(unsafe { TVMFFIDataTypeFromString(&name, &mut dtype) }, 0);
    /// assert_eq!(dtype, DLDataType::new(DLDataTypeCode::kDLFloat, 16, 1));
    /// ```
    pub fn TVMFFIDataTypeFromString(str: *const TVMFFIByteArray, out: *mut DLDataType) -> i32;
    /// The name of a data type.
    ///
    /// ```
    /// use tvm_ffi_sys::*;
    /// let dtype = DLDataType::new(DLDataTypeCode::kDLInt, 8, 1);
    /// let mut name = TVMFFIAny::new();
    /// assert_eq!(unsafe { TVMFFIDataTypeToString(&dtype, &mut name) }, 0);
    /// assert_eq!(unsafe { &name.data_union.v_bytes[..4] }, b"int8");
    /// ```
    pub fn TVMFFIDataTypeToString(dtype: *const DLDataType, out: *mut TVMFFIAny) -> i32;
    /// Always 0. In `libtvm_ffi_testing`: naming it keeps that library linked.
    ///
    /// ```
    /// # #[cfg(feature = "testing")]
    /// assert_eq!(unsafe { tvm_ffi_sys::TVMFFITestingDummyTarget() }, 0);
    /// ```
    pub fn TVMFFITestingDummyTarget() -> i32;
}
