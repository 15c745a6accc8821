# SPDX-License-Identifier: Apache-2.0
"""Objects: classes, fields, methods, constructors, handles, moves, pickles, copies."""

from __future__ import annotations

import copy
import gc
import inspect
import pickle
import typing
import weakref
from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence
from functools import partial
from typing import Any, ClassVar

import pytest
import tvm_ffi
from support import FREE_THREADED, Stateful, make_edges, make_holder, use_count
from tvm_ffi import core, testing, tying
from tvm_ffi.dataclasses import py_class
from tvm_ffi.registry import _install_init, _register_class

# ---- classes ------------------------------------------------------------------------------------


def test_a_class_without_slots_gets_empty_ones() -> None:
    class Plain(core.Object):
        pass

    assert Plain.__dict__["__slots__"] == ()
    assert "__dict__" not in Plain.__dict__
    with pytest.raises(AttributeError):
        Plain.__new__(Plain).anything = 1


@pytest.mark.parametrize(
    "slots", [("__dict__",), ["__dict__"], "__dict__", ("__dict__", "__weakref__")]
)
def test_a_class_may_ask_for_a_dict(slots: object) -> None:
    cls = type(core.Object)("WithDict", (core.Object,), {"__slots__": slots})
    obj = cls.__new__(cls)
    obj.anything = 1
    assert obj.anything == 1


def test_inheritance_decides_about_instances() -> None:
    assert isinstance(tvm_ffi.Array([]), core.Object)
    assert isinstance(tvm_ffi.Array([]), core.CObject)
    assert not isinstance(tvm_ffi.Map({}), tvm_ffi.Array)
    assert not issubclass(tvm_ffi.List, tvm_ffi.Array)
    assert issubclass(testing.TestObjectDerived, testing.TestObjectBase)
    for cls, abc in (
        (tvm_ffi.Array, Sequence),
        (tvm_ffi.List, MutableSequence),
        (tvm_ffi.Map, Mapping),
        (tvm_ffi.Dict, MutableMapping),
    ):
        assert issubclass(cls, abc)
        assert issubclass(cls, core.CContainerBase)


def test_functions_and_errors_are_no_objects_of_the_package_class() -> None:
    assert not isinstance(tvm_ffi.convert(lambda: 1), core.Object)
    assert not isinstance(core.Error("ValueError", "", ""), core.Object)
    assert isinstance(core.MISSING, core.Object)


def test_containers_are_generic() -> None:
    for cls in (tvm_ffi.Array, tvm_ffi.List):
        assert typing.get_origin(cls[int]) is cls
        assert typing.get_args(cls[int]) == (int,)
    for cls in (tvm_ffi.Map, tvm_ffi.Dict):
        assert typing.get_origin(cls[str, int]) is cls
    assert list(tvm_ffi.Array[int]([1, 2])) == [1, 2]


def test_new_makes_an_empty_instance() -> None:
    for cls in (core.Object, testing.TestIntPair, tvm_ffi.Array, tvm_ffi.Function, core.Error):
        obj = cls.__new__(cls)
        assert obj.__chandle__() == 0
        assert obj.id_ == 0
        assert obj.__ctypes_handle__().value is None
        assert repr(obj) == f"{cls.__name__}(chandle=None)"
        assert tying.state(obj) == "empty"
    assert core.Object().__chandle__() == 0
    assert testing.TestIntPair.__new__(testing.TestIntPair, 1, 2, x=3).__chandle__() == 0


def test_a_wrapper_is_small() -> None:
    collector_head = 0 if FREE_THREADED else 16
    assert core.Object.__basicsize__ + collector_head <= 48
    assert core.Object.__basicsize__ == core.CObject.__basicsize__


# ---- handles ------------------------------------------------------------------------------------


def test_same_as_compares_handles() -> None:
    pair = testing.TestIntPair(1, 2)
    other = testing.TestIntPair(1, 2)
    assert pair.same_as(pair)
    assert pair.is_(tvm_ffi.Array([pair])[0])
    assert not pair.same_as(other)
    for value in (1, None, "text", object()):
        assert pair.same_as(value) is False
        assert (pair == value) is False
        assert (pair != value) is True


def test_equality_and_hash_are_those_of_the_handle() -> None:
    pair, other = testing.TestIntPair(1, 2), testing.TestIntPair(1, 2)
    assert pair == pair
    assert pair != other
    assert hash(pair) == hash(testing.echo(pair))
    assert {pair: 1}[pair] == 1
    assert pair.__chandle__() == pair.id_ == pair.__ctypes_handle__().value != 0


def test_move_handle_from_empties_the_source() -> None:
    source = testing.TestIntPair(3, 4)
    address = source.__chandle__()
    target = testing.TestIntPair.__new__(testing.TestIntPair)
    target.__move_handle_from__(source)
    assert target.__chandle__() == address
    assert source.__chandle__() == 0
    assert target.a == 3
    with pytest.raises(ValueError, match="TestIntPair"):
        _ = source.a


def test_move_handle_between_wrapper_classes() -> None:
    class Plain:
        def __init__(self) -> None:
            self.size = 7

    class Tagged(tvm_ffi.Function, Plain):
        __call__ = tvm_ffi.Function.__call__

        def __init__(self, tag: int) -> None:
            Plain.__init__(self)
            self.tag = tag

    tagged = Tagged(128)
    assert tagged.__chandle__() == 0
    tagged.__move_handle_from__(tvm_ffi.convert(lambda x: x + 1))
    assert tagged(1) == 2
    assert (tagged.tag, tagged.size) == (128, 7)
    assert testing.apply(tagged, 4) == 5
    assert testing.echo(tagged) is tagged


def test_init_by_constructor_leaves_an_empty_object_on_failure() -> None:
    obj = core.Object.__new__(core.Object)
    with pytest.raises(TypeError):
        obj.__init_handle_by_constructor__(testing.add_one, "x")
    assert obj.__chandle__() == 0
    assert "chandle=None" in repr(obj)


def test_init_by_constructor_again_replaces_the_object() -> None:
    obj = testing._TestCxxAutoInit(1, c=3)
    before = obj.__chandle__()
    obj.b = 999
    obj.__ffi_init__(5, c=6)
    assert obj.__chandle__() != before
    assert (obj.a, obj.b, obj.c, obj.d) == (5, 42, 6, 99)
    assert testing.echo(obj) is obj


# ---- fields and methods -------------------------------------------------------------------------


def test_fields_are_properties_with_docs() -> None:
    pair = testing.TestIntPair(3, 4)
    assert (pair.a, pair.b) == (3, 4)
    assert testing.TestIntPair.a.__doc__ == "Field `a`"
    assert testing.TestIntPair.a.fget.__name__ == "a"
    assert testing.TestIntPair.a.fget.__qualname__ == "TestIntPair.a"
    assert testing.TestObjectBase.v_f64.__doc__ is None
    assert testing.TestIntPair.a.fset is None


def test_read_only_fields_refuse_assignment_but_can_be_set() -> None:
    pair = testing.TestIntPair(3, 4)
    with pytest.raises(AttributeError):
        pair.a = 5
    with pytest.raises(AttributeError):
        del pair.a
    testing.TestIntPair.a.set(pair, 5)
    assert pair.a == 5
    with pytest.raises(TypeError):
        testing.TestIntPair.a.set(pair, "text")
    assert pair.a == 5


def test_fields_convert_both_ways() -> None:
    obj = testing.TestObjectBase()
    assert (obj.v_i64, obj.v_f64, obj.v_str) == (10, 10.0, "hello")
    obj.v_i64 = -(2**63)
    assert obj.v_i64 == -(2**63)
    obj.v_str = "a long string that lives on the heap"
    assert obj.v_str == "a long string that lives on the heap"
    obj.v_i64 = True
    assert obj.v_i64 == 1
    with pytest.raises(TypeError, match="str"):
        obj.v_str = 1
    assert obj.v_str == "a long string that lives on the heap"


def test_narrow_fields() -> None:
    obj = testing._TestCxxClassDerivedDerived(1, 2, 3.5, True, 4.5, "text")
    assert (obj.v_i64, obj.v_i32, obj.v_f64, obj.v_f32) == (1, 2, 3.5, 4.5)
    obj.v_i32 = -7
    obj.v_f32 = 0.5
    obj.v_bool = False
    assert (obj.v_i32, obj.v_f32, obj.v_bool) == (-7, 0.5, False)
    assert obj.v_bool is False


def test_methods_have_names_and_docs() -> None:
    assert testing.TestIntPair(3, 4).sum() == 7
    assert testing.TestIntPair.sum.__doc__ == "Method to compute sum of a and b"
    assert testing.TestIntPair.sum.__name__ == "sum"
    assert testing.TestObjectBase().add_i64(5) == 15
    assert testing.TestObjectDerived({}, []).add_i64(5) == 15


def test_a_class_attribute_hides_the_field_and_the_method() -> None:
    info = core._type_cls_to_type_info(testing.TestIntPair)
    try:

        @partial(_register_class, key="testing.TestIntPair", complete=_install_init)
        class Mine(core.Object):
            a = "mine"

            def sum(self) -> str:
                return "my sum"

        mine = Mine(1, 2)
        assert (mine.a, mine.b, mine.sum()) == ("mine", 2, "my sum")
    finally:
        core._register_object_by_index(info.type_index, testing.TestIntPair)


# ---- constructors -------------------------------------------------------------------------------


def test_generated_constructors() -> None:
    obj = testing.TestObjectDerived({"a": 1}, [2], v_str="text")
    assert (obj.v_map["a"], obj.v_array[0], obj.v_str, obj.v_i64) == (1, 2, "text", 10)
    assert testing._TestCxxKwOnly(x=1, y=2, z=3).w == 100
    subset = testing._TestCxxInitSubset(required_field=1)
    assert (subset.optional_field, subset.note) == (-1, "default")
    child = testing._TestCxxAutoInitChild(1, 2, child_kw_only=3)
    assert (child.parent_required, child.child_required, child.parent_default) == (1, 2, 5)


def test_signatures() -> None:
    def names(cls: type) -> list[str]:
        return [str(p) for p in inspect.signature(cls.__init__).parameters.values()]

    assert names(testing.TestIntPair) == ["self", "a: 'int'", "b: 'int'"]
    assert names(testing.TestObjectDerived)[:3] == ["self", "v_map", "v_array"]
    assert (
        inspect.signature(testing.TestObjectDerived.__init__).parameters["v_i64"].default
        is core.MISSING
    )
    kinds = inspect.signature(testing._TestCxxAutoInit.__init__).parameters
    assert kinds["c"].kind is inspect.Parameter.KEYWORD_ONLY
    assert testing.TestIntPair.__init__.__qualname__ == "TestIntPair.__init__"


@pytest.mark.parametrize(
    ("args", "kwargs", "text"),
    [
        ((), {}, "missing required"),
        ((1,), {}, "keyword-only"),
        ((1, 2, 3, 4), {"c": 1}, "positional"),
        ((1,), {"c": 1, "nope": 2}, "nope"),
        ((1,), {"a": 2, "c": 1}, "multiple values"),
        ((None,), {"c": 1}, "a"),
    ],
)
def test_constructor_errors_name_the_culprit(args: tuple, kwargs: dict, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        testing._TestCxxAutoInit(*args, **kwargs)


def test_a_default_can_be_asked_for_by_missing() -> None:
    assert testing._TestCxxAutoInit(1, c=2, d=core.MISSING).d == 99


def test_a_type_without_constructor_says_so() -> None:
    with pytest.raises(TypeError, match="cannot be constructed directly"):
        testing._TestCxxNoAutoInit(1, 2)


def test_super_init_of_a_registered_class_is_refused() -> None:
    class Other(core.Object):
        __init__ = testing._TestCxxAutoInitSimple.__init__

    with pytest.raises(TypeError, match="not supported"):
        Other(1, 2)


def test_ffi_init_of_another_class_is_refused() -> None:
    pair = testing.TestIntPair(1, 2)
    with pytest.raises(TypeError, match="not supported"):
        testing._TestCxxAutoInitSimple.__ffi_init__(pair, 1, 2)
    assert pair.a == 1


def test_python_subclasses_construct_like_their_base() -> None:
    obj = Stateful(3, v_str="text")
    assert (obj.v_i64, obj.v_str) == (3, "text")
    assert type(make_holder(obj).value) is Stateful


# ---- registration, reflection, fallback ---------------------------------------------------------


def test_register_object_variants() -> None:
    with pytest.raises(ValueError, match="Cannot find object type index for tests.nobody"):
        tvm_ffi.register_object("tests.nobody")(type("Nobody", (core.Object,), {}))
    with pytest.raises(ValueError, match="Cannot find object type index for Nobody"):
        tvm_ffi.register_object(type("Nobody", (core.Object,), {}))
    with pytest.raises(TypeError, match="type_key must be a string, type, or None"):
        tvm_ffi.register_object(3)


def test_type_info_tables() -> None:
    for cls, key in (
        (core.Object, "ffi.Object"),
        (core.Error, "ffi.Error"),
        (tvm_ffi.Function, "ffi.Function"),
        (core.String, "ffi.String"),
        (core.Bytes, "ffi.Bytes"),
        (tvm_ffi.Array, "ffi.Array"),
        (tvm_ffi.List, "ffi.List"),
        (tvm_ffi.Map, "ffi.Map"),
        (tvm_ffi.Dict, "ffi.Dict"),
        (tvm_ffi.Module, "ffi.Module"),
        (testing.TestIntPair, "testing.TestIntPair"),
    ):
        info = core._type_cls_to_type_info(cls)
        assert info.type_key == key
        assert info.type_cls is cls
        assert core._type_index_to_type_info(info.type_index) is info
        assert core._lookup_or_register_type_info_from_type_key(key) is info
        parent = info.parent_type_info
        assert parent is None if cls is core.Object else parent.type_cls is not None
    for cls in (core.CObject, core.CContainerBase, core.OpaquePyObject, int):
        assert core._type_cls_to_type_info(cls) is None
    assert core._type_index_to_type_info(10**6) is None
    with pytest.raises(ValueError, match="Cannot find type key: tests.nobody"):
        core._lookup_or_register_type_info_from_type_key("tests.nobody")


def test_field_records() -> None:
    info = testing.TestObjectBase.__tvm_ffi_type_info__
    fields = {field.name: field for field in info.fields}
    assert list(fields) == ["v_i64", "v_f64", "v_str"]
    assert [field.offset for field in info.fields] == [24, 32, 40]
    assert fields["v_i64"].doc == "i64 field"
    assert fields["v_f64"].frozen
    assert not fields["v_i64"].frozen
    assert fields["v_i64"].c_default == 10
    assert fields["v_str"].doc is None
    assert info.total_size >= 56
    assert info.methods[0].name == "add_i64"
    derived = testing.TestObjectDerived.__tvm_ffi_type_info__
    assert derived.parent_type_info is info
    assert derived.type_ancestors[-1] == info.type_index


def test_duplicate_fields_are_refused() -> None:
    info = testing.TestIntPair.__tvm_ffi_type_info__
    with pytest.raises(AssertionError, match="duplicate field name 'a'"):
        core.TypeInfo(
            type_cls=None,
            type_index=info.type_index,
            type_key="tests.duplicate",
            type_ancestors=[],
            fields=[info.fields[0], info.fields[0]],
            methods=[],
        )


def test_type_attributes() -> None:
    base = core._object_type_key_to_index("testing.TestObjectBase")
    pair = core._object_type_key_to_index("testing.TestIntPair")
    assert core._lookup_type_attr(base, "__ffi_convert__") is None
    assert isinstance(core._lookup_type_attr(pair, "__ffi_convert__"), tvm_ffi.Function)
    assert core._lookup_type_attr(64, "__metadata__") is None
    assert core._lookup_type_attr(base, "__ffi_convert__", ancestor=True) is not None
    assert core._lookup_type_attr(10**6, "__ffi_convert__") is None
    assert core._object_type_key_to_index("tests.nobody") is None


def test_fallback_classes() -> None:
    obj = testing.make_unregistered_object()
    cls = type(obj)
    assert cls.__name__ == "TestUnregisteredObject"
    assert cls.__qualname__ == "testing.TestUnregisteredObject"
    assert cls.__module__ == "testing"
    assert cls.__doc__.startswith(
        "Auto-generated fallback class for testing.TestUnregisteredObject."
    )
    assert (obj.v1, obj.v2, obj.get_v1_plus_one(), obj.get_v2_plus_two()) == (41, 42, 42, 44)
    assert cls.get_v1_plus_one.__doc__ == "Get (v1 + 1) from TestUnregisteredBaseObject"
    assert cls.get_v2_plus_two.__doc__ == "Get (v2 + 2) from TestUnregisteredObject"
    assert type(testing.make_unregistered_object()) is cls
    assert cls.__tvm_ffi_type_info__.type_key == "testing.TestUnregisteredObject"
    with pytest.raises(AttributeError):
        obj.anything = 1


def test_a_class_that_is_no_wrapper_can_be_registered() -> None:
    made = testing._SchemaAllTypes.make_with(1, 2.0, "text")
    assert isinstance(made, core.Object)
    assert made.v_int == 1
    assert made.v_string == "text"
    assert made.add_int(4) == 5
    assert core._type_cls_to_type_info(testing._SchemaAllTypes).type_key == "testing.SchemaAllTypes"


def test_registered_type_keys() -> None:
    keys = list(tvm_ffi.registry.get_registered_type_keys())
    for key in ("None", "int", "bool", "float", "void*", "DataType", "Device", "ffi.Object"):
        assert key in keys
    assert "testing.TestIntPair" in keys


# ---- moves --------------------------------------------------------------------------------------


def test_a_moved_argument_leaves_its_wrapper_empty() -> None:
    seen: list[int] = []

    def callback(arg: object) -> object:
        gc.collect()
        seen.append(use_count(arg))
        return arg._move()

    items = tvm_ffi.convert([1, 2])
    result = tvm_ffi.convert(callback)(items._move())
    assert seen == [1]
    assert items.__ctypes_handle__().value is None
    assert list(result) == [1, 2]
    with pytest.raises(ValueError, match="moved from"):
        len(items)


def test_a_callback_may_move_the_callers_object() -> None:
    items = tvm_ffi.convert([1, 2])

    def callback(arg: object) -> object:
        # Without the GIL the call in progress holds one, too.
        assert use_count(arg) == 1 + FREE_THREADED
        return arg._move()

    result = tvm_ffi.convert(callback)(items)
    assert result is not items
    assert items.__ctypes_handle__().value is None
    assert result.__ctypes_handle__().value is not None


def test_moving_an_element_leaves_the_container_alone() -> None:
    holder = make_holder(testing.TestObjectBase(5))
    discard = tvm_ffi.convert(lambda _: None)
    discard(holder.value._move())
    assert holder.value.v_i64 == 5
    assert holder.value is holder.value


def test_a_failed_call_gives_a_moved_argument_back() -> None:
    pair = testing.TestIntPair(1, 2)
    with pytest.raises(TypeError):
        testing.add_one(pair._move())
    assert pair.a == 1
    assert testing.echo(pair) is pair


# ---- pickle and copy ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda: testing.TestIntPair(1, 2),
        lambda: testing.TestObjectDerived({"a": 1}, [1, "text"]),
        lambda: tvm_ffi.Array([1, "two", 3.0, None, True]),
        lambda: tvm_ffi.List([1, {"a": [2]}]),
        lambda: tvm_ffi.Map({"a": 1, 2: "b"}),
        lambda: tvm_ffi.Dict({"a": tvm_ffi.List([1])}),
    ],
)
def test_pickle_keeps_class_and_content(make: object) -> None:
    original = make()
    loaded = pickle.loads(pickle.dumps(original))
    assert type(loaded) is type(original)
    assert repr(loaded) == repr(original)
    assert not loaded.same_as(original)


def test_pickle_of_an_empty_object() -> None:
    empty = testing.TestIntPair.__new__(testing.TestIntPair)
    assert empty.__getstate__() == {"handle": None}
    with pytest.raises(ValueError, match="has no C\\+\\+ object"):
        pickle.dumps(empty)


def test_functions_cannot_be_pickled() -> None:
    with pytest.raises(TypeError, match="ffi.Function"):
        pickle.dumps(tvm_ffi.convert(lambda: 1))


def test_shallow_and_deep_copies() -> None:
    inner = tvm_ffi.List([1])
    obj = testing.TestObjectDerived({"k": inner}, [inner])
    shallow, deep = copy.copy(obj), copy.deepcopy(obj)
    assert shallow.v_array is obj.v_array
    assert deep.v_array[0] is not inner
    assert deep.v_array[0] is deep.v_map["k"]
    assert list(deep.v_array[0]) == [1]
    with pytest.raises(TypeError, match="does not support copy"):
        copy.copy(testing.TestNonCopyable(1))


def test_copies_take_python_state_along() -> None:
    obj = Stateful()
    obj.note = 1
    clone = copy.copy(obj)
    assert (type(clone), clone.note) == (Stateful, 1)


def test_replace() -> None:
    pair = testing.TestIntPair(1, 2)
    changed = pair.__replace__(b=7)
    assert (changed.a, changed.b, pair.b) == (1, 7, 2)
    with pytest.raises(AttributeError):
        pair.__replace__(nope=1)


def test_comparison_of_reflected_classes() -> None:
    def make(value: float) -> object:
        return testing._TestCxxClassDerived(1, 2, value)

    assert make(1.0) == make(1.0)
    assert make(1.0) != make(2.0)
    assert make(1.0) < make(2.0)
    assert make(2.0) >= make(1.0)
    assert hash(make(1.0)) == hash(make(1.0))
    assert make(1.0).__eq__("text") is NotImplemented
    with pytest.raises(TypeError):
        _ = make(1.0) < 3


# ---- text ---------------------------------------------------------------------------------------


def test_repr() -> None:
    assert repr(testing.TestIntPair(1, 2)) == "testing.TestIntPair(a=1, b=2)"
    assert repr(core.MISSING) == "<MISSING>"
    assert repr(core.KWARGS) == "<KWARGS>"
    assert repr(tvm_ffi.convert(len)) == "<ffi.Function of <built-in function len>>"
    assert core.object_repr(tvm_ffi.Map({"a": 1})) == '{"a": 1}'


def test_opaque_objects() -> None:
    value = {1, 2}
    opaque = tvm_ffi.convert(value)
    assert type(opaque) is core.OpaquePyObject
    assert opaque.pyobject() is value
    assert testing.echo(value) is value
    assert make_edges(value).v_any is value


def test_inspection_of_ties() -> None:
    pair = testing.TestIntPair(1, 2)
    assert tying.state(pair) == "active"
    assert tying.enabled() is True
    assert set(tying.stats()) >= {"live", "dormant", "adopted"}
    with pytest.raises(TypeError):
        tying.state(3)
    watcher = weakref.ref(pair)
    box = tvm_ffi.Array([pair])
    del pair
    assert tying.state(watcher()) == "dormant"
    assert tying.state(box[0]) == "active"


def test_wrappers_of_every_kind_are_equally_small() -> None:
    small = core.CObject.__basicsize__
    assert small == object.__basicsize__ + 16
    for cls in (tvm_ffi.Array, tvm_ffi.List, tvm_ffi.Map, tvm_ffi.Dict, core.Object):
        assert cls.__basicsize__ == small, cls
    assert core.Tensor.__basicsize__ == small


@py_class("test_objects.FailingRepr")
class FailingRepr(tvm_ffi.Object):
    error: ClassVar[BaseException]

    def __ffi_repr__(self, *_: Any) -> str:
        raise FailingRepr.error


@pytest.mark.parametrize("error", [MemoryError("m"), RecursionError("r"), KeyboardInterrupt("k")])
def test_repr_does_not_hide_what_says_nothing_about_the_object(error: BaseException) -> None:
    FailingRepr.error = error
    for value in (FailingRepr(), tvm_ffi.Array([FailingRepr()])):
        for show in (repr, str, format):
            with pytest.raises(type(error)) as caught:
                show(value)
            assert caught.value is error


@pytest.mark.parametrize("error", [KeyError("k"), ValueError("v"), StopIteration()])
def test_repr_of_an_object_whose_hook_fails(error: BaseException) -> None:
    FailingRepr.error = error
    value = FailingRepr()
    assert repr(value) == f"FailingRepr({value.__chandle__()})"
    box = tvm_ffi.Array([value])
    assert repr(box) == f"Array({box.__chandle__()})"
