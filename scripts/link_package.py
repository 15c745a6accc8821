# SPDX-License-Identifier: Apache-2.0
"""Make a build folder importable: link the package's sources, headers and libraries into it.

link_package.py SOURCE_ROOT PACKAGE_DIR LIBRARY_DIR
"""

import sys
from pathlib import Path


def link(target: Path, name: Path) -> None:
    if name.is_symlink() or name.exists():
        if name.is_symlink() and name.readlink() == target:
            return
        name.unlink()
    name.symlink_to(target)


def main() -> None:
    root, package, libraries = (Path(arg).resolve() for arg in sys.argv[1:])
    package.mkdir(parents=True, exist_ok=True)
    for left in package.iterdir():  # links to files that were moved or removed
        if left.is_symlink() and not left.exists():
            left.unlink()
    for source in (root / "python" / "tvm_ffi").iterdir():
        if source.name not in ("__pycache__", "share"):
            link(source, package / source.name)
    link(root / "include", package / "include")
    link(root / "src", package / "src")
    link(libraries, package / "lib")
    # Other parts of this folder are made by the build.
    share = package / "share"
    share.mkdir(exist_ok=True)
    link(root / "python" / "tvm_ffi" / "share" / "gdb", share / "gdb")
    cmake_package = package / "share" / "cmake" / "tvm_ffi"
    cmake_package.mkdir(parents=True, exist_ok=True)
    for generated in package.parents[1].glob("tvm_ffi-config*.cmake"):
        link(generated, cmake_package / generated.name)
    link(root / "cmake" / "Utils", cmake_package / "Utils")


if __name__ == "__main__":
    main()
