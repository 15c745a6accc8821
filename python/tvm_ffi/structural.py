# SPDX-License-Identifier: Apache-2.0
"""Equality, hashes, walks and changes by structure: what a value contains, not which object it is.

>>> import tvm_ffi
>>> tvm_ffi.structural_equal([1, {"a": 2}], [1, {"a": 2}])
True
>>> tvm_ffi.get_first_structural_mismatch([1, 2], [1, 3])
(<root>[1], <root>[1])
"""

from __future__ import annotations

from enum import IntEnum

from . import _ffi_api, core
from . import access_path as _access_path  # noqa: F401  registers the classes of mismatch paths
from .registry import register_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

__all__ = [
    "DefRegionKind",
    "InplaceMode",
    "StructuralKey",
    "StructuralMutator",
    "StructuralVisitor",
    "VisitInterrupt",
    "WalkOrder",
    "WalkResult",
    "get_first_structural_mismatch",
    "structural_equal",
    "structural_hash",
    "structural_map",
    "structural_mutate",
    "structural_visit",
    "structural_walk",
]

_MASK64 = 0xFFFFFFFFFFFFFFFF


class WalkOrder(IntEnum):
    """When a value is reported: before its parts or after them."""

    PREORDER = 0
    POSTORDER = 1


class WalkResult(IntEnum):
    """What a callback returns: go on, or skip the parts of this value."""

    ADVANCE = 0
    SKIP = 1


class DefRegionKind(IntEnum):
    """Whether the variables found here are being defined.

    In a pattern all variables are; in a simple region those that are met directly, not those inside
    them. Inside a pattern everything is pattern.
    """

    NONE = core._abi.kTVMFFIDefRegionKindNone
    DEF_PATTERN = core._abi.kTVMFFIDefRegionKindPattern
    DEF_SIMPLE = core._abi.kTVMFFIDefRegionKindSimple


class InplaceMode(IntEnum):
    """Whether a callback of `structural_mutate` may change the value itself."""

    DISALLOW = 0
    ALLOW = 1


def structural_equal(
    lhs: Any, rhs: Any, map_free_vars: bool = False, skip_tensor_content: bool = False
) -> bool:
    """Say whether two values have the same structure.

    With `map_free_vars` variables that are not defined anywhere may correspond to each other; with
    `skip_tensor_content` tensors of the same shape and type are equal.

    >>> import tvm_ffi
    >>> tvm_ffi.structural_equal({"a": 1, "b": 2}, {"b": 2, "a": 1})
    True
    """
    return _ffi_api.StructuralEqual(lhs, rhs, map_free_vars, skip_tensor_content)


def structural_hash(
    value: Any, map_free_vars: bool = False, skip_tensor_content: bool = False
) -> int:
    """Return a hash, unsigned 64 bits, that is the same for structurally equal values.

    >>> import tvm_ffi
    >>> tvm_ffi.structural_hash([1, 2]) == tvm_ffi.structural_hash([1, 2])
    True
    """
    return _ffi_api.StructuralHash(value, map_free_vars, skip_tensor_content) & _MASK64


def get_first_structural_mismatch(
    lhs: Any, rhs: Any, map_free_vars: bool = False, skip_tensor_content: bool = False
) -> Any:
    """Return the paths to the first difference, one in each value, or None if there is none.

    >>> import tvm_ffi
    >>> tvm_ffi.get_first_structural_mismatch({"a": [1]}, {"a": [1, 2]})
    (<root>["a"][<missing:1>], <root>["a"][1])
    """
    return _ffi_api.GetFirstStructuralMismatch(lhs, rhs, map_free_vars, skip_tensor_content)


@register_object("ffi.StructuralKey")
class StructuralKey(core.Object):
    """A value as a key that is found by its structure, in `dict` and in FFI maps.

    >>> from tvm_ffi import StructuralKey
    >>> {StructuralKey([1, 2]): "found"}[StructuralKey([1, 2])]
    'found'
    """

    key: Any
    hash_i64: int

    def __init__(self, key: Any) -> None:
        self.__init_handle_by_constructor__(_ffi_api.StructuralKey, key)

    def __hash__(self) -> int:
        return self.hash_i64 & _MASK64

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StructuralKey) and _ffi_api.StructuralKeyEqual(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other


@register_object("ffi.VisitInterrupt")
class VisitInterrupt(core.Object):
    """What a callback returns to end a walk; the walk returns it, with its value.

    >>> from tvm_ffi import VisitInterrupt
    >>> VisitInterrupt(3).value
    3
    """

    value: Any

    def __init__(self, value: Any = None) -> None:
        self.__init_handle_by_constructor__(_ffi_api.VisitInterrupt, value)


@register_object("ffi.StructuralVisitor")
class StructuralVisitor(core.Object):
    """The walk that calls a ``__s_visit__`` hook; hooks pass the parts of a value to `visit`.

    It is of use in the thread of the call that made it, until that call returns.
    """

    def visit(self, value: Any) -> VisitInterrupt | None:
        """Walk a part of the value being visited."""
        return _ffi_api.StructuralVisitorVisit(self, value)

    def default_visit(self, value: Any) -> VisitInterrupt | None:
        """Walk the parts of a value."""
        return _ffi_api.StructuralVisitorDefaultVisit(self, value)

    def def_region_kind(self) -> DefRegionKind:
        """Return whether variables are being defined here."""
        return DefRegionKind(_ffi_api.StructuralVisitorDefRegionKind(self))

    def with_def_region_kind(self, kind: DefRegionKind, callback: Callable[[], Any]) -> Any:
        """Call `callback` while `kind` is the current kind, and return its result."""
        return _ffi_api.StructuralVisitorWithDefRegionKind(self, int(kind), callback)


@register_object("ffi.StructuralMutator")
class StructuralMutator(core.Object):
    """The mutation that calls a callback or a ``__s_mutate__`` hook, which mutates parts by it."""

    def mutate(self, value: Any) -> Any:
        """Return what a part of the value becomes."""
        return _ffi_api.StructuralMutatorMutate(self, value)

    def default_mutate(self, value: Any) -> Any:
        """Return the value with its parts mutated."""
        return _ffi_api.StructuralMutatorDefaultMutate(self, value)

    def var_remap_get(self, var: Any) -> Any:
        """Return what was recorded for a variable, or None."""
        return _ffi_api.StructuralMutatorVarRemapGet(self, var)

    def var_remap_set(self, var: Any, mapped_value: Any) -> None:
        """Record what a variable becomes from here on."""
        _ffi_api.StructuralMutatorVarRemapSet(self, var, mapped_value)

    def def_region_kind(self) -> DefRegionKind:
        """Return whether variables are being defined here."""
        return DefRegionKind(_ffi_api.StructuralMutatorDefRegionKind(self))

    def with_def_region_kind(self, kind: DefRegionKind, callback: Callable[[], Any]) -> Any:
        """Call `callback` while `kind` is the current kind, and return its result."""
        return _ffi_api.StructuralMutatorWithDefRegionKind(self, int(kind), callback)


# ---- walks --------------------------------------------------------------------------------------

_ORDERS = {"pre": WalkOrder.PREORDER, "post": WalkOrder.POSTORDER}


def structural_walk(
    root: Any,
    callbacks: Any = (),
    with_def_region_kind: Any = (),
    order: str | WalkOrder = "post",
) -> VisitInterrupt | None:
    """Call callbacks for a value and everything in it; of maps the values, not the keys.

    `callbacks` is a callable for every value, a pair ``(type, callback)``, a pair of several types
    ``((type, ...), callback)``, or a sequence of pairs, of which the first that fits is called.
    Those in `with_def_region_kind` also get a `DefRegionKind`. A callback returns None or a
    `WalkResult` to go on, a `VisitInterrupt` to stop.

    >>> import tvm_ffi
    >>> seen = []
    >>> tvm_ffi.structural_walk([1, [2, "x"]], (int, seen.append))
    >>> seen
    [1, 2]
    """
    chosen = _order_of("walk", order)
    plain = _callback_entries("structural_walk", callbacks)
    with_kind = _entries_with_kind("structural_walk", with_def_region_kind)
    return _ffi_api.StructuralWalk(root, plain, with_kind, chosen)


def structural_visit(root: Any, callbacks: Any = ()) -> VisitInterrupt | None:
    """Visit a value by callbacks ``(value, visitor)``, which own the descent.

    A callback that does not visit the parts of its value leaves them out. The parts of a value that
    no callback takes are visited. The forms of `callbacks` are those of `structural_walk`.

    >>> import tvm_ffi
    >>> seen = []
    >>> tvm_ffi.structural_visit([1, [2, "x"]], (int, lambda value, visitor: seen.append(value)))
    >>> seen
    [1, 2]
    """
    return _ffi_api.StructuralVisit(root, _callback_entries("structural_visit", callbacks))


def structural_map(
    root: Any,
    callbacks: Any = (),
    with_def_region_kind: Any = (),
    order: str | WalkOrder = "post",
) -> Any:
    """Return a value with its parts replaced by what callbacks make of them.

    In post-order a callback sees a value whose parts are replaced already; in pre-order it comes
    first, and the parts of its result are next. A callback that returns None replaces by None.
    What does not change is shared. The forms of `callbacks` are those of `structural_walk`. A root
    that is given as ``root._move()`` may be changed in place.

    >>> import tvm_ffi
    >>> tvm_ffi.structural_map([1, [2, "x"]], (int, lambda value: value + 1))
    (2, (3, "x"))
    """
    chosen = _order_of("map", order)
    plain = _callback_entries("structural_map", callbacks)
    with_kind = _entries_with_kind("structural_map", with_def_region_kind)
    return _ffi_api.StructuralMap(root, plain, with_kind, chosen)


def structural_mutate(root: Any, callbacks: Any = ()) -> Any:
    """Return a value as callbacks ``(value, mutator)`` rebuild it, which own the descent.

    A callback that can take a third argument gets the `InplaceMode` as an int. The parts of a value
    that no callback takes are mutated. The forms of `callbacks` are those of `structural_walk`. A
    root that is given as ``root._move()`` may be changed in place.

    >>> import tvm_ffi
    >>> tvm_ffi.structural_mutate([1, [2, "x"]], (int, lambda value, mutator: -value))
    (-1, (-2, "x"))
    """
    entries = _callback_entries("structural_mutate", callbacks)
    return _ffi_api.StructuralMutate(root, [(i, f, _takes_mode(f)) for i, f in entries])


def _order_of(what: str, order: str | WalkOrder) -> int:
    chosen = _ORDERS.get(order, order) if isinstance(order, str) else order
    if not isinstance(chosen, WalkOrder):
        raise ValueError(f"Unknown structural {what} order: {order!r}")
    return int(chosen)


def _takes_mode(callback: Any) -> bool:
    import inspect  # slow to import

    try:
        signature = inspect.signature(callback)
    except (TypeError, ValueError):
        return False
    for count in (3, 2):  # a callback that can take the mode gets it
        try:
            signature.bind(*range(count))
        except TypeError:
            continue
        return count == 3
    raise TypeError(
        "structural_mutate callback must accept (value, mutator) or (value, mutator, inplace_mode)"
    )


def _entries_with_kind(name: str, callbacks: Any) -> list[tuple[int, Any]]:
    return [(index, _with_kind(f)) for index, f in _callback_entries(name, callbacks)]


def _with_kind(callback: Callable[[Any, DefRegionKind], Any]) -> Callable[[Any, int], Any]:
    def call(value: Any, kind: int) -> Any:
        return callback(value, DefRegionKind(kind))

    return call


def _callback_entries(name: str, callbacks: Any) -> list[tuple[int, Any]]:
    if callable(callbacks):
        return [(-1, callbacks)]
    if _is_entry(callbacks):
        return _entries_of(name, callbacks)
    is_mapping = hasattr(type(callbacks), "keys")
    if (
        isinstance(callbacks, (str, bytes))
        or is_mapping
        or not hasattr(type(callbacks), "__getitem__")
    ):
        raise TypeError(
            f"{name} callbacks must be callbacks, (type, callback) entries, "
            "((type1, type2, ...), callback) entries, or sequences of tuple entries"
        )
    entries = []
    for item in callbacks:
        if not _is_entry(item):
            raise TypeError(f"{name} callbacks within a sequence must be (type, callback) tuples")
        entries += _entries_of(name, item)
    return entries


def _is_entry(item: Any) -> bool:
    # A tuple of two pairs is a sequence of entries: its second item cannot be called.
    return isinstance(item, tuple) and len(item) == 2 and callable(item[1])


def _entries_of(name: str, item: tuple[Any, Any]) -> list[tuple[int, Any]]:
    accepted, callback = item
    kinds: Sequence[Any] = accepted if isinstance(accepted, tuple) else (accepted,)
    return [(index, callback) for kind in kinds for index in _type_indices(name, kind)]


# What a Python type has besides its first type index: short text is stored inside the value, and an
# integer beyond 64 bits is an object.
_OTHER_INDEX = {
    core._abi.kTVMFFIStr: core._abi.kTVMFFISmallStr,
    core._abi.kTVMFFIBytes: core._abi.kTVMFFISmallBytes,
    core._abi.kTVMFFIInt: core._abi.kTVMFFIBigInt,
}


def _type_indices(name: str, kind: Any) -> list[int]:
    if kind is object:
        return [-1]
    try:
        schema = core.TypeSchema.from_annotation(kind)
    except TypeError as error:
        raise TypeError(
            f"{name} callback type must be a supported builtin, typing.Any/object, "
            "or an FFI-registered object class"
        ) from error
    if schema.origin == "Any":
        return [-1]
    if schema.origin_type_index < 0:
        raise TypeError(
            f"{name} callback type_index is negative, the only acceptable negative type_index is "
            "-1 for Any"
        )
    index = schema.origin_type_index
    return [index, _OTHER_INDEX[index]] if index in _OTHER_INDEX else [index]
