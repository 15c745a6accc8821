# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the Python tests."""

from __future__ import annotations

import gc
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import tvm_ffi
from support import ROOT, NativeClient, build_native_client, collect, compile_library


@pytest.fixture(scope="module", autouse=True)
def small_heap() -> None:
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


@pytest.fixture(scope="session")
def shapes(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return the classes of methods_client.cc."""
    if shutil.which("c++") is None:
        pytest.skip("no C++ compiler: the client cannot be built")
    source = Path(__file__).with_name("methods_client.cc")
    library = compile_library(source, tmp_path_factory.mktemp("cpp") / "methods.so")
    tvm_ffi.load_module(library)

    @tvm_ffi.register_object("methods_client.Shape")
    class Shape(tvm_ffi.Object):
        pass

    @tvm_ffi.register_object("methods_client.Circle")
    class Circle(Shape):
        pass

    @tvm_ffi.register_object("methods_client.Bare")
    class Bare(tvm_ffi.Object):
        pass

    @tvm_ffi.register_object("methods_client.Placed")
    class Placed(tvm_ffi.Object):
        pass

    for cls in (Shape, Circle, Bare, Placed):
        cls.__qualname__ = cls.__name__
        setattr(sys.modules[__name__], cls.__name__, cls)
    return SimpleNamespace(Shape=Shape, Circle=Circle, Bare=Bare, Placed=Placed)
