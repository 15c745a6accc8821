// SPDX-License-Identifier: Apache-2.0
//! The types and functions of `tvm/ffi/c_api.h`.
#![allow(missing_docs)]
use crate::{DLDataType, DLDevice};
use std::ffi::c_void;
use std::sync::atomic::AtomicU64;

/// What a value is.
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
#[repr(i32)]
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub enum TVMFFIObjectDeleterFlagBitMask {
    kTVMFFIObjectDeleterFlagBitMaskStrong = 1,
    kTVMFFIObjectDeleterFlagBitMaskWeak = 2,
    kTVMFFIObjectDeleterFlagBitMaskBoth = 3,
}

/// Flags of a reflected field.
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
#[repr(i32)]
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub enum TVMFFIDefRegionKind {
    kTVMFFIDefRegionKindNone = 0,
    kTVMFFIDefRegionKindPattern = 1,
    kTVMFFIDefRegionKindSimple = 2,
}

/// How a type takes part in structural comparison.
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
#[repr(i32)]
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub enum TVMFFIBacktraceUpdateMode {
    kTVMFFIBacktraceUpdateModeReplace = 0,
    kTVMFFIBacktraceUpdateModeAppend = 1,
}

pub type TVMFFIObjectHandle = *mut c_void;
pub type TVMFFIObjectDeleter = unsafe extern "C" fn(self_ptr: *mut c_void, flags: i32);

/// The first 24 bytes of every object.
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

pub const COMBINED_REF_COUNT_MASK_U32: u64 = (1 << 32) - 1;
pub const COMBINED_REF_COUNT_STRONG_ONE: u64 = 1;
pub const COMBINED_REF_COUNT_WEAK_ONE: u64 = 1 << 32;
pub const COMBINED_REF_COUNT_BOTH_ONE: u64 =
    COMBINED_REF_COUNT_STRONG_ONE | COMBINED_REF_COUNT_WEAK_ONE;
/// In `__padding`: a `TVMFFIObjectAllocHeader` ends where the object begins.
pub const OBJECT_ALLOC_HEADER_MARK: u32 = 0x5449_4544;

/// Payload of a value.
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
#[repr(C)]
#[derive(Copy, Clone)]
pub struct TVMFFIAny {
    pub type_index: i32,
    pub small_str_len: u32,
    pub data_union: TVMFFIAnyDataUnion,
}

impl TVMFFIAny {
    /// None.
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
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct TVMFFIByteArray {
    pub data: *const u8,
    pub size: usize,
}

impl TVMFFIByteArray {
    /// `size` bytes at `data`.
    pub const fn new(data: *const u8, size: usize) -> Self {
        Self { data, size }
    }

    /// The bytes as text, up to the first that is not UTF-8. Empty for a null pointer.
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
    /// # Safety
    /// The result must not be used after `value` is gone.
    #[allow(clippy::should_implement_trait)]
    pub const unsafe fn from_str(value: &str) -> Self {
        Self { data: value.as_ptr(), size: value.len() }
    }
}

pub type TVMFFISafeCallType = unsafe extern "C" fn(
    handle: *mut c_void,
    args: *const TVMFFIAny,
    num_args: i32,
    result: *mut TVMFFIAny,
) -> i32;

/// What follows the header of a function.
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

pub type TVMFFIFieldGetter =
    unsafe extern "C" fn(field: *mut c_void, result: *mut TVMFFIAny) -> i32;
pub type TVMFFIFieldSetter =
    unsafe extern "C" fn(field: *mut c_void, value: *const TVMFFIAny) -> i32;
pub type TVMFFIObjectCreator = unsafe extern "C" fn(result: *mut TVMFFIObjectHandle) -> i32;

/// A reflected field.
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
#[repr(C)]
pub struct TVMFFIMethodInfo {
    pub name: TVMFFIByteArray,
    pub doc: TVMFFIByteArray,
    pub metadata: TVMFFIByteArray,
    pub flags: i64,
    pub method: TVMFFIAny,
}

/// More about a type.
#[repr(C)]
pub struct TVMFFITypeMetadata {
    pub doc: TVMFFIByteArray,
    pub creator: Option<TVMFFIObjectCreator>,
    pub total_size: i32,
    pub structural_eq_hash_kind: i32,
}

/// One attribute of many types, by type index.
#[repr(C)]
pub struct TVMFFITypeAttrColumn {
    pub data: *const TVMFFIAny,
    pub size: i32,
    pub begin_index: i32,
}

/// A registered type.
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
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct TVMFFIShapeCell {
    pub data: *const i64,
    pub size: usize,
}

/// What ends where an object from an allocator of the registry begins.
#[repr(C)]
pub struct TVMFFIObjectAllocHeader {
    pub delete_space: Option<unsafe extern "C" fn(*mut c_void)>,
}

/// An allocator of objects.
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
    pub fn TVMFFIGetCustomAllocator() -> *mut TVMFFICustomAllocator;
    pub fn TVMFFISetCustomAllocator(allocator: *mut TVMFFICustomAllocator) -> i32;
    pub fn TVMFFITypeKeyToIndex(type_key: *const TVMFFIByteArray, out_tindex: *mut i32) -> i32;
    pub fn TVMFFITypeGetOrAllocIndex(
        type_key: *const TVMFFIByteArray,
        static_type_index: i32,
        type_depth: i32,
        num_child_slots: i32,
        child_slots_can_overflow: i32,
        parent_type_index: i32,
    ) -> i32;
    pub fn TVMFFITypeRegisterField(type_index: i32, info: *const TVMFFIFieldInfo) -> i32;
    pub fn TVMFFITypeRegisterMethod(type_index: i32, info: *const TVMFFIMethodInfo) -> i32;
    pub fn TVMFFITypeRegisterMetadata(type_index: i32, info: *const TVMFFITypeMetadata) -> i32;
    pub fn TVMFFITypeRegisterAttr(
        type_index: i32,
        attr_name: *const TVMFFIByteArray,
        attr_value: *const TVMFFIAny,
    ) -> i32;
    pub fn TVMFFIGetTypeAttrColumn(
        attr_name: *const TVMFFIByteArray,
    ) -> *const TVMFFITypeAttrColumn;
    pub fn TVMFFIGetTypeInfo(type_index: i32) -> *const TVMFFITypeInfo;
    pub fn TVMFFIFunctionGetGlobal(
        name: *const TVMFFIByteArray,
        out: *mut TVMFFIObjectHandle,
    ) -> i32;
    pub fn TVMFFIFunctionSetGlobal(
        name: *const TVMFFIByteArray,
        f: TVMFFIObjectHandle,
        allow_override: i32,
    ) -> i32;
    pub fn TVMFFIFunctionCreate(
        self_ptr: *mut c_void,
        safe_call: TVMFFISafeCallType,
        deleter: Option<unsafe extern "C" fn(*mut c_void)>,
        out: *mut TVMFFIObjectHandle,
    ) -> i32;
    pub fn TVMFFIFunctionCall(
        func: TVMFFIObjectHandle,
        args: *const TVMFFIAny,
        num_args: i32,
        result: *mut TVMFFIAny,
    ) -> i32;
    pub fn TVMFFIAnyViewToOwnedAny(any_view: *const TVMFFIAny, out: *mut TVMFFIAny) -> i32;
    pub fn TVMFFIErrorMoveFromRaised(result: *mut TVMFFIObjectHandle);
    pub fn TVMFFIErrorSetRaised(error: TVMFFIObjectHandle);
    pub fn TVMFFIErrorSetRaisedFromCStr(kind: *const i8, message: *const i8);
    pub fn TVMFFIErrorCreate(
        kind: *const TVMFFIByteArray,
        message: *const TVMFFIByteArray,
        backtrace: *const TVMFFIByteArray,
        out: *mut TVMFFIObjectHandle,
    ) -> i32;
    pub fn TVMFFIErrorCreateWithCauseAndExtraContext(
        kind: *const TVMFFIByteArray,
        message: *const TVMFFIByteArray,
        backtrace: *const TVMFFIByteArray,
        cause_chain: TVMFFIObjectHandle,
        extra_context: TVMFFIObjectHandle,
        out: *mut TVMFFIObjectHandle,
    ) -> i32;
    pub fn TVMFFIBacktrace(
        filename: *const i8,
        lineno: i32,
        func: *const i8,
        cross_ffi_boundary: i32,
    ) -> *const TVMFFIByteArray;
    pub fn TVMFFITensorFromDLPack(
        from: *mut c_void,
        require_alignment: i32,
        require_contiguous: i32,
        out: *mut TVMFFIObjectHandle,
    ) -> i32;
    pub fn TVMFFITensorToDLPack(from: TVMFFIObjectHandle, out: *mut *mut c_void) -> i32;
    pub fn TVMFFITensorFromDLPackVersioned(
        from: *mut c_void,
        require_alignment: i32,
        require_contiguous: i32,
        out: *mut TVMFFIObjectHandle,
    ) -> i32;
    pub fn TVMFFITensorToDLPackVersioned(from: TVMFFIObjectHandle, out: *mut *mut c_void) -> i32;
    pub fn TVMFFIStringFromByteArray(input: *const TVMFFIByteArray, out: *mut TVMFFIAny) -> i32;
    pub fn TVMFFIBytesFromByteArray(input: *const TVMFFIByteArray, out: *mut TVMFFIAny) -> i32;
    pub fn TVMFFIBigIntFromByteArray(input: *const TVMFFIByteArray, out: *mut TVMFFIAny) -> i32;
    pub fn TVMFFIBigIntGetContentByteArray(value: *const TVMFFIAny) -> TVMFFIByteArray;
    pub fn TVMFFIDataTypeFromString(str: *const TVMFFIByteArray, out: *mut DLDataType) -> i32;
    pub fn TVMFFIDataTypeToString(dtype: *const DLDataType, out: *mut TVMFFIAny) -> i32;
    /// Always 0. In `libtvm_ffi_testing`: naming it keeps that library linked.
    pub fn TVMFFITestingDummyTarget() -> i32;
}
