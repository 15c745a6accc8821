# SPDX-License-Identifier: Apache-2.0
"""`tvm_ffi.cpp`: what is built is right, is built once, and failures say what to do."""

from __future__ import annotations

import ctypes
import logging
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest
import tvm_ffi
import tvm_ffi.cpp
from support import run_python, run_threads
from tvm_ffi.cpp import _precompiled, _steps, _toolchain, extension
from tvm_ffi.utils import FileLock

pytestmark = pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler")

FAST = ["-O0"]  # most tests compile something that runs once
C_ADD = """
#include <tvm/ffi/c_api.h>
TVM_FFI_DLL_EXPORT int __tvm_ffi_c_add(void* self, const TVMFFIAny* args, int32_t n,
                                       TVMFFIAny* result) {
  result->type_index = kTVMFFIInt;
  result->zero_padding = 0;
  result->v_int64 = args[0].v_int64 + args[1].v_int64 + SUMMAND;
  return 0;
}
"""


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep results of all tests of this run in one place, and none in the user's cache."""
    root = tmp_path_factory.getbasetemp() / "cpp cache"
    monkeypatch.setenv("TVM_FFI_CACHE_DIR", str(root))
    for name in ("CXX", "CC", "MAX_JOBS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TVM_FFI_CPP_PRECOMPILED_HEADER", "0")  # it takes longer than two tests
    return root


@pytest.fixture
def c_file(tmp_path: Path) -> Path:
    """A C source that compiles fast."""
    path = tmp_path / "add.c"
    path.write_text(C_ADD.replace("SUMMAND", "0"))
    return path


def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that gets the output of every command that is run from now on."""
    outputs: list[str] = []
    run = _steps._run

    def noted(step: Any, directory: Path) -> Any:
        outputs.append(step.output.name)
        return run(step, directory)

    monkeypatch.setattr(_steps, "_run", noted)
    return outputs


def compiler_of(
    monkeypatch: pytest.MonkeyPatch, source: Path, folder: Path, **arguments: Any
) -> Callable[[], bool]:
    """Return a function that builds a C file, and says whether that took the compiler."""
    outputs = ran(monkeypatch)

    def built() -> bool:
        outputs.clear()
        tvm_ffi.cpp.build("m", sources=str(source), build_directory=str(folder), **arguments)
        return "c_0.o" in outputs

    return built


# ---- inline sources -------------------------------------------------------------------------

SOURCE = """
void add_one(tvm::ffi::TensorView x, tvm::ffi::TensorView y) {
  TVM_FFI_ICHECK_EQ(x.ndim(), 1);
  DLDataType f32{kDLFloat, 32, 1};
  TVM_FFI_ICHECK(x.dtype() == f32);
  for (int64_t i = 0; i < x.size(0); ++i) {
    static_cast<float*>(y.data_ptr())[i] = static_cast<float*>(x.data_ptr())[i] + 1;
  }
}
tvm::ffi::String shout(tvm::ffi::String text) {
  std::ostringstream os;
  for (char c : std::string(text)) os << static_cast<char>(std::toupper(c));
  return os.str();
}
uint64_t size_of(tvm::ffi::Bytes bytes) {
  TVMFFIByteArray array{bytes.data(), bytes.size()};
  return array.size;
}
int64_t apply(tvm::ffi::Function f, int64_t x) { return f(x).cast<int64_t>(); }
void* stream() { return TVMFFIEnvGetStream(kDLCPU, 0); }
tvm::ffi::Tensor like(tvm::ffi::TensorView x) {
  return tvm::ffi::Tensor::FromEnvAlloc(TVMFFIEnvTensorAlloc, tvm::ffi::Shape(x.shape()),
                                        x.dtype(), x.device());
}
"""
DOCS = {"add_one": 'Add "one"\n\tto \\ all.', "shout": "", "size_of": "", "apply": "", "like": ""}


@pytest.fixture
def module(cache: Path) -> Any:
    """Compiled by the first test that asks for it."""
    return tvm_ffi.cpp.load_inline(
        "everything",
        cpp_sources=SOURCE,
        functions={**DOCS, "stream": ""},
        extra_cflags=["-O0 -DTVM_FFI_DLL_EXPORT_INCLUDE_METADATA=1"],
    )


def test_inline_sources_use_the_usual_names_without_including_anything(module: Any) -> None:
    x, y = numpy.arange(3, dtype="float32"), numpy.zeros(3, dtype="float32")
    module.add_one(x, y)
    assert y.tolist() == [1, 2, 3]
    assert module["shout"]("abc") == "ABC"
    assert module.size_of(b"1234") == 4
    assert module.apply(lambda v: v + 1, 2) == 3
    assert module.stream().value is None
    with pytest.raises(RuntimeError, match="allocator is nullptr"):  # numpy has none, torch has
        module.like(x)


def test_metadata_and_documentation_of_exported_functions(module: Any) -> None:
    schema = tvm_ffi.core.TypeSchema.from_json_str(
        module.get_function_metadata("add_one")["type_schema"]
    )
    assert repr(schema) == "Callable[[Tensor, Tensor], None]"
    assert module.get_function_doc("add_one") == DOCS["add_one"]
    assert module.get_function_doc("shout") is None


def test_the_second_time_takes_no_time(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    outputs = ran(monkeypatch)
    times = []
    for _ in range(3):
        begin = time.process_time()
        again = tvm_ffi.cpp.load_inline(
            "everything",
            cpp_sources=SOURCE,
            functions={**DOCS, "stream": ""},
            extra_cflags=["-O0 -DTVM_FFI_DLL_EXPORT_INCLUDE_METADATA=1"],
        )
        times.append(time.process_time() - begin)
    assert outputs == [] and again.shout("a") == "A"
    assert min(times) < 0.05


def test_different_sources_of_one_name_are_different_modules() -> None:
    text = "int64_t f() {{ return {}; }}"
    results = [
        tvm_ffi.cpp.load_inline(
            "hello", cpp_sources=["", text.format(i)], functions="f", extra_cflags=FAST
        ).f()
        for i in (1, 2)
    ]
    assert results == [1, 2]


def test_messages_name_the_lines_of_the_user(tmp_path: Path) -> None:
    sources = ["int one() { return 1; }", "\nint two() {\n  return undeclared;\n}"]
    with pytest.raises(RuntimeError, match="exited with status 1") as raised:
        tvm_ffi.cpp.build_inline(
            "wrong", cpp_sources=sources, functions="one", build_directory=str(tmp_path)
        )
    text = str(raised.value)
    assert "warning" not in text  # no line of our headers
    assert "cpp_sources_1.cpp:3:10: error" in text
    assert "return undeclared;" in text  # with the line itself
    assert "command:\n" in text and "stderr:\n" in text and "stdout:" not in text


def test_an_export_of_what_is_not_there_names_the_generated_line(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError) as raised:
        tvm_ffi.cpp.build_inline(
            "wrong", cpp_sources="int f();", functions=["g"], build_directory=str(tmp_path)
        )
    lines = (tmp_path / "main.cpp").read_text().splitlines()
    line = next(i for i, text in enumerate(lines, 1) if "EXPORT" in text)
    assert f"main.cpp:{line}:" in str(raised.value)
    assert "TVM_FFI_DLL_EXPORT_TYPED_FUNC(g, g);" in str(raised.value)


# ---- files ----------------------------------------------------------------------------------


def test_c_sources(c_file: Path) -> None:
    assert tvm_ffi.cpp.load("c_module", sources=str(c_file)).c_add(10, 20) == 30


def test_only_what_changed_is_built_again(
    c_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = tmp_path / "my header.h"
    header.write_text("#define OTHER 1")
    other = tmp_path / "other.c"
    other.write_text('#include "my header.h"\nint other(void) { return OTHER; }')
    arguments: dict[str, Any] = {
        "sources": [str(c_file)],
        "cpp_files": [str(other)],
        "build_directory": str(tmp_path / "out"),
    }
    outputs = ran(monkeypatch)
    tvm_ffi.cpp.build("m", **arguments)
    assert sorted(outputs) == ["c_0.o", "c_1.o", "m.so"]
    tvm_ffi.cpp.build("m", **arguments)
    assert len(outputs) == 3
    header.write_text("#define OTHER 22")
    tvm_ffi.cpp.build("m", **arguments)
    assert outputs[3:] == ["c_1.o", "m.so"]
    tvm_ffi.cpp.build("m", **arguments, extra_ldflags=["-Wl,-z,now"])
    assert outputs[5:] == ["m.so"]


def test_object_files(c_file: Path, tmp_path: Path) -> None:
    one = tvm_ffi.cpp.build("m", sources=str(c_file), output="folder/part.o")
    assert one.endswith("part.o")
    assert Path(one).read_bytes() == (Path(one).parent / "c_0.o").read_bytes()
    assert tvm_ffi.cpp.load("linked", sources=[one]).c_add(1, 2) == 3
    other = tmp_path / "other.c"
    other.write_text("int other(void) { return 1; }")
    two = tvm_ffi.cpp.build("m", sources=[str(c_file), str(other)], output="both.o")
    assert tvm_ffi.cpp.load("linked", sources=[two]).c_add(1, 2) == 3


def test_a_relative_build_directory(
    c_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    built = tvm_ffi.cpp.build("m", sources="add.c", build_directory="./build/here", output="x.so")
    assert built == str(tmp_path / "build" / "here" / "x.so")


def test_spaces_and_quotes_in_paths_and_flags(tmp_path: Path) -> None:
    folder = tmp_path / "a 'strange' \"folder\" $x #1"
    (folder / "inc").mkdir(parents=True)
    (folder / "inc" / "value.h").write_text("#define BASE 1")
    source = folder / "my add.c"
    source.write_text('#include "value.h"\n' + C_ADD.replace("SUMMAND", "BASE + MORE"))
    arguments: dict[str, Any] = {
        "sources": [str(source)],
        "extra_cflags": [" -DMORE='(1 + 1)' "],
        "extra_include_paths": [str(folder / "inc")],
        "extra_ldflags": ["-Wl,-rpath,'$$ORIGIN/lib'"],
        "build_directory": str(folder / "out"),
    }
    module = tvm_ffi.cpp.load("m", **arguments)
    assert module.c_add(1, 2) == 6
    assert extension._Plan(
        **extension._file_plan("m", [str(source)], None, None),
        **extension._flag_plan([], [], arguments["extra_ldflags"], [], None, None, None),
    ).ldflags == ["-Wl,-rpath,$ORIGIN/lib"]


def test_inline_in_a_folder_with_quotes(tmp_path: Path) -> None:
    folder = tmp_path / 'quo"ted \\ folder'
    with pytest.raises(RuntimeError, match="cpp_sources_0.cpp:1:"):
        tvm_ffi.cpp.build_inline("m", cpp_sources="wrong", build_directory=str(folder))


def test_what_was_built_again_is_loaded_again(c_file: Path, tmp_path: Path) -> None:
    source = tmp_path / "again.c"
    for summand in (1, 22):
        source.write_text(C_ADD.replace("SUMMAND", str(summand)))
        module = tvm_ffi.cpp.load("again", sources=str(source), build_directory=str(tmp_path / "b"))
        assert module.c_add(1, 2) == 3 + summand
        assert module.c_add(1, 2) == 3 + summand
    assert (
        tvm_ffi.cpp.load("again", sources=str(source), build_directory=str(tmp_path / "b")).c_add(
            1, 2
        )
        == 25
    )


def test_a_copy_that_was_cut_off_is_not_loaded(tmp_path: Path) -> None:
    source, folder = tmp_path / "cut.c", tmp_path / "b"
    arguments = {"sources": str(source), "build_directory": str(folder)}
    source.write_text(C_ADD.replace("SUMMAND", "1"))
    assert tvm_ffi.cpp.load("cut", **arguments).c_add(1, 2) == 4  # type: ignore[arg-type]
    source.write_text(C_ADD.replace("SUMMAND", "22"))
    built = Path(tvm_ffi.cpp.build("cut", **arguments))  # type: ignore[arg-type]
    # What a process leaves behind that is killed while it copies.
    half = folder / f"cut.{built.stat().st_mtime_ns}.so"
    half.write_bytes(built.read_bytes()[:5000])
    assert tvm_ffi.cpp.load("cut", **arguments).c_add(1, 2) == 25  # type: ignore[arg-type]
    assert half.read_bytes() == built.read_bytes()
    assert not list(folder.glob("*.tmp"))


def test_a_copy_appears_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = tmp_path / "m.so"
    built.write_bytes(b"library")
    copy = tmp_path / f"m.{built.stat().st_mtime_ns}.so"
    copyfileobj = shutil.copyfileobj

    def slowly(*arguments: Any) -> None:
        copyfileobj(*arguments)
        assert not copy.exists()

    monkeypatch.setattr(shutil, "copyfileobj", slowly)
    assert extension._copy_of(built) == copy and copy.read_bytes() == b"library"
    monkeypatch.setattr(shutil, "copyfileobj", lambda *_: pytest.fail("it is there already"))
    assert extension._copy_of(built) == copy


@pytest.mark.parametrize("suffix", [".inc", "", ".h", ".C", ".a b"])
def test_a_file_with_another_suffix_is_cpp(tmp_path: Path, suffix: str) -> None:
    source = tmp_path / f"source{suffix}"
    source.write_text(
        'namespace n { int f() { return 7; } }\nextern "C" int g() { return n::f(); }'
    )
    built = tvm_ffi.cpp.build("m", sources=str(source), build_directory=str(tmp_path / "b"))
    assert ctypes.CDLL(built).g() == 7


def test_assembly_is_not_cpp(tmp_path: Path) -> None:
    source = tmp_path / "data.S"
    source.write_text(".data\n.globl value\nvalue: .long 7\n#ifdef NOT\n#endif\n")
    built = tvm_ffi.cpp.build("m", sources=str(source), build_directory=str(tmp_path / "b"))
    assert ctypes.c_int.in_dll(ctypes.CDLL(built), "value").value == 7


def test_files_of_the_user_are_not_overwritten(tmp_path: Path) -> None:
    mine = tmp_path / "main.cpp"
    mine.write_text("int mine;")
    with pytest.raises(FileExistsError, match="main.cpp exists and was not made by"):
        tvm_ffi.cpp.build_inline("m", cpp_sources="int x;", build_directory=str(tmp_path))
    assert mine.read_text() == "int mine;"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["main.cpp"]
    # A folder of ours may be used for another source, also after a build that failed.
    folder = str(tmp_path / "ours")
    for text in ("wrong", "also wrong"):
        with pytest.raises(RuntimeError, match="cpp_sources_0.cpp:1:"):
            tvm_ffi.cpp.build_inline("m", cpp_sources=text, build_directory=folder)


# ---- precompiled headers --------------------------------------------------------------------


def test_a_precompiled_header_is_made_when_the_same_flags_come_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("TVM_FFI_CPP_PRECOMPILED_HEADER")
    monkeypatch.setattr(_precompiled, "_MISSES", 2)
    outputs = ran(monkeypatch)
    flags = ["-O0", f"-DONLY_HERE_{tmp_path.name}"]
    for i in range(2):
        tvm_ffi.cpp.build_inline("m", cpp_sources=f"int f{i}();", extra_cflags=flags)
    assert outputs == ["cpp_0.o", "m.so", "prelude.h.gch", "cpp_0.o", "m.so"]
    tvm_ffi.cpp.build_inline("m", cpp_sources="int f1();", extra_cflags=flags)
    assert len(outputs) == 5
    # A header that went into it makes the result out of date, though the compiler did not name it.
    made = Path(tvm_ffi.cpp.build_inline("m", cpp_sources="int f1();", extra_cflags=flags)).parent
    assert any(path.name == "function.h" for path in _steps.inputs_of(made, "cpp_0.o"))
    # The header itself may go.
    for left in made.parent.glob("precompiled_*/prelude.h.gch"):
        left.unlink()
    tvm_ffi.cpp.build_inline("m", cpp_sources="int f1();", extra_cflags=flags)
    assert len(outputs) == 5


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_a_precompiled_header_notices_headers_of_the_system(
    compiler: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    monkeypatch.setenv("TVM_FFI_CPP_PRECOMPILED_HEADER", "1")
    outputs = ran(monkeypatch)
    header = tmp_path / "system.h"
    header.write_text("#define VALUE 1\n")
    flags, cxx = ["-O0", "-isystem", str(tmp_path)], [str(shutil.which(compiler))]
    source = tmp_path / "main.cpp"
    source.write_text('extern "C" int value() { return VALUE; }\n')
    prelude = "#include <system.h>\n"

    def value(number: int, hints: _steps.Hints) -> int:
        output = tmp_path / f"{number}.so"
        command = [*cxx, *flags, "-shared", "-fPIC", str(source), "-o", _steps.TEMPORARY]
        _steps.run_steps(tmp_path, [[_steps.Step(output, command, [source], hints=hints)]])
        return int(ctypes.CDLL(str(output)).value())

    flags.append("-fPIC")
    assert value(1, _precompiled.hints_for(tmp_path, cxx, flags, prelude)) == 1
    header.write_text("#define VALUE 22\n")
    assert value(2, _precompiled.hints_for(tmp_path, cxx, flags, prelude)) == 22
    assert [name for name in outputs if name.startswith("prelude")] == [outputs[0]] * 2


def test_what_fails_with_the_precompiled_header_is_compiled_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TVM_FFI_CPP_PRECOMPILED_HEADER", "1")
    broken = _steps.Hints(["-include", str(tmp_path / "is not there.h")])
    monkeypatch.setattr(_precompiled, "_make", lambda *_: broken)
    folder = str(tmp_path / "out")
    tvm_ffi.cpp.build_inline("m", cpp_sources="", extra_cflags=FAST, build_directory=folder)
    with pytest.raises(RuntimeError, match="cpp_sources_0.cpp:1:") as raised:
        tvm_ffi.cpp.build_inline("m", cpp_sources="x", extra_cflags=FAST, build_directory=folder)
    assert "is not there" not in str(raised.value)


def test_without_a_place_for_it_there_is_no_precompiled_header(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TVM_FFI_CPP_PRECOMPILED_HEADER", "1")
    (tmp_path / "file").touch()
    hints = _precompiled.hints_for(tmp_path / "file", _toolchain.cxx(), ["-O0"], "#define A")
    assert hints == _steps.Hints()
    hints = _precompiled.hints_for(tmp_path, _toolchain.cxx(), ["-O0"], "#error no")
    assert hints == _steps.Hints()
    hints = _precompiled.hints_for(tmp_path, [sys.executable], ["-O0"], "#define A")
    assert hints == _steps.Hints()
    monkeypatch.setenv("TVM_FFI_CPP_PRECOMPILED_HEADER", "0")
    hints = _precompiled.hints_for(tmp_path, _toolchain.cxx(), ["-O0"], "#define A")
    assert hints == _steps.Hints()


# ---- the cache ------------------------------------------------------------------------------


def test_a_broken_cache_is_built_again(c_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = Path(tvm_ffi.cpp.build("broken", sources=str(c_file)))
    outputs = ran(monkeypatch)
    record = built.parent / "build.json"
    for damage in ("", "[1]", "nonsense", '{"broken.so": 3}', '{"broken.so": {"command": []}}'):
        outputs.clear()
        record.write_text(damage)
        assert tvm_ffi.cpp.build("broken", sources=str(c_file)) == str(built)
        assert outputs == ["c_0.o", "broken.so"]
    outputs.clear()
    built.write_bytes(b"cut off")
    tvm_ffi.cpp.build("broken", sources=str(c_file))
    assert outputs == ["broken.so"]
    built.unlink()
    assert tvm_ffi.cpp.load("broken", sources=str(c_file)).c_add(1, 1) == 2


def test_a_cache_that_cannot_be_written_is_read(
    c_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = tvm_ffi.cpp.build("readonly", sources=str(c_file))
    monkeypatch.setattr(Path, "mkdir", lambda *args, **kwargs: pytest.fail("nothing is written"))
    assert tvm_ffi.cpp.build("readonly", sources=str(c_file)) == built


def test_a_cache_that_cannot_be_made_says_what_to_set(
    c_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TVM_FFI_CACHE_DIR", str(tmp_path / "file" / "cache"))
    with pytest.raises(OSError, match=r"set TVM_FFI_CACHE_DIR or pass build_directory.*file/cache"):
        tvm_ffi.cpp.build("m", sources=str(c_file))


def test_a_home_that_is_not_there_says_what_to_set(
    c_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TVM_FFI_CACHE_DIR")
    monkeypatch.setenv("HOME", "/proc")
    with pytest.raises(OSError, match="set TVM_FFI_CACHE_DIR or pass build_directory"):
        tvm_ffi.cpp.build("m", sources=str(c_file))

    def no_home(path: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "expanduser", no_home)
    with pytest.raises(OSError, match="home directory; .*set TVM_FFI_CACHE_DIR or pass build_dir"):
        tvm_ffi.cpp.build("m", sources=str(c_file))
    path = tvm_ffi.cpp.build("m", sources=str(c_file), build_directory=str(tmp_path / "out"))
    assert Path(path).is_file()


def test_the_cache_is_in_the_home_folder_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TVM_FFI_CACHE_DIR")
    monkeypatch.setenv("HOME", "/nowhere")
    assert extension._cache_root() == Path("/nowhere/.cache/tvm-ffi")
    monkeypatch.setenv("TVM_FFI_CACHE_DIR", "~/mine")
    assert extension._cache_root() == Path("/nowhere/mine")


def test_another_compiler_is_another_result(
    c_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = tvm_ffi.cpp.build("m", sources=str(c_file))
    compiler = tmp_path / "cc"
    compiler.write_text(f'#!/bin/sh\nexec {shutil.which("cc")} "$@"\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", f"'{compiler}' -pipe")
    second = tvm_ffi.cpp.build("m", sources=str(c_file))
    assert first != second
    compiler.write_text(compiler.read_text() + "\n# another version\n")
    assert tvm_ffi.cpp.build("m", sources=str(c_file)) not in (first, second)


def test_several_processes_and_threads_build_the_same_thing_once(
    c_file: Path, tmp_path: Path
) -> None:
    out, log = tmp_path / "out", tmp_path / "log"
    compiler = tmp_path / "cc"
    compiler.write_text(f'#!/bin/sh\necho run >> {log}\nsleep 0.2\nexec cc "$@"\n')
    compiler.chmod(0o755)
    code = f"""
import tvm_ffi.cpp
arguments = dict(sources={str(c_file)!r}, build_directory={str(out)!r})
assert tvm_ffi.cpp.load("m", **arguments).c_add(1, 2) == 3
"""
    environment = {
        **os.environ,
        "CC": str(compiler),
        "PYTHONPATH": str(Path(tvm_ffi.__file__).parents[1]),
    }
    processes = [subprocess.Popen([sys.executable, "-c", code], env=environment) for _ in range(3)]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    assert log.read_text() == "run\n"

    def in_thread(_: int) -> None:
        tvm_ffi.cpp.build("m", sources=str(c_file), build_directory=str(tmp_path / "threads"))

    run_threads(3, in_thread)


def test_a_killed_build_leaves_no_lock_behind(c_file: Path, tmp_path: Path) -> None:
    compiler = tmp_path / "cc"
    compiler.write_text(f"#!/bin/sh\ntouch '{tmp_path}/started'\nexec sleep 60\n")
    compiler.chmod(0o755)
    out = tmp_path / "out"
    arguments = {"sources": str(c_file), "build_directory": str(out)}
    environment = {
        **os.environ,
        "CC": str(compiler),
        "PYTHONPATH": str(Path(tvm_ffi.__file__).parents[1]),
    }
    code = f"import tvm_ffi.cpp\ntvm_ffi.cpp.build('m', **{arguments!r})"
    process = subprocess.Popen(
        [sys.executable, "-c", code], env=environment, start_new_session=True
    )
    lock = FileLock(str(out / "lock"))
    deadline = time.monotonic() + 120
    while not (tmp_path / "started").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert not lock.acquire()
    process.kill()  # only Python: the compiler it started lives on
    process.wait()
    try:
        assert tvm_ffi.cpp.load("m", **arguments).c_add(1, 2) == 3  # type: ignore[arg-type]
    finally:
        os.killpg(process.pid, signal.SIGKILL)


# ---- mistakes -------------------------------------------------------------------------------


def test_a_missing_compiler_is_named(c_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(FileNotFoundError, match=r"c\+\+ was not found.*apt install g\+\+.*CXX"):
        tvm_ffi.cpp.build_inline("m", cpp_sources="int f();")
    with pytest.raises(FileNotFoundError, match=r"cc was not found.*apt install gcc.*CC"):
        tvm_ffi.cpp.build("m", sources=str(c_file))
    monkeypatch.setenv("CXX", "my-c++ -m64")
    with pytest.raises(FileNotFoundError, match=r"my-c\+\+ was not found"):
        tvm_ffi.cpp.build_inline("m", cpp_sources="int f();")


def test_a_compiler_that_fails_without_a_word(
    c_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", shutil.which("false") or "")
    arguments = {"sources": str(c_file), "build_directory": str(tmp_path / "out")}
    for _ in range(2):  # a failure is not remembered
        with pytest.raises(RuntimeError, match=r"false exited with status 1\ncommand:\n[^\n]*$"):
            tvm_ffi.cpp.build("m", **arguments)  # type: ignore[arg-type]
    monkeypatch.delenv("CC")
    tvm_ffi.cpp.build("m", **arguments)  # type: ignore[arg-type]


def test_a_compiler_may_print_any_bytes(
    c_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = tmp_path / "compiler"
    compiler.write_text("#!/bin/sh\nprintf '\\377' >&2\nprintf '\\377'\nexec c++ \"$@\"\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    source = tmp_path / "a.cc"
    source.write_text("int a;\n")
    assert Path(tvm_ffi.cpp.build("bytes", sources=str(source))).is_file()


def test_a_compiler_that_writes_nothing(c_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", shutil.which("true") or "")
    with pytest.raises(RuntimeError, match=r"true succeeded but did not write c_0.o; is it a comp"):
        tvm_ffi.cpp.build("m", sources=str(c_file))


def test_quotes_that_are_left_open(c_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "cc '-m64")
    with pytest.raises(ValueError, match='CC="cc \'-m64" cannot be split into words: No closing'):
        tvm_ffi.cpp.build("m", sources=str(c_file))


def test_names_in_dependency_files() -> None:
    text = "a\\ b.o: x.c /a\\ b\\ /c.h \\\n tab\\\tbed.h back\\\\\\ slash \\#1 $$x\\y\n\nx.h:\n"
    assert list(_steps._names_in_depfile(text)) == [
        *("x.c", "/a b /c.h", "tab\tbed.h", "back\\ slash", "#1", "$x\\y")
    ]


def test_a_new_header_that_hides_another_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    (tmp_path / "second" / "value.h").write_text("enum { kValue = 1 };\n")
    source = tmp_path / "value.c"
    source.write_text("#include <value.h>\nint value(void) { return kValue; }\n")
    paths = [str(tmp_path / "first"), str(tmp_path / "second")]

    def value() -> int:
        path = tvm_ffi.cpp.build("m", sources=str(source), extra_include_paths=paths)
        shutil.copy(path, copy := tmp_path / f"copy{len(list(tmp_path.iterdir()))}.so")
        return int(ctypes.CDLL(str(copy)).value())

    assert value() == 1
    again = ran(monkeypatch)
    assert value() == 1 and again == []
    (tmp_path / "first" / "value.h").write_text("enum { kValue = 2 };\n")
    assert value() == 2


FOLDER_FLAGS: list[tuple[str, list[str]]] = [
    ("two words", ["-I", "{first}", "-I", "{second}"]),
    ("one flag", ["-I {first}", "-I {second}"]),
    ("quote", ["-iquote", "{first}", "-iquote{second}"]),
    ("quote comes first", ["-I{second}", "-iquote", "{first}"]),
    ("system", ["-isystem", "{first}", "-idirafter", "{second}"]),
]


@pytest.mark.parametrize("flags", [flags for _, flags in FOLDER_FLAGS], ids=dict(FOLDER_FLAGS))
def test_headers_count_however_their_folder_is_given(
    flags: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    source = tmp_path / "src" / "value.c"
    for folder in (first, second, source.parent):
        folder.mkdir()
    (second / "value.h").write_text("enum { kValue = 1 };\n")
    source.write_text('#include "value.h"\nint value(void) { return kValue; }\n')
    words = [flag.format(first=first, second=second) for flag in flags]
    built = compiler_of(monkeypatch, source, tmp_path / "out", extra_cflags=words)
    assert built() and not built()
    (second / "value.h").write_text("enum { kValue = 22 };\n")
    assert built() and not built()
    (first / "value.h").write_text("enum { kValue = 3 };\n")  # hides the other
    assert built() and not built()


@pytest.mark.parametrize("place", ["beside", "-I", "CPATH", "in a header"])
def test_a_header_that_is_only_asked_for_is_noticed(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, folder = tmp_path / "src" / "value.c", tmp_path / "folder"
    source.parent.mkdir()
    folder.mkdir()
    question = (
        '#if __has_include( "opt.h")\n#include "opt.h"\n#else\nenum { kValue = 1 };\n#endif\n'
    )
    flags = [] if place == "CPATH" else ["-I", str(folder)]
    if place == "CPATH":
        monkeypatch.setenv("CPATH", str(folder))
    if place == "in a header":
        (folder / "asks.h").write_text(question)
        question = '#include "asks.h"\n'
    source.write_text(f"{question}int value(void) {{ return kValue; }}\n")
    built = compiler_of(monkeypatch, source, tmp_path / "out", extra_cflags=flags)
    assert built() and not built()
    header = (source.parent if place == "beside" else folder) / "opt.h"
    header.write_text("enum { kValue = 2 };\n")
    assert built() and not built()
    header.unlink()
    assert built() and not built()


@pytest.mark.parametrize("name", ["data.bin", "{folder}/data.bin"])
def test_a_file_that_the_assembler_reads_is_noticed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, source = tmp_path / "data.bin", tmp_path / "blob.c"
    data.write_bytes(b"one")
    name = name.format(folder=tmp_path)
    source.write_text(f'asm(".globl blob\\nblob: .incbin \\"{name}\\"\\n");\n')
    paths = [str(tmp_path)]
    built = compiler_of(monkeypatch, source, tmp_path / "out", extra_include_paths=paths)
    assert built() and not built()
    data.write_bytes(b"another")
    assert built() and not built()


def test_libraries_count_however_they_are_given(
    c_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    archive, script = second / "libmine.a", tmp_path / "exports"
    for folder in (first, second):
        folder.mkdir()
    empty = b"!<arch>\n"
    script.write_text("{ global: *; };")
    outputs = ran(monkeypatch)

    def built(*flags: str) -> bool:
        outputs.clear()
        folder = str(tmp_path / "out")
        flags = (*flags, "-Wl,-soname,m.so", f"-Wl,-Map={tmp_path}/map")
        tvm_ffi.cpp.build("m", sources=str(c_file), extra_ldflags=flags, build_directory=folder)
        return outputs == ["m.so"] or len(outputs) == 2

    def touch(path: Path) -> None:
        stat = path.stat()
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))

    archive.write_bytes(empty)
    for flags in [
        [str(archive)],
        [f"-L{first}", "-L", str(second), "-lmine"],
        [f"-L{second} -l:libmine.a"],
        [f"-Wl,-L,{second},-l,mine"],
        [f"-Wl,-L{second}", "-Xlinker", "-lmine"],
        [f"-Wl,--library-path={second}", "-lmine"],
    ]:
        assert built(*flags) and not built(*flags)
        touch(archive)
        assert built(*flags) and not built(*flags), flags
    flags = [f"-L{first}", f"-L{second}", "-lmine", f"-Wl,--version-script={script}"]
    assert built(*flags) and not built(*flags)
    (first / "libmine.a").write_bytes(empty)  # hides the other
    assert built(*flags) and not built(*flags)
    touch(script)
    assert built(*flags) and not built(*flags)
    monkeypatch.setenv("LIBRARY_PATH", f"{tmp_path}/no{os.pathsep}{second}")
    for _ in range(2):
        assert built("-lmine") and not built("-lmine")
        touch(archive)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, AssertionError, "sources must be provided."),
        ({"cpp_sources": [1]}, TypeError, r"cpp_sources\[0\] must be a str, got int"),
        ({"cpp_sources": "", "functions": ["a::b"]}, ValueError, "'a::b' is not the name of a"),
        ({"cpp_sources": "", "extra_cflags": "-O0"}, TypeError, "extra_cflags must be a list of"),
        ({"cpp_sources": "", "extra_ldflags": ["'x"]}, ValueError, "No closing quotation"),
        ({"cpp_sources": "", "output": ""}, ValueError, "output must name a file"),
        ({"cpp_sources": "", "name": "a/b"}, ValueError, "name must be the name of a file"),
        ({"cpp_sources": "", "name": ""}, ValueError, "name must be the name of a file"),
        ({"cpp_sources": "", "name": None}, TypeError, "name must be a str, got NoneType"),
        ({"cpp_sources": "", "embed_cubin": {"a b": b""}}, ValueError, "is not an identifier"),
        ({"cpp_sources": 3}, TypeError, "cpp_sources must be a str or a list of str, got int"),
        ({"cpp_sources": b"x"}, TypeError, "cpp_sources must be a str or a list of str, got byt"),
        ({"cpp_sources": "", "functions": 3}, TypeError, "functions must be a str or a list of"),
        ({"cpp_sources": "", "functions": {"f": 3}}, TypeError, r"functions\['f'\] must be a str"),
        ({"cpp_sources": "", "functions": {"f": "a\0"}}, ValueError, r"\['f'\]: .* has a NUL char"),
        ({"cpp_sources": "", "extra_cflags": 3}, TypeError, "extra_cflags must be a list of str, "),
        ({"cpp_sources": "", "extra_cflags": ["\0"]}, ValueError, "extra_cflags: .* a NUL char"),
        ({"cpp_sources": "", "extra_include_paths": 3}, TypeError, "extra_include_paths must be a"),
        ({"cpp_sources": "", "build_directory": 3}, TypeError, "build_directory must be a str, go"),
        ({"cpp_sources": "", "embed_cubin": 3}, TypeError, "embed_cubin must be a mapping of nam"),
        ({"cpp_sources": "", "embed_cubin": {"a": "x"}}, TypeError, r"\['a'\] must be bytes, got"),
        ({"cpp_sources": "", "output": 3}, TypeError, "output must be a str, got int"),
        ({"cpp_sources": "", "output": ".."}, ValueError, "output must name a file"),
        *(
            ({"cpp_sources": "", "output": f"x/{name}"}, ValueError, "the build itself writes a fi")
            for name in ("build.json", "lock", "main.cpp", "cpp_sources_0.cpp", "cpp_0.d")
        ),
        ({"cuda_sources": "", "backend": "x"}, ValueError, "Invalid backend: x. Supported backen"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        tvm_ffi.cpp.build_inline(**{"name": "m", **arguments})


def test_a_source_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="source file not found: .*no.cc"):
        tvm_ffi.cpp.build("m", sources=str(tmp_path / "no.cc"))
    with pytest.raises(AssertionError, match="sources must be provided"):
        tvm_ffi.cpp.build("m")


@pytest.mark.parametrize("name", ["add.c", "lock", "build.json", "c_0.o", "m.so"])
def test_a_folder_in_the_place_of_a_file(name: str, c_file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    (folder / name).mkdir(parents=True)
    arguments = {"sources": str(c_file), "build_directory": str(folder)}
    if name == "add.c":  # no file of the build
        tvm_ffi.cpp.build("m", **arguments)  # type: ignore[arg-type]
        return
    with pytest.raises(IsADirectoryError, match=f"remove it or pass another.*out/{name}"):
        tvm_ffi.cpp.build("m", **arguments)  # type: ignore[arg-type]


def test_a_compiler_with_a_relative_path(
    c_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = tmp_path / "my-cc"
    compiler.write_text('#!/bin/sh\nexec cc "$@"\n')
    compiler.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CC", "./my-cc")
    assert tvm_ffi.cpp.load("m", sources=str(c_file)).c_add(1, 2) == 3


def test_a_compiler_that_is_no_program(
    c_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cc").write_bytes(b"\x7fELF")
    (tmp_path / "cc").chmod(0o755)
    monkeypatch.setenv("CC", str(tmp_path / "cc"))
    with pytest.raises(RuntimeError, match=r"/cc cannot be run: Exec format error; CXX, CC and"):
        tvm_ffi.cpp.build("m", sources=str(c_file))


def test_max_jobs(c_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for text in ("many", "0", "-1", "\u00b2"):
        monkeypatch.setenv("MAX_JOBS", text)
        with pytest.raises(ValueError, match=f"MAX_JOBS must be a positive number, got '{text}'"):
            tvm_ffi.cpp.build("m", sources=str(c_file), build_directory=str(tmp_path / "out"))
    monkeypatch.setenv("MAX_JOBS", "1")
    tvm_ffi.cpp.build("m", sources=str(c_file), build_directory=str(tmp_path / "out"))


def test_the_log(
    c_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("TVM_FFI_CPP_EXTENSION_LOG_BUILD", "1")
    with caplog.at_level(logging.INFO, logger="tvm_ffi.cpp.extension"):
        tvm_ffi.cpp.build("m", sources=str(c_file), build_directory=str(tmp_path / "out"))
    assert [record.name for record in caplog.records] == ["tvm_ffi.cpp.extension"] * 2
    assert "-fPIC -O2" in caplog.text


def test_progress_is_shown_on_a_terminal_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with _steps.progress("building"):
        pass
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with pytest.raises(ValueError), _steps.progress("building"):
        raise ValueError
    with _steps.progress("building"):
        pass
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("building ... failed in ")
    assert lines[1].startswith("building ... done in ")


def test_ninja_is_run_for_those_who_ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("ninja") is None:
        pytest.skip("no ninja")
    (tmp_path / "build.ninja").write_text("rule r\n  command = false\nbuild x: r\n")
    with pytest.raises(RuntimeError, match=r"^ninja exited with status 1\nstdout:\n"):
        extension.build_ninja(str(tmp_path))
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(FileNotFoundError, match="ninja was not found. Install it with: pip insta"):
        extension.build_ninja(str(tmp_path))


def test_the_module_is_reached_without_importing_it() -> None:
    assert "load_inline" in run_python("import tvm_ffi\nprint(tvm_ffi.cpp.__all__)")


# ---- GPUs: command lines and messages -------------------------------------------------------


@pytest.fixture
def toolkit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A CUDA toolkit whose nvcc only writes down how it was called."""
    home = tmp_path / "cuda"
    (home / "bin").mkdir(parents=True)
    nvcc = home / "bin" / "nvcc"
    nvcc.write_text(
        f"""#!{sys.executable}
import subprocess, sys
open({str(tmp_path / "nvcc.log")!r}, "a").write(repr(sys.argv[1:]) + "\\n")
out = sys.argv[sys.argv.index("-o") + 1]
subprocess.run(["c++", "-x", "c++", "-c", "/dev/null", "-o", out], check=True)
"""
    )
    nvcc.chmod(0o755)
    for name in ("CUDA_PATH", "ROCM_HOME", "ROCM_PATH", "TVM_FFI_GPU_BACKEND"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CUDA_HOME", str(home))
    monkeypatch.setenv("TVM_FFI_CUDA_ARCH_LIST", "8.9 9.0a")
    monkeypatch.setattr(_toolchain, "_detected_backend", lambda: "cuda")
    return home


def test_the_command_line_of_nvcc(toolkit: Path, tmp_path: Path) -> None:
    arguments: dict[str, Any] = {"cuda_sources": "__global__ void k() {}", "output": "k.o"}
    directory = tmp_path / "out"
    tvm_ffi.cpp.build_inline(
        "k",
        **arguments,
        extra_cuda_cflags=["-lineinfo"],
        extra_cflags=["-DNOT_FOR_CUDA"],
        functions="k",
        build_directory=str(directory),
    )
    words = eval((tmp_path / "nvcc.log").read_text())
    assert words[:4] == ["-Xcompiler", "-fPIC", "-std=c++17", "-O2"]
    assert words[4:6] == [
        "-gencode=arch=compute_89,code=sm_89",
        "-gencode=arch=compute_90a,code=sm_90a",
    ]
    assert "-lineinfo" in words[6:9]
    assert "-DNOT_FOR_CUDA" not in words
    text = (directory / "cuda.cu").read_text()
    assert text.startswith("#include <tvm/ffi/container/tensor.h>\n")
    assert "TVM_FFI_DLL_EXPORT_TYPED_FUNC(k, k);" in text
    plan = extension._Plan(
        **extension._inline_plan("k", "int f();", "void k();", ["f"], None),
        **extension._flag_plan([], [], ["-lmine"], [], None, None, None),
    )
    assert plan._link_flags()[2:] == [f"-L{toolkit}/lib64", "-lcudart", "-lmine"]
    assert "EXPORT" not in plan.inline[1].text(tmp_path)  # exports are in the C++ part


def test_a_cuda_source_without_nvcc(toolkit: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (toolkit / "bin" / "nvcc").unlink()
    with pytest.raises(FileNotFoundError, match=r"bin/nvcc was not found.*CUDA toolkit.*CUDA_HOME"):
        tvm_ffi.cpp.build_inline("k", cuda_sources="")
    monkeypatch.delenv("CUDA_HOME")
    monkeypatch.setattr(Path, "is_dir", lambda self: False)
    monkeypatch.setattr(shutil, "which", lambda *args, **kwargs: None)
    message = "Could not find CUDA installation. Please set CUDA_HOME environment variable."
    with pytest.raises(RuntimeError, match=message):
        tvm_ffi.cpp.build_inline("k", cuda_sources="")
    with pytest.raises(RuntimeError, match="Could not find ROCm installation. Please set ROCM_HO"):
        tvm_ffi.cpp.build_inline("k", cuda_sources="", backend="hip")


def test_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: dict[str, str] = {}
    monkeypatch.setattr(_toolchain, "_output_of", lambda *c: answers.get(c[min(1, len(c) - 1)], ""))
    monkeypatch.setenv("TVM_FFI_CUDA_ARCH_LIST", "90")
    with pytest.raises(ValueError, match="Invalid CUDA architecture: 90"):
        _toolchain.cuda_targets()
    monkeypatch.delenv("TVM_FFI_CUDA_ARCH_LIST")
    monkeypatch.delenv("TVM_FFI_ROCM_ARCH_LIST", raising=False)
    with pytest.raises(RuntimeError, match="Could not detect CUDA compute_cap automatically"):
        _toolchain.cuda_targets()
    with pytest.raises(RuntimeError, match="Please set TVM_FFI_ROCM_ARCH_LIST"):
        _toolchain.rocm_targets()
    answers["--query-gpu=name"] = "NVIDIA A100-SXM4\n"
    assert _toolchain.cuda_targets() == ["-gencode=arch=compute_80,code=sm_80"]
    answers["--query-gpu=compute_cap"] = "9.0\n8.0\n"
    assert _toolchain.cuda_targets() == ["-gencode=arch=compute_90,code=sm_90"]
    answers["rocminfo"] = "gfx000 gfx90a gfx90a"
    assert _toolchain.rocm_targets() == ["--offload-arch=gfx90a"]
    answers["rocm_agent_enumerator"] = "gfx000\ngfx942\n"
    assert _toolchain.rocm_targets() == ["--offload-arch=gfx942"]


def test_the_backend(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    detect = _toolchain._detected_backend.__wrapped__
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("CUDA_HOME", "CUDA_PATH", "ROCM_HOME", "ROCM_PATH", "TVM_FFI_GPU_BACKEND"):
        monkeypatch.delenv(name, raising=False)
    assert detect() == "cuda"
    rocm = tmp_path / "rocm" / "bin"
    rocm.mkdir(parents=True)
    (rocm / "hipcc").touch(0o755)
    monkeypatch.setenv("ROCM_PATH", str(rocm.parent))
    assert detect() == "hip" and _toolchain.rocm_home() == str(rocm.parent)
    (tmp_path / "nvcc").touch(0o755)
    assert detect() == "cuda"
    monkeypatch.setenv("TVM_FFI_GPU_BACKEND", "HIP")
    assert detect() == "hip"


def test_hip_flags(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "hipcc").touch(0o755)
    monkeypatch.setenv("ROCM_HOME", str(tmp_path))
    monkeypatch.setenv("TVM_FFI_ROCM_ARCH_LIST", "gfx942")
    plan = extension._Plan(
        **extension._inline_plan("k", None, "void k();", None, None),
        **extension._flag_plan([], ["-w"], [], [], None, "hip", None),
    )
    words = plan._compiler(".cu")
    assert words[:2] == [str(tmp_path / "bin" / "hipcc"), "-std=c++17"]
    assert {"-fno-gpu-rdc", "--offload-arch=gfx942", "-w", f"-I{tmp_path}/include"} <= set(words)
    assert plan._link_flags()[2:] == [f"-L{tmp_path}/lib", "-lamdhip64"]


def test_known_mistakes_of_compilers_are_avoided(tmp_path: Path) -> None:
    def compiler(text: str) -> list[str]:
        path = tmp_path / f"c{len(list(tmp_path.iterdir()))}"
        path.write_text(f"#!/bin/sh\necho '{text}'\n")
        path.chmod(0o755)
        return [str(path)]

    free = "Copyright (C) Free Software Foundation, Inc."
    for first, flags in [
        ("c++ (Debian 12.2.0-14) 12.2.0", ["-fno-ipa-modref"]),
        ("g++ (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0", ["-fno-ipa-modref"]),
        ("g++ (GCC) 13.1.0", []),
        ("g++ without a version", []),
    ]:
        assert _toolchain.workarounds(compiler(f"{first}\n{free}")) == flags, first
    assert _toolchain.style_of(compiler("clang version 12.0.1")) == ("clang", 0)
    assert _toolchain.style_of(compiler("something else")) == ("", 0)


# ---- names of types -------------------------------------------------------------------------


def test_cpp_names_of_data_types(monkeypatch: pytest.MonkeyPatch) -> None:
    from tvm_ffi.cpp import dtype

    to = tvm_ffi.cpp.to_cpp_dtype
    monkeypatch.setattr(dtype, "_backend", lambda: "cpu")
    assert [to(name) for name in ("uint8", "torch.float32", "float64", "bool", "int64")] == [
        *("uint8_t", "float", "double", "bool", "int64_t")
    ]
    with pytest.raises(ValueError, match=r"Unsupported dtype string: float16 for backend = 'cpu'"):
        to("torch.float16")
    monkeypatch.setattr(dtype, "_backend", lambda: "cuda")
    assert to("float8_e4m3fn") == "__nv_fp8_e4m3" and to("bfloat16") == "__nv_bfloat16"
    monkeypatch.setattr(dtype, "_backend", lambda: "rocm")
    assert to("float8_e4m3fnuz") == "__hip_fp8_e4m3_fnuz"
    with pytest.raises(ValueError, match="for backend = 'rocm'"):
        to("complex64")


def test_nvrtc_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    from tvm_ffi.cpp import nvrtc

    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    with pytest.raises(RuntimeError, match="Install with: pip install cuda-python"):
        nvrtc.nvrtc_compile("")
