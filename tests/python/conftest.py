# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the Python tests."""

from __future__ import annotations

import gc
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import ROOT, NativeClient, build_native_client, collect, compile_library


def pytest_collection_finish() -> None:
    """Hide what exists so far from the collector: the tests collect thousands of times."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def client_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The library of native_client.c."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler: the native client cannot be built")
    return build_native_client(tmp_path_factory.mktemp("native"))


@pytest.fixture(scope="session")
def client(client_path: str) -> NativeClient:
    """The functions of native_client.c."""
    return NativeClient(client_path)


@pytest.fixture(scope="session")
def zoo_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library of examples/zoo."""
    if shutil.which("c++") is None:
        pytest.skip("no C++ compiler: the example cannot be built")
    source = ROOT / "examples" / "zoo" / "zoo.cc"
    return compile_library(source, tmp_path_factory.mktemp("zoo") / "libzoo.so")


@pytest.fixture
def no_gc() -> Iterator[None]:
    """Switch the cyclic collector off, so that only reference counts free things."""
    collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.fixture
def fast_switching() -> Iterator[None]:
    """Make Python threads change as often as possible."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
