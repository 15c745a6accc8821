# SPDX-License-Identifier: Apache-2.0
"""Hooks that return nonsense or raise midway, and integers that fit no narrow type."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import pytest
import tvm_ffi
from support import fresh_key
from tvm_ffi import Object, testing
from tvm_ffi.dataclasses import py_class

NONSENSE = ["text", None, 1.5, 2**70, -(2**70), [1], {}, object(), b"x"]
IDS = [type(value).__name__ for value in NONSENSE]


def class_with(**hooks: Callable[..., Any]) -> Any:
    body = {"__annotations__": {"x": int}, **hooks}
    return py_class(fresh_key())(type("Bad", (Object,), body))


def attempt(run: Callable[[], Any]) -> None:
    """Whatever comes of it must be a value or an ordinary exception."""
    try:
        run()
    except (TypeError, ValueError, RuntimeError, OverflowError, KeyError):
        pass


@pytest.mark.parametrize("answer", NONSENSE, ids=IDS)
def test_hooks_of_keys(answer: Any) -> None:
    by_hash = class_with(__any_hash__=lambda self: answer)
    by_equal = class_with(__any_hash__=lambda self: 1, __any_equal__=lambda self, other: answer)
    for cls in (by_hash, by_equal):
        keys = dict.fromkeys(cls(i % 7) for i in range(20))
        for container in (tvm_ffi.Map, tvm_ffi.Dict):
            attempt(lambda made=container, keys=keys: made(keys))
        attempt(lambda keys=keys: next(iter(keys)) in tvm_ffi.Map({i: i for i in range(20)}))
    if not isinstance(answer, (int, float)):
        with pytest.raises(RuntimeError, match="__any_hash__ must return int, but that of `tests"):
            tvm_ffi.Map({by_hash(i): i for i in range(20)})


@pytest.mark.parametrize("high", [0, 2**62, 2**63, 2**64 - 8, 2**200, -(2**63), -(2**70)])
def test_a_key_hook_may_return_any_int(high: int) -> None:
    """As `__hash__` may: the lowest 64 bits count."""
    cls = class_with(
        __any_hash__=lambda self: high + self.x % 4,
        __any_equal__=lambda self, other: self.x == other.x,
    )
    for kind in (tvm_ffi.Map, tvm_ffi.Dict):
        made = kind({cls(i): i for i in range(50)})
        assert len(made) == 50
        assert all(made[cls(i)] == i for i in range(50))
        assert cls(50) not in made


def test_a_wrong_result_of_a_key_hook_is_named() -> None:
    by_hash = class_with(__any_hash__=lambda self: "a longer text")
    by_equal = class_with(__any_hash__=lambda self: 1, __any_equal__=lambda self, other: None)
    for hook, cls, expected, actual in (
        ("__any_hash__", by_hash, "int", "ffi.String"),
        ("__any_equal__", by_equal, "bool", "None"),
    ):
        key = cls.__tvm_ffi_type_info__.type_key
        with pytest.raises(RuntimeError) as caught:
            tvm_ffi.Map({cls(i): i for i in range(20)})
        assert str(caught.value) == (
            f"{hook} must return {expected}, but that of `{key}` returned `{actual}`"
        )


@pytest.mark.parametrize("answer", NONSENSE, ids=IDS)
def test_structural_hooks(answer: Any) -> None:
    cls = class_with(
        __s_equal__=lambda self, other, equal: answer,
        __s_hash__=lambda self, seed, hash_: answer,
        __s_visit__=lambda visitor, self: answer,
        __s_mutate__=lambda mutator, self: answer,
    )
    value = tvm_ffi.Array([cls(1), 2])
    attempt(lambda: tvm_ffi.structural_equal(value, tvm_ffi.Array([cls(1), 2])))
    attempt(lambda: tvm_ffi.structural_hash(value))
    attempt(lambda: tvm_ffi.structural_walk(value, lambda part: None))
    attempt(lambda: tvm_ffi.structural_visit(value, lambda part, visitor: part))
    attempt(lambda: tvm_ffi.structural_map(value, (int, lambda number: number)))
    attempt(lambda: tvm_ffi.structural_mutate(value, (int, lambda number, mutator: number)))
    assert value[0].x == 1 and value[1] == 2


@pytest.mark.parametrize("hook", ["__s_mutate__", "__s_maybe_inplace_mutate__"])
@pytest.mark.parametrize("entry", [3, "text", [1], {"a": 1}])
def test_hooks_that_cannot_be_called(hook: str, entry: Any) -> None:
    cls = class_with(**{"__s_mutate__": lambda mutator, self: self, hook: entry})
    attempt(lambda: tvm_ffi.structural_map(cls(1)._move(), (str, lambda text: text)))
    if hook == "__s_mutate__":
        with pytest.raises(TypeError, match="__s_mutate__ must be a direct hook pointer"):
            tvm_ffi.structural_map(cls(1), (str, lambda text: text))


def test_a_failure_midway_changes_nothing_that_others_see() -> None:
    @py_class(fresh_key())
    class Node(Object):
        left: Any
        right: Any

    inner = tvm_ffi.List([1, 2, 3])
    table = tvm_ffi.Dict({"a": 1, "b": 2})
    value = Node(tvm_ffi.Array([1, inner, table]), Node(4, 5))
    before = repr(value)
    for limit in range(1, 9):
        left = limit

        def change(number: int) -> int:
            nonlocal left
            left -= 1
            if left == 0:
                raise KeyError("midway")
            return number + 100

        for order in ("pre", "post"):
            left = limit
            attempt(lambda order=order: tvm_ffi.structural_map(value, (int, change), order=order))
            assert repr(value) == before
        left = limit
        attempt(lambda: tvm_ffi.structural_mutate(value, (int, lambda v, mutator: change(v))))
        assert repr(value) == before
    assert list(inner) == [1, 2, 3] and dict(table.items()) == {"a": 1, "b": 2}


def test_a_container_that_changes_while_it_is_mapped() -> None:
    values: Any = tvm_ffi.List(range(50))
    table: Any = tvm_ffi.Dict({i: i for i in range(50)})

    def shrink(number: int) -> int:
        values.clear()
        table.clear()
        return number + 1

    mapped = tvm_ffi.structural_map(tvm_ffi.Array([values, table]), (int, shrink))
    assert list(mapped[0]) == list(range(1, 51)) and len(values) == len(table) == 0


def test_an_array_is_let_go_while_its_parts_are_mapped() -> None:
    """Callbacks may drop every reference but that of the walk."""
    kept = [tvm_ffi.Array([tvm_ffi.Array([i, [i]]) for i in range(100)])]
    holder = tvm_ffi.List([kept[0]])

    def change(number: int) -> int:
        kept.clear()
        holder.clear()
        return number + 1

    mapped = tvm_ffi.structural_map(holder, (int, change))
    assert [part[0] for part in mapped[0]] == list(range(1, 101))

    def fail(number: int) -> int:
        raise KeyError(number)

    holder.append(tvm_ffi.Array([[1, 2], 3]))
    with pytest.raises(KeyError):
        tvm_ffi.structural_map(holder._move(), (int, fail))


@pytest.mark.parametrize(
    "value", [2**63, -(2**63) - 1, 2**64, 2**1000, -(2**1000)], ids=lambda v: f"{v.bit_length()}"
)
def test_integers_that_fit_no_narrow_type(value: int) -> None:
    target = testing.TestIntPair(1, 2)
    for run in (
        lambda: testing.TestIntPair(value, 2),
        lambda: testing.TestIntPair(2, value),
        lambda: testing._TestCxxClassBase(1, value),
        lambda: tvm_ffi.Shape((1, value)),
        lambda: tvm_ffi.device("cpu", value),
        lambda: tvm_ffi.get_global_func("testing.add_one")(value),
        lambda: tvm_ffi.Array([1])[value],
        lambda: tvm_ffi.core.TypeSchema("int").convert(value),
    ):
        with pytest.raises((TypeError, ValueError, OverflowError, IndexError)):
            run()
    assert (target.a, target.b) == (1, 2)
    assert tvm_ffi.Map({value: 1})[value] == 1


def make_nested() -> Any:
    """Return a List that only the caller refers to, of Lists and a Dict that only it refers to."""
    inner = tvm_ffi.List(["a string that is long enough for the heap", tvm_ffi.List([1, 2])])
    table = tvm_ffi.Dict({"key": tvm_ffi.List(["another string on the heap"])})
    return tvm_ffi.List([inner, table])


@pytest.mark.parametrize("kind", [str, int, tvm_ffi.List, tvm_ffi.Dict])
@pytest.mark.parametrize("order", ["pre", "post"])
def test_callbacks_drop_what_is_being_changed_in_place(kind: Any, order: str) -> None:
    """Through a weak reference, which does not keep the root from being changed in place."""

    def drop(value: Any) -> Any:
        found = watch()
        if found is not None:
            found.clear()
        return value

    def drop_and_fail(value: Any, mutator: Any) -> Any:
        drop(value)
        raise KeyError("dropped")

    def descend_and_drop(value: Any, mutator: Any) -> Any:
        return drop(mutator.default_mutate(value))

    root = make_nested()
    watch = weakref.ref(root)
    attempt(lambda: tvm_ffi.structural_map(root._move(), (kind, drop), order=order))
    for callback in (drop_and_fail, descend_and_drop):
        for is_moved in (True, False):
            root = make_nested()
            watch = weakref.ref(root)
            given = root._move() if is_moved else root
            attempt(
                lambda given=given, callback=callback: tvm_ffi.structural_mutate(
                    given, (kind, callback)
                )
            )


@pytest.mark.parametrize("order", ["pre", "post"])
def test_callbacks_store_other_values_in_what_is_mapped(order: str) -> None:
    @py_class(fresh_key(), structural_eq="tree")
    class Node(Object):
        left: Any
        right: Any

    text = "a string that is long enough for the heap"
    node = Node(tvm_ffi.List([text, tvm_ffi.Array([text + "!", 1])]), tvm_ffi.Array([2, text]))
    seen: list[Any] = []

    def replace(value: Any) -> Any:
        seen.append(value)
        node.left = node.right = None
        return value

    mapped = tvm_ffi.structural_map(node, [(int, replace), (str, replace)], order=order)
    # The list had been reached, the other field had not.
    assert seen == [text, text + "!", 1] and mapped is node
    table = tvm_ffi.Dict({f"key number {i}": tvm_ffi.List([i, text]) for i in range(9)})

    def clear(value: int) -> int:
        table.clear()
        table["new"] = 0
        return value + 1

    mapped = tvm_ffi.structural_map(table, (int, clear), order=order)
    assert [list(part) for part in mapped.values()] == [[i + 1, text] for i in range(9)]
    assert dict(table.items()) == {"new": 0}
