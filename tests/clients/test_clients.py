# SPDX-License-Identifier: Apache-2.0
"""Prebuilt packages from the package index, unchanged, on our runtime.

Wheels are downloaded once to .cache/clients and unpacked there; nothing is installed. Large ones
are used only if they are there already or if TETHER_CLIENTS=all asks for them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "skew")]

from fetch_headers import IndexUnreachable  # noqa: E402
from packages import (  # noqa: E402
    ORCJIT,
    TVM,
    TVM_NEEDS,
    XGRAMMAR,
    is_unpacked,
    unpack,
)


def unpacked(package: str, version: str, *, large: bool = False) -> Path:
    """Return the directory with the contents of a wheel; skip the test if it cannot be had."""
    if large and not is_unpacked(package, version) and os.environ.get("TETHER_CLIENTS") != "all":
        pytest.skip(f"{package} {version} is large; TETHER_CLIENTS=all downloads it")
    try:
        return unpack(package, version)
    except IndexUnreachable:
        pytest.skip(f"{package} {version}: the package index cannot be reached")


def drive(program: str, *arguments: str, paths: list[Path] | None = None) -> str:
    """Run a program of this directory in a fresh interpreter; it must succeed."""
    path = [*map(str, paths or []), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", str(HERE / program), *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.parametrize("version", XGRAMMAR)
def test_xgrammar(version: str) -> None:
    library = unpacked("xgrammar", version) / "xgrammar" / "libxgrammar_bindings.so"
    assert drive("drive_xgrammar.py", str(library)).splitlines()[-1] == "ok"


@pytest.mark.parametrize("version", XGRAMMAR)
def test_the_python_package_of_xgrammar(version: str) -> None:
    """Its Python package needs torch and transformers."""
    for module in ("torch", "transformers", "pydantic"):
        pytest.importorskip(module, reason=f"xgrammar imports {module}, which is not installed")
    assert (
        drive("drive_xgrammar_package.py", paths=[unpacked("xgrammar", version)]).splitlines()[-1]
        == "ok"
    )


@pytest.mark.parametrize("version", TVM)
def test_apache_tvm(version: str) -> None:
    paths = [unpacked("apache-tvm", version, large=True)]
    paths += [unpacked(name, needed) for name, needed in TVM_NEEDS.items()]
    assert drive("drive_tvm.py", paths=paths).splitlines()[-1] == "ok"


@pytest.mark.parametrize("version", ORCJIT)
def test_orcjit(version: str) -> None:
    paths = [unpacked("apache-tvm-ffi-orcjit", version, large=True)]
    assert drive("drive_orcjit.py", paths=paths).splitlines()[-1] == "ok"
