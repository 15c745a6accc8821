# SPDX-License-Identifier: Apache-2.0
"""Which static and thread-local variables of loaded libraries hold the address of an object.

The loader says where the variables of each library are, and those of the calling thread. That
memory is read through /proc/self/mem: what is not there is an error of the read, not a crash.
Nothing else is searched: no heap, no stack, not the variables of other threads.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
from array import array
from functools import cache
from pathlib import Path
from typing import NamedTuple

from .. import core, libinfo

_LOADED, _THREAD_LOCAL = 1, 7  # types of program headers
_WRITABLE = 2
_OBJECT, _TLS_OBJECT = 1, 6  # types of symbols
_SYMBOL_TABLES = (2, 11)  # types of sections: all symbols, and those for linking
_CHUNK = 1 << 24


class _Program(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("offset", ctypes.c_uint64),
        ("vaddr", ctypes.c_uint64),
        ("paddr", ctypes.c_uint64),
        ("filesz", ctypes.c_uint64),
        ("memsz", ctypes.c_uint64),
        ("align", ctypes.c_uint64),
    )


class _Info(ctypes.Structure):
    _fields_ = (
        ("base", ctypes.c_uint64),
        ("name", ctypes.c_char_p),
        ("programs", ctypes.POINTER(_Program)),
        ("count", ctypes.c_uint16),
        ("adds", ctypes.c_uint64),
        ("subs", ctypes.c_uint64),
        ("tls_module", ctypes.c_size_t),
        ("tls_data", ctypes.c_void_p),
    )


_Callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Info), ctypes.c_size_t, ctypes.c_void_p)


class Region(NamedTuple):
    """Variables of a library."""

    library: str
    begin: int
    size: int
    base: int  # what the values of symbols count from
    is_thread_local: bool


class Variable(NamedTuple):
    """A variable that has the address of an object."""

    name: str  # empty if the library does not tell
    library: str
    is_thread_local: bool

    def __str__(self) -> str:
        kind = "thread-local variable" if self.is_thread_local else "static variable"
        return f"{kind} {self.name}" if self.name else f"a {kind}"


@cache
def _loader() -> ctypes.PyDLL:
    # Keeps the GIL in calls: another thread could hold it and wait for the lock of the loader.
    return ctypes.PyDLL(None)


@cache
def _runtime() -> ctypes.PyDLL:
    return ctypes.PyDLL(libinfo.find_libtvm_ffi())


def regions() -> list[Region]:
    """List where the variables of the loaded libraries are; none where the loader does not tell."""
    found: list[Region] = []

    def add(info: ctypes._Pointer[_Info], _size: int, _data: int) -> int:
        library = info.contents
        name = os.fsdecode(library.name or b"/proc/self/exe")
        for i in range(library.count):
            program = library.programs[i]
            if program.type == _LOADED and program.flags & _WRITABLE:
                begin = library.base + program.vaddr
                found.append(Region(name, begin, program.memsz, library.base, False))
            elif program.type == _THREAD_LOCAL and library.tls_data:
                begin = library.tls_data
                found.append(Region(name, begin, program.memsz, begin, True))
        return 0

    iterate = getattr(_loader(), "dl_iterate_phdr", None)
    if iterate is None:
        return []
    iterate(_Callback(add), None)
    # What the runtime itself keeps is not a reference, or is known already.
    own = {Path(path).resolve() for path in (libinfo.find_libtvm_ffi(), core.__file__)}
    return [region for region in found if Path(region.library).resolve() not in own]


def variables(wanted: set[int]) -> dict[int, list[Variable]]:
    """Find the variables that hold one of these addresses, by address."""
    found: dict[int, list[Variable]] = {}
    try:
        memory = os.open("/proc/self/mem", os.O_RDONLY)
    except OSError:
        return found
    try:
        for region in regions():
            for place, address in _search(memory, region, wanted):
                name = _name(region, place)
                library = Path(region.library).resolve().name
                variable = Variable(name, library, region.is_thread_local)
                found.setdefault(address, []).append(variable)
    finally:
        os.close(memory)
    return found


def _search(memory: int, region: Region, wanted: set[int]) -> list[tuple[int, int]]:
    found = []
    at, end = (region.begin + 7) & ~7, region.begin + region.size
    while at + 8 <= end:
        try:
            data = os.pread(memory, min(_CHUNK, end - at) & ~7, at)
        except OSError:
            break
        words = array("Q", data[: len(data) & ~7])
        if not words:
            break
        if not wanted.isdisjoint(words):
            found += [(at + 8 * i, word) for i, word in enumerate(words) if word in wanted]
        at += 8 * len(words)
    return found


def _name(region: Region, place: int) -> str:
    """Name the variable at a place, if the symbols of the library do."""
    try:
        with (
            Path(region.library).open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
        ):
            return _demangled(_symbol(data, place - region.base, region.is_thread_local))
    except (OSError, ValueError, struct.error, IndexError):
        return ""  # no file, or not one that we can read


def _symbol(data: mmap.mmap, value: int, is_thread_local: bool) -> bytes:
    if data[:6] != b"\x7fELF\x02\x01":
        return b""
    kind = _TLS_OBJECT if is_thread_local else _OBJECT
    (offset,) = struct.unpack_from("<Q", data, 0x28)
    size, count = struct.unpack_from("<HH", data, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, offset + i * size) for i in range(count)]
    for _, section, _, _, start, length, link, _, _, _ in sections:
        if section not in _SYMBOL_TABLES:
            continue
        for name, info, _, _, begin, extent in struct.iter_unpack(
            "<IBBHQQ", data[start : start + length]
        ):
            if info & 15 == kind and begin <= value < begin + extent:
                text = sections[link][4] + name
                return data[text : data.find(b"\0", text)]
    return b""


def _demangled(symbol: bytes) -> str:
    # Found through the C++ library that the runtime is linked with.
    demangle = getattr(_runtime(), "__cxa_demangle", None)
    if demangle is None:
        return os.fsdecode(symbol)
    demangle.restype = ctypes.c_void_p
    text = demangle(symbol, None, None, None)
    if not text:
        return os.fsdecode(symbol)
    try:
        return os.fsdecode(ctypes.string_at(text))
    finally:
        _loader().free(ctypes.c_void_p(text))
