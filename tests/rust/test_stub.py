# SPDX-License-Identifier: Apache-2.0
"""What `tvm-ffi-stubgen --target rust` writes compiles with the crates and works."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import tvm_ffi
import tvm_ffi.testing
from crates import HERE, cargo_environment
from tvm_ffi.registry import get_registered_type_keys

if shutil.which("cargo") is None:
    pytest.skip("no cargo: generated bindings cannot be compiled", allow_module_level=True)

MANIFEST = """\
[package]
name = "stubs"
version = "0.1.0"
edition = "2021"

[dependencies]
tvm-ffi = {{ path = "{rust}/tvm-ffi" }}
tvm-ffi-sys = {{ path = "{rust}/tvm-ffi-sys", features = ["testing"] }}

[workspace]
"""

USE = """\
use stubs::*;
use tvm_ffi::*;

#[test]
fn bindings_and_the_library_agree() {
    assert_eq!(unsafe { tvm_ffi_sys::TVMFFITestingDummyTarget() }, 0);
    let pair = TestIntPair::new(3, 4);
    let sum = Function::from_type_key_method("testing.TestIntPair", "sum").unwrap();
    assert_eq!(i64::try_from(sum.call_tuple((&pair,)).unwrap()).unwrap(), 7);
    let make = Function::from_type_key_method("testing.TestIntPair", "__ffi_init__").unwrap();
    let made: TestIntPair = make.call_tuple((5i64, 6i64)).unwrap().try_into().unwrap();
    assert_eq!((made.a, made.b), (5, 6));
}
"""


# Types with names that the crate, the prelude or the language has.
NAMES = """\
import tvm_ffi
from tvm_ffi.dataclasses import py_class

for name in ("Abc", "Object", "String", "Option", "Clone", "Into", "Result", "match", "Self"):
    fields = {"s": str, "t": str | None, "u": tvm_ffi.Object | None}
    py_class(f"clash.{name}")(type(name, (tvm_ffi.Object,), {"__annotations__": fields}))
for name in ("str", "i32", "std", "tvm_ffi"):  # left out
    py_class(f"clash.{name}")(type(name, (tvm_ffi.Object,), {"__annotations__": {"s": str}}))
opaque = {"ObjectCore": {"s": dict[str, int]}, "FieldGetter": {"s": dict[str, int]}}
for name, fields in opaque.items():
    py_class(f"clash.{name}")(type(name, (tvm_ffi.Object,), {"__annotations__": fields}))
"""


def test_bindings_compile_and_work(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "tests").mkdir()
    (tmp_path / "Cargo.toml").write_text(MANIFEST.format(rust=HERE.parents[1] / "rust"))
    (tmp_path / "tests" / "use.rs").write_text(USE)
    keys = sorted(key for key in get_registered_type_keys() if key.startswith("testing."))
    # Types that tests of other modules register in this process are not in the library.
    kinds = ["import-section", *(f"object/{key}" for key in keys if key.count(".") == 1)]
    marks = [
        line
        for kind in kinds
        for line in (f"// tvm-ffi-stubgen(begin): {kind}", "// tvm-ffi-stubgen(end)")
    ]
    library = tmp_path / "src" / "lib.rs"
    library.write_text("\n".join(["pub mod clash;", *marks]) + "\n")
    clash = tmp_path / "src" / "clash.rs"
    clash.write_text("// tvm-ffi-stubgen(prefix): clash\n")
    (tmp_path / "names_that_clash.py").write_text(NAMES)
    generator = [sys.executable, "-m", "tvm_ffi.stub.cli", "--target", "rust"]
    generator += ["--imports", "tvm_ffi.testing;names_that_clash", str(library), str(clash)]
    paths = f"{tmp_path}{os.pathsep}{Path(tvm_ffi.__file__).parents[1].absolute()}"
    with_names = {**os.environ, "PYTHONPATH": paths}
    subprocess.run(generator, check=True, env=with_names)
    assert clash.read_text().count("pub struct") == 22
    assert library.read_text().count("pub struct") >= 60
    subprocess.run([*generator, "--check"], check=True, env=with_names)
    environment = cargo_environment("stubs", tmp_path)
    environment["LD_LIBRARY_PATH"] = str(Path(tvm_ffi.__file__).parent / "lib")
    environment["RUSTFLAGS"] = "-D warnings"
    subprocess.run(["cargo", "test", "--quiet"], check=True, cwd=tmp_path, env=environment)
