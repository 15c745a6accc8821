# SPDX-License-Identifier: Apache-2.0
"""Constructors, comparisons and copies for classes whose fields the type table knows.

`_install_dataclass_dunders` is what the class decorators use; it never replaces what the class body
defines.
"""

from __future__ import annotations

import sys
from functools import cache, partial, wraps

from . import core
from ._impl import signatures
from ._impl.objects import (
    as_copy_of,
    copy_by_reduce,
    is_bare,
    is_generated,
    mark_generated,
    reduces_itself,
)
from .core import Object, TypeInfo, object_repr

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from inspect import Signature
    from typing import Any

_ORDERINGS = (("__lt__", "Lt"), ("__le__", "Le"), ("__gt__", "Gt"), ("__ge__", "Ge"))


def _chain_fields(type_info: TypeInfo) -> list[core.TypeField]:
    """Return the fields of a type, those of its ancestors first."""
    fields: list[core.TypeField] = []
    info: TypeInfo | None = type_info
    while info is not None:
        fields = [*(info.fields or ()), *fields]
        info = info.parent_type_info
    return fields


def _find_ffi_init(info: TypeInfo) -> Any:
    for method in info.methods:
        if method.name == "__ffi_init__":
            return method.func
    return core._lookup_type_attr(info.type_index, "__ffi_init__")


def _pack_kwargs(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """Append keyword arguments the way generated constructors read them: KWARGS, then pairs."""
    packed: list[Any] = [*args, core.KWARGS]
    for name, value in kwargs.items():
        if value is not core.MISSING:
            packed += (name, value)
    return packed


# ---- __init__ -----------------------------------------------------------------------------------


def _make_init_signature(type_info: TypeInfo) -> Signature:
    """Return the signature of the constructor.

    C++ may give names that Python cannot: then it takes anything, and `**{"class": 1}` works.
    """
    from inspect import Parameter, Signature
    from keyword import iskeyword

    try:
        exact = _exact_init_signature(type_info)
        if not any(map(iskeyword, exact.parameters)):  # CPython 3.10 takes them
            return exact
    except ValueError:
        pass
    own = Parameter("self", Parameter.POSITIONAL_ONLY)
    args = Parameter("args", Parameter.VAR_POSITIONAL)
    return Signature([own, args, Parameter("kwargs", Parameter.VAR_KEYWORD)])


def _exact_init_signature(type_info: TypeInfo) -> Signature:
    """Return the parameters by name: required before defaulted, keyword-only last."""
    from inspect import Parameter, Signature

    if _has_explicit_init(type_info):
        explicit = _explicit_parameters(type_info)
        if explicit is not None:
            return Signature([Parameter("self", Parameter.POSITIONAL_ONLY), *explicit])
    groups: dict[tuple[bool, bool], list[Parameter]] = {}
    for field in _chain_fields(type_info):
        if not field.c_init:
            continue
        kind = Parameter.KEYWORD_ONLY if field.c_kw_only else Parameter.POSITIONAL_OR_KEYWORD
        default = core.MISSING if field.c_has_default else Parameter.empty
        parameter = Parameter(field.name, kind, default=default)
        groups.setdefault((field.c_kw_only, field.c_has_default), []).append(parameter)
    is_taken = any(field.name == "self" for field in _chain_fields(type_info))
    parameters = [Parameter("_self" if is_taken else "self", Parameter.POSITIONAL_OR_KEYWORD)]
    for key in ((False, False), (False, True), (True, False), (True, True)):
        parameters += groups.get(key, ())
    return Signature(parameters)


def _init_properties(type_cls: type) -> dict[str, Callable[[Any], Any]]:
    found: dict[str, Callable[[Any], Any]] = {}
    for base in reversed(type_cls.__mro__):
        found.update(base.__dict__.get("__ffi_init_property_funcs__", {}))
    return found


def _init_normalization_fields(
    type_info: TypeInfo,
) -> tuple[dict[int, core.TypeField], dict[str, core.TypeField]]:
    """Return the parameters that take enum payloads, by position and by name."""
    parameters = [field for field in _chain_fields(type_info) if field.c_init]
    positional = [f for f in parameters if not f.c_kw_only and not f.c_has_default]
    positional += [f for f in parameters if not f.c_kw_only and f.c_has_default]
    by_position = {i: f for i, f in enumerate(positional) if f._takes_payload()}
    return by_position, {f.name: f for f in parameters if f._takes_payload()}


def _explicit_parameters(type_info: TypeInfo) -> list[Any] | None:
    """Return the parameters of an explicit C++ constructor, None if nothing is known about them.

    Where the registration does not name them, and there are as many as fields, they are assumed to
    be the fields, in order.
    """
    function = _find_ffi_init(type_info)
    parameters = signatures.parameters_of(function)
    if parameters is None or function._parameters is not None:
        return parameters
    names = [field.name for field in _chain_fields(type_info) if field.c_init]
    if len(names) != len(parameters):
        return parameters
    return signatures.parameters_of(function, names)


def _keywords_to_positions(
    type_info: TypeInfo,
) -> Callable[[tuple[Any, ...], dict[str, Any]], tuple[Any, ...]]:
    """Make the function that calls an explicit C++ constructor with keywords."""
    key = type_info.type_key

    @cache
    def parameters() -> tuple[list[str], dict[str, Any]]:
        found = _explicit_parameters(type_info)
        if found is None:
            return [field.name for field in _chain_fields(type_info) if field.c_init], {}
        named = [p for p in found if p.kind is not p.POSITIONAL_ONLY]
        defaults = {p.name: p.default for p in named if p.default is not p.empty}
        return [p.name for p in named], defaults

    def place(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        names, defaults = parameters()
        if not names and kwargs:
            raise TypeError(
                f"{key}.__ffi_init__() takes no keyword arguments: its parameters have no names"
            )
        values = dict(zip(names, args, strict=False))
        for name, value in kwargs.items():
            if name not in names:
                raise TypeError(f"{key}.__ffi_init__() got an unexpected keyword argument '{name}'")
            if name in values:
                raise TypeError(f"{key}.__ffi_init__() got multiple values for argument '{name}'")
            values[name] = value
        placed = list(args)
        values = {**defaults, **values}
        for name in names[len(args) :]:
            if name not in values:
                if len(placed) < len(values):
                    raise TypeError(f"{key}.__ffi_init__() missing required argument: '{name}'")
                break
            placed.append(values[name])
        return tuple(placed)

    return place


def _not_an_instance(method: str, cls: Any, wrong: Any) -> TypeError:
    name = cls.__name__
    return TypeError(
        f"{method}() must be called on an instance of '{name}', not '{type(wrong).__name__}'"
    )


def _has_explicit_init(info: TypeInfo) -> bool:
    return any(method.name == "__ffi_init__" for method in info.methods)


def _make_init(
    type_cls: type, type_info: TypeInfo, ffi_init: Any, py_class_mode: bool = False
) -> Callable[..., None]:
    """Make the ``__init__`` that builds the C++ object with `ffi_init`."""
    init_properties = _init_properties(type_cls)
    has_post_init = hasattr(type_cls, "__post_init__")
    by_position, by_name = _init_normalization_fields(type_info)
    explicit = _has_explicit_init(type_info)
    pack: Any = _keywords_to_positions(type_info) if explicit else _pack_kwargs
    has_defaults = explicit and _has_defaults(ffi_init)

    def check_class(self: Any) -> None:
        if not isinstance(self, core.CObject):
            raise _not_an_instance(__init__.__qualname__, type_cls, self)
        if getattr(type(self), "__tvm_ffi_type_info__", None) is not type_info:
            raise TypeError(
                f"Calling `super().__init__()` is not supported for @c_class "
                f"`{type_cls.__name__}`. Use @py_class for inheritance with manual __init__, "
                f"or define `{type(self).__name__}` with init=True."
            )

    def normalize(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        for name in by_name.keys() & kwargs.keys():
            if kwargs[name] is not core.MISSING:
                kwargs[name] = by_name[name].normalize_value(kwargs[name])
        return tuple(
            by_position[i].normalize_value(arg) if i in by_position else arg
            for i, arg in enumerate(args)
        )

    def set_fields(self: Any, args: tuple[Any, ...]) -> None:
        made = ffi_init(*args)  # with the conversions, defaults and errors of the class
        for field in _chain_fields(type_info):
            getattr(type(self), field.name).set(self, getattr(made, field.name))

    def __init__(self: Any, /, *args: Any, **kwargs: Any) -> None:
        if py_class_mode and not isinstance(self, type_cls):
            raise _not_an_instance(__init__.__qualname__, type_cls, self)
        is_there = py_class_mode and self.__chandle__() != 0
        # Called by the __init__ of a subclass. Without arguments the fields are left to that one.
        if is_there and not args and not kwargs:
            return
        if not py_class_mode:
            check_class(self)
        if by_name:
            args = normalize(args, kwargs)
        if kwargs or has_defaults:
            args = pack(args, kwargs)
        if is_there:
            set_fields(self, args)
        else:
            self.__init_handle_by_constructor__(ffi_init, *args)
        for name, function in init_properties.items():
            getattr(type(self), name).set(self, function(self))
        if has_post_init:
            self.__post_init__()

    __init__.__qualname__ = f"{type_cls.__qualname__}.__init__"
    __init__.__module__ = type_cls.__module__
    __init__.__signature__ = _make_init_signature(type_info)  # type: ignore[attr-defined]
    if explicit:
        __init__.__doc__ = ffi_init.__doc__
    if init_properties or has_post_init or by_name:
        return __init__
    expected_info = None if py_class_mode else type_info
    names = _positional_names(type_info, ffi_init, explicit)
    defaults = ffi_init._parameters[1] if has_defaults else ()
    return core._make_initializer(
        type_cls, __init__, expected_info, ffi_init, not explicit, names, defaults
    )


def _has_defaults(function: Any) -> bool:
    parameters = getattr(function, "_parameters", None)
    return parameters is not None and any(v is not core.MISSING for v in parameters[1])


def _positional_names(type_info: TypeInfo, ffi_init: Any, explicit: bool) -> tuple[str, ...]:
    """Return the names of the constructor's positions, as far as they are certain."""
    if explicit:
        parameters = ffi_init._parameters
        return () if parameters is None else parameters[0]
    fields = [f for f in _chain_fields(type_info) if f.c_init and not f.c_kw_only]
    ordered = sorted(fields, key=lambda f: f.c_has_default)  # as the signature has them
    return tuple(sys.intern(f.name) for f in ordered)


def _wrap_user_init(init: Any, ffi_new: Any, type_info: TypeInfo) -> Callable[..., None]:
    """Let an ``__init__`` written by the user find an object whose fields have their defaults."""
    defaulted = [field for field in _chain_fields(type_info) if field.c_has_default]

    @wraps(init)
    def __init__(self: Any, /, *args: Any, **kwargs: Any) -> None:
        if not isinstance(self, core.CObject):
            raise _not_an_instance(init.__qualname__, type_info.type_cls, self)
        if self.__chandle__() == 0:
            self.__init_handle_by_constructor__(ffi_new)
            for field in defaulted:
                factory = field.c_default_factory
                value = field.c_default if factory is core.MISSING else factory()
                getattr(type(self), field.name).set(self, value)
        init(self, *args, **kwargs)

    return __init__


def _make_init_guard(type_cls: type) -> Callable[..., None]:
    """Make an ``__init__`` for a class that cannot be constructed from Python."""

    def __init__(self: Any, /, *args: Any, **kwargs: Any) -> None:
        raise TypeError(
            f"`{type(self).__name__}` cannot be constructed directly. "
            "Define a custom __init__ or use a factory method."
        )

    __init__.__qualname__ = f"{type_cls.__qualname__}.__init__"
    __init__.__module__ = type_cls.__module__
    return __init__


def _make_constructor(
    cls: Any,
    *,
    positional_fields: Iterable[str] | None = None,
    field_normalizers: Mapping[str, Callable[[Any], Any]] | None = None,
) -> Callable[..., Any]:
    """Make a function that builds an instance without ``__init__`` and ``__post_init__``.

    Every field may be left out, and given by position in the order of definition, unless
    `positional_fields` names those that may, in order. `field_normalizers` are applied to the
    values of their fields.
    """
    from inspect import Parameter, Signature

    fields = {f.name: f for f in _chain_fields(cls.__tvm_ffi_type_info__) if f.c_init}
    names = tuple(fields if positional_fields is None else positional_fields)
    ordered = {**{name: fields[name] for name in names}, **fields}
    signature = Signature(
        [
            Parameter(
                name,
                Parameter.POSITIONAL_OR_KEYWORD if i < len(names) else Parameter.KEYWORD_ONLY,
                default=field.c_default,
            )
            for i, (name, field) in enumerate(ordered.items())
        ]
    )
    normalizers = dict(field_normalizers or {})

    def construct(*args: Any, **kwargs: Any) -> Any:
        values = signature.bind(*args, **kwargs).arguments
        for name in normalizers.keys() & values.keys():
            if values[name] is not core.MISSING:
                values[name] = normalizers[name](values[name])
        made = cls.__new__(cls)
        made.__ffi_init__(**values)
        return made

    construct.__signature__ = signature  # type: ignore[attr-defined]
    for attribute in ("__name__", "__qualname__", "__module__"):
        setattr(construct, attribute, getattr(cls, attribute))
    return construct


# ---- comparison, copies -------------------------------------------------------------------------


def _comparable(left: Any, right: Any) -> bool:
    return isinstance(right, type(left)) or isinstance(left, type(right))


def _make_comparison(ffi_name: str) -> Callable[[Any, Any], bool]:
    function = core._get_global_func(ffi_name, False)

    def compare(self: Any, other: Any) -> bool:
        if not _comparable(self, other):
            return NotImplemented
        return bool(function(self, other))

    return compare


def _make_not_equal() -> Callable[[Any, Any], bool]:
    def __ne__(self: Any, other: Any) -> bool:
        return object.__ne__(self, other)  # the opposite of __eq__, that of a subclass too

    return __ne__


def _make_hash() -> Callable[[Any], int]:
    function = core._get_global_func("ffi.RecursiveHash", False)

    def __hash__(self: Any) -> int:
        return function(self)

    return __hash__


def _make_copy(type_cls: type, type_info: TypeInfo) -> Callable[[Any], Any]:
    shallow_copy = core._lookup_type_attr(type_info.type_index, "__ffi_shallow_copy__")
    if shallow_copy is not None:
        shallow_copy.release_gil = False  # it reads fields that other threads may set

    bare = is_bare(type_cls)

    def __copy__(self: Any) -> Any:
        if shallow_copy is None:
            raise TypeError(
                f"Type `{type_cls.__name__}` does not support copy. "
                "The underlying C++ type is not copy-constructible."
            )
        if reduces_itself(self):
            return copy_by_reduce(self)
        copied = shallow_copy(self)
        if bare and type(copied) is type(self):
            return copied
        return as_copy_of(self, copied)

    return __copy__


class _DeepCopy:
    """The functions of the library, looked up once."""

    def __init__(self) -> None:
        self.make_copier = core._get_global_func("ffi.tether.DeepCopier", False)
        self.copy = core._get_global_func("ffi.DeepCopyTogether", False)
        self.fetch = core._convert_to_ffi_func(lambda _: None)


@cache
def _deep_copy_functions() -> _DeepCopy:
    return _DeepCopy()


def deep_copy(value: Any, memo: dict[int, Any] | None = None) -> Any:
    """Copy a value and everything that it refers to.

    What values share that are copied with one `memo`, that of `copy.deepcopy`, is copied once.
    Every object that is copied in a cycle is fetched once: what has a wrapper can be collected.
    """
    functions = _deep_copy_functions()
    if memo is None:
        return functions.copy(functions.make_copier(), value, functions.fetch)
    key = id(functions)  # of an object that nobody else copies
    copier = memo.get(key)
    if copier is None:
        copier = memo[key] = functions.make_copier()
    return functions.copy(copier, value, functions.fetch)


def _make_deepcopy() -> Callable[..., Any]:
    def __deepcopy__(self: Any, memo: Any = None) -> Any:
        if reduces_itself(self):
            return copy_by_reduce(self, {} if memo is None else memo)
        return as_copy_of(self, deep_copy(self, memo), {} if memo is None else memo)

    return __deepcopy__


def _make_replace() -> Callable[..., Any]:
    def __replace__(self: Any, **changes: Any) -> Any:
        result = self.__copy__()
        for name, value in changes.items():
            store = getattr(getattr(type(result), name, None), "set", None)
            if store is None:
                raise AttributeError(f"{type(result).__name__} has no field {name!r}")
            store(result, value)
        return result

    return __replace__


def _set_match_args(type_cls: Any, type_info: TypeInfo) -> None:
    if "__match_args__" in type_cls.__dict__:
        return
    described = [field.dataclass_field for field in _chain_fields(type_info)]
    type_cls.__match_args__ = tuple(  # type: ignore[misc]
        field.name for field in described if field is not None and field.init and not field.kw_only
    )


def _install_dataclass_dunders(
    cls: Any,
    *,
    init: bool,
    repr: bool,
    eq: bool,
    order: bool,
    unsafe_hash: bool,
    match_args: bool = True,
    py_class_mode: bool = False,
) -> None:
    """Install the requested special methods, except those the class body defines."""
    info = cls.__tvm_ffi_type_info__

    def add(name: str, make: Callable[[], Any]) -> None:
        if name in cls.__dict__:
            return
        function = make()
        function.__name__ = name
        function.__qualname__ = f"{cls.__qualname__}.{name}"
        function.__module__ = cls.__module__
        setattr(cls, name, function)

    def add_copy(name: str, make: Callable[[], Any]) -> None:
        if not hasattr(cls, name) or is_generated(getattr(cls, name)):
            add(name, lambda: mark_generated(make()))

    def lacks_all(*names: str) -> bool:
        return not any(name in cls.__dict__ for name in names)

    ffi_init = _find_ffi_init(info)
    if "__init__" in cls.__dict__:
        ffi_new = core._lookup_type_attr(info.type_index, "__ffi_new__")
        if py_class_mode and ffi_new is not None:
            cls.__init__ = _wrap_user_init(cls.__dict__["__init__"], ffi_new, info)
    elif init and ffi_init is not None:
        add("__init__", lambda: _make_init(cls, info, ffi_init, py_class_mode))
    elif not init or issubclass(cls, Object):
        add("__init__", lambda: _make_init_guard(cls))
    if repr and "__repr__" not in cls.__dict__:
        cls.__repr__ = object_repr
    if eq and lacks_all("__eq__", "__ne__"):
        add("__eq__", lambda: _make_comparison("ffi.RecursiveEq"))
        add("__ne__", _make_not_equal)
    if order and lacks_all(*(name for name, _ in _ORDERINGS)):
        for name, suffix in _ORDERINGS:
            add(name, partial(_make_comparison, f"ffi.Recursive{suffix}"))
    if eq or unsafe_hash:  # equal objects have equal hashes
        add("__hash__", _make_hash)
    add_copy("__copy__", lambda: _make_copy(cls, info))
    add_copy("__deepcopy__", _make_deepcopy)
    add("__replace__", _make_replace)
    if match_args:
        _set_match_args(cls, info)
