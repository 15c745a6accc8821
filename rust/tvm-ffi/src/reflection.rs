// SPDX-License-Identifier: Apache-2.0
//! What the runtime knows of types: fields, attributes, methods.
use crate::any::Any;
use crate::derive::{Object as DeriveObject, ObjectRef as DeriveObjectRef};
use crate::error::{Error, Result, INTERNAL_ERROR, TYPE_ERROR};
use crate::function::Function;
use crate::function_internal::{drop_payload, panic_to_error, raise};
use crate::object::{Object, ObjectArc, ObjectCore, ObjectRef, ObjectRefCore, TypeIndex};
use crate::type_traits::{type_key_of, AnyCompatible};
use std::ffi::c_void;
use std::marker::PhantomData;
use std::mem::{align_of, size_of};
use std::panic::{catch_unwind, AssertUnwindSafe};
use tvm_ffi_sys::*;

fn type_info(type_index: i32) -> Result<&'static TVMFFITypeInfo> {
    // SAFETY: records of the type table are never freed.
    match unsafe { TVMFFIGetTypeInfo(type_index).as_ref() } {
        Some(info) => Ok(info),
        None => crate::bail!(TYPE_ERROR, "Cannot find type info for type_index={}", type_index),
    }
}

/// Own fields of a type, in the order of registration.
pub(crate) fn fields_of(info: &TVMFFITypeInfo) -> &[TVMFFIFieldInfo] {
    if info.fields.is_null() {
        return &[];
    }
    // SAFETY: the record has that many fields.
    unsafe { std::slice::from_raw_parts(info.fields, info.num_fields as usize) }
}

/// The types from the root to the parent.
pub(crate) fn ancestors_of(
    info: &TVMFFITypeInfo,
) -> impl DoubleEndedIterator<Item = &TVMFFITypeInfo> {
    // SAFETY: the record has `type_depth` ancestors, which are never freed.
    (0..info.type_depth as usize).map(|i| unsafe { &**info.type_acenstors.add(i) })
}

/// One attribute of all types.
///
/// ```
/// use tvm_ffi::*;
/// mod point {
///     use tvm_ffi::{def_object_ref, object::ObjectRef, rs_class, Object};
///     #[rs_class("doc.type_attr_column.Point")]
///     pub struct PointObj {
///         base: Object,
///         pub x: i64,
///     }
///     def_object_ref!(pub Point, ObjectRef, PointObj);
/// }
/// use point::{Point, PointObj};
/// let point = Point::from(PointObj::new(Object::new(), 3));
/// drop(point);
/// let finals = TypeAttrColumn::new("__ffi_type_final__").unwrap();
/// assert_eq!(finals.get(PointObj::type_index()).unwrap().try_as::<bool>(), Some(false));
/// ```
#[derive(Clone, Copy)]
pub struct TypeAttrColumn {
    column: *const TVMFFITypeAttrColumn,
}
// SAFETY: the runtime changes columns so that readers on other threads are safe.
unsafe impl Send for TypeAttrColumn {}
unsafe impl Sync for TypeAttrColumn {}

impl TypeAttrColumn {
    /// The column of an attribute, None if no type has it.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// assert!(TypeAttrColumn::new("doc.no_such_attribute").is_none());
    /// ```
    pub fn new(name: &str) -> Option<Self> {
        // SAFETY: the name is valid during the call.
        let column = unsafe { TVMFFIGetTypeAttrColumn(&TVMFFIByteArray::from_str(name)) };
        (!column.is_null()).then_some(Self { column })
    }

    /// The value for a type; attributes are not inherited.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// mod point {
    ///     use tvm_ffi::{def_object_ref, object::ObjectRef, rs_class, Object};
    ///     #[rs_class("doc.type_attr_column_get.Point")]
    ///     pub struct PointObj {
    ///         base: Object,
    ///         pub x: i64,
    ///     }
    ///     def_object_ref!(pub Point, ObjectRef, PointObj);
    /// }
    /// use point::{Point, PointObj};
    /// let point = Point::from(PointObj::new(Object::new(), 3));
    /// drop(point);
    /// let copies = TypeAttrColumn::new("__ffi_shallow_copy__").unwrap();
    /// assert!(copies.get(PointObj::type_index()).is_some());
    /// assert!(copies.get(-1).is_none());
    /// ```
    pub fn get(self, type_index: i32) -> Option<Any> {
        // SAFETY: columns are never freed, and have `size` cells.
        unsafe {
            let column = &*self.column;
            let at = type_index.checked_sub(column.begin_index)?;
            if at < 0 || at >= column.size {
                return None;
            }
            let cell = &*column.data.add(at as usize);
            (cell.type_index != TypeIndex::kTVMFFINone as i32).then(|| Any::copy_of_view(cell))
        }
    }
}

/// An attribute of a type.
///
/// ```
/// assert!(tvm_ffi::get_type_attr(64, "doc.no_such_attribute").is_none());
/// ```
pub fn get_type_attr(type_index: i32, attr_name: &str) -> Option<Any> {
    TypeAttrColumn::new(attr_name)?.get(type_index)
}

/// Reads a reflected field.
///
/// ```
/// use tvm_ffi::*;
/// mod point {
///     use tvm_ffi::{def_object_ref, object::ObjectRef, rs_class, Object};
///     #[rs_class("doc.field_getter.Point")]
///     pub struct PointObj {
///         base: Object,
///         pub x: i64,
///     }
///     def_object_ref!(pub Point, ObjectRef, PointObj);
/// }
/// use point::{Point, PointObj};
/// let point = Point::from(PointObj::new(Object::new(), 3));
/// let x = FieldGetter::new(PointObj::type_index(), "x").unwrap();
/// assert_eq!(x.get::<_, i64>(&*point).unwrap(), 3);
/// ```
#[derive(Clone, Copy)]
pub struct FieldGetter {
    type_index: i32,
    offset: i64,
    getter: TVMFFIFieldGetter,
}

impl FieldGetter {
    /// The field of a type or of its nearest ancestor that has one.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// mod point {
    ///     use tvm_ffi::{def_object_ref, object::ObjectRef, rs_class, Object};
    ///     #[rs_class("doc.field_getter_new.Point")]
    ///     pub struct PointObj {
    ///         base: Object,
    ///         pub x: i64,
    ///     }
    ///     def_object_ref!(pub Point, ObjectRef, PointObj);
    /// }
    /// use point::{Point, PointObj};
    /// let point = Point::from(PointObj::new(Object::new(), 3));
    /// drop(point);
    /// assert!(FieldGetter::new(PointObj::type_index(), "y").is_err());
    /// ```
    pub fn new(type_index: i32, field_name: &str) -> Result<Self> {
        let info = type_info(type_index)?;
        let found = std::iter::once(info)
            .chain(ancestors_of(info).rev())
            .flat_map(fields_of)
            .find(|field| field.name.as_str() == field_name);
        let Some(field) = found else {
            crate::bail!(
                TYPE_ERROR,
                "Cannot find reflected field `{}` in type `{}`",
                field_name,
                info.type_key.as_str()
            );
        };
        let Some(getter) = field.getter else {
            crate::bail!(TYPE_ERROR, "Reflected field `{}` has no getter", field_name);
        };
        Ok(Self { type_index, offset: field.offset, getter })
    }

    /// The value of the field.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// mod point {
    ///     use tvm_ffi::{def_object_ref, object::ObjectRef, rs_class, Object};
    ///     #[rs_class("doc.field_getter_get_any.Point")]
    ///     pub struct PointObj {
    ///         base: Object,
    ///         pub x: i64,
    ///     }
    ///     def_object_ref!(pub Point, ObjectRef, PointObj);
    /// }
    /// use point::{Point, PointObj};
    /// let point = Point::from(PointObj::new(Object::new(), 3));
    /// let x = FieldGetter::new(PointObj::type_index(), "x").unwrap();
    /// assert_eq!(x.get_any(&*point).unwrap().try_as::<i64>(), Some(3));
    /// ```
    pub fn get_any<N: ObjectCore>(&self, object: &N) -> Result<Any> {
        let header = object as *const N as *const TVMFFIObject;
        // SAFETY: every object starts with a header.
        let index = unsafe { (*header).type_index };
        if index != self.type_index && !derives_from(index, self.type_index) {
            crate::bail!(
                TYPE_ERROR,
                "Cannot read a field of type_index={} from object type_index={}",
                self.type_index,
                index
            );
        }
        let mut result = Any::new();
        // SAFETY: the object is of the type, or derives from it, so the field is at the offset.
        unsafe {
            let field = (header as *mut u8).offset(self.offset as isize) as *mut c_void;
            let code = (self.getter)(field, result.as_data_ptr());
            crate::check_safe_call!(code)?;
        }
        Ok(result)
    }

    /// The value of the field as a `T`.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// mod point {
    ///     use tvm_ffi::{def_object_ref, object::ObjectRef, rs_class, Object};
    ///     #[rs_class("doc.field_getter_get.Point")]
    ///     pub struct PointObj {
    ///         base: Object,
    ///         pub x: i64,
    ///     }
    ///     def_object_ref!(pub Point, ObjectRef, PointObj);
    /// }
    /// use point::{Point, PointObj};
    /// let point = Point::from(PointObj::new(Object::new(), 3));
    /// let x = FieldGetter::new(PointObj::type_index(), "x").unwrap();
    /// assert!(x.get::<_, String>(&*point).is_err());
    /// ```
    pub fn get<N: ObjectCore, T: TryFrom<Any, Error = Error>>(&self, object: &N) -> Result<T> {
        T::try_from(self.get_any(object)?)
    }
}

fn derives_from(type_index: i32, ancestor: i32) -> bool {
    type_info(type_index)
        .is_ok_and(|info| ancestors_of(info).any(|parent| parent.type_index == ancestor))
}

/// One step of a path through values.
///
/// ```
/// use tvm_ffi::*;
/// assert_eq!(reflection::AccessStepObj::TYPE_KEY, "ffi.reflection.AccessStep");
/// ```
#[repr(C)]
#[derive(DeriveObject)]
#[type_key = "ffi.reflection.AccessStep"]
#[type_final]
pub struct AccessStepObj {
    object: Object,
}

/// A handle to one step.
///
/// ```
/// use tvm_ffi::*;
/// use tvm_ffi::reflection::{AccessPath, AccessStep};
/// let method = |name: &str| Function::from_type_key_method("ffi.reflection.AccessPath", name);
/// let root: AccessPath = method("_root").unwrap().call_tuple(()).unwrap().try_into().unwrap();
/// let steps = method("_to_steps").unwrap().call_tuple((&root,)).unwrap();
/// assert!(Array::<AccessStep>::try_from(steps).unwrap().is_empty());
/// ```
#[repr(C)]
#[derive(DeriveObjectRef, Clone)]
pub struct AccessStep {
    data: ObjectArc<AccessStepObj>,
}

/// A path through values.
///
/// ```
/// use tvm_ffi::*;
/// assert_eq!(reflection::AccessPathObj::TYPE_KEY, "ffi.reflection.AccessPath");
/// ```
#[repr(C)]
#[derive(DeriveObject)]
#[type_key = "ffi.reflection.AccessPath"]
#[type_final]
pub struct AccessPathObj {
    object: Object,
}

/// A handle to a path.
///
/// ```
/// use tvm_ffi::*;
/// use tvm_ffi::reflection::AccessPath;
/// let root = Function::from_type_key_method("ffi.reflection.AccessPath", "_root").unwrap();
/// let root: AccessPath = root.call_tuple(()).unwrap().try_into().unwrap();
/// assert!(root.same_as(&root.clone()));
/// ```
#[repr(C)]
#[derive(DeriveObjectRef, Clone)]
pub struct AccessPath {
    data: ObjectArc<AccessPathObj>,
}

/// Copies an object, not what its fields point to.
///
/// ```
/// use tvm_ffi::*;
/// mod point {
///     use tvm_ffi::{def_object_ref, object::ObjectRef, rs_class, Object};
///     #[rs_class("doc.shallow_copy.Point")]
///     pub struct PointObj {
///         base: Object,
///         pub x: i64,
///     }
///     def_object_ref!(pub Point, ObjectRef, PointObj);
/// }
/// use point::{Point, PointObj};
/// let point = Point::from(PointObj::new(Object::new(), 3));
/// let copy = Point::from(point.shallow_copy());
/// assert!(!copy.same_as(&point));
/// assert_eq!(copy.x, 3);
/// ```
pub trait ShallowCopy {
    /// The copy.
    ///
    /// ```
    /// use tvm_ffi::*;
    /// mod point {
    ///     use tvm_ffi::{def_object_ref, object::ObjectRef, rs_class, Object};
    ///     #[rs_class("doc.shallow_copy_method.Point")]
    ///     pub struct PointObj {
    ///         base: Object,
    ///         pub x: i64,
    ///     }
    ///     def_object_ref!(pub Point, ObjectRef, PointObj);
    /// }
    /// use point::{Point, PointObj};
    /// let point = Point::from(PointObj::new(Object::new(), 3));
    /// let copy: PointObj = point.shallow_copy();
    /// assert_eq!(copy.x, 3);
    /// ```
    fn shallow_copy(&self) -> Self;
}

impl ShallowCopy for Object {
    fn shallow_copy(&self) -> Self {
        Object::new()
    }
}

/// How a type takes part in structural comparison.
///
/// ```
/// use tvm_ffi::*;
/// assert_eq!(SEqHashKind::TreeNode as i32, 1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SEqHashKind {
    /// Not at all.
    Unsupported = 0,
    /// By its fields.
    TreeNode = 1,
    /// As a variable that can be renamed.
    FreeVar = 2,
    /// By its fields, and sharing must agree.
    DAGNode = 3,
    /// By its fields, without variables inside.
    ConstTreeNode = 4,
    /// By address.
    UniqueInstance = 5,
}

/// Flags of a reflected field.
///
/// ```
/// use tvm_ffi::*;
/// let flags = FieldFlags::WRITABLE | FieldFlags::KW_ONLY;
/// assert_eq!(flags.bits(), FieldFlags::WRITABLE.bits() | FieldFlags::KW_ONLY.bits());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldFlags(i64);

macro_rules! field_flags {
    ($($name:ident = $bit:ident, $doc:literal;)*) => {
        impl FieldFlags {
            /// No flag.
            ///
            /// ```
            /// assert_eq!(tvm_ffi::FieldFlags::NONE.bits(), 0);
            /// ```
            pub const NONE: Self = Self(0);
            $(
                #[doc = concat!($doc, "\n\n```\nuse tvm_ffi::{tvm_ffi_sys::TVMFFIFieldFlagBitMask, FieldFlags};")]
                #[doc = concat!("let flag = TVMFFIFieldFlagBitMask::", stringify!($bit), ";")]
                #[doc = concat!("assert_eq!(FieldFlags::", stringify!($name), ".bits(), flag as i64);\n```")]
                pub const $name: Self = Self(TVMFFIFieldFlagBitMask::$bit as i64);
            )*
            /// As an integer.
            ///
            /// ```
            /// use tvm_ffi::FieldFlags;
            /// assert_eq!((FieldFlags::WRITABLE | FieldFlags::NONE).bits(), 1);
            /// ```
            pub const fn bits(self) -> i64 {
                self.0
            }
        }
    };
}
field_flags! {
    WRITABLE = kTVMFFIFieldFlagBitMaskWritable, "Other languages may assign to it.";
    SEQ_HASH_IGNORE = kTVMFFIFieldFlagBitMaskSEqHashIgnore, "Left out of structural comparison.";
    SEQ_HASH_DEF_PATTERN = kTVMFFIFieldFlagBitMaskSEqHashDefPattern, "Defines variables, also inside.";
    SEQ_HASH_DEF_SIMPLE = kTVMFFIFieldFlagBitMaskSEqHashDefSimple, "Defines variables, not inside.";
    REPR_OFF = kTVMFFIFieldFlagBitMaskReprOff, "Left out of `repr`.";
    COMPARE_OFF = kTVMFFIFieldFlagBitMaskCompareOff, "Left out of comparison.";
    HASH_OFF = kTVMFFIFieldFlagBitMaskHashOff, "Left out of the hash.";
    INIT_OFF = kTVMFFIFieldFlagBitMaskInitOff, "Not a parameter of the constructor.";
    KW_ONLY = kTVMFFIFieldFlagBitMaskKwOnly, "A parameter by keyword only.";
}

impl std::ops::BitOr for FieldFlags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Registers what a type has. For generated code.
#[doc(hidden)]
pub struct ObjectDef<N: ObjectCore> {
    type_index: i32,
    // The type was registered before; nothing is added.
    done: bool,
    _phantom: PhantomData<N>,
}

impl<N: ObjectCore> ObjectDef<N> {
    /// # Safety
    /// `type_index` is that of `N`.
    pub unsafe fn registering(type_index: i32, kind: Option<SEqHashKind>) -> Result<Self> {
        Self::registering_with(type_index, kind, None)
    }

    /// # Safety
    /// `type_index` is that of `N`, and `creator` makes objects of `N`.
    pub unsafe fn registering_with(
        type_index: i32,
        kind: Option<SEqHashKind>,
        creator: Option<TVMFFIObjectCreator>,
    ) -> Result<Self> {
        let Some(info) = TVMFFIGetTypeInfo(type_index).as_ref() else {
            crate::bail!(
                INTERNAL_ERROR,
                "no type info for `{}` (type index {})",
                N::TYPE_KEY,
                type_index
            );
        };
        let known = info.metadata.as_ref();
        if let Some(known) = known.filter(|known| known.total_size != size_of::<N>() as i32) {
            crate::bail!(
                TYPE_ERROR,
                "it is registered already, for objects of {} bytes instead of {}",
                known.total_size,
                size_of::<N>()
            );
        }
        let done = known.is_some();
        if !done {
            let inherited = || {
                let known = ancestors_of(info).rev().find_map(|parent| parent.metadata.as_ref());
                known.map_or(0, |metadata| metadata.structural_eq_hash_kind)
            };
            let metadata = TVMFFITypeMetadata {
                doc: TVMFFIByteArray::from_str(""),
                creator,
                total_size: size_of::<N>() as i32,
                structural_eq_hash_kind: kind.map_or_else(inherited, |kind| kind as i32),
            };
            crate::check_safe_call!(TVMFFITypeRegisterMetadata(type_index, &metadata))?;
        }
        Ok(Self { type_index, done, _phantom: PhantomData })
    }

    /// # Safety
    /// `N` has an `F` at `offset`.
    pub unsafe fn field<F: AnyCompatible>(
        self,
        name: &str,
        offset: usize,
        flags: FieldFlags,
    ) -> Result<Self> {
        if self.done {
            let same = |field: &&TVMFFIFieldInfo| field.name.as_str() == name;
            let known = fields_of(type_info(self.type_index)?).iter().find(same);
            let place = known.map(|field| (field.offset, field.size));
            if place.is_none_or(|place| place != (offset as i64, size_of::<F>() as i64)) {
                crate::bail!(
                    TYPE_ERROR,
                    "it is registered already, and has no field `{}` of {} bytes at offset {}",
                    name,
                    size_of::<F>(),
                    offset
                );
            }
            return Ok(self);
        }
        let type_str = F::type_str();
        let metadata = metadata_of(&type_str);
        let info = TVMFFIFieldInfo {
            name: TVMFFIByteArray::from_str(name),
            doc: TVMFFIByteArray::from_str(""),
            metadata: TVMFFIByteArray::from_str(&metadata),
            flags: flags.bits(),
            size: size_of::<F>() as i64,
            alignment: align_of::<F>() as i64,
            offset: offset as i64,
            getter: Some(get_field::<F>),
            setter: set_field::<F> as *mut c_void,
            default_value_or_factory: TVMFFIAny::new(),
            field_static_type_index: static_index_of(&type_str),
        };
        crate::check_safe_call!(TVMFFITypeRegisterField(self.type_index, &info))?;
        Ok(self)
    }

    fn attribute(&self, name: &str, value: &Any) -> Result<()> {
        // SAFETY: both are valid during the call; the table takes its own reference.
        let code = unsafe {
            TVMFFITypeRegisterAttr(self.type_index, &TVMFFIByteArray::from_str(name), value.raw())
        };
        crate::check_safe_call!(code)
    }

    pub fn shallow_copy(self) -> Result<Self>
    where
        N: ShallowCopy,
    {
        if self.done {
            return Ok(self);
        }
        let type_index = self.type_index;
        let copy = Function::from_typed(move |object: ObjectRef| -> Result<ObjectRef> {
            // SAFETY: checked below: the object is an N, and nothing derived from it.
            unsafe {
                let header = ObjectArc::as_raw(ObjectRef::data(&object)) as *const TVMFFIObject;
                let found = (*header).type_index;
                if found != type_index {
                    crate::bail!(
                        TYPE_ERROR,
                        "__ffi_shallow_copy__ of `{}` applied to a `{}`",
                        N::TYPE_KEY,
                        type_key_of(found)
                    );
                }
                let made = ObjectArc::new((*(header as *const N)).shallow_copy());
                let raw = ObjectArc::into_raw(made) as *const Object;
                Ok(ObjectRef::from_data(ObjectArc::from_raw(raw)))
            }
        });
        self.attribute("__ffi_shallow_copy__", &Any::from(copy))?;
        Ok(self)
    }

    pub fn finish(self) -> Result<()> {
        if self.done {
            return Ok(());
        }
        self.attribute("__ffi_type_final__", &Any::from(N::TYPE_FINAL))
    }
}

/// Whether `N` has a [`Default`], and so a creator. For generated code.
#[doc(hidden)]
pub struct CreatorProbe<N>(PhantomData<N>);

impl<N> CreatorProbe<N> {
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

/// Called as `(&probe).creator()`: the first implementation that fits is taken.
#[doc(hidden)]
pub trait CreatorOf {
    fn creator(&self) -> Option<TVMFFIObjectCreator>;
}
impl<N: ObjectCore + Default> CreatorOf for CreatorProbe<N> {
    fn creator(&self) -> Option<TVMFFIObjectCreator> {
        Some(create::<N>)
    }
}
impl<N> CreatorOf for &CreatorProbe<N> {
    fn creator(&self) -> Option<TVMFFIObjectCreator> {
        None
    }
}

/// An object with the values of [`Default`], whose fields the caller sets.
unsafe extern "C" fn create<N: ObjectCore + Default>(result: *mut TVMFFIObjectHandle) -> i32 {
    match catch_unwind(|| ObjectArc::new(N::default())) {
        Ok(made) => {
            result.write(ObjectArc::into_raw(made) as *mut c_void);
            0
        }
        Err(payload) => raise(&panic_to_error(payload)),
    }
}

unsafe extern "C" fn get_field<F: AnyCompatible>(
    field: *mut c_void,
    result: *mut TVMFFIAny,
) -> i32 {
    match catch_unwind(AssertUnwindSafe(|| (*(field as *const F)).to_any())) {
        Ok(value) => {
            result.write(Any::into_raw_ffi_any(value));
            0
        }
        Err(payload) => {
            drop_payload(payload);
            raise(&Error::new(
                INTERNAL_ERROR,
                &format!("panic while reading a field of type {}", F::type_str()),
                "",
            ))
        }
    }
}

unsafe extern "C" fn set_field<F: AnyCompatible>(
    field: *mut c_void,
    value: *const TVMFFIAny,
) -> i32 {
    let written = catch_unwind(AssertUnwindSafe(|| {
        let value = &*value;
        let converted = if F::check_any_strict(value) {
            Ok(F::copy_from_any_view_after_check(value))
        } else {
            F::try_cast_from_any_view(value)
        };
        match converted {
            Ok(new) => {
                // The old value goes last: its destructor may run any code.
                drop((field as *mut F).replace(new));
                Ok(())
            }
            Err(()) => Err(Error::new(
                TYPE_ERROR,
                &format!(
                    "expected a field value of type {}, got {}",
                    F::type_str(),
                    F::get_mismatch_type_info(value)
                ),
                "",
            )),
        }
    }));
    match written {
        Ok(Ok(())) => 0,
        Ok(Err(error)) => raise(&error),
        Err(payload) => {
            drop_payload(payload);
            raise(&Error::new(
                INTERNAL_ERROR,
                &format!("panic while writing a field of type {}", F::type_str()),
                "",
            ))
        }
    }
}

/// `Name<A, B>` as the name and the parameters.
fn split_generic(type_str: &str) -> (&str, Vec<&str>) {
    let Some(inner) = type_str.strip_suffix('>') else { return (type_str, Vec::new()) };
    let Some((name, inner)) = inner.split_once('<') else { return (type_str, Vec::new()) };
    let (mut args, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, c) in inner.char_indices() {
        match c {
            '<' => depth += 1,
            '>' => depth -= 1,
            ',' if depth == 0 => {
                args.push(inner[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    args.push(inner[start..].trim());
    (name, args)
}

fn schema_name(name: &str) -> &str {
    match name {
        "BigInt" => "ffi.BigInt",
        "Array" => "ffi.Array",
        "List" => "ffi.List",
        "Map" => "ffi.Map",
        "Dict" => "ffi.Dict",
        other => other,
    }
}

fn schema_of(type_str: &str) -> std::string::String {
    let (name, args) = split_generic(type_str);
    let mut text = format!("{{\"type\":\"{}\"", schema_name(name));
    if !args.is_empty() {
        let args: Vec<_> = args.into_iter().map(schema_of).collect();
        text.push_str(&format!(",\"args\":[{}]", args.join(",")));
    }
    text.push('}');
    text
}

fn metadata_of(type_str: &str) -> std::string::String {
    let schema = schema_of(type_str).replace('\\', "\\\\").replace('"', "\\\"");
    format!("{{\"type_schema\":\"{schema}\"}}")
}

fn static_index_of(type_str: &str) -> i32 {
    match split_generic(type_str).0 {
        "None" => 0,
        "int" => 1,
        "bool" => 2,
        "float" => 3,
        "void*" => 4,
        "DataType" => 5,
        "Device" => 6,
        "DLTensor*" => 7,
        "Any" | "ffi.String" | "ffi.Bytes" | "Optional" | "BigInt" => -1,
        "ffi.Function" => TypeIndex::kTVMFFIFunction as i32,
        "ffi.Shape" => TypeIndex::kTVMFFIShape as i32,
        "Array" => TypeIndex::kTVMFFIArray as i32,
        "List" => TypeIndex::kTVMFFIList as i32,
        _ => TypeIndex::kTVMFFIStaticObjectBegin as i32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas() {
        assert_eq!(schema_of("int"), r#"{"type":"int"}"#);
        assert_eq!(
            schema_of("Map<ffi.String, Array<Optional<int>>>"),
            concat!(
                r#"{"type":"ffi.Map","args":[{"type":"ffi.String"},{"type":"ffi.Array","args":"#,
                r#"[{"type":"Optional","args":[{"type":"int"}]}]}]}"#
            )
        );
        assert_eq!(static_index_of("Optional<int>"), -1);
        assert_eq!(static_index_of("Map<int, int>"), 64);
        assert_eq!(static_index_of("my.Type"), 64);
    }

    #[test]
    fn generic_names_are_split_at_top_level_commas() {
        assert_eq!(split_generic("Map<A, Map<B, C>>"), ("Map", vec!["A", "Map<B, C>"]));
        assert_eq!(split_generic("int"), ("int", vec![]));
    }
}
