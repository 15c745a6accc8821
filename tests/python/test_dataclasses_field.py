# SPDX-License-Identifier: Apache-2.0
"""Field, field(), KW_ONLY and init_property."""

from __future__ import annotations

import copy
import dataclasses as standard
import itertools
from typing import Any

import pytest
import tvm_ffi
from support import fresh_key
from tvm_ffi import core
from tvm_ffi.dataclasses import (
    KW_ONLY,
    MISSING,
    Field,
    c_class,
    field,
    fields,
    init_property,
    py_class,
)


def test_a_converter_is_kept_and_not_called() -> None:
    def ten_times(value: Any) -> int:
        return int(value) * 10

    @py_class(fresh_key())
    class Node(tvm_ffi.Object):
        x: int = field(default=1, converter=ten_times)

    assert fields(Node)[0].converter is ten_times
    assert (Node(2).x, Node().x) == (2, 1)


def test_the_two_ways_to_make_a_field_have_their_own_defaults() -> None:
    low = Field("x")
    assert (low.hash, low.compare, low.kw_only) == (True, False, False)
    high = field()
    assert (high.hash, high.compare, high.kw_only) == (None, True, None)
    for made in (low, high):
        assert made.default is MISSING
        assert made.default_factory is MISSING
        assert (made.frozen, made.init, made.repr) == (False, True, True)
        assert (made.structural_eq, made.doc, made.type, made._ty_schema) == (None,) * 4
    assert (low.name, high.name) == ("x", None)


def test_every_option_of_a_field_is_kept() -> None:
    made = field(
        default_factory=list,
        frozen=True,
        init=False,
        repr=False,
        hash=True,
        compare=False,
        kw_only=True,
        structural_eq="ignore",
        doc="text",
    )
    assert made.default_factory is list
    assert (made.frozen, made.init, made.repr, made.hash) == (True, False, False, True)
    assert (made.compare, made.kw_only, made.structural_eq, made.doc) == (
        False,
        True,
        "ignore",
        "text",
    )


def test_fields_compare_by_identity_and_can_be_changed() -> None:
    first, second = field(), field()
    assert first != second
    assert len({first, second}) == 2
    first.name = "renamed"
    assert first.name == "renamed"
    with pytest.raises(AttributeError):
        first.unknown = 1


@pytest.mark.parametrize("make", [field, lambda **kw: Field("x", **kw)])
def test_contradicting_options_are_refused(make: Any) -> None:
    with pytest.raises(ValueError, match="cannot specify both default and default_factory"):
        make(default=1, default_factory=list)
    with pytest.raises(TypeError, match="default_factory must be a callable, got int"):
        make(default_factory=3)
    with pytest.raises(TypeError, match="default_factory must be a callable, got NoneType"):
        make(default_factory=None)
    with pytest.raises(ValueError) as raised:
        make(structural_eq="definitely")
    assert str(raised.value) == (
        "structural_eq must be one of [None, 'def', 'def-pattern', 'def-simple', "
        "'ignore'], got 'definitely'"
    )


@pytest.mark.parametrize("kind", [None, "ignore", "def", "def-pattern", "def-simple"])
def test_structural_options(kind: str | None) -> None:
    assert field(structural_eq=kind).structural_eq == kind


def test_markers_are_the_ones_people_know() -> None:
    assert KW_ONLY is standard.KW_ONLY
    assert MISSING is core.MISSING
    assert repr(MISSING) == "<MISSING>"


@pytest.mark.parametrize("decorator", [c_class, py_class])
def test_decorators_tell_type_checkers_what_they_do(decorator: Any) -> None:
    told = decorator.__dataclass_transform__
    assert told["eq_default"] is False
    assert told["order_default"] is False
    assert told["field_specifiers"] == (Field, field)
    assert told["kwargs"]["converter"] is field().converter
    assert field().converter is field().converter
    assert field().converter(7) == 7


# ---- init_property ------------------------------------------------------------------------------


def test_an_init_property_is_computed_once_and_stored() -> None:
    calls = itertools.count()

    @py_class(fresh_key())
    class Rect(tvm_ffi.Object):
        @init_property
        def area(self) -> int:
            next(calls)
            return self.width * self.height

        width: int
        height: int = 1

    assert [f.name for f in fields(Rect)] == ["width", "height", "area"]
    rect = Rect(2, height=4)
    assert (rect.area, rect.area) == (8, 8)
    rect.width = 100
    assert rect.area == 8
    assert next(calls) == 1
    with pytest.raises(TypeError, match="unexpected keyword"):
        Rect(1, area=3)


def test_an_init_property_takes_no_part_in_comparison_or_repr() -> None:
    count = itertools.count()

    @py_class(fresh_key(), eq=True, unsafe_hash=True)
    class Numbered(tvm_ffi.Object):
        x: int

        @init_property
        def number(self):  # no annotation: any value
            return next(count)

    first, second = Numbered(1), Numbered(1)
    assert first.number != second.number
    assert first == second
    assert hash(first) == hash(second)
    assert "number" not in repr(first)
    assert tvm_ffi.structural_equal(first, second)
    described = fields(Numbered)[1]
    assert (described.init, described.repr, described.hash, described.compare) == (False,) * 4
    assert described.structural_eq == "ignore"
    assert described.type is Any


def test_init_properties_of_parents_run_first_and_may_be_replaced() -> None:
    order = []

    @py_class(fresh_key())
    class Parent(tvm_ffi.Object):
        x: int

        @init_property
        def a(self) -> int:
            order.append("parent a")
            return self.x + 1

        @init_property
        def b(self) -> int:
            order.append("parent b")
            return self.x + 2

    @py_class(fresh_key())
    class Child(Parent):
        @init_property
        def c(self) -> int:
            order.append("child c")
            return self.a + self.b

        @init_property
        def b(self) -> int:
            order.append("child b")
            return self.x + 20

    made = Child(1)
    assert order == ["parent a", "child b", "child c"]
    assert (made.a, made.b, made.c) == (2, 21, 23)


def test_an_init_property_is_copied_not_computed_again() -> None:
    import copy
    import pickle

    made = Counted(3)
    before = Counted.runs
    assert copy.copy(made).double == 6
    assert copy.deepcopy(made).double == 6
    assert made.__replace__(x=5).double == 6
    assert pickle.loads(pickle.dumps(made)).double == 6
    assert Counted.runs == before


@py_class("tests.field.Counted")
class Counted(tvm_ffi.Object):
    """Pickled by name."""

    x: int
    runs = 0

    @init_property
    def double(self) -> int:
        Counted.runs += 1
        return 2 * self.x


def test_a_wrong_init_property_says_what_is_wrong() -> None:
    @py_class(fresh_key())
    class Wrong(tvm_ffi.Object):
        @init_property
        def a(self) -> int:
            return "text"

    with pytest.raises(TypeError, match="^field `a` of `.*`: expected int, got str$"):
        Wrong()


def test_an_init_property_may_hold_an_object_of_its_own_class() -> None:
    @py_class(fresh_key())
    class Tree(tvm_ffi.Object):
        depth: int

        @init_property
        def child(self) -> Tree | None:
            return Tree(self.depth - 1) if self.depth else None

    assert Tree(2).child.child.child is None


def test_an_init_property_reads_as_itself_before_decoration() -> None:
    class Plain:
        @init_property
        def a(self) -> int:
            return 1

    assert isinstance(Plain.a, init_property)
    assert (Plain.a.name, Plain.a._return_annotation) == ("a", "int")
    assert Plain.__annotations__ == {"a": "int"}


def test_metadata_is_copied() -> None:
    given = {"a": [1]}
    spec = field(metadata=given)
    assert spec.metadata == given and spec.metadata is not given
    assert field().metadata == {}
    again = copy.copy(spec)
    assert again.metadata == given and again.metadata is not spec.metadata
    assert again.metadata["a"] is given["a"]


def test_hooks_take_the_options_of_fields() -> None:
    seen: list[Any] = []

    def resolve(info: Any, fields: list[Any]) -> None:
        seen.append((info.type_key, [f.name for f in fields], info.fields))
        for own in fields:
            unit = own.extra_kwargs.pop("unit", None)
            if unit is not None:
                own.doc = f"in {unit}"

    resolve.__ffi_on_fields_resolved__ = True  # type: ignore[attr-defined]

    class Base:
        hook = staticmethod(resolve)

    @py_class("test_field.Measured")
    class Measured(Base, tvm_ffi.Object):
        length: float = field(unit="m")

    @py_class("test_field.Named")
    class Named(Measured):
        name: str

    assert [(key, names) for key, names, _ in seen] == [
        ("test_field.Measured", ["length"]),
        ("test_field.Named", ["name"]),
    ]
    assert not any(fields for _, _, fields in seen)
    assert Measured.__tvm_ffi_type_info__.fields[0].doc == "in m"
    with pytest.raises(TypeError, match="Wrong.x: unrecognized field options: a, b"):

        @py_class("test_field.Wrong")
        class Wrong(tvm_ffi.Object):
            x: int = field(b=2, a=1)
