# SPDX-License-Identifier: Apache-2.0
"""Classes defined in Python whose objects live in C++.

>>> import tvm_ffi
>>> from tvm_ffi.dataclasses import py_class
>>> @py_class("doc.py_class.Node")
... class Node(tvm_ffi.Object):
...     name: str
...     next: "Node | None" = None
>>> first = Node("a", Node("b"))
>>> first.next is first.next
True
"""

from __future__ import annotations

import json
import typing
from inspect import Parameter, signature
from keyword import iskeyword
from threading import RLock
from typing import Any

from .. import core
from .._dunder import _chain_fields, _install_dataclass_dunders
from ..core import MISSING, TypeSchema
from ..registry import _add_class_attrs, _check_is_class
from . import _resolve_fields as _resolve
from .c_class import _HOOK_NAMES
from .field import Field, _keep_value, dataclass_transform, field

__all__ = [
    "MISSING",
    "Field",
    "TypeSchema",
    "field",
    "method",
    "on_fields_resolved",
    "py_class",
]

_T = typing.TypeVar("_T")
_STRUCTURAL_KINDS = {
    None: 0,
    "tree": core._abi.kTVMFFISEqHashKindTreeNode,
    "var": core._abi.kTVMFFISEqHashKindFreeVar,
    "dag": core._abi.kTVMFFISEqHashKindDAGNode,
    "const-tree": core._abi.kTVMFFISEqHashKindConstTreeNode,
    "singleton": core._abi.kTVMFFISEqHashKindUniqueInstance,
}
# What a class takes from its nearest registered ancestor, unless it says otherwise.
_INHERITED_ATTRS = (
    "__s_equal__",
    "__s_hash__",
    "__s_visit__",
    "__data_to_json__",
    "__data_from_json__",
)
_DEFAULT_ARGUMENTS: dict[str, Any] = {
    "frozen": False,
    "init": True,
    "repr": True,
    "eq": False,
    "order": False,
    "unsafe_hash": False,
    "match_args": True,
    "kw_only": False,
    "structural_eq": "tree",
}
# Decorating a class writes tables of the whole process and may finish other classes.
_lock = RLock()
# Classes whose annotations could not be evaluated yet, in the order they were decorated.
_pending: list[Any] = []


@dataclass_transform(
    eq_default=False,
    order_default=False,
    field_specifiers=(Field, field),
    converter=_keep_value,  # type: ignore[literal-required]
)
def py_class(
    cls_or_type_key: Any = None,
    /,
    *,
    type_key: str | None = None,
    frozen: bool = False,
    init: bool = True,
    repr: bool = True,
    eq: bool = False,
    order: bool = False,
    unsafe_hash: bool = False,
    match_args: bool = True,
    kw_only: bool = False,
    structural_eq: str | None = "tree",
    slots: bool = True,
) -> Any:
    """Register the decorated class as a type of its own; its annotations become fields.

    The key of the type is given or made of module and name. Annotations may name classes that are
    defined later; until then the class cannot be instantiated. `slots` changes nothing.

    A function in the body of the class or of a base class that has the attribute
    ``__ffi_on_fields_resolved__ = True`` is called with the type info and the list of the class's
    own fields before these are registered. It may change both.

    Attributes of a class that say how it is registered; all of them are inherited:

    - ``__ffi_type_attr_names__``: more names whose values in the body become type attributes.
    - ``__ffi_inherit_type_attrs__``: the type attributes that are copied from the nearest ancestor
      that has them. By default those are the hooks of structural comparison, visits and JSON. A
      value in the body wins, and None there ends the search.
    - ``__ffi_field_markers__``: types of annotations that are not fields. Each is recorded in
      ``type_info._decorator_args["field_markers"]`` as (marker, owner, name, number of the field
      that would stand there).

    >>> import tvm_ffi
    >>> from tvm_ffi.dataclasses import KW_ONLY, py_class
    >>> @py_class("doc.py_class.Item", frozen=True, eq=True, unsafe_hash=True)
    ... class Item(tvm_ffi.Object):
    ...     label: str
    ...     _: KW_ONLY
    ...     weight: float = 1
    >>> {Item("a"): 1}[Item("a", weight=1.0)]
    1
    """
    if order and not eq:
        raise ValueError("order=True requires eq=True")
    if structural_eq not in _STRUCTURAL_KINDS:
        known = sorted(kind for kind in _STRUCTURAL_KINDS if kind is not None)
        raise ValueError(f"structural_eq must be one of {known} or None, got {structural_eq!r}")
    arguments = {
        "frozen": frozen,
        "init": init,
        "repr": repr,
        "eq": eq,
        "order": order,
        "unsafe_hash": unsafe_hash,
        "match_args": match_args,
        "kw_only": kw_only,
        "structural_eq": structural_eq,
    }
    if isinstance(cls_or_type_key, str):
        type_key = cls_or_type_key
    elif cls_or_type_key is not None and not isinstance(cls_or_type_key, type):
        raise TypeError(f"py_class: expected str or type, got {type(cls_or_type_key)}")

    def decorate(cls: Any) -> Any:
        _check_is_class(cls, f"py_class({type_key!r})")
        key = type_key if type_key is not None else f"{cls.__module__}.{cls.__qualname__}"
        with _lock:
            _define(cls, key, arguments)
        return cls

    return decorate(cls_or_type_key) if isinstance(cls_or_type_key, type) else decorate


def method(fn: _T) -> _T:
    """Make a function of a `py_class` body a method that C++ can call by name.

    >>> import tvm_ffi
    >>> from tvm_ffi.dataclasses import py_class
    >>> @py_class("doc.method.Counter")
    ... class Counter(tvm_ffi.Object):
    ...     start: int
    ...     @tvm_ffi.method
    ...     def shifted(self, by: int) -> int:
    ...         return self.start + by
    >>> Counter.__tvm_ffi_type_info__.methods[0].func(Counter(1), 2)
    3
    """
    if isinstance(fn, classmethod):
        raise TypeError(
            "@tvm_ffi.method: @classmethod is not supported, because C++ has no class to pass; "
            "use a plain function or a staticmethod."
        )
    target: Any = fn.__func__ if isinstance(fn, staticmethod) else fn
    if not callable(target):
        raise TypeError(f"@tvm_ffi.method: expected a callable, got {type(fn).__name__}.")
    target.__ffi_method__ = True
    return fn


# ---- registration -------------------------------------------------------------------------------


class _Definition:
    """A class on its way into the type table: first its key, then its fields."""

    def __init__(self, cls: Any, info: core.TypeInfo, arguments: dict[str, Any]) -> None:
        self.cls = cls
        self.info = info
        self.arguments = arguments
        assert info.parent_type_info is not None
        self.parent = info.parent_type_info
        self.owners = _resolve.field_owners(cls, _class_of(self.parent))
        # While the class is deferred, the user's __init__ waits here.
        self.user_init = vars(cls).get("__init__", MISSING)
        earlier = getattr(self.user_init, "_deferred_by", None)
        if earlier is not None:
            self.user_init = earlier.user_init
        self.is_deferred = earlier is not None
        self.failure: str | None = None

    def finish(self) -> bool:
        """Register the fields if every annotation can be evaluated; False if it cannot."""
        if self.parent.fields is None and not _finish_parent(self.parent):
            return False
        hints = _resolve.resolve_hints(self.cls, self.owners)
        if hints is None:
            return False
        self._install(hints)
        return True

    def defer(self) -> None:
        """Wait for classes that are defined later, at most until an object is constructed."""
        self.is_deferred = True
        cls = self.cls

        def __init__(self_: Any, /, *args: Any, **kwargs: Any) -> None:
            with _lock:
                if self in _pending:
                    self._finish_or_give_up()
                elif self.failure is not None:
                    raise TypeError(self.failure)
            cls.__init__(self_, *args, **kwargs)

        __init__.__qualname__ = f"{cls.__qualname__}.__init__"
        __init__.__module__ = cls.__module__
        __init__._deferred_by = self  # type: ignore[attr-defined]
        cls.__init__ = __init__
        _pending.append(self)

    def roll_back(self) -> None:
        """Forget the class, so that the key can be used again."""
        _resolve.rollback_registration(self.cls, self.info)

    def _finish_or_give_up(self) -> None:
        try:
            if not self.finish():
                problems = _resolve.unresolved(self.cls, self.owners)
                raise TypeError(
                    f"Cannot instantiate {self.cls.__name__}: unresolved forward references: "
                    f"{problems}"
                )
        except Exception as error:
            # The class stays without a constructor: every call raises this error again.
            self.failure = str(error)
            _pending.remove(self)
            self.roll_back()
            raise
        _pending.remove(self)
        _retry_pending()

    def _restore_init(self) -> None:
        if not self.is_deferred:
            return
        self.is_deferred = False
        if self.user_init is MISSING:
            del self.cls.__init__
        else:
            self.cls.__init__ = self.user_init

    def _install(self, hints: list[dict[str, Any]]) -> None:
        cls, info, arguments = self.cls, self.info, self.arguments
        plan = _resolve.plan_fields(
            cls,
            self.owners,
            hints,
            frozen=arguments["frozen"],
            kw_only=arguments["kw_only"],
            markers=_field_markers(cls),
        )
        fields = list(plan.fields.values())
        info._decorator_args = dict(info._decorator_args)  # hooks may change it
        info._decorator_args["field_markers"] = _all_markers(self.parent, plan)
        _run_field_hooks(cls, info, fields)
        # Everything that can be wrong with the class is found before the type table sees it.
        _check_field_names(cls, fields, arguments["init"] and self.user_init is MISSING)
        _check_parameter_names(cls, self.parent, fields)
        methods = _collect_py_methods(cls, _resolve.module_globals(cls))
        for name in plan.consumed_names:
            if name in vars(cls):
                delattr(cls, name)
        if plan.init_properties:
            cls.__ffi_init_property_funcs__ = plan.init_properties
        self._restore_init()
        _register(info, fields, methods)


def _field_markers(cls: type) -> tuple[type, ...]:
    markers = getattr(cls, "__ffi_field_markers__", ())
    if not isinstance(markers, (tuple, list)) or not all(isinstance(m, type) for m in markers):
        raise TypeError("__ffi_field_markers__ must be a tuple or list of types")
    return tuple(markers)


def _all_markers(parent: core.TypeInfo, plan: _resolve.FieldPlan) -> tuple[Any, ...]:
    """Return the markers of a class, those of its ancestors first."""
    inherited = getattr(parent, "_decorator_args", None) or {}
    number = len(_chain_fields(parent))
    own = ((marker, owner, name, number + i) for marker, owner, name, i in plan.markers)
    return (*inherited.get("field_markers", ()), *own)


def _run_field_hooks(cls: type, info: core.TypeInfo, fields: list[Field]) -> None:
    """Call what the classes say about fields, base classes first, before they are registered."""
    for base in reversed(cls.__mro__):
        for value in list(vars(base).values()):
            # The mark of a static method is on the method or on its function.
            marked = (value, value.__func__) if isinstance(value, staticmethod) else (value,)
            if callable(value) and any(
                getattr(one, "__ffi_on_fields_resolved__", None) is True for one in marked
            ):
                value(info, fields)
    for own in fields:
        if own.extra_kwargs:
            options = ", ".join(sorted(own.extra_kwargs))
            raise TypeError(f"{cls.__name__}.{own.name}: unrecognized field options: {options}")


def on_fields_resolved(type_info: core.TypeInfo, resolved_fields: list[Field]) -> None:
    """Register the fields of a class whose annotations have been evaluated, and complete it."""
    methods = _collect_py_methods(type_info.type_cls, _resolve.module_globals(_class_of(type_info)))
    _register(type_info, resolved_fields, methods)


def _register(info: core.TypeInfo, fields: list[Field], methods: Any) -> None:
    cls: Any = info.type_cls
    arguments = info._decorator_args
    info._register_fields(fields, _STRUCTURAL_KINDS[arguments["structural_eq"]])
    for type_field, described in zip(info.fields or (), fields, strict=True):
        type_field.dataclass_field = described
    names = _type_attr_names(cls)
    inherited = [(name, value, True, None) for name, value in _inherited_attrs(cls)]
    info._register_py_methods(
        [*(methods or ()), *inherited], frozenset((*names, *(item[0] for item in inherited)))
    )
    _add_class_attrs(cls, info, names)
    wanted = ("init", "repr", "eq", "order", "unsafe_hash", "match_args")
    _install_dataclass_dunders(
        cls, py_class_mode=True, **{name: arguments[name] for name in wanted}
    )


def _register_key(cls: Any, key: str) -> core.TypeInfo:
    """Register a type whose fields are not known yet."""
    _check_is_new(cls, key)
    parent = _registered_parent(cls)
    if parent is None:
        raise TypeError(
            f"{cls.__name__} must inherit from a registered FFI Object type (e.g. tvm_ffi.Object)"
        )
    _check_bases(cls, _class_of(parent))
    _type_attr_names(cls), _inherited_names(cls), _field_markers(cls)  # raise if they are wrong
    info = core._register_py_class(parent, key, cls)
    cls.__tvm_ffi_type_info__ = info
    _resolve.remember_class(cls)
    return info


def _check_is_new(cls: type, key: str) -> None:
    """Reject a class that is a type already: its objects and fields belong to that type."""
    info = core._type_cls_to_type_info(cls) or vars(cls).get("__tvm_ffi_type_info__")
    if info is not None:
        raise ValueError(
            f"{cls.__name__} cannot be registered as {key!r}: it is already registered as "
            f"{info.type_key!r}, and a class stands for one type"
        )


def _define(cls: Any, key: str, arguments: dict[str, Any]) -> None:
    info = _register_key(cls, key)
    info._decorator_args = arguments
    definition = _Definition(cls, info, arguments)
    try:
        is_complete = definition.finish()
    except BaseException:
        definition.roll_back()
        raise
    if not is_complete:
        definition.defer()
    cls.__ffi_is_dataclass__ = True
    if is_complete:
        _retry_pending()


def _defer(cls: Any, info: core.TypeInfo) -> None:
    """Let a class whose key is registered wait for its fields."""
    if getattr(info, "_decorator_args", None) is None:
        info._decorator_args = dict(_DEFAULT_ARGUMENTS)
    with _lock:
        _Definition(cls, info, info._decorator_args).defer()
        cls.__ffi_is_dataclass__ = True


def _registered_parent(cls: type) -> core.TypeInfo | None:
    for base in cls.__mro__[1:]:
        info = core._type_cls_to_type_info(base) or vars(base).get("__tvm_ffi_type_info__")
        if info is not None:
            return info
    return None


def _check_bases(cls: type, parent: type) -> None:
    """Reject a second base whose fields only C++ knows: an object has one parent there.

    Of other classes defined in Python the fields become fields of `cls`, as those of a mixin do.
    """
    for base in cls.__mro__[1:]:
        info = core._type_cls_to_type_info(base)
        if info is None or issubclass(parent, base) or core._is_python_defined(info.type_index):
            continue
        raise TypeError(
            f"{cls.__name__} cannot inherit from both {parent.__name__} and {base.__name__}: "
            f"an object has one parent type in C++, and {base.__name__} is defined there"
        )


def _class_of(info: core.TypeInfo) -> type:
    return info.type_cls if info.type_cls is not None else core.Object


def _finish_parent(parent: core.TypeInfo) -> bool:
    for definition in _pending:
        if definition.info is parent:
            if not definition.finish():
                return False
            _pending.remove(definition)
            return True
    return False


def _retry_pending() -> None:
    """Finish every class whose annotations can be evaluated now.

    What is wrong with such a class is reported when it is used, not to the author of the
    class that happened to come next.
    """
    progress = True
    while progress:
        progress = False
        for definition in list(_pending):
            try:
                is_complete = definition in _pending and definition.finish()
            except Exception:
                continue
            if is_complete:
                _pending.remove(definition)
                progress = True


def _check_field_names(cls: type, fields: list[Field], makes_init: bool) -> None:
    for name, is_parameter in ((own.name or "", own.init and makes_init) for own in fields):
        if not name or "\0" in name:
            raise ValueError(
                f"{cls.__name__} cannot have a field named {name!r}: "
                "a name is not empty and has no NUL"
            )
        if is_parameter and (not name.isidentifier() or iskeyword(name)):
            raise ValueError(f"{name!r} is not a valid parameter name: a field of {cls.__name__}")


def _check_parameter_names(cls: type, parent: core.TypeInfo, fields: list[Field]) -> None:
    for own in fields:
        owner = _owner_of_parameter(parent, own.name) if own.init else None
        if owner is not None:
            raise ValueError(
                f"duplicate parameter name: {own.name!r}: {cls.__name__} declares again the field "
                f"that it inherits from {_class_of(owner).__name__} ({owner.type_key!r}). "
                "A field keeps its type and its default in subclasses."
            )


def _owner_of_parameter(info: core.TypeInfo | None, name: str | None) -> core.TypeInfo | None:
    """Return the nearest type that has a parameter of its own with this name."""
    while info is not None and all(f.name != name or not f.c_init for f in info.fields or ()):
        info = info.parent_type_info
    return info


# ---- hooks and methods --------------------------------------------------------------------------


def _names_in(cls: type, attribute: str, default: tuple[str, ...]) -> tuple[str, ...]:
    names = getattr(cls, attribute, default)
    if not isinstance(names, (tuple, list)) or not all(isinstance(name, str) for name in names):
        raise TypeError("TypeAttr registration lists must be tuples or lists of strings")
    return tuple(names)


def _type_attr_names(cls: type) -> tuple[str, ...]:
    """Return the names whose values in a class body are type attributes."""
    extra = _names_in(cls, "__ffi_type_attr_names__", ())
    return tuple(dict.fromkeys((*_HOOK_NAMES, *extra)))


def _inherited_names(cls: type) -> tuple[str, ...]:
    return _names_in(cls, "__ffi_inherit_type_attrs__", _INHERITED_ATTRS)


def _inherited_attrs(cls: type) -> list[tuple[str, Any]]:
    """Return the type attributes that a class takes from its ancestors."""
    found = []
    for name in dict.fromkeys(_inherited_names(cls)):
        if name in vars(cls):
            continue
        for base in cls.__mro__[1:]:
            info = core._type_cls_to_type_info(base)
            if info is None:
                continue
            value = core._lookup_type_attr(info.type_index, name)
            if value is not None:
                found.append((name, value))
            if value is not None or name in vars(base):
                break
    return found


def _collect_py_methods(cls: Any, globalns: dict[str, Any] | None = None) -> Any:
    """Return the hooks and marked methods of a class body as (name, value, is_static), or None.

    With `globalns` each has a fourth item: the metadata of a method as JSON, None for a hook.
    """
    found = []
    type_attrs = _type_attr_names(cls)
    for name, value in vars(cls).items():
        is_hook = name in type_attrs
        if is_hook and value is None:
            continue  # it only ends the search for an inherited one
        function = getattr(value, "__func__", value)
        if not is_hook and getattr(function, "__ffi_method__", False) is not True:
            continue
        if isinstance(value, classmethod):
            raise TypeError(
                f"@py_class({cls.__name__!r}): {name!r} is wrapped by @classmethod, "
                "which C++ cannot call; use a plain function or a staticmethod"
            )
        is_static = isinstance(value, staticmethod)
        item: tuple[Any, ...] = (name, function, is_static)
        if globalns is not None:
            metadata = None if is_hook else _method_metadata(cls, function, is_static, globalns)
            item = (*item, metadata)
        found.append(item)
    return found or None


def _method_metadata(cls: Any, function: Any, is_static: bool, globalns: dict[str, Any]) -> str:
    return json.dumps({"type_schema": _method_schema(cls, function, is_static, globalns)})


def _method_schema(
    cls: Any, function: Any, is_static: bool, globalns: dict[str, Any]
) -> dict[str, Any]:
    unknown = {"type": "Callable"}
    try:
        parameters = list(signature(function).parameters.values())
        names = _resolve._namespaces(cls, [cls])[-1]
        hints = typing.get_type_hints(function, globalns, names)
    except Exception:
        return unknown  # the signature cannot be described; the method still works
    if any(
        p.kind not in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
        for p in parameters
    ):
        return unknown

    def schema(name: str) -> dict[str, Any]:
        return core.TypeSchema.from_annotation(hints.get(name, Any)).to_json()

    params = []
    if not is_static:
        params.append({"type": cls.__tvm_ffi_type_info__.type_key})
        parameters = parameters[1:]
    params += [schema(p.name) for p in parameters]
    return {"type": "Callable", "named_args": {"return": [schema("return")], "params": params}}
