# SPDX-License-Identifier: Apache-2.0
"""Put compiled GPU code (CUBIN or FATBIN) into an object file.

    python -m tvm_ffi.utils.embed_cubin --cubin k.cubin --input-obj a.o --output-obj b.o --name k

The code of the object reaches it with ``TVM_FFI_EMBED_CUBIN(k)``. The data becomes an object of its
own in a read-only section, is merged with the input, and its symbols are then made local.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

__all__ = ["embed_cubin"]


def _section(name: str) -> str:
    """Return the section of a binary, which also tells that an object has this binary."""
    return f".rodata.tvm_ffi_cubin.{name}"


def _run(command: list[str], verbose: bool, folder: str | None = None) -> None:
    if verbose:
        print(" ".join(command))
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, errors="replace", check=False
        )
    except FileNotFoundError:
        raise RuntimeError(
            f"{command[0]} was not found. "
            "Install binutils (Debian and Ubuntu: apt install binutils)."
        ) from None
    if done.returncode != 0:
        raise RuntimeError(
            f"{command[0]} failed with status {done.returncode}\n"
            f"command: {' '.join(command)}\nstdout: {done.stdout}\nstderr: {done.stderr}"
        )


def embed_cubin(
    cubin_path: Path,
    input_obj_path: Path,
    output_obj_path: Path,
    name: str,
    verbose: bool = False,
) -> None:
    """Write an object file that is `input_obj_path` plus the bytes of `cubin_path`.

    :raises FileNotFoundError: a file is missing
    :raises RuntimeError: ``ld`` or ``objcopy`` failed, or is missing
    """
    cubin_path, input_obj_path = Path(cubin_path), Path(input_obj_path)
    if not cubin_path.is_file():
        raise FileNotFoundError(f"CUBIN file not found: {cubin_path}")
    if not input_obj_path.is_file():
        raise FileNotFoundError(f"Input object file not found: {input_obj_path}")
    begin = f"__tvm_ffi__cubin_{name}"
    with tempfile.TemporaryDirectory() as folder:
        data, renamed, merged = (Path(folder) / file for file in ("data", "data.o", "merged.o"))
        data.write_bytes(cubin_path.read_bytes())
        # ld derives symbols from the path as it is given, so the file has a plain name.
        binary = Path(folder) / "binary.o"
        _run(["ld", "-r", "-b", "binary", "-o", str(binary), "data"], verbose, folder)
        section = _section(name)
        rename = [
            *("--rename-section", f".data={section},alloc,load,readonly,data,contents"),
            *("--redefine-sym", f"_binary_data_start={begin}"),
            *("--redefine-sym", f"_binary_data_end={begin}_end"),
            *("--strip-symbol", "_binary_data_size"),
            *("--set-section-alignment", f"{section}=64"),
            *("--add-section", ".note.GNU-stack=/dev/null"),
            *("--set-section-flags", ".note.GNU-stack=contents,readonly"),
        ]
        _run(["objcopy", *rename, str(binary), str(renamed)], verbose)
        _run(["ld", "-r", "-o", str(merged), str(input_obj_path), str(renamed)], verbose)
        local = ["--localize-symbol", begin, "--localize-symbol", f"{begin}_end"]
        _run(["objcopy", *local, str(merged), str(output_obj_path)], verbose)


def _input_before(name: str, input_obj_path: Path, kept: Path) -> Path:
    """Return the object as it was before it got the binary, and keep that in the file `kept`."""
    if ";" in str(input_obj_path) and not input_obj_path.is_file():
        raise RuntimeError(
            f"a target with a binary may have one source, and has several objects: {input_obj_path}"
        )
    if not input_obj_path.is_file():
        raise FileNotFoundError(f"Input object file not found: {input_obj_path}")
    data = input_obj_path.read_bytes()
    if f"{_section(name)}\0".encode() not in data or not kept.is_file():
        temporary = kept.with_name(f"{kept.name}.tmp")
        temporary.write_bytes(data)
        temporary.replace(kept)
    return kept


def main() -> int:
    """Entry point of ``python -m tvm_ffi.utils.embed_cubin``; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tvm_ffi.utils.embed_cubin",
        description="Put compiled GPU code into an object file.",
    )
    parser.add_argument("--output-obj", required=True, type=Path, help="object file to write")
    parser.add_argument("--input-obj", required=True, type=Path, help="object file to add to")
    parser.add_argument(
        "--keep-input",
        type=Path,
        metavar="FILE",
        help="where to keep the input; used instead of an input that has this binary already",
    )
    parser.add_argument("--cubin", required=True, type=Path, help="CUBIN or FATBIN file")
    parser.add_argument("--name", required=True, help="name in TVM_FFI_EMBED_CUBIN(name)")
    parser.add_argument("-v", "--verbose", action="store_true", help="show the commands")
    asked = parser.parse_args()
    try:
        asked.output_obj.parent.mkdir(parents=True, exist_ok=True)
        if asked.keep_input is not None:
            asked.input_obj = _input_before(asked.name, asked.input_obj, asked.keep_input)
        embed_cubin(asked.cubin, asked.input_obj, asked.output_obj, asked.name, asked.verbose)
    except FileNotFoundError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    except RuntimeError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    except Exception as error:
        print(f"Unexpected error: {error}", file=sys.stderr)
        return 3
    if not asked.verbose:
        print(f"✓ Created {asked.output_obj}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
