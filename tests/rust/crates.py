# SPDX-License-Identifier: Apache-2.0
"""Builds the Rust libraries of the tests."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import tvm_ffi

HERE = Path(__file__).parent


def cargo_environment(name: str, scratch: Path) -> dict[str, str]:
    """The environment in which cargo builds with the package under test."""
    libraries = Path(tvm_ffi.__file__).parent / "lib"
    # The released crates ask this command; ours also take the variable.
    config = scratch / "tvm-ffi-config"
    config.write_text(f"#!/bin/sh\necho '{libraries}'\n")
    config.chmod(0o755)
    return {
        **os.environ,
        "CARGO_TARGET_DIR": str(HERE.parents[1] / "rust" / "target" / "tests" / name),
        "PATH": f"{scratch}{os.pathsep}{os.environ['PATH']}",
        "TVM_FFI_LIBDIR": str(libraries),
    }


def build_crate(name: str, scratch: Path) -> Path:
    """The library of the crate in the folder of that name, linked with the package under test.

    TETHER_RUST_LIBRARIES names a folder where it has been built already.
    """
    built = os.environ.get("TETHER_RUST_LIBRARIES")
    if built:
        return Path(built) / f"lib{name}.so"
    environment = cargo_environment(name, scratch)
    manifest = HERE / name / "Cargo.toml"
    command = ["cargo", "build", "--quiet", "--manifest-path", str(manifest)]
    subprocess.run(command, check=True, env=environment)
    return Path(environment["CARGO_TARGET_DIR"]) / "debug" / f"lib{name}.so"
