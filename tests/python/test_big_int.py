# SPDX-License-Identifier: Apache-2.0
"""Integers outside int64: a BigInt in C++, a plain int in Python."""

from __future__ import annotations

import copy
import random
import sys
from typing import Any

import pytest
import tvm_ffi
from tvm_ffi import _ffi_api, serialization, testing

INT64_MAX = 2**63 - 1
EDGES = [
    2**63,
    -(2**63) - 1,
    2**64 - 1,
    2**64,
    -(2**64),
    2**127 - 1,
    2**127,
    -(2**127),
    2**255,
    10**100,
    -(10**1000),
]
SMALL = [0, 1, -1, INT64_MAX, -(2**63)]


@pytest.mark.parametrize("value", EDGES + SMALL)
def test_every_int_survives_a_call(value: int) -> None:
    back = testing.echo(value)
    assert type(back) is int and back == value
    seen: list[Any] = []
    tvm_ffi.convert(seen.append)(value)
    assert seen == [value] and type(seen[0]) is int


def test_random_ints_survive() -> None:
    numbers = random.Random(1)
    for bits in (64, 65, 127, 128, 129, 1000, 10_000):
        for _ in range(20):
            value = numbers.getrandbits(bits) * numbers.choice((1, -1))
            assert testing.echo(value) == value


def test_containers_hold_them() -> None:
    array = tvm_ffi.Array([2**70, 1])
    assert list(array) == [2**70, 1]
    assert 2**70 in array
    table = tvm_ffi.Map({2**70: "a", -(2**70): 2**80})
    assert table[2**70] == "a" and table[-(2**70)] == 2**80
    assert table.get(2**71) is None
    assert sorted(table) == [-(2**70), 2**70]


def test_numbers_of_other_classes_are_read_as_ints() -> None:
    numpy = pytest.importorskip("numpy")
    assert testing.echo(numpy.uint64(2**64 - 1)) == 2**64 - 1

    class Number:
        def __init__(self, value: Any) -> None:
            self.value = value

        def __tvm_ffi_int__(self) -> Any:
            return self.value

    assert testing.echo(Number(2**70)) == 2**70
    assert testing.echo(Number(3.5)) == 3


def test_parameters_of_int64_refuse_them() -> None:
    with pytest.raises(TypeError) as info:
        testing.add_one(2**70)
    assert str(info.value) == (
        "Mismatched type on argument #0 when calling: `testing.add_one(0: int) -> int`. "
        "Expected `int` but got `ffi.BigInt` (`int` in Python, out of range for int64)"
    )
    with pytest.raises(TypeError, match="out of int64 range"):
        tvm_ffi.core.TypeSchema("int").check_value(2**70)
    with pytest.raises(ValueError, match="list of int arguments"):
        tvm_ffi.Shape((2**70,))


def test_structure_compares_by_value() -> None:
    assert tvm_ffi.structural_equal([2**70], [2**70])
    assert not tvm_ffi.structural_equal([2**70], [2**70 + 1])
    assert tvm_ffi.structural_hash([2**70]) == tvm_ffi.structural_hash([2**70])
    assert tvm_ffi.structural_hash({2**70: 1}) == tvm_ffi.structural_hash({2**70: 1})
    assert _ffi_api.RecursiveEq(2**70, 2**70)
    assert not _ffi_api.RecursiveEq(2**70, 1)
    assert _ffi_api.RecursiveLt(1, 2**70) and _ffi_api.RecursiveLt(-(2**70), -1)
    assert _ffi_api.RecursiveGt(2**71, 2**70)
    # The words alone, as the hook of the type says; other releases agree.
    assert (_ffi_api.RecursiveHash(2**80), _ffi_api.RecursiveHash(2**63)) == (65536, 1894)
    with pytest.raises(TypeError, match="Cannot compare values of different types"):
        _ffi_api.RecursiveLt(2**70, 1.5)


def test_copies_text_and_json() -> None:
    value = tvm_ffi.Array([2**70, -(2**70)])
    assert list(copy.deepcopy(value)) == [2**70, -(2**70)]
    assert _ffi_api.ReprPrint(value) == f"({2**70}, {-(2**70)})"
    text = serialization.to_json_graph_str(value)
    assert f'{{"type":"ffi.BigInt","data":"{2**70}"}}' in text
    assert list(serialization.from_json_graph_str(text)) == [2**70, -(2**70)]
    for data, expected in (("7", 7), ("-7", -7), (str(2**63), 2**63)):
        graph = f'{{"root_index":0,"nodes":[{{"type":"ffi.BigInt","data":"{data}"}}]}}'
        assert serialization.from_json_graph_str(graph) == expected
    for bad in ("", "1x", " 1", "+", "--1"):
        graph = f'{{"root_index":0,"nodes":[{{"type":"ffi.BigInt","data":"{bad}"}}]}}'
        with pytest.raises(ValueError, match="Invalid decimal string"):
            serialization.from_json_graph_str(graph)
    for bad, key in (("12", "int"), ("null", "None"), ("true", "bool"), ("[]", "ffi.Array")):
        graph = f'{{"root_index":0,"nodes":[{{"type":"ffi.BigInt","data":{bad}}}]}}'
        with pytest.raises(TypeError, match=f"^Cannot treat type `{key}` as type `str`$"):
            serialization.from_json_graph_str(graph)


def test_nothing_is_kept() -> None:
    if sys.implementation.name != "cpython":
        pytest.skip("counts references")
    value = 2**10_000
    before = sys.getrefcount(value)
    for _ in range(100):
        testing.echo(value)
    assert sys.getrefcount(value) == before
