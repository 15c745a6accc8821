// SPDX-License-Identifier: Apache-2.0
//! The derive macros of objects and handles.
//!
//! ```
//! use tvm_ffi::derive::{Object, ObjectRef};
//! use tvm_ffi::{Object as Root, ObjectArc};
//!
//! #[repr(C)]
//! #[derive(Object)]
//! #[type_key = "doc.derive.Point"]
//! #[type_register]
//! struct PointObj {
//!     base: Root,
//!     #[reflect]
//!     x: i64,
//! }
//!
//! #[repr(C)]
//! #[derive(ObjectRef, Clone)]
//! struct Point {
//!     data: ObjectArc<PointObj>,
//! }
//!
//! let point = Point { data: ObjectArc::new(PointObj { base: Root::new(), x: 3 }) };
//! assert_eq!(point.data.x, 3);
//! ```
/// ```
/// use tvm_ffi::{derive::Object, ObjectCore};
///
/// #[repr(C)]
/// #[derive(Object)]
/// #[type_key = "doc.derive_object.Point"]
/// #[type_register]
/// struct PointObj {
///     base: tvm_ffi::Object,
///     #[reflect(writable)]
///     x: i64,
/// }
/// assert_eq!(PointObj::TYPE_DEPTH, 1);
/// ```
pub use tvm_ffi_macros::Object;
/// ```
/// use tvm_ffi::{derive::ObjectRef, Any, Object, ObjectArc};
///
/// #[repr(C)]
/// #[derive(ObjectRef, Clone)]
/// struct Plain {
///     data: ObjectArc<Object>,
/// }
/// let plain = Plain { data: ObjectArc::new(Object::new()) };
/// assert!(Any::from(plain).try_as::<Plain>().is_some());
/// ```
pub use tvm_ffi_macros::ObjectRef;

/// What the macros refuse.
///
/// All instances of a generic type would share one key, and be taken for each other:
///
/// ```compile_fail
/// #[repr(C)]
/// #[derive(tvm_ffi::derive::Object)]
/// #[type_key = "doc.refused.Generic"]
/// #[type_register]
/// struct GenericObj<T: 'static> {
///     base: tvm_ffi::Object,
///     value: T,
/// }
/// ```
///
/// ```compile_fail
/// #[tvm_ffi::rs_class("doc.refused.Sized")]
/// struct SizedObj<const N: usize> {
///     base: tvm_ffi::Object,
/// }
/// ```
///
/// Without `#[repr(C)]` the compiler may put another field first:
///
/// ```compile_fail
/// #[derive(tvm_ffi::derive::Object)]
/// #[type_key = "doc.refused.Order"]
/// #[type_register]
/// struct OrderObj {
///     base: tvm_ffi::Object,
///     wide: u128,
/// }
/// ```
///
/// Tuples, enums and unions:
///
/// ```compile_fail
/// #[repr(C)]
/// #[derive(tvm_ffi::derive::Object)]
/// #[type_key = "doc.refused.Tuple"]
/// struct TupleObj(tvm_ffi::Object, i64);
/// ```
///
/// ```compile_fail
/// #[derive(tvm_ffi::derive::Object)]
/// #[type_key = "doc.refused.Enum"]
/// enum EnumObj {
///     Base(tvm_ffi::Object),
/// }
/// ```
///
/// ```compile_fail
/// #[tvm_ffi::rs_class("doc.refused.Tuple")]
/// struct TupleObj(tvm_ffi::Object);
/// ```
///
/// A first field that is not an object, and a field that is not a value:
///
/// ```compile_fail
/// #[tvm_ffi::rs_class("doc.refused.Base")]
/// struct BaseObj {
///     base: i64,
/// }
/// ```
///
/// ```compile_fail
/// #[tvm_ffi::rs_class("doc.refused.Field")]
/// struct FieldObj {
///     base: tvm_ffi::Object,
///     values: Vec<i64>,
/// }
/// ```
///
/// A handle that is more than a pointer, or none:
///
/// ```compile_fail
/// #[derive(tvm_ffi::derive::ObjectRef, Clone)]
/// struct Wide {
///     data: tvm_ffi::ObjectArc<tvm_ffi::Object>,
///     more: i64,
/// }
/// ```
///
/// ```compile_fail
/// #[derive(tvm_ffi::derive::ObjectRef, Clone)]
/// struct Boxed {
///     data: Box<tvm_ffi::Object>,
/// }
/// ```
///
/// Values go to another thread only if all they can hold may:
///
/// ```compile_fail
/// let text = tvm_ffi::String::from("a text that is shared");
/// std::thread::spawn(move || text.len());
/// ```
///
/// ```compile_fail
/// let object: tvm_ffi::object::ObjectRef =
///     tvm_ffi::Any::from(tvm_ffi::Shape::new()).try_into().unwrap();
/// std::thread::spawn(move || drop(object));
/// ```
///
/// A view does not outlive what it shows:
///
/// ```compile_fail
/// let view = tvm_ffi::AnyView::from(&tvm_ffi::Shape::new());
/// assert_eq!(view.type_index(), 69);
/// ```
#[cfg(doctest)]
pub struct Refused;
