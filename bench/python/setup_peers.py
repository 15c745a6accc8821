# SPDX-License-Identifier: Apache-2.0
"""Environments and compiled libraries of the peers.

Each peer is prepared by one function, which raises `Unavailable` with a reason that the tables
then show. Environments live in .cache/bench, everything compiled in build/bench-python; for the
interpreter named by BENCH_PYTHON, if it is set, in folders of their own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
OTHER = os.environ.get("BENCH_PYTHON", "")
BUILD = ROOT / "build" / f"bench-{Path(OTHER).name or 'python'}"
PEERS = BUILD / "peers"
ENVIRONMENTS = ROOT / ".cache" / "bench" / Path(OTHER).name
PYTHON_VERSION = "3.13"
NUMPY = "numpy==2.3.4"
REFERENCE = "apache-tvm-ffi==0.1.15.post1"
LONGEST = 600  # seconds, for any one command
FLAGS = ["-O2", "-DNDEBUG", "-fPIC", "-shared"]

# An import is measured with the bytecode that every but the first one finds.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


class Unavailable(Exception):
    """A peer cannot be built or installed here; the message says why."""


@dataclass
class Peer:
    """How to run a peer: its interpreter, what its process needs, its version."""

    name: str
    python: Path
    environment: dict[str, str]
    version: str


def run(*command: object, **kwargs: object) -> str:
    try:
        done = subprocess.run(
            [str(part) for part in command],
            capture_output=True,
            text=True,
            check=False,
            timeout=LONGEST,
            **kwargs,  # type: ignore[call-overload]
        )
    except OSError as error:
        raise Unavailable(str(error)) from None
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{Path(str(command[0])).name}: not done after {LONGEST} s") from None
    if done.returncode != 0:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["no output"]
        raise Unavailable(f"{Path(str(command[0])).name}: {last[0][:200]}")
    return done.stdout.strip()


def ask(peer: Peer, script: str, *arguments: object, prefix: tuple[str, ...] = ()) -> Any:
    """Run a script of this folder for a peer and return the JSON object it prints."""
    command = [*prefix, peer.python, HERE / script, peer.name, PEERS, *arguments]
    # A fixed seed, so that two runs hash alike and count alike.
    variables = {**os.environ, "PYTHONHASHSEED": "0", **peer.environment}
    return json.loads(run(*command, env=variables).splitlines()[-1])


def base_interpreter() -> Path:
    """Return a CPython of the version the tables are made for, or the one running this."""
    if OTHER:
        return Path(OTHER)
    candidates = [shutil.which(f"python{PYTHON_VERSION}") or ""]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates += sorted(map(str, pyenv.glob(f"{PYTHON_VERSION}.*/bin/python")), reverse=True)
    for candidate in filter(None, candidates):
        try:
            found = run(candidate, "-c", "import sys; print('%d.%d' % sys.version_info[:2])")
        except Unavailable:
            continue
        if found == PYTHON_VERSION:
            return Path(candidate)
    print(f"no CPython {PYTHON_VERSION} found, using {sys.version.split()[0]}", file=sys.stderr)
    return Path(sys.executable)


def environment(name: str, *packages: str) -> Path:
    """Return the interpreter of a virtual environment that has `packages`."""
    folder = ENVIRONMENTS / name
    python = folder / "bin" / "python"
    stamp = folder / "installed"
    wanted = "\n".join([str(base_interpreter()), *packages])
    if python.exists() and stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return python
    # Without a pip of its own, which would take longer to install than the packages.
    run(base_interpreter(), "-m", "venv", "--clear", "--without-pip", folder)
    if packages:
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python]
        run(*pip, "install", "-q", "--retries=2", "--timeout=15", *packages)
    stamp.write_text(wanted, encoding="utf-8")
    return python


def config(python: Path, expression: str) -> str:
    return run(python, "-c", f"import sysconfig; print({expression})")


def compile_once(output: Path, *command: object, needs: tuple[Path, ...] = ()) -> None:
    """Run a compiler unless `output` came from this very command and is newer than its sources."""
    stamp = output.with_suffix(".command")
    text = " ".join(map(str, command))
    sources = [HERE / "shared_node.h", *(part for part in command if isinstance(part, Path))]
    sources += needs
    same = output.exists() and stamp.exists() and stamp.read_text(encoding="utf-8") == text
    changed = [part.stat().st_mtime for part in sources if part.is_file()]
    if same and max(changed) < output.stat().st_mtime:
        return
    run(*command, "-o", output)
    stamp.write_text(text, encoding="utf-8")


def extension(python: Path, module: str, *sources: object, compiler: str = "g++") -> None:
    """Compile an extension module; options are passed among the sources."""
    suffix = config(python, "sysconfig.get_config_var('EXT_SUFFIX')")
    include = config(python, "sysconfig.get_path('include')")
    standard = ["-std=c++17"] if compiler == "g++" else []
    output = PEERS / f"{module}{suffix}"
    flags = [*FLAGS, "-fvisibility=hidden", f"-I{include}"]
    compile_once(output, compiler, *standard, *flags, *sources)


def ffi_library(name: str, include: Path, libraries: Path) -> None:
    output = PEERS / f"libbench_{name}.so"
    linking = ["-Wl,--no-as-needed", f"-L{libraries}", "-ltvm_ffi"]
    command = ["g++", "-std=c++17", *FLAGS, f"-I{include}", *linking, HERE / "ffi_node.cc"]
    compile_once(output, *command, needs=tuple(include.rglob("*.h")))


def floor() -> Peer:
    python = environment("peers")
    extension(python, "bench_floor", HERE / "floor_node.c", compiler="gcc")
    return Peer("floor", python, {}, "C, by hand")


def ours() -> Peer:
    python = environment("peers")
    options = ["-G", "Ninja", "--log-level=WARNING", "-DTETHER_BUILD_PYTHON=ON"]
    run("cmake", "-S", ROOT, "-B", BUILD, *options, f"-DPython_EXECUTABLE={python}")
    jobs = os.environ.get("TETHER_JOBS", str(os.cpu_count() or 1))
    run("cmake", "--build", BUILD, "--parallel", jobs, "--target", "tvm_ffi_core")
    ffi_library("ours", ROOT / "include", BUILD / "lib")
    path = {"PYTHONPATH": str(BUILD / "package")}
    return Peer("ours", python, path, revision())


def revision() -> str:
    """Return the commit of this tree, with a mark if what is measured was changed since."""
    try:
        commit = run("git", "-C", ROOT, "rev-parse", "--short", "HEAD")
        changed = run("git", "-C", ROOT, "status", "--porcelain", "--", "include", "src", "python")
    except Unavailable:
        return "this tree"
    return f"{commit}, changed" if changed else commit


def old_client() -> None:
    """Compile the library against the headers of the reference release."""
    release = REFERENCE.split("==")[1]
    headers = run(sys.executable, ROOT / "tests" / "skew" / "fetch_headers.py", release)
    ffi_library("reference", Path(headers) / "include", Path(headers) / "lib")


def reference() -> Peer:
    python = environment("reference", REFERENCE)
    old_client()
    return Peer("reference", python, {}, REFERENCE)


def adopted() -> Peer:
    """Ours, with the library compiled against the headers of the reference release."""
    old_client()
    peer = ours()
    return Peer("adopted", peer.python, peer.environment, f"ours, client built for {REFERENCE}")


def nanobind() -> Peer:
    python = environment("nanobind", "nanobind==3.1.0")
    package = Path(run(python, "-c", "import nanobind; print(nanobind.__path__[0])"))
    includes = [f"-I{package / 'include'}", f"-I{package / 'ext/robin_map/include'}"]
    sources = [HERE / "nanobind_node.cc", package / "src" / "nb_combined.cpp"]
    threads = config(python, "sysconfig.get_config_var('Py_GIL_DISABLED')") == "1"
    flags = ["-fno-strict-aliasing", *(["-DNB_FREE_THREADED"] if threads else [])]
    extension(python, "bench_nanobind", *flags, *includes, *sources)
    version = run(python, "-c", "import nanobind; print(nanobind.__version__)")
    return Peer("nanobind", python, {}, f"nanobind {version}, intrusive")


def pybind11() -> Peer:
    python = environment("pybind11", "pybind11==3.1.0")
    include = run(python, "-c", "import pybind11; print(pybind11.get_include())")
    extension(python, "bench_pybind11", f"-I{include}", HERE / "pybind11_node.cc")
    version = run(python, "-c", "import pybind11; print(pybind11.__version__)")
    return Peer("pybind11", python, {}, f"pybind11 {version}, std::shared_ptr")


def cython() -> Peer:
    python = environment("cython", "cython==3.3.1")
    generated = BUILD / "bench_cython.cc"
    run(python, "-m", "cython", "--cplus", "-3", HERE / "bench_cython.pyx", "-o", generated)
    extension(python, "bench_cython", f"-I{HERE}", generated)
    version = run(python, "-c", "import Cython; print(Cython.__version__)")
    return Peer("cython", python, {}, f"Cython {version}, a wrapper class over std::shared_ptr")


def pyo3() -> Peer:
    if shutil.which("cargo") is None:
        raise Unavailable("no cargo on PATH")
    python = environment("peers")
    crate = BUILD / "pyo3_node"  # a copy: cargo writes beside the sources
    shutil.copytree(HERE / "pyo3_node", crate, dirs_exist_ok=True)
    variables = {**os.environ, "PYO3_PYTHON": str(python)}
    manifest = crate / "Cargo.toml"
    run("cargo", "build", "--quiet", "--release", "--manifest-path", manifest, env=variables)
    suffix = config(python, "sysconfig.get_config_var('EXT_SUFFIX')")
    shutil.copy2(crate / "target/release/libbench_pyo3.so", PEERS / f"bench_pyo3{suffix}")
    lock = (crate / "Cargo.lock").read_text(encoding="utf-8")
    version = lock.split('name = "pyo3"\nversion = "')[1].split('"')[0]
    return Peer("pyo3", python, {}, f"PyO3 {version}, wrapper classes over Arc")


def slots() -> Peer:
    return Peer("slots", environment("peers"), {}, "pure Python, classes with __slots__")


PREPARE = {
    "floor": floor,
    "ours": ours,
    "nanobind": nanobind,
    "pybind11": pybind11,
    "cython": cython,
    "pyo3": pyo3,
    "reference": reference,
    "adopted": adopted,
    "slots": slots,
}


def prepare(names: list[str]) -> tuple[dict[str, Peer], dict[str, str]]:
    """Return the peers that work here, and the reason for each one that does not."""
    PEERS.mkdir(parents=True, exist_ok=True)
    ready: dict[str, Peer] = {}
    missing: dict[str, str] = {}
    for name in names:
        print(f"preparing {name}", file=sys.stderr, flush=True)
        try:
            ready[name] = PREPARE[name]()
        except Unavailable as reason:
            missing[name] = str(reason)
            print(f"  not available: {reason}", file=sys.stderr)
    return ready, missing
