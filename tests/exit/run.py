# SPDX-License-Identifier: Apache-2.0
"""Exit while other threads use the FFI: no process may die, hang, or unwind frames of a client.

PYTHONPATH=build/release/package python tests/exit/run.py             # 60 processes
PYTHONPATH=build/release/package python tests/exit/run.py 2000        # the bar for a release
PYTHONPATH=build/release/package python tests/exit/run.py 300 hooks   # some of the programs
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
AT_ONCE = 6  # more than there are processors, so that threads are interrupted anywhere
SECONDS = 300.0
FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


def build_client(folder: Path) -> Path:
    """Compile client.cc against the package that is imported."""
    from tvm_ffi import libinfo

    target = folder / "exit_client.so"
    command = ["c++", "-std=c++17", "-O1", "-shared", "-fPIC", "-Wall", "-Werror", "-pthread"]
    command += [f"-I{path}" for path in libinfo.include_paths()]
    command += [str(HERE / "client.cc"), "-o", str(target), libinfo.find_libtvm_ffi()]
    subprocess.run(command, check=True)
    return target


def stacks_of(process: int) -> str:
    """What all threads of a process that does not end are doing, if there is gdb to ask."""
    gdb = shutil.which("gdb")
    if gdb is None:
        return ""
    command = [gdb, "-p", str(process), "-batch", "-ex", "thread apply all backtrace 30"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def is_deadlock_of_cpython(stacks: str) -> bool:
    """Whether the main thread waits for a lock that CPython handed to a thread it has ended.

    That happens to free-threaded CPython 3.13 without any extension too, with daemon threads that
    use weakref.finalize: a lock that is contended goes straight to one of those who wait for it,
    and that one cannot attach any more. Nothing outside of CPython can prevent it.
    """
    threads = re.split(r"^Thread ", stacks, flags=re.MULTILINE)
    ended = ("PyThread_hang_thread", "PyThread_exit_thread", "tstate_wait_attach", "__libc_pause")
    main = next((stack for stack in threads if stack.startswith("1 ")), "")
    return (
        FREE_THREADED
        and "_PyMutex_LockTimed" in main
        and any(name in stack for stack in threads for name in ended)
    )


def run_one(name: str, client: Path) -> str:
    """Run one program; returns what is wrong with its end."""
    command = [sys.executable, str(HERE / "programs.py"), name, str(client)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=os.environ) as process:
        try:
            _, errors = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            stacks = stacks_of(process.pid)
            process.kill()
            if is_deadlock_of_cpython(stacks):
                print(f"{name}: CPython ended a thread that had one of its locks; not counted")
                return ""
            return f"{name}: did not end in {SECONDS} s\n{stacks}"
    if process.returncode == 0:
        return ""
    return f"{name}: exit status {process.returncode}\n{errors[-2000:]}"


def run(count: int, names: list[str], client: Path) -> list[str]:
    """Run `count` processes, the programs in turn; returns the failures."""
    jobs = [names[i % len(names)] for i in range(count)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        results = pool.map(lambda name: run_one(name, client), jobs)
        return [failure for failure in results if failure]


def all_names() -> list[str]:
    """The programs, by the functions that start them."""
    text = (HERE / "programs.py").read_text()
    return re.findall(r"^@program\ndef (\w+)", text, re.MULTILINE)


def main() -> int:
    """Print every failure and a last line; the exit status says whether there was one."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    with tempfile.TemporaryDirectory() as folder:
        failures = run(count, sys.argv[2:] or all_names(), build_client(Path(folder)))
    for failure in failures:
        print(failure)
    version = sysconfig.get_python_version() + ("t" if FREE_THREADED else "")
    print(f"python {version}: {len(failures)} of {count} processes failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
