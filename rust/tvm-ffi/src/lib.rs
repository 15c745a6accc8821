// SPDX-License-Identifier: Apache-2.0
//! Functions, objects and containers that Rust, C++ and Python share without a copy.
//!
//! ```
//! use tvm_ffi::*;
//!
//! fn main() -> Result<()> {
//!     let add = Function::from_typed(|x: i64, y: i64| -> Result<i64> { Ok(x + y) });
//!     Function::register_global("doc.lib.add", add)?;
//!     let add = Function::get_global("doc.lib.add")?;
//!     assert_eq!(i64::try_from(add.call_tuple((1i64, 2i64))?)?, 3);
//!     Ok(())
//! }
//! ```
//!
//! `use tvm_ffi::*` is the prelude; it shadows `String` and `Result`.
#![deny(missing_docs)]
// Every unsafe function here is a contract with C code; its body is one unsafe block by nature.
#![allow(unsafe_op_in_unsafe_fn)]

extern crate self as tvm_ffi;

pub mod any;
pub mod big_int;
pub mod collections;
pub mod derive;
pub mod device;
pub mod dtype;
pub mod error;
pub mod extra;
pub mod function;
pub mod function_internal;
pub mod macros;
#[doc(hidden)]
pub mod match_any_internal;
pub mod object;
pub mod optional;
pub mod reflection;
pub mod rvalue_ref;
pub mod string;
pub mod type_traits;

pub use tvm_ffi_sys;

pub use any::{Any, AnyView};
pub use big_int::BigInt;
pub use collections::{Array, CPUNDAlloc, List, Map, NDAllocator, Shape, Tensor, TensorView};
pub use device::{current_stream, with_stream};
pub use dtype::DLDataTypeExt;
pub use error::{
    Error, ErrorKind, Result, ATTRIBUTE_ERROR, INDEX_ERROR, INTERNAL_ERROR, KEY_ERROR,
    OVERFLOW_ERROR, RUNTIME_ERROR, TYPE_ERROR, VALUE_ERROR, ZERO_DIVISION_ERROR,
};
pub use extra::module::Module;
pub use extra::structural_mutate::{
    structural_map, structural_mutate, DefaultMutContextPolicy, InplaceMode, InplaceValue,
    IntoMapper, IntoMutator, MapChainLink, MapDispatch, MapWithContextPolicy, MutContextPolicy,
    MutateCallbacks, MutateChainLink, MutateContext, MutateDispatch, MutateValue, Mutator,
    StructuralMutator, StructuralVarRemap,
};
pub use extra::structural_visit::{
    structural_visit, structural_walk, ContextPolicy, DefRegionKind, DefaultContextPolicy,
    IntoVisitor, IntoWalkResult, IntoWalker, StructuralVisitor, VisitCallbacks, VisitChainLink,
    VisitContext, VisitInterrupt, WalkChainLink, WalkDispatch, WalkOrder, WalkResult,
    WalkWithContextPolicy,
};
pub use extra::unchanged::{Unchanged, UnchangedOr};
pub use extra::StructuralView;
pub use function::Function;
pub use object::{
    Object, ObjectArc, ObjectCore, ObjectCoreWithExtraItems, ObjectIdentity, ObjectRefCast,
    ObjectRefCore,
};
pub use optional::{Optional, OptionalCompatible};
pub use reflection::{
    get_type_attr, FieldFlags, FieldGetter, SEqHashKind, ShallowCopy, TypeAttrColumn,
};
pub use rvalue_ref::RValueRef;
pub use string::{Bytes, String};
/// ```
/// mod point {
///     use tvm_ffi::{def_object_ref, object::ObjectRef, rs_class, Object};
///
///     #[rs_class("doc.def_object_ref.Point")]
///     pub struct PointObj {
///         base: Object,
///         #[reflect(writable)]
///         pub x: i64,
///     }
///     def_object_ref!(pub Point, ObjectRef, PointObj);
/// }
/// use point::{Point, PointObj};
/// let point = Point::from(PointObj::new(tvm_ffi::Object::new(), 3));
/// let object: tvm_ffi::object::ObjectRef = point.clone().into();
/// assert!(tvm_ffi::Any::from(object).try_as::<Point>().is_some());
/// ```
pub use tvm_ffi_macros::def_object_ref;
/// ```
/// use tvm_ffi::*;
///
/// #[derive(Default)]
/// struct Sum(i64);
///
/// #[dispatch(walk)]
/// impl Sum {
///     fn walk_int(&mut self, x: i64) -> WalkResult {
///         self.0 += x;
///         WalkResult::Advance
///     }
/// }
///
/// let mut sum = Sum::default();
/// structural_walk(&Array::new(vec![1i64, 2]), &mut sum, WalkOrder::PreOrder).unwrap();
/// assert_eq!(sum.0, 3);
/// ```
pub use tvm_ffi_macros::dispatch;
/// ```
/// use tvm_ffi::*;
///
/// fn describe(value: Any) -> std::string::String {
///     match_any! { value {
///         Shape(shape) => format!("a shape of {} extents", shape.len()),
///         Array::<i64>(items) if items.len() > 1 => format!("{} numbers", items.len()),
///         _ => "something else".to_string(),
///     } }
/// }
/// assert_eq!(describe(Any::from(Shape::from([1i64]))), "a shape of 1 extents");
/// assert_eq!(describe(Any::from(Array::new(vec![1i64]))), "something else");
/// ```
pub use tvm_ffi_macros::match_any;
/// ```
/// mod point {
///     use tvm_ffi::{def_object_ref, object::ObjectRef, rs_class, Object};
///
///     #[rs_class("doc.rs_class.Point")]
///     pub struct PointObj {
///         base: Object,
///         #[reflect(writable)]
///         pub x: i64,
///     }
///     def_object_ref!(pub Point, ObjectRef, PointObj);
/// }
/// use point::{Point, PointObj};
/// use tvm_ffi::{FieldGetter, Object, ObjectCore};
/// let point = Point::from(PointObj::new(Object::new(), 3));
/// let x = FieldGetter::new(PointObj::type_index(), "x").unwrap();
/// assert_eq!(x.get::<_, i64>(&*point).unwrap(), 3);
/// ```
pub use tvm_ffi_macros::rs_class;
pub use tvm_ffi_sys::TVMFFITypeIndex as TypeIndex;
pub use tvm_ffi_sys::{
    DLDataType, DLDataTypeCode, DLDevice, DLDeviceType, TVMFFIAny, TVMFFIObject, TVMFFIStreamHandle,
};
pub use type_traits::AnyCompatible;
