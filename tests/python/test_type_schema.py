# SPDX-License-Identifier: Apache-2.0
"""Schemas: from annotations, JSON and type indices, and back to text and JSON."""

from __future__ import annotations

import collections.abc
import ctypes
import enum
import json
import typing
from collections.abc import Callable
from typing import Any, Optional, TypeVar, Union

import pytest
import tvm_ffi
from tvm_ffi import core, testing
from tvm_ffi.core import TypeSchema

T = TypeVar("T")


class Unregistered(tvm_ffi.Object):
    """A wrapper class that stands for no type."""


class ForeignTensor:
    """Something of another framework."""

    def __dlpack__(self) -> None:
        """Never called."""


# ---- construction ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("origin", "index"),
    [
        ("None", 0),
        ("int", 1),
        ("bool", 2),
        ("float", 3),
        ("ctypes.c_void_p", 4),
        ("dtype", 5),
        ("Device", 6),
        ("Object", 64),
        ("str", 65),
        ("bytes", 66),
        ("Callable", 68),
        ("Tensor", 70),
        ("Array", 71),
        ("Map", 72),
        ("List", 75),
        ("Dict", 76),
        ("Any", -1),
        ("list", -3),
        ("dict", -3),
        ("tuple", -3),
        ("ffi.Error", 67),
        ("no.such.type", -3),
    ],
)
def test_an_origin_knows_its_type_index(origin: str, index: int) -> None:
    assert TypeSchema(origin).origin_type_index == index


def test_unions_have_no_type_index_of_their_own() -> None:
    assert TypeSchema("Optional", (TypeSchema("int"),)).origin_type_index == -2
    assert TypeSchema("Union", (TypeSchema("int"), TypeSchema("str"))).origin_type_index == -2


def test_containers_without_arguments_hold_anything() -> None:
    for origin in ("list", "List", "Array"):
        assert TypeSchema(origin).args == (TypeSchema("Any"),)
    for origin in ("dict", "Dict", "Map"):
        assert TypeSchema(origin).args == (TypeSchema("Any"), TypeSchema("Any"))


def test_a_tuple_of_any_length_differs_from_the_empty_tuple() -> None:
    assert TypeSchema("tuple").args is None
    assert TypeSchema("tuple", ()).args == ()
    assert TypeSchema("tuple") != TypeSchema("tuple", ())


def test_arguments_may_come_from_any_iterable() -> None:
    assert TypeSchema("Array", iter([TypeSchema("int")])).args == (TypeSchema("int"),)


@pytest.mark.parametrize(
    ("origin", "count", "message"),
    [
        ("Union", 0, "Union must have at least two arguments"),
        ("Union", 1, "Union must have at least two arguments"),
        ("Optional", 0, "Optional must have exactly one argument"),
        ("Optional", 2, "Optional must have exactly one argument"),
        ("list", 2, "list must have 0 or 1 argument"),
        ("Array", 3, "Array must have 0 or 1 argument"),
        ("List", 2, "List must have 0 or 1 argument"),
        ("dict", 1, "dict must have 0 or 2 arguments"),
        ("Map", 3, "Map must have 0 or 2 arguments"),
        ("Dict", 1, "Dict must have 0 or 2 arguments"),
    ],
)
def test_a_wrong_number_of_arguments_is_refused(origin: str, count: int, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        TypeSchema(origin, (TypeSchema("int"),) * count)


@pytest.mark.parametrize("args", [("int",), (3,), (None,), (int,)])
def test_arguments_must_be_schemas(args: Any) -> None:
    with pytest.raises(TypeError, match="schema arguments must be TypeSchema instances"):
        TypeSchema("Array", args)


def test_origin_must_be_text() -> None:
    with pytest.raises(ValueError, match=r"^schema type must be a nonempty string$"):
        TypeSchema(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^schema type must be a nonempty string$"):
        TypeSchema("")


def test_schemas_are_values_without_a_hash() -> None:
    assert TypeSchema("int") == TypeSchema("int")
    assert TypeSchema("int") != TypeSchema("bool")
    assert TypeSchema("int", None, 5) != TypeSchema("int")
    assert TypeSchema("int") != "int"
    with pytest.raises(TypeError, match="unhashable"):
        hash(TypeSchema("int"))


# ---- annotations ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (None, "None"),
        (type(None), "None"),
        (Any, "Any"),
        (bool, "bool"),
        (int, "int"),
        (float, "float"),
        (str, "str"),
        (bytes, "bytes"),
        (core.String, "str"),
        (core.Bytes, "bytes"),
        (ctypes.c_void_p, "ctypes.c_void_p"),
        (list, "List[Any]"),
        (dict, "Dict[Any, Any]"),
        (tuple, "tuple"),
        (typing.List, "List[Any]"),  # noqa: UP006
        (typing.Dict, "Dict[Any, Any]"),  # noqa: UP006
        (typing.Tuple, "tuple"),  # noqa: UP006
        (list[int], "List[int]"),
        (list[list[int]], "List[List[int]]"),
        (dict[str, list[int]], "Dict[str, List[int]]"),
        (typing.List[int], "List[int]"),  # noqa: UP006
        (typing.Dict[str, int], "Dict[str, int]"),  # noqa: UP006
        (tuple[int, ...], "Array[int]"),
        (tuple[int, str], "tuple[int, str]"),
        (tuple[()], "tuple[()]"),
        (typing.Tuple[()], "tuple[()]"),  # noqa: UP006
        (typing.Tuple[int, ...], "Array[int]"),  # noqa: UP006
        (int | None, "int | None"),
        (Optional[int], "int | None"),  # noqa: UP045
        (Union[int, str], "int | str"),  # noqa: UP007
        (int | str | None, "int | str | None"),
        (Optional[Union[int, str]], "int | str | None"),  # noqa: UP007, UP045
        (typing.Callable, "Callable[..., Any]"),
        (collections.abc.Callable, "Callable[..., Any]"),
        (Callable[[int, str], bool], "Callable[[int, str], bool]"),
        (typing.Callable[..., int], "Callable[..., int]"),
        (collections.abc.Callable[[], None], "Callable[[], None]"),
        (tvm_ffi.Object, "Object"),
        (tvm_ffi.Function, "Callable[..., Any]"),
        (tvm_ffi.Array, "Array[Any]"),
        (tvm_ffi.Map, "Map[Any, Any]"),
        (tvm_ffi.Array[int], "Array[int]"),
        (tvm_ffi.List[tvm_ffi.Array[int]], "List[Array[int]]"),
        (tvm_ffi.Dict[str, tvm_ffi.Map[str, int]], "Dict[str, Map[str, int]]"),
        (tvm_ffi.Module, "ffi.Module"),
        (core.Error, "ffi.Error"),
        (testing.TestIntPair, "testing.TestIntPair"),
        (ForeignTensor, "Tensor"),
    ],
)
def test_annotations_become_schemas(annotation: Any, text: str) -> None:
    assert str(TypeSchema.from_annotation(annotation)) == text


class Color(enum.IntEnum):
    """Not a type of the FFI."""

    RED = 1


@pytest.mark.parametrize(
    "annotation",
    [
        complex,
        object,
        set,
        bytearray,
        "int",
        3,
        ...,
        T,
        Color,
        typing.Sequence[int],
        frozenset[int],
        typing.Literal[1],
        typing.Annotated[int, 3],
        typing.NewType("Meters", int),
        ctypes.c_int,
        [int],
        {},
        Callable[typing.ParamSpec("P"), int],
        core.PyNativeObject,
    ],
)
def test_what_the_ffi_cannot_hold_is_no_annotation(annotation: Any) -> None:
    with pytest.raises(TypeError, match="^Cannot convert .* to TypeSchema$"):
        TypeSchema.from_annotation(annotation)


@pytest.mark.parametrize("cls", [Unregistered, core.CObject, core.CContainerBase])
def test_classes_that_stand_for_no_type_are_named(cls: type) -> None:
    with pytest.raises(TypeError, match=f"{cls.__name__} is not registered"):
        TypeSchema.from_annotation(cls)


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        (list[int, str], "list takes at most 1 type argument, got 2"),  # type: ignore[misc]
        (dict[str], "dict requires 0 or 2 type arguments, got 1"),  # type: ignore[misc]
        (tvm_ffi.Array[int, str], "Array requires 1 type argument, got 2"),  # type: ignore[misc]
        (tvm_ffi.List[int, str], "List requires 1 type argument, got 2"),  # type: ignore[misc]
        (tvm_ffi.Map[str], "Map requires 2 type arguments, got 1"),  # type: ignore[misc]
        (tvm_ffi.Dict[str], "Dict requires 2 type arguments, got 1"),  # type: ignore[misc]
    ],
)
def test_arity_is_checked_when_the_annotation_is_used(annotation: Any, message: str) -> None:
    with pytest.raises(TypeError, match=f"^{message}$"):
        TypeSchema.from_annotation(annotation)


# ---- JSON -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "origin"),
    [
        ("ffi.Function", "Callable"),
        ("std::function", "Callable"),
        ("ffi.Array", "Array"),
        ("std::vector", "Array"),
        ("ffi.List", "List"),
        ("std::unordered_map", "Map"),
        ("ffi.Dict", "Dict"),
        ("ffi.OpaquePyObject", "Any"),
        ("ObjectRValueRef", "Object"),
        ("DLTensor*", "Tensor"),
        ("void*", "ctypes.c_void_p"),
        ("TVMFFIByteArray*", "bytes"),
        ("const char*", "str"),
        ("ffi.SmallStr", "str"),
        ("DataType", "dtype"),
        ("testing.TestIntPair", "testing.TestIntPair"),
        ("no.such.type", "no.such.type"),
    ],
)
def test_names_of_cpp_become_names_of_python(name: str, origin: str) -> None:
    assert TypeSchema.from_json_obj({"type": name}).origin == origin


def test_json_round_trip() -> None:
    for text in (
        '{"type": "ffi.Map", "args": [{"type": "ffi.String"}, {"type": "Variant", "args":'
        ' [{"type": "int"}, {"type": "Optional", "args": [{"type": "float"}]}]}]}',
        '{"type": "Tuple", "args": []}',
        '{"type": "Tuple"}',
        '{"type": "ffi.Function", "args": [{"type": "None"}, {"type": "Any"}]}',
    ):
        schema = TypeSchema.from_json_str(text)
        assert TypeSchema.from_json_str(json.dumps(schema.to_json())) == schema


def test_json_that_is_not_understood_is_ignored_or_named() -> None:
    assert TypeSchema.from_json_obj({"type": "int", "args": 3}) == TypeSchema("int")
    assert str(TypeSchema.from_json_obj({"type": "ffi.Array", "args": [3, {"type": "int"}]})) == (
        "Array[int]"
    )
    for bad in ([], {}, 3, None, {"args": []}):
        with pytest.raises(TypeError, match="expected schema dict with 'type' key, got "):
            TypeSchema.from_json_obj(bad)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^schema type must be a string$"):
        TypeSchema.from_json_obj({"type": 3})
    with pytest.raises(ValueError):
        TypeSchema.from_json_str("{")
    with pytest.raises(TypeError, match="expected TypeSchema, JSON string, or JSON dict, got int"):
        TypeSchema._from_maybe_json(3)


# ---- type indices ---------------------------------------------------------------------------


def test_a_type_index_gives_a_schema_that_converts() -> None:
    assert [str(TypeSchema.from_type_index(i)) for i in (0, 4, 7, 8, 9, 10, 11, 12, 67)] == [
        "None",
        "ctypes.c_void_p",
        "Tensor",
        "str",
        "bytes",
        "Object",
        "str",
        "bytes",
        "ffi.Error",
    ]
    for index in (7, 8, 9, 11, 12):
        schema = TypeSchema.from_type_index(index)
        assert schema.origin_type_index == index
        with pytest.raises(TypeError):
            schema.convert(None)
    assert str(TypeSchema.from_type_index(71, (TypeSchema("int"),))) == "Array[int]"


@pytest.mark.parametrize("index", [14, 63, -7, 10**6])
def test_an_unregistered_type_index_is_refused(index: int) -> None:
    with pytest.raises(ValueError, match=f"{index} is not registered"):
        TypeSchema.from_type_index(index)


# ---- text -----------------------------------------------------------------------------------


def test_names_are_mapped_before_forms_are_chosen() -> None:
    schema = TypeSchema.from_annotation(Callable[[tvm_ffi.Array[int]], dict[str, int] | None])
    names = {"Array": "Sequence", "Dict": "MutableMapping"}
    text = "Callable[[Sequence[int]], MutableMapping[str, int] | None]"
    assert schema.repr(lambda name: names.get(name, name)) == text
    assert schema.output_repr(lambda name: names.get(name, name)) == text
    renamed = TypeSchema.from_annotation(int | None).repr(
        lambda name: "Maybe" if name == "Optional" else name
    )
    assert renamed == "Maybe[int]"


def test_inputs_are_shown_as_what_a_type_converts_from() -> None:
    index = core._get_or_alloc_type_index("test_schema.Expr", 1, 64)
    accepts = '{"type": "Union", "args": [{"type": "int"}, {"type": "test_schema.Expr"}]}'
    core._register_type_attr(index, "__ffi_convert_type_schema__", accepts)
    schema = TypeSchema("Array", (TypeSchema("test_schema.Expr"),))
    names = {"test_schema.Expr": "ExprLike"}
    assert schema.input_repr(lambda name: names.get(name, name)) == "Array[int | ExprLike]"
    assert schema.output_repr(lambda name: names.get(name, name)) == "Array[ExprLike]"


def test_subtypes_follow_the_type_table() -> None:
    derived, base = TypeSchema("testing.TestObjectDerived"), TypeSchema("testing.TestObjectBase")
    assert derived.is_subtype_of(testing.TestObjectBase)
    assert base.is_subtype_of(testing.TestObjectBase)
    assert base.is_subtype_of(tvm_ffi.Object)
    assert not base.is_subtype_of(testing.TestObjectDerived)
    assert not TypeSchema("int").is_subtype_of(testing.TestObjectBase)
    assert not base.is_subtype_of(int)
    assert TypeSchema("str").is_subtype_of(tvm_ffi.Object)
    assert not TypeSchema("Any").is_subtype_of(tvm_ffi.Object)


# ---- what registration says -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "text"),
    [
        ("id_int", "Callable[[int], int]"),
        ("id_func", "Callable[[Callable[..., Any]], Callable[..., Any]]"),
        ("id_opt_str", "Callable[[str | None], str | None]"),
        ("id_arr", "Callable[[Array[Any]], Array[Any]]"),
        ("id_dict_str_int", "Callable[[Dict[str, int]], Dict[str, int]]"),
        ("id_variant_int_str", "Callable[[int | str], int | str]"),
        ("packed", "Callable[..., Any]"),
        ("no_return", "Callable[[int], None]"),
        (
            "arr_map_opt",
            "Callable[[Array[int | None], Map[str, Array[int]], str | None], Map[str, Array[int]]]",
        ),
    ],
)
def test_registered_functions_carry_their_schema(function: str, text: str) -> None:
    metadata = tvm_ffi.get_global_func_metadata(f"testing.schema_{function}")
    assert str(TypeSchema.from_json_str(metadata["type_schema"])) == text


def test_reflected_fields_carry_their_schema() -> None:
    info = testing.TestObjectPtrHolder.__tvm_ffi_type_info__
    assert [(field.name, str(field.ty)) for field in info.fields] == [
        ("value", "testing.TestObjectBase"),
        ("optional_value", "testing.TestObjectBase | None"),
    ]


def test_functions_of_every_release_are_read() -> None:
    expected = "Callable[[str, float], int]"
    one, two, three = '{"type":"int"}', '{"type":"ffi.String"}', '{"type":"float"}'
    for text in (
        f'{{"type":"ffi.Function","args":[{one},{two},{three}]}}',
        f'{{"type":"ffi.Function","named_args":{{"return":[{one}],"params":[{two},{three}]}}}}',
        f'{{"type":"std::function","args":[{one},[{two}, {three}]]}}',
        f'{{"type":"std::function","named_args":{{"return":[{one}],"params":[{two}, {three}]}}}}',
    ):
        assert repr(TypeSchema.from_json_str(text)) == expected
    no_params = f'{{"type":"ffi.Function","named_args":{{"return":[{one}],"params":[]}}}}'
    assert repr(TypeSchema.from_json_str(no_params)) == "Callable[[], int]"
    assert repr(TypeSchema.from_json_str('{"type":"ffi.Function"}')) == "Callable[..., Any]"
    with pytest.raises(ValueError, match="return group must contain exactly one type"):
        TypeSchema.from_json_str('{"type":"ffi.Function","named_args":{"return":[]}}')
    assert repr(TypeSchema.from_json_str('{"type":"ffi.BigInt"}')) == "int"


def test_a_callable_is_stored_in_groups() -> None:
    integer, text = TypeSchema("int"), TypeSchema("str")
    flat = TypeSchema("Callable", (integer, text))
    assert flat.args == () and flat.named_args == {"return": (integer,), "params": (text,)}
    assert flat == TypeSchema.from_annotation(typing.Callable[[str], int])
    assert flat.to_json() == {
        "type": "Callable",
        "named_args": {"return": [{"type": "int"}], "params": [{"type": "str"}]},
    }
    unknown = TypeSchema.from_annotation(typing.Callable[..., int])
    assert unknown.named_args == {"return": (integer,)}
    assert unknown == TypeSchema("Callable", (integer,)) and repr(unknown) == "Callable[..., int]"
    none = TypeSchema.from_annotation(typing.Callable[[], int])
    assert none.named_args == {"return": (integer,), "params": ()} and none != unknown
    bare = TypeSchema("Callable")
    assert bare.args == () and bare.named_args is None and bare.to_json() == {"type": "Callable"}
    for schema in (flat, unknown, none, bare):
        assert TypeSchema.from_json_obj(schema.to_json()) == schema
        schema.check_value(lambda: 1)
    assert flat.repr(lambda name: "F" if name == "Callable" else name) == "F"
    old = {"type": "std::function", "args": [{"type": "int"}, []]}
    assert TypeSchema.from_json_obj(old) == none


def test_groups_that_are_wrong() -> None:
    integer = TypeSchema("int")
    for groups, error, message in (
        ([], TypeError, "named_args must be a map of names to type lists"),
        ({"": ()}, ValueError, "named_args keys must be nonempty strings"),
        ({1: ()}, ValueError, "named_args keys must be nonempty strings"),
        ({"a": integer}, TypeError, "named_args values must be lists of type schemas"),
        ({"a": [3]}, TypeError, "named_args values must contain type schemas"),
    ):
        with pytest.raises(error, match=f"^{message}$"):
            TypeSchema("X", named_args=groups)  # type: ignore[arg-type]
    for args, groups in (
        ((integer,), {"return": (integer,)}),
        ((), {"return": (integer,), "x": ()}),
    ):
        with pytest.raises(ValueError, match="^Callable uses only named return and params groups$"):
            TypeSchema("Callable", args, named_args=groups)
    for groups in ({}, {"params": ()}, {"return": (integer, integer)}):
        with pytest.raises(
            ValueError, match="^Callable return group must contain exactly one type"
        ):
            TypeSchema("Callable", named_args=groups)
    for json_groups, message in (
        ([], "named_args must be a map of names to type lists"),
        (None, "named_args must be a map of names to type lists"),
        ({"a": 3}, "named_args must map names to type lists"),
        ({"": []}, "named_args must map names to type lists"),
        ({"a": [3]}, "named_args lists must contain type schemas"),
    ):
        with pytest.raises(TypeError, match=f"^{message}$"):
            TypeSchema.from_json_obj({"type": "X", "named_args": json_groups})
    named = TypeSchema("X", named_args={"a": [integer]})
    assert repr(named) == "X" and TypeSchema.from_json_obj(named.to_json()) == named


def test_a_fallback_is_printed_for_an_unknown_origin() -> None:
    schema = TypeSchema("no.such.Type", fallback=TypeSchema("Array", (TypeSchema("int"),)))
    assert repr(schema) == schema.input_repr() == schema.output_repr() == "Array[int]"
    assert schema != TypeSchema("no.such.Type")
    assert TypeSchema.from_json_obj(schema.to_json()) == schema
    with pytest.raises(TypeError, match=r"unknown TypeSchema origin: 'no\.such\.Type'"):
        schema.check_value([1])
    with pytest.raises(TypeError, match="expected schema dict with 'type' key, got str"):
        TypeSchema.from_json_obj({"type": "no.such.Type", "fallback": "Any"})
    assert repr(TypeSchema("int", fallback=TypeSchema("str"))) == "int"


def test_the_mark_of_unchanged_values_has_a_schema() -> None:
    schema = TypeSchema.from_type_index(13)
    assert (schema.origin, schema.origin_type_index) == ("ffi.Unchanged", 13)
    assert schema == TypeSchema("ffi.Unchanged") and schema.to_json() == {"type": "ffi.Unchanged"}
    with pytest.raises(TypeError):
        schema.check_value(1)


def test_the_key_of_big_integers_is_kept() -> None:
    read = TypeSchema.from_json_obj({"type": "ffi.BigInt"})
    assert (read.origin, read.type_key) == ("int", "ffi.BigInt")
    assert read == TypeSchema("int") and read.to_json() == {"type": "ffi.BigInt"}
    by_index = TypeSchema.from_type_index(78)
    assert (by_index.origin, by_index.type_key) == ("int", "ffi.BigInt")
    assert by_index.to_json() == {"type": "ffi.BigInt"}
    by_index.check_value(3)
    assert TypeSchema.from_json_obj({"type": "ffi.String"}).type_key is None
