# SPDX-License-Identifier: Apache-2.0
"""Where the parts of the installed package are, and how to load libraries that come with packages.

>>> from tvm_ffi import libinfo
>>> libinfo.find_include_path().endswith("include")
True
"""

from __future__ import annotations

import ctypes
import os
import sys

from ._impl import conflicts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from .module import Module

_PACKAGE = os.path.dirname(os.path.abspath(__file__))
_DEVELOPMENT = os.path.dirname(os.path.dirname(_PACKAGE))  # when used from the source tree


def _first(what: str, candidates: Iterable[str], *, holding: str = "") -> str:
    """Return the first candidate that exists and contains the file `holding`."""
    tried = []
    for path in candidates:
        if os.path.exists(os.path.join(path, holding) if holding else path):
            return path
        tried.append(path)
    raise RuntimeError(f"Cannot find {what}. Looked at: {', '.join(tried)}")


def _both(*parts: str) -> list[str]:
    return [os.path.join(root, *parts) for root in (_PACKAGE, _DEVELOPMENT)]


# ---- places -------------------------------------------------------------------------------------


def find_libtvm_ffi() -> str:
    """Return the path of the core library."""
    return _find_library("apache-tvm-ffi", "tvm_ffi")


def find_windows_implib() -> str:
    """Return the path of the import library (Windows only)."""
    return _first(
        "implib tvm_ffi.lib", [*_both("lib", "tvm_ffi.lib"), *_both("build", "lib", "tvm_ffi.lib")]
    )


def find_source_path() -> str:
    """Return a directory that contains ``src/`` with the sources shipped for compilation."""
    return _first("source path", (_PACKAGE, _DEVELOPMENT), holding="src")


def find_cmake_path() -> str:
    """Return the directory with ``tvm_ffi-config.cmake``."""
    installed = os.path.join(_PACKAGE, "share", "cmake", "tvm_ffi")
    return _first("cmake path", (installed, os.path.join(_DEVELOPMENT, "cmake")))


def find_include_path() -> str:
    """Return the directory to compile with: it contains ``tvm/ffi``."""
    return _first("include path", _both("include"), holding=os.path.join("tvm", "ffi", "c_api.h"))


def find_dlpack_include_path() -> str:
    """Return the directory that contains ``dlpack/dlpack.h``."""
    wanted = os.path.join("dlpack", "dlpack.h")
    return _first("dlpack include path", _both("include"), holding=wanted)


def find_python_helper_include_path() -> str:
    """Return the directory that contains ``tvm_ffi_python_helpers.h``."""
    return _first(
        "python helper include path", _both("include"), holding="tvm_ffi_python_helpers.h"
    )


def find_cython_lib() -> str:
    """Return the path of the extension module, without importing it."""
    from importlib.machinery import EXTENSION_SUFFIXES

    candidates = [os.path.join(_PACKAGE, f"core{suffix}") for suffix in EXTENSION_SUFFIXES]
    return os.path.realpath(_first("extension module", candidates))


def include_paths() -> list[str]:
    """Return all directories to compile with, sorted."""
    paths = {find_include_path(), find_dlpack_include_path()}
    try:
        paths.add(find_python_helper_include_path())
    except RuntimeError:
        return sorted(paths)  # only the extension itself needs that header
    return sorted(paths)


# ---- libraries of packages ----------------------------------------------------------------------


def _library_names(target_name: str) -> tuple[str, ...]:
    if sys.platform == "win32":
        return (f"{target_name}.dll",)
    if sys.platform == "darwin":
        return (f"lib{target_name}.dylib", f"lib{target_name}.so")
    return (f"lib{target_name}.so",)


def _recorded_files(package: str, names: tuple[str, ...]) -> Iterator[str]:
    """Yield the files of an installed distribution that have one of the names."""
    from importlib import metadata

    try:
        distribution = metadata.distribution(package)
    except (metadata.PackageNotFoundError, ValueError):  # not installed, or "" is no name
        return
    for file in distribution.files or ():
        if file.name in names:
            yield str(distribution.locate_file(file))


def _environment_directories() -> Iterator[str]:
    variables = {"darwin": ["DYLD_LIBRARY_PATH"], "win32": []}.get(
        sys.platform, ["LD_LIBRARY_PATH"]
    )
    for variable in [*variables, "PATH"]:
        yield from filter(None, os.environ.get(variable, "").split(os.pathsep))


def _find_library(
    package: str,
    target_name: str,
    extra_directories: Iterable[str] = (),
    *,
    use_fallback_build_path: bool = True,
    use_env_path: bool = True,
) -> str:
    names = _library_names(target_name)
    # Our own library is next to this file; reading an installer's records takes longer.
    own = target_name in ("tvm_ffi", "tvm_ffi_testing")
    directories = list(extra_directories)
    if not own:
        for file in _recorded_files(package, names):
            if os.path.isfile(file):
                return os.path.realpath(file)
    if use_fallback_build_path or own:
        for root in (_PACKAGE, _DEVELOPMENT):
            directories += (os.path.join(root, "build", "lib"), os.path.join(root, "lib"))
    if use_env_path:
        directories += _environment_directories()
    for directory in directories:
        for name in names:
            path = os.path.join(directory, name)
            if os.path.isfile(path):  # False also where this user may not look
                return os.path.realpath(path)
    wanted, looked = ", ".join(names), "".join(f"\n  {directory}" for directory in directories)
    raise RuntimeError(
        f"Cannot find library {wanted}; searched directories:{looked}\n"
        f"and the files of the installed package {package!r}"
    )


def _find_library_by_basename(
    package: str,
    target_name: str,
    extra_lib_paths: list[Path] | None = None,
    *,
    use_fallback_build_path: bool = True,
    use_env_path: bool = True,
) -> Path:
    """Find a shared library by its plain name: in the package, in ours, in the environment."""
    from pathlib import Path

    for i, entry in enumerate(extra_lib_paths or ()):
        if not isinstance(entry, Path):
            kind = type(entry).__name__
            raise TypeError(f"extra_lib_paths[{i}] must be a pathlib.Path, got {kind}: {entry!r}")
    found = _find_library(
        package,
        target_name,
        map(str, extra_lib_paths or ()),
        use_fallback_build_path=use_fallback_build_path,
        use_env_path=use_env_path,
    )
    return Path(found)


def load_lib_ctypes(
    package: str, target_name: str, mode: str, extra_lib_paths: list[Path] | None = None
) -> ctypes.CDLL:
    """Load a library of a package with ctypes; `mode` names a flag, such as ``"RTLD_GLOBAL"``."""
    if extra_lib_paths:
        path = str(_find_library_by_basename(package, target_name, extra_lib_paths))
    else:
        path = _find_library(package, target_name)
    if sys.platform == "win32":
        os.add_dll_directory(os.path.dirname(path))
    if target_name == "tvm_ffi":
        conflicts.refuse_second_runtime(path)
    elif "tvm_ffi.core" in sys.modules:
        from .registry import get_global_func

        get_global_func("ffi.tether.CheckClient")(path)
    return ctypes.CDLL(path, mode=getattr(ctypes, mode))


def load_lib_module(
    package: str,
    target_name: str,
    keep_module_alive: bool = True,
    extra_lib_paths: list[Path] | None = None,
) -> Module:
    """Load a library of a package as a `Module`."""
    from .module import load_module

    path = _find_library_by_basename(package, target_name, extra_lib_paths)
    return load_module(path, keep_module_alive=keep_module_alive)
