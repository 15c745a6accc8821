# SPDX-License-Identifier: Apache-2.0
"""Print what a build needs to know: ``python -m tvm_ffi.config --cxxflags``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from . import libinfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def _includes() -> str:
    return f"-I{libinfo.find_include_path()} -I{libinfo.find_dlpack_include_path()}"


def _libdir() -> str:
    return str(Path(libinfo.find_libtvm_ffi()).parent)


# Flag -> (help, what it prints), in the order of printing.
_ANSWERS: dict[str, tuple[str, Callable[[], str]]] = {
    "--includedir": ("directory of the headers", libinfo.find_include_path),
    "--dlpack-includedir": ("directory of dlpack.h", libinfo.find_dlpack_include_path),
    "--cmakedir": ("directory of the CMake package", libinfo.find_cmake_path),
    "--libdir": ("directory of the core library", _libdir),
    "--libfiles": ("path of the core library", libinfo.find_libtvm_ffi),
    "--sourcedir": ("directory of the sources", libinfo.find_source_path),
    "--cython-lib-path": ("path of the extension module", libinfo.find_cython_lib),
    "--cxxflags": ("flags for a C++ compiler", lambda: f"{_includes()} -std=c++17"),
    "--cflags": ("flags for a C compiler", _includes),
    "--libs": ("linker flag naming the library", lambda: "-ltvm_ffi"),
    "--ldflags": ("linker flag naming the directory", lambda: f"-L{_libdir()}"),
}


def __main__() -> None:
    """Entry point of ``tvm-ffi-config``."""
    parser = argparse.ArgumentParser(
        prog="tvm-ffi-config", description="Print paths and compiler flags of tvm_ffi."
    )
    for flag, (text, _) in _ANSWERS.items():
        parser.add_argument(flag, action="store_true", help=text)
    if len(sys.argv) == 1:
        parser.print_help()
        return
    asked = vars(parser.parse_args())
    for flag, (_, answer) in _ANSWERS.items():
        if asked[flag.removeprefix("--").replace("-", "_")]:
            print(answer())


if __name__ == "__main__":
    __main__()
