# SPDX-License-Identifier: Apache-2.0
"""Stubs in Python."""

from .generator import PythonGenerator

__all__ = ["PythonGenerator"]
