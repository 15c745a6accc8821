# SPDX-License-Identifier: Apache-2.0
"""The numbers of the interface and of the release agree wherever they are written."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VERSIONS = runpy.run_path(str(ROOT / "python" / "tvm_ffi" / "_version.py"))


def found(pattern: str, path: str) -> str:
    match = re.search(pattern, (ROOT / path).read_text(), re.MULTILINE)
    assert match, f"{path} does not match {pattern}"
    return match[1]


def in_header(prefix: str) -> str:
    header = "include/tvm/ffi/c_api.h"
    parts = ("MAJOR", "MINOR", "PATCH")
    return ".".join(found(rf"^#define {prefix}_{part} (\d+)$", header) for part in parts)


def test_interface_level() -> None:
    assert in_header("TVM_FFI_VERSION") == VERSIONS["__version__"]
    assert ".".join(map(str, VERSIONS["__version_tuple__"])) == VERSIONS["__version__"]


def test_release() -> None:
    release = VERSIONS["__tether_version__"]
    assert in_header("TVM_FFI_TETHER_VERSION") == release
    assert found(r'^version = "(.*)"$', "pyproject.toml") == release
    assert found(r"^project\(tvm_ffi VERSION (\S+) ", "CMakeLists.txt") == release
