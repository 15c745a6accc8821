# SPDX-License-Identifier: Apache-2.0
"""The torch add-on: built, found, preferred, and what its exchange API does with odd tensors.

Everything that loads it runs in a process of its own: it changes `torch.Tensor`.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import tvm_ffi
from support import run_python

# Not imported here: other tests expect that nobody has.
if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)
if shutil.which(os.environ.get("CXX", "c++")) is None:
    pytest.skip("no C++ compiler", allow_module_level=True)

SCRIPT = Path(tvm_ffi.__file__).with_name("utils") / "_build_optional_torch_c_dlpack.py"
MODULE = "tvm_ffi.utils._build_optional_torch_c_dlpack"


def run_script(*arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a cache folder in which the add-on is installed."""
    folder = tmp_path_factory.mktemp("cache")
    done = run_script("-m", MODULE, "--install", TVM_FFI_CACHE_DIR=str(folder))
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).parent == folder
    return folder


def run_with_addon(cache: Path, program: str) -> str:
    begin = """
import gc, sys, weakref
import torch, tvm_ffi
from tvm_ffi import from_dlpack
from tvm_ffi.testing import echo
own = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)
torch.ones(1), echo(torch.ones(1))
assert torch.Tensor.__dlpack_c_exchange_api__ is not own
"""
    return run_python(begin + program, TVM_FFI_CACHE_DIR=str(cache))


# ---- the script ---------------------------------------------------------------------------------


def test_the_script_builds_once_whoever_else_does(cache: Path, tmp_path: Path) -> None:
    """Run as a script, four at a time, and found by the name that callers expect."""
    # The slow part is known to work: the compiler is a program that copies the library.
    (built,) = cache.glob("*.so")
    fake = tmp_path / "compiler"
    fake.write_text(
        "#!/bin/sh\n"
        f"echo run >> {tmp_path}/log\n"
        'while [ "$1" != -o ]; do shift; done\n'
        f'sleep 0.2; cp {built} "$2"\n'
    )
    fake.chmod(0o755)
    output = tmp_path / "output"
    processes = [
        subprocess.Popen(
            [sys.executable, SCRIPT, "--output-dir", output],
            env={**os.environ, "CXX": str(fake)},
            stderr=subprocess.PIPE,
        )
        for _ in range(4)
    ]
    for process in processes:
        _, errors = process.communicate()
        assert process.returncode == 0, errors
    major, minor = importlib.metadata.version("torch").split(".")[:2]
    name = f"libtorch_c_dlpack_addon_torch{major}{minor}-cpu.so"
    assert sorted(path.name for path in output.iterdir()) == [name, f"{name}.lock"]
    assert (tmp_path / "log").read_text() == "run\n"


def test_mistakes(tmp_path: Path) -> None:
    done = run_script(SCRIPT, "--build-with-cuda", "--build-with-rocm")
    assert done.returncode != 0
    assert "ValueError: Cannot enable both CUDA and ROCm at the same time." in done.stderr
    done = run_script(SCRIPT, "--output-dir", tmp_path, CXX="/nowhere/c++")
    assert done.returncode == 1 and "/nowhere/c++ was not found" in done.stderr
    done = run_script(SCRIPT, "--output-dir", tmp_path, CXX="false")
    assert done.returncode == 1 and "The compiler failed with status 1: " in done.stderr
    done = run_script(SCRIPT, "--output-dir", tmp_path, CXX="echo -a")
    assert done.returncode == 1
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".so"] == []


def test_flags_from_the_environment(tmp_path: Path) -> None:
    done = run_script(
        *(SCRIPT, "--output-dir", tmp_path),
        CXX="false",
        TVM_FFI_JIT_EXTRA_CFLAGS="-DA='b c'",
        TVM_FFI_JIT_EXTRA_LDFLAGS="-lmine",
    )
    assert "'-DA=b c'" in done.stderr and done.stderr.splitlines()[0].endswith("-lmine")


# ---- who uses it --------------------------------------------------------------------------------


def test_it_is_preferred_where_it_is_installed(cache: Path) -> None:
    run_with_addon(cache, "")
    program = """
import torch, tvm_ffi
from tvm_ffi.testing import echo
own = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)
echo(torch.ones(1)), tvm_ffi.from_dlpack(torch.ones(1))
assert getattr(torch.Tensor, "__dlpack_c_exchange_api__", None) is own
"""
    run_python(program, TVM_FFI_CACHE_DIR=str(cache), TVM_FFI_DISABLE_TORCH_C_DLPACK="1")
    run_python(program, TVM_FFI_CACHE_DIR=str(cache), TVM_FFI_SKIP_DLPACK_C_EXCHANGE_API="1")


def test_from_dlpack_looks_for_it_too(cache: Path) -> None:
    program = """
import torch, tvm_ffi
own = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)
t = torch.arange(3.0)
assert tvm_ffi.from_dlpack(t).data_ptr() == t.data_ptr()
assert torch.Tensor.__dlpack_c_exchange_api__ is not own
"""
    run_python(program, TVM_FFI_CACHE_DIR=str(cache))


def test_a_library_that_cannot_be_loaded_is_a_warning(cache: Path, tmp_path: Path) -> None:
    (built,) = cache.glob("*.so")
    (tmp_path / built.name).write_text("not a library")
    program = """
import warnings, torch
from tvm_ffi.testing import echo
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    print(type(echo(torch.ones(1))).__name__, echo(torch.ones(1)).item())
print(len(seen), "exchange of tensors with torch is not available" in str(seen[0].message))
"""
    assert run_python(program, TVM_FFI_CACHE_DIR=str(tmp_path)) == "Tensor 1.0\n1 True\n"


# ---- what it does -------------------------------------------------------------------------------


def test_tensors_there_and_back(cache: Path) -> None:
    program = """
class Mine(torch.Tensor):
    pass

names = "uint8 int8 int16 int32 int64 float16 float32 float64 bfloat16 bool complex64 complex128"
names += " float8_e5m2 float8_e4m3fn float8_e5m2fnuz float8_e4m3fnuz uint16 uint32 uint64 complex32"
names += " float8_e8m0fnu float4_e2m1fn_x2"
dtypes = [getattr(torch, name) for name in names.split() if hasattr(torch, name)]
given = [torch.zeros(4, 6, dtype=torch.uint8).view(torch.uint8).to(dtype)
         for dtype in dtypes if dtype.itemsize > 1 or "float" not in str(dtype)]
given += [torch.zeros(4, dtype=torch.uint8).view(dtype) for dtype in dtypes if dtype.itemsize == 1]
given += [
    torch.arange(24.0).reshape(4, 6)[::2, 1::2], torch.arange(6).reshape(2, 3).t(),
    torch.zeros(()), torch.zeros(0, 3), torch.ones(1).expand(5, 3),
    torch.nn.Parameter(torch.arange(3.0)), torch.arange(3.0).as_subclass(Mine),
    torch.arange(3.0, requires_grad=True), torch.arange(3.0, requires_grad=True) * 2,
    torch.nn.Buffer(torch.ones(2)) if hasattr(torch.nn, "Buffer") else torch.ones(2),
]
for t in given:
    back = torch.from_dlpack(from_dlpack(t)) if t.dtype.itemsize > 1 else t
    for got in (echo(t), echo([t])[0], back):
        assert isinstance(got, torch.Tensor), t
        assert got.data_ptr() == t.data_ptr() and got.dtype == t.dtype and got.shape == t.shape
        assert got.stride() == t.stride() or got.numel() < 2, (got.stride(), t.stride())
        assert got.device == t.device and (got is t or not got.requires_grad)
    kept = from_dlpack(t)
    assert kept.data_ptr() == t.data_ptr() and kept.shape == tuple(t.shape)
    assert kept.strides == t.stride()
print("done")
"""
    assert run_with_addon(cache, program) == "done\n"


def test_sign_bits(cache: Path) -> None:
    program = """
import ctypes
numbers = torch.tensor([1 + 2j, 3 - 1j])
negated = torch._neg_view(torch.ones(2))
odd = [numbers.conj(), numbers.conj().imag, negated, torch._neg_view(numbers)]
for _ in range(2):
    for t in odd:
        assert echo(t).tolist() == t.tolist() and echo([t])[0].tolist() == t.tolist()
        try:
            from_dlpack(t)
        except BufferError as error:
            assert "bit set cannot share its memory" in str(error)
        else:
            raise AssertionError(t)
# Others who use the API get an error too, not the wrong values.
get = ctypes.pythonapi.PyCapsule_GetPointer
get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
api = get(torch.Tensor.__dlpack_c_exchange_api__, b"dlpack_exchange_api")
words = (ctypes.c_void_p * 7).from_address(api)
for index in (3, 5):  # managed tensor, view
    function = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)(words[index])
    out = ctypes.create_string_buffer(128)
    for t, reason in [(numbers.conj(), "conj or neg bit"), (negated, "conj or neg bit"),
                      (torch.ones(2, device="meta"), "meta"), (3, "a torch.Tensor, got int")]:
        try:
            function(t, ctypes.addressof(out))
        except (RuntimeError, TypeError) as error:
            assert reason in str(error), error
        else:
            raise AssertionError(t)
print("done")
"""
    assert run_with_addon(cache, program) == "done\n"


def test_tensors_without_memory_are_refused(cache: Path) -> None:
    program = """
from torch._subclasses.fake_tensor import FakeTensorMode
with FakeTensorMode():
    fake = torch.ones(2)

class Wrapped(torch.Tensor):
    @staticmethod
    def __new__(cls):
        return torch.Tensor._make_wrapper_subclass(cls, (2,))
    @classmethod
    def __torch_dispatch__(cls, f, types, args=(), kwargs=None):
        raise NotImplementedError(f"no {f}")

quantized = torch.quantize_per_tensor(torch.ones(2), 1.0, 0, torch.qint8)
cases = {"sparse": torch.eye(2).to_sparse(), "meta": torch.ones(2, device="meta"),
         "zero": torch._efficientzerotensor(3), "fake": fake, "wrapped": Wrapped(),
         "quantized": quantized, "batched": None}
view = tvm_ffi.get_global_func("testing.nop")
for name, t in cases.items():
    for use in (echo, from_dlpack, view):
        try:
            if name == "batched":
                torch.vmap(lambda x: (use(x), x)[1])(torch.ones(3, 2))
            else:
                use(t)
        except (BufferError, RuntimeError, ValueError) as error:
            assert str(error), name
            if use is echo:
                print(name, "|", str(error).splitlines()[0])
        else:
            raise AssertionError((name, use))
"""
    said = dict(line.split(" | ") for line in run_with_addon(cache, program).splitlines())
    assert "Sparse" in said["sparse"] and "meta" in said["meta"]
    assert "QInt8" in said["quantized"]
    assert len(said) == 7


def test_lifetime(cache: Path) -> None:
    """A callee that keeps a tensor gets one that owns; nothing is kept afterwards."""
    program = """
given = torch.arange(3.0)
count = sys.getrefcount(given)
address = given.data_ptr()
box = tvm_ffi.Array([given])
results = [echo(given) for _ in range(10)]
kept = from_dlpack(given)
del box
given.unsqueeze_(0)
assert kept.shape == (3,) and results[0].shape == (3,)
del kept, results
gc.collect()
assert sys.getrefcount(given) == count, (sys.getrefcount(given), count)
gone = []
class Mine(torch.Tensor):
    pass
mine = torch.arange(3.0).as_subclass(Mine)
weakref.finalize(mine, gone.append, 1)
held = echo([mine])
del mine
gc.collect()
assert held[0].tolist() == [0, 1, 2]
del held
gc.collect()
assert gone == [1]
kept = from_dlpack(torch.arange(3.0))
gc.collect()
back = torch.from_dlpack(kept)
del kept
gc.collect()
assert back.tolist() == [0, 1, 2]
print("done")
"""
    assert run_with_addon(cache, program) == "done\n"


def test_results_are_allocated_by_torch(cache: Path) -> None:
    source = """
tvm::ffi::Tensor like(tvm::ffi::TensorView x) {
  auto y = tvm::ffi::Tensor::FromEnvAlloc(TVMFFIEnvTensorAlloc, x.shape(), x.dtype(), x.device());
  std::memset(y.data_ptr(), 1, 6);
  return y;
}
void impossible(tvm::ffi::TensorView x) {
  tvm::ffi::Tensor::FromEnvAlloc(TVMFFIEnvTensorAlloc, {1}, DLDataType{kDLInt, 3, 1}, x.device());
}
int64_t stream() { return reinterpret_cast<int64_t>(TVMFFIEnvGetStream(kDLCPU, 0)); }
"""
    program = f"""
import tvm_ffi.cpp
names = ["like", "impossible", "stream"]
lib = tvm_ffi.cpp.load_inline("addon_test", cpp_sources={source!r}, functions=names)
x = torch.zeros(2, 3, dtype=torch.uint8)
y = lib.like(x)
assert type(y) is torch.Tensor and y.sum().item() == 6 and y.shape == (2, 3)
try:
    lib.impossible(x)
except MemoryError as error:
    assert "no element type" in str(error)
else:
    raise AssertionError
assert lib.stream() == 0
print("done")
"""
    assert run_with_addon(cache, program) == "done\n"


def test_the_library_with_cuda_can_be_loaded(tmp_path: Path) -> None:
    """The stream functions are compiled and linked; a GPU is only needed to call them."""
    if run_python("import torch; print(torch.version.cuda)") == "None\n":
        pytest.skip("torch without CUDA")
    done = run_script(SCRIPT, "--output-dir", tmp_path, "--build-with-cuda")
    assert done.returncode == 0, done.stderr
    program = f"""
import ctypes, torch
library = ctypes.CDLL({done.stdout.strip()!r})
library.TorchDLPackExchangeAPIPtr.restype = ctypes.c_uint64
words = (ctypes.c_void_p * 7).from_address(library.TorchDLPackExchangeAPIPtr())
stream = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int32, ctypes.c_void_p)(words[6])
out = ctypes.c_void_p(1)
assert stream(1, 0, ctypes.byref(out)) == 0 and out.value is None
if torch.cuda.is_available():
    torch.zeros(1, device="cuda")
    out.value = 1
    assert stream(2, 0, ctypes.byref(out)) == 0 and out.value is None
    own = torch.cuda.Stream()
    for used in (own, torch.cuda.Stream(priority=-1), torch.cuda.ExternalStream(own.cuda_stream)):
        with torch.cuda.stream(used):
            assert stream(2, 0, ctypes.byref(out)) == 0
            assert out.value == used.cuda_stream
print("done")
"""
    assert run_python(program) == "done\n"


def test_threads(cache: Path) -> None:
    """The first tensors of a process may come from several threads."""
    program = """
import threading
def work(n):
    for _ in range(200):
        t = torch.full((3,), float(n))
        assert echo(t).tolist() == [n] * 3
threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
for t in threads: t.start()
for t in threads: t.join()
print("done")
"""
    begin = "import torch, tvm_ffi\nfrom tvm_ffi.testing import echo\n"
    assert run_python(begin + program, TVM_FFI_CACHE_DIR=str(cache)) == "done\n"
