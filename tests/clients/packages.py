# SPDX-License-Identifier: Apache-2.0
"""The prebuilt packages that are tried, and where they are unpacked."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "skew"))

from fetch_headers import cache_dir, download  # noqa: E402

# The oldest xgrammar on this interface, and the newest.
XGRAMMAR = ["0.2.3", "0.2.8"]
# A compiler with a thousand classes; 100 MB each.
TVM = ["0.25.0.post1", "0.26.0", "0.27.0.post1"]
TVM_NEEDS = {"ml-dtypes": "0.5.4", "typing-extensions": "4.15.0"}
ORCJIT = ["0.1.3"]


def is_unpacked(package: str, version: str) -> bool:
    return (cache_dir("clients") / f"{package}-{version}" / ".complete").exists()


def unpack(package: str, version: str) -> Path:
    """Return the directory with the contents of a wheel, downloading it if need be."""
    cache = cache_dir("clients")
    cache.mkdir(parents=True, exist_ok=True)
    target = cache / f"{package}-{version}"
    if not is_unpacked(package, version):
        wheel = download(version, cache, package)
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(target)
        wheel.unlink()
        (target / ".complete").touch()
    return target
