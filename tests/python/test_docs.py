# SPDX-License-Identifier: Apache-2.0
"""Every example in a docstring of the package runs and prints what it says."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest
from tvm_ffi import core

MODULES = [
    "tvm_ffi",
    "tvm_ffi._convert",
    "tvm_ffi._dtype",
    "tvm_ffi._impl.device_types",
    "tvm_ffi._impl.errors",
    "tvm_ffi._impl.fallback_classes",
    "tvm_ffi._impl.install",
    "tvm_ffi._impl.objects",
    "tvm_ffi._impl.text",
    "tvm_ffi._impl.tracebacks",
    "tvm_ffi._impl.type_info",
    "tvm_ffi._impl.type_members",
    "tvm_ffi._impl.type_registration",
    "tvm_ffi._type_schema",
    "tvm_ffi._ffi_api",
    "tvm_ffi._tensor",
    "tvm_ffi.access_path",
    "tvm_ffi.container",
    "tvm_ffi.cpp.dtype",
    "tvm_ffi.dataclasses",
    "tvm_ffi.dataclasses.c_class",
    "tvm_ffi.dataclasses.common",
    "tvm_ffi.dataclasses.enum",
    "tvm_ffi.dataclasses.field",
    "tvm_ffi.dataclasses.gen_abi_cpp",
    "tvm_ffi.dataclasses.py_class",
    "tvm_ffi.doctor",
    "tvm_ffi.error",
    "tvm_ffi.inspect",
    "tvm_ffi.inspect.__main__",
    "tvm_ffi.inspect._graph",
    "tvm_ffi.inspect._rings",
    "tvm_ffi.inspect._snapshot",
    "tvm_ffi.inspect._why",
    "tvm_ffi.inspect.pytest_plugin",
    "tvm_ffi.libinfo",
    "tvm_ffi.module",
    "tvm_ffi.new",
    "tvm_ffi.registry",
    "tvm_ffi.serialization",
    "tvm_ffi.stream",
    "tvm_ffi.structural",
    "tvm_ffi.testing",
    "tvm_ffi.testing.testing",
    "tvm_ffi.tying",
    "tvm_ffi.utils",
    "tvm_ffi.utils.kwargs_wrapper",
    "tvm_ffi.utils.lockfile",
    "tvm_ffi.utils.unpack_dataclass",
]


def run(examples: list[doctest.DocTest]) -> int:
    runner = doctest.DocTestRunner()
    for example in examples:
        runner.run(example)
    assert runner.failures == 0, f"{runner.failures} of {runner.tries} examples failed"
    return runner.tries


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_modules(name: str) -> None:
    finder = doctest.DocTestFinder(exclude_empty=True)
    module = importlib.import_module(name)
    registered = dict(core.ERROR_NAME_TO_TYPE)
    try:
        tried = run([found for found in finder.find(module, name) if found.examples])
    finally:
        core.ERROR_NAME_TO_TYPE.clear()
        core.ERROR_NAME_TO_TYPE.update(registered)
    assert tried > 0, "a module of the package shows no example"


@pytest.mark.parametrize(
    "name",
    [
        "ByteArrayArg",
        "DLDeviceType",
        "DataType",
        "Device",
        "Object",
        "String",
        "Bytes",
        "ObjectConvertible",
        "TypeField",
        "TypeInfo",
        "TypeSchema",
        "object_repr",
    ],
)
def test_examples_of_what_lives_in_core(name: str) -> None:
    """These name the extension as their module, so the finder passes them over elsewhere."""
    value = getattr(core, name)
    examples = doctest.DocTestParser().get_doctest(value.__doc__, {}, name, None, None)
    assert run([examples]) > 0


DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(page for page in DOCS.rglob("*.md") if "\n>>> " in page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_examples_of_the_manual(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    if "import numpy" in text:
        pytest.importorskip("numpy")
    examples = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    assert run([examples]) > 0


def test_public_names_have_a_docstring() -> None:
    missing = []
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            own = getattr(value, "__module__", "").startswith("tvm_ffi")
            if own and callable(value) and not isinstance(value, core.Function):
                missing += [f"{module_name}.{name}"] if not value.__doc__ else []
    assert missing == []


@pytest.mark.parametrize("name", ["Tensor", "from_dlpack"])
def test_examples_that_use_numpy(name: str) -> None:
    pytest.importorskip("numpy")
    value = getattr(core, name)
    examples = doctest.DocTestParser().get_doctest(value.__doc__, {}, name, None, None)
    assert run([examples]) > 0


def test_examples_of_the_module_about_other_libraries() -> None:
    pytest.importorskip("numpy")
    test_examples_of_modules("tvm_ffi._impl.libraries")
