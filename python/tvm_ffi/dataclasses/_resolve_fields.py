# SPDX-License-Identifier: Apache-2.0
"""From the annotations of a class body to its fields.

A class may name classes that do not exist yet. Then nothing is decided: `resolve_hints` returns
None and the caller tries again when more classes are known.
"""

from __future__ import annotations

import importlib
import re
import sys
import typing
from typing import Any, ClassVar, ForwardRef

from .. import core
from .field import KW_ONLY, Field, _evaluated_annotations, field, init_property

_FORWARD_REF = re.compile(r"ForwardRef\('([^']*)'[^)]*\)")

# Module name -> class name -> the class defined there last.
classes_of_module: dict[str, dict[str, type]] = {}


def remember_class(cls: type) -> None:
    """Let annotations of later classes find `cls` by its name."""
    classes_of_module.setdefault(cls.__module__, {})[cls.__name__] = cls


def forget_class(cls: type) -> None:
    """Undo `remember_class`, unless the name means another class now."""
    known = classes_of_module.get(cls.__module__, {})
    if known.get(cls.__name__) is cls:
        del known[cls.__name__]


def field_owners(cls: type, parent: type) -> list[type]:
    """Return the classes whose annotations are fields of `cls`, the most basic one first.

    What the registered parent stands for is not repeated; unregistered classes in between and
    mixins count as part of `cls`.
    """
    inherited = set(parent.__mro__)
    bases = [b for b in reversed(cls.__mro__) if b is not object and b not in inherited]
    return [base for base in bases if _evaluated_annotations(base)]


def is_kw_only_marker(annotation: Any) -> bool:
    """Say whether an annotation is ``KW_ONLY``, evaluated or as text."""
    if isinstance(annotation, ForwardRef):
        annotation = annotation.__forward_arg__
    if isinstance(annotation, str):
        return annotation == "KW_ONLY" or annotation.endswith(".KW_ONLY")
    return annotation is KW_ONLY


def module_globals(cls: type, default: type | None = None) -> dict[str, Any]:
    """Return the globals of the module that defines `cls`."""
    module = sys.modules.get(cls.__module__)
    if module is None and default is not None:
        module = sys.modules.get(default.__module__)
    return vars(module) if module is not None else {}


def _namespaces(cls: type, owners: list[type]) -> list[dict[str, Any]]:
    """Return what names can mean besides the module's globals: first nearby, then everywhere."""
    near: dict[str, Any] = dict(classes_of_module.get(cls.__module__, {}))
    near.update({owner.__name__: owner for owner in owners})
    near[cls.__name__] = cls
    far: dict[str, Any] = {}
    for table in list(classes_of_module.values()):
        far.update(table)
    return [near, {**far, **near}]


def _evaluate(annotations: dict[str, Any], names: dict[str, Any], scope: dict[str, Any]) -> Any:
    # A class of its own, so that get_type_hints looks at these annotations and no inherited ones.
    holder = type("holder", (), {"__annotations__": annotations})
    extras = sys.version_info >= (3, 11)
    return typing.get_type_hints(holder, scope, names, include_extras=extras)


def _needs_no_evaluation(annotation: Any) -> bool:
    # Python 3.10 refuses to evaluate a bare ClassVar.
    return is_kw_only_marker(annotation) or annotation in ("ClassVar", "typing.ClassVar", ClassVar)


def resolve_hints(
    cls: type, owners: list[type], default_globals: dict[str, Any] | None = None
) -> list[dict[str, Any]] | None:
    """Evaluate the annotations of each owner, or return None if some name is not known yet."""
    scopes = [module_globals(owner, cls) or default_globals or {} for owner in owners]
    for names in _namespaces(cls, owners):
        try:
            return [_owner_hints(o, names, scope) for o, scope in zip(owners, scopes, strict=True)]
        except (NameError, AttributeError):
            continue
    return None


def _owner_hints(owner: type, names: dict[str, Any], scope: dict[str, Any]) -> dict[str, Any]:
    annotations = _evaluated_annotations(owner)
    plain = {name for name, value in annotations.items() if _needs_no_evaluation(value)}
    open_ones = {name: value for name, value in annotations.items() if name not in plain}
    return {**dict.fromkeys(plain, ClassVar), **_evaluate(open_ones, names, scope)}


def unresolved(cls: type, owners: list[type]) -> list[str]:
    """Say which annotations cannot be evaluated, and why."""
    names = _namespaces(cls, owners)[-1]
    problems = []
    for owner in owners:
        for name, annotation in _evaluated_annotations(owner).items():
            if _needs_no_evaluation(annotation):
                continue
            try:
                _evaluate({name: annotation}, names, module_globals(owner, cls))
            except Exception as error:
                problems.append(f"{name}: {_as_written(annotation)} ({error})")
    return problems


def _as_written(annotation: Any) -> str:
    text = getattr(annotation, "__forward_arg__", annotation)
    if isinstance(text, str):
        return text
    # A typing object with names inside: Optional["Later"].
    return _FORWARD_REF.sub(r"\1", repr(annotation)).replace("typing.", "")


def is_class_var(hint: Any) -> bool:
    """Say whether a hint marks a class attribute."""
    return hint is ClassVar or typing.get_origin(hint) is ClassVar


class FieldPlan:
    """The own fields of a class, found but not registered: the class is untouched so far."""

    def __init__(self) -> None:
        self.fields: dict[str, Field] = {}
        self.init_properties: dict[str, Any] = {}
        self.kw_only_names: list[str] = []
        # (marker, owner, name, number of own fields before it)
        self.markers: list[tuple[Any, type, str, int]] = []

    @property
    def consumed_names(self) -> list[str]:
        """Names of class attributes that the fields replace."""
        return [*self.kw_only_names, *self.fields]


def plan_fields(
    cls: type,
    owners: list[type],
    hints: list[dict[str, Any]],
    *,
    frozen: bool,
    kw_only: bool,
    markers: tuple[type, ...] = (),
) -> FieldPlan:
    """Make the fields of `cls` from the evaluated annotations of its owners."""
    plan = FieldPlan()
    after_marker = False
    for owner, owner_hints in zip(owners, hints, strict=True):
        for name, annotation in _evaluated_annotations(owner).items():
            if is_kw_only_marker(annotation):
                after_marker = True
                plan.kw_only_names.append(name)
                continue
            hint = owner_hints[name]
            if is_class_var(hint):
                continue
            if any(hint is marker for marker in markers):
                plan.markers.append((hint, owner, name, len(plan.fields)))
                continue
            made = _make_field(plan, owner, cls, name)
            made.name = name
            made.type = hint
            made._ty_schema = core.TypeSchema.from_annotation(hint)
            if made.kw_only is None:
                made.kw_only = after_marker or kw_only
            if frozen:
                made.frozen = True
            if made.hash is None:
                made.hash = made.compare
            plan.fields[name] = made  # a second annotation keeps the place of the first
    return plan


def _make_field(plan: FieldPlan, owner: type, cls: type, name: str) -> Field:
    value = vars(owner).get(name, core.MISSING)
    plan.init_properties.pop(name, None)
    info = vars(owner).get("__tvm_ffi_type_info__") if owner is not cls else None
    # A base that is a type of its own has the property of its field there.
    for described in (info.fields or ()) if info is not None else ():
        if described.name == name and described.dataclass_field is not None:
            init_properties = vars(owner).get("__ffi_init_property_funcs__", {})
            if name in init_properties:
                plan.init_properties[name] = init_properties[name]
            return described.dataclass_field._copy()
    if isinstance(value, init_property):
        plan.init_properties[name] = value.func
        return field(init=False, repr=False, hash=False, compare=False, structural_eq="ignore")
    if isinstance(value, Field):
        return value if owner is cls else value._copy()
    _refuse_other_field(cls, name, value)
    return field() if value is core.MISSING else field(default=value)


def _refuse_other_field(cls: type, name: str, value: Any) -> None:
    """Raise for what `dataclasses.field` returns, which would be taken for a default."""
    other = sys.modules.get("dataclasses")  # if it was never imported, nobody has such a value
    if other is not None and isinstance(value, other.Field):
        raise TypeError(
            f"{cls.__name__}.{name} is described by dataclasses.field; "
            "use tvm_ffi.dataclasses.field"
        )


# ---- the steps of `py_class`, by the names that other packages use -------------------------------


def _py_class() -> Any:
    return importlib.import_module(f"{__package__}.py_class")  # it imports this module


def own_annotations(cls: type) -> dict[str, Any]:
    """Return the annotations of the class body, names that do not exist yet kept."""
    return _evaluated_annotations(cls)


def register_type_without_fields(cls: type, type_key: str) -> core.TypeInfo:
    """Register a class under a key; its fields follow."""
    return _py_class()._register_key(cls, type_key)


def rollback_registration(cls: type, type_info: core.TypeInfo) -> None:
    """Forget a class, so that its key can be used again."""
    core._rollback_py_class(type_info)
    forget_class(cls)
    for name in ("__tvm_ffi_type_info__", "__ffi_is_dataclass__"):
        if name in vars(cls):
            delattr(cls, name)


def resolve_type_hints_by_owner(
    cls: type, globalns: dict[str, Any]
) -> list[tuple[type, dict[str, Any]]] | None:
    """Evaluate the annotations that make up a class, or return None if some name is not known.

    `globalns` is used for classes whose module does not exist.
    """
    parent = _py_class()._registered_parent(cls)
    owners = field_owners(cls, core.Object if parent is None else _py_class()._class_of(parent))
    hints = resolve_hints(cls, owners, globalns)
    return None if hints is None else list(zip(owners, hints, strict=True))


def defer_field_registration(cls: type, type_info: core.TypeInfo, globalns: dict[str, Any]) -> None:
    """Register the fields of a class as soon as its annotations can be evaluated."""
    del globalns  # names are looked up in the module of the class
    _py_class()._defer(cls, type_info)


def flush_pending() -> None:
    """Finish every class whose annotations can be evaluated now."""
    _py_class()._retry_pending()
