# SPDX-License-Identifier: Apache-2.0
"""The benchmark's library in pure Python: what a program without C++ would have."""

from __future__ import annotations

from typing import Any


class Node:
    """An int, an object, children."""

    __slots__ = ("children", "next", "value")

    def __init__(self, value: int) -> None:
        self.value = value
        self.next: Any = None
        self.children: Any = None


class Counter:
    """An int with methods."""

    __slots__ = ("value",)

    def __init__(self, value: int) -> None:
        self.value = value

    def get(self) -> int:
        return self.value

    def plus(self, n: int) -> int:
        return self.value + n

    @staticmethod
    def twice(n: int) -> int:
        return 2 * n


class Pair:
    """Two ints."""

    __slots__ = ("a", "b")

    def __init__(self, a: int, b: int) -> None:
        self.a = a
        self.b = b


class Box:
    """Holds any Python object."""

    __slots__ = ("value",)


class Array:
    """A sequence of nodes."""

    __slots__ = ("items",)

    def __init__(self, nodes: Any) -> None:
        self.items = tuple(nodes)

    def __getitem__(self, index: int) -> Any:
        return self.items[index]

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Any:
        return iter(self.items)


class Map:
    """Nodes by name."""

    __slots__ = ("items",)

    def __init__(self, nodes: Any) -> None:
        self.items = dict(nodes)

    def __getitem__(self, key: str) -> Any:
        return self.items[key]


def make_node(value: int) -> Node:
    return Node(value)


def make_many(n: int) -> Array:
    return Array(map(Node, range(n)))


def identity(node: Node) -> Node:
    return node


def add(a: int, b: int) -> int:
    return a + b


def call(function: Any, node: Node) -> Any:
    return function(node)


def fail(n: int) -> int:
    if n != 0:
        raise ValueError("as asked")
    return n


def echo_str(text: str) -> str:
    return text


add_released = add
