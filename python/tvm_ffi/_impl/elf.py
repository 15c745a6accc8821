# SPDX-License-Identifier: Apache-2.0
"""The symbols that a shared library exports, read from its file."""

from __future__ import annotations

import struct
from pathlib import Path

_DYNAMIC_SYMBOLS = 11  # the type of the section
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")


def exported_symbols(path: str) -> list[str]:
    """Return the names of what a library defines; none for files of another format.

    >>> from tvm_ffi import libinfo
    >>> "TVMFFIFunctionCall" in exported_symbols(libinfo.find_libtvm_ffi())
    True
    """
    data = Path(path).read_bytes()
    if data[:6] != b"\x7fELF\x02\x01":  # 64 bits, little-endian
        return []
    try:
        return _symbols(data)
    except (struct.error, ValueError, IndexError):  # cut off
        return []


def _symbols(data: bytes) -> list[str]:
    (offset,) = struct.unpack_from("<Q", data, 0x28)
    size, count = struct.unpack_from("<HH", data, 0x3A)
    sections = [_SECTION.unpack_from(data, offset + i * size) for i in range(count)]
    found = []
    for _, kind, _, _, start, length, link, _, _, _ in sections:
        if kind != _DYNAMIC_SYMBOLS:
            continue
        texts = sections[link][4]
        for name, _, _, defined_in, _, _ in _SYMBOL.iter_unpack(data[start : start + length]):
            if defined_in != 0:
                begin = texts + name
                found.append(data[begin : data.index(b"\0", begin)].decode(errors="replace"))
    return found
