# SPDX-License-Identifier: Apache-2.0
"""One C++ function for the arrays of every library that speaks DLPack, without copies."""

import importlib
import sys

import numpy
import tvm_ffi
import tvm_ffi.cpp

SOURCE = """
namespace ffi = tvm::ffi;

ffi::Array<ffi::Any> describe(ffi::TensorView x) {
  int device_type = x.device().device_type;
  return {ffi::Shape(x.shape()), ffi::DLDataTypeToString(x.dtype()), device_type};
}
"""


def check_numpy(describe: tvm_ffi.Function) -> None:
    x = numpy.zeros((2, 3), dtype="int16")
    assert list(describe(x)) == [(2, 3), "int16", 1]
    # The other way: a tensor of the runtime as an array that shares its memory.
    tensor = tvm_ffi.from_dlpack(x)
    numpy.from_dlpack(tensor)[0, 0] = 7
    assert x[0, 0] == 7


def check_torch(describe: tvm_ffi.Function) -> None:
    import torch

    x = torch.zeros(2, 3, dtype=torch.bfloat16)
    assert list(describe(x)) == [(2, 3), "bfloat16", 1]
    tensor = tvm_ffi.from_dlpack(x)
    assert torch.from_dlpack(tensor).data_ptr() == x.data_ptr()


def check_jax(describe: tvm_ffi.Function) -> None:
    import jax

    x = jax.numpy.zeros((2, 3), dtype="float32")
    shape, dtype, _ = describe(x)
    assert (tuple(shape), dtype) == ((2, 3), "float32")
    y = jax.numpy.from_dlpack(tvm_ffi.from_dlpack(x))
    assert y.shape == (2, 3)


def check_cupy(describe: tvm_ffi.Function) -> None:
    import cupy

    if cupy.cuda.runtime.getDeviceCount() == 0:
        raise ImportError("there is no GPU")
    x = cupy.zeros((2, 3), dtype="float32")
    assert list(describe(x)) == [(2, 3), "float32", 2]
    assert cupy.from_dlpack(tvm_ffi.from_dlpack(x)).data.ptr == x.data.ptr


def main() -> None:
    module = tvm_ffi.cpp.load_inline("describe", cpp_sources=SOURCE, functions=["describe"])
    for name in ("numpy", "torch", "jax", "cupy"):
        try:
            importlib.import_module(name)
            getattr(sys.modules[__name__], f"check_{name}")(module.describe)
        except ImportError as error:
            print(f"{name}: skipped: {error}")
        except Exception as error:
            if name != "cupy" or "cuda" not in type(error).__name__.lower():
                raise
            print(f"{name}: skipped: {error}")  # no driver, or no device
        else:
            print(f"{name}: good")


if __name__ == "__main__":
    main()
