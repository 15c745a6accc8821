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
pub use tvm_ffi_macros::{def_object_ref, dispatch, match_any, rs_class};
pub use tvm_ffi_sys::TVMFFITypeIndex as TypeIndex;
pub use tvm_ffi_sys::{
    DLDataType, DLDataTypeCode, DLDevice, DLDeviceType, TVMFFIAny, TVMFFIObject, TVMFFIStreamHandle,
};
pub use type_traits::AnyCompatible;
