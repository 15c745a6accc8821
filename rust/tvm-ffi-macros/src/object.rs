// SPDX-License-Identifier: Apache-2.0
//! `derive(Object)`.
use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Attribute, Error, Expr, Ident, LitStr, Path, Result, Type};

/// What the object macros know of a type.
pub struct ObjectType {
    pub krate: Path,
    pub name: Ident,
    pub type_key: Expr,
    pub type_index: Option<Expr>,
    pub register: bool,
    pub is_final: bool,
    pub child_slots: Option<u32>,
    pub can_overflow: Option<bool>,
    pub kind: Option<LitStr>,
    pub base: (Ident, Type),
    pub fields: Vec<Field>,
    /// Reflection is registered even without fields.
    pub always_reflect: bool,
}

pub struct Field {
    pub name: Ident,
    pub ty: Type,
    /// Flags of a reflected field.
    pub reflect: Option<Vec<Ident>>,
}

pub fn default_crate() -> Path {
    syn::parse_quote!(::tvm_ffi)
}

/// Macro arguments pass literals inside invisible groups.
pub fn without_groups(expr: &Expr) -> &Expr {
    match expr {
        Expr::Group(group) => without_groups(&group.expr),
        other => other,
    }
}

fn literal(expr: &Expr) -> Option<&syn::Lit> {
    match without_groups(expr) {
        Expr::Lit(lit) => Some(&lit.lit),
        _ => None,
    }
}

/// The value of `#[name = value]`.
fn value_of<'a>(attr: &'a Attribute, expected: &str) -> Result<&'a Expr> {
    match &attr.meta {
        syn::Meta::NameValue(pair) => Ok(&pair.value),
        _ => Err(Error::new(attr.span(), expected)),
    }
}

fn bare(attr: &Attribute, expected: &str) -> Result<()> {
    match &attr.meta {
        syn::Meta::Path(_) => Ok(()),
        _ => Err(Error::new(attr.span(), expected)),
    }
}

const FLAGS: [&str; 9] = [
    "writable",
    "seq_hash_ignore",
    "seq_hash_def_pattern",
    "seq_hash_def_simple",
    "repr_off",
    "compare_off",
    "hash_off",
    "init_off",
    "kw_only",
];

/// The flags of `#[reflect]` or `#[reflect(flag, ...)]`.
pub fn reflect_flags(attr: &Attribute) -> Result<Vec<Ident>> {
    const EXPECTED: &str = "Expect #[reflect] or #[reflect(<flag>, ...)]";
    let flags: Vec<Ident> = match &attr.meta {
        syn::Meta::Path(_) => Vec::new(),
        syn::Meta::List(list) => list
            .parse_args_with(syn::punctuated::Punctuated::<Ident, syn::Token![,]>::parse_terminated)
            .map_err(|_| Error::new(attr.span(), EXPECTED))?
            .into_iter()
            .collect(),
        _ => return Err(Error::new(attr.span(), EXPECTED)),
    };
    match flags.iter().find(|flag| !FLAGS.contains(&flag.to_string().as_str())) {
        Some(unknown) => Err(Error::new(unknown.span(), EXPECTED)),
        None => Ok(flags),
    }
}

pub fn derive(input: syn::DeriveInput) -> Result<TokenStream> {
    const TYPE_KEY: &str = "Expect #[type_key = \"<my_type_key>\"] attribute";
    const SLOTS: &str = "Expect #[type_child_slots = <non-negative integer>]";
    const OVERFLOW: &str = "Expect #[type_child_slots_can_overflow = <bool>]";
    const KIND: &str = "Expect #[type_s_eq_hash_kind = \"<kind>\"]";
    let span = input.ident.span();
    let syn::Data::Struct(data) = &input.data else {
        return Err(Error::new(span, "#[derive(Object)] needs named fields"));
    };
    let syn::Fields::Named(named) = &data.fields else {
        return Err(Error::new(span, "#[derive(Object)] needs named fields"));
    };
    let mut fields = Vec::new();
    for field in &named.named {
        let name = field.ident.clone().expect("named fields have names");
        let attr = field.attrs.iter().find(|attr| attr.path().is_ident("reflect"));
        let reflect = attr.map(reflect_flags).transpose()?;
        fields.push(Field { name, ty: field.ty.clone(), reflect });
    }
    if fields.is_empty() {
        return Err(Error::new(span, "First field must be `<base_name>: <ObjectCoreType>`"));
    }
    let base = fields.remove(0);
    if base.reflect.is_some() {
        return Err(Error::new(
            base.name.span(),
            "the parent field cannot be #[reflect]; the parent registers its own fields",
        ));
    }
    if !input.generics.params.is_empty() {
        return Err(Error::new_spanned(
            &input.generics,
            "an object type cannot be generic: all its instances would share one type key",
        ));
    }
    let mut type_key = None;
    let mut object = ObjectType {
        krate: default_crate(),
        name: input.ident.clone(),
        type_key: syn::parse_quote!(""),
        type_index: None,
        register: false,
        is_final: false,
        child_slots: None,
        can_overflow: None,
        kind: None,
        base: (base.name, base.ty),
        fields,
        always_reflect: false,
    };
    for attr in &input.attrs {
        let Some(name) = attr.path().get_ident() else { continue };
        match name.to_string().as_str() {
            "type_key" => {
                let value = value_of(attr, TYPE_KEY)?;
                if !matches!(literal(value), Some(syn::Lit::Str(_))) {
                    return Err(Error::new(attr.span(), TYPE_KEY));
                }
                type_key = Some(without_groups(value).clone());
            }
            "type_index" => object.type_index = Some(attr.parse_args()?),
            "type_register" => {
                bare(attr, "Expect #[type_register] attribute")?;
                object.register = true;
            }
            "type_final" => {
                bare(attr, "Expect #[type_final] attribute")?;
                object.is_final = true;
            }
            "type_child_slots" => match literal(value_of(attr, SLOTS)?) {
                Some(syn::Lit::Int(number)) => {
                    let number =
                        number.base10_parse().map_err(|_| Error::new(attr.span(), SLOTS))?;
                    object.child_slots = Some(number);
                }
                _ => return Err(Error::new(attr.span(), SLOTS)),
            },
            "type_child_slots_can_overflow" => match literal(value_of(attr, OVERFLOW)?) {
                Some(syn::Lit::Bool(flag)) => object.can_overflow = Some(flag.value),
                _ => return Err(Error::new(attr.span(), OVERFLOW)),
            },
            "type_s_eq_hash_kind" => match literal(value_of(attr, KIND)?) {
                Some(syn::Lit::Str(text)) => object.kind = Some(text.clone()),
                _ => return Err(Error::new(attr.span(), KIND)),
            },
            _ => {}
        }
    }
    object.type_key = type_key.ok_or_else(|| Error::new(span, TYPE_KEY))?;
    emit(&object)
}

pub fn emit(object: &ObjectType) -> Result<TokenStream> {
    let ObjectType { krate, name, type_key, is_final, .. } = object;
    let span = name.span();
    let slots = object.child_slots.unwrap_or(0) as i32;
    if (object.child_slots.is_some() || object.can_overflow.is_some()) && !object.register {
        return Err(Error::new(
            span,
            "#[type_child_slots] and #[type_child_slots_can_overflow] need #[type_register]",
        ));
    }
    if *is_final && slots > 0 {
        return Err(Error::new(span, "a final object type cannot reserve child slots"));
    }
    let reflects = object.always_reflect
        || object.kind.is_some()
        || object.fields.iter().any(|field| field.reflect.is_some());
    if reflects && (!object.register || object.type_index.is_some()) {
        return Err(Error::new(
            span,
            "#[reflect] and #[type_s_eq_hash_kind] need #[type_register] and no #[type_index]",
        ));
    }
    let (base_name, base_type) = &object.base;
    let type_index = if let Some(index) = &object.type_index {
        quote! { (#index) as i32 }
    } else if object.register {
        let overflow = object.can_overflow.unwrap_or(true);
        let (define, reflect) = match reflects {
            true => (reflection(object)?, quote! { ::core::option::Option::Some(__reflect) }),
            false => (quote! {}, quote! { ::core::option::Option::None }),
        };
        quote! {
            static __INDEX: ::std::sync::OnceLock<i32> = ::std::sync::OnceLock::new();
            #define
            #krate::object::registered_type_index(
                &__INDEX,
                #type_key,
                <Self as #krate::object::ObjectCore>::TYPE_DEPTH,
                #slots,
                #overflow,
                <#base_type as #krate::object::ObjectCore>::type_index,
                #reflect,
            )
        }
    } else {
        quote! {
            static __INDEX: ::std::sync::OnceLock<i32> = ::std::sync::OnceLock::new();
            #krate::object::bound_type_index(&__INDEX, #type_key)
        }
    };
    let shallow_copy = reflects.then(|| {
        let others = object.fields.iter().map(|field| &field.name);
        quote! {
            impl #krate::reflection::ShallowCopy for #name {
                fn shallow_copy(&self) -> Self {
                    Self {
                        #base_name: #krate::reflection::ShallowCopy::shallow_copy(&self.#base_name),
                        #(#others: ::core::clone::Clone::clone(&self.#others),)*
                    }
                }
            }
        }
    });
    Ok(quote! {
        const _: () = {
            ::core::assert!(
                !<#base_type as #krate::object::ObjectCore>::TYPE_FINAL,
                "an object type cannot derive from a final parent"
            );
            ::core::assert!(
                ::core::mem::offset_of!(#name, #base_name) == 0,
                "the parent must come first in memory: add #[repr(C)]"
            );
        };
        unsafe impl #krate::object::ObjectCore for #name {
            const TYPE_KEY: &'static str = #type_key;
            const TYPE_DEPTH: i32 = <#base_type as #krate::object::ObjectCore>::TYPE_DEPTH + 1;
            const TYPE_FINAL: bool = #is_final;
            #[inline]
            fn type_index() -> i32 {
                #type_index
            }
            #[inline]
            unsafe fn object_header_mut(this: &mut Self) -> &mut #krate::tvm_ffi_sys::TVMFFIObject {
                unsafe {
                    <#base_type as #krate::object::ObjectCore>::object_header_mut(
                        &mut this.#base_name,
                    )
                }
            }
        }
        #shallow_copy
    })
}

/// The function that registers the fields.
fn reflection(object: &ObjectType) -> Result<TokenStream> {
    const KINDS: [&str; 6] =
        ["Unsupported", "TreeNode", "FreeVar", "DAGNode", "ConstTreeNode", "UniqueInstance"];
    let ObjectType { krate, name, .. } = object;
    let kind = match &object.kind {
        None => quote! { ::core::option::Option::None },
        Some(text) if KINDS.contains(&text.value().as_str()) => {
            let variant = Ident::new(&text.value(), text.span());
            quote! { ::core::option::Option::Some(#krate::reflection::SEqHashKind::#variant) }
        }
        Some(text) => {
            let message = format!("expected one of {}", KINDS.join(", "));
            return Err(Error::new(text.span(), message));
        }
    };
    let fields = object.fields.iter().filter_map(|field| {
        let flags = field.reflect.as_ref()?;
        let Field { name: ident, ty, .. } = field;
        let text = ident.unraw().to_string();
        let flags = flags.iter().map(|flag| {
            let constant = Ident::new(&flag.to_string().to_uppercase(), flag.span());
            quote! { | #krate::reflection::FieldFlags::#constant }
        });
        Some(quote! {
            let __def = unsafe {
                __def.field::<#ty>(
                    #text,
                    ::core::mem::offset_of!(#name, #ident),
                    #krate::reflection::FieldFlags::NONE #(#flags)*,
                )
            }?;
        })
    });
    Ok(quote! {
        fn __reflect(__index: i32) -> #krate::error::Result<()> {
            let __creator = {
                #[allow(unused_imports)]
                use #krate::reflection::CreatorOf as _;
                (&#krate::reflection::CreatorProbe::<#name>::new()).creator()
            };
            let __def = unsafe {
                #krate::reflection::ObjectDef::<#name>::registering_with(__index, #kind, __creator)
            }?;
            #(#fields)*
            __def.shallow_copy()?.finish()
        }
    })
}
