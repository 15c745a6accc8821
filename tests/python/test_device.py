# SPDX-License-Identifier: Apache-2.0
"""Device: names, numbers, and what is refused."""

from __future__ import annotations

import copy
import pickle
import sys
from types import SimpleNamespace
from typing import Any

import pytest
import tvm_ffi
from tvm_ffi import Device, DLDeviceType, core, device
from tvm_ffi.testing import echo

NAMES = {
    "cpu": 1,
    "cuda": 2,
    "opencl": 4,
    "vulkan": 7,
    "metal": 8,
    "vpi": 9,
    "rocm": 10,
    "ext_dev": 12,
    "webgpu": 15,
    "hexagon": 16,
    "maia": 17,
    "trn": 18,
}
ALIASES = {"mps": "metal", "wgpu": "webgpu"}
BY_CODE_ONLY = {"cuda_host": 3, "rocm_host": 11, "cuda_managed": 13, "oneapi": 14}


@pytest.mark.parametrize("name", NAMES)
def test_names(name: str) -> None:
    for made, index in ((device(name), 0), (device(f"{name}:3"), 3), (device(name, 3), 3)):
        assert type(made) is Device
        assert made.type == name == made.__device_type_name__()
        assert made.index == index and type(made.index) is int
        assert made.dlpack_device_type() == NAMES[name]
        assert str(made) == f"{name}:{index}"
        assert repr(made) == f"device(type='{name}', index={index})"
        assert echo(made) == made and type(echo(made)) is Device
        assert made == device(NAMES[name], index)
        assert hash(made) == hash((NAMES[name], index))
        assert pickle.loads(pickle.dumps(made)) == made


@pytest.mark.parametrize("alias", ALIASES)
def test_aliases(alias: str) -> None:
    assert device(alias) == device(ALIASES[alias])


@pytest.mark.parametrize("name", BY_CODE_ONLY)
def test_host_and_managed_memory_by_code(name: str) -> None:
    assert device(BY_CODE_ONLY[name], 1).type == name
    with pytest.raises(ValueError, match=f"^Unknown device: {name}$"):
        device(name)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("cuda:1", 5), (2, 1)),
        (("cuda:1 extra words",), (2, 1)),
        (("cpu 3",), (1, 0)),
        (("cuda:-1",), (2, -1)),
        ((DLDeviceType.kDLROCM, 2), (10, 2)),
        ((99, -7), (99, -7)),
        ((-1,), (-1, 0)),
        ((2, None), (2, 0)),
        ((True, False), (1, 0)),
    ],
)
def test_numbers(arguments: tuple[Any, ...], expected: tuple[int, int]) -> None:
    made = device(*arguments)
    assert (made.dlpack_device_type(), made.index) == expected


def test_scalars_of_numpy_are_integers() -> None:
    numpy = pytest.importorskip("numpy")
    for index in (
        numpy.int64(2),
        numpy.int8(2),
        numpy.uint16(2),
        numpy.array(2),
        numpy.array([2])[0],
    ):
        assert device("cuda", index) == device("cuda:2")
    assert device(numpy.int32(2), 2) == device("cuda:2")
    with pytest.raises(TypeError, match="Invalid device index: 1.5"):
        device("cuda", numpy.float32(1.5))


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        (("llvm",), ValueError, "^Unknown device: llvm$"),
        (("c",), ValueError, "^Unknown device: c$"),
        (("test",), ValueError, "^Unknown device: test$"),
        (("nvptx",), ValueError, "^Unknown device: nvptx$"),
        (("cl",), ValueError, "^Unknown device: cl$"),
        (("CUDA",), ValueError, "^Unknown device: CUDA$"),
        (("",), ValueError, "^Unknown device: $"),
        ((" cpu",), ValueError, "^Unknown device: $"),
        (("cuda\0",), ValueError, "Unknown device"),
        (("\ud800",), ValueError, "Unknown device"),
        (("cuda:1:2",), ValueError, "^Invalid device: cuda:1:2$"),
        (("cpu:",), ValueError, "^Invalid device index: $"),
        (("cpu:x",), ValueError, "^Invalid device index: x$"),
        (("cuda: 1",), ValueError, "^Invalid device index: $"),
        (("cuda:1.0",), ValueError, "^Invalid device index: 1.0$"),
        (("cuda:0x1",), ValueError, "^Invalid device index: 0x1$"),
        (("cuda:99999999999",), OverflowError, "device index 99999999999"),
        (("cuda", "2"), TypeError, "^Invalid device index: 2$"),
        (("cuda", 1.5), TypeError, "^Invalid device index: 1.5$"),
        (("cuda", [1]), TypeError, r"^Invalid device index: \[1\]$"),
        (("cuda", 2**40), OverflowError, "device index 1099511627776"),
        ((None,), TypeError, "an integer is required as device type, got NoneType"),
        ((b"cpu",), TypeError, "an integer is required as device type, got bytes"),
        ((2.0,), TypeError, "an integer is required as device type, got float"),
        ((2**31,), OverflowError, "device type 2147483648"),
        ((2, -(2**31) - 1), OverflowError, "device index -2147483649"),
        ((), TypeError, "device_type"),
        (("cpu", 0, 0), TypeError, "argument"),
    ],
)
def test_bad_devices_are_named(
    arguments: tuple[Any, ...], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        device(*arguments)
    with pytest.raises(error, match=text):
        Device(*arguments)


def test_unknown_codes_can_be_looked_at() -> None:
    odd = device(99, 1)
    with pytest.raises(KeyError, match="99"):
        _ = odd.type
    assert repr(odd) == "device(type='99', index=1)" and str(odd) == "99:1"
    assert echo(odd) == odd


def test_devices_are_values() -> None:
    assert device("cpu") == device("cpu") and device("cpu") != device("cuda")
    assert device("cuda:0") != device("cuda:1")
    assert (device("cpu") == "cpu") is False and (device("cpu") != "cpu") is True
    assert len({device("cuda:1"), device("cuda", 1), device(2, 1)}) == 1
    with pytest.raises(TypeError):
        _ = device("cpu") < device("cuda")  # type: ignore[operator]
    with pytest.raises(AttributeError):
        device("cpu").index = 1  # type: ignore[misc]


def test_tables_of_names() -> None:
    assert Device._DEVICE_TYPE_TO_NAME == {
        code: name for name, code in {**NAMES, **BY_CODE_ONLY}.items()
    }
    assert {NAMES[ALIASES.get(n, n)] for n in ALIASES} <= set(Device._DEVICE_NAME_TO_TYPE.values())
    assert Device._DEVICE_NAME_TO_TYPE == {
        **NAMES,
        **{alias: NAMES[name] for alias, name in ALIASES.items()},
    }


def test_device_types_have_names() -> None:
    assert [d.value for d in DLDeviceType] == [1, 2, 3, 4, *range(7, 19)]
    assert DLDeviceType.kDLCUDAManaged == 13 and DLDeviceType.kDLTrn == 18
    assert core.DLDeviceType is DLDeviceType


def test_the_class_can_be_replaced() -> None:
    class Mine(Device):
        pass

    assert core._CLASS_DEVICE is Device
    core._set_class_device(Mine)
    try:
        assert core._CLASS_DEVICE is Mine
        assert type(device("cuda:1")) is Mine and type(echo(Device("cuda:1"))) is Mine
        assert device("cuda:1") == Device("cuda:1")
        assert echo(device("cuda:1")).index == 1
    finally:
        core._set_class_device(Device)
    assert type(device("cpu")) is Device
    for wrong in (int, "cpu", None):
        with pytest.raises(TypeError, match="subclass of Device"):
            core._set_class_device(wrong)  # type: ignore[arg-type]


def test_pickling_keeps_the_class() -> None:
    assert core._create_device_from_tuple(Device, 2, 1) == device("cuda:1")
    with pytest.raises(TypeError, match="subclass of Device"):
        core._create_device_from_tuple(int, 2, 1)  # type: ignore[arg-type]
    with pytest.raises(OverflowError, match="device index"):
        core._create_device_from_tuple(Device, 2, 2**40)


class ByProtocol:
    def __init__(self, value: object) -> None:
        self.value = value

    def __dlpack_device__(self) -> object:
        return self.value


def test_the_protocol_of_devices() -> None:
    assert echo(ByProtocol((2, 3))) == device("cuda:3")
    assert tvm_ffi.convert(x := ByProtocol((2, 3))) is x
    for wrong in ([2, 3], (2,), (2, 3, 4), None):
        with pytest.raises(TypeError, match="ByProtocol must return a tuple of two"):
            echo(ByProtocol(wrong))
    with pytest.raises(TypeError, match="device index, got str"):
        echo(ByProtocol((2, "3")))


def test_cpp_parameters_take_text_too() -> None:
    function = tvm_ffi.get_global_func("testing.schema_id_device")
    assert function("cuda:1") == device("cuda:1") == function(device("cuda:1"))
    with pytest.raises((TypeError, ValueError)):
        function("cuda:1:2")


def test_names_that_were_dropped_work_for_apache_tvm_0_25(monkeypatch: Any) -> None:
    """Its compiler asks for `llvm`. Any other version is refused, as without it."""
    for version in ("0.25.0", "0.25.0.post1", "0.26.0", None):
        knows = version is not None and version.startswith("0.25")
        monkeypatch.setitem(sys.modules, "tvm", SimpleNamespace(__version__=version))
        for name, meant in (("llvm", "cpu"), ("c", "cpu"), ("nvptx", "cuda"), ("cl", "opencl")):
            if knows:
                assert device(name, 1) == device(meant, 1)
            else:
                with pytest.raises(ValueError, match=f"^Unknown device: {name}$"):
                    device(name)
        with pytest.raises(ValueError, match="^Unknown device: toaster$"):
            device("toaster")


def test_a_device_is_a_value() -> None:
    own = Device("cuda:1")
    table = {own: 1}
    for arguments in (("cpu",), ("cuda", 2), (1, 1)):
        with pytest.raises(
            TypeError, match=r"device\(type='cuda', index=1\) cannot become another"
        ):
            own.__init__(*arguments)  # type: ignore[misc]
        assert table[own] == 1 and own == Device("cuda:1")
    own.__init__("cuda:1")  # type: ignore[misc]
    for made in (echo(own), copy.copy(own), pickle.loads(pickle.dumps(own))):
        with pytest.raises(TypeError, match="cannot become another device"):
            made.__init__("cpu")

    class Named(Device):
        def __init__(self, name: str) -> None:
            super().__init__("cpu", 3)
            self.name = name

    assert Named("a") == Device("cpu:3") and Named("a").name == "a"
