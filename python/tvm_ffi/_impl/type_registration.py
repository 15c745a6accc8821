# SPDX-License-Identifier: Apache-2.0
"""Which class stands for which type, and types that are defined in Python.

>>> import tvm_ffi
>>> tvm_ffi.core._class_of_index(tvm_ffi.core._abi.kTVMFFIArray).__name__
'Array'
"""

from __future__ import annotations

import sys

from .type_info import (
    TypeInfo,
    build_info,
    cls_to_info,
    index_to_info,
    key_to_info,
    python_indices,
    store_info,
)

TYPE_CHECKING = False  # typing costs a third of the import time, and only checkers need it
if TYPE_CHECKING:
    from typing import Any

# Half initialised at this point: its C types and functions exist.
core: Any = sys.modules["tvm_ffi.core"]


def _bind_class(info: TypeInfo, type_cls: type, is_prepared: bool = False) -> None:
    info.type_cls = type_cls
    cls_to_info[type_cls] = info
    # A class that is not a wrapper cannot stand for an object; objects get a fallback class.
    if issubclass(type_cls, core.CObject):
        is_python_defined = info.type_index in python_indices
        core._set_class_of_index(info.type_index, type_cls, is_python_defined, is_prepared)


def _describe_class(type_index: int, type_cls: type) -> TypeInfo:
    """Describe a type for a class that is to stand for it, and prepare the class.

    Attributes are added to the class between this and `_publish_class`.
    """
    if not isinstance(type_cls, type):
        raise TypeError(f"expected a class, got {type(type_cls).__name__}")
    info = build_info(type_index, type_cls)
    core._prepare_class(type_index, type_cls, type_index in python_indices)
    return info


def _publish_class(info: TypeInfo, type_cls: type) -> None:
    """Make `type_cls` the class of its type; wrappers that exist keep the class they have.

    From now on other threads get objects of the class, so it is complete.
    """
    _bind_class(store_info(info), type_cls, is_prepared=True)


def _register_object_by_index(type_index: int, type_cls: type) -> TypeInfo:
    """Make `type_cls` the class of a type index, as it is."""
    info = _describe_class(type_index, type_cls)
    _publish_class(info, type_cls)
    return info


def _set_type_cls(type_info: TypeInfo, type_cls: type) -> None:
    """Bind a class to an info that has none yet."""
    assert type_info.type_cls is None, f"{type_info.type_key} already has a class"
    assert index_to_info.get(type_info.type_index) is type_info, f"stale info: {type_info!r}"
    _bind_class(type_info, type_cls)


def _reload_hint(type_key: str, type_cls: type) -> str:
    """Say more where a class of the same name has the key: its module is executed again."""
    info = key_to_info.get(type_key)
    before = info.type_cls if info is not None else None
    names = [(c.__module__, c.__qualname__) for c in (before, type_cls) if c is not None]
    if len(names) < 2 or names[0] != names[1]:
        return ""
    return (
        f" by an earlier definition of {type_cls.__module__}.{type_cls.__qualname__}. A type is "
        "defined once in a process: its module cannot be reloaded, nor can its definition be "
        "executed again"
    )


def _register_py_class(parent_type_info: TypeInfo, type_key: str, type_cls: type) -> TypeInfo:
    """Give a class defined in Python a type index of its own, below `parent_type_info`."""
    known = core._object_type_key_to_index(type_key)
    if not type_key or "\0" in type_key:
        raise ValueError(
            f"{type_cls.__name__} cannot have the type key {type_key!r}: "
            "a key is not empty and has no NUL"
        )
    if type_key in key_to_info or (known is not None and known not in python_indices):
        message = f"Type key '{type_key}' is already registered"
        raise ValueError(message + _reload_hint(type_key, type_cls))
    ancestors = [*parent_type_info.type_ancestors, parent_type_info.type_index]
    type_index = core._get_or_alloc_type_index(
        type_key, len(ancestors), parent_type_info.type_index
    )
    raw = core._raw_type_info(type_index)
    if list(raw["type_ancestors"]) != ancestors or raw["fields"]:
        raise ValueError(
            f"Type key '{type_key}' belongs to a class that failed after its type was made, "
            "with another parent or with fields; choose another key"
        )
    python_indices.add(type_index)
    info = TypeInfo(
        type_cls=type_cls,
        type_index=type_index,
        type_key=type_key,
        type_ancestors=ancestors,
        fields=None,
        methods=[],
        parent_type_info=parent_type_info,
    )
    store_info(info)
    _bind_class(info, type_cls)
    return info


def _is_python_defined(type_index: int) -> bool:
    """Whether a type was made by a class in Python, even one that failed later."""
    return type_index in python_indices


def _restore_info(type_info: TypeInfo, replaced_cls: type) -> None:
    """Make an earlier class the class of its type again, after another one failed."""
    cls_to_info.pop(replaced_cls, None)
    store_info(type_info)
    if type_info.type_cls is not None:
        _bind_class(type_info, type_info.type_cls)
    else:
        core._set_class_of_index(type_info.type_index, None)


def _rollback_py_class(type_info: TypeInfo) -> None:
    """Forget a class whose registration failed; the type index stays used up."""
    index_to_info.pop(type_info.type_index, None)
    key_to_info.pop(type_info.type_key, None)
    if type_info.type_cls is not None:
        cls_to_info.pop(type_info.type_cls, None)
        # Without fields the type never had an object, so no code has looked up its class.
        core._set_class_of_index(type_info.type_index, None, type_info.fields is None)


def _forget_class(type_cls: type, before: TypeInfo | None) -> None:
    """Undo the registration of a class; `before` is what Python knew about the type."""
    info = cls_to_info[type_cls]
    if before is not None:
        _restore_info(before, type_cls)
    else:
        _rollback_py_class(info)
    if "__tvm_ffi_type_info__" in type_cls.__dict__:
        del type_cls.__tvm_ffi_type_info__  # type: ignore[attr-defined]


def _lookup_type_attr(type_index: int, attr_key: str, ancestor: bool = False) -> Any:
    """Return the type attribute, of the type itself or (`ancestor`) of the nearest ancestor."""
    value = core._get_type_attr(type_index, attr_key)
    if value is not None or not ancestor:
        return value
    raw = core._raw_type_info(type_index)
    for parent in reversed(raw["type_ancestors"] if raw is not None else ()):
        value = core._get_type_attr(parent, attr_key)
        if value is not None:
            return value
    return None


EXPORTS = (
    "_describe_class",
    "_forget_class",
    "_is_python_defined",
    "_lookup_type_attr",
    "_publish_class",
    "_register_object_by_index",
    "_register_py_class",
    "_restore_info",
    "_rollback_py_class",
    "_set_type_cls",
)
