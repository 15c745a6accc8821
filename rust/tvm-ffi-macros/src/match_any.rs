// SPDX-License-Identifier: Apache-2.0
//! `match_any!`.
use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::parse::{Parse, ParseStream};
use syn::{Error, Expr, Ident, Pat, Result, Token};

/// From this many arms on, a table finds the arm.
const TABLE_ARMS: usize = 20;

struct Arm {
    path: syn::Path,
    pattern: Pat,
    guard: Option<Expr>,
    body: Expr,
}

pub struct MatchAny {
    scrutinee: Expr,
    arms: Vec<Arm>,
    fallback: Expr,
}

impl Parse for MatchAny {
    fn parse(input: ParseStream) -> Result<Self> {
        let scrutinee = input.call(Expr::parse_without_eager_brace)?;
        let content;
        syn::braced!(content in input);
        let mut arms = Vec::new();
        let mut fallback = None;
        while !content.is_empty() {
            if fallback.is_some() {
                return Err(content.error("the `_` fallback must be the final arm"));
            }
            if content.peek(Token![_]) {
                let underscore: Token![_] = content.parse()?;
                if content.peek(Token![if]) {
                    return Err(Error::new(
                        underscore.span,
                        "the `_` fallback cannot have a guard",
                    ));
                }
                content.parse::<Token![=>]>()?;
                fallback = Some(content.parse()?);
            } else {
                let path = content.call(syn::Path::parse)?;
                let inner;
                syn::parenthesized!(inner in content);
                if inner.is_empty() {
                    return Err(inner.error("expected one binding pattern"));
                }
                let pattern = inner.call(Pat::parse_multi_with_leading_vert)?;
                if !inner.is_empty() {
                    return Err(inner.error("expected one binding pattern"));
                }
                let guard = match content.parse::<Option<Token![if]>>()? {
                    Some(_) => Some(content.parse()?),
                    None => None,
                };
                content.parse::<Token![=>]>()?;
                let body = content.parse()?;
                arms.push(Arm { path, pattern, guard, body });
            }
            if content.is_empty() {
                break;
            }
            content
                .parse::<Token![,]>()
                .map_err(|e| Error::new(e.span(), "expected `,` between match_any! arms"))?;
        }
        let fallback = fallback
            .ok_or_else(|| content.error("match_any! requires a final `_` fallback arm"))?;
        Ok(Self { scrutinee, arms, fallback })
    }
}

pub fn match_any(input: MatchAny) -> Result<TokenStream> {
    let MatchAny { scrutinee, arms, fallback } = input;
    let id = |name: &str| Ident::new(name, Span::mixed_site());
    let (view, object, arm, value) = (id("view"), id("object"), id("arm"), id("value"));
    let internal = quote! { ::tvm_ffi::match_any_internal };
    let plain = |pattern: &Pat| match pattern {
        Pat::Wild(_) => true,
        Pat::Ident(ident) => ident.subpat.is_none() && ident.by_ref.is_none(),
        _ => false,
    };
    let table = arms.len() >= TABLE_ARMS
        && arms.iter().all(|arm| arm.guard.is_none() && plain(&arm.pattern));
    let count = arms.len();

    let mut chain = quote! { #fallback };
    for (number, Arm { path, pattern, guard, body }) in arms.iter().enumerate().rev() {
        let number = number as u32;
        let wanted = match table {
            true => quote! {
                #object && #arm.map_or(true, |found| found == ::core::option::Option::Some(#number))
            },
            false => quote! { #object },
        };
        let guard = guard.as_ref().map(|guard| quote! { if #guard });
        chain = quote! {
            match if #wanted {
                #[allow(unused_imports)]
                use #internal::PatternConversion as _;
                (&#internal::PatternConversionProbe::<#path>::new()).try_convert(#view)
            } else {
                ::core::option::Option::None
            } {
                ::core::option::Option::Some(#pattern) #guard => #body,
                _ => #chain,
            }
        };
    }
    let find = table.then(|| {
        let list = arms.iter().rev().fold(quote! { () }, |tail, arm| {
            let path = &arm.path;
            quote! { (#path, #tail) }
        });
        quote! {
            let #arm: ::core::option::Option<
                ::core::option::Option<#internal::ArmId>,
            > = {
                #[allow(unused_imports)]
                use #internal::LeafPatternMetadata as _;
                static TABLE: ::std::sync::OnceLock<#internal::LeafLookupTable> =
                    ::std::sync::OnceLock::new();
                let probe = #internal::LeafPatternProbe::<#list>::new();
                match (&probe).leaf_pattern_list_id() {
                    ::core::option::Option::Some(id) if #object => {
                        let table = TABLE.get_or_init(|| {
                            let mut indices = [0i32; #count];
                            (&probe).fill_leaf_type_indices(&mut indices);
                            #internal::LeafLookupTable::build(id, &indices)
                        });
                        table.lookup(id, #view.type_index()).ok()
                    }
                    _ => ::core::option::Option::None,
                }
            };
        }
    });
    Ok(quote! {
        match &(#scrutinee) {
            #value => {
                let #view: ::tvm_ffi::AnyView<'_> =
                    match ::core::convert::TryInto::<::tvm_ffi::AnyView<'_>>::try_into(#value) {
                        ::core::result::Result::Ok(view) => view,
                        ::core::result::Result::Err(never) => {
                            let never: ::core::convert::Infallible = never;
                            match never {}
                        }
                    };
                let #object = #view.type_index() >= 64;
                #find
                #chain
            }
        }
    })
}
