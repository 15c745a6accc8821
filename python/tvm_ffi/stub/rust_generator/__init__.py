# SPDX-License-Identifier: Apache-2.0
"""Stubs in Rust."""

from .generator import RustGenerator

__all__ = ["RustGenerator"]
