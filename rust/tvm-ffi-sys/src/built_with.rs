// SPDX-License-Identifier: Apache-2.0
//! What a library of these crates says of itself to the loader.
use crate::{TVMFFIAny, TVMFFIBigIntFromByteArray, TVMFFIByteArray};

/// Interface and release, each as three numbers: those of `tvm/ffi/c_api.h`.
#[cfg(target_os = "linux")]
const VERSIONS: [u32; 6] = [0, 1, 15, 0, 1, 0];

/// The ELF note that the C header leaves, too: `load_module` and the doctor read it.
#[cfg(target_os = "linux")]
#[repr(C)]
struct Note {
    name_size: u32,
    description_size: u32,
    kind: u32,
    name: [u8; 8],
    versions: [u32; 6],
}

#[cfg(target_os = "linux")]
#[used]
#[link_section = ".note.tvm_ffi"]
static NOTE: Note =
    Note { name_size: 8, description_size: 24, kind: 1, name: *b"TVM-FFI\0", versions: VERSIONS };

/// The newest function of the interface. A runtime that does not have it is older than these declarations, and
/// some of its records are shorter: the loader refuses the program or library before any of its code runs.
#[used]
static NEEDED: unsafe extern "C" fn(*const TVMFFIByteArray, *mut TVMFFIAny) -> i32 =
    TVMFFIBigIntFromByteArray;
