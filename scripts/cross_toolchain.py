# SPDX-License-Identifier: Apache-2.0
"""A compiler for manylinux_2_28 on another or the same architecture, made of parts.

    python cross_toolchain.py x86_64|aarch64 ROOT FOLDER

ROOT holds Debian's libstdc++ and libgcc packages of that architecture (scripts/debian_root.sh).
FOLDER gets `bin/cc`, `bin/c++` and `toolchain.cmake`. Runs in the environment that has `ziglang`.

zig brings clang, the headers and symbols of any glibc, and a linker. It would link its own libc++
and unwinder, but a process has one unwinder, that of libgcc_s: glibc uses it to end threads, and
exceptions of clients pass through it. So the C++ library is libstdc++, as in every other build:

- what libstdc++.so.6 of the target system has (up to GLIBCXX_3.4.25) is linked dynamically, through
  an empty library that has these symbols;
- what Debian's newer headers need beyond that comes from libstdc++.a, and is not exported.

The order of the two matters and zig changes it, so its linker is called directly (LINK below).
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import ziglang  # type: ignore[import-not-found]
from elftools.elf.elffile import ELFFile  # type: ignore[import-not-found]

GLIBC = "2.28"
# The newest versions that manylinux_2_28 has.
LIMITS = {"GLIBCXX": (3, 4, 25), "CXXABI": (1, 3, 11)}
ZIG = Path(ziglang.__file__).resolve().parent / "zig"

# What Debian's archives expect of a newer glibc than the target has.
COMPAT = """
#include <sys/stat.h>

// False is always right: atomic operations are used where plain ones might do.
__attribute__((visibility("hidden"))) char __libc_single_threaded = 0;

// Functions since glibc 2.33. Before, they were inline in the header and called these.
extern int __fxstat(int, int, struct stat*);
extern int __xstat(int, const char*, struct stat*);
extern int __lxstat(int, const char*, struct stat*);
#ifdef __x86_64__
#define VERSION 1
#else
#define VERSION 0
#endif
#define HIDDEN(name, asm_name) __attribute__((visibility("hidden"))) name __asm__(asm_name);
int HIDDEN(tether_fstat(int fd, struct stat* out), "fstat")
int HIDDEN(tether_stat(const char* path, struct stat* out), "stat")
int HIDDEN(tether_lstat(const char* path, struct stat* out), "lstat")
int tether_fstat(int fd, struct stat* out) { return __fxstat(VERSION, fd, out); }
int tether_stat(const char* path, struct stat* out) { return __xstat(VERSION, path, out); }
int tether_lstat(const char* path, struct stat* out) { return __lxstat(VERSION, path, out); }
"""

SINGLE_THREADED = """
#pragma once
#ifdef __cplusplus
extern "C" __attribute__((visibility("hidden"))) char __libc_single_threaded;
#endif
"""


def write(path: Path, text: str, mode: int = 0o644) -> None:
    """Write a file if that changes it, so that nothing is compiled again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
    path.chmod(mode)


def run(*command: object) -> None:
    """Run a command that must succeed."""
    subprocess.run([str(part) for part in command], check=True)


def is_old(version: str) -> bool:
    """Tell whether the target system has a symbol version of libstdc++."""
    name, _, number = version.partition("_")
    parts = tuple(int(part) for part in number.split(".")) if number[:1].isdigit() else (99,)
    return name in LIMITS and parts <= LIMITS[name]


def exported(library: Path) -> dict[str, list[tuple[str, str, int]]]:
    """Return the (name, type, size) of the symbols of each version, defaults only."""
    found: dict[str, list[tuple[str, str, int]]] = {}
    with library.open("rb") as file:
        elf = ELFFile(file)
        symbols = elf.get_section_by_name(".dynsym")
        versions = elf.get_section_by_name(".gnu.version")
        definitions = elf.get_section_by_name(".gnu.version_d")
        names = {
            entry["vd_ndx"]: next(iter(auxiliaries)).name
            for entry, auxiliaries in definitions.iter_versions()
        }
        for index, symbol in enumerate(symbols.iter_symbols()):
            if symbol["st_shndx"] == "SHN_UNDEF" or not symbol.name:
                continue
            version = versions.get_symbol(index)["ndx"]
            # With bit 15 set it is not the default. Each version also has a symbol of its own name.
            if version in names and symbol.name != names[version]:
                kind = symbol["st_info"]["type"]
                found.setdefault(names[version], []).append((symbol.name, kind, symbol["st_size"]))
    return found


def write_stub(library: Path, source: Path, script: Path) -> None:
    """Write the assembly and linker script of a library with the old symbols of another."""
    kinds = {"STT_OBJECT": "@object", "STT_TLS": "@tls_object"}
    lines, nodes = [], []
    for version, symbols in sorted(exported(library).items()):
        if not is_old(version):
            continue
        nodes.append(f"{version} {{ global: {' '.join(f'{name};' for name, _, _ in symbols)} }};")
        for name, kind, size in symbols:
            section = '.section .tdata,"awT",@progbits' if kind == "STT_TLS" else ".data"
            lines += [section, f".globl {name}", f".type {name}, {kinds.get(kind, '@function')}"]
            lines += [f"{name}: .zero 8", f".size {name}, {size}"]
    write(source, "\n".join(lines) + "\n")
    write(script, "\n".join(nodes) + "\n")


LINK = """
# What a compiler driver does to link: start files, what is for the linker, libraries.
import os, subprocess, sys, tempfile

LIB = {libraries!r}
scratch = tempfile.mkdtemp()
arguments, sources, options, shared = [], [], [], "-shared" in sys.argv
words = iter(sys.argv[1:])
for word in words:
    if word in ("-o", "-L", "-l", "-z"):
        arguments += [word, next(words)]
    elif word.startswith("-Wl,"):
        arguments += word[4:].split(",")
    elif word in ("-lm", "-lpthread", "-ldl", "-lrt", "-lc"):
        pass  # always there, below
    elif word.endswith((".c", ".cc", ".cpp")):
        target = os.path.join(scratch, str(len(sources)) + ".o")
        sources.append([word, "-o", target])
        arguments.append(target)
    elif word[:2] in ("-L", "-l") or not word.startswith("-"):
        arguments.append(word)
    elif word not in ("-shared", "-pthread"):
        options.append(word)
for source in sources:
    name = "cc" if source[0].endswith(".c") else "c++"
    compiler = os.path.join(os.path.dirname(__file__), "bin", name)
    subprocess.run([compiler, *options, "-c", *source], check=True)
files = lambda *names: [os.path.join(LIB, name) for name in names]
start = ["-shared"] if shared else ["-pie", "-dynamic-linker", {loader!r}] + files("Scrt1.o")
command = [
    {zig!r}, "ld.lld", "-m", {emulation!r}, "--hash-style=gnu", "--eh-frame-hdr", "--build-id=sha1",
    "-z", "relro", "-z", "noexecstack", "--allow-shlib-undefined", *start,
    *files("crti.o", "crtbeginS.o"), "-L" + LIB, *arguments,
    *files("compat.o", "libstdc++.so.6", "libgcc_s.so.1", "libstdc++.a"),
    "--as-needed", *files({glibc}), "--no-as-needed",
    *files("libc_nonshared.a", "libgcc.a", "crtendS.o", "crtn.o"),
]
status = subprocess.run(command).returncode
for source in sources:
    os.remove(source[-1])
os.rmdir(scratch)
sys.exit(status)
"""

DRIVER = """#!/bin/sh
# zig {release}
case " $* " in *' -emit-pch '*)
  # Told to compile, zig takes a precompiled header for an object; without -c it just makes one.
  for word; do
    shift
    case $word in -c) continue ;; -emit-pch) word=-fno-pch-timestamp ;; esac
    set -- "$@" "$word"
  done
  exec {zig} {compile} "$@" ;;
esac
for word; do
  case $word in -c | -E | -S | -M | -MM | --version | -v | -dumpmachine | -print-*) \
exec {zig} {compile} "$@" ;; esac
done
exec {python} -I {link} "$@"
"""


def target_options(architecture: str) -> list[str]:
    """Return the options that make zig compile for the target."""
    # Without optimisation zig adds checks of its own.
    return ["-target", f"{architecture}-linux-gnu.{GLIBC}", "-fno-sanitize=undefined"]


def copy(source: Path, target: Path) -> None:
    """Copy a file."""
    target.write_bytes(source.read_bytes())


def glibc_libraries(architecture: str, scratch: Path) -> list[Path]:
    """Return the libraries that zig links for its glibc, which it makes when it first links."""
    (scratch / "empty.c").write_text("")
    command = [
        str(ZIG),
        "cc",
        *target_options(architecture),
        "-shared",
        "-v",
        "empty.c",
        "-o",
        "empty.so",
    ]
    # -s: libc_nonshared.a gets no debug information, which would name folders of this machine.
    command += ["-lm", "-lpthread", "-ldl", "-lrt", "-s"]
    done = subprocess.run(command, cwd=scratch, capture_output=True, text=True, check=True)
    words = (done.stdout + done.stderr).split()
    names = (
        "libc.so",
        "libm.so",
        "libpthread.so",
        "libdl.so",
        "librt.so",
        "libld.so",
        "libc_nonshared.a",
    )
    # The first time it also shows how it makes them, with the names that they give themselves.
    paths = (Path(word) for word in dict.fromkeys(words))
    return [path for path in paths if path.is_absolute() and path.name.startswith(names)]


def main() -> None:
    """Make the folder."""
    architecture, root, folder = (
        sys.argv[1],
        Path(sys.argv[2]).resolve(),
        Path(sys.argv[3]).resolve(),
    )
    triple = f"{architecture}-linux-gnu"
    (gcc,) = (path for path in (root / "usr/lib/gcc" / triple).iterdir() if path.name.isdigit())
    release = gcc.name
    system = root / "usr/lib" / triple
    (shared,) = (path for path in system.glob("libstdc++.so.6.*") if path.suffix[1:].isdigit())
    unwinder = next(
        path
        for place in ("", "usr")
        for path in (root / place / "lib" / triple).glob("libgcc_s.so.1")
    )

    includes = folder / "include"
    write(includes / "sys/single_threaded.h", SINGLE_THREADED)
    for header in ("backtrace.h", "backtrace-supported.h"):
        write(includes / header, (gcc / "include" / header).read_text())
    headers = [includes]
    headers += [root / "usr/include/c++" / release, root / "usr/include" / triple / "c++" / release]

    libraries = folder / "lib"
    libraries.mkdir(exist_ok=True)
    (folder / "stub").mkdir(exist_ok=True)
    glibc = glibc_libraries(architecture, folder / "stub")
    parts = [gcc / name for name in ("libstdc++.a", "libbacktrace.a", "libgcc.a")]
    parts += [
        gcc / "crtbeginS.o",
        gcc / "crtendS.o",
        system / "Scrt1.o",
        system / "crti.o",
        system / "crtn.o",
    ]
    for source in [*parts, *glibc, unwinder]:
        copy(source, libraries / source.name)

    # The release is part of the text because compiler caches compare that.
    zig_release = subprocess.run(
        [ZIG, "version"], capture_output=True, text=True, check=True
    ).stdout
    loader = {"x86_64": "/lib64/ld-linux-x86-64.so.2", "aarch64": "/lib/ld-linux-aarch64.so.1"}
    link = LINK.format(
        libraries=str(libraries),
        loader=loader[architecture],
        zig=str(ZIG),
        emulation={"x86_64": "elf_x86_64", "aarch64": "aarch64linux"}[architecture],
        glibc=", ".join(repr(path.name) for path in glibc if path.suffix != ".a"),
    )
    write(folder / "link.py", link)
    target = " ".join(target_options(architecture))
    # Line tables must not tell where this was built. Build folders are two levels below the tree.
    places = {root: "", ZIG.parent: "zig", folder: "toolchain", "../../": ""}
    target += " -ffile-compilation-dir=."
    target += "".join(f" -ffile-prefix-map='{old}={new}'" for old, new in places.items())
    compilers = {
        "cc": f"cc {target}",
        "c++": f"c++ {target} -nostdinc++" + "".join(f" -I'{path}'" for path in headers),
    }
    for name, compile_ in compilers.items():
        text = DRIVER.format(
            release=zig_release.strip(),
            zig=ZIG,
            compile=compile_,
            python=sys.executable,
            link=folder / "link.py",
        )
        write(folder / "bin" / name, text, 0o755)
    for name in ("ar", "ranlib"):
        write(folder / "bin" / name, f'#!/bin/sh\nexec {ZIG} {name} "$@"\n', 0o755)

    stub, script = folder / "stub/libstdc++.s", folder / "stub/libstdc++.map"
    write_stub(shared, stub, script)
    run(ZIG, "cc", *target_options(architecture), "-c", stub, "-o", folder / "stub/libstdc++.o")
    run(
        *(ZIG, "ld.lld", "-shared", folder / "stub/libstdc++.o", f"--version-script={script}"),
        *("-soname", "libstdc++.so.6", "-o", libraries / "libstdc++.so.6"),
    )
    write(folder / "stub/compat.c", COMPAT)
    run(
        folder / "bin/cc",
        "-O2",
        "-fPIC",
        "-c",
        folder / "stub/compat.c",
        "-o",
        libraries / "compat.o",
    )
    write(
        folder / "toolchain.cmake",
        f"""set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR {architecture})
set(CMAKE_C_COMPILER {folder}/bin/cc)
set(CMAKE_CXX_COMPILER {folder}/bin/c++)
set(CMAKE_AR {folder}/bin/ar CACHE FILEPATH "")
set(CMAKE_RANLIB {folder}/bin/ranlib CACHE FILEPATH "")
set(CMAKE_SHARED_LINKER_FLAGS_INIT "-Wl,-z,defs")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH {folder})
""",
    )


if __name__ == "__main__":
    main()
