// SPDX-License-Identifier: Apache-2.0
//! Puts libtvm_ffi on the loader path of the tests.
include!("find_library.rs");

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if let Some(libdir) = find_library() {
        set_loader_path(&libdir);
    }
}
