# SPDX-License-Identifier: Apache-2.0
"""The Python side of libzoo: classes with type hints, its error, and functions on numpy arrays.

The library is looked for in $ZOO_LIBRARY, beside this package, and in its build folder.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import tvm_ffi

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Animal", "Bird", "Dog", "Enclosure", "ZooFullError", "grow", "mean"]


def _find_library() -> Path:
    given = os.environ.get("ZOO_LIBRARY")
    here = Path(__file__).resolve().parent
    places = [Path(given)] if given else [here / "libzoo.so", here.parent / "build" / "libzoo.so"]
    for place in places:
        if place.exists():
            return place
    raise ImportError(f"libzoo.so is not in {', '.join(map(str, places))}: build it with CMake")


_library = tvm_ffi.load_module(_find_library())


@tvm_ffi.register_error
class ZooFullError(RuntimeError):
    """There is no room for another animal."""


@tvm_ffi.register_object("zoo.Animal")
class Animal(tvm_ffi.Object):
    """An animal. Python may give it attributes of its own."""

    __slots__ = ("__dict__",)

    name: str
    legs: int
    tags: tvm_ffi.List[str]

    if TYPE_CHECKING:

        def __init__(self, name: str, legs: int) -> None: ...
        def sound(self) -> str: ...
        def describe(self) -> str: ...


@tvm_ffi.register_object("zoo.Dog")
class Dog(Animal):
    """A dog."""

    trained: bool

    if TYPE_CHECKING:

        def __init__(self, name: str, trained: bool) -> None: ...


@tvm_ffi.register_object("zoo.Bird")
class Bird(Animal):
    """A bird."""

    if TYPE_CHECKING:

        def __init__(self, name: str, wingspan: float) -> None: ...
        @property
        def wingspan(self) -> float: ...


@tvm_ffi.register_object("zoo.Enclosure")
class Enclosure(tvm_ffi.Object):
    """A place for animals."""

    if TYPE_CHECKING:

        def __init__(self, capacity: int) -> None: ...
        @property
        def capacity(self) -> int: ...
        @property
        def animals(self) -> tvm_ffi.List[Animal]: ...
        @property
        def food(self) -> tvm_ffi.Dict[str, float]: ...
        def add(self, animal: Animal) -> None: ...
        def select(self, wanted: Callable[[Animal], bool]) -> Sequence[Animal]: ...
        def feed(self, name: str, kilograms: float) -> float: ...


_mean = tvm_ffi.get_global_func("zoo.mean")
_grow = tvm_ffi.get_global_func("zoo.grow")


def mean(weights: NDArray[np.float64]) -> float:
    """Return the mean of a vector."""
    return float(_mean(weights))


def grow(weights: NDArray[np.float64], factor: float) -> NDArray[np.float64]:
    """Return a new vector with every weight times a factor; its memory belongs to C++."""
    return np.asarray(np.from_dlpack(_grow(weights, factor)), dtype=np.float64)
