# SPDX-License-Identifier: Apache-2.0
"""What `python -m tvm_ffi.new` writes builds, passes its tests and makes a wheel."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

TOOLS = ("numpy", "pytest", "scikit-build-core>=0.10")


@pytest.mark.parametrize("runtime", ["tether-ffi", "apache-tvm-ffi"])
def test_build_test_check_and_wheel(
    runtime: str,
    tmp_path: Path,
    environment: Callable[..., Path],
    run: Callable[..., str],
) -> None:
    if shutil.which("make") is None or shutil.which("cmake") is None:
        pytest.skip("make and cmake are needed")
    project = tmp_path / "my-thing"
    run(sys.executable, "-m", "tvm_ffi.new", "my-thing", "--runtime", runtime, cwd=tmp_path)
    # Only what is on an index is installed by its name alone.
    for file in ("README.md", ".github/workflows/ci.yml"):
        text = (project / file).read_text()
        assert "@" not in text.replace("actions/", "").replace("@v", "")
        assert ("install tether-ffi" in text, "install apache-tvm-ffi" in text) == (
            False,
            runtime == "apache-tvm-ffi",
        )
    if runtime == "tether-ffi":
        python, variables = environment("tether", *TOOLS), {}  # the runtime is in PYTHONPATH
    else:
        python = environment("apache", "apache-tvm-ffi>=0.1.15", *TOOLS)
        variables = {"PYTHONPATH": ""}
    for goal, expected in (("build", "Successfully installed"), ("test", "4 passed")):
        assert expected in run("make", goal, f"PYTHON={python}", cwd=project, **variables)
    run("make", "check", f"PYTHON={python}", cwd=project, **variables)
    run("make", "wheel", f"PYTHON={python}", cwd=project, **variables)
    (wheel,) = (project / "dist").glob("*.whl")
    assert wheel.name.startswith("my_thing-0.1.0-py3-none-")
    run(python, "-m", "pip", "uninstall", "--yes", "--quiet", "my-thing")
