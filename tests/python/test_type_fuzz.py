# SPDX-License-Identifier: Apache-2.0
"""Random JSON, schemas and values: everything converts or says clearly why not."""

from __future__ import annotations

import json
from typing import Any

import pytest
import tvm_ffi
from support import scaled
from tvm_ffi import core
from tvm_ffi.core import TypeSchema

pytest.importorskip("hypothesis", reason="hypothesis is not installed")
from hypothesis import given, settings
from hypothesis import strategies as st

KEYS = st.sampled_from(["type", "args", "other"])
NAMES = st.sampled_from(
    ["int", "Optional", "Variant", "Tuple", "ffi.Array", "ffi.Map", "ffi.Function", "no.such", ""]
)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), NAMES),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=12,
)


@settings(max_examples=scaled(300), deadline=None)
@given(JSON)
def test_any_json_is_a_schema_or_a_clear_error(value: Any) -> None:
    try:
        schema = TypeSchema._from_maybe_json(json.dumps(value))
    except (TypeError, ValueError) as error:
        assert str(error)
        return
    assert TypeSchema.from_json_obj(schema.to_json()) == schema
    assert isinstance(repr(schema), str)


SCHEMAS = st.recursive(
    st.sampled_from(
        [TypeSchema(name) for name in ("Any", "None", "int", "float", "bool", "str", "bytes")]
        + [TypeSchema(name) for name in ("Object", "Callable", "dtype", "Device", "Tensor")]
        + [TypeSchema("testing.TestIntPair"), TypeSchema("ffi.Shape"), TypeSchema("tuple")]
    ),
    lambda inner: st.one_of(
        st.builds(TypeSchema, st.sampled_from(["list", "Array", "List"]), st.tuples(inner)),
        st.builds(TypeSchema, st.sampled_from(["dict", "Map", "Dict"]), st.tuples(inner, inner)),
        st.builds(TypeSchema, st.just("tuple"), st.lists(inner, max_size=3)),
        st.builds(TypeSchema, st.just("Optional"), st.tuples(inner)),
        st.builds(TypeSchema, st.just("Union"), st.lists(inner, min_size=2, max_size=3)),
    ),
    max_leaves=6,
)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**65), 2**65),
    st.floats(),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
    st.binary(max_size=12),
    st.builds(object),
    st.sampled_from([len, int, ValueError("x"), tvm_ffi.Array([1]), tvm_ffi.Dict({"a": 1})]),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.tuples(inner, inner),
        st.dictionaries(st.one_of(st.integers(0, 9), st.text("ab", max_size=9)), inner, max_size=3),
    ),
    max_leaves=12,
)


@settings(max_examples=scaled(500), deadline=None)
@given(SCHEMAS, VALUES)
def test_any_value_converts_or_is_a_clear_error(schema: TypeSchema, value: Any) -> None:
    try:
        held = schema.convert(value)
    except TypeError as error:
        assert str(error).startswith(f"type conversion failed for {schema!r}: ")
        return
    except OverflowError as error:  # integers that no schema looked at
        assert "int64" in str(error)
        return
    # What came out fits, and converts to something equal.
    converted = core._to_py_class_value(held)
    again = core._to_py_class_value(schema.convert(converted))
    assert type(again) is type(converted)
    assert repr(again) == repr(converted)
