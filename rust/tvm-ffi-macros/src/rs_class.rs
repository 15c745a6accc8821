// SPDX-License-Identifier: Apache-2.0
//! `#[rs_class]` and `def_object_ref!`.
use crate::object::{self, default_crate, reflect_flags, Field, ObjectType};
use crate::object_ref;
use proc_macro2::TokenStream;
use quote::quote;
use syn::parse::{Parse, ParseStream, Parser};
use syn::{Attribute, Error, Ident, Path, Result, Token, Type, Visibility};

const EXPECTED_ARG: &str = "expected `final`, `s_eq_hash_kind = \"<kind>\"`, `child_slots = <n>`, \
                            `child_slots_can_overflow = <bool>` or `crate = <path>`";

#[derive(Default)]
struct Args {
    type_key: Option<syn::Expr>,
    is_final: bool,
    kind: Option<syn::LitStr>,
    child_slots: Option<u32>,
    can_overflow: Option<bool>,
    krate: Option<Path>,
}

/// `= path`, where a literal path may come through a macro argument.
fn crate_path(input: ParseStream) -> Result<Path> {
    input.parse::<Token![=]>()?;
    input.call(Path::parse_mod_style)
}

fn parse_args(input: ParseStream) -> Result<Args> {
    const KEY: &str = "expected the type key first, as in `#[rs_class(\"my.Point\")]`";
    let mut args = Args::default();
    let key: syn::Expr = input.parse().map_err(|_| Error::new(input.span(), KEY))?;
    match object::without_groups(&key) {
        syn::Expr::Lit(lit) if matches!(lit.lit, syn::Lit::Str(_)) => {
            args.type_key = Some(object::without_groups(&key).clone())
        }
        other => return Err(Error::new_spanned(other, KEY)),
    }
    let mut seen: Vec<std::string::String> = Vec::new();
    while !input.is_empty() {
        input.parse::<Token![,]>()?;
        if input.is_empty() {
            break;
        }
        let name = input.call(<Ident as syn::ext::IdentExt>::parse_any)?;
        let text = name.to_string();
        if seen.contains(&text) {
            return Err(Error::new(name.span(), format!("duplicate `{text}`")));
        }
        match text.as_str() {
            "final" => args.is_final = true,
            "s_eq_hash_kind" => {
                input.parse::<Token![=]>()?;
                args.kind = Some(input.parse()?);
            }
            "child_slots" => {
                input.parse::<Token![=]>()?;
                args.child_slots = Some(input.parse::<syn::LitInt>()?.base10_parse()?);
            }
            "child_slots_can_overflow" => {
                input.parse::<Token![=]>()?;
                args.can_overflow = Some(input.parse::<syn::LitBool>()?.value);
            }
            "crate" => args.krate = Some(crate_path(input)?),
            _ => return Err(Error::new(name.span(), EXPECTED_ARG)),
        }
        seen.push(text);
    }
    if args.is_final && args.child_slots.is_some_and(|slots| slots > 0) {
        return Err(input.error("a final type has no children to reserve slots for"));
    }
    Ok(args)
}

/// Numbers and `bool` are taken as they are, so that literals need no suffix.
fn is_plain(ty: &Type) -> bool {
    const PLAIN: [&str; 13] = [
        "bool", "i8", "i16", "i32", "i64", "isize", "u8", "u16", "u32", "u64", "usize", "f32",
        "f64",
    ];
    let Type::Path(path) = ty else { return false };
    path.qself.is_none()
        && path.path.get_ident().is_some_and(|name| PLAIN.contains(&name.to_string().as_str()))
}

pub fn rs_class(args: TokenStream, input: TokenStream) -> Result<TokenStream> {
    let args = parse_args.parse2(args)?;
    let item: syn::Item = syn::parse2(input)?;
    let syn::Item::Struct(mut item) = item else {
        return Err(Error::new_spanned(item, "`rs_class` expects a struct"));
    };
    if !item.generics.params.is_empty() {
        return Err(Error::new_spanned(&item.generics, "an `rs_class` cannot be generic"));
    }
    let syn::Fields::Named(named) = &mut item.fields else {
        return Err(Error::new_spanned(&item.ident, "`rs_class` expects named fields"));
    };
    let mut fields = Vec::new();
    for field in &mut named.named {
        let mut flags = Vec::new();
        let mut reflected = false;
        for attr in field.attrs.iter().filter(|attr| attr.path().is_ident("reflect")) {
            flags = reflect_flags(attr)?;
            reflected = true;
        }
        let name = field.ident.clone().expect("named fields have names");
        if fields.is_empty() {
            if name != "base" {
                return Err(Error::new(
                    name.span(),
                    "the first field holds the parent's object: `base: Object` at the root, else \
                     `base: ParentObj`",
                ));
            }
            if reflected {
                return Err(Error::new(
                    name.span(),
                    "`base` is the parent's object, whose fields the parent reflects",
                ));
            }
        }
        field.attrs.retain(|attr| !attr.path().is_ident("reflect"));
        fields.push(Field { name, ty: field.ty.clone(), reflect: Some(flags) });
    }
    if fields.is_empty() {
        return Err(Error::new(
            item.ident.span(),
            "the first field holds the parent's object: `base: Object` at the root, else \
             `base: ParentObj`",
        ));
    }
    let base = fields.remove(0);
    let object = ObjectType {
        krate: args.krate.unwrap_or_else(default_crate),
        name: item.ident.clone(),
        type_key: args.type_key.expect("parsed first"),
        type_index: None,
        register: true,
        is_final: args.is_final,
        child_slots: args.child_slots,
        can_overflow: args.can_overflow,
        kind: args.kind,
        base: (base.name, base.ty),
        fields,
        always_reflect: true,
    };
    let implementation = object::emit(&object)?;
    let name = &object.name;
    let base_type = &object.base.1;
    let names: Vec<_> = object.fields.iter().map(|field| &field.name).collect();
    let params = object.fields.iter().map(|Field { name, ty, .. }| match is_plain(ty) {
        true => quote! { #name: #ty },
        false => quote! { #name: impl ::core::convert::Into<#ty> },
    });
    let values = object.fields.iter().map(|Field { name, ty, .. }| match is_plain(ty) {
        true => quote! { #name },
        false => quote! { ::core::convert::Into::<#ty>::into(#name) },
    });
    Ok(quote! {
        #[repr(C)]
        #item
        #implementation
        impl ::core::ops::Deref for #name {
            type Target = #base_type;
            fn deref(&self) -> &#base_type {
                &self.base
            }
        }
        impl #name {
            /// A value of the class; the handle type makes an object of it.
            #[allow(clippy::too_many_arguments, dead_code)]
            pub fn new(base: #base_type, #(#params),*) -> Self {
                Self { base, #(#names: #values),* }
            }
        }
    })
}

pub struct RefDefinition {
    attrs: Vec<Attribute>,
    vis: Visibility,
    name: Ident,
    parent: Type,
    object: Type,
    krate: Path,
}

impl Parse for RefDefinition {
    fn parse(input: ParseStream) -> Result<Self> {
        let attrs = input.call(Attribute::parse_outer)?;
        let vis = input.parse()?;
        let name = input.parse()?;
        input.parse::<Token![,]>()?;
        let parent = input.parse()?;
        input.parse::<Token![,]>()?;
        let object = input.parse()?;
        let mut krate = default_crate();
        while !input.is_empty() {
            input.parse::<Token![,]>()?;
            if input.is_empty() {
                break;
            }
            const EXPECTED: &str = "expected `crate = <path>` after the object type";
            input.parse::<Token![crate]>().map_err(|e| Error::new(e.span(), EXPECTED))?;
            krate = crate_path(input)?;
        }
        Ok(Self { attrs, vis, name, parent, object, krate })
    }
}

pub fn def_object_ref(definition: RefDefinition) -> Result<TokenStream> {
    let RefDefinition { attrs, vis, name, parent, object, krate } = definition;
    let doc = (!attrs.iter().any(|attr| attr.path().is_ident("doc"))).then(|| {
        let text = format!(" A handle to a [`{}`].", quote! { #object });
        quote! { #[doc = #text] }
    });
    let field = Ident::new("base", name.span());
    let arc = quote! { #krate::object::ObjectArc<#object> };
    let implementation = object_ref::emit(&krate, &name, &field, &arc, &[]);
    Ok(quote! {
        #doc
        #[repr(C)]
        #[derive(::core::clone::Clone)]
        #(#attrs)*
        #vis struct #name {
            base: #arc,
        }
        #implementation
        impl ::core::ops::Deref for #name {
            type Target = #object;
            fn deref(&self) -> &#object {
                &self.base
            }
        }
        impl ::core::convert::From<#object> for #name {
            fn from(value: #object) -> Self {
                Self { base: <#arc>::new(value) }
            }
        }
        #krate::impl_object_upcast!(#name => #parent);
    })
}
