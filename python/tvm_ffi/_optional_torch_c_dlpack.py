# SPDX-License-Identifier: Apache-2.0
"""The C exchange API for releases of torch that do not have it yet.

Where torch has none and no extension provides it, tensors go through
``torch.utils.dlpack`` instead, which is slower and otherwise the same.
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


def load_torch_c_dlpack_extension() -> Any:
    """Give `torch.Tensor` an exchange API if an installed extension has one.

    Returns the extension's module, or None if there is nothing to do or no extension.
    """
    torch = _torch()
    if torch is None or _check_and_update_dlpack_c_exchange_api(torch.Tensor):
        return None
    try:
        import torch_c_dlpack_ext  # type: ignore[import-not-found]
    except ImportError:
        return None
    except Exception as error:
        warnings.warn(f"torch_c_dlpack_ext could not be loaded: {error}", stacklevel=2)
        return None
    _check_and_update_dlpack_c_exchange_api(torch.Tensor)
    return torch_c_dlpack_ext


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


def _prepare_loaded_torch() -> None:
    """Do both if torch is imported; otherwise this happens when the first tensor is passed."""
    if "torch" not in sys.modules or os.environ.get("TVM_FFI_DISABLE_TORCH_C_DLPACK", "0") != "0":
        return
    load_torch_c_dlpack_extension()
    patch_torch_cuda_stream_protocol()
