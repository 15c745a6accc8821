# SPDX-License-Identifier: Apache-2.0
"""Operators that a C++ class registers as methods."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import tvm_ffi
from support import FREE_THREADED, compile_library
from tvm_ffi.dataclasses import c_class

SOURCE = Path(__file__).with_name("operators_client.cc")
KEPT: list[Any] = []


@pytest.fixture(scope="module", autouse=True)
def library(tmp_path_factory: pytest.TempPathFactory) -> None:
    target = tmp_path_factory.mktemp("operators") / "liboperators.so"
    KEPT.append(tvm_ffi.load_module(str(compile_library(SOURCE, target))))


def classes() -> dict[str, Any]:
    """Return one class for each way to have one."""

    @tvm_ffi.register_object("test_operators.Vec")
    class Vec(tvm_ffi.Object):
        pass

    return {"registered": Vec}


@pytest.fixture(scope="module")
def vec() -> Any:
    made = tvm_ffi.get_global_func("test_operators.make")(1, 2)
    assert repr(made) == "<1, 2>" and made == made(1) and made != 3
    return {"unregistered": type(made), **classes()}


@pytest.mark.parametrize("kind", ["unregistered", "registered"])
def test_operators(vec: dict[str, Any], kind: str) -> None:
    Vec = vec["registered"]
    a, b, c = Vec(1, 2), Vec(1, 2), Vec(3, 4)
    assert a == b and not a == c and a != c and not a != b  # noqa: SIM201, SIM202
    assert a < c and not c < a and c > a
    assert hash(a) == hash(b) == 33 and {a: 1}[b] == 1 and len({a, b, c}) == 2
    assert repr(a) == "<1, 2>" and str(a) == "vec <1, 2>" and f"{a}" == "vec <1, 2>"
    assert repr(a(10)) == "<10, 20>" and repr(a + c) == "<4, 6>" and repr(-a) == "<-1, -2>"
    assert bool(a) and not Vec(0, 0) and abs(Vec(3, 4)) == 5 and len(a) == 2
    assert 2 in a and 7 not in a and list(a) == [1, 2] and a[1] == 2
    cls = vec[kind]
    for name in ("__eq__", "__hash__", "__repr__", "__str__", "__call__", "__add__", "__bool__"):
        assert name in cls.__dict__, name


def test_the_other_operand_is_of_another_type(vec: dict[str, Any]) -> None:
    a = vec["registered"](1, 2)
    assert (a == 3) is False and (a != "text") is True and a != None  # noqa: E711
    assert a.__eq__(3) is NotImplemented and a in [1, "x", a]
    with pytest.raises(TypeError, match="not supported between"):
        a < 3  # noqa: B015

    class Equal:
        def __eq__(self, other: Any) -> Any:
            return True

        def __lt__(self, other: Any) -> Any:
            return "asked"

        __gt__ = __lt__
        __hash__ = object.__hash__

    assert a == Equal() and Equal() == a
    assert (a < Equal()) == "asked"


def test_what_python_defines_wins(vec: dict[str, Any]) -> None:
    class Own(vec["registered"]):  # type: ignore[misc]
        def __repr__(self) -> str:
            return "own " + super().__repr__()

        def __eq__(self, other: Any) -> Any:
            return super().__eq__(other) if isinstance(other, Own) else NotImplemented

        __hash__ = vec["registered"].__hash__

    assert repr(Own(1, 2)) == "own <1, 2>" and Own(1, 2) == Own(1, 2)
    assert hash(Own(1, 2)) == hash(vec["registered"](1, 2))


def test_a_child_overrides_and_inherits(vec: dict[str, Any]) -> None:
    @c_class("test_operators.Loud")
    class Loud(vec["registered"]):  # type: ignore[misc]
        pass

    assert repr(Loud(1, 2)) == "<1, 2>!" and Loud(1, 2) == Loud(1, 2)
    assert hash(Loud(1, 2)) == 33 and str(Loud(1, 2)) == "vec <1, 2>"
    assert copy.copy(Loud(1, 2)) == Loud(1, 2)
    assert vec["registered"](1, 2) == Loud(1, 2)


def test_equal_without_hash_is_not_hashable() -> None:
    @tvm_ffi.register_object("test_operators.OnlyEq")
    class OnlyEq(tvm_ffi.Object):
        pass

    assert OnlyEq(3) == 3 and OnlyEq(3) != 4 and OnlyEq(3) != "3"
    with pytest.raises(TypeError, match="unhashable type: 'OnlyEq'"):
        hash(OnlyEq(3))

    @tvm_ffi.register_object("test_operators.OnlyEq")
    class Hashed(OnlyEq):
        def __hash__(self) -> int:
            return 7

    assert hash(Hashed(3)) == 7 and Hashed(3) == 3


def test_names_that_classes_of_classes_have() -> None:
    @tvm_ffi.register_object("test_operators.Names")
    class Names(tvm_ffi.Object):
        pass

    assert Names().register() == 1 and Names().mro() == 2
    assert Names.__mro__[-1] is object


def test_identity_stays(vec: dict[str, Any]) -> None:
    a = vec["registered"](1, 2)
    box = tvm_ffi.List([a])
    assert box[0] is a and box[0] == a and a.same_as(box[0])


@pytest.mark.skipif(FREE_THREADED, reason="assignments there are CPython's")
def test_subclass_with_code_says_how_to_allow_attributes(vec: dict[str, Any]) -> None:
    class Tagged(vec["registered"]):  # type: ignore[misc]
        def tag(self) -> None:
            self.label = "x"

    tagged = Tagged(1, 2)
    for assign in (tagged.tag, lambda: setattr(vec["registered"](1, 2), "label", 1)):
        with pytest.raises(AttributeError, match=r'needs __slots__ = \("__dict__",\)$'):
            assign()
    object.__setattr__(tagged, "x", 5)
    tagged.y = 6
    assert list(tagged) == [5, 6]
