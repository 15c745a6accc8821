# SPDX-License-Identifier: Apache-2.0
"""Give a function that takes positions only a signature with names and defaults.

>>> from tvm_ffi.utils.kwargs_wrapper import make_kwargs_wrapper
>>> power = make_kwargs_wrapper(pow, ["base", "exp"], (2,), ["mod"], {"mod": None})
>>> power(3), power(exp=3, base=2), power(2, 3, mod=5)
(9, 8, 3)

The wrapper is compiled from a line of Python, so that a call costs one Python frame and nothing is
looked up by name.
"""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Callable, Iterable
from typing import Any

from ..core import MISSING
from .unpack_dataclass import unpack_dataclass_to_tuple

__all__ = [
    "MISSING",
    "make_kwargs_wrapper",
    "make_kwargs_wrapper_from_signature",
    "unpack_dataclass_to_tuple",
]

# Names in the compiled wrapper, which arguments cannot have.
_TARGET = "__i_target_func"
_MISSING = "__i_MISSING"
_DEFAULTS = "__i_arg_defaults"
_UNPACK = "__i_unpack"
_RESERVED = {_TARGET, _MISSING, _DEFAULTS, _UNPACK}


def _check_names(names: list[str], what: str) -> None:
    if len(set(names)) != len(names):
        raise ValueError(f"Duplicate {what.lower()} names found in: {names}")
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"{what} name must be a string, got {type(name).__name__}: {name!r}")
        if keyword.iskeyword(name):
            raise ValueError(
                f"Invalid {what.lower()} name: {name!r} is a Python keyword "
                "and cannot be used as a parameter name"
            )
        if not name.isidentifier():
            raise ValueError(
                f"Invalid {what.lower()} name: {name!r} is not a valid Python identifier"
            )


def _check(
    arg_names: list[str],
    arg_defaults: tuple[Any, ...],
    kwonly_names: list[str],
    kwonly_defaults: dict[str, Any],
) -> None:
    _check_names(arg_names, "Argument")
    if not isinstance(arg_defaults, tuple):
        raise TypeError(f"arg_defaults must be a tuple, got {type(arg_defaults).__name__}")
    if len(arg_defaults) > len(arg_names):
        raise ValueError(
            f"arg_defaults has {len(arg_defaults)} values "
            f"but only {len(arg_names)} positional arguments"
        )
    _check_names(kwonly_names, "Keyword-only argument")
    for name in kwonly_defaults:
        if name not in kwonly_names:
            raise ValueError(
                f"Default provided for '{name}' which is not in kwonly_names: {kwonly_names}"
            )
    both = set(arg_names) & set(kwonly_names)
    if both:
        raise ValueError(f"Arguments cannot be both positional and keyword-only: {both}")
    reserved = (set(arg_names) | set(kwonly_names)) & _RESERVED
    if reserved:
        raise ValueError(
            f"Argument names conflict with internal names: {reserved}. "
            'Please avoid using names starting with "__i_"'
        )


def make_kwargs_wrapper(
    target_func: Callable[..., Any],
    arg_names: list[str],
    arg_defaults: tuple[Any, ...] = (),
    kwonly_names: list[str] | None = None,
    kwonly_defaults: dict[str, Any] | None = None,
    prototype: Callable[..., Any] | None = None,
    map_dataclass_to_tuple: list[str] | None = None,
) -> Callable[..., Any]:
    """Return a function with the given parameters that calls `target_func` with positions only.

    :param arg_defaults: defaults of the last parameters in `arg_names`
    :param kwonly_names: parameters that are passed by name; the target gets them last
    :param prototype: name, module, documentation and annotations are taken from it
    :param map_dataclass_to_tuple: arguments that `unpack_dataclass_to_tuple` is applied to

    A default is always the same object. Those that are not None or a bool are `MISSING` in the
    signature, since their text could be anything.

    >>> from tvm_ffi.utils.kwargs_wrapper import make_kwargs_wrapper
    >>> make_kwargs_wrapper(print, ["a", "a"])
    Traceback (most recent call last):
    ValueError: Duplicate argument names found in: ['a', 'a']
    """
    kwonly_names = list(kwonly_names or ())
    kwonly_defaults = dict(kwonly_defaults or {})
    _check(arg_names, arg_defaults, kwonly_names, kwonly_defaults)
    unpacked = set(map_dataclass_to_tuple or ())
    unknown = sorted(map(repr, unpacked - {*arg_names, *kwonly_names}))
    if unknown:
        raise ValueError(
            f"map_dataclass_to_tuple: no argument is called {', '.join(unknown)}; "
            f"there are {[*arg_names, *kwonly_names]}"
        )
    defaults = dict(zip(arg_names[len(arg_names) - len(arg_defaults) :], arg_defaults, strict=True))
    defaults.update(kwonly_defaults)

    values: list[Any] = []  # the defaults that the text of the wrapper cannot say

    def parameter(name: str) -> str:
        if name not in defaults:
            return name
        default = defaults[name]
        shown = repr(default) if default is None or isinstance(default, bool) else _MISSING
        return f"{name}={shown}"

    def argument(name: str) -> str:
        text = name
        if name in defaults:
            default = defaults[name]
            if not (default is None or isinstance(default, bool)):
                values.append(default)
                text = f"{_DEFAULTS}[{len(values) - 1}] if {name} is {_MISSING} else {name}"
        return f"{_UNPACK}({text})" if name in unpacked else text

    parameters = [parameter(name) for name in arg_names]
    if kwonly_names:
        parameters += ["*", *(parameter(name) for name in kwonly_names)]
    arguments = [argument(name) for name in (*arg_names, *kwonly_names)]
    scope: dict[str, Any] = {
        _TARGET: target_func,
        _MISSING: MISSING,
        _DEFAULTS: tuple(values),
        _UNPACK: unpack_dataclass_to_tuple,
    }
    # A function in a function: what it uses are cells, which are faster than globals.
    text = (
        f"def make({', '.join(scope)}):\n"
        f"    def wrapper({', '.join(parameters)}):\n"
        f"        return {_TARGET}({', '.join(arguments)})\n"
        f"    return wrapper\n"
    )
    names: dict[str, Any] = {}
    exec(compile(text, "<kwargs wrapper>", "exec"), names)
    wrapper = names["make"](**scope)
    wrapper.__qualname__ = "wrapper"  # shown in messages about arguments
    if prototype is not None:
        _copy_attributes(wrapper, prototype)
    return wrapper


def _copy_attributes(wrapper: Any, prototype: Any) -> None:
    for name in ("__module__", "__name__", "__qualname__", "__doc__", "__annotations__"):
        try:
            setattr(wrapper, name, getattr(prototype, name))
        except AttributeError:
            continue
    wrapper.__wrapped__ = prototype


def make_kwargs_wrapper_from_signature(
    target_func: Callable[..., Any],
    signature: inspect.Signature,
    prototype: Callable[..., Any] | None = None,
    exclude_arg_names: Iterable[str] | None = None,
    map_dataclass_to_tuple: list[str] | None = None,
) -> Callable[..., Any]:
    """Return `make_kwargs_wrapper` with names and defaults taken from a signature.

    >>> import inspect
    >>> from tvm_ffi.utils.kwargs_wrapper import make_kwargs_wrapper_from_signature
    >>> signature = inspect.signature(lambda a, b=2, *, c: None)
    >>> make_kwargs_wrapper_from_signature(lambda *args: args, signature)(1, c=3)
    (1, 2, 3)
    """
    excluded = set(exclude_arg_names or ())
    arg_names: list[str] = []
    arg_defaults: list[Any] = []
    kwonly_names: list[str] = []
    kwonly_defaults: dict[str, Any] = {}
    for name, parameter in signature.parameters.items():
        if name in excluded:
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            raise ValueError("*args not supported in wrapper generation")
        if parameter.kind is parameter.VAR_KEYWORD:
            raise ValueError("**kwargs not supported in wrapper generation")
        has_default = parameter.default is not parameter.empty
        if parameter.kind is parameter.KEYWORD_ONLY:
            kwonly_names.append(name)
            if has_default:
                kwonly_defaults[name] = parameter.default
        else:
            arg_names.append(name)
            if has_default:
                arg_defaults.append(parameter.default)
            elif arg_defaults:
                raise ValueError(
                    f"Required positional parameter '{name}' cannot follow parameters with defaults"
                )
    return make_kwargs_wrapper(
        target_func,
        arg_names,
        tuple(arg_defaults),
        kwonly_names,
        kwonly_defaults,
        prototype,
        [name for name in map_dataclass_to_tuple or () if name not in excluded],
    )
