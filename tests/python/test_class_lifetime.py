# SPDX-License-Identifier: Apache-2.0
"""Classes are Python's: they die when nobody uses them, abstract ones have no instances, and what
`object` does to attributes works on wrappers too.
"""

from __future__ import annotations

import abc
import collections.abc
import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy
import pytest
import tvm_ffi
from support import CLASSES_DIE, scaled
from tvm_ffi import core, testing, tying
from tvm_ffi.dataclasses import py_class
from tvm_ffi.testing import TestIntPair, TestObjectBase, echo

# ---- classes die --------------------------------------------------------------------------------

classes_die = pytest.mark.skipif(not CLASSES_DIE, reason="its classes are immortal with threads")


def crossed() -> type:
    class Seen:
        pass

    echo(Seen())
    echo([Seen()])
    return Seen


def crossed_by_protocol() -> type:
    class Value:
        def __tvm_ffi_value__(self) -> Any:
            return 1

    echo(Value())
    return Value


def called() -> type:
    class Callback:
        def __call__(self) -> int:
            return 1

    assert tvm_ffi.convert(Callback())() == 1
    return Callback


def raised() -> type:
    class Odd(RuntimeError):
        pass

    def fail() -> None:
        raise Odd("x")

    with pytest.raises(Odd):
        tvm_ffi.convert(fail)()
    return Odd


def exchanged() -> type:
    class Api(core.DLTensorTestWrapper):
        __dlpack_c_exchange_api__ = tvm_ffi.Tensor.__dlpack_c_exchange_api__

    try:
        echo(Api(tvm_ffi.from_dlpack(numpy.arange(3.0))))
    except Exception:
        pass
    return Api


def read_and_written() -> type:
    class Sub(TestIntPair):
        __slots__ = ("__dict__", "note")

        def method(self) -> int:
            return self.a + self.b

    made = Sub(1, 2)
    made.note, made.other = made.a, made.b
    assert made.method() == 3
    box = tvm_ffi.List([made])
    del made
    assert box[0].note == 1
    return Sub


def container() -> type:
    class Items(tvm_ffi.List):
        pass

    echo(Items([1, 2]))
    assert tvm_ffi.Array([Items([3])])[0][0] == 3
    return Items


def key() -> type:
    class Key:
        def __hash__(self) -> int:
            return 1

    assert len(tvm_ffi.Dict({Key(): 1})) == 1
    return Key


def counted() -> type:
    class Sub(TestIntPair):
        pass

    made = Sub(1, 2)
    assert tying.stats()["by_type"][type(made)] == 1
    return Sub


WAYS = (
    crossed,
    crossed_by_protocol,
    called,
    raised,
    exchanged,
    read_and_written,
    container,
    key,
    counted,
)


@classes_die
@pytest.mark.parametrize("way", WAYS)
def test_a_class_dies_when_it_is_no_longer_used(way: Callable[[], type]) -> None:
    alive = [weakref.ref(way()) for _ in range(20)]
    gc.collect()
    gc.collect()
    assert sum(ref() is not None for ref in alive) == 0


def test_a_class_at_the_address_of_a_dead_one_is_a_new_class() -> None:
    def instance(number: int) -> Any:
        kinds = (
            type("Number", (int,), {}),
            type("Text", (str,), {}),
            type("Thing", (), {}),
            type("Call", (), {"__call__": lambda self: number}),
            type("Pair", (TestIntPair,), {}),
        )
        cls = kinds[number % len(kinds)]
        return cls(1, 2) if issubclass(cls, TestIntPair) else cls()

    for number in range(scaled(600)):
        made = instance(number)
        back = echo(made)
        if isinstance(made, int):
            assert back == 0 and type(back) is int
        elif isinstance(made, str):
            assert back == ""
        elif isinstance(made, TestIntPair):
            assert back is made
        elif callable(made):
            assert back() == number
        else:
            assert back is made
        del made, back
        if number % 10 == 0:
            gc.collect()


def test_threads_with_classes_that_come_and_go() -> None:
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for i in range(scaled(100)):
                base = (TestIntPair, int, object)[(i + number) % 3]
                cls = type("Local", (base,), {})
                made = cls(1, 2) if base is TestIntPair else cls()
                back = echo(made)
                assert back == 0 if base is int else back is made
                del made, back, cls
                if i % 20 == 0:
                    gc.collect()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@classes_die
def test_a_finaliser_may_pass_its_dying_instance() -> None:
    seen = []

    def make() -> weakref.ref[Any]:
        class Dying:
            def __init__(self) -> None:
                self.me = self

            def __del__(self) -> None:
                seen.append(echo(self) is self)

        Dying()
        return weakref.ref(Dying)

    refs = [make() for _ in range(5)]
    for _ in range(3):
        gc.collect()
    assert seen == [True] * 5
    assert [ref() for ref in refs] == [None] * 5
    assert echo(type("Later", (int,), {})(7)) == 7


def test_calling_the_callback_of_a_watch_changes_nothing() -> None:
    class Seen:
        pass

    echo(Seen())
    for watch in weakref.getweakrefs(Seen):
        if watch.__callback__ is not None:
            watch.__callback__(watch)
    made = Seen()
    assert echo(made) is made


def test_wrappers_are_counted_by_class() -> None:
    class Sub(TestIntPair):
        pass

    made = [Sub(1, 2) for _ in range(10)]
    assert tying.stats()["by_type"][Sub] == 10
    del made[3:]
    assert tying.stats()["by_type"][Sub] == 3
    made.clear()
    assert Sub not in tying.stats()["by_type"]
    # Far more classes than there are places.
    classes = [type(f"Sub{i}", (TestIntPair,), {}) for i in range(700)]
    objects = [cls(1, 2) for cls in classes for _ in range(2)]
    by_type = tying.stats()["by_type"]
    assert [by_type[cls] for cls in classes] == [2] * 700
    objects.clear()
    assert not set(classes) & set(tying.stats()["by_type"])


@classes_die
@pytest.mark.parametrize("fault", ("annotation", "method"))
def test_a_class_that_py_class_refuses_is_not_kept(fault: str) -> None:
    def define() -> weakref.ref[Any]:
        body: dict[str, Any] = {"__annotations__": {"x": complex if fault == "annotation" else int}}
        if fault == "method":
            body["__ffi_repr__"] = classmethod(lambda cls: "x")
        cls = type(tvm_ffi.Object)("Refused", (tvm_ffi.Object,), body)
        with pytest.raises(TypeError):
            py_class("test_class_lifetime.Refused")(cls)
        return weakref.ref(cls)

    refs = [define() for _ in range(10)]
    gc.collect()
    gc.collect()
    assert [ref() for ref in refs] == [None] * 10


# ---- abstract classes ---------------------------------------------------------------------------


class AbstractObject(tvm_ffi.Object, abc.ABC):
    @abc.abstractmethod
    def area(self) -> int: ...


@py_class("test_class_lifetime.AbstractShape")
class AbstractShape(tvm_ffi.Object):
    a: int

    @abc.abstractmethod
    def area(self) -> int: ...


class AbstractPair(TestIntPair):
    @abc.abstractmethod
    def area(self) -> int: ...


class AbstractSequence(tvm_ffi.Object, collections.abc.Sequence):  # type: ignore[type-arg]
    pass


class AbstractList(tvm_ffi.List):
    @abc.abstractmethod
    def area(self) -> int: ...


@pytest.mark.parametrize(
    ("cls", "arguments"),
    [
        (AbstractObject, ()),
        (AbstractShape, (1,)),
        (AbstractPair, (1, 2)),
        (AbstractSequence, ()),
        (AbstractList, ([1],)),
    ],
)
def test_an_abstract_class_has_no_instances(cls: Any, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError, match="Can't instantiate abstract class " + cls.__name__):
        cls(*arguments)
    with pytest.raises(TypeError, match="abstract"):
        cls.__new__(cls)


def test_what_fills_the_gap_can_be_instantiated() -> None:
    class Full(AbstractShape):
        def area(self) -> int:
            return self.a

    @py_class("test_class_lifetime.FullShape")
    class FullShape(AbstractShape):
        def area(self) -> int:
            return self.a + 1

    assert Full(3).area() == 3
    assert FullShape(3).area() == 4


def test_a_class_that_becomes_abstract_later() -> None:
    @py_class("test_class_lifetime.Later")
    class Later(tvm_ffi.Object):
        a: int

    assert Later(1).a == 1
    Later.__abstractmethods__ = frozenset({"area"})
    with pytest.raises(TypeError, match="abstract"):
        Later(1)
    Later.__abstractmethods__ = frozenset()
    assert Later(1).a == 1


def test_objects_from_cxx_may_be_of_an_abstract_class() -> None:
    class Abstract(tvm_ffi.Object):
        @abc.abstractmethod
        def area(self) -> int: ...

    info = core._lookup_or_register_type_info_from_type_key("testing.TestUnregisteredObject")
    before = core._class_of_index(info.type_index)
    core._set_class_of_index(info.type_index, Abstract)
    try:
        assert type(testing.make_unregistered_object()) is Abstract
        with pytest.raises(TypeError, match="abstract"):
            Abstract()
    finally:
        core._set_class_of_index(info.type_index, before)


# ---- object.__setattr__ and its kin -------------------------------------------------------------


@py_class("test_class_lifetime.Open")
class Open(tvm_ffi.Object):
    __slots__ = ("__dict__", "extra")
    a: int


@py_class("test_class_lifetime.Frozen", frozen=True)
class Frozen(tvm_ffi.Object):
    __slots__ = ("extra",)
    a: int


def test_object_setattr_writes_fields_attributes_and_slots() -> None:
    made = Open(1)
    for name in ("a", "note", "extra"):
        object.__setattr__(made, name, 5)
        assert object.__getattribute__(made, name) == getattr(made, name) == 5
    for name in ("note", "extra"):
        object.__delattr__(made, name)
        assert not hasattr(made, name)
    with pytest.raises(AttributeError, match="cannot be deleted"):
        object.__delattr__(made, "a")


def test_object_setattr_on_classes_of_cxx_types() -> None:
    made = TestObjectBase(v_i64=1, v_f64=2.0, v_str="x")
    made.v_i64 = 2
    object.__setattr__(made, "v_i64", 3)
    assert made.v_i64 == 3
    with pytest.raises(AttributeError):
        object.__setattr__(made, "nothing", 1)
    with pytest.raises(AttributeError, match="read-only"):
        object.__setattr__(TestIntPair(1, 2), "a", 3)


def test_a_frozen_field_stays_frozen() -> None:
    made = Frozen(1)
    with pytest.raises(AttributeError, match="read-only"):
        object.__setattr__(made, "a", 2)
    object.__setattr__(made, "extra", 2)
    assert (made.a, made.extra) == (1, 2)


@pytest.mark.parametrize("base", (Open, TestObjectBase, testing.TestObjectDerived))
@pytest.mark.parametrize("how", ("object", "super"))
def test_an_overridden_setattr_has_a_way_out(base: Any, how: str) -> None:
    seen = []

    class Logged(base):  # type: ignore[misc]
        __slots__ = ("__dict__",) if base is not Open else ()

        def __setattr__(self, name: str, value: Any) -> None:
            seen.append(name)
            if how == "object":
                object.__setattr__(self, name, value)
            else:
                super().__setattr__(name, value)

    made = Logged.__new__(Logged)
    made.note = 3
    assert made.note == 3
    if base is Open:
        made = Logged(1)
        made.a = 7
        assert made.a == 7
    assert "note" in seen
    plain = Open(1)
    plain.a = 4
    object.__setattr__(plain, "a", 5)
    assert plain.a == 5


def test_a_subclass_of_a_bare_class_takes_object_setattr() -> None:
    key = "testing.TestUnregisteredBaseObject"
    info = core._lookup_or_register_type_info_from_type_key(key)
    bare = core._fallback_class(info.type_index) if hasattr(core, "_fallback_class") else None
    made = testing.make_unregistered_object()
    cls = bare or type(made)

    class Sub(cls):  # type: ignore[misc, valid-type]
        __slots__ = ("extra",)

    class Logged(cls):  # type: ignore[misc, valid-type]
        __slots__ = ("extra",)

        def __setattr__(self, name: str, value: Any) -> None:
            object.__setattr__(self, name, value)

    for kind in (Sub, Logged):
        own = kind.__new__(kind)
        object.__setattr__(own, "extra", 1)
        own.extra = 2
        assert own.extra == 2
