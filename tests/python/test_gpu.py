# SPDX-License-Identifier: Apache-2.0
"""Tensors and streams of a GPU: a library compiled by nvcc works on tensors of the frameworks."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import tvm_ffi
from support import collect, watch_death
from tvm_ffi import device, from_dlpack, get_raw_stream, libinfo, use_raw_stream, use_torch_stream
from tvm_ffi.testing import echo

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no GPU that torch can use", allow_module_level=True)

GPU = device("cuda", 0)
APPLY = tvm_ffi.get_global_func("testing.apply")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The functions of gpu_client.cu."""
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    if not Path(nvcc).exists():
        pytest.skip("no CUDA compiler")
    output = tmp_path_factory.mktemp("gpu") / "gpu_client.so"
    runtime = libinfo.find_libtvm_ffi()
    source = Path(__file__).with_name("gpu_client.cu")
    command = [nvcc, "-shared", "-std=c++17", "-O2", "-Xcompiler=-fPIC,-Wall"]
    command += [f"-I{path}" for path in {*libinfo.include_paths()}]
    command += [str(source), "-o", str(output), runtime]
    subprocess.run([*command, f"-Xlinker=-rpath={Path(runtime).parent}"], check=True)
    return tvm_ffi.load_module(str(output))


def ones(*shape: int) -> Any:
    return torch.ones(shape, device="cuda")


# ---- calls --------------------------------------------------------------------------------------


def test_a_kernel_writes_into_a_tensor_of_torch(library: Any) -> None:
    x, y = ones(1000), torch.zeros(1000, device="cuda")
    library.add_into(x, y, 2.5)
    assert torch.equal(y, torch.full_like(y, 3.5))


def test_the_result_is_made_by_torch(library: Any) -> None:
    before = torch.cuda.memory_allocated()
    y = library.add(ones(3, 5), 1.0)
    assert type(y) is torch.Tensor and y.device.type == "cuda" and y.shape == (3, 5)
    assert torch.equal(y, torch.full_like(y, 2.0))
    assert torch.cuda.memory_allocated() > before
    del y
    assert torch.cuda.memory_allocated() == before


def test_a_tensor_of_ours_stays_one(library: Any) -> None:
    x = from_dlpack(ones(7))
    assert x.device == GPU and x.dtype == "float32" and x.shape == (7,)
    assert echo(x) is x
    y = torch.zeros(7, device="cuda")
    library.add_into(x, y, 1.0)
    assert y.tolist() == [2.0] * 7
    assert torch.from_dlpack(x).data_ptr() == x.data_ptr()


def test_errors_name_the_culprit(library: Any) -> None:
    with pytest.raises(ValueError, match="must be on a GPU"):
        library.add(torch.ones(3), 1.0)
    with pytest.raises(TypeError, match="must be float32"):
        library.add(ones(3).double(), 1.0)
    with pytest.raises(ValueError, match="must be contiguous"):
        library.add(ones(4, 4).t()[1:], 1.0)
    with pytest.raises(ValueError, match="differ in size"):
        library.add_into(ones(3), ones(4), 1.0)


def test_empty_tensors(library: Any) -> None:
    assert library.add(ones(0), 1.0).shape == (0,)


# ---- streams ------------------------------------------------------------------------------------


def test_calls_run_on_torch_s_current_stream(library: Any) -> None:
    """On another stream the kernel would run before the wait is over and see zeros."""
    side = torch.cuda.Stream()
    x, y = torch.zeros(100, device="cuda"), torch.zeros(100, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        library.spin(x, 200_000_000)
        x.fill_(5.0)
        library.add_into(x, y, 1.0)
        assert not side.query()
    assert torch.cuda.default_stream().query()
    side.synchronize()
    assert y.tolist() == [6.0] * 100


def test_the_stream_in_a_callback(library: Any) -> None:
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        assert APPLY(lambda _: get_raw_stream(GPU), ones(1)) == side.cuda_stream
    assert get_raw_stream(GPU) == 0


def test_use_torch_stream_and_use_raw_stream(library: Any) -> None:
    side = torch.cuda.Stream()
    with use_torch_stream(torch.cuda.stream(side)):
        assert get_raw_stream(GPU) == side.cuda_stream
        x = from_dlpack(torch.zeros(4, device="cuda"))
        library.spin(x, 200_000_000)
        assert not side.query()
    side.synchronize()
    with use_raw_stream(GPU, side.cuda_stream):
        library.spin(x, 200_000_000)
        assert not side.query()
    side.synchronize()


def test_a_stream_as_argument() -> None:
    side = torch.cuda.Stream()
    assert echo(side).value == side.cuda_stream


# ---- exchange -----------------------------------------------------------------------------------

DTYPES = ["float16", "bfloat16", "float64", "int8", "int32", "uint8", "bool", "float8_e4m3fn"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes_there_and_back(dtype: str) -> None:
    x = torch.zeros(6, device="cuda").to(getattr(torch, dtype))
    ours = from_dlpack(x)
    assert str(ours.dtype) == dtype and ours.data_ptr() == x.data_ptr()
    back = echo(x)
    assert back.dtype == x.dtype and back.data_ptr() == x.data_ptr()


def test_strided_views() -> None:
    x = torch.arange(24, device="cuda").reshape(4, 6)[1:, ::2]
    ours = from_dlpack(x)
    assert ours.shape == (3, 3) and ours.strides == (6, 2) and ours.data_ptr() == x.data_ptr()
    assert torch.equal(torch.from_dlpack(ours), x)


def test_in_containers_and_callbacks() -> None:
    x = ones(2)
    array = tvm_ffi.convert([x, [x]])
    assert array[0].data_ptr() == x.data_ptr() == array[1][0].data_ptr()
    seen: list[Any] = []
    APPLY(seen.append, x)
    APPLY(tvm_ffi.convert_func(seen.append, tensor_cls=torch.Tensor), x)
    assert [type(tensor) for tensor in seen] == [tvm_ffi.Tensor, torch.Tensor]
    assert [tensor.data_ptr() for tensor in seen] == [x.data_ptr()] * 2


def test_the_memory_lives_as_long_as_somebody_looks() -> None:
    collect()
    before = torch.cuda.memory_allocated()
    x = ones(1 << 20)
    ours = from_dlpack(x)
    deaths = watch_death(ours)
    del x
    assert torch.cuda.memory_allocated() > before
    other = torch.from_dlpack(ours)
    del ours
    collect()
    assert deaths == []  # torch keeps the object
    assert other.sum().item() == 1 << 20
    del other
    collect()
    assert deaths == [True]
    assert torch.cuda.memory_allocated() == before


@pytest.mark.parametrize("framework", ["cupy", "jax"])
def test_other_frameworks(framework: str, library: Any) -> None:
    if framework == "cupy":
        x = pytest.importorskip("cupy").ones(5, "float32")
    else:
        numpy = pytest.importorskip("jax.numpy")
        x = numpy.ones(5, "float32")
        if "cuda" not in str(x.device).lower():
            pytest.skip("jax does not see the GPU")
    ours = from_dlpack(x)
    assert ours.device == GPU and ours.shape == (5,)
    y = torch.zeros(5, device="cuda")
    library.add_into(ours, y, 1.0)
    torch.cuda.synchronize()
    assert y.tolist() == [2.0] * 5


def test_cupy_arrays_are_arguments(library: Any) -> None:
    cupy = pytest.importorskip("cupy")
    x, y = cupy.ones(5, "float32"), cupy.zeros(5, "float32")
    library.add_into(x, y, 1.0)
    cupy.cuda.Device().synchronize()
    assert y.tolist() == [2.0] * 5
    assert cupy.from_dlpack(from_dlpack(ones(3))).tolist() == [1.0] * 3
