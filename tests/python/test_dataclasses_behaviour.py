# SPDX-License-Identifier: Apache-2.0
"""Frozen fields, comparison, repr, copies, pickling, hooks and helpers of classes."""

from __future__ import annotations

import collections
import copy
import ctypes
import gc
import json
import pickle
import sys
from typing import Any

import pytest
import tvm_ffi
from support import fresh_key, use_count
from tvm_ffi import _ffi_api, core, testing
from tvm_ffi.dataclasses import (
    KW_ONLY,
    asdict,
    astuple,
    field,
    fields,
    is_dataclass,
    py_class,
    replace,
)
from tvm_ffi.dataclasses.common import _asdict_inner, _astuple_inner
from tvm_ffi.dataclasses.py_class import _collect_py_methods

Object = tvm_ffi.Object


@py_class("tests.behaviour.Inner", eq=True)
class Inner(Object):
    """A leaf."""

    value: int


@py_class("tests.behaviour.Outer", eq=True)
class Outer(Object):
    """One of everything that can be pickled."""

    i: int
    f: float
    s: str
    b: bool
    inner: Inner
    maybe: Inner | None = None
    items: list[Inner] = field(default_factory=list)
    table: dict[str, int] = field(default_factory=dict)


@py_class("tests.behaviour.Custom")
class Custom(Object):
    """Its constructor takes something else than its fields."""

    length: int

    def __init__(self, text: str) -> None:
        self.length = len(text)


def make_outer() -> Outer:
    inner = Inner(1)
    return Outer(1, 2.5, "text", True, inner, inner, [inner, Inner(2)], {"k": 3})


# ---- frozen -------------------------------------------------------------------------------------


def test_frozen_fields_cannot_be_assigned_but_set() -> None:
    @py_class(fresh_key(), frozen=True)
    class Node(Object):
        x: int
        y: list[int] = field(default_factory=list)

    made = Node(1)
    for action in (lambda: setattr(made, "x", 2), lambda: delattr(made, "x")):
        with pytest.raises(AttributeError):
            action()
    assert Node.x.fset is None
    Node.x.set(made, 5)
    assert made.x == 5
    with pytest.raises(TypeError, match="expected int, got str"):
        Node.x.set(made, "text")
    with pytest.raises(AttributeError):
        made.x = 6
    for other in (copy.copy(made), copy.deepcopy(made), replace(made, x=7)):
        with pytest.raises(AttributeError):
            other.x = 1
    assert replace(made, x=7).x == 7


def test_single_fields_may_be_frozen() -> None:
    @py_class(fresh_key())
    class Node(Object):
        x: int = field(frozen=True)
        y: int = 0
        _: KW_ONLY
        z: int = field(default=1, frozen=True)

    made = Node(1, z=4)
    made.y = 3
    assert Node.y.fset is not None
    for name in ("x", "z"):
        with pytest.raises(AttributeError):
            setattr(made, name, 9)
    with pytest.raises(AttributeError):
        del made.y


def test_each_class_of_a_hierarchy_freezes_its_own_fields() -> None:
    @py_class(fresh_key())
    class Open(Object):
        x: int

    @py_class(fresh_key(), frozen=True)
    class Closed(Open):
        y: int

    @py_class(fresh_key())
    class Reopened(Closed):
        z: int

    made = Reopened(1, 2, 3)
    made.x, made.z = 10, 30
    with pytest.raises(AttributeError):
        made.y = 20


def test_post_init_of_a_frozen_class() -> None:
    @py_class(fresh_key(), frozen=True)
    class Reads(Object):
        x: int
        twice: int = field(init=False, default=0)

        def __post_init__(self) -> None:
            type(self).twice.set(self, self.x * 2)

    assert Reads(3).twice == 6

    @py_class(fresh_key(), frozen=True)
    class Writes(Object):
        x: int

        def __post_init__(self) -> None:
            self.x = 1

    with pytest.raises(AttributeError):
        Writes(3)


def test_properties_say_what_they_are() -> None:
    @py_class(fresh_key())
    class Node(Object):
        x: int = field(default=0, doc="the x")

    assert isinstance(Node.x, property)
    assert isinstance(Node.x, core.FFIProperty)
    assert Node.x.__doc__ == "the x"
    assert Node.x.fget.__name__ == "x"
    assert Node.x.fget.__qualname__ == f"{Node.__qualname__}.x"
    assert Node.x.fget.__module__ == __name__
    with pytest.raises(AttributeError):
        Node().nothing  # noqa: B018


# ---- comparison and repr ------------------------------------------------------------------------


def test_identity_is_the_default() -> None:
    @py_class(fresh_key())
    class Node(Object):
        x: int

    a = Node(1)
    assert a != Node(1)
    assert a == a
    assert _ffi_api.RecursiveEq(a, Node(1))


def test_content_comparison() -> None:
    @py_class(fresh_key(), eq=True, order=True, unsafe_hash=True)
    class Node(Object):
        x: int
        ignored: int = field(default=0, compare=False)
        unhashed: int = field(default=0, hash=False)

    assert Node(1, 5) == Node(1, 6)
    assert hash(Node(1, 5)) == hash(Node(1, 6))
    assert Node(1, 0, 1) != Node(1, 0, 2)
    assert hash(Node(1, 0, 1)) == hash(Node(1, 0, 2))
    assert sorted([Node(3), Node(1), Node(2)])[0].x == 1
    assert (Node(1) == 1, Node(1) != "a") == (False, True)
    with pytest.raises(TypeError):
        Node(1) < 1  # noqa: B015

    @py_class(fresh_key(), eq=True)
    class Child(Node):
        y: int = 0

    assert Node(1) != Child(1)
    assert Child(1) == Child(1)
    with pytest.raises(TypeError, match="Cannot compare values of different types"):
        Node(1) < Child(1)  # noqa: B015


def test_equal_objects_have_equal_hashes() -> None:
    @py_class(fresh_key())
    class Plain(Object):
        x: int

    assert len({Plain(1), Plain(1)}) == 2  # equal only to itself

    @py_class(fresh_key(), eq=True)
    class Mutable(Object):
        x: int

    assert len({Mutable(1), Mutable(1), Mutable(2)}) == 2

    @py_class(fresh_key(), eq=True, frozen=True)
    class Frozen(Object):
        x: int

    assert len({Frozen(1), Frozen(1), Frozen(2)}) == 2

    @py_class(fresh_key(), eq=True)
    class Own(Object):
        x: int

        def __hash__(self) -> int:
            return 7

    assert hash(Own(1)) == 7


def test_the_body_decides_about_its_own_operators() -> None:
    @py_class(fresh_key(), eq=True, order=True, unsafe_hash=True)
    class Node(Object):  # noqa: PLW1641
        x: int

        def __eq__(self, other: object) -> bool:
            return True

        def __lt__(self, other: object) -> bool:
            return True

    assert Node(1) == 2
    assert Node(1) < 3
    with pytest.raises(TypeError):
        Node(1) <= Node(2)  # noqa: B015
    with pytest.raises(TypeError, match="unhashable"):
        hash(Node(1))


def test_repr_shows_ancestors_first() -> None:
    key, child_key, empty_key = fresh_key(), fresh_key(), fresh_key()

    @py_class(key)
    class Node(Object):
        x: int
        secret: int = field(default=1, repr=False)

    @py_class(child_key)
    class Child(Node):
        y: str

    @py_class(empty_key)
    class Empty(Object):
        pass

    assert repr(Node(1)) == f"{key}(x=1)"
    assert repr(Child(1, "a")) == f'{child_key}(x=1, y="a")'
    assert repr(Empty()) == empty_key
    assert repr(Node.__new__(Node)) == "Node(chandle=None)"


# ---- copies -------------------------------------------------------------------------------------


def test_shallow_copies_share_and_deep_copies_do_not() -> None:
    made = make_outer()
    shallow, deep = copy.copy(made), copy.deepcopy(made)
    assert shallow is not made
    assert shallow.inner is made.inner
    assert shallow.items is made.items
    assert deep.inner is not made.inner
    assert deep == made
    assert deep.inner is deep.maybe
    assert deep.items[0] is deep.inner


def test_replace_changes_a_copy() -> None:
    made = make_outer()
    changed = replace(made, i=9, s="other")
    assert (changed.i, changed.s, made.i) == (9, "other", 1)
    assert changed.inner is made.inner
    for name in ("nothing", "__init__"):
        with pytest.raises(AttributeError, match=f"^Outer has no field '{name}'$"):
            replace(made, **{name: 1})
    for value in (5, type(made), None):
        with pytest.raises(TypeError, match="should be called on c_class / py_class instances"):
            replace(value)
    if sys.version_info >= (3, 13):
        assert copy.replace(made, i=4).i == 4


def test_a_field_of_the_other_dataclasses_is_an_error() -> None:
    import dataclasses

    with pytest.raises(TypeError, match=r"Wrong.a .* use tvm_ffi.dataclasses.field"):

        @py_class(fresh_key())
        class Wrong(Object):
            a: int = dataclasses.field(default=3)


def test_a_subclass_without_the_decorator_is_the_same_type() -> None:
    @py_class(fresh_key(), eq=True, order=True)
    class Base(Object):
        a: int
        b: str = "default"

    class Sub(Base):
        def __init__(self) -> None:
            with pytest.raises(ValueError, match="super"):
                self.b  # noqa: B018
            super().__init__(1)

    @py_class(fresh_key(), frozen=True)
    class Frozen(Base):
        c: int = 3

    assert Sub() == Base(1) and Base(1) == Sub() and Sub() < Base(2)
    assert hash(Sub()) == hash(Base(1))
    frozen = Frozen(1)
    frozen.a = 5
    with pytest.raises(AttributeError):
        frozen.c = 5
    assert frozen != Base(5)


def test_replace_runs_no_constructor() -> None:
    assert replace(Custom("four"), length=7).length == 7


def test_what_cannot_be_copied() -> None:
    plain = testing.TestNonCopyable(1)
    with pytest.raises(TypeError, match="does not support copy"):
        copy.copy(plain)
    with pytest.raises(TypeError, match="does not support copy"):
        replace(plain)
    with pytest.raises((TypeError, RuntimeError), match="not copy-constructible"):
        copy.deepcopy(plain)
    with pytest.raises(RuntimeError, match="not copy-constructible"):
        copy.deepcopy(tvm_ffi.Array([plain]))

    @py_class(fresh_key())
    class Holder(Object):
        f: Any

    with pytest.raises(RuntimeError, match="not copy-constructible"):
        copy.deepcopy(Holder(lambda: 1))


def test_copies_written_by_the_user_are_kept() -> None:
    @py_class(fresh_key())
    class Node(Object):
        x: int

        def __copy__(self) -> str:
            return "copied"

        def __deepcopy__(self, memo: Any) -> str:
            return "deeply copied"

        def __replace__(self, **changes: Any) -> str:
            return "replaced"

    made = Node(1)
    assert (copy.copy(made), copy.deepcopy(made)) == ("copied", "deeply copied")
    assert replace(made, x=1) == "replaced"


def test_many_copies_leave_nothing_behind() -> None:
    target = Inner(1)
    made = Outer(1, 2.0, "s", True, target)
    for _ in range(1000):
        copy.deepcopy(made)
        copy.copy(made)
        Outer(1, 2.0, "s", True, target)
    assert use_count(target) == 2


# ---- pickle and JSON ----------------------------------------------------------------------------


def test_pickle_keeps_content_and_sharing() -> None:
    made = make_outer()
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        loaded = pickle.loads(pickle.dumps(made, protocol))
        assert type(loaded) is Outer
        assert loaded == made
        assert loaded.inner is loaded.maybe
        assert loaded.items[0] is loaded.inner
        assert loaded.items[1] is not loaded.inner


def test_pickle_does_not_run_the_constructor() -> None:
    assert pickle.loads(pickle.dumps(Custom("four"))).length == 4


def test_unpickled_objects_are_tied() -> None:
    loaded = pickle.loads(pickle.dumps(make_outer()))
    kept = id(loaded.inner)
    gc.collect()
    assert id(loaded.inner) == kept
    assert loaded.inner is loaded.inner


def test_json_holds_every_field() -> None:
    @py_class("tests.behaviour.Everything")
    class Everything(Object):
        a: int
        b: int = field(default=2, init=False)
        c: int = field(default=3, structural_eq="ignore", repr=False, compare=False)

    text = _ffi_api.ToJSONGraphString(Everything(1), None)
    nodes = json.loads(text)["nodes"]
    data = next(n["data"] for n in nodes if n["type"] == "tests.behaviour.Everything")
    assert data == {"a": 1, "b": 2, "c": 3}
    loaded = _ffi_api.FromJSONGraphString(text)
    assert (type(loaded), loaded.a, loaded.b, loaded.c) == (Everything, 1, 2, 3)


def test_json_of_a_field_that_cannot_be_written_names_it() -> None:
    @py_class(fresh_key())
    class Pointer(Object):
        p: ctypes.c_void_p

    with pytest.raises(RuntimeError, match="Cannot serialize type `void\\*`"):
        pickle.dumps(Pointer(ctypes.c_void_p(8)))


def test_wrong_json_names_type_and_field() -> None:
    text = _ffi_api.ToJSONGraphString(Inner(1), None)
    wrong = text.replace('"value":1', '"value":"text"').replace('"value": 1', '"value": "text"')
    assert wrong != text
    with pytest.raises(Exception, match="`value` of type `tests.behaviour.Inner`"):
        _ffi_api.FromJSONGraphString(wrong)
    missing = text.replace('"value"', '"valu"')
    with pytest.raises(Exception, match="value"):
        _ffi_api.FromJSONGraphString(missing)


# ---- hooks and methods --------------------------------------------------------------------------


def test_hooks_are_used_by_the_runtime() -> None:
    @py_class(fresh_key(), eq=True, order=True, unsafe_hash=True)
    class Keyed(Object):
        key: int
        label: str = ""

        def __ffi_repr__(self, fn_repr: Any) -> str:
            return f"<Keyed:{fn_repr(self.key)}>"

        def __ffi_hash__(self, fn_hash: Any) -> int:
            return fn_hash(self.key)

        def __ffi_eq__(self, other: Any, fn_eq: Any) -> bool:
            return fn_eq(self.key, other.key)

        def __ffi_compare__(self, other: Any, fn_cmp: Any) -> int:
            return fn_cmp(self.key, other.key)

    a, b, c = Keyed(1, "a"), Keyed(1, "b"), Keyed(2, "a")
    assert repr(a) == "<Keyed:1>"
    assert repr(copy.copy(a)) == "<Keyed:1>"
    assert str(tvm_ffi.Array([a])) == "(<Keyed:1>,)"
    assert a == b
    assert hash(a) == hash(b)
    assert a != c
    assert (a <= b, a >= b, a < b, a > b) == (True, True, False, False)
    assert a < c
    index = Keyed.__tvm_ffi_type_info__.type_index
    assert core._lookup_type_attr(index, "__ffi_hash__") is not None
    assert Keyed.__tvm_ffi_type_info__.methods == []
    assert _ffi_api.RecursiveHash(tvm_ffi.Array([a])) == _ffi_api.RecursiveHash(tvm_ffi.Array([b]))


def test_a_failing_repr_hook_falls_back() -> None:
    @py_class(fresh_key())
    class Broken(Object):
        def __ffi_repr__(self, fn_repr: Any) -> str:
            raise RuntimeError("no text")

    made = Broken()
    assert repr(made) == f"Broken({made.__chandle__()})"


def test_hooks_belong_to_one_type() -> None:
    @py_class(fresh_key())
    class Parent(Object):
        x: int

        def __ffi_repr__(self, fn_repr: Any) -> str:
            return "parent"

    @py_class(fresh_key())
    class Child(Parent):
        pass

    assert repr(Parent(1)) == "parent"
    assert repr(Child(1)) == f"{Child.__tvm_ffi_type_info__.type_key}(x=1)"


def test_conversion_hooks() -> None:
    @py_class(fresh_key())
    class Wrapped(Object):
        value: int

        @staticmethod
        def __ffi_convert__(value: Any) -> Wrapped:
            if isinstance(value, str):
                raise ValueError("text is no number")
            return Wrapped(value)

    @py_class(fresh_key())
    class Holder(Object):
        w: Wrapped

    assert Holder(3).w.value == 3
    given = Wrapped(4)
    assert Holder(given).w is given
    with pytest.raises(TypeError) as raised:
        Holder("x")
    text = str(raised.value)
    assert "field 'w':\n" in text
    assert "__ffi_convert__ failed:\n" in text
    assert "text is no number" in text


def test_keys_of_maps_may_define_equality() -> None:
    @py_class(fresh_key())
    class Key(Object):
        name: str
        note: int

        def __any_hash__(self) -> int:
            return hash(str(self.name)) & 0xFFFF

        def __any_equal__(self, other: Any) -> bool:
            return self.name == other.name

    table = tvm_ffi.Map({Key("a", 1): 10, Key("b", 2): 20, Key("a", 3): 30})
    assert len(table) == 2
    assert table[Key("a", 9)] == 30


def test_data_hooks_of_json() -> None:
    @py_class("tests.behaviour.Short")
    class Short(Object):
        value: int

        def __data_to_json__(self) -> Any:
            return self.value

        @staticmethod
        def __data_from_json__(data: Any) -> Any:
            return Short(data)

    text = _ffi_api.ToJSONGraphString(tvm_ffi.Array([Short(7)]), None)
    assert any(node.get("data") == 7 for node in json.loads(text)["nodes"])
    assert _ffi_api.FromJSONGraphString(text)[0].value == 7


def test_structural_hooks() -> None:
    @py_class(fresh_key())
    class ByKey(Object):
        key: int
        note: int

        def __s_equal__(self, other: Any, cb: Any) -> bool:
            return cb(self.key, other.key, False, "key")

        def __s_hash__(self, init: int, cb: Any) -> int:
            return cb(self.key, init, False)

    assert tvm_ffi.structural_equal(ByKey(1, 2), ByKey(1, 3))
    assert tvm_ffi.structural_hash(ByKey(1, 2)) == tvm_ffi.structural_hash(ByKey(1, 3))
    assert not tvm_ffi.structural_equal(ByKey(1, 2), ByKey(2, 2))


def test_visit_hooks() -> None:
    seen = []

    @py_class(fresh_key())
    class Chooses(Object):
        shown: int
        hidden: int

        @staticmethod
        def __s_visit__(visitor: Any, value: Any) -> Any:
            assert isinstance(visitor, tvm_ffi.StructuralVisitor)
            assert visitor.def_region_kind() == tvm_ffi.DefRegionKind.NONE
            return visitor.visit(value.shown)

    tvm_ffi.structural_walk(Chooses(1, 2), (int, seen.append))
    assert seen == [1]


def test_marked_functions_become_methods() -> None:
    @py_class(fresh_key())
    class Node(Object):
        x: int

        @tvm_ffi.method
        def plus(self, other: int) -> int:
            return self.x + other

        @tvm_ffi.method
        @staticmethod
        def make(x: int) -> int:
            return x * 2

        @tvm_ffi.method
        def __ffi_custom__(self, *args: Any) -> Any:
            return list(args)

        @tvm_ffi.method
        def untyped(self, a, b):
            return a

        def unmarked(self) -> int:
            return 1

    info = Node.__tvm_ffi_type_info__
    by_name = {m.name: m for m in info.methods}
    assert set(by_name) == {"plus", "make", "__ffi_custom__", "untyped"}
    assert by_name["plus"].func(Node(1), 2) == 3
    assert by_name["make"].is_static
    assert by_name["make"].func(4) == 8
    key = info.type_key
    assert by_name["plus"].metadata["type_schema"] == {
        "type": "Callable",
        "named_args": {"return": [{"type": "int"}], "params": [{"type": key}, {"type": "int"}]},
    }
    assert by_name["make"].metadata["type_schema"]["named_args"] == {
        "return": [{"type": "int"}],
        "params": [{"type": "int"}],
    }
    assert by_name["__ffi_custom__"].metadata["type_schema"] == {"type": "Callable"}
    assert by_name["untyped"].metadata["type_schema"]["named_args"] == {
        "return": [{"type": "Any"}],
        "params": [{"type": key}, {"type": "Any"}, {"type": "Any"}],
    }
    assert Node(1).plus(5) == 6
    assert Node.make(2) == 4

    @py_class(fresh_key())
    class Child(Node):
        pass

    assert Child.__tvm_ffi_type_info__.methods == []


def test_what_cannot_be_a_method() -> None:
    with pytest.raises(TypeError, match="@classmethod is not supported"):
        tvm_ffi.method(classmethod(lambda cls: 1))
    with pytest.raises(TypeError, match="expected a callable, got int"):
        tvm_ffi.method(3)
    with pytest.raises(TypeError, match="'hook' is wrapped by @classmethod"):

        @py_class(fresh_key())
        class Marked(Object):
            @classmethod
            @tvm_ffi.method
            def hook(cls) -> int:
                return 1

    with pytest.raises(TypeError, match="wrapped by @classmethod"):

        @py_class(fresh_key())
        class Hooked(Object):
            @classmethod
            def __ffi_repr__(cls, fn: Any) -> str:
                return ""

    with pytest.raises(TypeError, match="to TypeSchema"):

        @py_class(fresh_key())
        class Annotated(Object):
            @tvm_ffi.method
            def bad(self, x: set) -> int:
                return 1


def test_collecting_methods_again_gives_the_same() -> None:
    @py_class(fresh_key())
    class Plain(Object):
        def __ffi_custom_op__(self) -> int:
            return 1

    @py_class(fresh_key())
    class Hooked(Object):
        def __ffi_repr__(self, fn: Any) -> str:
            return "x"

        def __ffi_init__(self) -> None:
            raise AssertionError("replaced")

        def __ffi_shallow_copy__(self) -> None:
            return None

    assert _collect_py_methods(Plain) is None
    assert [item[0] for item in _collect_py_methods(Hooked)] == ["__ffi_repr__"]
    assert _collect_py_methods(Hooked, {})[0][3] is None
    assert Hooked().__ffi_shallow_copy__() is None


# ---- helpers ------------------------------------------------------------------------------------


def test_is_dataclass_and_fields() -> None:
    assert is_dataclass(Outer)
    assert is_dataclass(make_outer())
    for other in (tvm_ffi.Array([]), tvm_ffi.Array, 3, int, Object, tvm_ffi.Map({})):
        assert not is_dataclass(other)
    assert fields(Outer) == fields(make_outer())
    with pytest.raises(TypeError, match=r"fields\(\) argument must be .* got int"):
        fields(3)


def test_asdict_and_astuple_convert_everything() -> None:
    made = make_outer()
    assert asdict(made) == {
        "i": 1,
        "f": 2.5,
        "s": "text",
        "b": True,
        "inner": {"value": 1},
        "maybe": {"value": 1},
        "items": [{"value": 1}, {"value": 2}],
        "table": {"k": 3},
    }
    assert type(asdict(made)["items"]) is list
    assert type(asdict(made)["table"]) is dict
    assert astuple(made) == (1, 2.5, "text", True, (1,), (1,), [(1,), (2,)], {"k": 3})
    ordered = asdict(made, dict_factory=collections.OrderedDict)
    assert type(ordered["inner"]) is collections.OrderedDict
    assert type(ordered["table"]) is collections.OrderedDict

    @py_class(fresh_key())
    class Box(Object):
        inner: Inner

    assert astuple(Box(Inner(5)), tuple_factory=list) == [[5]]


@pytest.mark.parametrize("wrong", [Outer, 3, [1], None])
def test_asdict_wants_an_instance(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"asdict\(\) should be called on c_class / py_class inst"):
        asdict(wrong)
    with pytest.raises(TypeError, match=r"astuple\(\) should be called on c_class / py_class in"):
        astuple(wrong)


def test_plain_containers_inside_are_copied() -> None:
    Pair = collections.namedtuple("Pair", "a b")
    table = collections.defaultdict(list, {"k": [Inner(1)]})
    for convert, leaf in (
        (lambda v: _asdict_inner(v, dict), {"value": 1}),
        (lambda v: _astuple_inner(v, tuple), (1,)),
    ):
        result = convert(table)
        assert type(result) is collections.defaultdict
        assert result.default_factory is list
        assert result == {"k": [leaf]}
        assert convert(Pair(Inner(1), 2)) == Pair(leaf, 2)
        assert convert((1, [2])) == (1, [2])
        assert convert({1: (Inner(1),)}) == {1: (leaf,)}
    given = [1]
    assert _asdict_inner(given, dict) is not given


@py_class("tests.behaviour.TypedList")
class TypedList(Object):
    """What its list holds is checked when the field is set, not when the list changes."""

    items: list[int] = ()  # type: ignore[assignment]
    other: Any = None


def test_a_copy_that_a_field_refuses_is_reported_with_field_and_class() -> None:
    bad = TypedList([1])
    bad.items.append("x")
    ring = TypedList([1])
    ring.other = tvm_ffi.List([ring])
    ring.items.append("x")
    expected = (
        "^Field `items` of type `tests.behaviour.TypedList`: element .1.: expected int, got str$"
    )
    for wrong in (bad, tvm_ffi.List([bad]), ring):
        with pytest.raises(TypeError, match=expected):
            copy.deepcopy(wrong)
    with pytest.raises(TypeError, match=expected):
        pickle.loads(pickle.dumps(bad))


def test_match_args() -> None:
    @py_class(fresh_key())
    class Node(Object):
        a: int = 0
        b: int
        c: int = field(default=1, init=False)
        _: KW_ONLY
        d: int = 2

    assert Node.__match_args__ == ("a", "b")

    @py_class(fresh_key(), match_args=False)
    class Without(Object):
        a: int

    assert "__match_args__" not in vars(Without)

    @py_class(fresh_key())
    class Own(Object):
        __match_args__ = ("z",)
        a: int

    assert Own.__match_args__ == ("z",)
    match Node(5):
        case Node(x, y):
            assert (x, y) == (0, 5)
        case _:
            raise AssertionError("did not match")


# ---- structural kinds ---------------------------------------------------------------------------


def variable_classes() -> tuple[Any, Any]:
    @py_class(fresh_key(), structural_eq="var")
    class Var(Object):
        name: str = field(structural_eq="ignore")

    @py_class(fresh_key())
    class Fun(Object):
        params: list[Var] = field(structural_eq="def")
        body: list[Any]

    return Var, Fun


def test_none_means_no_structural_equality() -> None:
    @py_class(fresh_key(), structural_eq=None)
    class Node(Object):
        x: int

    with pytest.raises(TypeError):
        tvm_ffi.structural_equal(Node(1), Node(1))
    with pytest.raises(TypeError):
        tvm_ffi.structural_hash(Node(1))


def test_trees_do_not_show_sharing() -> None:
    @py_class(fresh_key())
    class Pair(Object):
        a: Any
        b: Any = None
        note: int = field(default=0, structural_eq="ignore")

    shared = Pair(1)
    assert tvm_ffi.structural_equal(Pair(shared, shared), Pair(Pair(1), Pair(1)))
    assert tvm_ffi.structural_hash(Pair(shared, shared)) == tvm_ffi.structural_hash(
        Pair(Pair(1), Pair(1))
    )
    assert tvm_ffi.structural_equal(Pair(1, note=1), Pair(1, note=2))
    assert not tvm_ffi.structural_equal(Pair(1), Pair(2))


def test_variables_are_bound_by_position() -> None:
    Var, Fun = variable_classes()
    x, y, z = Var("x"), Var("y"), Var("z")
    assert tvm_ffi.structural_equal(x, x)
    assert not tvm_ffi.structural_equal(x, Var("x"))
    assert tvm_ffi.structural_hash(x) != tvm_ffi.structural_hash(Var("x"))
    assert tvm_ffi.structural_equal(x, y, map_free_vars=True)
    assert tvm_ffi.structural_equal(Fun([x], [1, x]), Fun([y], [1, y]))
    assert tvm_ffi.structural_hash(Fun([x], [1, x])) == tvm_ffi.structural_hash(Fun([y], [1, y]))
    assert not tvm_ffi.structural_equal(Fun([x, y], [x, y]), Fun([x, z], [z, x]))


def test_graphs_show_sharing() -> None:
    @py_class(fresh_key(), structural_eq="dag")
    class Node(Object):
        x: int

    s, t = Node(1), Node(1)
    shared, other = tvm_ffi.Array([s, s]), tvm_ffi.Array([t, t])
    copies = tvm_ffi.Array([Node(1), Node(1)])
    assert tvm_ffi.structural_equal(shared, other)
    assert not tvm_ffi.structural_equal(shared, copies)
    assert tvm_ffi.structural_hash(shared) == tvm_ffi.structural_hash(other)
    assert tvm_ffi.structural_hash(shared) != tvm_ffi.structural_hash(copies)


def test_constants_and_singletons() -> None:
    @py_class(fresh_key(), structural_eq="const-tree")
    class Constant(Object):
        x: int

    @py_class(fresh_key(), structural_eq="singleton")
    class Single(Object):
        x: int

    assert tvm_ffi.structural_equal(Constant(1), Constant(1))
    one = Single(1)
    assert tvm_ffi.structural_equal(one, one)
    assert not tvm_ffi.structural_equal(one, Single(1))
    assert copy.deepcopy(one) is not one


# ---- depth --------------------------------------------------------------------------------------


def test_a_chain_of_a_hundred_thousand_objects() -> None:
    @py_class(fresh_key(), eq=True)
    class Link(Object):
        next: Link | None = None
        x: int = 1

    def chain() -> Any:
        head = None
        for _ in range(100_000):
            head = Link(head)
        return head

    first, second = chain(), chain()
    assert _ffi_api.RecursiveEq(first, second)
    assert _ffi_api.RecursiveHash(first) == _ffi_api.RecursiveHash(second)
    assert tvm_ffi.structural_equal(first, second)
    assert tvm_ffi.structural_hash(first) == tvm_ffi.structural_hash(second)
    copied = copy.deepcopy(first)
    assert tvm_ffi.structural_equal(copied, first)
    loaded = _ffi_api.FromJSONGraphString(_ffi_api.ToJSONGraphString(first, None))
    assert tvm_ffi.structural_equal(loaded, first)
    assert len(repr(first)) > 100_000
    del first, second, copied, loaded
    gc.collect()
