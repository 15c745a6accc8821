# SPDX-License-Identifier: Apache-2.0
"""Checks of built wheels and of the source distribution: `scripts/wheels.sh check`.

Every wheel: what auditwheel says, that no symbol is left to chance, and that nothing in it names a
place on this machine. x86-64: installed into a fresh environment; README's example without a
compiler; the tests of the tie. aarch64: the same tests, emulated, on Debian's Python, and the C++
suite. The source distribution: built offline, and its folder is left as it was.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from elftools.elf.elffile import ELFFile  # type: ignore[import-not-found]
from wheels import (
    CACHE,
    DIST,
    POLICY,
    ROOT,
    Target,
    attempt,
    configure,
    output,
    run,
    timed,
    version,
)

JOBS = int(os.environ.get("TETHER_JOBS", os.cpu_count() or 1))
TESTS = sorted((ROOT / "tests" / "python").glob("test_tying*.py"))
# What an extension finds in the interpreter and in our own libraries.
KNOWN = re.compile(r"_?Py|TVMFFI|__tvm_ffi|_Z\w*3tvm3ffi|__gmon_start__|_ITM_|__cxa_finalize")


def check(targets: list[Target]) -> None:
    """Check all wheels given, and the source distribution."""
    missing = [t for t in targets if not t.wheel.exists()]
    problems = [f"{target.wheel.name} is missing" for target in missing]
    emulated = list(dict.fromkeys(t.architecture for t in targets if t.architecture != "x86_64"))
    for architecture in filter(emulator, emulated):
        with timed(f"compile the C++ suite for {architecture}"):
            compile_cpp(architecture)
    # Emulation is slow, so what is emulated begins first.
    present = [target for target in targets if target not in missing]
    present.sort(key=lambda target: target.architecture)
    jobs = [Job(f"check the C++ suite on {name}", check_cpp, name) for name in emulated]
    jobs += [Job(f"check {t.wheel.name}", check_wheel, t) for t in present]
    sdist = DIST / f"tether_ffi-{version()}.tar.gz"
    jobs.append(Job("check the source distribution", check_sdist, sdist))
    with ProcessPoolExecutor(JOBS) as pool:
        for future in as_completed([pool.submit(job) for job in jobs]):
            problems += future.result()
    if problems:
        sys.exit("\n".join(f"problem: {problem}" for problem in problems))
    print("all good")


@dataclass
class Job:
    """A check that runs beside others: what it prints comes in one piece, when it is done."""

    title: str
    function: Callable[..., list[str]]
    argument: object

    def __call__(self) -> list[str]:
        """Return the problems."""
        said = io.StringIO()
        try:
            with contextlib.redirect_stdout(said), timed(self.title):
                return self.function(self.argument)
        finally:
            sys.stdout.write(said.getvalue())
            sys.stdout.flush()


def check_wheel(target: Target) -> list[str]:
    """Audit a wheel, then install it and use it."""
    use = check_native if target.architecture == "x86_64" else check_emulated
    return audit(target) + use(target)


def audit(target: Target) -> list[str]:
    """Compare the tag with what auditwheel finds, and look for symbols that nobody provides."""
    tag = f"{POLICY}_{target.architecture}"
    said = " ".join(output(CACHE / "wheel-tools/bin/auditwheel", "show", target.wheel).split())
    constrained = re.search(r'constrains the platform tag to "(\w+)"', said)
    consistent = re.search(r'consistent with the following platform tag: "(\w+)"', said)
    print(f"auditwheel: {(consistent or constrained or ['', said])[1]}")
    problems = []
    if consistent is None or not at_most(consistent[1], tag):
        problems.append(f"{target.wheel.name}: auditwheel says: {said}")
    with zipfile.ZipFile(target.wheel) as archive:
        for name in archive.namelist():
            if name.endswith(".so"):
                found = [s for s in unversioned(archive.open(name)) if not KNOWN.match(s)]
                problems += [f"{target.wheel.name}: {name} needs {symbol}" for symbol in found]
            places = machine_paths(archive.read(name), target)
            problems += [f"{target.wheel.name}: {name} names {place}" for place in places]
    return problems


def machine_paths(data: bytes, target: Target) -> list[str]:
    """Return the places of this machine that a file names."""
    # A path begins there: what comes before it is no part of a longer, relative one.
    begin = rb"(?<![\w.+/-])"
    places = {str(p) for p in (ROOT, CACHE.resolve(), target.include, target.interpreter)}
    named = {p for p in places if re.search(begin + re.escape(p).encode() + rb"\b", data)}
    # Whatever the machine: what is compiled has no business in anybody's folders.
    if data.startswith(b"\x7fELF"):
        found = re.findall(begin + rb"/(?:home|root|Users)/[\w.+/-]+", data)
        named |= {path.decode() for path in found}
    return sorted(named)


def at_most(found: str, tag: str) -> bool:
    """Tell whether a tag of auditwheel is for the same or older systems."""
    numbers = [
        tuple(int(n) for n in re.findall(r"_(\d+)_(\d+)_", name)[0]) for name in (found, tag)
    ]
    return numbers[0] <= numbers[1]


def unversioned(file: object) -> list[str]:
    """Return the symbols that a library needs without saying from where."""
    elf = ELFFile(file)
    versions = elf.get_section_by_name(".gnu.version")
    return [
        symbol.name
        for index, symbol in enumerate(elf.get_section_by_name(".dynsym").iter_symbols())
        if symbol["st_shndx"] == "SHN_UNDEF"
        and symbol.name
        and symbol["st_info"]["bind"] != "STB_WEAK"
        and versions.get_symbol(index)["ndx"] in ("VER_NDX_LOCAL", "VER_NDX_GLOBAL")
    ]


def readme(language: str) -> list[str]:
    """Return the examples of README in a language."""
    return re.findall(rf"```{language}[^\n]*\n(.*?)```", (ROOT / "README.md").read_text(), re.S)


def pytest(name: str, command: list[str], *options: str, **variables: str) -> list[str]:
    """Run the tests of the tie; return what went wrong."""
    variables = {"TETHER_TEST_SCALE": "0.1", "PYTHONDONTWRITEBYTECODE": "1", **variables}
    words = [*command, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, *map(str, TESTS)]
    done = attempt(words, tempfile.gettempdir(), **variables)
    lines = done.stdout.splitlines()
    skipped = (re.match(r"SKIPPED \[(\d+)\] \S+: (.*)", line) for line in lines)
    reasons: Counter[str] = Counter()
    for match in filter(None, skipped):
        reasons[re.sub(r"client_\S+", "client_*.so", match[2])] += int(match[1])
    print("\n".join([f"skipped {n}: {reason}" for reason, n in reasons.items()] + lines[-1:]))
    if done.returncode == 0:
        return []
    print(done.stdout)
    return [f"{name}: the tests of the tie failed"]


def check_native(target: Target) -> list[str]:
    """Install a wheel into a fresh environment and use it."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        python = folder / "bin/python"
        run(target.interpreter, "-m", "venv", "--without-pip", folder)
        pip = [os.environ["TETHER_PIP_PYTHON"], "-m", "pip", "--python", python, "install", "-q"]
        pip += ["--disable-pip-version-check", "--only-binary", ":all:"]
        run(*pip, target.wheel)
        problems = check_readme(target, folder)
        run(*pip, "pytest>=8", "hypothesis>=6.100")
        return problems + pytest(target.wheel.name, [str(python)])


def check_readme(target: Target, folder: Path) -> list[str]:
    """Run the Python side of README's example where there is no compiler."""
    (folder / "zoo.cc").write_text(readme("cpp")[0])
    flags = output(folder / "bin/tvm-ffi-config", "--cxxflags", "--ldflags", "--libs").split()
    run("c++", "-shared", "-fPIC", folder / "zoo.cc", *flags, "-o", folder / "libzoo.so")
    (folder / "zoo.py").write_text("\n".join(readme("python")))
    done = subprocess.run(
        [folder / "bin/python", "zoo.py"],
        env={"PATH": str(folder / "bin")},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 0:
        print("README's example runs, and there is no compiler on PATH")
        return []
    return [f"{target.wheel.name}: README's example failed: {done.stderr}"]


# C++ tests that are not run with qemu-user, and why.
NOT_EMULATED = {
    "CompileFail.*": "they run the compiler, which is of this machine and was tested there",
}
# The same for the tests of the tie, by their names.
NOT_EMULATED_PYTHON = {
    "test_p7_address_reuse_gives_no_old_wrapper": "qemu maps no address twice, and it needs that",
}


def emulator(architecture: str) -> str | None:
    """Return the program that runs programs of another architecture, if it is here."""
    return shutil.which(f"qemu-{architecture}")


def compile_cpp(architecture: str) -> None:
    """Build the C++ suite for another architecture."""
    source = CACHE / f"wheels-{architecture}/root/usr/src/googletest"
    folder = configure(architecture, TETHER_BUILD_TESTS="ON", TETHER_GTEST_SOURCE=str(source))
    run("cmake", "--build", folder, "--target", "tvm_ffi_cpp_tests")


def check_cpp(architecture: str) -> list[str]:
    """Run the C++ suite of another architecture with qemu."""
    qemu = emulator(architecture)
    if qemu is None:
        print("skipped: the C++ suite, because qemu-user is not installed")
        return []
    for tests, reason in NOT_EMULATED.items():
        print(f"skipped: {tests}, because {reason}")
    suite = ROOT / "build" / f"wheels-{architecture}" / "bin/tvm_ffi_cpp_tests"
    command = [qemu, "-L", str(CACHE / f"wheels-{architecture}/root"), str(suite)]
    done = attempt([*command, "--gtest_brief=1", f"--gtest_filter=-{':'.join(NOT_EMULATED)}"])
    for place, reason in re.findall(r"(\w+\.cc:\d+): Skipped\n(.*)", done.stdout):
        print(f"skipped: the test at {place}, because {reason}")
    counts = re.findall(r"^\[=+\] .*|^\[  PASSED  \] .*", done.stdout, re.M)
    print("\n".join(counts))
    if done.returncode == 0:
        return []
    print(done.stdout)
    return [f"{architecture}: the C++ suite failed"]


def check_emulated(target: Target) -> list[str]:
    """Run the tests of the tie with qemu, if there is a Python of this version to emulate."""
    root = CACHE / f"wheels-{target.architecture}/root"
    version_name = f"{target.name[2]}.{target.name[3:]}"
    python = root / f"usr/bin/python{version_name}"
    qemu = emulator(target.architecture)
    if qemu is None or not python.exists():
        reason = f"Debian here has no python{version_name}"
        if qemu is None:
            reason = "qemu-user is not installed"
        print(f"skipped: the tests of {target.wheel.name}, because {reason}")
        return []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        pip = [
            os.environ["TETHER_PIP_PYTHON"],
            "-m",
            "pip",
            "install",
            "-q",
            "--disable-pip-version-check",
        ]
        pip += [
            "--only-binary",
            ":all:",
            "--python-version",
            version_name,
            "--implementation",
            "cp",
        ]
        for tag in (f"{POLICY}_{target.architecture}", f"manylinux2014_{target.architecture}"):
            pip += ["--platform", tag]
        run(*pip, "--target", folder / "site", target.wheel, "pytest>=8", "hypothesis>=6.100")
        # Tests start their interpreter again and compile clients: both by the names in this folder.
        (folder / "bin").mkdir()
        start = folder / "bin" / python.name
        start.write_text(f'#!/bin/sh\nexec {qemu} -L {root} -0 {start} {python} "$@"\n')
        start.chmod(0o755)
        for name in ("cc", "c++"):
            (folder / "bin" / name).symlink_to(
                CACHE / f"wheels-{target.architecture}/toolchain/bin/{name}"
            )
        for test, reason in NOT_EMULATED_PYTHON.items():
            print(f"skipped: {test}, because {reason}")
        return pytest(
            target.wheel.name,
            [str(start)],
            *("-k", " and ".join(f"not {test}" for test in NOT_EMULATED_PYTHON)),
            PYTHONHOME=str(root / "usr"),
            PYTHONPATH=str(folder / "site"),
            PATH=f"{folder / 'bin'}:{os.environ['PATH']}",
        )


def check_sdist(sdist: Path) -> list[str]:
    """Install from the source distribution, offline; its folder must stay as it is."""
    folder = ROOT / "build" / "sdist"  # always the same, because compiler caches see the path
    shutil.rmtree(folder, ignore_errors=True)
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (source,) = folder.iterdir()
    before = {str(path) for path in source.rglob("*")}
    python = os.environ["TETHER_PIP_PYTHON"]
    with tempfile.TemporaryDirectory() as scratch:
        pip = [python, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", scratch]
        # Not optimised: what is checked is that all the sources are there.
        pip += ["--config-settings", "cmake.build-type=Debug"]
        run(*pip, "--no-build-isolation", source)
        run(python, "-c", "import tvm_ffi; tvm_ffi.Array([1])", PYTHONPATH=scratch)
    written = sorted({str(path) for path in source.rglob("*")} - before)
    print(f"installed offline and imported; pip wrote {len(written)} files into the source tree")
    return [f"pip wrote {path}" for path in written]
