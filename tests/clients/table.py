# SPDX-License-Identifier: Apache-2.0
"""Make the table of docs/clients.md: what prebuilt packages do on our runtime.

    PYTHONPATH=build/release/package python tests/clients/table.py            print it
    PYTHONPATH=build/release/package python tests/clients/table.py --write    put it into the page
    ... --reference 0.1.13.post3 0.1.15.post1     which of these releases manage the same steps

Downloads what is not in .cache/clients yet, 400 MB at first.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "skew")]

from fetch_headers import cache_dir, download  # noqa: E402
from packages import ORCJIT, TVM, TVM_NEEDS, XGRAMMAR, unpack  # noqa: E402

PAGE = HERE.parents[1] / "docs" / "clients.md"
BEGIN, END = "<!-- made by tests/clients/table.py -->", "<!-- end -->"


def run(
    driver: str, arguments: list[str], paths: list[Path], runtime: Path | None
) -> tuple[bool, list[str]]:
    """Run a driver on a runtime, ours by default; say whether it passed, and its lines."""
    own = str(runtime) if runtime is not None else os.environ.get("PYTHONPATH", "")
    done = subprocess.run(
        [sys.executable, str(HERE / driver), *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([*map(str, paths), own])},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    lines = done.stdout.splitlines()
    if done.returncode != 0 and not any(": " in line for line in lines):
        lines.append(f"start: {(done.stderr.strip().splitlines() or ['it crashed'])[-1]}")
    return done.returncode == 0 and lines[-1:] == ["ok"], lines


def described(passed: bool, lines: list[str], does: str) -> str:
    steps = dict(line.split(": ", 1) for line in lines if ": " in line)
    good = [name for name, result in steps.items() if result == "ok"]
    if passed:
        return f"works: {does or '; '.join(good)}"
    bad = [f"{name} (`{result}`)" for name, result in steps.items() if result != "ok"]
    return f"{'; '.join(good) or 'nothing'} work; not {'; '.join(bad)}"


def built_with(directory: Path) -> str:
    """Return what the doctor reads from the libraries of a package."""
    from tvm_ffi import doctor

    found = set()
    for library in directory.rglob("*.so"):
        client = doctor._client(str(library), False, "")
        if client is not None and client["built_with"]:
            found.add(client["built_with"])
    return ", ".join(sorted(found)) or "?"


def reference(release: str) -> Path:
    """Return the directory with the package of a release of the reference."""
    target = cache_dir("clients") / f"apache-tvm-ffi-{release}"
    if not (target / ".complete").exists():
        wheels = cache_dir()
        wheels.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(download(release, wheels)) as archive:
            archive.extractall(target)
        (target / ".complete").touch()
    return target


def rows() -> list[tuple[str, str, Path, str, list[str], list[Path], str]]:
    """Return package, version, directory, driver, its arguments, paths, what it does."""
    found = []
    for version in XGRAMMAR:
        directory = unpack("xgrammar", version)
        library = str(directory / "xgrammar" / "libxgrammar_bindings.so")
        does = "JSON schema, compile, accept and reject, token bitmask, errors, 2 threads"
        found.append(("xgrammar", version, directory, "drive_xgrammar.py", [library], [], does))
    needs = [unpack(name, version) for name, version in TVM_NEEDS.items()]
    for version in TVM:
        directory = unpack("apache-tvm", version)
        paths = [directory, *needs]
        found.append(("apache-tvm", version, directory, "drive_tvm.py", [], paths, ""))
    for version in ORCJIT:
        directory = unpack("apache-tvm-ffi-orcjit", version)
        does = "an object file compiled with our headers is loaded and called"
        found.append(
            ("apache-tvm-ffi-orcjit", version, directory, "drive_orcjit.py", [], [directory], does)
        )
    return found


def table(releases: list[str]) -> str:
    lines = ["| package | built with | result |", "|---|---|---|"]
    if releases:
        lines = ["| package | built with | result | apache-tvm-ffi |", "|---|---|---|---|"]
    for package, version, directory, driver, arguments, paths, does in rows():
        passed, output = run(driver, arguments, paths, None)
        result = described(passed, output, does)
        line = f"| {package} {version} | {built_with(directory)} | {result} |"
        if releases:
            manage = []
            if driver == "drive_tvm.py":  # the other drivers look at what only we promise
                for release in releases:
                    if run(driver, ["identity"], paths, reference(release))[0]:
                        manage.append(release)
                which = f"{', '.join(manage)} only" if manage else "none"
                line += f" passes on {which}; tried: {', '.join(releases)} |"
            else:
                line += " |"
        lines.append(line)
        print(line, file=sys.stderr)
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="put the table into the page")
    parser.add_argument("--reference", nargs="*", default=[], help="releases to compare with")
    options = parser.parse_args()
    made = table(options.reference)
    if not options.write:
        print(made)
        return
    before, rest = PAGE.read_text().split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n{made}\n{END}{after}")


if __name__ == "__main__":
    main()
