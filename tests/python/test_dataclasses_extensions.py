# SPDX-License-Identifier: Apache-2.0
"""What class bodies say about type attributes and markers; constructors and named tuples."""

from __future__ import annotations

import collections
import copy
import ctypes
import inspect
import pickle
from typing import Any

import pytest
import tvm_ffi
from support import fresh_key
from tvm_ffi import Object, core
from tvm_ffi._dunder import _make_constructor
from tvm_ffi.dataclasses import Field, _resolve_fields, field, py_class
from tvm_ffi.dataclasses.common import _make_namedtuple


def attribute(cls: Any, name: str) -> Any:
    return core._lookup_type_attr(cls.__tvm_ffi_type_info__.type_index, name)


# ---- type attributes ----------------------------------------------------------------------------


def test_more_names_become_type_attributes() -> None:
    names = ("__tests_number__", "__tests_hook__", "__tests_absent__")

    @py_class(fresh_key())
    class Base(Object):
        __ffi_type_attr_names__ = names
        __tests_number__ = 7

        x: int

        def __tests_hook__(self, y: int) -> int:
            return y + 1

    assert attribute(Base, "__tests_number__") == 7
    assert attribute(Base, "__tests_hook__")(Base(1), 2) == 3
    assert attribute(Base, "__tests_absent__") is None
    assert Base(1).x == 1 and not Base.__tvm_ffi_type_info__.methods

    @py_class(fresh_key())
    class Child(Base):
        __tests_number__ = "eight"  # the list is inherited, the values are not

    assert attribute(Child, "__tests_number__") == "eight"
    assert attribute(Child, "__tests_hook__") is None


def test_hooks_are_inherited_unless_the_class_says_otherwise() -> None:
    @py_class(fresh_key())
    class Base(Object):
        x: int

        def __s_equal__(self, other: Any, equal: Any) -> bool:
            return self.x % 10 == other.x % 10

        def __s_hash__(self, seed: int, hash_: Any) -> int:
            return self.x % 10

        def __s_mutate__(self, mutator: Any) -> Any:
            return self

    @py_class(fresh_key())
    class Child(Base):
        y: int = 0

    @py_class(fresh_key())
    class Grandchild(Child):
        pass

    for cls in (Base, Child, Grandchild):
        assert tvm_ffi.structural_equal(cls(1), cls(11))
        assert tvm_ffi.structural_hash(cls(1)) == tvm_ffi.structural_hash(cls(11))
    assert attribute(Base, "__s_mutate__") is not None
    assert attribute(Child, "__s_mutate__") is None

    @py_class(fresh_key())
    class Out(Base):
        __ffi_inherit_type_attrs__ = ()

    assert not tvm_ffi.structural_equal(Out(1), Out(11))

    @py_class(fresh_key())
    class Stops(Base):
        __s_equal__ = None
        __s_hash__ = None

    @py_class(fresh_key())
    class Below(Stops):
        pass

    for cls in (Stops, Below):
        assert not tvm_ffi.structural_equal(cls(1), cls(11))

    @py_class(fresh_key())
    class Chooses(Base):
        __ffi_inherit_type_attrs__ = ["__s_mutate__"]  # noqa: RUF012

    assert attribute(Chooses, "__s_mutate__") is not None
    assert attribute(Chooses, "__s_equal__") is None


@pytest.mark.parametrize("name", ["__ffi_type_attr_names__", "__ffi_inherit_type_attrs__"])
@pytest.mark.parametrize("value", ["__s_equal__", 3, None, (1,), {"a"}])
def test_lists_of_names_that_are_wrong(name: str, value: Any) -> None:
    key = fresh_key()
    message = "^TypeAttr registration lists must be tuples or lists of strings$"
    with pytest.raises(TypeError, match=message):
        py_class(key)(type("Bad", (Object,), {name: value, "__annotations__": {"x": int}}))
    py_class(key)(type("Good", (Object,), {"__annotations__": {"x": int}}))  # the key is free


# ---- markers ------------------------------------------------------------------------------------


class Region:
    pass


def test_markers_are_no_fields() -> None:
    seen = []

    class Hooked(Object):
        def resolved(info: Any, fields: list[Field]) -> None:  # type: ignore[misc]
            seen.append(info._decorator_args["field_markers"])

        resolved.__ffi_on_fields_resolved__ = True  # type: ignore[attr-defined]

    @py_class(fresh_key())
    class Base(Hooked):
        __ffi_field_markers__ = (Region,)
        a: int
        first: Region
        b: int
        second: Region = 5  # type: ignore[assignment]

    expected = ((Region, Base, "first", 1), (Region, Base, "second", 2))
    assert Base.__tvm_ffi_type_info__._decorator_args["field_markers"] == expected
    assert [f.name for f in Base.__tvm_ffi_type_info__.fields] == ["a", "b"]
    assert Base.second == 5 and not hasattr(Base, "first")

    @py_class(fresh_key())
    class Child(Base):
        third: Region
        c: int

    markers = Child.__tvm_ffi_type_info__._decorator_args["field_markers"]
    assert markers == (*expected, (Region, Child, "third", 2))
    assert seen == [expected, markers]
    made = Child(1, 2, 3)
    assert (made.a, made.b, made.c) == (1, 2, 3)

    @py_class(fresh_key())
    class Plain(Object):
        a: int

    assert Plain.__tvm_ffi_type_info__._decorator_args["field_markers"] == ()


def test_hooks_may_be_static_methods() -> None:
    seen: list[str] = []

    def function(info: Any, fields: list[Field]) -> None:
        seen.append(fields[0].name)

    function.__ffi_on_fields_resolved__ = True  # type: ignore[attr-defined]

    @py_class(fresh_key())
    class Node(Object):
        a: int
        on_function = staticmethod(function)

        @staticmethod
        def on_method(info: Any, fields: list[Field]) -> None:
            seen.append(fields[0].name.upper())

        on_method.__ffi_on_fields_resolved__ = True  # type: ignore[attr-defined]

    assert seen == ["a", "A"]


@pytest.mark.parametrize("value", [Region, 3, None, ("Region",)])
def test_markers_that_are_wrong(value: Any) -> None:
    message = "^__ffi_field_markers__ must be a tuple or list of types$"
    with pytest.raises(TypeError, match=message):
        py_class(fresh_key())(type("Bad", (Object,), {"__ffi_field_markers__": value}))


# ---- constructors -------------------------------------------------------------------------------


def test_a_constructor_without_init() -> None:
    @py_class(fresh_key())
    class Node(Object):
        a: int
        b: str = "x"
        c: int = field(default=3, kw_only=True)

        def __init__(self, value: int) -> None:
            raise AssertionError

        def __post_init__(self) -> None:
            raise AssertionError

    make = _make_constructor(Node)
    made = make(1, c=5)
    assert type(made) is Node and (made.a, made.b, made.c) == (1, "x", 5)
    assert make(a=2).a == 2
    assert (make.__name__, str(inspect.signature(make))) == ("Node", "(a=<MISSING>, b='x', c=3)")
    assert make(1, "y", 4).c == 4
    with pytest.raises(TypeError, match="too many positional arguments"):
        make(1, "y", 4, 5)
    with pytest.raises(TypeError, match="multiple values for argument 'a'"):
        make(1, a=2)
    with pytest.raises(TypeError, match="missing required argument"):
        make()
    with pytest.raises(TypeError):
        make(1, d=4)
    other = _make_constructor(
        Node, positional_fields=["c", "a"], field_normalizers={"a": int, "b": str.upper}
    )
    made = other(7, "12", b="q")
    assert (made.a, made.b, made.c) == (12, "Q", 7)
    assert str(inspect.signature(other)) == "(c=3, a=<MISSING>, *, b='x')"


def test_a_field_may_be_called_self() -> None:
    cls = py_class(fresh_key())(
        type("Node", (Object,), {"__annotations__": {"self": int, "other": int}})
    )
    made = cls(self=1, other=2)
    assert (made.self, made.other) == (1, 2)
    assert cls(3, 4).self == 3
    assert _make_constructor(cls)(self=5, other=6).self == 5


# ---- named tuples -------------------------------------------------------------------------------


def test_named_tuples_convert_their_values() -> None:
    cls: Any = _make_namedtuple("Pair", [("count", int), ("items", list[int])])
    assert cls.__bases__ == (tuple,) and cls._fields == ("count", "items")
    made = cls(1, items=[2, 3])
    assert type(made) is cls and made == made[:] and made.count == 1
    assert isinstance(made.items, tvm_ffi.List) and list(made.items) == [2, 3]
    again = cls._make((4, (5,)))
    assert again.count == 4 and isinstance(again.items, tvm_ffi.List)
    changed = made._replace(items=(9,))
    assert type(changed) is cls and list(changed.items) == [9] and changed.count == 1
    for wrong in (
        lambda: cls("a", []),
        lambda: cls._make(("a", [])),
        lambda: made._replace(count="a"),
    ):
        with pytest.raises(TypeError, match=r"^Pair\.count: .*expected int, got str") as caught:
            wrong()
        assert isinstance(caught.value.__cause__, TypeError)
    for wrong in (lambda: cls(1), lambda: cls(1, [], 2), lambda: cls._make((1,)), lambda: cls()):
        with pytest.raises(TypeError):
            wrong()


def test_named_tuples_of_described_fields() -> None:
    schema = core.TypeSchema("float")
    cls: Any = _make_namedtuple("One", [Field("x", schema)])
    assert cls(1).x == 1.0 and isinstance(cls(1).x, float)
    plain = collections.namedtuple("plain", "x")
    assert cls(1) == plain(1.0)
    with pytest.raises(ValueError):
        _make_namedtuple("Bad", [("no name", int)])


# ---- the steps of a definition ------------------------------------------------------------------


def test_a_class_can_be_defined_step_by_step() -> None:
    key = fresh_key()

    class Node(Object):
        x: int
        next: OnlyDefinedLater | None = None

    assert _resolve_fields.own_annotations(Node) == {"x": "int", "next": "OnlyDefinedLater | None"}
    info = _resolve_fields.register_type_without_fields(Node, key)
    assert info.type_key == key and info.fields is None
    assert _resolve_fields.resolve_type_hints_by_owner(Node, globals()) is None
    _resolve_fields.defer_field_registration(Node, info, globals())
    _resolve_fields.flush_pending()
    assert info.fields is None

    @py_class(fresh_key())
    class OnlyDefinedLater(Object):
        y: int

    _resolve_fields.flush_pending()
    owners = _resolve_fields.resolve_type_hints_by_owner(Node, globals())
    assert owners == [(Node, {"x": int, "next": OnlyDefinedLater | None})]
    assert Node(1, OnlyDefinedLater(2)).next.y == 2

    class Gone(Object):
        pass

    info = _resolve_fields.register_type_without_fields(Gone, fresh_key())
    _resolve_fields.rollback_registration(Gone, info)
    assert "__tvm_ffi_type_info__" not in vars(Gone)


# ---- pointers, errors ---------------------------------------------------------------------------


def test_handlers_make_pointers() -> None:
    class Handle:
        def __call__(self) -> int:  # a handler comes before being callable
            return 1

    class Derived(Handle):
        pass

    core._OPAQUE_PTR_HANDLERS[Handle] = lambda handle: 0x1234
    try:
        echo = tvm_ffi.get_global_func("testing.echo")
        assert echo(Handle()).value == 0x1234
        assert isinstance(echo(Derived()), tvm_ffi.Function)  # the exact class counts
        schema = core.TypeSchema.from_annotation(ctypes.c_void_p)
        assert core._to_py_class_value(schema.convert(Handle())).value == 0x1234
        with pytest.raises(TypeError):
            schema.convert(Derived())
        core._OPAQUE_PTR_HANDLERS[Handle] = lambda handle: "no number"
        with pytest.raises((TypeError, ValueError)):
            echo(Handle())
    finally:
        del core._OPAQUE_PTR_HANDLERS[Handle]
    with pytest.raises(KeyError):
        echo(Handle())


def test_errors_survive_pickle_and_copies() -> None:
    error = core.Error("ValueError", "what", "where")
    for other in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error)):
        assert (other.kind, other.message, other.backtrace) == ("ValueError", "what", "where")
    empty = pickle.loads(pickle.dumps(core.Error.__new__(core.Error)))
    assert type(empty) is core.Error and empty.__chandle__() == 0
    fail = tvm_ffi.get_global_func("testing.test_raise_error")
    with pytest.raises(ValueError, match="^again$") as caught:
        fail("ValueError", "again")
    for exception in (
        pickle.loads(pickle.dumps(caught.value)),
        copy.deepcopy(caught.value),
        copy.copy(caught.value),
    ):
        assert type(exception) is ValueError and str(exception) == "again"
        assert exception.__tvm_ffi_error__.kind == "ValueError"

        def raises(exception: Any = exception) -> None:
            raise exception

        with pytest.raises(ValueError, match="^again$"):
            tvm_ffi.convert(raises)()
