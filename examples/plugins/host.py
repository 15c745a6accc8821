# SPDX-License-Identifier: Apache-2.0
"""Load plugins by name: python host.py NAME TEXT, where filters/NAME.cc is a plugin.

A plugin is a library that registers a function when it is loaded. It can be written in any language
of the interface; `tvm_ffi.register_global_func` makes one in Python.
"""

import sys
from pathlib import Path

import tvm_ffi
import tvm_ffi.cpp

FOLDER = Path(__file__).parent


def load_plugin(name: str) -> None:
    """Make a plugin available. Here it is compiled first; a program would look for a .so file."""
    source = FOLDER / "filters" / f"{name}.cc"
    if source.exists():
        tvm_ffi.cpp.load(name, sources=[str(source)])


def main() -> None:
    name, text = sys.argv[1:] or ("reverse", "some text")
    tvm_ffi.cpp.load("host", sources=[str(FOLDER / "host.cc")])
    tvm_ffi.register_global_func("plugins.filter.shout", lambda text: f"{text}!")
    load_plugin(name)
    print(tvm_ffi.get_global_func("plugins.apply")(name, text))


if __name__ == "__main__":
    main()
