# SPDX-License-Identifier: Apache-2.0
"""Enums: one object per member, shared with C++."""

from __future__ import annotations

import copy
import gc
import json
import pickle
import weakref
from typing import Any, ClassVar

import pytest
import tvm_ffi
from support import fresh_key, run_python
from tvm_ffi import _ffi_api, core, testing
from tvm_ffi.dataclasses import (
    Enum,
    EnumAttrMap,
    EnumState,
    IntEnum,
    StrEnum,
    auto,
    entry,
    fields,
    py_class,
)
from tvm_ffi.dataclasses.enum import ENUM_STATE_ATTR, _EnumEntry, _Member


class Color(Enum, type_key="tests.enum.Color"):
    """Members without fields."""

    red = entry()
    green = auto()
    blue: ClassVar[Color] = entry()


class Planet(Enum, type_key="tests.enum.Planet"):
    """Members with fields."""

    radius: float
    moons: int = 0

    mars = entry(radius=3389.5, moons=2)
    venus = entry(radius=6051.8)


class Priority(IntEnum, type_key="tests.enum.Priority"):
    """Members that stand for integers."""

    low = 10
    high = 20
    urgent = 20
    negative = entry(value=-1)


class Opcode(StrEnum, type_key="tests.enum.Opcode"):
    """Members that stand for strings."""

    arity: int

    add = entry(value="+", arity=2)
    neg = entry(value="-", arity=1)


# ---- declaration --------------------------------------------------------------------------------


def test_entries_are_declarations() -> None:
    assert repr(entry(1, k=2)) == "entry(1, k=2)"
    assert repr(auto()) == "entry()"
    assert entry() is not entry()
    assert isinstance(auto(), _EnumEntry)
    assert (entry(1, k=2).args, entry(1, k=2).kwargs) == ((1,), {"k": 2})


def test_members_have_both_indices() -> None:
    assert [(m._int_index, str(m._str_index)) for m in Color] == [
        (0, "red"),
        (1, "green"),
        (2, "blue"),
    ]
    assert [(m._int_index, str(m._str_index)) for m in Priority] == [
        (10, "low"),
        (20, "high"),
        (-1, "negative"),
    ]
    assert [(m._int_index, str(m._str_index)) for m in Opcode] == [(0, "+"), (1, "-")]
    assert Priority.urgent is Priority.high
    assert Planet.mars.radius == 3389.5
    assert (Planet.mars.moons, Planet.venus.moons) == (2, 0)
    assert Opcode.neg.arity == 1


def test_fields_of_an_enum() -> None:
    assert [f.name for f in fields(Opcode)] == ["_int_index", "_str_index", "value", "arity"]
    assert [f.name for f in fields(Planet)] == ["_int_index", "_str_index", "radius", "moons"]
    assert [f.name for f in fields(EnumState)] == ["entries", "indexes", "attrs"]


def test_a_class_without_key_is_abstract() -> None:
    class Base(IntEnum):
        def doubled(self) -> int:
            return 2 * self.value

    assert list(Base) == []
    assert len(Base) == 0

    class Real(Base, type_key="tests.enum.Real"):
        one = 1

    info = Real.__tvm_ffi_type_info__
    assert info.parent_type_info.type_key == "ffi.IntEnum"
    assert Real.one.doubled() == 2
    assert copy.deepcopy(Real.one) is Real.one


def test_binders_make_or_find_members() -> None:
    class Bound(Enum, type_key="tests.enum.Bound"):
        first: ClassVar[Bound]
        second: ClassVar[Bound]
        third = entry()

    assert [str(m._str_index) for m in Bound] == ["first", "second", "third"]
    assert Bound.first is Bound.get("first")


def test_methods_and_private_names_are_no_members() -> None:
    class Rich(StrEnum, type_key="tests.enum.Rich"):
        _private = "no"
        a = "A"

        @property
        def lower(self) -> str:
            return str(self.value).lower()

        @staticmethod
        def helper() -> int:
            return 1

        @classmethod
        def all(cls) -> list[Any]:
            return list(cls)

        def method(self) -> str:
            return self.value

    assert [m.value for m in Rich] == ["A"]
    assert (Rich.a.lower, Rich.helper(), Rich.all(), Rich.a.method()) == ("a", 1, [Rich.a], "A")


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (
            lambda k: type(IntEnum)(
                "E", (IntEnum,), {"__annotations__": {"a": "ClassVar[E]"}}, type_key=k
            ),
            TypeError,
            "E.a requires an integer value",
        ),
        (
            lambda k: type(IntEnum)("E", (IntEnum,), {"a": entry()}, type_key=k),
            TypeError,
            "E.a requires a int value",
        ),
        (
            lambda k: type(StrEnum)("E", (StrEnum,), {"a": entry()}, type_key=k),
            TypeError,
            "E.a requires a str value",
        ),
        (
            lambda k: type(IntEnum)("E", (IntEnum,), {"a": "x"}, type_key=k),
            TypeError,
            "E.a value must be int",
        ),
        (
            lambda k: type(IntEnum)("E", (IntEnum,), {"a": True}, type_key=k),
            TypeError,
            "E.a value must be int",
        ),
        (
            lambda k: type(StrEnum)("E", (StrEnum,), {"a": 1}, type_key=k),
            TypeError,
            "E.a value must be str",
        ),
        (
            lambda k: type(IntEnum)("E", (IntEnum,), {"a": 2**63}, type_key=k),
            OverflowError,
            f"enum integer index {2**63} is outside int64",
        ),
        (
            lambda k: type(Enum)("E", (Enum,), {"a": entry(_int_index=3)}, type_key=k),
            TypeError,
            "E.a: enum indices are inferred",
        ),
        (
            lambda k: type(Enum)("E", (Enum,), {"a": entry(unknown=3)}, type_key=k),
            TypeError,
            "E.a: invalid enum entry: .*unexpected keyword",
        ),
        (
            lambda k: type(Enum)("E", (Enum,), {"a": entry(3)}, type_key=k),
            TypeError,
            "E.a: invalid enum entry: .*multiple values",
        ),
        (
            lambda k: type(IntEnum)("E", (IntEnum,), {"value": 3}, type_key=k),
            TypeError,
            "IntEnum reserves `value` as its canonical index alias",
        ),
        (
            lambda k: type(StrEnum)(
                "E", (StrEnum,), {"__annotations__": {"value": "str"}}, type_key=k
            ),
            TypeError,
            "StrEnum reserves `value` as its canonical index alias",
        ),
    ],
)
def test_wrong_declarations(make: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        make(fresh_key())


def test_two_members_may_not_share_an_index() -> None:
    made: Any = type(Enum)("E", (Enum,), {"a": entry()}, type_key=fresh_key())
    state = core._lookup_type_attr(made.__tvm_ffi_type_info__.type_index, ENUM_STATE_ATTR)
    state.indexes[1] = made.a  # as if C++ had used the number the next member would get
    with pytest.raises(ValueError, match="duplicate enum index in E.b"):
        _Member(made, None, "b", entry()).bind()


def test_a_failed_enum_does_not_make_its_key_a_cxx_type() -> None:
    key = fresh_key()
    with pytest.raises(TypeError):
        type(IntEnum)("E", (IntEnum,), {"a": "x"}, type_key=key)
    again: Any = type(IntEnum)("E", (IntEnum,), {"a": 1}, type_key=key)
    assert again.a.value == 1


# ---- C++-backed ---------------------------------------------------------------------------------


def test_members_made_by_cxx_are_bound() -> None:
    class Variant(Enum, type_key="testing.TestEnumVariant"):
        Alpha: ClassVar[Variant]
        Beta: ClassVar[Variant]

    assert Variant.Alpha is testing.enum_variant_get("Alpha")
    codes = Variant.attr_dict["code"]
    assert (codes[Variant.Alpha], codes[Variant.Beta]) == (10, 20)
    assert Variant.def_attr("code")[Variant.Beta] == 20
    with pytest.raises(ValueError):
        testing.enum_variant_get("missing")
    with pytest.raises(RuntimeError, match="'testing.TestEnumVariant' has no enum at string index"):

        class Broken(Enum, type_key="testing.TestEnumVariant"):
            Gamma: ClassVar[Broken]

    assert type(Variant.get("Alpha")) is Variant
    index = Variant.__tvm_ffi_type_info__.type_index
    assert core._type_index_to_type_info(index).type_cls is Variant


def test_members_of_cxx_types_can_come_from_python() -> None:
    assert testing._TestCxxIntEnum.low.value == 10
    assert testing._TestCxxStrEnum("*") is testing._TestCxxStrEnum.mul
    with pytest.raises(TypeError, match="C\\+\\+-backed enum entries require keyword fields"):
        type(IntEnum)("E", (IntEnum,), {"a": entry(3, value=99)}, type_key="testing.TestCxxIntEnum")
    with pytest.raises(TypeError, match="field 'size' has no reflected setter"):
        type(IntEnum)(
            "E", (IntEnum,), {"a": entry(value=99, size=1)}, type_key="testing.TestCxxIntEnum"
        )
    assert type(testing._TestCxxIntEnum.get(10)) is testing._TestCxxIntEnum


def test_enum_objects_arrive_before_the_module_is_loaded() -> None:
    code = (
        "import tvm_ffi, sys\n"
        "assert 'tvm_ffi.dataclasses' not in sys.modules\n"
        "m = tvm_ffi.get_global_func('testing.enum_variant_get')('Alpha')\n"
        "from tvm_ffi.dataclasses import Enum\n"
        "print(isinstance(m, Enum), m)"
    )
    assert run_python(code) == "True testing.TestEnumVariant.Alpha\n"


# ---- lookup -------------------------------------------------------------------------------------


def test_members_are_found_by_both_indices() -> None:
    assert Color("red") is Color.red
    assert Color(1) is Color.green
    assert Color(Color.blue) is Color.blue
    assert Color(True) is Color.green
    assert Priority(20) is Priority.high
    assert Priority("low") is Priority.low
    assert Opcode.get(0) is Opcode.add
    assert Opcode("+") is Opcode.add
    assert Color.get("green") is Color.green
    assert list(Color) == list(Color.all_entries()) == [Color.red, Color.green, Color.blue]
    assert len(Color) == 3
    assert bool(Color)


def test_lookup_errors() -> None:
    with pytest.raises(ValueError, match="'mauve' is not a valid Color"):
        Color("mauve")
    with pytest.raises(ValueError, match="99 is not a valid Color"):
        Color(99)
    with pytest.raises(KeyError, match="mauve"):
        Color.get("mauve")
    with pytest.raises(ValueError, match="'add' is not a valid Opcode"):
        Opcode("add")
    for look in (Color, Color.get):
        with pytest.raises(OverflowError):
            look(2**63)
    with pytest.raises(TypeError, match="enum index must be int or str, got float"):
        Color.get(1.5)
    with pytest.raises(TypeError):
        Color(1.5)
    with pytest.raises(TypeError, match="cannot be constructed directly"):
        Enum()
    with pytest.raises(ValueError):
        Enum(3)


# ---- members ------------------------------------------------------------------------------------


def test_plain_members() -> None:
    assert repr(Color.red) == str(Color.red) == "tests.enum.Color.red"
    assert Color.red == Color.red
    assert Color.red != Color.green
    assert Color.red != "red"
    assert not hasattr(Color.red, "name")
    assert not hasattr(Color.red, "value")
    assert hash(Color.red) == hash(Color.get("red"))


def test_payload_members() -> None:
    assert (Priority.high.name, Priority.high.value) == ("high", 20)
    assert (Priority.high == 20, 20 == Priority.high, Priority.high != 21) == (True, True, True)
    assert Priority.high != Priority.low
    assert hash(Priority.high) == hash(20)
    assert {20: "found"}[Priority.high] == "found"
    assert (str(Priority.high), repr(Priority.high)) == ("20", "Priority.high")
    assert Opcode.add == "+"
    assert Opcode.add != "-"
    assert str(Opcode.add) == "+"
    assert (Priority.high == "20") is False
    with pytest.raises(TypeError):
        Priority.low < Priority.high  # noqa: B015
    assert _ffi_api.ReprPrint(Priority.high) == "tests.enum.Priority.high"
    assert str(tvm_ffi.Array([Opcode.add])) == "(tests.enum.Opcode.+,)"


def test_the_body_may_define_its_own_behaviour() -> None:
    class Loud(IntEnum, type_key="tests.enum.Loud"):
        a = 1

        def __repr__(self) -> str:
            return "LOUD"

        def __str__(self) -> str:
            return "loud"

        @property
        def name(self) -> str:
            return "named"

    assert (repr(Loud.a), str(Loud.a), Loud.a.name) == ("LOUD", "loud", "named")


def test_members_are_frozen_unless_asked_otherwise() -> None:
    with pytest.raises(AttributeError):
        Planet.mars.radius = 1.0
    with pytest.raises(AttributeError):
        Color.red._int_index = 5

    class Open(Enum, type_key="tests.enum.Open", frozen=False):
        x: int
        a = entry(x=1)

    Open.a.x = 5
    assert Open.get("a").x == 5


def test_extra_keywords_go_to_init_subclass() -> None:
    class Base(Enum):
        def __init_subclass__(cls, note: str = "", **kwargs: Any) -> None:
            super().__init_subclass__(**kwargs)
            cls.note = note

    class Noted(Base, type_key="tests.enum.Noted", note="hello"):
        a = entry()

    assert Noted.note == "hello"
    assert Noted.a is Noted("a")


# ---- identity -----------------------------------------------------------------------------------


@py_class("tests.enum.Holder")
class Holder(tvm_ffi.Object):
    """Members in fields."""

    color: Color
    priority: Priority
    opcode: Opcode
    maybe: Priority | None = None


@pytest.mark.parametrize("member", [Color.red, Planet.mars, Priority.low, Opcode.add])
def test_there_is_one_object_per_member(member: Any) -> None:
    assert tvm_ffi.Array([member])[0] is member
    assert testing.echo(member) is member
    assert copy.deepcopy(member) is member
    assert _ffi_api.DeepCopy(tvm_ffi.Array([member]))[0] is member
    text = _ffi_api.ToJSONGraphString(tvm_ffi.Array([member]), None)
    assert _ffi_api.FromJSONGraphString(text)[0] is member
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(member, protocol)) is member
        assert pickle.loads(pickle.dumps(tvm_ffi.Array([member]), protocol))[0] is member
    assert tvm_ffi.structural_equal(member, member)


@pytest.mark.parametrize("member", [Priority.low, Opcode.add])
def test_a_shallow_copy_of_a_member_with_a_value_is_the_member(member: Any) -> None:
    assert copy.copy(member) is member
    assert copy.copy(Holder(Color.red, Priority.low, Opcode.add)).priority is Priority.low
    with pytest.raises(TypeError, match="is a member of an enum and cannot be replaced"):
        member.__replace__(value=member.value)


@pytest.mark.parametrize("member", [Color.red, Planet.mars])
def test_a_shallow_copy_of_a_plain_member_is_no_member(member: Any) -> None:
    """Clients rely on it: a plain member may be copied and changed."""
    other = copy.copy(member)
    assert other is not member
    assert not tvm_ffi.structural_equal(other, member)


def test_a_member_in_json_is_its_index() -> None:
    for member, data in ((Color.red, "red"), (Priority.high, 20), (Opcode.add, "+")):
        nodes = json.loads(_ffi_api.ToJSONGraphString(member, None))["nodes"]
        assert data in [node.get("data") for node in nodes]


def test_members_keep_identity_and_state_without_python_references() -> None:
    class Stateful(Enum, type_key="tests.enum.Stateful"):
        __slots__ = ("__dict__",)
        a = entry()

    Stateful.a.note = "kept"
    before = id(Stateful.a)
    watch = weakref.ref(Stateful.a)
    state = core._lookup_type_attr(Stateful.__tvm_ffi_type_info__.type_index, ENUM_STATE_ATTR)
    type.__delattr__(Stateful, "a")
    gc.collect()
    assert watch() is not None
    assert id(Stateful.get("a")) == before
    assert Stateful.get("a").note == "kept"
    assert state.entries[0] is Stateful.get(0)


# ---- payloads in fields -------------------------------------------------------------------------


def test_payloads_stand_for_members_in_fields() -> None:
    made = Holder(Color.red, 20, "+")
    assert made.priority is Priority.high
    assert made.opcode is Opcode.add
    made.priority = 10
    assert made.priority is Priority.low
    type(made).opcode.set(made, "-")
    assert made.opcode is Opcode.neg
    made.maybe = 20
    assert made.maybe is Priority.high
    made = Holder(color=Color.red, priority=10, opcode="-")
    assert made.opcode is Opcode.neg
    cxx = testing._TestCxxEnumHolder(priority=20, opcode="*")
    assert cxx.priority is testing._TestCxxIntEnum.high
    cxx.opcode = "+"
    assert cxx.opcode is testing._TestCxxStrEnum.add


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (("red", 20, "+"), "expected tests.enum.Color, got str"),
        ((Color.red, 99, "+"), "expected tests.enum.Priority, got int"),
        ((Color.red, "low", "+"), "expected tests.enum.Priority, got str"),
        ((Color.red, 20, 0), "tests.enum.Opcode: expected .*, got int"),
        ((Color.red, 2**63, "+"), "int64 range"),
    ],
)
def test_unknown_payloads_are_refused(values: tuple[Any, ...], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        Holder(*values)
    made = Holder(Color.red, 20, "+")
    for name, value in zip(("color", "priority", "opcode"), values, strict=True):
        try:
            setattr(made, name, value)
        except TypeError as error:
            assert "expected" in str(error) or "int64 range" in str(error)
    assert made.priority is Priority.high


# ---- attributes ---------------------------------------------------------------------------------


def test_attributes_of_members() -> None:
    class Op(Enum, type_key="tests.enum.Op"):
        add = entry()
        mul = entry()

    assert len(Op.attr_dict) == 0
    cost = Op.def_attr("cost")
    assert isinstance(cost, EnumAttrMap)
    assert cost.name == "cost"
    assert Op.add not in cost
    with pytest.raises(KeyError, match="has no extensible attribute 'cost'"):
        cost[Op.add]
    cost[Op.add] = 3
    cost[Op.mul] = None
    assert (cost[Op.add], cost[Op.mul]) == (3, None)
    assert Op.mul in cost
    assert cost.get(Op.mul, 5) is None
    assert Op.attr_dict["cost"][Op.add] == 3
    assert EnumAttrMap(Op, "cost")[Op.add] == 3
    default = Op.def_attr("other", default=7)
    assert default[Op.add] == 7
    assert Op.add not in default
    assert default.get(Op.add) is None
    for action in (lambda: cost[Color.red], lambda: cost.__setitem__(Color.red, 1)):
        with pytest.raises(TypeError, match="expected Op, got Color"):
            action()
    assert Color.red not in cost


def test_nothing_else_is_stored_beside_the_state() -> None:
    index = Color.__tvm_ffi_type_info__.type_index
    assert isinstance(core._lookup_type_attr(index, ENUM_STATE_ATTR), EnumState)
    for name in (
        "__ffi_enum_entries__",
        "__ffi_enum_index_entries__",
        "__ffi_enum_attrs__",
        "__ffi_enum_value_entries__",
        "__ffi_enum_data_from_json_factory__",
    ):
        assert core._lookup_type_attr(index, name) is None
    state = EnumState()
    assert (list(state.entries), len(state.indexes), len(state.attrs)) == ([], 0, 0)
