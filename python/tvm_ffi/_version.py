# SPDX-License-Identifier: Apache-2.0
"""Versions: of the interface, which clients compare with what they need, and of this package."""

# As in tvm/ffi/c_api.h and TVMFFIGetVersion; three plain numbers, because clients split them.
__version__ = "0.1.14"
__version_tuple__ = (0, 1, 14)
# As in pyproject.toml.
__tether_version__ = "0.1.0"
