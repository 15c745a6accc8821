# SPDX-License-Identifier: Apache-2.0
"""The examples in Rust build and print what they promise."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import tvm_ffi
from crates import HERE, cargo_environment

EXAMPLES = HERE.parents[1] / "examples"

if shutil.which("cargo") is None:
    pytest.skip("no cargo: the examples in Rust cannot be built", allow_module_level=True)


def build_cxx(source: Path, folder: Path) -> Path:
    """The library of one C++ file."""
    package = Path(tvm_ffi.__file__).parent
    library = folder / f"lib{source.stem}.so"
    flags = ["-std=c++17", "-O1", "-fPIC", "-shared", f"-I{package / 'include'}"]
    link = [f"-L{package / 'lib'}", "-ltvm_ffi"]
    command = [os.environ.get("CXX", "g++"), *flags, str(source), "-o", str(library), *link]
    subprocess.run(command, check=True)
    return library


def run_binary(name: str, source: str, folder: Path) -> list[str]:
    environment = cargo_environment(f"example_{name}", folder)
    libraries = str(Path(tvm_ffi.__file__).parent / "lib")
    environment["LD_LIBRARY_PATH"] = libraries
    library = build_cxx(EXAMPLES / name / source, folder)
    manifest = EXAMPLES / name / "Cargo.toml"
    command = ["cargo", "run", "--quiet", "--manifest-path", str(manifest), "--", str(library)]
    run = subprocess.run(command, check=True, env=environment, capture_output=True, text=True)
    return run.stdout.splitlines()


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")
def test_a_program_that_uses_a_cxx_library(tmp_path: Path) -> None:
    assert run_binary("rust_binary", "kernels.cc", tmp_path) == [
        "x: [0.0, 1.0, 2.0, 3.0]",
        "y: [1.0, 2.0, 3.0, 4.0]",
        '5 words, the last is "Rust"',
        "norm: 5",
        "ValueError: x has 4 elements and y has 1",
    ]


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")
def test_a_program_that_loads_a_library(tmp_path: Path) -> None:
    environment = cargo_environment("load_library", tmp_path)
    # The build script runs `python`, which must be one with the package under test.
    (tmp_path / "python").symlink_to(sys.executable)
    environment["PYTHONPATH"] = str(Path(tvm_ffi.__file__).parents[1])
    environment["TVM_FFI_CACHE_DIR"] = str(tmp_path / "cache")
    manifest = HERE.parents[1] / "rust" / "tvm-ffi" / "Cargo.toml"
    example = ["--example", "load_library", "--features", "example"]
    command = ["cargo", "run", "--quiet", "--manifest-path", str(manifest), *example]
    run = subprocess.run(command, check=True, env=environment, capture_output=True, text=True)
    assert run.stdout.splitlines() == ["x: [0.0, 1.0, 2.0, 3.0]", "y: [1.0, 2.0, 3.0, 4.0]"]


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")
def test_callbacks_that_cxx_calls(tmp_path: Path) -> None:
    assert run_binary("rust_callback", "solver.cc", tmp_path) == [
        "area: 9.000, calls: 300",
        "ZeroDivisionError: 1 / 0",
        "InternalError: panicked: not implemented",
        "Rust saw an event",
    ]


def test_a_wheel(tmp_path: Path) -> None:
    pytest.importorskip("scikit_build_core", reason="scikit-build-core makes the wheel")
    environment = cargo_environment("example_wheel", tmp_path)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    wheel = ["wheel", "--no-deps", "--no-build-isolation", "-w", str(tmp_path)]
    build = f"--config-settings=build-dir={tmp_path / 'build'}"
    source = str(EXAMPLES / "rust_wheel")
    subprocess.run([*pip, *wheel, build, source], check=True, env=environment)
    (made,) = tmp_path.glob("*.whl")
    assert "-py3-none-" in made.name
    site = tmp_path / "site"
    subprocess.run([*pip, "install", "--no-deps", "--target", str(site), str(made)], check=True)
    code = """
import copy, pickle, rust_wheel, subprocess, sys
counter = rust_wheel.count_words("to be or not to be")
assert type(counter) is rust_wheel.Counter
assert copy.deepcopy(counter).counts == counter.counts == copy.copy(counter).counts
data = pickle.dumps({"a": counter, "b": [counter]}, 5)
made = pickle.loads(data)
assert made["a"] is made["b"][0] and type(made["a"]) is rust_wheel.Counter
assert made["a"].counts == counter.counts and made["a"].most_common() == counter.most_common()
read = "import pickle, sys; counter = pickle.load(sys.stdin.buffer)['a']; print(counter.words)"
child = subprocess.run([sys.executable, "-c", read], input=data, check=True, capture_output=True)
assert child.stdout.split() == [b"6"], child
assert counter.words == 6 and counter.most_common() in ("to", "be")
assert counter.counts is counter.counts
try:
    rust_wheel.scale(1, 2.0)
except TypeError as error:
    print(error)
"""
    environment["PYTHONPATH"] = os.pathsep.join([str(site), environment.get("PYTHONPATH", "")])
    run = subprocess.run(
        [sys.executable, "-c", code], check=True, env=environment, capture_output=True, text=True
    )
    assert "Cannot convert from type `int` to `ffi.Tensor`" in run.stdout
