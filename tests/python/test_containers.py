# SPDX-License-Identifier: Apache-2.0
"""Array, List, Map and Dict behave like tuple, list, a read-only dict and dict."""

from __future__ import annotations

import copy
import itertools
import operator
import pickle
import random

import pytest
import tvm_ffi
from support import Payload, scaled
from tvm_ffi import container, core, testing

Array, List, Map, Dict = tvm_ffi.Array, tvm_ffi.List, tvm_ffi.Map, tvm_ffi.Dict
SEQUENCES = [Array, List]
MAPPINGS = [Map, Dict]


class Indexable:
    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        return self.value


# ---- sequences ----------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", SEQUENCES)
@pytest.mark.parametrize("source", [[], [1], (1, 2), range(5), "abc", {1: 2}, (i for i in "xy")])
def test_made_from_any_iterable(cls: type, source: object) -> None:
    items = list(source) if not isinstance(source, (type(i for i in ()))) else ["x", "y"]
    made = cls(items if not isinstance(source, str) else source)
    assert list(made) == items
    assert len(made) == len(items)
    assert bool(made) == bool(items)


@pytest.mark.parametrize("cls", SEQUENCES)
def test_indices_and_slices_agree_with_list(cls: type) -> None:
    plain = list(range(7))
    made = cls(plain)
    for i in range(-7, 7):
        assert made[i] == plain[i]
        assert made[Indexable(i)] == plain[i]
    bounds = [None, -9, -3, 0, 2, 5, 9]
    for start, stop, step in itertools.product(bounds, bounds, [None, -2, -1, 1, 2, 3]):
        part = made[start:stop:step]
        assert type(part) is list
        assert part == plain[start:stop:step]


@pytest.mark.parametrize("cls", SEQUENCES)
def test_index_errors(cls: type) -> None:
    made = cls([1, 2])
    with pytest.raises(IndexError, match="Index out of range. size: 2, got index 2"):
        made[2]
    with pytest.raises(IndexError, match="Index out of range. size: 2, got index -3"):
        made[-3]
    with pytest.raises(TypeError, match="indices must be integers or slices, not str"):
        made["a"]
    with pytest.raises(IndexError):
        made[2**70]


@pytest.mark.parametrize("cls", SEQUENCES)
def test_iteration(cls: type) -> None:
    made = cls([1, "two", 3.0, None])
    assert list(made) == list(iter(made)) == [1, "two", 3.0, None]
    assert list(reversed(made)) == [None, 3.0, "two", 1]
    iterator = iter(made)
    assert iter(iterator) is iterator
    assert operator.length_hint(iterator) == 4
    next(iterator)
    assert operator.length_hint(iterator) == 3
    assert (*made,) == (1, "two", 3.0, None)
    assert list(zip(made, made, strict=True)) == [(x, x) for x in made]


@pytest.mark.parametrize("cls", SEQUENCES)
def test_iteration_keeps_the_container_alive(cls: type) -> None:
    iterator = iter(cls([Payload(i) for i in range(3)]))
    assert [payload.tag for payload in iterator] == [0, 1, 2]
    assert next(iterator, "end") == "end"


@pytest.mark.parametrize("cls", SEQUENCES)
def test_concatenation(cls: type) -> None:
    made = cls([1, 2])
    for other in ([3], (3,), Array([3]), List([3]), iter([3]), {3: 4}):
        result = made + other
        assert type(result) is cls
        assert list(result) == [1, 2, 3]
    assert type([0] + made) is cls
    assert list((0,) + made) == [0, 1, 2]
    assert list(made.__add__([])) == list(made.__radd__([])) == [1, 2]
    assert list(cls([]) + []) == []
    with pytest.raises(TypeError):
        made + 3
    with pytest.raises(TypeError):
        3 + made


@pytest.mark.parametrize("cls", SEQUENCES)
def test_membership_follows_ffi_equality(cls: type) -> None:
    made = cls([1, "two", 3.0, None, [1, 2], ("a", 1)])
    for value in (1, "two", 3.0, None, [1, 2], (1, 2), ("a", 1)):
        assert value in made
    for value in (1.0, True, 2, "TWO", [1], [1.0, 2], object()):
        assert value not in made
    assert made.index("two") == 1
    assert made.count(1) == 1
    with pytest.raises(ValueError):
        made.index(99)


def test_sequence_equality() -> None:
    assert Array([1]) == [1]
    assert Array([1]) == (1,)
    assert Array([1]) == List([1])
    assert List([1]) == Array([1])
    assert Array([1]) == range(1, 2)
    assert Array([1]) != [1.0]
    assert Array([1]) != [True]
    assert Array([1]) != [1, 2]
    assert Array([1]) != "1"
    assert Array([1]) != {0: 1}
    assert [1] == Array([1])
    assert Array([1]).__eq__("hello") is NotImplemented
    assert Array([1]).__ne__("hello") is NotImplemented
    assert Array([1]).__eq__(3) is NotImplemented
    assert Array([[1, {"a": 2}]]) == Array([[1, {"a": 2}]])
    assert Array(["a", "a long string that is on the heap"]) == [
        "a",
        "a long string that is on the heap",
    ]


def test_hashes_follow_content() -> None:
    assert hash(Array([1, [2]])) == hash(Array([1, [2]]))
    assert hash(List([1])) == hash(List([1]))
    assert hash(Array([1])) != hash(List([1]))
    assert hash(Map({"a": 1, "b": 2})) == hash(Map({"b": 2, "a": 1}))
    assert {Array([1]): "x"}[Array([1])] == "x"


# ---- List ---------------------------------------------------------------------------------------


def assert_same_effect(action: object, plain: list) -> None:
    """Run a statement on a list and on a List; both must do or raise the same."""
    made = List(plain)
    expected = list(plain)
    try:
        action(expected)
    except (IndexError, ValueError, TypeError) as error:
        with pytest.raises(type(error)):
            action(made)
    else:
        action(made)
    assert list(made) == expected


BOUNDS = [None, -9, -2, 0, 1, 3, 5, 9]


@pytest.mark.parametrize("size", [0, 1, 5])
def test_list_slices_agree_with_python(size: int) -> None:
    plain = list(range(size))
    for start, stop, step in itertools.product(BOUNDS, BOUNDS, [None, 1, 2, -1, -2]):
        where = slice(start, stop, step)
        assert_same_effect(lambda target, where=where: operator.delitem(target, where), plain)
        for count in (0, 1, len(range(*where.indices(size))), 7):
            new = ["n"] * count
            assert_same_effect(
                lambda target, where=where, new=new: operator.setitem(target, where, new), plain
            )


@pytest.mark.parametrize("size", [0, 1, 4])
def test_list_positions_agree_with_python(size: int) -> None:
    plain = list(range(size))
    for i in range(-6, 7):
        assert_same_effect(lambda t, i=i: operator.setitem(t, i, "n"), plain)
        assert_same_effect(lambda t, i=i: operator.delitem(t, i), plain)
        assert_same_effect(lambda t, i=i: t.insert(i, "n"), plain)
        assert_same_effect(lambda t, i=i: t.pop(i), plain)
    for action in (
        lambda t: t.append("n"),
        lambda t: t.extend(["a", "b"]),
        lambda t: t.extend(t),
        lambda t: t.pop(),
        lambda t: t.clear(),
        lambda t: t.reverse(),
        lambda t: t.remove(0),
        lambda t: t.__iadd__([1]),
        lambda t: operator.setitem(t, slice(1, 3), t),
        lambda t: t.insert(-100, "n"),
        lambda t: t.insert(100, "n"),
        lambda t: operator.setitem(t, 0.5, 1),
        lambda t: operator.delitem(t, "a"),
    ):
        assert_same_effect(action, plain)


def test_list_random_programs_agree_with_python() -> None:
    order = random.Random(7)
    for _ in range(scaled(100)):
        plain: list[object] = []
        made = List()
        for _ in range(50):
            i, j = order.randrange(-8, 8), order.randrange(-8, 8)
            action = order.choice(
                [
                    lambda t, i=i: t.append(i),
                    lambda t, i=i: t.insert(i, "v"),
                    lambda t, i=i: t.pop(i),
                    lambda t, i=i, j=j: operator.setitem(t, slice(i, j), [i, j]),
                    lambda t, i=i, j=j: operator.delitem(t, slice(i, j)),
                    lambda t: t.reverse(),
                    lambda t: t.extend([None, 1.5]),
                    lambda t, i=i: operator.setitem(t, i, "long enough for the heap"),
                ]
            )
            try:
                action(plain)
            except IndexError:
                with pytest.raises(IndexError):
                    action(made)
            else:
                action(made)
            assert list(made) == plain


def test_list_messages() -> None:
    with pytest.raises(IndexError, match="pop from empty list"):
        List().pop()
    with pytest.raises(
        ValueError, match="attempt to assign sequence of size 3 to extended slice of size 2"
    ):
        List([1, 2, 3])[::2] = [1, 2, 3]


def test_aliases_share_changes() -> None:
    items = List([1])
    alias = testing.echo(items)
    box = Array([items])
    alias.append(2)
    box[0].append(3)
    assert list(items) == [1, 2, 3]
    items += [4]
    assert alias is items
    assert list(alias) == [1, 2, 3, 4]


def test_a_list_may_contain_itself() -> None:
    items = List([1])
    items.append(items)
    assert items[1] is items
    assert items[1][1][0] == 1
    assert repr(items) == "[1, ...]"
    items.pop()


def test_array_is_immutable() -> None:
    made = Array([1])
    with pytest.raises(TypeError):
        made[0] = 2
    with pytest.raises(TypeError):
        del made[0]
    assert not hasattr(made, "append")


# ---- mappings -----------------------------------------------------------------------------------

KEYS = [1, -1, 2, "a", "a key that lives on the heap", b"bytes", 1.5, False, None, (1, 2)]


@pytest.mark.parametrize("cls", MAPPINGS)
def test_lookup(cls: type) -> None:
    made = cls({key: i for i, key in enumerate(KEYS)})
    assert len(made) == len(KEYS)
    assert made["a"] == 3
    assert made["a key that lives on the heap"] == 4
    assert made[b"bytes"] == 5
    assert made.get("a") == 3
    assert made.get("nothing") is None
    assert made.get("nothing", 7) == 7
    assert "a" in made
    assert "nothing" not in made
    with pytest.raises(KeyError, match=f"key is not in {cls.__name__}: 'nothing'"):
        made["nothing"]
    assert bool(made)
    assert not cls({})


@pytest.mark.parametrize("cls", MAPPINGS)
def test_order_of_insertion(cls: type) -> None:
    keys = [f"key number {i}" for i in random.Random(3).sample(range(1000), 200)]
    made = cls({key: i for i, key in enumerate(keys)})
    assert list(made) == keys
    assert list(made.keys()) == keys
    assert list(made.values()) == list(range(200))
    assert list(made.items()) == [(key, i) for i, key in enumerate(keys)]
    numbers = random.Random(4).sample(range(-500, 500), 100)
    assert list(cls(dict.fromkeys(numbers))) == numbers


@pytest.mark.parametrize("cls", MAPPINGS)
def test_views(cls: type) -> None:
    made = cls({"a": 1, "b": 2})
    assert len(made.keys()) == len(made.values()) == len(made.items()) == 2
    assert set(made.keys()) == {"a", "b"}
    assert dict(made.items()) == dict(made) == {"a": 1, "b": 2}
    assert "a" in made.keys()  # noqa: SIM118
    assert 2 in made.values()
    assert 3 not in made.values()
    assert ("a", 1) in made.items()
    assert ("a", 2) not in made.items()
    assert ("c", 2) not in made.items()
    assert "a" not in made.items()
    assert all(type(item) is tuple for item in made.items())
    assert made.keys() & {"a", "z"} == {"a"}
    assert "KeysView" in repr(made.keys())
    assert tuple(made.values()) == (1, 2)


def test_views_follow_changes() -> None:
    made = Dict({"a": 1})
    keys, values, items = made.keys(), made.values(), made.items()
    made["b"] = 2
    del made["a"]
    assert (list(keys), list(values), list(items)) == (["b"], [2], [("b", 2)])


def test_views_driven_by_a_functor() -> None:
    made = Map({"a": 1, "b": 2})
    functor = lambda: tvm_ffi.get_global_func("ffi.MapForwardIterFunctor")(made)  # noqa: E731
    assert list(container.KeysView(made, functor)) == ["a", "b"]
    assert list(container.ValuesView(made, functor)) == [1, 2]
    assert list(container.ItemsView(made, functor)) == [("a", 1), ("b", 2)]
    assert list(container.KeysView(Map({}), functor)) == []


def test_a_dict_may_change_while_it_is_iterated() -> None:
    made = Dict({i: i for i in range(10)})
    seen = []
    for key in made:
        seen.append(key)
        made[key + 100] = key
        del made[key]
    assert seen == list(range(10))
    assert len(made) == 10


def test_dict_mutation() -> None:
    made = Dict()
    made["a"] = 1
    made["b"] = 2
    made["a"] = 3
    assert dict(made) == {"a": 3, "b": 2}
    assert made.pop("a") == 3
    assert made.pop("a", "default") == "default"
    with pytest.raises(KeyError, match="'a'"):
        made.pop("a")
    with pytest.raises(KeyError, match="'a'"):
        del made["a"]
    with pytest.raises(TypeError, match="pop expected at most 2 arguments, got 3"):
        made.pop("a", 1, 2)
    assert made.setdefault("c", 5) == 5
    assert made.setdefault("c", 6) == 5
    assert made.setdefault("n") is None and made.pop("n", 1) is None
    made.setdefault("l", tvm_ffi.List()).append(1)
    assert made.setdefault("l", object()) is made["l"] and list(made.pop("l")) == [1]
    made.update({"d": 7})
    made.update(Map({"e": 8}))
    assert list(made) == ["b", "c", "d", "e"]
    assert made.popitem()[0] in {"b", "e"}
    made.clear()
    assert len(made) == 0
    with pytest.raises(KeyError, match="this Dict is empty"):
        made.popitem()


def test_dict_random_programs_agree_with_python() -> None:
    order = random.Random(11)
    for _ in range(scaled(60)):
        plain: dict[object, object] = {}
        made = Dict()
        for _ in range(80):
            key = order.choice([order.randrange(12), f"key {order.randrange(12)}"])
            if order.randrange(3) < 2:
                plain[key] = made[key] = order.randrange(100)
            else:
                assert made.pop(key, None) == plain.pop(key, None)
            assert dict(made.items()) == plain


def test_dict_order_survives_insertions_and_deletions() -> None:
    order = random.Random(12)
    for _ in range(scaled(60)):
        plain: dict[object, None] = {}
        made = Dict()
        for _ in range(80):
            key = order.choice([order.randrange(12), f"key {order.randrange(12)}"])
            if key in plain:
                del plain[key], made[key]
            else:
                plain[key] = made[key] = None
            assert list(made) == list(plain)


def test_map_is_immutable() -> None:
    with pytest.raises(TypeError):
        Map({})["a"] = 1
    assert not hasattr(Map({}), "pop")


def test_mapping_equality() -> None:
    assert Map({"a": 1}) == Map({"a": 1})
    assert Map({"a": 1, "b": 2}) == Map({"b": 2, "a": 1})
    assert Map({"a": 1}) != Map({"a": 2})
    assert Map({"a": 1}) != {"a": 1}
    assert Map({"a": 1}) != Dict({"a": 1})
    assert Map({}).__eq__({}) is NotImplemented
    assert Dict({"a": [1]}) == Dict({"a": [1]})


# ---- both ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (lambda: Array([]), "()"),
        (lambda: Array([1]), "(1,)"),
        (lambda: Array([1, "a", None, 1.5]), '(1, "a", None, 1.5)'),
        (lambda: List([1, 2]), "[1, 2]"),
        (lambda: Map({"a": 1}), '{"a": 1}'),
        (lambda: Dict({1: (2,)}), "{1: (2,)}"),
    ],
)
def test_text(made: object, text: str) -> None:
    assert repr(made()) == str(made()) == text


def test_constructors_fail_naturally_and_leave_a_printable_object() -> None:
    for cls in (Array, List):
        with pytest.raises(TypeError):
            cls(1)
        with pytest.raises(UnicodeEncodeError):
            cls(["\ud800"])
    for cls in (Map, Dict):
        with pytest.raises(AttributeError):
            cls(1)
    obj = Array.__new__(Array)
    with pytest.raises(TypeError):
        obj.__init__(1)
    assert repr(obj) == "Array(chandle=None)"
    with pytest.raises(TypeError):
        Array()
    with pytest.raises(TypeError):
        Map()
    assert len(List()) == len(Dict()) == 0


def test_python_values_inside() -> None:
    payload = Payload()
    made = Array([payload, {1, 2}, lambda x: x, [1, {"k": payload}]])
    assert made[0] is payload
    assert made[1] == {1, 2}
    assert made[2](4) == 4
    assert type(made[3]) is Array
    assert type(made[3][1]) is Map
    assert made[3][1]["k"] is payload


def test_copies_and_pickles() -> None:
    inner = List([1])
    for made in (Array([inner, inner]), List([inner]), Map({"k": inner}), Dict({"k": inner})):
        for clone in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
            assert type(clone) is type(made)
            assert clone == made
            assert clone is not made
    clone = copy.deepcopy(Array([inner, inner]))
    assert clone[0] is clone[1]
    assert clone[0] is not inner


@pytest.mark.parametrize(
    ("function", "value", "cls"),
    [
        ("schema_id_arr_int", List([1, 2]), Array),
        ("schema_id_list_int", Array([1, 2]), List),
        ("schema_id_map_str_int", Dict({"a": 1}), Map),
        ("schema_id_dict_str_int", Map({"a": 1}), Dict),
    ],
)
def test_cross_conversion(function: str, value: object, cls: type) -> None:
    result = getattr(testing, function)(value)
    assert type(result) is cls
    assert list(result) == list(value)


@pytest.mark.parametrize(
    ("function", "value"),
    [
        ("schema_id_arr_int", ["x"]),
        ("schema_id_list_int", List([None])),
        ("schema_id_map_str_int", {"a": "x"}),
        ("schema_id_map_str_int", {1: 1}),
        ("schema_id_arr_int", {"a": 1}),
    ],
)
def test_element_types_are_checked(function: str, value: object) -> None:
    with pytest.raises(TypeError):
        getattr(testing, function)(value)


def test_helpers() -> None:
    assert container.MISSING is core.MISSING
    assert container.normalize_index(3, -1) == 2
    assert container.getitem_helper([1, 2, 3], operator.getitem, 3, slice(None, None, 2)) == [1, 3]
    assert container.getitem_helper([1, 2, 3], operator.getitem, 3, -1) == 3
    with pytest.raises(IndexError):
        container.normalize_index(3, 3)


def test_large_containers() -> None:
    count = scaled(50_000)
    made = Array(range(count))
    assert len(made) == count
    assert made[-1] == count - 1
    assert sum(made) == count * (count - 1) // 2
    table = Map({i: -i for i in range(count)})
    assert all(table[i] == -i for i in range(0, count, 97))
