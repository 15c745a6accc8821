# SPDX-License-Identifier: Apache-2.0
"""Crates and runtimes of different interface levels: every combination that cannot work says so."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import tvm_ffi
from crates import HERE, build_crate, cargo_environment

if shutil.which("cargo") is None:
    pytest.skip("no cargo: nothing can be built", allow_module_level=True)

CRATES = HERE.parents[1] / "rust"
NEWEST = "TVMFFIBigIntFromByteArray"


def write_crate(folder: Path, kind: str, source: str) -> Path:
    """A crate that uses the declarations of the C interface; returns its manifest."""
    (folder / "src").mkdir(parents=True)
    (folder / "src" / ("main.rs" if kind == "bin" else "lib.rs")).write_text(source)
    library = '[lib]\ncrate-type = ["cdylib"]\n' if kind == "cdylib" else ""
    manifest = folder / "Cargo.toml"
    manifest.write_text(
        f'[package]\nname = "skewed"\nversion = "0.1.0"\nedition = "2021"\n{library}'
        f'[dependencies]\ntvm-ffi-sys = {{ path = "{CRATES / "tvm-ffi-sys"}" }}\n[workspace]\n'
    )
    return manifest


def older_runtime(folder: Path) -> Path:
    """A folder with a runtime that lacks the newest function."""
    folder.mkdir()
    source = folder / "older.c"
    source.write_text("void TVMFFIGetVersion(unsigned v[3]) { v[0] = 0; v[1] = 1; v[2] = 9; }\n")
    library = folder / "libtvm_ffi.so"
    command = [os.environ.get("CC", "cc"), "-shared", "-fPIC", "-Wl,-soname,libtvm_ffi.so"]
    subprocess.run([*command, str(source), "-o", str(library)], check=True)
    return folder


def test_a_library_says_what_it_was_built_with(tmp_path: Path) -> None:
    info = tvm_ffi.get_global_func("ffi.tether.ClientInfo")(str(build_crate("tied", tmp_path)))
    assert info["built_with"] == f"{tvm_ffi.__version__} (tether {tvm_ffi.__tether_version__})"
    assert NEWEST in info["imports"]


def test_a_library_of_a_later_interface_is_refused(tmp_path: Path) -> None:
    manifest = write_crate(
        tmp_path / "later",
        "cdylib",
        "extern crate tvm_ffi_sys;\n"
        'unsafe extern "C" {\n    fn TVMFFINotYetInvented() -> i32;\n}\n'
        "#[no_mangle]\n"
        'pub extern "C" fn use_it() -> i32 {\n    unsafe { TVMFFINotYetInvented() }\n}\n',
    )
    environment = cargo_environment("later", tmp_path)
    command = ["cargo", "build", "--quiet", "--manifest-path", str(manifest)]
    subprocess.run(command, check=True, env=environment)
    library = Path(environment["CARGO_TARGET_DIR"]) / "debug" / "libskewed.so"
    with pytest.raises(RuntimeError) as caught:
        tvm_ffi.load_module(library)
    built_with = f"{tvm_ffi.__version__} (tether {tvm_ffi.__tether_version__})"
    assert f"Cannot load {library}: it was built with {built_with}" in str(caught.value)
    assert "needs TVMFFINotYetInvented" in str(caught.value)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_the_build_refuses_an_earlier_library(tmp_path: Path) -> None:
    environment = cargo_environment("earlier", tmp_path)
    environment["TVM_FFI_LIBDIR"] = str(older_runtime(tmp_path / "older"))
    manifest = CRATES / "tvm-ffi-sys" / "Cargo.toml"
    command = ["cargo", "build", "--quiet", "--manifest-path", str(manifest)]
    build = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert build.returncode != 0
    library = tmp_path / "older" / "libtvm_ffi.so"
    assert f"{library} implements an earlier interface: it has no {NEWEST}" in build.stderr
    assert "need that or a later one" in build.stderr


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_a_program_does_not_start_with_an_earlier_runtime(tmp_path: Path) -> None:
    # It uses nothing but the name of the crate.
    source = 'extern crate tvm_ffi_sys;\nfn main() {\n    println!("started");\n}\n'
    manifest = write_crate(tmp_path / "program", "bin", source)
    environment = cargo_environment("program", tmp_path)
    command = ["cargo", "build", "--quiet", "--manifest-path", str(manifest)]
    subprocess.run(command, check=True, env=environment)
    program = Path(environment["CARGO_TARGET_DIR"]) / "debug" / "skewed"

    def run(libraries: str) -> subprocess.CompletedProcess[str]:
        environment["LD_LIBRARY_PATH"] = libraries
        return subprocess.run(
            [str(program)], env=environment, capture_output=True, text=True, check=False
        )

    good = run(environment["TVM_FFI_LIBDIR"])
    assert (good.returncode, good.stdout) == (0, "started\n"), good.stderr
    bad = run(str(older_runtime(tmp_path / "older")))
    assert (bad.returncode != 0, bad.stdout) == (True, "")
    assert NEWEST in bad.stderr
