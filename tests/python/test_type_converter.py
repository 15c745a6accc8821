# SPDX-License-Identifier: Apache-2.0
"""Conversion of values to what a schema declares: results, identity and messages."""

from __future__ import annotations

import collections
import ctypes
import enum
import fractions
import gc
import itertools
import numbers
import sys
import types
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import tvm_ffi
import tvm_ffi.dataclasses
from support import Payload
from tvm_ffi import Array, Dict, List, Map, core, testing
from tvm_ffi.core import CAny, TypeSchema


def schema(annotation: Any) -> TypeSchema:
    return TypeSchema.from_annotation(annotation)


def convert(annotation: Any, value: Any) -> Any:
    return core._to_py_class_value(schema(annotation).convert(value))


class Stands:
    """Stands for another value."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.calls = 0

    def __tvm_ffi_value__(self) -> Any:
        self.calls += 1
        return self.value


class Fails:
    """Cannot say what it stands for."""

    def __tvm_ffi_value__(self) -> Any:
        raise ValueError("no value")


class Holds:
    """Gives an FFI object."""

    def __init__(self, obj: Any) -> None:
        self.obj = obj

    def __tvm_ffi_object__(self) -> Any:
        if self.obj is None:
            raise ValueError("no object")
        return self.obj


class Convertible(tvm_ffi.ObjectConvertible):
    """Makes an FFI object on request."""

    def __init__(self, obj: Any) -> None:
        self.obj = obj

    def asobject(self) -> Any:
        if self.obj is None:
            raise ValueError("no object")
        return self.obj


class Number:
    """Converts by the protocols of numbers."""

    def __tvm_ffi_int__(self) -> int:
        return 7

    def __tvm_ffi_float__(self) -> int:
        return 7


class Color(enum.IntEnum):
    """An integer with a name."""

    RED = 3


# ---- results --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("annotation", "value", "result"),
    [
        (int, 3, 3),
        (int, True, 1),
        (int, Color.RED, 3),
        (int, Number(), 7),
        (int, 2**63 - 1, 2**63 - 1),
        (int, -(2**63), -(2**63)),
        (float, 1, 1.0),
        (float, 1.5, 1.5),
        (float, True, 1.0),
        (float, 2**63, 2.0**63),
        (float, fractions.Fraction(1, 2), 0.5),
        (float, Number(), 7.0),
        (bool, True, True),
        (bool, 7, True),
        (bool, 0, False),
        (str, "", ""),
        (str, "short", "short"),
        (str, "longer than seven", "longer than seven"),
        (str, "a\0b", "a\0b"),
        (bytes, b"short", b"short"),
        (bytes, bytearray(b"longer than seven"), b"longer than seven"),
        (None, None, None),
        (int | None, None, None),
        (int | str, True, 1),
        (int | float, 2**63, 2.0**63),
        (str | list[int], [1], [1]),
        (Any, None, None),
        (Any, [1, "a"], [1, "a"]),
        (Any, Stands(Stands(3)), 3),
        (int, Stands(3), 3),
        (list[int], [Stands(1), 2], [1, 2]),
        (int | None, Stands(None), None),
    ],
)
def test_values_arrive_converted(annotation: Any, value: Any, result: Any) -> None:
    converted = convert(annotation, value)
    assert converted == result
    if isinstance(result, (int, float)):
        assert type(converted) is type(result)


@pytest.mark.parametrize(
    ("annotation", "cls"),
    [
        (list[int], List),
        (tvm_ffi.List[int], List),
        (tuple[int, ...], Array),
        (tuple[int, int], Array),
        (tuple, Array),
        (tvm_ffi.Array[int], Array),
    ],
)
def test_sequences_become_the_declared_container(annotation: Any, cls: type) -> None:
    for value in ([1, 2], (1, 2), Array([1, 2]), List([1, 2]), [1, True + 1]):
        converted = convert(annotation, value)
        assert type(converted) is cls
        assert list(converted) == [1, 2]


@pytest.mark.parametrize(
    ("annotation", "cls"), [(dict[str, int], Dict), (tvm_ffi.Map[str, int], Map)]
)
def test_mappings_become_the_declared_container(annotation: Any, cls: type) -> None:
    for value in (
        {"a": 1},
        Map({"a": 1}),
        Dict({"a": True}),
        collections.OrderedDict(a=1),
        types.MappingProxyType({"a": 1}),
        collections.UserDict(a=1),
    ):
        converted = convert(annotation, value)
        assert type(converted) is cls
        assert dict(converted.items()) == {"a": 1}


def test_order_of_mappings_is_kept() -> None:
    assert list(convert(dict[int, int], {3: 1, 1: 2, 2: 3}).keys()) == [3, 1, 2]


def test_callables_become_functions() -> None:
    for value in (len, lambda x: len(x), tvm_ffi.convert(len)):
        function = convert(Callable[..., int], value)
        assert isinstance(function, tvm_ffi.Function)
        assert function([1, 2]) == 2
    function = tvm_ffi.convert(len)
    assert convert(Callable, function) is function


def test_pointers() -> None:
    assert convert(ctypes.c_void_p, ctypes.c_void_p(5)).value == 5
    assert convert(ctypes.c_void_p, None).value is None


def test_objects_pass_as_themselves() -> None:
    pair = testing.TestIntPair(1, 2)
    derived = testing.TestObjectDerived(v_map={}, v_array=[])
    assert convert(testing.TestIntPair, pair) is pair
    assert convert(testing.TestObjectBase, derived) is derived
    assert convert(tvm_ffi.Object, pair) is pair
    assert convert(Any, pair) is pair
    assert convert(testing.TestIntPair | None, pair) is pair


@pytest.mark.parametrize(
    "value", [[1], {"a": 1}, len, RuntimeError("x"), Payload(), "longer than seven", b"12345678"]
)
def test_object_takes_what_packs_to_an_object(value: Any) -> None:
    assert TypeSchema("Object").convert(value).type_index >= 64


@pytest.mark.parametrize("value", [1, 1.5, None, "short", b"short"])
def test_object_refuses_what_packs_to_no_object(value: Any) -> None:
    with pytest.raises(TypeError, match="expected Object, got "):
        TypeSchema("Object").convert(value)


def test_exceptions_become_errors() -> None:
    error = core._to_py_class_value(TypeSchema("ffi.Error").convert(ValueError("why")))
    assert (error.kind, error.message) == ("ValueError", "why")


def test_short_text_is_a_string_at_the_top_and_plain_inside() -> None:
    assert type(convert(str, "short")) is core.String
    assert type(convert(bytes, b"short")) is core.Bytes
    assert type(convert(list[str], ["short"])[0]) is str


# ---- identity -------------------------------------------------------------------------------

LONG = "longer than seven"


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (tvm_ffi.Array[int], Array([1, 2])),
        (tvm_ffi.Array[float], Array([1.5])),
        (tvm_ffi.Array[bool], Array([True])),
        (tvm_ffi.Array[int | None], Array([None, 1])),
        (tvm_ffi.Array[str], Array([LONG])),
        (tvm_ffi.Array[str], Array([])),
        (tvm_ffi.Array[Any], Array([Payload(), "a"])),
        (tvm_ffi.Array[tvm_ffi.Object], Array([Array([])])),
        (tvm_ffi.Array[tvm_ffi.Array[int]], Array([Array([1]), Array([2])])),
        (tvm_ffi.Array[int | str], Array([1, 2])),
        (tvm_ffi.Array[Callable], Array([len])),
        (tuple[int, str], Array([1, LONG])),
        (tuple, Array([1, "a"])),
        (list[int], List([1])),
        (tvm_ffi.Map[str, int], Map({LONG: 1})),
        (tvm_ffi.Map[Any, int], Map({"a": 1})),
        (dict[Any, Any], Dict({"a": Payload()})),
        (tvm_ffi.Map[Any, tvm_ffi.Map[Any, int]], Map({"a": Map({"b": 1})})),
    ],
)
def test_a_container_that_needs_no_conversion_is_the_same(annotation: Any, value: Any) -> None:
    assert convert(annotation, value) is value


@pytest.mark.parametrize("size", [0, 1, 6, 7, 8, 9, 20])
def test_whether_a_container_is_the_same_does_not_depend_on_the_length_of_text(size: int) -> None:
    text, data = "x" * size, b"x" * size
    for annotation, value in (
        (list[str], List([text, text])),
        (tvm_ffi.Array[str], Array([text])),
        (tvm_ffi.Array[bytes], Array([data])),
        (dict[str, int], Dict({text: 1})),
        (dict[str, str], Dict({text: text})),
        (tvm_ffi.Map[bytes, float], Map({data: 1.5})),
        (list[list[str]], List([List([text])])),
        (dict[str, list[bytes]], Dict({text: List([data])})),
        (tuple[str, int, bytes], Array([text, 1, data])),
        (list[str | int], List([text, 3])),
        (list[str | None], List([text, None])),
        (list[Any], List([text, data])),
    ):
        assert convert(annotation, value) is value
        assert convert(annotation | None, value) is value
    changed = List([text, True])
    assert convert(list[str | float], changed) is not changed


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (tvm_ffi.Array[int], Array([1, True])),
        (tvm_ffi.Array[float], Array([1.5, 2])),
        (tvm_ffi.Array[tvm_ffi.Array[int]], Array([Array([1]), Array([True])])),
        (tvm_ffi.Array[tvm_ffi.Array[int]], Array([List([1])])),
        (tvm_ffi.Array[int], List([1])),
        (list[int], Array([1])),
        (tuple, List([1])),
        (tvm_ffi.Map[Any, float], Map({LONG: 1})),
        (dict[Any, int], Map({LONG: 1})),
        (tvm_ffi.Map[Any, int], Dict({LONG: 1})),
    ],
)
def test_a_container_that_changes_is_new_and_the_old_one_stays(annotation: Any, value: Any) -> None:
    before = str(value)
    converted = convert(annotation, value)
    assert not converted.same_as(value)
    assert str(value) == before


def test_an_unregistered_subclass_of_a_container_passes() -> None:
    class Mine(Array):
        pass

    value = Mine([1, 2])
    assert convert(tvm_ffi.Array[int], value) is value


def test_the_input_list_is_never_changed() -> None:
    value = [True, Stands(2)]
    convert(list[int], value)
    assert value[0] is True
    assert isinstance(value[1], Stands)


# ---- values that stand for others -----------------------------------------------------------


def test_each_protocol_method_is_called_once() -> None:
    for annotation in (int, int | None, str | int, Any):
        value = Stands(3)
        convert(annotation, value)
        assert value.calls == 1


def test_precedence_of_protocols() -> None:
    class Both(Stands):
        def __tvm_ffi_int__(self) -> int:
            return 1

        def __call__(self) -> None: ...

    class All(Both, tvm_ffi.ObjectConvertible):
        def __tvm_ffi_object__(self) -> Any:
            return Array([9])

        def asobject(self) -> Any:
            return Array([8])

    assert convert(int, Both(5)) == 5
    assert list(convert(tvm_ffi.Array[int], All(5))) == [9]


def test_a_chain_may_have_64_links() -> None:
    value: Any = 1
    for _ in range(64):
        value = Stands(value)
    assert convert(int, value) == 1
    with pytest.raises(TypeError, match="infinite __tvm_ffi_value__ cycle detected$"):
        convert(int, Stands(value))


def test_protocols_may_lead_to_one_another() -> None:
    array = Array([1])
    assert convert(tvm_ffi.Array[int], Stands(Holds(array))) is array
    assert convert(tvm_ffi.Array[int], Stands(Convertible(array))) is array
    assert convert(Any, Holds(array)) is array


def test_interrupts_are_no_mismatch() -> None:
    class Interrupted:
        def __tvm_ffi_value__(self) -> Any:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        schema(int | str).convert(Interrupted())


# ---- messages -------------------------------------------------------------------------------

cycle_a, cycle_b = Stands(None), Stands(None)
cycle_a.value, cycle_b.value = cycle_b, cycle_a
itself = Stands(None)
itself.value = itself


@numbers.Integral.register
class BadNumber:
    """Claims to be an integer."""

    def __int__(self) -> int:
        raise ValueError("no int")

    def __bool__(self) -> bool:
        raise ValueError("no bool")


CAST = "\n  __ffi_convert__ failed:\n    Cannot cast from "
RANGE = "out of int64 range [-9223372036854775808, 9223372036854775807]"


@pytest.mark.parametrize(
    ("annotation", "value", "message"),
    [
        (int, "3", "expected int, got str"),
        (int, 3.5, "expected int, got float"),
        (int, None, "expected int, got None"),
        (int, 2**63, f"integer 9223372036854775808 {RANGE}"),
        (int, BadNumber(), "int() failed for BadNumber: no int"),
        (int, Array([1]), "expected int, got ffi.Array"),
        (int, testing.TestIntPair(1, 2), "expected int, got testing.TestIntPair"),
        (float, "3", "expected float, got str"),
        (float, 10**400, "float() failed for int: int too large to convert to float"),
        (bool, 1.0, "expected bool, got float"),
        (bool, BadNumber(), "bool() failed for BadNumber: no bool"),
        (str, b"x", "expected str, got bytes"),
        (str, 3, "expected str, got int"),
        (bytes, "x", "expected bytes, got str"),
        (None, 0, "expected None, got int"),
        (ctypes.c_void_p, 3, "expected ctypes.c_void_p, got int"),
        (Callable, 3, "expected Callable, got int"),
        (Callable, Map({}), "expected Callable, got ffi.Map"),
        (list[int], 3, "expected List, got int"),
        (list[int], "abc", "expected List, got str"),
        (list[int], (x for x in ()), "expected List, got generator"),
        (list[int], {1}, "expected List, got set"),
        (list[int], Map({}), "expected List, got ffi.Map"),
        (tvm_ffi.Array[int], RuntimeError("x"), "expected Array, got RuntimeError"),
        (dict[int, int], [(1, 2)], "expected Dict, got list"),
        (tvm_ffi.Map[int, int], 3, "expected Map, got int"),
        (list[int], [1, "x"], "element [1]: expected int, got str"),
        (list[list[int]], [[1], ["x"]], "element [1]: element [0]: expected int, got str"),
        (list[int | None], [None, "x"], "element [1]: expected int, got str"),
        (list[int], Array([1, "x"]), "element [1]: expected int, got str"),
        (tuple[int, str], [1, 2], "element [1]: expected str, got int"),
        (tuple[int, str], [1], "expected tuple of length 2, got list of length 1"),
        (tuple[()], Array([1]), "expected tuple of length 0, got Array of length 1"),
        (tuple[()], Map({}), "expected tuple, got ffi.Map"),
        (dict[str, int], {3: 1}, "key 3: expected str, got int"),
        (dict[str, int], {"a": "x"}, "value for key 'a': expected int, got str"),
        (
            dict[str, list[int]],
            {"k": [1, 2, "x"]},
            "value for key 'k': element [2]: expected int, got str",
        ),
        (dict[str, int], Map({3: 1}), "key 3: expected str, got int"),
        (int | str, 1.5, "expected int | str, got float"),
        (int | str | None, 1.5, "expected int | str, got float"),
        (int | list[int], ["x"], "expected int | List[int], got list"),
        (testing.TestObjectBase, 4, "expected testing.TestObjectBase, got int"),
        (
            testing.TestObjectBase,
            testing.TestIntPair(1, 2),
            "expected testing.TestObjectBase, got testing.TestIntPair",
        ),
        (
            testing.TestIntPair,
            4,
            f"expected testing.TestIntPair, got int{CAST}`int` to `testing.TestIntPair`",
        ),
        (
            testing.TestIntPair,
            Payload(),
            "expected testing.TestIntPair, got Payload"
            f"{CAST}`ffi.OpaquePyObject` to `testing.TestIntPair`",
        ),
        (int, Fails(), "expected int, got Fails"),
        (int | None, Fails(), "expected int, got Fails"),
        (int | str, Fails(), "expected int | str, got Fails"),
        (Any, Fails(), "failed to convert Any from Fails"),
        (int, itself, "expected int, got Stands"),
        (int, Stands("x"), "expected int, got str"),
        (int, cycle_a, "infinite __tvm_ffi_value__ cycle detected"),
        (int | str, cycle_a, "infinite __tvm_ffi_value__ cycle detected"),
        (list[int], [cycle_a], "element [0]: infinite __tvm_ffi_value__ cycle detected"),
        (int, Holds(None), "__tvm_ffi_object__() failed for Holds"),
        (int, Convertible(None), "asobject() failed for Convertible"),
        (int, Convertible([1]), "asobject() returned list for Convertible"),
    ],
)
def test_messages(annotation: Any, value: Any, message: str) -> None:
    declared = schema(annotation)
    with pytest.raises(TypeError) as caught:
        declared.convert(value)
    assert str(caught.value) == f"type conversion failed for {declared!r}: {message}"
    with pytest.raises(TypeError) as caught:
        declared.check_value(value)
    assert str(caught.value) == f"type check failed for {declared!r}: {message}"


def test_a_shape_says_what_it_cannot_hold() -> None:
    with pytest.raises(TypeError) as caught:
        TypeSchema("ffi.Shape").convert([1, "x"])
    assert str(caught.value).endswith("Cannot cast from `ffi.Array` to `ffi.Shape`")


def test_an_unknown_origin_is_named_on_use() -> None:
    for unknown in (TypeSchema("no.such"), TypeSchema("Array", (TypeSchema("no.such"),))):
        for use in (unknown.convert, unknown.check_value):
            with pytest.raises(TypeError, match="^unknown TypeSchema origin: 'no.such'$"):
                use(1)


def test_containers_that_contain_themselves() -> None:
    loop: list[Any] = []
    loop.append(loop)
    ring: dict[str, Any] = {}
    ring["ring"] = [ring]
    stands = Stands(None)
    stands.value = {"a": [stands]}
    text = "the value contains itself$"
    for value in (loop, ring, [stands], ([1, 1], loop)):
        for declared in (schema(Any), TypeSchema("Object")):
            with pytest.raises(TypeError, match=text):
                declared.convert(value)
    for annotation, value in ((list[Any], loop), (dict[str, Any], ring)):
        with pytest.raises(TypeError, match=text):
            schema(annotation).convert(value)
        with pytest.raises(TypeError, match=text):
            schema(annotation).check_value(value)


def test_a_full_stack_is_not_a_cycle() -> None:
    deep: Any = 0
    for _ in range(50_000):
        deep = [deep, 1]

    class Endless:
        def __tvm_ffi_value__(self) -> Any:
            return [Endless()]

    class Recursive:
        def __tvm_ffi_int__(self) -> int:
            return self.__tvm_ffi_int__()

    for annotation, value in ((list[Any], deep), (Any, [Endless()]), (int, Recursive())):
        for use in (schema(annotation).convert, schema(annotation).check_value):
            with pytest.raises(RecursionError):
                use(value)
    while deep:
        deep = deep[0]


def test_integers_that_python_refuses_to_print() -> None:
    with pytest.raises(TypeError, match="integer .* out of int64 range"):
        convert(int, 10**5000)
    for number in (10**5000, -(10**5000), 2**63, -(2**63) - 1):
        assert testing.echo(number) == number
        assert Array([number])[0] == number
        with pytest.raises(ValueError, match="list of int arguments"):
            tvm_ffi.Shape([number])


def test_an_empty_wrapper_is_refused() -> None:
    moved = Array([1])
    testing.create_object("testing.TestObjectBase")
    tvm_ffi.Object.__new__(tvm_ffi.Object).__move_handle_from__(moved)
    for annotation in (tvm_ffi.Array[int], Any, tvm_ffi.Object, int | tvm_ffi.Array):
        with pytest.raises((TypeError, ValueError)):
            schema(annotation).convert(moved)


# ---- code that runs while a container is converted ------------------------------------------


def test_a_list_may_change_while_it_is_converted() -> None:
    victim: list[Any] = []

    class Shrinks:
        def __tvm_ffi_value__(self) -> int:
            victim.clear()
            return 1

    victim.extend([Shrinks(), 2, 3])
    assert list(convert(list[int], victim)) == [1, 2, 3]


def test_a_container_of_the_ffi_may_change_while_it_is_converted() -> None:
    victim = List([])

    class Grows:
        def __tvm_ffi_value__(self) -> int:
            victim.clear()
            victim.append("x")
            return 1

    victim.append(core._convert_to_opaque_object(Grows()))
    victim.append(2)
    assert list(convert(tuple[int, int], victim)) == [1, 2]


def test_nothing_stays_alive_after_a_failure() -> None:
    class Value:
        pass

    value = Value()
    died = weakref.ref(value)
    with pytest.raises(TypeError):
        schema(list[int]).convert([value])
    del value
    gc.collect()
    assert died() is None


def test_references_are_exact() -> None:
    payload = Payload()
    before = sys.getrefcount(payload)
    for _ in range(10):
        held = schema(list[Any]).convert([payload, payload])
        with pytest.raises(TypeError):
            schema(list[int]).convert([1, payload])
    del held
    assert sys.getrefcount(payload) == before


# ---- CAny -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text", "index"),
    [
        (None, "CAny(None)", 0),
        (3, "CAny(int=3)", 1),
        (True, "CAny(bool=True)", 2),
        (1.5, "CAny(float=1.5)", 3),
        ("short", "CAny(type_index=11)", 11),
        (LONG, "CAny(object, type_index=65)", 65),
        ([1], "CAny(object, type_index=71)", 71),
    ],
)
def test_a_held_value_shows_what_it_is(value: Any, text: str, index: int) -> None:
    held = CAny(value)
    assert repr(held) == text
    assert held.type_index == index
    assert held == held
    assert held != CAny(value)


def test_a_held_value_can_be_read_more_than_once_and_outlived() -> None:
    assert repr(CAny()) == "CAny(None)"
    held = CAny(value=[1, LONG])
    first, second = core._to_py_class_value(held), core._to_py_class_value(held)
    del held
    assert first is second
    assert list(first) == [1, LONG]
    with pytest.raises(TypeError, match="expected tvm_ffi.core.CAny, got int"):
        core._to_py_class_value(3)
    with pytest.raises(TypeError):
        CAny(1, 2)  # type: ignore[call-arg]


# ---- fields ---------------------------------------------------------------------------------


def make_record() -> Any:
    @tvm_ffi.dataclasses.py_class(f"test_type_converter.Record{next(counter)}")
    class Record(tvm_ffi.Object):
        number: int
        names: list[str]
        table: dict[str, list[int]]
        maybe: int | str | None = None

    return Record


counter = itertools.count()


def test_fields_convert_what_is_stored() -> None:
    record = make_record()(number=True, names=("a", "b"), table={"k": [1]})
    assert type(record.number) is int
    assert isinstance(record.names, List)
    assert isinstance(record.table["k"], List)
    record.names.append("c")
    assert list(record.names) == ["a", "b", "c"]
    kept = List(["longer than seven"])
    record.names = kept
    assert record.names is kept


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("number", "x", "expected int, got str"),
        ("number", None, "expected int, got None"),
        ("names", {"a": 1}, "expected List, got ffi.Map"),
        ("names", ["a", 1], "element [1]: expected str, got int"),
        ("table", {"k": ["x"]}, "value for key 'k': element [0]: expected int, got str"),
        ("maybe", 1.5, "expected int | str, got float"),
    ],
)
def test_fields_refuse_what_does_not_fit(field: str, value: Any, message: str) -> None:
    record = make_record()(number=1, names=[], table={})
    before = getattr(record, field)
    with pytest.raises(TypeError) as caught:
        setattr(record, field, value)
    assert str(caught.value).endswith(f": {message}")
    assert getattr(record, field) == before


def field_of(annotation: Any) -> Callable[[Any], Any]:
    """Stores a value in a field of that type."""

    @tvm_ffi.dataclasses.py_class(f"test_type_converter.Field{next(counter)}")
    class Holder(tvm_ffi.Object):
        __annotations__ = {"value": annotation}

    return lambda value: Holder(value).value


EXACT: list[tuple[Any, Any]] = [
    (bool | int, 5),
    (bool | int, True),
    (int | bool, True),
    (float | int, 2**53 + 1),
    (float | bool | int, 0),
    (int | float | None, 1.0),
    (bytes | str, "text"),
    (int | Any, True),
    (tvm_ffi.dtype | str, "int8"),
    (tvm_ffi.Device | str, "cpu"),
    (str | tvm_ffi.dtype, tvm_ffi.dtype("int8")),
    (str | tvm_ffi.Device, tvm_ffi.device("cpu")),
]


@pytest.mark.parametrize(("annotation", "value"), EXACT)
def test_a_union_keeps_a_value_that_one_of_its_types_fits(annotation: Any, value: Any) -> None:
    for stored in (convert(annotation, value), field_of(annotation)(value)):
        assert stored == value
        assert isinstance(stored, type(value))
    assert isinstance(field_of(list[annotation])([value])[0], type(value))
    assert isinstance(field_of(dict[str, annotation])({"k": value})["k"], type(value))


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Array | List, List([1])),
        (List | Array, Array([1])),
        (Map | Dict, Dict({1: 2})),
        (Dict | Map, Map({1: 2})),
        (list[float] | list[int], List([1])),
        (list[int] | list[float], List([1.5])),
        (list[int] | tuple[int, ...], Array([1])),
        (tuple[int, int] | tuple[int], Array([1])),
        (dict[str, float] | dict[str, int], Dict({"a": 1})),
        (list[float] | list[bool | int], List([1, True])),
        (list[Array | List], List([List([]), Array([])])),
        (List[List | Array], List([Array([])])),
        (Map[str, Array | List], Map({"a": List([])})),
        (dict[str, dict[str, float] | dict[str, int]], Dict({"a": Dict({"b": 1})})),
    ],
)
def test_a_union_keeps_the_container_that_one_of_its_types_fits(
    annotation: Any, value: Any
) -> None:
    assert convert(annotation, value) is value
    assert field_of(annotation)(value) is value
    assert field_of(annotation | None)(value) is value


@pytest.mark.parametrize(
    ("annotation", "value", "kind", "types"),
    [
        (list[float] | list[int], [2**53 + 1], List, [int]),
        (list[float] | list[int], [1, 2.5], List, [float, float]),  # neither fits: the first
        (list[float] | list[float | int], (1, 2.5), List, [int, float]),
        (Array | List, [1], Array, [int]),
        (List | Array, [1], List, [int]),
        (list | tuple, (1,), List, [int]),
        (tuple | list, [1], Array, [int]),
        (tuple[int, int] | list[int], [1], List, [int]),
        (list[List | Array], [[1]], List, [List]),
        (dict | list, [1], List, [int]),
        (list[dict[str, float]] | list[dict[str, int]], [{"a": 1}], List, [Dict]),
    ],
)
def test_a_python_container_becomes_the_first_kind_whose_elements_fit(
    annotation: Any, value: Any, kind: type, types: list[type]
) -> None:
    for stored in (convert(annotation, value), field_of(annotation)(value)):
        assert type(stored) is kind
        assert [type(element) for element in stored] == types


def test_a_python_dict_becomes_the_first_kind_whose_entries_fit() -> None:
    for annotation, kind, value_type in (
        (Dict | Map, Dict, int),
        (Map | Dict, Map, int),
        (dict[str, float] | dict[str, int], Dict, int),
        (dict[int, int] | dict[str, bool | int], Dict, int),
    ):
        for stored in (convert(annotation, {"a": 1}), field_of(annotation)({"a": 1})):
            assert type(stored) is kind
            assert type(stored["a"]) is value_type


def test_a_union_of_numbers_keeps_numbers_of_numpy() -> None:
    numpy = pytest.importorskip("numpy")
    for store in (lambda union, value: convert(union, value), lambda u, v: field_of(u)(v)):
        assert store(float | int, numpy.int64(2**53 + 1)) == 2**53 + 1
        assert store(bool | int, numpy.int8(5)) == 5
        assert type(store(int | float, numpy.float32(1))) is float
        assert store(int | bool, numpy.bool_(True)) is True


def test_a_union_calls_the_hooks_of_a_value_once() -> None:
    stands = Stands(5)
    assert convert(bool | int, stands) == 5
    assert stands.calls == 1
    assert type(convert(float | int, Stands(5))) is int


# ---- enums ----------------------------------------------------------------------------------


def test_payloads_find_members() -> None:
    enums = testing.testing._TestCxxIntEnum, testing.testing._TestCxxStrEnum
    assert convert(enums[0], 10) is enums[0].low
    assert convert(enums[1], "+") is enums[1].add
    assert list(convert(list[enums[0]], [20, 10])) == [enums[0].high, enums[0].low]  # type: ignore[valid-type]
    for cls, payload, message in (
        (enums[0], 11, "expected testing.TestCxxIntEnum, got int"),
        (enums[0], "+", "expected testing.TestCxxIntEnum, got str"),
        (enums[0], 2**63, f"integer 9223372036854775808 {RANGE}"),
        (enums[1], 10, "expected testing.TestCxxStrEnum, got int"),
        (enums[1], "?", "expected testing.TestCxxStrEnum, got str"),
    ):
        with pytest.raises(TypeError) as caught:
            schema(cls).check_value(payload)
        assert message in str(caught.value)
