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
    from collections.abc import Mapping
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
        core._choose_setattr(cls)
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


def is_bare(cls: type) -> bool:
    """Whether instances of a class have no room for anything that Python puts there."""
    return cls.__dictoffset__ == 0 and cls.__basicsize__ == core.CObject.__basicsize__


def _python_state(obj: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what Python keeps at an object: its ``__dict__`` and its slots."""
    cls = type(obj)
    if is_bare(cls):
        return {}, {}  # nearly always
    import copyreg

    slots = {}
    for name in copyreg._slotnames(cls):  # type: ignore[attr-defined]
        try:
            slots[name] = object.__getattribute__(obj, name)
        except AttributeError:
            continue
    return dict(getattr(obj, "__dict__", ())), slots


def _restore_python_state(obj: Any, attributes: dict[str, Any], slots: dict[str, Any]) -> None:
    if attributes:
        obj.__dict__.update(attributes)
    for name, value in slots.items():
        object.__setattr__(obj, name, value)


def _object_getstate(self: Any) -> dict[str, Any]:
    """Return the object and what Python keeps at it, the state of a pickle.

    The object is JSON text; in a pickle it is the object itself, with all that it shares.
    """
    if self.__chandle__() == 0:
        return {"handle": None}
    from ..travel import handle_of

    state: dict[str, Any] = {"handle": handle_of(self)}
    attributes, slots = _python_state(self)
    if attributes:
        state["dict"] = attributes
    if slots:
        state["slots"] = slots
    return state


def json_graph(obj: Any) -> str:
    """Return the JSON form of an object."""
    try:
        return str(required_function("ffi.ToJSONGraphString")(obj, None))
    except TypeError as error:
        reason = str(error).replace("`ffi.OpaquePyObject`", "`object` (a Python object)")
        raise TypeError(f"cannot pickle `{type(obj).__name__}` object: {reason}") from None


def _object_setstate(self: Any, state: Mapping[str, Any]) -> None:
    """Rebuild the object from the state that `__getstate__` gave."""
    if not isinstance(state, dict) or "handle" not in state:
        raise TypeError(
            f"cannot restore {type(self).__name__}: the state is not a dict with the key 'handle'"
        )
    handle = state["handle"]
    if handle is None:
        return
    if isinstance(handle, str):
        handle = required_function("ffi.FromJSONGraphString")(_json_text(handle))
    elif hasattr(handle, "take"):  # of a pickle
        handle = handle.take(self)
    if not isinstance(handle, core.CObject):
        kind = type(handle).__name__
        raise TypeError(f"cannot restore {type(self).__name__}: 'handle' must not be {kind}")
    check_class(type(self), handle)
    if not self.same_as(handle):
        self.__move_handle_from__(handle)
    _restore_python_state(self, state.get("dict", {}), state.get("slots", {}))


def _json_text(handle: str) -> str:
    if not handle:
        json_graph(getattr(handle, "obj", None))  # says why there is no text
    return str(handle)


def type_index_of(obj: Any) -> int:
    """Return the type of the C++ object, which may be below that of its wrapper's class."""
    return core.TypeSchema("Any").convert(obj).type_index


def check_class(cls: type, obj: Any) -> None:
    """Raise if instances of a class cannot stand for an object."""
    expected = getattr(cls, "__tvm_ffi_type_info__", None)
    index = type_index_of(obj)
    info = core._type_index_to_type_info(index)
    if expected is None or info is None:
        return
    if expected.type_index != index and expected.type_index not in info.type_ancestors:
        raise TypeError(
            f"the class `{cls.__module__}.{cls.__qualname__}` is for type `{expected.type_key}`, "
            f"not `{info.type_key}`"
        )


def _object_reduce(self: Any) -> tuple[Any, ...]:
    if self.__chandle__() == 0:
        required_function("ffi.ToJSONGraphString")(self, None)  # raises: there is no object
    state = self.__getstate__()
    if state is None:  # the class has nothing to add
        return (_new_filled, (type(self), _object_getstate(self)["handle"]))
    return (_new_object, (type(self),), state)


def _object_reduce_ex(self: Any, protocol: Any) -> Any:
    """Return what a pickle holds: the binary graph, or what the class says about itself."""
    if self.__chandle__() == 0 or type(self).__reduce__ not in (
        core.CObject.__reduce__,
        core.Error.__reduce__,
    ):
        return self.__reduce__()
    from ..travel import reduce

    return reduce(self)


def as_copy_of(original: Any, copied: Any, memo: dict[int, Any] | None = None) -> Any:
    """Give a copied object the class and the Python state of the original.

    With `memo`, that of `copy.deepcopy`, the state is copied deeply.
    """
    if copied is original:  # of a member of an enum
        return copied
    cls = type(original)
    attributes, slots = _python_state(original)
    if type(copied) is not cls:
        made = _new_object(cls)
        made.__move_handle_from__(copied)
        copied = made
    if attributes or slots:
        if memo is not None:
            from copy import deepcopy

            memo[id(original)] = copied
            attributes, slots = deepcopy(attributes, memo), deepcopy(slots, memo)
        _restore_python_state(copied, attributes, slots)
    return copied


def mark_generated(method: Any) -> Any:
    """Mark a method as one of this package: a user's method is respected, another replaces it."""
    method._is_generated = True
    return method


def is_generated(method: Any) -> bool:
    """Whether nobody wrote a method but this package."""
    return getattr(method, "_is_generated", False)


def reduces_itself(obj: Any) -> bool:
    """Whether a user's class says how its instances are reduced: copies respect that."""
    cls = type(obj)
    return not is_generated(cls.__reduce__) or cls.__reduce_ex__ is not core.CObject.__reduce_ex__


def copy_by_reduce(obj: Any, memo: dict[int, Any] | None = None) -> Any:
    """Copy as the module `copy` does where there is no ``__copy__``; with `memo`, deeply."""
    from copy import _reconstruct  # type: ignore[attr-defined]

    reduced = obj.__reduce_ex__(4)
    return obj if isinstance(reduced, str) else _reconstruct(obj, memo, *reduced)


def _shallow_copy_function(obj: Any) -> Any:
    if obj.__chandle__() == 0:
        core._get_global_func("ffi.DeepCopy", False)(obj)  # raises: there is no object
    function = core._get_type_attr(type_index_of(obj), "__ffi_shallow_copy__")
    if function is not None:
        function.release_gil = False  # it reads fields that other threads may set
    return function


def _object_copy(self: Any) -> Any:
    """Return a copy that shares what the object refers to."""
    if reduces_itself(self):
        return copy_by_reduce(self)
    shallow_copy = _shallow_copy_function(self)
    if shallow_copy is None:
        raise TypeError(
            f"Type `{type(self).__name__}` does not support copy. "
            "The underlying C++ type is not copy-constructible."
        )
    return as_copy_of(self, shallow_copy(self))


def _object_deepcopy(self: Any, memo: dict[int, Any] | None = None) -> Any:
    """Return a copy of the object and of everything that it refers to."""
    from .._dunder import deep_copy

    if reduces_itself(self):
        return copy_by_reduce(self, {} if memo is None else memo)
    if _shallow_copy_function(self) is not None:
        return as_copy_of(self, deep_copy(self, memo), {} if memo is None else memo)
    # Fields may do where there is no copy constructor.
    copied = _new_filled(type(self), json_graph(self))
    return as_copy_of(self, copied, {} if memo is None else memo)


def _new_object(cls: type) -> Any:
    """Make an empty instance of `cls`, to be filled by ``__setstate__``."""
    return cls.__new__(cls)  # type: ignore[call-overload]


def _new_filled(cls: type, handle: Any) -> Any:
    """Make an instance of `cls` from what ``__getstate__`` gives for its object."""
    made = _new_object(cls)
    _object_setstate(made, {"handle": handle})
    return made


def object_repr(obj: Any) -> str:
    """Return the text of an object as its type prints it, or its class and address if that fails.

    Out of memory or of stack, it raises: that says nothing about the object.

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
    except (MemoryError, RecursionError):
        raise
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
    core.CObject.__reduce__ = mark_generated(_object_reduce)
    core.CObject.__reduce_ex__ = _object_reduce_ex
    Object.__copy__ = mark_generated(_object_copy)  # type: ignore[attr-defined]
    Object.__deepcopy__ = mark_generated(_object_deepcopy)  # type: ignore[attr-defined]
