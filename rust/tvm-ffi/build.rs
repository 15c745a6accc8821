// SPDX-License-Identifier: Apache-2.0
//! Puts libtvm_ffi, where tvm-ffi-sys found it, on the loader path of the tests.
fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if let Ok(setting) = std::env::var("DEP_TVM_FFI_LOADER_PATH") {
        println!("cargo:rustc-env={setting}");
    }
}
