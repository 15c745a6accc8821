# SPDX-License-Identifier: Apache-2.0
"""tvm_ffi.testing: complete, importable without pytest, and honest about its classes."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import tvm_ffi
from support import run_python
from tvm_ffi import testing
from tvm_ffi.utils import FileLock

FUNCTIONS = """
TestIntPairSum add_one apply echo enum_variant_get get_add_one_c_symbol get_mlir_add_one_c_symbol
make_array_with_mixed make_array_with_tensor make_dict_with_tensor
make_empty_array_with_tensor_input make_list_with_tensor make_map_with_tensor
make_nested_array_with_tensor make_nested_map_with_tensor make_unregistered_object nop
object_use_count optional_tensor_view_has_value run_check_signal test_raise_error
schema_arr_map_opt schema_id_any schema_id_arr schema_id_arr_int schema_id_arr_obj
schema_id_arr_str schema_id_bool schema_id_bytes schema_id_device schema_id_dict_str_int
schema_id_dict_str_str schema_id_dltensor schema_id_dtype schema_id_float schema_id_func
schema_id_func_typed schema_id_int schema_id_list_int schema_id_list_obj schema_id_list_str
schema_id_map schema_id_map_str_int schema_id_map_str_obj schema_id_map_str_str schema_id_object
schema_id_opt_int schema_id_opt_obj schema_id_opt_str schema_id_string schema_id_tensor
schema_id_variant_int_str schema_no_args schema_no_args_no_return schema_no_return schema_packed
schema_tensor_view_input schema_variant_mix
""".split()


def test_every_function_of_the_library_is_there() -> None:
    from tvm_ffi.testing import _ffi_api

    assert len(FUNCTIONS) == 58
    assert set(FUNCTIONS) <= set(_ffi_api.__all__)
    for name in FUNCTIONS:
        assert callable(getattr(testing, name))
        assert isinstance(getattr(_ffi_api, name), tvm_ffi.Function)


CLASSES: list[tuple[Any, list[str]]] = [
    (testing.TestObjectBase, ["v_i64", "v_f64", "v_str"]),
    (testing.TestObjectDerived, ["v_map", "v_array"]),
    (testing.TestObjectPtrHolder, ["value", "optional_value"]),
    (testing.TestIntPair, ["a", "b"]),
    (testing.TestFrozenCxx, []),
    (testing.TestNonCopyable, ["value"]),
    (testing.TestCompare, ["key", "name", "ignored_field"]),
    (testing.TestHash, ["key", "name", "hash_ignored"]),
    (testing.TestCustomHash, ["key", "label"]),
    (testing.TestCustomCompare, ["key", "label"]),
    (testing.TestEqWithoutHash, ["key", "label"]),
    (testing._TestCxxClassBase, ["v_i64", "v_i32"]),
    (testing._TestCxxClassDerived, ["v_f64", "v_f32"]),
    (testing._TestCxxClassDerivedDerived, ["v_str", "v_bool"]),
    (testing._TestCxxEnumHolder, ["priority", "opcode"]),
    (testing._TestCxxInitSubset, ["required_field", "optional_field", "note"]),
    (testing._TestCxxKwOnly, ["x", "y", "z", "w"]),
    (testing._TestCxxAutoInit, ["a", "b", "c", "d"]),
    (testing._TestCxxAutoInitSimple, ["x", "y"]),
    (testing._TestCxxAutoInitAllInitOff, ["x", "y", "z"]),
    (
        testing._TestCxxAutoInitKwOnlyDefaults,
        ["p_required", "p_default", "k_required", "k_default", "hidden"],
    ),
    (testing._TestCxxNoAutoInit, ["x", "y"]),
    (testing._TestCxxAutoInitParent, ["parent_required", "parent_default"]),
    (testing._TestCxxAutoInitChild, ["child_required", "child_kw_only"]),
]


@pytest.mark.parametrize(("cls", "names"), CLASSES)
def test_classes_stand_for_their_types(cls: Any, names: list[str]) -> None:
    info = cls.__tvm_ffi_type_info__
    assert info.type_key == f"testing.{cls.__name__.lstrip('_')}"
    assert [f.name for f in info.fields] == names
    assert cls.__ffi_is_dataclass__ is True
    if not cls.__name__.startswith("_"):
        assert cls.__test__ is False


def test_no_warning_and_no_pytest_on_import() -> None:
    code = (
        "import sys, warnings\n"
        "warnings.simplefilter('error')\n"
        "sys.modules['pytest'] = None\n"
        "import tvm_ffi.testing as t\n"
        "from tvm_ffi.testing.testing import requires_py310\n"
        "print(t.TestIntPair(1, 2).sum(), requires_py310(len) is len)"
    )
    assert run_python(code) == "3 True\n"


@pytest.mark.parametrize("minor", [10, 12, 13, 99])
def test_marks_for_versions(minor: int) -> None:
    mark = getattr(testing.testing, f"requires_py3{minor}")
    (condition,) = mark.mark.args
    assert mark.mark.name == "skipif"
    assert condition == (sys.version_info < (3, minor))
    with pytest.raises(AttributeError):
        testing.testing.requires_nothing  # noqa: B018


def test_create_object() -> None:
    made = testing.create_object("testing.TestObjectBase", v_i64=3, v_str="x")
    assert (made.v_i64, made.v_str) == (3, "x")
    with pytest.raises(Exception, match="no.such.type"):
        testing.create_object("no.such.type")
    with pytest.raises(Exception, match=r"(?s)TestIntPair.*nothing|nothing.*TestIntPair"):
        testing.create_object("testing.TestIntPair", a=1, b=2, nothing=3)
    assert testing.make_unregistered_object().get_v2_plus_two() == 44
    assert testing.add_one(1) == 2


def test_the_gpu_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TVM_FFI_TEST_LOCK_DIR", str(tmp_path / "locks"))
    testing.testing._gpu_lock_path.cache_clear()
    try:
        path = tmp_path / "locks" / "gpu.lock"

        def inside(a: int, *, b: int) -> int:
            assert path.is_file()
            assert not FileLock(str(path)).acquire()
            return a + b

        assert testing.run_with_gpu_lock(inside, 1, b=2) == 3
        with pytest.raises(ZeroDivisionError):
            testing.run_with_gpu_lock(lambda: 1 / 0)
        assert testing.run_with_gpu_lock(lambda: "free again") == "free again"
    finally:
        testing.testing._gpu_lock_path.cache_clear()


# ---- FileLock -----------------------------------------------------------------------------------


def test_one_holder_at_a_time(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    first, second = FileLock(path), FileLock(path)
    assert first.acquire()
    assert isinstance(first._file_descriptor, int)
    assert not first.acquire()
    assert not second.acquire()
    assert second._file_descriptor is None
    with pytest.raises(TimeoutError, match="Failed to acquire lock on .* after 0.05 seconds"):
        second.blocking_acquire(timeout=0.05, poll_interval=0.01)
    with pytest.raises(RuntimeError, match="already held by this instance"):
        first.blocking_acquire()
    first.release()
    first.release()
    assert first._file_descriptor is None
    assert second.blocking_acquire(timeout=1)
    second.release()


def test_a_lock_file_that_cannot_exist(tmp_path: Path) -> None:
    lock = FileLock(str(tmp_path / "no" / "such" / "folder" / "lock"))
    assert not lock.acquire()
    with pytest.raises(OSError):
        lock.blocking_acquire()


def test_errors_inside_the_lock_come_out_and_free_it(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    with pytest.raises(KeyError), FileLock(path):
        raise KeyError("mine")
    with FileLock(path) as lock:
        assert lock.lock_file_path == path


def test_threads_lose_no_increment(tmp_path: Path) -> None:
    path, counter = str(tmp_path / "lock"), tmp_path / "counter"
    counter.write_text("0")

    def work() -> None:
        for _ in range(20):
            lock = FileLock(path)
            lock.blocking_acquire(poll_interval=0.0005)
            counter.write_text(str(int(counter.read_text()) + 1))
            lock.release()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter.read_text() == "80"
    assert os.path.exists(path)  # noqa: PTH110
