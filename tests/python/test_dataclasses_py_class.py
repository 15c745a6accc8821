# SPDX-License-Identifier: Apache-2.0
"""Classes defined in Python: registration, fields, layout and construction."""

from __future__ import annotations

import copy
import gc
import inspect
import itertools
import re
import sys
import types
import typing
from typing import Any, ClassVar, Generic, TypeVar

import pytest
import tvm_ffi
from support import fresh_key, use_count
from tvm_ffi import core, testing
from tvm_ffi.dataclasses import (
    KW_ONLY,
    MISSING,
    Field,
    field,
    fields,
    is_dataclass,
    py_class,
)

Object = tvm_ffi.Object


def own_names(cls: Any) -> list[str]:
    return [f.name for f in cls.__tvm_ffi_type_info__.fields]


def all_names(cls: Any) -> list[str]:
    return [f.name for f in fields(cls)]


def parameters(cls: Any) -> list[tuple[str, bool, bool]]:
    """Return name, keyword-only and defaulted of each parameter of the constructor."""
    found = list(inspect.signature(cls.__init__).parameters.values())[1:]
    return [
        (p.name, p.kind is inspect.Parameter.KEYWORD_ONLY, p.default is not inspect.Parameter.empty)
        for p in found
    ]


# ---- call forms ---------------------------------------------------------------------------------


def test_the_key_is_given_or_made_of_module_and_name() -> None:
    @py_class
    class Bare(Object):
        x: int

    key = Bare.__tvm_ffi_type_info__.type_key
    assert key == f"{__name__}.{Bare.__qualname__}"
    assert "<locals>" in key
    for decorate in (py_class("tests.form.A"), py_class(type_key="tests.form.B")):

        @decorate
        class Named(Object):
            x: int

        assert Named(1).x == 1
    key = fresh_key()

    @py_class(key, type_key="tests.form.ignored")
    class Twice(Object):
        x: int

    assert Twice.__tvm_ffi_type_info__.type_key == key


def test_one_decorator_may_be_applied_to_several_classes() -> None:
    decorate = py_class(eq=True)

    class First(Object):
        x: int

    class Second(Object):
        x: int

    assert decorate(First) is First
    assert decorate(Second) is Second
    assert First(1) == First(1)
    assert First.__tvm_ffi_type_info__ is not Second.__tvm_ffi_type_info__


def test_bad_arguments_of_the_decorator() -> None:
    with pytest.raises(TypeError, match="py_class: expected str or type, got <class 'int'>"):
        py_class(3)
    with pytest.raises(ValueError, match="order=True requires eq=True"):
        py_class(order=True)
    with pytest.raises(ValueError) as raised:
        py_class(structural_eq="forest")
    assert str(raised.value) == (
        "structural_eq must be one of ['const-tree', 'dag', 'singleton', 'tree', 'var'] or None, "
        "got 'forest'"
    )


def test_a_class_needs_a_registered_base() -> None:
    with pytest.raises(TypeError, match=r"Loose must inherit from a registered FFI Object type"):

        @py_class(fresh_key())
        class Loose:
            x: int


def test_a_key_can_be_used_once() -> None:
    key = fresh_key()

    @py_class(key)
    class First(Object):
        x: int

    with pytest.raises(ValueError, match=f"Type key '{key}' is already registered"):

        @py_class(key)
        class Second(Object):
            y: int

    assert First(1).x == 1
    assert core._lookup_or_register_type_info_from_type_key(key).type_cls is First


@pytest.mark.parametrize("key", ["", "tests.nul\0", "\0"])
def test_a_key_is_not_empty_and_has_no_nul(key: str) -> None:
    class Node(Object):
        x: int

    expected = f"Node cannot have the type key {key!r}: a key is not empty and has no NUL"
    with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"):
        py_class(key)(Node)
    assert core._object_type_key_to_index(key) is None
    assert py_class(fresh_key())(Node)(2).x == 2


@pytest.mark.parametrize("name", ["", "a\0b", "a b", "class", "1"])
def test_a_field_has_a_name(name: str) -> None:
    key = fresh_key()
    made = type(Object)("Node", (Object,), {"__annotations__": {name: int}, "__module__": __name__})
    with pytest.raises(ValueError, match=re.escape(repr(name))) as caught:
        py_class(key)(made)
    assert "Node" in str(caught.value)
    assert "__tvm_ffi_type_info__" not in vars(made)

    @py_class(key)  # the type table has not seen the other one
    class Node(Object):
        x: int

    assert Node(1).x == 1


def test_a_class_is_registered_once() -> None:
    key, other = fresh_key(), fresh_key()

    @py_class(key)
    class Node(Object):
        x: int = 3

    info = Node.__tvm_ffi_type_info__
    before = dict(vars(Node))
    for decorate in (py_class(other), py_class(key), py_class):
        with pytest.raises(
            ValueError, match=rf"^Node cannot be .*: it is already registered as '{key}'"
        ):
            decorate(Node)
    with pytest.raises(ValueError, match="TestIntPair .* registered as 'testing.TestIntPair'"):
        py_class(other)(testing.TestIntPair)
    assert dict(vars(Node)) == before
    assert core._type_cls_to_type_info(Node) is info
    assert (Node(1).x, Node().x) == (1, 3)

    @py_class(other)
    class Other(Object):
        y: int

    assert Other(1).y == 1


def test_a_class_that_waits_for_another_is_registered_once() -> None:
    key = fresh_key()

    @py_class(key)
    class Waiting(Object):
        x: LaterForRegisteredOnce  # type: ignore[name-defined]

    with pytest.raises(ValueError, match=f"already registered as '{key}'"):
        py_class(fresh_key())(Waiting)

    @py_class(fresh_key())
    class LaterForRegisteredOnce(Object):
        y: int

    assert Waiting(LaterForRegisteredOnce(2)).x.y == 2


def test_a_definition_that_is_executed_again_is_reported_as_that() -> None:
    key = fresh_key()

    def define() -> Any:
        @py_class(key)
        class Node(Object):
            x: int

        return Node

    first = define()
    with pytest.raises(ValueError, match=f"^Type key '{key}' is already registered by an earlier"):
        define()
    assert first(1).x == 1


def test_a_key_of_a_cxx_type_cannot_be_taken() -> None:
    for key in ("ffi.Array", "testing.TestDeepCopyEdges", "ffi.EnumState"):
        with pytest.raises(ValueError, match="is already registered"):

            @py_class(key)
            class Taken(Object):
                x: int


def test_what_the_decorator_leaves_on_the_class() -> None:
    @py_class(fresh_key())
    class Node(Object):
        x: int = 3
        y: float = field(default=1.5)

    for name in ("x", "y"):
        assert isinstance(vars(Node)[name], core.FFIProperty)
    for name in (
        "__ffi_init__",
        "__init__",
        "__repr__",
        "__copy__",
        "__deepcopy__",
        "__replace__",
        "__match_args__",
        "__tvm_ffi_type_info__",
        "__ffi_is_dataclass__",
    ):
        assert name in vars(Node), name
    assert "__new__" not in vars(Node)
    assert vars(Node)["__slots__"] == ()
    assert Node.__tvm_ffi_type_info__._decorator_args == {
        "frozen": False,
        "init": True,
        "repr": True,
        "eq": False,
        "order": False,
        "unsafe_hash": False,
        "match_args": True,
        "kw_only": False,
        "structural_eq": "tree",
        "field_markers": (),
    }
    empty = Node.__new__(Node)
    assert empty.__chandle__() == 0


def test_type_info_of_a_fresh_class() -> None:
    key = fresh_key()
    cls = type("Low", (Object,), {"__slots__": ()})
    parent = core._type_cls_to_type_info(Object)
    info = core._register_py_class(parent, key, cls)
    assert info.type_index > 0
    assert parent.type_index in info.type_ancestors
    assert info.parent_type_info is parent
    assert info.methods == []
    assert info.fields is None
    info._register_fields([])
    assert info.fields == []
    with pytest.raises(AssertionError, match=f"_register_fields already called for '{key}'"):
        info._register_fields([])


# ---- the low-level way --------------------------------------------------------------------------


def define_low(parent: type, specs: list[Field], **options: bool) -> Any:
    from tvm_ffi import _dunder
    from tvm_ffi.registry import _add_class_attrs

    cls: Any = type("Low", (parent,), {"__slots__": ()})
    info = core._register_py_class(core._type_cls_to_type_info(parent), fresh_key(), cls)
    info._register_fields(specs)
    cls.__tvm_ffi_type_info__ = info
    _add_class_attrs(cls, info)
    chosen = {"init": True, "repr": True, "eq": False, "order": False, "unsafe_hash": False}
    _dunder._install_dataclass_dunders(cls, **{**chosen, **options})
    return cls


@pytest.mark.parametrize("parent", [Object, testing.TestObjectBase, testing._TestCxxClassBase])
def test_fields_can_be_registered_by_hand(parent: type) -> None:
    schema = core.TypeSchema("int")
    cls = define_low(parent, [Field("a", schema), Field("b", schema, default=7)], eq=True)
    info = cls.__tvm_ffi_type_info__
    assert [f.dataclass_field for f in info.fields] == [None, None]
    if parent is Object:
        assert cls.__match_args__ == ()
        assert "__match_args__" in vars(cls)
    assert [f.c_compare for f in info.fields] == [False, False]
    values = {"a": 1}
    if parent is testing._TestCxxClassBase:
        values |= {"v_i64": 5, "v_i32": 6}
    made = cls(**values)
    assert (made.a, made.b) == (1, 7)
    # Low-level fields do not compare unless they say so.
    if parent is Object:
        assert cls(a=1) == cls(a=2)


def test_fields_by_hand_in_two_phases() -> None:
    infos = []
    classes: list[Any] = []
    for _ in range(2):
        cls: Any = type("Mutual", (Object,), {"__slots__": ()})
        info = core._register_py_class(core._type_cls_to_type_info(Object), fresh_key(), cls)
        cls.__tvm_ffi_type_info__ = info
        infos.append(info)
        classes.append(cls)
    from tvm_ffi import _dunder
    from tvm_ffi.registry import _add_class_attrs

    for i, info in enumerate(infos):
        other = core.TypeSchema("Optional", (core.TypeSchema(infos[1 - i].type_key),))
        info._register_fields([Field("other", other, default=None)])
        _add_class_attrs(classes[i], info)
        _dunder._install_dataclass_dunders(
            classes[i], init=True, repr=True, eq=False, order=False, unsafe_hash=False
        )
    a = classes[0]()
    b = classes[1](a)
    a.other = b
    assert b.other is a
    assert a.other is b
    with pytest.raises(TypeError):
        a.other = classes[0]()
    a.other = None


def test_a_shape_schema_by_hand() -> None:
    cls = define_low(Object, [Field("shape", core.TypeSchema("ffi.Shape"))])
    assert tuple(cls([1, 2]).shape) == (1, 2)
    with pytest.raises(TypeError) as raised:
        cls([1, "x"])
    text = str(raised.value)
    assert ".__ffi_init__() field 'shape':\n" in text
    assert "  expected ffi.Shape, got ffi.Array\n" in text
    assert "    __ffi_convert__ failed:\n" in text
    assert "      Cannot cast from `ffi.Array` to `ffi.Shape`" in text


# ---- collection of fields -----------------------------------------------------------------------


def test_plain_classes_in_between_give_their_fields() -> None:
    @py_class(fresh_key())
    class Node(Object):
        x: int

    class Base(Node):
        lhs: int
        rhs: int

    @py_class(fresh_key())
    class Add(Base):
        pass

    assert own_names(Add) == ["lhs", "rhs"]
    assert all_names(Add) == ["x", "lhs", "rhs"]

    @py_class(fresh_key())
    class Weighted(Add):
        weight: int

    assert own_names(Weighted) == ["weight"]
    made = Weighted(1, 2, 3, 4)
    assert (made.x, made.lhs, made.rhs, made.weight) == (1, 2, 3, 4)


def test_mixins_contribute_in_the_order_of_the_mro() -> None:
    @py_class(fresh_key())
    class Base(Object):
        x: int

    class A:
        a: int

    class B:
        b: int

    class C(Base):
        c: int

    @py_class(fresh_key())
    class Child(A, B, C):
        y: int

    assert own_names(Child) == ["c", "b", "a", "y"]

    class ObjectMixin(Object):
        mixin: int

    class BaseBinOp(testing.TestObjectBase):
        lhs: int
        rhs: int

    @py_class(fresh_key())
    class Add(ObjectMixin, BaseBinOp):
        scale: int

    assert Add.__tvm_ffi_type_info__.parent_type_info.type_key == "testing.TestObjectBase"
    assert own_names(Add) == ["lhs", "rhs", "mixin", "scale"]


def test_an_override_keeps_the_first_place() -> None:
    class Parent:
        a: int
        b: int
        c: int

    @py_class(fresh_key())
    class Child(Parent, Object):
        b: str
        d: int = 4

    assert own_names(Child) == ["a", "b", "c", "d"]
    assert fields(Child)[1].type is str
    assert Child(1, "two", 3).b == "two"


def test_a_mixin_keeps_its_own_field_object() -> None:
    class Mixin:
        a: int = field(default=5)

    before = Mixin.a

    @py_class(fresh_key())
    class Child(Mixin, Object):
        pass

    assert Mixin.a is before
    assert before.name is None
    assert fields(Child)[0] is not before
    assert Child().a == 5


def test_class_variables_are_no_fields() -> None:
    @py_class(fresh_key())
    class Node(Object):
        limit: ClassVar[int] = 3
        other: typing.ClassVar = "x"
        bare: ClassVar
        x: int

    assert own_names(Node) == ["x"]
    assert (Node.limit, Node.other) == (3, "x")


def test_keyword_only_fields() -> None:
    @py_class(fresh_key())
    class Node(Object):
        a: int = 0
        b: int
        _: KW_ONLY
        c: int = 10
        d: int
        e: int = field(default=5, kw_only=False)

    assert parameters(Node) == [
        ("b", False, False),
        ("a", False, True),
        ("e", False, True),
        ("d", True, False),
        ("c", True, True),
    ]
    assert not hasattr(Node, "_")
    made = Node(1, 2, 3, d=4)
    assert (made.b, made.a, made.e, made.d, made.c) == (1, 2, 3, 4, 10)
    with pytest.raises(TypeError, match="missing required keyword-only argument: 'd'"):
        Node(1)
    with pytest.raises(TypeError, match="positional"):
        Node(1, 2, 3, 4)


def test_the_marker_of_a_mixin_counts_for_the_class() -> None:
    class Mixin:
        lhs: int
        _: KW_ONLY
        rhs: int

    @py_class(fresh_key())
    class Base(Object):
        x: int

    @py_class(fresh_key())
    class Add(Mixin, Base):
        scale: int

    assert Add(0, 1, rhs=3, scale=2).scale == 2
    with pytest.raises(TypeError, match="positional"):
        Add(0, 1, 2, rhs=3)

    @py_class(fresh_key())
    class Child(Add):
        own: int

    assert Child(0, 1, 5, rhs=3, scale=2).own == 5


def test_the_decorator_can_make_all_fields_keyword_only() -> None:
    @py_class(fresh_key(), kw_only=True)
    class Node(Object):
        a: int
        b: int = field(kw_only=False)

    assert Node(1, a=2).a == 2


@pytest.mark.parametrize("text", ["KW_ONLY", "dataclasses.KW_ONLY", "anything.at.all.KW_ONLY"])
def test_the_marker_may_be_text(text: str) -> None:
    namespace = {"__annotations__": {"a": int, "_": text, "b": int}, "__module__": __name__}
    cls = py_class(fresh_key())(type(Object)("Node", (Object,), namespace))
    assert parameters(cls) == [("a", False, False), ("b", True, False)]


def test_redeclaring_a_parents_field_is_an_error() -> None:
    @py_class(fresh_key())
    class Parent(Object):
        x: int

    @py_class(fresh_key())
    class Between(Parent):
        w: int = 0

    key = fresh_key()
    expected = (
        "duplicate parameter name: 'x': Child declares again the field that it inherits from "
        f"Parent ({Parent.__tvm_ffi_type_info__.type_key!r}). "
        "A field keeps its type and its default in subclasses."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"):

        @py_class(key)
        class Child(Between):
            x: int = 5

            def __init__(self) -> None:
                pass

    @py_class(key)
    class Again(Between):
        y: int

    assert Again(1, 2).y == 2


T = TypeVar("T")


def test_generic_classes() -> None:
    @py_class(fresh_key())
    class Box(Object, Generic[T]):
        value: Any

    assert Box[int](3).value == 3
    assert typing.get_origin(Box[int]) is Box
    with pytest.raises(TypeError, match="to TypeSchema"):

        @py_class(fresh_key())
        class Bad(Object, Generic[T]):
            value: T


# ---- annotations, storage, conversion -----------------------------------------------------------


def one_field(annotation: Any, **options: Any) -> Any:
    namespace = {
        "__annotations__": {"f": annotation},
        "__module__": __name__,
        "f": field(**options),
    }
    return py_class(fresh_key())(type(Object)("One", (Object,), namespace))


@pytest.mark.parametrize(
    ("annotation", "given", "read"),
    [
        (int, 3, 3),
        (int, True, 1),
        (int, -(2**63), -(2**63)),
        (float, 1.5, 1.5),
        (float, 2, 2.0),
        (bool, True, True),
        (bool, 0, False),
        (str, "short", "short"),
        (str, "much longer than seven bytes", "much longer than seven bytes"),
        (str, "nul \0 inside, ünïcödé ✓", "nul \0 inside, ünïcödé ✓"),
        (bytes, b"\0\xff", b"\0\xff"),
        (bytes, bytearray(b"0123456789"), b"0123456789"),
        (Any, None, None),
        (Any, 1.5, 1.5),
        (int | None, None, None),
        (int | None, 4, 4),
        (int | str, "x", "x"),
        (int | str, 4, 4),
        (None, None, None),
    ],
)
def test_scalars_are_stored_and_read_back(annotation: Any, given: Any, read: Any) -> None:
    made = one_field(annotation)(given)
    assert made.f == read
    if read is not None:
        assert isinstance(made.f, type(read))
        assert type(made.f) in (type(read), core.String, core.Bytes)


@pytest.mark.parametrize(
    ("annotation", "given", "kind", "content"),
    [
        (list, [1, "a"], tvm_ffi.List, [1, "a"]),
        (list[int], (1, 2), tvm_ffi.List, [1, 2]),
        (typing.List[int], [1], tvm_ffi.List, [1]),  # noqa: UP006
        (tvm_ffi.List[int], [1], tvm_ffi.List, [1]),
        (tvm_ffi.List, [1], tvm_ffi.List, [1]),
        (tuple[int, ...], [1, 2], tvm_ffi.Array, [1, 2]),
        (tvm_ffi.Array[int], [1, 2], tvm_ffi.Array, [1, 2]),
        (tvm_ffi.Array, [1, 2], tvm_ffi.Array, [1, 2]),
        (tuple, [1, 2], tvm_ffi.Array, [1, 2]),
        (tuple[int, str], (1, "a"), tvm_ffi.Array, [1, "a"]),
        (tuple[()], (), tvm_ffi.Array, []),
        (list[list[int]], [[1], [2, 3]], tvm_ffi.List, [[1], [2, 3]]),
    ],
)
def test_sequences_are_stored_and_read_back(
    annotation: Any, given: Any, kind: type, content: list[Any]
) -> None:
    made = one_field(annotation)(given)
    assert type(made.f) is kind
    assert made.f is made.f
    assert [list(x) if isinstance(x, tvm_ffi.List) else x for x in made.f] == content


@pytest.mark.parametrize(
    ("annotation", "kind"),
    [
        (dict, tvm_ffi.Dict),
        (dict[str, int], tvm_ffi.Dict),
        (typing.Dict[str, int], tvm_ffi.Dict),  # noqa: UP006
        (tvm_ffi.Dict[str, int], tvm_ffi.Dict),
        (tvm_ffi.Map[str, int], tvm_ffi.Map),
        (tvm_ffi.Map, tvm_ffi.Map),
    ],
)
def test_mappings_are_stored_and_read_back(annotation: Any, kind: type) -> None:
    made = one_field(annotation)({"a": 1})
    assert type(made.f) is kind
    assert dict(made.f.items()) == {"a": 1}


def test_functions_and_objects_are_stored() -> None:
    made = one_field(typing.Callable[[int], int])(lambda x: x + 1)
    assert isinstance(made.f, tvm_ffi.Function)
    assert made.f(1) == 2
    pair = testing.TestIntPair(1, 2)
    assert one_field(Object)(pair).f is pair
    assert one_field(testing.TestIntPair)(pair).f is pair
    derived = testing.TestObjectDerived({}, [])
    holder = one_field(testing.TestObjectBase)(derived)
    assert holder.f is derived


@pytest.mark.parametrize(
    ("annotation", "good", "bad", "message"),
    [
        (int, 1, "text", "expected int, got str"),
        (int, 1, 1.5, "expected int, got float"),
        (int, 1, None, "expected int, got None"),
        (float, 1.0, "text", "expected float, got str"),
        (str, "a", 1, "expected str, got int"),
        (list[int], [1], [1, None], r"element \[1\]: expected int, got None"),
        (list[list[int]], [[1]], [4, 3], r"element \[0\]: expected List, got int"),
        (list[int], [1], {"a": 1}, "expected List, got ffi.Map"),
        (dict[str, Any], {"a": 1}, {4: 4}, "key 4: expected str, got int"),
        (dict[str, list[int]], {}, {"a": 1}, "value for key 'a': expected List, got int"),
        (tuple[int, str], (1, "a"), (1,), "expected tuple of length 2, got Array of length 1"),
        (testing.TestIntPair, testing.TestIntPair(1, 2), None, "testing.TestIntPair, got None"),
        (Object, testing.TestIntPair(1, 2), 3, "expected Object, got int"),
        (int | None, 1, "x", "expected int, got str"),
    ],
)
def test_wrong_values_are_refused_and_change_nothing(
    annotation: Any, good: Any, bad: Any, message: str
) -> None:
    cls = one_field(annotation)
    key = cls.__tvm_ffi_type_info__.type_key
    with pytest.raises(TypeError, match=message) as raised:
        cls(bad)
    assert str(raised.value).startswith(f"{key}.__ffi_init__() field 'f':\n  ")
    made = cls(good)
    before = made.f
    with pytest.raises(TypeError, match=message) as raised:
        made.f = bad
    assert str(raised.value).startswith(f"field `f` of `{key}`: ")
    assert made.f == before


def test_integers_beyond_64_bits() -> None:
    cls = one_field(int)
    for value in (2**63, -(2**63) - 1):
        with pytest.raises(TypeError):
            cls(value)
        made = cls(1)
        with pytest.raises(TypeError):
            made.f = value
        assert made.f == 1


@pytest.mark.parametrize(
    "values",
    [
        (list[int] | None, [1], None, [2]),
        (dict[str, int] | None, None, {"a": 1}, None),
        (Object | None, None, testing.TestIntPair(1, 2), None),
    ],
)
def test_optional_fields_go_back_and_forth(values: tuple[Any, ...]) -> None:
    annotation, *stored = values
    made = one_field(annotation)(stored[0])
    for value in stored[1:]:
        made.f = value
        assert (made.f is None) == (value is None)


def test_a_container_of_the_right_kind_is_stored_as_it_is() -> None:
    given = tvm_ffi.List([1, 2])
    made = one_field(list[int])(given)
    assert made.f is given
    plain = [1, 2]
    made = one_field(list[int])(plain)
    made.f.append(3)
    assert plain == [1, 2]


@pytest.mark.parametrize(
    "annotation",
    [object, set, complex, typing.Sequence[int], typing.Final[int], typing.Literal[1], T],
)
def test_annotations_without_meaning_are_refused(annotation: Any) -> None:
    key = fresh_key()
    namespace = {"__annotations__": {"f": annotation}, "__module__": __name__}
    with pytest.raises(TypeError, match="Cannot convert .* to TypeSchema"):
        py_class(key)(type(Object)("Bad", (Object,), namespace))

    @py_class(key)
    class Again(Object):
        f: int

    assert Again(3).f == 3


def test_an_unregistered_class_is_no_annotation() -> None:
    class Unregistered(Object):
        pass

    with pytest.raises(TypeError, match="is not registered"):
        one_field(Unregistered)


# ---- layout -------------------------------------------------------------------------------------


def offsets(cls: Any) -> list[int]:
    return [f.offset for f in cls.__tvm_ffi_type_info__.fields]


def test_layout_follows_the_c_rules() -> None:
    @py_class(fresh_key())
    class Bools(Object):
        a: bool
        b: bool
        c: bool

    assert offsets(Bools) == [24, 25, 26]

    @py_class(fresh_key())
    class Mixed(Object):
        a: bool
        b: int

    assert offsets(Mixed) == [24, 32]
    made = Mixed(True, -1)
    made.a = False
    assert made.b == -1
    made.b = 5
    assert made.a is False

    @py_class(fresh_key())
    class Parent(Object):
        a: bool

    @py_class(fresh_key())
    class Empty(Parent):
        pass

    @py_class(fresh_key())
    class Grandchild(Empty):
        b: bool

    assert [c.__tvm_ffi_type_info__.total_size for c in (Parent, Empty, Grandchild)] == [32] * 3
    assert offsets(Grandchild) == [25]

    @py_class(fresh_key())
    class OfNative(testing._TestCxxClassBase):
        flag: bool

    assert offsets(OfNative) == [36]

    @py_class(fresh_key())
    class OfBase(testing.TestObjectBase):
        flag: bool

    ends = [f.offset + f.size for f in testing.TestObjectBase.__tvm_ffi_type_info__.fields]
    assert offsets(OfBase)[0] >= max(ends)


def test_fields_of_generations_do_not_overlap() -> None:
    @py_class(fresh_key())
    class Grandparent(Object):
        x: int
        y: int

    @py_class(fresh_key())
    class Parent(Grandparent):
        pass

    @py_class(fresh_key())
    class Child(Parent):
        a: int
        b: int

    assert offsets(Child)[0] >= Parent.__tvm_ffi_type_info__.total_size
    made = Child(1, 2, 3, 4)
    assert (made.x, made.y, made.a, made.b) == (1, 2, 3, 4)


def test_field_records_mirror_the_declaration() -> None:
    @py_class(fresh_key())
    class Node(Object):
        a: list[int] = field(
            default_factory=list, repr=False, compare=False, structural_eq="def", doc="items"
        )
        b: int = field(default=3, kw_only=True, init=True, hash=False)
        c: str = field(init=False, default="x")

    a, b, c = Node.__tvm_ffi_type_info__.fields
    assert (a.c_default_factory, a.c_default) == (list, MISSING)
    assert (a.c_repr, a.c_compare, a.c_hash, a.c_structural_eq) == (False, False, False, "def")
    assert (b.c_default, b.c_kw_only, b.c_has_default, b.c_hash) == (3, True, True, False)
    assert (c.c_init, c.c_default) == (False, "x")
    assert a.metadata == {"type_schema": {"type": "List", "args": [{"type": "int"}]}}
    assert str(a.ty) == "List[int]"
    assert Node.a.__doc__ == "items"
    assert Node.b.__doc__ is None
    assert a.dataclass_field is fields(Node)[0]
    index = Node.__tvm_ffi_type_info__.type_index
    for name in ("__ffi_init__", "__ffi_new__", "__ffi_shallow_copy__"):
        assert isinstance(core._lookup_type_attr(index, name), tvm_ffi.Function)
        assert name not in [m.name for m in Node.__tvm_ffi_type_info__.methods]


def test_the_functions_behind_python_classes_exist() -> None:
    for name in ("ffi._PyClassRegisterTypeAttrColumns", "ffi.MakeFieldGetter"):
        assert tvm_ffi.get_global_func(name)
    assert tvm_ffi.get_global_func("ffi.MakeFieldSetter")
    assert tvm_ffi.get_global_func("ffi.MakeNew", allow_missing=True) is None


# ---- native parents -----------------------------------------------------------------------------


def test_a_child_of_a_cxx_class_has_its_fields_and_methods() -> None:
    @py_class(fresh_key())
    class Child(testing.TestObjectBase):
        extra: int

    made = Child(5, v_i64=3)
    assert (made.v_i64, made.v_f64, made.v_str, made.extra) == (3, 10.0, "hello", 5)
    assert made.add_i64(4) == 7
    for other in (copy.copy(made), copy.deepcopy(made)):
        assert type(other) is Child
        assert (other.v_i64, other.v_str, other.extra) == (3, "hello", 5)
    assert isinstance(made, testing.TestObjectBase)


def test_reference_counts_with_a_native_parent_are_exact() -> None:
    @py_class(fresh_key())
    class Child(testing.TestObjectPtrHolder):
        extra: int

    target = testing.TestObjectDerived({"k": 1}, [2], v_i64=7)
    assert use_count(target) == 1
    child = Child(target, 1)
    assert child.value is target
    assert use_count(target) == 2
    shallow = copy.copy(child)
    assert use_count(target) == 3
    del shallow
    assert use_count(target) == 2
    deep = copy.deepcopy(child)
    assert use_count(target) == 2
    assert type(deep.value) is testing.TestObjectDerived
    assert deep.value is not target
    assert (deep.value.v_i64, dict(deep.value.v_map), list(deep.value.v_array)) == (
        7,
        {"k": 1},
        [2],
    )
    del child, deep
    assert use_count(target) == 1


def test_reference_counts_of_a_native_holder() -> None:
    target = testing.TestObjectBase()
    holder = testing.TestObjectPtrHolder(target)
    assert use_count(target) == 2
    stored = holder.value
    assert stored is target
    assert use_count(target) == 2
    del stored
    with pytest.raises(TypeError, match="expected `testing.TestObjectBase`, got `None`"):
        holder.value = None
    assert holder.value is target
    holder.optional_value = target
    assert holder.optional_value is target
    assert use_count(target) == 3
    holder.optional_value = None
    assert holder.optional_value is None
    assert use_count(target) == 2
    replacement = testing.TestObjectBase()
    holder.value = replacement
    assert (use_count(replacement), use_count(target)) == (2, 1)
    holder.value = target
    with pytest.raises(TypeError):
        holder.value = testing.TestIntPair(1, 2)
    assert holder.value is target
    assert use_count(target) == 2
    del holder
    assert (use_count(target), use_count(replacement)) == (1, 1)
    with pytest.raises(TypeError, match=r"field 'value':\n  .*testing\.TestObjectBase"):
        testing.TestObjectPtrHolder(None)


def test_a_final_cxx_class_can_be_a_parent() -> None:
    @py_class(fresh_key())
    class Child(testing.TestIntPair):
        c: int

    made = Child(1, 2, 3)
    assert (made.a, made.b, made.c) == (1, 2, 3)
    with pytest.raises(TypeError, match=r"Expected `testing.TestIntPair` but got `tests.fresh"):
        testing.TestIntPairSum(made)


# ---- construction -------------------------------------------------------------------------------


def test_signatures_put_required_parameters_first() -> None:
    @py_class(fresh_key())
    class Parent(Object):
        x: int
        y: int = 0

    @py_class(fresh_key())
    class Child(Parent):
        z: int
        w: list[int] = field(default_factory=list)

    assert [p[0] for p in parameters(Child)] == ["x", "z", "y", "w"]
    made = Child(1, 2)
    assert (made.x, made.z, made.y, list(made.w)) == (1, 2, 0, [])
    init = Child.__init__
    assert init.__qualname__ == f"{Child.__qualname__}.__init__"
    assert init.__module__ == __name__
    defaults = [p.default for p in inspect.signature(init).parameters.values()]
    assert defaults[-1] is MISSING

    @py_class(fresh_key())
    class Odd(Object):
        x: int = 0
        y: int

    assert Odd(42).y == 42


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((), {}, r"missing required argument: 'x'"),
        ((1, 2, 3), {}, r"takes at most 2 positional argument\(s\), but 3 were given"),
        ((1,), {"q": 3}, r"unexpected keyword argument 'q'"),
        ((1,), {"x": 3}, r"multiple values for argument 'x'"),
        ((1,), {"hidden": 3}, r"unexpected keyword argument 'hidden'"),
    ],
)
def test_constructor_errors_name_the_type_and_the_field(
    args: tuple[Any, ...], kwargs: dict[str, Any], message: str
) -> None:
    @py_class(fresh_key())
    class Node(Object):
        x: int
        y: int = 0
        hidden: int = field(init=False, default=9)

    with pytest.raises(TypeError, match=message) as raised:
        Node(*args, **kwargs)
    key = Node.__tvm_ffi_type_info__.type_key
    assert str(raised.value).startswith(f"{key}.__ffi_init__() ")


def test_fields_outside_the_constructor() -> None:
    @py_class(fresh_key())
    class Node(Object):
        a: int = field(init=False)
        b: float = field(init=False)
        c: str = field(init=False)
        d: bool = field(init=False)
        e: int = field(init=False, default=4)
        f: list[int] = field(init=False, default_factory=list)

    made = Node(**{})
    assert (made.a, made.b, made.c, made.d, made.e) == (0, 0.0, None, False, 4)
    assert list(made.f) == []
    made.a = 3
    assert made.a == 3


def test_factories_run_once_per_construction() -> None:
    numbers = itertools.count(1)

    @py_class(fresh_key())
    class Node(Object):
        number: int = field(default_factory=lambda: next(numbers))
        items: list[int] = field(default_factory=list)

    assert [Node().number for _ in range(3)] == [1, 2, 3]
    assert Node(10).number == 10
    assert Node().number == 4
    assert not Node().items.same_as(Node().items)

    def fail() -> int:
        raise RuntimeError("no value today")

    @py_class(fresh_key())
    class Failing(Object):
        x: int = field(default_factory=fail)

    with pytest.raises(RuntimeError, match="no value today"):
        Failing()
    assert Failing(1).x == 1


def test_mutable_defaults() -> None:
    common = tvm_ffi.List([1])

    @py_class(fresh_key())
    class Node(Object):
        own: list[int] = [1, 2]  # noqa: RUF012
        shared: tvm_ffi.List = common

    assert not Node().own.same_as(Node().own)
    assert Node().shared is common


def test_a_default_of_the_wrong_type_is_reported_when_it_is_used() -> None:
    @py_class(fresh_key())
    class Node(Object):
        x: int = "text"

    with pytest.raises(TypeError, match=r"field 'x':\n  expected int, got str"):
        Node()
    assert Node(3).x == 3

    @py_class(fresh_key())
    class Made(Object):
        x: list[int] = field(default_factory=lambda: ["a"])

    with pytest.raises(TypeError, match=r"field 'x':\n  element \[0\]: expected int, got str"):
        Made()


def test_post_init_runs_after_construction() -> None:
    @py_class(fresh_key())
    class Node(Object):
        x: int
        y: int = 0

        def __post_init__(self) -> None:
            self.y = self.x * 2

    assert Node(4).y == 8

    @py_class(fresh_key())
    class Child(Node):
        z: int = 1

    assert Child(5).y == 10


def test_an_init_of_the_user_finds_defaults_and_else_nothing() -> None:
    @py_class(fresh_key())
    class Node(Object):
        x: int
        y: float
        z: bool
        s: str
        d: int = 9

        def __init__(self, x: int) -> None:
            """Take one number."""
            assert (self.x, self.y, self.z, self.s, self.d) == (0, 0.0, False, None, 9)
            self.x = x

        def __post_init__(self) -> None:
            raise AssertionError("not for an __init__ of one's own")

    made = Node(5)
    assert made.x == 5
    assert Node.__init__.__doc__ == "Take one number."
    assert Node.__init__.__wrapped__ is not None
    for other in (copy.copy(made), copy.deepcopy(made)):
        assert other.x == 5


def test_an_init_of_the_user_may_call_the_generated_one() -> None:
    @py_class(fresh_key(), init=False)
    class Node(Object):
        x: int
        d: int = 9

        def __init__(self, text: str) -> None:
            self.__ffi_init__(len(text))

    made = Node("four")
    assert (made.x, made.d) == (4, 9)


def test_a_subclass_whose_init_does_not_call_super_is_told_so() -> None:
    @py_class(fresh_key())
    class Node(tvm_ffi.Object):
        value: Any = None

    class Plain(Node):
        def __init__(self, value: int) -> None:
            self.value = value

    with pytest.raises(ValueError, match=r"no C\+\+ object.*super\(\).__init__\(\) first"):
        Plain(3)
    with pytest.raises(ValueError, match=r"never initialised$"):
        _ = Node.__new__(Node).value


def test_super_init_works_at_any_depth() -> None:
    trace = []

    @py_class(fresh_key())
    class A(Object):
        x: int

        def __init__(self, x: int) -> None:
            super().__init__()
            trace.append("A")
            self.x = x

    @py_class(fresh_key())
    class B(A):
        y: int

        def __init__(self, x: int, y: int) -> None:
            super().__init__(x)
            trace.append("B")
            self.y = y

    @py_class(fresh_key())
    class C(B):
        z: int

        def __init__(self) -> None:
            super().__init__(1, 2)
            trace.append("C")
            self.z = 3

    made = C()
    assert trace == ["A", "B", "C"]
    assert (made.x, made.y, made.z) == (1, 2, 3)


def test_super_init_of_a_generated_constructor_sets_the_fields_of_the_base() -> None:
    @py_class(fresh_key())
    class A(Object):
        x: int
        z: float = 2
        made: list[int] = field(default_factory=lambda: [1], kw_only=True)

    @py_class(fresh_key())
    class B(A):
        y: int

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.y = 3

    made = B(100)
    assert (made.x, made.z, list(made.made), made.y) == (100, 2.0, [1], 3)
    made = B(x=1, z=5, made=[7])
    assert (made.x, made.z, list(made.made), made.y) == (1, 5.0, [7], 3)
    empty = B()  # without arguments the fields are left to the subclass
    assert (empty.x, empty.z, list(empty.made), empty.y) == (0, 2.0, [1], 3)
    assert empty.made is not B().made
    with pytest.raises(TypeError, match="missing required argument: 'x'"):
        B(z=1)
    with pytest.raises(TypeError, match="unexpected keyword argument 'nothing'"):
        B(1, nothing=1)
    with pytest.raises(TypeError, match="field 'x'"):
        B("text")
    again = A(1)
    handle = again.__chandle__()
    again.__init__(2)  # type: ignore[misc]
    assert (again.x, again.__chandle__()) == (2, handle)
    again.__init__()  # type: ignore[call-arg, misc]
    assert again.x == 2


def test_super_init_runs_what_the_base_does_after_construction() -> None:
    @py_class(fresh_key(), frozen=True)
    class A(Object):
        x: int
        twice: int = 0

        def __post_init__(self) -> None:
            type(self).twice.set(self, 2 * self.x)  # type: ignore[attr-defined]

    @py_class(fresh_key(), frozen=True)
    class B(A):
        def __init__(self, text: str) -> None:
            super().__init__(len(text))

    assert (B("four").x, B("four").twice) == (4, 8)


def test_defaults_of_all_ancestors_are_there_for_an_init_of_the_user() -> None:
    @py_class(fresh_key())
    class A(Object):
        x: int = 7
        items: list[int] = field(default_factory=lambda: [1, 2])

    @py_class(fresh_key())
    class B(A):
        name: str = "some text"
        hidden: int = field(default=5, init=False)

        def __init__(self) -> None:
            pass

    made = B()
    assert (made.x, list(made.items), made.name, made.hidden) == (7, [1, 2], "some text", 5)
    assert made.items is not B().items

    def refuse() -> int:
        raise KeyError("no value")

    @py_class(fresh_key())
    class C(Object):
        x: int = field(default_factory=refuse)

        def __init__(self) -> None:
            pass

    with pytest.raises(KeyError, match="no value"):
        C()


def test_further_bases_defined_in_python_give_their_fields() -> None:
    @py_class(fresh_key())
    class First(Object):
        a: int

    @py_class(fresh_key())
    class Root(Object):
        q: int

    @py_class(fresh_key())
    class Second(Root):
        r: int
        s: int = 5

        def total(self) -> int:
            return self.q + self.r + self.s

    @py_class(fresh_key())
    class Both(First, Second):
        x: int

    made = Both(1, 2, 3, 4)
    assert (made.a, made.q, made.r, made.x, made.s) == (1, 2, 3, 4, 5)
    assert made.total() == 10
    assert [f.name for f in fields(Both)] == ["a", "q", "r", "s", "x"]
    # In C++ it is no Second: its own property does not touch the memory of a Both.
    with pytest.raises(TypeError):
        Second.r.__get__(made, Both)  # type: ignore[attr-defined]

    @py_class(fresh_key())
    class Own(First, Second):
        def __init__(self) -> None:
            First.__init__(self, 1)
            Second.__init__(self, 2, 3)

    made = Own()
    assert (made.a, made.q, made.r, made.s) == (1, 2, 3, 5)


def test_a_second_base_defined_in_cpp_is_refused() -> None:
    @py_class(fresh_key())
    class First(Object):
        a: int

    key = fresh_key()
    with pytest.raises(TypeError, match="one parent type in C"):

        @py_class(key)
        class Both(First, testing.TestIntPair):
            x: int

    @py_class(key)  # the key is free
    class Fine(testing.TestObjectBase):
        x: int

    assert Fine.__tvm_ffi_type_info__.type_key == key


def test_the_raw_constructor_replaces_the_object() -> None:
    @py_class(fresh_key())
    class Node(Object):
        x: int
        y: int = field(init=False, default=42)

    made = Node(1)
    made.y = 999
    before = made.__chandle__()
    made.__ffi_init__(2)
    assert made.__chandle__() != before
    assert (made.x, made.y) == (2, 42)
    assert tvm_ffi.Array([made])[0] is made
    with pytest.raises(TypeError, match="not supported"):
        Node.__ffi_init__(testing.TestIntPair(1, 2), 1)


def test_a_class_without_constructor_says_so() -> None:
    @py_class(fresh_key(), init=False)
    class Node(Object):
        x: int

    with pytest.raises(
        TypeError,
        match=r"`Node` cannot be constructed directly. Define a custom __init__ or use a factory",
    ):
        Node(1)


def test_an_undecorated_subclass_constructs_like_its_base() -> None:
    @py_class(fresh_key())
    class Node(Object):
        x: int

    class Sub(Node):
        __slots__ = ("note",)

    made = Sub(3)
    made.note = "kept"
    box = tvm_ffi.Array([made])
    del made
    gc.collect()
    assert (type(box[0]), box[0].x, box[0].note) == (Sub, 3, "kept")
    with pytest.raises(TypeError, match="missing required"):
        Sub()
    copied = copy.copy(box[0])
    assert (type(copied), copied.x, copied.note) == (Sub, 3, "kept")


def test_objects_from_cxx_do_not_run_the_constructor() -> None:
    runs = []

    @py_class(fresh_key())
    class Node(Object):
        x: int

        def __init__(self, x: int) -> None:
            runs.append(x)
            self.x = x

    holder = tvm_ffi.Array([Node(1)])
    gc.collect()
    assert holder[0].x == 1
    assert runs == [1]
    fresh = copy.deepcopy(holder)[0]
    assert (type(fresh), fresh.x, runs) == (Node, 1, [1])


def test_slots_are_the_users_choice() -> None:
    @py_class(fresh_key())
    class Plain(Object):
        x: int

    with pytest.raises(AttributeError):
        Plain(1).unknown = 2

    @py_class(fresh_key(), slots=False)
    class Open(Object):
        __slots__ = ("__dict__",)
        x: int

    made = Open(1)
    made.anything = [1, 2]
    holder = tvm_ffi.Array([made])
    del made
    gc.collect()
    assert holder[0].anything == [1, 2]
    assert copy.copy(holder[0]).anything is holder[0].anything


def test_is_dataclass_is_inherited() -> None:
    @py_class(fresh_key())
    class Node(Object):
        x: int

    class Sub(Node):
        pass

    assert is_dataclass(Sub)
    assert is_dataclass(Node(1))


# ---- names that come later ----------------------------------------------------------------------


def test_a_class_may_refer_to_itself() -> None:
    @py_class(fresh_key())
    class Node(Object):
        next: Node | None = None
        children: list[Node] = field(default_factory=list)

    made = Node(Node(), [Node()])
    assert type(made.children[0]) is Node
    made.next = made
    assert made.next is made
    made.next = None


def test_two_classes_may_refer_to_each_other() -> None:
    @py_class(fresh_key())
    class First(Object):
        partner: Partner | None = None
        x: int = 1

    assert First.__tvm_ffi_type_info__.fields is None
    assert fields(First) == ()
    assert is_dataclass(First)
    assert "partner" not in vars(First) or not isinstance(vars(First)["partner"], core.FFIProperty)

    @py_class(fresh_key())
    class Partner(Object):
        first: First | None = None

    assert [p[0] for p in parameters(First)] == ["partner", "x"]
    first = First()
    first.partner = Partner(first)
    assert first.partner.first is first
    first.partner = None


def test_the_last_chance_is_construction() -> None:
    module = types.ModuleType("tests_late_names")
    sys.modules[module.__name__] = module
    try:
        namespace = {
            "__annotations__": {"a": "LateName", "b": int},
            "__module__": module.__name__,
        }
        cls = py_class(fresh_key())(type(Object)("Late", (Object,), namespace))
        assert cls.__tvm_ffi_type_info__.fields is None
        module.LateName = int
        assert cls(1, 2).a == 1
    finally:
        del sys.modules[module.__name__]


def test_names_that_never_come() -> None:
    key = fresh_key()
    namespace = {
        "__annotations__": {
            "a": "NoSuchName",
            "b": "len(1)",
            "c": int,
            "d": typing.Optional["NoName"],  # type: ignore[name-defined]  # noqa: F821
            "e": list["NoItem"],  # type: ignore[name-defined]  # noqa: F821
        },
        "__module__": __name__,
    }
    # A wrong expression is an error at once; alone, a missing name only defers.
    with pytest.raises(TypeError):
        py_class(key)(
            type(Object)("Never", (Object,), {**namespace, "__annotations__": {"b": "len(1)"}})
        )
    cls = py_class(key)(type(Object)("Never", (Object,), namespace))
    with pytest.raises(TypeError) as raised:
        cls(1)
    text = str(raised.value)
    assert text.startswith("Cannot instantiate Never: unresolved forward references: [")
    assert re.search(
        r"d: (Optional\[NoName\]|NoName \| None) \(name 'NoName' is not defined\)", text
    )
    if sys.version_info >= (3, 11):  # before, typing does not look into `list[...]`
        assert "e: list['NoItem'] (name 'NoItem' is not defined)" in text
    assert "a: NoSuchName (name 'NoSuchName' is not defined)" in text
    assert "b: len(1) (" in text
    assert "c:" not in text
    assert not is_dataclass(cls)
    with pytest.raises(TypeError, match="Cannot instantiate Never"):
        cls(1)

    @py_class(key)
    class Again(Object):
        x: int

    assert Again(1).x == 1


def test_a_deferred_class_keeps_the_users_init() -> None:
    for options in ({}, {"init": False}):

        @py_class(fresh_key(), **options)
        class First(Object):
            other: Soon | None  # noqa: F821
            x: int

            def __init__(self, x: int) -> None:
                """Doc."""
                self.x = x

        @py_class(fresh_key())
        class Soon(Object):
            pass

        assert First(4).x == 4
        assert First.__init__.__doc__ == "Doc."
        del Soon


def test_a_child_of_a_deferred_class_waits_with_it() -> None:
    @py_class(fresh_key())
    class Parent(Object):
        other: Eventually | None = None

    @py_class(fresh_key())
    class Child(Parent):
        x: int = 2

    assert Child.__tvm_ffi_type_info__.fields is None

    @py_class(fresh_key())
    class Eventually(Object):
        pass

    assert all_names(Child) == ["other", "x"]
    assert Child(Eventually(), 5).x == 5


def test_what_is_wrong_with_a_waiting_class_is_its_own_affair() -> None:
    @py_class(fresh_key())
    class Waiting(Object):
        other: Awaited | None
        bad: typing.Sequence[int]

    @py_class(fresh_key())
    class Awaited(Object):
        x: int

    assert Awaited(1).x == 1
    with pytest.raises(TypeError, match="to TypeSchema"):
        Waiting(None, [])


def test_classes_of_other_modules_are_found_by_name() -> None:
    elsewhere = types.ModuleType("tests_elsewhere")
    sys.modules[elsewhere.__name__] = elsewhere
    try:
        namespace = {"__annotations__": {"x": int}, "__module__": elsewhere.__name__}
        foreign = py_class(fresh_key())(type(Object)("OnlyElsewhere", (Object,), namespace))
        cls = one_field("OnlyElsewhere")
        assert cls(foreign(3)).f.x == 3
    finally:
        del sys.modules[elsewhere.__name__]


def test_a_module_that_is_not_loaded_has_no_globals() -> None:
    namespace = {"__annotations__": {"x": "int"}, "__module__": "tests_never_loaded"}
    cls = py_class(fresh_key())(type(Object)("Orphan", (Object,), namespace))
    assert cls(3).x == 3


def test_local_names_that_are_no_classes_of_ours_are_not_seen() -> None:
    LocalAlias = int

    @py_class(fresh_key())
    class Node(Object):
        x: LocalAlias

    with pytest.raises(TypeError, match="unresolved forward references"):
        Node(1)


def test_a_rollback_spares_another_class_of_the_same_name() -> None:
    def make(annotation: Any) -> Any:
        namespace = {"__annotations__": {"f": annotation}, "__module__": __name__}
        return py_class(fresh_key())(type(Object)("Namesake", (Object,), namespace))

    first = make(int)
    with pytest.raises(TypeError):
        make(set)
    holder = one_field("Namesake")
    with pytest.raises(TypeError):
        # The failed class took the name while it existed; nothing may be left of it.
        holder(first(1))


# ---- types that have no subtypes ----------------------------------------------------------


@pytest.mark.parametrize(
    "base",
    [tvm_ffi.List, tvm_ffi.Array, tvm_ffi.Dict, tvm_ffi.Map, tvm_ffi.Function, tvm_ffi.Shape],
)
def test_a_type_that_cannot_have_subtypes_raises(base: type) -> None:
    with pytest.raises(TypeError, match=r"^type `ffi\.\w+` cannot have a subtype `"):

        @py_class(fresh_key())
        class Derived(base):  # type: ignore[misc]
            name: str = ""


def test_text_of_another_kind_is_stored_as_text() -> None:
    @py_class(fresh_key())
    class Named(tvm_ffi.Object):
        name: str
        names: list[str]

    made = Named(tvm_ffi.dtype("int8"), [tvm_ffi.dtype("int16")])
    assert type(made.name) is str
    assert (made.name, *made.names) == ("int8", "int16")
    made.name = tvm_ffi.dtype("int32")
    assert tvm_ffi.structural_equal(made, Named("int32", ["int16"]))
