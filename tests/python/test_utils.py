# SPDX-License-Identifier: Apache-2.0
"""`tvm_ffi.utils`: wrappers with keywords, dataclasses as tuples, GPU code in object files."""

from __future__ import annotations

import ctypes
import gc
import inspect
import shutil
import subprocess
import sys
import weakref
from dataclasses import dataclass, make_dataclass
from pathlib import Path
from typing import Any, NamedTuple, Union

import pytest
import tvm_ffi
from support import CLASSES_DIE
from tvm_ffi.core import MISSING
from tvm_ffi.utils import embed_cubin, kwargs_wrapper, unpack_dataclass
from tvm_ffi.utils.kwargs_wrapper import (
    make_kwargs_wrapper,
    make_kwargs_wrapper_from_signature,
)
from tvm_ffi.utils.unpack_dataclass import (
    _extract_dataclass_to_tuple_schema,
    _validate_dataclass_to_tuple_schema,
    unpack_dataclass_to_tuple,
)


def positions(*args: Any) -> tuple[Any, ...]:
    return args


# ---- keyword wrappers -----------------------------------------------------------------------


def test_the_target_gets_positions_in_order() -> None:
    wrapper = make_kwargs_wrapper(positions, ["a", "b", "c"], (2, 3), ["k", "o"], {"o": "default"})
    assert wrapper(1, k=4) == (1, 2, 3, 4, "default")
    assert wrapper(c=9, a=1, k=4, o=5) == (1, 2, 9, 4, 5)
    for arguments, keywords in [((), {}), ((1, 2, 3, 4), {"k": 1}), ((1,), {}), ((1,), {"z": 1})]:
        with pytest.raises(TypeError, match="argument"):
            wrapper(*arguments, **keywords)
    assert make_kwargs_wrapper(positions, [])() == ()


def test_defaults_are_the_same_object_every_time() -> None:
    default: list[int] = []
    wrapper = make_kwargs_wrapper(positions, ["a", "b", "c"], (default, None, False))
    assert wrapper()[0] is default and wrapper(a=None) == (None, None, False)
    parameters = inspect.signature(wrapper).parameters
    assert parameters["a"].default is MISSING
    assert parameters["b"].default is None and parameters["c"].default is False


def test_errors_of_the_target_pass_through() -> None:
    def fails(x: int) -> None:
        raise KeyError(x)

    with pytest.raises(KeyError, match="3"):
        make_kwargs_wrapper(fails, ["x"])(x=3)


def test_the_prototype_gives_its_looks() -> None:
    def prototype(x: int) -> str:
        """Say."""
        return ""

    prototype.mark = 1  # type: ignore[attr-defined]
    wrapper: Any = make_kwargs_wrapper(positions, ["x"], prototype=prototype)
    assert wrapper.__name__ == "prototype" and wrapper.__doc__ == "Say."
    assert wrapper.__qualname__ == prototype.__qualname__ and wrapper.__module__ == __name__
    assert wrapper.__annotations__ == prototype.__annotations__
    assert wrapper.__wrapped__ is prototype and not hasattr(wrapper, "mark")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((["a", "a"],), ValueError, r"Duplicate argument names found in: \['a', 'a'\]"),
        (([1],), TypeError, "Argument name must be a string, got int: 1"),
        ((["if"],), ValueError, "Invalid argument name: 'if' is a Python keyword and cannot be"),
        ((["a b"],), ValueError, "Invalid argument name: 'a b' is not a valid Python identifier"),
        ((["a"], [1]), TypeError, "arg_defaults must be a tuple, got list"),
        ((["a"], (1, 2)), ValueError, "arg_defaults has 2 values but only 1 positional arguments"),
        (([], (), ["a", "a"]), ValueError, "Duplicate keyword-only argument names found in"),
        (([], (), [1]), TypeError, "Keyword-only argument name must be a string, got int: 1"),
        (([], (), ["a"], {"b": 1}), ValueError, "Default provided for 'b' which is not in kwonly"),
        ((["a"], (), ["a"]), ValueError, "Arguments cannot be both positional and keyword-only"),
        *(
            (([name],), ValueError, "Argument names conflict with internal names: {'__i_")
            for name in ("__i_target_func", "__i_MISSING", "__i_arg_defaults", "__i_unpack")
        ),
    ],
)
def test_names_that_are_not_possible(arguments: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        make_kwargs_wrapper(positions, *arguments)


def test_from_a_signature() -> None:
    def prototype(a: int, /, b: int = 2, *, c: int, d: int = 4) -> None: ...

    signature = inspect.signature(prototype)
    wrapper = make_kwargs_wrapper_from_signature(positions, signature, prototype)
    assert wrapper(1, c=3) == (1, 2, 3, 4) and wrapper.__name__ == "prototype"
    wrapper = make_kwargs_wrapper_from_signature(
        positions, signature, exclude_arg_names=["a", "c", "unknown"]
    )
    assert wrapper() == (2, 4)
    for function, message in [
        (lambda *args: None, r"\*args not supported in wrapper generation"),
        (lambda **kwargs: None, r"\*\*kwargs not supported in wrapper generation"),
    ]:
        with pytest.raises(ValueError, match=message):
            make_kwargs_wrapper_from_signature(positions, inspect.signature(function))
    broken = inspect.Signature.__new__(inspect.Signature)
    make = inspect.Parameter
    kind = make.POSITIONAL_OR_KEYWORD
    broken._parameters = {  # type: ignore[attr-defined]
        "a": make("a", kind, default=1),
        "b": make("b", kind),
    }
    with pytest.raises(ValueError, match="Required positional parameter 'b' cannot follow param"):
        make_kwargs_wrapper_from_signature(positions, broken)


def test_wrapping_a_function_of_the_ffi() -> None:
    wrapper = make_kwargs_wrapper(tvm_ffi.get_global_func("testing.echo"), ["x"], (5,))
    assert wrapper() == 5 and wrapper(x="a") == "a"


# ---- dataclasses ----------------------------------------------------------------------------


@dataclass
class Point:
    x: int
    y: int


@dataclass
class Line:
    start: Point
    points: list[Point]
    end: Point
    extra: Any = None


@dataclass
class Node:
    value: int
    next: Node | None = None


class Pair(NamedTuple):
    first: Any
    second: Any


def test_dataclasses_become_tuples() -> None:
    line = Line(Point(1, 2), [Point(3, 4)], Point(5, 6), {"a": (Point(7, 8), 9)})
    assert unpack_dataclass_to_tuple(line) == ((1, 2), [(3, 4)], (5, 6), {"a": ((7, 8), 9)})
    assert unpack_dataclass_to_tuple(Node(1, Node(2))) == (1, (2, None))
    assert unpack_dataclass_to_tuple([Point(1, 2)]) == [(1, 2)]
    pair = unpack_dataclass_to_tuple(Pair(1, Point(2, 3)))
    assert pair == Pair(1, (2, 3)) and type(pair) is Pair
    assert unpack_dataclass_to_tuple(make_dataclass("Empty", [])()) == ()
    value = object()
    assert unpack_dataclass_to_tuple(value) is value and unpack_dataclass_to_tuple(Point) is Point


def test_arguments_that_are_dataclasses() -> None:
    wrapper = make_kwargs_wrapper(
        positions, ["a", "b", "c"], (Point(1, 2),), map_dataclass_to_tuple=["b", "c"]
    )
    point = Point(3, 4)
    assert wrapper(point, point) == (point, (3, 4), (1, 2))
    assert make_kwargs_wrapper(positions, ["a"], map_dataclass_to_tuple=[])(point) == (point,)
    with pytest.raises(ValueError, match=r"map_dataclass_to_tuple: no argument is called 'x'; the"):
        make_kwargs_wrapper(positions, ["a"], map_dataclass_to_tuple=["a", "x"])
    signature = inspect.signature(lambda a, b: None)
    wrapper = make_kwargs_wrapper_from_signature(
        positions, signature, exclude_arg_names=["b"], map_dataclass_to_tuple=["a", "b"]
    )
    assert wrapper(point) == ((3, 4),)


@dataclass
class Everything:
    a: int
    b: Any
    c: list[int]
    d: tuple[int, ...]
    e: dict[str, int]
    f: Union[int, str]  # noqa: UP007
    g: int | None
    h: tuple
    i: frozenset[bytes]
    j: Point
    k: Point
    m: dict[str, Point]
    n: object
    o: None


def test_schemas() -> None:
    schema = _extract_dataclass_to_tuple_schema(Everything)
    leaves = {name for name, value in schema.items() if value is None}
    assert leaves == set("adefgio")
    assert schema["j"] == {"x": None, "y": None}
    assert {schema[name] for name in "bchkmn"} == {"unpack"}  # k: a class already met
    assert _extract_dataclass_to_tuple_schema(Node) == {"value": None, "next": "unpack"}
    with pytest.raises(TypeError, match="Expected a dataclass class, got <class 'int'>"):
        _extract_dataclass_to_tuple_schema(int)

    @dataclass
    class Local:
        a: int
        b: Missing  # type: ignore[name-defined]  # noqa: F821

    assert set(_extract_dataclass_to_tuple_schema(Local).values()) == {"unpack"}


@pytest.mark.parametrize(
    ("schema", "error", "message"),
    [
        (3, TypeError, "DataclassToTupleSchema must be a dict, got int"),
        ({1: None}, TypeError, "Schema field name must be a string, got int"),
        ({"a b": None}, ValueError, "Schema field name 'a b' is not a valid Python identifier"),
        ({"a": {"if": None}}, ValueError, "Schema field name 'if' is a Python keyword"),
    ],
)
def test_wrong_schemas(schema: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        _validate_dataclass_to_tuple_schema(schema)
    _validate_dataclass_to_tuple_schema({"a": None, "b": {"c": "unpack"}})


@pytest.mark.skipif(not CLASSES_DIE, reason="its classes are immortal with threads")
def test_what_was_compiled_for_a_class_goes_with_it() -> None:
    cls = make_dataclass("Short", ["x"])
    unpack_dataclass_to_tuple(cls(1))
    key, gone = id(cls), weakref.ref(cls)
    assert key in unpack_dataclass._converters.by_id
    del cls
    gc.collect()
    assert gone() is None and key not in unpack_dataclass._converters.by_id


def test_modules_are_reached_from_the_package() -> None:
    assert tvm_ffi.utils.kwargs_wrapper is kwargs_wrapper
    with pytest.raises(AttributeError, match="nothing"):
        tvm_ffi.utils.nothing  # noqa: B018


# ---- GPU code in object files ---------------------------------------------------------------

EMBEDDED = """
extern const char __tvm_ffi__cubin_k[], __tvm_ffi__cubin_k_end[];
const char* begin(void) { return __tvm_ffi__cubin_k; }
long size(void) { return __tvm_ffi__cubin_k_end - __tvm_ffi__cubin_k; }
"""


@pytest.mark.skipif(
    not all(map(shutil.which, ("cc", "ld", "objcopy"))), reason="no compiler or no binutils"
)
def test_embedding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    source, data = tmp_path / "a.c", bytes(range(256))
    source.write_text(EMBEDDED)
    (tmp_path / "my code.cubin").write_bytes(data)
    subprocess.run(["cc", "-fPIC", "-c", source, "-o", tmp_path / "a.o"], check=True)
    output = tmp_path / "new" / "b.o"
    command = ["--cubin", "my code.cubin", "--input-obj", "a.o", "--output-obj", str(output)]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["embed_cubin", *command, "--name", "k"])
    assert embed_cubin.main() == 0
    assert capsys.readouterr().out == f"✓ Created {output}\n"
    subprocess.run(["cc", "-shared", output, "-o", tmp_path / "b.so"], check=True)
    library = ctypes.CDLL(str(tmp_path / "b.so"))
    library.begin.restype = ctypes.c_void_p
    assert ctypes.string_at(library.begin(), library.size()) == data
    symbols = subprocess.run(["nm", output], capture_output=True, text=True, check=True).stdout
    assert " r __tvm_ffi__cubin_k\n" in symbols  # local and read-only

    (tmp_path / "a.o").write_text("not an object")
    assert embed_cubin.main() == 2
    assert "ld failed with status 1" in capsys.readouterr().err
    (tmp_path / "a.o").unlink()
    assert embed_cubin.main() == 1
    assert capsys.readouterr().err == "Error: Input object file not found: a.o\n"
    (tmp_path / "my code.cubin").unlink()
    with pytest.raises(FileNotFoundError, match="CUBIN file not found: my code.cubin"):
        embed_cubin.embed_cubin(Path("my code.cubin"), Path("a.o"), output, "k")
    (tmp_path / "file").touch()
    monkeypatch.setattr(sys, "argv", ["e", *command[:-1], "file/b.o", "--name", "k"])
    assert embed_cubin.main() == 3
    assert capsys.readouterr().err.startswith("Unexpected error: ")


@pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler")
def test_the_builder_embeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("objcopy") is None:
        pytest.skip("no objcopy")
    monkeypatch.setenv("TVM_FFI_CACHE_DIR", str(tmp_path / "cache"))
    module = tvm_ffi.cpp.load_inline(
        "embedding",
        cpp_sources='extern "C" const char __tvm_ffi__cubin_a[], __tvm_ffi__cubin_a_end[],'
        " __tvm_ffi__cubin_b[];\n"
        "int64_t size() { return __tvm_ffi__cubin_a_end - __tvm_ffi__cubin_a; }\n"
        "int64_t first() { return __tvm_ffi__cubin_b[0]; }",
        functions=["size", "first"],
        extra_cflags=["-O0"],
        embed_cubin={"b": b"\x07", "a": b"abc"},
    )
    assert module.size() == 3 and module.first() == 7
