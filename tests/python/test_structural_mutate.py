# SPDX-License-Identifier: Apache-2.0
"""structural_map, structural_mutate and structural_visit."""

from __future__ import annotations

import copy
import gc
import threading
import weakref
from typing import Any

import pytest
import tvm_ffi
from tvm_ffi import (
    DefRegionKind,
    InplaceMode,
    VisitInterrupt,
    structural_map,
    structural_mutate,
    structural_visit,
    structural_walk,
)
from tvm_ffi.dataclasses import field, py_class


@py_class("test_mutate.Var", structural_eq="var")
class Var(tvm_ffi.Object):
    """A variable with a type."""

    name: str = field(structural_eq="ignore")
    type: Any = None


@py_class("test_mutate.Func", structural_eq="tree")
class Func(tvm_ffi.Object):
    """Parameters and a body."""

    params: Any = field(structural_eq="def-pattern")
    local: Any = field(structural_eq="def-simple")
    body: Any


@py_class("test_mutate.Pair", structural_eq="tree")
class Pair(tvm_ffi.Object):
    """Two values."""

    a: Any
    b: Any


def double(value: int) -> int:
    return 2 * value


def plain(value: Any) -> Any:
    """Return containers as Python containers."""
    if isinstance(value, (tvm_ffi.Map, tvm_ffi.Dict)):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (tvm_ffi.Array, tvm_ffi.List)):
        return [plain(item) for item in value]
    return value


def test_maps_replace_parts_and_share_the_rest() -> None:
    kept = Pair("x", "y")
    root = tvm_ffi.Array([1, kept, {"k": 2}, [3]])
    made = structural_map(root, (int, double))
    assert made[0] == 2 and made[1] is kept
    assert plain(made[2]) == {"k": 4} and plain(made[3]) == [6]
    assert plain(root[2]) == {"k": 2}
    assert structural_map(root, (int, lambda value: value)) is root
    assert plain(structural_map([1, [2]], (int, double), order="pre")) == [2, [4]]


def test_order_decides_what_a_callback_sees() -> None:
    def wrap(value: Any) -> Any:
        return tvm_ffi.Array([value]) if len(value) == 1 else value

    assert plain(structural_map([[1, 2]], (tvm_ffi.Array, wrap), order="post")) == [[[1, 2]]]
    sizes = []
    structural_map([[1, 2]], (tvm_ffi.Array, lambda a: sizes.append(len(a)) or a), order="pre")
    assert sizes == [1, 2]


def test_none_replaces() -> None:
    assert plain(structural_map([1, "x"], (int, lambda value: None))) == [None, "x"]
    assert plain(structural_mutate([1], (int, lambda value, mutator: None))) == [None]


def test_variables_are_replaced_consistently() -> None:
    x, y, free = Var("x", 1), Var("y", "same"), Var("free", 1)
    made = structural_map(Func([x], y, [x, y, free]), (int, double))
    assert made.params[0].type == 2
    assert made.body[0] is made.params[0]
    assert made.body[1] is y and made.body[2] is free


def test_kinds_of_regions() -> None:
    seen: list[Any] = []

    def note(value: int, kind: DefRegionKind) -> int:
        seen.append((value, kind))
        return value

    structural_map(Func(Func(1, 2, 3), 4, 5), with_def_region_kind=(int, note))
    pattern, simple = DefRegionKind.DEF_PATTERN, DefRegionKind.DEF_SIMPLE
    assert seen == [
        (1, pattern),
        (2, pattern),
        (3, pattern),
        (4, simple),
        (5, DefRegionKind.NONE),
    ]


def test_a_moved_root_is_changed_in_place() -> None:
    root = tvm_ffi.List([1, tvm_ffi.List([2])])
    address = root.__chandle__()
    made = structural_map(root._move(), (int, double))
    assert made.__chandle__() == address and plain(made) == [2, [4]]
    other = structural_map(made, (int, double))
    assert other is not made and plain(made) == [2, [4]] and plain(other) == [4, [8]]


def test_callbacks_own_the_descent() -> None:
    def pair(value: Pair, mutator: Any) -> Any:
        return Pair(mutator.mutate(value.a), value.b)

    made = structural_mutate(
        [Pair(1, 2), 3], [(Pair, pair), (int, lambda value, mutator: value * 10)]
    )
    assert (made[0].a, made[0].b, made[1]) == (10, 2, 30)


def test_callbacks_may_ask_for_the_mode() -> None:
    modes: list[Any] = []

    def note(value: Any, mutator: Any, mode: int) -> Any:
        modes.append(mode)
        return value

    structural_mutate([1], (tvm_ffi.Array, note))
    structural_mutate(tvm_ffi.List([1])._move(), (tvm_ffi.List, note))
    assert modes[0] == InplaceMode.DISALLOW and type(modes[0]) is int
    assert modes[1] == InplaceMode.ALLOW
    for optional in (lambda value, mutator, mode=7: mode, lambda *args: args[2]):
        assert plain(structural_mutate([1], (int, optional))) == [InplaceMode.DISALLOW]
    message = "must accept \\(value, mutator\\) or \\(value, mutator, inplace_mode\\)"
    with pytest.raises(TypeError, match=message):
        structural_mutate([1], (int, lambda value: value))


def test_the_mutator_knows_variables() -> None:
    x = Var("x", None)
    seen: list[Any] = []

    def use(value: int, mutator: Any) -> Any:
        seen.append(mutator.var_remap_get(x))
        mutator.var_remap_set(x, "new")
        seen.append(mutator.var_remap_get(x))
        seen.append(mutator.def_region_kind())
        seen.append(
            mutator.with_def_region_kind(DefRegionKind.DEF_PATTERN, mutator.def_region_kind)
        )
        with pytest.raises(TypeError, match="Variable-remap key must be an object-backed value"):
            mutator.var_remap_set(1, mapped_value=2)
        with pytest.raises(TypeError, match="Variable-remap key must be an object-backed value"):
            mutator.var_remap_get(1)
        return mutator.default_mutate(value)

    assert plain(structural_mutate([1, x], (int, use))) == [1, "new"]
    assert seen == [None, "new", DefRegionKind.NONE, DefRegionKind.DEF_PATTERN]


def test_visits_prune_and_stop() -> None:
    seen: list[Any] = []

    def skip(value: Any, visitor: Any) -> None:
        seen.append("pair")

    structural_visit([Pair(1, 2), 3], [(Pair, skip), (int, lambda v, visitor: seen.append(v))])
    assert seen == ["pair", 3]
    seen.clear()

    def descend(value: Any, visitor: Any) -> Any:
        return visitor.default_visit(value)

    structural_visit([Pair(1, 2)], [(Pair, descend), (int, lambda v, visitor: seen.append(v))])
    assert seen == [1, 2]
    found = structural_visit([1, 2], (int, lambda v, visitor: VisitInterrupt(v)))
    assert found is not None and found.value == 1
    with pytest.raises(TypeError, match="expected Optional<ffi.VisitInterrupt>, but got int"):
        structural_visit([1], (int, lambda v, visitor: 3))


def test_callbacks_of_visits_do_not_see_none() -> None:
    seen: list[Any] = []

    def note(value: Any, visitor: Any) -> Any:
        seen.append(value)
        assert visitor.visit(None) is None
        return visitor.default_visit(value)

    structural_visit([None, Pair(None, 1), {"k": None}], note)
    structural_visit(None, note)
    assert None not in seen and len(seen) == 4


def test_keys_are_not_visited() -> None:
    seen: list[Any] = []
    structural_walk({"a": 1, 2: "b"}, lambda value: seen.append(value))
    assert [value for value in seen if not isinstance(value, tvm_ffi.Map)] == [1, "b"]


def test_an_error_leaves_the_value_as_it_was() -> None:
    def fail(value: int) -> int:
        if value == 3:
            raise KeyError("three")
        return value + 1

    root = tvm_ffi.List([1, tvm_ffi.Dict({"a": 2}), 3])
    for order in ("pre", "post"):
        with pytest.raises(KeyError, match="three"):
            structural_map(root, (int, fail), order=order)
        assert plain(root) == [1, {"a": 2}, 3]
    with pytest.raises(KeyError, match="three"):
        structural_mutate(root, (int, lambda value, mutator: fail(value)))
    assert plain(root) == [1, {"a": 2}, 3]


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="Unknown structural map order: 'x'"):
        structural_map([1], order="x")
    for function in (structural_map, structural_mutate, structural_visit):
        for wrong in (3, {int: double}):
            with pytest.raises(TypeError, match=f"{function.__name__} callbacks must be"):
                function([1], wrong)


class Opaque:
    pass


WITHOUT_PARTS = {
    "ffi.Shape": lambda: tvm_ffi.Shape((1, 2)),
    "ffi.Tensor": lambda: tensor((2,)),
    "ffi.Function": lambda: tvm_ffi.convert(len),
    "ffi.OpaquePyObject": Opaque,
}


def tensor(shape: tuple[int, ...]) -> Any:
    return tvm_ffi.from_dlpack(pytest.importorskip("numpy").zeros(shape))


@pytest.mark.parametrize("key", WITHOUT_PARTS)
def test_values_without_parts_need_a_callback(key: str) -> None:
    value = WITHOUT_PARTS[key]()
    text = "__ffi_shallow_copy__ must be an ffi.Function"
    for order in ("pre", "post"):
        for callbacks in ((), (int, double), (tvm_ffi.Map, double)):
            with pytest.raises(TypeError, match=text):
                structural_map([value], callbacks, order=order)
            with pytest.raises(TypeError, match=text):
                structural_map(Pair(1, value), callbacks, order=order)
    with pytest.raises(TypeError, match=text):
        structural_mutate([value], (int, lambda value, mutator: value))


def replace_part(part: Any) -> Any:
    return part if isinstance(part, (int, tvm_ffi.Array, Pair)) else 1


@pytest.mark.parametrize("key", WITHOUT_PARTS)
def test_callbacks_take_values_without_parts(key: str) -> None:
    value = WITHOUT_PARTS[key]()
    for order in ("pre", "post"):
        seen = []

        def replace(part: Any, seen: list[Any] = seen) -> Any:
            seen.append(part)
            return replace_part(part)

        root = tvm_ffi.Array([value, 2])
        made = structural_map(root, (object, replace), order=order)
        assert list(made) == [1, 2] and len(seen) >= 3
        kept = structural_map(root, (object, lambda part: part), order=order)
        # A plain Python object that returns to C++ is wrapped again.
        assert kept.same_as(root) or kept[0] is value
        pair = structural_map(Pair(value, 2), (object, replace_part), order=order)
        assert (pair.a, pair.b) == (1, 2)
    made = structural_mutate([value], (tvm_ffi.Object, lambda value, mutator: 1))
    assert made == 1


def test_keys_are_hashed_again() -> None:
    key = tvm_ffi.StructuralKey([1, 2])
    for order in ("pre", "post"):
        made = structural_map(key, (int, double), order=order)
        assert made == tvm_ffi.StructuralKey([2, 4]) and {made: 1}[tvm_ffi.StructuralKey([2, 4])]
        assert hash(made) == tvm_ffi.structural_hash([2, 4])
        assert structural_map(key, (str, double), order=order).same_as(key)
    mutated = structural_mutate([key], (int, lambda value, mutator: value + 1))
    assert hash(mutated[0]) == tvm_ffi.structural_hash([2, 3])
    assert hash(key) == tvm_ffi.structural_hash([1, 2])
    with pytest.raises(TypeError, match="StructuralHash is not supported"):
        structural_map(key, (int, lambda value: tvm_ffi.convert(len)))


def test_deep_and_cyclic_values() -> None:
    value: Any = 1
    for _ in range(100_000):
        value = tvm_ffi.List([value])
    made = structural_map(value, (int, double))
    for _ in range(100_000):
        made = made[0]
    assert made == 2
    cycle = tvm_ffi.List([1])
    cycle.append(cycle)
    with pytest.raises(ValueError, match="contains itself"):
        structural_map(cycle, (int, double))
    cycle.clear()

    def again(value: Any, mutator: Any) -> Any:
        return mutator.mutate(value)

    with pytest.raises((RecursionError, ValueError)):
        structural_mutate([1], (int, again))


def test_nothing_is_kept() -> None:
    pair = Pair(1, "x")
    watch = weakref.ref(pair)
    made = structural_map(pair, (int, double))
    assert made.a == 2
    del pair, made
    gc.collect()
    assert watch() is None


def test_regions_of_the_testing_library() -> None:
    make = tvm_ffi.get_global_func("testing.make_visit_region_graph")
    seen: list[Any] = []

    def note(value: Any, kind: DefRegionKind) -> None:
        seen.append((value if isinstance(value, int) else type(value).__name__, int(kind)))

    structural_walk(make(True), with_def_region_kind=(object, note), order="pre")
    assert [kind for _, kind in seen] == [0, 2, 2, 1, 2, 0]
    assert [value for value, _ in seen[2:]] == [1, 2, 3, 4]
    seen.clear()
    structural_walk(make(False), with_def_region_kind=(int, note))
    assert seen == [(1, 2), (2, 1), (3, 0)]
    hook = type(make(True)).__tvm_ffi_type_info__
    assert [(f.name, f.offset, f.size, str(f.ty), f.frozen) for f in hook.fields] == [
        ("child", 24, 8, "Object", True)
    ]
    assert hook.total_size == 32
    regions = type(make(False)).__tvm_ffi_type_info__
    assert [f.c_has_default for f in regions.fields] == [False] * 3


def test_a_mutator_that_was_kept_refuses() -> None:
    kept: list[Any] = []

    def keep(value: Any, mutator: Any) -> Any:
        kept.append(mutator)
        return value

    structural_mutate([1, [2]], (tvm_ffi.Array, keep))
    value = tvm_ffi.Array([1])
    for use in (
        lambda: kept[0].mutate(value),
        lambda: kept[0].default_mutate(value),
        lambda: kept[0].var_remap_get(value),
        lambda: kept[0].var_remap_set(value, value),
    ):
        with pytest.raises(RuntimeError, match="until the call that made it returns"):
            use()


def test_a_mutator_refuses_another_thread() -> None:
    raised: list[BaseException] = []

    def use(value: Any, mutator: Any) -> Any:
        def elsewhere() -> None:
            for method in (mutator.mutate, mutator.default_mutate, mutator.var_remap_get):
                try:
                    method(value)
                except RuntimeError as error:
                    raised.append(error)

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        return mutator.default_mutate(value)

    assert structural_mutate([1, 2], (tvm_ffi.Array, use)) == [1, 2]
    assert len(raised) == 3
    assert all("only in the thread of the call" in str(error) for error in raised)


def test_the_visitor_of_a_walk_refuses_another_thread() -> None:
    raised: list[BaseException] = []

    @py_class("testing.structural_mutate.Visited")
    class Visited(tvm_ffi.Object):
        part: Any

        @staticmethod
        def __s_visit__(visitor: Any, value: Any) -> Any:
            def elsewhere() -> None:
                try:
                    visitor.visit(value.part)
                except RuntimeError as error:
                    raised.append(error)

            thread = threading.Thread(target=elsewhere)
            thread.start()
            thread.join()
            return visitor.visit(value.part)

    seen: list[int] = []
    structural_walk([Visited(tvm_ffi.Array([1, 2]))], (int, seen.append))
    assert seen == [1, 2]
    assert len(raised) == 1
    assert "only in the thread of the call" in str(raised[0])


def test_callbacks_of_int_take_integers_of_any_size() -> None:
    values = [1, 2**63, -(2**200)]
    seen: list[int] = []
    structural_walk(values, (int, seen.append))
    assert seen == values
    assert structural_map(values, (int, lambda x: x + 1)) == [x + 1 for x in values]
    assert structural_mutate(values, (int, lambda x, _: x + 1)) == [x + 1 for x in values]


@pytest.mark.parametrize("copies", [copy.copy, copy.deepcopy])
@pytest.mark.parametrize("run", [structural_visit, structural_mutate])
def test_visitors_and_mutators_cannot_be_copied(run: Any, copies: Any) -> None:
    """A copy would lack what the engine behind them has."""
    kept: list[Any] = []
    with pytest.raises(TypeError, match="cannot|cop"):
        run([1], (int, lambda value, engine: copies(kept.append(engine) or engine)))
    with pytest.raises(TypeError, match="cannot|cop"):
        copies(kept[0])
    with pytest.raises(RuntimeError, match="Cannot deep copy object"):
        copy.deepcopy(tvm_ffi.Array(kept))
