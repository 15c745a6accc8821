# SPDX-License-Identifier: Apache-2.0
"""Places inside a value: which attribute, item or key leads from the root to them.

>>> from tvm_ffi.access_path import AccessPath
>>> path = AccessPath.root().attr("body").array_item(2)
>>> path
<root>.body[2]
>>> AccessPath.root().attr("body").is_prefix_of(path)
True
"""

from __future__ import annotations

from enum import IntEnum

from .core import Object
from .registry import register_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = ["AccessKind", "AccessPath", "AccessStep", "Object", "register_object"]


class AccessKind(IntEnum):
    """The kind of a step.

    >>> from tvm_ffi.access_path import AccessKind
    >>> AccessKind.MAP_ITEM == 2
    True
    """

    ATTR = 0
    ARRAY_ITEM = 1
    MAP_ITEM = 2
    ATTR_MISSING = 3
    ARRAY_ITEM_MISSING = 4
    MAP_ITEM_MISSING = 5


@register_object("ffi.reflection.AccessStep")
class AccessStep(Object):
    """One step of a path: its kind, and the name, position or key.

    >>> from tvm_ffi.access_path import AccessPath
    >>> step = AccessPath.root().array_item(3).step
    >>> step.kind, step.key
    (1, 3)
    """

    kind: AccessKind
    key: Any


@register_object("ffi.reflection.AccessPath")
class AccessPath(Object):
    """A path from the root of a value; paths that share a beginning share its objects.

    >>> from tvm_ffi.access_path import AccessPath
    >>> AccessPath.root().map_item("k") == AccessPath.root().map_item("k")
    True
    """

    parent: AccessPath | None
    step: AccessStep | None
    depth: int

    if TYPE_CHECKING:  # methods of the C++ type

        def __getattr__(self, name: str) -> Any: ...

    def __init__(self) -> None:
        raise ValueError(
            "AccessPath can't be initialized directly. "
            "Use AccessPath.root() to create a path to the root object"
        )

    @staticmethod
    def root() -> AccessPath:
        """Return the path to the value itself."""
        return AccessPath._root()  # type: ignore[attr-defined]

    def attr(self, attr_key: str) -> AccessPath:
        """Return the path to the attribute `attr_key` of the value at this path."""
        return self._attr(attr_key)

    def attr_missing(self, attr_key: str) -> AccessPath:
        """Return the path to an attribute that is not there."""
        return self._attr_missing(attr_key)

    def array_item(self, index: int) -> AccessPath:
        """Return the path to an item of a sequence."""
        return self._array_item(index)

    def array_item_missing(self, index: int) -> AccessPath:
        """Return the path to an item beyond the end of a sequence."""
        return self._array_item_missing(index)

    def map_item(self, key: Any) -> AccessPath:
        """Return the path to the value of a key."""
        return self._map_item(key)

    def map_item_missing(self, key: Any) -> AccessPath:
        """Return the path to a key that is not there."""
        return self._map_item_missing(key)

    def is_prefix_of(self, other: AccessPath) -> bool:
        """Say whether `other` begins with this path."""
        return self._is_prefix_of(other)

    def to_steps(self) -> Sequence[AccessStep]:
        """Return the steps from the root on; none for the root itself."""
        return self._to_steps()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AccessPath) and self._path_equal(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = Object.__hash__
