# SPDX-License-Identifier: Apache-2.0
"""Build and check the wheels: see scripts/wheels.sh, which prepares what this needs.

    python wheels.py build TAG-ARCHITECTURE=INTERPRETER...
    python wheels.py check TAG-ARCHITECTURE=INTERPRETER...

`cp312-aarch64=/usr/bin/python3.12` is the wheel of CPython 3.12 for aarch64; the interpreter is of
this machine and gives the headers. For each architecture the libraries are built once, and the
extension once for each interpreter, in build/wheels-ARCHITECTURE.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CACHE = ROOT / ".cache"
DIST = ROOT / "dist"
POLICY = "manylinux_2_28"

# The headers of an interpreter are those of this machine. pyconfig.h of Debian's python3.11 for
# aarch64 differs from that for x86-64 in these lines only; sizes and alignments are the same.
X86_ONLY = re.compile(r"#define (HAVE_GCC_ASM_FOR_X64|HAVE_GCC_ASM_FOR_X87)\b.*")
AARCH64_LINES = (
    "\n#define HAVE_USABLE_WCHAR_T 1\n#undef PY_SUPPORT_TIER\n#define PY_SUPPORT_TIER 2\n"
)


@dataclass
class Target:
    """One wheel."""

    name: str  # cp313t
    architecture: str
    interpreter: Path  # of this machine, same version

    def __post_init__(self) -> None:
        """Ask the interpreter for its headers."""
        code = """
import json, sysconfig
print(json.dumps([sysconfig.get_path("include"), sysconfig.get_config_var("SOABI")]))"""
        include, soabi = json.loads(output(self.interpreter, "-c", code))
        self.include = Path(include)
        self.suffix = f".{soabi.replace('x86_64', self.architecture)}.so"

    @property
    def tag(self) -> str:
        """Return the tag in the name of the wheel."""
        return f"{self.name.rstrip('t')}-{self.name}-{POLICY}_{self.architecture}"

    @property
    def wheel(self) -> Path:
        """Return the path of the wheel."""
        return DIST / f"tether_ffi-{version()}-{self.tag}.whl"


def output(*command: object) -> str:
    """Return what a command prints."""
    words = [str(word) for word in command]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


def attempt(
    words: list[str], cwd: str | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a command, which may fail; what it prints is one text."""
    return subprocess.run(
        words,
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        cwd=cwd,
    )


def run(*command: object, **variables: str) -> None:
    """Run a command; show its output if it fails."""
    words = [str(word) for word in command]
    done = attempt(words, **variables)
    if done.returncode != 0:
        sys.exit(f"{done.stdout}\nfailed with status {done.returncode}: {' '.join(words)}")


@contextlib.contextmanager
def timed(title: str):
    """Print what is done, how long it took, and for how long processors were busy."""
    print(f"== {title}", flush=True)
    begin, used = time.monotonic(), processor_time()
    yield
    wall, used = time.monotonic() - begin, processor_time() - used
    print(f"-- {title}: {wall:.0f} s, {used:.0f} s of processor time", flush=True)


def processor_time() -> float:
    """Return the seconds that this process and the commands it ran took."""
    return sum(os.times()[:4])


def version() -> str:
    """Return the version of the distribution."""
    return re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(), re.M)[1]


# ---- build ------------------------------------------------------------------------------------


def headers(target: Target) -> Path:
    """Return the headers of an interpreter, for the architecture of the target."""
    if target.architecture == "x86_64":
        return target.include
    folder = CACHE / f"wheels-{target.architecture}" / "python" / target.name
    if not folder.exists():
        part = folder.with_name(f"{folder.name}.part")
        shutil.rmtree(part, ignore_errors=True)
        shutil.copytree(target.include, part)
        config = part / "pyconfig.h"
        config.write_text(X86_ONLY.sub("", config.read_text()) + AARCH64_LINES)
        part.rename(folder)
    return folder


def configure(architecture: str, **settings: str) -> Path:
    """Prepare a build folder; returns it."""
    folder = ROOT / "build" / f"wheels-{architecture}"
    settings |= {
        "CMAKE_TOOLCHAIN_FILE": f"{CACHE}/wheels-{architecture}/toolchain/toolchain.cmake",
        "TETHER_WERROR": "OFF",
        # zig keeps what it compiled; a second cache costs time and gains nothing.
        "CMAKE_C_COMPILER_LAUNCHER": "",
        "CMAKE_CXX_COMPILER_LAUNCHER": "",
    }
    options = [f"-D{name}={value}" for name, value in settings.items()]
    run("cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "--log-level=WARNING", *options)
    return folder


def build_architecture(architecture: str, targets: list[Target]) -> None:
    """Build libraries, extensions and wheels of one architecture."""
    entries = [f"{t.name}={headers(t)}={t.suffix}" for t in targets]
    with timed(f"{architecture}: libraries"):
        folder = configure(architecture, TETHER_EXTENSIONS=";".join(entries))
        run("cmake", "--build", folder, "--target", "tvm_ffi_shared", "tvm_ffi_testing")
        stage = folder / "stage"
        shutil.rmtree(stage, ignore_errors=True)
        run("cmake", "--install", folder, "--prefix", stage, "--component", "tvm_ffi")
    for target in targets:
        with timed(f"{architecture}: {target.name}"):
            run("cmake", "--build", folder, "--target", f"core_{target.name}")
            extension = folder / "extensions" / target.name / f"core{target.suffix}"
            pack(target, stage, extension)


def metadata(folder: Path) -> Path:
    """Let the build backend write the metadata of the distribution."""
    code = (
        f"import scikit_build_core.build as b; b.prepare_metadata_for_build_wheel({str(folder)!r})"
    )
    run(sys.executable, "-c", f"import os; os.chdir({str(ROOT)!r}); {code}")
    (written,) = folder.glob("*.dist-info")
    return written


def pack(target: Target, stage: Path, extension: Path) -> None:
    """Write a wheel, with the contents and the places of `pip wheel`."""
    files = {f"tvm_ffi/{path.relative_to(stage)}": path for path in stage.rglob("*")}
    package = ROOT / "python"
    files |= {str(path.relative_to(package)): path for path in (package / "tvm_ffi").rglob("*")}
    files[f"tvm_ffi/{extension.name}"] = extension
    with tempfile.TemporaryDirectory() as scratch:
        info = metadata(Path(scratch))
        (info / "WHEEL").write_text(
            "Wheel-Version: 1.0\nGenerator: tether wheels.py\nRoot-Is-Purelib: false\n"
            f"Tag: {target.tag}\n"
        )
        files |= {str(path.relative_to(info.parent)): path for path in info.rglob("*")}
        write_archive(target.wheel, files, f"{info.name}/RECORD")
    print(f"{target.wheel.name}: {target.wheel.stat().st_size / 1e6:.1f} MB", flush=True)


def write_archive(wheel: Path, files: dict[str, Path], record_name: str) -> None:
    """Write the archive; the same files give the same bytes."""
    record = []
    part = wheel.with_suffix(".part")
    DIST.mkdir(exist_ok=True)
    with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:

        def add(name: str, data: bytes, mode: int) -> None:
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)

        for name, path in sorted(files.items()):
            if path.is_dir() or "__pycache__" in path.parts or name == record_name:
                continue
            data = path.read_bytes()
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(data)}")
            add(name, data, 0o755 if ".so" in path.suffixes else 0o644)
        add(record_name, "\n".join([*record, f"{record_name},,", ""]).encode(), 0o644)
    part.rename(wheel)


def build(targets: list[Target]) -> None:
    """Build everything asked for, and the source distribution."""
    for architecture in dict.fromkeys(target.architecture for target in targets):
        build_architecture(architecture, [t for t in targets if t.architecture == architecture])
    with timed("source distribution"):
        DIST.mkdir(exist_ok=True)
        code = f"import os; os.chdir({str(ROOT)!r}); import scikit_build_core.build as b"
        code += f"; b.build_sdist({str(DIST)!r})"
        run(sys.executable, "-c", code)


if __name__ == "__main__":
    from wheels_check import check

    wanted = [re.fullmatch(r"(\w+)-(\w+)=(.+)", word).groups() for word in sys.argv[2:]]
    {"build": build, "check": check}[sys.argv[1]]([Target(n, a, Path(p)) for n, a, p in wanted])
