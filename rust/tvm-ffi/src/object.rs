// SPDX-License-Identifier: Apache-2.0
//! Objects: what they are made of, who owns them, and how to cast between their types.
use crate::derive::ObjectRef as DeriveObjectRef;
use crate::error::{Error, Result, TYPE_ERROR};
use crate::type_traits::{type_key_of, AnyCompatible};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::mem::{align_of, size_of, ManuallyDrop};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::atomic::{fence, AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use tvm_ffi_sys::*;

pub use tvm_ffi_sys::TVMFFITypeIndex as TypeIndex;

/// The root of all object types: a header and nothing else.
///
/// ```
/// use tvm_ffi::*;
/// let object = ObjectArc::new(Object::new());
/// assert_eq!(ObjectArc::strong_count(&object), 1);
/// ```
#[repr(C)]
#[derive(Debug, Default)]
pub struct Object {
    header: TVMFFIObject,
}

impl Object {
    /// A header of zeros; [`ObjectArc::new`] fills it in.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let object = ObjectArc::new(Object::new());
    /// assert_eq!(ObjectArc::weak_count(&object), 1);
    /// ```
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
/// ```
/// use tvm_ffi::*;
/// mod point {
///     use tvm_ffi::{def_object_ref, object::ObjectRef, rs_class, Object};
///     #[rs_class("doc.object_core.Point")]
///     pub struct PointObj {
///         base: Object,
///         pub x: i64,
///     }
///     def_object_ref!(pub Point, ObjectRef, PointObj);
/// }
/// use point::{Point, PointObj};
/// let point = Point::from(PointObj::new(Object::new(), 3));
/// assert_eq!((PointObj::TYPE_KEY, PointObj::TYPE_DEPTH), ("doc.object_core.Point", 1));
/// assert_eq!(Any::from(point).type_index(), PointObj::type_index());
/// ```
///
/// # Safety
/// The type is `#[repr(C)]` and starts with a `TVMFFIObject`; its key, depth and index are those of the
/// type table.
pub unsafe trait ObjectCore: Sized + 'static {
    /// Name of the type, unique in the process.
    ///
    /// ```
    /// use tvm_ffi::{Object, ObjectCore};
    /// assert_eq!(Object::TYPE_KEY, "ffi.Object");
    /// ```
    const TYPE_KEY: &'static str;
    /// Number of ancestors.
    ///
    /// ```
    /// use tvm_ffi::{Object, ObjectCore, ObjectRefCore, Shape};
    /// assert_eq!(Object::TYPE_DEPTH, 0);
    /// assert_eq!(<Shape as ObjectRefCore>::ContainerType::TYPE_DEPTH, 1);
    /// ```
    const TYPE_DEPTH: i32;
    /// True: no type derives from this one.
    #[doc(hidden)]
    const TYPE_FINAL: bool = false;
    /// Index of the type in the type table.
    ///
    /// ```
    /// use tvm_ffi::{Object, ObjectCore, TypeIndex};
    /// assert_eq!(Object::type_index(), TypeIndex::kTVMFFIStaticObjectBegin as i32);
    /// ```
    fn type_index() -> i32;
    /// The header of an object.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let mut object = Object::new();
    /// // SAFETY: the header is only read.
    /// assert_eq!(unsafe { Object::object_header_mut(&mut object) }.type_index, 0);
    /// ```
    ///
    /// # Safety
    /// The header must stay valid.
    unsafe fn object_header_mut(this: &mut Self) -> &mut TVMFFIObject;
}

/// A type of objects that are followed by an array of items in the same block.
///
/// ```
/// use tvm_ffi::*;
/// let shape = Shape::from([2i64, 3]);
/// // SAFETY: the shape was made by Rust, with its extents behind it.
/// let extents = unsafe { ObjectCoreWithExtraItems::extra_items(&**Shape::data(&shape)) };
/// assert_eq!(extents, [2, 3]);
/// ```
///
/// # Safety
/// `extra_items_count` gives the same number for the whole life of an object.
pub unsafe trait ObjectCoreWithExtraItems: ObjectCore {
    /// Type of one item.
    type ExtraItem;
    /// How many items follow the object.
    ///
    /// ```
    /// use tvm_ffi::derive::Object;
    /// use tvm_ffi::{ObjectArc, ObjectCoreWithExtraItems};
    /// #[repr(C)]
    /// #[derive(Object)]
    /// #[type_key = "doc.items_count.Row"]
    /// #[type_register]
    /// struct RowObj {
    ///     base: tvm_ffi::Object,
    ///     count: usize,
    /// }
    /// // SAFETY: the count never changes.
    /// unsafe impl ObjectCoreWithExtraItems for RowObj {
    ///     type ExtraItem = i64;
    ///     fn extra_items_count(this: &Self) -> usize {
    ///         this.count
    ///     }
    /// }
    /// let row = RowObj { base: tvm_ffi::Object::new(), count: 3 };
    /// let row = ObjectArc::new_with_extra_items(row);
    /// assert_eq!(RowObj::extra_items_count(&row), 3);
    /// ```
    fn extra_items_count(this: &Self) -> usize;
    /// The items.
    ///
    /// ```
    /// use tvm_ffi::derive::Object;
    /// use tvm_ffi::{ObjectArc, ObjectCoreWithExtraItems};
    /// #[repr(C)]
    /// #[derive(Object)]
    /// #[type_key = "doc.items.Row"]
    /// #[type_register]
    /// struct RowObj {
    ///     base: tvm_ffi::Object,
    ///     count: usize,
    /// }
    /// // SAFETY: the count never changes.
    /// unsafe impl ObjectCoreWithExtraItems for RowObj {
    ///     type ExtraItem = i64;
    ///     fn extra_items_count(this: &Self) -> usize {
    ///         this.count
    ///     }
    /// }
    /// let row = RowObj { base: tvm_ffi::Object::new(), count: 3 };
    /// let mut row = ObjectArc::new_with_extra_items(row);
    /// // SAFETY: there is room for three.
    /// unsafe { RowObj::extra_items_mut(&mut row) }.copy_from_slice(&[1, 2, 3]);
    /// // SAFETY: all three have been set.
    /// assert_eq!(unsafe { RowObj::extra_items(&row) }, [1, 2, 3]);
    /// ```
    ///
    /// # Safety
    /// The object was made by [`ObjectArc::new_with_extra_items`], and the items are initialised.
    unsafe fn extra_items(this: &Self) -> &[Self::ExtraItem] {
        let items = (this as *const Self).add(1) as *const Self::ExtraItem;
        std::slice::from_raw_parts(items, Self::extra_items_count(this))
    }
    /// The items.
    ///
    /// ```
    /// use tvm_ffi::derive::Object;
    /// use tvm_ffi::{ObjectArc, ObjectCoreWithExtraItems};
    /// #[repr(C)]
    /// #[derive(Object)]
    /// #[type_key = "doc.items_mut.Row"]
    /// #[type_register]
    /// struct RowObj {
    ///     base: tvm_ffi::Object,
    ///     count: usize,
    /// }
    /// // SAFETY: the count never changes.
    /// unsafe impl ObjectCoreWithExtraItems for RowObj {
    ///     type ExtraItem = i64;
    ///     fn extra_items_count(this: &Self) -> usize {
    ///         this.count
    ///     }
    /// }
    /// let row = RowObj { base: tvm_ffi::Object::new(), count: 3 };
    /// let mut row = ObjectArc::new_with_extra_items(row);
    /// // SAFETY: there is room for three.
    /// unsafe { RowObj::extra_items_mut(&mut row) }.copy_from_slice(&[1, 2, 3]);
    /// // SAFETY: as above.
    /// let items = unsafe { RowObj::extra_items_mut(&mut row) };
    /// items[0] = 7;
    /// // SAFETY: all three have been set.
    /// assert_eq!(unsafe { RowObj::extra_items(&row) }, [7, 2, 3]);
    /// ```
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
/// ```
/// use tvm_ffi::*;
/// mod point {
///     use tvm_ffi::{def_object_ref, object::ObjectRef, rs_class, Object};
///     #[rs_class("doc.object_ref_core.Point")]
///     pub struct PointObj {
///         base: Object,
///         pub x: i64,
///     }
///     def_object_ref!(pub Point, ObjectRef, PointObj);
/// }
/// use point::{Point, PointObj};
/// let point = Point::from(PointObj::new(Object::new(), 3));
/// assert_eq!(ObjectArc::strong_count(Point::data(&point)), 1);
/// assert!(point.same_as(&point.clone()));
/// assert_eq!(point.as_node::<PointObj>().unwrap().x, 3);
/// ```
///
/// # Safety
/// The handle is one [`ObjectArc`] and nothing else.
pub unsafe trait ObjectRefCore: Sized + Clone {
    /// Type of the object.
    type ContainerType: ObjectCore;
    /// The pointer inside.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let shape = Shape::new();
    /// assert_eq!(ObjectArc::strong_count(Shape::data(&shape)), 1);
    /// ```
    fn data(this: &Self) -> &ObjectArc<Self::ContainerType>;
    /// Takes the pointer out.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let data = Shape::into_data(Shape::from([1i64]));
    /// assert_eq!(ObjectArc::strong_count(&data), 1);
    /// ```
    fn into_data(this: Self) -> ObjectArc<Self::ContainerType>;
    /// Wraps a pointer.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let data = Shape::into_data(Shape::from([1i64]));
    /// // SAFETY: it came out of a shape.
    /// assert_eq!(unsafe { Shape::from_data(data) }.as_slice(), [1]);
    /// ```
    ///
    /// # Safety
    /// The object must be what the handle type promises, for example the elements of an array.
    unsafe fn from_data(data: ObjectArc<Self::ContainerType>) -> Self;
    /// Whether both handles point to one object.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let shape = Shape::from([1i64]);
    /// assert!(shape.same_as(&shape.clone()));
    /// assert!(!shape.same_as(&Shape::from([1i64])));
    /// ```
    fn same_as<Other: ObjectRefCore>(&self, other: &Other) -> bool {
        header_of(Self::data(self)) == header_of(Other::data(other))
    }
    /// The object as an `N`, if it is one.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// mod point {
    ///     use tvm_ffi::{def_object_ref, object::ObjectRef, rs_class, Object};
    ///     #[rs_class("doc.as_node.Point")]
    ///     pub struct PointObj {
    ///         base: Object,
    ///         pub x: i64,
    ///     }
    ///     def_object_ref!(pub Point, ObjectRef, PointObj);
    /// }
    /// use point::{Point, PointObj};
    /// let point = Point::from(PointObj::new(Object::new(), 3));
    /// let object: object::ObjectRef = (&point).into();
    /// assert_eq!(object.as_node::<PointObj>().unwrap().x, 3);
    /// ```
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

/// A handle to an object of any type. It stays on its thread, as the object may have to.
///
/// ```
/// use tvm_ffi::*;
/// let object: object::ObjectRef = Any::from(Shape::new()).try_into().unwrap();
/// assert!(object.try_cast::<Shape>().is_ok());
/// ```
#[repr(C)]
#[derive(DeriveObjectRef, Clone, Default)]
pub struct ObjectRef {
    data: ObjectArc<Object>,
    _not_send: PhantomData<*const ()>,
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
    _not_send: PhantomData<*const ()>,
}

impl ObjectIdentity {
    /// The identity of the object behind a handle.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let shape = Shape::new();
    /// let mut seen = std::collections::HashSet::new();
    /// assert!(seen.insert(ObjectIdentity::of(&shape)));
    /// assert!(!seen.insert(ObjectIdentity::of(&shape)));
    /// ```
    pub fn of<T: ObjectRefCore>(value: &T) -> Self {
        let header = header_of(T::data(value));
        // SAFETY: every object starts with an `Object`; the new pointer gets its own count.
        unsafe {
            unsafe_::inc_ref(header);
            let data = ObjectArc::from_raw(header as *const Object);
            Self { data, _not_send: PhantomData }
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

    /// For C, because nothing may unwind out of it: what a caller does afterwards needs no cleaning up.
    #[cold]
    unsafe extern "C" fn last_strong_of_several(object: *mut TVMFFIObject) {
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

    #[inline]
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
    use TVMFFIObjectDeleterFlagBitMask as Flag;

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
    fn belongs_to_frontend(allocate: Allocate) -> bool {
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

    /// The variable of the library that says whether an allocator is registered; `UNKNOWN` as long as it
    /// has not been found.
    static HAS_REGISTERED: AtomicPtr<AtomicBool> =
        AtomicPtr::new(&raw const UNKNOWN as *mut AtomicBool);

    /// There may be one.
    static UNKNOWN: AtomicBool = AtomicBool::new(true);

    /// Whether a frontend may have registered an allocator. Asked for every object, so it makes no call.
    #[inline(always)]
    fn may_be_registered() -> bool {
        // SAFETY: both variables live as long as the process.
        unsafe { &*HAS_REGISTERED.load(Ordering::Relaxed) }.load(Ordering::Relaxed)
    }

    /// Asks the library for its variable. Other libraries of the interface do not have it.
    #[cold]
    fn find_variable() {
        static ONCE: std::sync::Once = std::sync::Once::new();
        ONCE.call_once(|| {
            let name = TVMFFIByteArray::new(b"ffi.tether.HasRegisteredAllocator".as_ptr(), 33);
            let mut function = std::ptr::null_mut();
            let mut result = TVMFFIAny::new();
            // SAFETY: all pointers are valid during the calls; the function is owned and given back.
            unsafe {
                if TVMFFIFunctionGetGlobal(&name, &mut function) != 0 || function.is_null() {
                    return;
                }
                let code = TVMFFIFunctionCall(function, std::ptr::null(), 0, &mut result);
                unsafe_::dec_ref(function as *mut TVMFFIObject);
                if code == 0 && result.type_index == TypeIndex::kTVMFFIOpaquePtr as i32 {
                    let variable = result.data_union.v_ptr as *mut AtomicBool;
                    HAS_REGISTERED.store(variable, Ordering::Relaxed);
                }
            }
        });
    }

    /// The allocator of a frontend, None where the current one is the registry's own.
    fn frontend() -> Option<(Allocate, *mut c_void)> {
        // What is known of the allocators seen last. Addresses of code, so a stale read is harmless.
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
            if !belongs_to_frontend(allocate) {
                BUILTIN.store(address, Ordering::Relaxed);
                find_variable();
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
        /// The same for a count that an object has.
        ///
        /// # Safety
        /// An object with so many items exists.
        unsafe fn layout_of_existing(count: usize) -> Layout;
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
        unsafe fn layout_of_existing(_: usize) -> Layout {
            Layout::new::<T>()
        }
        fn count(_: &T) -> usize {
            0
        }
        const KEEPS_COUNT: bool = false;
    }

    struct WithItems;
    impl<T: ObjectCoreWithExtraItems> Extent<T> for WithItems {
        #[inline]
        fn layout(count: usize) -> Option<Layout> {
            let size = count
                .checked_mul(size_of::<T::ExtraItem>())?
                .checked_add(size_of::<T>())?
                .max(MIN_SIZE_WITH_ITEMS);
            Layout::from_size_align(size, align_of::<T>()).ok()
        }
        #[inline]
        unsafe fn layout_of_existing(count: usize) -> Layout {
            let mut size = size_of::<T>() + count * size_of::<T::ExtraItem>();
            if size_of::<T>() < MIN_SIZE_WITH_ITEMS {
                size = size.max(MIN_SIZE_WITH_ITEMS);
            }
            Layout::from_size_align_unchecked(size, align_of::<T>())
        }
        fn count(object: &T) -> usize {
            T::extra_items_count(object)
        }
        const KEEPS_COUNT: bool = true;
    }

    /// Runs the destructor. A panic in it has been reported by the panic hook and ends here: this is
    /// called from C.
    #[inline]
    unsafe fn destroy<T>(object: *mut T) {
        if std::mem::needs_drop::<T>() {
            let destroyed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                // SAFETY: the last strong reference is gone, so nobody else uses the object.
                unsafe { std::ptr::drop_in_place(object) }
            }));
            if let Err(payload) = destroyed {
                crate::function_internal::drop_payload(payload);
            }
        }
    }

    /// Destroying a long chain. Its head drops the next object inside its own destructor, and so on,
    /// which would overflow the stack. Each time this recursion crosses a checkpoint, a window of 4 KB
    /// at every 64 KB of stack, it checks how deep it is since the first one; beyond 32 KB objects are
    /// put on a list, which the level at the first checkpoint empties. C++ does the same for its own.
    mod chain {
        use super::{c_void, Flag, TVMFFIObjectDeleter};
        use std::cell::Cell;

        type Waiting = Vec<(*mut c_void, TVMFFIObjectDeleter)>;

        const BOTH: i32 = Flag::kTVMFFIObjectDeleterFlagBitMaskBoth as i32;

        thread_local! {
            /// Stack address of the level that empties the list, or 0.
            static OUTERMOST: Cell<usize> = const { Cell::new(0) };
            /// NULL while nothing waits.
            static LIST: Cell<*mut Waiting> = const { Cell::new(std::ptr::null_mut()) };
        }

        /// The register where there is one: a variable would cost every deleter a frame.
        #[inline(always)]
        fn stack_address() -> usize {
            let here: usize;
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            // SAFETY: only reads the stack pointer.
            unsafe {
                std::arch::asm!("mov {}, rsp", out(reg) here, options(nomem, nostack, preserves_flags))
            };
            #[cfg(all(target_arch = "aarch64", not(miri)))]
            // SAFETY: only reads the stack pointer.
            unsafe {
                std::arch::asm!("mov {}, sp", out(reg) here, options(nomem, nostack, preserves_flags))
            };
            #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
            {
                let variable = 0u8;
                here = std::hint::black_box(&variable) as *const u8 as usize;
            }
            here
        }

        /// Calls `destroy`, now or when less of the stack is in use.
        #[inline(always)]
        pub(super) unsafe fn delete(this: *mut c_void, flags: i32, destroy: TVMFFIObjectDeleter) {
            if stack_address() & 0xf000 == 0x8000 {
                delete_at_checkpoint(this, flags, destroy);
            } else {
                destroy(this, flags);
            }
        }

        #[cold]
        #[inline(never)]
        unsafe fn delete_at_checkpoint(
            this: *mut c_void,
            flags: i32,
            destroy: TVMFFIObjectDeleter,
        ) {
            let here = stack_address();
            let outermost = OUTERMOST.get();
            if outermost == 0 {
                OUTERMOST.set(here);
                destroy(this, flags);
                if !LIST.get().is_null() {
                    destroy_waiting();
                }
                OUTERMOST.set(0);
            } else if flags != BOTH
                || outermost.wrapping_sub(here) <= 32 * 1024
                || !wait(this, destroy)
            {
                // Destruction may only be delayed if nothing can use the object any more.
                destroy(this, flags);
            }
        }

        /// Puts an object on the list. False: there is no memory.
        #[inline(never)]
        unsafe fn wait(this: *mut c_void, destroy: TVMFFIObjectDeleter) -> bool {
            if LIST.get().is_null() {
                LIST.set(Box::into_raw(Box::default()));
            }
            // SAFETY: only this thread has the list, and nothing is called while it is borrowed.
            let list = &mut *LIST.get();
            let has_room = list.try_reserve(1).is_ok();
            if has_room {
                list.push((this, destroy));
            }
            has_room
        }

        #[inline(never)]
        unsafe fn destroy_waiting() {
            while let Some((this, destroy)) = (*LIST.get()).pop() {
                destroy(this, BOTH);
            }
            drop(Box::from_raw(LIST.replace(std::ptr::null_mut())));
        }
    }

    unsafe extern "C" fn delete_own<T: ObjectCore, E: Extent<T>>(this: *mut c_void, flags: i32) {
        if std::mem::needs_drop::<T>() {
            chain::delete(this, flags, delete_own_now::<T, E>);
        } else {
            delete_own_now::<T, E>(this, flags);
        }
    }

    #[inline]
    unsafe extern "C" fn delete_own_now<T: ObjectCore, E: Extent<T>>(
        this: *mut c_void,
        flags: i32,
    ) {
        let object = this as *mut T;
        if flags == Flag::kTVMFFIObjectDeleterFlagBitMaskBoth as i32 {
            let count = E::count(&*object);
            destroy(object);
            dealloc(this as *mut u8, E::layout_of_existing(count));
        } else {
            delete_in_two_steps::<T, E>(object, flags);
        }
    }

    /// A weak reference keeps the storage of a destroyed object. The count is kept behind the header
    /// meanwhile.
    #[cold]
    unsafe fn delete_in_two_steps<T: ObjectCore, E: Extent<T>>(object: *mut T, flags: i32) {
        let kept = (object as *mut u8).add(size_of::<TVMFFIObject>()) as *mut u64;
        if flags & Flag::kTVMFFIObjectDeleterFlagBitMaskStrong as i32 != 0 {
            let count = E::count(&*object);
            destroy(object);
            if E::KEEPS_COUNT {
                kept.write_unaligned(count as u64);
            }
        }
        if flags & Flag::kTVMFFIObjectDeleterFlagBitMaskWeak as i32 != 0 {
            let count = if E::KEEPS_COUNT { kept.read_unaligned() as usize } else { 0 };
            dealloc(object as *mut u8, E::layout_of_existing(count));
        }
    }

    unsafe extern "C" fn delete_registered<T: ObjectCore>(this: *mut c_void, flags: i32) {
        if std::mem::needs_drop::<T>() {
            chain::delete(this, flags, delete_registered_now::<T>);
        } else {
            delete_registered_now::<T>(this, flags);
        }
    }

    #[inline]
    unsafe extern "C" fn delete_registered_now<T: ObjectCore>(this: *mut c_void, flags: i32) {
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

    /// A block of the registered allocator; None where the object comes from Rust's own.
    #[cold]
    #[inline(never)]
    unsafe fn registered_block(layout: Layout, type_index: i32) -> Option<NonNull<u8>> {
        if layout.align() > MAX_REGISTRY_ALIGN {
            return None;
        }
        let (allocate, context) = frontend()?;
        let block = allocate(layout.size(), layout.align(), type_index, context);
        match NonNull::new(block as *mut u8) {
            None => handle_alloc_error(layout),
            block => block,
        }
    }

    #[cold]
    #[inline(never)]
    fn too_large(key: &str, count: usize) -> ! {
        panic!("an object of type `{key}` with {count} items is too large")
    }

    #[inline(always)]
    unsafe fn make<T: ObjectCore, E: Extent<T>>(data: T, count: usize) -> NonNull<T> {
        let type_index = T::type_index();
        let Some(layout) = E::layout(count) else { too_large(T::TYPE_KEY, count) };
        // `data` stays in registers only if both branches write it here. The header is written apart, so
        // that the compiler does not join the branches and choose its values at run time.
        if may_be_registered() {
            if let Some(block) = registered_block(layout, type_index) {
                let object = block.cast::<T>();
                object.as_ptr().write(data);
                let deleter = delete_registered::<T>;
                write_registered_header(block.cast(), type_index, deleter);
                return object;
            }
        }
        let Some(block) = NonNull::new(alloc(layout)) else { handle_alloc_error(layout) };
        let object = block.cast::<T>();
        object.as_ptr().write(data);
        write_header(block.cast(), type_index, 0, delete_own::<T, E>);
        object
    }

    #[inline(always)]
    unsafe fn write_header(
        at: NonNull<TVMFFIObject>,
        type_index: i32,
        mark: u32,
        deleter: TVMFFIObjectDeleter,
    ) {
        let mut header = TVMFFIObject::new();
        header.combined_ref_count = COMBINED_REF_COUNT_BOTH_ONE.into();
        header.type_index = type_index;
        header.__padding = mark;
        header.deleter = Some(deleter);
        at.as_ptr().write(header);
    }

    #[cold]
    #[inline(never)]
    unsafe fn write_registered_header(
        at: NonNull<TVMFFIObject>,
        type_index: i32,
        deleter: TVMFFIObjectDeleter,
    ) {
        write_header(at, type_index, OBJECT_ALLOC_HEADER_MARK, deleter);
    }

    #[inline]
    pub(super) fn new<T: ObjectCore>(data: T) -> NonNull<T> {
        // SAFETY: the layout is that of T.
        unsafe { make::<T, Plain>(data, 0) }
    }

    /// An object in a block of the registry, whoever its allocator belongs to. The registry's own keeps small
    /// blocks for the next object, which is faster than Rust's allocator.
    #[inline]
    pub(super) fn new_in_registry<T: ObjectCore>(data: T) -> NonNull<T> {
        let layout = Layout::new::<T>();
        if layout.align() > MAX_REGISTRY_ALIGN {
            return new(data);
        }
        let type_index = T::type_index();
        // SAFETY: the registry never answers null; the block has the layout of T.
        unsafe {
            let allocator = &*TVMFFIGetCustomAllocator();
            let Some(allocate) = allocator.allocate else { return new(data) };
            let block = allocate(layout.size(), layout.align(), type_index, allocator.context);
            let Some(block) = NonNull::new(block as *mut T) else { handle_alloc_error(layout) };
            block.as_ptr().write(data);
            let mark = OBJECT_ALLOC_HEADER_MARK;
            write_header(block.cast(), type_index, mark, delete_registered::<T>);
            block
        }
    }

    #[inline]
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
    ///
    /// ```
    /// use tvm_ffi::*;
    /// assert_eq!(ObjectArc::strong_count(&ObjectArc::new(Object::new())), 1);
    /// ```
    #[inline]
    pub fn new(data: T) -> Self {
        Self { ptr: allocation::new(data), _phantom: PhantomData }
    }

    /// As [`ObjectArc::new`], in a block of the registry.
    #[inline]
    pub(crate) fn new_in_registry(data: T) -> Self {
        Self { ptr: allocation::new_in_registry(data), _phantom: PhantomData }
    }

    /// The same with room for the extra items, which are left uninitialised.
    ///
    /// ```
    /// use tvm_ffi::derive::Object;
    /// use tvm_ffi::{ObjectArc, ObjectCoreWithExtraItems};
    /// #[repr(C)]
    /// #[derive(Object)]
    /// #[type_key = "doc.new_with_items.Row"]
    /// #[type_register]
    /// struct RowObj {
    ///     base: tvm_ffi::Object,
    ///     count: usize,
    /// }
    /// // SAFETY: the count never changes.
    /// unsafe impl ObjectCoreWithExtraItems for RowObj {
    ///     type ExtraItem = i64;
    ///     fn extra_items_count(this: &Self) -> usize {
    ///         this.count
    ///     }
    /// }
    /// let row = RowObj { base: tvm_ffi::Object::new(), count: 3 };
    /// let mut row = ObjectArc::new_with_extra_items(row);
    /// // SAFETY: there is room for three.
    /// unsafe { RowObj::extra_items_mut(&mut row) }.copy_from_slice(&[1, 2, 3]);
    /// assert_eq!((row.count, ObjectArc::strong_count(&row)), (3, 1));
    /// ```
    #[inline]
    pub fn new_with_extra_items<U>(data: T) -> Self
    where
        T: ObjectCoreWithExtraItems<ExtraItem = U>,
    {
        Self { ptr: allocation::new_with_items(data), _phantom: PhantomData }
    }

    /// Takes over one strong reference.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// // SAFETY: the reference is taken back.
    /// let object = unsafe { ObjectArc::from_raw(ObjectArc::into_raw(ObjectArc::new(Object::new()))) };
    /// assert_eq!(ObjectArc::strong_count(&object), 1);
    /// ```
    ///
    /// # Safety
    /// `ptr` is an object of type `T`, and the caller owns the reference.
    #[inline]
    pub unsafe fn from_raw(ptr: *const T) -> Self {
        Self { ptr: NonNull::new_unchecked(ptr as *mut T), _phantom: PhantomData }
    }

    /// Gives up the pointer with its reference.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let object = ObjectArc::new(Object::new());
    /// // SAFETY: the reference is taken back.
    /// drop(unsafe { ObjectArc::from_raw(ObjectArc::into_raw(object)) });
    /// ```
    ///
    /// # Safety
    /// Somebody must give the reference back.
    #[inline]
    pub unsafe fn into_raw(this: Self) -> *const T {
        ManuallyDrop::new(this).ptr.as_ptr()
    }

    /// The pointer.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let object = ObjectArc::new(Object::new());
    /// // SAFETY: only the address is looked at.
    /// assert!(!unsafe { ObjectArc::as_raw(&object) }.is_null());
    /// ```
    ///
    /// # Safety
    /// It must not be used after the last reference is gone.
    #[inline]
    pub unsafe fn as_raw(this: &Self) -> *const T {
        this.ptr.as_ptr()
    }

    /// The pointer.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let mut object = ObjectArc::new(Object::new());
    /// // SAFETY: only the address is looked at.
    /// assert!(!unsafe { ObjectArc::as_raw_mut(&mut object) }.is_null());
    /// ```
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
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let object = ObjectArc::new(Object::new());
    /// let other = object.clone();
    /// assert_eq!(ObjectArc::strong_count(&other), 2);
    /// ```
    pub fn strong_count(this: &Self) -> usize {
        (Self::combined_count(this) & COMBINED_REF_COUNT_MASK_U32) as usize
    }

    /// Number of weak references, one for all strong ones together.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// assert_eq!(ObjectArc::weak_count(&ObjectArc::new(Object::new())), 1);
    /// ```
    pub fn weak_count(this: &Self) -> usize {
        (Self::combined_count(this) >> 32) as usize
    }
}

impl<T: ObjectCore + Default> Default for ObjectArc<T> {
    fn default() -> Self {
        Self::new(T::default())
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
    ///
    /// ```
    /// use tvm_ffi::{object::ObjectRef, ObjectRefCast, Shape};
    /// let object = Shape::from([1i64]).try_cast::<ObjectRef>().unwrap();
    /// assert_eq!(object.try_cast::<Shape>().unwrap().as_slice(), [1]);
    /// ```
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

/// The same object as an instance of a base class. For generated code.
///
/// # Panics
/// If it is not one: the macros are told which class is the base.
#[doc(hidden)]
pub fn upcast<Source: ObjectRefCore, Target: ObjectRefCore>(value: Source) -> Target {
    let header = header_of(Source::data(&value));
    // SAFETY: the object is alive, and the header says what it is.
    unsafe {
        let is_one = Target::ContainerType::TYPE_DEPTH == 0
            || is_instance_of::<Target::ContainerType>((*header).type_index);
        assert!(
            is_one,
            "`{}` is not a base of `{}`",
            Target::ContainerType::TYPE_KEY,
            Source::ContainerType::TYPE_KEY
        );
        let raw = ObjectArc::into_raw(Source::into_data(value));
        Target::from_data(ObjectArc::from_raw(raw as *const Target::ContainerType))
    }
}

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
            drop(Error::of_failed_call(code));
            panic!(
                "Type key {key} is not registered: load the library that defines it first, or add \
                 #[type_register] if this crate defines it"
            );
        }
        index
    })
}

/// The Rust types that have been registered: by key, the cell that holds the index of the type.
static REGISTERED_TYPES: Mutex<BTreeMap<std::string::String, usize>> = Mutex::new(BTreeMap::new());

/// Two Rust types with one key would be taken for each other.
fn claim_key(key: &str, cell: &OnceLock<i32>) {
    let cell = cell as *const _ as usize;
    let mut types = REGISTERED_TYPES.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let owner = *types.entry(key.to_string()).or_insert(cell);
    drop(types);
    assert!(owner == cell, "Type key {key} belongs to another Rust type");
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
        claim_key(key, cell);
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
