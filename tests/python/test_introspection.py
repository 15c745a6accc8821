# SPDX-License-Identifier: Apache-2.0
"""What inspect, help and repr show of functions, methods and constructors."""

from __future__ import annotations

import inspect
import pydoc
from pathlib import Path
from typing import Any

import pytest
import tvm_ffi
from support import compile_library
from tvm_ffi import core, testing
from tvm_ffi._impl.elf import exported_symbols


def test_signature_of_a_function_with_names(shapes: Any) -> None:
    join = tvm_ffi.get_global_func("methods_client.join")
    shown = "(a: 'str', b: 'str' = 'x', upper: 'bool' = False, n: 'int | None' = None) -> 'str'"
    assert str(inspect.signature(join)) == shown
    assert join.__text_signature__ == "(a, b='x', upper=False, n=None)"
    assert join.__doc__ == "Join two texts."
    assert (join.__name__, join.__qualname__) == ("join", "join")
    assert repr(join) == "<ffi.Function 'methods_client.join'>"


def test_signature_of_functions_without_names(shapes: Any) -> None:
    plain = tvm_ffi.get_global_func("methods_client.plain")
    assert str(inspect.signature(plain)) == "(arg0: 'int', arg1: 'float', /) -> 'float'"
    assert plain.__doc__ is None
    packed = tvm_ffi.get_global_func("methods_client.packed")
    assert str(inspect.signature(packed)) == "(*args)"


def test_signature_of_methods(shapes: Any) -> None:
    add = shapes.Shape.add
    assert str(inspect.signature(add)) == "(self, n: 'int', times: 'int' = 1) -> 'int'"
    assert str(inspect.signature(shapes.Shape().add)) == "(n: 'int', times: 'int' = 1) -> 'int'"
    assert add.__text_signature__ == "($self, n, times=1)"
    assert (add.__name__, add.__qualname__) == ("add", "Shape.add")
    assert add.__module__ == shapes.Shape.__module__
    assert add.__doc__ == "Add `n` many times."
    assert inspect.getdoc(shapes.Shape().add) == "Add `n` many times."
    assert str(inspect.signature(shapes.Shape.get_count)) == "(self, /) -> 'int'"
    assert str(inspect.signature(shapes.Shape.twice)) == "(n: 'int') -> 'int'"
    assert inspect.isroutine(add)
    assert inspect.ismethod(shapes.Shape().add)


def test_signature_of_constructors(shapes: Any) -> None:
    shown = str(inspect.signature(shapes.Circle))
    assert shown == "(radius: 'float', name: 'str' = 'circle')"
    assert str(inspect.signature(shapes.Bare)) == "(arg0: 'int', /)"
    assert list(inspect.signature(testing.TestIntPair).parameters) == ["a", "b"]


def test_help_shows_methods(shapes: Any) -> None:
    text = pydoc.render_doc(shapes.Circle, renderer=pydoc.plaintext)
    # From 3.14 on without the quotes.
    assert "area(self, scale: float = 1.0) -> float" in text.replace("'", "")
    assert "Return the count." in text
    assert "Return twice `n`." in text
    assert "How many." in text


def test_functions_made_in_python_show_their_callable() -> None:
    def inner(x: int, y: int = 2) -> int:
        """Add."""
        return x + y

    function = tvm_ffi.convert(inner)
    assert inspect.signature(function) == inspect.signature(inner)
    assert (function.__name__, function.__doc__) == ("inner", "Add.")
    assert "inner" in repr(function)


def test_a_function_that_nobody_named() -> None:
    function = tvm_ffi.get_global_func("ffi.FunctionListGlobalNamesFunctor")()
    assert repr(function) == "ffi.Function"
    assert str(inspect.signature(function)) == "(*args)"
    assert not hasattr(function, "__name__")
    function.__name__ = "other"
    assert function.__name__ == "other"
    del function.__name__
    with pytest.raises(AttributeError):
        function.__name__  # noqa: B018


def test_the_class_of_functions_keeps_its_own_attributes() -> None:
    assert core.Function.__name__ == "Function"
    assert core.Function.__module__ == "tvm_ffi.core"
    assert "any language" in core.Function.__doc__
    assert core.MethodDescriptor.__module__ == "tvm_ffi.core"
    pydoc.render_doc(core.Function)


EXPORTS = """
#define TVM_FFI_DLL_EXPORT_INCLUDE_METADATA 1
#include <tvm/ffi/tvm_ffi.h>
static int64_t Add(int64_t a, int64_t b) { return a + b; }
TVM_FFI_DLL_EXPORT_TYPED_FUNC(add, Add);
TVM_FFI_DLL_EXPORT_TYPED_FUNC_DOC(add, "Add two ints.");
"""


def test_a_module_shows_its_file_and_functions(tmp_path: Path) -> None:
    source = tmp_path / "exports.cc"
    source.write_text(EXPORTS, encoding="utf-8")
    path = compile_library(source, tmp_path / "libexports.so")
    module = tvm_ffi.load_module(path)
    assert module.__file__ == str(path)
    assert repr(module) == f"<ffi.Module 'library' from '{path}'>"
    assert "add" in dir(module)
    assert "get_function" in dir(module)
    assert not [name for name in dir(module) if "metadata_" in name]
    assert module.add.__name__ == "add"
    assert module.add.__doc__ == "Add two ints."
    assert str(inspect.signature(module.add)) == "(arg0: 'int', arg1: 'int', /) -> 'int'"
    assert repr(module.add) == "<ffi.Function 'add'>"
    path.unlink()
    assert "get_function" in dir(module)


def test_symbols_of_broken_files(tmp_path: Path) -> None:
    whole = Path(tvm_ffi.libinfo.find_libtvm_ffi()).read_bytes()
    cut = tmp_path / "cut.so"
    for data in (b"", b"text", whole[:20], whole[:100], whole[: len(whole) // 2]):
        cut.write_bytes(data)
        assert exported_symbols(str(cut)) == []
