# SPDX-License-Identifier: Apache-2.0
"""Names, signatures and documentation of functions and methods, from what registrations say.

>>> import inspect, tvm_ffi
>>> inspect.signature(tvm_ffi.get_global_func("testing.add_one"))
<Signature (arg0: 'int', /) -> 'int'>
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # typing costs a third of the import time, and only checkers need it
if TYPE_CHECKING:
    from inspect import Parameter, Signature
    from typing import Any

# Half initialised at this point: its C types and functions exist.
core: Any = sys.modules["tvm_ffi.core"]


def _origin(function: Any) -> tuple[str, ...] | None:
    """Return name, doc and metadata of a function, if anybody said what it is."""
    origin = function._origin
    if not isinstance(origin, str):
        return origin
    try:
        metadata = core._get_global_func("ffi.GetGlobalFuncMetadata", False)(origin)
    except RuntimeError:  # it was removed
        metadata = ""
    return origin, str(core._get_global_func("ffi.GetGlobalFuncDoc", False)(origin)), str(metadata)


def _types(function: Any) -> tuple[list[str] | None, str | None]:
    """Return the types of the parameters and of the result, None for what is unknown."""
    origin = _origin(function)
    if origin is None or not origin[2]:
        return None, None
    import json

    schema = json.loads(origin[2]).get("type_schema")
    if isinstance(schema, str):
        schema = json.loads(schema)
    if not isinstance(schema, dict):
        return None, None
    if schema.get("args"):  # headers up to 0.1.14, where the result alone means no parameters
        result, *params = schema["args"]
        schema = {**schema, "args": [], "named_args": {"return": [result], "params": params}}
    groups = core.TypeSchema.from_json_obj(schema).named_args
    if groups is None:
        return None, None
    parameters = [param.repr() for param in groups["params"]] if "params" in groups else None
    return parameters, groups["return"][0].repr()


def parameters_of(function: Any, names: list[str] | None = None) -> list[Parameter] | None:
    """Return the parameters of a function; None if nothing is known about them.

    `names` are used where the registration gives none.
    """
    from inspect import Parameter

    types, _ = _types(function)
    defaults: Any = ()
    if function._parameters is not None:
        names, defaults = function._parameters
    if names is None:
        if types is None:
            return None
        kind: Any = Parameter.POSITIONAL_ONLY
        names = [f"arg{i}" for i in range(len(types))]
    else:
        kind = Parameter.POSITIONAL_OR_KEYWORD
    found = []
    for i, name in enumerate(names):
        default = defaults[i] if defaults else core.MISSING
        found.append(
            Parameter(
                name,
                kind,
                default=Parameter.empty if default is core.MISSING else default,
                annotation=types[i] if types and i < len(types) else Parameter.empty,
            )
        )
    return found


def _signature(described: Any) -> Signature:
    from inspect import Parameter, Signature, signature

    is_method = not isinstance(described, core.Function)
    function = described.func if is_method else described
    inner = core._callable_in(function)
    if inner is not None:
        return signature(inner)
    parameters = parameters_of(function)
    if parameters is None:
        parameters = [Parameter("args", Parameter.VAR_POSITIONAL)]
        if is_method:
            parameters.insert(0, Parameter("self", Parameter.POSITIONAL_ONLY))
    elif is_method and parameters:
        receiver = "self"
        while any(p.name == receiver for p in parameters[1:]):
            receiver = f"_{receiver}"
        parameters[0] = Parameter(receiver, Parameter.POSITIONAL_ONLY)
        if function._parameters is None:
            parameters[1:] = [p.replace(name=f"arg{i}") for i, p in enumerate(parameters[1:])]
    result = _types(function)[1]
    return Signature(parameters, return_annotation=Signature.empty if result is None else result)


def _text_signature(described: Any) -> str | None:
    from inspect import Parameter, Signature

    bare = [
        p.replace(annotation=Parameter.empty) for p in _signature(described).parameters.values()
    ]
    text = str(Signature(bare))
    return f"(${text[1:]}" if type(described) is core.MethodDescriptor and bare else text


def _name(function: Any) -> str | None:
    origin = function._origin
    if origin is None:
        return getattr(core._callable_in(function), "__name__", None)
    return (origin if isinstance(origin, str) else origin[0]).rpartition(".")[2]


def _qualname(function: Any) -> str | None:
    if function._origin is None:
        return getattr(core._callable_in(function), "__qualname__", None)
    return _name(function)


def _repr(function: Any) -> str:
    origin = function._origin
    if origin is None:
        inner = core._callable_in(function)
        if inner is None:
            return core.object_repr(function)
        return f"<ffi.Function of {inner!r}>"
    if isinstance(origin, str):
        return f"<ffi.Function '{origin}'>"
    name, file = origin[0], "".join(origin[3:])
    return f"<ffi.Function '{name}' from '{file}'>" if file else f"<ffi.Function '{name}'>"


_ATTRIBUTES = {
    "__name__": _name,
    "__qualname__": _qualname,
    "__repr__": _repr,
    "__signature__": _signature,
    "__text_signature__": _text_signature,
}


def describe(described: Any, attribute: str) -> Any:
    """Return an attribute of a function or method; C++ calls this."""
    found = _ATTRIBUTES[attribute](described)
    if found is None:
        raise AttributeError(f"'{type(described).__name__}' object has no attribute '{attribute}'")
    return found


class _OfFunction:
    """An attribute of functions that their class has too, with another value."""

    def __init__(self, of_class: Any, of_function: Any) -> None:
        self._of_class = of_class
        self._of_function = of_function

    def __get__(self, function: Any, cls: type | None = None) -> Any:
        return self._of_class if function is None else self._of_function(function)


def _doc(function: Any) -> str | None:
    origin = _origin(function)
    if origin is None:
        return getattr(core._callable_in(function), "__doc__", None)
    return origin[1] or None


def install() -> None:
    """Give functions the attributes that are found in Python."""
    core.Function.__doc__ = _OfFunction(core.Function.__doc__, _doc)
    core.Function.__signature__ = _OfFunction(None, _signature)
