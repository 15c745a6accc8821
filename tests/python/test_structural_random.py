# SPDX-License-Identifier: Apache-2.0
"""structural_map and structural_mutate on random values, beside a model in plain Python.

The model of a value is what is inside it: a tuple that begins with a letter for the container or
the object, and leaves as they are.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import tvm_ffi
from support import scaled
from tvm_ffi import structural_map, structural_mutate
from tvm_ffi.dataclasses import py_class


@py_class("test_structural_random.Pair")
class Pair(tvm_ffi.Object):
    """An object with two parts."""

    first: Any
    second: Any


KINDS = ("array", "list", "map", "dict", "pair")
LEAVES = (0, 1, 2, 3, -7, 2**70, None, True, 2.5, "", "short", "a text that is longer", b"bytes")


def random_model(rng: random.Random, depth: int) -> Any:
    if depth == 0 or rng.random() < 0.3:
        return rng.choice(LEAVES)
    kind = rng.choice(KINDS)
    count = 2 if kind == "pair" else rng.choice((0, 1, 2, 3, 5, 9))
    parts = [random_model(rng, depth - 1) for _ in range(count)]
    if parts and rng.random() < 0.2:
        parts[-1] = parts[0]  # the same object twice
    return (kind, *parts)


def build(model: Any, made: dict[int, Any]) -> Any:
    """Make a value of a model; what is one tuple in the model becomes one object."""
    if not isinstance(model, tuple):
        return model
    if id(model) in made:
        return made[id(model)]
    kind, *parts = model
    values = [build(part, made) for part in parts]
    keyed = {f"key {i}": value for i, value in enumerate(values)}
    if kind == "pair":
        made[id(model)] = Pair(*values)
    else:
        content: Any = keyed if kind in ("map", "dict") else values
        made[id(model)] = getattr(tvm_ffi, kind.capitalize())(content)
    return made[id(model)]


def model_of(value: Any) -> Any:
    """The other way round."""
    if isinstance(value, Pair):
        return ("pair", model_of(value.first), model_of(value.second))
    for kind in ("array", "list"):
        if isinstance(value, getattr(tvm_ffi, kind.capitalize())):
            return (kind, *map(model_of, value))
    for kind in ("map", "dict"):
        if isinstance(value, getattr(tvm_ffi, kind.capitalize())):
            return (kind, *(model_of(value[f"key {i}"]) for i in range(len(value))))
    return value


def is_same(left: Any, right: Any) -> bool:
    """Equal, and True is not 1."""
    if isinstance(left, tuple) and isinstance(right, tuple) and len(left) == len(right):
        return all(map(is_same, left, right))
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


def is_plain_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


# What callbacks do with an int and with the model of an Array.
def change_int(value: int) -> Any:
    if value == 1:
        return "one"
    return value + 100 if value % 2 == 0 else value


def change_array(array: Any) -> Any:
    return ("list", *array[1:]) if len(array) == 3 else array


def expected(model: Any, order: str, on_array: Callable[[Any], Any]) -> Any:
    if is_plain_int(model):
        return change_int(model)
    if not isinstance(model, tuple):
        return model
    if order == "pre" and model[0] == "array":
        model = on_array(model)
    done = (model[0], *(expected(part, order, on_array) for part in model[1:]))
    return on_array(done) if order == "post" and done[0] == "array" else done


def on_array(value: Any) -> Any:
    """As change_array, of a value."""
    return tvm_ffi.List(value) if len(value) == 2 else value


def unchanged(model: Any) -> Any:
    return model


@pytest.mark.parametrize("moved", [False, True])
@pytest.mark.parametrize("form", ["post", "pre", "ints", "mutate"])
def test_random_values(form: str, moved: bool) -> None:
    rng = random.Random(f"{form} {moved}")
    for _ in range(scaled(400)):
        model = random_model(rng, rng.randrange(1, 6))
        value = build(model, {})
        keeper = value if rng.random() < 0.5 else None
        order = form if form in ("post", "pre") else "post"
        wanted = expected(model, order, change_array if order == form else unchanged)
        root = value._move() if moved and isinstance(value, tvm_ffi.Object) else value
        if form == "mutate":
            made = structural_mutate(root, (int, lambda x, mutator: change_int(x)))
        elif form == "ints":
            made = structural_map(root, (int, change_int))
        else:
            callbacks = [(int, change_int), (tvm_ffi.Array, on_array)]
            made = structural_map(root, callbacks, order=order)
        assert is_same(model_of(made), wanted), (model, wanted)
        if not moved:
            assert is_same(model_of(value), model)
            if is_same(wanted, model):
                assert made is value or not isinstance(value, tvm_ffi.Object)
        del keeper


def test_a_callback_that_fails_leaves_the_value_as_it_was() -> None:
    rng = random.Random(5)
    num_failed = 0
    for _ in range(scaled(300)):
        model = random_model(rng, 4)
        value = build(model, {})
        left = rng.randrange(6)

        def fail(x: int) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                raise KeyError("no")
            return x + 1

        try:
            structural_map(value, (int, fail), order=rng.choice(("pre", "post")))
        except KeyError:
            num_failed += 1
        assert is_same(model_of(value), model)
    assert num_failed > 20
