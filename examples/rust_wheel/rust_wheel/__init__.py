# SPDX-License-Identifier: Apache-2.0
"""Functions and a class written in Rust."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tvm_ffi

_library = tvm_ffi.load_module(Path(__file__).parent / "librust_wheel.so")
count_words = _library.count_words
scale = _library.scale
count_words("")  # registers the type


@tvm_ffi.register_object("rust_wheel.Counter")
class Counter(tvm_ffi.Object):
    """How often each word occurs."""

    words: int
    counts: Any

    def most_common(self) -> str:
        """The word that occurs most often."""
        return str(max(self.counts.items(), key=lambda item: item[1])[0])
