# SPDX-License-Identifier: Apache-2.0
"""A program may end while other threads use the FFI: a few processes of tests/exit/run.py."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
import tvm_ffi
from support import ROOT, run_python, scaled

sys.path.insert(0, str(ROOT / "tests" / "exit"))
import run as exit_run

if shutil.which("c++") is None:
    pytest.skip("no C++ compiler: the client cannot be built", allow_module_level=True)


def test_no_process_dies_while_its_threads_use_the_ffi(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = str(Path(tvm_ffi.__file__).parents[1])
    monkeypatch.setitem(os.environ, "PYTHONPATH", package)
    client = exit_run.build_client(tmp_path)
    failures = exit_run.run(scaled(60), exit_run.all_names(), client)
    assert not failures, "\n".join(failures)


# ---- what Python finalises at exit ----------------------------------------------------------

HOLDERS = {
    "import alone": "",
    "callback": "held = tvm_ffi.convert(lambda: 1)",
    "callback in a List": "held = tvm_ffi.List([lambda: 1])",
    "callback that was read back": "held = tvm_ffi.List([lambda: 1]); held[0]",
    "object of Python": """
class Own:
    def method(self): pass
held = tvm_ffi.Array([Own()])
""",
    "Python-defined class": """
import typing
@tvm_ffi.dataclasses.py_class("exit.Defined")
class Defined(tvm_ffi.Object):
    value: typing.Any
    def method(self): pass
held = Defined(lambda: 1)
held.value
""",
    "subclass with state": """
class Derived(tvm_ffi.testing.TestIntPair):
    __slots__ = ("__dict__",)
    def method(self): pass
first = Derived(1, 2)
first.state = lambda: 1
held = tvm_ffi.Array([first])
del first
""",
    "registered function": """
@tvm_ffi.register_global_func("exit.registered")
def registered(): pass
""",
    "registered object with a call": """
class Callable:
    def __call__(self): pass
tvm_ffi.register_global_func("exit.callable", Callable())
""",
    "iterator": "values = tvm_ffi.Dict({1: lambda: 1}); held = iter(values.values())",
}


@pytest.mark.parametrize("name", HOLDERS)
def test_what_main_refers_to_is_finalised_at_exit(name: str, tmp_path: Path) -> None:
    written = tmp_path / "text"
    run_python(f"""
import tvm_ffi.dataclasses, tvm_ffi.testing
{HOLDERS[name]}
out = open({str(written)!r}, "w")
out.write("x")
""")
    assert written.read_text() == "x"


IN_CPP = {
    "List": "held = tvm_ffi.List([out])",
    "Array of an Array": "held = tvm_ffi.Array([tvm_ffi.Array([out])])",
    "Dict": "held = tvm_ffi.Dict({'log': out})",
    "field": """
held = tvm_ffi.Array([])
held = tvm_ffi.testing.create_object("testing.TestDeepCopyEdges", v_any=out, v_obj=held)
""",
    "list of Python": "held = tvm_ffi.List([type('Own', (list,), {})([out])])",
    "bound method": "held = tvm_ffi.convert(out.write)",
    "read back": "held = tvm_ffi.List([out]); held[0]",
    "another name too": "held = tvm_ffi.List([out]); also = [held, out]",
}
REGISTERS = "tvm_ffi.register_global_func('exit.of_main', lambda: 1)"


@pytest.mark.parametrize("registers", ["", REGISTERS])
@pytest.mark.parametrize("name", IN_CPP)
def test_what_cpp_holds_for_main_is_finalised_at_exit(
    name: str, registers: str, tmp_path: Path
) -> None:
    written = tmp_path / "text"
    run_python(f"""
import tvm_ffi.testing
{registers}
out = open({str(written)!r}, "w")
out.write("x")
{IN_CPP[name]}
""")
    assert written.read_text() == "x"


def test_what_cpp_holds_for_an_imported_module_is_finalised_at_exit(tmp_path: Path) -> None:
    written = tmp_path / "text"
    (tmp_path / "holder.py").write_text(f"""
import tvm_ffi
out = open({str(written)!r}, "w")
out.write("x")
held = tvm_ffi.List([out])
""")
    run_python(f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import holder")
    assert written.read_text() == "x"


def test_cpp_may_call_back_while_the_interpreter_ends() -> None:
    done = run_python("""
import tvm_ffi
from tvm_ffi import testing

class Last:
    def __init__(self):
        self.apply, self.show, self.length = testing.apply, print, tvm_ffi.convert(len)
    def __del__(self):
        self.apply(lambda: self.show("called", self.length("abc")))

last = Last()
""")
    assert done == "called 3\n"
