# SPDX-License-Identifier: Apache-2.0
"""Load an object file, compiled with our headers, through apache-tvm-ffi-orcjit and call it."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from pathlib import Path

import tvm_ffi
from tvm_ffi import libinfo
from tvm_ffi_orcjit import default_session

SOURCE = """
#include <tvm/ffi/tvm_ffi.h>
namespace ffi = tvm::ffi;
int64_t Add(int64_t a, int64_t b) { return a + b; }
ffi::Array<ffi::Any> Twice(ffi::Any value) { return {value, value}; }
void Fail() { TVM_FFI_THROW(ValueError) << "from the object file"; }
TVM_FFI_DLL_EXPORT_TYPED_FUNC(add, Add)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(twice, Twice)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(fail, Fail)
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        source, made = Path(directory, "client.cc"), Path(directory, "client.o")
        source.write_text(SOURCE)
        compiler = shlex.split(os.environ.get("CXX", "c++"))
        include = [f"-I{path}" for path in libinfo.include_paths()]
        options = ["-std=c++17", "-O1", "-fPIC", *include]
        subprocess.run([*compiler, *options, "-c", str(source), "-o", str(made)], check=True)
        module = default_session().load_module(str(made))
        assert module.add(2, 3) == 5
        array = tvm_ffi.Array([1])
        pair = module.twice(array)
        assert pair[0] is pair[1] and pair[0].same_as(array)
        try:
            module.fail()
        except ValueError as error:
            assert str(error) == "from the object file"
        else:
            raise AssertionError("no error")
    print("load and call: ok")
    print("ok")


main()
