# SPDX-License-Identifier: Apache-2.0
"""Streams: current per thread and device, nested, restored."""

from __future__ import annotations

import ctypes
import sys
import threading
import types
from typing import Any

import pytest
import tvm_ffi
from tvm_ffi import core, device, get_raw_stream, use_raw_stream, use_torch_stream
from tvm_ffi.testing import echo

GPU = device("cuda:0")
OTHER = device("cuda:1")


def test_a_stream_is_current_in_its_block() -> None:
    assert get_raw_stream(GPU) == 0
    with use_raw_stream(GPU, 0x10) as context:
        assert isinstance(context, tvm_ffi.StreamContext)
        assert (context.device_type, context.device_id) == (2, 0)
        assert (context.stream, context.prev_stream) == (0x10, 0)
        assert get_raw_stream(GPU) == 0x10 and get_raw_stream(OTHER) == 0
    assert get_raw_stream(GPU) == 0


def test_blocks_nest_and_end_in_exceptions() -> None:
    with use_raw_stream(GPU, 1):
        with use_raw_stream(GPU, 2), use_raw_stream(OTHER, 3):
            assert (get_raw_stream(GPU), get_raw_stream(OTHER)) == (2, 3)
        assert (get_raw_stream(GPU), get_raw_stream(OTHER)) == (1, 0)
        with pytest.raises(ValueError, match="boo"), use_raw_stream(GPU, 4):
            raise ValueError("boo")
        assert get_raw_stream(GPU) == 1
    assert get_raw_stream(GPU) == 0


def test_one_context_can_be_entered_again() -> None:
    context = use_raw_stream(GPU, 9)
    with use_raw_stream(GPU, 4):
        with context:
            with use_raw_stream(GPU, 5), context:
                assert (get_raw_stream(GPU), context.prev_stream) == (9, 5)
            assert (get_raw_stream(GPU), context.prev_stream) == (9, 4)
        assert get_raw_stream(GPU) == 4
    assert get_raw_stream(GPU) == 0
    with pytest.raises(RuntimeError, match="not entered"):
        context.__exit__(None, None, None)


def test_pointers_are_streams_too() -> None:
    with use_raw_stream(GPU, ctypes.c_void_p(7)):
        assert get_raw_stream(GPU) == 7
        with use_raw_stream(GPU, ctypes.c_void_p(None)):
            assert get_raw_stream(GPU) == 0
    with use_raw_stream(GPU, 2**64 - 1):
        assert get_raw_stream(GPU) == 2**64 - 1


def test_streams_belong_to_the_thread() -> None:
    seen: list[int] = []
    with use_raw_stream(GPU, 5):
        thread = threading.Thread(target=lambda: seen.append(get_raw_stream(GPU)))
        thread.start()
        thread.join()
        assert get_raw_stream(GPU) == 5
    assert seen == [0]


def test_the_functions_underneath() -> None:
    assert core._env_set_current_stream(2, 0, 5) == 0
    assert core._env_get_current_stream(2, 0) == 5
    assert core._env_set_current_stream(2, 0, 0) == 5


@pytest.mark.parametrize("stream", ["x", None, 1.5, b"", [1], ctypes.c_int(3)])
def test_what_is_no_stream(stream: Any) -> None:
    with pytest.raises(ValueError, match="only accepts int or c_void_p .* use_torch_stream"):
        use_raw_stream(GPU, stream)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ((2, 0, "x"), TypeError, "an integer is required as stream, got str"),
        ((2, 0, 1.0), TypeError, "an integer is required as stream, got float"),
        ((2, 0, -1), OverflowError, "stream -1 is not an address"),
        ((2, 0, 2**64), OverflowError, "stream 18446744073709551616 is not an address"),
        (("cuda", 0, 1), TypeError, "device type, got str"),
        ((2, None, 1), TypeError, "device index, got NoneType"),
        ((2**31, 0, 1), OverflowError, "device type 2147483648"),
        ((-1, 0, 1), ValueError, "invalid device"),
        ((2, -1, 1), ValueError, "invalid device"),
        ((2, 0), TypeError, "3 arguments"),
    ],
)
def test_bad_arguments_are_named(arguments: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        core._env_set_current_stream(*arguments)
    assert get_raw_stream(GPU) == 0


def test_a_block_that_was_not_entered() -> None:
    with pytest.raises(RuntimeError, match="not entered"):
        use_raw_stream(GPU, 1).__exit__(None, None, None)
    with pytest.raises(TypeError, match="use_raw_stream expects a Device first, got str"):
        use_raw_stream("cuda:0", 1)  # type: ignore[arg-type]
    for wrong in ("cuda:0", 1, None):
        with pytest.raises(TypeError, match=f"expects a Device, got {type(wrong).__name__}"):
            get_raw_stream(wrong)  # type: ignore[arg-type]
    with pytest.raises(OverflowError, match="stream -5"), use_raw_stream(GPU, -5):
        pass
    assert get_raw_stream(GPU) == 0


# ---- torch: where there is no GPU, a module that looks like it ----------------------------------


@pytest.fixture
def fake_torch(monkeypatch: pytest.MonkeyPatch) -> Any:
    torch = types.SimpleNamespace(log=[])
    stream = types.SimpleNamespace(device="cuda:1", cuda_stream=0x99)
    torch.cuda = types.SimpleNamespace(current_stream=lambda: stream)
    monkeypatch.setattr(core, "torch", torch, raising=False)
    return torch


class Context:
    def __init__(self, log: list[str]) -> None:
        self.log = log

    def __enter__(self) -> None:
        self.log.append("enter")

    def __exit__(self, *args: Any) -> None:
        self.log.append(f"exit with {get_raw_stream(OTHER):#x}")


def test_torch_s_stream_is_ours(fake_torch: Any) -> None:
    with use_torch_stream():
        assert get_raw_stream(OTHER) == 0x99 and get_raw_stream(GPU) == 0
    assert get_raw_stream(OTHER) == 0


def test_torch_s_context_can_be_entered_again(fake_torch: Any) -> None:
    context = use_torch_stream()
    with context:
        with context:
            assert get_raw_stream(OTHER) == 0x99
        assert get_raw_stream(OTHER) == 0x99
    assert get_raw_stream(OTHER) == 0


def test_torch_s_context_is_entered_first_and_left_first(fake_torch: Any) -> None:
    with use_torch_stream(Context(fake_torch.log)):
        assert fake_torch.log == ["enter"] and get_raw_stream(OTHER) == 0x99
    assert fake_torch.log == ["enter", "exit with 0x99"] and get_raw_stream(OTHER) == 0


def test_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "torch", None, raising=False)
    with pytest.raises(ImportError, match="Cannot import torch"):
        use_torch_stream()


def test_with_a_gpu() -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no GPU here")
    stream = torch.cuda.Stream()
    here = device(str(stream.device))
    with use_torch_stream(torch.cuda.stream(stream)):
        assert get_raw_stream(here) == stream.cuda_stream
    tensor = torch.ones(4, device="cuda")
    apply = tvm_ffi.get_global_func("testing.apply")
    with torch.cuda.stream(stream):
        assert apply(lambda _: get_raw_stream(here), tensor) == stream.cuda_stream
    got = echo(tensor)
    assert got.data_ptr() == tensor.data_ptr() and got.device == tensor.device
    assert echo(stream).value == stream.cuda_stream


# ---- streams as arguments -----------------------------------------------------------------------


class Stream:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __cuda_stream__(self) -> Any:
        return self.value


def test_the_protocol_of_streams() -> None:
    assert echo(Stream((0, 5))).value == 5 and echo(Stream(("any", 1))).value == 1
    assert echo(Stream((0, 0))).value is None
    assert tvm_ffi.convert(s := Stream((0, 1))) is s
    for wrong in ([0, 1], 5, (0,), None):
        with pytest.raises(TypeError, match="__cuda_stream__.. of Stream must return a tuple"):
            echo(Stream(wrong))
    with pytest.raises(TypeError, match="an integer is required"):
        echo(Stream((0, "x")))


def test_streams_of_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    class CUstream:
        def __int__(self) -> int:
            return 0x77

    class TorchStream:
        cuda_stream = 0x88

    driver = types.ModuleType("cuda.bindings.driver")
    driver.CUstream = CUstream  # type: ignore[attr-defined]
    torch_cuda = types.ModuleType("torch.cuda")
    torch_cuda.Stream = TorchStream  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", driver)
    monkeypatch.setitem(sys.modules, "torch.cuda", torch_cuda)
    assert echo(CUstream()).value == 0x77
    assert echo(TorchStream()).value == 0x88
