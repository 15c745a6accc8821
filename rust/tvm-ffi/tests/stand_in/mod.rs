// SPDX-License-Identifier: Apache-2.0
//! The part of libtvm_ffi that the tests of `pure.rs` need, in Rust, because Miri cannot call the library.
use std::alloc::{alloc, dealloc, Layout};
use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::{c_char, c_void};
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{LazyLock, Mutex};
use tvm_ffi::object::{unsafe_, ObjectRef as AnyObject};
use tvm_ffi::tvm_ffi_sys::*;
use tvm_ffi::{Any, Function, ObjectArc, ObjectCore, ObjectRefCore};

/// What comes before an object of the registry: the size of the block, and the header.
#[repr(C, align(16))]
struct Prefix {
    size: usize,
    header: TVMFFIObjectAllocHeader,
}

fn block_layout(size: usize) -> Layout {
    Layout::from_size_align(size_of::<Prefix>() + size, align_of::<Prefix>()).unwrap()
}

unsafe extern "C" fn allocate(size: usize, _: usize, _: i32, _: *mut c_void) -> *mut c_void {
    let block = alloc(block_layout(size)) as *mut Prefix;
    let header = TVMFFIObjectAllocHeader { delete_space: Some(delete_space) };
    block.write(Prefix { size, header });
    block.add(1) as *mut c_void
}

unsafe extern "C" fn delete_space(body: *mut c_void) {
    let block = (body as *mut Prefix).sub(1);
    dealloc(block as *mut u8, block_layout((*block).size));
}

static mut BUILTIN: TVMFFICustomAllocator =
    TVMFFICustomAllocator { allocate: Some(allocate), context: std::ptr::null_mut() };
static CURRENT: AtomicPtr<TVMFFICustomAllocator> = AtomicPtr::new(&raw mut BUILTIN);

#[no_mangle]
extern "C" fn TVMFFIGetCustomAllocator() -> *mut TVMFFICustomAllocator {
    CURRENT.load(Ordering::Acquire)
}

#[repr(C)]
struct DlInfo {
    file_name: *const c_char,
    file_base: *const c_void,
    symbol_name: *const c_char,
    symbol_address: *const c_void,
}

/// Everything is in one library.
#[no_mangle]
unsafe extern "C" fn dladdr(_: *const c_void, info: *mut DlInfo) -> i32 {
    (*info).file_base = std::ptr::dangling();
    1
}

static HAS_REGISTERED: AtomicBool = AtomicBool::new(false);

/// The global functions that the crate looks up.
fn global_function(name: &str) -> Option<Function> {
    Some(match name {
        "ffi.tether.HasRegisteredAllocator" => {
            Function::from_packed(|_| Ok(Any::from(HAS_REGISTERED.as_ptr() as *mut c_void)))
        }
        "ffi.List" => Function::from_packed(|_| {
            let list = ObjectArc::new(ListObj {
                header: TVMFFIObject::new(),
                data: std::ptr::null_mut(),
                size: 0,
                capacity: 0,
                data_deleter: None,
            });
            let mut any = TVMFFIAny::new();
            any.type_index = ListObj::type_index();
            // SAFETY: the reference moves into the value.
            unsafe {
                any.data_union.v_obj = ObjectArc::into_raw(list) as *mut TVMFFIObject;
                Ok(Any::from_raw_ffi_any(any))
            }
        }),
        "ffi.ListReserve" => Function::from_packed(|args| {
            let list = AnyObject::try_from(args[0])?;
            let capacity = i64::try_from(args[1])?;
            // SAFETY: lists are made above.
            unsafe {
                let list = ObjectArc::as_raw(AnyObject::data(&list)) as *mut ListObj;
                let mut cells = Vec::with_capacity(capacity as usize);
                std::ptr::copy_nonoverlapping(
                    (*list).data_or_dangling(),
                    cells.as_mut_ptr(),
                    (*list).size as usize,
                );
                (*list).free_cells();
                (*list).data = std::mem::ManuallyDrop::new(cells).as_mut_ptr();
                (*list).capacity = capacity;
            }
            Ok(Any::new())
        }),
        _ => return None,
    })
}

#[no_mangle]
unsafe extern "C" fn TVMFFIFunctionGetGlobal(
    name: *const TVMFFIByteArray,
    out: *mut TVMFFIObjectHandle,
) -> i32 {
    let function = global_function((*name).as_str());
    *out = function.map_or(std::ptr::null_mut(), |function| {
        ObjectArc::into_raw(Function::into_data(function)) as TVMFFIObjectHandle
    });
    0
}

#[no_mangle]
unsafe extern "C" fn TVMFFIFunctionCall(
    func: TVMFFIObjectHandle,
    args: *const TVMFFIAny,
    num_args: i32,
    result: *mut TVMFFIAny,
) -> i32 {
    let cell = (func as *mut TVMFFIObject).add(1) as *const TVMFFIFunctionCell;
    ((*cell).safe_call)(func, args, num_args, result)
}

#[repr(C)]
struct ListObj {
    header: TVMFFIObject,
    data: *mut TVMFFIAny,
    size: i64,
    capacity: i64,
    data_deleter: Option<unsafe extern "C" fn(*mut c_void)>,
}
impl ListObj {
    unsafe fn free_cells(&mut self) {
        drop(Vec::from_raw_parts(self.data_or_dangling(), 0, self.capacity as usize));
    }
    fn data_or_dangling(&self) -> *mut TVMFFIAny {
        if self.data.is_null() {
            return std::ptr::dangling_mut();
        }
        self.data
    }
}
impl Drop for ListObj {
    fn drop(&mut self) {
        // SAFETY: the list owns its cells and their values.
        unsafe {
            for i in 0..self.size as usize {
                drop(Any::from_raw_ffi_any(self.data.add(i).read()));
            }
            self.free_cells();
        }
    }
}
unsafe impl ObjectCore for ListObj {
    const TYPE_KEY: &'static str = "ffi.List";
    const TYPE_DEPTH: i32 = 1;
    fn type_index() -> i32 {
        TVMFFITypeIndex::kTVMFFIList as i32
    }
    unsafe fn object_header_mut(this: &mut Self) -> &mut TVMFFIObject {
        &mut this.header
    }
}

/// An error that owns its texts.
#[repr(C)]
struct ErrorObj {
    header: TVMFFIObject,
    cell: TVMFFIErrorCell,
    texts: [String; 3],
}
unsafe impl ObjectCore for ErrorObj {
    const TYPE_KEY: &'static str = "ffi.Error";
    const TYPE_DEPTH: i32 = 1;
    fn type_index() -> i32 {
        TVMFFITypeIndex::kTVMFFIError as i32
    }
    unsafe fn object_header_mut(this: &mut Self) -> &mut TVMFFIObject {
        &mut this.header
    }
}

unsafe extern "C" fn update_backtrace(_: *mut c_void, _: *const TVMFFIByteArray, _: i32) {}

#[no_mangle]
unsafe extern "C" fn TVMFFIErrorCreateWithCauseAndExtraContext(
    kind: *const TVMFFIByteArray,
    message: *const TVMFFIByteArray,
    backtrace: *const TVMFFIByteArray,
    _: TVMFFIObjectHandle,
    _: TVMFFIObjectHandle,
    out: *mut TVMFFIObjectHandle,
) -> i32 {
    let texts = [kind, message, backtrace].map(|text| (*text).as_str().to_string());
    let view = |i: usize| TVMFFIByteArray::new(texts[i].as_ptr(), texts[i].len());
    let cell = TVMFFIErrorCell {
        kind: view(0),
        message: view(1),
        backtrace: view(2),
        update_backtrace,
        cause_chain: std::ptr::null_mut(),
        extra_context: std::ptr::null_mut(),
    };
    let object = ObjectArc::new(ErrorObj { header: TVMFFIObject::new(), cell, texts });
    *out = ObjectArc::into_raw(object) as TVMFFIObjectHandle;
    0
}

thread_local!(static RAISED: Cell<TVMFFIObjectHandle> = const { Cell::new(std::ptr::null_mut()) });

#[no_mangle]
unsafe extern "C" fn TVMFFIErrorSetRaised(error: TVMFFIObjectHandle) {
    unsafe_::inc_ref(error as *mut TVMFFIObject);
    let old = RAISED.replace(error);
    assert!(old.is_null(), "an error was raised and nobody took it");
}

#[no_mangle]
unsafe extern "C" fn TVMFFIErrorMoveFromRaised(result: *mut TVMFFIObjectHandle) {
    *result = RAISED.replace(std::ptr::null_mut());
}

/// A row of the type table, which is never freed.
struct Row(&'static TVMFFITypeInfo);
unsafe impl Send for Row {}

#[derive(Default)]
struct Table {
    rows: HashMap<i32, Row>,
    indices: HashMap<String, i32>,
}

impl Table {
    fn add(&mut self, key: &str, index: i32, parent: Option<i32>) {
        let mut ancestors: Vec<*const TVMFFITypeInfo> = Vec::new();
        if let Some(parent) = parent {
            let parent = self.rows[&parent].0;
            for i in 0..parent.type_depth as usize {
                ancestors.push(unsafe { *parent.type_acenstors.add(i) });
            }
            ancestors.push(parent);
        }
        let depth = ancestors.len() as i32;
        let text: &'static str = key.to_string().leak();
        let info = TVMFFITypeInfo {
            type_index: index,
            type_depth: depth,
            type_key: TVMFFIByteArray::new(text.as_ptr(), text.len()),
            type_acenstors: ancestors.leak().as_ptr(),
            type_key_hash: 0,
            num_fields: 0,
            num_methods: 0,
            fields: std::ptr::null(),
            methods: std::ptr::null(),
            metadata: std::ptr::null(),
        };
        self.rows.insert(index, Row(Box::leak(Box::new(info))));
        self.indices.insert(key.to_string(), index);
    }
}

static TABLE: LazyLock<Mutex<Table>> = LazyLock::new(|| {
    let mut table = Table::default();
    for (index, key) in [(0, "None"), (1, "int"), (2, "bool"), (3, "float"), (11, "ffi.SmallStr")] {
        table.add(key, index, None);
    }
    table.add("ffi.Object", 64, None);
    for (index, key) in
        [(65, "ffi.String"), (67, "ffi.Error"), (68, "ffi.Function"), (69, "ffi.Shape")]
    {
        table.add(key, index, Some(64));
    }
    for (index, key) in
        [(70, "ffi.Tensor"), (71, "ffi.Array"), (75, "ffi.List"), (78, "ffi.BigInt")]
    {
        table.add(key, index, Some(64));
    }
    Mutex::new(table)
});

#[no_mangle]
extern "C" fn TVMFFIGetTypeInfo(type_index: i32) -> *const TVMFFITypeInfo {
    TABLE.lock().unwrap().rows.get(&type_index).map_or(std::ptr::null(), |row| row.0)
}

#[no_mangle]
unsafe extern "C" fn TVMFFITypeGetOrAllocIndex(
    type_key: *const TVMFFIByteArray,
    _: i32,
    _: i32,
    _: i32,
    _: i32,
    parent_type_index: i32,
) -> i32 {
    let mut table = TABLE.lock().unwrap();
    let key = (*type_key).as_str();
    if let Some(&index) = table.indices.get(key) {
        return index;
    }
    let index = 128 + table.rows.len() as i32;
    table.add(key, index, Some(parent_type_index));
    index
}

#[no_mangle]
extern "C" fn TVMFFITypeRegisterField(_: i32, _: *const TVMFFIFieldInfo) -> i32 {
    0
}

#[no_mangle]
extern "C" fn TVMFFITypeRegisterMetadata(_: i32, _: *const TVMFFITypeMetadata) -> i32 {
    0
}

#[no_mangle]
extern "C" fn TVMFFITypeRegisterAttr(
    _: i32,
    _: *const TVMFFIByteArray,
    _: *const TVMFFIAny,
) -> i32 {
    0
}

#[no_mangle]
extern "C" fn TVMFFIGetTypeAttrColumn(_: *const TVMFFIByteArray) -> *const TVMFFITypeAttrColumn {
    std::ptr::null()
}

#[no_mangle]
unsafe extern "C" fn TVMFFIDataTypeToString(dtype: *const DLDataType, out: *mut TVMFFIAny) -> i32 {
    let text = format!("{}:{}", (*dtype).code, (*dtype).bits);
    *out = Any::into_raw_ffi_any(Any::from(tvm_ffi::String::from(text)));
    0
}
