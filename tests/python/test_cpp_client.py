# SPDX-License-Identifier: Apache-2.0
"""C++ libraries with defects: what they do raises in Python and does not end the process."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tvm_ffi
from support import ROOT, compile_library, run_python
from tvm_ffi.dataclasses import py_class

if shutil.which("c++") is None:
    pytest.skip("no C++ compiler: clients cannot be built", allow_module_level=True)

HERE = Path(__file__).parent
UNKNOWN = "an exception was thrown that is not a std::exception"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_library(HERE / "cpp_client.cc", tmp_path_factory.mktemp("cpp") / "first.so")


@pytest.fixture(scope="module")
def library(path: Path) -> Any:
    return tvm_ffi.load_module(str(path))


@pytest.fixture(scope="module")
def thing_class(library: Any) -> Any:
    @tvm_ffi.register_object("cpp_client.Thing")
    class Thing(tvm_ffi.Object):
        pass

    return Thing


def function(name: str) -> Any:
    return tvm_ffi.get_global_func(f"cpp_client.{name}")


# ---- what dies with the old value of a field ---------------------------------------------------


def in_map(value: Any) -> Any:
    return {"a": value, "b": value, "c": 1}


FIELDS: dict[str, Any] = {
    "map": in_map,
    "hashed": in_map,
    "maybe": in_map,
    "pair": lambda value: (1, in_map(value)),
    "maps": lambda value: [in_map(value), in_map(1)],
    "vector": lambda value: [value, value],
    "function": lambda value: lambda x: (value, x),
}


@pytest.mark.parametrize("action", ["get", "set", "empty"])
@pytest.mark.parametrize("name", FIELDS)
def test_a_finaliser_may_use_the_field_that_is_assigned(
    library: Any, name: str, action: str
) -> None:
    @tvm_ffi.register_object("cpp_client.Fields")
    class Fields(tvm_ffi.Object):
        def __init__(self) -> None:
            self.__ffi_init__()

    made = FIELDS[name]
    died: list[str] = []

    class Dying:
        def __del__(self) -> None:
            died.append(repr(getattr(thing, name)))
            if action == "set":
                setattr(thing, name, made(2))
            elif action == "empty":
                setattr(thing, name, made([]))

    for _ in range(50):
        thing = Fields()
        setattr(thing, name, made(Dying()))
        setattr(thing, name, made(3))
        expected = {"get": 3, "set": 2, "empty": []}[action]
        got = getattr(thing, name)
        if name == "function":
            assert got(1)[0] == expected
        else:
            assert got == tvm_ffi.convert(made(expected))
    assert len(died) == 50


# ---- what is thrown -----------------------------------------------------------------------------


def test_anything_thrown_by_a_function_is_a_runtime_error(library: Any) -> None:
    with pytest.raises(RuntimeError, match=UNKNOWN):
        function("throw")(1)


def test_also_through_a_callback_and_another_function(library: Any) -> None:
    with pytest.raises(RuntimeError, match=UNKNOWN):
        function("call")(lambda: function("throw")(1))


@pytest.mark.parametrize("release_gil", [True, False])
def test_also_if_the_function_lets_it_out(library: Any, release_gil: bool) -> None:
    """Functions compiled with older headers do, and the call may have released the GIL."""
    escaping = function("escaping")()
    escaping.release_gil = release_gil
    for kind, expected, text in (
        (0, RuntimeError, UNKNOWN),
        (1, MemoryError, None),
        (2, RuntimeError, "too long"),
        (3, ValueError, "no"),
    ):
        for _ in range(3):
            with pytest.raises(expected, match=text):
                escaping(kind)
        with pytest.raises(expected, match=text):
            tvm_ffi.testing.apply(escaping, kind)


def test_destructors_of_threads_and_of_the_process_may_raise_errors(path: Path) -> None:
    code = f"""
import tvm_ffi
tvm_ffi.load_module({str(path)!r})
try:
    tvm_ffi.get_global_func("cpp_client.fail_in_destructors")()
except ValueError:
    print("raised")
"""
    assert run_python(code).strip() == "raised"


def test_also_from_constructors_methods_and_fields(thing_class: Any) -> None:
    with pytest.raises(RuntimeError, match=UNKNOWN):
        thing_class(-1)
    thing = thing_class(3)
    with pytest.raises(RuntimeError, match=UNKNOWN):
        thing.fail()
    with pytest.raises(RuntimeError, match=UNKNOWN):
        _ = thing.moody
    assert thing.x == 3


def test_a_data_type_without_a_name_can_be_part_of_a_message(library: Any) -> None:
    np = pytest.importorskip("numpy")
    with pytest.raises(ValueError, match=r"no dtype\(code=5, bits=64, lanes=1\)"):
        function("say_dtype")(np.zeros(2, "complex64"))


def test_a_value_whose_repr_fails_can_be_part_of_a_message(library: Any) -> None:
    @py_class("cpp_client.Unprintable")
    class Unprintable(tvm_ffi.Object):
        x: int

        def __ffi_repr__(self, *_: Any) -> str:
            raise KeyError("no text")

    with pytest.raises(ValueError, match="no text"):
        function("say")(Unprintable(1))


# ---- loading ------------------------------------------------------------------------------------


def test_a_second_library_with_the_same_type_is_refused(
    path: Path, thing_class: Any, tmp_path: Path
) -> None:
    second = tmp_path / "second.so"
    shutil.copy(path, second)
    for _ in range(2):
        with pytest.raises(RuntimeError) as caught:
            tvm_ffi.load_module(str(second))
        message = str(caught.value)
        assert str(path) in message
        assert str(second) in message
        assert "cpp_client." in message
    assert thing_class(3).x == 3


def test_a_library_that_throws_while_it_is_loaded_leaves_nothing_behind(path: Path) -> None:
    """And can be loaded when it does not throw any more, in a process that was there before."""
    run_python(f"""
import os, shutil, tempfile, tvm_ffi
os.environ["CPP_CLIENT_THROWS_WHEN_LOADED"] = "1"
other = os.path.join(tempfile.mkdtemp(), "other.so")
shutil.copy({str(path)!r}, other)
try:
    tvm_ffi.load_module(other)
except RuntimeError as error:
    assert {UNKNOWN!r} in str(error), error
else:
    raise AssertionError("it was loaded")
del os.environ["CPP_CLIENT_THROWS_WHEN_LOADED"]
assert tvm_ffi.get_global_func("cpp_client.throw", allow_missing=True) is None
tvm_ffi.load_module({str(path)!r})
assert tvm_ffi.get_global_func("cpp_client.throw") is not None
""")


def test_a_library_with_an_undefined_symbol_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "undefined.c"
    source.write_text("int nobody_has_this(void);\nint f(void) { return nobody_has_this(); }\n")
    target = tmp_path / "undefined.so"
    subprocess.run(["cc", "-shared", "-fPIC", str(source), "-o", str(target)], check=True)
    with pytest.raises(RuntimeError, match="nobody_has_this"):
        tvm_ffi.load_module(str(target))


# ---- the example that users copy ----------------------------------------------------------------


@pytest.fixture(scope="module")
def graph_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("graph")
    return compile_library(ROOT / "examples/graph/graph.cc", folder / "graph.so")


def test_the_graph_example_survives_bad_input(graph_path: Path) -> None:
    run_python(f"""
import tvm_ffi
tvm_ffi.load_module({str(graph_path)!r})

@tvm_ffi.register_object("graph.Node")
class Node(tvm_ffi.Object):
    pass

def refuses(kind, call):
    try:
        call()
    except kind:
        return
    raise AssertionError(call)

visit, keep, kept, forget = (
    tvm_ffi.get_global_func("graph." + name) for name in ("visit", "keep", "kept", "forget")
)
refuses(TypeError, lambda: visit(None, print))
refuses(TypeError, lambda: visit(3, print))
refuses((TypeError, RuntimeError), lambda: visit(Node(1), None))
refuses(TypeError, lambda: keep(None))
refuses(IndexError, lambda: kept(0))
refuses(IndexError, lambda: kept(-5))
for bad in (3, None, "text", tvm_ffi.Array([])):
    root = Node(1)
    root.children.append(Node(2))
    assert root.total() == 3
    root.children.append(bad)
    refuses(TypeError, root.total)
    refuses(TypeError, lambda: visit(root, lambda node: None))
root = Node(1)
root.children.extend([Node(i) for i in range(10)])
seen = []
visit(root, lambda node: (seen.append(node), root.children.clear()))
assert seen == [root]
root.children.append(root)
assert root.total() == 2
""")


def test_the_graph_example_shows_the_promises(graph_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples/graph/demo.py"), str(graph_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
