# SPDX-License-Identifier: Apache-2.0
"""Python classes of types that C++ defines."""

from __future__ import annotations

import inspect
import warnings
from typing import Any, ClassVar

import pytest
import tvm_ffi
from tvm_ffi import core, testing
from tvm_ffi.dataclasses import MISSING, Field, c_class, field, fields, is_dataclass
from tvm_ffi.dataclasses.c_class import _attach_field_objects

Derived = testing._TestCxxClassDerived


@pytest.fixture(autouse=True)
def give_types_back() -> Any:
    """Registering a class replaces the one of the type; the next test wants it back."""
    keys = [
        "testing.TestCxxKwOnly",
        "testing.TestCxxClassBase",
        "testing.TestCxxClassDerived",
        "testing.TestObjectBase",
        "testing.TestNonCopyable",
        "testing.TestFrozenCxx",
    ]
    infos = [core._lookup_or_register_type_info_from_type_key(key) for key in keys]
    yield
    for info in infos:
        core._restore_info(info, type("Unused", (), {}))


def test_a_custom_init_is_kept() -> None:
    made = testing._TestCxxClassBase(v_i64=123, v_i32=456)
    assert (made.v_i64, made.v_i32) == (124, 458)
    assert made.not_field_1 == 1
    assert testing._TestCxxClassBase.not_field_2 == 2


def test_defaults_come_from_cxx() -> None:
    made = Derived(1, 2, 3.0)
    assert (made.v_i64, made.v_i32, made.v_f64, made.v_f32) == (1, 2, 3.0, 8.0)
    deeper = testing._TestCxxClassDerivedDerived(1, 2, 3.0, True)
    assert (deeper.v_f32, deeper.v_str, deeper.v_bool) == (8.0, "default", True)
    assert testing._TestCxxInitSubset(5).note == "default"


def test_comparison_order_and_hash() -> None:
    a, b = Derived(1, 2, 3.0), Derived(1, 2, 4.0)
    assert a == Derived(1, 2, 3.0)
    assert a != b
    assert (a < b, a <= b, a > b, a >= b) == (True, True, False, False)
    assert hash(a) == hash(Derived(1, 2, 3.0))
    assert len({a, b, Derived(1, 2, 3.0)}) == 2
    assert {a: "found"}[Derived(1, 2, 3.0)] == "found"
    for other in ("text", 1, 2.5, None):
        assert (a == other) is False
        assert (a != other) is True
        with pytest.raises(TypeError):
            a < other  # noqa: B015
    deeper = testing._TestCxxClassDerivedDerived(1, 2, 3.0, True)
    assert (a == deeper) is False
    with pytest.raises(TypeError, match="Cannot compare values of different types"):
        a < deeper  # noqa: B015


@pytest.mark.parametrize(
    ("cls", "names"),
    [
        (testing._TestCxxKwOnly, ["*x", "*y", "*z", "*w="]),
        (testing._TestCxxAutoInit, ["a", "d=", "*c"]),
        (testing._TestCxxAutoInitAllInitOff, []),
        (
            testing._TestCxxAutoInitKwOnlyDefaults,
            ["p_required", "p_default=", "*k_required", "*k_default="],
        ),
        (
            testing._TestCxxAutoInitChild,
            ["parent_required", "child_required", "parent_default=", "*child_kw_only"],
        ),
        (testing.TestObjectDerived, ["v_map", "v_array", "v_i64=", "v_f64=", "v_str="]),
        (testing.TestObjectPtrHolder, ["value", "optional_value="]),
        (testing.TestIntPair, ["a", "b"]),
        (testing._TestCxxInitSubset, ["required_field"]),
        (testing._TestCxxEnumHolder, ["priority", "opcode"]),
    ],
)
def test_signatures(cls: Any, names: list[str]) -> None:
    shown = []
    for p in list(inspect.signature(cls.__init__).parameters.values())[1:]:
        star = "*" if p.kind is p.KEYWORD_ONLY else ""
        shown.append(f"{star}{p.name}{'=' if p.default is not p.empty else ''}")
        assert p.default in (p.empty, MISSING)
    assert shown == names


def test_keyword_only_fields_refuse_positions() -> None:
    with pytest.raises(TypeError, match="positional"):
        testing._TestCxxKwOnly(1, 2, 3, 4)
    assert testing._TestCxxKwOnly(x=1, y=2, z=3).w == 100


def test_keywords_with_an_explicit_cxx_constructor() -> None:
    assert testing.TestIntPair(b=1, a=2).a == 2
    assert testing.TestIntPair(1, b=2).b == 2
    with pytest.raises(TypeError, match=r"testing.TestIntPair.* multiple values for argument 'a'"):
        testing.TestIntPair(1, a=2)
    with pytest.raises(TypeError, match=r"testing.TestIntPair.*unexpected keyword argument 'q'"):
        testing.TestIntPair(1, q=2)
    with pytest.raises(TypeError, match=r"testing.TestIntPair.*missing required argument: 'a'"):
        testing.TestIntPair(b=2)


def test_hidden_fields_are_reset_by_the_raw_constructor() -> None:
    made = testing._TestCxxAutoInit(1, c=3)
    made.b = 999
    before = made.__chandle__()
    made.__ffi_init__(1, c=3)
    assert made.b == 42
    assert made.__chandle__() != before
    other = testing._TestCxxAutoInitAllInitOff()
    assert (other.x, other.y, other.z) == (7, 9, 1234)
    other.z = 9999
    other.__ffi_init__()
    assert other.z == 1234


@pytest.mark.parametrize("cls", [testing.TestIntPair, testing.TestCompare, testing.TestHash])
def test_an_explicit_constructor_is_a_method_and_an_attribute(cls: Any) -> None:
    info = cls.__tvm_ffi_type_info__
    found = [m for m in info.methods if m.name == "__ffi_init__"]
    assert len(found) == 1
    values = [1, "n", 2][: len(info.fields)] if cls is not testing.TestIntPair else [1, 2]
    by_method = found[0].func(*values)
    by_attribute = core._lookup_type_attr(info.type_index, "__ffi_init__")
    assert tvm_ffi._ffi_api.RecursiveEq(by_method, cls(*values))
    if by_attribute is not None:
        assert tvm_ffi._ffi_api.RecursiveEq(by_attribute(*values), by_method)


def test_a_generated_constructor_is_an_attribute_only() -> None:
    info = testing._TestCxxAutoInit.__tvm_ffi_type_info__
    assert [m.name for m in info.methods] == []
    assert core._lookup_type_attr(info.type_index, "__ffi_init__") is not None
    assert hasattr(testing._TestCxxAutoInit, "__ffi_init__")


def test_the_keyword_protocol() -> None:
    index = testing._TestCxxAutoInit.__tvm_ffi_type_info__.type_index
    init = core._lookup_type_attr(index, "__ffi_init__")
    assert init(1, core.KWARGS, "c", 3).c == 3
    for args, message in [
        ((1, core.KWARGS, "c"), "even number"),
        ((1, core.KWARGS, "c", 1, "c", 2), "multiple values"),
        ((1, core.KWARGS, "q", 1), "unexpected keyword"),
        ((1, core.KWARGS, "", 1), "unexpected keyword"),
        ((1, 2, 3, 4), "positional"),
        ((1, core.KWARGS), "missing required"),
    ]:
        with pytest.raises(TypeError, match=message):
            init(*args)
    with pytest.raises(TypeError):
        init(1, core.KWARGS, 5, 1)


def test_a_type_without_constructor() -> None:
    for cls in (testing._TestCxxNoAutoInit, testing.TestFrozenCxx):
        with pytest.raises(TypeError, match="cannot be constructed directly"):
            cls(1, 2)
    index = testing._TestCxxNoAutoInit.__tvm_ffi_type_info__.type_index
    assert core._lookup_type_attr(index, "__ffi_shallow_copy__") is not None
    assert core._lookup_type_attr(index, "__ffi_init__") is None


# ---- Field objects ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cls",
    [
        testing._TestCxxClassBase,
        Derived,
        testing.TestCompare,
        testing.TestHash,
        testing._TestCxxKwOnly,
        testing._TestCxxAutoInitAllInitOff,
        testing.TestObjectBase,
    ],
)
def test_fields_mirror_the_type_table(cls: Any) -> None:
    own = cls.__tvm_ffi_type_info__.fields
    described = fields(cls)[-len(own) :]
    for record, spec in zip(own, described, strict=True):
        assert isinstance(spec, Field)
        assert spec is record.dataclass_field
        assert spec.name == record.name
        assert spec._ty_schema is record.ty
        assert spec.default is record.c_default or spec.default == record.c_default
        assert spec.default_factory is record.c_default_factory
        for name in ("init", "repr", "hash", "compare", "kw_only", "structural_eq"):
            assert getattr(spec, name) == getattr(record, f"c_{name}")
        assert spec.frozen == record.frozen
        assert spec.doc == record.doc
        assert spec.structural_eq is None


def test_facts_about_fields() -> None:
    def spec(cls: Any, name: str) -> Field:
        return next(f for f in fields(cls) if f.name == name)

    assert spec(testing._TestCxxClassBase, "v_i64").repr is False
    assert spec(testing.TestCompare, "ignored_field").compare is False
    assert spec(testing.TestHash, "hash_ignored").hash is False
    assert spec(testing.TestObjectBase, "v_f64").frozen is True
    assert spec(testing.TestObjectBase, "v_i64").doc == "i64 field"
    assert spec(testing.TestObjectBase, "v_i64").type is int
    record = testing._TestCxxAutoInitAllInitOff.__tvm_ffi_type_info__.fields[2]
    assert (record.name, record.c_has_default) == ("z", False)


def test_attaching_again_replaces_the_objects() -> None:
    before = fields(testing.TestCompare)
    _attach_field_objects(testing.TestCompare, testing.TestCompare.__tvm_ffi_type_info__)
    after = fields(testing.TestCompare)
    assert [f.name for f in before] == [f.name for f in after]
    assert all(a is not b for a, b in zip(before, after, strict=True))


def test_hints_that_cannot_be_evaluated_give_no_type() -> None:
    @c_class("testing.TestCxxKwOnly")
    class Strange(tvm_ffi.Object):
        x: NoSuchName  # noqa: F821
        y: int
        z: int
        w: int

    assert [f.type for f in fields(Strange)] == [None] * 4


# ---- the decorator ------------------------------------------------------------------------------


def test_missing_annotations_are_warned_about() -> None:
    with pytest.warns(UserWarning, match="does not annotate") as caught:

        @c_class("testing.TestCxxClassDerived")
        class Partly(testing._TestCxxClassBase):
            v_f32: float

    text = str(caught[0].message)
    assert "v_f64" in text
    for annotated in ("v_f32", "v_i64", "v_i32"):
        assert f"{annotated}." not in text
        assert f"{annotated}," not in text


def test_annotations_of_a_parent_do_not_count() -> None:
    class Mixin(testing._TestCxxClassBase):
        v_f64: float

    with pytest.warns(UserWarning, match="v_f64"):

        @c_class("testing.TestCxxClassDerived")
        class Child(Mixin):
            v_f32: float


def test_complete_annotations_give_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        @c_class("testing.TestCxxClassDerived")
        class Complete(testing._TestCxxClassBase):
            v_f64: float
            v_f32: float = field(default=8.0)

    assert isinstance(vars(Complete)["v_f32"], property)


def test_an_unknown_type_is_refused() -> None:
    with pytest.raises(ValueError, match="Cannot find object type index for tests.no.such.type"):

        @c_class("tests.no.such.type")
        class Nothing(tvm_ffi.Object):
            pass


def test_what_the_body_defines_wins() -> None:
    @c_class("testing.TestObjectBase", eq=True, unsafe_hash=True)
    class Mine(tvm_ffi.Object):  # noqa: PLW1641
        v_i64: int
        v_f64: float
        v_str: str
        constant: ClassVar[int] = 5

        def add_i64(self, x: int) -> str:
            return f"mine {x}"

        def __eq__(self, other: object) -> bool:
            return True

        def __repr__(self) -> str:
            return "mine"

    made = Mine()
    assert made.add_i64(3) == "mine 3"
    assert (made == 3, repr(made)) == (True, "mine")
    assert Mine.__hash__ is None
    assert is_dataclass(Mine)


def test_order_without_eq_is_accepted() -> None:
    @c_class("testing.TestObjectBase", order=True)
    class Ordered(tvm_ffi.Object):
        v_i64: int
        v_f64: float
        v_str: str

    assert Ordered(1) < Ordered(2)


def test_frozen_freezes_own_fields_only() -> None:
    @c_class("testing.TestCxxClassDerived", frozen=True)
    class Frozen(testing._TestCxxClassBase):
        v_f64: float
        v_f32: float

    made = Frozen(1, 2, 3.0)
    with pytest.raises(AttributeError):
        made.v_f64 = 4.0
    made.v_i64 = 9
    assert made.v_i64 == 9
    assert Frozen.v_f64.fset is None
    Frozen.v_f64.set(made, 5.0)
    assert made.v_f64 == 5.0
    assert [f.frozen for f in fields(Frozen)] == [False, False, True, True]


def test_hooks_of_the_type_become_attributes() -> None:
    own = vars(testing.TestCustomCompare)
    for name in ("__ffi_hash__", "__ffi_eq__", "__ffi_compare__"):
        assert callable(own[name])
    assert "__ffi_hash__" not in vars(testing.TestEqWithoutHash)
    assert "__ffi_repr__" not in own


def test_super_init_is_refused() -> None:
    class Sub(Derived):
        def __init__(self) -> None:
            super().__init__(1, 2, 3.0)

    assert Sub().v_f64 == 3.0  # the same type: the constructor fits

    @c_class("testing.TestCxxClassDerivedDerived")
    class Deeper(Derived):
        v_str: str
        v_bool: bool

        def __init__(self) -> None:
            super().__init__(1, 2, 3.0)

    with pytest.raises(
        TypeError, match=r"Calling `super\(\).__init__\(\)` is not supported for @c_class"
    ):
        Deeper()


def test_objects_of_a_class_that_is_no_wrapper_are_safe() -> None:
    schema = testing._SchemaAllTypes.make_with(3, 2.5, "text")
    assert schema.v_int == 3
    assert schema.v_string == "text"
    assert isinstance(schema, tvm_ffi.Object)
    assert not isinstance(schema, testing._SchemaAllTypes)
    assert not hasattr(testing._SchemaAllTypes(), "__chandle__")
