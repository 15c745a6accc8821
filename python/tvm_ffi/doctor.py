# SPDX-License-Identifier: Apache-2.0
"""Find out why something does not work: ``python -m tvm_ffi.doctor``.

Prints what is installed and loaded, checks the promises of tying, and lists the libraries that use
the interface with the release they were built for. Only the standard library is needed, so it also
runs where ``import tvm_ffi`` fails or crashes: everything that loads libraries happens in a second
process.

From a running program, `report` describes that program:

>>> from tvm_ffi import doctor
>>> found = doctor.report()
>>> found["errors"], found["tying"]["P1"]
([], 'ok')
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import re
import signal
import subprocess
import sys
import sysconfig
import weakref
from importlib import metadata
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

__all__ = ["main", "report", "write_stand_in"]

_PACKAGE = Path(os.path.abspath(__file__)).parent  # noqa: PTH100, links are part of the answer
_REFERENCE = "apache-tvm-ffi"
_OURS = "tether-ffi"

_EPILOG = f"""\
exit status: 0 nothing is wrong, 1 something is (with --strict also: something may be).

Packages that require {_REFERENCE}: {_OURS} provides the same interface under another name, which
pip does not know. Either install such a package with `pip install --no-deps`, or let pip know:
`python -m tvm_ffi.doctor --stand-in DIR` writes a wheel {_REFERENCE} that contains nothing and
requires {_OURS}; `pip install DIR/*.whl` makes every such requirement satisfied, and
`pip uninstall {_REFERENCE}` takes it away again.
"""


# ---- in the process that is examined ------------------------------------------------------------


def _check_p1() -> None:
    import tvm_ffi

    inner = tvm_ffi.Map({"a": 1})
    outer = tvm_ffi.Array([inner])
    assert outer[0] is inner, "an element read twice is two objects"
    assert tvm_ffi.get_global_func("testing.echo")(inner) is inner, "f(x) is not x"


def _check_p2() -> None:
    import tvm_ffi

    outer = tvm_ffi.Array([tvm_ffi.Map({"a": 1})])
    number = id(outer[0])
    others = [tvm_ffi.Map({"a": i}) for i in range(8)]  # would reuse a freed address
    assert id(outer[0]) == number, "the identity changed without a Python reference"
    del others


def _check_p3() -> None:
    import tvm_ffi
    from tvm_ffi import testing

    class Stateful(testing.TestObjectBase):
        __slots__ = ("__dict__",)
        note: object

    obj = Stateful()  # type: ignore[call-arg]
    obj.note = note = object()
    outer = tvm_ffi.Array([obj])
    del obj
    gc.collect()
    assert outer[0].note is note, "the state of a Python subclass was lost"


def _check_p4() -> None:
    import tvm_ffi

    outer = tvm_ffi.Array([tvm_ffi.Map({"a": 1})])
    fired: list[Any] = []
    watcher = weakref.ref(outer[0], fired.append)
    gc.collect()
    assert watcher() is outer[0] and not fired, "a weak reference died before its object"
    del outer
    assert watcher() is None and fired == [watcher], "a weak reference outlived its object"


def _check_p7() -> None:
    """Make an object as old binaries do, without our allocator, and check it."""
    import ctypes

    import tvm_ffi

    class Header(ctypes.Structure):
        _fields_ = [
            ("counts", ctypes.c_uint64),
            ("type_index", ctypes.c_int32),
            ("padding", ctypes.c_uint32),
            ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int)),
        ]

    deaths: list[int] = []
    deleter_type: Any = Header._fields_[-1][1]
    deleter = deleter_type(lambda _, flags: deaths.append(flags))
    foreign = Header((1 << 32) | 1, 64, 0, deleter)

    @ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 2, ctypes.c_int32, ctypes.c_void_p)
    def make(_self: Any, _args: Any, _count: Any, result: Any) -> int:
        value = (ctypes.c_int64 * 2).from_address(result)
        value[0], value[1] = 64, ctypes.addressof(foreign)
        return 0

    address = ctypes.cast(make, ctypes.c_void_p).value
    outer = tvm_ffi.Array([tvm_ffi.Function.__from_extern_c__(address or 0)()])
    number = id(outer[0])
    gc.collect()
    assert outer[0] is outer[0] and id(outer[0]) == number, "an adopted object lost its wrapper"
    assert deaths == [], "an adopted object died too early"
    del outer
    assert sum(deaths) == 3, "an adopted object was not given back to its owner"


_CHECKS: dict[str, Callable[[], None]] = {
    "P1": _check_p1,
    "P2": _check_p2,
    "P3": _check_p3,
    "P4": _check_p4,
    "P7": _check_p7,
}
_MEANING = {
    "P1": "one wrapper per object",
    "P2": "identity outlives the last Python reference",
    "P3": "the wrapper's state does too",
    "P4": "a weak reference follows the object",
    "P7": "all of this for objects of old binaries",
}


def _self_tests(errors: list[str]) -> dict[str, str]:
    results = {}
    for name, check in _CHECKS.items():
        try:
            check()
            results[name] = "ok"
        except Exception as error:
            results[name] = f"{type(error).__name__}: {error}"
            errors.append(f"tying, {name} ({_MEANING[name]}) does not hold: {results[name]}")
    return results


def _mapped_files() -> list[str]:
    """Return the libraries in this process, in the order of their addresses."""
    try:
        lines = Path("/proc/self/maps").read_text(errors="surrogateescape").splitlines()
    except OSError:
        return []
    return list(dict.fromkeys(line[line.index("/") :] for line in lines if "/" in line))


def _client(path: str, loaded: bool, owner: str) -> dict[str, Any] | None:
    """Describe a library, or nothing if it does not use the interface."""
    import tvm_ffi

    info = tvm_ffi.get_global_func("ffi.tether.ClientInfo")(path)
    if info is None or not info["is_client"]:
        return None
    try:
        tvm_ffi.get_global_func("ffi.tether.CheckClient")(path)
        problem = ""
    except RuntimeError as error:
        problem = str(error)
    return {
        "path": path,
        "built_with": str(info["built_with"]),
        "by_note": bool(info["by_note"]),
        "loaded": loaded,
        "package": owner,
        "problem": problem,
    }


def _installed_libraries() -> Iterator[tuple[str, str]]:
    """Yield (path, distribution) of libraries in packages that require the interface."""
    for distribution in metadata.distributions():
        wanted = " ".join(distribution.requires or ()).replace("_", "-").lower()
        if _REFERENCE not in wanted and _OURS not in wanted:
            continue
        owner = f"{distribution.metadata['Name']} {distribution.version}"
        for file in distribution.files or ():
            if ".so" in file.name:
                yield str(distribution.locate_file(file)), owner


def _named_libraries(names: list[str], errors: list[str]) -> list[str]:
    """Return the libraries that were named, and those in the folders that were."""
    import tvm_ffi

    why_not = tvm_ffi.get_global_func("ffi.tether.WhyNotALibrary")
    found = []
    for name in names:
        inside = [name]
        if name and Path(name).is_dir():
            inside = [
                str(path)
                for path in sorted(Path(name).rglob("*.so*"))
                if re.search(r"\.so(\.\d+)*$", path.name) and path.is_file()
            ]
            if not inside:
                errors.append(f"{name}: there is no library in this folder")
        for path in inside:
            problem = why_not(path)
            if problem:
                errors.append(f"{path}: {problem}")
            else:
                found.append(path)
    return found


def _clients(extra: list[str], others: list[str]) -> list[dict[str, Any]]:
    clients: dict[str, dict[str, Any]] = {}
    own = {os.path.realpath(path) for path in (*_PACKAGE.glob("lib/*"), *_PACKAGE.glob("core.*"))}
    loaded = {os.path.realpath(path) for path in _mapped_files() if ".so" in path}
    candidates = [*_installed_libraries(), *((path, "") for path in [*loaded, *extra])]
    for path, owner in candidates:
        real = os.path.realpath(path)
        if real in clients or real in own:
            continue
        described = _client(real, real in loaded, owner)
        if described is not None:
            clients[real] = described
        elif path in extra and path not in others:
            others.append(path)
    return list(clients.values())


def report(libraries: list[str] | None = None) -> dict[str, Any]:
    """Describe this process: what is loaded, whether tying works, what may be wrong.

    `libraries` are paths of further libraries, or of folders with some, to look at; they are not
    loaded.
    """
    import tvm_ffi
    from tvm_ffi import libinfo, tying

    errors: list[str] = []
    warnings: list[str] = []
    runtimes = [str(path) for path in tvm_ffi.get_global_func("ffi.tether.LoadedRuntimes")()]
    for other in runtimes[1:]:
        errors.append(
            f"two runtimes are loaded: {runtimes[0]} and {other}; they do not know each other's "
            "types and functions. Remove the package that brings the second"
        )
    others: list[str] = []
    clients = _clients(_named_libraries(libraries or [], errors), others)
    for client in clients:
        if client["problem"]:
            (errors if client["loaded"] else warnings).append(client["problem"])
    return {
        "versions": {"interface": tvm_ffi.__version__, "tether": tvm_ffi.__tether_version__},
        "interpreter": _interpreter(),
        "paths": {
            "package": str(_PACKAGE),
            "library": libinfo.find_libtvm_ffi(),
            "extension": libinfo.find_cython_lib(),
        },
        "tying": {"enabled": tying.enabled(), **_self_tests(errors)},
        "runtimes": runtimes,
        "clients": clients,
        "others": others,
        "errors": errors,
        "warnings": warnings,
    }


def _interpreter() -> dict[str, Any]:
    gil_enabled = getattr(sys, "_is_gil_enabled", lambda: True)()
    return {
        "version": sys.version.split()[0],
        "executable": sys.executable,
        "free_threaded_build": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
        "gil": bool(gil_enabled),
    }


# ---- in the process that the user starts --------------------------------------------------------

_CHILD = """\
import importlib, json, sys
sys.path.insert(0, sys.argv[2])
from tvm_ffi import doctor
modules, libraries = json.loads(sys.argv[1])
for name in modules:
    importlib.import_module(name)
found = doctor.report(libraries)
sys.stdout.flush()
print('\\n' + json.dumps(found))
"""


def _examine(names: list[str]) -> dict[str, Any]:
    """Run `report` in a fresh process that first imports what the user named."""
    modules: list[str] = []
    libraries: list[str] = []
    for name in names:
        could_be_a_module = all(part.isidentifier() for part in name.split("."))
        is_a_module = could_be_a_module and not name.endswith(".so")
        (modules if is_a_module else libraries).append(name)
    command = [sys.executable, "-X", "faulthandler", "-c", _CHILD]
    command += [json.dumps([modules, libraries]), str(_PACKAGE.parent)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        found: dict[str, Any] = json.loads(done.stdout.rstrip().rpartition("\n")[2])
        return found
    if done.returncode < 0:
        how = f"was ended by {signal.Signals(-done.returncode).name}"
    else:
        how = f"failed with exit status {done.returncode}"
    what = ", ".join(["tvm_ffi", *modules])
    text = done.stderr.strip()
    return {
        "interpreter": _interpreter(),
        "paths": {"package": str(_PACKAGE)},
        "errors": [f"a process that imports {what} {how}:\n{text}"],
        "warnings": [],
    }


def _check_installation(found: dict[str, Any]) -> None:
    """Add what the metadata of installed packages says."""
    packages: dict[str, str | None] = {}
    for name in (_OURS, _REFERENCE):
        try:
            packages[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            packages[name] = None
    found["packages"] = packages
    for part in ("__init__.py", "_impl/conflicts.py", "lib/libtvm_ffi.so"):
        if not (_PACKAGE / part).exists():
            # First, because it causes the other errors.
            found["errors"].insert(
                0,
                f"{_PACKAGE / part} is missing: another package that owned the directory tvm_ffi "
                f"was removed. Install {_OURS} again: pip install --force-reinstall, and "
                "its wheel or a clone",
            )
            return
    from tvm_ffi._impl import conflicts

    other = conflicts.reference_installed()
    if other is not None:
        found["warnings"].append(
            f"{_REFERENCE} {other} is installed beside {_OURS}. {conflicts.REMEDY}"
        )
    first_line = (_PACKAGE / "__init__.py").read_text().splitlines()[1:2]
    if first_line and "Tether" not in first_line[0]:
        found["errors"].insert(
            0,
            f"{_PACKAGE / '__init__.py'} is not ours: another package was installed over {_OURS}. "
            f"{conflicts.REMEDY}",
        )


def _print_text(found: dict[str, Any]) -> None:
    versions = found.get("versions", {})
    interpreter = found["interpreter"]
    lock = "with the GIL" if interpreter["gil"] else "without the GIL"
    if versions:
        print(f"tether      {versions['tether']}, interface {versions['interface']}")
    print(f"python      {interpreter['version']} {lock}, {interpreter['executable']}")
    for name, path in found["paths"].items():
        print(f"{name:<12}{path}")
    for name, version in found["packages"].items():
        print(f"{name:<16}{version or 'not installed'}")
    tying = found.get("tying", {})
    if tying:
        print(f"tying       {'on' if tying['enabled'] else 'off'}")
        for name, meaning in _MEANING.items():
            print(f"  {name} {meaning:<46}{tying[name]}")
    if "clients" in found:
        print("clients     built with" if found["clients"] else "clients     none found")
    for client in found.get("clients", []):
        state = "loaded" if client["loaded"] else "not loaded"
        source = "" if client["by_note"] else ", by what it contains"
        owner = f" ({client['package']})" if client["package"] else ""
        print(f"  {client['built_with']}{source}, {state}: {client['path']}{owner}")
    for path in found.get("others", []):
        print(f"  does not use the interface: {path}")
    for kind in ("warnings", "errors"):
        for text in found[kind]:
            print(f"{kind[:-1]}: {text}")
    if not found["errors"] and not found["warnings"]:
        print("nothing is wrong")


# ---- the stand-in -------------------------------------------------------------------------------


# What pip accepts in the name of a wheel.
_VERSION = re.compile(
    r"(\d+!)?\d+(\.\d+)*((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?(\+[a-z0-9]+(\.[a-z0-9]+)*)?", re.ASCII
)


def write_stand_in(directory: str | os.PathLike[str], version: str) -> Path:
    """Write a wheel named apache-tvm-ffi that contains nothing and requires tether-ffi.

    With it installed, pip counts requirements for apache-tvm-ffi as satisfied.
    """
    import zipfile

    if not _VERSION.fullmatch(version):
        raise ValueError(f"{version!r} is not a version such as 0.1.15 or 0.1.15.post2")
    info = f"apache_tvm_ffi-{version}.dist-info"
    files = {
        f"{info}/METADATA": (
            f"Metadata-Version: 2.1\nName: {_REFERENCE}\nVersion: {version}\n"
            f"Summary: Stand-in: {_OURS} provides this interface\nRequires-Dist: {_OURS}\n"
        ),
        f"{info}/WHEEL": (
            f"Wheel-Version: 1.0\nGenerator: {_OURS}\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        ),
    }
    record = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    path = Path(directory, f"apache_tvm_ffi-{version}-py3-none-any.whl")
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as wheel:
        for name, text in {**files, f"{info}/RECORD": record}.items():
            wheel.writestr(name, text)
    return path


def main(arguments: list[str] | None = None) -> int:
    """Entry point of ``python -m tvm_ffi.doctor``; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tvm_ffi.doctor",
        description="Examine the installation of tvm_ffi and the libraries that use it.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "names", nargs="*", help="modules to import first, or libraries, or folders, to look at"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--strict", action="store_true", help="warnings also give exit status 1")
    parser.add_argument("--stand-in", metavar="DIR", help=f"write a wheel {_REFERENCE}, see below")
    parser.add_argument(
        "--stand-in-version",
        metavar="VERSION",
        help="its version; by default the interface level, which some requirements exclude",
    )
    options = parser.parse_args(arguments)
    if options.stand_in is not None:
        from tvm_ffi import __version__

        version = __version__ if options.stand_in_version is None else options.stand_in_version
        try:
            print(write_stand_in(options.stand_in, version))
        except ValueError as error:
            parser.error(f"--stand-in-version: {error}")
        except OSError as error:
            print(f"cannot write to {options.stand_in}: {error.strerror}", file=sys.stderr)
            return 1
        return 0
    found = _examine(options.names)
    _check_installation(found)
    found["ok"] = not found["errors"] and not (options.strict and found["warnings"])
    if options.json:
        print(json.dumps(found, indent=2))
    else:
        _print_text(found)
    return 0 if found["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
