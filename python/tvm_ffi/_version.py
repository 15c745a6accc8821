# SPDX-License-Identifier: Apache-2.0
"""Versions: of the interface, which clients compare with what they need, and of this package."""

from __future__ import annotations

__all__ = [
    "__commit_id__",
    "__tether_version__",
    "__version__",
    "__version_tuple__",
    "commit_id",
    "version",
    "version_tuple",
]

# As in tvm/ffi/c_api.h and TVMFFIGetVersion; three plain numbers, because clients split them.
__version__ = version = "0.1.15"
__version_tuple__ = version_tuple = (0, 1, 15)
# As in pyproject.toml.
__tether_version__ = "0.1.0"
__commit_id__ = commit_id = None
