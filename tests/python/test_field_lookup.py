# SPDX-License-Identifier: Apache-2.0
"""What a name means to a class is remembered, and forgotten as soon as it means something else."""

from __future__ import annotations

import functools
import gc
from typing import Any

import pytest
import tvm_ffi
from support import fresh_key
from tvm_ffi import core, testing
from tvm_ffi.dataclasses import py_class


def make_class(frozen: bool = False, **members: Any) -> Any:
    """Register a fresh class, whose field `v1` is known by the time it is returned."""
    namespace = {"__annotations__": {"v1": int}, **members}
    cls = py_class(fresh_key(), frozen=frozen)(
        type(core.Object)("Made", (tvm_ffi.Object,), namespace)
    )
    made = cls(1)
    for value in () if frozen else (2, 3):
        made.v1 = value
        assert made.v1 == value
    return cls


def test_a_property_that_is_its_own_getter_has_no_name() -> None:
    own, first, second = (core.FFIProperty(None, None, True) for _ in range(3))
    own.__init__(own, own, False, own, own)
    first.__init__(second, None, True)
    second.__init__(first, None, True)
    for prop in (own, first, second):
        with pytest.raises(RecursionError):
            prop.__name__  # noqa: B018
        assert "FFIProperty" in repr(prop)
    pair = testing.TestIntPair(1, 2)
    for access in (own.__get__, lambda obj: own.__set__(obj, 1), lambda obj: own.set(obj, 1)):
        with pytest.raises(TypeError, match="not callable"):
            access(pair)


def test_a_setter_that_changes_its_property() -> None:
    seen = []

    def setter(note: list[str], obj: Any, value: int) -> None:
        prop.__init__(None, None, True)  # nobody else has the setter, nor the note
        gc.collect()
        seen.append((note, value))

    prop = core.FFIProperty(None, functools.partial(setter, ["note"]), False)
    pair = testing.TestIntPair(1, 2)
    prop.set(pair, 3)
    assert seen == [(["note"], 3)]
    with pytest.raises(AttributeError, match="no setter"):
        prop.set(pair, 4)


def test_a_field_that_is_replaced() -> None:
    cls = make_class()
    made, field = cls(7), cls.__dict__["v1"]
    cls.v1 = property(lambda self: "other")
    assert made.v1 == "other"
    with pytest.raises(AttributeError):
        made.v1 = 8
    cls.v1 = field
    assert made.v1 == 7
    made.v1 = 8
    assert made.v1 == 8


def test_a_field_that_is_deleted() -> None:
    cls = make_class()
    made = cls(7)
    del cls.v1
    with pytest.raises(AttributeError):
        _ = made.v1
    with pytest.raises(AttributeError):
        made.v1 = 8


def test_a_property_with_another_field(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (testing.TestIntPair.__dict__[name] for name in "ab")
    prop = core.FFIProperty(first.fget, None, True)
    monkeypatch.setattr(testing.TestIntPair, "swapped", prop, raising=False)
    made = testing.TestIntPair(5, 6)
    assert [made.swapped, made.swapped] == [5, 5]
    prop.__init__(second.fget, None, True)
    assert [made.swapped, made.swapped] == [6, 6]


def test_getattr_and_setattr_that_come_later() -> None:
    cls = make_class()
    made = cls(7)
    cls.__getattr__ = lambda self, name: f"no {name}"
    assert (made.v1, made.v2) == (7, "no v2")
    del cls.__getattr__
    with pytest.raises(AttributeError):
        _ = made.v2
    seen = []
    cls.__setattr__ = lambda self, name, value: seen.append((name, value))
    made.v1 = 8
    assert (seen, made.v1) == ([("v1", 8)], 7)
    del cls.__setattr__
    made.v1 = 9
    assert made.v1 == 9
    cls.__getattribute__ = lambda self, name: "always"
    assert made.v1 == "always"


def test_fields_methods_and_missing_names_in_turns() -> None:
    cls = make_class(twice=lambda self: self.v1 * 2, constant=11)
    made = cls(4)
    for value in range(5):
        made.v1 = value
        assert (made.v1, made.twice(), made.constant) == (value, value * 2, 11)
        assert not hasattr(made, "missing")
        assert made.same_as(made)
        with pytest.raises(AttributeError):
            made.constant = 1


def test_a_state_beside_the_fields() -> None:
    cls = make_class(__slots__=("__dict__",))
    made = cls(4)
    for value in range(3):
        made.extra, made.v1 = value + 10, value
        assert (made.extra, made.v1) == (value + 10, value)
    made.__dict__["v1"] = "hidden"  # a field comes first
    assert made.v1 == 2


def test_a_subclass_has_the_fields_and_its_own_attributes() -> None:
    base = make_class()
    sub = type(base)("Sub", (base,), {"v1": property(lambda self: "sub")})
    assert (base(3).v1, sub(3).v1, base(4).v1) == (3, "sub", 4)


def test_names_that_are_not_interned_and_no_names() -> None:
    made = make_class()(4)
    name = "".join(["v", "1"])
    assert getattr(made, name) == made.v1 == 4
    setattr(made, "".join(["v", "1"]), 5)
    assert getattr(made, type("Name", (str,), {})("v1")) == 5
    with pytest.raises(TypeError):
        getattr(made, 1)
    with pytest.raises(TypeError):
        setattr(made, 1, 2)


def test_fields_cannot_be_deleted_and_read_only_ones_not_set() -> None:
    made = make_class()(4)
    for _ in range(3):
        with pytest.raises(AttributeError):
            del made.v1
    frozen = make_class(frozen=True)(3)
    for _ in range(3):
        with pytest.raises(AttributeError):
            frozen.v1 = 4
        assert frozen.v1 == 3


def test_values_of_every_kind_through_the_same_name() -> None:
    made = make_class()(4)
    for bad in ("text", None, 1.5, made):
        with pytest.raises(TypeError):
            made.v1 = bad
    with pytest.raises(TypeError, match="out of int64 range"):
        made.v1 = 1 << 70
    for good in (True, -1, 1 << 62, -(1 << 63)):
        made.v1 = good
        assert made.v1 == good


def test_an_object_field_takes_what_its_type_takes() -> None:
    holder = testing.TestObjectDerived(v_map={}, v_array=[])
    array = tvm_ffi.Array([1])
    for _ in range(3):
        holder.v_array = array
        assert holder.v_array is array
        with pytest.raises(TypeError):
            holder.v_array = holder
        holder.v_array = [1, 2]
        assert list(holder.v_array) == [1, 2]


def test_a_wrapper_that_was_moved_away() -> None:
    made = make_class()(4)
    made._move().obj  # noqa: B018  only offered, not taken
    other = type(made).__new__(type(made))
    other.__move_handle_from__(made)
    assert other.v1 == 4
    with pytest.raises(ValueError):
        _ = made.v1
    with pytest.raises(ValueError):
        made.v1 = 5
