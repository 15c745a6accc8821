// SPDX-License-Identifier: Apache-2.0
//! Macros of the `tvm-ffi` crate, which re-exports and documents them.
#![deny(missing_docs)]

mod dispatch;
mod match_any;
mod object;
mod object_ref;
mod rs_class;

use proc_macro::TokenStream;

fn finish(result: syn::Result<proc_macro2::TokenStream>) -> TokenStream {
    result.unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Implements `ObjectCore` for a struct whose first field is the object of its parent.
#[proc_macro_derive(
    Object,
    attributes(
        type_key,
        type_index,
        type_register,
        type_final,
        type_child_slots,
        type_child_slots_can_overflow,
        type_s_eq_hash_kind,
        reflect
    )
)]
pub fn derive_object(input: TokenStream) -> TokenStream {
    finish(syn::parse(input).and_then(object::derive))
}

/// Implements `ObjectRefCore` and the conversions for a struct whose first field is an `ObjectArc`.
#[proc_macro_derive(ObjectRef)]
pub fn derive_object_ref(input: TokenStream) -> TokenStream {
    finish(syn::parse(input).and_then(object_ref::derive))
}

/// Makes a struct a registered object type with reflected fields.
#[proc_macro_attribute]
pub fn rs_class(args: TokenStream, input: TokenStream) -> TokenStream {
    finish(rs_class::rs_class(args.into(), input.into()))
}

/// Defines the handle of an object type.
#[proc_macro]
pub fn def_object_ref(input: TokenStream) -> TokenStream {
    finish(syn::parse(input).and_then(rs_class::def_object_ref))
}

/// A `match` by the type of an object.
#[proc_macro]
pub fn match_any(input: TokenStream) -> TokenStream {
    finish(syn::parse(input).and_then(match_any::match_any))
}

/// Makes the methods of an impl the handlers of a structural walk, map, visit or mutation.
#[proc_macro_attribute]
pub fn dispatch(args: TokenStream, input: TokenStream) -> TokenStream {
    finish(dispatch::dispatch(args.into(), input.into()))
}
