# SPDX-License-Identifier: Apache-2.0
"""Global functions and the classes that stand for registered types.

>>> import tvm_ffi
>>> @tvm_ffi.register_global_func("doc.registry.add")
... def add(a, b):
...     return a + b
>>> tvm_ffi.get_global_func("doc.registry.add")(1, 2)
3
"""

from __future__ import annotations

import sys
import warnings

from . import _dunder, core
from ._dunder import _find_ffi_init, _pack_kwargs
from ._impl.fallback_classes import _is_fallback_class
from ._impl.operators import install_methods, may_install

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, Literal, TypeVar, overload

    T = TypeVar("T")

# True while a tool imports modules without the libraries that define their types.
_SKIP_UNKNOWN_OBJECTS = False

__all__ = [
    "get_global_func",
    "get_global_func_metadata",
    "get_registered_type_keys",
    "init_ffi_api",
    "list_global_func_names",
    "register_global_func",
    "register_object",
    "remove_global_func",
]


# ---- classes ------------------------------------------------------------------------------------


if TYPE_CHECKING:

    @overload
    def register_object(type_key: type[T]) -> type[T]: ...
    @overload
    def register_object(
        type_key: str | None = None, *, init: bool = True
    ) -> Callable[[type[T]], type[T]]: ...


def register_object(type_key: Any = None, *, init: bool = True) -> Any:
    """Make the decorated class the Python class of a registered type.

    Its fields and methods become attributes, and with `init` the class gets a constructor, unless
    the class body already defines them. The key defaults to the name of the class.

    >>> import tvm_ffi
    >>> @tvm_ffi.register_object("testing.TestUnregisteredBaseObject")
    ... class Base(tvm_ffi.Object):
    ...     '''My view of that type.'''
    >>> Base(41).get_v1_plus_one()
    42
    """

    def register(cls: Any) -> Any:
        key = type_key if isinstance(type_key, str) else getattr(cls, "__name__", repr(cls))
        return _register_class(cls, key, _install_init if init else None, _check_class)

    if isinstance(type_key, type):
        return register(type_key)
    if type_key is None or isinstance(type_key, str):
        return register
    raise TypeError("type_key must be a string, type, or None")


def _register_class(
    cls: Any,
    key: str,
    complete: Callable[[Any, core.TypeInfo], None] | None,
    check: Callable[[Any, str, int], None] | None = None,
) -> Any:
    """Make `cls` the class of the type with this key, once `complete` has added the rest of it."""
    type_index = core._object_type_key_to_index(key)
    if type_index is None:
        if _SKIP_UNKNOWN_OBJECTS:
            return cls
        meant = _closest(key, get_registered_type_keys())
        remedy = (
            f"; did you mean {meant}?"
            if meant is not None
            else ". Load the library that does first, with tvm_ffi.load_module"
        )
        raise ValueError(
            f"Cannot find object type index for {key}: no loaded library defines this type{remedy}"
        )
    if check is not None:
        check(cls, key, type_index)
    info = core._describe_class(type_index, cls)
    cls.__tvm_ffi_type_info__ = info
    try:
        _add_class_attrs(cls, info)
        if complete is not None:
            complete(cls, info)
    except BaseException:
        del cls.__tvm_ffi_type_info__
        raise
    core._publish_class(info, cls)
    return cls


def _check_is_class(cls: Any, caller: str) -> None:
    if not isinstance(cls, type):
        raise TypeError(f"{caller} expects a class, got {type(cls).__name__}")


def _check_class(cls: Any, key: str, type_index: int) -> None:
    """Refuse what cannot stand for the type, and a second class where one exists."""
    _check_is_class(cls, f"register_object({key!r})")
    if not issubclass(cls, (core.CObject, core.PyNativeObject)):
        raise TypeError(
            f"register_object({key!r}): class `{cls.__name__}` must derive from tvm_ffi.Object"
        )
    info = core._type_index_to_type_info(type_index)
    known = info.type_cls if info is not None else None
    if known is None or issubclass(cls, known) or _is_fallback_class(known):
        return
    # A list in the class of dicts would have none of the methods that work on it.
    needed = next(base for base in known.__mro__ if base.__module__ == core.__name__)
    if needed not in (core.Object, core.CObject) and not issubclass(cls, needed):
        raise TypeError(
            f"register_object({key!r}): class `{cls.__name__}` must derive from "
            f"`{known.__module__}.{known.__qualname__}`"
        )
    # A module that is loaded again defines its classes again, and there are packages with two
    # classes for one type in a module.
    if known.__module__ != cls.__module__:
        raise ValueError(
            f"Type '{key}' already has a registered class, "
            f"`{known.__module__}.{known.__qualname__}`; derive from it to replace it"
        )


def _add_class_attrs(
    type_cls: Any, type_info: core.TypeInfo, type_attr_names: Iterable[str] = ()
) -> Any:
    """Install the fields, methods and named type attributes of a type on its class."""
    for field in type_info.fields or ():
        if field.name not in type_cls.__dict__:
            field._install(type_cls)
    methods = [method for method in type_info.methods if method.name != "__ffi_init__"]
    install_methods(type_cls, [m for m in methods if may_install(type_cls, m.name)])
    ffi_init = _find_ffi_init(type_info)
    if ffi_init is not None:
        _install_ffi_init_attr(type_cls, type_info, ffi_init)
    for name in type_attr_names:
        value = core._lookup_type_attr(type_info.type_index, name)
        if value is not None and name not in type_cls.__dict__:
            setattr(type_cls, name, value)
    return type_cls


def _install_ffi_init_attr(type_cls: Any, type_info: core.TypeInfo, ffi_init: Any) -> None:
    explicit = _dunder._has_explicit_init(type_info)
    pack: Any = _dunder._keywords_to_positions(type_info) if explicit else _pack_kwargs
    has_defaults = explicit and _dunder._has_defaults(ffi_init)

    def __ffi_init__(self: Any, /, *args: Any, **kwargs: Any) -> None:
        if getattr(type(self), "__tvm_ffi_type_info__", None) is not type_info:
            raise TypeError(
                f"Calling `{type_cls.__name__}.__ffi_init__()` on a `{type(self).__name__}` "
                f"instance is not supported. Define `{type(self).__name__}` with init=True."
            )
        if kwargs or has_defaults:
            args = pack(args, kwargs)
        self.__init_handle_by_constructor__(ffi_init, *args)

    __ffi_init__.__qualname__ = f"{type_cls.__qualname__}.__ffi_init__"
    __ffi_init__.__module__ = type_cls.__module__
    type_cls.__ffi_init__ = __ffi_init__


def _install_init(type_cls: Any, type_info: core.TypeInfo) -> None:
    """Give a class without ``__init__`` the type's constructor, or one that says there is none."""
    if "__init__" in type_cls.__dict__:
        return
    ffi_init = _find_ffi_init(type_info)
    if ffi_init is not None:
        type_cls.__init__ = _dunder._make_init(type_cls, type_info, ffi_init)
    elif issubclass(type_cls, core.Object):
        type_cls.__init__ = _dunder._make_init_guard(type_cls)


def _own_annotation_names(cls: type) -> Iterable[str]:
    if sys.version_info >= (3, 14):
        import annotationlib

        return annotationlib.get_annotations(cls, format=annotationlib.Format.FORWARDREF)
    return vars(cls).get("__annotations__", {})


def _warn_missing_field_annotations(
    cls: type, type_info: core.TypeInfo, *, stacklevel: int
) -> None:
    annotations = _own_annotation_names(cls)
    missing = [field.name for field in type_info.fields or () if field.name not in annotations]
    if missing:
        warnings.warn(
            f"@c_class({type_info.type_key!r}): class `{cls.__qualname__}` does not annotate the "
            f"following reflected field(s): {', '.join(missing)}. Type checkers do not see them.",
            UserWarning,
            stacklevel=stacklevel,
        )


def get_registered_type_keys() -> Sequence[str]:
    """Return the key of every type in the type table.

    >>> from tvm_ffi.registry import get_registered_type_keys
    >>> "ffi.Array" in get_registered_type_keys()
    True
    """
    return core._get_global_func("ffi.GetRegisteredTypeKeys", False)()


# ---- functions ----------------------------------------------------------------------------------


def register_global_func(
    func_name: str | Callable[..., Any],
    f: Callable[..., Any] | None = None,
    override: bool = False,
) -> Any:
    """Register a callable under a global name; usable as a decorator with or without a name.

    Returns the registered `Function`, so a decorated name is that function.

    >>> import tvm_ffi
    >>> double = tvm_ffi.register_global_func("doc.double", lambda x: 2 * x)
    >>> tvm_ffi.get_global_func("doc.double") is double
    True
    """
    if callable(func_name):
        f, func_name = func_name, func_name.__name__
    if not isinstance(func_name, str):
        raise TypeError(f"func_name must be a string, got {type(func_name).__name__}")
    name = func_name

    def register(function: Callable[..., Any]) -> core.Function:
        if not callable(function):
            raise TypeError(
                f"register_global_func({name!r}) expects a callable, got {type(function).__name__}"
            )
        return core._register_global_func(name, function, override)

    return register if f is None else register(f)


if TYPE_CHECKING:

    @overload
    def get_global_func(name: str, allow_missing: Literal[False] = False) -> core.Function: ...
    @overload
    def get_global_func(name: str, allow_missing: bool) -> core.Function | None: ...


def get_global_func(name: str, allow_missing: bool = False) -> Any:
    """Return the global function `name`; a missing one is None or a `ValueError`.

    >>> import tvm_ffi
    >>> tvm_ffi.get_global_func("testing.add_one")(1)
    2
    >>> tvm_ffi.get_global_func("doc.nobody", allow_missing=True) is None
    True
    """
    try:
        return core._get_global_func(name, allow_missing)
    except (TypeError, ValueError) as error:
        if isinstance(error, UnicodeError):
            raise
        raise _explained(error, name) from None


def _explained(error: Exception, name: Any) -> Exception:
    """Return the error of a missing function with the name that may have been meant."""
    if not isinstance(name, str):
        return TypeError(f"get_global_func expects a name, got {type(name).__name__}")
    meant = _closest(name, list_global_func_names())
    if meant is None:
        return ValueError(f"{error}; the library that registers it may not be loaded")
    return ValueError(f"{error}; did you mean {meant}?")


def _closest(name: str, known: Iterable[str]) -> str | None:
    """Return the name that may have been meant."""
    from difflib import get_close_matches

    found = get_close_matches(name, [str(other) for other in known], 1, 0.8)
    return found[0] if found else None


def list_global_func_names() -> list[str]:
    """Return the names of all global functions."""
    name_of = core._get_global_func("ffi.FunctionListGlobalNamesFunctor", False)()
    return [str(name_of(i)) for i in range(name_of(-1))]


def remove_global_func(name: str) -> None:
    """Remove a global function; a name that does not exist is ignored."""
    core._get_global_func("ffi.FunctionRemoveGlobal", False)(name)


def get_global_func_metadata(name: str) -> dict[str, Any]:
    """Return the metadata given when the function was registered, ``{}`` if there was none."""
    text = core._get_global_func("ffi.GetGlobalFuncMetadata", False)(name)
    if not text:
        return {}
    import json

    return json.loads(text)


def init_ffi_api(namespace: str, target_module_name: str | None = None) -> None:
    """Make every global function ``namespace.name`` an attribute ``name`` of a module.

    >>> import sys, types, tvm_ffi
    >>> sys.modules["doc_api"] = types.ModuleType("doc_api")
    >>> tvm_ffi.init_ffi_api("testing", "doc_api")
    >>> sys.modules["doc_api"].add_one(1)
    2
    """
    if not isinstance(namespace, str):
        raise TypeError(f"init_ffi_api expects a namespace, got {type(namespace).__name__}")
    target_name = target_module_name or namespace
    if target_name not in sys.modules:
        raise KeyError(f"init_ffi_api: module {target_name!r} is not imported")
    target = sys.modules[target_name]
    prefix = namespace.removeprefix("tvm.") + "."
    for name in list_global_func_names():
        short = name.removeprefix(prefix)
        if short == name or "." in short:
            continue
        function = core._get_global_func(name, False)
        function.__name__ = short
        setattr(target, short, function)
