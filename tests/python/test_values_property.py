# SPDX-License-Identifier: Apache-2.0
"""Random values on every way through C++: what comes back has the type and the value of a model."""

from __future__ import annotations

import copy
import math
import pickle
import struct
from collections.abc import Callable
from typing import Any

import pytest
import tvm_ffi
from support import scaled
from tvm_ffi import Array, Dict, List, Map, Shape, core, serialization
from tvm_ffi.core import TypeSchema
from tvm_ffi.dataclasses import py_class
from tvm_ffi.testing import echo

pytest.importorskip("hypothesis", reason="hypothesis is not installed")
from hypothesis import given, settings
from hypothesis import strategies as st

GET = tvm_ffi.get_global_func
PARSE, STRINGIFY = GET("ffi.json.Parse"), GET("ffi.json.Stringify")
APPLY = GET("testing.apply")
SMALL = 7  # bytes of text that need no object


@py_class("tests.values.Box")
class Box(tvm_ffi.Object):
    """Holds any value."""

    value: Any


@py_class("tests.values.Typed")
class Typed(tvm_ffi.Object):
    """Holds values of one type each."""

    number: int = 0
    real: float = 0.0
    flag: bool = False
    text: str = ""
    data: bytes = b""
    texts: list[str] = []  # noqa: RUF012
    costs: dict[str, float] = {}  # noqa: RUF012


# ---- the model ----------------------------------------------------------------------------------


def is_same_float(a: float, b: float) -> bool:
    return struct.pack("d", a) == struct.pack("d", b) or (math.isnan(a) and math.isnan(b))


def check(got: Any, given: Any) -> None:
    """Compare what came back with what was given: exact types, exact values."""
    if given is None or isinstance(given, (bool, int)):
        assert type(got) is type(given) and got == given
    elif isinstance(given, float):
        assert type(got) is float and is_same_float(got, given)
    elif isinstance(given, str) and type(given) is not tvm_ffi.dtype:
        short = len(given.encode()) <= SMALL
        assert type(got) is (str if short else core.String) and got == given
    elif isinstance(given, bytes):
        assert type(got) is (bytes if len(given) <= SMALL else core.Bytes) and got == given
    elif isinstance(given, Shape):
        assert type(got) is Shape and got == given
    elif isinstance(given, (list, tuple, Array, List)):
        assert type(got) is (type(given) if isinstance(given, (Array, List)) else Array)
        assert len(got) == len(given)
        for one, other in zip(got, given, strict=True):
            check(one, other)
    elif isinstance(given, (dict, Map, Dict)):
        assert type(got) is (type(given) if isinstance(given, (Map, Dict)) else Map)
        for (key, value), (old_key, old_value) in zip(
            sorted_items(got), sorted_items(given), strict=True
        ):
            check(key, old_key)
            check(value, old_value)
        assert len(got) == len(given)
    elif isinstance(given, core.Tensor):
        assert isinstance(got, core.Tensor) and (got.shape, got.dtype) == (given.shape, given.dtype)
        assert tvm_ffi.structural_equal(got, given)
    else:
        assert type(got) is type(given) and got == given and str(got) == str(given)


def sorted_items(mapping: Any) -> list[tuple[Any, Any]]:
    """Without the order, which is that of insertion only for small ones."""
    return sorted(mapping.items(), key=lambda item: (type(item[0]) is int, repr(as_plain(item[0]))))


def as_plain(key: Any) -> Any:
    return str(key) if isinstance(key, str) else bytes(key) if isinstance(key, bytes) else key


# ---- values -------------------------------------------------------------------------------------

EDGES = [0, 1, -1, 2**31, -(2**31) - 1, 2**53, 2**53 + 1, 2**62, 2**63 - 1, -(2**63)]
INTS = st.sampled_from(EDGES) | st.integers(-(2**63), 2**63 - 1)
FLOATS = st.floats() | st.sampled_from([-0.0, 1e16, -1e16, 2.0**53, 5e-324, 1.7e308, 1e17, 1e22])
TEXT = st.text(
    st.characters(exclude_categories=["Cs"]) | st.sampled_from('\0\x7f"\\/\n'), max_size=20
)
BYTES = st.binary(max_size=20)
PLAIN = st.one_of(st.none(), st.booleans(), INTS, FLOATS, TEXT)
LEAVES = st.one_of(
    PLAIN,
    BYTES,
    st.sampled_from(["int32", "float8_e4m3fnx4", "bool", "bfloat16"]).map(tvm_ffi.dtype),
    st.builds(
        tvm_ffi.device, st.sampled_from(["cpu", "cuda", "vulkan"]), st.integers(0, 2**31 - 1)
    ),
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=4).map(Shape),
)
KEYS = st.one_of(st.integers(-9, 9), TEXT, BYTES)


def nested(leaves: Any, keys: Any) -> Any:
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, max_size=4),
            st.lists(inner, max_size=4).map(tuple),
            st.lists(inner, max_size=4).map(Array),
            st.lists(inner, max_size=4).map(List),
            st.dictionaries(keys, inner, max_size=5),
            st.dictionaries(keys, inner, max_size=5).map(Map),
            st.dictionaries(keys, inner, max_size=5).map(Dict),
        ),
        max_leaves=15,
    )


VALUES = nested(LEAVES, KEYS)
JSON_VALUES = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=5),
    max_leaves=15,
)

# ---- ways ---------------------------------------------------------------------------------------

THROUGH: dict[str, Callable[[Any], Any]] = {
    "echo": echo,
    "callback": lambda v: APPLY(lambda x: x, v),
    "Array": lambda v: Array([v])[0],
    "List": lambda v: List([v])[0],
    "iteration": lambda v: next(iter(List([v, v]))),
    "slice": lambda v: Array([1, v])[1:][0],
    "Map": lambda v: Map({"key": v})["key"],
    "Dict": lambda v: Dict({"key": v}).get("key"),
    "items": lambda v: next(iter(Dict({"key": v}).items()))[1],
    "field": lambda v: Box(v).value,
    "schema": lambda v: Box(core._to_py_class_value(TypeSchema("Any").convert(v))).value,
    "converted": lambda v: echo(tvm_ffi.convert(v)),
    "shallow copy of an object": lambda v: copy.copy(Box(v)).value,
    "deep copy of an object": lambda v: copy.deepcopy(Box(v)).value,
    "deep copy": lambda v: copy.deepcopy(Array([v]))[0],
    "copy of a container": lambda v: copy.copy(List([v]))[0],
    "pickled object": lambda v: pickle.loads(pickle.dumps(Box(v))).value,
    "pickled container": lambda v: pickle.loads(pickle.dumps(List([v])))[0],
    "JSON graph": lambda v: serialization.from_json_graph_str(serialization.to_json_graph_str(v)),
}


@pytest.mark.parametrize("way", THROUGH)
@settings(max_examples=scaled(40), deadline=None)
@given(value=VALUES)
def test_values_come_back_as_they_were(way: str, value: Any) -> None:
    check(THROUGH[way](value), value)


@settings(max_examples=scaled(300), deadline=None)
@given(JSON_VALUES, st.sampled_from([None, 2]))
def test_json_keeps_types_and_values(value: Any, indent: int | None) -> None:
    check(PARSE(STRINGIFY(value, indent)), value)


@settings(max_examples=scaled(300), deadline=None)
@given(FLOATS)
def test_a_float_is_a_float_in_json(value: float) -> None:
    text = str(STRINGIFY(value, None))
    check(PARSE(text), value)
    assert is_same_float(float(text), value), "other readers agree"


@settings(max_examples=scaled(200), deadline=None)
@given(
    INTS,
    FLOATS,
    st.booleans(),
    TEXT,
    BYTES,
    st.lists(TEXT, max_size=4),
    st.dictionaries(TEXT, FLOATS),
)
def test_typed_fields_keep_values(
    number: int, real: float, flag: bool, text: str, data: bytes, texts: Any, costs: Any
) -> None:
    def check_all(obj: Any) -> None:
        check(obj.number, number)
        check(obj.real, real)
        check(obj.flag, flag)
        assert obj.text == text and obj.data == data
        check(obj.texts, List(texts))
        check(obj.costs, Dict(costs))

    obj = Typed(number, real, flag, text, data, texts, costs)
    for one in (obj, copy.copy(obj), copy.deepcopy(obj), pickle.loads(pickle.dumps(obj))):
        check_all(one)


@settings(max_examples=scaled(200), deadline=None)
@given(
    st.lists(TEXT, max_size=4), st.dictionaries(TEXT, INTS, max_size=4), st.lists(BYTES, max_size=3)
)
def test_containers_that_fit_are_taken_as_they_are(texts: Any, costs: Any, data: Any) -> None:
    names, table, blobs = List(texts), Dict(costs), Array(data)
    obj = Typed(texts=names)
    assert obj.texts is names and echo(names) is names and Array([names])[0] is names
    for annotation, value in (
        (list[str], names),
        (dict[str, int], table),
        (Array[bytes], blobs),
        (list[list[str]], List([names])),
    ):
        schema = TypeSchema.from_annotation(annotation)
        assert core._to_py_class_value(schema.convert(value)) is value
    obj.texts = obj.texts
    assert obj.texts is names


@settings(max_examples=scaled(100), deadline=None)
@given(st.text(st.characters(categories=["Cs", "Lu"]), min_size=1, max_size=12))
def test_text_that_is_no_unicode_is_refused_or_comes_back(text: str) -> None:
    for way in ("echo", "Array", "Dict", "field", "pickled object"):
        try:
            got = THROUGH[way](text)
        except UnicodeEncodeError:
            assert any("\ud800" <= c <= "\udfff" for c in text)
        else:
            assert got == text


def test_tensors_come_back_by_identity_and_are_copied_by_value() -> None:
    numpy = pytest.importorskip("numpy")
    tensor = tvm_ffi.from_dlpack(numpy.arange(6, dtype="int16").reshape(2, 3)[:, ::-1])
    for way in (
        "echo",
        "callback",
        "Array",
        "Dict",
        "field",
        "schema",
        "shallow copy of an object",
    ):
        assert THROUGH[way](tensor) is tensor, way
    for way in ("deep copy", "deep copy of an object", "pickled object"):
        copied = THROUGH[way]([tensor, tensor])
        assert copied[0] is copied[1] is not tensor
        assert numpy.array_equal(numpy.from_dlpack(copied[0]), numpy.from_dlpack(tensor))
        assert copied[0].data_ptr() != tensor.data_ptr()
    with pytest.raises(TypeError, match=r"ffi\.Tensor"):
        THROUGH["JSON graph"](tensor)
