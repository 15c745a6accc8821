# SPDX-License-Identifier: Apache-2.0
"""Helpers that have nothing to do with objects.

>>> import os, tempfile
>>> from tvm_ffi.utils import FileLock, kwargs_wrapper
>>> with FileLock(os.path.join(tempfile.mkdtemp(), "lock")) as lock:
...     lock.acquire()
False
>>> kwargs_wrapper.make_kwargs_wrapper(max, ["a", "b"], (0,))(b=3, a=2)
3
"""

from .lockfile import FileLock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import kwargs_wrapper as kwargs_wrapper

__all__ = ["FileLock"]


def __getattr__(name: str) -> object:
    """Load `kwargs_wrapper` on first use: `import tvm_ffi` needs only the lock."""
    if name == "kwargs_wrapper":
        from importlib import import_module

        return import_module(f"{__name__}.kwargs_wrapper")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
