# SPDX-License-Identifier: Apache-2.0
"""Download released wheels of the reference and unpack what compilers and linkers need of them.

The old-binary tests build our own client against the headers inside these wheels; the benchmarks
also link the newest one's library. Nothing of it is ever committed: it lives in .cache/wheels (or
$TETHER_CACHE/wheels), is fetched once, and is only handed to the compiler.

    python tests/skew/fetch_headers.py              every release below
    python tests/skew/fetch_headers.py 0.1.12       one release

Prints one directory per line, each with include/ and lib/. Releases that could not be had because
the package index cannot be reached are named on stderr, `<release>: <reason>`, and the exit status
is 3, so the caller may skip them; any other failure is an error.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

# Every release since List and Dict exist that differs from its neighbours in what clients inline.
# 0.1.13, the only one that allocated objects through the registry, is withdrawn, but exact pins
# still install.
RELEASES = [
    "0.1.9",
    "0.1.10",
    "0.1.11",
    "0.1.12",
    "0.1.13",
    "0.1.13.post3",
    "0.1.14.post1",
    "0.1.15.post1",
]
INDEX_UNREACHABLE = 3

ROOT = Path(__file__).resolve().parents[2]
NETWORK_TROUBLE = re.compile(
    r"Retrying \(|ConnectionError|ConnectTimeout|ProxyError|name resolution|Network is unreachable"
)


def cache_dir(kind: str = "wheels") -> Path:
    return Path(os.environ.get("TETHER_CACHE", ROOT / ".cache")) / kind


class IndexUnreachable(Exception):
    """The package index does not answer."""


def download(release: str, into: Path, package: str = "apache-tvm-ffi") -> Path:
    """Return the wheel of `release`, downloading it when it is not in `into` yet."""
    pattern = f"{package.replace('-', '_')}-{release}-*.whl"
    if not any(into.glob(pattern)):
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
        command += ["--disable-pip-version-check", "--retries=2", "--timeout=30", "--quiet"]
        command += ["--dest", str(into), f"{package}=={release}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            output = done.stdout + done.stderr
            if NETWORK_TROUBLE.search(output):
                raise IndexUnreachable
            sys.exit(f"cannot download {package} {release}:\n{output}")
    return next(into.glob(pattern))


def unpack(wheel: Path, into: Path) -> None:
    """Extract the package's include/ and lib/ to `into`; the last file written marks completion."""
    complete = into / ".complete"
    if complete.exists():
        return
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            wanted = name.startswith(("tvm_ffi/include/", "tvm_ffi/lib/"))
            if wanted and not name.endswith("/"):
                target = into / name.removeprefix("tvm_ffi/")
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(archive.read(name))
    complete.touch()


def main(releases: list[str]) -> None:
    cache = cache_dir()
    cache.mkdir(parents=True, exist_ok=True)
    status = 0
    for release in releases:
        target = cache / release
        try:
            unpack(download(release, cache), target)
        except IndexUnreachable:
            print(f"{release}: the package index cannot be reached", file=sys.stderr)
            status = INDEX_UNREACHABLE
        else:
            print(target)
    sys.exit(status)


if __name__ == "__main__":
    main(sys.argv[1:] or RELEASES)
