# SPDX-License-Identifier: Apache-2.0
"""Equality, hashes and walks by structure: what a value contains, not which object it is.

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
    "StructuralKey",
    "StructuralVisitor",
    "VisitInterrupt",
    "WalkOrder",
    "WalkResult",
    "get_first_structural_mismatch",
    "structural_equal",
    "structural_hash",
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
    """Whether the variables found here are being defined."""

    NONE = core._abi.kTVMFFIDefRegionKindNone
    DEF_RECURSIVE = core._abi.kTVMFFIDefRegionKindRecursive
    DEF_NON_RECURSIVE = core._abi.kTVMFFIDefRegionKindNonRecursive


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
    """The walk that calls a ``__s_visit__`` hook; hooks pass the parts of a value to `visit`."""

    def visit(self, value: Any) -> VisitInterrupt | None:
        """Walk a part of the value being visited."""
        return _ffi_api.StructuralVisitorVisit(self, value)

    def def_region_kind(self) -> DefRegionKind:
        """Return whether variables are being defined here."""
        return DefRegionKind(_ffi_api.StructuralVisitorDefRegionKind(self))

    def with_def_region_kind(self, kind: DefRegionKind, callback: Callable[[], Any]) -> Any:
        """Call `callback` while `kind` is the current kind, and return its result."""
        return _ffi_api.StructuralVisitorWithDefRegionKind(self, int(kind), callback)


# ---- walks --------------------------------------------------------------------------------------

_ORDERS = {"pre": WalkOrder.PREORDER, "post": WalkOrder.POSTORDER}


def structural_walk(
    root: Any,
    callbacks: Any = (),
    with_def_region_kind: Any = (),
    order: str | WalkOrder = "pre",
) -> VisitInterrupt | None:
    """Call callbacks for a value and everything in it.

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
    chosen = _ORDERS.get(order, order) if isinstance(order, str) else order
    if not isinstance(chosen, WalkOrder):
        raise ValueError(f"Unknown structural walk order: {order!r}")
    plain = _callback_entries(callbacks)
    with_kind = [(index, _with_kind(f)) for index, f in _callback_entries(with_def_region_kind)]
    return _ffi_api.StructuralWalk(root, plain, with_kind, int(chosen))


def _with_kind(callback: Callable[[Any, DefRegionKind], Any]) -> Callable[[Any, int], Any]:
    def call(value: Any, kind: int) -> Any:
        return callback(value, DefRegionKind(kind))

    return call


def _callback_entries(callbacks: Any) -> list[tuple[int, Any]]:
    if callable(callbacks):
        return [(-1, callbacks)]
    if _is_entry(callbacks):
        return _entries_of(callbacks)
    if isinstance(callbacks, (str, bytes)) or not hasattr(type(callbacks), "__getitem__"):
        raise TypeError(
            "structural_walk callbacks must be callbacks, (type, callback) entries, "
            "((type1, type2, ...), callback) entries, or sequences of tuple entries"
        )
    entries = []
    for item in callbacks:
        if not _is_entry(item):
            raise TypeError(
                "structural_walk callbacks within a sequence must be (type, callback) tuples"
            )
        entries += _entries_of(item)
    return entries


def _is_entry(item: Any) -> bool:
    # A tuple of two pairs is a sequence of entries: its second item cannot be called.
    return isinstance(item, tuple) and len(item) == 2 and callable(item[1])


def _entries_of(item: tuple[Any, Any]) -> list[tuple[int, Any]]:
    accepted, callback = item
    kinds: Sequence[Any] = accepted if isinstance(accepted, tuple) else (accepted,)
    return [(index, callback) for kind in kinds for index in _type_indices(kind)]


# Short text is stored inside the value and has a type index of its own.
_SMALL = {
    core._abi.kTVMFFIStr: core._abi.kTVMFFISmallStr,
    core._abi.kTVMFFIBytes: core._abi.kTVMFFISmallBytes,
}


def _type_indices(kind: Any) -> list[int]:
    if kind is object:
        return [-1]
    try:
        schema = core.TypeSchema.from_annotation(kind)
    except TypeError as error:
        raise TypeError(
            "structural_walk callback type must be a supported builtin, typing.Any/object, "
            "or an FFI-registered object class"
        ) from error
    if schema.origin == "Any":
        return [-1]
    if schema.origin_type_index < 0:
        raise TypeError(
            "structural_walk callback type_index is negative, which has no values of its own: "
            f"{schema!r}"
        )
    index = schema.origin_type_index
    return [index, _SMALL[index]] if index in _SMALL else [index]
