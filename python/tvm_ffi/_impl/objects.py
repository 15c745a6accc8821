# SPDX-License-Identifier: Apache-2.0
"""The class `Object`: its metaclass, its text, how it is pickled, and what converts to one.

>>> from tvm_ffi import core
>>> core._type_cls_to_type_info(core.Object).type_key
'ffi.Object'
"""

from __future__ import annotations

import sys
from abc import ABCMeta

TYPE_CHECKING = False  # typing costs a third of the import time, and only checkers need it
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

# Half initialised at this point: its C types and functions exist.
core: Any = sys.modules["tvm_ffi.core"]


class _ObjectSlotsMeta(ABCMeta):
    """Gives every class without ``__slots__`` empty ones: wrappers carry state only on request.

    >>> from tvm_ffi.core import Object
    >>> class Plain(Object): ...
    >>> Plain.__slots__
    ()
    """

    def __new__(
        mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **kwargs: Any
    ) -> _ObjectSlotsMeta:
        slots = namespace.get("__slots__", ())
        if isinstance(slots, str):
            slots = (slots,)
        elif not isinstance(slots, (tuple, list, dict)):
            slots = tuple(slots)
        # The base class has room for weak references already, and CPython refuses a second one.
        if "__weakref__" in slots and any(base.__weakrefoffset__ for base in bases):
            slots = tuple(slot for slot in slots if slot != "__weakref__")
        namespace["__slots__"] = slots
        cls = super().__new__(mcls, name, bases, namespace, **kwargs)
        core._use_general_setattr(cls)
        return cls


class Object(core.CObject, metaclass=_ObjectSlotsMeta):
    """Base of all registered classes: the one Python object that stands for a C++ object.

    Instances have no ``__dict__``; a subclass that needs one has ``__slots__ = ("__dict__",)``, and
    what is stored there stays with the C++ object for as long as that object lives.

    >>> import tvm_ffi
    >>> inner = tvm_ffi.Array([1])
    >>> outer = tvm_ffi.Array([inner])
    >>> outer[0] is inner
    True
    """

    __slots__ = ()

    def _move(self) -> Any:
        """Offer the object to the callee, which may take it; this wrapper is empty afterwards."""
        return core.ObjectRValueRef(self)


# The two objects that mark a missing value and the start of keyword arguments are instances of
# `Object`; the modules that are imported next use them.
core._set_class_of_index(core._abi.kTVMFFIObject, Object)
core._make_sentinels()


def required_function(name: str) -> Any:
    """Return a global function of the optional part of the library."""
    function = core._get_global_func(name, True)
    if function is None:
        raise RuntimeError(f"{name} is not registered, make sure build project with extra API")
    return function


def _object_getstate(self: Any) -> dict[str, str | None]:
    """Return the JSON graph of the object, the state that pickle stores."""
    if self.__chandle__() == 0:
        return {"handle": None}
    return {"handle": str(required_function("ffi.ToJSONGraphString")(self, None))}


def _object_setstate(self: Any, state: Mapping[str, str | None]) -> None:
    """Rebuild the object from the state that `__getstate__` gave."""
    if not isinstance(state, dict) or "handle" not in state:
        raise TypeError(
            f"cannot restore {type(self).__name__}: the state is not a dict with the key 'handle'"
        )
    text = state["handle"]
    if text is None:
        return
    if not isinstance(text, str):
        kind = type(text).__name__
        raise TypeError(f"cannot restore {type(self).__name__}: 'handle' must be str, not {kind}")
    self.__init_handle_by_constructor__(required_function("ffi.FromJSONGraphString"), text)


def _object_reduce(self: Any) -> tuple[Callable[..., Any], tuple[type], dict[str, str | None]]:
    if self.__chandle__() == 0:
        required_function("ffi.ToJSONGraphString")(self, None)  # raises: there is no object
    return (_new_object, (type(self),), self.__getstate__())


def _new_object(cls: type) -> Any:
    """Make an empty instance of `cls`, to be filled by ``__setstate__``."""
    return cls.__new__(cls)  # type: ignore[call-overload]


def object_repr(obj: Any) -> str:
    """Return the text of an object as its type prints it; never raises.

    >>> import tvm_ffi
    >>> tvm_ffi.core.object_repr(tvm_ffi.Array([1, 2]))
    '(1, 2)'
    """
    name = type(obj).__name__
    handle = obj.__chandle__()
    if handle == 0:
        return f"{name}(chandle=None)"
    try:
        return str(core._get_global_func("ffi.ReprPrint", False)(obj))
    except Exception:
        return f"{name}({handle})"


class ObjectConvertible:
    """Something that is not an FFI object but can make one when it is passed to a function.

    >>> import tvm_ffi
    >>> class Pair(tvm_ffi.ObjectConvertible):
    ...     def asobject(self):
    ...         return tvm_ffi.Array([1, 2])
    >>> tvm_ffi.convert(Pair())
    (1, 2)
    """

    __slots__ = ()

    def asobject(self) -> Any:
        """Return the FFI object that stands for this value."""
        raise NotImplementedError(f"{type(self).__name__} does not define asobject()")


def _set_class_object(cls: type) -> None:
    """Choose the class of the objects that native values keep beside them."""
    core._CLASS_OBJECT = cls


EXPORTS = (
    "Object",
    "ObjectConvertible",
    "_ObjectSlotsMeta",
    "_new_object",
    "_set_class_object",
    "object_repr",
)


def install() -> None:
    """Complete the base class of all wrappers, which is written in C++."""
    core._CLASS_OBJECT = Object
    core.CObject.__getstate__ = _object_getstate
    core.CObject.__setstate__ = _object_setstate
    core.CObject.__reduce__ = _object_reduce
