// SPDX-License-Identifier: Apache-2.0
//! Finds libtvm_ffi and tells the linker.
include!("find_library.rs");

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let Some(libdir) = find_library() else { return };
    println!("cargo:rustc-link-search=native={libdir}");
    println!("cargo:rustc-link-lib=dylib=tvm_ffi");
    if std::env::var_os("CARGO_FEATURE_TESTING").is_some() {
        println!("cargo:rustc-link-lib=dylib=tvm_ffi_testing");
    }
    set_loader_path(&libdir);
}
