# SPDX-License-Identifier: Apache-2.0
"""Taking elements out of a List or Dict: what cannot be converted stays in, and what is returned is
what was removed, whatever the conversion does meanwhile."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from typing import Any

import foreign
import pytest
import tvm_ffi
from tvm_ffi import Dict, List, testing


class Any16(ctypes.Structure):
    _fields_ = [
        ("type_index", ctypes.c_int32),
        ("padding", ctypes.c_uint32),
        ("pointer", ctypes.c_void_p),
    ]


def cell_of(container: Any, number: int) -> Any16:
    """One of the cells of a small container: elements, or keys and values in turn."""
    cells = ctypes.c_void_p.from_address(container.__chandle__() + 24).value
    assert cells is not None
    return Any16.from_address(cells + 16 * number)


@pytest.fixture
def unreadable() -> Iterator[Callable[[Any, int], None]]:
    """Makes a cell one that cannot become a Python value."""
    spoiled: list[tuple[Any, Any16]] = []  # with the containers, which must live

    def spoil(container: Any, number: int) -> None:
        cell = cell_of(container, number)
        assert cell.type_index == 1
        cell.type_index = 40  # of no type
        spoiled.append((container, cell))

    yield spoil
    for _, cell in spoiled:
        cell.type_index = 1


TAKES: dict[str, tuple[Callable[[], Any], int, Callable[[Any], Any]]] = {
    "List.pop": (lambda: List([1, 2]), 1, lambda c: c.pop()),
    "List.pop(0)": (lambda: List([1, 2]), 0, lambda c: c.pop(0)),
    "Dict.pop": (lambda: Dict({1: 2, 3: 4}), 1, lambda c: c.pop(1)),
    "Dict.pop with a default": (lambda: Dict({1: 2, 3: 4}), 3, lambda c: c.pop(3, None)),
    "Dict.popitem": (lambda: Dict({1: 2, 3: 4}), 1, lambda c: c.popitem()),
    "Dict.popitem, the key": (lambda: Dict({1: 2, 3: 4}), 0, lambda c: c.popitem()),
}


@pytest.mark.parametrize("way", TAKES)
def test_what_cannot_be_converted_stays_in(
    way: str, unreadable: Callable[[Any, int], None]
) -> None:
    make, number, take = TAKES[way]
    container = make()
    unreadable(container, number)
    for _ in range(2):
        with pytest.raises(ValueError, match="Unhandled type index"):
            take(container)
        assert len(container) == 2


# ---- a conversion that changes the container ----------------------------------------------------


class WhenConverted:
    """In place of `foreign.calls`: runs code whenever a tensor becomes one of the framework."""

    def __init__(self, action: Callable[[], None], times: int) -> None:
        self.action, self.times = action, times

    def append(self, call: Any) -> None:
        if call[0] == "to_py" and self.times > 0:
            self.times -= 1
            self.action()


def tagged(container: Any) -> Any:
    """The container, which hands out tensors of the framework from now on."""
    return testing.apply(lambda c, _: c, container, foreign.Tensor())


TAKERS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], Callable[[Any, Any], None]]] = {
    "List.pop": (lambda t: List([0, t]), lambda c: c.pop(), lambda c, t: c.__setitem__(1, t)),
    "Dict.pop": (
        lambda t: Dict({"k": t}),
        lambda c: c.pop("k"),
        lambda c, t: c.__setitem__("k", t),
    ),
    "Dict.popitem": (
        lambda t: Dict({"k": t}),
        lambda c: c.popitem()[1],
        lambda c, t: c.__setitem__("k", t),
    ),
}


@pytest.mark.parametrize("way", TAKERS)
def test_an_element_replaced_during_its_conversion(way: str, monkeypatch: Any) -> None:
    make, take, replace = TAKERS[way]
    first, second = foreign.Tensor(), foreign.Tensor()
    container = tagged(make(first))
    action = WhenConverted(lambda: replace(container, second), 1)
    monkeypatch.setattr(foreign, "calls", action)
    size = len(container)
    assert take(container).address == second.address
    assert action.times == 0 and len(container) == size - 1


@pytest.mark.parametrize("way", TAKERS)
def test_an_element_replaced_by_every_conversion(way: str, monkeypatch: Any) -> None:
    make, take, replace = TAKERS[way]
    container = tagged(make(foreign.Tensor()))
    action = WhenConverted(lambda: replace(container, foreign.Tensor()), 1000)
    monkeypatch.setattr(foreign, "calls", action)
    size = len(container)
    with pytest.raises(RuntimeError, match="changed whenever the (entry|element) to remove was"):
        take(container)
    assert len(container) == size and action.times == 900


@pytest.mark.parametrize("way", TAKERS)
def test_an_element_taken_during_its_conversion(way: str, monkeypatch: Any) -> None:
    make, take, _ = TAKERS[way]
    container = tagged(make(foreign.Tensor()))
    monkeypatch.setattr(foreign, "calls", WhenConverted(container.clear, 1))
    with pytest.raises((KeyError, IndexError)):
        take(container)
    assert len(container) == 0


def test_popitem_takes_what_is_first_at_the_end(monkeypatch: Any) -> None:
    first, second = foreign.Tensor(), foreign.Tensor()
    table = tagged(Dict({"a": first, "b": second, "c": 3, "d": 4, "e": 5, "f": 6}))
    monkeypatch.setattr(foreign, "calls", WhenConverted(lambda: table.__delitem__("a"), 1))
    key, value = table.popitem()
    assert (key, value.address) == ("b", second.address)
    assert list(table.items()) == [("c", 3), ("d", 4), ("e", 5), ("f", 6)]


def test_popitem_asks_no_key_for_anything() -> None:
    from tvm_ffi.dataclasses import py_class

    asked = []

    @py_class("test_container_take.Key")
    class Key(tvm_ffi.Object):
        number: int

        def __any_hash__(self) -> int:
            asked.append("hash")
            return 1

        def __any_equal__(self, other: Any) -> bool:
            asked.append("eq")
            return self is other

    table = Dict({Key(i): i for i in range(6)})
    asked.clear()
    assert [table.popitem()[1] for _ in range(6)] == list(range(6))
    assert asked == []
