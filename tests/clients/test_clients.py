# SPDX-License-Identifier: Apache-2.0
"""Prebuilt packages from the package index, unchanged, on our runtime.

Wheels are downloaded once to .cache/clients and unpacked there; nothing is installed. Large ones
are used only if they are there already or if TETHER_CLIENTS=all asks for them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "skew"))

from fetch_headers import IndexUnreachable, cache_dir, download  # noqa: E402

# The oldest xgrammar on this interface, and the newest.
XGRAMMAR = ["0.2.3", "0.2.8"]
# A compiler with a thousand classes; 100 MB.
TVM = {"apache-tvm": "0.26.0", "ml-dtypes": "0.5.4", "typing-extensions": "4.15.0"}


def unpacked(package: str, version: str, *, large: bool = False) -> Path:
    """Return the directory with the contents of a wheel; skip the test if it cannot be had."""
    cache = cache_dir("clients")
    cache.mkdir(parents=True, exist_ok=True)
    target = cache / f"{package}-{version}"
    if (target / ".complete").exists():
        return target
    if large and os.environ.get("TETHER_CLIENTS") != "all":
        pytest.skip(f"{package} {version} is large; TETHER_CLIENTS=all downloads it")
    try:
        wheel = download(version, cache, package)
    except IndexUnreachable:
        pytest.skip(f"{package} {version}: the package index cannot be reached")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    wheel.unlink()
    (target / ".complete").touch()
    return target


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


def test_apache_tvm() -> None:
    paths = [unpacked(name, version, large=True) for name, version in TVM.items()]
    assert drive("drive_tvm.py", paths=paths).splitlines()[-1] == "ok"
