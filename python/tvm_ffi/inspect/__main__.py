# SPDX-License-Identifier: Apache-2.0
"""Run a program and write the page of its objects at its end, or at a signal.

    python -m tvm_ffi.inspect [-o PAGE] [--signal NAME] [--record] SCRIPT [ARGUMENTS]
    python -m tvm_ffi.inspect [...] -m MODULE [ARGUMENTS]

At a signal (SIGUSR1 unless told otherwise) the page is written and the program goes on.

>>> from tvm_ffi.inspect.__main__ import main
>>> callable(main)
True
"""

from __future__ import annotations

import argparse
import importlib.util
import runpy
import signal
import sys
from pathlib import Path
from typing import Any

from . import _quiet, graph, start_recording


def write_page(path: Path, title: str) -> bool:
    """Write the page of everything that can be found, and say whether that was possible."""
    found = graph()
    try:
        found.to_html(path, title=title)
    except OSError as error:
        print(f"tvm_ffi.inspect: cannot write {path}: {error.strerror}", file=sys.stderr)
        return False
    # Most functions are those of the package: what else there is comes first.
    counts = sorted(found.by_type().items(), key=lambda item: "unction" in item[0])
    kinds = ", ".join(f"{count} {name}" for name, count in counts[:5])
    text = f"tvm_ffi.inspect: {len(found.nodes)} objects ({kinds}) in {path}"
    print(_quiet.printable(text), file=sys.stderr)
    return True


def parse(arguments: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tvm_ffi.inspect",
        usage="%(prog)s [-h] [-o PAGE] [--signal NAME] [--record] (SCRIPT | -m MODULE) [ARGUMENTS]",
        description="Run a program; write the page of its C++ objects at its end, or at a signal.",
    )
    parser.add_argument("-o", "--output", type=Path, default=Path("objects.html"), metavar="PAGE")
    parser.add_argument("--signal", default="SIGUSR1", metavar="NAME", help="or 'none'")
    parser.add_argument(
        "--record", action="store_true", help="remember the line that made each object"
    )
    parser.add_argument("-m", dest="is_module", action="store_true", help="SCRIPT is a module")
    parser.add_argument("script", metavar="SCRIPT")
    rest = parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGUMENTS")
    rest.required = False  # the message for a missing script would name it, too
    return parser.parse_args(arguments)


def check(options: argparse.Namespace, page: Path) -> None:
    """Stop before the program runs if it is not there, or if its page cannot be written."""
    if options.is_module:
        try:
            is_there = importlib.util.find_spec(options.script) is not None
        except ModuleNotFoundError:  # a package that it is in
            is_there = False
    else:
        script = Path(options.script)
        is_there = (script / "__main__.py" if script.is_dir() else script).exists()
    if not is_there:
        kind = "module" if options.is_module else "file"
        sys.exit(f"tvm_ffi.inspect: there is no {kind} {options.script}")
    is_new = not page.exists()
    try:
        with page.open("a"):
            pass
    except OSError as error:
        sys.exit(f"tvm_ffi.inspect: cannot write {page}: {error.strerror}")
    if is_new:
        page.unlink()


def main(arguments: list[str] | None = None) -> None:
    """Run the command line."""
    options = parse(sys.argv[1:] if arguments is None else arguments)
    page = options.output.absolute()  # the program may change the directory
    title = f"Objects of {options.script}"
    if options.signal != "none":

        def at_signal(_number: int, _frame: Any) -> None:
            write_page(page, title)

        number = signal.__dict__.get(options.signal)
        if not isinstance(number, signal.Signals):
            sys.exit(f"tvm_ffi.inspect: there is no signal {options.signal}")
        try:
            signal.signal(number, at_signal)
        except OSError as error:
            sys.exit(f"tvm_ffi.inspect: cannot wait for {options.signal}: {error.strerror}")
    if options.record:
        start_recording()
    folder = Path.cwd() if options.is_module else Path(options.script).absolute().parent
    sys.path.insert(0, str(folder))
    check(options, page)
    sys.argv = [options.script, *options.arguments]
    namespace: dict[str, Any] = {}
    is_written = False
    try:
        if options.is_module:
            namespace = runpy.run_module(options.script, run_name="__main__", alter_sys=True)
        else:
            namespace = runpy.run_path(options.script, run_name="__main__")
    finally:
        # The variables of the program live until here, and so do those of a failure.
        is_written = write_page(page, title)
        del namespace
    if not is_written:
        sys.exit(1)


if __name__ == "__main__":
    main()
