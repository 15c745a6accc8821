# SPDX-License-Identifier: Apache-2.0
"""The FFI's containers as Python sequences and mappings.

========  =========================  ==========================================
class     behaves like               made from
========  =========================  ==========================================
`Array`   `tuple` (immutable)        any iterable; lists and tuples passed to a function
`List`    `list`                     any iterable
`Map`     a read-only `dict`         any mapping; dicts passed to a function
`Dict`    `dict`                     any mapping
========  =========================  ==========================================

Reading, iterating and looking up run in C++; this file holds what is not on a hot path.

>>> import tvm_ffi
>>> numbers = tvm_ffi.List([3, 1, 2])
>>> numbers[1:] = [7]
>>> numbers, numbers == [3, 7], 7 in numbers
([3, 7], True, True)
"""

from __future__ import annotations

import collections.abc
import itertools
import operator
import sys
from collections.abc import (
    Callable,
    Iterable,
    Iterator,
    Mapping,
    MutableMapping,
    MutableSequence,
    Sequence,
)

from . import _ffi_api, core
from ._dunder import deep_copy
from ._impl.objects import as_copy_of
from .registry import register_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, SupportsIndex, TypeVar, overload

    T = TypeVar("T")
    K = TypeVar("K")
    V = TypeVar("V")
    D = TypeVar("D")

__all__ = ["Array", "Dict", "List", "Map"]

MISSING = core.MISSING


# ---- sequences ----------------------------------------------------------------------------------


def normalize_index(length: int, idx: SupportsIndex) -> int:
    """Return the position an index means in a sequence, counting negative ones from the end.

    >>> from tvm_ffi.container import normalize_index
    >>> normalize_index(3, -1)
    2
    """
    try:
        index = operator.index(idx)
    except TypeError:
        kind = type(idx).__name__
        raise TypeError(f"indices must be integers or slices, not {kind}") from None
    position = index + length if index < 0 else index
    if not 0 <= position < length:
        raise IndexError(f"Index out of range. size: {length}, got index {index}")
    return position


def getitem_helper(
    obj: Any, elem_getter: Callable[[Any, int], Any], length: int, idx: SupportsIndex | slice
) -> Any:
    """Read one element, or a list of the elements a slice selects."""
    if isinstance(idx, slice):
        return [elem_getter(obj, i) for i in range(*idx.indices(length))]
    return elem_getter(obj, normalize_index(length, idx))


def _is_other_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray))


def _related(left: Any, right: Any) -> bool:
    """Whether both are wrappers and one has a subclass of the other's class."""
    return isinstance(right, core.CObject) and (
        isinstance(right, type(left)) or isinstance(left, type(right))
    )


def _kind_of(sequence: Any) -> type:
    """The class to make of other sequences: subclasses may have constructors of their own."""
    return List if isinstance(sequence, List) else Array


def _sum(sequence: Any, elements: Iterable[Any]) -> Any:
    cls: Any = type(sequence)
    kind: Any = _kind_of(sequence)
    return (cls if cls.__init__ is kind.__init__ else kind)(elements)


class _SequenceMethods:
    """What `Array` and `List` share."""

    __slots__ = ()

    def __contains__(self: Any, value: object) -> bool:
        try:
            if self._ffi_contains(self, value):
                return True
        except OverflowError:
            # An integer beyond 64 bits, alone or in a collection, is in no container.
            if not isinstance(value, (int, tuple, list, dict)):
                raise
            return False
        if not _is_other_sequence(value):
            return False
        wanted = value if isinstance(value, type(self)) else _kind_of(self)(value)
        return any(item == wanted for item in self)

    def index(self: Any, value: Any, start: int = 0, stop: int | None = None) -> int:
        """Return the first position of a value."""
        start = operator.index(start)
        stop = None if stop is None else operator.index(stop)
        try:
            return Sequence.index(self, value, start, stop)  # type: ignore[arg-type]
        except ValueError as error:
            if error.args:
                raise
            kind = _kind_of(self).__name__
            raise ValueError(f"{value!r} is not in this {kind}") from None

    def __add__(self: Any, other: Iterable[Any]) -> Any:
        return _sum(self, itertools.chain(self, other))

    def __radd__(self: Any, other: Iterable[Any]) -> Any:
        return _sum(self, itertools.chain(other, self))

    def __eq__(self: Any, other: object) -> bool:
        if self is other:
            return True
        if not _related(self, other):
            if not _is_other_sequence(other):
                return NotImplemented
            other = _kind_of(self)(other)
        return _ffi_api.RecursiveEq(self, other)

    __ne__ = object.__ne__  # the opposite of __eq__

    def __hash__(self: Any) -> int:
        return _ffi_api.RecursiveHash(self)

    def __copy__(self: Any) -> Any:
        return as_copy_of(self, _kind_of(self)(self))

    def __deepcopy__(self: Any, memo: dict[int, Any] | None = None) -> Any:
        return as_copy_of(self, deep_copy(self, memo), {} if memo is None else memo)


@register_object("ffi.Array")
class Array(_SequenceMethods, core.ArrayBase, core.Object, Sequence["T"]):
    """An immutable sequence; a `list` or `tuple` passed to an FFI function becomes one.

    >>> import tvm_ffi
    >>> a = tvm_ffi.Array([1, 2, 3])
    >>> a[0], a[-1], a[1:], len(a), a + [4]
    (1, 3, [2, 3], 3, (1, 2, 3, 4))
    """

    __slots__ = ()
    _ffi_contains: Any = staticmethod(_ffi_api.ArrayContains)

    if TYPE_CHECKING:

        @overload
        def __getitem__(self, index: SupportsIndex) -> T: ...
        @overload
        def __getitem__(self, index: slice) -> list[T]: ...
        def __getitem__(self, index: Any) -> Any: ...
        def __iter__(self) -> Iterator[T]: ...
        def __add__(self, other: Iterable[T]) -> Array[T]: ...
        def __radd__(self, other: Iterable[T]) -> Array[T]: ...

    def __init__(self, input_list: Iterable[T]) -> None:
        """Make an array of the elements of any iterable."""
        self._fill(input_list)


@register_object("ffi.List")
class List(_SequenceMethods, core.ListBase, core.Object, MutableSequence["T"]):
    """A mutable sequence, shared by all its holders.

    >>> import tvm_ffi
    >>> a = tvm_ffi.List([1, 2])
    >>> box = tvm_ffi.Array([a])
    >>> box[0].append(3)
    >>> a
    [1, 2, 3]
    """

    __slots__ = ()
    _ffi_contains: Any = staticmethod(_ffi_api.ListContains)

    if TYPE_CHECKING:

        @overload
        def __getitem__(self, index: SupportsIndex) -> T: ...
        @overload
        def __getitem__(self, index: slice) -> list[T]: ...
        def __getitem__(self, index: Any) -> Any: ...
        def __iter__(self) -> Iterator[T]: ...
        def __add__(self, other: Iterable[T]) -> List[T]: ...
        def __radd__(self, other: Iterable[T]) -> List[T]: ...
        def append(self, value: T) -> None: ...

    def __init__(self, input_list: Iterable[T] = ()) -> None:
        """Make a list of the elements of any iterable."""
        self._fill(input_list)

    def __setitem__(self, index: SupportsIndex | slice, value: Any) -> None:
        if isinstance(index, slice):
            # A list of its own: reading `value` may change this list, or be this list.
            self._set_slice(index, List(value))
        else:
            self._set_index(index, value)

    def __delitem__(self, index: SupportsIndex | slice) -> None:
        if isinstance(index, slice):
            self._del_slice(index)
        else:
            self._del_index(index)

    def __reversed__(self) -> Iterator[T]:
        return self._backwards(len(self))

    def _backwards(self, position: int) -> Iterator[T]:
        for i in reversed(range(position)):
            try:
                item = self[i]
            except IndexError:  # the list has become shorter
                return
            yield item

    def insert(self, index: SupportsIndex, value: T) -> None:
        """Insert before a position; positions beyond the ends mean the ends."""
        core.ListBase.insert(self, index, value)

    def extend(self, values: Iterable[T]) -> None:
        """Append the elements of an iterable; if reading it fails, nothing is appended."""
        self._set_slice(slice(sys.maxsize, None), List(values))

    def pop(self, index: SupportsIndex = -1) -> T:
        """Remove and return the element at a position."""
        return self._pop_index(index)

    def clear(self) -> None:
        """Remove all elements."""
        core.ListBase.clear(self)

    def reverse(self) -> None:
        """Reverse the order in place."""
        _ffi_api.ListReverse(self)


# ---- mappings -----------------------------------------------------------------------------------


class _View:
    """A dynamic view of a map; `iter_functor_getter` replaces the map's own iteration.

    The functor is driven by one integer: 0 reads the key, 1 the value, 2 advances.
    """

    __slots__ = ()

    def __init__(
        self: Any,
        backend_map: Mapping[Any, Any],
        iter_functor_getter: Callable[[], Any] | None = None,
    ) -> None:
        super().__init__(backend_map)  # type: ignore[call-arg]
        self._functor_getter = iter_functor_getter

    def _pairs(self: Any) -> Iterator[tuple[Any, Any]]:
        if self._functor_getter is None:
            return self._mapping._items_iter()
        return self._functor_pairs()

    def _functor_pairs(self: Any) -> Iterator[tuple[Any, Any]]:
        functor = self._functor_getter()
        more = len(self._mapping) > 0
        while more:
            yield functor(0), functor(1)
            more = functor(2)


class KeysView(_View, collections.abc.KeysView["K"]):
    """The keys of a map."""

    __slots__ = ("_functor_getter",)
    _mapping: Any
    _functor_getter: Any

    def __iter__(self) -> Iterator[K]:
        if self._functor_getter is None:
            return self._mapping._keys_iter()
        return (key for key, _ in self._functor_pairs())


class ValuesView(_View, collections.abc.ValuesView["V"]):
    """The values of a map."""

    __slots__ = ("_functor_getter",)
    _mapping: Any
    _functor_getter: Any

    def __contains__(self, value: object) -> bool:
        return any(item is value or item == value for item in self)

    def __iter__(self) -> Iterator[V]:
        if self._functor_getter is None:
            return self._mapping._values_iter()
        return (value for _, value in self._functor_pairs())


class ItemsView(_View, collections.abc.ItemsView["K", "V"]):
    """The (key, value) pairs of a map."""

    __slots__ = ("_functor_getter",)
    _mapping: Any
    _functor_getter: Any

    def __contains__(self, item: object) -> bool:
        if not isinstance(item, tuple) or len(item) != 2:
            return False
        value = self._mapping.get(item[0], MISSING)
        return value is not MISSING and (value is item[1] or value == item[1])

    def __iter__(self) -> Iterator[tuple[K, V]]:
        return self._pairs()


class _MappingMethods:
    """What `Map` and `Dict` share."""

    __slots__ = ()

    def get(self: Any, key: Any, default: Any = None) -> Any:
        """Return the value of a key, or `default`."""
        return self._get_or(key, default)

    def keys(self: Any) -> KeysView[Any]:
        """Return a dynamic view of the keys, in order of insertion."""
        return KeysView(self)

    def values(self: Any) -> ValuesView[Any]:
        """Return a dynamic view of the values."""
        return ValuesView(self)

    def items(self: Any) -> ItemsView[Any, Any]:
        """Return a dynamic view of the (key, value) pairs."""
        return ItemsView(self)

    def __eq__(self: Any, other: object) -> bool:
        if self is other:
            return True
        if not _related(self, other):
            return NotImplemented
        return _ffi_api.RecursiveEq(self, other)

    __ne__ = object.__ne__  # the opposite of __eq__

    def __hash__(self: Any) -> int:
        return _ffi_api.RecursiveHash(self)

    def __copy__(self: Any) -> Any:
        kind = Dict if isinstance(self, Dict) else Map
        return as_copy_of(self, kind(self))

    def __deepcopy__(self: Any, memo: dict[int, Any] | None = None) -> Any:
        return as_copy_of(self, deep_copy(self, memo), {} if memo is None else memo)


def _pairs(items: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    for position, item in enumerate(items):
        try:
            pair = tuple(item)
        except TypeError:
            kind = type(item).__name__
            raise TypeError(
                f"item #{position} is not a pair of key and value, got {kind}"
            ) from None
        if len(pair) != 2:
            raise ValueError(
                f"item #{position} has length {len(pair)}; a key and a value are needed"
            )
        yield pair


def _flat_items(mapping: Mapping[Any, Any], kind: str) -> Iterator[Any]:
    if not hasattr(mapping, "items"):
        raise AttributeError(
            f"{kind} expects a mapping, got {type(mapping).__name__}, which has no method 'items'"
        )
    items = mapping.items()
    # The items of a plain dict are always pairs.
    return itertools.chain.from_iterable(items if type(mapping) is dict else _pairs(items))


@register_object("ffi.Map")
class Map(_MappingMethods, core.MapBase, core.Object, Mapping["K", "V"]):
    """A read-only mapping; a `dict` passed to an FFI function becomes one.

    >>> import tvm_ffi
    >>> m = tvm_ffi.Map({"a": 1, "b": 2})
    >>> m["a"], m.get("c", 0), list(m.items())
    (1, 0, [('a', 1), ('b', 2)])
    """

    __slots__ = ()

    if TYPE_CHECKING:

        def __getitem__(self, key: K) -> V: ...
        def __iter__(self) -> Iterator[K]: ...
        @overload  # type: ignore[override]
        def get(self, key: K) -> V | None: ...
        @overload
        def get(self, key: K, default: V | D) -> V | D: ...
        def get(self, key: Any, default: Any = None) -> Any: ...
        def keys(self) -> KeysView[K]: ...
        def values(self) -> ValuesView[V]: ...
        def items(self) -> ItemsView[K, V]: ...

    def __init__(self, input_dict: Mapping[K, V]) -> None:
        """Make a map of the items of any mapping."""
        self.__init_handle_by_constructor__(_ffi_api.Map, *_flat_items(input_dict, "Map"))


@register_object("ffi.Dict")
class Dict(_MappingMethods, core.DictBase, core.Object, MutableMapping["K", "V"]):
    """A mutable mapping, shared by all its holders.

    >>> import tvm_ffi
    >>> d = tvm_ffi.Dict({"a": 1})
    >>> d["b"] = 2
    >>> del d["a"]
    >>> d, d.pop("b"), len(d)
    ({}, 2, 0)
    """

    __slots__ = ()

    if TYPE_CHECKING:

        def __getitem__(self, key: K) -> V: ...
        def __iter__(self) -> Iterator[K]: ...
        @overload  # type: ignore[override]
        def get(self, key: K) -> V | None: ...
        @overload
        def get(self, key: K, default: V | D) -> V | D: ...
        def get(self, key: Any, default: Any = None) -> Any: ...
        def keys(self) -> KeysView[K]: ...
        def values(self) -> ValuesView[V]: ...
        def items(self) -> ItemsView[K, V]: ...
        def __setitem__(self, key: K, value: V) -> None: ...
        def __delitem__(self, key: K) -> None: ...

    def __init__(self, input_dict: Mapping[K, V] | None = None) -> None:
        """Make a dict of the items of any mapping."""
        items = () if input_dict is None else _flat_items(input_dict, "Dict")
        self.__init_handle_by_constructor__(_ffi_api.Dict, *items)

    def pop(self, key: K, *default: D) -> V | D:  # type: ignore[override]
        """Remove a key and return its value, or `default` if it is absent."""
        return self._pop(key, *default)

    def popitem(self) -> tuple[K, V]:
        """Remove and return the first item."""
        return self._pop_first()

    def setdefault(self, key: K, default: Any = None) -> Any:
        """Return the value of a key, after storing `default` if it is absent."""
        return self._set_default(key, default)

    def clear(self) -> None:
        """Remove all items."""
        _ffi_api.DictClear(self)

    def update(self, other: Any = (), /, **named: Any) -> None:  # type: ignore[override]
        """Store the items of a mapping or of an iterable of pairs, then the named ones.

        >>> import tvm_ffi
        >>> d = tvm_ffi.Dict()
        >>> d.update([("a", 1)], b=2)
        >>> d
        {"a": 1, "b": 2}
        """
        items = other
        if hasattr(other, "items"):
            items = other.items()
        elif hasattr(other, "keys"):
            items = ((key, other[key]) for key in other.keys())  # noqa: SIM118
        for key, value in _pairs(items):
            self[key] = value
        for name, value in named.items():
            self[name] = value  # type: ignore[index]
