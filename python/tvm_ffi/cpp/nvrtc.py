# SPDX-License-Identifier: Apache-2.0
"""Compile CUDA sources in memory, with NVRTC. Needs the package ``cuda-python``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["nvrtc_compile"]


def _bindings() -> tuple[Any, Any]:
    try:
        from cuda.bindings import driver, nvrtc  # type: ignore[import-not-found]
    except ImportError as error:
        raise RuntimeError(
            "CUDA bindings not available. Install with: pip install cuda-python"
        ) from error
    return driver, nvrtc


def _checked(result: tuple[Any, ...]) -> Any:
    """Return the values of a call of the bindings, whose first one is the status."""
    status, *values = result
    if int(status) != 0:
        raise RuntimeError(str(status))
    return values[0] if len(values) == 1 else tuple(values)


def _current_architecture(driver: Any) -> str:
    """Return ``sm_XY`` of the current device, or of device 0 if no context is current."""
    try:
        _checked(driver.cuInit(0))
        status, device = driver.cuCtxGetDevice()
        if int(status) != 0:
            device = _checked(driver.cuDeviceGet(0))
        names = driver.CUdevice_attribute
        major, minor = (
            _checked(driver.cuDeviceGetAttribute(attribute, device))
            for attribute in (
                names.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                names.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
            )
        )
    except Exception as error:
        raise RuntimeError(
            f"Failed to auto-detect GPU architecture: {error}. "
            "Please specify 'arch' parameter explicitly."
        ) from error
    return f"sm_{major}{minor}"


def nvrtc_compile(
    source: str,
    *,
    name: str = "kernel.cu",
    arch: str | None = None,
    extra_opts: Sequence[str] | None = None,
) -> bytes:
    """Compile `source` and return the CUBIN, for `arch` (``"sm_90"``) or the current device."""
    driver, nvrtc = _bindings()
    if arch is None:
        arch = _current_architecture(driver)
    options = [f"--gpu-architecture={arch}", "-default-device", *(extra_opts or ())]
    program = _checked(nvrtc.nvrtcCreateProgram(source.encode(), name.encode(), 0, [], []))
    try:
        status = nvrtc.nvrtcCompileProgram(program, len(options), [o.encode() for o in options])
        if int(status[0]) != 0:
            log = b" " * _checked(nvrtc.nvrtcGetProgramLogSize(program))
            nvrtc.nvrtcGetProgramLog(program, log)
            text = log.rstrip(b"\0").decode(errors="replace")
            raise RuntimeError(f"NVRTC compilation failed:\n{text}")
        cubin = b" " * _checked(nvrtc.nvrtcGetCUBINSize(program))
        _checked(nvrtc.nvrtcGetCUBIN(program, cubin))
        return cubin
    finally:
        nvrtc.nvrtcDestroyProgram(program)
