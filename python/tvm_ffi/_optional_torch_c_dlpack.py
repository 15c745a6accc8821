# SPDX-License-Identifier: Apache-2.0
"""The C exchange API of torch: a faster one than its own, and one for releases without it.

Which one is used:

- a torch that has one: our add-on (``torch_c_dlpack_addon.cc``) if it was built for this torch,
  else torch's own;
- one that has none: that of the package ``torch_c_dlpack_ext``, else our add-on, which is built
  when the first tensor is passed. That takes a compiler and some ten seconds, once.

Where none can be had, tensors go through ``torch.utils.dlpack`` instead, which is slower and
otherwise the same.
"""

from __future__ import annotations

import os
import sys
import warnings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_API = "__dlpack_c_exchange_api__"
_CAPSULE = b"dlpack_exchange_api"  # capsules keep only the address of their name
_OLD_API = "__c_dlpack_exchange_api__"  # the name, for an int, before there was a standard


def _torch_extension_device(torch: Any) -> str:
    """Return the kind of device that an extension of this torch is built for."""
    if not torch.cuda.is_available():
        return "cpu"
    if torch.version.cuda is not None:
        return "cuda"
    return "rocm" if torch.version.hip is not None else "cuda"


def _as_capsule(address: int) -> Any:
    import ctypes

    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(address, _CAPSULE, None)


def _check_and_update_dlpack_c_exchange_api(cls: Any) -> bool:
    """Tell whether a tensor class has an exchange API; one of the old name gets the new one too.

    >>> from tvm_ffi._optional_torch_c_dlpack import _check_and_update_dlpack_c_exchange_api
    >>> _check_and_update_dlpack_c_exchange_api(int)
    False
    """
    if hasattr(cls, _API):
        return True
    api = getattr(cls, _OLD_API, None)
    if api is None:
        return False
    setattr(cls, _API, _as_capsule(api) if isinstance(api, int) else api)
    return True


def _load_addon(torch: Any, path: Any) -> Any:
    """Load a library that was built, and give its API to `torch.Tensor`."""
    import ctypes

    library = ctypes.CDLL(str(path))
    library.TorchDLPackExchangeAPIPtr.restype = ctypes.c_uint64
    setattr(torch.Tensor, _API, _as_capsule(library.TorchDLPackExchangeAPIPtr()))
    return library


def _run_build(path: Any, device: str) -> None:
    """Build the add-on in a process of its own: it starts without anything that is loaded here."""
    import subprocess
    from pathlib import Path

    script = Path(__file__).with_name("utils") / "_build_optional_torch_c_dlpack.py"
    command = [sys.executable, str(script), "--output-dir", str(path.parent)]
    command += ["--libname", path.name]
    if device != "cpu":
        command.append(f"--build-with-{device}")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())


def load_torch_c_dlpack_extension() -> Any:
    """Give `torch.Tensor` the fastest exchange API that there is.

    Returns the module or library that has it, or None if torch keeps its own or there is none. A
    failure is a warning.
    """
    torch = _torch()
    if torch is None:
        return None
    try:
        return _load_best(torch, _check_and_update_dlpack_c_exchange_api(torch.Tensor))
    except Exception as error:
        warnings.warn(
            f"The fast exchange of tensors with torch is not available: {error}\n"
            "Set TVM_FFI_DISABLE_TORCH_C_DLPACK=1 to go without it.",
            stacklevel=2,
        )
        return None


def _load_best(torch: Any, has_own: bool) -> Any:
    if not has_own:
        try:
            import torch_c_dlpack_ext  # type: ignore[import-not-found]
        except ImportError:
            pass
        else:
            _check_and_update_dlpack_c_exchange_api(torch.Tensor)
            return torch_c_dlpack_ext
    from .utils._build_optional_torch_c_dlpack import installed_path

    device = _torch_extension_device(torch)
    path = installed_path(torch, device)
    if not path.exists():
        if has_own:
            return None
        _run_build(path, device)
    return _load_addon(torch, path)


def patch_torch_cuda_stream_protocol() -> Any:
    """Let the streams of a torch without ``__cuda_stream__`` be passed as arguments."""
    torch = _torch()
    if torch is None or not torch.cuda.is_available():
        return None
    stream_class = torch.cuda.Stream
    if not hasattr(stream_class, "__cuda_stream__"):
        stream_class.__cuda_stream__ = lambda self: (0, self.cuda_stream)
    return stream_class


def _torch() -> Any:
    try:
        import torch  # type: ignore[import-not-found]
    except ImportError:
        return None
    return torch


def _prepare_loaded_torch() -> int | None:
    """Do both, for the first tensor, unless this is turned off.

    Returns the address of the add-on's exchange API if that is in use now.
    """
    if "torch" not in sys.modules or os.environ.get("TVM_FFI_DISABLE_TORCH_C_DLPACK", "0") != "0":
        return None
    if os.environ.get("TVM_FFI_SKIP_DLPACK_C_EXCHANGE_API") == "1":
        return None  # nothing would use it
    loaded = load_torch_c_dlpack_extension()
    patch_torch_cuda_stream_protocol()
    address = getattr(loaded, "TorchDLPackExchangeAPIPtr", None)
    return address() if address is not None else None
