# SPDX-License-Identifier: Apache-2.0
"""Exceptions across the border: kinds, messages, one traceback, no cycles."""

from __future__ import annotations

import codecs
import ctypes
import gc
import os
import re
import shlex
import shutil
import subprocess
import sys
import traceback
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tvm_ffi
from support import Payload, run_python
from tvm_ffi import core, error, libinfo, testing
from tvm_ffi._impl import tracebacks

BUILTIN = [
    RuntimeError,
    ValueError,
    TypeError,
    AttributeError,
    KeyError,
    IndexError,
    AssertionError,
    MemoryError,
]


@pytest.mark.skipif(shutil.which("strip") is None, reason="no strip")
def test_a_traceback_has_no_frames_of_the_interpreter_where_the_extension_has_no_names(
    tmp_path: Path,
) -> None:
    """As in a wheel."""
    package = tmp_path / "tvm_ffi"
    package.mkdir()
    for entry in Path(tvm_ffi.__file__).parent.iterdir():
        if entry.name != "__pycache__":
            (package / entry.name).symlink_to(entry)
    extension = package / Path(core.__file__).name
    extension.unlink()
    shutil.copy(core.__file__, extension)
    subprocess.run(["strip", extension], check=True)
    code = """
import sys, traceback
sys.path.insert(0, sys.argv[1])
import tvm_ffi
from tvm_ffi import core, testing
assert core.__file__.startswith(sys.argv[1])
def look(call):
    try:
        call()
    except Exception as error:
        print("".join(traceback.format_exception(error)))
look(lambda: tvm_ffi.StructuralKey(tvm_ffi.List([testing.TestIntPair(1, 2)])))
look(lambda: testing.test_raise_error("ValueError", "text"))
look(lambda: testing.TestIntPair("a", 2))
look(lambda: testing.apply(testing.test_raise_error, "ValueError", "text"))
"""
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path],
        capture_output=True,
        text=True,
        check=False,
        env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Traceback") >= 4
    files = set(re.findall(r'File "([^"]*)", line', done.stdout))
    assert not [f for f in files if f.startswith(("Objects/", "Python/"))], done.stdout
    assert not re.search(
        r"in (cfunction|method|slot|type|wrap|vectorcall|_?Py)_?\w*$", done.stdout, re.MULTILINE
    ), done.stdout


@pytest.mark.parametrize("cls", BUILTIN)
def test_builtin_kinds_both_ways(cls: type[Exception]) -> None:
    with pytest.raises(cls) as caught:
        testing.test_raise_error(cls.__name__, "the message")
    assert type(caught.value) is cls
    assert caught.value.args == ("the message",)

    def fail() -> None:
        raise cls("the message")

    with pytest.raises(cls) as caught:
        testing.apply(fail)
    assert type(caught.value) is cls
    assert "the message" in str(caught.value)
    assert caught.value.__tvm_ffi_error__.kind == cls.__name__


def test_an_unknown_kind_is_a_runtime_error_that_knows_it() -> None:
    with pytest.raises(RuntimeError, match="message") as caught:
        testing.test_raise_error("NobodyKnowsThisError", "message")
    assert caught.value.__tvm_ffi_error__.kind == "NobodyKnowsThisError"
    assert caught.value.__tvm_ffi_error__.message == "message"


@pytest.mark.parametrize(
    "exception",
    [OverflowError("x"), NotImplementedError("x"), StopIteration("x"), ZeroDivisionError("x")],
    ids=lambda e: type(e).__name__,
)
def test_other_exceptions_are_runtime_errors_to_cpp(exception: Exception) -> None:
    def fail() -> None:
        raise exception

    with pytest.raises(type(exception), match="x") as caught:
        testing.apply(fail)
    assert caught.value is exception
    assert caught.value.__tvm_ffi_error__.kind == "RuntimeError"  # type: ignore[attr-defined]


def test_registered_kinds() -> None:
    @tvm_ffi.register_error
    class FirstError(ValueError):
        pass

    @tvm_ffi.register_error("tests.Second")
    class SecondError(RuntimeError):
        pass

    class ThirdError(Exception):
        pass

    tvm_ffi.register_error("tests.Third", ThirdError)
    for name, cls in (
        ("FirstError", FirstError),
        ("tests.Second", SecondError),
        ("tests.Third", ThirdError),
    ):
        with pytest.raises(cls, match="text"):
            testing.test_raise_error(name, "text")

        def fail(cls: type[Exception] = cls) -> None:
            raise cls("text")

        with pytest.raises(cls) as caught:
            testing.apply(fail)
        assert caught.value.__tvm_ffi_error__.kind == name


def test_a_class_that_cannot_be_built_from_a_message_does_not_hide_it() -> None:
    @tvm_ffi.register_error("tests.Picky")
    class PickyError(Exception):
        def __init__(self, first: str, second: str) -> None:
            super().__init__(first, second)

    with pytest.raises(RuntimeError, match=r"tests\.Picky: the message"):
        testing.test_raise_error("tests.Picky", "the message")


def test_error_objects() -> None:
    made = core.Error("ValueError", "text", 'File "a.cc", line 1, in f\n')
    assert (made.kind, made.message, made.extra_context) == ("ValueError", "text", None)
    assert made.backtrace == 'File "a.cc", line 1, in f\n'
    made.update_backtrace("other")
    assert made.backtrace == "other"
    exception = made.py_error()
    assert type(exception) is ValueError
    assert exception.__tvm_ffi_error__ is made


def test_conversion_of_exceptions() -> None:
    converted = tvm_ffi.convert(KeyError("k"))
    assert isinstance(converted, core.Error)
    assert (converted.kind, converted.message) == ("KeyError", "'k'")
    assert converted.backtrace == ""


def test_conversion_of_a_raised_exception_has_its_frames() -> None:
    def fail_in_python() -> None:
        raise ValueError("x")

    try:
        fail_in_python()
    except ValueError as exception:
        converted = tvm_ffi.convert(exception)
        passed = testing.echo(exception)
    assert "fail_in_python" in converted.backtrace
    assert "test_errors.py" in passed.backtrace


def test_an_exception_from_cpp_has_python_frames_only_after_conversion() -> None:
    def call_from_python() -> None:
        testing.test_raise_error("ValueError", "x")

    try:
        call_from_python()
    except ValueError as exception:
        attached = exception.__tvm_ffi_error__
        assert "call_from_python" not in attached.backtrace
        assert tvm_ffi.convert(exception) is attached
        assert "call_from_python" in attached.backtrace


def test_one_error_object_through_any_nesting() -> None:
    recorded: list[object] = []

    def level(n: int) -> None:
        if n == 0:
            testing.test_raise_error("ValueError", "deep")
        try:
            testing.apply(level, n - 1)
        except ValueError as exception:
            recorded.append(exception.__tvm_ffi_error__)
            raise

    with pytest.raises(ValueError, match="deep") as caught:
        testing.apply(level, 5)
    assert len(recorded) == 5
    assert all(one is caught.value.__tvm_ffi_error__ for one in recorded)


# ---- tracebacks ---------------------------------------------------------------------------------


def test_parse_backtrace() -> None:
    text = 'File "a.cc", line 1, in f\n  File "b.py", line 22, in <lambda>\nnonsense\n'
    assert error._parse_backtrace(text) == [("a.cc", 1, "f"), ("b.py", 22, "<lambda>")]
    assert error._parse_backtrace("") == []


def test_backtrace_text_is_most_recent_call_first() -> None:
    def inner() -> None:
        raise ValueError("x")

    def outer() -> None:
        inner()

    try:
        outer()
    except ValueError as exception:
        text = error._traceback_to_backtrace_str(exception.__traceback__)
    names = [name for _, _, name in error._parse_backtrace(text)]
    assert names[:2] == ["inner", "outer"]


def test_the_traceback_reads_from_python_into_cpp() -> None:
    try:
        testing.test_raise_error("ValueError", "x")
    except ValueError as exception:
        frames = traceback.extract_tb(exception.__traceback__)
        printed = "".join(traceback.format_exception(exception))
    assert frames[0].name == "test_the_traceback_reads_from_python_into_cpp"
    assert "TestRaiseError" in frames[-1].name
    assert frames[-1].filename.endswith(".cc")
    assert frames[-1].lineno > 0
    assert "TestRaiseError" in printed


def test_frames_of_a_callback_lie_between_cpp_frames() -> None:
    def raise_in_callback() -> None:
        testing.test_raise_error("ValueError", "x")

    try:
        testing.apply(raise_in_callback)
    except ValueError as exception:
        text = exception.__tvm_ffi_error__.backtrace
        names = [frame.name for frame in traceback.extract_tb(exception.__traceback__)]
    assert text.count("TestRaiseError") == 1
    assert text.count("in raise_in_callback") == 1
    assert text.index("TestRaiseError") < text.index("raise_in_callback") < text.index("TestApply")
    joined = " ".join(names)
    assert joined.index("TestApply") < joined.index("raise_in_callback")
    assert joined.index("raise_in_callback") < joined.index("TestRaiseError")


def test_synthetic_frames_know_their_place_and_nothing_else() -> None:
    exception = core.Error("ValueError", "x", '  File "f.cc", line 7, in Name\n').py_error()
    frame = exception.__traceback__.tb_frame
    assert frame.f_back is None
    assert frame.f_locals == {}
    assert (frame.f_code.co_name, frame.f_code.co_filename) == ("Name", "f.cc")
    assert exception.__traceback__.tb_lineno == 7
    traceback.clear_frames(exception.__traceback__)


def test_no_cycle_keeps_the_callers_locals_alive(no_gc: None) -> None:
    def caller() -> weakref.ref:
        local = Payload()
        watcher = weakref.ref(local)
        try:
            testing.test_raise_error("ValueError", "x")
        except ValueError:
            pass
        return watcher

    assert caller()() is None


def test_no_cycle_keeps_the_arguments_alive(no_gc: None) -> None:
    def caller() -> weakref.ref:
        local = Payload()
        watcher = weakref.ref(local)

        def fail(arg: object) -> None:
            raise ValueError("x")

        try:
            testing.apply(fail, local)
        except ValueError:
            pass
        return watcher

    assert caller()() is None


def test_errors_do_not_accumulate() -> None:
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(200):
        with pytest.raises(ValueError, match="x"):
            testing.test_raise_error("ValueError", "x")
    gc.collect()
    assert len(gc.get_objects()) < before + 400


def test_messages_of_every_alphabet() -> None:
    for text in ("", "\u4e2d\u6587 \U0001f600", "line\nline", "a\0b", "x" * 10_000):
        with pytest.raises(ValueError) as caught:
            testing.test_raise_error("ValueError", text)
        assert str(caught.value) == text

        def fail(text: str = text) -> None:
            raise ValueError(text)

        with pytest.raises(ValueError) as caught:
            testing.apply(fail)
        assert str(caught.value) == text


def test_an_exception_whose_text_fails_still_crosses() -> None:
    class Silent(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    def fail() -> None:
        raise Silent

    with pytest.raises(Silent) as caught:
        testing.apply(fail)
    assert "failed" in caught.value.__tvm_ffi_error__.message  # type: ignore[attr-defined]


def test_an_exception_in_a_callback_of_a_callback() -> None:
    def inner() -> None:
        raise IndexError("inner")

    def outer() -> None:
        try:
            testing.apply(inner)
        except IndexError as exception:
            raise KeyError("outer") from exception

    with pytest.raises(KeyError, match="outer"):
        testing.apply(outer)


def test_the_next_call_after_an_error_works() -> None:
    for _ in range(10):
        with pytest.raises(ValueError, match="x"):
            testing.test_raise_error("ValueError", "x")
        assert testing.echo(1) == 1


def test_registration_needs_an_exception_class() -> None:
    for bad in (3, [1]):
        with pytest.raises(TypeError):
            tvm_ffi.register_error(bad)
    with pytest.raises(TypeError):
        tvm_ffi.register_error("tests.NoClass", 3)
    with pytest.raises(TypeError):
        tvm_ffi.register_error("tests.NoException", int)


def test_frames_of_our_templates_are_not_shown() -> None:
    text = (
        '  File "zoo.cc", line 3, in Bird\n'
        '  File "/usr/include/tvm/ffi/memory.h", line 188, in MakeObject\n'
        '  File "include/tvm/ffi/reflection/registry.h", line 2, in operator()\n'
        '  File "my/tvm/ffi.h", line 7, in mine\n'
    )
    exception = error._with_append_backtrace(ValueError("x"), text)
    shown = [entry.filename for entry in traceback.extract_tb(exception.__traceback__)]
    assert shown == ["my/tvm/ffi.h", "zoo.cc"]
    assert len(error._parse_backtrace(text)) == 4


@pytest.mark.parametrize(
    "cls", [OverflowError, NotImplementedError, ZeroDivisionError, OSError, TimeoutError]
)
def test_a_kind_that_python_has_a_class_for(cls: type[Exception]) -> None:
    with pytest.raises(cls, match="^the message$"):
        testing.test_raise_error(cls.__name__, "the message")


def test_an_unknown_kind_is_part_of_the_text() -> None:
    with pytest.raises(RuntimeError, match="^UnheardOfError: no luck$"):
        testing.test_raise_error("UnheardOfError", "no luck")
    for kind in ("print", "SystemExit", "KeyboardInterrupt", "object"):
        with pytest.raises(RuntimeError, match=f"^{kind}: no luck$"):
            testing.test_raise_error(kind, "no luck")


# ---- what is remembered of places ----------------------------------------------------------------

FAILING = """
#include <tvm/ffi/c_api.h>
#define NOINLINE __attribute__((noinline))
#define END __asm__ volatile("")
NOINLINE static void fail_below(void) { TVMFFIErrorSetRaisedFromCStr("ValueError", "x"); END; }
NOINLINE int NAME(int line) {
  if (line == 7) {
    fail_below(); __asm__ volatile("nop");
  } else {
    fail_below(); __asm__ volatile("nop; nop");
  }
  return -1;
}
#ifdef PADDING
__asm__(".section .padding\\n.zero 200000\\n.previous");
#endif
int __tvm_ffi_fail(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  int code = NAME((int)args[0].v_int64);
  END;
  return code;
}
"""


def failing_library(folder: Path, name: str, *options: str) -> str:
    """Compile a library whose function `fail` raises at line 8 or 10 of a function of that name."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    (folder / "failing.c").write_text(FAILING, encoding="utf-8")
    command = [*shlex.split(os.environ.get("CC", "cc")), "-shared", "-fPIC", "-g", "-O1"]
    command += [f"-I{libinfo.find_include_path()}", f"-DNAME={name}", *options, "failing.c"]
    subprocess.run([*command, "-o", f"{name}.so"], cwd=folder, check=True)
    return str(folder / f"{name}.so")


def backtrace_of(*args: Any) -> str:
    with pytest.raises(ValueError, match="x") as caught:
        args[0](*args[1:])
    return caught.value.__tvm_ffi_error__.backtrace  # type: ignore[attr-defined]


def test_each_line_of_a_function_is_named(tmp_path: Path) -> None:
    fail = tvm_ffi.load_module(failing_library(tmp_path, "two_lines")).fail
    if "<unknown>" in backtrace_of(fail, 7):
        pytest.skip("built without line numbers")
    for _ in range(3):
        for argument, line in ((7, 8), (0, 10)):
            lines = [
                n
                for _, n, f in error._parse_backtrace(backtrace_of(fail, argument))
                if f == "two_lines"
            ]
            assert lines == [line]


def test_a_library_in_the_place_of_another_has_its_own_names(tmp_path: Path) -> None:
    """And lines, however often it is loaded."""
    paths = [failing_library(tmp_path, name) for name in ("first_name", "other_name")]
    printed = run_python(f"""
import gc
import re
from pathlib import Path
import tvm_ffi
places = []
for path in {paths!r} * 20:
    module = tvm_ffi.load_module(path, keep_module_alive=False)
    places.append(re.search(f"(.*)-.*{{path}}", Path("/proc/self/maps").read_text())[1])
    try:
        module.fail(7)
    except ValueError as error:
        text = error.__tvm_ffi_error__.backtrace
        assert f"in {{Path(path).stem}}" in text, text
        assert f"failing.c\\", line 8, in {{Path(path).stem}}" in text or "<unknown>" in text, text
        assert len(re.findall("in (?:first|other)_name", text)) == 1, text
        for _ in range(2):  # from what is remembered
            try:
                module.fail(7)
            except ValueError as again:
                assert again.__tvm_ffi_error__.backtrace == text
    del module
    gc.collect()
print(sum(one == other for one, other in zip(places, places[1:])), "<unknown>" in text)
""")
    number, without_lines = printed.split()
    if without_lines == "True":
        pytest.skip("built without line numbers")
    if number == "0":
        pytest.skip("the loader put no library in the place of another")


RAISE_IN_COPIES = """
import gc
import re
import shutil
from pathlib import Path
import tvm_ffi
def backtrace(module):
    try:
        module.fail(7)
    except ValueError as error:
        return error.__tvm_ffi_error__.backtrace
def memory():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4 / 1024
def copies(path, number):
    for i in range(number):
        copy = Path(path).with_suffix(f".{i}.so")
        shutil.copy(path, copy)
        yield str(copy)
"""


@pytest.mark.parametrize("keeps", [True, False])
def test_the_first_error_of_a_library_reads_that_library_only(tmp_path: Path, keeps: bool) -> None:
    """Each took as much as the debug information of all libraries, most of it the interpreter's."""
    run_python(f"""{RAISE_IN_COPIES}
def line(name):
    return f'failing.c", line 8, in {{name}}'
begin = memory()
used = []
for path in copies({failing_library(tmp_path, "some_name")!r}, 12):
    module = tvm_ffi.load_module(path, keep_module_alive={keeps})
    text = backtrace(module)
    assert line("some_name") in text or "<unknown>" in text, text
    del module
    gc.collect()
    used.append(memory() - begin)
assert used[1] < 20, used
assert (used[-1] - used[1]) / 10 < 3, used
other = tvm_ffi.load_module({failing_library(tmp_path, "other_name")!r})
text = backtrace(other)
assert line("other_name") in text or "<unknown>" in text, text
assert "some_name" not in text, text
""")


def test_of_very_many_libraries_the_last_have_symbols_without_lines(tmp_path: Path) -> None:
    run_python(f"""{RAISE_IN_COPIES}
texts = []
for path in copies({failing_library(tmp_path, "some_name")!r}, 270):
    texts.append(backtrace(tvm_ffi.load_module(path, keep_module_alive=False)))
    gc.collect()
assert all("in some_name" in text for text in texts), texts
assert "<unknown>" in texts[-1]
again = tvm_ffi.load_module(str(Path(path).with_suffix("").with_suffix(".0.so")))
assert backtrace(again) == texts[0]
""")


def test_a_file_that_took_the_place_of_a_library_is_not_read_for_it(tmp_path: Path) -> None:
    first, other = (failing_library(tmp_path, name) for name in ("first_name", "other_name"))
    run_python(f"""{RAISE_IN_COPIES}
import os
module = tvm_ffi.load_module({first!r})
os.replace({other!r}, {first!r})
text = backtrace(module)
assert "in first_name" in text and "other_name" not in text, text
""")


@pytest.mark.parametrize("build_id", ["sha1", "none"])
def test_a_file_whose_path_the_kernel_lists_is_not_always_the_library(
    tmp_path: Path, build_id: str
) -> None:
    option = f"-Wl,--build-id={build_id}"
    first, other = (
        failing_library(tmp_path, name, option) for name in ("first_name", "the_other_name")
    )
    run_python(f"""{RAISE_IN_COPIES}
import os
module = tvm_ffi.load_module({first!r})
os.unlink({first!r})
os.replace({other!r}, {first!r} + " (deleted)")
text = backtrace(module)
assert "in first_name" in text and "other_name" not in text, text
""")


@pytest.mark.parametrize("what", ["library", "debug file"])
def test_a_file_that_is_cut_off_is_not_read(tmp_path: Path, what: str) -> None:
    """It ended the process: its headers name parts that are not there."""
    path = failing_library(tmp_path, "some_name", "-DPADDING")
    cut = Path(path)
    if what == "debug file":
        if shutil.which("objcopy") is None or shutil.which("strip") is None:
            pytest.skip("no objcopy or strip")
        cut = tmp_path / "some_name.debug"
        subprocess.run(["objcopy", "--only-keep-debug", path, cut], check=True)
        subprocess.run(["strip", path], check=True)
    os.truncate(cut, cut.stat().st_size - 100_000)
    if what == "debug file":
        subprocess.run(["objcopy", f"--add-gnu-debuglink={cut}", path], cwd=tmp_path, check=True)
    run_python(f"""{RAISE_IN_COPIES}
text = backtrace(tvm_ffi.load_module({path!r}))
assert "in some_name" in text, text
""")


def test_lines_that_could_not_be_read_are_read_the_next_time(tmp_path: Path) -> None:
    """First there are no descriptors left, or too few."""
    run_python(f"""{RAISE_IN_COPIES}
import os
import resource
path = {failing_library(tmp_path, "some_name")!r}
expected = backtrace(tvm_ffi.load_module(path))
modules = [tvm_ffi.load_module(copy) for copy in copies(path, 8)]
_, most = limits = resource.getrlimit(resource.RLIMIT_NOFILE)
for left, module in enumerate(modules):
    lowest = os.dup(0)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + left, most))
    for _ in range(300):  # more often than files are read
        text = backtrace(module)
    assert "in some_name" in text, text
    assert left > 0 or "<unknown>" in text
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert backtrace(module) == expected
""")


def test_a_library_is_found_from_another_working_directory(tmp_path: Path) -> None:
    run_python(f"""{RAISE_IN_COPIES}
import os
from tvm_ffi import testing
os.chdir({str(Path(failing_library(tmp_path, "f")).parent)!r})
module = tvm_ffi.load_module("./f.so")
os.chdir("/")
text = backtrace(module)
try:
    testing.test_raise_error("ValueError", "x")
except ValueError as error:
    has_lines = "<unknown>" not in error.__tvm_ffi_error__.backtrace
assert not has_lines or 'failing.c", line 8, in f\\n' in text, text
""")


def test_a_backtrace_that_crosses_the_border_shows_the_interpreter() -> None:
    """Also frames at which another one ended."""
    code = f"""
import ctypes
class Bytes(ctypes.Structure):
    _fields_ = [("data", ctypes.c_char_p), ("size", ctypes.c_size_t)]
import tvm_ffi
backtrace = ctypes.CDLL({libinfo.find_libtvm_ffi()!r}).TVMFFIBacktrace
backtrace.restype = ctypes.POINTER(Bytes)
for crosses in %s:
    text = backtrace(None, 0, None, crosses).contents.data.decode()
    if not crosses:
        assert "PyEval" not in text, text
print(text)
"""
    text = run_python(code % [1, 1])
    assert "PyEval" in text
    assert run_python(code % [0, 1]) == text


def test_threads_raise_while_libraries_come_and_go(tmp_path: Path) -> None:
    names = ("first_name", "other_name", "third_name")
    paths = [failing_library(tmp_path, name) for name in names]
    run_python(f"""
import gc
import threading
from pathlib import Path
import tvm_ffi
wrong = []
def fail(module, name):
    try:
        module.fail(7)
    except ValueError as error:
        text = error.__tvm_ffi_error__.backtrace
        found = [other for other in {names!r} if other in text]
        if found != [name] or name not in str(error.__traceback__.tb_next.tb_next.tb_frame):
            wrong.append(text)
def run(path):
    module = tvm_ffi.load_module(path)
    while not done:
        fail(module, Path(path).stem)
done = []
threads = [threading.Thread(target=run, args=(path,)) for path in {paths[:2]!r} * 2]
for thread in threads:
    thread.start()
for _ in range(10):
    module = tvm_ffi.load_module({paths[2]!r}, keep_module_alive=False)
    fail(module, "third_name")
    del module
    gc.collect()
done.append(1)
for thread in threads:
    thread.join()
assert not wrong, wrong[0]
""")


def test_errors_of_one_place_share_empty_frames_and_nothing_else() -> None:
    def raised() -> BaseException:
        with pytest.raises(ValueError, match="x") as caught:
            testing.test_raise_error("ValueError", "x")
        return caught.value

    def innermost(exception: BaseException) -> Any:
        entries = list(traceback.walk_tb(exception.__traceback__))
        return entries[-1]

    first, second = raised(), raised()
    assert first.__traceback__ is not second.__traceback__
    assert innermost(first) == innermost(second)
    text = traceback.format_tb(second.__traceback__)
    assert "TestRaiseError" in text[-1]
    traceback.clear_frames(first.__traceback__)
    first.__traceback__ = None
    assert traceback.format_tb(second.__traceback__) == text
    assert innermost(second)[0].f_locals == {}


def test_places_of_many_texts_are_not_kept_for_ever() -> None:
    for number in range(3000):
        core.Error("ValueError", "x", f'  File "f.cc", line {number}, in Name\n').py_error()
    assert len(tracebacks.KNOWN_PLACES) <= 1024
    long = '  File "f.cc", line 7, in Name\n' * 512
    exception = core.Error("ValueError", "x", long).py_error()
    assert len(list(traceback.walk_tb(exception.__traceback__))) == 512
    assert long not in tracebacks.KNOWN_PLACES


@pytest.fixture
def append_hook() -> Iterator[None]:
    """Let the test assign to the hook of clients."""
    original = core._WITH_APPEND_BACKTRACE
    yield
    core._WITH_APPEND_BACKTRACE = original


def test_clients_may_replace_how_frames_are_added(append_hook: None) -> None:
    seen = []

    def append(exception: BaseException, text: str) -> BaseException:
        seen.append(text)
        return KeyError("another")

    core._WITH_APPEND_BACKTRACE = append
    with pytest.raises(KeyError, match="another") as caught:
        testing.test_raise_error("ValueError", "x")
    assert seen == [caught.value.__tvm_ffi_error__.backtrace]  # type: ignore[attr-defined]
    core._WITH_APPEND_BACKTRACE = None
    assert core.Error("ValueError", "x", seen[0]).py_error().__traceback__ is None
    core._WITH_APPEND_BACKTRACE = lambda exception, text: 3
    with pytest.raises(TypeError, match="expected an exception, got int"):
        testing.test_raise_error("ValueError", "x")


# ---- texts that are not UTF-8 -------------------------------------------------------------------


@pytest.mark.parametrize("read", ["kind", "message", "backtrace", "__reduce__", "py_error"])
@pytest.mark.parametrize("handler", ["strict", "backslashreplace"])
@pytest.mark.parametrize("what", ["move", "update"])
def test_a_codec_handler_may_do_anything_to_the_error(read: str, handler: str, what: str) -> None:
    """Handlers of text that is not UTF-8 may be Python code."""
    usual = codecs.lookup_error(handler)
    text = ("z" * 40).encode() + b"\xff" + ("z" * 40).encode()
    made = make_raw_error(text, text, text)
    junk: list[Any] = []

    def handle(error: UnicodeError) -> tuple[str, int]:
        if what == "move":
            core._new_object(core.Error).__move_handle_from__(made)
        else:
            made.update_backtrace("")
        junk.extend(core.Error("k", "y" * 81, "y" * 81) for _ in range(50))
        assert isinstance(error, UnicodeDecodeError)
        return "?", error.end

    codecs.register_error(handler, handle)
    try:
        try:
            result = getattr(made, read)
            shown = str(result() if callable(result) else result)
        except ValueError:
            shown = ""  # moved away before it was looked at
    finally:
        codecs.register_error(handler, usual)
    assert "y" not in shown


def make_raw_error(kind: bytes, message: bytes, backtrace: bytes) -> Any:
    """An error with texts that Python could not make."""

    class Bytes(ctypes.Structure):
        _fields_ = [("data", ctypes.c_char_p), ("size", ctypes.c_size_t)]

    library = ctypes.PyDLL(libinfo.find_libtvm_ffi())
    handle = ctypes.c_void_p()
    texts = [ctypes.byref(Bytes(text, len(text))) for text in (kind, message, backtrace)]
    assert library.TVMFFIErrorCreate(*texts, ctypes.byref(handle)) == 0
    library.TVMFFIErrorSetRaised(handle)
    library.TVMFFIObjectDecRef(handle)
    fail = tvm_ffi.Function.__from_extern_c__(
        ctypes.cast(FAILS, ctypes.c_void_p).value  # returns -1, with that error
    )
    with pytest.raises(Exception) as caught:
        fail()
    return caught.value.__tvm_ffi_error__  # type: ignore[attr-defined]


@ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p)
def FAILS(*_: Any) -> int:
    return -1


@pytest.mark.parametrize("name", ["a\0b.cc", "\0", "\ue000", "<x>", "x" * 5000])
def test_a_traceback_can_be_printed_whatever_its_files_are_called(name: str) -> None:
    text = f'  File "{name}", line 3, in solve\0r\n  File "other.cc", line 4, in main\n'
    with pytest.raises(ValueError, match="no luck") as caught:
        testing.throw_error(core.Error("ValueError", "no luck", text))
    shown = "".join(traceback.format_exception(caught.value))
    assert '", line 3, in solve' in shown
    assert 'File "other.cc", line 4, in main' in shown
    assert caught.value.__tvm_ffi_error__.backtrace.count("\0") == text.count("\0")
