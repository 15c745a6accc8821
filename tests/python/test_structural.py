# SPDX-License-Identifier: Apache-2.0
"""Equality, hashes and walks by structure."""

from __future__ import annotations

from typing import Any

import pytest
import tvm_ffi
from support import fresh_key
from tvm_ffi import (
    DefRegionKind,
    StructuralKey,
    VisitInterrupt,
    WalkOrder,
    WalkResult,
    _ffi_api,
    get_first_structural_mismatch,
    structural_equal,
    structural_hash,
    structural_walk,
    testing,
)
from tvm_ffi.access_path import AccessPath
from tvm_ffi.dataclasses import field, py_class

EQUAL = [
    (1, 1),
    ("text", "text"),
    ([1, "a", [2.5]], [1, "a", [2.5]]),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    (tvm_ffi.Dict({1: 2, 3: 4}), tvm_ffi.Dict({3: 4, 1: 2})),
    (None, None),
    ([None], [None]),
]
DIFFERENT = [
    (1, 2),
    (1, 1.0),
    (1, True),
    ("a", "b"),
    ([1, 2], [2, 1]),
    ([1], [1, 2]),
    ({"a": 1}, {"a": 2}),
    ({"a": 1}, {"b": 1}),
    (tvm_ffi.Map({"a": 1}), tvm_ffi.Dict({"a": 1})),
    (tvm_ffi.Array([1]), tvm_ffi.List([1])),
    (None, 0),
]


@pytest.mark.parametrize(("lhs", "rhs"), EQUAL)
def test_equal_values(lhs: Any, rhs: Any) -> None:
    assert structural_equal(lhs, rhs)
    assert structural_hash(lhs) == structural_hash(rhs)
    assert get_first_structural_mismatch(lhs, rhs) is None


@pytest.mark.parametrize(("lhs", "rhs"), DIFFERENT)
def test_different_values(lhs: Any, rhs: Any) -> None:
    assert not structural_equal(lhs, rhs)
    assert structural_hash(lhs) != structural_hash(rhs)
    paths = get_first_structural_mismatch(lhs, rhs)
    assert len(paths) == 2
    assert all(isinstance(path, AccessPath) for path in paths)


def test_hashes_are_unsigned_64_bit_numbers() -> None:
    values = [structural_hash([i, i + 1, i + 2]) for i in range(200)]
    assert all(0 <= value < 2**64 for value in values)
    assert len(set(values)) == len(values)
    signed = [_ffi_api.StructuralHash([i, i + 1, i + 2], False, False) for i in range(200)]
    assert min(signed) < 0
    assert values == [value % 2**64 for value in signed]


def test_the_first_difference_is_found() -> None:
    lhs = tvm_ffi.convert([1, {"k": [1, 2, 3]}])
    rhs = tvm_ffi.convert([1, {"k": [1, 2, 4]}])
    left, right = get_first_structural_mismatch(lhs, rhs)
    assert left == right == AccessPath.root().array_item(1).map_item("k").array_item(2)
    left, right = get_first_structural_mismatch([1, 2], [1, 2, 3])
    assert left == AccessPath.root().array_item_missing(2)
    assert right == AccessPath.root().array_item(2)


def test_cyclic_values_can_be_compared() -> None:
    def ring() -> Any:
        items = tvm_ffi.List([1])
        items.append(items)
        return items

    assert _ffi_api.RecursiveEq(ring(), ring())


# ---- keys ---------------------------------------------------------------------------------------


def test_structural_keys() -> None:
    key = StructuralKey({"a": [1, 2], "b": 3})
    same = StructuralKey({"b": 3, "a": [1, 2]})
    other = StructuralKey({"a": [1, 2], "b": 4})
    assert key == same
    assert key != other
    assert hash(key) == hash(same)
    assert key.__hash__() == structural_hash(key.key) == key.hash_i64 & (2**64 - 1)
    assert (key == 3, key != "x") == (False, True)
    assert {key: "found"}[same] == "found"
    assert tvm_ffi.Map({key: "found"})[same] == "found"
    assert other not in {key: 1}


def test_structural_keys_in_maps() -> None:
    k1, k2, k3 = StructuralKey([1]), StructuralKey([1]), StructuralKey([2])
    table = tvm_ffi.Map({k1: 1, k2: 2, k3: 3})
    assert len(table) == 2
    assert table[StructuralKey([1])] == 2


# ---- walks --------------------------------------------------------------------------------------


def trace(root: Any, *, order: Any = "pre") -> list[str]:
    seen: list[str] = []
    structural_walk(
        root,
        [
            (tvm_ffi.Array, lambda a: seen.append(f"array:{len(a)}")),
            ((int, float), lambda x: seen.append(f"number:{x}")),
            (str, lambda s: seen.append(f"str:{s}")),
        ],
        order=order,
    )
    return seen


def test_values_are_reported_before_or_after_their_parts() -> None:
    root = tvm_ffi.Array([1, 2.5, "tag"])
    assert trace(root) == ["array:3", "number:1", "number:2.5", "str:tag"]
    nested = tvm_ffi.Array([tvm_ffi.Array([1]), 2])
    expected = ["number:1", "array:1", "number:2", "array:2"]
    assert trace(nested, order="post") == trace(nested, order=WalkOrder.POSTORDER) == expected
    assert trace(nested, order=WalkOrder.PREORDER)[0] == "array:2"


def test_long_text_is_visited_and_keys_are_not() -> None:
    assert trace(["text of more than seven bytes"])[1] == "str:text of more than seven bytes"
    seen: list[str] = []
    structural_walk({"a": 1, "b": ["x"]}, (str, seen.append))
    assert seen == ["x"]


def test_the_first_callback_that_fits_is_called() -> None:
    seen: list[str] = []
    structural_walk(
        [1, [2]],
        [
            (tvm_ffi.Object, lambda o: seen.append(f"object:{type(o).__name__}")),
            (Any, lambda v: seen.append(f"any:{v}")),
        ],
    )
    assert seen == ["any:1", "any:2", "object:Array", "object:Array"]
    kinds: list[str] = []
    structural_walk(tvm_ffi.Array([1]), (object, lambda v: kinds.append(type(v).__name__)))
    assert kinds == ["int", "Array"]
    flags: list[Any] = []
    structural_walk([True], ((int, bool), flags.append))
    assert flags == [True]
    everything: list[Any] = []
    structural_walk({"a": [1]}, lambda v: everything.append(type(v).__name__))
    assert everything == ["int", "Array", "Map"]


def test_skip_leaves_the_parts_out() -> None:
    seen: list[Any] = []

    def skip(value: Any) -> Any:
        seen.append("array")
        return WalkResult.SKIP

    structural_walk([1, [2]], [(tvm_ffi.Array, skip), (object, seen.append)], order="pre")
    assert seen == ["array"]


def test_an_interrupt_ends_the_walk() -> None:
    seen: list[int] = []

    def stop(value: int) -> Any:
        seen.append(value)
        return VisitInterrupt({"found": value}) if value == 2 else WalkResult.ADVANCE

    result = structural_walk([1, 2, 3], (int, stop))
    assert isinstance(result, VisitInterrupt)
    assert structural_equal(result.value, {"found": 2})
    assert seen == [1, 2]
    assert structural_walk([1], (int, lambda x: None)) is None
    assert VisitInterrupt().value is None


def test_none_is_neither_reported_nor_descended() -> None:
    seen: list[Any] = []
    structural_walk([None, 1], (object, seen.append))
    assert len(seen) == 2


def test_errors_of_callbacks_come_through() -> None:
    def fail(value: Any) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        structural_walk([1], (int, fail))


def test_definitions_are_told_from_uses() -> None:
    @py_class(fresh_key(), structural_eq="var")
    class Var(tvm_ffi.Object):
        name: str

    @py_class(fresh_key())
    class Func(tvm_ffi.Object):
        params: list[Any] = field(structural_eq="def")
        body: list[Any]

    x, y = Var("x"), Var("y")
    seen: list[str] = []

    def variable(value: Any, kind: DefRegionKind) -> None:
        assert isinstance(kind, DefRegionKind)
        if kind == DefRegionKind.NONE:
            seen.append(f"use:{value.name}")
        else:
            assert kind == DefRegionKind.DEF_PATTERN
            seen.append(f"def:{value.name}")

    structural_walk(
        tvm_ffi.Array([Func([x], [x, y]), "tag"]),
        [(tvm_ffi.List, lambda a: seen.append(f"list:{len(a)}"))],
        (Var, variable),
    )
    assert seen == ["def:x", "list:1", "use:x", "use:y", "list:2"]


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: structural_walk([], order="sideways"), ValueError, "Unknown structural walk ord"),
        (lambda: structural_walk([], order=7), ValueError, "Unknown structural walk order: 7"),
        (lambda: structural_walk([], [len]), TypeError, "within a sequence must be"),
        (lambda: structural_walk([], [(int, 3)]), TypeError, "within a sequence must be"),
        (lambda: structural_walk([], "text"), TypeError, "structural_walk callbacks must be"),
        (lambda: structural_walk([], 3), TypeError, "structural_walk callbacks must be"),
        (lambda: structural_walk([], (complex, len)), TypeError, "must be a supported builtin"),
        (
            lambda: structural_walk([], (int | str, len)),
            TypeError,
            "is negative, the only acceptable negative type_index is -1 for Any$",
        ),
    ],
)
def test_wrong_arguments(call: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        call()


def test_visitors_are_made_by_walks_only() -> None:
    with pytest.raises(TypeError, match="cannot be constructed directly"):
        tvm_ffi.StructuralVisitor()


def test_regions_can_be_set_by_a_hook() -> None:
    kinds: list[DefRegionKind] = []

    @py_class(fresh_key(), structural_eq="var")
    class Var(tvm_ffi.Object):
        name: str

    @py_class(fresh_key())
    class Let(tvm_ffi.Object):
        var: Var
        body: Any

        @staticmethod
        def __s_visit__(visitor: Any, value: Any) -> Any:
            found = visitor.with_def_region_kind(
                DefRegionKind.DEF_SIMPLE, lambda: visitor.visit(value.var)
            )
            return found if found is not None else visitor.visit(value.body)

    x = Var("x")
    structural_walk(Let(x, x), (), (Var, lambda v, kind: kinds.append(kind)))
    assert kinds == [DefRegionKind.DEF_SIMPLE, DefRegionKind.NONE]


def test_objects_without_structure_are_named() -> None:
    with pytest.raises(TypeError, match=r"testing\.TestObjectPtrHolder"):
        structural_hash(testing.TestObjectPtrHolder(testing.TestObjectBase()))


def test_tensors_with_gaps_are_compared_by_their_elements() -> None:
    numpy = pytest.importorskip("numpy")
    matrix = numpy.arange(24.0).reshape(2, 3, 4)
    for gaps in (matrix.T, matrix[::-1], matrix[:, ::2], matrix[..., 1], numpy.zeros((3, 0)).T):
        tensor = tvm_ffi.from_dlpack(gaps)
        same = tvm_ffi.from_dlpack(numpy.ascontiguousarray(gaps))
        for pair in (
            (tensor, same),
            (same, tensor),
            (tvm_ffi.Array([tensor]), tvm_ffi.Array([same])),
        ):
            assert tvm_ffi.structural_equal(*pair)
            assert tvm_ffi.get_first_structural_mismatch(*pair) is None
            assert tvm_ffi.structural_hash(pair[0]) == tvm_ffi.structural_hash(pair[1])
            assert {tvm_ffi.StructuralKey(pair[0]): 1}[tvm_ffi.StructuralKey(pair[1])] == 1
    other = matrix.T.copy()
    other[1, 2, 1] += 1
    assert not tvm_ffi.structural_equal(tvm_ffi.from_dlpack(matrix.T), tvm_ffi.from_dlpack(other))
