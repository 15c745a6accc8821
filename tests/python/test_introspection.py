# SPDX-License-Identifier: Apache-2.0
"""What inspect, help and repr show of functions, methods and constructors."""

from __future__ import annotations

import inspect
import pydoc
from pathlib import Path
from rlcompleter import Completer
from typing import Any, get_type_hints

import pytest
import tvm_ffi
from support import ROOT, compile_library
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
    assert str(inspect.signature(add)) == "(self, /, n: 'int', times: 'int' = 1) -> 'int'"
    assert str(inspect.signature(shapes.Shape().add)) == "(n: 'int', times: 'int' = 1) -> 'int'"
    assert add.__text_signature__ == "($self, /, n, times=1)"
    assert (add.__name__, add.__qualname__) == ("add", "Shape.add")
    assert add.__module__ == shapes.Shape.__module__
    assert add.__doc__ == "Add `n` many times."
    assert inspect.getdoc(shapes.Shape().add) == "Add `n` many times."
    add_to = shapes.Shape.add_to  # a parameter of C++ may have any name
    assert str(inspect.signature(add_to)) == "(_self, /, self: 'int', times: 'int' = 1) -> 'int'"
    assert add_to.__text_signature__ == "($_self, /, self, times=1)"
    bound = shapes.Shape().add_to
    assert str(inspect.signature(bound)) == "(self: 'int', times: 'int' = 1) -> 'int'"
    assert bound(self=2, times=3) == 6
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
    assert "area(self, /, scale: float = 1.0) -> float" in text.replace("'", "")
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


# ---- what the examples show ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def zoo(zoo_library: Path) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ZOO_LIBRARY", str(zoo_library))
        patch.syspath_prepend(str(ROOT / "examples" / "zoo"))
        import zoo

    return zoo


def _classes(zoo: Any) -> list[Any]:
    return [zoo.Animal, zoo.Dog, zoo.Bird, zoo.Enclosure]


def _public(cls: type) -> dict[str, Any]:
    return {name: getattr(cls, name) for name in vars(cls) if not name.startswith("_")}


def test_signatures_of_an_example_name_and_type_everything(zoo: Any) -> None:
    functions = [tvm_ffi.get_global_func("zoo.mean"), tvm_ffi.get_global_func("zoo.grow")]
    for cls in _classes(zoo):
        functions += [cls, *filter(callable, _public(cls).values())]
    assert len(functions) == 11
    for function in functions:
        signature = inspect.signature(function)
        for name, parameter in signature.parameters.items():
            assert not name.startswith("arg"), function
            assert name == "self" or parameter.annotation is not parameter.empty, function
        assert inspect.isclass(function) or signature.return_annotation is not signature.empty
    assert str(inspect.signature(zoo.Enclosure(1).feed)) == (
        "(name: 'str', kilograms: 'float') -> 'float'"
    )


def test_help_of_an_example_has_every_text(zoo: Any) -> None:
    for cls in _classes(zoo):
        for shown in (cls, cls.__new__(cls)):
            text = pydoc.render_doc(shown, renderer=pydoc.plaintext)
            for name, value in _public(cls).items():
                assert inspect.getdoc(value), (cls, name)
                assert name in text and inspect.getdoc(value) in text, (cls, name)
        assert cls.__init__.__doc__ in text
    assert repr(zoo.Animal.legs) == "<field 'legs' of 'zoo.Animal'>"
    assert get_type_hints(zoo.Animal)["legs"] is int


def test_completion_of_an_example_knows_fields_and_methods(zoo: Any) -> None:
    names = {"dog": zoo.Dog("Rex", True), "box": zoo.Enclosure(2), "zoo": zoo}
    completer = Completer(names)

    def complete(text: str) -> set[str]:
        found, i = set(), 0
        while (word := completer.complete(text, i)) is not None:
            found.add(word.rstrip("()"))
            i += 1
        return found

    for start, cls in (("dog", zoo.Dog), ("dog", zoo.Animal), ("box", zoo.Enclosure)):
        assert {f"{start}.{name}" for name in _public(cls)} <= complete(f"{start}.")
    assert complete("box.fe") == {"box.feed"}
    assert {"zoo.Animal", "zoo.mean"} <= complete("zoo.")


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
    assert repr(module.add) == f"<ffi.Function 'add' from '{path}'>"
    with pytest.raises(TypeError, match=r"when calling: `add\(0: int, 1: int\) -> int`"):
        module.add("x", 1)
    with pytest.raises(TypeError, match="the parameters of add have no names, pass the values by"):
        module.add(a=1)
    assert repr(tvm_ffi.system_lib("testing.")["add_one"]) == "<ffi.Function 'add_one'>"
    path.unlink()
    assert "get_function" in dir(module)


def test_symbols_of_broken_files(tmp_path: Path) -> None:
    whole = Path(tvm_ffi.libinfo.find_libtvm_ffi()).read_bytes()
    cut = tmp_path / "cut.so"
    for data in (b"", b"text", whole[:20], whole[:100], whole[: len(whole) // 2]):
        cut.write_bytes(data)
        assert exported_symbols(str(cut)) == []
