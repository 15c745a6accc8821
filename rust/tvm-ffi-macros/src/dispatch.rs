// SPDX-License-Identifier: Apache-2.0
//! `#[dispatch(...)]`.
use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::parse::{ParseStream, Parser};
use syn::{Attribute, Error, Expr, FnArg, Ident, ImplItem, Result, Token, Type};

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Walk,
    Map,
    Visit,
    Mutate,
}

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Mode::Walk => "walk",
            Mode::Map => "map",
            Mode::Visit => "visit",
            Mode::Mutate => "mutate",
        }
    }
}

struct Args {
    mode: Mode,
    policy: Option<Expr>,
}

fn parse_args(input: ParseStream) -> Result<Args> {
    const MODES: &str =
        "expected `dispatch(walk)`, `dispatch(map)`, `dispatch(visit)`, or `dispatch(mutate)`";
    let name: Ident = input.parse().map_err(|e| Error::new(e.span(), MODES))?;
    let mode = match name.to_string().as_str() {
        "walk" => Mode::Walk,
        "map" => Mode::Map,
        "visit" => Mode::Visit,
        "mutate" => Mode::Mutate,
        _ => return Err(Error::new(name.span(), MODES)),
    };
    let mut policy = None;
    while !input.is_empty() {
        input.parse::<Token![,]>()?;
        if input.is_empty() {
            break;
        }
        let expected = |span| Error::new(span, "expected `policy = expression`");
        let key: Ident = input.parse().map_err(|e| expected(e.span()))?;
        if key != "policy" || policy.is_some() {
            return Err(expected(key.span()));
        }
        if matches!(mode, Mode::Walk | Mode::Map) {
            return Err(Error::new(
                key.span(),
                "`policy` is supported by `dispatch(visit)` and `dispatch(mutate)`",
            ));
        }
        input.parse::<Token![=]>().map_err(|e| expected(e.span()))?;
        policy = Some(input.parse()?);
    }
    Ok(Args { mode, policy })
}

/// What a handler takes.
enum Input {
    /// `&StructuralView`.
    Everything,
    /// `&N`.
    Node(Type),
    /// `MutateValue<'_, T>`.
    MutateValue(Type),
    /// `T`.
    Owned(Type),
}

struct Handler {
    name: Ident,
    input: Input,
    has_third: bool,
    cfgs: Vec<Attribute>,
}

fn cfgs_of(attrs: &[Attribute]) -> Vec<Attribute> {
    let wanted =
        |attr: &&Attribute| attr.path().is_ident("cfg") || attr.path().is_ident("cfg_attr");
    attrs.iter().filter(wanted).cloned().collect()
}

fn last_segment(ty: &Type) -> Option<&syn::PathSegment> {
    match ty {
        Type::Path(path) => path.path.segments.last(),
        Type::Group(group) => last_segment(&group.elem),
        _ => None,
    }
}

fn handler(mode: Mode, method: &syn::ImplItemFn) -> Result<Handler> {
    let name = &method.sig.ident;
    let shape = || {
        let text = match mode {
            Mode::Mutate => {
                "mutate handlers must take `&mut self`, a node, and optionally `&mut Mutator`"
                    .to_string()
            }
            _ => format!(
                "{} handlers must take `&mut self`, a node, and optionally a trailing \
                 `DefRegionKind` argument",
                mode.name()
            ),
        };
        Error::new(name.span(), text)
    };
    let args: Vec<&FnArg> = method.sig.inputs.iter().collect();
    let (receiver, value, third) = match args.as_slice() {
        [receiver, value] => (receiver, value, None),
        [receiver, value, third] => (receiver, value, Some(third)),
        _ => return Err(shape()),
    };
    match receiver {
        FnArg::Receiver(r) if r.reference.is_some() && r.mutability.is_some() => {}
        _ => return Err(shape()),
    }
    let FnArg::Typed(value) = value else { return Err(shape()) };
    let input = match &*value.ty {
        Type::Reference(reference) if reference.mutability.is_some() => {
            return Err(Error::new_spanned(
                reference,
                format!("{} handler values cannot be mutable references", mode.name()),
            ))
        }
        Type::Reference(reference) => {
            match last_segment(&reference.elem).is_some_and(|s| s.ident == "StructuralView") {
                true => Input::Everything,
                false => Input::Node((*reference.elem).clone()),
            }
        }
        owned => match last_segment(owned) {
            Some(segment) if mode == Mode::Mutate && segment.ident == "MutateValue" => {
                let element = match &segment.arguments {
                    syn::PathArguments::AngleBracketed(list) => {
                        list.args.iter().find_map(|arg| match arg {
                            syn::GenericArgument::Type(ty) => Some(ty.clone()),
                            _ => None,
                        })
                    }
                    _ => None,
                };
                Input::MutateValue(element.unwrap_or_else(|| syn::parse_quote!(::tvm_ffi::Any)))
            }
            _ => Input::Owned(owned.clone()),
        },
    };
    if let (Mode::Mutate, Some(third)) = (mode, third) {
        check_mutator(third)?;
    }
    Ok(Handler {
        name: name.clone(),
        input,
        has_third: third.is_some(),
        cfgs: cfgs_of(&method.attrs),
    })
}

fn check_mutator(arg: &FnArg) -> Result<()> {
    let FnArg::Typed(arg) = arg else {
        return Err(Error::new_spanned(arg, "expected `&mut Mutator`"));
    };
    let Type::Reference(reference) = &*arg.ty else {
        return Err(Error::new_spanned(&arg.ty, "the mutator must be `&mut Mutator`"));
    };
    if reference.mutability.is_none() {
        return Err(Error::new_spanned(
            reference,
            "the mutate context must be a mutable reference",
        ));
    }
    match last_segment(&reference.elem) {
        Some(segment) if segment.ident == "Mutator" => match segment.arguments {
            syn::PathArguments::None => Ok(()),
            _ => Err(Error::new_spanned(
                segment,
                "`Mutator` does not take a state type; store pass state on the dispatch object",
            )),
        },
        _ => Err(Error::new_spanned(&reference.elem, "expected `&mut Mutator`")),
    }
}

pub fn dispatch(args: TokenStream, input: TokenStream) -> Result<TokenStream> {
    let Args { mode, policy } = parse_args.parse2(args)?;
    let mode_name = mode.name();
    let requires = || {
        Error::new(Span::call_site(), format!("`dispatch({mode_name})` requires an inherent impl"))
    };
    let item: syn::ItemImpl = syn::parse2(input).map_err(|_| requires())?;
    if item.trait_.is_some() {
        return Err(requires());
    }
    let prefix = format!("{mode_name}_");
    let mut handlers = Vec::new();
    for entry in &item.items {
        if let ImplItem::Fn(method) = entry {
            if method.sig.ident.to_string().starts_with(&prefix) {
                handlers.push(handler(mode, method)?);
            }
        }
    }
    if handlers.is_empty() {
        return Err(Error::new_spanned(
            &item.self_ty,
            format!("`dispatch({mode_name})` found no `{mode_name}_*` methods"),
        ));
    }
    let sure = |handler: &&Handler| handler.cfgs.is_empty();
    let enabled: Vec<_> = handlers.iter().filter(sure).collect();
    for handler in enabled.iter().rev().skip(1) {
        if matches!(handler.input, Input::Everything) {
            return Err(Error::new(
                handler.name.span(),
                "the `&StructuralView` catch-all handler must be last among enabled handlers",
            ));
        }
    }

    let krate = quote! { ::tvm_ffi };
    let visit = quote! { #krate::extra::structural_visit };
    let mutate = quote! { #krate::extra::structural_mutate };
    let result = match mode {
        Mode::Walk => quote! { #visit::IntoWalkResult::into_walk_result },
        Mode::Visit => quote! { #visit::IntoVisitResult::into_visit_result },
        Mode::Map | Mode::Mutate => quote! { #mutate::IntoMutateResult::into_mutate_result },
    };
    // The policy expression names `self`, so it is the caller's.
    let this = Ident::new("self", Span::call_site());
    let tries = handlers.iter().map(|Handler { name, input, has_third, cfgs }| {
        let third = match (has_third, mode) {
            (false, _) => quote! {},
            (true, Mode::Mutate) => quote! { , __mutator },
            (true, _) => quote! { , __kind },
        };
        let call = quote! { #result(Self::#name(#this, __matched #third)) };
        let finish = match mode {
            Mode::Visit => quote! { return #call; },
            _ => quote! { return ::core::option::Option::Some(#call); },
        };
        let attempt = match input {
            Input::Everything if mode == Mode::Mutate => quote! {
                let __matched = __value.as_value();
                #finish
            },
            Input::Everything => quote! { let __matched = __value; #finish },
            Input::Node(ty) => quote! {
                if let ::core::option::Option::Some(__matched) = __value.as_node::<#ty>() {
                    #finish
                }
            },
            Input::Owned(ty) => quote! {
                if let ::core::option::Option::Some(__matched) = __value.cast::<#ty>() {
                    #finish
                }
            },
            Input::MutateValue(ty) => quote! {
                match __value.try_cast::<#ty>() {
                    ::core::result::Result::Ok(__matched) => { #finish }
                    ::core::result::Result::Err(__kept) => __value = __kept,
                }
            },
        };
        quote! { #(#cfgs)* { #attempt } }
    });
    let (impl_generics, _, where_clause) = item.generics.split_for_impl();
    let self_ty = &item.self_ty;
    let cfgs = cfgs_of(&item.attrs);
    let view = quote! { #krate::extra::StructuralView };
    let region = quote! { #visit::DefRegionKind };
    let error = quote! { #krate::error::Result };
    let allow = quote! {
        #[allow(unreachable_code, unused_variables, unused_mut, unused_assignments)]
    };
    let emitted = match mode {
        Mode::Walk => quote! {
            #(#cfgs)*
            impl #impl_generics #visit::WalkDispatch for #self_ty #where_clause {
                #allow
                fn dispatch_walk(
                    &mut #this,
                    __value: &#view,
                    __kind: #region,
                ) -> ::core::option::Option<#error<#visit::WalkResult>> {
                    #(#tries)*
                    ::core::option::Option::None
                }
            }
        },
        Mode::Map => quote! {
            #(#cfgs)*
            impl #impl_generics #mutate::MapDispatch for #self_ty #where_clause {
                #allow
                fn dispatch_map(
                    &mut #this,
                    __value: &#view,
                    __kind: #region,
                ) -> ::core::option::Option<#error<#krate::Any>> {
                    #(#tries)*
                    ::core::option::Option::None
                }
            }
        },
        Mode::Visit => {
            let visited = quote! { #error<::core::option::Option<#visit::VisitInterrupt>> };
            let (descent, state) = policy_parts(policy.as_ref(), |policy| {
                (
                    quote! {
                        fn default_visit_children(
                            &mut #this,
                            __value: &#view,
                            __kind: #region,
                        ) -> #visited {
                            let __policy = #policy;
                            #visit::default_visit_with_policy(#this, &__policy, __value, __kind)
                        }
                    },
                    quote! {
                        #(#cfgs)*
                        impl #impl_generics #visit::VisitCallbackState<#self_ty> for #self_ty
                        #where_clause {
                            fn callback_state(&self) -> &Self { self }
                            fn callback_state_mut(&mut self) -> &mut Self { self }
                        }
                    },
                )
            });
            quote! {
                #(#cfgs)*
                impl #impl_generics #visit::StructuralVisitor for #self_ty #where_clause {
                    #allow
                    fn visit(&mut #this, __value: &#view, __kind: #region) -> #visited {
                        #(#tries)*
                        #visit::StructuralVisitor::default_visit_children(#this, __value, __kind)
                    }
                    #descent
                }
                #state
            }
        }
        Mode::Mutate => {
            let (descent, state) = policy_parts(policy.as_ref(), |policy| {
                (
                    quote! {
                        fn on_default_mutate(
                            &mut #this,
                            __value: #mutate::MutateValue<'_>,
                            __kind: #region,
                        ) -> #error<#krate::Any> {
                            let __policy = #policy;
                            #mutate::default_mutate_with_policy(#this, &__policy, __value, __kind)
                        }
                    },
                    quote! {
                        #(#cfgs)*
                        impl #impl_generics #mutate::MutateCallbackState<#self_ty> for #self_ty
                        #where_clause {
                            fn callback_state(&self) -> &Self { self }
                            fn callback_state_mut(&mut self) -> &mut Self { self }
                        }
                    },
                )
            });
            quote! {
                #(#cfgs)*
                impl #impl_generics #mutate::MutateDispatch for #self_ty #where_clause {
                    fn dispatch_mutate(
                        &mut #this,
                        __value: &#view,
                        __mutator: &mut #mutate::Mutator,
                    ) -> ::core::option::Option<#error<#krate::Any>> {
                        <Self as #mutate::MutateDispatch>::dispatch_mutate_value(
                            #this,
                            #mutate::MutateValue::borrowed(__value),
                            __mutator,
                        )
                    }
                    #allow
                    fn dispatch_mutate_value(
                        &mut #this,
                        mut __value: #mutate::MutateValue<'_>,
                        __mutator: &mut #mutate::Mutator,
                    ) -> ::core::option::Option<#error<#krate::Any>> {
                        #(#tries)*
                        ::core::option::Option::None
                    }
                    #descent
                }
                #state
            }
        }
    };
    Ok(quote! { #item #emitted })
}

fn policy_parts(
    policy: Option<&Expr>,
    make: impl FnOnce(&Expr) -> (TokenStream, TokenStream),
) -> (TokenStream, TokenStream) {
    policy.map_or_else(|| (quote! {}, quote! {}), make)
}
