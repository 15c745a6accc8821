# SPDX-License-Identifier: Apache-2.0
"""Questions about any object that run no code of the object or of its class.

`isinstance` reads `__class__`, which may be a property, and a metaclass may answer for an attribute
of a class. So `type` itself is asked here.
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator
from typing import Any

from .. import core

_mro = type.__dict__["__mro__"].__get__
_name = type.__dict__["__name__"].__get__
_qualname = type.__dict__["__qualname__"].__get__
_module = type.__dict__["__module__"].__get__
_dict = type.__dict__["__dict__"].__get__
_basic_size = type.__dict__["__basicsize__"].__get__
_dict_offset = type.__dict__["__dictoffset__"].__get__
_namespace = vars(types.ModuleType)["__dict__"].__get__


def is_a(obj: Any, kinds: type | tuple[type, ...]) -> bool:
    """Say whether an object is of a class whose metaclass is `type`."""
    return issubclass(type(obj), kinds)


def is_exactly(obj: Any, kinds: Iterable[type]) -> bool:
    """Say whether an object is of one of these classes itself. `in` would ask the metaclass."""
    kind = type(obj)
    return any(kind is other for other in kinds)


def text(value: Any) -> str:
    """A string as it is, also if its class is not `str`; "?" for anything else."""
    return str.__str__(value) if is_a(value, str) else "?"


def printable(shown: str) -> str:
    r"""A text for people in one line: what cannot be printed is written as in a literal of Python.

    >>> from tvm_ffi.inspect._quiet import printable
    >>> print(printable("a key\0\n"))
    a key\x00\n
    """
    if shown.isprintable():
        return shown
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in shown)


def name(cls: type) -> str:
    """The `__name__` of a class."""
    return text(_name(cls))


def full_name(cls: type) -> str:
    """The `__module__` and the `__qualname__` of a class."""
    try:
        module = _module(cls)
    except AttributeError:
        module = None
    return f"{text(module)}.{text(_qualname(cls))}"


def members(cls: type) -> Iterator[tuple[str, Any]]:
    """What is in the namespaces of a class and its bases."""
    for base in _mro(cls):
        yield from list(_dict(base).items())


def member(cls: type, wanted: str) -> Any:
    """What the first class in the order of resolution has under a name; None without."""
    for base in _mro(cls):
        found = _dict(base).get(wanted)
        if found is not None:
            return found
    return None


def has_state(cls: type) -> bool:
    """Say whether instances of a class of wrappers have Python attributes."""
    return _basic_size(cls) > core.CObject.__basicsize__ or _dict_offset(cls) != 0


def namespace(module: Any) -> dict[str, Any]:
    """The variables of a module; none if it is not one."""
    found = _namespace(module) if is_a(module, types.ModuleType) else None
    return found if type(found) is dict else {}


def attributes(obj: Any) -> list[tuple[str, Any]]:
    """Attributes in slots and in `__dict__`, by name, and that dict itself as `__dict__`."""
    found: list[tuple[str, Any]] = []
    cls = type(obj)
    for key, value in members(cls):
        try:
            if type(value) is types.MemberDescriptorType:
                found.append((key, value.__get__(obj, cls)))
            elif key == "__dict__" and type(value) is types.GetSetDescriptorType:
                variables = value.__get__(obj, cls)
                found.append(("__dict__", variables))
                if type(variables) is dict:
                    found += [(plain_name(k), v) for k, v in dict.items(variables)]
        except (AttributeError, TypeError):
            continue
    return found


def plain_name(key: Any) -> str:
    """A key of a namespace as text; keys are mostly strings."""
    return key if type(key) is str else "?"
