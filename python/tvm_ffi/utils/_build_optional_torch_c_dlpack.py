# SPDX-License-Identifier: Apache-2.0
"""Compile the torch add-on: the DLPack exchange API of `torch.Tensor` as a small library.

    python -m tvm_ffi.utils._build_optional_torch_c_dlpack --install

builds it for the torch of this environment, in the cache folder and under the name that `tvm_ffi`
looks for; from then on it is used. Without ``--install`` the name does not say for which build of
torch the library is, and the caller loads it. Run as a script too, when this package is not on
the path of the interpreter.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shlex
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

if __name__ == "__main__":
    os.environ["TVM_FFI_DISABLE_TORCH_C_DLPACK"] = "1"  # here it is built, not loaded
    if not __package__:
        sys.path[0] = str(Path(__file__).absolute().parents[2])

_SOURCE = Path(__file__).with_name("torch_c_dlpack_addon.cc")


def _release(torch: Any) -> tuple[int, int]:
    major, minor = torch.__version__.split(".")[:2]
    return int(major), int(minor)


def _stem(torch: Any, device: str) -> str:
    major, minor = _release(torch)
    return f"libtorch_c_dlpack_addon_torch{major}{minor}-{device}"


def _suffix() -> str:
    return ".dll" if sys.platform == "win32" else ".so"


def cache_folder() -> Path:
    """Return the folder in which built libraries are kept."""
    return Path(os.environ.get("TVM_FFI_CACHE_DIR") or "~/.cache/tvm-ffi").expanduser()


def installed_path(torch: Any, device: str) -> Path:
    """Return where `tvm_ffi` looks for the add-on of this torch, whether it is there or not.

    The name changes with everything that the library depends on: the build of torch, the
    interpreter, and the source of the add-on.
    """
    abi = int(torch.compiled_with_cxx11_abi())
    parts = [torch.__version__, f"cxx11abi={abi}", str(sysconfig.get_config_var("SOABI"))]
    digest = hashlib.sha256("|".join(parts).encode() + b"|" + _SOURCE.read_bytes())
    return cache_folder() / f"{_stem(torch, device)}-{digest.hexdigest()[:8]}{_suffix()}"


_DEVICE_FLAGS = {
    "cpu": [],
    "cuda": ["-DTVM_FFI_TORCH_WITH_CUDA"],
    "rocm": ["-DTVM_FFI_TORCH_WITH_ROCM"],
}
_DEVICE_LIBRARIES = {
    "cpu": [],
    "cuda": ["torch_cuda", "c10_cuda"],
    "rocm": ["torch_hip", "c10_hip"],
}


def _command(torch: Any, device: str, output: Path) -> list[str]:
    from tvm_ffi.cpp._toolchain import cxx
    from tvm_ffi.libinfo import find_dlpack_include_path

    home = Path(torch.__file__).resolve().parent
    include = home / "include"
    places = [include, include / "torch" / "csrc" / "api" / "include"]
    places.append(Path(sysconfig.get_path("include")))
    standard = "c++20" if _release(torch) >= (2, 13) else "c++17"
    command = [*cxx(), "-shared", "-fPIC", "-O3", "-fvisibility=hidden", f"-std={standard}"]
    command.append(f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}")
    command += [*_DEVICE_FLAGS[device], f"-I{find_dlpack_include_path()}"]
    for place in places:
        command += ["-isystem", str(place)]
    command += shlex.split(os.environ.get("TVM_FFI_JIT_EXTRA_CFLAGS", ""))
    command += [str(_SOURCE), "-o", str(output), f"-L{home / 'lib'}", "-Wl,-rpath,$ORIGIN"]
    libraries = ["c10", "torch", "torch_cpu", "torch_python", *_DEVICE_LIBRARIES[device]]
    command += [f"-l{name}" for name in libraries]
    return command + shlex.split(os.environ.get("TVM_FFI_JIT_EXTRA_LDFLAGS", ""))


def build(torch: Any, device: str, output: Path, build_dir: Path | None = None) -> None:
    """Build the library unless it is there. Processes that do so at the same time take turns.

    :raises RuntimeError: the compiler failed; the message has its output
    """
    from tvm_ffi.utils import FileLock

    if sys.platform == "win32":
        raise RuntimeError("The torch add-on cannot be built on Windows.")
    output.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{output}.lock"), tempfile.TemporaryDirectory() as scratch:
        if output.exists():
            return
        folder = build_dir or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        part = output.with_name(f"{output.name}.tmp")
        command = _command(torch, device, part)
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, errors="replace", check=False
        )
        if done.returncode != 0:
            raise RuntimeError(
                f"The compiler failed with status {done.returncode}: {shlex.join(command)}\n"
                f"{done.stdout}{done.stderr}"
            )
        part.replace(output)


def main() -> int:
    """Entry point; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tvm_ffi.utils._build_optional_torch_c_dlpack",
        description="Compile the DLPack exchange API of torch.Tensor.",
    )
    parser.add_argument("--install", action="store_true", help="build it where tvm_ffi looks")
    parser.add_argument("--build-dir", type=Path, help="where the compiler runs (temporary)")
    parser.add_argument("--output-dir", type=Path, help="folder of the library (the cache)")
    parser.add_argument("--build-with-cuda", action="store_true", help="with CUDA's streams")
    parser.add_argument("--build-with-rocm", action="store_true", help="with ROCm's streams")
    parser.add_argument("--libname", default="auto", help="file name of the library")
    asked = parser.parse_args()
    if asked.build_with_cuda and asked.build_with_rocm:
        raise ValueError("Cannot enable both CUDA and ROCm at the same time.")

    try:
        import torch  # type: ignore[import-not-found]
    except ModuleNotFoundError as error:
        raise RuntimeError(f"{error}; the extension is compiled for an installed torch") from None

    from tvm_ffi._optional_torch_c_dlpack import _torch_extension_device

    device = "cuda" if asked.build_with_cuda else "rocm" if asked.build_with_rocm else "cpu"
    if asked.install:
        device = _torch_extension_device(torch)
        output = installed_path(torch, device)
    else:
        name = asked.libname if asked.libname != "auto" else _stem(torch, device) + _suffix()
        output = (asked.output_dir or cache_folder()).absolute() / name
    build(torch, device, output, asked.build_dir and asked.build_dir.absolute())
    print(output)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (RuntimeError, FileNotFoundError) as error:
        sys.exit(f"{error}")
