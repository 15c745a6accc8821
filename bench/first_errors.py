# SPDX-License-Identifier: Apache-2.0
"""What the first error of each of many libraries costs: time, and memory that stays.

PYTHONPATH=build/release/package .venv/bin/python bench/first_errors.py [-g]
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import tvm_ffi

SOURCE = """#include <tvm/ffi/tvm_ffi.h>
static void Fail() { TVM_FFI_THROW(ValueError) << "no"; }
TVM_FFI_DLL_EXPORT_TYPED_FUNC(fail, Fail);
"""


def memory() -> float:
    """Return the resident memory in MiB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4 / 1024


def main() -> None:
    """Raise in 40 copies of a library, compiled with the options that are given."""
    root = Path(tvm_ffi.__file__).parent
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "m.cc").write_text(SOURCE)
        command = ["g++", "-std=c++17", "-O1", *sys.argv[1:], "-fPIC", "-shared"]
        command += [f"-I{root}/include", "-o", f"{folder}/m.so", f"{folder}/m.cc"]
        subprocess.run([*command, f"-L{root}/lib", "-ltvm_ffi"], check=True)
        begin = memory()
        for number in range(1, 41):
            path = folder / f"m{number}.so"
            shutil.copy(folder / "m.so", path)
            module = tvm_ffi.load_module(path)
            start = time.perf_counter()
            try:
                module.fail()
            except ValueError:
                spent = time.perf_counter() - start
            if number in (1, 2, 10, 32, 40):
                print(f"{number} libraries: {memory() - begin:.0f} MiB, {spent * 1e3:.1f} ms")


if __name__ == "__main__":
    main()
