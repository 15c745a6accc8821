# SPDX-License-Identifier: Apache-2.0
"""`build` and `load` from files, `build_inline` and `load_inline` from strings.

What is built lies in a folder of the cache whose name has a hash of everything that goes into it
(sources, flags, compilers, place of this package). A build is a few steps, see `_steps`: compile
each source, link. Nothing is run if nothing changed. A folder is changed under a lock of the
operating system, which goes away with the process that holds it.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..libinfo import find_dlpack_include_path, find_include_path, find_libtvm_ffi
from ..module import Module, load_module
from ..utils.lockfile import FileLock
from . import _precompiled, _steps, _toolchain
from ._steps import TEMPORARY, Hints, Step

__all__ = [
    "FileLock",
    "Module",
    "build",
    "build_inline",
    "build_ninja",
    "find_dlpack_include_path",
    "find_include_path",
    "find_libtvm_ffi",
    "load",
    "load_inline",
    "load_module",
]

_Texts = Sequence[str] | str | None

_PRELUDE = """\
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/dtype.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>
"""
_OBJECTS = (".o", ".obj")
# Suffixes that compilers know; a file with another one is C++, also a header.
_KNOWN = (".cc", ".cpp", ".cxx", ".c++", ".cp", ".s", ".S", ".sx", ".ii", ".m", ".mm", ".mii")
_LOCK = "lock"
_EMBED_CUBIN = Path(__file__).parents[1].absolute() / "utils" / "embed_cubin.py"
# What a folder that cannot be written to gives, in the order of likelihood.
_CANNOT_WRITE = (errno.EACCES, errno.EROFS, errno.ENOTDIR, errno.EEXIST, errno.EPERM, errno.ENOSPC)
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


# ---- what users pass ----------------------------------------------------------------------------


def _items(what: str, expected: str, value: Any) -> list[Any]:
    if isinstance(value, (bytes, bytearray)) or not isinstance(value, Iterable):
        raise TypeError(f"{what} must be {expected}, got {type(value).__name__}")
    return list(value)


def _texts(what: str, value: _Texts) -> list[str]:
    if value is None:
        return []
    if isinstance(value, str):
        return [value]
    texts = _items(what, "a str or a list of str", value)
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"{what}[{i}] must be a str, got {type(text).__name__}")
    return texts


def _flags(what: str, flags: Sequence[str] | None) -> list[str]:
    """Return flags as words. A flag is split as a shell does it, and ``$$`` stands for ``$``."""
    if isinstance(flags, str):
        raise TypeError(f"{what} must be a list of str, got one str: {flags!r}")
    words: list[str] = []
    if flags is not None:
        flags = _items(what, "a list of str", flags)
    for flag in _texts(what, flags):
        if "\0" in flag:
            raise ValueError(f"{what}: {flag!r} has a NUL character")
        try:
            words += shlex.split(flag)
        except ValueError as error:
            raise ValueError(f"{what}: {flag!r}: {error}") from None
    return [word.replace("$$", "$") for word in words]


def _functions(functions: Mapping[str, str] | Sequence[str] | str | None) -> dict[str, str]:
    """Return the functions to export, each with its documentation or ""."""
    if functions is None:
        return {}
    if isinstance(functions, Mapping):
        found = dict(functions)
    else:
        found = dict.fromkeys(_texts("functions", functions), "")
    for name in found:
        if not isinstance(name, str) or not _IDENTIFIER.fullmatch(name):
            raise ValueError(
                f"functions: {name!r} is not the name of a function. "
                "A function in a namespace needs a function outside of it that calls it."
            )
        doc = found[name]
        if doc is None:
            found[name] = ""
        elif not isinstance(doc, str):
            raise TypeError(
                f"functions[{name!r}] must be a str, its documentation, got {type(doc).__name__}"
            )
        elif "\0" in doc:  # what is compiled is a string of C, which would end there
            raise ValueError(f"functions[{name!r}]: the documentation has a NUL character")
    return found


def _checked_name(name: str) -> str:
    if not isinstance(name, str):
        raise TypeError(f"name must be a str, got {type(name).__name__}")
    if not name or Path(name).name != name or "\0" in name:
        raise ValueError(f"name must be the name of a file, without a folder: {name!r}")
    return name


# ---- inline sources -----------------------------------------------------------------------------


def _quoted(text: str) -> str:
    """Return a C++ string literal."""
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return '"' + "".join(escapes.get(c, c) for c in text) + '"'


def _exports(functions: Mapping[str, str]) -> list[str]:
    lines = []
    for name, doc in functions.items():
        lines.append(f"TVM_FFI_DLL_EXPORT_TYPED_FUNC({name}, {name});")
        if doc:
            lines.append(f"TVM_FFI_DLL_EXPORT_TYPED_FUNC_DOC({name}, {_quoted(doc)});")
    return lines


@dataclass
class _Inline:
    """One generated file and the user's texts in it."""

    file: str
    label: str
    texts: list[str]
    functions: Mapping[str, str]

    def source_files(self) -> list[tuple[str, str]]:
        """Return name and text of each of the user's sources, for messages of the compiler."""
        suffix = Path(self.file).suffix
        return [(f"{self.label}_{i}{suffix}", text) for i, text in enumerate(self.texts)]

    def text(self, directory: Path) -> str:
        """Return the generated file. Messages of the compiler name the user's own lines."""
        lines = [_PRELUDE.rstrip("\n")]
        for name, text in self.source_files():
            lines += [f"#line 1 {_quoted(str(directory / name))}", text]
        exports = _exports(self.functions)
        if exports:
            line = "\n".join(lines).count("\n") + 3  # the line after the #line below
            lines += [f"#line {line} {_quoted(str(directory / self.file))}", *exports]
        return "\n".join(lines) + "\n"


# ---- plan ---------------------------------------------------------------------------------------


@dataclass
class _Plan:
    """Everything that decides what a build does."""

    name: str
    sources: list[str]  # absolute paths; of inline sources the names of generated files
    inline: list[_Inline]
    cflags: list[str]
    cuda_cflags: list[str]
    ldflags: list[str]
    include_paths: list[str]
    backend: str | None
    embed_cubin: Mapping[str, bytes]
    output: str | None
    directory: Path | None

    # -- compilers --

    def _suffixes(self) -> set[str]:
        return {_suffix(source) for source in self.sources}

    def _uses_gpu(self) -> bool:
        return ".cu" in self._suffixes()

    def _compiler(self, suffix: str) -> list[str]:
        """Return compiler and flags for sources with this suffix."""
        includes = [f"-I{find_include_path()}", f"-I{find_dlpack_include_path()}"]
        own = [f"-I{path}" for path in self.include_paths]
        if suffix == ".c":
            return [*_toolchain.cc(), "-fPIC", "-O2", *self.cflags, *includes, *own]
        if suffix != ".cu":
            cxx = _toolchain.cxx()
            defaults = ["-std=c++17", "-fPIC", "-O2", *_toolchain.workarounds(cxx)]
            return [*cxx, *defaults, *self.cflags, *includes, *own]
        compiler = _toolchain.gpu_compiler(self._gpu())
        if self._gpu() == "cuda":
            defaults = ["-Xcompiler", "-fPIC", "-std=c++17", "-O2", *_toolchain.cuda_targets()]
            host = shutil.which("g++")  # what nvcc calls
            for flag in _toolchain.workarounds([host]) if host else ():
                defaults += ["-Xcompiler", flag]
        else:
            defaults = ["-std=c++17", "-O2", "-fPIC", "-D__HIP_PLATFORM_AMD__=1", "-fno-gpu-rdc"]
            defaults += _toolchain.rocm_targets()
            includes.append(f"-I{_toolchain.rocm_home()}/include")
        return [*compiler, *defaults, *self.cuda_cflags, *includes, *own]

    def _gpu(self) -> str:
        return _toolchain.backend_of(self.backend)

    def _link_flags(self) -> list[str]:
        flags = [f"-L{Path(find_libtvm_ffi()).parent}", "-ltvm_ffi"]
        if self._uses_gpu():
            if self._gpu() == "cuda":
                flags += [f"-L{_toolchain.cuda_home()}/lib64", "-lcudart"]
            else:
                flags += [f"-L{_toolchain.rocm_home()}/lib", "-lamdhip64"]
        return [*flags, *self.ldflags]

    # -- place --

    def _key(self) -> str:
        compilers = {
            suffix: [_toolchain.identity(self._compiler(suffix)[:1]), self._compiler(suffix)]
            for suffix in sorted(self._suffixes() - set(_OBJECTS))
        }
        parts: list[Any] = [
            [(part.texts, dict(part.functions)) for part in self.inline],
            [source for source in self.sources if Path(source).is_absolute()],
            compilers,
            self._link_flags(),
            sorted((n, hashlib.sha256(d).hexdigest()) for n, d in self.embed_cubin.items()),
        ]
        text = json.dumps(parts).encode("utf-8", "surrogateescape")
        return hashlib.sha256(text).hexdigest()[:16]

    def place(self) -> Path:
        """Return the folder to build in."""
        if self.directory is None:
            self.directory = _cache_root() / f"{self.name}_{self._key()}"
        return self.directory

    def result(self) -> Path:
        """Return the file that the build makes."""
        return self.place() / (Path(self.output).name if self.output else f"{self.name}.so")

    # -- steps --

    def _object_name(self, source: str, counts: dict[str, int]) -> str:
        kind = {".c": "c", ".cu": "cuda"}.get(_suffix(source), "cpp")
        number = counts[kind] = counts.get(kind, -1) + 1
        return f"{kind}_{number}.o"

    def waves(self, hints: Hints | None = None) -> list[list[Step]]:
        """Return the steps; those in one list can run side by side."""
        directory = self.place()
        compile_steps, objects = [], []
        counts: dict[str, int] = {}
        for source in sorted(self.sources):
            path, suffix = directory / source, _suffix(source)
            if suffix in _OBJECTS:
                objects.append(path)
                continue
            output = directory / self._object_name(source, counts)
            depfile = output.with_suffix(".d")
            # With the headers of the system: what is found with -isystem changes, too.
            command = [*self._compiler(suffix), "-MD", "-MF", str(depfile)]
            if suffix not in (".c", ".cu") and path.suffix not in _KNOWN:
                command += ["-x", "c++"]
            command += ["-c", str(path), "-o", TEMPORARY]
            flags = self.cuda_cflags if suffix == ".cu" else self.cflags
            named = _steps.files_in(flags, directory)
            step = Step(output, command, [path], depfile, named=named)
            if hints is not None and source == "main.cpp":
                step.hints = hints
            compile_steps.append(step)
            objects.append(output)
        return [compile_steps, *self._join_steps(objects)]

    def _join_steps(self, objects: list[Path]) -> list[list[Step]]:
        directory, result = self.place(), self.result()
        steps: list[list[Step]] = []
        wants_object = result.suffix.lower() in _OBJECTS
        if self.embed_cubin or (wants_object and len(objects) > 1):
            merged = result if wants_object and not self.embed_cubin else directory / "merged.o"
            command = [_toolchain.found("ld", "binutils"), "-r", "-o", TEMPORARY]
            steps.append([Step(merged, command + [str(o) for o in objects], objects)])
            objects = [merged]
        for i, name in enumerate(sorted(self.embed_cubin)):
            last = i == len(self.embed_cubin) - 1
            output = result if wants_object and last else directory / f"embedded_{i}.o"
            cubin = directory / f"{name}.cubin"
            # By path, since the module path of this process may be relative or changed.
            command = [sys.executable, str(_EMBED_CUBIN), "--verbose"]
            command += ["--output-obj", TEMPORARY, "--input-obj", str(objects[0])]
            command += ["--cubin", str(cubin), "--name", name]
            steps.append([Step(output, command, [objects[0], cubin])])
            objects = [output]
        if not wants_object:
            command = [*_toolchain.cxx(), "-shared", *(str(o) for o in objects)]
            command += [*self._link_flags(), "-o", TEMPORARY]
            named = _steps.files_in(self.ldflags, directory)
            named += _steps.libraries_in(self.ldflags, directory)
            steps.append([Step(result, command, objects, named=named)])
        elif objects != [result]:
            # A copy to the byte: `ld -r` may move sections, and some loaders mind.
            command = [_toolchain.found("cp", "binutils"), str(objects[0]), TEMPORARY]
            steps.append([Step(result, command, objects)])
        return steps

    # -- run --

    def run(self) -> str:
        """Build what is out of date and return the path of the result."""
        if not self.sources:
            raise AssertionError("sources must be provided.")
        for source in self.sources:
            if Path(source).is_absolute() and not Path(source).is_file():
                raise FileNotFoundError(f"source file not found: {source}")
        is_given = self.directory is not None
        directory, result = self.place(), str(self.result())
        files = self._generated()
        if self._is_current(files):
            return result
        if is_given and not _steps.has_record(directory):
            for path, data in files.items():
                if path.exists() and not _holds(path, data):
                    raise FileExistsError(
                        f"{path} exists and was not made by tvm_ffi.cpp; "
                        "pass another build_directory"
                    )
        self._check_places(files)
        try:
            _make_folder(directory)
            with _locked(directory, self.name):
                _steps.begin_record(directory)
                for path, data in files.items():
                    _write(path, data)
                if not self._is_current(files):
                    with _steps.progress(f"tvm_ffi.cpp: building {self.name}"):
                        _steps.run_steps(directory, self.waves(self._precompiled()))
        except OSError as error:
            if error.errno not in _CANNOT_WRITE:
                raise
            raise _with_hint(error) from error
        return result

    def _check_places(self, files: Iterable[Path]) -> None:
        """Raise an error if the result would replace a file of the build, or a folder is there."""
        directory, result = self.place(), self.result()
        steps = [step for wave in self.waves() for step in wave]
        outputs = [step.output for step in steps]
        inner = [directory / _LOCK, directory / _steps.RECORD, *files]
        inner += [step.depfile for step in steps if step.depfile is not None]
        if result in inner or outputs.count(result) > 1:
            raise ValueError(f"output={self.output!r}: the build itself writes a file of this name")
        for path in (*inner, *outputs):
            if path.is_dir():
                raise IsADirectoryError(
                    errno.EISDIR,
                    "A folder is where a file of the build belongs; remove it or pass another "
                    "build_directory",
                    str(path),
                )

    def _generated(self) -> dict[Path, bytes]:
        directory = self.place()
        files = {}
        for part in self.inline:
            files[directory / part.file] = _encoded(part.text(directory))
            for name, text in part.source_files():
                files[directory / name] = _encoded(text)
        for name, data in self.embed_cubin.items():
            files[directory / f"{name}.cubin"] = bytes(data)
        return files

    def _is_current(self, files: Mapping[Path, bytes]) -> bool:
        """Return whether the folder has the result of exactly this."""
        directory = self.place()
        if any(not _holds(path, data) for path, data in files.items()):
            return False
        return _steps.all_done(directory, [step for wave in self.waves() for step in wave])

    def _precompiled(self) -> Hints | None:
        if not any(part.file == "main.cpp" for part in self.inline):
            return None
        compiler = _toolchain.cxx()
        flags = self._compiler(".cpp")[len(compiler) :]
        try:
            root = _cache_root()
        except FileNotFoundError:  # with a build_directory no cache is needed
            return None
        return _precompiled.hints_for(root, compiler, flags, _PRELUDE)


_HINT = "to build in another folder set TVM_FFI_CACHE_DIR or pass build_directory"


def _with_hint(error: OSError) -> OSError:
    return OSError(error.errno, f"{error.strerror}; {_HINT}", error.filename)


def _make_folder(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except FileNotFoundError as error:  # where no folder can be made, as in /proc
        raise _with_hint(error) from error


def _suffix(source: str) -> str:
    """Return the suffix of a source in lower case, but for ``.C``, which means C++."""
    suffix = Path(source).suffix
    return suffix if suffix == ".C" else suffix.lower()


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _holds(path: Path, data: bytes) -> bool:
    try:
        return path.read_bytes() == data
    except OSError:
        return False


def _write(path: Path, data: bytes) -> None:
    if not _holds(path, data):
        path.write_bytes(data)


def _cache_root() -> Path:
    named = os.environ.get("TVM_FFI_CACHE_DIR")
    try:
        return Path(named or "~/.cache/tvm-ffi").expanduser().absolute()
    except RuntimeError as error:
        raise FileNotFoundError(
            errno.ENOENT, f"{str(error).rstrip('.')}; {_HINT}", named or "~"
        ) from None


@contextmanager
def _locked(directory: Path, name: str) -> Iterator[None]:
    """Hold the lock of a folder. It goes away with the process, however that ends."""
    lock = FileLock(str(directory / _LOCK))
    if not lock.acquire():
        with _steps.progress(f"tvm_ffi.cpp: waiting for another process that builds {name}"):
            lock.blocking_acquire(poll_interval=0.02)
    try:
        yield
    finally:
        lock.release()


# What this process has loaded: the path, and what the file was then.
_loaded: dict[str, list[int] | None] = {}


def _load(path: str, keep_module_alive: bool) -> Module:
    mark = _steps.mark(Path(path))
    if _loaded.setdefault(path, mark) != mark and mark is not None:
        # For a file name that is loaded the loader gives the old library again.
        path = str(_copy_of(Path(path)))
    return load_module(path, keep_module_alive=keep_module_alive)


def _copy_of(built: Path) -> Path:
    """Return a copy of a library, whose name tells its version.

    A copy appears as a whole, since others may load it at once, and has the time of the library:
    what was cut off has not.
    """
    with built.open("rb") as source:  # one version of it, even if it is replaced meanwhile
        stat = os.fstat(source.fileno())
        copy = built.with_name(f"{built.stem}.{stat.st_mtime_ns}{built.suffix}")
        if _steps.mark(copy) == [stat.st_size, stat.st_mtime_ns]:
            return copy
        descriptor, temporary = tempfile.mkstemp(".tmp", copy.name, built.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                shutil.copyfileobj(source, file, 1 << 20)
            Path(temporary).chmod(stat.st_mode & 0o777)
            os.utime(temporary, ns=(stat.st_atime_ns, stat.st_mtime_ns))
            Path(temporary).replace(copy)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    return copy


# ---- interface ----------------------------------------------------------------------------------


def _inline_plan(
    name: str,
    cpp_sources: _Texts,
    cuda_sources: _Texts,
    functions: Mapping[str, str] | Sequence[str] | str | None,
    embed_cubin: Mapping[str, bytes] | None,
) -> dict[str, Any]:
    cpp, cuda = _texts("cpp_sources", cpp_sources), _texts("cuda_sources", cuda_sources)
    exported = _functions(functions)
    inline = []
    if cpp:
        inline.append(_Inline("main.cpp", "cpp_sources", cpp, exported))
    if cuda:
        inline.append(_Inline("cuda.cu", "cuda_sources", cuda, {} if cpp else exported))
    if embed_cubin and sys.platform == "win32":
        raise NotImplementedError("CUBIN embedding is not yet supported on Windows")
    if embed_cubin is not None and not isinstance(embed_cubin, Mapping):
        expected = "a mapping of names to bytes"
        raise TypeError(f"embed_cubin must be {expected}, got {type(embed_cubin).__name__}")
    for key, data in (embed_cubin or {}).items():
        if not isinstance(key, str) or not _IDENTIFIER.fullmatch(key):
            raise ValueError(f"embed_cubin: {key!r} is not an identifier")
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise TypeError(f"embed_cubin[{key!r}] must be bytes, got {type(data).__name__}")
    return {
        "name": _checked_name(name),
        "sources": [part.file for part in inline],
        "inline": inline,
        "embed_cubin": {key: bytes(data) for key, data in (embed_cubin or {}).items()},
    }


def _file_plan(name: str, *groups: _Texts) -> dict[str, Any]:
    whats = ("sources", "cpp_files", "cuda_files")
    paths = [
        path for what, group in zip(whats, groups, strict=True) for path in _paths(what, group)
    ]
    return {"name": _checked_name(name), "sources": paths, "inline": [], "embed_cubin": {}}


def _paths(what: str, value: Any) -> list[str]:
    if isinstance(value, os.PathLike):
        value = [value]
    if value is not None and not isinstance(value, str):
        value = _items(what, "a path or a list of paths", value)
        value = [os.fspath(path) if isinstance(path, os.PathLike) else path for path in value]
    return [str(Path(path).absolute()) for path in _texts(what, value)]


def _flag_plan(
    extra_cflags: Sequence[str] | None,
    extra_cuda_cflags: Sequence[str] | None,
    extra_ldflags: Sequence[str] | None,
    extra_include_paths: Sequence[str] | None,
    build_directory: str | None,
    backend: str | None,
    output: str | None,
) -> dict[str, Any]:
    for what, path in (("build_directory", build_directory), ("output", output)):
        if path is not None and not isinstance(path, (str, os.PathLike)):
            raise TypeError(f"{what} must be a str, got {type(path).__name__}")
        if path is not None and "\0" in str(path):
            raise ValueError(f"{what}: {path!r} has a NUL character")
    if output is not None and Path(output).name in ("", ".."):
        raise ValueError(f"output must name a file, got {output!r}")
    return {
        "cflags": _flags("extra_cflags", extra_cflags),
        "cuda_cflags": _flags("extra_cuda_cflags", extra_cuda_cflags),
        "ldflags": _flags("extra_ldflags", extra_ldflags),
        "include_paths": _paths("extra_include_paths", extra_include_paths),
        "directory": None if build_directory is None else Path(build_directory).absolute(),
        "backend": backend,
        "output": output,
    }


def build_inline(
    name: str,
    *,
    cpp_sources: Sequence[str] | str | None = None,
    cuda_sources: Sequence[str] | str | None = None,
    functions: Mapping[str, str] | Sequence[str] | str | None = None,
    extra_cflags: Sequence[str] | None = None,
    extra_cuda_cflags: Sequence[str] | None = None,
    extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: Sequence[str] | None = None,
    build_directory: str | None = None,
    embed_cubin: Mapping[str, bytes] | None = None,
    backend: str | None = None,
    output: str | None = None,
) -> str:
    """Compile sources given as text into a shared library and return its path.

    The headers for tensors, data types, errors, functions and the environment are included first.
    `functions` are exported under their own names; a mapping gives each its documentation. With C++
    and CUDA sources, a function of the CUDA part must be declared in the C++ part to be exported.

    :param output: name of the file, of which a folder is ignored; ``*.o`` gives an object file
    :param embed_cubin: compiled GPU code, reached in the sources with ``TVM_FFI_EMBED_CUBIN(name)``
    :raises RuntimeError: the compiler failed; lines in its messages are those of your texts
    :raises FileNotFoundError: a compiler is missing; the text says how to get it. Where neither a
        variable nor a usual place names the toolkit with nvcc or hipcc, it is a RuntimeError
    """
    return _Plan(
        **_inline_plan(name, cpp_sources, cuda_sources, functions, embed_cubin),
        **_flag_plan(
            extra_cflags,
            extra_cuda_cflags,
            extra_ldflags,
            extra_include_paths,
            build_directory,
            backend,
            output,
        ),
    ).run()


def load_inline(
    name: str,
    *,
    cpp_sources: Sequence[str] | str | None = None,
    cuda_sources: Sequence[str] | str | None = None,
    functions: Mapping[str, str] | Sequence[str] | str | None = None,
    extra_cflags: Sequence[str] | None = None,
    extra_cuda_cflags: Sequence[str] | None = None,
    extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: Sequence[str] | None = None,
    build_directory: str | None = None,
    embed_cubin: Mapping[str, bytes] | None = None,
    keep_module_alive: bool = True,
    backend: str | None = None,
) -> Module:
    """Compile sources given as text and load the library: `build_inline`, then `load_module`."""
    path = build_inline(
        name,
        cpp_sources=cpp_sources,
        cuda_sources=cuda_sources,
        functions=functions,
        extra_cflags=extra_cflags,
        extra_cuda_cflags=extra_cuda_cflags,
        extra_ldflags=extra_ldflags,
        extra_include_paths=extra_include_paths,
        build_directory=build_directory,
        embed_cubin=embed_cubin,
        backend=backend,
    )
    return _load(path, keep_module_alive)


def build(
    name: str,
    *,
    sources: Sequence[str] | str | None = None,
    cpp_files: Sequence[str] | str | None = None,
    cuda_files: Sequence[str] | str | None = None,
    extra_cflags: Sequence[str] | None = None,
    extra_cuda_cflags: Sequence[str] | None = None,
    extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: Sequence[str] | None = None,
    build_directory: str | None = None,
    backend: str | None = None,
    output: str | None = None,
) -> str:
    """Compile source files into a shared library and return its path.

    The suffix says what a file is: ``.c``, ``.cu``, ``.o`` (linked as it is), anything else is C++.
    `cpp_files` and `cuda_files` are older names of `sources`. See `build_inline` for the rest.
    """
    return _Plan(
        **_file_plan(name, sources, cpp_files, cuda_files),
        **_flag_plan(
            extra_cflags,
            extra_cuda_cflags,
            extra_ldflags,
            extra_include_paths,
            build_directory,
            backend,
            output,
        ),
    ).run()


def load(
    name: str,
    *,
    sources: Sequence[str] | str | None = None,
    cpp_files: Sequence[str] | str | None = None,
    cuda_files: Sequence[str] | str | None = None,
    extra_cflags: Sequence[str] | None = None,
    extra_cuda_cflags: Sequence[str] | None = None,
    extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: Sequence[str] | None = None,
    build_directory: str | None = None,
    keep_module_alive: bool = True,
    backend: str | None = None,
) -> Module:
    """Compile source files and load the library: `build`, then `load_module`."""
    path = build(
        name,
        sources=sources,
        cpp_files=cpp_files,
        cuda_files=cuda_files,
        extra_cflags=extra_cflags,
        extra_cuda_cflags=extra_cuda_cflags,
        extra_ldflags=extra_ldflags,
        extra_include_paths=extra_include_paths,
        build_directory=build_directory,
        backend=backend,
    )
    return _load(path, keep_module_alive)


def build_ninja(build_dir: str) -> None:
    """Run ninja in a folder with a ``build.ninja`` of your own; `build` does not need it."""
    command = [_toolchain.found("ninja", "ninja"), "-v"]
    if os.environ.get("MAX_JOBS"):
        command += ["-j", str(_steps.jobs())]
    done = subprocess.run(
        command, cwd=build_dir, capture_output=True, text=True, errors="replace", check=False
    )
    if done.returncode != 0:
        raise _steps.failure("ninja", done.returncode, done.stdout, done.stderr)
