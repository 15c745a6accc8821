# SPDX-License-Identifier: Apache-2.0
"""Containers while user code changes them: hooks of keys and elements, finalisers, cycles.

What is promised: nothing crashes or hangs, an operation is right at the moment it ends or raises
and does nothing, and what a finaliser stores stays.
"""

from __future__ import annotations

import copy
import gc
import pickle
import random
import weakref
from collections.abc import Callable
from typing import Any, ClassVar

import pytest
import tvm_ffi
from support import SCALE
from tvm_ffi import Array, Dict, List, Map, Object
from tvm_ffi.dataclasses import field, py_class
from tvm_ffi.testing import echo


@py_class("test_container_hooks.Key")
class Key(Object):
    x: int
    hook: ClassVar[Callable[[], None] | None] = None
    num_hashes: ClassVar[int] = 1

    def __any_hash__(self) -> int:
        if Key.hook is not None:
            Key.hook()
        return self.x % Key.num_hashes

    def __any_equal__(self, other: Key) -> bool:
        if Key.hook is not None:
            Key.hook()
        return self.x == other.x


@pytest.fixture(autouse=True)
def _no_hook_left() -> Any:
    yield
    Key.hook = None
    Key.num_hashes = 1


def once(action: Callable[[], Any]) -> Callable[[], None]:
    def hook() -> None:
        Key.hook = None
        action()

    return hook


# ---- searches that hooks meddle with ------------------------------------------------------------


class Meddling:
    """Random operations on a Dict whose keys' hooks run random operations on it, two deep."""

    def __init__(self, num_keys: int, one_in: int, seed: int) -> None:
        self.rng = random.Random(seed)
        self.num_keys = num_keys
        self.one_in = one_in
        self.dict: Any = Dict()
        self.model: dict[int, int] = {}
        self.depth = 0
        self.time = 0
        self.changes = 0

    def meddle(self) -> None:
        if self.depth == 2 or self.rng.randrange(self.one_in):
            return
        if self.rng.random() < 0.02:
            raise ZeroDivisionError
        self.depth += 1
        self.changes += 1
        try:
            self.operate()
        finally:
            self.depth -= 1

    def operate(self) -> None:
        x = self.rng.randrange(self.num_keys)
        self.time += 1
        now = self.time
        what = self.rng.choice("set set default get get in del pop popitem clear iterate".split())
        try:
            if what == "set":
                self.dict[Key(x)] = now
                self.model[x] = now
            elif what == "default":
                found = self.dict.setdefault(Key(x), now)
                assert found == self.model.setdefault(x, now)
            elif what == "get":
                found = self.dict.get(Key(x))
                assert found == self.model.get(x)
            elif what == "in":
                found = Key(x) in self.dict
                assert found == (x in self.model)
            elif what == "del":
                del self.dict[Key(x)]
                del self.model[x]
            elif what == "pop":
                popped = self.dict.pop(Key(x), None)
                assert popped == self.model.pop(x, None)
            elif what == "popitem" and self.model:
                x = next(iter(self.model))
                key, value = self.dict.popitem()
                assert (key.x, value) == (x, self.model.pop(x))
            elif what == "clear" and self.rng.random() < 0.1:
                self.dict.clear()
                self.model.clear()
            elif what == "iterate":
                items = [(k.x, v) for k, v in self.dict.items()]
                assert items == list(self.model.items())
        except KeyError:
            assert what == "del" and x not in self.model
        except RuntimeError as error:
            assert "Dict changed during" in str(error)

    def run(self, steps: int) -> None:
        Key.hook = self.meddle
        for _ in range(steps):
            try:
                self.operate()
            except ZeroDivisionError:
                pass
            Key.hook = None
            assert [(k.x, v) for k, v in self.dict.items()] == list(self.model.items())
            Key.hook = self.meddle
        Key.hook = None


@pytest.mark.parametrize("num_hashes", [1, 3, 1000])
@pytest.mark.parametrize("num_keys", [3, 6, 40])
@pytest.mark.parametrize("one_in", [3, 20])
def test_hooks_may_change_the_dict_being_searched(
    num_hashes: int, num_keys: int, one_in: int
) -> None:
    Key.num_hashes = num_hashes
    for seed in range(max(1, int(5 * SCALE))):
        meddling = Meddling(num_keys, one_in, seed)
        meddling.run(40 if one_in == 3 else 150)
        assert meddling.changes > 0


SEARCHES: dict[str, Callable[[Any, Key], Any]] = {
    "get": lambda c, k: c.get(k, "nothing"),
    "in": lambda c, k: k in c,
    "subscript": lambda c, k: c[k],
    "ffi.GetItem": lambda c, k: ffi(c, "GetItem")(c, k),
    "ffi.Count": lambda c, k: ffi(c, "Count")(c, k),
    "ffi.GetItemOrMissing": lambda c, k: ffi(c, "GetItemOrMissing")(c, k),
    "keys": lambda c, k: k in c.keys(),  # noqa: SIM118
    "items": lambda c, k: (k, 1) in c.items(),
}


def ffi(container: Any, name: str) -> Any:
    return tvm_ffi.get_global_func(f"ffi.{type(container).__name__}{name}")


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("cls", [Map, Dict])
@pytest.mark.parametrize("n", [3, 9])
def test_a_hook_may_move_the_map_away(cls: type, search: str, n: int) -> None:
    made = cls({Key(i): i for i in range(n)})
    # Whatever holds the map now, the answer is that of the map as it was.
    Key.hook = once(lambda: (echo(made._move()), [cls({Key(i): "other"}) for i in range(20)]))
    assert SEARCHES[search](made, Key(n - 1)) in (n - 1, True, 1, n - 1, False)
    with pytest.raises((ValueError, RuntimeError)):
        len(made)


def test_a_dict_that_always_changes_is_a_runtime_error_that_names_the_operation() -> None:
    for n in (2, 20):
        made = Dict({Key(i): i for i in range(n)})
        count = iter(range(1000, 10**9))

        def change(made: Any = made, count: Any = count) -> None:
            Key.hook = None
            del made[next(iter(made))]
            made[Key(next(count))] = 0
            Key.hook = change

        for name, operation in (
            ("find", lambda made=made: made.get(Key(-1))),
            ("set", lambda made=made: made.__setitem__(Key(-1), 0)),
            ("erase", lambda made=made: made.__delitem__(Key(-1))),
            ("erase", lambda made=made: made.pop(Key(-1), None)),
        ):
            Key.hook = change
            with pytest.raises(RuntimeError, match=f"Dict changed during `{name}`"):
                operation()
            Key.hook = None
            assert len(made) == n


@pytest.mark.parametrize("cls", [Array, List])
@pytest.mark.parametrize("what", ["in", "index", "count", "remove", "=="])
def test_hooks_of_elements_may_change_the_sequence(cls: type, what: str) -> None:
    def use(made: Any) -> None:
        if what == "in":
            assert (Key(8) in made) in (True, False)
        elif what == "==":
            assert (made == cls([Key(i) for i in range(9)])) in (True, False)
        elif what == "remove" and cls is Array:
            return
        else:
            try:
                getattr(made, what)(Key(8))
            except (ValueError, IndexError):
                pass

    def changes(made: Any) -> list[Callable[[], Any]]:
        moved = [lambda: echo(made._move())]
        if cls is Array:
            return moved
        return [*moved, made.clear, lambda: made.extend(range(100)), made.pop, made.reverse]

    for i in range(len(changes(cls([])))):
        made = cls([Key(i) for i in range(9)])
        Key.hook = once(changes(made)[i])
        use(made)


def test_walks_survive_hooks_that_change_what_they_walk() -> None:
    walks: list[Callable[[Any], Any]] = [
        repr,
        hash,
        copy.deepcopy,
        copy.copy,
        tvm_ffi.structural_hash,
        lambda d: tvm_ffi.structural_equal(d, Dict({Key(i): i for i in range(9)})),
        lambda d: tvm_ffi.get_first_structural_mismatch(d, Dict({Key(i): i for i in range(8)})),
        lambda d: tvm_ffi.get_first_structural_mismatch(Dict({Key(i): i for i in range(8)}), d),
        lambda d: d == Dict({Key(i): i for i in range(9)}),
        lambda d: Dict({Key(i): i for i in range(9)}) == d,
        lambda d: Map(d),
        lambda d: Dict().update(d),
        lambda d: list(d.items()),
    ]
    for change in ("clear", "grow"):
        for delay in range(4):
            for walk in walks:
                made = Dict({Key(i): i for i in range(9)})
                left = delay

                def hook(made: Any = made, change: str = change) -> None:
                    nonlocal left
                    left -= 1
                    if left >= 0:
                        return
                    Key.hook = None
                    made.clear() if change == "clear" else made.update({i: i for i in range(200)})

                Key.hook = hook
                try:
                    walk(made)
                except (ValueError, TypeError, RuntimeError):
                    pass
                Key.hook = None
                list(made.items())


# ---- finalisers ---------------------------------------------------------------------------------


class Mourned:
    """Nodes that call back when they die."""

    def __init__(self, called: Callable[[], Any]) -> None:
        self.called = called
        self.refs: list[Any] = []

    def node(self) -> Any:
        node = Array([1])
        self.refs.append(weakref.ref(node, lambda _: self.called()))
        return node


REMOVALS: dict[str, Callable[[Any], Any]] = {
    "clear": lambda c: c.clear(),
    "del [:]": lambda c: c.__delitem__(slice(None)),
    "del [::2]": lambda c: (c.__delitem__(slice(None, None, 2)), c.__delitem__(slice(0, 5))),
    "[:] = []": lambda c: c.__setitem__(slice(None), []),
    "[2:] = ..., [:2] = ...": lambda c: (
        c.__setitem__(slice(2, None), ["new"] * 30),
        c.__setitem__(slice(0, 2), ["new"]),
    ),
    "[::-1] = ...": lambda c: c.__setitem__(slice(None, None, -1), list(range(10))),
    "pop": lambda c: [c.pop(0) for _ in range(10)],
    "[i] = ...": lambda c: [c.__setitem__(i, i) for i in range(10)],
}


@pytest.mark.parametrize("removal", REMOVALS)
def test_what_a_finaliser_appends_to_a_list_stays(removal: str) -> None:
    made: Any = List()
    late = iter(range(100))
    mourned = Mourned(lambda: made.append(f"late {next(late)}"))
    for _ in range(10):
        made.append(mourned.node())
    REMOVALS[removal](made)
    gc.collect()
    found = sorted(item for item in made if isinstance(item, str) and item.startswith("late"))
    assert found == sorted(f"late {i}" for i in range(10))
    assert not any(isinstance(item, Array) for item in made)


@pytest.mark.parametrize("removal", [r for r in REMOVALS if r not in ("pop", "[i] = ...")])
def test_a_finaliser_may_empty_the_list(removal: str) -> None:
    made: Any = List()
    mourned = Mourned(made.clear)
    for _ in range(10):
        made.append(mourned.node())
    try:
        REMOVALS[removal](made)
    except (IndexError, ValueError):
        pass
    assert len(made) < 40
    list(made)


@pytest.mark.parametrize("n", [1, 2, 4, 5, 30])
@pytest.mark.parametrize("how", ["clear", "pop", "del", "overwrite"])
def test_what_a_finaliser_stores_in_a_dict_stays(n: int, how: str) -> None:
    made: Any = Dict()
    late = iter(range(1000))
    mourned = Mourned(lambda: made.update({f"late {next(late)}": 1}))
    for i in range(n):
        made[i] = mourned.node()
    if how == "clear":
        made.clear()
    for i in range(n if how != "clear" else 0):
        if how == "pop":
            made.pop(i)
        elif how == "del":
            del made[i]
        else:
            made[i] = 0
    gc.collect()
    assert sorted(k for k in made if isinstance(k, str)) == sorted(f"late {i}" for i in range(n))
    assert len(made) == (2 * n if how == "overwrite" else n)


@pytest.mark.parametrize("cls", [List, Dict])
def test_clear_ends_even_if_each_finaliser_stores_another_node(cls: type) -> None:
    made: Any = cls()
    nodes: list[Any] = []

    def add(*_: Any) -> None:
        if len(nodes) < 1000:
            node = Array([1])
            nodes.append(weakref.ref(node, add))
            if cls is List:
                made.append(node)
            else:
                made[len(nodes)] = node

    add()
    made.clear()
    assert (len(nodes), len(made)) == (2, 1)


# ---- values that contain themselves -------------------------------------------------------------


@py_class("test_container_hooks.Node", structural_eq="tree", eq=True)
class Node(Object):
    child: Any = field(default=None)


def _cycles() -> dict[str, Callable[[], Any]]:
    def through(outer: Any, store: Callable[[Any, Any], None], inner: Any) -> Any:
        store(outer, inner(outer))
        return outer

    def append(c: Any, v: Any) -> None:
        c.append(v)

    def put(c: Any, v: Any) -> None:
        c["self"] = v

    def fill(c: Any, v: Any) -> None:
        c.child = v

    makers = {"list": (List, append), "dict": (lambda: Dict({"a": 1}), put), "node": (Node, fill)}
    wrappers: dict[str, Callable[[Any], Any]] = {
        "itself": lambda v: v,
        "a list": lambda v: List([1, v]),
        "a dict": lambda v: Dict({"b": v, "c": 2}),
        "an array": lambda v: Array([v]),
        "a map": lambda v: Map({"m": v}),
        "a node": lambda v: Node(v),
        "a map in a dict": lambda v: Dict({"d": Map({"m": v, "n": List([v])}), "e": v}),
    }
    return {
        f"{name} in {wrapper}": (
            lambda make=make, store=store, wrap=wrap: through(make(), store, wrap)
        )
        for name, (make, store) in makers.items()
        for wrapper, wrap in wrappers.items()
    }


CYCLES = _cycles()

WALKS: dict[str, Callable[[Any, Any], Any]] = {
    "repr": lambda v, _: repr(v),
    "hash": lambda v, _: hash(v),
    "==": lambda v, w: v == w,
    "RecursiveEq": lambda v, w: tvm_ffi.get_global_func("ffi.RecursiveEq")(v, w),
    "RecursiveHash": lambda v, _: tvm_ffi.get_global_func("ffi.RecursiveHash")(v),
    "RecursiveLt": lambda v, w: tvm_ffi.get_global_func("ffi.RecursiveLt")(v, w),
    "structural_equal": lambda v, w: tvm_ffi.structural_equal(v, w),
    "structural_hash": lambda v, _: tvm_ffi.structural_hash(v),
    "structural_hash, free": lambda v, _: tvm_ffi.structural_hash(v, map_free_vars=True),
    "mismatch": lambda v, w: tvm_ffi.get_first_structural_mismatch(v, w),
    "StructuralKey": lambda v, w: tvm_ffi.StructuralKey(v) == tvm_ffi.StructuralKey(w),
    "deepcopy": lambda v, _: copy.deepcopy(v),
    "copy": lambda v, _: copy.copy(v),
    "pickle": lambda v, _: pickle.loads(pickle.dumps(v)),
    "graph": lambda v, _: tvm_ffi.get_global_func("ffi.ToJSONGraphString")(v, None),
    "Stringify": lambda v, _: tvm_ffi.get_global_func("ffi.json.Stringify")(v, None),
    "in": lambda v, w: w in List([v]),
    "convert": lambda v, _: tvm_ffi.convert([v]),
    "device": lambda v, _: tvm_ffi.get_global_func("ffi.ContainerFindFirstNonCPUDevice")(v),
}


@pytest.mark.parametrize("walk", WALKS)
@pytest.mark.parametrize("cycle", CYCLES)
def test_a_walk_over_a_value_that_contains_itself_ends(cycle: str, walk: str) -> None:
    value, other = CYCLES[cycle](), CYCLES[cycle]()
    try:
        result = WALKS[walk](value, other)
    except (ValueError, TypeError, RuntimeError, RecursionError):
        return
    if walk in ("==", "RecursiveEq", "structural_equal", "StructuralKey"):
        assert result is True


def test_a_hash_hook_may_go_on_after_a_cycle_was_found() -> None:
    @py_class("test_container_hooks.Careful", structural_eq="tree")
    class Careful(Object):
        inner: Any

        def __s_hash__(self, init: int, hash_part: Any) -> int:
            try:
                return hash_part(self.inner, init, 0)
            except ValueError:
                return hash_part(7, init, 0)

    cyclic: Any = Dict({"a": 1})
    cyclic["self"] = cyclic
    plain = Dict({"x": Careful(cyclic), "y": List([1]), "z": 2})
    assert tvm_ffi.structural_hash(plain) == tvm_ffi.structural_hash(
        Dict({"x": Careful(cyclic), "y": List([1]), "z": 2})
    )
    assert tvm_ffi.structural_hash(plain) != tvm_ffi.structural_hash(
        Dict({"x": Careful(cyclic), "y": List([2]), "z": 2})
    )


# ---- keys and mapping methods -------------------------------------------------------------------


def test_an_overwritten_key_keeps_its_place() -> None:
    for n in (2, 4, 5, 100):
        made = Dict({i: i for i in range(n)})
        made[0] = "new"
        assert list(made.items()) == [(0, "new"), *((i, i) for i in range(1, n))]


def test_python_objects_and_functions_are_found_as_keys() -> None:
    def function() -> None: ...

    for key in (object(), frozenset({1}), 1 + 2j, function, len, int):
        for cls in (Dict, Map):
            made = cls({key: 1, "other": 2})
            assert key in made
            assert made[key] == 1
            assert made.get(object(), "no") == "no"
        made = Dict({key: 1})
        made[key] = 2
        assert len(made) == 1 and made[key] == 2
        assert key in Array([1, key]) and object() not in Array([1, key])
        del made[key]
        assert len(made) == 0


def test_integers_outside_int64_are_found_where_they_are() -> None:
    for huge in (2**64, -(2**70), (1, 2**64), [2**64], {1: 2**64}):
        assert huge not in Array([1])
        assert huge not in List([1])
        for made in (Map({1: 1}), Dict({1: 1})):
            assert huge not in made
            assert made.get(huge, "d") == "d"
            with pytest.raises(KeyError):
                made[huge]
        assert Dict({1: 1}).pop(huge, "d") == "d"
        with pytest.raises(KeyError):
            del Dict({1: 1})[huge]
        found = Dict()
        found[huge] = 1
        assert len(found) == 1
    assert 2**64 in Array([2**64]) and Dict({2**64: 1})[2**64] == 1


def test_key_errors_name_key_and_class() -> None:
    with pytest.raises(KeyError, match="key is not in Dict: 'zz'"):
        Dict({"a": 1})["zz"]
    with pytest.raises(KeyError, match="key is not in Map: 'zz'"):
        Map({"a": 1})["zz"]


def test_update_takes_what_dict_update_takes() -> None:
    class HasKeys:
        def keys(self) -> list[str]:
            return ["k"]

        def __getitem__(self, key: str) -> int:
            return 5

    for args, named in (
        (({"a": 1},), {}),
        (([("a", 1), ["b", 2]],), {}),
        ((["ab", "cd"],), {"c": 3, "other": 4}),
        ((), {"self": 1}),
        ((HasKeys(),), {}),
        ((Map({"m": 1}),), {}),
    ):
        made, expected = Dict({"z": 0}), {"z": 0}
        made.update(*args, **named)
        expected.update(*args, **named)
        assert list(made.items()) == list(expected.items())
    made = Dict()
    made.update(zip("ab", "cd", strict=True))
    assert dict(made) == {"a": "c", "b": "d"}
    for bad in ([(1, 2, 3)], ["abc"], [1], 3):
        with pytest.raises((ValueError, TypeError)):
            Dict().update(bad)


@pytest.mark.parametrize("cls", [Map, Dict])
@pytest.mark.parametrize("items", [[(1, 2, 3)], [(1, 2, 3)] * 2, [(1,)], [(1,), (2, 3, 4)]])
def test_items_that_are_no_pairs_are_named(cls: type, items: list[Any]) -> None:
    class Odd(dict):
        def items(self) -> Any:
            return items

    with pytest.raises(ValueError, match=f"item #0 has length {len(items[0])}"):
        cls(Odd(a=1))


def test_the_functor_iteration_survives_changes() -> None:
    for n in (3, 20):
        made = Dict({i: i for i in range(n)})
        functor = tvm_ffi.get_global_func("ffi.DictForwardIterFunctor")(made)
        seen = [functor(0)]
        made.clear()
        for i in range(50):
            made[i] = i
        while functor(2) and len(seen) < 1000:
            seen.append(functor(0))
        assert len(seen) < 1000


def test_a_view_of_values_is_searched_as_it_was() -> None:
    made = tvm_ffi.Dict({1: "a", 2: "b", 3: "c"})

    class Clears:
        __hash__ = None  # type: ignore[assignment]

        def __eq__(self, other: object) -> bool:
            made.clear()
            return False

    assert "b" in made.values() and "d" not in made.values()
    assert Clears() not in made.values()
    assert not made


def test_positions_are_anything_with_an_index() -> None:
    class Two:
        def __index__(self) -> int:
            return 2

    made = tvm_ffi.List([1, 2, 1, 2, 1])
    assert made.index(1, Two()) == 2 and made.index(1, 0, Two()) == 0
    with pytest.raises(ValueError, match="9 is not in this List"):
        made.index(9, Two(), Two())
