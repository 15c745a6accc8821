# SPDX-License-Identifier: Apache-2.0
"""What the workers of a cluster import: a class and tasks."""

from __future__ import annotations

import os
from typing import Any

import numpy
import tvm_ffi
from tvm_ffi import core, testing
from tvm_ffi.dataclasses import py_class


@py_class("tests.cluster.Node")
class Node(tvm_ffi.Object):
    """A graph can be built of it."""

    value: Any = None
    child: tvm_ffi.Object | None = None


class Noted(testing.TestIntPair):
    """Carries attributes."""

    __slots__ = ("__dict__",)


def describe(pair: Any) -> tuple[bool, str, int]:
    """Whether sharing was kept, the note, and where this ran."""
    node, shared = pair
    return (node.child is shared, shared.note, os.getpid())


def ring(node: Any) -> Any:
    """A graph with a cycle, around what was given."""
    made = Node(node.value + 1)
    made.child = Node(node, made)
    return made


def total(tensor: Any) -> float:
    """The sum of the elements."""
    return float(numpy.frombuffer(core._memory_of_tensor(tensor), "float64").sum())


def doubled(tensor: Any) -> Any:
    """A tensor as a result."""
    return tvm_ffi.from_dlpack(2 * numpy.frombuffer(core._memory_of_tensor(tensor), "float64"))


def fail(text: str) -> None:
    """An error that is raised in C++."""
    testing.test_raise_error("ValueError", text)


def check(submit: Any) -> None:
    """Run every kind of task by `submit(function, *arguments)`, which returns the result."""
    shared = Noted(1, 2)
    shared.note = "from here"
    kept, note, pid = submit(describe, [Node(1, shared), shared])
    assert (kept, note) == (True, "from here")
    assert pid != os.getpid()
    made = submit(ring, Node(41))
    assert (made.value, made.child.value.value) == (42, 41)
    assert made.child.child is made
    tensor = tvm_ffi.from_dlpack(numpy.arange(100_000.0))
    assert submit(total, tensor) == float(numpy.arange(100_000.0).sum())
    assert total(submit(doubled, tensor)) == 2 * total(tensor)
    assert submit(tvm_ffi.get_global_func("testing.add_one"), 4) == 5
    echo = tvm_ffi.get_global_func("testing.echo")
    assert submit(echo, tvm_ffi.Array([1, Node("x")]))[1].value == "x"
