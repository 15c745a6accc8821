// SPDX-License-Identifier: Apache-2.0
//! Finds libtvm_ffi and tells the linker.
/// The folder of libtvm_ffi: `TVM_FFI_LIBDIR`, or what `tvm-ffi-config --libdir` prints.
fn libdir() -> Result<String, String> {
    if let Ok(dir) = std::env::var("TVM_FFI_LIBDIR") {
        if !dir.is_empty() {
            return Ok(dir);
        }
    }
    let output = std::process::Command::new("tvm-ffi-config")
        .arg("--libdir")
        .output()
        .map_err(|e| format!("could not run `tvm-ffi-config`: {e}"))?;
    if !output.status.success() {
        return Err(format!(
            "`tvm-ffi-config --libdir` failed ({}): {}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        ));
    }
    let dir = String::from_utf8_lossy(&output.stdout).trim().to_string();
    if dir.is_empty() {
        return Err("`tvm-ffi-config --libdir` printed no library directory".to_string());
    }
    Ok(dir)
}

/// The folder, or None where only the documentation is built and there is no library.
fn find_library() -> Option<String> {
    for name in ["DOCS_RS", "PATH", "TVM_FFI_LIBDIR"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    match libdir() {
        Ok(dir) => Some(dir),
        Err(reason) if std::env::var_os("DOCS_RS").is_some() => {
            println!("cargo:warning={reason}; the crate is built without the library");
            None
        }
        Err(reason) => panic!(
            "{reason}\nThe crate links libtvm_ffi. Install the Python package (`pip install apache-tvm-ffi`) \
             and put its `tvm-ffi-config` on PATH, or set TVM_FFI_LIBDIR to the folder of the library. \
             To build only the documentation, set DOCS_RS=1."
        ),
    }
}

/// A function that came with the interface of these declarations.
const NEWEST: &str = "TVMFFIBigIntFromByteArray";

/// Stops at a library of an earlier interface, of which the linker would only say what is not there.
fn check_interface(libdir: &str) {
    for name in ["libtvm_ffi.so", "libtvm_ffi.dylib", "tvm_ffi.dll"] {
        let path = std::path::Path::new(libdir).join(name);
        let Ok(bytes) = std::fs::read(&path) else { continue };
        if !bytes.windows(NEWEST.len()).any(|window| window == NEWEST.as_bytes()) {
            panic!(
                "{} implements an earlier interface: it has no {NEWEST}, which came with 0.1.15. \
                 These crates need that or a later one. Install a newer package, or set \
                 TVM_FFI_LIBDIR to the folder of its library.",
                path.display()
            );
        }
    }
}

/// `cargo run` and `cargo test` find the library at run time: those of this package, and those of
/// packages whose build script passes on what this one says (`DEP_TVM_FFI_LOADER_PATH`).
fn set_loader_path(libdir: &str) {
    let (name, separator) = match std::env::var("CARGO_CFG_TARGET_OS").as_deref() {
        Ok("linux") => ("LD_LIBRARY_PATH", ":"),
        Ok("macos") => ("DYLD_LIBRARY_PATH", ":"),
        Ok("windows") => ("PATH", ";"),
        _ => return,
    };
    println!("cargo:rerun-if-env-changed={name}");
    let value = match std::env::var(name) {
        Ok(old) if !old.is_empty() => format!("{old}{separator}{libdir}"),
        _ => libdir.to_string(),
    };
    println!("cargo:rustc-env={name}={value}");
    println!("cargo:loader_path={name}={value}");
}

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let Some(libdir) = find_library() else { return };
    check_interface(&libdir);
    println!("cargo:rustc-link-search=native={libdir}");
    println!("cargo:rustc-link-lib=dylib=tvm_ffi");
    if std::env::var_os("CARGO_FEATURE_TESTING").is_some() {
        println!("cargo:rustc-link-lib=dylib=tvm_ffi_testing");
    }
    set_loader_path(&libdir);
}
