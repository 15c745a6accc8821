# SPDX-License-Identifier: Apache-2.0
"""Other owners of the directory ``tvm_ffi``, and other runtimes in the process.

Only the standard library is used: this must work when the rest of the package does not.
"""

from __future__ import annotations

import os
import sys

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

REMEDY = (
    "Both packages own the directory tvm_ffi, and whichever is installed or removed last breaks "
    "the other. Run: pip uninstall -y apache-tvm-ffi tether-ffi, then install tether-ffi again, "
    "from its wheel or a clone. For packages that require apache-tvm-ffi see: "
    "python -m tvm_ffi.doctor --help"
)


def reference_installed(site: str = os.path.dirname(_PACKAGE)) -> str | None:
    """Return the version of an apache-tvm-ffi that has files in this directory, if there is one."""
    try:
        entries = os.listdir(site)
    except OSError:
        return None
    for entry in entries:
        if entry.startswith("apache_tvm_ffi-") and entry.endswith(".dist-info"):
            # A stand-in written by the doctor has metadata but no files of its own.
            try:
                with open(os.path.join(site, entry, "RECORD"), encoding="utf-8") as record:
                    owns_files = any(line.startswith("tvm_ffi/") for line in record)
            except OSError:
                continue
            if owns_files:
                return entry.removeprefix("apache_tvm_ffi-").removesuffix(".dist-info")
    return None


def other_runtimes(own: str) -> list[str]:
    """Return the paths of runtimes mapped into this process that are not the file `own`."""
    if not sys.platform.startswith("linux"):
        return []
    own = os.path.realpath(own)
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
            mapped = [
                line[line.index("/") :].rstrip("\n") for line in maps if "/libtvm_ffi" in line
            ]
    except OSError:
        return []
    # Also the copies that packaging tools rename, libtvm_ffi-1a2b3c.so.
    found = {path for path in mapped if "/libtvm_ffi.so" in path or "/libtvm_ffi-" in path}
    return sorted(path for path in found if os.path.realpath(path) != own)


def refuse_second_runtime(own: str) -> None:
    """Raise ImportError if another runtime is in the process already."""
    others = other_runtimes(own)
    if others:
        raise ImportError(
            f"another runtime is already loaded: {', '.join(others)}. tvm_ffi brings its own, "
            f"{own}, and two runtimes in one process do not know each other's types and functions. "
            "Import tvm_ffi before whatever loads the other one, so that the one library serves "
            f"both, or remove the other.{explanation()}"
        )


def explanation() -> str:
    """Say, as the continuation of a message, whether another package interferes."""
    version = reference_installed()
    return f" apache-tvm-ffi {version} is installed beside tether-ffi. {REMEDY}" if version else ""


def warn_if_both_installed() -> None:
    """Issue one warning when the reference package shares this directory."""
    version = reference_installed()
    if version is not None:
        import warnings

        warnings.warn(
            f"apache-tvm-ffi {version} is installed beside tether-ffi. {REMEDY}",
            RuntimeWarning,
            stacklevel=3,
        )
