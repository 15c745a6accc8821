# SPDX-License-Identifier: Apache-2.0
"""Global functions, namespaces, exports of the package, paths of the installation."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import types
import warnings
from pathlib import Path
from typing import Any, ClassVar

import pytest
import tvm_ffi
from support import run_python
from tvm_ffi import core, libinfo, registry, testing
from tvm_ffi.dataclasses import c_class


@pytest.fixture
def name(request: pytest.FixtureRequest) -> object:
    full = f"tests.registry.{request.node.name}"
    yield full
    tvm_ffi.remove_global_func(full)


def test_register_and_get(name: str) -> None:
    function = tvm_ffi.register_global_func(name, lambda x: x + 1)
    assert isinstance(function, tvm_ffi.Function)
    assert tvm_ffi.get_global_func(name).same_as(function)
    assert tvm_ffi.get_global_func(name)(1) == 2
    assert name in registry.list_global_func_names()


def test_register_as_a_decorator(name: str) -> None:
    @tvm_ffi.register_global_func(name)
    def function(x: int) -> int:
        return x * 2

    assert isinstance(function, tvm_ffi.Function)
    assert function(4) == 8


def test_register_by_name_of_the_function() -> None:
    @tvm_ffi.register_global_func
    def tests_registry_plain_name(x: int) -> int:
        return x

    try:
        assert tvm_ffi.get_global_func("tests_registry_plain_name")(3) == 3
    finally:
        tvm_ffi.remove_global_func("tests_registry_plain_name")


def test_registering_twice(name: str) -> None:
    tvm_ffi.register_global_func(name, lambda: 1)
    with pytest.raises(RuntimeError, match=f"Global Function `{name}` is already registered"):
        tvm_ffi.register_global_func(name, lambda: 2)
    assert tvm_ffi.get_global_func(name)() == 1
    tvm_ffi.register_global_func(name, lambda: 3, override=True)
    assert tvm_ffi.get_global_func(name)() == 3


def test_register_an_ffi_function_under_a_second_name(name: str) -> None:
    add_one = tvm_ffi.get_global_func("testing.add_one")
    assert tvm_ffi.register_global_func(name, add_one) is add_one
    assert tvm_ffi.get_global_func(name) is add_one


def test_missing_functions() -> None:
    with pytest.raises(ValueError, match=r"Cannot find global function tests\.nobody"):
        tvm_ffi.get_global_func("tests.nobody")
    assert tvm_ffi.get_global_func("tests.nobody", allow_missing=True) is None
    tvm_ffi.remove_global_func("tests.nobody")


def test_metadata(name: str) -> None:
    assert "type_schema" in tvm_ffi.get_global_func_metadata("testing.schema_id_int")
    assert tvm_ffi.get_global_func_metadata("testing.schema_id_int")["int_attr"] == 1
    tvm_ffi.register_global_func(name, lambda: 1)
    assert tvm_ffi.get_global_func_metadata(name) == {}
    with pytest.raises(RuntimeError, match=r"Global Function is not found: tests\.nobody"):
        tvm_ffi.get_global_func_metadata("tests.nobody")


def test_init_ffi_api() -> None:
    tvm_ffi.register_global_func("tests_api.one", lambda: 1)
    tvm_ffi.register_global_func("tests_api.sub.two", lambda: 2)
    tvm_ffi.register_global_func("tests_api_other.three", lambda: 3)
    module = types.ModuleType("tests_api_module")
    sys.modules["tests_api_module"] = module
    try:
        tvm_ffi.init_ffi_api("tests_api", "tests_api_module")
        assert module.one() == 1
        assert module.one.__name__ == "one"
        assert not hasattr(module, "two")
        assert not hasattr(module, "three")
        assert not any("three" in key for key in vars(module))
    finally:
        del sys.modules["tests_api_module"]
        for full in ("tests_api.one", "tests_api.sub.two", "tests_api_other.three"):
            tvm_ffi.remove_global_func(full)
    with pytest.raises(KeyError):
        tvm_ffi.init_ffi_api("tests_api", "tests_no_such_module")


def test_the_ffi_namespace_is_complete() -> None:
    from tvm_ffi import _ffi_api

    for wanted in (
        "Array ArrayContains ArrayGetItem ArraySize Bytes DeepCopy Dict DictClear DictCount "
        "DictErase DictGetItem DictSetItem DictSize FromJSONGraphString "
        "FunctionListGlobalNamesFunctor FunctionRemoveGlobal GetGlobalFuncMetadata "
        "GetInvalidObject GetKwargsObject GetRegisteredTypeKeys List ListAppend ListInsert "
        "ListPop Map MapCount MapGetItem MakeObjectFromPackedArgs ModuleGetFunction "
        "ModuleLoadFromFile RecursiveEq RecursiveHash ReprPrint String SystemLib "
        "ToJSONGraphString"
    ).split():
        assert wanted in _ffi_api.__all__
        assert isinstance(getattr(_ffi_api, wanted), tvm_ffi.Function)


def test_package_exports() -> None:
    for wanted in tvm_ffi.__all__:
        assert hasattr(tvm_ffi, wanted), wanted
    assert isinstance(tvm_ffi.LIB, ctypes.CDLL)
    assert isinstance(tvm_ffi.__version__, str)
    assert isinstance(tvm_ffi.__version_tuple__, tuple)
    assert sorted(registry.__all__) == registry.__all__


def test_import_is_light() -> None:
    code = (
        "import sys; before = set(sys.modules); import tvm_ffi; "
        "print(' '.join(sorted(set(sys.modules) - before)))"
    )
    imported = run_python(code).split()
    heavy = {
        "numpy",
        "torch",
        "inspect",
        "json",
        "pathlib",
        "typing",
        "importlib.metadata",
        "subprocess",
        "dataclasses",
    }
    assert heavy & set(imported) == set()


def test_core_imports_alone() -> None:
    assert run_python("from tvm_ffi import core; print(core.Object.__module__)") == "tvm_ffi.core\n"


def test_testing_classes_are_not_collected_by_pytest() -> None:
    for wanted in testing.testing.__all__:
        value = getattr(testing.testing, wanted)
        if wanted.startswith("Test"):
            assert value.__test__ is False


# ---- places -------------------------------------------------------------------------------------


def test_paths_exist() -> None:
    assert Path(libinfo.find_libtvm_ffi()).is_file()
    assert (Path(libinfo.find_include_path()) / "tvm" / "ffi" / "c_api.h").is_file()
    assert (Path(libinfo.find_dlpack_include_path()) / "dlpack" / "dlpack.h").is_file()
    assert Path(libinfo.find_cython_lib()).is_file()
    assert libinfo.include_paths() == sorted(set(libinfo.include_paths()))


def test_library_lookup() -> None:
    found = libinfo._find_library_by_basename("apache-tvm-ffi", "tvm_ffi_testing")
    assert found.name == "libtvm_ffi_testing.so"
    with pytest.raises(TypeError, match=r"extra_lib_paths\[0\] must be a pathlib.Path, got str"):
        libinfo._find_library_by_basename("apache-tvm-ffi", "tvm_ffi", ["x"])
    for package in ("tests-no-package", ""):
        message = "Cannot find library libtests_nobody.so; searched directories:\n  /nowhere\n  "
        with pytest.raises(RuntimeError, match=message):
            libinfo._find_library_by_basename(package, "tests_nobody", [Path("/nowhere")])


def test_an_unreadable_path_entry_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere:" + "x" * 5000 + ":/proc/1/root/x")
    with pytest.raises(RuntimeError):
        libinfo._find_library_by_basename("tests-no-package", "tests_nobody")


@pytest.mark.parametrize(
    ("flag", "expected"),
    [
        ("--includedir", lambda: libinfo.find_include_path()),
        ("--libdir", lambda: str(Path(libinfo.find_libtvm_ffi()).parent)),
        ("--libfiles", lambda: libinfo.find_libtvm_ffi()),
        ("--libs", lambda: "-ltvm_ffi"),
        ("--cython-lib-path", lambda: libinfo.find_cython_lib()),
        ("--ldflags", lambda: f"-L{Path(libinfo.find_libtvm_ffi()).parent}"),
    ],
)
def test_config_program(flag: str, expected: object) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tvm_ffi.config", flag], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == expected()
    assert done.stderr == ""


def test_config_program_prints_help() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tvm_ffi.config"], capture_output=True, text=True, check=True
    )
    assert "--cxxflags" in done.stdout
    assert core is not None


class _Fragile(type(tvm_ffi.Object)):
    """A class of classes that refuse an attribute."""

    refused = ""

    def __setattr__(cls, name: str, value: Any) -> None:
        if name == _Fragile.refused:
            raise RuntimeError(f"no {name}")
        super().__setattr__(name, value)


@pytest.mark.parametrize("refused", ["v1", "get_v1_plus_one", "__tvm_ffi_type_info__", "__init__"])
@pytest.mark.parametrize("decorate", [tvm_ffi.register_object, c_class])
def test_a_registration_that_fails_leaves_nothing(
    refused: str, decorate: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "testing.TestUnregisteredBaseObject"
    index = core._object_type_key_to_index(key)
    before = core._type_index_to_type_info(index), core._class_of_index(index)
    # Another class may stand for the type, from a test before; one of the same module replaces it.
    known = before[0].type_cls if before[0] is not None else None
    module = "failed" if known is None else known.__module__
    body = {"__module__": module, "__annotations__": {"v1": int}}
    cls = _Fragile("Failed", (tvm_ffi.Object,), dict(body))
    monkeypatch.setattr(_Fragile, "refused", refused)
    with pytest.raises(RuntimeError, match=f"no {refused}"):
        decorate(key)(cls)
    assert core._type_cls_to_type_info(cls) is None
    assert "__tvm_ffi_type_info__" not in vars(cls)
    assert core._type_index_to_type_info(index) is before[0]
    assert core._class_of_index(index) is before[1]
    monkeypatch.setattr(_Fragile, "refused", "")
    try:
        assert decorate(key)(cls) is cls
        assert cls(41).get_v1_plus_one() == 42
    finally:
        core._forget_class(cls, before[0])
    assert core._class_of_index(index) is before[1]


class _Watching(type(tvm_ffi.Object)):
    """A class of classes that look, at each attribute they get, whether they stand for the type."""

    key = "testing.TestUnregisteredBaseObject"
    stands: ClassVar[list[bool]] = []

    def __setattr__(cls, name: str, value: Any) -> None:
        index = core._object_type_key_to_index(_Watching.key)
        _Watching.stands.append(core._class_of_index(index) is cls)
        super().__setattr__(name, value)


@pytest.mark.parametrize("decorate", [tvm_ffi.register_object, c_class])
def test_a_class_is_complete_before_objects_get_it(decorate: Any) -> None:
    """Another thread may fetch an object at any time."""
    index = core._object_type_key_to_index(_Watching.key)
    before = core._type_index_to_type_info(index)
    known = before.type_cls if before is not None else None
    module = "watching" if known is None else known.__module__
    cls = _Watching("Watched", (tvm_ffi.Object,), {"__module__": module, "__annotations__": {}})
    _Watching.stands.clear()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            decorate(_Watching.key)(cls)
        assert core._class_of_index(index) is cls
        assert len(_Watching.stands) > 3 and not any(_Watching.stands)
        assert cls(41).get_v1_plus_one() == 42
    finally:
        core._forget_class(cls, before)
