# SPDX-License-Identifier: Apache-2.0
"""Objects of a library that was compiled with the released crates are adopted and tied."""

from __future__ import annotations

import gc
import os
import shutil
import weakref
from typing import Any

import pytest
import tvm_ffi
from crates import build_crate

if shutil.which("cargo") is None:
    pytest.skip("no cargo: the Rust library cannot be built", allow_module_level=True)
if not os.environ.get("TETHER_RUST_REFERENCE"):
    pytest.skip("TETHER_RUST_REFERENCE is not set: a download", allow_module_level=True)


@pytest.fixture(scope="session")
def rust(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return tvm_ffi.load_module(build_crate("reference", tmp_path_factory.mktemp("bin")))


def test_identity_outlives_the_last_python_reference(rust: Any) -> None:
    before = tvm_ffi.tying.stats()["adopted"]
    array = rust.adders()
    assert array[0] is array[0]
    identity = id(array[1])
    spoilers = [rust.adders() for _ in range(10)]
    gc.collect()
    assert id(array[1]) == identity
    assert len(spoilers) == 10
    assert tvm_ffi.tying.stats()["adopted"] > before


def test_functions_and_closures(rust: Any) -> None:
    add = rust.adder(2)
    assert add(1) == 3
    echo = tvm_ffi.convert(lambda x: x)
    held = rust.hold(echo)
    assert held() is echo
    reference = weakref.ref(echo)
    del echo
    gc.collect()
    assert reference() is held()
    del held
    gc.collect()
    assert reference() is None


def test_nothing_is_kept(rust: Any) -> None:
    before = tvm_ffi.tying.stats()["adopted"]
    # Not elements of arrays: the released crates never release those.
    for _ in range(1000):
        assert rust.adder(1)(1) == 2
    gc.collect()
    assert tvm_ffi.tying.stats()["adopted"] - before < 10
