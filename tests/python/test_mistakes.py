# SPDX-License-Identifier: Apache-2.0
"""What a new user does wrong, and the exact text that says so.

A message names the function or the field and its class, the argument, what was expected and what
came, by its Python type. Where the interface fixes a text, that text is in it.
"""

from __future__ import annotations

import copy
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Optional

import pytest
import tvm_ffi
from support import FREE_THREADED, ROOT
from tvm_ffi import testing
from tvm_ffi.core import TypeSchema
from tvm_ffi.dataclasses import Enum, c_class, entry, field, py_class, replace

np = pytest.importorskip("numpy")


class Plain:
    """A class that C++ does not know."""


@py_class("tests.mistakes.Point")
class Point(tvm_ffi.Object):
    """A class defined in Python."""

    x: int
    y: int = 0
    label: str = ""
    items: list[int] = field(default_factory=list)
    other: tvm_ffi.Object | None = None


@py_class("tests.mistakes.Frozen", frozen=True)
class Frozen(tvm_ffi.Object):
    """Its field cannot be set."""

    x: int


@py_class("tests.mistakes.Wide")
class Wide(tvm_ffi.Object):
    """Fields of many types."""

    raw: bytes = b""
    flag: bool = False
    ratio: float = 0.0
    table: dict[str, float] = field(default_factory=dict)
    pair: tuple[int, str] = (0, "")
    either: int | str = 0
    function: Optional[Callable[..., Any]] = None  # noqa: UP045  (Python 3.9 reads it)
    dtype: Optional[tvm_ffi.dtype] = None  # noqa: UP045
    device: Optional[tvm_ffi.Device] = None  # noqa: UP045
    last: int = field(default=0, kw_only=True)


class Color(Enum, type_key="tests.mistakes.Color"):
    """An enum."""

    red = entry()


@pytest.fixture(scope="module")
def names(zoo_library: Path) -> dict[str, Any]:
    """The names that the snippets use."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ZOO_LIBRARY", str(zoo_library))
        patch.syspath_prepend(str(ROOT / "examples" / "zoo"))
        import zoo

    def enclosure(*animals: Any) -> Any:
        made = zoo.Enclosure(3)
        for animal in animals:
            made.add(animal)
        return made

    def dog(*tags: str) -> Any:
        made = zoo.Dog("Rex", True)
        made.tags.extend(tags)
        return made

    def aliased() -> None:
        animal, tags = dog(), tvm_ffi.List(["a"])
        animal.tags = tags
        tags.append(3)  # not known to be the animal's
        animal.describe()

    def moved() -> Any:
        array = tvm_ffi.Array([1])
        testing.echo(array._move())
        return array[0]

    def define(key: str, body: str) -> None:
        code = f"from __future__ import annotations\n@py_class({key!r})\n{body}"
        exec(compile(code, "<class>", "exec", dont_inherit=True), {**globals(), "__name__": "m"})

    return {
        **globals(),
        "zoo": zoo,
        "TypeSchema": TypeSchema,
        "c_class": c_class,
        "copy": copy,
        "replace": replace,
        "pickle": pickle,
        "add_one": tvm_ffi.get_global_func("testing.add_one"),
        "aliased": aliased,
        "base": testing.TestObjectBase,
        "bird": lambda: zoo.Bird("Tweety", 0.2),
        "cxx": lambda: testing._TestCxxClassBase(1, 2),
        "define": define,
        "dog": dog,
        "enclosure": enclosure,
        "full": lambda: zoo.Enclosure(0),
        "moved": moved,
        "new_class": lambda name: type(name, (tvm_ffi.Object,), {"__module__": "m"}),
        "tensor": lambda: tvm_ffi.from_dlpack(np.zeros(2)),
    }


# Snippet, exception, text.
MISTAKES: list[tuple[str, str, str]] = [
    # ---- functions: arguments ----
    (
        "add_one()",
        "TypeError",
        "Mismatched number of arguments when calling: `testing.add_one(0: int) -> int`. "
        "Expected 1 but got 0 arguments",
    ),
    (
        "add_one(1, 2)",
        "TypeError",
        "Mismatched number of arguments when calling: `testing.add_one(0: int) -> int`. "
        "Expected 1 but got 2 arguments",
    ),
    (
        'add_one("1")',
        "TypeError",
        "Mismatched type on argument #0 when calling: `testing.add_one(0: int) -> int`. "
        "Expected `int` but got `str`",
    ),
    (
        'add_one("a longer text")',
        "TypeError",
        "Mismatched type on argument #0 when calling: `testing.add_one(0: int) -> int`. "
        "Expected `int` but got `str`",
    ),
    (
        'add_one(b"bytes")',
        "TypeError",
        "Mismatched type on argument #0 when calling: `testing.add_one(0: int) -> int`. "
        "Expected `int` but got `bytes`",
    ),
    (
        "add_one(1.5)",
        "TypeError",
        "Mismatched type on argument #0 when calling: `testing.add_one(0: int) -> int`. "
        "Expected `int` but got `float`",
    ),
    (
        "add_one(None)",
        "TypeError",
        "Mismatched type on argument #0 when calling: `testing.add_one(0: int) -> int`. "
        "Expected `int` but got `None`",
    ),
    (
        "add_one([1])",
        "TypeError",
        "Mismatched type on argument #0 when calling: `testing.add_one(0: int) -> int`. "
        "Expected `int` but got `list`",
    ),
    (
        "add_one((1,))",
        "TypeError",
        "Mismatched type on argument #0 when calling: `testing.add_one(0: int) -> int`. "
        "Expected `int` but got `tuple`",
    ),
    (
        'add_one({"a": 1})',
        "TypeError",
        "Mismatched type on argument #0 when calling: `testing.add_one(0: int) -> int`. "
        "Expected `int` but got `dict`",
    ),
    (
        "add_one({1, 2})",
        "TypeError",
        "Mismatched type on argument #0 when calling: `testing.add_one(0: int) -> int`. "
        "Expected `int` but got `ffi.OpaquePyObject` (`set` in Python)",
    ),
    (
        "add_one(Plain())",
        "TypeError",
        "Mismatched type on argument #0 when calling: `testing.add_one(0: int) -> int`. "
        "Expected `int` but got `ffi.OpaquePyObject` (`Plain` in Python)",
    ),
    (
        "add_one(np.True_)",
        "TypeError",
        "Mismatched type on argument #0 when calling: `testing.add_one(0: int) -> int`. "
        "Expected `int` but got `ffi.OpaquePyObject` "
        f"(`{'numpy.bool' if np.bool_.__name__ == 'bool' else 'bool_'}` in Python)",
    ),
    (
        "add_one(Plain)",
        "TypeError",
        "Mismatched type on argument #0 when calling: `testing.add_one(0: int) -> int`. "
        "Expected `int` but got `type`",
    ),
    (
        "add_one(lambda: 1)",
        "TypeError",
        "Mismatched type on argument #0 when calling: `testing.add_one(0: int) -> int`. "
        "Expected `int` but got `function`",
    ),
    (
        "add_one(2**40)",
        "OverflowError",
        "Overflow on argument #0 when calling: `testing.add_one(0: int) -> int`. Integer "
        "value 1099511627776 is out of range for int32 (-2147483648 to 2147483647)",
    ),
    (
        "add_one(-(2**31) - 1)",
        "OverflowError",
        "Overflow on argument #0 when calling: `testing.add_one(0: int) -> int`. Integer "
        "value -2147483649 is out of range for int32 (-2147483648 to 2147483647)",
    ),
    (
        "add_one(2**70)",
        "TypeError",
        "Mismatched type on argument #0 when calling: `testing.add_one(0: int) -> int`. Expected "
        "`int` but got `ffi.BigInt` (`int` in Python, out of range for int64)",
    ),
    (
        "add_one(np.float32(1.5))",
        "TypeError",
        "Mismatched type on argument #0 when calling: `testing.add_one(0: int) -> int`. "
        "Expected `int` but got `float`",
    ),
    (
        "add_one(np.zeros(2))",
        "TypeError",
        "Mismatched type on argument #0 when calling: `testing.add_one(0: int) -> int`. "
        "Expected `int` but got `ndarray`",
    ),
    (
        "add_one(dog())",
        "TypeError",
        "Mismatched type on argument #0 when calling: `testing.add_one(0: int) -> int`. "
        "Expected `int` but got `zoo.Dog`",
    ),
    (
        "add_one(tvm_ffi.Array([1]))",
        "TypeError",
        "Mismatched type on argument #0 when calling: `testing.add_one(0: int) -> int`. "
        "Expected `int` but got `Array`",
    ),
    (
        'add_one(tvm_ffi.device("cpu"))',
        "TypeError",
        "Mismatched type on argument #0 when calling: `testing.add_one(0: int) -> int`. "
        "Expected `int` but got `Device`",
    ),
    (
        'add_one(tvm_ffi.dtype("int8"))',
        "TypeError",
        "Mismatched type on argument #0 when calling: `testing.add_one(0: int) -> int`. "
        "Expected `int` but got `DataType`",
    ),
    (
        "zoo.mean([1.0, 2.0])",
        "TypeError",
        "Mismatched type on argument #0 when calling: `zoo.mean(0: DLTensor*) -> float`. "
        "Expected `DLTensor*` but got `list`; pass an array that supports DLPack, such as "
        "numpy.asarray(value)",
    ),
    (
        'zoo.mean("text")',
        "TypeError",
        "Mismatched type on argument #0 when calling: `zoo.mean(0: DLTensor*) -> float`. "
        "Expected `DLTensor*` but got `str`; pass an array that supports DLPack, such as "
        "numpy.asarray(value)",
    ),
    (
        "zoo.mean(None)",
        "TypeError",
        "Mismatched type on argument #0 when calling: `zoo.mean(0: DLTensor*) -> float`. "
        "Expected `DLTensor*` but got `None`; pass an array that supports DLPack, such as "
        "numpy.asarray(value)",
    ),
    (
        "zoo._mean(np.zeros(2), 3)",
        "TypeError",
        "Mismatched number of arguments when calling: `zoo.mean(0: DLTensor*) -> float`. "
        "Expected 1 but got 2 arguments",
    ),
    (
        'zoo.mean(np.zeros(2, "float32"))',
        "TypeError",
        "weights must be float64, got float32",
    ),
    (
        "zoo.mean(np.zeros((2, 2)))",
        "ValueError",
        "weights must be a contiguous vector, got 2 dimensions",
    ),
    (
        "zoo.mean(np.zeros(4)[::2])",
        "ValueError",
        "weights must be a contiguous vector, got 1 dimensions",
    ),
    (
        'zoo.grow(np.zeros(2), "2")',
        "TypeError",
        "Mismatched type on argument #1 when calling: `zoo.grow(0: DLTensor*, 1: float) -> "
        "ffi.Tensor`. Expected `float` but got `str`",
    ),
    # ---- methods ----
    (
        "dog().sound(1)",
        "TypeError",
        "Mismatched number of arguments when calling: `zoo.Animal.sound(0: zoo.Animal) -> "
        "str`. Expected 1 but got 2 arguments",
    ),
    (
        "zoo.Dog.sound(3)",
        "TypeError",
        "Animal.sound() must be called on an instance of 'Animal', not 'int'",
    ),
    (
        'zoo.Dog.sound("Rex")',
        "TypeError",
        "Animal.sound() must be called on an instance of 'Animal', not 'str'",
    ),
    ("enclosure().add()", "TypeError", "zoo.Enclosure.add() missing required argument: 'animal'"),
    (
        'enclosure().add("Rex")',
        "TypeError",
        "Mismatched type on argument #1 when calling: `zoo.Enclosure.add(0: zoo.Enclosure, "
        "1: zoo.Animal) -> void`. Expected `zoo.Animal` but got `str`",
    ),
    (
        "enclosure().add(None)",
        "TypeError",
        "Mismatched type on argument #1 when calling: `zoo.Enclosure.add(0: zoo.Enclosure, "
        "1: zoo.Animal) -> void`. Expected `zoo.Animal` but got `None`",
    ),
    (
        "enclosure().add(enclosure())",
        "TypeError",
        "Mismatched type on argument #1 when calling: `zoo.Enclosure.add(0: zoo.Enclosure, "
        "1: zoo.Animal) -> void`. Expected `zoo.Animal` but got `zoo.Enclosure`",
    ),
    (
        "enclosure().add(Plain())",
        "TypeError",
        "Mismatched type on argument #1 when calling: `zoo.Enclosure.add(0: zoo.Enclosure, "
        "1: zoo.Animal) -> void`. Expected `zoo.Animal` but got `ffi.OpaquePyObject` "
        "(`Plain` in Python)",
    ),
    (
        "enclosure().add([dog()])",
        "TypeError",
        "Mismatched type on argument #1 when calling: `zoo.Enclosure.add(0: zoo.Enclosure, "
        "1: zoo.Animal) -> void`. Expected `zoo.Animal` but got `list`",
    ),
    (
        "enclosure().feed(3, 1.0)",
        "TypeError",
        "Mismatched type on argument #1 when calling: `zoo.Enclosure.feed(0: zoo.Enclosure, "
        "1: str, 2: float) -> float`. Expected `str` but got `int`",
    ),
    (
        'enclosure().feed("Rex", "much")',
        "TypeError",
        "Mismatched type on argument #2 when calling: `zoo.Enclosure.feed(0: zoo.Enclosure, "
        "1: str, 2: float) -> float`. Expected `float` but got `str`",
    ),
    (
        'enclosure().feed("Rex")',
        "TypeError",
        "zoo.Enclosure.feed() missing required argument: 'kilograms'",
    ),
    # ---- constructors ----
    (
        "zoo.Dog()",
        "TypeError",
        "Mismatched number of arguments when calling: `zoo.Dog.__ffi_init__(0: str, 1: bool) "
        "-> ffi.Object`. Expected 2 but got 0 arguments",
    ),
    (
        'zoo.Dog("Rex")',
        "TypeError",
        "Mismatched number of arguments when calling: `zoo.Dog.__ffi_init__(0: str, 1: bool) "
        "-> ffi.Object`. Expected 2 but got 1 arguments",
    ),
    (
        'zoo.Dog("Rex", True, 3)',
        "TypeError",
        "Mismatched number of arguments when calling: `zoo.Dog.__ffi_init__(0: str, 1: bool) "
        "-> ffi.Object`. Expected 2 but got 3 arguments",
    ),
    (
        "zoo.Dog(3, True)",
        "TypeError",
        "Mismatched type on argument #0 when calling: `zoo.Dog.__ffi_init__(0: str, 1: bool) "
        "-> ffi.Object`. Expected `str` but got `int`",
    ),
    (
        'zoo.Dog("Rex", "yes")',
        "TypeError",
        "Mismatched type on argument #1 when calling: `zoo.Dog.__ffi_init__(0: str, 1: bool) "
        "-> ffi.Object`. Expected `bool` but got `str`",
    ),
    (
        'zoo.Animal("Rex", 300)',
        "OverflowError",
        "Overflow on argument #1 when calling: `zoo.Animal.__ffi_init__(0: str, 1: int) -> "
        "ffi.Object`. Integer value 300 is out of range for uint8 (0 to 255)",
    ),
    (
        'zoo.Animal("Rex", -1)',
        "OverflowError",
        "Overflow on argument #1 when calling: `zoo.Animal.__ffi_init__(0: str, 1: int) -> "
        "ffi.Object`. Integer value -1 is out of range for uint8 (0 to 255)",
    ),
    (
        'zoo.Animal("Rex", 4.0)',
        "TypeError",
        "Mismatched type on argument #1 when calling: `zoo.Animal.__ffi_init__(0: str, 1: "
        "int) -> ffi.Object`. Expected `int` but got `float`",
    ),
    (
        'zoo.Animal("", 4)',
        "ValueError",
        "an animal needs a name",
    ),
    (
        'zoo.Enclosure("three")',
        "TypeError",
        "Mismatched type on argument #0 when calling: `zoo.Enclosure.__ffi_init__(0: int) -> "
        "ffi.Object`. Expected `int` but got `str`",
    ),
    (
        "zoo.Enclosure(2**31)",
        "OverflowError",
        "Overflow on argument #0 when calling: `zoo.Enclosure.__ffi_init__(0: int) -> "
        "ffi.Object`. Integer value 2147483648 is out of range for int32 (-2147483648 to "
        "2147483647)",
    ),
    (
        "zoo.Enclosure(None)",
        "TypeError",
        "Mismatched type on argument #0 when calling: `zoo.Enclosure.__ffi_init__(0: int) -> "
        "ffi.Object`. Expected `int` but got `None`",
    ),
    (
        'testing.TestObjectBase(v_i64="x")',
        "TypeError",
        "testing.TestObjectBase.__ffi_init__() field 'v_i64':\n"
        "  Cannot convert from type `str` to `int`",
    ),
    (
        "testing.TestObjectBase(wrong=1)",
        "TypeError",
        "testing.TestObjectBase.__ffi_init__() got an unexpected keyword argument 'wrong'",
    ),
    (
        'testing.TestObjectBase(1, 2.0, "a", 4)',
        "TypeError",
        "testing.TestObjectBase.__ffi_init__() takes at most 3 positional argument(s), but 4 "
        "were given",
    ),
    (
        'testing.TestIntPair("x", 1)',
        "TypeError",
        "Mismatched type on argument #0 when calling: `testing.TestIntPair.__ffi_init__(0: "
        "int, 1: int) -> ffi.Object`. Expected `int` but got `str`",
    ),
    (
        "testing.TestIntPair(1)",
        "TypeError",
        "Mismatched number of arguments when calling: `testing.TestIntPair.__ffi_init__(0: "
        "int, 1: int) -> ffi.Object`. Expected 2 but got 1 arguments",
    ),
    (
        "testing._TestCxxClassDerived(1)",
        "TypeError",
        "testing.TestCxxClassDerived.__ffi_init__() missing required argument: 'v_i32'",
    ),
    (
        "testing._TestCxxClassBase(v_i64=1, v_i32=2**40)",
        "OverflowError",
        "testing.TestCxxClassBase.__ffi_init__() field 'v_i32': Integer value 1099511627778 "
        "is out of range for int32 (-2147483648 to 2147483647)",
    ),
    # ---- fields ----
    (
        'setattr(dog(), "legs", 300)',
        "OverflowError",
        "field `legs` of `zoo.Animal`: integer value 300 is out of range for uint8 (0 to 255)",
    ),
    (
        'setattr(dog(), "legs", -1)',
        "OverflowError",
        "field `legs` of `zoo.Animal`: integer value -1 is out of range for uint8 (0 to 255)",
    ),
    (
        'setattr(dog(), "legs", 2**40)',
        "OverflowError",
        "field `legs` of `zoo.Animal`: integer value 1099511627776 is out of range for uint8 "
        "(0 to 255)",
    ),
    (
        'setattr(dog(), "legs", 2**70)',
        "OverflowError",
        "field `legs` of `zoo.Animal`: 1180591620717411303424 does not fit in int64",
    ),
    (
        'setattr(dog(), "legs", np.int64(256))',
        "OverflowError",
        "field `legs` of `zoo.Animal`: integer value 256 is out of range for uint8 (0 to 255)",
    ),
    (
        'setattr(dog(), "legs", "four")',
        "TypeError",
        "field `legs` of `zoo.Animal`: expected `int`, got `str`",
    ),
    (
        'setattr(dog(), "legs", 4.5)',
        "TypeError",
        "field `legs` of `zoo.Animal`: expected `int`, got `float`",
    ),
    (
        'setattr(dog(), "legs", None)',
        "TypeError",
        "field `legs` of `zoo.Animal`: expected `int`, got `None`",
    ),
    (
        'setattr(dog(), "name", 3)',
        "TypeError",
        "field `name` of `zoo.Animal`: expected `str`, got `int`",
    ),
    (
        'setattr(dog(), "name", None)',
        "TypeError",
        "field `name` of `zoo.Animal`: expected `str`, got `None`",
    ),
    (
        'setattr(dog(), "name", b"Rex")',
        "TypeError",
        "field `name` of `zoo.Animal`: expected `str`, got `bytes`",
    ),
    (
        'setattr(dog(), "name", ["Rex"])',
        "TypeError",
        "field `name` of `zoo.Animal`: expected `str`, got `list`",
    ),
    (
        'setattr(dog(), "trained", "yes")',
        "TypeError",
        "field `trained` of `zoo.Dog`: expected `bool`, got `str`",
    ),
    (
        'setattr(dog(), "trained", Plain())',
        "TypeError",
        "field `trained` of `zoo.Dog`: expected `bool`, got `Plain`",
    ),
    (
        'setattr(dog(), "tags", "abc")',
        "TypeError",
        "field `tags` of `zoo.Animal`: expected `List<str>`, got `str`",
    ),
    (
        'setattr(dog(), "tags", [1, 2])',
        "TypeError",
        "field `tags` of `zoo.Animal`: expected `List<str>`, got `List[index 0: int]`",
    ),
    (
        'setattr(dog(), "tags", ["a", 2])',
        "TypeError",
        "field `tags` of `zoo.Animal`: expected `List<str>`, got `List[index 1: int]`",
    ),
    (
        'setattr(dog(), "tags", {"a": 1})',
        "TypeError",
        "field `tags` of `zoo.Animal`: expected `List<str>`, got `dict`",
    ),
    (
        'setattr(dog(), "tags", None)',
        "TypeError",
        "field `tags` of `zoo.Animal`: expected `List<str>`, got `None`",
    ),
    (
        'setattr(bird(), "wingspan", 1.0)',
        "AttributeError",
        "field `wingspan` of `zoo.Bird` is read-only",
    ),
    (
        'setattr(enclosure(), "capacity", 3)',
        "AttributeError",
        "field `capacity` of `zoo.Enclosure` is read-only",
    ),
    (
        'delattr(dog(), "name")',
        "AttributeError",
        "field `name` of `zoo.Animal` cannot be deleted",
    ),
    (
        'delattr(enclosure(), "capacity")',
        "AttributeError",
        "field `capacity` of `zoo.Enclosure` cannot be deleted",
    ),
    (
        'setattr(base(), "v_i64", "x")',
        "TypeError",
        "field `v_i64` of `testing.TestObjectBase`: expected `int`, got `str`",
    ),
    (
        'setattr(base(), "v_i64", 1.5)',
        "TypeError",
        "field `v_i64` of `testing.TestObjectBase`: expected `int`, got `float`",
    ),
    (
        'setattr(base(), "v_f64", "x")',
        "AttributeError",
        "field `v_f64` of `testing.TestObjectBase` is read-only",
    ),
    (
        'setattr(base(), "v_str", 3)',
        "TypeError",
        "field `v_str` of `testing.TestObjectBase`: expected `str`, got `int`",
    ),
    (
        'setattr(base(), "v_str", Plain())',
        "TypeError",
        "field `v_str` of `testing.TestObjectBase`: expected `str`, got `Plain`",
    ),
    (
        'setattr(cxx(), "v_i32", 2**31)',
        "OverflowError",
        "field `v_i32` of `testing.TestCxxClassBase`: integer value 2147483648 is out of "
        "range for int32 (-2147483648 to 2147483647)",
    ),
    (
        'setattr(cxx(), "v_i32", "x")',
        "TypeError",
        "field `v_i32` of `testing.TestCxxClassBase`: expected `int`, got `str`",
    ),
    (
        "zoo.Dog.legs.__get__(3)",
        "TypeError",
        "field `legs` belongs to `zoo.Animal`, not to int",
    ),
    (
        'zoo.Dog.name.__set__(enclosure(), "x")',
        "TypeError",
        "field `name` belongs to `zoo.Animal`, not to `zoo.Enclosure`",
    ),
    # ---- containers of typed fields ----
    (
        "dog().tags.append(3)",
        "TypeError",
        "field `tags` of `zoo.Animal` is a List[str]: expected an element of type `str`, got `int`",
    ),
    (
        "dog().tags.insert(0, None)",
        "TypeError",
        "field `tags` of `zoo.Animal` is a List[str]: expected an element of type `str`, got "
        "`None`",
    ),
    (
        'dog().tags.extend(["a", 2.5])',
        "TypeError",
        "field `tags` of `zoo.Animal` is a List[str]: expected an element of type `str`, got "
        "`float`",
    ),
    (
        'dog("a").tags.__setitem__(0, 3)',
        "TypeError",
        "field `tags` of `zoo.Animal` is a List[str]: expected an element of type `str`, got `int`",
    ),
    (
        'dog("a").tags.__setitem__(slice(0, 1), [b"x"])',
        "TypeError",
        "field `tags` of `zoo.Animal` is a List[str]: expected an element of type `str`, got "
        "`bytes`",
    ),
    (
        'enclosure().animals.append("Rex")',
        "TypeError",
        "field `animals` of `zoo.Enclosure` is a List[zoo.Animal]: expected an element of "
        "type `zoo.Animal`, got `str`",
    ),
    (
        "enclosure().animals.append(None)",
        "TypeError",
        "field `animals` of `zoo.Enclosure` is a List[zoo.Animal]: expected an element of "
        "type `zoo.Animal`, got `None`",
    ),
    (
        "enclosure().animals.append(enclosure())",
        "TypeError",
        "field `animals` of `zoo.Enclosure` is a List[zoo.Animal]: expected an element of "
        "type `zoo.Animal`, got `Enclosure`",
    ),
    (
        'enclosure().food.__setitem__("Rex", "much")',
        "TypeError",
        "field `food` of `zoo.Enclosure` is a Dict[str, float]: expected a value of type "
        "`float`, got `str`",
    ),
    (
        "enclosure().food.__setitem__(3, 1.0)",
        "TypeError",
        "field `food` of `zoo.Enclosure` is a Dict[str, float]: expected a key of type "
        "`str`, got `int`",
    ),
    (
        'enclosure().food.update({"a": None})',
        "TypeError",
        "field `food` of `zoo.Enclosure` is a Dict[str, float]: expected a value of type "
        "`float`, got `None`",
    ),
    (
        "aliased()",
        "TypeError",
        "Mismatched type of an element in a container. Expected `str` but got `int`",
    ),
    # ---- containers ----
    (
        "tvm_ffi.Array([1, 2])[5]",
        "IndexError",
        "Index out of range. size: 2, got index 5",
    ),
    (
        'tvm_ffi.Array([1, 2])["a"]',
        "TypeError",
        "indices must be integers or slices, not str",
    ),
    (
        "tvm_ffi.Array(3)",
        "TypeError",
        "'int' object is not iterable",
    ),
    (
        "tvm_ffi.List(3)",
        "TypeError",
        "'int' object is not iterable",
    ),
    (
        "tvm_ffi.List([1])[1]",
        "IndexError",
        "Index out of range. size: 1, got index 1",
    ),
    (
        "tvm_ffi.List([1]).__setitem__(3, 1)",
        "IndexError",
        "Index out of range. size: 1, got index 3",
    ),
    (
        'tvm_ffi.List([1]).pop("x")',
        "TypeError",
        "indices must be integers or slices, not str",
    ),
    (
        "tvm_ffi.List([1]).remove(2)",
        "ValueError",
        "2 is not in this List",
    ),
    (
        "tvm_ffi.List([1]).index(2)",
        "ValueError",
        "2 is not in this List",
    ),
    (
        "tvm_ffi.List([1]).__setitem__(slice(0, 1, 2), [1, 2, 3])",
        "ValueError",
        "attempt to assign sequence of size 3 to extended slice of size 1",
    ),
    (
        'tvm_ffi.Map({"a": 1})["b"]',
        "KeyError",
        "\"key is not in Map: 'b'\"",
    ),
    (
        'tvm_ffi.Map({"a": 1})[1, 2]',
        "KeyError",
        "'key is not in Map: (1, 2)'",
    ),
    (
        "tvm_ffi.Map([1, 2])",
        "AttributeError",
        "Map expects a mapping, got list, which has no method 'items'",
    ),
    (
        'tvm_ffi.Dict({"a": 1})["b"]',
        "KeyError",
        "\"key is not in Dict: 'b'\"",
    ),
    (
        'tvm_ffi.Dict({"a": 1}).pop("b")',
        "KeyError",
        "'b'",
    ),
    (
        "tvm_ffi.Dict().popitem()",
        "KeyError",
        "'popitem(): this Dict is empty'",
    ),
    (
        'tvm_ffi.Dict({"a": 1}).__delitem__("b")',
        "KeyError",
        "'b'",
    ),
    (
        'tvm_ffi.Dict([("a", 1)])',
        "AttributeError",
        "Dict expects a mapping, got list, which has no method 'items'",
    ),
    (
        "tvm_ffi.Dict().update([1])",
        "TypeError",
        "item #0 is not a pair of key and value, got int",
    ),
    (
        "tvm_ffi.Dict().update([(1, 2, 3)])",
        "ValueError",
        "item #0 has length 3; a key and a value are needed",
    ),
    (
        'tvm_ffi.Shape([1, "a"])',
        "ValueError",
        "Shape must be a tuple of integers, got 'a'",
    ),
    (
        "tvm_ffi.Shape([1.5])",
        "ValueError",
        "Shape must be a tuple of integers, got 1.5",
    ),
    (
        "tvm_ffi.Shape(3)",
        "TypeError",
        "'int' object is not iterable",
    ),
    # ---- callbacks ----
    (
        'enclosure(dog()).select(lambda a: "yes")',
        "TypeError",
        "Mismatched type of the result when calling back: `(0: zoo.Animal) -> bool`. "
        "Expected `bool` but got `str`",
    ),
    (
        "enclosure(dog()).select(lambda a: None)",
        "TypeError",
        "Mismatched type of the result when calling back: `(0: zoo.Animal) -> bool`. "
        "Expected `bool` but got `None`",
    ),
    (
        "enclosure(dog()).select(lambda a: Plain())",
        "TypeError",
        "Mismatched type of the result when calling back: `(0: zoo.Animal) -> bool`. "
        "Expected `bool` but got `object`",
    ),
    (
        "enclosure(dog()).select(3)",
        "TypeError",
        "Mismatched type on argument #1 when calling: `zoo.Enclosure.select(0: "
        "zoo.Enclosure, 1: (0: zoo.Animal) -> bool) -> Array<zoo.Animal>`. Expected `(0: "
        "zoo.Animal) -> bool` but got `int`",
    ),
    (
        "enclosure(dog()).select(None)",
        "TypeError",
        "a null ffi.Function (None) cannot be called",
    ),
    (
        "testing.apply(3)",
        "TypeError",
        "Cannot convert from type `int` to `ffi.Function`",
    ),
    # ---- errors ----
    (
        'testing.test_raise_error("ValueError", "no luck")',
        "ValueError",
        "no luck",
    ),
    (
        'testing.test_raise_error("UnheardOfError", "no luck")',
        "RuntimeError",
        "UnheardOfError: no luck",
    ),
    (
        'testing.test_raise_error("ZeroDivisionError", "no luck")',
        "ZeroDivisionError",
        "no luck",
    ),
    (
        'testing.test_raise_error("NotImplementedError", "no luck")',
        "NotImplementedError",
        "no luck",
    ),
    (
        "full().add(dog())",
        "ZooFullError",
        "no room for Rex: the enclosure holds 0",
    ),
    (
        "tvm_ffi.register_error(3)",
        "TypeError",
        "register_error expects a name or an exception class",
    ),
    (
        'tvm_ffi.register_error("Name", 3)',
        "TypeError",
        "register_error expects an exception class, got 3",
    ),
    (
        'tvm_ffi.register_error("Name", int)',
        "TypeError",
        "register_error expects an exception class, got <class 'int'>",
    ),
    # ---- registration ----
    (
        'tvm_ffi.register_object("zoo.Lion")(new_class("Lion"))',
        "ValueError",
        "Cannot find object type index for zoo.Lion: no loaded library defines this type. "
        "Load the library that does first, with tvm_ffi.load_module",
    ),
    (
        'tvm_ffi.register_object("zoo.Dog")(Plain)',
        "TypeError",
        "register_object('zoo.Dog'): class `Plain` must derive from tvm_ffi.Object",
    ),
    (
        'tvm_ffi.register_object("zoo.Dog")(3)',
        "TypeError",
        "register_object('zoo.Dog') expects a class, got int",
    ),
    (
        'tvm_ffi.register_object("zoo.Dog")(new_class("Cat"))',
        "ValueError",
        "Type 'zoo.Dog' already has a registered class, `zoo.Dog`; derive from it to replace it",
    ),
    (
        'tvm_ffi.register_object("ffi.List")(tvm_ffi.Dict)',
        "TypeError",
        "register_object('ffi.List'): class `Dict` must derive from `tvm_ffi.container.List`",
    ),
    (
        "tvm_ffi.register_object(3)",
        "TypeError",
        "type_key must be a string, type, or None",
    ),
    (
        'tvm_ffi.register_global_func("tests.mistakes.f", 3)',
        "TypeError",
        "register_global_func('tests.mistakes.f') expects a callable, got int",
    ),
    (
        'tvm_ffi.register_global_func("tests.mistakes.f")("text")',
        "TypeError",
        "register_global_func('tests.mistakes.f') expects a callable, got str",
    ),
    (
        "tvm_ffi.register_global_func(3)",
        "TypeError",
        "func_name must be a string, got int",
    ),
    (
        'tvm_ffi.register_global_func("testing.add_one", lambda x: x)',
        "RuntimeError",
        "Global Function `testing.add_one` is already registered",
    ),
    (
        'tvm_ffi.get_global_func("zoo.maen")',
        "ValueError",
        "Cannot find global function zoo.maen; did you mean zoo.mean?",
    ),
    (
        'tvm_ffi.get_global_func("no.such.function")',
        "ValueError",
        "Cannot find global function no.such.function; the library that registers it may not "
        "be loaded",
    ),
    (
        "tvm_ffi.get_global_func(3)",
        "TypeError",
        "get_global_func expects a name, got int",
    ),
    (
        'tvm_ffi.get_global_func_metadata("no.such.function")',
        "RuntimeError",
        "Global Function is not found: no.such.function",
    ),
    (
        'tvm_ffi.init_ffi_api("zoo", "no.such.module")',
        "KeyError",
        "\"init_ffi_api: module 'no.such.module' is not imported\"",
    ),
    (
        "testing.TestNonCopyable()",
        "TypeError",
        "Mismatched number of arguments when calling: "
        "`testing.TestNonCopyable.__ffi_init__(0: int) -> ffi.Object`. Expected 1 but got 0 "
        "arguments",
    ),
    # ---- modules ----
    (
        'tvm_ffi.load_module("nowhere.so")',
        "RuntimeError",
        "Failed to load dynamic shared library nowhere.so nowhere.so: cannot open shared "
        "object file: No such file or directory",
    ),
    (
        'tvm_ffi.load_module("libx")',
        "RuntimeError",
        "Failed to get file format from libx; the name of a library ends with .so, .dylib or .dll",
    ),
    (
        'tvm_ffi.load_module("libx.pt")',
        "RuntimeError",
        "Loader for `.pt` files is not registered, resolved to "
        "(ffi.Module.load_from_file.pt) in the global registry. Ensure that you have loaded "
        "the correct runtime code, and that you are on the correct hardware architecture.",
    ),
    (
        'tvm_ffi.load_module(b"libx.so")',
        "TypeError",
        "load_module expects the path as str, got bytes",
    ),
    (
        "zoo._library.nothing",
        "AttributeError",
        "Module has no function 'nothing'; functions that a library registers by name are "
        "returned by tvm_ffi.get_global_func",
    ),
    (
        'zoo._library["nothing"]',
        "AttributeError",
        "Module has no function 'nothing'; functions that a library registers by name are "
        "returned by tvm_ffi.get_global_func",
    ),
    (
        "zoo._library[3]",
        "ValueError",
        "Can only take string as function name",
    ),
    (
        "zoo._library()",
        "AttributeError",
        "Module has no function 'main'; functions that a library registers by name are "
        "returned by tvm_ffi.get_global_func",
    ),
    (
        "zoo._library.get_function(3)",
        "TypeError",
        "Mismatched type on argument #1 when calling: `ffi.ModuleGetFunction(0: ffi.Module, "
        "1: str, 2: bool) -> Optional<ffi.Function>`. Expected `str` but got `int`",
    ),
    # ---- dtypes and devices ----
    (
        'tvm_ffi.dtype("float33x")',
        "ValueError",
        "Invalid lanes specification in dtype 'float33x'. Lanes must be a positive integer.",
    ),
    (
        'tvm_ffi.dtype("floa32")',
        "ValueError",
        "unknown dtype `floa32`",
    ),
    (
        "tvm_ffi.dtype(3)",
        "ValueError",
        "unknown dtype `3`",
    ),
    (
        "tvm_ffi.dtype(None)",
        "ValueError",
        "unknown dtype `None`",
    ),
    (
        'tvm_ffi.device("gpu0")',
        "ValueError",
        "Unknown device: gpu0",
    ),
    (
        'tvm_ffi.device("cpu:x")',
        "ValueError",
        "Invalid device index: x",
    ),
    (
        'tvm_ffi.device("")',
        "ValueError",
        "Unknown device: ",
    ),
    (
        "tvm_ffi.device(None)",
        "TypeError",
        "an integer is required as device type, got NoneType",
    ),
    (
        'tvm_ffi.device("cuda", "x")',
        "TypeError",
        "Invalid device index: x",
    ),
    # ---- tensors ----
    (
        "tvm_ffi.from_dlpack([1, 2])",
        "TypeError",
        "Expect from_dlpack to take either a compatible tensor or PyCapsule, got list",
    ),
    (
        "tvm_ffi.from_dlpack(None)",
        "TypeError",
        "Expect from_dlpack to take either a compatible tensor or PyCapsule, got NoneType",
    ),
    (
        'tvm_ffi.from_dlpack("text")',
        "TypeError",
        "Expect from_dlpack to take either a compatible tensor or PyCapsule, got str",
    ),
    (
        "tensor().size(5)",
        "IndexError",
        "Dimension 5 out of range for tensor with 1 dimensions",
    ),
    # ---- copies ----
    (
        "copy.copy(testing.TestNonCopyable(1))",
        "TypeError",
        "Type `TestNonCopyable` does not support copy. The underlying C++ type is not "
        "copy-constructible.",
    ),
    (
        "copy.deepcopy(tvm_ffi.Array([lambda: 1]))",
        "RuntimeError",
        'Cannot deep copy object of type "ffi.Function" because it is not copy-constructible',
    ),
    (
        "pickle.dumps(tvm_ffi.Array([lambda: 1]))",
        "TypeError",
        "cannot pickle `Array` object: Type `ffi.Function` cannot be pickled unless it is a global "
        "function, which travels by its name; tvm_ffi.register_global_func gives it one",
    ),
    (
        "pickle.dumps(tvm_ffi.Array([Plain()]))",
        "TypeError",
        "cannot pickle `Array` object: Type `object` (a Python object) cannot be pickled (no "
        "native creator or __ffi_new__ type attr)",
    ),
    (
        "copy.copy(zoo._library)",
        "TypeError",
        "Type `Module` does not support copy. The underlying C++ type is not copy-constructible.",
    ),
    # ---- classes of Python ----
    (
        "Point()",
        "TypeError",
        "tests.mistakes.Point.__ffi_init__() missing required argument: 'x'",
    ),
    (
        'define("tests.mistakes.Unresolved", "class Bad(tvm_ffi.Object):\\n    x: '
        'Nowhere\\nBad(1)")',
        "TypeError",
        "Cannot instantiate Bad: unresolved forward references: [\"x: Nowhere (name 'Nowhere' "
        'is not defined)"]',
    ),
    (
        'Point("a")',
        "TypeError",
        "tests.mistakes.Point.__ffi_init__() field 'x':\n  expected int, got str",
    ),
    (
        "Point(1.5)",
        "TypeError",
        "tests.mistakes.Point.__ffi_init__() field 'x':\n  expected int, got float",
    ),
    (
        "Point(None)",
        "TypeError",
        "tests.mistakes.Point.__ffi_init__() field 'x':\n  expected int, got None",
    ),
    (
        'Point(1, 2, "x", 4)',
        "TypeError",
        "tests.mistakes.Point.__ffi_init__() field 'items':\n  expected List, got int",
    ),
    (
        "Point(1, z=3)",
        "TypeError",
        "tests.mistakes.Point.__ffi_init__() got an unexpected keyword argument 'z'",
    ),
    (
        "Point(1, x=1)",
        "TypeError",
        "tests.mistakes.Point.__ffi_init__() got multiple values for argument 'x'",
    ),
    (
        'setattr(Point(1), "x", "a")',
        "TypeError",
        "field `x` of `tests.mistakes.Point`: expected int, got str",
    ),
    (
        'setattr(Point(1), "x", 2**70)',
        "TypeError",
        "field `x` of `tests.mistakes.Point`: integer 1180591620717411303424 out of int64 range "
        "[-9223372036854775808, 9223372036854775807]",
    ),
    (
        'setattr(Point(1), "label", 3)',
        "TypeError",
        "field `label` of `tests.mistakes.Point`: expected str, got int",
    ),
    (
        'setattr(Point(1), "items", [1, "a"])',
        "TypeError",
        "field `items` of `tests.mistakes.Point`: element [1]: expected int, got str",
    ),
    (
        'setattr(Frozen(1), "x", 2)',
        "AttributeError",
        "field `x` of `tests.mistakes.Frozen` is read-only",
    ),
    (
        'delattr(Point(1), "x")',
        "AttributeError",
        "field `x` of `tests.mistakes.Point` cannot be deleted",
    ),
    (
        'define("tests.mistakes.Bad", "class Bad(tvm_ffi.Object):\\n    x: complex")',
        "TypeError",
        "Cannot convert <class 'complex'> to TypeSchema",
    ),
    (
        'define("tests.mistakes.Bad", "class Bad(tvm_ffi.Object):\\n    x: int = \'a\'\\nBad()")',
        "TypeError",
        "tests.mistakes.Bad.__ffi_init__() default for field 'x':\n  expected int, got str",
    ),
    (
        'define("tests.mistakes.Bad", "class Bad:\\n    x: int")',
        "TypeError",
        "Bad must inherit from a registered FFI Object type (e.g. tvm_ffi.Object)",
    ),
    (
        'py_class("tests.mistakes.Point")(new_class("Other"))',
        "ValueError",
        "Type key 'tests.mistakes.Point' is already registered",
    ),
    (
        "py_class(3)",
        "TypeError",
        "py_class: expected str or type, got <class 'int'>",
    ),
    (
        'c_class("zoo.Lion")(new_class("Lion"))',
        "ValueError",
        "Cannot find object type index for zoo.Lion: no loaded library defines this type. "
        "Load the library that does first, with tvm_ffi.load_module",
    ),
    (
        'c_class(3)(new_class("Lion"))',
        "TypeError",
        "a type key must be a str, got int",
    ),
    (
        "field(default=1, default_factory=int)",
        "ValueError",
        "cannot specify both default and default_factory",
    ),
    (
        "moved()",
        "ValueError",
        "Array object has no C++ object: it was moved from, or never initialised",
    ),
    (
        'TypeSchema("int").convert("a")',
        "TypeError",
        "type conversion failed for int: expected int, got str",
    ),
    (
        'TypeSchema("str").check_value(3)',
        "TypeError",
        "type check failed for str: expected str, got int",
    ),
    (
        "TypeSchema.from_annotation(complex)",
        "TypeError",
        "Cannot convert <class 'complex'> to TypeSchema",
    ),
    # ---- containers, again ----
    ("tvm_ffi.Array([1, 2])[1.5]", "TypeError", "indices must be integers or slices, not float"),
    (
        "tvm_ffi.Array([1, 2]).append(3)",
        "AttributeError",
        "'Array' object has no attribute 'append'",
    ),
    ("tvm_ffi.List([1, 2]).pop(7)", "IndexError", "Index out of range. size: 2, got index 7"),
    ("tvm_ffi.List([]).pop()", "IndexError", "pop from empty list"),
    ("tvm_ffi.List([1]).remove(3)", "ValueError", "3 is not in this List"),
    ("tvm_ffi.List([1]).index(3)", "ValueError", "3 is not in this List"),
    ('tvm_ffi.Shape((1, "a"))', "ValueError", "Shape must be a tuple of integers, got 'a'"),
    ("tvm_ffi.Shape((1.5,))", "ValueError", "Shape must be a tuple of integers, got 1.5"),
    (
        "tvm_ffi.Array([1]) < tvm_ffi.Array([2])",
        "TypeError",
        "'<' not supported between instances of 'Array' and 'Array'",
    ),
    (
        'dog().tags.extend(["a", 3])',
        "TypeError",
        "field `tags` of `zoo.Animal` is a List[str]: expected an element of type `str`, got `int`",
    ),
    ('enclosure(dog()).food["none"]', "KeyError", "\"key is not in Dict: 'none'\""),
    # ---- fields of many types ----
    (
        'Wide("text")',
        "TypeError",
        "tests.mistakes.Wide.__ffi_init__() field 'raw':\n  expected bytes, got str",
    ),
    (
        'Wide(flag="yes")',
        "TypeError",
        "tests.mistakes.Wide.__ffi_init__() field 'flag':\n  expected bool, got str",
    ),
    (
        'Wide(ratio="x")',
        "TypeError",
        "tests.mistakes.Wide.__ffi_init__() field 'ratio':\n  expected float, got str",
    ),
    (
        "Wide(pair=(1, 2))",
        "TypeError",
        "tests.mistakes.Wide.__ffi_init__() field 'pair':\n  element [1]: expected str, got int",
    ),
    (
        "Wide(pair=(1,))",
        "TypeError",
        "tests.mistakes.Wide.__ffi_init__() field 'pair':\n  expected tuple of length 2, got "
        "Array of length 1",
    ),
    (
        "Wide(pair=3)",
        "TypeError",
        "tests.mistakes.Wide.__ffi_init__() field 'pair':\n  expected tuple, got int",
    ),
    (
        "Wide(either=1.5)",
        "TypeError",
        "tests.mistakes.Wide.__ffi_init__() field 'either':\n  expected int | str, got float",
    ),
    (
        "Wide(function=3)",
        "TypeError",
        "tests.mistakes.Wide.__ffi_init__() field 'function':\n  expected Callable, got int",
    ),
    (
        'Wide(dtype="flot32")',
        "TypeError",
        "tests.mistakes.Wide.__ffi_init__() field 'dtype':\n  expected dtype, got invalid "
        "dtype string 'flot32'",
    ),
    (
        "Wide(dtype=3)",
        "TypeError",
        "tests.mistakes.Wide.__ffi_init__() field 'dtype':\n  expected dtype, got int",
    ),
    (
        'Wide(device="gpuu")',
        "TypeError",
        "tests.mistakes.Wide.__ffi_init__() field 'device':\n  expected Device, got invalid "
        "device string 'gpuu'",
    ),
    (
        "Wide(device=3)",
        "TypeError",
        "tests.mistakes.Wide.__ffi_init__() field 'device':\n  expected Device, got int",
    ),
    (
        "Wide(table={1: 2.0})",
        "TypeError",
        "tests.mistakes.Wide.__ffi_init__() field 'table':\n  key 1: expected str, got int",
    ),
    (
        'Wide(table={"a": "b"})',
        "TypeError",
        "tests.mistakes.Wide.__ffi_init__() field 'table':\n  value for key 'a': expected "
        "float, got str",
    ),
    (
        "Wide(table=[1])",
        "TypeError",
        "tests.mistakes.Wide.__ffi_init__() field 'table':\n  expected Dict, got ffi.Array",
    ),
    (
        "Wide(raw=None)",
        "TypeError",
        "tests.mistakes.Wide.__ffi_init__() field 'raw':\n  expected bytes, got None",
    ),
    (
        'Wide(b"", True, 0.0, {}, (1, "a"), 1, None, None, None, 5)',
        "TypeError",
        "tests.mistakes.Wide.__ffi_init__() takes at most 9 positional argument(s), but 10 "
        "were given",
    ),
    (
        'setattr(Wide(), "raw", "text")',
        "TypeError",
        "field `raw` of `tests.mistakes.Wide`: expected bytes, got str",
    ),
    (
        'setattr(Wide(), "either", [1])',
        "TypeError",
        "field `either` of `tests.mistakes.Wide`: expected int | str, got ffi.Array",
    ),
    (
        'setattr(Wide(), "table", {"a": None})',
        "TypeError",
        "field `table` of `tests.mistakes.Wide`: value for key 'a': expected float, got None",
    ),
    (
        'setattr(Wide(), "device", "gpuu")',
        "TypeError",
        "field `device` of `tests.mistakes.Wide`: expected Device, got invalid device string "
        "'gpuu'",
    ),
    (
        'setattr(Wide(), "function", 3)',
        "TypeError",
        "field `function` of `tests.mistakes.Wide`: expected Callable, got int",
    ),
    (
        'setattr(dog(), "trained", None)',
        "TypeError",
        "field `trained` of `zoo.Dog`: expected `bool`, got `None`",
    ),
    (
        'delattr(dog(), "nothing")',
        "AttributeError",
        "nothing" if sys.version_info < (3, 11) else "'Dog' object has no attribute 'nothing'",
    ),
    ("Point(1).labl", "AttributeError", "'Point' object has no attribute 'labl'"),
    (
        "Point(1) < Point(2)",
        "TypeError",
        "'<' not supported between instances of 'Point' and 'Point'",
    ),
    ("Point(1)()", "TypeError", "'Point' object is not callable"),
    (
        'replace(Point(1), x="a")',
        "TypeError",
        "field `x` of `tests.mistakes.Point`: expected int, got str",
    ),
    (
        'tvm_ffi.structural_map(Point(1), (int, lambda v: "s"))',
        "TypeError",
        "field `x` of `tests.mistakes.Point`: expected int, got str",
    ),
    (
        'tvm_ffi.structural_map(testing.TestIntPair(1, 2), (int, lambda v: "s"))',
        "TypeError",
        "field `a` of `testing.TestIntPair`: Cannot convert from type `str` to `int`",
    ),
    # ---- wrong self, empty objects ----
    (
        "Point.__init__(1)",
        "TypeError",
        "Point.__init__() must be called on an instance of 'Point', not 'int'",
    ),
    (
        "testing.TestIntPair.__init__(1)",
        "TypeError",
        "TestIntPair.__init__() must be called on an instance of 'TestIntPair', not 'int'",
    ),
    (
        "testing.TestIntPair.__init__(Point(1), 1, 2)",
        "TypeError",
        "Calling `super().__init__()` is not supported for @c_class `TestIntPair`. Use "
        "@py_class for inheritance with manual __init__, or define `Point` with init=True.",
    ),
    ("zoo.Animal.describe()", "TypeError", "unbound method Animal.describe() needs an argument"),
    (
        "zoo.Animal.describe(enclosure())",
        "TypeError",
        "Animal.describe() must be called on an instance of 'Animal', not 'Enclosure'",
    ),
    (
        "copy.copy(Point.__new__(Point))",
        "ValueError",
        "Point object has no C++ object: it was moved from, or never initialised",
    ),
    (
        "copy.deepcopy(Point.__new__(Point))",
        "ValueError",
        "Point object has no C++ object: it was moved from, or never initialised",
    ),
    (
        "copy.copy(zoo.Dog.__new__(zoo.Dog))",
        "ValueError",
        "Dog object has no C++ object: it was moved from, or never initialised",
    ),
    (
        "pickle.dumps(zoo.Dog.__new__(zoo.Dog))",
        "ValueError",
        "Dog object has no C++ object: it was moved from, or never initialised",
    ),
    (
        "zoo.Dog.__new__(zoo.Dog).sound()",
        "ValueError",
        "Dog object has no C++ object: it was moved from, or never initialised",
    ),
    ("tvm_ffi.Object(3)", "TypeError", "Object() takes no arguments"),
    ("tvm_ffi.core.Function(3)", "TypeError", "tvm_ffi.core.Function() takes no arguments"),
    (
        "tvm_ffi.Module()",
        "TypeError",
        "`Module` cannot be constructed directly. Define a custom __init__ or use a factory "
        "method.",
    ),
    # ---- enums ----
    ("Color(3)", "ValueError", "3 is not a valid Color"),
    ('Color.get("green")', "KeyError", "'green'"),
    # ---- calls and callbacks ----
    (
        "add_one(x=1)",
        "TypeError",
        "__call__() got an unexpected keyword argument 'x'; the parameters of "
        "testing.add_one have no names, pass the values by position",
    ),
    (
        "dog().sound(volume=1)",
        "TypeError",
        "__call__() got an unexpected keyword argument 'volume'; the parameters of "
        "zoo.Animal.sound have no names, pass the values by position",
    ),
    (
        'zoo.Dog(nam="Rex", trained=True)',
        "TypeError",
        "zoo.Dog.__ffi_init__() got an unexpected keyword argument 'nam'",
    ),
    (
        'zoo.Dog("Rex", name="Rex")',
        "TypeError",
        "zoo.Dog.__ffi_init__() got multiple values for argument 'name'",
    ),
    (
        "zoo.Dog(trained=True)",
        "TypeError",
        "zoo.Dog.__ffi_init__() missing required argument: 'name'",
    ),
    (
        'enclosure().feed(name="Rex", much=1.0)',
        "TypeError",
        "zoo.Enclosure.feed() got an unexpected keyword argument 'much'",
    ),
    (
        "zoo.Dog(None, True)",
        "TypeError",
        "Mismatched type on argument #0 when calling: `zoo.Dog.__ffi_init__(0: str, 1: bool) "
        "-> ffi.Object`. Expected `str` but got `None`",
    ),
    (
        "tvm_ffi.convert(lambda x: x)(y=1)",
        "TypeError",
        "__call__() got an unexpected keyword argument 'y'; the parameters of this function "
        "have no names, pass the values by position",
    ),
    ("tvm_ffi.convert(lambda x: 1 / 0)(1)", "ZeroDivisionError", "division by zero"),
    (
        'enclosure(dog()).select(lambda animal: "x")',
        "TypeError",
        "Mismatched type of the result when calling back: `(0: zoo.Animal) -> bool`. "
        "Expected `bool` but got `str`",
    ),
    (
        "testing.TestIntPair(2**70, 1)",
        "TypeError",
        "Mismatched type on argument #0 when calling: `testing.TestIntPair.__ffi_init__(0: "
        "int, 1: int) -> ffi.Object`. Expected `int` but got `ffi.BigInt` (`int` in Python, "
        "out of range for int64)",
    ),
    (
        "testing.TestObjectBase(v_i64=2**70)",
        "TypeError",
        "testing.TestObjectBase.__ffi_init__() field 'v_i64':\n  Cannot convert from type "
        "`int` (out of range for int64) to `int`",
    ),
    (
        'tvm_ffi.get_global_func("Testing.add_one")',
        "ValueError",
        "Cannot find global function Testing.add_one; did you mean testing.add_one?",
    ),
    (
        "tvm_ffi.remove_global_func(3)",
        "TypeError",
        "Mismatched type on argument #0 when calling: `ffi.FunctionRemoveGlobal(0: str) -> "
        "bool`. Expected `str` but got `int`",
    ),
    ("tvm_ffi.init_ffi_api(3)", "TypeError", "init_ffi_api expects a namespace, got int"),
    # ---- modules, streams, errors ----
    ("tvm_ffi.system_lib(3)", "TypeError", "system_lib expects a prefix of symbols, got int"),
    (
        'tvm_ffi.load_module("")',
        "RuntimeError",
        "Failed to get file format from ; the name of a library ends with .so, .dylib or .dll",
    ),
    (
        'zoo._library.get_function("mena")',
        "AttributeError",
        "Module has no function 'mena'; functions that a library registers by name are "
        "returned by tvm_ffi.get_global_func",
    ),
    (
        "zoo._library.import_module(3)",
        "TypeError",
        "Mismatched type on argument #1 when calling: `ffi.ModuleImportModule(0: ffi.Module, "
        "1: ffi.Module) -> void`. Expected `ffi.Module` but got `int`",
    ),
    (
        'zoo._library.write_to_file("x.o")',
        "RuntimeError",
        "Module[library] does not support WriteToFile",
    ),
    (
        "pickle.dumps(zoo._library)",
        "TypeError",
        "cannot pickle `Module` object: Type `ffi.Module` cannot be pickled (no native creator or "
        "__ffi_new__ type attr)",
    ),
    ("tvm_ffi.use_raw_stream(3, 4)", "TypeError", "use_raw_stream expects a Device first, got int"),
    ('tvm_ffi.core.Error("a")', "TypeError", "Error() missing required argument 'message' (pos 2)"),
    ("tvm_ffi.core.Error(1, 2, 3)", "TypeError", "Error() argument 1 must be str, not int"),
    (
        'tvm_ffi.register_error("tests.mistakes.E", 3)',
        "TypeError",
        "register_error expects an exception class, got 3",
    ),
    (
        "tvm_ffi.structural_walk(Point(1), (int, 3))",
        "TypeError",
        "structural_walk callbacks within a sequence must be (type, callback) tuples",
    ),
    (
        'tvm_ffi.structural_walk(Point(1), order="sideways")',
        "ValueError",
        "Unknown structural walk order: 'sideways'",
    ),
    # ---- dtypes and devices, again ----
    (
        'tvm_ffi.dtype("int8x0")',
        "ValueError",
        "Invalid lanes specification in dtype 'int8x0'. Lanes must be a positive integer.",
    ),
    ('tvm_ffi.dtype(b"int8")', "ValueError", "unknown dtype `b'int8'`"),
    ('tvm_ffi.device("cuda:0:1")', "ValueError", "Invalid device: cuda:0:1"),
    ('tvm_ffi.device("CPU")', "ValueError", "Unknown device: CPU"),
    ("tvm_ffi.device(3.5)", "TypeError", "an integer is required as device type, got float"),
    # ---- classes, again ----
    (
        'py_class("tests.mistakes.New")(3)',
        "TypeError",
        "py_class('tests.mistakes.New') expects a class, got int",
    ),
    ('c_class("zoo.Dog")(3)', "TypeError", "c_class('zoo.Dog') expects a class, got int"),
    (
        'tvm_ffi.register_object("zoo.Dgo")(new_class("Dgo"))',
        "ValueError",
        "Cannot find object type index for zoo.Dgo: no loaded library defines this type; did "
        "you mean zoo.Dog?",
    ),
    (
        'TypeSchema("Array", (TypeSchema("int"),)).convert([1, "a"])',
        "TypeError",
        "type conversion failed for Array[int]: element [1]: expected int, got str",
    ),
    (
        'TypeSchema("zoo.Dog").convert(enclosure())',
        "TypeError",
        "type conversion failed for zoo.Dog: expected zoo.Dog, got zoo.Enclosure",
    ),
    (
        'TypeSchema("Device").convert("gpuu")',
        "TypeError",
        "type conversion failed for Device: expected Device, got invalid device string 'gpuu'",
    ),
]


def test_there_are_enough() -> None:
    assert len(MISTAKES) >= 120
    assert len({snippet for snippet, _, _ in MISTAKES}) == len(MISTAKES)


@pytest.mark.parametrize(("snippet", "kind", "text"), MISTAKES, ids=[m[0] for m in MISTAKES])
def test_mistake(snippet: str, kind: str, text: str, names: dict[str, Any]) -> None:
    with pytest.raises(Exception) as caught:
        eval(snippet, names)
    assert (type(caught.value).__name__, str(caught.value)) == (kind, text)


def test_no_message_has_a_name_that_only_cpp_knows() -> None:
    # The two texts with such a name are fixed by the interface, and say the Python type as well.
    for snippet, _, text in MISTAKES:
        fixed = text.replace("got `ffi.OpaquePyObject` (`", "").replace("got `ffi.BigInt` (`", "")
        for name in ("ffi.Small", "ffi.OpaquePyObject", "ffi.BigInt", "Check failed"):
            assert name not in fixed, snippet


@pytest.mark.skipif(FREE_THREADED, reason="assignments there are CPython's")
@pytest.mark.parametrize(
    "make",
    [
        "enclosure()",  # registered, with a body
        "testing.TestIntPair(1, 2)",
        "Point(1)",  # defined in Python
        "type('Sub', (Point,), {})(1)",
        "type('Own', (Point,), {'__setattr__': lambda s, n, v: Point.__setattr__(s, n, v)})(1)",
        "tvm_ffi.Array([1])",
        "tvm_ffi.List([1])",
        "tvm_ffi.core.Error('ValueError', '', '')",
        "tensor()",
    ],
)
def test_a_new_attribute_says_how_to_allow_it(names: dict[str, Any], make: str) -> None:
    made = eval(make, names)
    with pytest.raises(AttributeError) as caught:
        made.note = "x"
    name = type(made).__name__
    assert str(caught.value).removeprefix("'tvm_ffi.core.").removeprefix("'") == (
        f"{name}' object has no attribute 'note'; for attributes of its own its class needs "
        '__slots__ = ("__dict__",)'
    )


@pytest.mark.parametrize("name", ["x" * 200, type("Name", (str,), {})("note")])
def test_any_name_of_a_new_attribute_is_refused_alike(name: str) -> None:
    """CPython remembers what short names of class `str` mean, and looks others up each time."""
    for made in (tvm_ffi.List([1]), tvm_ffi.core.Error("ValueError", "", ""), Point(1)):
        with pytest.raises(AttributeError, match=f"has no attribute '{name[:50]}"):
            setattr(made, name, 1)


@pytest.mark.skipif(FREE_THREADED, reason="assignments there are CPython's")
def test_it_says_so_in_an_init_too() -> None:
    class Noted(Point):
        def __init__(self, x: int) -> None:
            super().__init__(x)
            self.note = "x"

    with pytest.raises(AttributeError, match=r'needs __slots__ = \("__dict__",\)$'):
        Noted(1)


def test_assignments_stay_what_they_are_when_there_are_many() -> None:
    point = Point(0)
    for i in range(1500):  # the class gets the faster function on the way
        point.x = i
        object.__setattr__(point, "y", i)
        assert (point.x, point.y) == (i, i)
    with pytest.raises(AttributeError, match="'Point' object has no attribute 'note'"):
        point.note = 1
    with pytest.raises(TypeError, match="attribute name must be string"):
        point.__setattr__(3, 1)
    with pytest.raises(TypeError, match="takes a name and a value, got 1 |expected 2 arguments"):
        point.__setattr__("x")


def test_a_failed_assignment_leaves_the_field(names: dict[str, Any]) -> None:
    animal = names["dog"]("a")
    for name, wrong in (("legs", 300), ("legs", -1), ("name", 3), ("trained", "x"), ("tags", [1])):
        before = getattr(animal, name)
        with pytest.raises((TypeError, OverflowError)):
            setattr(animal, name, wrong)
        assert getattr(animal, name) == before
    for wrong in (0, 255):
        animal.legs = wrong
        assert animal.legs == wrong


def test_elements_are_converted_to_the_type_of_the_container(names: dict[str, Any]) -> None:
    box = names["enclosure"](names["dog"]())
    box.food["Rex"] = 2
    assert type(box.food["Rex"]) is float
    assert box.feed("Rex", 1) == 3.0
    assert box.animals[0] is box.animals[0]
    box.animals.append(box.animals[0])
    assert box.animals[1] is box.animals[0]


def test_a_library_in_the_working_directory(
    zoo_library: Path, monkeypatch: pytest.MonkeyPatch, names: dict[str, Any]
) -> None:
    monkeypatch.chdir(zoo_library.parent)
    assert tvm_ffi.load_module(zoo_library.name).kind == "library"


def test_a_class_may_be_replaced_by_a_subclass_or_by_itself(names: dict[str, Any]) -> None:
    zoo = names["zoo"]
    bird = zoo.Bird
    try:
        better = tvm_ffi.register_object("zoo.Bird")(type("Better", (bird,), {"__module__": "m"}))
        assert type(names["bird"]()) is bird
        assert isinstance(better("Tweety", 0.5), bird)
        again = type("Better", (zoo.Animal,), {"__module__": "m"})  # the module is loaded again
        assert tvm_ffi.register_object("zoo.Bird")(again) is again
    finally:
        info = tvm_ffi.core._type_cls_to_type_info(bird)
        tvm_ffi.core._register_object_by_index(info.type_index, bird)
    assert sys.modules["zoo"] is zoo
