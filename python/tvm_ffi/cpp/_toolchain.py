# SPDX-License-Identifier: Apache-2.0
"""Compilers: which ones, where they are, and what to say when one is missing."""

from __future__ import annotations

import functools
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

_HOW_TO_GET = {
    "C++": (
        "Install a C++ compiler (Debian and Ubuntu: apt install g++; Fedora: dnf install gcc-c++; "
        "conda: conda install -c conda-forge cxx-compiler; macOS: xcode-select --install) "
        "or set CXX to its path."
    ),
    "C": (
        "Install a C compiler (Debian and Ubuntu: apt install gcc; Fedora: dnf install gcc; "
        "conda: conda install -c conda-forge c-compiler; macOS: xcode-select --install) "
        "or set CC to its path."
    ),
    "nvcc": (
        "nvcc is part of the CUDA toolkit (https://developer.nvidia.com/cuda-downloads; "
        "conda: conda install -c nvidia cuda-nvcc); set CUDA_HOME to the folder with bin/nvcc."
    ),
    "hipcc": (
        "hipcc is part of ROCm (https://rocm.docs.amd.com); "
        "set ROCM_HOME to the folder with bin/hipcc."
    ),
    "binutils": "Install binutils (Debian and Ubuntu: apt install binutils).",
    "ninja": "Install it with: pip install ninja",
}


def missing(tool: str, kind: str) -> FileNotFoundError:
    """Return the error for a tool that is not there."""
    return FileNotFoundError(f"{tool} was not found. {_HOW_TO_GET[kind]}")


def found(tool: str, kind: str) -> str:
    """Return the path of a tool, or raise an error that says how to get it."""
    path = shutil.which(tool)
    if path is None:
        raise missing(tool, kind)
    return str(Path(path).absolute())  # commands run in the build folder


def _from_environment(variable: str, default: str, kind: str) -> list[str]:
    text = os.environ.get(variable) or default
    try:
        words = shlex.split(text) or [default]
    except ValueError as error:
        raise ValueError(f"{variable}={text!r} cannot be split into words: {error}") from None
    return [found(words[0], kind), *words[1:]]


def cxx() -> list[str]:
    """Return the command of the C++ compiler: ``$CXX`` or ``c++``."""
    return _from_environment("CXX", "c++", "C++")


def cc() -> list[str]:
    """Return the command of the C compiler: ``$CC`` or ``cc``."""
    return _from_environment("CC", "cc", "C")


def identity(command: list[str]) -> list[object]:
    """Return what changes when the compiler is another one: the file that is run."""
    path = Path(command[0]).resolve()
    stat = path.stat()
    return [str(path), stat.st_size, stat.st_mtime_ns, *command[1:]]


@functools.cache
def _described(command: tuple[str, ...], _identity: tuple[object, ...]) -> tuple[str, int]:
    text = _output_of(*command, "--version")
    if "clang" in text:
        return "clang", 0
    if "Free Software Foundation" not in text:
        return "", 0
    version = re.search(r" (\d+)\.\d+\.\d+", text.splitlines()[0])
    return "gcc", int(version[1]) if version else 0


def style_of(command: list[str]) -> tuple[str, int]:
    """Return "gcc" and its major version, "clang" and 0, or "" and 0 for another compiler."""
    return _described(tuple(command), tuple(identity(command)))


def workarounds(command: list[str]) -> list[str]:
    """Return flags without which a compiler of C++ is known to compile our headers wrongly.

    g++ 12 with this pass drops a store when an ``Any`` is moved into an argument.
    """
    style, major = style_of(command)
    return ["-fno-ipa-modref"] if style == "gcc" and major in (11, 12) else []


# ---- GPUs ---------------------------------------------------------------------------------------


def _in_any(tool: str, *variables: str) -> str | None:
    path = shutil.which(tool)
    if path is not None:
        return path
    for variable in variables:
        home = os.environ.get(variable)
        if home:
            path = shutil.which(tool, path=str(Path(home) / "bin"))
            if path is not None:
                return path
    return None


@functools.cache
def _detected_backend() -> str:
    named = os.environ.get("TVM_FFI_GPU_BACKEND", "").lower()
    if named in ("cuda", "hip"):
        return named
    try:
        import torch  # type: ignore[import-not-found]
    except ImportError:
        pass
    else:
        if getattr(torch.version, "hip", None) is not None:
            return "hip"
        if getattr(torch.version, "cuda", None) is not None:
            return "cuda"
    has_hipcc = _in_any("hipcc", "ROCM_HOME", "ROCM_PATH") is not None
    has_nvcc = _in_any("nvcc", "CUDA_HOME", "CUDA_PATH") is not None
    return "hip" if has_hipcc and not has_nvcc else "cuda"


def backend_of(backend: str | None) -> str:
    """Return "cuda" or "hip": what the user asked for, or what this machine has."""
    if backend is None:
        return _detected_backend()
    if backend not in ("cuda", "hip"):
        raise ValueError(f"Invalid backend: {backend}. Supported backends are 'cuda' and 'hip'.")
    return backend


def cuda_home() -> str:
    """Return the folder of the CUDA toolkit."""
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(variable):
            return os.environ[variable]
    nvcc = shutil.which("nvcc")
    if nvcc is not None:
        return str(Path(nvcc).parent.parent)
    if Path("/usr/local/cuda").is_dir():
        return "/usr/local/cuda"
    raise RuntimeError(
        "Could not find CUDA installation. Please set CUDA_HOME environment variable. "
        + _HOW_TO_GET["nvcc"]
    )


def rocm_home() -> str:
    """Return the folder of ROCm."""
    for variable in ("ROCM_HOME", "ROCM_PATH"):
        if os.environ.get(variable):
            return os.environ[variable]
    hipcc = shutil.which("hipcc")
    if hipcc is not None:
        home = Path(hipcc).resolve().parent.parent
        return str(home.parent if home.name == "hip" else home)
    if Path("/opt/rocm").is_dir():
        return "/opt/rocm"
    raise RuntimeError(
        "Could not find ROCm installation. Please set ROCM_HOME environment variable. "
        + _HOW_TO_GET["hipcc"]
    )


def _output_of(*command: str) -> str:
    """Return what a command prints, or nothing if it cannot be run."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", check=True, timeout=60
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


def _gencode(architecture: str) -> str:
    if architecture.count(".") != 1:
        raise ValueError(f"Invalid CUDA architecture: {architecture}")
    number = architecture.replace(".", "")
    return f"-gencode=arch=compute_{number},code=sm_{number}"


def cuda_targets() -> list[str]:
    """Return the flags of nvcc that name the GPUs to compile for."""
    named = os.environ.get("TVM_FFI_CUDA_ARCH_LIST", "").split()
    if named:
        return [_gencode(architecture) for architecture in named]
    smi = "nvidia-smi"
    lines = _output_of(smi, "--query-gpu=compute_cap", "--format=csv,noheader").splitlines()
    if lines and lines[0].strip().replace(".", "", 1).isdigit():
        return [_gencode(lines[0].strip())]
    names = _output_of(smi, "--query-gpu=name", "--format=csv,noheader").splitlines()
    for name, architecture in (("A100", "8.0"), ("A10", "8.6")):
        if names and name in names[0]:
            return [_gencode(architecture)]
    raise RuntimeError(
        "Could not detect CUDA compute_cap automatically. "
        "Please set TVM_FFI_CUDA_ARCH_LIST environment variable."
    )


def rocm_targets() -> list[str]:
    """Return the flags of hipcc that name the GPUs to compile for."""
    named = os.environ.get("TVM_FFI_ROCM_ARCH_LIST", "").split()
    if not named:
        named = _output_of("rocm_agent_enumerator").split()
    if not named:
        named = [word for word in _output_of("rocminfo").split() if word.startswith("gfx")]
    named = [name for name in dict.fromkeys(named) if name != "gfx000"]
    if not named:
        raise RuntimeError(
            "Could not detect ROCm GPU architecture automatically. "
            "Please set TVM_FFI_ROCM_ARCH_LIST environment variable."
        )
    return [f"--offload-arch={name}" for name in named]


def gpu_compiler(backend: str) -> list[str]:
    """Return the command of nvcc or hipcc."""
    home, tool = (cuda_home(), "nvcc") if backend == "cuda" else (rocm_home(), "hipcc")
    path = Path(home) / "bin" / tool
    if not os.access(path, os.X_OK):
        raise missing(str(path), tool)
    return [str(path)]
