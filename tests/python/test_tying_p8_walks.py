# SPDX-License-Identifier: Apache-2.0
"""P8: what walks through a structure takes a consistent view of each object it meets.

Some threads change a List, a Dict and fields deep inside a structure, others walk through it.
"""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable
from typing import Any

import pytest
import tvm_ffi
from support import FREE_THREADED, make_edges, run_threads, scaled
from tvm_ffi.dataclasses import py_class

pytestmark = pytest.mark.usefixtures("fast_switching")
WALKS = scaled(150 if FREE_THREADED else 40)
TEXTS = ["first text, long enough to be an object", "second text, also an object of its own"]


@py_class("testing.p8_walks.Node", structural_eq="tree", eq=True, unsafe_hash=True)
class Node(tvm_ffi.Object):
    label: Any
    child: Any = None


class Structure:
    """A structure with one of every mutable kind inside, and ways to change them."""

    def __init__(self, key: str = "key") -> None:
        self.items = tvm_ffi.List([TEXTS[0]] * 4)
        self.table = tvm_ffi.Dict({"key a": TEXTS[0], "key b": TEXTS[1]})
        self.node = Node(TEXTS[0])
        self.edges = make_edges(v_any=TEXTS[0])
        self.hidden = tvm_ffi.Array([tvm_ffi.List([TEXTS[0]])])  # no wrapper for its List
        self.root = tvm_ffi.Array(
            [self.items, tvm_ffi.Map({key: self.table}), Node(1, self.node), self.hidden]
        )

    def change_items(self, step: int) -> None:
        items = self.items
        items.append(TEXTS[step % 2])
        items.insert(0, tvm_ffi.Array([1]))
        items[1:2] = [TEXTS[0], TEXTS[1], TEXTS[0]]
        items.reverse()
        items.pop()
        if len(items) > 40:
            items.clear()

    def change_table(self, step: int) -> None:
        table = self.table
        table[f"key {step % 50}, longer than what fits inside"] = TEXTS[step % 2]
        table[step % 7] = tvm_ffi.Array([2])
        if len(table) > 40:
            table.clear()

    def change_fields(self, step: int) -> None:
        self.node.label = TEXTS[step % 2]
        self.node.child = tvm_ffi.Array([TEXTS[step % 2]]) if step % 3 else None
        self.edges.v_any = TEXTS[step % 2]
        self.edges.v_obj = tvm_ffi.Array([3])

    def change_hidden(self, step: int) -> None:
        inner = self.hidden[0]
        inner.append(TEXTS[step % 2])
        if len(inner) > 30:
            inner.clear()
        del inner  # the next walk finds a dormant wrapper, or none

    def init_again(self, step: int) -> None:
        spare = tvm_ffi.List([TEXTS[0]])
        for _ in range(3):
            spare.__init__([TEXTS[step % 2]] * 3)
        self.items.extend(spare)


CHANGES = ["change_items", "change_table", "change_fields", "change_hidden", "init_again"]


def texts_of(root: Any) -> set[str]:
    """Every text that a structural walk meets."""
    seen: set[str] = set()
    tvm_ffi.structural_walk(root, (str, lambda text: seen.add(str(text))))
    return {text for text in seen if not text.startswith("key")}


def race(structure: Structure, walk: Callable[[], object], walks: int = WALKS) -> None:
    done = threading.Event()

    def body(i: int) -> None:
        if i < len(CHANGES):
            change = getattr(structure, CHANGES[i])
            step = 0
            while not done.is_set():
                try:
                    change(step)
                except IndexError:
                    pass  # the list became shorter since the index was chosen
                step += 1
            return
        try:
            for _ in range(walks):
                walk()
        finally:
            done.set()

    run_threads(len(CHANGES) + 1, body)


def test_p8_repr_of_what_changes_inside() -> None:
    structure = Structure()

    def walk() -> None:
        text = repr(structure.root)
        assert text.startswith("(") or text.startswith("[")
        repr(structure.edges)

    race(structure, walk)


def test_p8_hashes_of_what_changes_inside() -> None:
    structure = Structure()

    def walk() -> None:
        hash(structure.root)
        tvm_ffi.structural_hash(structure.root)
        tvm_ffi.StructuralKey(structure.root)

    race(structure, walk)


def test_p8_comparisons_of_what_changes_inside() -> None:
    structure, other = Structure(), Structure()

    def walk() -> None:
        assert isinstance(structure.root == other.root, bool)
        assert isinstance(structure.items == other.items, bool)
        assert isinstance(other.table == structure.table, bool)
        assert isinstance(structure.node == other.node, bool)
        assert isinstance(tvm_ffi.structural_equal(structure.root, other.root), bool)
        tvm_ffi.get_first_structural_mismatch(structure.root, other.root)
        tvm_ffi.get_first_structural_mismatch(other.root, structure.root)

    race(structure, walk)


def test_p8_a_deep_copy_of_what_changes_inside_is_whole() -> None:
    structure = Structure()

    def walk() -> None:
        copied = copy.deepcopy(structure.root)
        assert texts_of(copied) <= set(TEXTS)
        assert copy.copy(structure.node).label in TEXTS
        assert copy.deepcopy(structure.edges).v_any in TEXTS

    race(structure, walk)


def test_p8_a_pickle_of_what_changes_inside_is_whole() -> None:
    structure = Structure()

    def walk() -> None:
        restored = pickle.loads(pickle.dumps(structure.root))
        assert texts_of(restored) <= set(TEXTS)

    race(structure, walk, WALKS // 2)


def test_p8_json_of_what_changes_inside() -> None:
    structure = Structure()
    stringify = tvm_ffi.get_global_func("ffi.json.Stringify")
    box = tvm_ffi.Array([structure.hidden])

    def walk() -> None:
        tvm_ffi.serialization.to_json_graph_str(structure.root)
        assert stringify(box, None).startswith("[[[")

    race(structure, walk)


def test_p8_a_visit_of_what_changes_inside() -> None:
    structure = Structure()
    race(structure, lambda: texts_of(structure.root) <= set(TEXTS))


def test_p8_containers_made_from_what_changes() -> None:
    structure = Structure()
    target, mirror = tvm_ffi.List(), tvm_ffi.Dict()

    @py_class("testing.p8_walks.Typed")
    class Typed(tvm_ffi.Object):
        items: list[Any]
        words: list[str]
        table: dict[Any, Any]

    def walk() -> None:
        items, table = structure.items, structure.table
        for made in (tvm_ffi.Array(items), tvm_ffi.List(items), list(items), items[1:]):
            assert all(isinstance(item, (str, tvm_ffi.Array)) for item in made)
        target[:] = items
        target.extend(items)
        target.clear()
        mirror.update(table)
        assert len(tvm_ffi.Map(table)) <= 60
        assert len(dict(table.items())) <= 60
        assert all(len(pair) == 2 for pair in table.items())
        try:
            typed = Typed(items, [TEXTS[0]], table)
            typed.words = structure.hidden[0]
            typed.table = table
        except TypeError:
            pass  # an element of another type

    race(structure, walk)


def test_p8_re_initialisation_races_with_use() -> None:
    """Whoever comes between finds the wrapper empty, never a freed object."""
    shared: dict[str, Any] = {
        "list": tvm_ffi.List([1]),
        "array": tvm_ffi.Array([1]),
        "dict": tvm_ffi.Dict({1: 1}),
        "map": tvm_ffi.Map({1: 1}),
        "node": Node(1),
    }

    def use(obj: Any, i: int) -> None:
        kind = type(obj).__name__
        if i % 4 == 0:
            obj.__init__([1, 2] if kind in ("List", "Array") else {1: 2} if kind != "Node" else 3)
        elif i % 4 == 1:
            repr(obj)
            if kind != "Node":
                len(obj)
        elif i % 4 == 2:
            tvm_ffi.testing.echo(obj._move())
        elif kind == "List":
            obj.append(1)
        elif kind == "Dict":
            obj[2] = 3
        elif kind == "Node":
            obj.label = TEXTS[0]
        else:
            list(obj)

    def body(i: int) -> None:
        for _ in range(scaled(1500 if FREE_THREADED else 150)):
            for obj in shared.values():
                try:
                    use(obj, i)
                except ValueError as error:
                    assert "moved from" in str(error)

    run_threads(8, body)
