# SPDX-License-Identifier: Apache-2.0
"""Helpers that have nothing to do with objects.

>>> import os, tempfile
>>> from tvm_ffi.utils import FileLock
>>> with FileLock(os.path.join(tempfile.mkdtemp(), "lock")) as lock:
...     lock.acquire()
False
"""

from .lockfile import FileLock

__all__ = ["FileLock"]
