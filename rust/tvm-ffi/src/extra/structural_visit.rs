// SPDX-License-Identifier: Apache-2.0
//! Walks and visits over the structure of values.
//!
//! A *walk* calls a handler for every value and descends by itself. A *visitor* decides about the descent.
use super::error_path;
pub use super::StructuralView;
use crate::any::{Any, AnyView};
use crate::derive::Object as DeriveObject;
use crate::error::{Error, Result, RUNTIME_ERROR, TYPE_ERROR};
use crate::function::Function;
use crate::object::{Object, ObjectArc, ObjectCore, ObjectRef, ObjectRefCore, TypeIndex};
use crate::reflection::{ancestors_of, fields_of, SEqHashKind, TypeAttrColumn};
use crate::type_traits::AnyCompatible;
use std::any::Any as StdAny;
use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::marker::PhantomData;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::rc::Rc;
use std::sync::OnceLock;
use std::thread::ThreadId;
use tvm_ffi_sys::*;

/// Whether a value is where variables are defined.
///
/// ```
/// use tvm_ffi::*;
/// let kinds = |_: i64, kind: DefRegionKind| {
///     assert_eq!(kind, DefRegionKind::None);
///     WalkResult::Advance
/// };
/// structural_walk(&Array::new(vec![1i64]), kinds, WalkOrder::PreOrder).unwrap();
/// ```
#[repr(i32)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DefRegionKind {
    /// No.
    #[default]
    None = 0,
    /// Yes, and everything inside.
    Pattern = 1,
    /// Yes, but not inside variables.
    Simple = 2,
}

impl DefRegionKind {
    pub(crate) fn from_raw(raw: i32) -> Self {
        match raw {
            1 => Self::Pattern,
            2 => Self::Simple,
            _ => Self::None,
        }
    }
    /// The region of `kind` inside this one: Pattern absorbs.
    pub(crate) fn enter(self, kind: Self) -> Self {
        if self == Self::Pattern {
            self
        } else {
            kind
        }
    }
    /// The region of a field.
    pub(crate) fn of_field(self, flags: i64) -> Self {
        let has = |bit: TVMFFIFieldFlagBitMask| flags & bit as i64 != 0;
        if self == Self::Pattern {
            self
        } else if has(TVMFFIFieldFlagBitMask::kTVMFFIFieldFlagBitMaskSEqHashDefSimple) {
            Self::Simple
        } else if has(TVMFFIFieldFlagBitMask::kTVMFFIFieldFlagBitMaskSEqHashDefPattern) {
            Self::Pattern
        } else {
            self
        }
    }
}

/// When a walk calls its handler.
///
/// ```
/// use tvm_ffi::*;
/// let mut seen = Vec::new();
/// let look = |value: &StructuralView| {
///     seen.push(value.type_index());
///     WalkResult::Advance
/// };
/// structural_walk(&Array::new(vec![1i64, 2]), look, WalkOrder::PostOrder).unwrap();
/// assert_eq!(seen, [1, 1, 71]);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WalkOrder {
    /// Before the children.
    #[default]
    PreOrder,
    /// After the children.
    PostOrder,
}

/// What a walk does next.
///
/// ```
/// use tvm_ffi::*;
/// let mut count = 0;
/// let skip = |_: Array<i64>| {
///     count += 1;
///     WalkResult::Skip
/// };
/// structural_walk(&Array::new(vec![1i64, 2]), skip, WalkOrder::PreOrder).unwrap();
/// assert_eq!(count, 1);
/// ```
#[derive(Debug)]
pub enum WalkResult {
    /// Goes on.
    Advance,
    /// Leaves out the children.
    Skip,
    /// Stops.
    Interrupt,
    /// Stops with a value.
    InterruptWith(Any),
}

impl WalkResult {
    /// Stops with a value.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let find = |x: i64| if x > 1 { WalkResult::interrupt_with(x) } else { WalkResult::Advance };
    /// let found = structural_walk(&Array::new(vec![1i64, 2]), find, WalkOrder::PreOrder).unwrap();
    /// assert_eq!(found.unwrap().value.try_as::<i64>(), Some(2));
    /// ```
    pub fn interrupt_with<T: Into<Any>>(value: T) -> Self {
        Self::InterruptWith(value.into())
    }
}

/// What a handler of a walk may return.
///
/// ```
/// use tvm_ffi::*;
/// let check = |x: i64| -> Result<WalkResult> {
///     ensure!(x < 2, VALUE_ERROR, "{x} is too large");
///     Ok(WalkResult::Advance)
/// };
/// assert!(structural_walk(&Array::new(vec![1i64, 2]), check, WalkOrder::PreOrder).is_err());
/// ```
pub trait IntoWalkResult {
    /// The result.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// assert!(matches!(WalkResult::Skip.into_walk_result(), Ok(WalkResult::Skip)));
    /// let failed: Result<WalkResult> = Err(Error::new(VALUE_ERROR, "no", ""));
    /// assert!(failed.into_walk_result().is_err());
    /// ```
    fn into_walk_result(self) -> Result<WalkResult>;
}
impl IntoWalkResult for WalkResult {
    fn into_walk_result(self) -> Result<WalkResult> {
        Ok(self)
    }
}
impl IntoWalkResult for Result<WalkResult> {
    fn into_walk_result(self) -> Result<WalkResult> {
        self
    }
}

/// Why a visit stopped early.
///
/// ```
/// use tvm_ffi::*;
/// let stop = |x: i64, _: &mut VisitContext<'_, ()>| Some(VisitInterrupt::with(x));
/// let stopped = structural_visit(&Array::new(vec![1i64, 2]), stop).unwrap();
/// assert_eq!(stopped.unwrap().value.try_as::<i64>(), Some(1));
/// ```
#[derive(Debug)]
pub struct VisitInterrupt {
    /// What the handler gave.
    pub value: Any,
}

impl VisitInterrupt {
    /// Stop with a value.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// assert_eq!(VisitInterrupt::with(5i64).value.try_as::<i64>(), Some(5));
    /// ```
    pub fn with<T: Into<Any>>(value: T) -> Self {
        Self { value: value.into() }
    }
}

/// What a visit gives: nothing, or why it stopped.
type Visited = Result<Option<VisitInterrupt>>;

/// What a handler of a visit may return.
#[doc(hidden)]
pub trait IntoVisitResult {
    fn into_visit_result(self) -> Visited;
}
impl IntoVisitResult for () {
    fn into_visit_result(self) -> Visited {
        Ok(None)
    }
}
impl IntoVisitResult for Result<()> {
    fn into_visit_result(self) -> Visited {
        self.map(|()| None)
    }
}
impl IntoVisitResult for Option<VisitInterrupt> {
    fn into_visit_result(self) -> Visited {
        Ok(self)
    }
}
impl IntoVisitResult for Visited {
    fn into_visit_result(self) -> Visited {
        self
    }
}

/// `ffi.VisitInterrupt`.
#[repr(C)]
#[derive(DeriveObject)]
#[type_key = "ffi.VisitInterrupt"]
#[type_index(TypeIndex::kTVMFFIVisitInterrupt)]
struct VisitInterruptObj {
    base: Object,
    value: Any,
}

type VisitFn = unsafe extern "C" fn(*mut VisitorObj, TVMFFIAny) -> TVMFFIAny;

#[repr(C)]
struct VisitorVTable {
    visit: VisitFn,
}

/// `ffi.StructuralVisitor` of one run. What follows `def_region_mode` is ours.
#[repr(C)]
struct VisitorObj {
    base: Object,
    vtable: *const VisitorVTable,
    def_region_mode: Cell<i32>,
    thread: ThreadId,
    /// Address of the Rust visitor, null after the run.
    owner: Cell<*const c_void>,
    /// The Rust visitor while a helper of it runs.
    exposed: Cell<*mut c_void>,
    panic: RefCell<Option<Box<dyn StdAny + Send>>>,
}

// SAFETY: starts with the layout of the type.
unsafe impl ObjectCore for VisitorObj {
    const TYPE_KEY: &'static str = "ffi.StructuralVisitor";
    const TYPE_DEPTH: i32 = 1;
    fn type_index() -> i32 {
        static INDEX: OnceLock<i32> = OnceLock::new();
        runtime_type_index(&INDEX, Self::TYPE_KEY)
    }
    unsafe fn object_header_mut(this: &mut Self) -> &mut TVMFFIObject {
        Object::object_header_mut(&mut this.base)
    }
}

/// The index of a type of the runtime.
pub(super) fn runtime_type_index(cell: &OnceLock<i32>, key: &str) -> i32 {
    *cell.get_or_init(|| {
        let mut index = 0;
        // SAFETY: both pointers are valid during the call.
        let code = unsafe { TVMFFITypeKeyToIndex(&TVMFFIByteArray::from_str(key), &mut index) };
        if let Err(error) = crate::check_safe_call!(code) {
            panic!("{key} is not registered: {error}");
        }
        index
    })
}

impl VisitorObj {
    fn region(&self) -> DefRegionKind {
        DefRegionKind::from_raw(self.def_region_mode.get())
    }
}

thread_local!(static ACTIVE: Cell<*const VisitorObj> = const { Cell::new(std::ptr::null()) });

fn runtime_error(message: &str) -> Error {
    Error::new(RUNTIME_ERROR, message, "")
}

/// Sets a cell, and sets it back when dropped.
pub(super) struct Restore<'a, T: Copy> {
    cell: &'a Cell<T>,
    old: T,
}
impl<'a, T: Copy> Restore<'a, T> {
    pub(super) fn set(cell: &'a Cell<T>, new: T) -> Self {
        Self { cell, old: cell.replace(new) }
    }
}
impl<T: Copy> Drop for Restore<'_, T> {
    fn drop(&mut self) {
        self.cell.set(self.old);
    }
}

fn active<V>(visitor: &V) -> Result<&'static VisitorObj> {
    let object = ACTIVE.get();
    if object.is_null() {
        return Err(runtime_error(
            "structural visitor helper called outside structural_visit or structural_walk",
        ));
    }
    // SAFETY: the object lives for the run, and helpers end before the run does.
    let object = unsafe { &*object };
    if object.owner.get() != visitor as *const V as *const c_void {
        return Err(runtime_error("structural visitor helper called on a non-active visitor"));
    }
    Ok(object)
}

/// Visits one value with its visitor; errors learn the way they came.
fn visit_value<V: StructuralVisitor>(
    visitor: &mut V,
    value: &TVMFFIAny,
    kind: DefRegionKind,
) -> Visited {
    if value.type_index == TypeIndex::kTVMFFINone as i32 {
        return Ok(None);
    }
    // SAFETY: the value is alive during the call.
    let view = unsafe { StructuralView::from_raw(value) };
    visitor.visit(view, kind).map_err(|error| error_path::add_object(error, value, "visit"))
}

unsafe extern "C" fn visit_from_hook<V: StructuralVisitor>(
    this: *mut VisitorObj,
    value: TVMFFIAny,
) -> TVMFFIAny {
    let object = &*this;
    let result = if object.thread != std::thread::current().id() {
        Err(runtime_error("structural visitor callback invoked from a different thread"))
    } else if object.owner.get().is_null() {
        Err(runtime_error("structural visitor was retained after its active call"))
    } else {
        let exposed = object.exposed.get() as *mut V;
        if exposed.is_null() {
            Err(runtime_error(
                "structural visitor may only be called by its active registered hook",
            ))
        } else {
            // The helper that exposed the visitor waits for this call, so its borrow is ours.
            let _hidden = Restore::set(&object.exposed, std::ptr::null_mut());
            let run = || visit_value(&mut *exposed, &value, object.region());
            catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|payload| {
                *object.panic.borrow_mut() = Some(payload);
                Err(runtime_error("panic in structural visitor callback"))
            })
        }
    };
    let encoded = match result {
        Ok(None) => Any::new(),
        Ok(Some(interrupt)) => {
            let made =
                ObjectArc::new(VisitInterruptObj { base: Object::new(), value: interrupt.value });
            let raw = ObjectArc::into_raw(made) as *const Object;
            Any::from(ObjectRef::from_data(ObjectArc::from_raw(raw)))
        }
        Err(error) => Any::from(error),
    };
    Any::into_raw_ffi_any(encoded)
}

/// What a hook has returned.
fn decode(result: Any) -> Visited {
    match result.type_index() {
        index if index == TypeIndex::kTVMFFINone as i32 => Ok(None),
        index if index == TypeIndex::kTVMFFIError as i32 => Err(Error::try_from(result)?),
        index if index == TypeIndex::kTVMFFIVisitInterrupt as i32 => {
            // SAFETY: the index says what the object is.
            let value = unsafe {
                (*(result.raw().data_union.v_obj as *const VisitInterruptObj)).value.clone()
            };
            Ok(Some(VisitInterrupt { value }))
        }
        _ => Err(Error::new(
            TYPE_ERROR,
            "structural visit hook must return None or ffi.VisitInterrupt",
            "",
        )),
    }
}

fn hook_of(type_index: i32) -> Option<Any> {
    static COLUMN: OnceLock<TypeAttrColumn> = OnceLock::new();
    let column = match COLUMN.get() {
        Some(column) => *column,
        None => *COLUMN.get_or_init({
            let found = TypeAttrColumn::new("__s_visit__")?;
            move || found
        }),
    };
    column.get(type_index)
}

/// The built-in descent: a hook, or the reflected fields.
fn descend<V: StructuralVisitor>(
    visitor: &mut V,
    object: &VisitorObj,
    value: &TVMFFIAny,
) -> Visited {
    if let Some(hook) = hook_of(value.type_index) {
        if !object.exposed.get().is_null() {
            return Err(runtime_error("structural visitor context is already exposed"));
        }
        let _exposed = Restore::set(&object.exposed, visitor as *mut V as *mut c_void);
        return decode(call_hook(&hook, object, value)?);
    }
    if value.type_index < TypeIndex::kTVMFFIStaticObjectBegin as i32 {
        return Ok(None);
    }
    // SAFETY: records of the type table are never freed.
    let Some(info) = (unsafe { TVMFFIGetTypeInfo(value.type_index).as_ref() }) else {
        return Err(runtime_error(&format!(
            "native visitor: unregistered type index {}",
            value.type_index
        )));
    };
    // SAFETY: the record is null or never freed.
    let kind = unsafe { info.metadata.as_ref() }.map_or(0, |m| m.structural_eq_hash_kind);
    let inherited = object.region();
    let begin = match inherited {
        DefRegionKind::Simple if kind == SEqHashKind::FreeVar as i32 => DefRegionKind::None,
        other => other,
    };
    for owner in ancestors_of(info).skip(1).chain(std::iter::once(info)) {
        for field in fields_of(owner) {
            const IGNORE: i64 = TVMFFIFieldFlagBitMask::kTVMFFIFieldFlagBitMaskSEqHashIgnore as i64;
            if field.flags & IGNORE != 0 {
                continue;
            }
            let name = field.name.as_str();
            let Some(getter) = field.getter else {
                return Err(runtime_error(&format!(
                    "native visitor: reflected field `{name}` has no getter"
                )));
            };
            let mut child = Any::new();
            // SAFETY: the object is of the type that has the field.
            unsafe {
                let at = (value.data_union.v_obj as *mut u8).offset(field.offset as isize);
                let code = getter(at as *mut c_void, child.as_data_ptr());
                crate::check_safe_call!(code)?;
            }
            let region = begin.of_field(field.flags);
            let _region = Restore::set(&object.def_region_mode, region as i32);
            let visited = visit_value(visitor, child.raw(), region)
                .map_err(|error| error_path::add_field(error, name, "visit"))?;
            if visited.is_some() {
                return Ok(visited);
            }
        }
    }
    Ok(None)
}

fn call_hook(hook: &Any, object: &VisitorObj, value: &TVMFFIAny) -> Result<Any> {
    let this = object as *const VisitorObj as *mut VisitorObj;
    if let Some(address) = hook.try_as::<*mut c_void>() {
        if address.is_null() {
            return Err(runtime_error("structural visit hook is null"));
        }
        // SAFETY: the column holds functions of this type.
        return Ok(unsafe {
            let call: VisitFn = std::mem::transmute(address);
            Any::from_raw_ffi_any(call(this, *value))
        });
    }
    let Some(function) = hook.try_as::<Function>() else {
        return Err(Error::new(
            TYPE_ERROR,
            "__s_visit__ must be an opaque function pointer or ffi.Function",
            "",
        ));
    };
    let mut visitor = TVMFFIAny::new();
    // SAFETY: both are alive during the call.
    unsafe {
        visitor.type_index = (*(this as *const TVMFFIObject)).type_index;
        visitor.data_union.v_obj = this as *mut TVMFFIObject;
        function.call_packed(&[AnyView::from_raw(visitor), AnyView::from_raw(*value)])
    }
}

/// One run over a value.
fn run<V: StructuralVisitor>(visitor: &mut V, root: &TVMFFIAny) -> Visited {
    struct Table<V>(PhantomData<V>);
    impl<V: StructuralVisitor> Table<V> {
        const TABLE: &'static VisitorVTable = &VisitorVTable { visit: visit_from_hook::<V> };
    }
    let object = ObjectArc::new(VisitorObj {
        base: Object::new(),
        vtable: Table::<V>::TABLE,
        def_region_mode: Cell::new(DefRegionKind::None as i32),
        thread: std::thread::current().id(),
        owner: Cell::new(visitor as *const V as *const c_void),
        exposed: Cell::new(std::ptr::null_mut()),
        panic: RefCell::new(None),
    });
    struct End<'a>(&'a VisitorObj, *const VisitorObj);
    impl Drop for End<'_> {
        fn drop(&mut self) {
            self.0.owner.set(std::ptr::null());
            ACTIVE.set(self.1);
        }
    }
    let end = End(&object, ACTIVE.replace(&*object));
    let result = visit_value(visitor, root, DefRegionKind::None);
    drop(end);
    let payload = object.panic.borrow_mut().take();
    if let Some(payload) = payload {
        resume_unwind(payload);
    }
    result
}

/// Decides how values are visited.
///
/// ```
/// use tvm_ffi::*;
/// #[derive(Default)]
/// struct Depth {
///     now: usize,
///     most: usize,
/// }
/// impl StructuralVisitor for Depth {
///     fn visit(
///         &mut self,
///         value: &StructuralView,
///         kind: DefRegionKind,
///     ) -> Result<Option<VisitInterrupt>> {
///         self.now += 1;
///         self.most = self.most.max(self.now);
///         let result = self.default_visit_children(value, kind);
///         self.now -= 1;
///         result
///     }
/// }
/// let mut depth = Depth::default();
/// structural_visit(&Array::new(vec![Array::new(vec![1i64])]), &mut depth).unwrap();
/// assert_eq!(depth.most, 3);
/// ```
pub trait StructuralVisitor: Sized {
    /// Visits one value. Nothing descends but this.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// #[derive(Default)]
    /// struct Count(usize);
    /// impl StructuralVisitor for Count {
    ///     fn visit(
    ///         &mut self,
    ///         value: &StructuralView,
    ///         kind: DefRegionKind,
    ///     ) -> Result<Option<VisitInterrupt>> {
    ///         self.0 += 1;
    ///         self.default_visit_children(value, kind)
    ///     }
    /// }
    /// let mut count = Count::default();
    /// structural_visit(&Array::new(vec![1i64, 2]), &mut count).unwrap();
    /// assert_eq!(count.0, 3);
    /// ```
    fn visit(&mut self, value: &StructuralView, def_region_kind: DefRegionKind) -> Visited;

    /// Visits another value with [`StructuralVisitor::visit`].
    ///
    /// ```
    /// use tvm_ffi::*;
    /// #[derive(Default)]
    /// struct Count(usize);
    /// impl StructuralVisitor for Count {
    ///     fn visit(
    ///         &mut self,
    ///         value: &StructuralView,
    ///         kind: DefRegionKind,
    ///     ) -> Result<Option<VisitInterrupt>> {
    ///         self.0 += 1;
    ///         match value.cast::<Array<i64>>() {
    ///             // The last first.
    ///             Some(items) => {
    ///                 self.visit_child(&items.get(1)?, kind)?;
    ///                 self.visit_child(&items.get(0)?, kind)
    ///             }
    ///             None => Ok(None),
    ///         }
    ///     }
    /// }
    /// let mut count = Count::default();
    /// structural_visit(&Array::new(vec![1i64, 2]), &mut count).unwrap();
    /// assert_eq!(count.0, 3);
    /// ```
    fn visit_child<T>(&mut self, child: &T, def_region_kind: DefRegionKind) -> Visited
    where
        for<'x> AnyView<'x>: From<&'x T>,
    {
        let object = active(self)?;
        let region = object.region().enter(def_region_kind);
        let _region = Restore::set(&object.def_region_mode, region as i32);
        visit_value(self, AnyView::from(child).raw(), region)
    }

    /// Visits the children of a value.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// #[derive(Default)]
    /// struct Count(usize);
    /// impl StructuralVisitor for Count {
    ///     fn visit(
    ///         &mut self,
    ///         value: &StructuralView,
    ///         kind: DefRegionKind,
    ///     ) -> Result<Option<VisitInterrupt>> {
    ///         self.0 += 1;
    ///         self.default_visit_children(value, kind)
    ///     }
    /// }
    /// let mut count = Count::default();
    /// structural_visit(&Array::new(vec![1i64, 2]), &mut count).unwrap();
    /// assert_eq!(count.0, 3);
    /// ```
    fn default_visit_children(
        &mut self,
        value: &StructuralView,
        def_region_kind: DefRegionKind,
    ) -> Visited {
        let value = AnyView::from(value);
        builtin_children(self, value.raw(), def_region_kind)
            .map_err(|error| error_path::add_descent(error, value.raw(), "visit"))
    }
}

fn builtin_children<V: StructuralVisitor>(
    visitor: &mut V,
    value: &TVMFFIAny,
    def_region_kind: DefRegionKind,
) -> Visited {
    let object = active(visitor)?;
    let region = object.region().enter(def_region_kind);
    let _region = Restore::set(&object.def_region_mode, region as i32);
    descend(visitor, object, value)
}

/// What [`structural_visit`] takes.
///
/// ```
/// use tvm_ffi::*;
/// fn run<M>(root: &Array<i64>, visitor: impl IntoVisitor<M>) -> bool {
///     structural_visit(root, visitor).unwrap().is_some()
/// }
/// let stop = |_: i64, _: &mut VisitContext<'_, ()>| Some(VisitInterrupt::with(1i64));
/// assert!(run(&Array::new(vec![1i64]), stop));
/// ```
pub trait IntoVisitor<Marker> {
    #[doc(hidden)]
    fn visit_root(self, root: TVMFFIAny) -> Visited;
}
impl<V: StructuralVisitor> IntoVisitor<V> for &mut V {
    fn visit_root(self, root: TVMFFIAny) -> Visited {
        run(self, &root)
    }
}

/// Visits a value. None, or why the visit stopped.
///
/// ```
/// use tvm_ffi::*;
/// let root = Array::new(vec![1i64, 2, 3]);
/// let callback = |x: i64, _: &mut VisitContext<'_, ()>| {
///     (x == 2).then(|| VisitInterrupt::with(x))
/// };
/// let stopped = structural_visit(&root, callback).unwrap().unwrap();
/// assert_eq!(stopped.value.try_as::<i64>(), Some(2));
/// ```
pub fn structural_visit<R, M>(root: &R, visitor: impl IntoVisitor<M>) -> Visited
where
    for<'x> AnyView<'x>: From<&'x R>,
{
    visitor.visit_root(*AnyView::from(root).raw())
}

/// Walks over a value.
///
/// ```
/// use tvm_ffi::*;
/// let root = Array::new(vec![1i64, 2, 3]);
/// let mut sum = 0;
/// structural_walk(
///     &root,
///     |x: i64| {
///         sum += x;
///         WalkResult::Advance
///     },
///     WalkOrder::PreOrder,
/// )
/// .unwrap();
/// assert_eq!(sum, 6);
/// ```
pub fn structural_walk<R, M, H>(root: &R, walker: H, order: WalkOrder) -> Visited
where
    H: IntoWalker<M>,
    for<'x> AnyView<'x>: From<&'x R>,
{
    walker.into_walker().walk_root(*AnyView::from(root).raw(), order)
}

/// The handlers of a walk.
///
/// ```
/// use tvm_ffi::*;
/// #[derive(Default)]
/// struct Sum(i64);
/// #[dispatch(walk)]
/// impl Sum {
///     fn walk_int(&mut self, x: i64) -> WalkResult {
///         self.0 += x;
///         WalkResult::Advance
///     }
/// }
/// let mut sum = Sum::default();
/// structural_walk(&Array::new(vec![1i64, 2]), &mut sum, WalkOrder::PreOrder).unwrap();
/// assert_eq!(sum.0, 3);
/// ```
pub trait WalkDispatch: Sized {
    /// Calls the handler of a value, if there is one.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// struct Sum(i64);
    /// // What `#[dispatch(walk)]` writes.
    /// impl WalkDispatch for Sum {
    ///     fn dispatch_walk(
    ///         &mut self,
    ///         value: &StructuralView,
    ///         _: DefRegionKind,
    ///     ) -> Option<Result<WalkResult>> {
    ///         value.cast::<i64>().map(|x| {
    ///             self.0 += x;
    ///             Ok(WalkResult::Advance)
    ///         })
    ///     }
    /// }
    /// let mut walker = WalkWithContextPolicy::new(Sum(0), DefaultContextPolicy);
    /// structural_walk(&Array::new(vec![1i64, 2]), &mut walker, WalkOrder::PreOrder).unwrap();
    /// assert_eq!(walker.state().0, 3);
    /// ```
    fn dispatch_walk(
        &mut self,
        value: &StructuralView,
        def_region_kind: DefRegionKind,
    ) -> Option<Result<WalkResult>>;
}
impl<V: WalkDispatch> WalkDispatch for &mut V {
    fn dispatch_walk(
        &mut self,
        value: &StructuralView,
        def_region_kind: DefRegionKind,
    ) -> Option<Result<WalkResult>> {
        (**self).dispatch_walk(value, def_region_kind)
    }
}

/// What [`structural_walk`] takes.
///
/// ```
/// use tvm_ffi::*;
/// let handlers = (
///     |_: bool| WalkResult::Interrupt,
///     |_: i64| WalkResult::Advance,
/// );
/// let result = structural_walk(&Array::new(vec![1i64, 2]), handlers, WalkOrder::PreOrder);
/// assert!(result.unwrap().is_none());
/// ```
pub trait IntoWalker<Marker> {
    #[doc(hidden)]
    type Walker: NativeVisit;
    #[doc(hidden)]
    fn into_walker(self) -> Self::Walker;
}

/// Runs a walk.
#[doc(hidden)]
pub trait NativeVisit {
    fn walk_root(self, root: TVMFFIAny, order: WalkOrder) -> Visited;
}

/// A walk as a visitor; `policy` replaces the descent.
struct WalkEngine<'a, W, P> {
    walker: &'a mut W,
    policy: Option<&'a P>,
    order: WalkOrder,
}

impl<W: WalkDispatch, P: ContextPolicy<W>> WalkEngine<'_, W, P> {
    fn children(&mut self, value: &StructuralView, kind: DefRegionKind) -> Visited {
        match self.policy {
            None => builtin_children(self, AnyView::from(value).raw(), kind),
            Some(policy) => {
                let mut context = VisitContext::new(self, value, kind, None);
                policy.default_visit(value, &mut context)
            }
        }
    }
}

impl<W: WalkDispatch, P: ContextPolicy<W>> StructuralVisitor for WalkEngine<'_, W, P> {
    fn visit(&mut self, value: &StructuralView, kind: DefRegionKind) -> Visited {
        if self.order == WalkOrder::PostOrder {
            let visited = self.children(value, kind)?;
            if visited.is_some() {
                return Ok(visited);
            }
        }
        match self.walker.dispatch_walk(value, kind).unwrap_or(Ok(WalkResult::Advance))? {
            WalkResult::Advance if self.order == WalkOrder::PreOrder => self.children(value, kind),
            WalkResult::Advance | WalkResult::Skip => Ok(None),
            WalkResult::Interrupt => Ok(Some(VisitInterrupt { value: Any::new() })),
            WalkResult::InterruptWith(value) => Ok(Some(VisitInterrupt { value })),
        }
    }
}

impl<W: WalkDispatch, P: ContextPolicy<W>> ContextEngine<W> for WalkEngine<'_, W, P> {
    fn state(&self) -> &W {
        self.walker
    }
    fn state_mut(&mut self) -> &mut W {
        self.walker
    }
    fn object(&self) -> Result<&'static VisitorObj> {
        active(self)
    }
    fn dispatch(&mut self, value: &TVMFFIAny, kind: DefRegionKind) -> Visited {
        // SAFETY: the value is alive during the call.
        self.visit_child(unsafe { StructuralView::from_raw(value) }, kind)
    }
    fn descend(&mut self, value: &TVMFFIAny, kind: DefRegionKind) -> Visited {
        builtin_children(self, value, kind)
    }
}

/// One handler of a walk, or a tuple of them: the first that fits is called.
///
/// ```
/// use tvm_ffi::*;
/// fn run<M>(root: i64, link: impl WalkChainLink<M>) -> bool {
///     structural_walk(&root, link, WalkOrder::PreOrder).unwrap().is_some()
/// }
/// assert!(run(4, (|_: bool| WalkResult::Advance, |_: i64| WalkResult::Interrupt)));
/// ```
pub trait WalkChainLink<Marker> {
    #[doc(hidden)]
    fn try_call(
        &mut self,
        value: &StructuralView,
        kind: DefRegionKind,
    ) -> Option<Result<WalkResult>>;
}

macro_rules! markers {
    ($($name:ident $(<$param:ident>)?),* $(,)?) => {$(
        #[doc(hidden)]
        pub struct $name $(<$param>(PhantomData<$param>))?;
    )*};
}
markers!(
    ByCatchAllLink,
    ByCatchAllKindLink,
    ByOwnedLink<T>,
    ByOwnedKindLink<T>,
    ByNodeLink<N>,
    ByNodeKindLink<N>,
    ByChainLink<M>,
    ByWalkDispatchLink,
    ByPolicyWalk,
    ByVisitOwnedLink<T>,
    ByVisitNodeLink<N>,
    ByVisitCatchAllLink,
    ByVisitChainLink<M>,
    ByVisitCallbacks<M>,
);

impl<F, O> WalkChainLink<ByCatchAllLink> for F
where
    F: FnMut(&StructuralView) -> O,
    O: IntoWalkResult,
{
    fn try_call(&mut self, value: &StructuralView, _: DefRegionKind) -> Option<Result<WalkResult>> {
        Some(self(value).into_walk_result())
    }
}
impl<F, O> WalkChainLink<ByCatchAllKindLink> for F
where
    F: FnMut(&StructuralView, DefRegionKind) -> O,
    O: IntoWalkResult,
{
    fn try_call(
        &mut self,
        value: &StructuralView,
        kind: DefRegionKind,
    ) -> Option<Result<WalkResult>> {
        Some(self(value, kind).into_walk_result())
    }
}
impl<F, T, O> WalkChainLink<ByOwnedLink<T>> for F
where
    F: FnMut(T) -> O,
    T: AnyCompatible,
    O: IntoWalkResult,
{
    fn try_call(&mut self, value: &StructuralView, _: DefRegionKind) -> Option<Result<WalkResult>> {
        value.cast::<T>().map(|value| self(value).into_walk_result())
    }
}
impl<F, T, O> WalkChainLink<ByOwnedKindLink<T>> for F
where
    F: FnMut(T, DefRegionKind) -> O,
    T: AnyCompatible,
    O: IntoWalkResult,
{
    fn try_call(
        &mut self,
        value: &StructuralView,
        kind: DefRegionKind,
    ) -> Option<Result<WalkResult>> {
        value.cast::<T>().map(|value| self(value, kind).into_walk_result())
    }
}
impl<F, N, O> WalkChainLink<ByNodeLink<N>> for F
where
    F: FnMut(&N) -> O,
    N: ObjectCore,
    O: IntoWalkResult,
{
    fn try_call(&mut self, value: &StructuralView, _: DefRegionKind) -> Option<Result<WalkResult>> {
        value.as_node::<N>().map(|node| self(node).into_walk_result())
    }
}
impl<F, N, O> WalkChainLink<ByNodeKindLink<N>> for F
where
    F: FnMut(&N, DefRegionKind) -> O,
    N: ObjectCore,
    O: IntoWalkResult,
{
    fn try_call(
        &mut self,
        value: &StructuralView,
        kind: DefRegionKind,
    ) -> Option<Result<WalkResult>> {
        value.as_node::<N>().map(|node| self(node, kind).into_walk_result())
    }
}
impl<V: WalkDispatch> WalkChainLink<ByWalkDispatchLink> for &mut V {
    fn try_call(
        &mut self,
        value: &StructuralView,
        kind: DefRegionKind,
    ) -> Option<Result<WalkResult>> {
        self.dispatch_walk(value, kind)
    }
}

/// Links as a dispatcher.
#[doc(hidden)]
pub struct ChainWalker<Link, Marker> {
    link: Link,
    _phantom: PhantomData<Marker>,
}
impl<L: WalkChainLink<M>, M> WalkDispatch for ChainWalker<L, M> {
    fn dispatch_walk(
        &mut self,
        value: &StructuralView,
        kind: DefRegionKind,
    ) -> Option<Result<WalkResult>> {
        self.link.try_call(value, kind)
    }
}
impl<L: WalkChainLink<M>, M> NativeVisit for ChainWalker<L, M> {
    fn walk_root(mut self, root: TVMFFIAny, order: WalkOrder) -> Visited {
        let policy: Option<&DefaultContextPolicy> = None;
        run(&mut WalkEngine { walker: &mut self, policy, order }, &root)
    }
}
impl<L: WalkChainLink<M>, M> IntoWalker<M> for L {
    type Walker = ChainWalker<L, M>;
    fn into_walker(self) -> Self::Walker {
        ChainWalker { link: self, _phantom: PhantomData }
    }
}

/// A walk whose descent a policy decides.
///
/// ```
/// use tvm_ffi::*;
/// #[derive(Default)]
/// struct Sum(i64);
/// #[dispatch(walk)]
/// impl Sum {
///     fn walk_int(&mut self, x: i64) -> WalkResult {
///         self.0 += x;
///         WalkResult::Advance
///     }
/// }
/// let mut walker = WalkWithContextPolicy::new(Sum::default(), DefaultContextPolicy);
/// structural_walk(&Array::new(vec![1i64, 2]), &mut walker, WalkOrder::PreOrder).unwrap();
/// assert_eq!(walker.state().0, 3);
/// ```
pub struct WalkWithContextPolicy<W, P> {
    walker: W,
    policy: P,
}
impl<W: WalkDispatch, P: ContextPolicy<W>> WalkWithContextPolicy<W, P> {
    /// A walk with a policy.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// #[derive(Default)]
    /// struct Sum(i64);
    /// #[dispatch(walk)]
    /// impl Sum {
    ///     fn walk_int(&mut self, x: i64) -> WalkResult {
    ///         self.0 += x;
    ///         WalkResult::Advance
    ///     }
    /// }
    /// let mut walker = WalkWithContextPolicy::new(Sum::default(), DefaultContextPolicy);
    /// structural_walk(&Array::new(vec![1i64, 2]), &mut walker, WalkOrder::PostOrder).unwrap();
    /// assert_eq!(walker.state().0, 3);
    /// ```
    pub fn new(walker: W, policy: P) -> Self {
        Self { walker, policy }
    }
    /// The walker.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// #[derive(Default)]
    /// struct Sum(i64);
    /// #[dispatch(walk)]
    /// impl Sum {
    ///     fn walk_int(&mut self, x: i64) -> WalkResult {
    ///         self.0 += x;
    ///         WalkResult::Advance
    ///     }
    /// }
    /// let walker = WalkWithContextPolicy::new(Sum(7), DefaultContextPolicy);
    /// assert_eq!(walker.state().0, 7);
    /// ```
    pub fn state(&self) -> &W {
        &self.walker
    }
    /// The walker.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// #[derive(Default)]
    /// struct Sum(i64);
    /// #[dispatch(walk)]
    /// impl Sum {
    ///     fn walk_int(&mut self, x: i64) -> WalkResult {
    ///         self.0 += x;
    ///         WalkResult::Advance
    ///     }
    /// }
    /// let mut walker = WalkWithContextPolicy::new(Sum(0), DefaultContextPolicy);
    /// walker.state_mut().0 = 10;
    /// structural_walk(&1i64, &mut walker, WalkOrder::PreOrder).unwrap();
    /// assert_eq!(walker.state().0, 11);
    /// ```
    pub fn state_mut(&mut self) -> &mut W {
        &mut self.walker
    }
    /// The walker.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// #[derive(Default)]
    /// struct Sum(i64);
    /// #[dispatch(walk)]
    /// impl Sum {
    ///     fn walk_int(&mut self, x: i64) -> WalkResult {
    ///         self.0 += x;
    ///         WalkResult::Advance
    ///     }
    /// }
    /// let mut walker = WalkWithContextPolicy::new(Sum(0), DefaultContextPolicy);
    /// structural_walk(&1i64, &mut walker, WalkOrder::PreOrder).unwrap();
    /// let Sum(total) = walker.into_state();
    /// assert_eq!(total, 1);
    /// ```
    pub fn into_state(self) -> W {
        self.walker
    }
}
impl<W: WalkDispatch, P: ContextPolicy<W>> NativeVisit for &mut WalkWithContextPolicy<W, P> {
    fn walk_root(self, root: TVMFFIAny, order: WalkOrder) -> Visited {
        let WalkWithContextPolicy { walker, policy } = self;
        run(&mut WalkEngine { walker, policy: Some(&*policy), order }, &root)
    }
}
impl<W: WalkDispatch, P: ContextPolicy<W>> NativeVisit for WalkWithContextPolicy<W, P> {
    fn walk_root(mut self, root: TVMFFIAny, order: WalkOrder) -> Visited {
        (&mut self).walk_root(root, order)
    }
}
impl<W: WalkDispatch, P: ContextPolicy<W>> IntoWalker<ByPolicyWalk>
    for WalkWithContextPolicy<W, P>
{
    type Walker = Self;
    fn into_walker(self) -> Self {
        self
    }
}
impl<W: WalkDispatch, P: ContextPolicy<W>> IntoWalker<ByPolicyWalk>
    for &mut WalkWithContextPolicy<W, P>
{
    type Walker = Self;
    fn into_walker(self) -> Self {
        self
    }
}

/// What stands behind a [`VisitContext`].
trait ContextEngine<State> {
    fn state(&self) -> &State;
    fn state_mut(&mut self) -> &mut State;
    fn object(&self) -> Result<&'static VisitorObj>;
    fn dispatch(&mut self, value: &TVMFFIAny, kind: DefRegionKind) -> Visited;
    fn descend(&mut self, value: &TVMFFIAny, kind: DefRegionKind) -> Visited;
}

/// The policies that are still to come.
struct Continuation<'a, State> {
    policy: &'a dyn ContextPolicy<State>,
    next: Option<&'a Continuation<'a, State>>,
}

/// What a callback or a policy sees of the visit.
///
/// ```
/// use tvm_ffi::*;
/// let add = |x: i64, ctx: &mut VisitContext<'_, i64>| *ctx.state_mut() += x;
/// let mut sum = VisitCallbacks::new(0i64, add);
/// structural_visit(&Array::new(vec![1i64, 2]), &mut sum).unwrap();
/// assert_eq!(sum.into_state(), 3);
/// ```
pub struct VisitContext<'a, State> {
    engine: &'a mut dyn ContextEngine<State>,
    value: &'a StructuralView,
    kind: DefRegionKind,
    rest: Option<&'a Continuation<'a, State>>,
    _not_send: PhantomData<*mut ()>,
}

impl<'a, State> VisitContext<'a, State> {
    fn new(
        engine: &'a mut dyn ContextEngine<State>,
        value: &'a StructuralView,
        kind: DefRegionKind,
        rest: Option<&'a Continuation<'a, State>>,
    ) -> Self {
        Self { engine, value, kind, rest, _not_send: PhantomData }
    }

    /// The state of the visit.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let look = |x: i64, ctx: &mut VisitContext<'_, i64>| assert_eq!(*ctx.state(), x);
    /// structural_visit(&7i64, &mut VisitCallbacks::new(7i64, look)).unwrap();
    /// ```
    pub fn state(&self) -> &State {
        self.engine.state()
    }
    /// The state of the visit.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let add = |x: i64, ctx: &mut VisitContext<'_, i64>| *ctx.state_mut() += x;
    /// let mut sum = VisitCallbacks::new(0i64, add);
    /// structural_visit(&Array::new(vec![1i64, 2]), &mut sum).unwrap();
    /// assert_eq!(sum.into_state(), 3);
    /// ```
    pub fn state_mut(&mut self) -> &mut State {
        self.engine.state_mut()
    }
    /// The value that is visited.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let look = |x: i64, ctx: &mut VisitContext<'_, ()>| {
    ///     assert_eq!(ctx.current().cast::<i64>(), Some(x));
    /// };
    /// structural_visit(&7i64, look).unwrap();
    /// ```
    pub fn current(&self) -> &StructuralView {
        self.value
    }
    /// The region of the value.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let look = |_: i64, ctx: &mut VisitContext<'_, ()>| {
    ///     assert_eq!(ctx.def_region_kind(), DefRegionKind::None);
    /// };
    /// structural_visit(&7i64, look).unwrap();
    /// ```
    pub fn def_region_kind(&self) -> DefRegionKind {
        self.kind
    }
    /// Visits another value in the same region.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let add = |x: i64, ctx: &mut VisitContext<'_, i64>| *ctx.state_mut() += x;
    /// let more = |_: bool, ctx: &mut VisitContext<'_, i64>| ctx.visit(&5i64);
    /// let mut sum = VisitCallbacks::new(0i64, (add, more));
    /// structural_visit(&true, &mut sum).unwrap();
    /// assert_eq!(*sum.state(), 5);
    /// ```
    pub fn visit<T>(&mut self, value: &T) -> Visited
    where
        for<'x> AnyView<'x>: From<&'x T>,
    {
        self.visit_with(value, self.kind)
    }
    /// Visits another value.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let look = |_: i64, ctx: &mut VisitContext<'_, ()>| {
    ///     assert_eq!(ctx.def_region_kind(), DefRegionKind::Simple);
    /// };
    /// let more = |_: bool, ctx: &mut VisitContext<'_, ()>| ctx.visit_with(&5i64, DefRegionKind::Simple);
    /// structural_visit(&true, (look, more)).unwrap();
    /// ```
    pub fn visit_with<T>(&mut self, value: &T, kind: DefRegionKind) -> Visited
    where
        for<'x> AnyView<'x>: From<&'x T>,
    {
        self.engine.dispatch(AnyView::from(value).raw(), kind)
    }
    /// Visits the children of the current value.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let add = |x: i64, ctx: &mut VisitContext<'_, i64>| *ctx.state_mut() += x;
    /// let into = |_: Array<i64>, ctx: &mut VisitContext<'_, i64>| ctx.visit_children();
    /// let mut sum = VisitCallbacks::new(0i64, (add, into));
    /// structural_visit(&Array::new(vec![1i64, 2]), &mut sum).unwrap();
    /// assert_eq!(*sum.state(), 3);
    /// ```
    pub fn visit_children(&mut self) -> Visited {
        let value = self.value;
        self.descend(value, self.kind)
    }
    /// Visits the children of another value, not that value itself.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let add = |x: i64, ctx: &mut VisitContext<'_, i64>| *ctx.state_mut() += x;
    /// let other = |_: bool, ctx: &mut VisitContext<'_, i64>| {
    ///     ctx.default_visit_children(&Array::new(vec![1i64, 2]), DefRegionKind::None)
    /// };
    /// let mut sum = VisitCallbacks::new(0i64, (add, other));
    /// structural_visit(&true, &mut sum).unwrap();
    /// assert_eq!(*sum.state(), 3);
    /// ```
    pub fn default_visit_children<T>(&mut self, value: &T, kind: DefRegionKind) -> Visited
    where
        for<'x> AnyView<'x>: From<&'x T>,
    {
        let view = AnyView::from(value);
        if view.type_index() == TypeIndex::kTVMFFINone as i32 {
            return Ok(None);
        }
        // SAFETY: the value is alive during the call.
        self.descend(unsafe { StructuralView::from_raw(view.raw()) }, kind)
    }

    fn descend(&mut self, value: &StructuralView, kind: DefRegionKind) -> Visited {
        match self.rest {
            None => self.engine.descend(AnyView::from(value).raw(), kind),
            Some(Continuation { policy, next }) => {
                // The next policy runs inside the region, as the built-in descent would.
                let object = self.engine.object()?;
                let kind = object.region().enter(kind);
                let _region = Restore::set(&object.def_region_mode, kind as i32);
                let mut context = VisitContext::new(&mut *self.engine, value, kind, *next);
                policy.default_visit(value, &mut context)
            }
        }
    }
}

/// Decides how a visit descends where no handler does.
///
/// ```
/// use tvm_ffi::*;
/// struct Count;
/// impl ContextPolicy<i64> for Count {
///     fn default_visit(
///         &self,
///         value: &StructuralView,
///         ctx: &mut VisitContext<'_, i64>,
///     ) -> Result<Option<VisitInterrupt>> {
///         *ctx.state_mut() += 1;
///         ctx.default_visit_children(value, ctx.def_region_kind())
///     }
/// }
/// let ignore = |_: bool, _: &mut VisitContext<'_, i64>| ();
/// let mut visitor = VisitCallbacks::new(0i64, ignore).with_policy(Count);
/// structural_visit(&Array::new(vec![1i64, 2]), &mut visitor).unwrap();
/// assert!(*visitor.state() >= 1);
/// ```
pub trait ContextPolicy<State> {
    /// Descends into a value.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// struct Stay;
    /// impl ContextPolicy<i64> for Stay {
    ///     fn default_visit(
    ///         &self,
    ///         _: &StructuralView,
    ///         _: &mut VisitContext<'_, i64>,
    ///     ) -> Result<Option<VisitInterrupt>> {
    ///         Ok(None)
    ///     }
    /// }
    /// let add = |x: i64, ctx: &mut VisitContext<'_, i64>| *ctx.state_mut() += x;
    /// let mut sum = VisitCallbacks::new(0i64, add).with_policy(Stay);
    /// structural_visit(&Array::new(vec![1i64, 2]), &mut sum).unwrap();
    /// assert_eq!(*sum.state(), 0);
    /// ```
    fn default_visit(
        &self,
        value: &StructuralView,
        visitor: &mut VisitContext<'_, State>,
    ) -> Visited;
}

/// The built-in descent.
///
/// ```
/// use tvm_ffi::*;
/// let add = |x: i64, ctx: &mut VisitContext<'_, i64>| *ctx.state_mut() += x;
/// let mut sum = VisitCallbacks::new(0i64, add).with_policy(DefaultContextPolicy);
/// structural_visit(&Array::new(vec![1i64, 2]), &mut sum).unwrap();
/// assert_eq!(*sum.state(), 3);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct DefaultContextPolicy;
impl<State> ContextPolicy<State> for DefaultContextPolicy {
    fn default_visit(&self, _: &StructuralView, visitor: &mut VisitContext<'_, State>) -> Visited {
        visitor.visit_children()
    }
}
impl<State, A: ContextPolicy<State>, B: ContextPolicy<State>> ContextPolicy<State> for (A, B) {
    fn default_visit(
        &self,
        value: &StructuralView,
        visitor: &mut VisitContext<'_, State>,
    ) -> Visited {
        let inner = Continuation { policy: &self.1, next: visitor.rest };
        let kind = visitor.kind;
        let mut context = VisitContext::new(&mut *visitor.engine, value, kind, Some(&inner));
        self.0.default_visit(value, &mut context)
    }
}

/// One callback of a visit, or a tuple of them: the first that fits is called.
///
/// ```
/// use tvm_ffi::*;
/// fn run<M>(root: i64, link: impl VisitChainLink<i64, M>) -> i64 {
///     let mut visitor = VisitCallbacks::new(0i64, link);
///     structural_visit(&root, &mut visitor).unwrap();
///     visitor.into_state()
/// }
/// let never = |_: bool, _: &mut VisitContext<'_, i64>| ();
/// let add = |x: i64, ctx: &mut VisitContext<'_, i64>| *ctx.state_mut() += x;
/// assert_eq!(run(4, (never, add)), 4);
/// ```
pub trait VisitChainLink<State, Marker> {
    #[doc(hidden)]
    fn try_visit(
        &self,
        value: &StructuralView,
        context: &mut VisitContext<'_, State>,
    ) -> Option<Visited>;
}
impl<State, F, T, O> VisitChainLink<State, ByVisitOwnedLink<T>> for F
where
    F: Fn(T, &mut VisitContext<'_, State>) -> O,
    T: AnyCompatible,
    O: IntoVisitResult,
{
    fn try_visit(
        &self,
        value: &StructuralView,
        context: &mut VisitContext<'_, State>,
    ) -> Option<Visited> {
        value.cast::<T>().map(|value| self(value, context).into_visit_result())
    }
}
impl<State, F, N, O> VisitChainLink<State, ByVisitNodeLink<N>> for F
where
    F: Fn(&N, &mut VisitContext<'_, State>) -> O,
    N: ObjectCore,
    O: IntoVisitResult,
{
    fn try_visit(
        &self,
        value: &StructuralView,
        context: &mut VisitContext<'_, State>,
    ) -> Option<Visited> {
        value.as_node::<N>().map(|node| self(node, context).into_visit_result())
    }
}
impl<State, F, O> VisitChainLink<State, ByVisitCatchAllLink> for F
where
    F: Fn(&StructuralView, &mut VisitContext<'_, State>) -> O,
    O: IntoVisitResult,
{
    fn try_visit(
        &self,
        value: &StructuralView,
        context: &mut VisitContext<'_, State>,
    ) -> Option<Visited> {
        Some(self(value, context).into_visit_result())
    }
}

macro_rules! chains {
    ($(($($link:ident $marker:ident $index:tt),+))*) => {$(
        impl<$($link, $marker),+> WalkChainLink<ByChainLink<($($marker,)+)>> for ($($link,)+)
        where
            $($link: WalkChainLink<$marker>),+
        {
            fn try_call(
                &mut self,
                value: &StructuralView,
                kind: DefRegionKind,
            ) -> Option<Result<WalkResult>> {
                $(if let Some(result) = self.$index.try_call(value, kind) {
                    return Some(result);
                })+
                None
            }
        }
        impl<State, $($link, $marker),+> VisitChainLink<State, ByVisitChainLink<($($marker,)+)>>
            for ($($link,)+)
        where
            $($link: VisitChainLink<State, $marker>),+
        {
            fn try_visit(
                &self,
                value: &StructuralView,
                context: &mut VisitContext<'_, State>,
            ) -> Option<Visited> {
                $(if let Some(result) = self.$index.try_visit(value, context) {
                    return Some(result);
                })+
                None
            }
        }
    )*};
}
for_each_chain!(chains);

/// Callbacks with a state, as a visitor that can be used again.
///
/// ```
/// use tvm_ffi::*;
/// let add = |x: i64, ctx: &mut VisitContext<'_, i64>| *ctx.state_mut() += x;
/// let mut sum = VisitCallbacks::new(0i64, add);
/// for _ in 0..2 {
///     structural_visit(&Array::new(vec![1i64, 2]), &mut sum).unwrap();
/// }
/// assert_eq!(*sum.state(), 6);
/// ```
pub struct VisitCallbacks<State, Link, Marker, Policy = DefaultContextPolicy> {
    state: State,
    // Shared with the call that runs: a callback gets at the visitor and may be called again.
    link: Rc<Link>,
    policy: Rc<Policy>,
    _phantom: PhantomData<Marker>,
}

impl<State, Link: VisitChainLink<State, Marker>, Marker> VisitCallbacks<State, Link, Marker> {
    /// A visitor with a state.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let add = |x: i64, ctx: &mut VisitContext<'_, i64>| *ctx.state_mut() += x;
    /// let mut sum = VisitCallbacks::new(10i64, add);
    /// structural_visit(&1i64, &mut sum).unwrap();
    /// assert_eq!(*sum.state(), 11);
    /// ```
    pub fn new(state: State, callbacks: Link) -> Self {
        let policy = Rc::new(DefaultContextPolicy);
        Self { state, link: Rc::new(callbacks), policy, _phantom: PhantomData }
    }
}

impl<State, Link, Marker, Policy> VisitCallbacks<State, Link, Marker, Policy> {
    /// The same callbacks with a policy.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let add = |x: i64, ctx: &mut VisitContext<'_, i64>| *ctx.state_mut() += x;
    /// let mut sum = VisitCallbacks::new(0i64, add).with_policy(DefaultContextPolicy);
    /// structural_visit(&Array::new(vec![1i64]), &mut sum).unwrap();
    /// assert_eq!(*sum.state(), 1);
    /// ```
    pub fn with_policy<P: ContextPolicy<State>>(
        self,
        policy: P,
    ) -> VisitCallbacks<State, Link, Marker, P> {
        let Self { state, link, .. } = self;
        VisitCallbacks { state, link, policy: Rc::new(policy), _phantom: PhantomData }
    }
    /// The state.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let ignore = |_: i64, _: &mut VisitContext<'_, i64>| ();
    /// assert_eq!(*VisitCallbacks::new(7i64, ignore).state(), 7);
    /// ```
    pub fn state(&self) -> &State {
        &self.state
    }
    /// The state.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let add = |x: i64, ctx: &mut VisitContext<'_, i64>| *ctx.state_mut() += x;
    /// let mut sum = VisitCallbacks::new(0i64, add);
    /// structural_visit(&1i64, &mut sum).unwrap();
    /// *sum.state_mut() = 0;
    /// structural_visit(&2i64, &mut sum).unwrap();
    /// assert_eq!(*sum.state(), 2);
    /// ```
    pub fn state_mut(&mut self) -> &mut State {
        &mut self.state
    }
    /// The state.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let collect = |x: i64, ctx: &mut VisitContext<'_, Vec<i64>>| ctx.state_mut().push(x);
    /// let mut visitor = VisitCallbacks::new(Vec::new(), collect);
    /// structural_visit(&Array::new(vec![1i64, 2]), &mut visitor).unwrap();
    /// assert_eq!(visitor.into_state(), [1, 2]);
    /// ```
    pub fn into_state(self) -> State {
        self.state
    }
}

impl<State, Link, Marker, Policy> StructuralVisitor for VisitCallbacks<State, Link, Marker, Policy>
where
    Link: VisitChainLink<State, Marker>,
    Policy: ContextPolicy<State>,
{
    fn visit(&mut self, value: &StructuralView, kind: DefRegionKind) -> Visited {
        let (link, policy) = (self.link.clone(), self.policy.clone());
        let descent = Continuation { policy: &*policy, next: None };
        let mut context = VisitContext::new(self, value, kind, Some(&descent));
        if let Some(result) = link.try_visit(value, &mut context) {
            return result;
        }
        let mut context = VisitContext::new(self, value, kind, None);
        policy.default_visit(value, &mut context)
    }
}

impl<State, Link, Marker, Policy> ContextEngine<State>
    for VisitCallbacks<State, Link, Marker, Policy>
where
    Link: VisitChainLink<State, Marker>,
    Policy: ContextPolicy<State>,
{
    fn state(&self) -> &State {
        &self.state
    }
    fn state_mut(&mut self) -> &mut State {
        &mut self.state
    }
    fn object(&self) -> Result<&'static VisitorObj> {
        active(self)
    }
    fn dispatch(&mut self, value: &TVMFFIAny, kind: DefRegionKind) -> Visited {
        // SAFETY: the value is alive during the call.
        self.visit_child(unsafe { StructuralView::from_raw(value) }, kind)
    }
    fn descend(&mut self, value: &TVMFFIAny, kind: DefRegionKind) -> Visited {
        builtin_children(self, value, kind)
            .map_err(|error| error_path::add_descent(error, value, "visit"))
    }
}

impl<L: VisitChainLink<(), M>, M> IntoVisitor<ByVisitCallbacks<M>> for L {
    fn visit_root(self, root: TVMFFIAny) -> Visited {
        run(&mut VisitCallbacks::new((), self), &root)
    }
}

/// The state of a visitor that is its own state. For generated code.
#[doc(hidden)]
pub trait VisitCallbackState<State> {
    fn callback_state(&self) -> &State;
    fn callback_state_mut(&mut self) -> &mut State;
}

/// The descent of a visitor with a policy. For generated code.
#[doc(hidden)]
pub fn default_visit_with_policy<V>(
    visitor: &mut V,
    policy: &impl ContextPolicy<V>,
    value: &StructuralView,
    kind: DefRegionKind,
) -> Visited
where
    V: StructuralVisitor + VisitCallbackState<V>,
{
    struct Own<'a, V>(&'a mut V);
    impl<V: StructuralVisitor + VisitCallbackState<V>> ContextEngine<V> for Own<'_, V> {
        fn state(&self) -> &V {
            self.0.callback_state()
        }
        fn state_mut(&mut self) -> &mut V {
            self.0.callback_state_mut()
        }
        fn object(&self) -> Result<&'static VisitorObj> {
            active(&*self.0)
        }
        fn dispatch(&mut self, value: &TVMFFIAny, kind: DefRegionKind) -> Visited {
            // SAFETY: the value is alive during the call.
            self.0.visit_child(unsafe { StructuralView::from_raw(value) }, kind)
        }
        fn descend(&mut self, value: &TVMFFIAny, kind: DefRegionKind) -> Visited {
            builtin_children(self.0, value, kind)
                .map_err(|error| error_path::add_descent(error, value, "visit"))
        }
    }
    let mut own = Own(visitor);
    let mut context = VisitContext::new(&mut own, value, kind, None);
    policy.default_visit(value, &mut context)
}
