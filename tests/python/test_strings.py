# SPDX-License-Identifier: Apache-2.0
"""String and Bytes: str and bytes that remember their FFI object."""

from __future__ import annotations

import copy
import gc
import json
import pickle
import re
from pathlib import Path

import pytest
import tvm_ffi
from tvm_ffi import core, testing

LONG = "a string that does not fit into a value"
LONG_BYTES = LONG.encode()


def test_string_behaves_like_str() -> None:
    text = core.String(LONG)
    assert isinstance(text, str)
    assert text == LONG
    assert hash(text) == hash(LONG)
    assert {text: 1}[LONG] == 1
    assert text[2:8] == LONG[2:8]
    assert text.find("string") == 2
    assert text + "x" == LONG + "x"
    assert f"{text}" == LONG
    assert repr(text) == repr(LONG)
    assert text.upper() == LONG.upper()
    assert sorted([core.String("b"), "a"]) == ["a", "b"]


def test_bytes_behaves_like_bytes() -> None:
    data = core.Bytes(LONG_BYTES)
    assert isinstance(data, bytes)
    assert data == LONG_BYTES
    assert hash(data) == hash(LONG_BYTES)
    assert data[2:8] == LONG_BYTES[2:8]
    assert data.find(b"string") == 2
    assert data + b"x" == LONG_BYTES + b"x"
    assert list(data) == list(LONG_BYTES)
    assert core.Bytes(bytearray(b"ab")) == b"ab"


def test_a_new_string_has_no_object_yet() -> None:
    assert core.String("x")._tvm_ffi_cached_object is None
    assert core.Bytes(b"x")._tvm_ffi_cached_object is None


def test_a_returned_string_remembers_its_object() -> None:
    text = testing.echo(LONG)
    assert isinstance(text._tvm_ffi_cached_object, core.Object)
    again = testing.echo(text)
    assert again._tvm_ffi_cached_object.same_as(text._tvm_ffi_cached_object)
    data = testing.echo(LONG_BYTES)
    assert testing.echo(data)._tvm_ffi_cached_object.same_as(data._tvm_ffi_cached_object)


def test_a_string_without_object_is_packed_by_its_length() -> None:
    assert type(testing.echo(core.String("hi"))) is str
    assert type(testing.echo(core.Bytes(b"hi"))) is bytes
    assert type(testing.echo(core.String(LONG))) is core.String


def test_string_has_no_dict() -> None:
    with pytest.raises(AttributeError):
        core.String("x").note = 1


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickles_as_the_plain_value(protocol: int) -> None:
    for value in (core.String(LONG), testing.echo(LONG), core.String("")):
        loaded = pickle.loads(pickle.dumps(value, protocol))
        assert type(loaded) is str
        assert loaded == value
    for data in (core.Bytes(LONG_BYTES), testing.echo(LONG_BYTES), core.Bytes(b"")):
        loaded = pickle.loads(pickle.dumps(data, protocol))
        assert type(loaded) is bytes
        assert loaded == data


def test_copies_are_equal() -> None:
    text = testing.echo(LONG)
    assert copy.copy(text) == copy.deepcopy(text) == text


@pytest.mark.parametrize(
    "text",
    ["", "\0", "a\0b", "\u00e9" * 20, "\u4e2d\u6587" * 20, "\U0001f600" * 20, "\uffff\u0800" * 9],
    ids=ascii,
)
def test_unicode_survives(text: str) -> None:
    assert testing.echo(text) == text
    assert tvm_ffi.Array([text])[0] == text
    assert tvm_ffi.Map({text: text})[text] == text


def test_lone_surrogates_are_refused() -> None:
    with pytest.raises(UnicodeEncodeError):
        testing.echo("\ud800")
    with pytest.raises(UnicodeEncodeError):
        tvm_ffi.Array(["long enough for the heap \ud800"])


def test_strings_in_containers_and_as_keys() -> None:
    table = tvm_ffi.Map({"short": 1, LONG: 2})
    assert table["short"] == 1
    assert table[LONG] == table[core.String(LONG)] == table[testing.echo(LONG)] == 2
    assert [type(key) for key in table] == [str, core.String]
    assert LONG in tvm_ffi.Array([LONG])
    assert testing.echo(LONG) in tvm_ffi.Array([LONG])


def test_strings_of_many_sizes() -> None:
    for size in range(40):
        assert testing.echo("x" * size) == "x" * size
        assert testing.echo(b"x" * size) == b"x" * size


def test_one_other_character_anywhere_among_ascii() -> None:
    for size in range(1, 40):
        for position in range(size):
            text = "x" * position + "\u00e9" + "x" * (size - position - 1)
            assert testing.echo(text) == text and len(testing.echo(text)) == size


def test_made_from_an_object() -> None:
    cached = testing.echo(LONG)._tvm_ffi_cached_object
    text = core.String.__from_tvm_ffi_object__(core.String, cached)
    assert text == LONG
    assert text._tvm_ffi_cached_object is cached
    cached = testing.echo(LONG_BYTES)._tvm_ffi_cached_object
    assert core.Bytes.__from_tvm_ffi_object__(core.Bytes, cached) == LONG_BYTES


def test_many_strings_disturb_nothing() -> None:
    box = tvm_ffi.Array([f"string number {i} of many" for i in range(1000)])
    for _ in range(3):
        assert [str(text) for text in box] == [f"string number {i} of many" for i in range(1000)]


TEXTS = ("plain ascii text", "with\0nul inside", "grüße, 世界 𝄞", "x" * 10_000, " \n\t blank \n")


@pytest.mark.parametrize("plain", TEXTS, ids=range(len(TEXTS)))
def test_text_from_cpp_behaves_like_str_in_every_operation(plain: str) -> None:
    text = testing.echo(plain)
    assert type(text) is core.String
    assert text == plain and plain == text and hash(text) == hash(plain)
    assert {plain: 1}[text] == 1 and text in {plain}
    assert type(str(text)) is str and str(text) == plain
    for operation in (
        len,
        repr,
        ascii,
        str.upper,
        str.split,
        str.strip,
        str.encode,
        reversed,
        sorted,
        str.isascii,
        lambda s: s + "!",
        lambda s: "!" + s,
        lambda s: s * 2,
        lambda s: s[3:7],
        lambda s: s[::-1],
        lambda s: s.replace("i", "j"),
        lambda s: s.find("t"),
        lambda s: f"<{s}>",
        lambda s: ",".join([s, s]),
        lambda s: re.sub("[aeiou]", "_", s),
        lambda s: json.dumps(s),
        lambda s: s.translate({ord("t"): "T"}),
        lambda s: s < "m",
        lambda s: bytes(s, "utf-8"),
    ):
        mine, expected = operation(text), operation(plain)
        if operation is reversed:
            mine, expected = list(mine), list(expected)
        assert mine == expected and type(mine) is type(expected)


def test_parts_outlive_the_text_and_the_text_its_object() -> None:
    text = testing.echo(LONG)
    part, copy = text[2:9], str(text)
    for _ in range(100):
        testing.echo("other text of some length")
    del text
    gc.collect()
    assert part == LONG[2:9] and copy == LONG


def test_a_subclass_of_string_keeps_its_attributes() -> None:
    class Tagged(core.String):
        pass

    text = Tagged(LONG)
    text.note = 1
    assert text == LONG and text.note == 1 and testing.echo(text) == LONG
    assert text._tvm_ffi_cached_object is None


def test_the_cached_object_is_made_once_and_can_be_replaced() -> None:
    text = testing.echo(LONG)
    cached = text._tvm_ffi_cached_object
    assert isinstance(cached, core.Object) and text._tvm_ffi_cached_object is cached
    assert testing.echo(text)._tvm_ffi_cached_object.same_as(cached)
    text._tvm_ffi_cached_object = None
    assert testing.echo(text) == LONG
    with pytest.raises(AttributeError):
        del text._tvm_ffi_cached_object


def test_a_million_texts_leave_memory_flat() -> None:
    def churn() -> int:
        for _ in range(100_000):
            testing.echo(LONG)
        return int(Path("/proc/self/statm").read_text().split()[1])

    churn()
    pages = [churn() for _ in range(5)]
    assert pages[-1] <= pages[0] + 64, pages
