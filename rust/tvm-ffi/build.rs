// SPDX-License-Identifier: Apache-2.0
//! Puts libtvm_ffi, where tvm-ffi-sys found it, on the loader path of the tests and examples. Builds the
//! library of the example if the feature `example` is on.
fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if let Ok(setting) = std::env::var("DEP_TVM_FFI_LOADER_PATH") {
        println!("cargo:rustc-env={setting}");
    }
    if std::env::var_os("CARGO_FEATURE_EXAMPLE").is_some() {
        generate_example_library();
    }
}

fn generate_example_library() {
    const SCRIPT: &str = "scripts/generate_example_lib.py";
    println!("cargo:rerun-if-changed={SCRIPT}");
    let folder = std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    let status = std::process::Command::new("python")
        .arg(SCRIPT)
        .arg(folder)
        .status()
        .unwrap_or_else(|error| panic!("Failed to generate example library: {error}"));
    assert!(status.success(), "Failed to generate example library: python ended with {status}");
}
