# SPDX-License-Identifier: Apache-2.0
"""Clients that cannot work are refused with a sentence, and say what they were built with."""

from __future__ import annotations

import ctypes
import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import tvm_ffi
from support import ROOT, run_python
from tvm_ffi import libinfo

if shutil.which("cc") is None:
    pytest.skip("no C compiler: clients cannot be built", allow_module_level=True)

HEADER = Path(libinfo.find_include_path(), "tvm", "ffi", "c_api.h")
NOTE = f"{tvm_ffi.__version__} (tether {tvm_ffi.__tether_version__})"
USER_OF_THE_HEADER = """
#include <tvm/ffi/c_api.h>
int __tvm_ffi_zero(void* self, const TVMFFIAny* args, int32_t n, TVMFFIAny* result) {
  TVMFFIVersion version;
  TVMFFIGetVersion(&version);
  (void)self; (void)args; (void)n;
  result->type_index = kTVMFFIInt;
  result->v_int64 = 0;
  return 0;
}
"""


def compile_client(target: Path, source: str, *flags: str, compiler: str = "cc") -> Path:
    """Compile one source text into a library that uses our runtime."""
    suffix = ".c" if compiler == "cc" else ".cc"
    text = target.with_suffix(suffix)
    text.write_text(source)
    command = [compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-pedantic", "-Werror"]
    command += [f"-I{path}" for path in libinfo.include_paths()]
    command += [str(text), "-o", str(target), *flags]
    subprocess.run(command, check=True)
    return target


def client_info(path: Path) -> tvm_ffi.Map:
    return tvm_ffi.get_global_func("ffi.tether.ClientInfo")(str(path))


# ---- the note -----------------------------------------------------------------------------------


@pytest.mark.parametrize("compiler", ["cc", "c++"])
def test_our_headers_leave_a_note(tmp_path: Path, compiler: str) -> None:
    source = USER_OF_THE_HEADER
    if compiler == "c++":
        source = source.replace("int __tvm", 'extern "C" int __tvm')
    path = compile_client(
        tmp_path / "client.so", source, libinfo.find_libtvm_ffi(), compiler=compiler
    )
    info = client_info(path)
    assert info["by_note"] is True
    assert info["built_with"] == NOTE
    assert info["runtime"] == "libtvm_ffi.so"
    assert list(info["imports"]) == ["TVMFFIGetVersion"]
    assert tvm_ffi.load_module(path)["zero"]() == 0


def test_the_note_survives_section_garbage_collection_and_strip(tmp_path: Path) -> None:
    flags = ["-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections", "-s"]
    path = compile_client(tmp_path / "client.so", USER_OF_THE_HEADER, *flags)
    assert client_info(path)["built_with"] == NOTE


def test_the_oldest_note_counts(tmp_path: Path) -> None:
    older = re.sub(r"(TVM_FFI_VERSION_PATCH) \d+", r"\1 9", HEADER.read_text())
    (tmp_path / "older.h").write_text(older)
    (tmp_path / "second.c").write_text(USER_OF_THE_HEADER.replace("zero", "one"))
    second = str(tmp_path / "second.c")
    path = compile_client(
        tmp_path / "client.so",
        USER_OF_THE_HEADER.replace("<tvm/ffi/c_api.h>", '"older.h"'),
        second,
        libinfo.find_libtvm_ffi(),
    )
    assert client_info(path)["built_with"].startswith("0.1.9 ")


def test_versions_agree() -> None:
    text = HEADER.read_text()
    in_header = re.findall(r"#define TVM_FFI_VERSION_\w+ (\d+)", text)
    ours_in_header = re.findall(r"#define TVM_FFI_TETHER_VERSION_\w+ (\d+)", text)
    assert ".".join(in_header) == tvm_ffi.__version__
    assert ".".join(ours_in_header) == tvm_ffi.__tether_version__
    assert tvm_ffi.__version_tuple__ == tuple(map(int, in_header))
    project = re.search(r'^version = "(.*)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert project is not None and project[1] == tvm_ffi.__tether_version__
    of_the_runtime = (ctypes.c_uint32 * 3)()
    tvm_ffi.LIB.TVMFFIGetVersion(of_the_runtime)
    assert tuple(of_the_runtime) == tvm_ffi.__version_tuple__


# ---- refused ------------------------------------------------------------------------------------

# Its constructor leaves a file behind: a refused client must not have run.
TRACE = """
#include <stdio.h>
__attribute__((constructor)) static void leave_trace(void) {{
  FILE* file = fopen("{trace}", "w");
  if (file) fclose(file);
}}
"""


def refused(path: Path, trace: Path) -> str:
    """Load a client every way there is; return what the error said."""
    with pytest.raises(RuntimeError) as caught:
        tvm_ffi.load_module(path)
    name = path.name.removeprefix("lib").removesuffix(".so")
    with pytest.raises(RuntimeError, match="Cannot load"):
        libinfo.load_lib_module("no-such-package", name, extra_lib_paths=[path.parent])
    with pytest.raises(RuntimeError, match="Cannot load"):
        libinfo.load_lib_ctypes("no-such-package", name, "RTLD_LOCAL", [path.parent])
    assert not trace.exists(), "a refused library has run"
    text = str(caught.value)
    assert text.startswith(f"Cannot load {path}: it was built with ")
    assert f"interface {tvm_ffi.__version__} (tether {tvm_ffi.__tether_version__})" in text
    return text


def test_a_missing_function_is_named(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    source = TRACE.format(trace=trace) + (
        "int TVMFFINotYetInvented(void);\nint use(void) { return TVMFFINotYetInvented(); }\n"
    )
    text = refused(compile_client(tmp_path / "libnew.so", source), trace)
    assert "needs TVMFFINotYetInvented" in text and "newer tether-ffi" in text


def test_many_missing_functions_are_counted(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    names = [f"TVMFFIFuture{i}" for i in range(9)]
    source = TRACE.format(trace=trace) + "".join(f"void {n}(void);\n" for n in names)
    source += "void use(void) { " + " ".join(f"{n}();" for n in names) + " }\n"
    text = refused(compile_client(tmp_path / "libnew.so", source), trace)
    assert "TVMFFIFuture0" in text and "and 4 more" in text


def test_a_client_that_brings_its_own_runtime(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    bundled = compile_client(
        tmp_path / "libtvm_ffi-0a1b2c.so",
        "void TVMFFIGetVersion(void* out) { (void)out; }\n",
        "-Wl,-soname,libtvm_ffi-0a1b2c.so",
    )
    source = TRACE.format(trace=trace) + (
        "void TVMFFIGetVersion(void*);\nvoid use(void) { TVMFFIGetVersion(0); }\n"
    )
    path = compile_client(tmp_path / "libbundler.so", source, str(bundled))
    assert "its own copy of the runtime, libtvm_ffi-0a1b2c.so" in refused(path, trace)


def test_a_second_runtime_as_a_module(tmp_path: Path) -> None:
    copy = tmp_path / "libtvm_ffi.so"
    shutil.copy(libinfo.find_libtvm_ffi(), copy)
    with pytest.raises(RuntimeError, match=f"Cannot load {copy}: it is a second runtime"):
        tvm_ffi.load_module(copy)
    tvm_ffi.load_module(libinfo.find_libtvm_ffi())


def test_modules_of_the_release_with_wide_optionals(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    # What a client of 0.1.13 that derives a module class asks the linker for.
    source = TRACE.format(trace=trace) + (
        "void* TVMFFIGetCustomAllocator(void);\nextern void* _ZTIN3tvm3ffi9ModuleObjE;\n"
        "void* use(void) { return TVMFFIGetCustomAllocator() ? _ZTIN3tvm3ffi9ModuleObjE : 0; }\n"
    )
    text = refused(compile_client(tmp_path / "libwide.so", source), trace)
    assert "built with 0.1.13, whose optional objects had 16 bytes" in text


def test_libraries_that_are_no_clients_are_let_alone(tmp_path: Path) -> None:
    path = compile_client(tmp_path / "plain.so", "int unrelated(void) { return 1; }\n")
    assert client_info(path)["is_client"] is False
    tvm_ffi.load_module(path)
    assert client_info(tmp_path) is None
    assert client_info(tmp_path / "absent.so") is None
    with pytest.raises(RuntimeError, match=r"absent\.so"):
        tvm_ffi.load_module(tmp_path / "absent.so")


def test_damaged_files_are_read_safely(tmp_path: Path) -> None:
    good = compile_client(
        tmp_path / "client.so", USER_OF_THE_HEADER, libinfo.find_libtvm_ffi()
    ).read_bytes()
    chance = random.Random(5)
    path = tmp_path / "damaged.so"
    for round_number in range(300):
        data = bytearray(good[: chance.randrange(len(good))] if round_number % 3 == 0 else good)
        for _ in range(chance.randrange(1, 20)):
            if data:
                # Mostly in the headers, where the numbers are that matter.
                data[chance.randrange(min(len(data), chance.choice((64, 700, 8000, 1 << 30))))] = (
                    chance.randrange(256)
                )
        path.write_bytes(data)
        client_info(path)
        try:
            tvm_ffi.get_global_func("ffi.tether.CheckClient")(str(path))
        except RuntimeError as error:
            assert "Cannot load" in str(error)


# ---- two runtimes, two packages -----------------------------------------------------------------


@pytest.mark.parametrize("name", ["libtvm_ffi.so", "libtvm_ffi-0a1b2c.so"])
def test_a_second_runtime_is_refused_at_import(tmp_path: Path, name: str) -> None:
    copy = tmp_path / name
    shutil.copy(libinfo.find_libtvm_ffi(), copy)
    output = run_python(f"""
import ctypes
ctypes.CDLL({str(copy)!r}, mode=ctypes.RTLD_GLOBAL)
try:
    import tvm_ffi
except ImportError as error:
    print(error)
""")
    assert f"another runtime is already loaded: {copy}" in output
    assert "Import tvm_ffi before" in output


def site_with_package(tmp_path: Path, record: str) -> Path:
    """Return a directory as pip leaves it with our package and metadata of the other one."""
    site = tmp_path / "site"
    (site / "apache_tvm_ffi-0.1.12.dist-info").mkdir(parents=True)
    (site / "apache_tvm_ffi-0.1.12.dist-info" / "RECORD").write_text(record)
    (site / "apache_tvm_ffi-0.1.12.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: apache-tvm-ffi\nVersion: 0.1.12\n"
    )
    (site / "tvm_ffi").mkdir()
    for entry in Path(tvm_ffi.__file__).parent.iterdir():
        if entry.name != "__pycache__":
            (site / "tvm_ffi" / entry.name).symlink_to(entry)
    return site


def run_in(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(site)}
    command = [sys.executable, "-W", "always", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_both_packages_installed(tmp_path: Path) -> None:
    site = site_with_package(tmp_path, "tvm_ffi/__init__.py,sha256=x,1\n")
    done = run_in(site, "-c", "import tvm_ffi; print(tvm_ffi.__file__)")
    assert done.returncode == 0 and str(site) in done.stdout
    assert "apache-tvm-ffi 0.1.12 is installed beside tether-ffi" in done.stderr
    doctor = run_in(site, "-m", "tvm_ffi.doctor")
    assert "warning: apache-tvm-ffi 0.1.12 is installed beside" in doctor.stdout
    assert doctor.returncode == 0
    assert run_in(site, "-m", "tvm_ffi.doctor", "--strict").returncode == 1


def test_a_stand_in_is_no_conflict(tmp_path: Path) -> None:
    site = site_with_package(tmp_path, "apache_tvm_ffi-0.1.12.dist-info/METADATA,,\n")
    done = run_in(site, "-c", "import tvm_ffi")
    assert (done.returncode, done.stderr) == (0, "")
    assert run_in(site, "-m", "tvm_ffi.doctor", "--strict").returncode == 0


def test_another_runtime_in_our_place(tmp_path: Path) -> None:
    site = site_with_package(tmp_path, "tvm_ffi/lib/libtvm_ffi.so,,\n")
    (site / "tvm_ffi" / "lib").unlink()
    (site / "tvm_ffi" / "lib").mkdir()
    for entry in Path(libinfo.find_libtvm_ffi()).parent.iterdir():
        if entry.name != "libtvm_ffi.so":
            (site / "tvm_ffi" / "lib" / entry.name).symlink_to(entry)
    compile_client(
        site / "tvm_ffi" / "lib" / "libtvm_ffi.so",
        "int unrelated(void) { return 0; }\n",
        "-Wl,-soname,libtvm_ffi.so",
    )
    done = run_in(site, "-c", "import tvm_ffi")
    assert done.returncode == 1
    assert "ImportError" in done.stderr.splitlines()[-1]
    assert "apache-tvm-ffi 0.1.12 is installed beside" in done.stderr.splitlines()[-1]
