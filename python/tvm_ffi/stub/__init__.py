# SPDX-License-Identifier: Apache-2.0
"""``tvm-ffi-stubgen``: keep type hints of C++ classes and functions up to date.

Marked regions of Python files (or Rust files) are filled in from what is registered. A run has
three parts: `file_utils` splits files at the markers, `lib_state` reads the registry, and a
generator (`python_generator`, `rust_generator`) writes the text of each region. `cli` puts them
together.
"""
