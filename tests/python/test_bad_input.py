# SPDX-License-Identifier: Apache-2.0
"""Bad input gives an exception that names the culprit: no crash, nothing leaked.

Every case is one line of a table: what is done, which exception it must raise, and a pattern that
its text must match. Each is run several times, and the number of wrappers afterwards must be
what it was before. Cases that must survive without an exception stand in a second table.
"""

from __future__ import annotations

import ctypes
import gc
import operator
import pickle
import sys
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import tvm_ffi
from support import Payload, Slotted, Stateful, collect, make_edges, make_holder
from tvm_ffi import Array, Dict, List, Map, core, registry, serialization, testing, tying

Errors = type[BaseException] | tuple[type[BaseException], ...]
Case = tuple[Callable[[], Any], Errors, str | None]
CASES: dict[str, Case] = {}
SURVIVORS: dict[str, Callable[[], Any]] = {}
GET = tvm_ffi.get_global_func
EMPTY_TEXT = "moved from|never initialised"


def case(
    name: str,
    action: Callable[[], Any],
    error: Errors = TypeError,
    match: str | None = None,
) -> None:
    assert name not in CASES, f"duplicate case {name}"
    CASES[name] = (action, error, match)


def survivor(action: Callable[[], Any]) -> Callable[[], Any]:
    SURVIVORS[action.__name__.removeprefix("survive_")] = action
    return action


class Mutating:
    """A value whose conversion runs a function."""

    def __init__(self, function: Callable[[], Any], value: Any = 1) -> None:
        self.function = function
        self.value = value

    def __tvm_ffi_value__(self) -> Any:
        self.function()
        return self.value

    def __index__(self) -> int:
        self.function()
        return self.value


class Dying:
    """A value whose destruction runs a function."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self.function = function

    def __del__(self) -> None:
        self.function()


# ---- wrappers without an object, however they came to be ----------------------------------------

USES: dict[str, Callable[[Any], Any]] = {
    "argument": testing.echo,
    "list element": lambda o: Array([o]),
    "map value": lambda o: Map({"k": o}),
    "map key": lambda o: Map({o: 1}),
    "append": lambda o: List().append(o),
    "dict item": lambda o: Dict().__setitem__("k", o),
    "field value": make_edges,
    "nested argument": lambda o: testing.echo([[o]]),
    "callback result": lambda o: tvm_ffi.convert(lambda: o)(),
}
SPECIFIC: dict[str, tuple[Callable[[], Any], dict[str, Callable[[Any], Any]]]] = {
    "TestIntPair": (
        lambda: testing.TestIntPair(1, 2),
        {
            "field": lambda o: o.a,
            "method": lambda o: o.sum(),
            "set": lambda o: testing.TestIntPair.a.set(o, 1),
            "move": lambda o: testing.echo(o._move()),
            "copy": lambda o: o.__copy__(),
            "typed argument": testing.TestIntPairSum,
        },
    ),
    "Array": (
        lambda: Array([1]),
        {
            "len": len,
            "item": lambda o: o[0],
            "slice": lambda o: o[:],
            "iter": lambda o: list(o),
            "contains": lambda o: 1 in o,
            "bool": bool,
            "add": lambda o: o + [1],
            "hash": hash,
        },
    ),
    "List": (
        lambda: List([1]),
        {
            "append": lambda o: o.append(1),
            "set": lambda o: o.__setitem__(0, 1),
            "delete": lambda o: o.__delitem__(0),
            "slice": lambda o: o.__setitem__(slice(0, 1), [1]),
            "pop": lambda o: o.pop(),
            "clear": lambda o: o.clear(),
            "reverse": lambda o: o.reverse(),
            "insert": lambda o: o.insert(0, 1),
            "extend": lambda o: o.extend([1]),
        },
    ),
    "Map": (
        lambda: Map({"a": 1}),
        {
            "len": len,
            "item": lambda o: o["a"],
            "get": lambda o: o.get("a"),
            "contains": lambda o: "a" in o,
            "keys": lambda o: list(o.keys()),
            "items": lambda o: list(o.items()),
        },
    ),
    "Dict": (
        lambda: Dict({"a": 1}),
        {
            "set": lambda o: o.__setitem__("a", 1),
            "delete": lambda o: o.__delitem__("a"),
            "pop": lambda o: o.pop("a"),
            "clear": lambda o: o.clear(),
            "update": lambda o: o.update({"a": 1}),
        },
    ),
    "Function": (
        lambda: tvm_ffi.convert(lambda: 1),
        {
            "call": lambda o: o(),
            "register": lambda o: tvm_ffi.register_global_func("tests.bad.empty", o),
            "constructor": lambda o: core.Object().__init_handle_by_constructor__(o),
        },
    ),
    "Error": (
        lambda: core.Error("ValueError", "x", ""),
        {
            "kind": lambda o: o.kind,
            "message": lambda o: o.message,
            "backtrace": lambda o: o.backtrace,
            "context": lambda o: o.extra_context,
            "update": lambda o: o.update_backtrace(""),
            "exception": lambda o: o.py_error(),
        },
    ),
    "OpaquePyObject": (lambda: tvm_ffi.convert(Payload()), {"value": lambda o: o.pyobject()}),
    "Module": (lambda: tvm_ffi.system_lib("testing."), {"kind": lambda o: o.kind}),
}


def emptied(make: Callable[[], Any]) -> Any:
    """A wrapper whose object was taken by another one."""
    source = make()
    taker = core.Object.__new__(core.Object)
    if tvm_ffi.system_lib("testing.") is source:
        return type(source).__new__(type(source))  # never take away the process's one module
    taker.__move_handle_from__(source)
    return source


def never_filled(make: Callable[[], Any]) -> Any:
    cls = type(make())
    return cls.__new__(cls)


for cls_name, (make_object, uses) in SPECIFIC.items():
    for use_name, use in {**USES, **uses}.items():
        for how in (never_filled, emptied):
            case(
                f"{how.__name__} {cls_name}: {use_name}",
                lambda use=use, how=how, make_object=make_object: use(how(make_object)),
                ValueError,
                EMPTY_TEXT,
            )


def dead(make: Callable[[], Any]) -> Any:
    """A wrapper whose object died before its first use through a weak reference."""
    box = List([make()])
    wrapper = weakref.ref(box[0])()
    box.clear()
    return wrapper


for cls_name in ("TestIntPair", "Array", "List", "Map", "Dict", "Function", "Error"):
    make_object, uses = SPECIFIC[cls_name]
    for use_name, use in {"argument": testing.echo, **uses}.items():
        case(
            f"dead {cls_name}: {use_name}",
            lambda use=use, make_object=make_object: use(dead(make_object)),
            ReferenceError,
            cls_name,
        )


# ---- wrappers of one class around objects of another kind ---------------------------------------


def disguised(cls: type, obj: Any) -> Any:
    wrapper = cls.__new__(cls)
    wrapper.__move_handle_from__(obj)
    return wrapper


for name, wrapper, use in (
    ("array of map: len", lambda: disguised(Array, Map({})), len),
    ("array of map: item", lambda: disguised(Array, Map({})), lambda o: o[0]),
    ("array of pair: iter", lambda: disguised(Array, testing.TestIntPair(1, 2)), list),
    ("array of pair: slice", lambda: disguised(Array, testing.TestIntPair(1, 2)), lambda o: o[:]),
    ("list of array: append", lambda: disguised(List, Array([1])), lambda o: o.append(1)),
    ("list of array: set", lambda: disguised(List, Array([1])), lambda o: o.__setitem__(0, 1)),
    ("list of function: pop", lambda: disguised(List, tvm_ffi.convert(int)), lambda o: o.pop()),
    ("map of array: item", lambda: disguised(Map, Array([1])), lambda o: o[0]),
    ("map of array: iter", lambda: disguised(Map, Array([1])), list),
    ("map of array: get", lambda: disguised(Map, Array([1])), lambda o: o.get(0)),
    ("map of array: contains", lambda: disguised(Map, Array([1])), lambda o: 1 in o),
    ("dict of map: set", lambda: disguised(Dict, Map({})), lambda o: o.__setitem__(1, 1)),
    ("dict of map: delete", lambda: disguised(Dict, Map({1: 1})), lambda o: o.__delitem__(1)),
    ("function of array: call", lambda: disguised(tvm_ffi.Function, Array([])), lambda o: o()),
    ("error of array: kind", lambda: disguised(core.Error, Array([])), lambda o: o.kind),
    ("error of array: update", lambda: disguised(core.Error, Array([])), lambda o: o.py_error()),
    ("pair of array: field", lambda: disguised(testing.TestIntPair, Array([])), lambda o: o.a),
    ("pair of array: method", lambda: disguised(testing.TestIntPair, Array([])), lambda o: o.sum()),
    (
        "pair of base: set",
        lambda: disguised(testing.TestIntPair, testing.TestObjectBase()),
        lambda o: testing.TestIntPair.a.set(o, 1),
    ),
    (
        "derived of base: field",
        lambda: disguised(testing.TestObjectDerived, testing.TestObjectBase()),
        lambda o: o.v_map,
    ),
    (
        "opaque of array: value",
        lambda: disguised(core.OpaquePyObject, Array([])),
        lambda o: o.pyobject(),
    ),
    ("module of array: kind", lambda: disguised(tvm_ffi.Module, Array([])), lambda o: o.kind),
):
    case(f"disguised {name}", lambda wrapper=wrapper, use=use: use(wrapper()), TypeError)


# ---- arguments of the wrong type, numbers out of range ------------------------------------------

for name, value in (
    ("str", "x"),
    ("long str", "a long string on the heap"),
    ("None", None),
    ("list", [1]),
    ("dict", {1: 2}),
    ("object", object()),
    ("function", len),
    ("pair", testing.TestIntPair(1, 2)),
    ("complex", 1j),
    ("bytes", b"x"),
):
    case(
        f"add_one of {name}",
        lambda value=value: GET("testing.add_one")(value),
        TypeError,
        "Mismatched type on argument #0",
    )
for name, value in (("2**63", 2**63), ("-2**63-1", -(2**63) - 1), ("2**200", 2**200)):
    case(f"argument {name}", lambda value=value: GET("testing.add_one")(value), TypeError, "int64")
    case(
        f"field {name}",
        lambda value=value: setattr(testing.TestObjectBase(), "v_i64", value),
        OverflowError,
        "field `v_i64` of `testing.TestObjectBase`: .* does not fit in int64",
    )
case("no argument", lambda: GET("testing.add_one")(), TypeError, "Expected 1 but got 0")
case("two arguments", lambda: GET("testing.add_one")(1, 2), TypeError, "Expected 1 but got 2")
case("keyword argument", lambda: testing.echo(x=1), TypeError, "'x'")
case("pair of strings", lambda: testing.TestIntPair("a", 2), TypeError, "argument #0")
case("pair of one", lambda: testing.TestIntPair(1), TypeError, "Expected 2 but got 1")
case("holder of None", lambda: testing.TestObjectPtrHolder(None), TypeError, "TestObjectBase")
case("holder of array", lambda: make_holder(Array([])), TypeError, "TestObjectBase")
case("holder of pair", lambda: make_holder(testing.TestIntPair(1, 2)), TypeError, "TestObjectBase")
case("derived of numbers", lambda: testing.TestObjectDerived(1, 2), TypeError, "v_map|v_array")
case("unknown keyword", lambda: testing.TestObjectBase(nope=1), TypeError, "nope")
case("create unknown type", lambda: testing.create_object("tests.nobody"), RuntimeError)
case(
    "create with unknown field",
    lambda: testing.create_object("testing.TestIntPair", a=1, b=2, c=3),
    (TypeError, RuntimeError),
)
case("method with too many", lambda: testing.TestIntPair(1, 2).sum(1), TypeError)
case("method of a number", lambda: testing.TestIntPair.sum(3), TypeError)
case("surrogate argument", lambda: testing.echo("\ud800"), UnicodeEncodeError)
case("surrogate key", lambda: Map({"\udfff": 1}), UnicodeEncodeError)
case("surrogate lookup", lambda: Map({"a": 1})["\udfff"], UnicodeEncodeError)
case("surrogate result", lambda: tvm_ffi.convert(lambda: "\ud800")(), UnicodeEncodeError)

# ---- fields -------------------------------------------------------------------------------------

case("field of a number", lambda: testing.TestIntPair.a.fget(3), TypeError, "a")
case("field of None", lambda: testing.TestIntPair.a.fget(None), TypeError)
case("field of array", lambda: testing.TestIntPair.a.fget(Array([])), TypeError, "TestIntPair")
case("set field of array", lambda: testing.TestIntPair.a.set(Array([]), 1), TypeError)
case("set field of a number", lambda: testing.TestIntPair.a.set(3, 1), TypeError)
case("getter without argument", lambda: testing.TestIntPair.a.fget(), TypeError)
case("assign read-only", lambda: setattr(testing.TestIntPair(1, 2), "a", 1), AttributeError)
case("delete field", lambda: delattr(testing.TestObjectBase(), "v_i64"), AttributeError)
case("str into int", lambda: setattr(testing.TestObjectBase(), "v_i64", "x"), TypeError, "int")
case("float into int", lambda: setattr(testing.TestObjectBase(), "v_i64", 1.5), TypeError, "int")
case("None into int", lambda: setattr(testing.TestObjectBase(), "v_i64", None), TypeError)
case("int into str", lambda: setattr(testing.TestObjectBase(), "v_str", 1), TypeError, "str")
case(
    "array into object",
    lambda: setattr(make_holder(testing.TestObjectBase()), "value", Array([])),
    TypeError,
    "TestObjectBase",
)
case(
    "None into object",
    lambda: setattr(make_holder(testing.TestObjectBase()), "value", None),
    TypeError,
    "TestObjectBase",
)
case(
    "number into array",
    lambda: setattr(testing.TestObjectDerived({}, []), "v_array", 3),
    TypeError,
)
case("unknown attribute", lambda: testing.TestIntPair(1, 2).nope, AttributeError, "nope")
case("attribute without dict", lambda: setattr(Array([]), "x", 1), AttributeError)

# ---- handles ------------------------------------------------------------------------------------

case("move from a number", lambda: core.Object().__move_handle_from__(3), TypeError)
case("move from None", lambda: core.Object().__move_handle_from__(None), TypeError)
case("move onto a full one", lambda: Array([1]).__move_handle_from__(Array([2])), ValueError)
case("constructor without function", lambda: core.Object().__init_handle_by_constructor__())
case("constructor of a number", lambda: core.Object().__init_handle_by_constructor__(3))
case("constructor of a lambda", lambda: core.Object().__init_handle_by_constructor__(lambda: 1))
case(
    "constructor that returns a number",
    lambda: core.Object().__init_handle_by_constructor__(testing.echo, 3),
    TypeError,
)
case(
    "constructor that raises",
    lambda: core.Object().__init_handle_by_constructor__(tvm_ffi.convert(lambda: 1 / 0)),
    ZeroDivisionError,
    "division",
)
case("rvalue reference of a number", lambda: testing.echo(core.ObjectRValueRef(3)), TypeError)
case("rvalue reference of nothing", lambda: core.ObjectRValueRef(), TypeError)


def move_twice() -> None:
    pair = testing.TestIntPair(1, 2)
    tvm_ffi.convert(lambda a, b: None)(pair._move(), pair._move())


def move_and_use() -> None:
    pair = testing.TestIntPair(1, 2)
    tvm_ffi.convert(lambda a, b: None)(pair._move(), pair)


case("moved twice in one call", move_twice, ValueError)
case("moved and used in one call", move_and_use, ValueError)

# ---- containers ---------------------------------------------------------------------------------

for cls in (Array, List):
    name = cls.__name__
    case(f"{name} of a number", lambda cls=cls: cls(3), TypeError)
    case(f"{name} of None", lambda cls=cls: cls(None), TypeError)
    case(f"{name} item beyond", lambda cls=cls: cls([1])[1], IndexError, "size: 1, got index 1")
    case(f"{name} item before", lambda cls=cls: cls([1])[-2], IndexError, "got index -2")
    case(f"{name} item huge", lambda cls=cls: cls([1])[2**70], IndexError)
    case(f"{name} item minus huge", lambda cls=cls: cls([1])[-(2**70)], IndexError)
    case(f"{name} item float", lambda cls=cls: cls([1])[0.0], TypeError, "not float")
    case(f"{name} item None", lambda cls=cls: cls([1])[None], TypeError, "NoneType")
    case(f"{name} slice of str", lambda cls=cls: cls([1])["a":"b"], TypeError)
    case(f"{name} slice of step 0", lambda cls=cls: cls([1])[::0], ValueError, "zero")
    case(f"{name} plus number", lambda cls=cls: cls([1]) + 1, TypeError)
    case(f"{name} index of nothing", lambda cls=cls: cls([1]).index(2), ValueError)
    case(
        f"{name} of a failing iterator",
        lambda cls=cls: cls(1 // x for x in (1, 0)),
        ZeroDivisionError,
    )
for cls in (Map, Dict):
    name = cls.__name__
    case(f"{name} of a number", lambda cls=cls: cls(3), AttributeError, "items")
    case(f"{name} of a list", lambda cls=cls: cls([1]), AttributeError, "items")
    case(f"{name} without key", lambda cls=cls: cls({})["a"], KeyError, f"{name}: .a")
    case(
        f"{name} of bad items",
        lambda cls=cls: cls(type("Odd", (), {"items": lambda self: [(1,)]})()),
        (TypeError, ValueError, RuntimeError),
    )
case("array item set", lambda: operator.setitem(Array([1]), 0, 1), TypeError)
case("array item deleted", lambda: operator.delitem(Array([1]), 0), TypeError)
case("map item set", lambda: operator.setitem(Map({}), 0, 1), TypeError)
case("list set beyond", lambda: operator.setitem(List([1]), 1, 1), IndexError, "got index 1")
case("list set huge", lambda: operator.setitem(List([1]), 2**70, 1), IndexError)
case("list set at str", lambda: operator.setitem(List([1]), "a", 1), TypeError)
case("list delete beyond", lambda: operator.delitem(List([1]), 5), IndexError)
case("list delete at float", lambda: operator.delitem(List([1]), 0.5), TypeError)
case("list pop beyond", lambda: List([1]).pop(5), IndexError)
case("list pop of empty", lambda: List().pop(), IndexError, "pop from empty list")
case("list pop at str", lambda: List([1]).pop("a"), TypeError)
case("list insert at str", lambda: List([1]).insert("a", 1), TypeError)
case("list remove nothing", lambda: List([1]).remove(2), ValueError)
case("list extend by a number", lambda: List([1]).extend(3), TypeError)
case("list slice of a number", lambda: operator.setitem(List([1]), slice(0, 1), 3), TypeError)
case(
    "list extended slice of other size",
    lambda: operator.setitem(List([1, 2, 3]), slice(None, None, 2), [1]),
    ValueError,
    "size 1 to extended slice of size 2",
)
case("list append without value", lambda: List().append(), TypeError)
case("dict delete nothing", lambda: operator.delitem(Dict(), "a"), KeyError, "a")
case("dict pop nothing", lambda: Dict().pop("a"), KeyError, "a")
case("dict pop with three", lambda: Dict().pop("a", 1, 2), TypeError, "got 3")
case("dict popitem of empty", lambda: Dict().popitem(), KeyError)
case("dict update with a number", lambda: Dict().update(3), TypeError, "not iterable")

# ---- recursion ----------------------------------------------------------------------------------


def recursive_list() -> list:
    items: list = []
    items.append(items)
    return items


def recursive_dict() -> dict:
    items: dict = {}
    items["me"] = items
    return items


class ReturnsItself:
    def __tvm_ffi_value__(self) -> Any:
        return self


class Pingpong:
    other: Any = None

    def __tvm_ffi_value__(self) -> Any:
        return self.other


def pingpong() -> Any:
    first, second = Pingpong(), Pingpong()
    first.other, second.other = second, first
    return first


def endless() -> Any:
    return testing.apply(endless)


def call_without_end() -> Any:
    """Recursion that reaches the limit soon: the traceback of a thousand levels takes a while."""
    limit, depth, frame = sys.getrecursionlimit(), 0, sys._getframe()
    while frame is not None:
        depth, frame = depth + 1, frame.f_back
    sys.setrecursionlimit(depth + 150)
    try:
        return endless()
    finally:
        sys.setrecursionlimit(limit)


RECURSION = (RecursionError, RuntimeError, TypeError)
case("list that contains itself", lambda: testing.echo(recursive_list()), RECURSION)
case("dict that contains itself", lambda: testing.echo(recursive_dict()), RECURSION)
case("convert a list that contains itself", lambda: tvm_ffi.convert(recursive_list()), RECURSION)
case("value that returns itself", lambda: testing.echo(ReturnsItself()), RECURSION)
case("values that return each other", lambda: testing.echo(pingpong()), RECURSION)
case("callbacks without end", call_without_end, RECURSION)

# ---- protocols that lie -------------------------------------------------------------------------


def protocol(name: str, result: Any) -> Any:
    def method(self: Any) -> Any:
        if isinstance(result, BaseException):
            raise result
        return result

    return type("Liar", (), {name: method})()


for name, result, error in (
    ("__tvm_ffi_int__", "x", ValueError),
    ("__tvm_ffi_int__", None, TypeError),
    ("__tvm_ffi_int__", KeyError("mine"), KeyError),
    ("__tvm_ffi_float__", "x", TypeError),
    ("__tvm_ffi_float__", None, TypeError),
    ("__tvm_ffi_float__", KeyError("mine"), KeyError),
    ("__tvm_ffi_opaque_ptr__", "x", TypeError),
    ("__tvm_ffi_opaque_ptr__", None, TypeError),
    ("__tvm_ffi_opaque_ptr__", KeyError("mine"), KeyError),
    ("__tvm_ffi_object__", 3, TypeError),
    ("__tvm_ffi_object__", None, TypeError),
    ("__tvm_ffi_object__", KeyError("mine"), KeyError),
    ("__cuda_stream__", [0, 1], TypeError),
    ("__cuda_stream__", (), (TypeError, IndexError, ValueError)),
    ("__cuda_stream__", (0,), (TypeError, IndexError, ValueError)),
    ("__cuda_stream__", (0, "x"), TypeError),
    ("__cuda_stream__", KeyError("mine"), KeyError),
    ("__tvm_ffi_value__", KeyError("mine"), KeyError),
):
    case(
        f"{name} gives {result!r}",
        lambda name=name, result=result: testing.echo(protocol(name, result)),
        error,
    )


class BadConvertible(core.ObjectConvertible):
    def __init__(self, result: Any) -> None:
        self.result = result

    def asobject(self) -> Any:
        if isinstance(self.result, BaseException):
            raise self.result
        return self.result


case("asobject gives a number", lambda: testing.echo(BadConvertible(3)), TypeError)
case("asobject gives None", lambda: testing.echo(BadConvertible(None)), TypeError)
case("asobject raises", lambda: testing.echo(BadConvertible(KeyError("mine"))), KeyError)
case("asobject not defined", lambda: testing.echo(core.ObjectConvertible()), NotImplementedError)
case("convert of a bad convertible", lambda: tvm_ffi.convert(BadConvertible(3)), TypeError)

# ---- callbacks ----------------------------------------------------------------------------------


def raising(error: BaseException) -> Callable[..., Any]:
    def callback(*_: Any) -> None:
        raise error

    return callback


for error in (ValueError("x"), KeyError("x"), IndexError("x"), TypeError("x"), MemoryError("x")):
    name = type(error).__name__
    case(f"callback raises {name}", lambda e=error: testing.apply(raising(e)), type(error), "x")
    case(
        f"callback inside a callback raises {name}",
        lambda e=error: testing.apply(lambda e=e: testing.apply(raising(e))),
        type(error),
        "x",
    )
case(
    "callback raises KeyboardInterrupt",
    lambda: testing.apply(raising(KeyboardInterrupt("x"))),
    (KeyboardInterrupt, RuntimeError),
)
case(
    "callback raises SystemExit",
    lambda: testing.apply(raising(SystemExit(3))),
    (SystemExit, RuntimeError),
)
case("callback with wrong arguments", lambda: tvm_ffi.convert(lambda a: a)(), TypeError, "argument")
case("callable that is none", lambda: core._convert_to_ffi_func(3)(), TypeError, "callable")
case("apply of a number", lambda: testing.apply(3), (TypeError, RuntimeError))
case("apply of nothing", lambda: testing.apply(), (TypeError, RuntimeError, IndexError))
case("tensor class without exchange", lambda: tvm_ffi.convert_func(len, int), TypeError)
case("extern C at 0", lambda: tvm_ffi.Function.__from_extern_c__(0), ValueError, "NULL")
case("extern C of str", lambda: tvm_ffi.Function.__from_extern_c__("x"), TypeError)
case("extern C without symbol", lambda: tvm_ffi.Function.__from_extern_c__(), TypeError)
case("extern C at 2**70", lambda: tvm_ffi.Function.__from_extern_c__(2**70), OverflowError)
case("MLIR at 0", lambda: tvm_ffi.Function.__from_mlir_packed_safe_call__(0), ValueError)
case("delete release_gil", lambda: delattr(tvm_ffi.convert(len), "release_gil"), AttributeError)

# ---- registries ---------------------------------------------------------------------------------

case("get by number", lambda: tvm_ffi.get_global_func(3), TypeError)
case("get by bytes", lambda: tvm_ffi.get_global_func(b"testing.add_one"), TypeError)
case("get by surrogate", lambda: tvm_ffi.get_global_func("\ud800"), UnicodeEncodeError)
case("get nothing", lambda: tvm_ffi.get_global_func(""), ValueError)
case("register under a number", lambda: tvm_ffi.register_global_func(3, len), TypeError)
case("register under None", lambda: tvm_ffi.register_global_func(None, len), TypeError)
case(
    "register twice",
    lambda: tvm_ffi.register_global_func("testing.add_one", len),
    RuntimeError,
    "already registered",
)
case("remove a number", lambda: tvm_ffi.remove_global_func(3), TypeError)
case("metadata of nothing", lambda: tvm_ffi.get_global_func_metadata("tests.nobody"), RuntimeError)
case("api into no module", lambda: tvm_ffi.init_ffi_api("testing", "tests.nobody"), KeyError)
case(
    "object under unknown key", lambda: tvm_ffi.register_object("tests.nobody")(Payload), ValueError
)
case("object under a number", lambda: tvm_ffi.register_object(3), TypeError)
case("class of index -1", lambda: core._register_object_by_index(-1, Payload), ValueError)
case("class of index 10**6", lambda: core._register_object_by_index(10**6, Payload), ValueError)
case("class of index 2**40", lambda: core._register_object_by_index(2**40, Payload), ValueError)
case("class that is none", lambda: core._register_object_by_index(64, 3), TypeError)
case("class table at -1", lambda: core._set_class_of_index(-1, core.Object), ValueError)
case("type key that is a number", lambda: core._object_type_key_to_index(3), TypeError)
case("type info of a str", lambda: core._raw_type_info("x"), TypeError)
case(
    "type info of an unknown key",
    lambda: core._lookup_or_register_type_info_from_type_key("tests.nobody"),
    ValueError,
)
case(
    "type attribute twice",
    lambda: core._register_type_attr(
        core._object_type_key_to_index("testing.TestIntPair"), "__ffi_convert__", 1
    ),
    RuntimeError,
)
case(
    "second class for an info",
    lambda: core._set_type_cls(core._type_cls_to_type_info(Array), Payload),
    AssertionError,
)
case("error kind that is no class", lambda: tvm_ffi.register_error("tests.X", 3), TypeError)
case("error kind that is no exception", lambda: tvm_ffi.register_error(int), TypeError)
case("state of a number", lambda: tying.state(3), TypeError)
case("state of None", lambda: tying.state(None), TypeError)

# ---- errors -------------------------------------------------------------------------------------

case("error without arguments", lambda: core.Error(), TypeError)
case("error of numbers", lambda: core.Error(1, 2, 3), TypeError)
case("error of bytes", lambda: core.Error(b"a", "b", "c"), TypeError)
case("error of surrogates", lambda: core.Error("a", "\ud800", ""), UnicodeEncodeError)
case("backtrace of a number", lambda: core.Error("a", "b", "").update_backtrace(3), TypeError)
case("error of no exception", lambda: core._convert_to_ffi_error(3), TypeError)
case("error attribute set", lambda: setattr(core.Error("a", "b", ""), "kind", "x"), AttributeError)

# ---- pickles and JSON ---------------------------------------------------------------------------

for name, state in (
    ("None", None),
    ("a number", 3),
    ("a list", [1]),
    ("an empty dict", {}),
    ("a handle that is a number", {"handle": 3}),
    ("a handle that is bytes", {"handle": b"{}"}),
):
    case(
        f"pickle whose state is {name}",
        lambda state=state: Array.__new__(Array).__setstate__(state),
        TypeError,
        "Array",
    )
for name, text in (
    ("empty", ""),
    ("no JSON", "nonsense"),
    ("cut off", '{"root_index":1,"nodes":['),
    ("a number", "3"),
    ("an array", "[]"),
    ("no nodes", '{"root_index":0}'),
    ("no root", '{"nodes":[]}'),
    ("no node for the root", '{"root_index":5,"nodes":[]}'),
    ("negative root", '{"root_index":-1,"nodes":[{"type":"int","data":1}]}'),
    ("root of str", '{"root_index":"a","nodes":[{"type":"int","data":1}]}'),
    ("nodes of str", '{"root_index":0,"nodes":"a"}'),
    ("node of number", '{"root_index":0,"nodes":[1]}'),
    ("node without type", '{"root_index":0,"nodes":[{"data":1}]}'),
    ("unknown type", '{"root_index":0,"nodes":[{"type":"tests.nobody","data":{}}]}'),
    ("element out of range", '{"root_index":0,"nodes":[{"type":"ffi.Array","data":[7]}]}'),
    ("element is the array", '{"root_index":0,"nodes":[{"type":"ffi.Array","data":[0]}]}'),
    ("element of str", '{"root_index":0,"nodes":[{"type":"ffi.Array","data":["a"]}]}'),
    (
        "odd map",
        '{"root_index":1,"nodes":[{"type":"int","data":1},{"type":"ffi.Map","data":[0]}]}',
    ),
    (
        "field of wrong type",
        '{"root_index":0,"nodes":[{"type":"testing.TestIntPair","data":{"a":"x","b":1}}]}',
    ),
    ("deep nesting", "[" * 100_000),
):
    case(
        f"JSON {name}",
        lambda text=text: serialization.from_json_graph_str(text),
        Exception,
    )
    case(
        f"pickle with JSON {name}",
        lambda text=text: Array.__new__(Array).__setstate__({"handle": text}),
        Exception,
    )
case("JSON from a number", lambda: serialization.from_json_graph_str(3), TypeError)
case("pickle of a function", lambda: pickle.dumps(tvm_ffi.convert(len)), TypeError, "ffi.Function")
case(
    "pickle of an opaque object",
    lambda: pickle.dumps(Array([object()])),
    (TypeError, RuntimeError, ValueError),
)
case(
    "pickle that gives a number",
    lambda: Array.__new__(Array).__setstate__(
        {"handle": '{"root_index":0,"nodes":[{"type":"int","data":1}]}'}
    ),
    TypeError,
    "Array",
)

# ---- classes ------------------------------------------------------------------------------------

case(
    "call of an array of a class that is a function, too",
    lambda: type(Array)("X", (Array, tvm_ffi.Function), {})([1])(),
    TypeError,
    "does not hold an ffi.Function",
)
case("class of array and int", lambda: type("X", (Array, int), {}), TypeError)
case(
    "class assignment with another layout",
    lambda: setattr(testing.TestObjectBase(), "__class__", Slotted),
    TypeError,
    "layout",
)
case(
    "class assignment to a plain class",
    lambda: setattr(Stateful(), "__class__", Payload),
    TypeError,
)
case("instance of no constructor", lambda: testing._TestCxxNoAutoInit(1, 2), TypeError)
case("sequence iterator made by hand", lambda: type(iter(Array([])))(), TypeError)
case("map iterator made by hand", lambda: type(iter(Map({})))(), TypeError)
case("field getter made by hand", lambda: core.FieldGetter(), TypeError)
case("field setter made by hand", lambda: core.FieldSetter(), TypeError)
case("field descriptor made by hand", lambda: type(testing.TestIntPair.a)(), TypeError)
case("module item of number", lambda: tvm_ffi.system_lib("testing.")[3], ValueError, "string")
case("module of a number", lambda: tvm_ffi.load_module(3), TypeError)
case("module from nowhere", lambda: tvm_ffi.load_module("/nowhere.so"), RuntimeError, "nowhere")
case("module without suffix", lambda: tvm_ffi.load_module("/nowhere"), RuntimeError)
case("system library of a number", lambda: tvm_ffi.system_lib(3), TypeError)


case("index of nothing", lambda: List([1]).index(5), ValueError, "5 is not in this List")
case("index in array", lambda: Array([1]).index(5), ValueError, "5 is not in this Array")
case("remove of nothing", lambda: List([1]).remove(5), ValueError, "5 is not in this List")
case("popitem of nothing", lambda: Dict({}).popitem(), KeyError, "this Dict is empty")


def gone_object() -> Any:
    pair = testing.TestIntPair(1, 2)
    holder = List([pair])
    weak = weakref.ref(pair)
    del pair
    again = weak()
    holder.clear()
    return again


def moved_object() -> Any:
    pair = testing.TestIntPair(1, 2)
    testing.echo(pair._move())
    return pair


case("pickle of gone", lambda: pickle.dumps(gone_object()), ReferenceError, "is gone")
case("pickle of moved", lambda: pickle.dumps(moved_object()), ValueError, EMPTY_TEXT)


class SmallAddress:
    __dlpack_c_exchange_api__ = 5


class OddAddress:
    __dlpack_c_exchange_api__ = 2**40 + 1


case("exchange api 5", lambda: tvm_ffi.from_dlpack(SmallAddress()), ValueError, "got 5")
case("exchange api odd", lambda: tvm_ffi.from_dlpack(OddAddress()), ValueError, "address")

for _graph, _error, _text in (
    ('{"type":"int"}', KeyError, "node 0 has no key `data`"),
    ('{"data":1}', KeyError, "node 0 has no key `type`"),
    ('{"type":"no.such","data":1}', RuntimeError, "node 0: Cannot find type `no.such`: nothing"),
    ("5", TypeError, "node 0: Cannot convert"),
):
    case(
        f"graph {_graph}",
        lambda text=_graph: serialization.from_json_graph_str(
            f'{{"root_index":0,"nodes":[{text}]}}'
        ),
        _error,
        _text,
    )


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_an_exception_and_leaks_nothing(name: str) -> None:
    action, error, match = CASES[name]

    def run() -> None:
        with pytest.raises(error, match=match):
            action()

    run()  # the first time may make a fallback class
    collect()
    before = tying.stats()
    for _ in range(3):
        run()
    collect()
    after = tying.stats()
    assert (after["live"], after["dormant"]) == (before["live"], before["dormant"])
    assert testing.echo(1) == 1


def test_there_are_enough_cases() -> None:
    assert len(CASES) >= 150


# ---- what must go well although it is wild ------------------------------------------------------


@survivor
def survive_index_that_empties_the_list() -> None:
    items = List([Payload(), Payload(), Payload()])
    with pytest.raises(IndexError):
        items[Mutating(items.clear, 1)]
    assert len(items) == 0


@survivor
def survive_element_that_empties_the_list_it_is_put_into() -> None:
    items = List([1, 2, 3])
    with pytest.raises(IndexError):
        items[2] = Mutating(items.clear, "new")
    items.append(Mutating(items.clear, "new"))
    assert list(items) == ["new"]
    items[:] = [1, 2, 3]
    items[0:3] = [Mutating(items.clear, "new")]
    assert "new" in list(items)


@survivor
def survive_value_that_empties_the_dict_it_is_put_into() -> None:
    items = Dict({i: i for i in range(10)})
    items[Mutating(items.clear, 5)] = Mutating(items.clear, 6)
    assert dict(items) == {5: 6}


@survivor
def survive_argument_that_drops_the_other_arguments() -> None:
    box = [testing.TestIntPair(1, 2)]
    function = tvm_ffi.convert(lambda a, b: a.a)
    assert function(box[0], Mutating(box.clear)) == 1


@survivor
def survive_destructor_that_uses_the_container_it_leaves() -> None:
    seen: list[int] = []
    items = List([1, 2])
    items.append(Dying(lambda: seen.append(len(items))))
    items.pop()
    items.append(Dying(lambda: items.append("from the destructor")))
    items.clear()
    items[:] = [Dying(lambda: items.clear()), 1, 2]
    items[0] = "new"
    assert seen == [2]


@survivor
def survive_destructor_that_fills_the_dict_it_leaves() -> None:
    items = Dict()
    items["k"] = Dying(lambda: items.update({i: i for i in range(100)}))
    del items["k"]
    assert len(items) == 100
    items["x"] = Dying(items.clear)
    items["x"] = 1
    items["y"] = Dying(lambda: items.__setitem__("z", 1))
    items.clear()


@survivor
def survive_destructor_that_raises() -> None:
    hook, seen = sys.unraisablehook, []
    sys.unraisablehook = lambda args: seen.append(args.exc_type)
    try:
        items = List([Dying(lambda: 1 / 0)])
        items.clear()
        assert testing.echo(1) == 1
    finally:
        sys.unraisablehook = hook
    assert seen == [ZeroDivisionError]


@survivor
def survive_destructor_that_raises_in_cpp() -> None:
    hook, seen = sys.unraisablehook, []
    sys.unraisablehook = lambda args: seen.append(args.exc_type)
    try:
        make_edges(Dying(lambda: testing.test_raise_error("ValueError", "x")))
    finally:
        sys.unraisablehook = hook
    assert seen == [ValueError]


@survivor
def survive_destructor_during_a_failed_call() -> None:
    with pytest.raises(TypeError, match="Mismatched type"):
        testing.add_one(Dying(lambda: testing.echo([1, 2])))
    with pytest.raises(ValueError, match="mine"):
        testing.apply(lambda value: (_ for _ in ()).throw(ValueError("mine")), Dying(gc.collect))


@survivor
def survive_destructor_that_resurrects_an_argument() -> None:
    saved: list[Any] = []

    class Lazarus:
        def __del__(self) -> None:
            saved.append(self)

    testing.echo([Lazarus()])
    assert len(saved) == 1
    assert testing.echo(saved[0]) is saved[0]
    saved.clear()


@survivor
def survive_field_whose_old_value_uses_the_object() -> None:
    edges = make_edges()
    edges.v_any = Dying(lambda: setattr(edges, "v_obj", Array([1])))
    edges.v_any = None
    assert list(edges.v_obj) == [1]
    edges.v_any = Dying(lambda: setattr(edges, "v_any", "from the destructor"))
    edges.v_any = 1
    assert edges.v_any in {1, "from the destructor"}


@survivor
def survive_weakref_callback_that_collects_and_fetches() -> None:
    box = List([testing.TestIntPair(1, 2), testing.TestIntPair(3, 4)])
    seen: list[int] = []

    def callback(_: Any) -> None:
        gc.collect()
        seen.append(box[0].a if len(box) else -1)

    watcher = weakref.ref(box[0], callback)
    box.pop(0)
    assert watcher() is None
    assert seen == [3]


@survivor
def survive_collection_inside_conversion() -> None:
    payload = Payload()
    for _ in range(20):
        result = testing.echo([Mutating(gc.collect), payload, {"k": Mutating(gc.collect, payload)}])
        assert result[2]["k"] is payload


@survivor
def survive_constructor_that_fills_its_own_wrapper() -> None:
    wrapper = core.Object.__new__(core.Object)
    inner = tvm_ffi.convert(lambda: wrapper.__move_handle_from__(Array([1])) or Array([2]))
    wrapper.__init_handle_by_constructor__(inner)
    assert GET("ffi.ArrayGetItem")(wrapper, 0) == 2


@survivor
def survive_init_called_again() -> None:
    array = Array([1])
    array.__init__([2, 3])
    assert list(array) == [2, 3]
    assert testing.echo(array) is array
    with pytest.raises(TypeError):
        array.__init__(3)
    table = Dict({"a": 1})
    table.__init__({"b": 2})
    assert dict(table) == {"b": 2}
    error = core.Error("A", "b", "")
    error.__init__("C", "d", "")
    assert (error.kind, error.message) == ("C", "d")


@survivor
def survive_moving_onto_itself() -> None:
    array = Array([1])
    array.__move_handle_from__(array)
    assert list(array) == [1]


@survivor
def survive_moving_from_an_empty_wrapper() -> None:
    target = Array.__new__(Array)
    target.__move_handle_from__(Array.__new__(Array))
    assert target.__chandle__() == 0


@survivor
def survive_a_new_class_at_the_address_of_an_old_one() -> None:
    for _ in range(200):
        sub = type("Sub", (testing.TestIntPair,), {})
        address = id(sub)
        assert sub(1, 2).a == 1
        del sub
        gc.collect()
        plain = type("Plain", (), {"__slots__": ()})
        with pytest.raises(TypeError):
            testing.TestIntPair.a.fget(plain())
        if id(plain) == address:
            break


@survivor
def survive_deep_nesting() -> None:
    chain = Array([])
    for _ in range(20_000):
        chain = Array([chain])
    del chain
    nested: Any = []
    for _ in range(100_000):
        nested = [nested]
    with pytest.raises((RecursionError, RuntimeError)):
        testing.echo(nested)
    while nested:
        nested = nested.pop()


@survivor
def survive_repr_and_hash_of_deep_nesting() -> None:
    chain = Array([])
    for _ in range(20_000):
        chain = Array([chain])
    for use in (repr, hash, lambda c: c == Array([c]), lambda c: c.__deepcopy__()):
        try:
            use(chain)
        except (RecursionError, RuntimeError, ValueError):
            pass


@survivor
def survive_iterators_used_after_the_end() -> None:
    for iterable in (Array([1]), List([1]), Map({1: 2}), Dict({1: 2}), Map({1: 2}).items()):
        iterator = iter(iterable)
        assert len(list(iterator)) == 1
        assert list(iterator) == []
        with pytest.raises(StopIteration):
            next(iterator)


@survivor
def survive_iteration_over_a_list_that_shrinks_and_grows() -> None:
    items = List(range(10))
    seen = []
    for item in items:
        seen.append(item)
        if len(items) > 3:
            items.pop()
    assert seen == items[: len(seen)]
    items = List([1, 2])
    for item in items:
        items.append(item)
        assert len(items) < 10


@survivor
def survive_many_arguments() -> None:
    function = tvm_ffi.convert(lambda *args: len(args))
    for count in (0, 1, 7, 8, 9, 100, 5000):
        assert function(*[testing.TestIntPair(1, 2)] * count) == count
        assert function(*["a string that is on the heap"] * count) == count


@survivor
def survive_pointers_of_any_value() -> None:
    for value in (None, 0, 1, 2**64 - 1):
        assert testing.echo(ctypes.c_void_p(value)).value == (value or None)


@survivor
def survive_exceptions_in_flight() -> None:
    try:
        raise KeyError("outer")
    except KeyError:
        with pytest.raises(ValueError, match="inner") as caught:
            testing.test_raise_error("ValueError", "inner")
        assert testing.echo(1) == 1
    assert isinstance(caught.value.__context__, (KeyError, type(None)))


@survivor
def survive_subclass_that_breaks_the_rules() -> None:
    class Odd(Array):
        def __len__(self) -> int:
            return -1  # noqa: PLE0303

        def __getitem__(self, _: Any) -> Any:
            raise RuntimeError("no")

        def __eq__(self, _: object) -> bool:
            raise RuntimeError("no")

        def __hash__(self) -> int:
            raise RuntimeError("no")

    odd = Odd([1, 2])
    assert testing.echo(odd) is odd
    assert Array([odd])[0] is odd
    assert GET("ffi.ArraySize")(odd) == 2


@survivor
def survive_functions_replaced_while_they_run() -> None:
    def replace() -> int:
        tvm_ffi.register_global_func("tests.bad.replaced", lambda: 2, override=True)
        gc.collect()
        return 1

    tvm_ffi.register_global_func("tests.bad.replaced", replace, override=True)
    assert GET("tests.bad.replaced")() == 1
    assert GET("tests.bad.replaced")() == 2
    tvm_ffi.remove_global_func("tests.bad.replaced")


@survivor
def survive_error_that_is_its_own_context() -> None:
    error = ValueError("x")
    error.__context__ = error.__cause__ = None
    error.__tvm_ffi_error__ = 3  # not an error object
    with pytest.raises(ValueError, match="x"):
        testing.apply(raising(error))
    error.__tvm_ffi_error__ = core.Error.__new__(core.Error)
    with pytest.raises(ValueError, match="x"):
        testing.apply(raising(error))


@survivor
def survive_unregistered_names() -> None:
    assert registry.get_global_func("tests.bad.nobody", allow_missing=True) is None
    assert core._raw_type_info(10**6) is None
    assert core._raw_type_info(-5) is None
    assert core._lookup_type_attr(10**6, "anything") is None
    assert core._type_index_to_type_info(-1) is None


class Emptying:
    """An index that empties a list."""

    def __init__(self, target: Any, value: int) -> None:
        self.target = target
        self.value = value

    def __index__(self) -> int:
        self.target.clear()
        return self.value


@survivor
def survive_index_that_shortens_the_list() -> None:
    changes: list[Callable[[Any], Any]] = [
        lambda a: a.insert(Emptying(a, 1), 9),
        lambda a: a.insert(Emptying(a, -3), 9),
        lambda a: operator.delitem(a, slice(Emptying(a, 1), 3)),
        lambda a: operator.delitem(a, slice(0, 3, Emptying(a, 2))),
        lambda a: operator.setitem(a, slice(Emptying(a, 1), 3), [9]),
        lambda a: operator.setitem(a, slice(Emptying(a, 0), 4, 2), []),
    ]
    for change in changes:
        plain, ours = [0, 1, 2, 3], List([0, 1, 2, 3])
        change(plain)
        change(ours)
        assert list(ours) == plain
    ours = List([0, 1, 2, 3])
    for action in (
        lambda: operator.setitem(ours, Emptying(ours, -1), 9),
        lambda: operator.delitem(ours, Emptying(ours, 0)),
    ):
        with pytest.raises(IndexError):
            action()


@survivor
def survive_slices_as_list_has_them() -> None:
    ends = [None, -7, -3, -1, 0, 1, 3, 4, 9]
    for start in ends:
        for stop in ends:
            for step in (None, 1, 2, 3, -1, -2):
                where = slice(start, stop, step)
                plain, ours = list(range(5)), List(range(5))
                count = len(plain[where])
                if step in (None, 1):
                    plain[where] = ours[where] = ["a", "b"]
                else:
                    plain[where] = ours[where] = list(range(10, 10 + count))
                assert list(ours) == plain, where
                del plain[where]
                del ours[where]
                assert list(ours) == plain, where


@survivor
def survive_list_that_is_used_after_it_was_emptied() -> None:
    ours = List(range(20))
    ours.clear()
    ours.clear()
    ours.append(1)
    ours.insert(5, 2)
    ours.extend(ours)
    assert list(ours) == [1, 2, 1, 2]


@survivor
def survive_list_that_shrinks_while_it_is_read_backwards() -> None:
    ours = List(range(5))
    backwards = reversed(ours)
    assert next(backwards) == 4
    ours[:] = [1]
    assert list(backwards) == []


@pytest.mark.parametrize("name", SURVIVORS)
def test_wild_use_survives(name: str) -> None:
    SURVIVORS[name]()
    collect()
    before = tying.stats()
    SURVIVORS[name]()
    collect()
    after = tying.stats()
    assert (after["live"], after["dormant"]) == (before["live"], before["dormant"])


def test_private_functions_refuse_what_they_cannot_use() -> None:
    items = tvm_ffi.List([1, 2])
    for wrong in ("x", 1, None):
        with pytest.raises(TypeError, match="expects a slice"):
            items._del_slice(wrong)
    assert items == [1, 2]
    for name, args in (
        ("ffi.tether.StructuralMutate", (1, None)),
        ("ffi.tether.OnlyStorageIsLeft", (None,)),
    ):
        with pytest.raises(ValueError, match="missing|must not be NULL"):
            tvm_ffi.get_global_func(name)(*args)
