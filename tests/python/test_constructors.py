# SPDX-License-Identifier: Apache-2.0
"""Calling a class goes straight to C++, and nobody can tell except by the clock."""

from __future__ import annotations

import copy
import gc
import inspect
import pickle
import pydoc
import sys
import weakref
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import foreign
import pytest
import tvm_ffi
import tvm_ffi.testing
from tvm_ffi import core
from tvm_ffi.dataclasses import c_class
from tvm_ffi.registry import _install_init, _register_class
from tvm_ffi.testing.testing import _TestCxxAutoInit as AutoInit

KEY = "testing.TestUnregisteredBaseObject"


@pytest.fixture(autouse=True)
def forget_the_class() -> Iterator[None]:
    """Leave the type without a class."""
    yield
    info = core._lookup_or_register_type_info_from_type_key(KEY)
    core._rollback_py_class(info)


def register(cls: type) -> type:
    """Replace the class of the type, which `register_object` would refuse."""
    return _register_class(cls, KEY, _install_init)


def make_class() -> type:
    """Register a fresh class for a type with a plain C++ constructor."""

    @register
    class Made(tvm_ffi.Object):
        pass

    return Made


def test_the_object_is_built_and_tied() -> None:
    made = make_class()(41)
    assert made.v1 == 41
    assert tvm_ffi.tying.state(made) == "active"
    assert tvm_ffi.Array([made])[0] is made


def test_the_signature_and_the_name_are_kept() -> None:
    made = tvm_ffi.testing.TestIntPair
    assert list(inspect.signature(made.__init__).parameters) == ["self", "a", "b"]
    assert made.__init__.__qualname__ == "TestIntPair.__init__"


def test_init_can_be_called_by_hand() -> None:
    cls = make_class()
    made = cls.__new__(cls)
    assert made.__chandle__() == 0
    made.__init__(5)
    assert made.v1 == 5


def test_a_failed_conversion_raises_what_init_raises() -> None:
    cls = make_class()
    empty = cls.__new__(cls)
    with pytest.raises(TypeError) as by_init:
        empty.__init__("text")
    with pytest.raises(TypeError) as by_call:
        cls("text")
    assert str(by_call.value) == str(by_init.value)
    with pytest.raises(
        TypeError, match="Expected `int` but got `ffi.BigInt` .`int` in Python, out of range"
    ):
        cls(1 << 70)


def test_the_number_of_arguments_is_checked() -> None:
    cls = make_class()
    with pytest.raises(TypeError, match="Expected 1 but got 2"):
        cls(1, 2)
    with pytest.raises(TypeError, match="Expected 1 but got 0"):
        cls()


def test_a_replaced_init_is_used() -> None:
    cls = make_class()
    cls(1)
    seen = []
    original = cls.__init__

    def counting(self: object, value: int) -> None:
        seen.append(value)
        original(self, value + 1)

    cls.__init__ = counting
    assert cls(1).v1 == 2 and seen == [1]
    cls.__init__ = original
    assert cls(1).v1 == 1 and seen == [1]


def test_a_deleted_init_uncovers_the_inherited_one() -> None:
    cls = make_class()
    cls(1)
    del cls.__init__
    with pytest.raises(TypeError, match=r"^Made\(\) takes no arguments$"):
        cls(1)
    assert cls().__chandle__() == 0


def test_an_init_added_to_a_mixin_in_front_is_used() -> None:
    class Mixin:
        __slots__ = ()

    @register
    class Made(Mixin, tvm_ffi.Object):
        pass

    assert Made(3).v1 == 3
    Mixin.__init__ = lambda self, value: None  # type: ignore[misc]
    assert Made(3).v1 == 3, "the class's own comes first"


def test_a_new_defined_later_is_used() -> None:
    cls = make_class()
    cls(1)
    kept = cls(7)
    cls.__new__ = staticmethod(lambda cls, *args: kept)  # type: ignore[method-assign]
    assert cls(1) is kept
    assert kept.v1 == 1, "__init__ ran on what __new__ returned"


def test_a_metaclass_with_call_is_used() -> None:
    calls = []

    class Meta(type(tvm_ffi.Object)):  # type: ignore[misc]
        def __call__(cls, *args: object) -> object:
            calls.append(args)
            return super().__call__(*args)

    @register
    class Made(tvm_ffi.Object, metaclass=Meta):
        pass

    assert Made(4).v1 == 4 and calls == [(4,)]


def test_a_metaclass_that_gets_call_later_is_used() -> None:
    calls = []

    class Meta(type(tvm_ffi.Object)):  # type: ignore[misc]
        pass

    @register
    class Made(tvm_ffi.Object, metaclass=Meta):
        pass

    assert Made(4).v1 == 4

    def call(cls: type, *args: object) -> object:
        calls.append(args)
        return type.__call__(cls, *args)

    Meta.__call__ = call
    assert Made(5).v1 == 5 and calls == [(5,)]


def test_a_subclass_inherits_the_constructor() -> None:
    class Derived(make_class()):  # type: ignore[misc]
        pass

    made = Derived(3)
    assert type(made) is Derived and made.v1 == 3


def test_a_subclass_with_its_own_init_runs_it() -> None:
    class Derived(make_class()):  # type: ignore[misc]
        __slots__ = ("extra",)

        def __init__(self, value: int) -> None:
            self.__move_handle_from__(make_class()(value))
            self.extra = value * 2

    made = Derived(3)
    assert type(made) is Derived and (made.v1, made.extra) == (3, 6)


def test_keywords_and_defaults_reach_the_constructor() -> None:
    made = AutoInit(1, c=3)
    assert (made.a, made.b, made.c, made.d) == (1, 42, 3, 99)
    made = AutoInit(c=3, a=1, d=4)
    assert (made.a, made.c, made.d) == (1, 3, 4)
    assert AutoInit(1, c=3, d=tvm_ffi.core.MISSING).d == 99
    assert AutoInit(1, **{"c": 3}).c == 3
    with pytest.raises(TypeError, match="missing"):
        AutoInit(1)
    with pytest.raises(TypeError, match="extra"):
        AutoInit(1, c=3, extra=3)
    with pytest.raises(TypeError, match="multiple"):
        AutoInit(1, a=1, c=3)


def test_keywords_of_an_explicit_constructor() -> None:
    made = tvm_ffi.testing.TestIntPair(b=2, a=1)
    assert (made.a, made.b) == (1, 2)


def test_post_init_runs() -> None:
    ran = []

    @c_class("testing.TestCxxAutoInitSimple")
    class PostInit(tvm_ffi.Object):
        x: int
        y: int

        def __post_init__(self) -> None:
            ran.append(self.x)

    PostInit(9, 1)
    assert ran == [9]


def test_nothing_is_kept_and_nothing_is_lost() -> None:
    cls = make_class()
    gc.collect()
    before = tvm_ffi.tying.stats()["live"]
    made = [cls(i) for i in range(100)]
    refs = [weakref.ref(one) for one in made]
    assert tvm_ffi.tying.stats()["live"] == before + 100
    made.clear()
    assert all(ref() is None for ref in refs)
    assert tvm_ffi.tying.stats()["live"] == before


def test_arguments_are_released() -> None:
    class Value:
        pass

    value = Value()
    ref = weakref.ref(value)
    with pytest.raises(TypeError):
        make_class()(value)
    del value
    gc.collect()
    assert ref() is None


# ---- an __init__ that C++ runs


def frames_of(body: Callable[[], object]) -> list[str]:
    """The names of the Python functions that run, without `body` itself."""
    seen: list[str] = []

    def note(frame: FrameType, event: str, arg: object) -> None:
        if event == "call":
            seen.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        body()
    finally:
        sys.setprofile(None)
    return seen[1:]


class Kept(tvm_ffi.testing.TestIntPair):
    __slots__ = ("__dict__",)

    def __init__(self, a: int, *, b: int = 5) -> None:
        super().__init__(a, b)
        self.note = a + b


def test_super_init_runs_no_other_python_code() -> None:
    assert frames_of(lambda: Kept(1)) == ["__init__"]
    kept = Kept(2, b=3)
    assert (kept.a, kept.b, kept.note) == (2, 3, 5)


def test_a_subclass_without_init_runs_no_python_code() -> None:
    class Plain(tvm_ffi.testing.TestIntPair):
        pass

    assert frames_of(lambda: Plain(1, 2)) == []
    assert frames_of(lambda: AutoInit(1, c=2)) == []


def test_defaults_of_a_constructor_run_no_python_code(shapes: Any) -> None:
    class Loud(shapes.Circle):
        pass

    for cls in (shapes.Circle, Loud):
        assert frames_of(lambda cls=cls: cls(2.0)) == []
        assert frames_of(lambda cls=cls: cls(name="x", radius=1.0)) == []
        assert (cls(2.0).radius, cls(2.0).label) == (2.0, "circle")
        swapped = cls(name="x", radius=1.0)
        assert (swapped.radius, swapped.label) == (1.0, "x")
        with pytest.raises(TypeError, match="missing required argument: 'radius'"):
            cls(name="x")
        with pytest.raises(TypeError, match="got multiple values for argument 'radius'"):
            cls(1.0, radius=2.0)
        with pytest.raises(TypeError, match="unexpected keyword argument 'color'"):
            cls(1.0, color="red")


def test_init_of_an_object_that_is_there_replaces_it() -> None:
    pair = tvm_ffi.testing.TestIntPair(1, 2)
    pair.__init__(3, 4)  # type: ignore[misc]
    assert (pair.a, pair.b) == (3, 4)
    with pytest.raises(TypeError):
        pair.__init__("x", 4)  # type: ignore[misc]


def test_init_of_something_else_says_so() -> None:
    init = tvm_ffi.testing.TestIntPair.__init__
    for wrong in (3, tvm_ffi.List([1]), AutoInit(1, c=2)):
        with pytest.raises(TypeError, match=r"TestIntPair.*__init__|__init__.*TestIntPair"):
            init(wrong, 1, 2)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'self'"):
        init()  # type: ignore[call-arg]


def test_init_looks_like_a_function() -> None:
    init = tvm_ffi.testing.TestIntPair.__init__
    assert init.__name__ == "__init__"
    assert init.__qualname__ == "TestIntPair.__init__"
    assert init.__module__ == tvm_ffi.testing.TestIntPair.__module__
    assert list(inspect.signature(init).parameters) == ["self", "a", "b"]
    assert pickle.loads(pickle.dumps(init)) is init
    assert copy.deepcopy(init) is init
    assert weakref.ref(init)() is init
    assert "TestIntPair.__init__" in repr(init)
    assert "(self, /, a" in pydoc.render_doc(init)


def test_a_constructor_gets_the_stream_too(shapes: Any) -> None:
    class Sub(shapes.Placed):
        def __init__(self, tensor: Any) -> None:
            super().__init__(tensor)

    foreign.streams[2, 0] = 0x111
    gpu = foreign.Tensor(device=(2, 0))
    for cls in (shapes.Placed, Sub):
        assert cls(gpu).stream == 0x111
        assert cls(foreign.Tensor()).stream == 0
    placed = shapes.Placed.__new__(shapes.Placed)
    make = tvm_ffi.get_global_func("testing.apply")
    where = tvm_ffi.device("cuda:0")
    seen = []

    def construct(tensor: Any) -> Any:
        seen.append(tvm_ffi.get_raw_stream(where))
        return shapes.Placed(tensor)

    placed.__init_handle_by_constructor__(make, construct, gpu)
    assert seen == [0x111] and tvm_ffi.get_raw_stream(where) == 0
    assert isinstance(placed, shapes.Placed)
