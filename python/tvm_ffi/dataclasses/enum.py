# SPDX-License-Identifier: Apache-2.0
"""Enums as FFI objects: one shared object per member, the same in Python and in C++.

>>> from tvm_ffi.dataclasses import Enum, IntEnum, entry
>>> class Color(Enum, type_key="doc.enum.Color"):
...     red = entry()
...     green = entry()
>>> Color.red, Color.get(1) is Color.green, len(Color)
(doc.enum.Color.red, True, 2)
>>> class Level(IntEnum, type_key="doc.enum.Level"):
...     low = 10
...     high = 20
>>> Level(20) is Level.high, Level.high == 20
(True, True)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from .. import core
from .._impl.objects import mark_generated
from ..container import Dict, List
from ..core import MISSING, Object
from ._resolve_fields import is_class_var
from .c_class import c_class
from .field import _evaluated_annotations
from .py_class import py_class

__all__ = [
    "ENUM_STATE_ATTR",
    "Enum",
    "EnumAttrMap",
    "EnumState",
    "IntEnum",
    "StrEnum",
    "auto",
    "entry",
]

_E = TypeVar("_E", bound="Enum")

# Type attribute that holds the members of an enum.
ENUM_STATE_ATTR = "__ffi_enum__"
_INT64 = range(-(2**63), 2**63)


@c_class("ffi.EnumState")
class EnumState(Object):
    """The members of one enum, shared by all languages.

    >>> from tvm_ffi.dataclasses import EnumState
    >>> list(EnumState().entries)
    []
    """

    entries: List[Any]
    indexes: Dict[Any, Any]
    attrs: Dict[str, Any]


class _EnumEntry:
    """A member as the class body declares it."""

    __slots__ = ("args", "kwargs")

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.args = args
        self.kwargs = kwargs

    def __repr__(self) -> str:
        shown = [repr(arg) for arg in self.args]
        shown += [f"{name}={value!r}" for name, value in self.kwargs.items()]
        return f"entry({', '.join(shown)})"


def entry(*args: Any, **kwargs: Any) -> Any:
    """Declare a member of an enum and give the values of its fields.

    >>> from tvm_ffi.dataclasses import Enum, entry
    >>> class Planet(Enum, type_key="doc.entry.Planet"):
    ...     radius: float
    ...     earth = entry(radius=6371.0)
    >>> Planet.earth.radius
    6371.0
    """
    return _EnumEntry(args, kwargs)


def auto() -> Any:
    """Declare a member of an enum without fields.

    >>> from tvm_ffi.dataclasses import auto
    >>> auto()
    entry()
    """
    return _EnumEntry((), {})


# ---- members of a class -------------------------------------------------------------------------


def _find_state(cls: Any) -> Any:
    info = vars(cls).get("__tvm_ffi_type_info__")
    if info is None:
        return None
    state = core._lookup_type_attr(info.type_index, ENUM_STATE_ATTR)
    return _state_of_old_client(info.type_index) if state is None else state


def _state_of_old_client(type_index: int) -> Any:
    """Take over members that a client of 0.1.11 or 0.1.12 registered, by name and nothing else."""
    members = core._lookup_type_attr(type_index, "__ffi_enum_entries__")
    if members is None:
        return None
    state = EnumState()  # type: ignore[call-arg]
    for name, member in members.items():
        state.entries.append(member)
        state.indexes[str(name)] = state.indexes[member._int_index] = member
    core._register_type_attr(type_index, ENUM_STATE_ATTR, state)
    return state


def _make_state(cls: Any) -> Any:
    state = _find_state(cls)
    if state is None:
        state = EnumState()  # type: ignore[call-arg]
        core._register_type_attr(cls.__tvm_ffi_type_info__.type_index, ENUM_STATE_ATTR, state)
    return state


def _checked_index(index: Any) -> Any:
    if isinstance(index, int) and index not in _INT64:
        raise OverflowError(f"enum integer index {index} is outside int64")
    return int(index) if isinstance(index, int) else str(index)


def _find_member(cls: Any, index: int | str) -> Any:
    """Return the member with that index, or None."""
    state = _find_state(cls)
    return None if state is None else state.indexes.get(_checked_index(index))


def _is_payload_enum(cls: type) -> bool:
    """Say whether members of `cls` stand for integers or strings."""
    return issubclass(cls, (IntEnum, StrEnum))


class _Declarations:
    """What the body of an enum class declares, in the order in which members are made."""

    def __init__(self, cls: Any, payload: type | None) -> None:
        annotations = _evaluated_annotations(cls)
        class_vars = {name for name, hint in annotations.items() if _means_class_var(hint)}
        if payload is not None and ("value" in annotations or "value" in vars(cls)):
            base = "IntEnum" if payload is int else "StrEnum"
            raise TypeError(f"{base} reserves `value` as its canonical index alias")
        self.binders = [name for name in annotations if name in class_vars and _is_free(cls, name)]
        self.entries: dict[str, _EnumEntry] = {}
        for name, value in list(vars(cls).items()):
            if name.startswith("_") or (name in annotations and name not in class_vars):
                continue
            if isinstance(value, _EnumEntry):
                self.entries[name] = value
            elif payload is not None and _is_plain_value(value):
                self.entries[name] = _EnumEntry((), {"value": value})


def _means_class_var(hint: Any) -> bool:
    if not isinstance(hint, str):
        hint = getattr(hint, "__forward_arg__", hint)
    if isinstance(hint, str):
        return hint.replace(" ", "").startswith(("ClassVar", "typing.ClassVar"))
    return is_class_var(hint)


def _is_free(cls: type, name: str) -> bool:
    return not name.startswith("_") and name not in vars(cls)


def _is_plain_value(value: Any) -> bool:
    return not isinstance(value, (staticmethod, classmethod, property)) and not callable(value)


class _Member:
    """A member before it is made: its indices and the values of its fields."""

    def __init__(self, cls: Any, payload: type | None, alias: str, declared: _EnumEntry) -> None:
        where = f"{cls.__name__}.{alias}"
        self.args = declared.args
        self.fields = dict(declared.kwargs)
        if "_int_index" in self.fields or "_str_index" in self.fields:
            raise TypeError(f"{where}: enum indices are inferred")
        self.where = where
        self.cls = cls
        # What identifies a member that exists already; the other index follows from it.
        self.index: int | str = alias
        self.alias = alias
        if payload is not None:
            if "value" not in self.fields:
                raise TypeError(f"{where} requires a {payload.__name__} value")
            self.index = self.fields.pop("value")
            if type(self.index) is not payload:
                raise TypeError(f"{where} value must be {payload.__name__}")
            _checked_index(self.index)

    def bind(self) -> Any:
        """Return the member, made if it does not exist yet."""
        existing = _find_member(self.cls, self.index)
        if existing is not None:
            return existing
        state = _make_state(self.cls)
        if isinstance(self.index, int):
            int_index, str_index = self.index, self.alias
        else:
            int_index, str_index = len(state.entries), self.index
        if int_index in state.indexes or str_index in state.indexes:
            raise ValueError(f"duplicate enum index in {self.where}")
        try:
            made = self._construct({"_int_index": int_index, "_str_index": str_index})
        except Exception as error:
            raise TypeError(
                f"{self.cls.__name__}.{str_index}: invalid enum entry: {error}"
            ) from error
        state.entries.append(made)
        state.indexes[int_index] = made
        state.indexes[str_index] = made
        return made

    def _construct(self, indices: dict[str, Any]) -> Any:
        cls = self.cls
        info = cls.__tvm_ffi_type_info__
        if hasattr(info, "_decorator_args"):
            return cls(*self.args, **indices, **self.fields)
        if self.args:
            raise TypeError("C++-backed enum entries require keyword fields")
        allocate = core._lookup_type_attr(info.type_index, "__ffi_new__")
        if allocate is None:
            raise TypeError("enum type has no allocator")
        made = allocate()
        for name, value in {**indices, **self.fields}.items():
            setter = getattr(getattr(cls, name, None), "set", None)
            if setter is None:
                raise TypeError(f"field {name!r} has no reflected setter")
            setter(made, value)
        return made


def _bind_existing(cls: Any, payload: type | None, alias: str) -> Any:
    """Return the member that C++ made, or make one that needs no fields."""
    if payload is int:
        raise TypeError(f"{cls.__name__}.{alias} requires an integer value")
    existing = _find_member(cls, alias)
    if existing is not None:
        return existing
    info = cls.__tvm_ffi_type_info__
    if not hasattr(info, "_decorator_args"):
        raise RuntimeError(f"{info.type_key!r} has no enum at string index {alias!r}")
    declared = _EnumEntry((), {} if payload is None else {"value": alias})
    return _Member(cls, payload, alias, declared).bind()


def _define_members(cls: Any, type_key: str, options: dict[str, Any]) -> None:
    payload = cls._payload
    declared = _Declarations(cls, payload)
    members = [_Member(cls, payload, alias, value) for alias, value in declared.entries.items()]
    for alias in declared.entries:
        delattr(cls, alias)
    if payload is not None:
        for name, method in _PAYLOAD_METHODS.items():
            if name not in vars(cls):
                setattr(cls, name, method)
    previous = _register_class(cls, type_key, options)
    try:
        bound = {alias: _bind_existing(cls, payload, alias) for alias in declared.binders}
        bound.update({member.alias: member.bind() for member in members})
    except BaseException:
        _unregister_class(cls, previous)
        raise
    for alias, member in bound.items():
        setattr(cls, alias, member)


def _register_class(cls: Any, type_key: str, options: dict[str, Any]) -> Any:
    """Register the class; returns the info of the class it replaces."""
    index = core._object_type_key_to_index(type_key)
    if index is None or core._is_python_defined(index):
        py_class(type_key, frozen=options["frozen"], structural_eq="singleton")(cls)
        return None
    previous = core._type_index_to_type_info(index)
    c_class(type_key, init=options["init"], repr=options["repr"])(cls)
    return previous


def _unregister_class(cls: Any, previous: Any) -> None:
    core._forget_class(cls, previous)


# ---- the classes --------------------------------------------------------------------------------


class _EnumMeta(type(Object)):  # type: ignore[misc]
    """Makes the members when the class is made, and finds them when it is called."""

    def __new__(
        mcls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        type_key: str | None = None,
        frozen: bool = True,
        init: bool = True,
        repr: bool = True,
        **kwargs: Any,
    ) -> Any:
        cls = super().__new__(mcls, name, bases, namespace, **kwargs)
        if type_key is not None:
            _define_members(cls, type_key, {"frozen": frozen, "init": init, "repr": repr})
        return cls

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: Any, **kwargs: Any) -> None:
        super().__init__(name, bases, namespace)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if len(args) != 1 or kwargs:
            return super().__call__(*args, **kwargs)
        (value,) = args
        if isinstance(value, cls):
            return value
        if not isinstance(value, (int, str)):
            return super().__call__(value)
        member = _find_member(cls, value)
        if member is None:
            raise ValueError(f"{value!r} is not a valid {cls.__name__}")
        return member

    def __iter__(cls) -> Iterator[Any]:
        state = _find_state(cls)
        return iter(() if state is None else list(state.entries))

    def __len__(cls) -> int:
        state = _find_state(cls)
        return 0 if state is None else len(state.entries)

    def __bool__(cls) -> bool:
        return True  # a class is true, also without members


class _ClassProperty:
    """A property of the class itself."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.__doc__ = function.__doc__

    def __get__(self, instance: Any, owner: Any) -> Any:
        return self.function(owner)


def _restore_member(cls: Any, index: int | str) -> Any:
    """Return the member that a pickle names."""
    return cls.get(index)


@c_class("ffi.Enum", init=False)
class Enum(Object, metaclass=_EnumMeta):
    """Base of enums whose members differ by name.

    A subclass names its type with ``type_key=``; without one it is an abstract base.

    >>> from tvm_ffi.dataclasses import Enum, auto
    >>> class Side(Enum, type_key="doc.enum.Side"):
    ...     left = auto()
    ...     right = auto()
    >>> Side("left") is Side.left, list(Side)
    (True, [doc.enum.Side.left, doc.enum.Side.right])
    """

    _int_index: int
    _str_index: str
    _payload: ClassVar[type | None] = None

    @classmethod
    def all_entries(cls: type[_E]) -> Iterator[_E]:
        """Iterate over the members in the order they were registered."""
        return iter(cls)

    @classmethod
    def get(cls: type[_E], index: int | str) -> _E:
        """Return the member with that integer or string index; a `KeyError` if there is none."""
        if not isinstance(index, (int, str)):
            raise TypeError(f"enum index must be int or str, got {type(index).__name__}")
        member = _find_member(cls, index)
        if member is None:
            raise KeyError(_checked_index(index))
        return member

    @classmethod
    def def_attr(cls, name: str, *, default: Any = MISSING) -> EnumAttrMap:
        """Return the attribute `name` of all members, made on the first assignment.

        >>> from tvm_ffi.dataclasses import Enum, auto
        >>> class Op(Enum, type_key="doc.enum.Op"):
        ...     add = auto()
        >>> cost = Op.def_attr("cost", default=1)
        >>> cost[Op.add]
        1
        """
        return EnumAttrMap(cls, name, default=default)

    @_ClassProperty
    def attr_dict(cls: Any) -> Any:
        """Attribute name -> member -> value, for all attributes of all members."""
        state = _find_state(cls)
        return Dict({}) if state is None else state.attrs

    def __repr__(self) -> str:
        return core.object_repr(self)

    def __str__(self) -> str:
        return repr(self)

    @mark_generated
    def __reduce__(self) -> Any:
        index = self._int_index if self._payload is int else str(self._str_index)
        return (_restore_member, (type(self), index))


def _payload_repr(self: Any) -> str:
    return f"{type(self).__name__}.{self.name}"


def _payload_copy(self: Any) -> Any:
    """Return the member itself: there is one object per value."""
    return self


def _payload_replace(self: Any, **changes: Any) -> Any:
    raise TypeError(f"{self!r} is a member of an enum and cannot be replaced")


# Set on each class, where those of the dataclass would be.
_PAYLOAD_METHODS = {
    "__repr__": _payload_repr,
    "__copy__": _payload_copy,
    "__replace__": _payload_replace,
}


class _PayloadBehaviour:
    """How members that stand for a value compare, hash and print."""

    __slots__ = ()
    if TYPE_CHECKING:
        _payload: ClassVar[type]
        _str_index: str
        value: Any

    @property
    def name(self) -> str:
        """The string index of the member."""
        return self._str_index

    def __eq__(self, other: object) -> bool:
        if type(other) is type(self):
            return self.value == other.value  # type: ignore[attr-defined]
        if isinstance(other, self._payload):
            return self.value == other
        return NotImplemented

    __ne__ = object.__ne__  # the opposite of __eq__

    def __hash__(self) -> int:
        return hash(self.value)

    def __str__(self) -> str:
        return str(self.value)


@c_class("ffi.IntEnum", init=False)
class IntEnum(_PayloadBehaviour, Enum):  # type: ignore[metaclass]
    """Base of enums whose members stand for integers.

    >>> from tvm_ffi.dataclasses import IntEnum
    >>> class Priority(IntEnum, type_key="doc.enum.Priority"):
    ...     low = 1
    ...     high = 9
    >>> Priority.high, Priority.high.value, Priority(9) is Priority.high
    (Priority.high, 9, True)
    """

    value: int
    _payload: ClassVar[type] = int


@c_class("ffi.StrEnum", init=False)
class StrEnum(_PayloadBehaviour, Enum):  # type: ignore[metaclass]
    """Base of enums whose members stand for strings.

    >>> from tvm_ffi.dataclasses import StrEnum
    >>> class Opcode(StrEnum, type_key="doc.enum.Opcode"):
    ...     add = "+"
    >>> Opcode("+") is Opcode.add, str(Opcode.add)
    (True, '+')
    """

    value: str
    _payload: ClassVar[type] = str


class EnumAttrMap:
    """One attribute of all members of an enum, kept beside them and shared with C++.

    >>> from tvm_ffi.dataclasses import Enum, EnumAttrMap, auto
    >>> class Unit(Enum, type_key="doc.enum.Unit"):
    ...     metre = auto()
    >>> symbol = EnumAttrMap(Unit, "symbol")
    >>> symbol[Unit.metre] = "m"
    >>> symbol[Unit.metre], Unit.metre in symbol
    ('m', True)
    """

    __slots__ = ("_default", "_enum_cls", "name")

    def __init__(self, enum_cls: type[Enum], name: str, *, default: Any = MISSING) -> None:
        self._enum_cls = enum_cls
        self._default = default
        self.name = name

    def _values(self) -> Any:
        return self._enum_cls.attr_dict.get(self.name)

    def _check(self, member: Any) -> None:
        if not isinstance(member, self._enum_cls):
            expected = self._enum_cls.__name__
            raise TypeError(f"expected {expected}, got {type(member).__name__}")

    def __setitem__(self, member: Any, value: Any) -> None:
        self._check(member)
        attrs = _make_state(self._enum_cls).attrs
        if self.name not in attrs:
            attrs[self.name] = Dict({})
        attrs[self.name][member] = value

    def __getitem__(self, member: Any) -> Any:
        self._check(member)
        values = self._values()
        if values is not None and member in values:
            return values[member]
        if self._default is MISSING:
            raise KeyError(f"{member!r} has no extensible attribute {self.name!r}")
        return self._default

    def __contains__(self, member: Any) -> bool:
        values = self._values()
        return isinstance(member, self._enum_cls) and values is not None and member in values

    def get(self, member: Any, default: Any = None) -> Any:
        """Return the value of `member`, or `default` if none was stored."""
        values = self._values()
        return values[member] if values is not None and member in self else default
