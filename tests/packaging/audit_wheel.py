# SPDX-License-Identifier: Apache-2.0
"""Complain about a wheel that would not work elsewhere.

    python audit_wheel.py WHEEL...

The tag must name the interpreter that runs this and the platform; every shared object inside may
link only libtvm_ffi and its kin, found beside it, and libraries that every glibc system has.
"""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path

OURS = {"libtvm_ffi.so", "libtvm_ffi_testing.so"}
SYSTEM = {
    "libc.so.6",
    "libdl.so.2",
    "libgcc_s.so.1",
    "libm.so.6",
    "libpthread.so.0",
    "librt.so.1",
    "libstdc++.so.6",
    "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
}


def expected_tag() -> str:
    """Return the tag of an extension module for the running interpreter."""
    version = f"cp{sys.version_info.major}{sys.version_info.minor}"
    abi = version + ("t" if sysconfig.get_config_var("Py_GIL_DISABLED") else "")
    platform = re.sub(r"[^0-9a-zA-Z]", "_", sysconfig.get_platform())
    return f"{version}-{abi}-{platform}"


def dynamic_section(path: Path) -> tuple[set[str], list[str]]:
    """Return the libraries a shared object needs and the folders it looks for them in."""
    text = subprocess.run(
        ["readelf", "--dynamic", "--wide", str(path)], capture_output=True, text=True, check=True
    ).stdout
    needed = set(re.findall(r"\(NEEDED\).*\[(.+?)\]", text))
    paths = re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.+?)\]", text)
    return needed, [folder for path in paths for folder in path.split(":")]


def problems(wheel: Path) -> list[str]:
    """Return everything that is wrong with a wheel."""
    found = []
    tag = wheel.stem.split("-", 2)[2]
    if tag != expected_tag():
        found.append(f"tag is {tag}, expected {expected_tag()}")
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as archive:
        metadata = next(name for name in archive.namelist() if name.endswith(".dist-info/WHEEL"))
        if f"Tag: {tag}" not in archive.read(metadata).decode():
            found.append(f"WHEEL does not say {tag}")
        archive.extractall(folder)
        objects = sorted(Path(folder).rglob("*.so"))
        if not objects:
            found.append("no shared object inside")
        for path in objects:
            name = path.relative_to(folder)
            needed, paths = dynamic_section(path)
            found += [f"{name} links {library}" for library in sorted(needed - OURS - SYSTEM)]
            found += [f"{name} looks in {p}" for p in paths if not p.startswith("$ORIGIN")]
            if needed & OURS and not paths:
                found.append(f"{name} does not say where {min(needed & OURS)} is")
    return found


def main() -> int:
    """Print the problems of all wheels given."""
    bad = 0
    for wheel in map(Path, sys.argv[1:]):
        found = problems(wheel)
        print(f"{wheel.name}: {'; '.join(found) or 'good'}")
        bad += bool(found)
    return bad


if __name__ == "__main__":
    sys.exit(main())
