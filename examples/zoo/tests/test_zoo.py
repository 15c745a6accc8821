# SPDX-License-Identifier: Apache-2.0
"""Tests of the example: what it promises, and what it says to mistakes."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import zoo


@pytest.fixture
def enclosure() -> zoo.Enclosure:
    made = zoo.Enclosure(3)
    made.add(zoo.Dog("Rex", True))
    made.add(zoo.Bird("Tweety", 0.2))
    return made


def test_the_class_of_an_animal_is_that_of_its_type(enclosure: zoo.Enclosure) -> None:
    dog, bird = enclosure.animals
    assert isinstance(dog, zoo.Dog) and isinstance(bird, zoo.Animal)
    assert (dog.sound(), bird.sound()) == ("woof", "tweet")
    assert (dog.legs, bird.legs) == (4, 2)


def test_an_animal_is_one_python_object(enclosure: zoo.Enclosure) -> None:
    enclosure.animals[0].note = "fed"  # type: ignore[attr-defined]
    assert enclosure.animals[0].note == "fed"  # type: ignore[attr-defined]


def test_fields_that_are_containers(enclosure: zoo.Enclosure) -> None:
    dog = enclosure.animals[0]
    dog.tags.append("loud")
    dog.tags.extend(["old", "brown"])
    assert dog.describe() == "Rex: woof #loud #old #brown"
    assert enclosure.feed("Rex", 1.5) == 1.5
    enclosure.food["Rex"] = 2
    assert enclosure.feed("Rex", 1) == 3.0


def test_a_callback_selects(enclosure: zoo.Enclosure) -> None:
    assert [a.name for a in enclosure.select(lambda a: a.legs == 2)] == ["Tweety"]
    with pytest.raises(ZeroDivisionError):
        enclosure.select(lambda a: bool(1 / 0))


def test_an_error_of_its_own_kind() -> None:
    full = zoo.Enclosure(0)
    with pytest.raises(zoo.ZooFullError, match=r"^no room for Rex: the enclosure holds 0$"):
        full.add(zoo.Dog("Rex", False))


def test_numpy_in_and_out() -> None:
    weights = np.array([1.0, 2.0, 6.0])
    assert zoo.mean(weights) == 3.0
    np.testing.assert_array_equal(zoo.grow(weights, 2.0), [2.0, 4.0, 12.0])


def test_copies(enclosure: zoo.Enclosure) -> None:
    dog: Any = enclosure.animals[0]
    dog.note = ["fed"]
    shallow, deep = copy.copy(dog), copy.deepcopy(dog)
    assert (shallow.name, deep.name) == ("Rex", "Rex")
    assert shallow.note is dog.note and deep.note == dog.note and deep.note is not dog.note
    assert shallow.tags is dog.tags and deep.tags is not dog.tags
    loaded = pickle.loads(pickle.dumps(dog))
    assert (type(loaded), loaded.name, loaded.trained, loaded.note) == (
        zoo.Dog,
        "Rex",
        True,
        ["fed"],
    )


MISTAKES: dict[str, tuple[Any, type[Exception], str]] = {
    "no name": (lambda: zoo.Animal("", 4), ValueError, "an animal needs a name"),
    "too many legs": (lambda: setattr(zoo.Dog("a", True), "legs", 300), OverflowError, "uint8"),
    "a negative wingspan": (lambda: zoo.Bird("a", -1.0), ValueError, "must be positive, got -1"),
    "an empty vector": (lambda: zoo.mean(np.zeros(0)), ValueError, "is not defined"),
    "ints": (lambda: zoo.mean(np.zeros(2, "int32")), TypeError, "float64, got int32"),  # type: ignore[arg-type]
    "a matrix": (lambda: zoo.mean(np.zeros((2, 2))), ValueError, "got 2 dimensions"),
    "a tag that is a number": (
        lambda: zoo.Dog("a", True).tags.append(3),  # type: ignore[arg-type]
        TypeError,
        "field `tags`",
    ),
    "a dog that is a number": (
        lambda: zoo.Enclosure(1).add(3),  # type: ignore[arg-type]
        TypeError,
        "Expected `zoo.Animal` but got `int`",
    ),
    "a callback's result": (
        lambda: _one().select(lambda a: "yes"),  # type: ignore[arg-type, return-value]
        TypeError,
        "Expected `bool` but got `str`",
    ),
}


def _one() -> zoo.Enclosure:
    made = zoo.Enclosure(1)
    made.add(zoo.Dog("Rex", True))
    return made


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name: str) -> None:
    make, kind, text = MISTAKES[name]
    with pytest.raises(kind, match=text.replace("(", r"\(")):
        make()
