# SPDX-License-Identifier: Apache-2.0
"""Fields and methods of a type, as the type table describes them.

>>> import tvm_ffi.testing
>>> [f.name for f in tvm_ffi.testing.TestIntPair.__tvm_ffi_type_info__.fields]
['a', 'b']
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # typing costs a third of the import time, and only checkers need it
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

# Half initialised at this point: its C types and functions exist.
core: Any = sys.modules["tvm_ffi.core"]

_abi = core._abi
# What is put into a container (Put in src/python/data/container_base.h); 0: an element or a value.
_PUT_KEY = 1
_PUT_LIST = 2
_OBJECT_BEGIN = _abi.kTVMFFIStaticObjectBegin
WRITABLE = _abi.kTVMFFIFieldFlagBitMaskWritable
HAS_DEFAULT = _abi.kTVMFFIFieldFlagBitMaskHasDefault
STATIC_METHOD = _abi.kTVMFFIFieldFlagBitMaskIsStaticMethod
DEFAULT_FROM_FACTORY = _abi.kTVMFFIFieldFlagBitMaskDefaultFromFactory
REPR_OFF = _abi.kTVMFFIFieldFlagBitMaskReprOff
COMPARE_OFF = _abi.kTVMFFIFieldFlagBitMaskCompareOff
HASH_OFF = _abi.kTVMFFIFieldFlagBitMaskHashOff
INIT_OFF = _abi.kTVMFFIFieldFlagBitMaskInitOff
KW_ONLY = _abi.kTVMFFIFieldFlagBitMaskKwOnly
# How a field takes part in structural comparison.
STRUCTURAL_FLAGS: dict[str | None, int] = {
    "ignore": _abi.kTVMFFIFieldFlagBitMaskSEqHashIgnore,
    "def-pattern": _abi.kTVMFFIFieldFlagBitMaskSEqHashDefPattern,
    "def-simple": _abi.kTVMFFIFieldFlagBitMaskSEqHashDefSimple,
}


def _parse_metadata(text: Any) -> dict[str, Any]:
    if not text:
        return {}
    import json

    return json.loads(text)


def _schema_of(metadata: Mapping[str, Any]) -> Any:
    schema = metadata.get("type_schema")
    return None if schema is None else core.TypeSchema._from_maybe_json(schema)


class Record:
    """Keyword-constructed record: repr of all attributes, equality by identity."""

    def __repr__(self) -> str:
        shown = ", ".join(f"{k}={v!r}" for k, v in vars(self).items() if not k.startswith("_"))
        return f"{type(self).__name__}({shown})"


class _Described(Record):
    """A record with metadata: JSON text until it is read, because most is never read."""

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
        ty: Any = core.MISSING,
        c_init: bool = True,
        c_kw_only: bool = False,
        c_has_default: bool = False,
        c_default: Any = core.MISSING,
        c_default_factory: Any = core.MISSING,
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
        self.c_default = c_default
        self.c_default_factory = c_default_factory
        self.c_repr = c_repr
        self.c_compare = c_compare
        self.c_hash = c_hash
        self.c_structural_eq = c_structural_eq
        self.dataclass_field = dataclass_field

    @classmethod
    def _from_raw(cls, raw: Mapping[str, Any]) -> TypeField:
        flags = raw["flags"]
        default = raw["default"]
        from_factory = bool(flags & DEFAULT_FROM_FACTORY)
        return cls(
            name=raw["name"],
            doc=raw["doc"] or None,
            size=raw["size"],
            alignment=raw["alignment"],
            offset=raw["offset"],
            field_static_type_index=raw["field_static_type_index"],
            frozen=not flags & WRITABLE,
            metadata=raw["metadata"],
            getter=raw["getter"],
            setter=raw["setter"],
            c_init=not flags & INIT_OFF,
            c_kw_only=bool(flags & KW_ONLY),
            c_has_default=bool(flags & HAS_DEFAULT),
            c_default=core.MISSING if from_factory else default,
            c_default_factory=default if from_factory else core.MISSING,
            c_repr=not flags & REPR_OFF,
            c_compare=not flags & COMPARE_OFF,
            c_hash=not flags & HASH_OFF,
            c_structural_eq=next(
                (name for name, bit in STRUCTURAL_FLAGS.items() if flags & bit), None
            ),
        )

    @property
    def ty(self) -> Any:
        """The schema of the field's type, None if it is unknown."""
        if self._ty is core.MISSING:
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
        """Whether the field holds members of an enum whose payloads may be given instead."""
        # There are no enums unless their module is loaded.
        enums = sys.modules.get("tvm_ffi.dataclasses.enum")
        if enums is None or self.field_static_type_index < _OBJECT_BEGIN or self.ty is None:
            return False
        type_index = core._object_type_key_to_index(self.ty.origin)
        info = core._type_index_to_type_info(type_index) if type_index is not None else None
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

    def _convert_elements(self, type_key: str) -> None:
        """Let containers with typed elements convert what is put into them."""
        text = self._metadata
        if isinstance(text, str) and "ffi.List" not in text and "ffi.Dict" not in text:
            return  # without parsing it
        schema = self.ty
        if schema is None or schema.origin not in ("List", "Dict"):
            return
        if all(arg.origin == "Any" for arg in schema.args or ()):
            return

        def convert(part: int, value: Any) -> Any:
            if part == _PUT_LIST:
                return type(value)(convert(0, item) for item in value)
            wanted, what = schema.args[-1], "an element" if len(schema.args) == 1 else "a value"
            if part == _PUT_KEY:
                wanted, what = schema.args[0], "a key"
            try:
                return core._to_py_class_value(wanted.convert(value))
            except TypeError:
                kind = "None" if value is None else type(value).__name__
                raise TypeError(
                    f"field `{self.name}` of `{type_key}` is a "
                    f"{schema!r}: expected {what} of type `{wanted!r}`, got `{kind}`"
                ) from None

        exact = {"str": str, "int": int, "float": float, "bool": bool}.get(schema.args[-1].origin)
        core._convert_elements(self.getter, convert, exact)

    def _install(self, cls: type) -> None:
        """Make the field an attribute of the class that is registered for its type."""
        info = core._type_cls_to_type_info(cls) or cls.__dict__.get("__tvm_ffi_type_info__")
        # Only C++ takes the type of an element for granted.
        if info is not None and not core._is_python_defined(info.type_index):
            self._convert_elements(info.type_key)
        made = self.as_property(cls)
        core._share_for_good(made)
        setattr(cls, self.name, made)


class TypeMethod(_Described):
    """One reflected method of a type; `func` takes the object first unless `is_static`.

    A static method with ``"class_method": true`` in its metadata takes the class first.
    """

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
            is_static=bool(raw["flags"] & STATIC_METHOD),
        )

    def as_callable(self, cls: type) -> Any:
        """Return what `cls` stores under the method's name."""
        function = self.func
        if not self.is_static:
            return core._make_method(cls, self.name, function, self)
        function.__name__ = self.name
        function.__module__ = cls.__module__
        function.__qualname__ = f"{cls.__qualname__}.{self.name}"
        if self.doc:
            function.__doc__ = self.doc
        return classmethod(function) if self._takes_class() else staticmethod(function)

    def _takes_class(self) -> bool:
        text = self._metadata
        if isinstance(text, str) and "class_method" not in text:
            return False  # without parsing it
        return self.metadata.get("class_method") is True


def _member_method_wrapper(function: Any) -> Callable[..., Any]:
    """Make a Python method of an FFI function whose first argument is the object."""

    def wrapper(self: Any, *args: Any) -> Any:
        return function(self, *args)

    return wrapper


EXPORTS = (
    "TypeField",
    "TypeMethod",
    "_member_method_wrapper",
)
