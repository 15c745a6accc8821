// SPDX-License-Identifier: Apache-2.0
//! `derive(ObjectRef)`.
use crate::object::default_crate;
use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, Ident, Path, Result};

pub fn derive(input: syn::DeriveInput) -> Result<TokenStream> {
    const EXPECTED: &str = "First field must be `<name>: ObjectArc<T>`";
    let error = || Error::new(input.ident.span(), EXPECTED);
    let syn::Data::Struct(data) = &input.data else { return Err(error()) };
    let mut fields = data.fields.iter();
    let first = fields.next().ok_or_else(error)?;
    let field = first.ident.clone().ok_or_else(error)?;
    let markers: Vec<_> = fields.filter_map(|field| field.ident.clone()).collect();
    let ty = &first.ty;
    Ok(emit(&default_crate(), &input.ident, &field, &quote! { #ty }, &markers))
}

/// `markers`: the other fields, which have no size.
pub fn emit(
    krate: &Path,
    name: &Ident,
    field: &Ident,
    arc: &TokenStream,
    markers: &[Ident],
) -> TokenStream {
    let object = quote! { <Self as #krate::object::ObjectRefCore>::ContainerType };
    let core = quote! { <#object as #krate::object::ObjectCore> };
    let any = quote! { #krate::tvm_ffi_sys::TVMFFIAny };
    // `tvm_ffi::object::ObjectRef` says these itself.
    let conversions = (name != "ObjectRef").then(|| {
        quote! {
            #krate::impl_try_from_any!(#name);
            #krate::impl_arg_into_ref!(#name);
            #krate::impl_into_arg_holder_default!(#name);
        }
    });
    quote! {
        const _: () = ::core::assert!(
            ::core::mem::size_of::<#name>() == ::core::mem::size_of::<#arc>(),
            "a handle is one ObjectArc and nothing else"
        );
        unsafe impl #krate::object::ObjectRefCore for #name {
            type ContainerType = <#arc as ::core::ops::Deref>::Target;
            #[inline]
            fn data(this: &Self) -> &#arc {
                &this.#field
            }
            #[inline]
            fn into_data(this: Self) -> #arc {
                this.#field
            }
            #[inline]
            unsafe fn from_data(data: #arc) -> Self {
                Self { #field: data, #(#markers: ::core::default::Default::default(),)* }
            }
        }
        impl ::core::convert::From<&#name> for #name {
            fn from(value: &#name) -> Self {
                ::core::clone::Clone::clone(value)
            }
        }
        unsafe impl #krate::type_traits::AnyCompatible for #name {
            const MATCH_ANY_EXACT: bool = #core::TYPE_FINAL;
            fn match_any_exact_type_index() -> i32 {
                #core::type_index()
            }
            #[inline]
            unsafe fn copy_to_any_view(src: &Self, data: &mut #any) {
                unsafe { #krate::object::ref_any::copy_to_any_view(src, data) }
            }
            #[inline]
            unsafe fn move_to_any(src: Self, data: &mut #any) {
                unsafe { #krate::object::ref_any::move_to_any(src, data) }
            }
            #[inline]
            unsafe fn check_any_strict(data: &#any) -> bool {
                #krate::object::ref_any::check::<#object>(data)
            }
            #[inline]
            unsafe fn copy_from_any_view_after_check(data: &#any) -> Self {
                unsafe { #krate::object::ref_any::copy_from(data) }
            }
            #[inline]
            unsafe fn move_from_any_after_check(data: &mut #any) -> Self {
                unsafe { #krate::object::ref_any::move_from(data) }
            }
            #[inline]
            unsafe fn try_cast_from_any_view(
                data: &#any,
            ) -> ::core::result::Result<Self, ()> {
                if #krate::object::ref_any::check::<#object>(data) {
                    ::core::result::Result::Ok(unsafe { #krate::object::ref_any::copy_from(data) })
                } else {
                    ::core::result::Result::Err(())
                }
            }
            fn type_str() -> ::std::string::String {
                ::std::string::ToString::to_string(#core::TYPE_KEY)
            }
        }
        #conversions
    }
}
