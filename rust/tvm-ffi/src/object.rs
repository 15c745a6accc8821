// SPDX-License-Identifier: Apache-2.0
//! Objects: what they are made of, who owns them, and how to cast between their types.
use crate::derive::ObjectRef as DeriveObjectRef;
use crate::error::{Error, Result, TYPE_ERROR};
use crate::type_traits::{type_key_of, AnyCompatible};
use std::ffi::c_void;
use std::marker::PhantomData;
use std::mem::{align_of, size_of, ManuallyDrop};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::atomic::{fence, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use tvm_ffi_sys::*;

pub use tvm_ffi_sys::TVMFFITypeIndex as TypeIndex;

/// The root of all object types: a header and nothing else.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Object {
    header: TVMFFIObject,
}

impl Object {
    /// A header of zeros; [`ObjectArc::new`] fills it in.
    pub fn new() -> Self {
        Self::default()
    }
}

/// An owning pointer to an object, counted in the object itself.
///
/// ```
/// use tvm_ffi::{Object, ObjectArc};
/// let a = ObjectArc::new(Object::new());
/// let b = a.clone();
/// assert_eq!(ObjectArc::strong_count(&b), 2);
/// ```
#[repr(C)]
pub struct ObjectArc<T: ObjectCore> {
    ptr: NonNull<T>,
    _phantom: PhantomData<T>,
}

/// A type of objects. Derive it ([`crate::derive::Object`]) where possible.
///
/// # Safety
/// The type is `#[repr(C)]` and starts with a `TVMFFIObject`; its key, depth and index are those of the
/// type table.
pub unsafe trait ObjectCore: Sized + 'static {
    /// Name of the type, unique in the process.
    const TYPE_KEY: &'static str;
    /// Number of ancestors.
    const TYPE_DEPTH: i32;
    /// True: no type derives from this one.
    #[doc(hidden)]
    const TYPE_FINAL: bool = false;
    /// Index of the type in the type table.
    fn type_index() -> i32;
    /// The header of an object.
    ///
    /// # Safety
    /// The header must stay valid.
    unsafe fn object_header_mut(this: &mut Self) -> &mut TVMFFIObject;
}

/// A type of objects that are followed by an array of items in the same block.
///
/// # Safety
/// `extra_items_count` gives the same number for the whole life of an object.
pub unsafe trait ObjectCoreWithExtraItems: ObjectCore {
    /// Type of one item.
    type ExtraItem;
    /// How many items follow the object.
    fn extra_items_count(this: &Self) -> usize;
    /// The items.
    ///
    /// # Safety
    /// The object was made by [`ObjectArc::new_with_extra_items`], and the items are initialised.
    unsafe fn extra_items(this: &Self) -> &[Self::ExtraItem] {
        let items = (this as *const Self).add(1) as *const Self::ExtraItem;
        std::slice::from_raw_parts(items, Self::extra_items_count(this))
    }
    /// The items.
    ///
    /// # Safety
    /// As [`ObjectCoreWithExtraItems::extra_items`].
    unsafe fn extra_items_mut(this: &mut Self) -> &mut [Self::ExtraItem] {
        let count = Self::extra_items_count(this);
        let items = (this as *mut Self).add(1) as *mut Self::ExtraItem;
        std::slice::from_raw_parts_mut(items, count)
    }
}

/// A handle to an object. Derive it ([`crate::derive::ObjectRef`]) where possible.
///
/// # Safety
/// The handle is one [`ObjectArc`] and nothing else.
pub unsafe trait ObjectRefCore: Sized + Clone {
    /// Type of the object.
    type ContainerType: ObjectCore;
    /// The pointer inside.
    fn data(this: &Self) -> &ObjectArc<Self::ContainerType>;
    /// Takes the pointer out.
    fn into_data(this: Self) -> ObjectArc<Self::ContainerType>;
    /// Wraps a pointer.
    ///
    /// # Safety
    /// The object must be what the handle type promises, for example the elements of an array.
    unsafe fn from_data(data: ObjectArc<Self::ContainerType>) -> Self;
    /// Whether both handles point to one object.
    fn same_as<Other: ObjectRefCore>(&self, other: &Other) -> bool {
        header_of(Self::data(self)) == header_of(Other::data(other))
    }
    /// The object as an `N`, if it is one.
    fn as_node<N: ObjectCore>(&self) -> Option<&N> {
        let header = header_of(Self::data(self));
        // SAFETY: the object lives as long as self, and the header says what it is.
        unsafe {
            if is_instance_of::<N>((*header).type_index) {
                Some(&*(header as *const N))
            } else {
                None
            }
        }
    }
}

fn header_of<T: ObjectCore>(data: &ObjectArc<T>) -> *mut TVMFFIObject {
    data.ptr.as_ptr() as *mut TVMFFIObject
}

/// A handle to an object of any type.
#[repr(C)]
#[derive(DeriveObjectRef, Clone)]
pub struct ObjectRef {
    data: ObjectArc<Object>,
}

/// An object as a key: equal if it is the same object. Keeps the object alive.
///
/// ```
/// use tvm_ffi::{Array, ObjectIdentity};
/// let a = Array::new(vec![1i64]);
/// assert_eq!(ObjectIdentity::of(&a), ObjectIdentity::of(&a.clone()));
/// assert_ne!(ObjectIdentity::of(&a), ObjectIdentity::of(&Array::new(vec![1i64])));
/// ```
#[derive(Clone)]
pub struct ObjectIdentity {
    data: ObjectArc<Object>,
}

impl ObjectIdentity {
    /// The identity of the object behind a handle.
    pub fn of<T: ObjectRefCore>(value: &T) -> Self {
        let header = header_of(T::data(value));
        // SAFETY: every object starts with an `Object`; the new pointer gets its own count.
        unsafe {
            unsafe_::inc_ref(header);
            Self { data: ObjectArc::from_raw(header as *const Object) }
        }
    }
}

impl PartialEq for ObjectIdentity {
    fn eq(&self, other: &Self) -> bool {
        self.data.ptr == other.data.ptr
    }
}
impl Eq for ObjectIdentity {}
impl std::hash::Hash for ObjectIdentity {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.data.ptr.hash(state)
    }
}
impl std::fmt::Debug for ObjectIdentity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ObjectIdentity({:p})", self.data.ptr)
    }
}

// SAFETY: Object is the root of the type table and is nothing but the header.
unsafe impl ObjectCore for Object {
    const TYPE_KEY: &'static str = "ffi.Object";
    const TYPE_DEPTH: i32 = 0;
    fn type_index() -> i32 {
        TypeIndex::kTVMFFIStaticObjectBegin as i32
    }
    unsafe fn object_header_mut(this: &mut Self) -> &mut TVMFFIObject {
        &mut this.header
    }
}

/// Reference counts of raw objects.
#[doc(hidden)]
pub mod unsafe_ {
    use super::*;
    use TVMFFIObjectDeleterFlagBitMask as Flag;

    /// Adds one strong reference.
    ///
    /// # Safety
    /// `object` is alive.
    #[inline]
    pub unsafe fn inc_ref(object: *mut TVMFFIObject) {
        (*object).combined_ref_count.fetch_add(COMBINED_REF_COUNT_STRONG_ONE, Ordering::Relaxed);
    }

    /// Gives back one strong reference.
    ///
    /// # Safety
    /// The caller owns one.
    #[inline]
    pub unsafe fn dec_ref(object: *mut TVMFFIObject) {
        let count = &(*object).combined_ref_count;
        let old = count.fetch_sub(COMBINED_REF_COUNT_STRONG_ONE, Ordering::Release);
        if old == COMBINED_REF_COUNT_BOTH_ONE {
            fence(Ordering::Acquire);
            call_deleter(object, Flag::kTVMFFIObjectDeleterFlagBitMaskBoth);
        } else if old & COMBINED_REF_COUNT_MASK_U32 == COMBINED_REF_COUNT_STRONG_ONE {
            last_strong_of_several(object);
        }
    }

    #[cold]
    unsafe fn last_strong_of_several(object: *mut TVMFFIObject) {
        fence(Ordering::Acquire);
        call_deleter(object, Flag::kTVMFFIObjectDeleterFlagBitMaskStrong);
        let count = &(*object).combined_ref_count;
        if count.fetch_sub(COMBINED_REF_COUNT_WEAK_ONE, Ordering::Release)
            == COMBINED_REF_COUNT_WEAK_ONE
        {
            fence(Ordering::Acquire);
            call_deleter(object, Flag::kTVMFFIObjectDeleterFlagBitMaskWeak);
        }
    }

    unsafe fn call_deleter(object: *mut TVMFFIObject, flags: Flag) {
        if let Some(deleter) = (*object).deleter {
            deleter(object as *mut c_void, flags as i32);
        }
    }
}

/// Objects are allocated here. Where a frontend (Python) has registered an allocator, its block carries a
/// header that ties the object to its wrapper; elsewhere the block comes from Rust's allocator and is the
/// object alone, which a frontend that comes later adopts.
mod allocation {
    use super::*;
    use std::alloc::{alloc, dealloc, handle_alloc_error, Layout};

    type Allocate = unsafe extern "C" fn(usize, usize, i32, *mut c_void) -> *mut c_void;

    /// Where no room for the count of extra items is left in the object itself.
    const MIN_SIZE_WITH_ITEMS: usize = size_of::<TVMFFIObject>() + size_of::<u64>();

    /// Alignment that every registered allocator supports.
    const MAX_REGISTRY_ALIGN: usize = 16;

    #[cfg(unix)]
    fn library_of(address: *const c_void) -> *const c_void {
        #[repr(C)]
        struct DlInfo {
            file_name: *const std::ffi::c_char,
            file_base: *const c_void,
            symbol_name: *const std::ffi::c_char,
            symbol_address: *const c_void,
        }
        unsafe extern "C" {
            fn dladdr(address: *const c_void, info: *mut DlInfo) -> i32;
        }
        // SAFETY: dladdr reads only tables of the loader and writes to `info`.
        unsafe {
            let mut info: DlInfo = std::mem::zeroed();
            if dladdr(address, &mut info) == 0 {
                return std::ptr::null();
            }
            info.file_base
        }
    }

    /// The registry's own allocator lives in the library of the registry; a frontend's does not.
    #[cold]
    fn belongs_to_frontend(allocate: usize) -> bool {
        #[cfg(unix)]
        {
            let registry = library_of(TVMFFIGetCustomAllocator as *const c_void);
            let found = library_of(allocate as *const c_void);
            !registry.is_null() && !found.is_null() && registry != found
        }
        #[cfg(not(unix))]
        {
            let _ = allocate;
            false
        }
    }

    /// The registered allocator, if a frontend has registered one.
    #[inline]
    fn frontend() -> Option<(Allocate, *mut c_void)> {
        // The last answer for each side. Addresses of code, so stale reads are harmless.
        static BUILTIN: AtomicUsize = AtomicUsize::new(0);
        static FRONTEND: AtomicUsize = AtomicUsize::new(0);
        // SAFETY: the registry never answers null, and registered allocators stay valid.
        let allocator = unsafe { &*TVMFFIGetCustomAllocator() };
        let allocate = allocator.allocate?;
        let address = allocate as usize;
        if address == BUILTIN.load(Ordering::Relaxed) {
            return None;
        }
        if address != FRONTEND.load(Ordering::Relaxed) {
            if !belongs_to_frontend(address) {
                BUILTIN.store(address, Ordering::Relaxed);
                return None;
            }
            FRONTEND.store(address, Ordering::Relaxed);
        }
        Some((allocate, allocator.context))
    }

    /// How the size of an object of a type is found when it is freed.
    trait Extent<T> {
        /// Layout of an object with `count` items.
        fn layout(count: usize) -> Option<Layout>;
        /// Number of items of a live object.
        fn count(object: &T) -> usize;
        /// Whether the count must be kept while only the storage is left.
        const KEEPS_COUNT: bool;
    }

    struct Plain;
    impl<T> Extent<T> for Plain {
        fn layout(_: usize) -> Option<Layout> {
            Some(Layout::new::<T>())
        }
        fn count(_: &T) -> usize {
            0
        }
        const KEEPS_COUNT: bool = false;
    }

    struct WithItems;
    impl<T: ObjectCoreWithExtraItems> Extent<T> for WithItems {
        fn layout(count: usize) -> Option<Layout> {
            let size = count
                .checked_mul(size_of::<T::ExtraItem>())?
                .checked_add(size_of::<T>())?
                .max(MIN_SIZE_WITH_ITEMS);
            Layout::from_size_align(size, align_of::<T>()).ok()
        }
        fn count(object: &T) -> usize {
            T::extra_items_count(object)
        }
        const KEEPS_COUNT: bool = true;
    }

    /// Runs the destructor. A panic in it has been reported by the panic hook and ends here: this is
    /// called from C.
    unsafe fn destroy<T>(object: *mut T) {
        if std::mem::needs_drop::<T>() {
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                // SAFETY: the last strong reference is gone, so nobody else uses the object.
                unsafe { std::ptr::drop_in_place(object) }
            }));
        }
    }

    unsafe extern "C" fn delete_own<T: ObjectCore, E: Extent<T>>(this: *mut c_void, flags: i32) {
        let object = this as *mut T;
        let kept = (this as *mut u8).add(size_of::<TVMFFIObject>()) as *mut u64;
        let mut count = None;
        if flags & 1 != 0 {
            if E::KEEPS_COUNT {
                count = Some(E::count(&*object));
            }
            destroy(object);
            if let (Some(count), true) = (count, flags & 2 == 0) {
                kept.write_unaligned(count as u64);
            }
        }
        if flags & 2 != 0 {
            let count = match count {
                Some(count) => count,
                None if E::KEEPS_COUNT => kept.read_unaligned() as usize,
                None => 0,
            };
            // The same computation succeeded when the block was made.
            if let Some(layout) = E::layout(count) {
                dealloc(this as *mut u8, layout);
            }
        }
    }

    unsafe extern "C" fn delete_registered<T: ObjectCore>(this: *mut c_void, flags: i32) {
        let header = this as *mut TVMFFIObject;
        let storage_stays = flags & 2 == 0;
        let tell = storage_stays && (*header).__padding == OBJECT_ALLOC_HEADER_MARK;
        if flags & 1 != 0 {
            destroy(this as *mut T);
        }
        if tell {
            tell_only_storage_is_left(this);
        }
        if !storage_stays {
            release(this);
        }
    }

    unsafe fn release(body: *mut c_void) {
        let header = (body as *mut TVMFFIObjectAllocHeader).sub(1);
        if let Some(delete_space) = (*header).delete_space {
            delete_space(body);
        }
    }

    /// A weak reference keeps the storage of a destroyed object: its frontend lets go now.
    #[cold]
    unsafe fn tell_only_storage_is_left(object: *mut c_void) {
        let name = TVMFFIByteArray::from_str("ffi.tether.OnlyStorageIsLeft");
        let mut tell = std::ptr::null_mut();
        if TVMFFIFunctionGetGlobal(&name, &mut tell) != 0 || tell.is_null() {
            return;
        }
        let mut arg = TVMFFIAny::new();
        arg.type_index = TypeIndex::kTVMFFIOpaquePtr as i32;
        arg.data_union.v_ptr = object;
        let mut result = TVMFFIAny::new();
        let _ = TVMFFIFunctionCall(tell, &arg, 1, &mut result);
        unsafe_::dec_ref(tell as *mut TVMFFIObject);
    }

    #[inline]
    unsafe fn make<T: ObjectCore, E: Extent<T>>(data: T, count: usize) -> NonNull<T> {
        let type_index = T::type_index();
        let Some(layout) = E::layout(count) else {
            panic!("an object of type `{}` with {count} items is too large", T::TYPE_KEY)
        };
        let from_frontend = if layout.align() <= MAX_REGISTRY_ALIGN { frontend() } else { None };
        let (block, padding, deleter): (*mut c_void, u32, TVMFFIObjectDeleter) = match from_frontend
        {
            Some((allocate, context)) => (
                allocate(layout.size(), layout.align(), type_index, context),
                OBJECT_ALLOC_HEADER_MARK,
                delete_registered::<T>,
            ),
            None => (alloc(layout) as *mut c_void, 0, delete_own::<T, E>),
        };
        let Some(object) = NonNull::new(block as *mut T) else { handle_alloc_error(layout) };
        object.as_ptr().write(data);
        let mut header = TVMFFIObject::new();
        header.combined_ref_count = COMBINED_REF_COUNT_BOTH_ONE.into();
        header.type_index = type_index;
        header.__padding = padding;
        header.deleter = Some(deleter);
        (block as *mut TVMFFIObject).write(header);
        object
    }

    #[inline]
    pub(super) fn new<T: ObjectCore>(data: T) -> NonNull<T> {
        // SAFETY: the layout is that of T.
        unsafe { make::<T, Plain>(data, 0) }
    }

    pub(super) fn new_with_items<T: ObjectCoreWithExtraItems>(data: T) -> NonNull<T> {
        let item_align = align_of::<T::ExtraItem>();
        assert_eq!(align_of::<T>() % item_align, 0, "items cannot be aligned more than the object");
        assert_eq!(size_of::<T>() % item_align, 0, "items must start where the object ends");
        let count = T::extra_items_count(&data);
        // SAFETY: the layout has room for T and `count` items.
        unsafe { make::<T, WithItems>(data, count) }
    }
}

impl<T: ObjectCore> ObjectArc<T> {
    /// Moves `data` into a new object with one reference.
    #[inline]
    pub fn new(data: T) -> Self {
        Self { ptr: allocation::new(data), _phantom: PhantomData }
    }

    /// The same with room for the extra items, which are left uninitialised.
    pub fn new_with_extra_items<U>(data: T) -> Self
    where
        T: ObjectCoreWithExtraItems<ExtraItem = U>,
    {
        Self { ptr: allocation::new_with_items(data), _phantom: PhantomData }
    }

    /// Takes over one strong reference.
    ///
    /// # Safety
    /// `ptr` is an object of type `T`, and the caller owns the reference.
    #[inline]
    pub unsafe fn from_raw(ptr: *const T) -> Self {
        Self { ptr: NonNull::new_unchecked(ptr as *mut T), _phantom: PhantomData }
    }

    /// Gives up the pointer with its reference.
    ///
    /// # Safety
    /// Somebody must give the reference back.
    #[inline]
    pub unsafe fn into_raw(this: Self) -> *const T {
        ManuallyDrop::new(this).ptr.as_ptr()
    }

    /// The pointer.
    ///
    /// # Safety
    /// It must not be used after the last reference is gone.
    #[inline]
    pub unsafe fn as_raw(this: &Self) -> *const T {
        this.ptr.as_ptr()
    }

    /// The pointer.
    ///
    /// # Safety
    /// As [`ObjectArc::as_raw`]; nobody else may use the object while it is changed.
    #[inline]
    pub unsafe fn as_raw_mut(this: &mut Self) -> *mut T {
        this.ptr.as_ptr()
    }

    fn combined_count(this: &Self) -> u64 {
        // SAFETY: self keeps the object alive.
        unsafe { (*header_of(this)).combined_ref_count.load(Ordering::Relaxed) }
    }

    /// Number of strong references.
    pub fn strong_count(this: &Self) -> usize {
        (Self::combined_count(this) & COMBINED_REF_COUNT_MASK_U32) as usize
    }

    /// Number of weak references, one for all strong ones together.
    pub fn weak_count(this: &Self) -> usize {
        (Self::combined_count(this) >> 32) as usize
    }
}

impl<T: ObjectCore> Clone for ObjectArc<T> {
    #[inline]
    fn clone(&self) -> Self {
        // SAFETY: self keeps the object alive.
        unsafe { unsafe_::inc_ref(header_of(self)) };
        Self { ptr: self.ptr, _phantom: PhantomData }
    }
}

impl<T: ObjectCore> Drop for ObjectArc<T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: self owns one reference.
        unsafe { unsafe_::dec_ref(header_of(self)) }
    }
}

impl<T: ObjectCore> Deref for ObjectArc<T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: self keeps the object alive.
        unsafe { self.ptr.as_ref() }
    }
}

impl<T: ObjectCore> DerefMut for ObjectArc<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: self keeps the object alive. As in C++, sharing is the caller's business.
        unsafe { self.ptr.as_mut() }
    }
}

// SAFETY: as for `std::sync::Arc`.
unsafe impl<T: ObjectCore + Send + Sync> Send for ObjectArc<T> {}
unsafe impl<T: ObjectCore + Send + Sync> Sync for ObjectArc<T> {}

/// Whether objects of a type are `Target`s.
#[doc(hidden)]
pub fn is_instance_of<Target: ObjectCore>(object_type_index: i32) -> bool {
    let target = Target::type_index();
    if object_type_index == target {
        return true;
    }
    let begin = TypeIndex::kTVMFFIStaticObjectBegin as i32;
    if Target::TYPE_FINAL || target < begin || object_type_index < target {
        return false;
    }
    // SAFETY: records of the type table are never freed, and have `type_depth` ancestors.
    unsafe {
        let info = TVMFFIGetTypeInfo(object_type_index);
        if info.is_null() || (*info).type_depth <= Target::TYPE_DEPTH {
            return false;
        }
        let ancestor = *(*info).type_acenstors.add(Target::TYPE_DEPTH as usize);
        (*ancestor).type_index == target
    }
}

/// Casts between handles.
///
/// ```
/// use tvm_ffi::{Array, ObjectRefCast, Shape};
/// let any = Array::new(vec![1i64]).try_cast::<tvm_ffi::object::ObjectRef>().unwrap();
/// assert!(any.clone().try_cast::<Array<i64>>().is_ok());
/// assert!(any.try_cast::<Shape>().is_err());
/// ```
pub trait ObjectRefCast: ObjectRefCore + AnyCompatible {
    /// The same object as a `B`. If it is not one, the reference is dropped.
    fn try_cast<B: ObjectRefCore + AnyCompatible>(self) -> Result<B> {
        let mut view = TVMFFIAny::new();
        // SAFETY: the view is used while self is alive, and the check says that the object is a B.
        unsafe {
            Self::copy_to_any_view(&self, &mut view);
            if !B::check_any_strict(&view) {
                let message = format!(
                    "Cannot convert from type `{}` to `{}`",
                    type_key_of(view.type_index),
                    B::type_str()
                );
                return Err(Error::new(TYPE_ERROR, &message, ""));
            }
            let raw = ObjectArc::into_raw(Self::into_data(self));
            Ok(B::from_data(ObjectArc::from_raw(raw as *const B::ContainerType)))
        }
    }
}
impl<T: ObjectRefCore + AnyCompatible> ObjectRefCast for T {}

/// Held while a type is registered from Rust.
#[doc(hidden)]
pub static TYPE_REGISTRATION: Mutex<()> = Mutex::new(());

/// The index of a type that a library defines. For generated code.
#[doc(hidden)]
pub fn bound_type_index(cell: &OnceLock<i32>, key: &str) -> i32 {
    *cell.get_or_init(|| {
        let mut index = 0;
        // SAFETY: both pointers are valid during the call.
        let code = unsafe { TVMFFITypeKeyToIndex(&TVMFFIByteArray::from_str(key), &mut index) };
        if code != 0 {
            drop(Error::from_raised());
            panic!(
                "Type key {key} is not registered: load the library that defines it first, or add \
                 #[type_register] if this crate defines it"
            );
        }
        index
    })
}

/// Registers a type at its first use. For generated code.
#[doc(hidden)]
pub fn registered_type_index(
    cell: &OnceLock<i32>,
    key: &str,
    depth: i32,
    child_slots: i32,
    child_slots_can_overflow: bool,
    parent: fn() -> i32,
    reflect: Option<fn(i32) -> Result<()>>,
) -> i32 {
    if let Some(index) = cell.get() {
        return *index;
    }
    let parent_index = parent();
    let _lock = TYPE_REGISTRATION.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    *cell.get_or_init(|| {
        // SAFETY: the key is valid during the call.
        let index = unsafe {
            TVMFFITypeGetOrAllocIndex(
                &TVMFFIByteArray::from_str(key),
                -1,
                depth,
                child_slots,
                child_slots_can_overflow as i32,
                parent_index,
            )
        };
        if index < 0 {
            panic!("Failed to get or allocate type index for type key: {key}");
        }
        if let Some(reflect) = reflect {
            if let Err(error) = reflect(index) {
                panic!("Failed to register the reflection of type key {key}: {error}");
            }
        }
        index
    })
}

/// Conversions of handles, shared by all of them. For generated code.
#[doc(hidden)]
pub mod ref_any {
    use super::*;

    /// # Safety
    /// The view must not outlive `src`.
    #[inline]
    pub unsafe fn copy_to_any_view<R: ObjectRefCore>(src: &R, data: &mut TVMFFIAny) {
        let header = header_of(R::data(src));
        data.type_index = (*header).type_index;
        data.small_str_len = 0;
        data.data_union.v_uint64 = 0;
        data.data_union.v_obj = header;
    }
    /// # Safety
    /// `data` owns nothing before the call.
    #[inline]
    pub unsafe fn move_to_any<R: ObjectRefCore>(src: R, data: &mut TVMFFIAny) {
        copy_to_any_view(&src, data);
        let _ = ObjectArc::into_raw(R::into_data(src));
    }
    /// # Safety
    /// `data` is an object of the container type.
    #[inline]
    pub unsafe fn copy_from<R: ObjectRefCore>(data: &TVMFFIAny) -> R {
        let object = data.data_union.v_obj;
        unsafe_::inc_ref(object);
        R::from_data(ObjectArc::from_raw(object as *const R::ContainerType))
    }
    /// # Safety
    /// `data` owns an object of the container type.
    #[inline]
    pub unsafe fn move_from<R: ObjectRefCore>(data: &mut TVMFFIAny) -> R {
        let object = data.data_union.v_obj;
        *data = TVMFFIAny::new();
        R::from_data(ObjectArc::from_raw(object as *const R::ContainerType))
    }
    #[inline]
    pub fn check<T: ObjectCore>(data: &TVMFFIAny) -> bool {
        data.type_index >= TypeIndex::kTVMFFIStaticObjectBegin as i32
            && is_instance_of::<T>(data.type_index)
    }
}

crate::impl_try_from_any!(ObjectRef);
crate::impl_arg_into_ref!(ObjectRef);
crate::impl_into_arg_holder_default!(ObjectRef);
