# SPDX-License-Identifier: Apache-2.0
"""The source distribution: `pip install` works offline, and writes nothing beside the sources."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def contents(folder: Path) -> dict[str, str]:
    """Return every file and folder below one, with what is in it."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        if path.is_file()
        else "folder"
        for path in folder.rglob("*")
    }


def run(*command: str | Path, cwd: Path, **variables: str) -> None:
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_pip_installs_the_source_distribution_offline(tmp_path: Path) -> None:
    code = f"import scikit_build_core.build as b; b.build_sdist({str(tmp_path)!r})"
    run(sys.executable, "-c", code, cwd=ROOT)
    (archive,) = tmp_path.glob("tether_ffi-*.tar.gz")
    # Always the same folder, because compiler caches see the path.
    folder = ROOT / "build" / "sdist"
    shutil.rmtree(folder, ignore_errors=True)
    with tarfile.open(archive) as opened:
        opened.extractall(folder)
    (source,) = folder.iterdir()
    before = contents(source)
    assert "CMakeLists.txt" in before and "python/tvm_ffi/utils/torch_c_dlpack_addon.cc" in before
    assert not [name for name in before if name.endswith((".so", ".o", ".pyc"))]
    target = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-index"]
    pip += ["--no-deps", "--no-build-isolation", "--target", str(target), str(source)]
    pip.append("--config-settings=cmake.build-type=Debug")  # compiles in a third of the time
    # Whoever asks for the network all the same is refused.
    nobody = "http://127.0.0.1:9"
    run(*pip, cwd=tmp_path, http_proxy=nobody, https_proxy=nobody, PYTHONDONTWRITEBYTECODE="1")
    assert contents(source) == before
    code = f"import tvm_ffi; assert tvm_ffi.__file__.startswith({str(target)!r})"
    code += "; a = tvm_ffi.Array([tvm_ffi.Array([])]); assert a[0] is a[0]"
    run(sys.executable, "-c", code, cwd=tmp_path, PYTHONPATH=str(target))
