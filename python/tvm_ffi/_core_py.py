# SPDX-License-Identifier: Apache-2.0
"""The part of ``tvm_ffi.core`` that is written in Python: class `Object`, text values, reflection.

The extension imports this module at the end of its own initialisation and calls `install`, which
puts every name of `_EXPORTS`, and those of `_type_schema`, into ``tvm_ffi.core``. Use them there:

>>> from tvm_ffi import core
>>> core._type_cls_to_type_info(core.Object).type_key
'ffi.Object'
"""

from __future__ import annotations

import sys
from _thread import RLock
from abc import ABCMeta

TYPE_CHECKING = False  # typing costs a third of the import time, and only checkers need it
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

# Half initialised at this point: its C types and functions exist, nothing below does.
core: Any = sys.modules["tvm_ffi.core"]


# ---- objects ------------------------------------------------------------------------------------


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

    Instances have no ``__dict__``; a subclass that wants one says ``__slots__ = ("__dict__",)``,
    and what is stored there stays with the C++ object for as long as that object lives.

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


def _json_function(name: str) -> Any:
    function = core._get_global_func(name, True)
    if function is None:
        raise RuntimeError(f"{name} is not registered, make sure build project with extra API")
    return function


def _object_getstate(self: Any) -> dict[str, str | None]:
    """Return the JSON graph of the object, the state that pickle stores."""
    if self.__chandle__() == 0:
        return {"handle": None}
    return {"handle": str(_json_function("ffi.ToJSONGraphString")(self, None))}


def _object_setstate(self: Any, state: Mapping[str, str | None]) -> None:
    """Rebuild the object from the state that `__getstate__` gave."""
    if not isinstance(state, dict) or "handle" not in state:
        raise TypeError(f"cannot restore {type(self).__name__}: state is no dict with key 'handle'")
    text = state["handle"]
    if text is None:
        return
    if not isinstance(text, str):
        kind = type(text).__name__
        raise TypeError(f"cannot restore {type(self).__name__}: 'handle' must be str, not {kind}")
    self.__init_handle_by_constructor__(_json_function("ffi.FromJSONGraphString"), text)


def _object_reduce(self: Any) -> tuple[Callable[..., Any], tuple[type], dict[str, str | None]]:
    if self.__chandle__() == 0:
        _json_function("ffi.ToJSONGraphString")(self, None)  # raises: there is no object
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


# ---- text and bytes: values, compared by ==, never tied -----------------------------------------


class PyNativeObject:
    """Mixin of classes that are a native Python value and may keep its FFI object beside it."""

    __slots__: list[str] = []
    _tvm_ffi_cached_object: Any

    def __init_cached_object_by_constructor__(self, fconstructor: Any, *args: Any) -> None:
        """Build the FFI object with `fconstructor` and keep it in ``_tvm_ffi_cached_object``."""
        cached = core._CLASS_OBJECT.__new__(core._CLASS_OBJECT)
        cached.__init_handle_by_constructor__(fconstructor, *args)
        self._tvm_ffi_cached_object = cached


String: Any = core._make_string_type(PyNativeObject)
String.__slots__ = ["_tvm_ffi_cached_object"]


def _string_from_object(string_cls: Any, obj: Any) -> Any:
    """Make a string from its FFI object `obj`."""
    self = str.__new__(string_cls, _json_function("ffi.String")(obj))
    self._tvm_ffi_cached_object = obj
    return self


def _string_reduce(self: Any, protocol: Any) -> tuple[type[str], tuple[str]]:
    return (str, (str(self),))


String.__from_tvm_ffi_object__ = staticmethod(_string_from_object)
String.__reduce_ex__ = _string_reduce


class Bytes(bytes, PyNativeObject):
    """A `bytes` that remembers the FFI object it came from.

    >>> from tvm_ffi.core import Bytes
    >>> Bytes(b"hello").find(b"l"), Bytes(b"hello") == b"hello"
    (2, True)
    """

    # bytes has variable size and admits no slots, so the cached object is an instance attribute.

    def __new__(cls, value: Any = b"") -> Bytes:
        self = bytes.__new__(cls, value)
        self._tvm_ffi_cached_object = None
        return self

    @staticmethod
    def __from_tvm_ffi_object__(bytes_cls: type[Bytes], obj: Any) -> Bytes:
        """Make a byte string from its FFI object `obj`."""
        self = bytes.__new__(bytes_cls, _json_function("ffi.Bytes")(obj))
        self._tvm_ffi_cached_object = obj
        return self

    def __reduce_ex__(self, protocol: Any) -> tuple[type[bytes], tuple[bytes]]:
        return (bytes, (bytes(self),))


class ByteArrayArg:
    """Bytes on their way into a C function; to the FFI they are the bytes.

    >>> import tvm_ffi
    >>> tvm_ffi.testing.echo(tvm_ffi.core.ByteArrayArg(b"abc"))
    b'abc'
    """

    __slots__ = ("_data",)

    def __init__(self, data: bytes) -> None:
        if not isinstance(data, bytes):
            raise TypeError(f"expected bytes, {type(data).__name__} found")
        self._data = data

    def __tvm_ffi_value__(self) -> bytes:
        """Return the bytes."""
        return self._data


# ---- reflection: what the type table says about a type ------------------------------------------

_WRITABLE = 1 << 0
_HAS_DEFAULT = 1 << 1
_STATIC_METHOD = 1 << 2
_DEFAULT_FROM_FACTORY = 1 << 5
_REPR_OFF = 1 << 6
_COMPARE_OFF = 1 << 7
_HASH_OFF = 1 << 8
_INIT_OFF = 1 << 9
_KW_ONLY = 1 << 10
_UNSET: Any = object()  # stands for core.MISSING, which the extension makes after this module
_STRUCTURAL = ((1 << 3, "ignore"), (1 << 4, "def-recursive"), (1 << 12, "def-non-recursive"))


def _parse_metadata(text: Any) -> dict[str, Any]:
    if not text:
        return {}
    import json

    return json.loads(text)


def _schema_of(metadata: Mapping[str, Any]) -> Any:
    schema = metadata.get("type_schema")
    return None if schema is None else core.TypeSchema._from_maybe_json(schema)


class _Record:
    """Keyword-constructed record: repr of all attributes, equality by identity."""

    def __repr__(self) -> str:
        shown = ", ".join(f"{k}={v!r}" for k, v in vars(self).items() if not k.startswith("_"))
        return f"{type(self).__name__}({shown})"


class _Described(_Record):
    """A record with metadata: JSON text until somebody looks, because most is never looked at."""

    _metadata: Any

    @property
    def metadata(self) -> dict[str, Any]:
        """What the registration attached, such as the type."""
        if isinstance(self._metadata, str):
            self._metadata = _parse_metadata(self._metadata)
        return self._metadata

    @metadata.setter
    def metadata(self, value: dict[str, Any] | str) -> None:
        self._metadata = value


class TypeField(_Described):
    """One reflected field of a type.

    >>> import tvm_ffi.testing
    >>> [f.name for f in tvm_ffi.testing.TestIntPair.__tvm_ffi_type_info__.fields]
    ['a', 'b']
    """

    c_init: bool = True
    c_kw_only: bool = False
    c_has_default: bool = False
    c_repr: bool = True
    c_compare: bool = True
    c_hash: bool = True
    c_structural_eq: str | None = None
    dataclass_field: Any = None

    def __init__(
        self,
        name: str,
        doc: str | None,
        size: int,
        alignment: int,
        offset: int,
        field_static_type_index: int,
        frozen: bool,
        metadata: dict[str, Any],
        getter: Any,
        setter: Any,
        ty: Any = _UNSET,
        c_init: bool = True,
        c_kw_only: bool = False,
        c_has_default: bool = False,
        c_default: Any = _UNSET,
        c_default_factory: Any = _UNSET,
        c_repr: bool = True,
        c_compare: bool = True,
        c_hash: bool = True,
        c_structural_eq: str | None = None,
        dataclass_field: Any = None,
    ) -> None:
        self.name = name
        self.doc = doc
        self.size = size
        self.alignment = alignment
        self.offset = offset
        self.field_static_type_index = field_static_type_index
        self.frozen = frozen
        self.metadata = metadata
        self.getter = getter
        self.setter = setter
        self._ty = ty
        self.c_init = c_init
        self.c_kw_only = c_kw_only
        self.c_has_default = c_has_default
        self.c_default = core.MISSING if c_default is _UNSET else c_default
        self.c_default_factory = core.MISSING if c_default_factory is _UNSET else c_default_factory
        self.c_repr = c_repr
        self.c_compare = c_compare
        self.c_hash = c_hash
        self.c_structural_eq = c_structural_eq
        self.dataclass_field = dataclass_field

    @classmethod
    def _from_raw(cls, raw: Mapping[str, Any]) -> TypeField:
        flags = raw["flags"]
        default = raw["default"]
        from_factory = bool(flags & _DEFAULT_FROM_FACTORY)
        return cls(
            name=raw["name"],
            doc=raw["doc"] or None,
            size=raw["size"],
            alignment=raw["alignment"],
            offset=raw["offset"],
            field_static_type_index=raw["field_static_type_index"],
            frozen=not flags & _WRITABLE,
            metadata=raw["metadata"],
            getter=raw["getter"],
            setter=raw["setter"],
            c_init=not flags & _INIT_OFF,
            c_kw_only=bool(flags & _KW_ONLY),
            c_has_default=bool(flags & _HAS_DEFAULT),
            c_default=core.MISSING if from_factory else default,
            c_default_factory=default if from_factory else core.MISSING,
            c_repr=not flags & _REPR_OFF,
            c_compare=not flags & _COMPARE_OFF,
            c_hash=not flags & _HASH_OFF,
            c_structural_eq=next((name for bit, name in _STRUCTURAL if flags & bit), None),
        )

    @property
    def ty(self) -> Any:
        """The schema of the field's type, None if it is unknown."""
        if self._ty is _UNSET:
            self._ty = _schema_of(self.metadata)
        return self._ty

    @ty.setter
    def ty(self, value: Any) -> None:
        self._ty = value

    def normalize_value(self, value: Any) -> Any:
        """Return the enum member for its payload, any other value as it is."""
        if not self._takes_payload():
            return value
        return core._to_py_class_value(self.ty.convert(value))

    def _takes_payload(self) -> bool:
        """Whether the field holds members of an enum whose payloads may stand for them."""
        # Enums are defined with this module's classes, so if theirs is not loaded there are none.
        enums = sys.modules.get("tvm_ffi.dataclasses.enum")
        if enums is None or self.field_static_type_index < 64 or self.ty is None:
            return False
        info = _key_to_info.get(self.ty.origin)
        cls = info.type_cls if info is not None else None
        return cls is not None and enums._is_payload_enum(cls)

    def as_property(self, cls: type) -> Any:
        """Return the descriptor that reads and writes this field on instances of `cls`."""
        setter = self.setter
        if setter is not None and self._takes_payload():
            write = setter

            def setter(obj: Any, value: Any) -> None:
                write(obj, self.normalize_value(value))

        for function in (self.getter, setter):
            if function is None:
                continue
            function.__name__ = self.name
            function.__module__ = cls.__module__
            function.__qualname__ = f"{cls.__qualname__}.{self.name}"
            if self.doc:
                function.__doc__ = self.doc
        return core.FFIProperty(self.getter, setter, self.frozen, None, self.doc)

    def _install(self, cls: type) -> None:
        """Make the field an attribute of the class that is registered for its type."""
        made = self.as_property(cls)
        core._share_for_good(made)
        setattr(cls, self.name, made)


class TypeMethod(_Described):
    """One reflected method of a type; `func` takes the object first unless `is_static`."""

    def __init__(
        self, name: str, doc: str | None, func: Any, metadata: dict[str, Any], is_static: bool
    ) -> None:
        self.name = name
        self.doc = doc
        self.func = func
        self.metadata = metadata
        self.is_static = is_static

    @classmethod
    def _from_raw(cls, raw: Mapping[str, Any]) -> TypeMethod:
        return cls(
            name=raw["name"],
            doc=raw["doc"] or None,
            func=raw["func"],
            metadata=raw["metadata"],
            is_static=bool(raw["flags"] & _STATIC_METHOD),
        )

    def as_callable(self, cls: type) -> Any:
        """Return what `cls` stores under the method's name: a function or a `staticmethod`."""
        function = self.func if self.is_static else _member_method_wrapper(self.func)
        function.__name__ = self.name
        function.__module__ = cls.__module__
        function.__qualname__ = f"{cls.__qualname__}.{self.name}"
        if self.doc:
            function.__doc__ = self.doc
        return staticmethod(function) if self.is_static else function


def _member_method_wrapper(function: Any) -> Callable[..., Any]:
    """Make a Python method of an FFI function whose first argument is the object."""

    def wrapper(self: Any, *args: Any) -> Any:
        return function(self, *args)

    return wrapper


class TypeInfo(_Record):
    """What the type table knows about one type, and the Python class that stands for it.

    >>> import tvm_ffi
    >>> info = tvm_ffi.core._type_cls_to_type_info(tvm_ffi.Array)
    >>> info.type_key, info.parent_type_info.type_key
    ('ffi.Array', 'ffi.Object')
    """

    def __init__(
        self,
        type_cls: type | None,
        type_index: int,
        type_key: str,
        type_ancestors: list[int],
        fields: list[TypeField] | None,
        methods: list[TypeMethod],
        parent_type_info: TypeInfo | None = None,
    ) -> None:
        self.type_cls = type_cls
        self.type_index = type_index
        self.type_key = type_key
        self.type_ancestors = type_ancestors
        self.fields = fields
        self.methods = methods
        if parent_type_info is None and type_ancestors:
            parent_type_info = _info_of_index(type_ancestors[-1])
        self.parent_type_info = parent_type_info
        self._check_field_names()

    def _check_field_names(self) -> None:
        own: set[str] = set()
        inherited = {f.name for info in self._ancestor_infos() for f in info.fields or ()}
        for field in self.fields or ():
            assert field.name not in own, (
                f"duplicate field name {field.name!r} in TypeInfo for {self.type_key!r}; "
                "a type registers each of its fields once"
            )
            own.add(field.name)
            if field.name in inherited:
                import warnings

                warnings.warn(
                    f"Field {field.name!r} in {self.type_key!r} duplicates an ancestor field. "
                    "Child types should not re-register inherited fields.",
                    stacklevel=3,
                )

    def _ancestor_infos(self) -> Iterable[TypeInfo]:
        info = self.parent_type_info
        while info is not None:
            yield info
            info = info.parent_type_info

    def _raw(self) -> Mapping[str, Any]:
        raw = core._raw_type_info(self.type_index)
        if raw is None:
            raise ValueError(f"type index {self.type_index} ({self.type_key}) is not registered")
        return raw

    @property
    def total_size(self) -> int:
        """Size of an object of this type in bytes."""
        cached = self.__dict__.get("_total_size")
        if cached is None:
            cached = self._total_size = self._raw()["total_size"] or self._size_from_fields()
        return cached

    def _size_from_fields(self) -> int:
        end = self.parent_type_info.total_size if self.parent_type_info is not None else 24
        for field in self.fields or ():
            end = max(end, field.offset + field.size)
        return (end + 7) & ~7

    @property
    def _has_type_metadata(self) -> bool:
        return bool(self._raw()["has_metadata"])

    def _register_fields(self, fields: Sequence[Any], structure_kind: int | None = None) -> None:
        """Give a type defined in Python its fields; once only."""
        assert self.fields is None, f"_register_fields already called for {self.type_key!r}"
        self.fields = _register_fields(self, fields, structure_kind)
        self._read_back_methods()

    def _register_py_methods(
        self,
        py_methods: Sequence[tuple[str, Any, bool, str | None]] | None = None,
        type_attr_names: frozenset[str] = frozenset(),
    ) -> None:
        """Register hooks as type attributes and everything else as methods."""
        for name, value, is_static, metadata in py_methods or ():
            if name in type_attr_names:
                core._register_type_attr(0, name, None)  # makes the column
                core._register_type_attr(self.type_index, name, value)
            else:
                flags = _STATIC_METHOD if is_static else 0
                core._register_type_method(self.type_index, name, value, flags, metadata or "")
        self._read_back_methods()

    def _read_back_methods(self) -> None:
        self.methods = [TypeMethod._from_raw(raw) for raw in self._raw()["methods"]]


# ---- the four tables: index -> class (in C++), index / class / key -> TypeInfo ------------------

_index_to_info: dict[int, TypeInfo] = {}
_cls_to_info: dict[type, TypeInfo] = {}
_key_to_info: dict[str, TypeInfo] = {}
# Types defined in Python, also those whose class failed: their keys are not taken by C++.
_python_indices: set[int] = set()


def _type_cls_to_type_info(type_cls: type) -> TypeInfo | None:
    """Return the info of a registered class, or None."""
    return _cls_to_info.get(type_cls)


def _type_index_to_type_info(type_index: int) -> TypeInfo | None:
    """Return the info that Python holds for a type index, or None."""
    return _index_to_info.get(type_index)


def _build_info(type_index: int, type_cls: type | None) -> TypeInfo:
    raw = core._raw_type_info(type_index)
    if raw is None:
        raise ValueError(f"type index {type_index} is not registered")
    return TypeInfo(
        type_cls=type_cls,
        type_index=type_index,
        type_key=raw["type_key"],
        type_ancestors=list(raw["type_ancestors"]),
        fields=[TypeField._from_raw(field) for field in raw["fields"]],
        methods=[TypeMethod._from_raw(method) for method in raw["methods"]],
    )


def _store_info(info: TypeInfo) -> TypeInfo:
    _index_to_info[info.type_index] = info
    _key_to_info[info.type_key] = info
    return info


def _info_of_index(type_index: int) -> TypeInfo:
    info = _index_to_info.get(type_index)
    return info if info is not None else _store_info(_build_info(type_index, None))


def _lookup_or_register_type_info_from_type_key(type_key: str) -> TypeInfo:
    """Return the info of a type, reading it from the type table if Python has not seen it yet."""
    info = _key_to_info.get(type_key)
    if info is not None:
        return info
    type_index = core._object_type_key_to_index(type_key)
    if type_index is None:
        raise ValueError(f"Cannot find type key: {type_key}")
    return _info_of_index(type_index)


def _bind_class(info: TypeInfo, type_cls: type) -> None:
    info.type_cls = type_cls
    _cls_to_info[type_cls] = info
    # A class that is no wrapper cannot stand for an object: those get a fallback class on return.
    if issubclass(type_cls, core.CObject):
        is_python_defined = info.type_index in _python_indices
        core._set_class_of_index(info.type_index, type_cls, is_python_defined)


def _register_object_by_index(type_index: int, type_cls: type) -> TypeInfo:
    """Make `type_cls` the class of a type index; wrappers that exist keep the class they have."""
    if not isinstance(type_cls, type):
        raise TypeError(f"expected a class, got {type(type_cls).__name__}")
    info = _store_info(_build_info(type_index, type_cls))
    _bind_class(info, type_cls)
    return info


def _set_type_cls(type_info: TypeInfo, type_cls: type) -> None:
    """Bind a class to an info that has none yet."""
    assert type_info.type_cls is None, f"{type_info.type_key} already has a class"
    assert _index_to_info.get(type_info.type_index) is type_info, f"stale info: {type_info!r}"
    _bind_class(type_info, type_cls)


def _register_py_class(parent_type_info: TypeInfo, type_key: str, type_cls: type) -> TypeInfo:
    """Give a class defined in Python a type index of its own, below `parent_type_info`."""
    known = core._object_type_key_to_index(type_key)
    if type_key in _key_to_info or (known is not None and known not in _python_indices):
        raise ValueError(f"Type key '{type_key}' is already registered")
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
    _python_indices.add(type_index)
    info = TypeInfo(
        type_cls=type_cls,
        type_index=type_index,
        type_key=type_key,
        type_ancestors=ancestors,
        fields=None,
        methods=[],
        parent_type_info=parent_type_info,
    )
    _store_info(info)
    _bind_class(info, type_cls)
    return info


def _is_python_defined(type_index: int) -> bool:
    """Whether a type was made by a class in Python, even one that failed later."""
    return type_index in _python_indices


def _restore_info(type_info: TypeInfo, replaced_cls: type) -> None:
    """Make an earlier class the class of its type again, after another one failed."""
    _cls_to_info.pop(replaced_cls, None)
    _store_info(type_info)
    if type_info.type_cls is not None:
        _bind_class(type_info, type_info.type_cls)
    else:
        core._set_class_of_index(type_info.type_index, None)


def _rollback_py_class(type_info: TypeInfo) -> None:
    """Forget a class whose registration failed; the type index stays used up."""
    _index_to_info.pop(type_info.type_index, None)
    _key_to_info.pop(type_info.type_key, None)
    if type_info.type_cls is not None:
        _cls_to_info.pop(type_info.type_cls, None)
        # Without fields the type never had an object, so nobody has looked for its class.
        core._set_class_of_index(type_info.type_index, None, type_info.fields is None)


def _register_fields(
    type_info: TypeInfo, fields: Sequence[Any], structure_kind: int | None = None
) -> list[TypeField]:
    """Lay out the fields of a type defined in Python and enter them in the type table."""
    from ._py_fields import register_fields

    return register_fields(type_info, fields, structure_kind)


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


# ---- classes for types nobody registered --------------------------------------------------------

_FALLBACK_DOC = """Auto-generated fallback class for {key}.

No Python class was registered for this type when its first object arrived. Give it one with
``@tvm_ffi.register_object("{key}")`` before that.
"""


_fallback_lock = RLock()
# Classes of the package that are defined when an object of theirs, or their module, is first used.
_DEFINED_ON_USE = {
    "ffi.Enum": "tvm_ffi.dataclasses.enum",
    "ffi.EnumState": "tvm_ffi.dataclasses.enum",
    "ffi.IntEnum": "tvm_ffi.dataclasses.enum",
    "ffi.StrEnum": "tvm_ffi.dataclasses.enum",
}


def _fallback_class(type_index: int) -> type:
    """Make and register the class of a type that has none; its parents' classes come first."""
    with _fallback_lock:
        cls = core._class_of_index(type_index)
        if cls is None:
            module = _DEFINED_ON_USE.get(_info_of_index(type_index).type_key)
            if module is not None and module not in sys.modules:
                __import__(module)
                cls = core._class_of_index(type_index)
        return cls or _make_fallback_class(type_index)


def _make_fallback_class(type_index: int) -> type:
    info = _info_of_index(type_index)
    base: type = Object
    for ancestor in info.type_ancestors:
        base = _fallback_class(ancestor)
    module, _, name = info.type_key.rpartition(".")
    namespace = {
        "__slots__": (),
        "__module__": module,
        "__qualname__": info.type_key,
        "__doc__": _FALLBACK_DOC.format(key=info.type_key),
    }
    cls: Any = _ObjectSlotsMeta(name, (base,), namespace)
    cls.__tvm_ffi_type_info__ = info
    for field in info.fields or ():
        field._install(cls)
    for method in info.methods:
        setattr(cls, method.name, method.as_callable(cls))
    if info.type_cls is None:
        info.type_cls = cls
    _cls_to_info[cls] = info
    core._set_class_of_index(type_index, cls)
    return cls


# ---- errors -------------------------------------------------------------------------------------

ERROR_NAME_TO_TYPE: dict[str, type[Exception]] = {}
ERROR_TYPE_TO_NAME: dict[type[Exception], str] = {}


def _py_error(error: Any) -> BaseException:
    """Make the Python exception for an FFI error, with the error's frames as its traceback."""
    cls = ERROR_NAME_TO_TYPE.get(error.kind, RuntimeError)
    exception: Any
    try:
        exception = cls(error.message)
    except Exception:
        exception = None
    if not isinstance(exception, BaseException):
        # A registered class that cannot be built from one message must not hide the message.
        exception = RuntimeError(f"{error.kind}: {error.message}")
    if core._WITH_APPEND_BACKTRACE is not None:
        exception = core._WITH_APPEND_BACKTRACE(exception, error.backtrace)
    object.__setattr__(exception, "__tvm_ffi_error__", error)
    try:
        return exception
    finally:
        del exception  # this frame may end up in a traceback; it must not hold the exception


# ---- classes that returns are made of -----------------------------------------------------------


def _set_class_object(cls: type) -> None:
    """Choose the class of the objects that native values keep beside them."""
    core._CLASS_OBJECT = cls


_EXPORTS: Sequence[str] = (
    "ERROR_NAME_TO_TYPE",
    "ERROR_TYPE_TO_NAME",
    "ByteArrayArg",
    "Bytes",
    "Object",
    "ObjectConvertible",
    "PyNativeObject",
    "String",
    "TypeField",
    "TypeInfo",
    "TypeMethod",
    "_ObjectSlotsMeta",
    "_is_python_defined",
    "_lookup_or_register_type_info_from_type_key",
    "_lookup_type_attr",
    "_member_method_wrapper",
    "_new_object",
    "_py_error",
    "_register_fields",
    "_register_object_by_index",
    "_register_py_class",
    "_restore_info",
    "_rollback_py_class",
    "_set_class_object",
    "_set_type_cls",
    "object_repr",
    "_type_cls_to_type_info",
    "_type_index_to_type_info",
)


def install(core_module: Any) -> None:
    """Put the names of this module into the extension and register its own classes."""
    if core_module is not core:
        raise ImportError("tvm_ffi._core_py was loaded for another instance of tvm_ffi.core")
    from . import _type_schema

    for module, names in ((globals(), _EXPORTS), (vars(_type_schema), _type_schema.EXPORTS)):
        for name in names:
            value = module[name]
            setattr(core, name, value)
            if hasattr(value, "__qualname__"):
                value.__module__ = core.__name__
    core._WITH_APPEND_BACKTRACE = None
    core._TRACEBACK_TO_BACKTRACE_STR = None
    core._CLASS_OBJECT = Object
    core.CObject.__getstate__ = _object_getstate
    core.CObject.__setstate__ = _object_setstate
    core.CObject.__reduce__ = _object_reduce
    for type_index, cls in (
        (5, core.DataType),
        (6, core.Device),
        (64, Object),
        (65, String),
        (66, Bytes),
        (67, core.Error),
        (68, core.Function),
        (70, core.Tensor),
    ):
        _register_object_by_index(type_index, cls)
    core._set_class_of_index(74, core.OpaquePyObject)
    core._set_fallback_hook(_fallback_class)

    from . import _frameworks

    _frameworks.install()
