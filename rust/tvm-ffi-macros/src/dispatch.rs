// SPDX-License-Identifier: Apache-2.0
//! `#[dispatch(...)]`.
use proc_macro2::TokenStream;
use syn::{Error, Result};

pub fn dispatch(args: TokenStream, _input: TokenStream) -> Result<TokenStream> {
    Err(Error::new_spanned(args, "not supported"))
}
