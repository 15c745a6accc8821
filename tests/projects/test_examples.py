# SPDX-License-Identifier: Apache-2.0
"""The examples that are scripts run, or say why they cannot. tests/python has zoo and graph."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
# Script, arguments, what it must print.
SCRIPTS = {
    "inline/add_one.py": ([], ["[1. 2. 3. 4. 5.]", "hello world", "x must be float32"]),
    "c_library/run.py": ([], ["[1. 2. 3. 4. 5.]", "TypeError: add_one takes two arguments"]),
    "plugins/host.py": (["upper", "some text"], ["SOME TEXT"]),
    "interop/arrays.py": ([], ["numpy: good"]),
    "travel/travel.py": ([], ["sharing kept: True", "layer 1 refers to input", "as a task: 42"]),
    "cuda_torch/scale.py": ([], ["[0.0, 2.0, 4.0, 6.0, 8.0]"]),
    "cubin/launch.py": ([], ["[1.0, 2.0, 3.0, 4.0, 5.0]"]),
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_script(script: str, tmp_path: Path, run: Callable[..., str]) -> None:
    arguments, expected = SCRIPTS[script]
    # A copy, because that is what users make of it.
    folder = shutil.copytree(EXAMPLES / Path(script).parent, tmp_path / "copy")
    cache = str(tmp_path / "cache")
    printed = run(sys.executable, folder / Path(script).name, *arguments, TVM_FFI_CACHE_DIR=cache)
    print(printed)
    if printed.startswith("skipped: "):
        pytest.skip(printed.strip().removeprefix("skipped: "))
    for text in expected:
        assert text in printed


def test_plugins_of_any_language(run: Callable[..., str], tmp_path: Path) -> None:
    host = EXAMPLES / "plugins" / "host.py"
    cache = str(tmp_path)
    assert run(sys.executable, host, "shout", "hi", TVM_FFI_CACHE_DIR=cache) == "hi!\n"
    assert run(sys.executable, host, "reverse", "abc", TVM_FFI_CACHE_DIR=cache) == "cba\n"
