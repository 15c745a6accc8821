// SPDX-License-Identifier: Apache-2.0
//! Maps and mutations of the structure of values.
//!
//! A *map* calls a handler for every value and puts the results together. A *mutator* decides about the
//! descent. An object that nobody else refers to may be changed in place; every other one is copied.
use super::structural_visit::{runtime_type_index, DefRegionKind, Restore, WalkOrder};
use super::unchanged::same_cell;
pub use super::StructuralView;
use super::{error_path, Unchanged, UnchangedOr};
use crate::any::{Any, AnyView};
use crate::error::{Error, Result, RUNTIME_ERROR, TYPE_ERROR};
use crate::function::Function;
use crate::object::{Object, ObjectArc, ObjectCore, ObjectIdentity, ObjectRef, TypeIndex};
use crate::reflection::{ancestors_of, fields_of, get_type_attr, SEqHashKind};
use crate::type_traits::{AnyCompatible, ContainerElement};
use std::any::Any as StdAny;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::ops::Deref;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::rc::Rc;
use std::sync::OnceLock;
use std::thread::ThreadId;
use tvm_ffi_sys::*;

const OBJECT_BEGIN: i32 = TypeIndex::kTVMFFIStaticObjectBegin as i32;
const UNCHANGED: i32 = TypeIndex::kTVMFFIUnchanged as i32;

/// Whether a value may be changed in place.
///
/// ```
/// use tvm_ffi::*;
/// let mode = |value: MutateValue<'_>, _: &mut MutateContext<'_>| {
///     assert_eq!(value.inplace_mode(), InplaceMode::Allow);
///     Unchanged
/// };
/// structural_mutate(Array::new(vec![1i64]), mode).unwrap();
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InplaceMode {
    /// It is copied.
    #[default]
    Disallow,
    /// It may be changed, if nobody else refers to it.
    Allow,
}

fn mode_of(allow: bool) -> InplaceMode {
    if allow {
        InplaceMode::Allow
    } else {
        InplaceMode::Disallow
    }
}

/// What a handler may return: a value, [`Unchanged`], or a `Result` of one.
#[doc(hidden)]
pub trait IntoMutateResult {
    fn into_mutate_result(self) -> Result<Any>;
}
impl<T> IntoMutateResult for T
where
    Any: From<T>,
{
    fn into_mutate_result(self) -> Result<Any> {
        Ok(Any::from(self))
    }
}
impl<T> IntoMutateResult for Result<T>
where
    Any: From<T>,
{
    fn into_mutate_result(self) -> Result<Any> {
        self.map(Any::from)
    }
}

/// A value with the permission to change it, which is used up by passing it on.
///
/// ```compile_fail
/// use tvm_ffi::*;
/// fn handler(value: MutateValue<'_>, ctx: &mut MutateContext<'_>) -> Result<Any> {
///     let node = value.as_node::<Object>();
///     let result = ctx.default_maybe_inplace_mutate(value);
///     drop(node);
///     result
/// }
/// ```
pub struct MutateValue<'a, T = Any> {
    data: TVMFFIAny,
    mode: InplaceMode,
    _phantom: PhantomData<(&'a (), *mut T)>,
}

impl<'a> MutateValue<'a> {
    /// A value that is only borrowed.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// struct Double;
    /// #[dispatch(mutate)]
    /// impl Double {
    ///     fn mutate_array(&mut self, value: MutateValue<'_, Array<i64>>, mutator: &mut Mutator) -> Result<Any> {
    ///         // Without the permission to change the array.
    ///         let borrowed = MutateValue::borrowed(value.as_value());
    ///         assert_eq!(borrowed.inplace_mode(), InplaceMode::Disallow);
    ///         mutator.default_maybe_inplace_mutate(self, borrowed)
    ///     }
    /// }
    /// structural_mutate(Array::new(vec![1i64]), Double).unwrap();
    /// ```
    pub fn borrowed(value: &'a StructuralView) -> Self {
        Self::from_raw(*AnyView::from(value).raw(), InplaceMode::Disallow)
    }
}

impl<'a, T> MutateValue<'a, T> {
    fn from_raw(data: TVMFFIAny, mode: InplaceMode) -> Self {
        Self { data, mode, _phantom: PhantomData }
    }
    /// Whether the value may be changed.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let root = Array::new(vec![1i64]);
    /// let look = |value: MutateValue<'_, Array<i64>>, _: &mut MutateContext<'_>| {
    ///     // `root` below is a second reference.
    ///     assert_eq!(value.inplace_mode(), InplaceMode::Disallow);
    ///     Unchanged
    /// };
    /// structural_mutate(root.clone(), look).unwrap();
    /// assert_eq!(root.len(), 1);
    /// ```
    pub fn inplace_mode(&self) -> InplaceMode {
        self.mode
    }
    /// The value.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let look = |value: MutateValue<'_>, _: &mut MutateContext<'_>| {
    ///     assert_eq!(value.as_value().cast::<i64>(), Some(1));
    ///     Unchanged
    /// };
    /// structural_mutate(1i64, look).unwrap();
    /// ```
    pub fn as_value(&self) -> &StructuralView {
        // SAFETY: the value outlives self.
        unsafe { StructuralView::from_raw(&self.data) }
    }
    /// The same value with a type, if it is of that type.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let array = |value: MutateValue<'_>, ctx: &mut MutateContext<'_>| -> Result<Any> {
    ///     match value.try_cast::<Array<i64>>() {
    ///         Ok(array) => ctx.default_maybe_inplace_mutate(array),
    ///         Err(value) => Ok(Any::from(value.as_value().cast::<i64>().unwrap_or(0) + 1)),
    ///     }
    /// };
    /// let result = structural_mutate(Array::new(vec![1i64]), array).unwrap();
    /// assert_eq!(Array::<i64>::try_from(result).unwrap().get(0).unwrap(), 2);
    /// ```
    pub fn try_cast<U: ContainerElement>(self) -> Result<MutateValue<'a, U>, Self> {
        // SAFETY: the value is alive.
        match unsafe { U::element_strict(&self.data) } {
            true => Ok(MutateValue::from_raw(self.data, self.mode)),
            false => Err(self),
        }
    }
    /// The same value without a type.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let look = |value: MutateValue<'_, i64>, _: &mut MutateContext<'_>| {
    ///     let value: MutateValue<'_> = value.into_untyped();
    ///     value.as_value().to_owned()
    /// };
    /// assert_eq!(structural_mutate(3i64, look).unwrap().try_as::<i64>(), Some(3));
    /// ```
    pub fn into_untyped(self) -> MutateValue<'a> {
        MutateValue::from_raw(self.data, self.mode)
    }
}

impl<T> Deref for MutateValue<'_, T> {
    type Target = StructuralView;
    fn deref(&self) -> &StructuralView {
        self.as_value()
    }
}

/// A value that may be changed in place.
///
/// ```
/// use tvm_ffi::*;
/// struct Double;
/// impl StructuralMutator for Double {
///     fn dispatch_mutate(&mut self, value: &StructuralView, kind: DefRegionKind) -> Result<Any> {
///         match value.cast::<i64>() {
///             Some(x) => Ok(Any::from(2 * x)),
///             None => self.default_mutate(value, kind),
///         }
///     }
///     fn dispatch_maybe_inplace_mutate(
///         &mut self,
///         value: InplaceValue<'_>,
///         kind: DefRegionKind,
///     ) -> Result<Any> {
///         match value.cast::<i64>() {
///             Some(x) => Ok(Any::from(2 * x)),
///             None => self.default_maybe_inplace_mutate(value, kind),
///         }
///     }
/// }
/// let result = structural_mutate(Array::new(vec![1i64, 2]), &mut Double).unwrap();
/// assert_eq!(Array::<i64>::try_from(result).unwrap().get(1).unwrap(), 4);
/// ```
pub struct InplaceValue<'a> {
    data: TVMFFIAny,
    _phantom: PhantomData<(&'a (), *mut ())>,
}

impl InplaceValue<'_> {
    /// The value.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// struct Double;
    /// impl StructuralMutator for Double {
    ///     fn dispatch_mutate(&mut self, value: &StructuralView, kind: DefRegionKind) -> Result<Any> {
    ///         match value.cast::<i64>() {
    ///             Some(x) => Ok(Any::from(2 * x)),
    ///             None => self.default_mutate(value, kind),
    ///         }
    ///     }
    ///     fn dispatch_maybe_inplace_mutate(
    ///         &mut self,
    ///         value: InplaceValue<'_>,
    ///         kind: DefRegionKind,
    ///     ) -> Result<Any> {
    ///         match value.cast::<i64>() {
    ///             Some(x) => Ok(Any::from(2 * x)),
    ///             None => self.default_mutate(value.as_value(), kind),
    ///         }
    ///     }
    /// }
    /// let result = structural_mutate(Array::new(vec![1i64, 2]), &mut Double).unwrap();
    /// assert_eq!(Array::<i64>::try_from(result).unwrap().get(1).unwrap(), 4);
    /// ```
    pub fn as_value(&self) -> &StructuralView {
        // SAFETY: the value outlives self.
        unsafe { StructuralView::from_raw(&self.data) }
    }
    /// An owned copy.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// struct Double;
    /// impl StructuralMutator for Double {
    ///     fn dispatch_mutate(&mut self, value: &StructuralView, kind: DefRegionKind) -> Result<Any> {
    ///         match value.cast::<i64>() {
    ///             Some(x) => Ok(Any::from(2 * x)),
    ///             None => self.default_mutate(value, kind),
    ///         }
    ///     }
    ///     fn dispatch_maybe_inplace_mutate(
    ///         &mut self,
    ///         value: InplaceValue<'_>,
    ///         kind: DefRegionKind,
    ///     ) -> Result<Any> {
    ///         match value.cast::<i64>() {
    ///             Some(x) => Ok(Any::from(2 * x)),
    ///             None => {
    ///                 let items: Array<i64> = value.to_owned().try_into()?;
    ///                 Ok(Any::from(items.iter().map(|x| 2 * x).collect::<Array<i64>>()))
    ///             }
    ///         }
    ///     }
    /// }
    /// let result = structural_mutate(Array::new(vec![1i64, 2]), &mut Double).unwrap();
    /// assert_eq!(Array::<i64>::try_from(result).unwrap().get(1).unwrap(), 4);
    /// ```
    #[allow(clippy::should_implement_trait, clippy::wrong_self_convention)]
    pub fn to_owned(&self) -> Any {
        self.as_value().to_owned()
    }
}

impl Deref for InplaceValue<'_> {
    type Target = StructuralView;
    fn deref(&self) -> &StructuralView {
        self.as_value()
    }
}

/// What variables become.
///
/// ```
/// use tvm_ffi::*;
/// let mut remap = StructuralVarRemap::default();
/// let learn = |value: &StructuralView| {
///     remap.set(value, &Any::from(7i64)).unwrap();
///     WalkResult::Advance
/// };
/// let variable = Shape::from([1i64]);
/// structural_walk(&variable, learn, WalkOrder::PreOrder).unwrap();
/// let ask = |value: &StructuralView| {
///     assert_eq!(remap.get(value).unwrap().unwrap().try_as::<i64>(), Some(7));
///     WalkResult::Advance
/// };
/// structural_walk(&variable, ask, WalkOrder::PreOrder).unwrap();
/// ```
#[derive(Default)]
pub struct StructuralVarRemap {
    table: HashMap<ObjectIdentity, Any>,
}

impl StructuralVarRemap {
    fn key(var: &StructuralView) -> Result<ObjectIdentity> {
        match var.cast::<ObjectRef>() {
            Some(object) => Ok(ObjectIdentity::of(&object)),
            None => {
                Err(Error::new(TYPE_ERROR, "variable-remap keys must be object-backed values", ""))
            }
        }
    }
    /// What a variable becomes.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let remap = StructuralVarRemap::default();
    /// let ask = |value: &StructuralView| {
    ///     assert!(remap.get(value).unwrap().is_none());
    ///     WalkResult::Advance
    /// };
    /// structural_walk(&Shape::from([1i64]), ask, WalkOrder::PreOrder).unwrap();
    /// ```
    pub fn get(&self, var: &StructuralView) -> Result<Option<Any>> {
        Ok(self.table.get(&Self::key(var)?).cloned())
    }
    /// Says what a variable becomes.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let mut remap = StructuralVarRemap::default();
    /// let learn = |value: &StructuralView| {
    ///     remap.set(value, &Any::from(7i64)).unwrap();
    ///     assert_eq!(remap.get(value).unwrap().unwrap().try_as::<i64>(), Some(7));
    ///     WalkResult::Advance
    /// };
    /// structural_walk(&Shape::from([1i64]), learn, WalkOrder::PreOrder).unwrap();
    /// ```
    pub fn set(&mut self, var: &StructuralView, mutated_value: &Any) -> Result<()> {
        self.table.insert(Self::key(var)?, mutated_value.clone());
        Ok(())
    }
    /// Forgets everything.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let mut remap = StructuralVarRemap::default();
    /// let learn = |value: &StructuralView| {
    ///     remap.set(value, &Any::from(7i64)).unwrap();
    ///     remap.clear();
    ///     assert!(remap.get(value).unwrap().is_none());
    ///     WalkResult::Advance
    /// };
    /// structural_walk(&Shape::from([1i64]), learn, WalkOrder::PreOrder).unwrap();
    /// ```
    pub fn clear(&mut self) {
        self.table.clear()
    }
}

type MutateFn = unsafe extern "C" fn(*mut MutatorObj, TVMFFIAny) -> TVMFFIAny;
type RemapSetFn = unsafe extern "C" fn(*mut MutatorObj, TVMFFIAny, TVMFFIAny) -> TVMFFIAny;

#[repr(C)]
struct MutatorVTable {
    mutate: MutateFn,
    maybe_inplace_mutate: MutateFn,
    var_remap_get: MutateFn,
    var_remap_set: RemapSetFn,
}

/// `ffi.StructuralMutator` of one run. What follows `def_region_mode` is ours.
#[repr(C)]
struct MutatorObj {
    base: Object,
    vtable: *const MutatorVTable,
    def_region_mode: Cell<i32>,
    thread: ThreadId,
    owner: Cell<*const c_void>,
    exposed: Cell<*mut c_void>,
    panic: RefCell<Option<Box<dyn StdAny + Send>>>,
    remap: RefCell<StructuralVarRemap>,
}

// SAFETY: starts with the layout of the type.
unsafe impl ObjectCore for MutatorObj {
    const TYPE_KEY: &'static str = "ffi.StructuralMutator";
    const TYPE_DEPTH: i32 = 1;
    fn type_index() -> i32 {
        static INDEX: OnceLock<i32> = OnceLock::new();
        runtime_type_index(&INDEX, Self::TYPE_KEY)
    }
    unsafe fn object_header_mut(this: &mut Self) -> &mut TVMFFIObject {
        Object::object_header_mut(&mut this.base)
    }
}

impl MutatorObj {
    fn region(&self) -> DefRegionKind {
        DefRegionKind::from_raw(self.def_region_mode.get())
    }
    fn enter(&self, kind: DefRegionKind) -> (DefRegionKind, Restore<'_, i32>) {
        let region = self.region().enter(kind);
        (region, Restore::set(&self.def_region_mode, region as i32))
    }
}

thread_local!(static ACTIVE: Cell<*const MutatorObj> = const { Cell::new(std::ptr::null()) });

fn runtime_error(message: &str) -> Error {
    Error::new(RUNTIME_ERROR, message, "")
}

fn active<U>(mutator: &U) -> Result<&'static MutatorObj> {
    let object = ACTIVE.get();
    if object.is_null() {
        return Err(runtime_error("structural mutator helper called outside structural_mutate"));
    }
    // SAFETY: the object lives for the run, and helpers end before the run does.
    let object = unsafe { &*object };
    if object.owner.get() != mutator as *const U as *const c_void {
        return Err(runtime_error("structural mutator helper called on a non-active mutator"));
    }
    Ok(object)
}

fn is_unique(value: &TVMFFIAny) -> bool {
    use std::sync::atomic::Ordering;
    value.type_index >= OBJECT_BEGIN && {
        // SAFETY: the index says that it is an object.
        let count = unsafe { (*value.data_union.v_obj).combined_ref_count.load(Ordering::Acquire) };
        count & COMBINED_REF_COUNT_MASK_U32 == 1
    }
}

/// Values that have no parts.
fn is_plain_inline(value: &TVMFFIAny) -> bool {
    value.type_index < TypeIndex::kTVMFFIRawStr as i32
        || value.type_index == TypeIndex::kTVMFFISmallStr as i32
        || value.type_index == TypeIndex::kTVMFFISmallBytes as i32
        || value.type_index == UNCHANGED
}

/// The new value, or the old one where it is unchanged.
fn resolve(result: Any, original: &TVMFFIAny) -> Any {
    match result.type_index() {
        // SAFETY: the original is alive.
        UNCHANGED => unsafe { Any::copy_of_view(original) },
        _ => result,
    }
}

fn marked(result: Any) -> UnchangedOr<Any> {
    match result.type_index() {
        UNCHANGED => UnchangedOr::unchanged(),
        _ => UnchangedOr::changed(result),
    }
}

/// Mutates one value with its mutator; errors learn the way they came. The result may be the marker.
fn dispatch_value<U: StructuralMutator>(
    mutator: &mut U,
    value: &TVMFFIAny,
    kind: DefRegionKind,
    allow: bool,
) -> Result<Any> {
    let result = if allow && is_unique(value) {
        let value = InplaceValue { data: *value, _phantom: PhantomData };
        mutator.dispatch_maybe_inplace_mutate(value, kind)
    } else {
        // SAFETY: the value is alive during the call.
        mutator.dispatch_mutate(unsafe { StructuralView::from_raw(value) }, kind)
    };
    match result {
        Err(error) if !U::RECORDS_VALUES => Err(error_path::add_object(error, value, "map")),
        result => result,
    }
}

/// The default mutation of a value; errors learn the way they came.
fn default_value<U: StructuralMutator>(
    mutator: &mut U,
    value: &TVMFFIAny,
    kind: DefRegionKind,
    mode: InplaceMode,
) -> Result<Any> {
    StructuralMutator::on_default_mutate(mutator, MutateValue::from_raw(*value, mode), kind)
        .map_err(|error| error_path::add_descent(error, value, "map"))
}

/// Runs a function of the vtable with the exposed mutator.
unsafe fn from_hook<U: StructuralMutator>(
    this: *mut MutatorObj,
    call: impl FnOnce(&mut U, DefRegionKind) -> Result<Any>,
) -> TVMFFIAny {
    let object = &*this;
    let exposed = object.exposed.get() as *mut U;
    let result = if object.thread != std::thread::current().id() {
        Err(runtime_error("structural mutator callback invoked from a different thread"))
    } else if object.owner.get().is_null() {
        Err(runtime_error("structural mutator was retained after its active call"))
    } else if exposed.is_null() {
        Err(runtime_error("structural mutator may only be called by its active registered hook"))
    } else {
        let _hidden = Restore::set(&object.exposed, std::ptr::null_mut());
        let run = || call(&mut *exposed, object.region());
        catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|payload| {
            *object.panic.borrow_mut() = Some(payload);
            Err(runtime_error("panic in structural mutator callback"))
        })
    };
    Any::into_raw_ffi_any(result.unwrap_or_else(Any::from))
}

unsafe extern "C" fn hook_mutate<U: StructuralMutator>(
    this: *mut MutatorObj,
    value: TVMFFIAny,
) -> TVMFFIAny {
    from_hook(this, |mutator: &mut U, kind| dispatch_value(mutator, &value, kind, false))
}
unsafe extern "C" fn hook_inplace<U: StructuralMutator>(
    this: *mut MutatorObj,
    value: TVMFFIAny,
) -> TVMFFIAny {
    from_hook(this, |mutator: &mut U, kind| dispatch_value(mutator, &value, kind, true))
}
unsafe extern "C" fn hook_remap_get<U: StructuralMutator>(
    this: *mut MutatorObj,
    var: TVMFFIAny,
) -> TVMFFIAny {
    from_hook(this, |mutator: &mut U, _| {
        Ok(mutator.var_remap_get(StructuralView::from_raw(&var))?.unwrap_or_default())
    })
}
unsafe extern "C" fn hook_remap_set<U: StructuralMutator>(
    this: *mut MutatorObj,
    var: TVMFFIAny,
    mapped: TVMFFIAny,
) -> TVMFFIAny {
    from_hook(this, |mutator: &mut U, _| {
        let mapped = Any::copy_of_view(&mapped);
        mutator.var_remap_set(StructuralView::from_raw(&var), &mapped)?;
        Ok(Any::new())
    })
}

fn hook_of(type_index: i32, allow: bool) -> Option<Any> {
    let inplace = allow.then(|| get_type_attr(type_index, "__s_maybe_inplace_mutate__")).flatten();
    inplace.or_else(|| get_type_attr(type_index, "__s_mutate__"))
}

fn call_hook(hook: &Any, object: &MutatorObj, value: &TVMFFIAny) -> Result<Any> {
    let this = object as *const MutatorObj as *mut MutatorObj;
    let result = if let Some(address) = hook.try_as::<*mut c_void>() {
        if address.is_null() {
            return Err(runtime_error("structural mutation hook is null"));
        }
        // SAFETY: the column holds functions of this type.
        unsafe {
            let call: MutateFn = std::mem::transmute(address);
            Any::from_raw_ffi_any(call(this, *value))
        }
    } else if let Some(function) = hook.try_as::<Function>() {
        let mut mutator = TVMFFIAny::new();
        // SAFETY: both are alive during the call.
        unsafe {
            mutator.type_index = (*(this as *const TVMFFIObject)).type_index;
            mutator.data_union.v_obj = this as *mut TVMFFIObject;
            function.call_packed(&[AnyView::from_raw(mutator), AnyView::from_raw(*value)])?
        }
    } else {
        return Err(Error::new(
            TYPE_ERROR,
            "__s_mutate__ must be an opaque function pointer or ffi.Function",
            "",
        ));
    };
    match result.try_as::<Error>() {
        Some(error) => Err(error),
        None => Ok(result),
    }
}

/// The built-in descent. The result may be the marker.
fn descend<U: StructuralMutator>(
    mutator: &mut U,
    value: &TVMFFIAny,
    kind: DefRegionKind,
    allow: bool,
) -> Result<Any> {
    let object = active(mutator)?;
    let (region, _region) = object.enter(kind);
    if let Some(hook) = hook_of(value.type_index, allow && is_unique(value)) {
        if !object.exposed.get().is_null() {
            return Err(runtime_error("structural mutator driver context is already exposed"));
        }
        let _exposed = Restore::set(&object.exposed, mutator as *mut U as *mut c_void);
        return call_hook(&hook, object, value);
    }
    if value.type_index < OBJECT_BEGIN {
        // SAFETY: the value is alive.
        return Ok(unsafe { Any::copy_of_view(value) });
    }
    // SAFETY: records of the type table are never freed.
    let Some(info) = (unsafe { TVMFFIGetTypeInfo(value.type_index).as_ref() }) else {
        return Err(runtime_error(&format!(
            "native structural map: unregistered type index {}",
            value.type_index
        )));
    };
    // SAFETY: the record is null or never freed.
    let shape = unsafe { info.metadata.as_ref() }.map_or(0, |m| m.structural_eq_hash_kind);
    let (is_var, is_dag) =
        (shape == SEqHashKind::FreeVar as i32, shape == SEqHashKind::DAGNode as i32);
    // SAFETY: the value is alive during the call.
    let view = unsafe { StructuralView::from_raw(value) };
    if is_var || is_dag {
        if let Some(known) = mutator.var_remap_get(view)? {
            if known.type_index() != TypeIndex::kTVMFFINone as i32 {
                return Ok(known);
            }
        }
    }
    if is_var && region == DefRegionKind::None {
        return Ok(Any::from(Unchanged));
    }
    let begin = match region {
        DefRegionKind::Simple if is_var => DefRegionKind::None,
        other => other,
    };
    let result = mutate_fields(mutator, object, value, info, begin)?;
    let changed = result.type_index() != UNCHANGED;
    if is_dag || (is_var && (region == DefRegionKind::Pattern || changed)) {
        mutator.var_remap_set(view, &result)?;
    }
    Ok(result)
}

fn shallow_copy(value: &TVMFFIAny, key: &str) -> Result<ObjectRef> {
    let Some(copier) = get_type_attr(value.type_index, "__ffi_shallow_copy__") else {
        crate::bail!(
            TYPE_ERROR,
            "type `{}` cannot use reflected structural mutation because it does not define \
             `__ffi_shallow_copy__`",
            key
        );
    };
    let Some(copier) = copier.try_as::<Function>() else {
        crate::bail!(TYPE_ERROR, "__ffi_shallow_copy__ must be an ffi.Function");
    };
    // SAFETY: the value is alive during the call.
    let copy = copier.call_packed(&[unsafe { AnyView::from_raw(*value) }])?;
    let same = same_cell(copy.raw(), value);
    if copy.type_index() != value.type_index || same {
        crate::bail!(
            TYPE_ERROR,
            "shallow copy callback must return a distinct object with the same type as its input"
        );
    }
    copy.try_into()
}

fn mutate_fields<U: StructuralMutator>(
    mutator: &mut U,
    object: &MutatorObj,
    value: &TVMFFIAny,
    info: &TVMFFITypeInfo,
    begin: DefRegionKind,
) -> Result<Any> {
    let copy = Any::from(shallow_copy(value, info.type_key.as_str())?);
    let mut is_changed = false;
    for owner in ancestors_of(info).skip(1).chain(std::iter::once(info)) {
        for field in fields_of(owner) {
            const IGNORE: i64 = TVMFFIFieldFlagBitMask::kTVMFFIFieldFlagBitMaskSEqHashIgnore as i64;
            if field.flags & IGNORE != 0 {
                continue;
            }
            let name = field.name.as_str();
            let Some(getter) = field.getter else {
                return Err(runtime_error(&format!(
                    "native structural map: reflected field `{name}` has no getter"
                )));
            };
            let Ok(offset) = isize::try_from(field.offset) else {
                return Err(runtime_error(&format!(
                    "native structural map: reflected field `{name}` has an invalid offset"
                )));
            };
            let mut child = Any::new();
            // SAFETY: the copy is of the type that has the field.
            let address = unsafe {
                let address =
                    (copy.raw().data_union.v_obj as *mut u8).offset(offset) as *mut c_void;
                crate::check_safe_call!(getter(address, child.as_data_ptr()))?;
                address
            };
            let region = begin.of_field(field.flags);
            let _region = Restore::set(&object.def_region_mode, region as i32);
            let result = dispatch_value(mutator, child.raw(), region, false)
                .map_err(|error| error_path::add_field(error, name, "map"))?;
            if result.type_index() == UNCHANGED || same_cell(result.raw(), child.raw()) {
                continue;
            }
            set_field(field, address, &result)
                .map_err(|error| error_path::add_field(error, name, "map"))?;
            is_changed = true;
        }
    }
    Ok(if is_changed { copy } else { Any::from(Unchanged) })
}

fn set_field(field: &TVMFFIFieldInfo, address: *mut c_void, value: &Any) -> Result<()> {
    if field.setter.is_null() {
        crate::bail!(
            TYPE_ERROR,
            "cannot structurally mutate field `{}` because it does not define a setter",
            field.name.as_str()
        );
    }
    const IS_FUNCTION: i64 = TVMFFIFieldFlagBitMask::kTVMFFIFieldFlagBitSetterIsFunctionObj as i64;
    // SAFETY: the flag says what the setter is; the address is that of the field.
    unsafe {
        if field.flags & IS_FUNCTION != 0 {
            let args = [AnyView::from(&address), AnyView::from(value)];
            let mut result = Any::new();
            let code = TVMFFIFunctionCall(
                field.setter,
                args.as_ptr() as *const TVMFFIAny,
                2,
                result.as_data_ptr(),
            );
            crate::check_safe_call!(code)
        } else {
            let setter: TVMFFIFieldSetter = std::mem::transmute(field.setter);
            crate::check_safe_call!(setter(address, value.raw()))
        }
    }
}

/// One run over a value.
fn run<U: StructuralMutator>(mutator: &mut U, root: Any) -> Result<Any> {
    struct Table<U>(PhantomData<U>);
    impl<U: StructuralMutator> Table<U> {
        const TABLE: &'static MutatorVTable = &MutatorVTable {
            mutate: hook_mutate::<U>,
            maybe_inplace_mutate: hook_inplace::<U>,
            var_remap_get: hook_remap_get::<U>,
            var_remap_set: hook_remap_set::<U>,
        };
    }
    let object = ObjectArc::new(MutatorObj {
        base: Object::new(),
        vtable: Table::<U>::TABLE,
        def_region_mode: Cell::new(DefRegionKind::None as i32),
        thread: std::thread::current().id(),
        owner: Cell::new(mutator as *const U as *const c_void),
        exposed: Cell::new(std::ptr::null_mut()),
        panic: RefCell::new(None),
        remap: RefCell::new(StructuralVarRemap::default()),
    });
    struct End<'a>(&'a MutatorObj, *const MutatorObj);
    impl Drop for End<'_> {
        fn drop(&mut self) {
            self.0.owner.set(std::ptr::null());
            ACTIVE.set(self.1);
        }
    }
    let end = End(&object, ACTIVE.replace(&*object));
    let result = dispatch_value(mutator, root.raw(), DefRegionKind::None, true);
    drop(end);
    let payload = object.panic.borrow_mut().take();
    if let Some(payload) = payload {
        resume_unwind(payload);
    }
    let result = result?;
    Ok(if result.type_index() == UNCHANGED { root } else { result })
}

/// Decides how values are mutated.
///
/// ```
/// use tvm_ffi::*;
/// struct Double;
/// impl StructuralMutator for Double {
///     fn dispatch_mutate(&mut self, value: &StructuralView, kind: DefRegionKind) -> Result<Any> {
///         match value.cast::<i64>() {
///             Some(x) => Ok(Any::from(2 * x)),
///             None => self.default_mutate(value, kind),
///         }
///     }
/// }
/// let result = structural_mutate(Array::new(vec![1i64]), &mut Double).unwrap();
/// assert_eq!(Array::<i64>::try_from(result).unwrap().get(0).unwrap(), 2);
/// ```
pub trait StructuralMutator: Sized {
    /// Errors already name the value that they came from.
    #[doc(hidden)]
    const RECORDS_VALUES: bool = false;

    /// Mutates a borrowed value.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// struct Double;
    /// impl StructuralMutator for Double {
    ///     fn dispatch_mutate(&mut self, value: &StructuralView, kind: DefRegionKind) -> Result<Any> {
    ///         match value.cast::<i64>() {
    ///             Some(x) => Ok(Any::from(2 * x)),
    ///             None => self.default_mutate(value, kind),
    ///         }
    ///     }
    /// }
    /// let result = structural_mutate(Array::new(vec![1i64, 2]), &mut Double).unwrap();
    /// assert_eq!(Array::<i64>::try_from(result).unwrap().get(1).unwrap(), 4);
    /// ```
    fn dispatch_mutate(&mut self, value: &StructuralView, kind: DefRegionKind) -> Result<Any>;

    /// Mutates a value that may be changed in place.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// struct Double;
    /// impl StructuralMutator for Double {
    ///     fn dispatch_mutate(&mut self, value: &StructuralView, kind: DefRegionKind) -> Result<Any> {
    ///         match value.cast::<i64>() {
    ///             Some(x) => Ok(Any::from(2 * x)),
    ///             None => self.default_mutate(value, kind),
    ///         }
    ///     }
    ///     fn dispatch_maybe_inplace_mutate(
    ///         &mut self,
    ///         value: InplaceValue<'_>,
    ///         kind: DefRegionKind,
    ///     ) -> Result<Any> {
    ///         match value.cast::<i64>() {
    ///             Some(x) => Ok(Any::from(2 * x)),
    ///             None => self.default_maybe_inplace_mutate(value, kind),
    ///         }
    ///     }
    /// }
    /// let result = structural_mutate(Array::new(vec![1i64, 2]), &mut Double).unwrap();
    /// assert_eq!(Array::<i64>::try_from(result).unwrap().get(1).unwrap(), 4);
    /// ```
    fn dispatch_maybe_inplace_mutate(
        &mut self,
        value: InplaceValue<'_>,
        kind: DefRegionKind,
    ) -> Result<Any> {
        self.dispatch_mutate(value.as_value(), kind)
    }

    #[doc(hidden)]
    fn on_default_mutate(&mut self, value: MutateValue<'_>, kind: DefRegionKind) -> Result<Any> {
        descend(self, &value.data, kind, value.mode == InplaceMode::Allow)
    }

    /// Mutates another value.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// struct Double;
    /// impl StructuralMutator for Double {
    ///     fn dispatch_mutate(&mut self, value: &StructuralView, kind: DefRegionKind) -> Result<Any> {
    ///         match value.cast::<i64>() {
    ///             Some(x) => Ok(Any::from(2 * x)),
    ///             None => self.mutate(&20i64, kind),
    ///         }
    ///     }
    /// }
    /// let result = structural_mutate(true, &mut Double).unwrap();
    /// assert_eq!(result.try_as::<i64>(), Some(40));
    /// ```
    fn mutate<T>(&mut self, value: &T, kind: DefRegionKind) -> Result<Any>
    where
        for<'x> AnyView<'x>: From<&'x T>,
    {
        let original = AnyView::from(value);
        let (kind, _region) = active(self)?.enter(kind);
        Ok(resolve(dispatch_value(self, original.raw(), kind, false)?, original.raw()))
    }

    /// Mutates an owned value, in place where nobody else refers to it.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// struct Double;
    /// impl StructuralMutator for Double {
    ///     fn dispatch_mutate(&mut self, value: &StructuralView, kind: DefRegionKind) -> Result<Any> {
    ///         match value.cast::<i64>() {
    ///             Some(x) => Ok(Any::from(2 * x)),
    ///             None => self.maybe_inplace_mutate(20i64, kind),
    ///         }
    ///     }
    /// }
    /// let result = structural_mutate(true, &mut Double).unwrap();
    /// assert_eq!(result.try_as::<i64>(), Some(40));
    /// ```
    fn maybe_inplace_mutate<T: Into<Any>>(&mut self, value: T, kind: DefRegionKind) -> Result<Any> {
        self.maybe_inplace_mutate_with_mode(value, kind, InplaceMode::Allow)
    }

    /// Mutates an owned value.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// struct Double;
    /// impl StructuralMutator for Double {
    ///     fn dispatch_mutate(&mut self, value: &StructuralView, kind: DefRegionKind) -> Result<Any> {
    ///         match value.cast::<i64>() {
    ///             Some(x) => Ok(Any::from(2 * x)),
    ///             None => self.maybe_inplace_mutate_with_mode(20i64, kind, InplaceMode::Disallow),
    ///         }
    ///     }
    /// }
    /// let result = structural_mutate(true, &mut Double).unwrap();
    /// assert_eq!(result.try_as::<i64>(), Some(40));
    /// ```
    fn maybe_inplace_mutate_with_mode<T: Into<Any>>(
        &mut self,
        value: T,
        kind: DefRegionKind,
        mode: InplaceMode,
    ) -> Result<Any> {
        let value = value.into();
        let (kind, _region) = active(self)?.enter(kind);
        let result = dispatch_value(self, value.raw(), kind, mode == InplaceMode::Allow)?;
        Ok(if result.type_index() == UNCHANGED { value } else { result })
    }

    /// Mutates the parts of a copy of a value.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// struct Double;
    /// impl StructuralMutator for Double {
    ///     fn dispatch_mutate(&mut self, value: &StructuralView, kind: DefRegionKind) -> Result<Any> {
    ///         match value.cast::<i64>() {
    ///             Some(x) => Ok(Any::from(2 * x)),
    ///             None => self.default_mutate(value, kind),
    ///         }
    ///     }
    /// }
    /// let result = structural_mutate(Array::new(vec![1i64, 2]), &mut Double).unwrap();
    /// assert_eq!(Array::<i64>::try_from(result).unwrap().get(1).unwrap(), 4);
    /// ```
    fn default_mutate<T>(&mut self, value: &T, kind: DefRegionKind) -> Result<Any>
    where
        for<'x> AnyView<'x>: From<&'x T>,
    {
        let original = AnyView::from(value);
        let result = default_value(self, original.raw(), kind, InplaceMode::Disallow)?;
        Ok(resolve(result, original.raw()))
    }

    /// Mutates the parts of a value.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// struct Double;
    /// impl StructuralMutator for Double {
    ///     fn dispatch_mutate(&mut self, value: &StructuralView, kind: DefRegionKind) -> Result<Any> {
    ///         match value.cast::<i64>() {
    ///             Some(x) => Ok(Any::from(2 * x)),
    ///             None => self.default_mutate(value, kind),
    ///         }
    ///     }
    ///     fn dispatch_maybe_inplace_mutate(
    ///         &mut self,
    ///         value: InplaceValue<'_>,
    ///         kind: DefRegionKind,
    ///     ) -> Result<Any> {
    ///         match value.cast::<i64>() {
    ///             Some(x) => Ok(Any::from(2 * x)),
    ///             None => self.default_maybe_inplace_mutate(value, kind),
    ///         }
    ///     }
    /// }
    /// let result = structural_mutate(Array::new(vec![1i64, 2]), &mut Double).unwrap();
    /// assert_eq!(Array::<i64>::try_from(result).unwrap().get(1).unwrap(), 4);
    /// ```
    fn default_maybe_inplace_mutate(
        &mut self,
        value: InplaceValue<'_>,
        kind: DefRegionKind,
    ) -> Result<Any> {
        self.default_maybe_inplace_mutate_with_mode(value, kind, InplaceMode::Allow)
    }

    /// Mutates the parts of a value or of a copy.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// struct Double;
    /// impl StructuralMutator for Double {
    ///     fn dispatch_mutate(&mut self, value: &StructuralView, kind: DefRegionKind) -> Result<Any> {
    ///         match value.cast::<i64>() {
    ///             Some(x) => Ok(Any::from(2 * x)),
    ///             None => self.default_mutate(value, kind),
    ///         }
    ///     }
    ///     fn dispatch_maybe_inplace_mutate(
    ///         &mut self,
    ///         value: InplaceValue<'_>,
    ///         kind: DefRegionKind,
    ///     ) -> Result<Any> {
    ///         match value.cast::<i64>() {
    ///             Some(x) => Ok(Any::from(2 * x)),
    ///             None => {
    ///                 self.default_maybe_inplace_mutate_with_mode(value, kind, InplaceMode::Disallow)
    ///             },
    ///         }
    ///     }
    /// }
    /// let result = structural_mutate(Array::new(vec![1i64, 2]), &mut Double).unwrap();
    /// assert_eq!(Array::<i64>::try_from(result).unwrap().get(1).unwrap(), 4);
    /// ```
    fn default_maybe_inplace_mutate_with_mode(
        &mut self,
        value: InplaceValue<'_>,
        kind: DefRegionKind,
        mode: InplaceMode,
    ) -> Result<Any> {
        Ok(resolve(default_value(self, &value.data, kind, mode)?, &value.data))
    }

    /// [`StructuralMutator::mutate`] that says whether anything changed.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// struct Double;
    /// impl StructuralMutator for Double {
    ///     fn dispatch_mutate(&mut self, value: &StructuralView, kind: DefRegionKind) -> Result<Any> {
    ///         match value.cast::<i64>() {
    ///             Some(x) => Ok(Any::from(2 * x)),
    ///             None => self.mutate_result(&20i64, kind).map(Any::from),
    ///         }
    ///     }
    /// }
    /// let result = structural_mutate(true, &mut Double).unwrap();
    /// assert_eq!(result.try_as::<i64>(), Some(40));
    /// ```
    fn mutate_result<T>(&mut self, value: &T, kind: DefRegionKind) -> Result<UnchangedOr<Any>>
    where
        for<'x> AnyView<'x>: From<&'x T>,
    {
        let original = AnyView::from(value);
        let (kind, _region) = active(self)?.enter(kind);
        dispatch_value(self, original.raw(), kind, false).map(marked)
    }

    /// [`StructuralMutator::default_mutate`] that says whether anything changed.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// struct Double;
    /// impl StructuralMutator for Double {
    ///     fn dispatch_mutate(&mut self, value: &StructuralView, kind: DefRegionKind) -> Result<Any> {
    ///         match value.cast::<i64>() {
    ///             Some(x) => Ok(Any::from(2 * x)),
    ///             None => self.default_mutate_result(value, kind).map(Any::from),
    ///         }
    ///     }
    /// }
    /// let result = structural_mutate(Array::new(vec![1i64, 2]), &mut Double).unwrap();
    /// assert_eq!(Array::<i64>::try_from(result).unwrap().get(1).unwrap(), 4);
    /// ```
    fn default_mutate_result<T>(
        &mut self,
        value: &T,
        kind: DefRegionKind,
    ) -> Result<UnchangedOr<Any>>
    where
        for<'x> AnyView<'x>: From<&'x T>,
    {
        let original = AnyView::from(value);
        default_value(self, original.raw(), kind, InplaceMode::Disallow).map(marked)
    }

    /// [`StructuralMutator::default_maybe_inplace_mutate`] that says whether there is another object.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// struct Double;
    /// impl StructuralMutator for Double {
    ///     fn dispatch_mutate(&mut self, value: &StructuralView, kind: DefRegionKind) -> Result<Any> {
    ///         match value.cast::<i64>() {
    ///             Some(x) => Ok(Any::from(2 * x)),
    ///             None => self.default_mutate(value, kind),
    ///         }
    ///     }
    ///     fn dispatch_maybe_inplace_mutate(
    ///         &mut self,
    ///         value: InplaceValue<'_>,
    ///         kind: DefRegionKind,
    ///     ) -> Result<Any> {
    ///         match value.cast::<i64>() {
    ///             Some(x) => Ok(Any::from(2 * x)),
    ///             None => self.default_maybe_inplace_mutate_result(value, kind).map(Any::from),
    ///         }
    ///     }
    /// }
    /// let result = structural_mutate(Array::new(vec![1i64, 2]), &mut Double).unwrap();
    /// assert_eq!(Array::<i64>::try_from(result).unwrap().get(1).unwrap(), 4);
    /// ```
    fn default_maybe_inplace_mutate_result(
        &mut self,
        value: InplaceValue<'_>,
        kind: DefRegionKind,
    ) -> Result<UnchangedOr<Any>> {
        self.default_maybe_inplace_mutate_with_mode_result(value, kind, InplaceMode::Allow)
    }

    /// The same with a mode.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// struct Double;
    /// impl StructuralMutator for Double {
    ///     fn dispatch_mutate(&mut self, value: &StructuralView, kind: DefRegionKind) -> Result<Any> {
    ///         match value.cast::<i64>() {
    ///             Some(x) => Ok(Any::from(2 * x)),
    ///             None => self.default_mutate(value, kind),
    ///         }
    ///     }
    ///     fn dispatch_maybe_inplace_mutate(
    ///         &mut self,
    ///         value: InplaceValue<'_>,
    ///         kind: DefRegionKind,
    ///     ) -> Result<Any> {
    ///         match value.cast::<i64>() {
    ///             Some(x) => Ok(Any::from(2 * x)),
    ///             None => self
    ///                 .default_maybe_inplace_mutate_with_mode_result(value, kind, InplaceMode::Allow)
    ///                 .map(Any::from),
    ///         }
    ///     }
    /// }
    /// let result = structural_mutate(Array::new(vec![1i64, 2]), &mut Double).unwrap();
    /// assert_eq!(Array::<i64>::try_from(result).unwrap().get(1).unwrap(), 4);
    /// ```
    fn default_maybe_inplace_mutate_with_mode_result(
        &mut self,
        value: InplaceValue<'_>,
        kind: DefRegionKind,
        mode: InplaceMode,
    ) -> Result<UnchangedOr<Any>> {
        default_value(self, &value.data, kind, mode).map(marked)
    }

    /// What a variable becomes, in this run.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// struct Ask;
    /// impl StructuralMutator for Ask {
    ///     fn dispatch_mutate(&mut self, value: &StructuralView, _: DefRegionKind) -> Result<Any> {
    ///         assert!(self.var_remap_get(value)?.is_none());
    ///         Ok(value.to_owned())
    ///     }
    /// }
    /// structural_mutate(Shape::from([1i64]), &mut Ask).unwrap();
    /// ```
    fn var_remap_get(&mut self, var: &StructuralView) -> Result<Option<Any>> {
        let object = remap_object(self)?;
        let known = object.remap.borrow().get(var);
        known
    }

    /// Says what a variable becomes, in this run.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// struct Learn;
    /// impl StructuralMutator for Learn {
    ///     fn dispatch_mutate(&mut self, value: &StructuralView, _: DefRegionKind) -> Result<Any> {
    ///         self.var_remap_set(value, &Any::from(7i64))?;
    ///         Ok(self.var_remap_get(value)?.unwrap())
    ///     }
    /// }
    /// let result = structural_mutate(Shape::from([1i64]), &mut Learn).unwrap();
    /// assert_eq!(result.try_as::<i64>(), Some(7));
    /// ```
    fn var_remap_set(&mut self, var: &StructuralView, mutated_value: &Any) -> Result<()> {
        let object = remap_object(self)?;
        let result = object.remap.borrow_mut().set(var, mutated_value);
        result
    }
}

fn remap_object<U>(mutator: &U) -> Result<&'static MutatorObj> {
    active(mutator)
        .map_err(|_| runtime_error("default structural var-remap used by a non-active mutator"))
}

/// What [`structural_mutate`] takes.
///
/// ```
/// use tvm_ffi::*;
/// let handlers = (
///     |x: bool, _: &mut MutateContext<'_>| !x,
///     |x: i64, _: &mut MutateContext<'_>| x + 1,
/// );
/// assert_eq!(structural_mutate(1i64, handlers).unwrap().try_as::<i64>(), Some(2));
/// ```
pub trait IntoMutator<Marker> {
    #[doc(hidden)]
    fn mutate_root(self, root: Any) -> Result<Any>;
}
impl<U: StructuralMutator> IntoMutator<U> for &mut U {
    fn mutate_root(self, root: Any) -> Result<Any> {
        run(self, root)
    }
}

/// Mutates a value with a mutator or with callbacks.
///
/// ```
/// use tvm_ffi::*;
/// let double = |x: i64, _: &mut MutateContext<'_>| 2 * x;
/// let result = structural_mutate(Array::new(vec![1i64, 2]), double).unwrap();
/// let result = Array::<i64>::try_from(result).unwrap();
/// assert_eq!(result.iter().collect::<Vec<_>>(), [2, 4]);
/// ```
pub fn structural_mutate<R, M>(root: R, mutator: impl IntoMutator<M>) -> Result<Any>
where
    R: Into<Any>,
{
    mutator.mutate_root(root.into())
}

/// Maps a value: the handler gives new values, and the parts are put together.
///
/// ```
/// use tvm_ffi::*;
/// let root = Array::new(vec![1i64, 2]);
/// let result = structural_map(root, |x: i64| x + 1, WalkOrder::PostOrder).unwrap();
/// assert_eq!(Array::<i64>::try_from(result).unwrap().get(1).unwrap(), 3);
/// ```
pub fn structural_map<R, M, H>(root: R, mapper: H, order: WalkOrder) -> Result<Any>
where
    R: Into<Any>,
    H: IntoMapper<M>,
{
    mapper.into_mapper().map_root(root.into(), order)
}

/// The handlers of a map.
///
/// ```
/// use tvm_ffi::*;
/// struct Negate;
/// #[dispatch(map)]
/// impl Negate {
///     fn map_int(&mut self, x: i64) -> i64 {
///         -x
///     }
/// }
/// let result = structural_map(Array::new(vec![1i64]), &mut Negate, WalkOrder::PostOrder).unwrap();
/// assert_eq!(Array::<i64>::try_from(result).unwrap().get(0).unwrap(), -1);
/// ```
pub trait MapDispatch: Sized {
    /// Calls the handler of a value, if there is one.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// struct Negate;
    /// // What `#[dispatch(map)]` writes.
    /// impl MapDispatch for Negate {
    ///     fn dispatch_map(&mut self, value: &StructuralView, _: DefRegionKind) -> Option<Result<Any>> {
    ///         value.cast::<i64>().map(|x| Ok(Any::from(-x)))
    ///     }
    /// }
    /// let mut mapper = MapWithContextPolicy::new(Negate, DefaultMutContextPolicy);
    /// let result = structural_map(1i64, &mut mapper, WalkOrder::PostOrder).unwrap();
    /// assert_eq!(result.try_as::<i64>(), Some(-1));
    /// ```
    fn dispatch_map(
        &mut self,
        value: &StructuralView,
        def_region_kind: DefRegionKind,
    ) -> Option<Result<Any>>;
}
impl<V: MapDispatch> MapDispatch for &mut V {
    fn dispatch_map(&mut self, value: &StructuralView, kind: DefRegionKind) -> Option<Result<Any>> {
        (**self).dispatch_map(value, kind)
    }
}

/// What [`structural_map`] takes.
///
/// ```
/// use tvm_ffi::*;
/// let handlers = (|x: bool| !x, |x: i64| x + 1);
/// let result = structural_map(1i64, handlers, WalkOrder::PreOrder).unwrap();
/// assert_eq!(result.try_as::<i64>(), Some(2));
/// ```
pub trait IntoMapper<Marker> {
    /// What runs the map.
    type Mapper: NativeMap;
    /// Makes it.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let mapper = (|x: i64| x + 1).into_mapper();
    /// # let _ = mapper;
    /// // `structural_map` calls it.
    /// let result = structural_map(1i64, |x: i64| x + 1, WalkOrder::PreOrder).unwrap();
    /// assert_eq!(result.try_as::<i64>(), Some(2));
    /// ```
    fn into_mapper(self) -> Self::Mapper;
}

/// Runs a map.
#[doc(hidden)]
pub trait NativeMap {
    fn map_root(&mut self, root: Any, order: WalkOrder) -> Result<Any>;
}

/// A map as a mutator; `policy` replaces the descent.
struct MapEngine<'a, M, P> {
    mapper: &'a mut M,
    policy: Option<&'a P>,
    order: WalkOrder,
}

impl<M: MapDispatch, P: MutContextPolicy<M>> MapEngine<'_, M, P> {
    fn children(&mut self, value: &TVMFFIAny, kind: DefRegionKind, allow: bool) -> Result<Any> {
        match self.policy {
            None if is_plain_inline(value) => Ok(Any::from(Unchanged)),
            None => descend(self, value, kind, allow),
            Some(policy) => {
                let mode = mode_of(allow);
                let mut context = MutateContext::new(self, mode, kind, None);
                let value = MutateValue::from_raw(*value, mode);
                policy.default_mutate(value, &mut context).map(Any::from)
            }
        }
    }

    /// The handler of a value. An error names that value.
    fn mapped(&mut self, value: &TVMFFIAny, kind: DefRegionKind) -> Result<Option<Any>> {
        // SAFETY: the value is alive during the call.
        let view = unsafe { StructuralView::from_raw(value) };
        self.mapper
            .dispatch_map(view, kind)
            .transpose()
            .map_err(|error| error_path::add_object(error, value, "map"))
    }

    /// The parts of a value. An error names that value.
    fn descended(&mut self, value: &TVMFFIAny, kind: DefRegionKind, allow: bool) -> Result<Any> {
        self.children(value, kind, allow)
            .map_err(|error| error_path::add_object(error, value, "map"))
    }

    fn step(&mut self, value: &TVMFFIAny, kind: DefRegionKind, allow: bool) -> Result<Any> {
        if self.order == WalkOrder::PostOrder {
            let descended = self.descended(value, kind, allow)?;
            let current = match descended.type_index() {
                UNCHANGED => value,
                _ => descended.raw(),
            };
            let mapped = self.mapped(current, kind)?;
            return Ok(match mapped {
                Some(mapped) if mapped.type_index() != UNCHANGED => mapped,
                _ => descended,
            });
        }
        let mapped = self
            .mapped(value, kind)?
            .filter(|mapped| mapped.type_index() != UNCHANGED && !same_cell(mapped.raw(), value));
        match mapped {
            None => self.descended(value, kind, allow && is_unique(value)),
            Some(mapped) => {
                let allow = allow && is_unique(mapped.raw());
                let result = self.descended(mapped.raw(), kind, allow)?;
                Ok(if result.type_index() == UNCHANGED { mapped } else { result })
            }
        }
    }
}

impl<M: MapDispatch, P: MutContextPolicy<M>> StructuralMutator for MapEngine<'_, M, P> {
    const RECORDS_VALUES: bool = true;
    fn dispatch_mutate(&mut self, value: &StructuralView, kind: DefRegionKind) -> Result<Any> {
        self.step(AnyView::from(value).raw(), kind, false)
    }
    fn dispatch_maybe_inplace_mutate(
        &mut self,
        value: InplaceValue<'_>,
        kind: DefRegionKind,
    ) -> Result<Any> {
        self.step(&value.data, kind, true)
    }
}

/// One handler of a map, or a tuple of them: the first that fits is called.
///
/// ```
/// use tvm_ffi::*;
/// fn run<M>(root: i64, link: impl MapChainLink<M>) -> Result<Any> {
///     structural_map(root, link, WalkOrder::PreOrder)
/// }
/// assert_eq!(run(4, (|x: bool| !x, |x: i64| 2 * x)).unwrap().try_as::<i64>(), Some(8));
/// ```
pub trait MapChainLink<Marker> {
    #[doc(hidden)]
    fn try_map(&mut self, value: &StructuralView, kind: DefRegionKind) -> Option<Result<Any>>;
}

macro_rules! markers {
    ($($name:ident $(<$param:ident>)?),* $(,)?) => {$(
        #[doc(hidden)]
        pub struct $name $(<$param>(PhantomData<$param>))?;
    )*};
}
markers!(
    ByMapOwned<T>,
    ByMapOwnedKind<T>,
    ByMapNode<N>,
    ByMapNodeKind<N>,
    ByMapCatchAll,
    ByMapCatchAllKind,
    ByMapChainLink<M>,
    ByMapDispatchLink,
    ByPolicyMap,
    ByMutateValue<T>,
    ByMutateOwned<T>,
    ByMutateNode<N>,
    ByMutateCatchAll,
    ByMutateChainLink<M>,
    ByMutateCallbacks<M>,
    ByMutateDispatch,
);

macro_rules! map_links {
    ($($marker:ty, [$($generic:ident $(: $bound:path)?)?], ($($param:ty),+),
       |$this:ident, $value:ident, $kind:ident| $call:expr;)*) => {$(
        impl<F, $($generic,)? O> MapChainLink<$marker> for F
        where
            F: FnMut($($param),+) -> O,
            $($($generic: $bound,)?)?
            O: IntoMutateResult,
        {
            fn try_map(
                &mut self,
                $value: &StructuralView,
                $kind: DefRegionKind,
            ) -> Option<Result<Any>> {
                let $this = self;
                let _ = $kind;
                $call
            }
        }
    )*};
}
map_links! {
    ByMapCatchAll, [], (&StructuralView), |f, value, kind| Some(f(value).into_mutate_result());
    ByMapCatchAllKind, [], (&StructuralView, DefRegionKind),
        |f, value, kind| Some(f(value, kind).into_mutate_result());
    ByMapOwned<T>, [T: AnyCompatible], (T),
        |f, value, kind| value.cast::<T>().map(|value| f(value).into_mutate_result());
    ByMapOwnedKind<T>, [T: AnyCompatible], (T, DefRegionKind),
        |f, value, kind| value.cast::<T>().map(|value| f(value, kind).into_mutate_result());
    ByMapNode<T>, [T: ObjectCore], (&T),
        |f, value, kind| value.as_node::<T>().map(|node| f(node).into_mutate_result());
    ByMapNodeKind<T>, [T: ObjectCore], (&T, DefRegionKind),
        |f, value, kind| value.as_node::<T>().map(|node| f(node, kind).into_mutate_result());
}
impl<V: MapDispatch> MapChainLink<ByMapDispatchLink> for &mut V {
    fn try_map(&mut self, value: &StructuralView, kind: DefRegionKind) -> Option<Result<Any>> {
        self.dispatch_map(value, kind)
    }
}

/// Links as a dispatcher.
#[doc(hidden)]
pub struct MapChain<Link, Marker> {
    link: Link,
    _phantom: PhantomData<Marker>,
}
impl<L: MapChainLink<M>, M> MapDispatch for MapChain<L, M> {
    fn dispatch_map(&mut self, value: &StructuralView, kind: DefRegionKind) -> Option<Result<Any>> {
        self.link.try_map(value, kind)
    }
}
impl<L: MapChainLink<M>, M> NativeMap for MapChain<L, M> {
    fn map_root(&mut self, root: Any, order: WalkOrder) -> Result<Any> {
        let policy: Option<&DefaultMutContextPolicy> = None;
        run(&mut MapEngine { mapper: self, policy, order }, root)
    }
}
impl<L: MapChainLink<M>, M> IntoMapper<M> for L {
    type Mapper = MapChain<L, M>;
    fn into_mapper(self) -> Self::Mapper {
        MapChain { link: self, _phantom: PhantomData }
    }
}

/// A map whose descent a policy decides.
///
/// ```
/// use tvm_ffi::*;
/// struct Negate;
/// #[dispatch(map)]
/// impl Negate {
///     fn map_int(&mut self, x: i64) -> i64 {
///         -x
///     }
/// }
/// let mapper = MapWithContextPolicy::new(Negate, DefaultMutContextPolicy);
/// let result = structural_map(1i64, mapper, WalkOrder::PreOrder).unwrap();
/// assert_eq!(result.try_as::<i64>(), Some(-1));
/// ```
pub struct MapWithContextPolicy<Mapper: MapDispatch, Policy> {
    mapper: Mapper,
    policy: Policy,
}
impl<M: MapDispatch, P: MutContextPolicy<M>> MapWithContextPolicy<M, P> {
    /// A map with a policy.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// struct Negate(usize);
    /// #[dispatch(map)]
    /// impl Negate {
    ///     fn map_int(&mut self, x: i64) -> i64 {
    ///         self.0 += 1;
    ///         -x
    ///     }
    /// }
    /// let mapper = MapWithContextPolicy::new(Negate(0), DefaultMutContextPolicy);
    /// let result = structural_map(1i64, mapper, WalkOrder::PreOrder).unwrap();
    /// assert_eq!(result.try_as::<i64>(), Some(-1));
    /// ```
    pub fn new(mapper: M, policy: P) -> Self {
        Self { mapper, policy }
    }
    /// The mapper.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// struct Negate(usize);
    /// #[dispatch(map)]
    /// impl Negate {
    ///     fn map_int(&mut self, x: i64) -> i64 {
    ///         self.0 += 1;
    ///         -x
    ///     }
    /// }
    /// let mut mapper = MapWithContextPolicy::new(Negate(0), DefaultMutContextPolicy);
    /// structural_map(Array::new(vec![1i64, 2]), &mut mapper, WalkOrder::PreOrder).unwrap();
    /// assert_eq!(mapper.state().0, 2);
    /// ```
    pub fn state(&self) -> &M {
        &self.mapper
    }
    /// The mapper.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// struct Negate(usize);
    /// #[dispatch(map)]
    /// impl Negate {
    ///     fn map_int(&mut self, x: i64) -> i64 {
    ///         self.0 += 1;
    ///         -x
    ///     }
    /// }
    /// let mut mapper = MapWithContextPolicy::new(Negate(0), DefaultMutContextPolicy);
    /// mapper.state_mut().0 = 10;
    /// structural_map(1i64, &mut mapper, WalkOrder::PreOrder).unwrap();
    /// assert_eq!(mapper.state().0, 11);
    /// ```
    pub fn state_mut(&mut self) -> &mut M {
        &mut self.mapper
    }
    /// The mapper.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// struct Negate(usize);
    /// #[dispatch(map)]
    /// impl Negate {
    ///     fn map_int(&mut self, x: i64) -> i64 {
    ///         self.0 += 1;
    ///         -x
    ///     }
    /// }
    /// let mut mapper = MapWithContextPolicy::new(Negate(0), DefaultMutContextPolicy);
    /// structural_map(1i64, &mut mapper, WalkOrder::PreOrder).unwrap();
    /// let Negate(count) = mapper.into_state();
    /// assert_eq!(count, 1);
    /// ```
    pub fn into_state(self) -> M {
        self.mapper
    }
}
impl<M: MapDispatch, P: MutContextPolicy<M>> NativeMap for MapWithContextPolicy<M, P> {
    fn map_root(&mut self, root: Any, order: WalkOrder) -> Result<Any> {
        let Self { mapper, policy } = self;
        run(&mut MapEngine { mapper, policy: Some(&*policy), order }, root)
    }
}
impl<M: MapDispatch, P: MutContextPolicy<M>> NativeMap for &mut MapWithContextPolicy<M, P> {
    fn map_root(&mut self, root: Any, order: WalkOrder) -> Result<Any> {
        (**self).map_root(root, order)
    }
}
impl<M: MapDispatch, P: MutContextPolicy<M>> IntoMapper<ByPolicyMap>
    for MapWithContextPolicy<M, P>
{
    type Mapper = Self;
    fn into_mapper(self) -> Self {
        self
    }
}
impl<M: MapDispatch, P: MutContextPolicy<M>> IntoMapper<ByPolicyMap>
    for &mut MapWithContextPolicy<M, P>
{
    type Mapper = Self;
    fn into_mapper(self) -> Self {
        self
    }
}

/// What stands behind a [`MutateContext`].
trait MutEngine<State> {
    fn state(&self) -> &State;
    fn state_mut(&mut self) -> &mut State;
    fn object(&self) -> Result<&'static MutatorObj>;
    fn dispatch(&mut self, value: &TVMFFIAny, kind: DefRegionKind, allow: bool) -> Result<Any>;
    fn descend(&mut self, value: &TVMFFIAny, kind: DefRegionKind, allow: bool) -> Result<Any>;
    fn remap_get(&mut self, var: &StructuralView) -> Result<Option<Any>>;
    fn remap_set(&mut self, var: &StructuralView, value: &Any) -> Result<()>;
}

/// `MutEngine` of a mutator that has its state somewhere.
macro_rules! mut_engine {
    ([$($generics:tt)*], $ty:ty, $state:ty, |$this:ident| $get:expr, $get_mut:expr, $mutator:expr) => {
        impl<$($generics)*> MutEngine<$state> for $ty {
            fn state(&self) -> &$state {
                let $this = self;
                $get
            }
            fn state_mut(&mut self) -> &mut $state {
                let $this = self;
                $get_mut
            }
            fn object(&self) -> Result<&'static MutatorObj> {
                let $this = self;
                active(&*$mutator)
            }
            fn dispatch(
                &mut self,
                value: &TVMFFIAny,
                kind: DefRegionKind,
                allow: bool,
            ) -> Result<Any> {
                let $this = self;
                let (kind, _region) = active(&*$mutator)?.enter(kind);
                dispatch_value(&mut *$mutator, value, kind, allow)
            }
            fn descend(
                &mut self,
                value: &TVMFFIAny,
                kind: DefRegionKind,
                allow: bool,
            ) -> Result<Any> {
                let $this = self;
                descend(&mut *$mutator, value, kind, allow)
            }
            fn remap_get(&mut self, var: &StructuralView) -> Result<Option<Any>> {
                let $this = self;
                StructuralMutator::var_remap_get(&mut *$mutator, var)
            }
            fn remap_set(&mut self, var: &StructuralView, value: &Any) -> Result<()> {
                let $this = self;
                StructuralMutator::var_remap_set(&mut *$mutator, var, value)
            }
        }
    };
}
mut_engine!(
    [M: MapDispatch, P: MutContextPolicy<M>], MapEngine<'_, M, P>, M,
    |this| this.mapper, this.mapper, this
);

/// The policies that are still to come.
struct Continuation<'a, State> {
    policy: &'a dyn MutContextPolicy<State>,
    next: Option<&'a Continuation<'a, State>>,
}

/// What a callback or a policy sees of the mutation.
///
/// ```
/// use tvm_ffi::*;
/// let add = |x: i64, ctx: &mut MutateContext<'_, i64>| x + *ctx.state();
/// let result = structural_mutate(1i64, &mut MutateCallbacks::new(10i64, add)).unwrap();
/// assert_eq!(result.try_as::<i64>(), Some(11));
/// ```
pub struct MutateContext<'a, State = ()> {
    engine: &'a mut dyn MutEngine<State>,
    mode: InplaceMode,
    kind: DefRegionKind,
    rest: Option<&'a Continuation<'a, State>>,
    _not_send: PhantomData<*mut ()>,
}

impl<'a, State> MutateContext<'a, State> {
    fn new(
        engine: &'a mut dyn MutEngine<State>,
        mode: InplaceMode,
        kind: DefRegionKind,
        rest: Option<&'a Continuation<'a, State>>,
    ) -> Self {
        Self { engine, mode, kind, rest, _not_send: PhantomData }
    }

    /// The state of the mutation.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let add = |x: i64, ctx: &mut MutateContext<'_, i64>| x + ctx.state();
    /// let result = structural_mutate(1i64, &mut MutateCallbacks::new(10i64, add)).unwrap();
    /// assert_eq!(result.try_as::<i64>(), Some(11));
    /// ```
    pub fn state(&self) -> &State {
        self.engine.state()
    }
    /// The state of the mutation.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let count = |_: i64, ctx: &mut MutateContext<'_, i64>| {
    ///     *ctx.state_mut() += 1;
    ///     *ctx.state()
    /// };
    /// let mut mutator = MutateCallbacks::new(0i64, count);
    /// let result = structural_mutate(Array::new(vec![5i64, 5]), &mut mutator).unwrap();
    /// assert_eq!(Array::<i64>::try_from(result).unwrap().get(1).unwrap(), 2);
    /// ```
    pub fn state_mut(&mut self) -> &mut State {
        self.engine.state_mut()
    }
    /// Whether the current value may be changed.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let look = |_: MutateValue<'_, Array<i64>>, ctx: &mut MutateContext<'_>| {
    ///     assert_eq!(ctx.inplace_mode(), InplaceMode::Allow);
    ///     Unchanged
    /// };
    /// structural_mutate(Array::new(vec![1i64]), look).unwrap();
    /// ```
    pub fn inplace_mode(&self) -> InplaceMode {
        self.mode
    }
    /// The region of the current value.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let look = |_: i64, ctx: &mut MutateContext<'_>| {
    ///     assert_eq!(ctx.def_region_kind(), DefRegionKind::None);
    ///     Unchanged
    /// };
    /// structural_mutate(1i64, look).unwrap();
    /// ```
    pub fn def_region_kind(&self) -> DefRegionKind {
        self.kind
    }
    /// Runs `f` in another region.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let look = |_: i64, ctx: &mut MutateContext<'_>| -> Result<i64> {
    ///     ctx.with_def_region_kind(DefRegionKind::Simple, |ctx| Ok(ctx.def_region_kind() as i64))
    /// };
    /// assert_eq!(structural_mutate(1i64, look).unwrap().try_as::<i64>(), Some(2));
    /// ```
    pub fn with_def_region_kind<T>(
        &mut self,
        kind: DefRegionKind,
        f: impl FnOnce(&mut MutateContext<'_, State>) -> Result<T>,
    ) -> Result<T> {
        let (kind, _region) = self.engine.object()?.enter(kind);
        f(&mut MutateContext::new(&mut *self.engine, self.mode, kind, self.rest))
    }

    fn default_of(&mut self, value: &TVMFFIAny, allow: bool) -> Result<Any> {
        let result = match self.rest {
            None => self.engine.descend(value, self.kind, allow),
            Some(Continuation { policy, next }) => {
                let mode = mode_of(allow);
                let mut context = MutateContext::new(&mut *self.engine, mode, self.kind, *next);
                let value = MutateValue::from_raw(*value, mode);
                policy.default_mutate(value, &mut context).map(Any::from)
            }
        };
        result.map_err(|error| error_path::add_descent(error, value, "map"))
    }

    /// Mutates another value.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let double = |x: i64, _: &mut MutateContext<'_>| 2 * x;
    /// let other = |_: bool, ctx: &mut MutateContext<'_>| ctx.mutate(&20i64);
    /// let result = structural_mutate(true, (other, double)).unwrap();
    /// assert_eq!(result.try_as::<i64>(), Some(40));
    /// ```
    pub fn mutate<T>(&mut self, value: &T) -> Result<Any>
    where
        for<'x> AnyView<'x>: From<&'x T>,
    {
        self.mutate_with(value, self.kind)
    }
    /// Mutates another value in a region.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let double = |x: i64, _: &mut MutateContext<'_>| 2 * x;
    /// let other = |_: bool, ctx: &mut MutateContext<'_>| ctx.mutate_with(&20i64, DefRegionKind::Simple);
    /// let result = structural_mutate(true, (other, double)).unwrap();
    /// assert_eq!(result.try_as::<i64>(), Some(40));
    /// ```
    pub fn mutate_with<T>(&mut self, value: &T, kind: DefRegionKind) -> Result<Any>
    where
        for<'x> AnyView<'x>: From<&'x T>,
    {
        let view = AnyView::from(value);
        Ok(resolve(self.engine.dispatch(view.raw(), kind, false)?, view.raw()))
    }
    /// Mutates an owned value, in place where nobody else refers to it.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let double = |x: i64, _: &mut MutateContext<'_>| 2 * x;
    /// let other = |_: bool, ctx: &mut MutateContext<'_>| ctx.maybe_inplace_mutate(20i64);
    /// let result = structural_mutate(true, (other, double)).unwrap();
    /// assert_eq!(result.try_as::<i64>(), Some(40));
    /// ```
    pub fn maybe_inplace_mutate<T: Into<Any>>(&mut self, value: T) -> Result<Any> {
        self.maybe_inplace_mutate_with(value, self.kind)
    }
    /// The same in a region.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let double = |x: i64, _: &mut MutateContext<'_>| 2 * x;
    /// let other = |_: bool, ctx: &mut MutateContext<'_>| ctx.maybe_inplace_mutate_with(20i64, DefRegionKind::Simple);
    /// let result = structural_mutate(true, (other, double)).unwrap();
    /// assert_eq!(result.try_as::<i64>(), Some(40));
    /// ```
    pub fn maybe_inplace_mutate_with<T: Into<Any>>(
        &mut self,
        value: T,
        kind: DefRegionKind,
    ) -> Result<Any> {
        self.maybe_inplace_mutate_with_mode(value, kind, InplaceMode::Allow)
    }
    /// The same with a mode.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let double = |x: i64, _: &mut MutateContext<'_>| 2 * x;
    /// let other = |_: bool, ctx: &mut MutateContext<'_>| {
    ///     ctx.maybe_inplace_mutate_with_mode(20i64, DefRegionKind::None, InplaceMode::Disallow)
    /// };
    /// let result = structural_mutate(true, (other, double)).unwrap();
    /// assert_eq!(result.try_as::<i64>(), Some(40));
    /// ```
    pub fn maybe_inplace_mutate_with_mode<T: Into<Any>>(
        &mut self,
        value: T,
        kind: DefRegionKind,
        mode: InplaceMode,
    ) -> Result<Any> {
        let value = value.into();
        let result = self.engine.dispatch(value.raw(), kind, mode == InplaceMode::Allow)?;
        Ok(if result.type_index() == UNCHANGED { value } else { result })
    }
    /// Mutates the parts of a copy of a value.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let double = |x: i64, _: &mut MutateContext<'_>| 2 * x;
    /// let array = |value: MutateValue<'_, Array<i64>>, ctx: &mut MutateContext<'_>| {
    ///     ctx.default_mutate(value.as_value())
    /// };
    /// let result = structural_mutate(Array::new(vec![1i64, 2]), (double, array)).unwrap();
    /// assert_eq!(Array::<i64>::try_from(result).unwrap().get(1).unwrap(), 4);
    /// ```
    pub fn default_mutate<T>(&mut self, value: &T) -> Result<Any>
    where
        for<'x> AnyView<'x>: From<&'x T>,
    {
        let view = AnyView::from(value);
        Ok(resolve(self.default_of(view.raw(), false)?, view.raw()))
    }
    /// [`MutateContext::mutate`] that says whether anything changed.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let double = |x: i64, _: &mut MutateContext<'_>| 2 * x;
    /// let other = |_: bool, ctx: &mut MutateContext<'_>| ctx.mutate_result(&20i64);
    /// let result = structural_mutate(true, (other, double)).unwrap();
    /// assert_eq!(result.try_as::<i64>(), Some(40));
    /// ```
    pub fn mutate_result<T>(&mut self, value: &T) -> Result<UnchangedOr<Any>>
    where
        for<'x> AnyView<'x>: From<&'x T>,
    {
        self.mutate_with_result(value, self.kind)
    }
    /// [`MutateContext::mutate_with`] that says whether anything changed.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let double = |x: i64, _: &mut MutateContext<'_>| 2 * x;
    /// let other = |_: bool, ctx: &mut MutateContext<'_>| ctx.mutate_with_result(&20i64, DefRegionKind::None);
    /// let result = structural_mutate(true, (other, double)).unwrap();
    /// assert_eq!(result.try_as::<i64>(), Some(40));
    /// ```
    pub fn mutate_with_result<T>(
        &mut self,
        value: &T,
        kind: DefRegionKind,
    ) -> Result<UnchangedOr<Any>>
    where
        for<'x> AnyView<'x>: From<&'x T>,
    {
        self.engine.dispatch(AnyView::from(value).raw(), kind, false).map(marked)
    }
    /// [`MutateContext::default_mutate`] that says whether anything changed.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let double = |x: i64, _: &mut MutateContext<'_>| 2 * x;
    /// let array = |value: MutateValue<'_, Array<i64>>, ctx: &mut MutateContext<'_>| {
    ///     ctx.default_mutate_result(value.as_value())
    /// };
    /// let result = structural_mutate(Array::new(vec![1i64, 2]), (double, array)).unwrap();
    /// assert_eq!(Array::<i64>::try_from(result).unwrap().get(1).unwrap(), 4);
    /// ```
    pub fn default_mutate_result<T>(&mut self, value: &T) -> Result<UnchangedOr<Any>>
    where
        for<'x> AnyView<'x>: From<&'x T>,
    {
        self.default_of(AnyView::from(value).raw(), false).map(marked)
    }
    /// Mutates the parts of a value with its own permission.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let double = |x: i64, _: &mut MutateContext<'_>| 2 * x;
    /// let array = |value: MutateValue<'_, Array<i64>>, ctx: &mut MutateContext<'_>| {
    ///     ctx.default_maybe_inplace_mutate(value)
    /// };
    /// let result = structural_mutate(Array::new(vec![1i64, 2]), (double, array)).unwrap();
    /// assert_eq!(Array::<i64>::try_from(result).unwrap().get(1).unwrap(), 4);
    /// ```
    pub fn default_maybe_inplace_mutate<T>(&mut self, value: MutateValue<'_, T>) -> Result<Any> {
        self.default_mutate_with_mode(value, InplaceMode::Allow)
    }
    /// The same, and says whether there is another object.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let double = |x: i64, _: &mut MutateContext<'_>| 2 * x;
    /// let array = |value: MutateValue<'_, Array<i64>>, ctx: &mut MutateContext<'_>| {
    ///     ctx.default_maybe_inplace_mutate_result(value)
    /// };
    /// let result = structural_mutate(Array::new(vec![1i64, 2]), (double, array)).unwrap();
    /// assert_eq!(Array::<i64>::try_from(result).unwrap().get(1).unwrap(), 4);
    /// ```
    pub fn default_maybe_inplace_mutate_result<T>(
        &mut self,
        value: MutateValue<'_, T>,
    ) -> Result<UnchangedOr<Any>> {
        self.default_mutate_with_mode_result(value, InplaceMode::Allow)
    }
    /// Mutates the parts of a value; no mode allows more than the value does.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let double = |x: i64, _: &mut MutateContext<'_>| 2 * x;
    /// let array = |value: MutateValue<'_, Array<i64>>, ctx: &mut MutateContext<'_>| {
    ///     ctx.default_mutate_with_mode(value, InplaceMode::Disallow)
    /// };
    /// let result = structural_mutate(Array::new(vec![1i64, 2]), (double, array)).unwrap();
    /// assert_eq!(Array::<i64>::try_from(result).unwrap().get(1).unwrap(), 4);
    /// ```
    pub fn default_mutate_with_mode<T>(
        &mut self,
        value: MutateValue<'_, T>,
        mode: InplaceMode,
    ) -> Result<Any> {
        let data = value.data;
        let allow = value.mode == InplaceMode::Allow && mode == InplaceMode::Allow;
        Ok(resolve(self.default_of(&data, allow)?, &data))
    }
    /// The same, and says whether there is another object.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let double = |x: i64, _: &mut MutateContext<'_>| 2 * x;
    /// let array = |value: MutateValue<'_, Array<i64>>, ctx: &mut MutateContext<'_>| {
    ///     ctx.default_mutate_with_mode_result(value, InplaceMode::Disallow)
    /// };
    /// let result = structural_mutate(Array::new(vec![1i64, 2]), (double, array)).unwrap();
    /// assert_eq!(Array::<i64>::try_from(result).unwrap().get(1).unwrap(), 4);
    /// ```
    pub fn default_mutate_with_mode_result<T>(
        &mut self,
        value: MutateValue<'_, T>,
        mode: InplaceMode,
    ) -> Result<UnchangedOr<Any>> {
        let allow = value.mode == InplaceMode::Allow && mode == InplaceMode::Allow;
        self.default_of(&value.data, allow).map(marked)
    }
    /// What a variable becomes.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let ask = |value: MutateValue<'_, Shape>, ctx: &mut MutateContext<'_>| -> Result<Unchanged> {
    ///     assert!(ctx.var_remap_get(value.as_value())?.is_none());
    ///     Ok(Unchanged)
    /// };
    /// structural_mutate(Shape::from([1i64]), ask).unwrap();
    /// ```
    pub fn var_remap_get(&mut self, var: &StructuralView) -> Result<Option<Any>> {
        self.engine.remap_get(var)
    }
    /// Says what a variable becomes.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let learn = |value: MutateValue<'_, Shape>, ctx: &mut MutateContext<'_>| -> Result<Any> {
    ///     ctx.var_remap_set(value.as_value(), &Any::from(7i64))?;
    ///     Ok(ctx.var_remap_get(value.as_value())?.unwrap())
    /// };
    /// let result = structural_mutate(Shape::from([1i64]), learn).unwrap();
    /// assert_eq!(result.try_as::<i64>(), Some(7));
    /// ```
    pub fn var_remap_set(&mut self, var: &StructuralView, value: &Any) -> Result<()> {
        self.engine.remap_set(var, value)
    }
}

/// Decides how a mutation descends where no handler does.
///
/// ```
/// use tvm_ffi::*;
/// struct Count;
/// impl MutContextPolicy<i64> for Count {
///     fn default_mutate(
///         &self,
///         value: MutateValue<'_>,
///         ctx: &mut MutateContext<'_, i64>,
///     ) -> Result<UnchangedOr<Any>> {
///         *ctx.state_mut() += 1;
///         ctx.default_maybe_inplace_mutate_result(value)
///     }
/// }
/// let add = |x: i64, _: &mut MutateContext<'_, i64>| x + 1;
/// let mut mutator = MutateCallbacks::new(0i64, add).with_policy(Count);
/// structural_mutate(Array::new(vec![1i64]), &mut mutator).unwrap();
/// assert_eq!(*mutator.state(), 1);
/// ```
pub trait MutContextPolicy<State> {
    /// Mutates the parts of a value.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// struct Stay;
    /// impl MutContextPolicy<()> for Stay {
    ///     fn default_mutate(
    ///         &self,
    ///         _: MutateValue<'_>,
    ///         _: &mut MutateContext<'_>,
    ///     ) -> Result<UnchangedOr<Any>> {
    ///         Ok(UnchangedOr::unchanged())
    ///     }
    /// }
    /// let double = |x: i64, _: &mut MutateContext<'_>| 2 * x;
    /// let mut mutator = MutateCallbacks::new((), double).with_policy(Stay);
    /// let result = structural_mutate(Array::new(vec![1i64]), &mut mutator).unwrap();
    /// assert_eq!(Array::<i64>::try_from(result).unwrap().get(0).unwrap(), 1);
    /// ```
    fn default_mutate(
        &self,
        value: MutateValue<'_>,
        ctx: &mut MutateContext<'_, State>,
    ) -> Result<UnchangedOr<Any>>;
}

/// The built-in descent.
///
/// ```
/// use tvm_ffi::*;
/// let double = |x: i64, _: &mut MutateContext<'_>| 2 * x;
/// let mut mutator = MutateCallbacks::new((), double).with_policy(DefaultMutContextPolicy);
/// let result = structural_mutate(Array::new(vec![1i64]), &mut mutator).unwrap();
/// assert_eq!(Array::<i64>::try_from(result).unwrap().get(0).unwrap(), 2);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct DefaultMutContextPolicy;
impl<State> MutContextPolicy<State> for DefaultMutContextPolicy {
    fn default_mutate(
        &self,
        value: MutateValue<'_>,
        ctx: &mut MutateContext<'_, State>,
    ) -> Result<UnchangedOr<Any>> {
        ctx.default_maybe_inplace_mutate_result(value)
    }
}
impl<State, A, B> MutContextPolicy<State> for (A, B)
where
    A: MutContextPolicy<State>,
    B: MutContextPolicy<State>,
{
    fn default_mutate(
        &self,
        value: MutateValue<'_>,
        ctx: &mut MutateContext<'_, State>,
    ) -> Result<UnchangedOr<Any>> {
        let inner = Continuation { policy: &self.1, next: ctx.rest };
        let (mode, kind) = (ctx.mode, ctx.kind);
        let mut context = MutateContext::new(&mut *ctx.engine, mode, kind, Some(&inner));
        self.0.default_mutate(value, &mut context)
    }
}

/// One callback of a mutation, or a tuple of them: the first that fits is called.
///
/// ```
/// use tvm_ffi::*;
/// fn run<M>(root: i64, link: impl MutateChainLink<(), M>) -> Result<Any> {
///     structural_mutate(root, &mut MutateCallbacks::new((), link))
/// }
/// let negate = |x: bool, _: &mut MutateContext<'_>| !x;
/// let double = |x: i64, _: &mut MutateContext<'_>| 2 * x;
/// assert_eq!(run(4, (negate, double)).unwrap().try_as::<i64>(), Some(8));
/// ```
pub trait MutateChainLink<State, Marker> {
    /// The result, or the value for the next link.
    #[doc(hidden)]
    fn try_mutate<'v>(
        &self,
        value: MutateValue<'v>,
        context: &mut MutateContext<'_, State>,
    ) -> std::result::Result<Result<Any>, MutateValue<'v>>;
}
impl<State, F, T, O> MutateChainLink<State, ByMutateValue<T>> for F
where
    F: Fn(MutateValue<'_, T>, &mut MutateContext<'_, State>) -> O,
    T: ContainerElement,
    O: IntoMutateResult,
{
    fn try_mutate<'v>(
        &self,
        value: MutateValue<'v>,
        context: &mut MutateContext<'_, State>,
    ) -> std::result::Result<Result<Any>, MutateValue<'v>> {
        value.try_cast::<T>().map(|value| self(value, context).into_mutate_result())
    }
}
impl<State, F, T, O> MutateChainLink<State, ByMutateOwned<T>> for F
where
    F: Fn(T, &mut MutateContext<'_, State>) -> O,
    T: AnyCompatible,
    O: IntoMutateResult,
{
    fn try_mutate<'v>(
        &self,
        value: MutateValue<'v>,
        context: &mut MutateContext<'_, State>,
    ) -> std::result::Result<Result<Any>, MutateValue<'v>> {
        match value.cast::<T>() {
            Some(value) => Ok(self(value, context).into_mutate_result()),
            None => Err(value),
        }
    }
}
impl<State, F, N, O> MutateChainLink<State, ByMutateNode<N>> for F
where
    F: Fn(&N, &mut MutateContext<'_, State>) -> O,
    N: ObjectCore,
    O: IntoMutateResult,
{
    fn try_mutate<'v>(
        &self,
        value: MutateValue<'v>,
        context: &mut MutateContext<'_, State>,
    ) -> std::result::Result<Result<Any>, MutateValue<'v>> {
        match value.as_node::<N>() {
            Some(node) => Ok(self(node, context).into_mutate_result()),
            None => Err(value),
        }
    }
}
impl<State, F, O> MutateChainLink<State, ByMutateCatchAll> for F
where
    F: Fn(&StructuralView, &mut MutateContext<'_, State>) -> O,
    O: IntoMutateResult,
{
    fn try_mutate<'v>(
        &self,
        value: MutateValue<'v>,
        context: &mut MutateContext<'_, State>,
    ) -> std::result::Result<Result<Any>, MutateValue<'v>> {
        Ok(self(value.as_value(), context).into_mutate_result())
    }
}

macro_rules! chains {
    ($(($($link:ident $marker:ident $index:tt),+))*) => {$(
        impl<$($link, $marker),+> MapChainLink<ByMapChainLink<($($marker,)+)>> for ($($link,)+)
        where
            $($link: MapChainLink<$marker>),+
        {
            fn try_map(
                &mut self,
                value: &StructuralView,
                kind: DefRegionKind,
            ) -> Option<Result<Any>> {
                $(if let Some(result) = self.$index.try_map(value, kind) {
                    return Some(result);
                })+
                None
            }
        }
        impl<State, $($link, $marker),+> MutateChainLink<State, ByMutateChainLink<($($marker,)+)>>
            for ($($link,)+)
        where
            $($link: MutateChainLink<State, $marker>),+
        {
            fn try_mutate<'v>(
                &self,
                value: MutateValue<'v>,
                context: &mut MutateContext<'_, State>,
            ) -> std::result::Result<Result<Any>, MutateValue<'v>> {
                $(let value = match self.$index.try_mutate(value, context) {
                    Ok(result) => return Ok(result),
                    Err(value) => value,
                };)+
                Err(value)
            }
        }
    )*};
}
for_each_chain!(chains);

/// Callbacks with a state, as a mutator that can be used again.
///
/// ```
/// use tvm_ffi::*;
/// let count = |x: i64, ctx: &mut MutateContext<'_, i64>| {
///     *ctx.state_mut() += 1;
///     x
/// };
/// let mut mutator = MutateCallbacks::new(0i64, count);
/// structural_mutate(Array::new(vec![1i64, 2]), &mut mutator).unwrap();
/// assert_eq!(mutator.into_state(), 2);
/// ```
pub struct MutateCallbacks<State, Link, Marker, Policy = DefaultMutContextPolicy> {
    state: State,
    // Shared with the call that runs: a callback gets at the mutator and may be called again.
    link: Rc<Link>,
    policy: Rc<Policy>,
    _phantom: PhantomData<Marker>,
}

impl<State, Link: MutateChainLink<State, Marker>, Marker> MutateCallbacks<State, Link, Marker> {
    /// A mutator with a state.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let add = |x: i64, ctx: &mut MutateContext<'_, i64>| x + ctx.state();
    /// let mut mutator = MutateCallbacks::new(10i64, add);
    /// assert_eq!(structural_mutate(1i64, &mut mutator).unwrap().try_as::<i64>(), Some(11));
    /// ```
    pub fn new(state: State, callbacks: Link) -> Self {
        let policy = Rc::new(DefaultMutContextPolicy);
        Self { state, link: Rc::new(callbacks), policy, _phantom: PhantomData }
    }
}

impl<State, Link, Marker, Policy> MutateCallbacks<State, Link, Marker, Policy> {
    /// The same callbacks with a policy.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let double = |x: i64, _: &mut MutateContext<'_>| 2 * x;
    /// let mut mutator = MutateCallbacks::new((), double).with_policy(DefaultMutContextPolicy);
    /// let result = structural_mutate(Array::new(vec![3i64]), &mut mutator).unwrap();
    /// assert_eq!(Array::<i64>::try_from(result).unwrap().get(0).unwrap(), 6);
    /// ```
    pub fn with_policy<P: MutContextPolicy<State>>(
        self,
        policy: P,
    ) -> MutateCallbacks<State, Link, Marker, P> {
        let Self { state, link, .. } = self;
        MutateCallbacks { state, link, policy: Rc::new(policy), _phantom: PhantomData }
    }
    /// The state.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let keep = |x: i64, _: &mut MutateContext<'_, i64>| x;
    /// let mutator = MutateCallbacks::new(10i64, keep);
    /// assert_eq!(*mutator.state(), 10);
    /// ```
    pub fn state(&self) -> &State {
        &self.state
    }
    /// The state.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let add = |x: i64, ctx: &mut MutateContext<'_, i64>| x + ctx.state();
    /// let mut mutator = MutateCallbacks::new(10i64, add);
    /// *mutator.state_mut() = 20;
    /// assert_eq!(structural_mutate(1i64, &mut mutator).unwrap().try_as::<i64>(), Some(21));
    /// ```
    pub fn state_mut(&mut self) -> &mut State {
        &mut self.state
    }
    /// The state.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// let collect = |x: i64, ctx: &mut MutateContext<'_, Vec<i64>>| {
    ///     ctx.state_mut().push(x);
    ///     Unchanged
    /// };
    /// let mut mutator = MutateCallbacks::new(Vec::new(), collect);
    /// structural_mutate(Array::new(vec![1i64, 2]), &mut mutator).unwrap();
    /// assert_eq!(mutator.into_state(), [1, 2]);
    /// ```
    pub fn into_state(self) -> State {
        self.state
    }
}

impl<State, Link, Marker, Policy> MutateCallbacks<State, Link, Marker, Policy>
where
    Link: MutateChainLink<State, Marker>,
    Policy: MutContextPolicy<State>,
{
    fn step(&mut self, value: &TVMFFIAny, kind: DefRegionKind, mode: InplaceMode) -> Result<Any> {
        let (link, policy) = (self.link.clone(), self.policy.clone());
        let descent = Continuation { policy: &*policy, next: None };
        let mut context = MutateContext::new(self, mode, kind, Some(&descent));
        match link.try_mutate(MutateValue::from_raw(*value, mode), &mut context) {
            Ok(result) => result,
            Err(value) => context.default_maybe_inplace_mutate_result(value).map(Any::from),
        }
    }
}

impl<State, Link, Marker, Policy> StructuralMutator for MutateCallbacks<State, Link, Marker, Policy>
where
    Link: MutateChainLink<State, Marker>,
    Policy: MutContextPolicy<State>,
{
    fn dispatch_mutate(&mut self, value: &StructuralView, kind: DefRegionKind) -> Result<Any> {
        self.step(AnyView::from(value).raw(), kind, InplaceMode::Disallow)
    }
    fn dispatch_maybe_inplace_mutate(
        &mut self,
        value: InplaceValue<'_>,
        kind: DefRegionKind,
    ) -> Result<Any> {
        self.step(&value.data, kind, InplaceMode::Allow)
    }
}
mut_engine!(
    [State, Link: MutateChainLink<State, Marker>, Marker, Policy: MutContextPolicy<State>],
    MutateCallbacks<State, Link, Marker, Policy>, State,
    |this| &this.state, &mut this.state, this
);

impl<L: MutateChainLink<(), M>, M> IntoMutator<ByMutateCallbacks<M>> for L {
    fn mutate_root(self, root: Any) -> Result<Any> {
        run(&mut MutateCallbacks::new((), self), root)
    }
}

/// The handlers of a mutation.
///
/// ```
/// use tvm_ffi::*;
/// struct Double;
/// #[dispatch(mutate)]
/// impl Double {
///     fn mutate_int(&mut self, x: i64) -> i64 {
///         2 * x
///     }
///     fn mutate_array(&mut self, value: MutateValue<'_, Array<i64>>, mutator: &mut Mutator) -> Result<Any> {
///         mutator.default_maybe_inplace_mutate(self, value)
///     }
/// }
/// let result = structural_mutate(Array::new(vec![1i64]), Double).unwrap();
/// assert_eq!(Array::<i64>::try_from(result).unwrap().get(0).unwrap(), 2);
/// ```
pub trait MutateDispatch: Sized {
    /// Calls the handler of a borrowed value, if there is one.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// struct Double;
    /// // What `#[dispatch(mutate)]` writes.
    /// impl MutateDispatch for Double {
    ///     fn dispatch_mutate(&mut self, value: &StructuralView, _: &mut Mutator) -> Option<Result<Any>> {
    ///         value.cast::<i64>().map(|x| Ok(Any::from(2 * x)))
    ///     }
    /// }
    /// let result = structural_mutate(Array::new(vec![1i64]), Double).unwrap();
    /// assert_eq!(Array::<i64>::try_from(result).unwrap().get(0).unwrap(), 2);
    /// ```
    fn dispatch_mutate(
        &mut self,
        value: &StructuralView,
        mutator: &mut Mutator,
    ) -> Option<Result<Any>>;
    /// Calls the handler of a value with its permission.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// struct Double;
    /// impl MutateDispatch for Double {
    ///     fn dispatch_mutate(&mut self, value: &StructuralView, _: &mut Mutator) -> Option<Result<Any>> {
    ///         value.cast::<i64>().map(|x| Ok(Any::from(2 * x)))
    ///     }
    ///     fn dispatch_mutate_value(
    ///         &mut self,
    ///         value: MutateValue<'_>,
    ///         mutator: &mut Mutator,
    ///     ) -> Option<Result<Any>> {
    ///         match value.try_cast::<Array<i64>>() {
    ///             Ok(array) => Some(mutator.default_maybe_inplace_mutate(self, array)),
    ///             Err(other) => MutateDispatch::dispatch_mutate(self, other.as_value(), mutator),
    ///         }
    ///     }
    /// }
    /// let result = structural_mutate(Array::new(vec![1i64]), Double).unwrap();
    /// assert_eq!(Array::<i64>::try_from(result).unwrap().get(0).unwrap(), 2);
    /// ```
    fn dispatch_mutate_value(
        &mut self,
        value: MutateValue<'_>,
        mutator: &mut Mutator,
    ) -> Option<Result<Any>> {
        MutateDispatch::dispatch_mutate(self, value.as_value(), mutator)
    }
    #[doc(hidden)]
    fn on_default_mutate(&mut self, value: MutateValue<'_>, kind: DefRegionKind) -> Result<Any> {
        descend(self, &value.data, kind, value.mode == InplaceMode::Allow)
    }
}

fn dispatch_step<D: MutateDispatch>(
    dispatch: &mut D,
    value: &TVMFFIAny,
    kind: DefRegionKind,
    mode: InplaceMode,
) -> Result<Any> {
    let mut mutator = Mutator { mode, kind, _not_send: PhantomData };
    match dispatch.dispatch_mutate_value(MutateValue::from_raw(*value, mode), &mut mutator) {
        Some(result) => result,
        None => {
            MutateDispatch::on_default_mutate(dispatch, MutateValue::from_raw(*value, mode), kind)
        }
    }
}

impl<D: MutateDispatch> StructuralMutator for D {
    fn dispatch_mutate(&mut self, value: &StructuralView, kind: DefRegionKind) -> Result<Any> {
        dispatch_step(self, AnyView::from(value).raw(), kind, InplaceMode::Disallow)
    }
    fn dispatch_maybe_inplace_mutate(
        &mut self,
        value: InplaceValue<'_>,
        kind: DefRegionKind,
    ) -> Result<Any> {
        dispatch_step(self, &value.data, kind, InplaceMode::Allow)
    }
    fn on_default_mutate(&mut self, value: MutateValue<'_>, kind: DefRegionKind) -> Result<Any> {
        MutateDispatch::on_default_mutate(self, value, kind)
    }
}
impl<D: MutateDispatch> IntoMutator<ByMutateDispatch> for D {
    fn mutate_root(mut self, root: Any) -> Result<Any> {
        run(&mut self, root)
    }
}

/// What a handler of [`MutateDispatch`] sees of the mutation.
///
/// ```
/// use tvm_ffi::*;
/// struct Double;
/// #[dispatch(mutate)]
/// impl Double {
///     fn mutate_int(&mut self, x: i64) -> i64 {
///         2 * x
///     }
///     fn mutate_array(&mut self, value: MutateValue<'_, Array<i64>>, mutator: &mut Mutator) -> Result<Any> {
///         mutator.default_maybe_inplace_mutate(self, value)
///     }
/// }
/// let result = structural_mutate(Array::new(vec![1i64]), Double).unwrap();
/// assert_eq!(Array::<i64>::try_from(result).unwrap().get(0).unwrap(), 2);
/// ```
pub struct Mutator {
    mode: InplaceMode,
    kind: DefRegionKind,
    _not_send: PhantomData<*mut ()>,
}

impl Mutator {
    /// Whether the current value may be changed.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// struct Double;
    /// #[dispatch(mutate)]
    /// impl Double {
    ///     fn mutate_int(&mut self, x: i64) -> i64 {
    ///         2 * x
    ///     }
    ///     fn mutate_bool(&mut self, _value: bool, mutator: &mut Mutator) -> Result<Any> {
    ///         assert_eq!(mutator.inplace_mode(), InplaceMode::Disallow);
    ///         mutator.mutate(self, &20i64)
    ///     }
    /// }
    /// let result = structural_mutate(true, Double).unwrap();
    /// assert_eq!(result.try_as::<i64>(), Some(40));
    /// ```
    pub fn inplace_mode(&self) -> InplaceMode {
        self.mode
    }
    /// The region of the current value.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// struct Double;
    /// #[dispatch(mutate)]
    /// impl Double {
    ///     fn mutate_int(&mut self, x: i64) -> i64 {
    ///         2 * x
    ///     }
    ///     fn mutate_bool(&mut self, _value: bool, mutator: &mut Mutator) -> Result<Any> {
    ///         assert_eq!(mutator.def_region_kind(), DefRegionKind::None);
    ///         mutator.mutate(self, &20i64)
    ///     }
    /// }
    /// let result = structural_mutate(true, Double).unwrap();
    /// assert_eq!(result.try_as::<i64>(), Some(40));
    /// ```
    pub fn def_region_kind(&self) -> DefRegionKind {
        self.kind
    }
    /// Mutates another value.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// struct Double;
    /// #[dispatch(mutate)]
    /// impl Double {
    ///     fn mutate_int(&mut self, x: i64) -> i64 {
    ///         2 * x
    ///     }
    ///     fn mutate_bool(&mut self, _value: bool, mutator: &mut Mutator) -> Result<Any> {
    ///         mutator.mutate(self, &20i64)
    ///     }
    /// }
    /// let result = structural_mutate(true, Double).unwrap();
    /// assert_eq!(result.try_as::<i64>(), Some(40));
    /// ```
    pub fn mutate<D: MutateDispatch, T>(&mut self, dispatch: &mut D, value: &T) -> Result<Any>
    where
        for<'x> AnyView<'x>: From<&'x T>,
    {
        StructuralMutator::mutate(dispatch, value, self.kind)
    }
    /// Mutates another value in a region.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// struct Double;
    /// #[dispatch(mutate)]
    /// impl Double {
    ///     fn mutate_int(&mut self, x: i64) -> i64 {
    ///         2 * x
    ///     }
    ///     fn mutate_bool(&mut self, _value: bool, mutator: &mut Mutator) -> Result<Any> {
    ///         mutator.mutate_with(self, &20i64, DefRegionKind::Simple)
    ///     }
    /// }
    /// let result = structural_mutate(true, Double).unwrap();
    /// assert_eq!(result.try_as::<i64>(), Some(40));
    /// ```
    pub fn mutate_with<D: MutateDispatch, T>(
        &mut self,
        dispatch: &mut D,
        value: &T,
        kind: DefRegionKind,
    ) -> Result<Any>
    where
        for<'x> AnyView<'x>: From<&'x T>,
    {
        StructuralMutator::mutate(dispatch, value, kind)
    }
    /// Mutates an owned value, in place where nobody else refers to it.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// struct Double;
    /// #[dispatch(mutate)]
    /// impl Double {
    ///     fn mutate_int(&mut self, x: i64) -> i64 {
    ///         2 * x
    ///     }
    ///     fn mutate_bool(&mut self, _value: bool, mutator: &mut Mutator) -> Result<Any> {
    ///         mutator.maybe_inplace_mutate(self, 20i64)
    ///     }
    /// }
    /// let result = structural_mutate(true, Double).unwrap();
    /// assert_eq!(result.try_as::<i64>(), Some(40));
    /// ```
    pub fn maybe_inplace_mutate<D: MutateDispatch, T: Into<Any>>(
        &mut self,
        dispatch: &mut D,
        value: T,
    ) -> Result<Any> {
        StructuralMutator::maybe_inplace_mutate(dispatch, value, self.kind)
    }
    /// The same in a region.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// struct Double;
    /// #[dispatch(mutate)]
    /// impl Double {
    ///     fn mutate_int(&mut self, x: i64) -> i64 {
    ///         2 * x
    ///     }
    ///     fn mutate_bool(&mut self, _value: bool, mutator: &mut Mutator) -> Result<Any> {
    ///         mutator.maybe_inplace_mutate_with(self, 20i64, DefRegionKind::Simple)
    ///     }
    /// }
    /// let result = structural_mutate(true, Double).unwrap();
    /// assert_eq!(result.try_as::<i64>(), Some(40));
    /// ```
    pub fn maybe_inplace_mutate_with<D: MutateDispatch, T: Into<Any>>(
        &mut self,
        dispatch: &mut D,
        value: T,
        kind: DefRegionKind,
    ) -> Result<Any> {
        StructuralMutator::maybe_inplace_mutate(dispatch, value, kind)
    }
    /// The same with a mode.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// struct Double;
    /// #[dispatch(mutate)]
    /// impl Double {
    ///     fn mutate_int(&mut self, x: i64) -> i64 {
    ///         2 * x
    ///     }
    ///     fn mutate_bool(&mut self, _value: bool, mutator: &mut Mutator) -> Result<Any> {
    ///         let (kind, mode) = (DefRegionKind::None, InplaceMode::Disallow);
    ///         mutator.maybe_inplace_mutate_with_mode(self, 20i64, kind, mode)
    ///     }
    /// }
    /// let result = structural_mutate(true, Double).unwrap();
    /// assert_eq!(result.try_as::<i64>(), Some(40));
    /// ```
    pub fn maybe_inplace_mutate_with_mode<D: MutateDispatch, T: Into<Any>>(
        &mut self,
        dispatch: &mut D,
        value: T,
        kind: DefRegionKind,
        mode: InplaceMode,
    ) -> Result<Any> {
        StructuralMutator::maybe_inplace_mutate_with_mode(dispatch, value, kind, mode)
    }
    /// Mutates the parts of a copy of a value.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// struct Double;
    /// #[dispatch(mutate)]
    /// impl Double {
    ///     fn mutate_int(&mut self, x: i64) -> i64 {
    ///         2 * x
    ///     }
    ///     fn mutate_array(
    ///         &mut self,
    ///         value: MutateValue<'_, Array<i64>>,
    ///         mutator: &mut Mutator,
    ///     ) -> Result<Any> {
    ///         mutator.default_mutate(self, value.as_value())
    ///     }
    /// }
    /// let result = structural_mutate(Array::new(vec![1i64, 2]), Double).unwrap();
    /// assert_eq!(Array::<i64>::try_from(result).unwrap().get(1).unwrap(), 4);
    /// ```
    pub fn default_mutate<D: MutateDispatch, T>(
        &mut self,
        dispatch: &mut D,
        value: &T,
    ) -> Result<Any>
    where
        for<'x> AnyView<'x>: From<&'x T>,
    {
        StructuralMutator::default_mutate(dispatch, value, self.kind)
    }
    /// [`Mutator::mutate`] that says whether anything changed.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// struct Double;
    /// #[dispatch(mutate)]
    /// impl Double {
    ///     fn mutate_int(&mut self, x: i64) -> i64 {
    ///         2 * x
    ///     }
    ///     fn mutate_bool(&mut self, _value: bool, mutator: &mut Mutator) -> Result<UnchangedOr<Any>> {
    ///         mutator.mutate_result(self, &20i64)
    ///     }
    /// }
    /// let result = structural_mutate(true, Double).unwrap();
    /// assert_eq!(result.try_as::<i64>(), Some(40));
    /// ```
    pub fn mutate_result<D: MutateDispatch, T>(
        &mut self,
        dispatch: &mut D,
        value: &T,
    ) -> Result<UnchangedOr<Any>>
    where
        for<'x> AnyView<'x>: From<&'x T>,
    {
        StructuralMutator::mutate_result(dispatch, value, self.kind)
    }
    /// [`Mutator::mutate_with`] that says whether anything changed.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// struct Double;
    /// #[dispatch(mutate)]
    /// impl Double {
    ///     fn mutate_int(&mut self, x: i64) -> i64 {
    ///         2 * x
    ///     }
    ///     fn mutate_bool(&mut self, _value: bool, mutator: &mut Mutator) -> Result<UnchangedOr<Any>> {
    ///         mutator.mutate_with_result(self, &20i64, DefRegionKind::Simple)
    ///     }
    /// }
    /// let result = structural_mutate(true, Double).unwrap();
    /// assert_eq!(result.try_as::<i64>(), Some(40));
    /// ```
    pub fn mutate_with_result<D: MutateDispatch, T>(
        &mut self,
        dispatch: &mut D,
        value: &T,
        kind: DefRegionKind,
    ) -> Result<UnchangedOr<Any>>
    where
        for<'x> AnyView<'x>: From<&'x T>,
    {
        StructuralMutator::mutate_result(dispatch, value, kind)
    }
    /// [`Mutator::default_mutate`] that says whether anything changed.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// struct Double;
    /// #[dispatch(mutate)]
    /// impl Double {
    ///     fn mutate_int(&mut self, x: i64) -> i64 {
    ///         2 * x
    ///     }
    ///     fn mutate_array(
    ///         &mut self,
    ///         value: MutateValue<'_, Array<i64>>,
    ///         mutator: &mut Mutator,
    ///     ) -> Result<UnchangedOr<Any>> {
    ///         mutator.default_mutate_result(self, value.as_value())
    ///     }
    /// }
    /// let result = structural_mutate(Array::new(vec![1i64, 2]), Double).unwrap();
    /// assert_eq!(Array::<i64>::try_from(result).unwrap().get(1).unwrap(), 4);
    /// ```
    pub fn default_mutate_result<D: MutateDispatch, T>(
        &mut self,
        dispatch: &mut D,
        value: &T,
    ) -> Result<UnchangedOr<Any>>
    where
        for<'x> AnyView<'x>: From<&'x T>,
    {
        StructuralMutator::default_mutate_result(dispatch, value, self.kind)
    }
    /// Mutates the parts of a value with its own permission.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// struct Double;
    /// #[dispatch(mutate)]
    /// impl Double {
    ///     fn mutate_int(&mut self, x: i64) -> i64 {
    ///         2 * x
    ///     }
    ///     fn mutate_array(
    ///         &mut self,
    ///         value: MutateValue<'_, Array<i64>>,
    ///         mutator: &mut Mutator,
    ///     ) -> Result<Any> {
    ///         mutator.default_maybe_inplace_mutate(self, value)
    ///     }
    /// }
    /// let result = structural_mutate(Array::new(vec![1i64, 2]), Double).unwrap();
    /// assert_eq!(Array::<i64>::try_from(result).unwrap().get(1).unwrap(), 4);
    /// ```
    pub fn default_maybe_inplace_mutate<D: MutateDispatch, T>(
        &mut self,
        dispatch: &mut D,
        value: MutateValue<'_, T>,
    ) -> Result<Any> {
        self.default_mutate_with_mode(dispatch, value, InplaceMode::Allow)
    }
    /// The same, and says whether there is another object.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// struct Double;
    /// #[dispatch(mutate)]
    /// impl Double {
    ///     fn mutate_int(&mut self, x: i64) -> i64 {
    ///         2 * x
    ///     }
    ///     fn mutate_array(
    ///         &mut self,
    ///         value: MutateValue<'_, Array<i64>>,
    ///         mutator: &mut Mutator,
    ///     ) -> Result<UnchangedOr<Any>> {
    ///         mutator.default_maybe_inplace_mutate_result(self, value)
    ///     }
    /// }
    /// let result = structural_mutate(Array::new(vec![1i64, 2]), Double).unwrap();
    /// assert_eq!(Array::<i64>::try_from(result).unwrap().get(1).unwrap(), 4);
    /// ```
    pub fn default_maybe_inplace_mutate_result<D: MutateDispatch, T>(
        &mut self,
        dispatch: &mut D,
        value: MutateValue<'_, T>,
    ) -> Result<UnchangedOr<Any>> {
        self.default_mutate_with_mode_result(dispatch, value, InplaceMode::Allow)
    }
    /// Mutates the parts of a value; no mode allows more than the value does.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// struct Double;
    /// #[dispatch(mutate)]
    /// impl Double {
    ///     fn mutate_int(&mut self, x: i64) -> i64 {
    ///         2 * x
    ///     }
    ///     fn mutate_array(
    ///         &mut self,
    ///         value: MutateValue<'_, Array<i64>>,
    ///         mutator: &mut Mutator,
    ///     ) -> Result<Any> {
    ///         mutator.default_mutate_with_mode(self, value, InplaceMode::Disallow)
    ///     }
    /// }
    /// let result = structural_mutate(Array::new(vec![1i64, 2]), Double).unwrap();
    /// assert_eq!(Array::<i64>::try_from(result).unwrap().get(1).unwrap(), 4);
    /// ```
    pub fn default_mutate_with_mode<D: MutateDispatch, T>(
        &mut self,
        dispatch: &mut D,
        value: MutateValue<'_, T>,
        mode: InplaceMode,
    ) -> Result<Any> {
        let mode = mode_of(value.mode == InplaceMode::Allow && mode == InplaceMode::Allow);
        Ok(resolve(default_value(dispatch, &value.data, self.kind, mode)?, &value.data))
    }
    /// The same, and says whether there is another object.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// struct Double;
    /// #[dispatch(mutate)]
    /// impl Double {
    ///     fn mutate_int(&mut self, x: i64) -> i64 {
    ///         2 * x
    ///     }
    ///     fn mutate_array(
    ///         &mut self,
    ///         value: MutateValue<'_, Array<i64>>,
    ///         mutator: &mut Mutator,
    ///     ) -> Result<UnchangedOr<Any>> {
    ///         mutator.default_mutate_with_mode_result(self, value, InplaceMode::Disallow)
    ///     }
    /// }
    /// let result = structural_mutate(Array::new(vec![1i64, 2]), Double).unwrap();
    /// assert_eq!(Array::<i64>::try_from(result).unwrap().get(1).unwrap(), 4);
    /// ```
    pub fn default_mutate_with_mode_result<D: MutateDispatch, T>(
        &mut self,
        dispatch: &mut D,
        value: MutateValue<'_, T>,
        mode: InplaceMode,
    ) -> Result<UnchangedOr<Any>> {
        let mode = mode_of(value.mode == InplaceMode::Allow && mode == InplaceMode::Allow);
        default_value(dispatch, &value.data, self.kind, mode).map(marked)
    }
    /// What a variable becomes.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// struct Ask;
    /// #[dispatch(mutate)]
    /// impl Ask {
    ///     fn mutate_shape(&mut self, value: MutateValue<'_, Shape>, mutator: &mut Mutator) -> Result<Unchanged> {
    ///         assert!(mutator.var_remap_get(self, value.as_value())?.is_none());
    ///         Ok(Unchanged)
    ///     }
    /// }
    /// structural_mutate(Shape::from([1i64]), Ask).unwrap();
    /// ```
    pub fn var_remap_get<D: MutateDispatch>(
        &mut self,
        dispatch: &mut D,
        var: &StructuralView,
    ) -> Result<Option<Any>> {
        StructuralMutator::var_remap_get(dispatch, var)
    }
    /// Says what a variable becomes.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// struct Learn;
    /// #[dispatch(mutate)]
    /// impl Learn {
    ///     fn mutate_shape(&mut self, value: MutateValue<'_, Shape>, mutator: &mut Mutator) -> Result<Any> {
    ///         mutator.var_remap_set(self, value.as_value(), &Any::from(7i64))?;
    ///         Ok(mutator.var_remap_get(self, value.as_value())?.unwrap())
    ///     }
    /// }
    /// let result = structural_mutate(Shape::from([1i64]), Learn).unwrap();
    /// assert_eq!(result.try_as::<i64>(), Some(7));
    /// ```
    pub fn var_remap_set<D: MutateDispatch>(
        &mut self,
        dispatch: &mut D,
        var: &StructuralView,
        value: &Any,
    ) -> Result<()> {
        StructuralMutator::var_remap_set(dispatch, var, value)
    }
}

/// The state of a dispatcher that is its own state. For generated code.
#[doc(hidden)]
pub trait MutateCallbackState<State> {
    fn callback_state(&self) -> &State;
    fn callback_state_mut(&mut self) -> &mut State;
}

/// The descent of a dispatcher with a policy. For generated code.
#[doc(hidden)]
pub fn default_mutate_with_policy<D>(
    dispatch: &mut D,
    policy: &impl MutContextPolicy<D>,
    value: MutateValue<'_>,
    kind: DefRegionKind,
) -> Result<Any>
where
    D: MutateDispatch + MutateCallbackState<D>,
{
    let mode = value.mode;
    let mut own = Own(dispatch);
    let mut context = MutateContext::new(&mut own, mode, kind, None);
    policy.default_mutate(value, &mut context).map(Any::from)
}

struct Own<'a, D>(&'a mut D);
mut_engine!(
    [D: MutateDispatch + MutateCallbackState<D>], Own<'_, D>, D,
    |this| this.0.callback_state(), this.0.callback_state_mut(), this.0
);
